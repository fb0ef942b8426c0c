/* npu_ir_backend_ref.h - CPU kernels for npu_ir.h as an npu_backend like any other device, and npu_accel, the
   small struct by which an accelerator is plugged in.

   The implementation comes with NPU_IR_BACKEND_REF_IMPLEMENTATION, in a file of its own: it uses the public API of
   npu_ir.h only. In the file with NPU_IR_IMPLEMENTATION it comes, too, where this header is included there. C99.

   CONTENTS                               declarations   implementation
     kernel interface                     >>kernel
     the backend                          >>ref          >>impl-ref
     a small door for accelerators        >>accel        >>impl-accel
     elements, strips, elementwise                       >>kernels-elementwise
     casts, shape                                        >>kernels-shape
     matrix product, convolution                         >>kernels-matrix
     attention, lookup                                   >>kernels-lookup
     normalisation, pooling                              >>kernels-normalization
     reduction, softmax, order                           >>kernels-reduction
     aicf                                                >>kernels-aicf
     structured loops                                    >>kernels-loops
     tile programs                                       >>kernels-tiles
*/
#ifndef NPU_IR_BACKEND_REF_H
#define NPU_IR_BACKEND_REF_H

#include "npu_ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -----------------------------------------------------------------------------------------------------------
   KERNEL INTERFACE                                                                                   >>kernel

   A kind has variants by falling priority; the plain one (priority 0) is short portable C and the oracle of
   the others. prepare runs once per op when a program is made: it decodes attributes into its own state and
   packs weights. launch runs every time; it may be called for its parts from several threads at once, so
   parts write disjoint results. The number of parts depends on the op alone, never on the number of threads:
   results are the same bits at any width.

   Kernels are compiled with the header that runs them, which a table says: another one's are refused. A member that
   says "not filled yet" is 0 or NULL.

   Where a run tells the dims of an op (info.dynamic), prepare runs before each launch, for the dims of that
   launch, and what it made is forgotten afterwards. A kernel needs to do nothing about it, unless its results'
   sizes are more than the type rule can tell from the operands' data: then launch says them in `dims`.
   -------------------------------------------------------------------------------------------------------- */

struct npu_launch;
struct npu_kernel_table;
typedef struct npu_prepare {
    /* during prepare only; op->in_data of weights lives as long as the program, the rest is NULL */
    const npu_op_info *op;
    const npu_tensor *in;   /* op->num_in descriptions (dtype 0 = hole); they live as long as the state */
    const npu_tensor *out;
    uint32_t parts;         /* set it: launch may be split into this many parts; 1 before the call */
    /* set it: bytes that launch needs, 64-byte aligned, shared by its parts; 0 before the call */
    size_t workspace;
    size_t worker_workspace; /* not read yet, must stay 0: bytes for each worker that runs parts, besides */
    void *state;            /* set it: given to launch; see npu_prepare_alloc */
    /* set it: called once, before the parts of a launch; NULL before the call */
    npu_status (*before)(const struct npu_launch *l);
    char text[96];          /* set it: why, when prepare fails; empty before the call */
    const npu_allocator *allocator;
    const npu_registry *registry; /* of the backend's desc, NULL = none */
    const struct npu_kernel_table *tables; /* of the backend, for kernels that run other ops */
    uint32_t num_tables;
    const char *variant;          /* of the backend's desc, NULL = by priority */
    uint32_t isa;                 /* number of the backend's instruction set, for built-in kernels; 0 = "base" */
    void *blocks;           /* of npu_prepare_alloc */
} npu_prepare;

/* Zeroed memory, 64-byte aligned, that lives as long as the program, or until after the launch where a run
   tells the op's dims. NULL = out of memory. */
NPU_IR_API void *npu_prepare_alloc(npu_prepare *p, size_t size);

typedef struct npu_launch {
    const npu_tensor *in;   /* descriptions: dtype, rank, dims, strides (in elements; dense row-major) */
    const npu_tensor *out;
    uint32_t num_in, num_out;
    const void *const *x;   /* addresses of the operands; NULL = hole */
    void *const *y;         /* addresses of the results */
    void *state;
    void *workspace;
    void *worker_workspace; /* not filled yet: that of the worker which runs this part */
    /* NULL, or where only the kernel can tell how large its results are: dims[r], at first those of out[r],
       which are the largest that there is room for. launch writes what they are, and results are dense with
       the dims that it wrote. */
    int64_t (*dims)[NPU_MAX_RANK];
    uint32_t isa;           /* as in npu_prepare */
} npu_launch;

/* What the operands and results of an op may be for a kernel: an op with another dtype is never given to it. */
typedef enum npu_kernel_dtypes {
    NPU_KERNEL_NUMBERS = 0, /* bool, i8 to i64, u8 to u64, f16, bf16, f32, f64 */
    NPU_KERNEL_MOVES = 1,   /* numbers; or one dtype of whole bytes for all, whatever its elements mean */
    NPU_KERNEL_COMPLEX = 2, /* numbers, c64, c128 */
    NPU_KERNEL_ANY = 3      /* what the type rule and `supported` accept */
} npu_kernel_dtypes;

typedef struct npu_kernel {
    npu_kind kind;
    const char *variant;    /* "plain", "fast" ... */
    int32_t priority;       /* higher is tried first; plain is 0 */
    /* NULL = whatever the type rule accepts of `dtypes`; also asks the CPU for features */
    bool (*supported)(const npu_op_info *op);
    npu_status (*prepare)(npu_prepare *p);     /* NULL = state NULL, one part */
    npu_status (*launch)(const npu_launch *l, uint32_t part, uint32_t parts);
    /* NULL = operands are dense. Else: does launch read an operand that lies at the strides of x? */
    bool (*takes)(const npu_op_info *op, uint32_t operand, const npu_tensor *x);
    npu_kernel_dtypes dtypes; /* 0 = numbers */
} npu_kernel;

/* Rows sorted by kind, then by falling priority. Borrowed; must outlive the backend. Make one of an array with
   NPU_KERNEL_TABLE(rows). */
typedef struct npu_kernel_table {
    const npu_kernel *kernels;
    uint32_t num_kernels;
    uint32_t version;       /* NPU_IR_VERSION of the header that compiled the rows */
} npu_kernel_table;
#define NPU_KERNEL_TABLE(rows) { (rows), (uint32_t)(sizeof(rows) / sizeof((rows)[0])), NPU_IR_VERSION }

/* -----------------------------------------------------------------------------------------------------------
   THE BACKEND                                                                                           >>ref

   macro                     default   scope
   NPU_IR_HAS_KERNEL(kind)   NPU_IR_HAS_OP(kind)
                                       implementation file: a constant expression, which built-in kernels there are

   A program that knows its ops lists them with NPU_IR_HAS_OP (>>config), which leaves out all else about the
   others, too. Where ops are there for an accelerator and never run on the CPU, it lists those that do before
   it includes the implementation, and no other kernel is compiled in; an op without a kernel is refused as any
   op that the backend does not have:

       #define NPU_IR_HAS_KERNEL(kind) ((kind) == NPU_ATEN_LINEAR || (kind) == NPU_ATEN_RELU)
   -------------------------------------------------------------------------------------------------------- */

/* The CPU backend with all built-in kernels and the default allocator. Static, immutable, thread-safe. */
NPU_IR_API const npu_backend *npu_ref_backend(void);
/* The built-in tables, a family each. Static data. */
NPU_IR_API const npu_kernel_table *npu_ref_kernels(uint32_t *num_tables);

typedef struct npu_ref_desc {
    /* looked through in order, for ops of tile programs after the built-in ones; NULL = npu_ref_kernels() */
    const npu_kernel_table *tables;
    uint32_t num_tables;
    const char *variant;            /* only variants of this name, where a kind has it ("plain"); NULL = by priority */
    const char *name;               /* NULL = "cpu" */
    const npu_registry *registry;   /* borrowed: its executors come before all kernels; NULL = none */
    const npu_allocator *allocator;
    bool with_built_in;             /* npu_ref_kernels() come after `tables` */
    npu_diag *diag;                 /* where a failure is explained; NULL = nowhere */
    const char *isa;                /* instruction set of the kernels: a name of npu_ref_isa; NULL = npu_ref_isa(0) */
    uint32_t _canary;
} npu_ref_desc;
/* A CPU backend with chosen kernels. Errors: INVALID_ARGUMENT (a table is not sorted), VERSION (of a table),
   UNSUPPORTED (this machine has no such instruction set; the message lists those it has), NO_MEMORY. */
NPU_IR_API npu_status npu_ref_create(npu_backend **out, const npu_ref_desc *desc);
NPU_IR_API void npu_ref_destroy(npu_backend *backend);
/* Names of the instruction sets that kernels are compiled for and this machine has, the best one first: "avx512",
   "avx2", "neon", and always "base", what every machine of its kind has. NULL past the last one. npu_ref_backend()
   takes the first. Static strings; thread-safe. */
NPU_IR_API const char *npu_ref_isa(uint32_t index);

/* -----------------------------------------------------------------------------------------------------------
   A SMALL DOOR FOR ACCELERATORS                                                                       >>accel

   Five things that a device must be able to do (alloc, free, upload, download, call one op) make a complete
   npu_backend: the core plans its memory, and ops run one after the other on tensors in the device's buffers.
   It is the way to bring a device up op by op and to compare each with npu_ref_backend(). Fill an npu_backend
   yourself (>>backend) when compiled groups or fences begin to matter. Ops that only see an operand under
   other dims (reshape, flatten, clone, dropout of a trained model ...) are done by the door, never by
   op_call.
   -------------------------------------------------------------------------------------------------------- */

#define NPU_ACCEL_MAX_TENSORS 48 /* operands and results of one op; an op with more is refused */

typedef struct npu_accel {
    uint32_t size;               /* sizeof(npu_accel): required; one that was compiled with 0.2 works for ever */
    uint32_t alignment;          /* bytes, of offsets inside a buffer: a power of two up to 4096; 0 = 64 */
    const char *name;            /* required, borrowed: "npu0" */
    void *ctx;                   /* first argument of every function */

    /* What it takes: the kinds of the ABI table and the ops of the list; `supports` chooses among them, or
       among all ops where both are empty. Without it an op is taken if all its tensors are f32. Borrowed. */
    const npu_abi *abi;          /* the device's own form of kinds; npu_abi_aicf() if it speaks AICF */
    const char *const *ops;      /* whole names: "aten.relu.default" */
    uint32_t num_ops;
    /* 1 = op_call takes an op with other dims in each run: ops whose dims a run tells are offered, unless data decides
       the sizes of their results. `supports` sees the largest dims. */
    uint32_t dynamic;
    npu_status (*supports)(void *ctx, const npu_op_info *op, npu_support *answer);

    /* Memory: required. A handle is what the device wants it to be, except NULL: out of memory. */
    void *(*alloc)(void *ctx, uint64_t bytes);
    void (*free)(void *ctx, void *handle);
    npu_status (*upload)(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes);
    npu_status (*download)(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes);
    uint64_t capacity;           /* bytes of device memory; 0 = unlimited */

    /* Runs one op: required. call->op is what `supports` saw, so attributes are read by name (npu_op_int(call->op,
       "dim", 0)), and a list argument says how many of the tensors are its own. As document 002 has it, the same op is
       device_kind, device_schema and device_attrs[device_size] of call->op: the device's form where the ABI table has
       the kind, else the npu_kind, 0 and the packed blob (>>schema). Tensors are dense, results overlap no operand; the
       first element is at byte in[i]->offset of in[i]->buffer->handle, dtype 0 is an absent operand. */
    npu_status (*op_call)(void *ctx, const npu_call *call);
    npu_status (*finish)(void *ctx, uint64_t stream); /* optional: waits for what op_call has queued */
    uint64_t stream;             /* given to op_call; 0 = default */
    npu_diag *diag;              /* where npu_accel_create says why it fails; NULL = nowhere */
} npu_accel;

/* Makes a backend of it. The struct is copied. Errors: VERSION (size), INVALID_ARGUMENT (a required member is missing,
   alignment is no power of two), NO_MEMORY. */
NPU_IR_API npu_status npu_accel_create(npu_backend **out, const npu_accel *accel,
                                       const npu_allocator *allocator);
NPU_IR_API void npu_accel_destroy(npu_backend *backend); /* after all programs that use it; NULL is fine */

#ifdef __cplusplus
}
#endif

#endif /* NPU_IR_BACKEND_REF_H */

#if (defined(NPU_IR_IMPLEMENTATION) || defined(NPU_IR_BACKEND_REF_IMPLEMENTATION)) && !defined(NPU_IR_BACKEND_REF_DONE)
#define NPU_IR_BACKEND_REF_DONE
#ifdef __cplusplus
#error "npu_ir_backend_ref.h: compile the implementation in a .c file; the declarations work in C++"
#endif
#if !defined(__GNUC__) && !defined(__clang__)
#error "npu_ir_backend_ref.h: compile the implementation with gcc or clang"
#endif

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#include <immintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef NPU_IR_ASSERT
#ifdef NPU_IR_DEBUG
#include <assert.h>
#define NPU_IR_ASSERT(x) assert(x)
#else
#define NPU_IR_ASSERT(x) ((void)0)
#endif
#endif

/* ---- rows of kernels ----

   A row whose kind is not listed names no function, so that the compiler leaves it and what only it calls out. */
#ifndef NPU_IR_HAS_OP
#define NPU_IR_HAS_OP(kind) 1
#endif
#ifndef NPU_IR_HAS_KERNEL
#define NPU_IR_HAS_KERNEL(kind) NPU_IR_HAS_OP(kind)
#endif
typedef bool (*npu__ref_supported_fn)(const npu_op_info *op);
typedef npu_status (*npu__ref_prepare_op_fn)(npu_prepare *p);
typedef npu_status (*npu__ref_launch_op_fn)(const npu_launch *l, uint32_t part, uint32_t parts);
typedef bool (*npu__ref_takes_fn)(const npu_op_info *op, uint32_t operand, const npu_tensor *x);
#define NPU__REF_ROW(kind, variant, priority, supported, prepare, launch) \
    NPU__REF_ROW_TAKES(kind, variant, priority, supported, prepare, launch, (npu__ref_takes_fn)0)
#define NPU__REF_ROW_TAKES(kind, variant, priority, supported, prepare, launch, takes) \
    NPU__REF_ROW_OF(NPU_KERNEL_NUMBERS, kind, variant, priority, supported, prepare, launch, takes)
#define NPU__REF_ROW_OF(dtypes, kind, variant, priority, supported, prepare, launch, takes)         \
    { kind, variant, priority, NPU_IR_HAS_KERNEL(kind) ? supported : (npu__ref_supported_fn)0,         \
      NPU_IR_HAS_KERNEL(kind) ? prepare : (npu__ref_prepare_op_fn)0,                                      \
      NPU_IR_HAS_KERNEL(kind) ? launch : (npu__ref_launch_op_fn)0,                                        \
      NPU_IR_HAS_KERNEL(kind) ? takes : (npu__ref_takes_fn)0, dtypes }

/* ---- elements, strips, elementwise ------------------------------------------------- >>kernels-elementwise

   Every kernel computes in one of three classes: float (f16, bf16, f32), double (f64) or int64 (bool and
   integers; u64 wraps). Elements are converted on the way in and rounded once on the way out, a strip at a
   time. */

#define NPU__REF_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Before a loop whose element i depends on elements i only: a result in place of an operand is as good as one
   apart. */
#if defined(__clang__)
#define NPU__REF_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
/* A loop that calls pow stays as it is; there is nothing to warn of. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#elif defined(__GNUC__)
#define NPU__REF_VECTORIZE _Pragma("GCC ivdep")
#define NPU__REF_UNROLL _Pragma("GCC unroll 8")
#else
#define NPU__REF_VECTORIZE
#endif
/* Before a loop of a few rounds whose variables are to be registers, or of so little work that its jumps are what it
   costs; other compilers unroll both anyway. */
#ifndef NPU__REF_UNROLL
#define NPU__REF_UNROLL
#endif

#if defined(__clang__) /* it warns of every loop that stays scalar; pow and most conversions from double do */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* ---- instruction sets ----

   Loops that gain by it are compiled once for each set of this list, from the same text. A backend has one set, as a
   number that prepare and launch get, and each family of loops has a table of what a set takes, which only the
   kernels of that family name: where kernels are listed, the loops of the others are not linked. No kernel asks the
   processor.

   X(set, narrow, wide): `narrow` is the set whose loops it takes in families that do not gain by this one, `wide` in
   those that gain by wide registers alone. A set has all that the ones before it have. */
#if defined(__x86_64__) || defined(__i386__)
#define NPU__REF_ISAS(X) X(base, base, base) X(avx2, avx2, avx2) X(avx512, avx2, avx512)
#elif defined(__aarch64__)
#define NPU__REF_ISAS(X) X(base, base, base) X(neon, base, base)
#else
#define NPU__REF_ISAS(X) X(base, base, base)
#endif
enum {
#define NPU_X(set, narrow, wide) NPU__REF_ISA_##set,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
    NPU__REF_ISA_COUNT,
    NPU__REF_ISA_BEST = NPU__REF_ISA_COUNT /* of a backend that did not choose */
};

/* gcc makes vector code of loops of any length at -O3 only. Without optimisation that would be most of a build that was
   to be done soon. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define NPU__REF_HAS_AVX2
#if !defined(__clang__) && defined(__OPTIMIZE__)
#define NPU__REF_FAST optimize("O3", "no-trapping-math", "no-math-errno")
#define NPU__REF_AVX2 __attribute__((target("avx2,fma,f16c"), NPU__REF_FAST))
#define NPU__REF_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512"), NPU__REF_FAST))
#else
#define NPU__REF_AVX2 __attribute__((target("avx2,fma,f16c")))
#define NPU__REF_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#endif
#endif

/* Inlined even into functions that are compiled for another machine. Without optimisation nothing is gained by it, and
   every copy would count as branches of its own where a build counts them. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define NPU__REF_INLINE static inline __attribute__((always_inline))
#else
#define NPU__REF_INLINE static inline
#endif
#if defined(__GNUC__)
#define NPU__REF_PREFETCH(address) __builtin_prefetch(address)
#else
#define NPU__REF_PREFETCH(address) ((void)(address))
#endif

/* The classes of a computation; fast variants keep narrow integers as they are. */
enum { NPU__F32, NPU__F64, NPU__I64, NPU__I32, NPU__U8 };
/* elements converted at a time: a few strips fit the first-level cache and the stack */
enum { NPU__STRIP = 256 };

/* The class that a dtype computes in; -1 = it is no number (NPU_KERNEL_NUMBERS). */
static inline int npu__ref_compute_class(uint32_t dtype)
{
    switch (dtype) {
    case NPU_F16: case NPU_BF16: case NPU_F32: return NPU__F32;
    case NPU_F64: return NPU__F64;
    case NPU_BOOL: case NPU_I8: case NPU_I16: case NPU_I32: case NPU_I64:
    case NPU_U8: case NPU_U16: case NPU_U32: case NPU_U64: return NPU__I64;
    default: return -1;
    }
}

/* Bytes of one element, which kernels are given only where it is whole bytes. */
static inline size_t npu__ref_size(uint32_t dtype) { return npu_dtype_bits((npu_dtype)dtype) / 8; }

static bool npu__ref_dtype_fits(npu_kernel_dtypes set, uint32_t dtype)
{
    bool is_complex = set == NPU_KERNEL_COMPLEX && npu_dtype_is_complex((npu_dtype)dtype);
    return set == NPU_KERNEL_ANY || is_complex || npu__ref_compute_class(dtype) >= 0;
}

/* The first operand or result that no kernel of such a set takes; NULL = all are fine. */
static const npu_spec *npu__ref_misfit(npu_kernel_dtypes set, const npu_op_info *op)
{
    uint32_t num = op->num_in + op->num_out, first = NPU_NONE;
    const npu_spec *misfit = NULL;
    bool same = set == NPU_KERNEL_MOVES;
    for (uint32_t i = 0; i < num; i++) {
        const npu_spec *x = i < op->num_in ? op->in[i] : op->out[i - op->num_in];
        if (!x || x->cls == NPU_CLASS_NONE) {
            continue; /* a hole, or an order without data */
        }
        first = first ? first : x->dtype;
        same = same && x->dtype == first && npu_dtype_bits((npu_dtype)first) % 8 == 0;
        misfit = misfit || npu__ref_dtype_fits(set, x->dtype) ? misfit : x;
    }
    return same ? NULL : misfit;
}

/* Elements of a tensor, whose product is known to fit. */
static inline int64_t npu__ref_len(const npu_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= t->dims[i];
    }
    return n;
}

/* Product of dims[from .. to-1]. */
static inline size_t npu__ref_dims_len(const npu_tensor *t, uint32_t from, uint32_t to)
{
    size_t n = 1;
    for (uint32_t i = from; i < to; i++) {
        n *= (size_t)t->dims[i];
    }
    return n;
}

/* How many parts work of n items is worth, `grain` items each; at least 1, at most 64. */
static inline uint32_t npu__ref_parts(size_t n, size_t grain)
{
    size_t parts = n / grain + (n % grain != 0);
    return (uint32_t)(parts < 1 ? 1 : parts > 64 ? 64 : parts);
}

/* Part `part` of n large items: begin <= i < end, as even as can be. */
static inline void npu__ref_share(size_t n, uint32_t part, uint32_t parts, size_t *begin, size_t *end)
{
    size_t step = n / parts, rest = n % parts;
    *begin = part * step + (part < rest ? part : rest);
    *end = *begin + step + (part < rest);
}

/* Part `part` of n items: begin <= i < end. Inner bounds are multiples of 64, so that parts share no cache
   line. */
static inline void npu__ref_split(size_t n, uint32_t part, uint32_t parts, size_t *begin, size_t *end)
{
    size_t step = (n / parts + 64) / 64 * 64;
    *begin = part * step < n ? part * step : n;
    *end = part + 1 < parts && n - *begin > step ? *begin + step : n;
}

NPU__REF_INLINE uint32_t npu__ref_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

NPU__REF_INLINE float npu__ref_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The public conversions say the same; these have no branches, so that loops over them become vector code. */
NPU__REF_INLINE float npu__ref_from_bf16(uint16_t h)
{
    return npu__ref_from_bits((uint32_t)h << 16);
}

NPU__REF_INLINE uint16_t npu__ref_to_bf16(float x)
{
    uint32_t u = npu__ref_bits(x), rounded = u + 0x7fffu + (u >> 16 & 1u);
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded >> 16);
}

NPU__REF_INLINE float npu__ref_from_f16(uint16_t h)
{
    uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t infinite = magnitude >= 0x7c00u ? 0x7f800000u : 0u; /* infinity and NaN: all exponent bits set */
    float scaled = npu__ref_from_bits(magnitude << 13) * 0x1p112f;
    return npu__ref_from_bits(npu__ref_bits(scaled) | infinite | sign);
}

NPU__REF_INLINE uint16_t npu__ref_to_f16(float x)
{
    uint32_t u = npu__ref_bits(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    /* An ulp of 0.5f is the smallest half: the sum rounds to it. */
    uint32_t tiny = npu__ref_bits(npu__ref_from_bits(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
    uint32_t large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (uint16_t)(sign | (a < 0x38800000u ? tiny : a >= 0x47800000u ? large : normal));
}

/* Float to integer as x86 does it: truncated, and the most negative number for what does not fit. */
NPU__REF_INLINE int64_t npu__ref_to_i64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

NPU__REF_INLINE int32_t npu__ref_to_i32(double x)
{
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

NPU__REF_INLINE uint64_t npu__ref_to_u64(double x)
{
    if (x < 0x1p63) {
        return (uint64_t)npu__ref_to_i64(x);
    }
    return (uint64_t)npu__ref_to_i64(x - 0x1p63) ^ 0x8000000000000000u;
}

/* One switch over the element types: X(dtype, C type of the element, the element `e` as a number of type T).
   */
#define NPU__REF_LOADS(X, T, FROM_FLOAT)                                                           \
    X(NPU_BOOL, uint8_t, (T)(e != 0))                                                              \
    X(NPU_I8, int8_t, (T)e)                                                                        \
    X(NPU_I16, int16_t, (T)e)                                                                      \
    X(NPU_I32, int32_t, (T)e)                                                                      \
    X(NPU_I64, int64_t, (T)e)                                                                      \
    X(NPU_U8, uint8_t, (T)e)                                                                       \
    X(NPU_U16, uint16_t, (T)e)                                                                     \
    X(NPU_U32, uint32_t, (T)e)                                                                     \
    X(NPU_U64, uint64_t, (T)e)                                                                     \
    X(NPU_F16, uint16_t, FROM_FLOAT(npu__ref_from_f16(e)))                                         \
    X(NPU_BF16, uint16_t, FROM_FLOAT(npu__ref_from_bf16(e)))                                       \
    X(NPU_F32, float, FROM_FLOAT(e))                                                               \
    X(NPU_F64, double, FROM_FLOAT(e))

#define NPU__REF_LOAD_DENSE(code, type, number)                                                    \
    case code: {                                                                                   \
        const type *p = (const type *)from + first;                                                \
        NPU__REF_VECTORIZE                                                                         \
        for (size_t i = 0; i < n; i++) { type e = p[i]; to[i] = number; }                          \
        return;                                                                                    \
    }
#define NPU__REF_LOAD_STRIDED(code, type, number)                                                  \
    case code: {                                                                                   \
        const type *p = (const type *)from + first;                                                \
        for (size_t i = 0; i < n; i++) { type e = p[(int64_t)i * stride]; to[i] = number; }        \
        return;                                                                                    \
    }

#define NPU__REF_AS_F32(x) ((float)(x))
#define NPU__REF_AS_F64(x) ((double)(x))
#define NPU__REF_AS_I64(x) npu__ref_to_i64((double)(x))

/* n elements, the i-th at from[first + i stride], as numbers of a class. first and stride count elements;
   stride 0 repeats one element. A dtype without numbers reads as zeros. */
#define NPU__REF_DEFINE_LOAD_DENSE(name, T, own, FROM_FLOAT, LOADS)                                \
    static inline void name(T *to, const void *from, uint32_t dtype, int64_t first, size_t n)      \
    {                                                                                              \
        if (dtype == own) {                                                                        \
            memcpy(to, (const T *)from + first, n * sizeof *to);                                   \
            return;                                                                                \
        }                                                                                          \
        switch (dtype) {                                                                           \
        LOADS(NPU__REF_LOAD_DENSE, T, FROM_FLOAT)                                                  \
        default: memset(to, 0, n * sizeof *to); return;                                            \
        }                                                                                          \
    }
#define NPU__REF_DEFINE_LOAD(name, T, own, FROM_FLOAT, LOADS)                                      \
    NPU__REF_DEFINE_LOAD_DENSE(name##_dense, T, own, FROM_FLOAT, LOADS)                            \
    static inline void name(T *to, const void *from, uint32_t dtype, int64_t first, int64_t stride, \
                            size_t n)                                                              \
    {                                                                                              \
        if (stride == 1) {                                                                         \
            name##_dense(to, from, dtype, first, n);                                               \
            return;                                                                                \
        }                                                                                          \
        switch (dtype) {                                                                           \
        LOADS(NPU__REF_LOAD_STRIDED, T, FROM_FLOAT)                                                \
        default: memset(to, 0, n * sizeof *to); return;                                            \
        }                                                                                          \
    }

NPU__REF_DEFINE_LOAD(npu__ref_load_f32, float, NPU_F32, NPU__REF_AS_F32, NPU__REF_LOADS)
NPU__REF_DEFINE_LOAD(npu__ref_load_f64, double, NPU_F64, NPU__REF_AS_F64, NPU__REF_LOADS)
NPU__REF_DEFINE_LOAD(npu__ref_load_i64, int64_t, NPU_I64, NPU__REF_AS_I64, NPU__REF_LOADS)

/* The way back: X(dtype, C type of the element, the number `e` as an element). Integers wrap; bool is e != 0;
   a double becomes f16 or bf16 by way of float, as in torch. */
#define NPU__REF_STORES(X, TO_I32, TO_I64, TO_U64)                                                 \
    X(NPU_BOOL, uint8_t, e != 0)                                                                   \
    X(NPU_I8, int8_t, (int8_t)TO_I32(e))                                                           \
    X(NPU_I16, int16_t, (int16_t)TO_I32(e))                                                        \
    X(NPU_I32, int32_t, (int32_t)TO_I32(e))                                                        \
    X(NPU_I64, int64_t, TO_I64(e))                                                                 \
    X(NPU_U8, uint8_t, (uint8_t)TO_I64(e))                                                         \
    X(NPU_U16, uint16_t, (uint16_t)TO_I64(e))                                                      \
    X(NPU_U32, uint32_t, (uint32_t)TO_I64(e))                                                      \
    X(NPU_U64, uint64_t, TO_U64(e))                                                                \
    X(NPU_F16, uint16_t, npu__ref_to_f16((float)e))                                                \
    X(NPU_BF16, uint16_t, npu__ref_to_bf16((float)e))                                              \
    X(NPU_F32, float, (float)e)                                                                    \
    X(NPU_F64, double, (double)e)

#define NPU__REF_STORE_DENSE(code, type, element)                                                  \
    case code: {                                                                                   \
        type *p = (type *)to + first;                                                              \
        NPU__REF_VECTORIZE                                                                         \
        for (size_t i = 0; i < n; i++) { number e = from[i]; p[i] = element; }                     \
        return;                                                                                    \
    }
#define NPU__REF_STORE_STRIDED(code, type, element)                                                \
    case code: {                                                                                   \
        type *p = (type *)to + first;                                                              \
        for (size_t i = 0; i < n; i++) { number e = from[i]; p[(int64_t)i * stride] = element; }   \
        return;                                                                                    \
    }

#define NPU__REF_CUT_I32(x) npu__ref_to_i32((double)(x))
#define NPU__REF_CUT_I64(x) npu__ref_to_i64((double)(x))
#define NPU__REF_CUT_U64(x) npu__ref_to_u64((double)(x))

/* n numbers of a class to the elements to[first + i stride]. */
#define NPU__REF_DEFINE_STORE_DENSE(name, T, own, TO_I32, TO_I64, TO_U64, STORES)                  \
    static inline void name(void *to, uint32_t dtype, int64_t first, const T *from, size_t n)      \
    {                                                                                              \
        typedef T number;                                                                          \
        if (dtype == own) {                                                                        \
            memcpy((T *)to + first, from, n * sizeof *from);                                       \
            return;                                                                                \
        }                                                                                          \
        switch (dtype) {                                                                           \
        STORES(NPU__REF_STORE_DENSE, TO_I32, TO_I64, TO_U64)                                       \
        default: return;                                                                           \
        }                                                                                          \
    }
#define NPU__REF_DEFINE_STORE(name, T, own, TO_I32, TO_I64, TO_U64)                                \
    NPU__REF_DEFINE_STORE_DENSE(name##_dense, T, own, TO_I32, TO_I64, TO_U64, NPU__REF_STORES)     \
    static inline void name(void *to, uint32_t dtype, int64_t first, int64_t stride, const T *from, \
                            size_t n)                                                              \
    {                                                                                              \
        typedef T number;                                                                          \
        if (stride == 1) {                                                                         \
            name##_dense(to, dtype, first, from, n);                                               \
            return;                                                                                \
        }                                                                                          \
        switch (dtype) {                                                                           \
        NPU__REF_STORES(NPU__REF_STORE_STRIDED, TO_I32, TO_I64, TO_U64)                            \
        default: return;                                                                           \
        }                                                                                          \
    }

NPU__REF_DEFINE_STORE(npu__ref_store_f32, float, NPU_F32, NPU__REF_CUT_I32, NPU__REF_CUT_I64,
                      NPU__REF_CUT_U64)
NPU__REF_DEFINE_STORE(npu__ref_store_f64, double, NPU_F64, NPU__REF_CUT_I32, NPU__REF_CUT_I64,
                      NPU__REF_CUT_U64)
NPU__REF_DEFINE_STORE(npu__ref_store_i64, int64_t, NPU_I64, (int64_t), (int64_t), (uint64_t))

/* ---- the class of a computation as a value ---- */

enum { NPU__REF_OPERANDS = 4, NPU__REF_GRAIN = 32768 };

/* Elements on their way through a kernel, in the class of the computation. Narrow ones fill it as wide ones do. */
typedef union npu__ref_strip {
    float f32[2 * NPU__STRIP];
    double f64[NPU__STRIP];
    int64_t i64[NPU__STRIP];
    uint8_t u8[8 * NPU__STRIP];
} npu__ref_strip;

static const uint32_t npu__ref_class_dtype[] = { NPU_F32, NPU_F64, NPU_I64, NPU_I32, NPU_U8 };
static const size_t npu__ref_class_size[] = { 4, 8, 8, 4, 1 }; /* bytes */

static inline size_t npu__ref_strip_len(int cls) { return sizeof(npu__ref_strip) / npu__ref_class_size[cls]; }

typedef void (*npu__ref_load_fn)(int cls, void *to, const void *from, uint32_t dtype, int64_t first,
                                 int64_t stride, size_t n);
typedef void (*npu__ref_store_fn)(int cls, void *to, uint32_t dtype, int64_t first, int64_t stride,
                                  const void *from, size_t n);

static void npu__ref_load_class(int cls, void *to, const void *from, uint32_t dtype, int64_t first,
                                int64_t stride, size_t n)
{
    switch (cls) {
    case NPU__F32: npu__ref_load_f32((float *)to, from, dtype, first, stride, n); break;
    case NPU__F64: npu__ref_load_f64((double *)to, from, dtype, first, stride, n); break;
    default: npu__ref_load_i64((int64_t *)to, from, dtype, first, stride, n); break;
    }
}

static void npu__ref_store_class(int cls, void *to, uint32_t dtype, int64_t first, int64_t stride,
                                 const void *from, size_t n)
{
    switch (cls) {
    case NPU__F32: npu__ref_store_f32(to, dtype, first, stride, (const float *)from, n); break;
    case NPU__F64: npu__ref_store_f64(to, dtype, first, stride, (const double *)from, n); break;
    default: npu__ref_store_i64(to, dtype, first, stride, (const int64_t *)from, n); break;
    }
}

/* The first of n elements everywhere, 64 bytes at a time. */
static void npu__ref_repeat(void *to, size_t size, size_t n)
{
    char *bytes = (char *)to, line[64]; /* which no store can change: it stays in registers */
    size_t done = size, len = n * size;
    for (; done < 64 && done < len; done *= 2) {
        memcpy(bytes + done, bytes, done < len - done ? done : len - done);
    }
    memcpy(line, bytes, len < 64 ? len : 64);
    for (; done + 64 <= len; done += 64) {
        memcpy(bytes + done, line, 64);
    }
    if (done < len) {
        memcpy(bytes + done, bytes, len - done);
    }
}

#ifdef NPU__REF_HAS_AVX2
/* What the narrow classes meet: numbers of their dtype and bool. Integers wrap. */
#define NPU__REF_NARROW_LOADS(X, T, FROM_FLOAT)                                                    \
    X(NPU_BOOL, uint8_t, (T)(e != 0))                                                              \
    X(NPU_I8, int8_t, (T)e)                                                                        \
    X(NPU_I16, int16_t, (T)e)                                                                      \
    X(NPU_I32, int32_t, (T)e)                                                                      \
    X(NPU_U8, uint8_t, (T)e)                                                                       \
    X(NPU_U16, uint16_t, (T)e)
#define NPU__REF_NARROW_STORES(X, TO_I32, TO_I64, TO_U64)                                          \
    X(NPU_BOOL, uint8_t, e != 0)                                                                   \
    X(NPU_I8, int8_t, (int8_t)e)                                                                   \
    X(NPU_I16, int16_t, (int16_t)e)                                                                \
    X(NPU_U8, uint8_t, (uint8_t)e)                                                                 \
    X(NPU_U16, uint16_t, (uint16_t)e)

/* Dense runs of float and of integers; the rest is not worth a second copy of the code. */
NPU__REF_AVX2 NPU__REF_DEFINE_LOAD_DENSE(npu__ref_load_f32_run, float, NPU_F32, NPU__REF_AS_F32, NPU__REF_LOADS)
NPU__REF_AVX2 NPU__REF_DEFINE_LOAD_DENSE(npu__ref_load_i64_run, int64_t, NPU_I64, NPU__REF_AS_I64,
                                         NPU__REF_LOADS)
NPU__REF_AVX2 NPU__REF_DEFINE_LOAD_DENSE(npu__ref_load_i32_run, int32_t, NPU_I32, NPU__REF_AS_I64,
                                         NPU__REF_NARROW_LOADS)
NPU__REF_AVX2 NPU__REF_DEFINE_LOAD_DENSE(npu__ref_load_u8_run, uint8_t, NPU_U8, NPU__REF_AS_I64,
                                         NPU__REF_NARROW_LOADS)
NPU__REF_DEFINE_LOAD(npu__ref_load_i32, int32_t, NPU_I32, NPU__REF_AS_I64, NPU__REF_NARROW_LOADS)
NPU__REF_DEFINE_LOAD(npu__ref_load_u8, uint8_t, NPU_U8, NPU__REF_AS_I64, NPU__REF_NARROW_LOADS)
NPU__REF_AVX2 NPU__REF_DEFINE_STORE_DENSE(npu__ref_store_f32_run, float, NPU_F32, NPU__REF_CUT_I32,
                                          NPU__REF_CUT_I64, NPU__REF_CUT_U64, NPU__REF_STORES)
NPU__REF_AVX2 NPU__REF_DEFINE_STORE_DENSE(npu__ref_store_i64_run, int64_t, NPU_I64, (int64_t), (int64_t),
                                          (uint64_t), NPU__REF_STORES)
NPU__REF_AVX2 NPU__REF_DEFINE_STORE_DENSE(npu__ref_store_i32_run, int32_t, NPU_I32, , , , NPU__REF_NARROW_STORES)
NPU__REF_AVX2 NPU__REF_DEFINE_STORE_DENSE(npu__ref_store_u8_run, uint8_t, NPU_U8, , , , NPU__REF_NARROW_STORES)

/* Conversions that the machine has; each returns how many it did. The rest is left to the loops above. */
NPU__REF_AVX2 static size_t npu__ref_load_f16_run(float *to, const uint16_t *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    }
    return i;
}

NPU__REF_AVX2 static size_t npu__ref_store_f16_run(uint16_t *to, const float *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    }
    return i;
}

/* npu__ref_to_bf16 in the low half of every lane */
NPU__REF_AVX2 static __m256i npu__ref_to_bf16_lanes(const float *from)
{
    __m256 x = _mm256_loadu_ps(from);
    __m256i u = _mm256_castps_si256(x), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1)), half = _mm256_set1_epi32(0x7fff);
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, half)), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}

NPU__REF_AVX2 static size_t npu__ref_store_bf16_run(uint16_t *to, const float *from, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i y = _mm256_packus_epi32(npu__ref_to_bf16_lanes(from + i), npu__ref_to_bf16_lanes(from + i + 8));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_permute4x64_epi64(y, 0xd8));
    }
    return i;
}

/* The low 8 bits are also those of an int64: floats past int32 are multiples of 256. */
NPU__REF_AVX2 static size_t npu__ref_store_int_run(void *to, uint32_t dtype, int64_t first, const float *from, size_t n)
{
    int32_t strip[NPU__STRIP];
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        size_t at = i % NPU__STRIP;
        int32_t *block = dtype == NPU_I32 ? (int32_t *)to + first + (int64_t)(i - at) : strip;
        _mm256_storeu_si256((__m256i *)(void *)(block + at), _mm256_cvttps_epi32(_mm256_loadu_ps(from + i)));
        if (block == strip && (at + 8 == NPU__STRIP || i + 16 > n)) {
            npu__ref_store_i32_run(to, dtype, first + (int64_t)(i - at), strip, at + 8);
        }
    }
    return i;
}

#if defined(__x86_64__)
NPU__REF_AVX2 static size_t npu__ref_store_long_run(int64_t *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = _mm_cvttss_si64(_mm_load_ss(from + i));
    }
    return n;
}
#endif

static void npu__ref_load_f32_fast(float *to, const void *from, uint32_t dtype, int64_t first, size_t n)
{
    size_t done = dtype == NPU_F16 ? npu__ref_load_f16_run(to, (const uint16_t *)from + first, n) : 0;
    npu__ref_load_f32_run(to + done, from, dtype, first + (int64_t)done, n - done);
}

static void npu__ref_store_f32_fast(void *to, uint32_t dtype, int64_t first, const float *from, size_t n)
{
    size_t done = 0;
    switch (dtype) {
    case NPU_F16: done = npu__ref_store_f16_run((uint16_t *)to + first, from, n); break;
    case NPU_BF16: done = npu__ref_store_bf16_run((uint16_t *)to + first, from, n); break;
    case NPU_I8: case NPU_I16: case NPU_I32: case NPU_U8:
        done = npu__ref_store_int_run(to, dtype, first, from, n);
        break;
#if defined(__x86_64__)
    case NPU_I64: done = npu__ref_store_long_run((int64_t *)to + first, from, n); break;
#endif
    default: break;
    }
    npu__ref_store_f32_run(to, dtype, first + (int64_t)done, from + done, n - done);
}

/* Doubles of f16, bf16 and f32: by way of float, as in torch. */
NPU__REF_AVX2 static void npu__ref_load_f64_fast(double *to, const void *from, uint32_t dtype, int64_t first, size_t n)
{
    float strip[NPU__STRIP];
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        const float *x = dtype == NPU_F32 ? (const float *)from + first + i : strip;
        if (x == strip) {
            npu__ref_load_f32_fast(strip, from, dtype, first + (int64_t)i, len);
        }
        NPU__REF_VECTORIZE
        for (size_t j = 0; j < len; j++) { to[i + j] = (double)x[j]; }
    }
}

NPU__REF_AVX2 static void npu__ref_store_f64_fast(void *to, uint32_t dtype, int64_t first, const double *from, size_t n)
{
    float strip[NPU__STRIP];
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        float *y = dtype == NPU_F32 ? (float *)to + first + i : strip;
        NPU__REF_VECTORIZE
        for (size_t j = 0; j < len; j++) { y[j] = (float)from[i + j]; }
        if (y == strip) {
            npu__ref_store_f32_fast(to, dtype, first + (int64_t)i, strip, len);
        }
    }
}

static void npu__ref_load_f32_avx2(float *to, const void *from, uint32_t dtype, int64_t first, int64_t stride,
                                   size_t n)
{
    if (stride == 1) {
        npu__ref_load_f32_fast(to, from, dtype, first, n);
    } else {
        npu__ref_load_f32(to, from, dtype, first, stride, n);
    }
}

static void npu__ref_store_f32_avx2(void *to, uint32_t dtype, int64_t first, int64_t stride,
                                    const float *from, size_t n)
{
    if (stride == 1) {
        npu__ref_store_f32_fast(to, dtype, first, from, n);
    } else {
        npu__ref_store_f32(to, dtype, first, stride, from, n);
    }
}

static void npu__ref_load_narrow(int cls, void *to, const void *from, uint32_t dtype, int64_t first,
                                 int64_t stride, size_t n)
{
    switch (cls) {
    case NPU__I32: npu__ref_load_i32((int32_t *)to, from, dtype, first, stride, n); break;
    case NPU__U8: npu__ref_load_u8((uint8_t *)to, from, dtype, first, stride, n); break;
    default: npu__ref_load_class(cls, to, from, dtype, first, stride, n); break;
    }
}

static void npu__ref_load_class_avx2(int cls, void *to, const void *from, uint32_t dtype, int64_t first,
                                     int64_t stride, size_t n)
{
    if (stride == 0 && n > 0) {
        npu__ref_load_narrow(cls, to, from, dtype, first, 0, 1);
        npu__ref_repeat(to, npu__ref_class_size[cls], n);
        return;
    }
    if (stride == 1 && cls == NPU__F64 && npu__ref_compute_class(dtype) == NPU__F32) {
        npu__ref_load_f64_fast((double *)to, from, dtype, first, n);
        return;
    }
    if (stride != 1 || cls == NPU__F64) {
        npu__ref_load_narrow(cls, to, from, dtype, first, stride, n);
        return;
    }
    switch (cls) {
    case NPU__F32: npu__ref_load_f32_fast((float *)to, from, dtype, first, n); break;
    case NPU__I32: npu__ref_load_i32_run((int32_t *)to, from, dtype, first, n); break;
    case NPU__U8: npu__ref_load_u8_run((uint8_t *)to, from, dtype, first, n); break;
    default: npu__ref_load_i64_run((int64_t *)to, from, dtype, first, n); break;
    }
}

/* The narrow classes store dense runs only. */
static void npu__ref_store_class_avx2(int cls, void *to, uint32_t dtype, int64_t first, int64_t stride,
                                      const void *from, size_t n)
{
    if (stride == 1 && cls == NPU__F64 && npu__ref_compute_class(dtype) == NPU__F32) {
        npu__ref_store_f64_fast(to, dtype, first, (const double *)from, n);
        return;
    }
    if (cls < NPU__I32 && (stride != 1 || cls == NPU__F64)) {
        npu__ref_store_class(cls, to, dtype, first, stride, from, n);
        return;
    }
    switch (cls) {
    case NPU__F32: npu__ref_store_f32_fast(to, dtype, first, (const float *)from, n); break;
    case NPU__I32: npu__ref_store_i32_run(to, dtype, first, (const int32_t *)from, n); break;
    case NPU__U8: npu__ref_store_u8_run(to, dtype, first, (const uint8_t *)from, n); break;
    default: npu__ref_store_i64_run(to, dtype, first, (const int64_t *)from, n); break;
    }
}
#endif

/* What a strip would be after a stay in memory as `dtype`. */
static void npu__ref_round(int cls, uint32_t dtype, void *strip, size_t n)
{
    npu__ref_strip memory;
    npu__ref_store_class(cls, &memory, dtype, 0, 1, strip, n);
    npu__ref_load_class(cls, strip, &memory, dtype, 0, 1, n);
}

/* ---- expressions ----

   One row per function: the name, the value for float and double, the value for int64. a, b, c, d are
   elements of the operands, T is the type, M(exp) the <math.h> function for it. Comparisons give 1 or 0. A
   tensor operand and a number are the same to an expression. */

#define NPU__REF_WRAP(a, op, b) ((int64_t)((uint64_t)(a) op (uint64_t)(b)))
#define NPU__REF_MOST(a, b) ((a) > (b) || (a) != (a) ? (a) : (b)) /* a NaN on either side wins */
#define NPU__REF_LEAST(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* torch's floor division: the quotient of what fmod leaves, so that it agrees with the remainder. */
#define NPU__REF_FLOAT_HELPERS(T, M)                                                               \
    static inline T M(npu__ref_div_floor)(T a, T b)                                                \
    {                                                                                              \
        T rest = M(fmod)(a, b), quotient = (a - rest) / b, whole;                                  \
        if (b == 0) {                                                                              \
            return a / b;                                                                          \
        }                                                                                          \
        if (rest != 0 && (b < 0) != (rest < 0)) {                                                  \
            quotient -= 1;                                                                         \
        }                                                                                          \
        if (quotient == 0) {                                                                       \
            return M(copysign)(0, a / b);                                                          \
        }                                                                                          \
        whole = M(floor)(quotient);                                                                \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }

#define NPU__REF_M_F32(name) name##f
#define NPU__REF_M_F64(name) name
#define NPU__REF_M_I64(name) name
NPU__REF_FLOAT_HELPERS(float, NPU__REF_M_F32)
NPU__REF_FLOAT_HELPERS(double, NPU__REF_M_F64)

/* The divisor is not 0: npu__ref_has_zero looked. -1 goes apart because the smallest number has no negative.
   */
static inline int64_t npu__ref_div_trunc_i64(int64_t a, int64_t b)
{
    return b == -1 ? NPU__REF_WRAP(0, -, a) : a / b;
}

static inline int64_t npu__ref_div_floor_i64(int64_t a, int64_t b)
{
    return b == -1 ? NPU__REF_WRAP(0, -, a) : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* By squaring, wrapping; a negative exponent leaves what is not 1 or -1 at 0. */
static inline int64_t npu__ref_div_ceil_i64(int64_t a, int64_t b)
{
    int64_t quotient = npu__ref_div_trunc_i64(a, b);
    return quotient + (NPU__REF_WRAP(quotient, *, b) != a && (a < 0) == (b < 0));
}

static inline int64_t npu__ref_pow_i64(int64_t base, int64_t exponent)
{
    int64_t y = 1;
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
    for (; exponent; exponent /= 2) {
        y = exponent % 2 ? NPU__REF_WRAP(y, *, base) : y;
        base = NPU__REF_WRAP(base, *, base);
    }
    return y;
}

/* The rest of a truncated and of a floor division; the divisor is not 0. */
static inline int64_t npu__ref_fmod_i64(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

static inline int64_t npu__ref_remainder_i64(int64_t a, int64_t b)
{
    int64_t rest = npu__ref_fmod_i64(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double npu__ref_remainder(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* log(1 + exp(x)), which neither overflows nor cancels. */
static inline double npu__ref_softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* ---- special functions, in double ---- */

#define NPU__REF_PI 3.14159265358979323846
#define NPU__REF_SQRT2 1.41421356237309504880

/* sum of coefficients[i] x^i */
static double npu__ref_polynomial(const double *coefficients, int count, double x)
{
    double sum = 0;
    while (count-- > 0) {
        sum = sum * x + coefficients[count];
    }
    return sum;
}

/* Reflected below 0, moved up by recurrence, then the asymptotic series. */
static double npu__ref_digamma(double x)
{
    static const double series[] = { 1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12 };
    double y = 0, square;
    if (x == 0) {
        return copysign(HUGE_VAL, -x);
    }
    if (x < 0) {
        if (x == floor(x)) {
            return (double)NAN;
        }
        y = -NPU__REF_PI / tan(NPU__REF_PI * (x - trunc(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) {
        y -= 1 / x;
    }
    square = 1 / (x * x);
    return y + log(x) - 0.5 / x - square * npu__ref_polynomial(series, 7, square);
}

/* sum of 1 / (q + k)^x over k >= 0, by Euler and Maclaurin after the first terms. */
static double npu__ref_zeta(double x, double q)
{
    static const double factors[] = { 12.0, -720.0, 30240.0, -1209600.0, 47900160.0,
                                      -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
                                      1.1646782814350067249e14, -4.5979787224074726105e15,
                                      1.8152105401943546773e17, -7.1661652561756670113e18 };
    double sum, term, factor = 1, k = 0;
    if (x <= 1) {
        return x == 1 ? HUGE_VAL : (double)NAN;
    }
    /* poles, even those of no number; undefined; more terms than are summed */
    if (q <= 0 && (q == floor(q) || x != floor(x) || q < -1e7)) {
        return q == floor(q) ? HUGE_VAL : (double)NAN;
    }
    if (x != x || q != q) {
        return (double)NAN;
    }
    sum = term = pow(q, -x);
    for (int i = 0; i < 9 || q <= 9; i++) {
        q += 1;
        term = pow(q, -x);
        sum += term;
        if (fabs(term) < 1e-17 * fabs(sum)) {
            return sum;
        }
    }
    sum += term * q / (x - 1) - 0.5 * term;
    for (int i = 0; i < 12; i++) {
        double next;
        factor *= x + k;
        term /= q;
        next = factor * term / factors[i];
        sum += next;
        if (fabs(next) < 1e-17 * fabs(sum)) {
            break;
        }
        factor *= x + k + 1;
        term /= q;
        k += 2;
    }
    return sum;
}

/* The reflection formula serves the first derivative below 0; the others have poles and signs of zeta. The
   sine of pi x is given: at the poles it is what the width of pi x leaves of 0, there as in ATen. */
static double npu__ref_polygamma(double n, double x, double sine)
{
    if (n == 0) {
        return npu__ref_digamma(x);
    }
    if (n == 1 && x < 0.5) {
        return NPU__REF_PI * NPU__REF_PI / (sine * sine) - npu__ref_zeta(2, 1 - x);
    }
    return (fmod(n, 2) != 0 ? 1 : -1) * exp(lgamma(n + 1)) * npu__ref_zeta(n + 1, x);
}

static double npu__ref_mvlgamma(double x, double p)
{
    double sum = p * (p - 1) / 4 * log(NPU__REF_PI);
    for (double i = 0; i < p; i++) {
        sum += lgamma(x - i / 2);
    }
    return sum;
}

/* exp(-x) x^a / gamma(a + 1) sum of x^k / ((a + 1) .. (a + k)): the lower incomplete gamma function. */
static double npu__ref_igamma_series(double a, double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 10000 && term > 1e-17 * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * exp(a * log(x) - x - lgamma(a + 1));
}

/* The upper one as a continued fraction, by Lentz. */
static double npu__ref_igammac_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, y = d;
    for (int i = 1; i < 10000; i++) {
        double next, numerator = -i * (i - a);
        b += 2;
        d = numerator * d + b;
        d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + numerator / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        next = c * d;
        y *= next;
        if (fabs(next - 1) < 1e-16) {
            break;
        }
    }
    return y * exp(a * log(x) - x - lgamma(a));
}

/* Either one of a large a: Temme's uniform expansion, whose next term is below 1e-10. */
static double npu__ref_igamma_large(double a, double x, bool upper)
{
    static const double roots[] = { 1, -2.0 / 3, 2.0 / 4, -2.0 / 5, 2.0 / 6, -2.0 / 7, 2.0 / 8 };
    double d = (x - a) / a, half, rest;
    double eta = fabs(d) < 0.01 ? d * sqrt(npu__ref_polynomial(roots, 7, d)) : copysign(sqrt(2 * (d - log1p(d))), d);
    rest = fabs(eta) < 0.01 ? -1.0 / 3 + eta / 12 - 2 * eta * eta / 135 : 1 / d - 1 / eta;
    rest *= exp(-a * eta * eta / 2) / sqrt(2 * NPU__REF_PI * a);
    half = erfc((upper ? eta : -eta) * sqrt(a / 2)) / 2;
    return upper ? half + rest : half - rest;
}

static double npu__ref_igamma(double a, double x, bool upper)
{
    double y;
    bool is_series = x <= 1 || x <= a;
    if (x < 0 || a < 0 || a != a || (a == 0 && !(x > 0)) || (a > DBL_MAX && x > DBL_MAX)) {
        return (double)NAN;
    }
    if (a == 0 || x == 0 || a > DBL_MAX || x > DBL_MAX) {
        y = a == 0 || x > DBL_MAX;
        return upper ? 1 - y : y;
    }
    if (x != x) {
        return x;
    }
    if (a > 1e5) {
        return npu__ref_igamma_large(a, x, upper);
    }
    y = is_series ? npu__ref_igamma_series(a, x) : npu__ref_igammac_fraction(a, x);
    return is_series == upper ? 1 - y : y;
}

/* exp(-|x|) times the modified Bessel function of order 0 or 1: its power series, past 30 the asymptotic
   one. */
static double npu__ref_bessel_i(int order, double x)
{
    double a = fabs(x), sum, term;
    if (a > 30) {
        sum = term = 1;
        for (int k = 1; k < 30; k++) {
            term *= ((2 * k - 1) * (2 * k - 1) - 4.0 * order) / (8 * a * k);
            sum += term;
        }
        sum /= sqrt(2 * NPU__REF_PI * a);
    } else {
        sum = term = order ? a / 2 : 1;
        for (int k = 1; k < 100; k++) {
            term *= a / 2 * (a / 2) / (k * (double)(k + order));
            sum += term;
        }
        sum *= exp(-a);
    }
    return order && x < 0 ? -sum : sum;
}

/* exp(x x) erfc(x); a continued fraction where erfc is tiny. */
static double npu__ref_erfcx(double x)
{
    double y = x;
    if (x < 10) {
        return exp(x * x) * erfc(x);
    }
    for (int k = 40; k > 0; k--) {
        y = x + k / 2.0 / y;
    }
    return 1 / (y * sqrt(NPU__REF_PI));
}

static double npu__ref_log_ndtr(double x)
{
    double t = x / NPU__REF_SQRT2;
    return x < -1 ? log(npu__ref_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

/* |y| with erf(y) = x, about, from log(1 - x x); after Winitzki. */
static double npu__ref_erfinv_guess(double log_rest)
{
    double t = 2 / (NPU__REF_PI * 0.147) + log_rest / 2;
    return sqrt(sqrt(t * t - log_rest / 0.147) - t);
}

/* y with erfc(y) = x, 0 < x <= 1: three of Halley's steps. */
static double npu__ref_erfcinv(double x)
{
    double y = npu__ref_erfinv_guess(log(2 * x) + log1p(-x / 2));
    for (int i = 0; i < 3; i++) {
        double error = (x - erfc(y)) * (sqrt(NPU__REF_PI) / 2) * exp(y * y);
        y -= error / (1 + y * error);
    }
    return y;
}

/* Each end of the range has its own form, so that no digits are lost. */
static double npu__ref_erfinv(double x)
{
    double y = npu__ref_erfinv_guess(log1p(-x * x)), a = fabs(x);
    if (!(a < 1)) {
        return a == 1 ? copysign(HUGE_VAL, x) : (double)NAN;
    }
    if (a > 0.5) {
        return copysign(npu__ref_erfcinv(1 - a), x);
    }
    for (int i = 0; i < 3; i++) {
        double error = (erf(y) - a) * (sqrt(NPU__REF_PI) / 2) * exp(y * y);
        y -= error / (1 + y * error);
    }
    return copysign(y, x);
}

static double npu__ref_ndtri(double p)
{
    double low = p < 0.5 ? p : 1 - p, y;
    if (!(low > 0)) {
        return p == 0 ? -HUGE_VAL : p == 1 ? HUGE_VAL : (double)NAN;
    }
    y = npu__ref_erfcinv(2 * low) * NPU__REF_SQRT2;
    return p < 0.5 ? -y : y;
}

/* log(exp(a) + exp(b)) / scale in the base whose logarithm is scale. */
static double npu__ref_logaddexp(double a, double b, double scale)
{
    double most = a > b || a != a ? a : b;
    return a == b && a - a != 0 ? a : most + log1p(exp(-fabs(a - b) * scale)) / scale;
}

/* From the nearer end, so that both are met exactly; between infinities lies nothing. */
static double npu__ref_lerp(double a, double b, double weight)
{
    return fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}

/* The next f16 or bf16: halves of one sign are in the order of their bits. */
static double npu__ref_nextafter_half(double a, double b, bool is_bf16)
{
    uint16_t bits = is_bf16 ? npu_f32_to_bf16((float)a) : npu_f32_to_f16((float)a);
    if (!(a < b) && !(a > b)) {
        return a == b ? b : (double)NAN;
    }
    bits = (uint16_t)(a == 0 ? (b < 0 ? 0x8001u : 1u) : (a < b) == (a > 0) ? bits + 1u : bits - 1u);
    return (double)(is_bf16 ? npu_bf16_to_f32(bits) : npu_f16_to_f32(bits));
}

/* The bounds are of the precision of the elements: a small eps leaves 1 in float, whose logit is infinite. */
static double npu__ref_logit(double x, double eps, bool is_single)
{
    if (eps >= 0) {
        double low = is_single ? (double)(float)eps : eps, high = is_single ? (double)(1.0f - (float)eps) : 1 - eps;
        x = x < low ? low : x > high ? high : x;
    }
    return log(x / (1 - x));
}

static bool npu__ref_is_close(double a, double b, double relative, double absolute)
{
    double distance = fabs(a - b);
    return distance <= DBL_MAX && distance <= absolute + fabs(relative * b);
}

/* Derivative of gelu: distribution function + x density. */
static double npu__ref_gelu_slope(double x)
{
    return 0.5 * erfc(-x / NPU__REF_SQRT2) + x * exp(-x * x / 2) / sqrt(2 * NPU__REF_PI);
}

static double npu__ref_gelu_tanh_slope(double x)
{
    double scale = sqrt(2 / NPU__REF_PI), t = tanh(scale * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

/* As torch's absolute number: the least of a dtype has none. */
static inline int64_t npu__ref_abs_above(int64_t a, int64_t least)
{
    return a < 0 && a != least ? NPU__REF_WRAP(0, -, a) : a;
}

/* Beside the least number of the dtype a divisor may be negative, as in torch. */
static int64_t npu__ref_gcd_i64(int64_t a, int64_t b, int64_t least)
{
    a = npu__ref_abs_above(a, least);
    b = npu__ref_abs_above(b, least);
    while (a != 0) {
        int64_t rest = npu__ref_fmod_i64(b, a);
        b = a;
        a = rest;
    }
    return b;
}

static int64_t npu__ref_lcm_i64(int64_t a, int64_t b, int64_t least)
{
    int64_t divisor = npu__ref_gcd_i64(a, b, least);
    int64_t y = divisor ? npu__ref_div_trunc_i64(a, divisor) : 0;
    y = NPU__REF_WRAP(y, *, b);
    return y < 0 ? NPU__REF_WRAP(0, -, y) : y;
}

#define NPU__REF_NUMBER_OPS(X)                                                                     \
    X(add, a + b, NPU__REF_WRAP(a, +, b))                                                          \
    X(add_scaled, a + c * b, NPU__REF_WRAP(a, +, NPU__REF_WRAP(c, *, b)))                          \
    X(sub, a - b, NPU__REF_WRAP(a, -, b))                                                          \
    X(sub_scaled, a - c * b, NPU__REF_WRAP(a, -, NPU__REF_WRAP(c, *, b)))                          \
    X(mul, a * b, NPU__REF_WRAP(a, *, b))                                                          \
    X(div_trunc, M(trunc)(a / b), npu__ref_div_trunc_i64(a, b))                                    \
    X(square, a * a, NPU__REF_WRAP(a, *, a))                                                       \
    X(cube, a * a * a, NPU__REF_WRAP(NPU__REF_WRAP(a, *, a), *, a))                                \
    X(neg, -a, NPU__REF_WRAP(0, -, a))                                                             \
    X(abs, M(fabs)(a), a < 0 ? NPU__REF_WRAP(0, -, a) : a)                                         \
    X(relu, a < 0 ? 0 : a, a < 0 ? 0 : a)                                                          \
    X(relu_bwd, b > 0 ? a : 0, b > 0 ? a : 0)                                                      \
    X(maximum, NPU__REF_MOST(a, b), NPU__REF_MOST(a, b))                                           \
    X(minimum, NPU__REF_LEAST(a, b), NPU__REF_LEAST(a, b))                                         \
    X(eq, (T)(a == b), a == b)                                                                     \
    X(ne, (T)(a != b), a != b)                                                                     \
    X(lt, (T)(a < b), a < b)                                                                       \
    X(le, (T)(a <= b), a <= b)                                                                     \
    X(gt, (T)(a > b), a > b)                                                                       \
    X(ge, (T)(a >= b), a >= b)                                                                     \
    X(where, a != 0 ? b : c, a != 0 ? b : c)                                                       \
    X(masked_fill, b != 0 ? c : a, b != 0 ? c : a)                                                 \
    X(rsub, b - a, NPU__REF_WRAP(b, -, a))                                                         \
    X(rsub_scaled, b - c * a, NPU__REF_WRAP(b, -, NPU__REF_WRAP(c, *, a)))                         \
    X(relu6, a < 0 ? 0 : a > 6 ? 6 : a, a < 0 ? 0 : a > 6 ? 6 : a)                                 \
    X(sign, (T)((a > 0) - (a < 0)), (a > 0) - (a < 0))                                             \
    X(ceil, M(ceil)(a), a)                                                                         \
    X(floor, M(floor)(a), a)                                                                       \
    X(round, M(rint)(a), a)                                                                        \
    X(trunc, M(trunc)(a), a)

/* Those that no compiler makes good vector code of. */
#define NPU__REF_SLOW_OPS(X)                                                                       \
    X(clamp, NPU__REF_LEAST(NPU__REF_MOST(a, b), c), NPU__REF_LEAST(NPU__REF_MOST(a, b), c))       \
    X(div_floor, M(npu__ref_div_floor)(a, b), npu__ref_div_floor_i64(a, b))                        \
    X(pow, M(pow)(a, b), npu__ref_pow_i64(a, b))

#define NPU__REF_FLOAT_OPS(X)                                                                      \
    X(div, a / b)                                                                                  \
    X(sqrt, M(sqrt)(a))                                                                            \
    X(rsqrt, 1 / M(sqrt)(a))                                                                       \
    X(reciprocal_square, 1 / (a * a))                                                              \
    X(exp, M(exp)(a))                                                                              \
    X(log, M(log)(a))                                                                              \
    X(gelu_tanh, (T)0.5 * a * (1 + M(tanh)((T)0.79788456080286536 * (a + (T)0.044715 * a * a * a)))) \
    X(leaky_relu, a > 0 ? a : a * b)                                                               \
    X(silu, a / (1 + M(exp)(-a)))                                                                  \
    X(sigmoid, 1 / (1 + M(exp)(-a)))                                                               \
    X(tanh, M(tanh)(a))                                                                            \
    X(hardswish, a * (a < -3 ? 0 : a > 3 ? 6 : a + 3) / 6)                                         \
    X(elu, a < 0 ? b * c * M(expm1)(a * d) : a * c)                                                \
    X(reciprocal, 1 / a)                                                                           \
    X(prelu, a > 0 ? a : a * b)                                                                    \
    X(glu, a / (1 + M(exp)(-b)))                                                                   \
    X(hardsigmoid, (a < -3 ? 0 : a > 3 ? 6 : a + 3) / 6)                                           \
    X(round_decimals, M(rint)(a * b) / b)                                                          \
    X(round_tens, M(rint)(a / b) * b)

#define NPU__REF_SLOW_FLOAT_OPS(X)                                                                 \
    X(gelu, (T)0.5 * a * (1 + M(erf)(a * (T)0.70710678118654752)))                                 \
    X(nextafter, M(nextafter)(a, b))

/* Floating point of any width is computed in double here: one loop serves f16, bf16, f32 and f64. */
#define NPU__REF_WIDE_OPS(X)                                                                       \
    X(acos, acos(a))                                                                               \
    X(acosh, acosh(a))                                                                             \
    X(asin, asin(a))                                                                               \
    X(asinh, asinh(a))                                                                             \
    X(atan, atan(a))                                                                               \
    X(atanh, atanh(a))                                                                             \
    X(cos, cos(a))                                                                                 \
    X(cosh, cosh(a))                                                                               \
    X(sin, sin(a))                                                                                 \
    X(sinh, sinh(a))                                                                               \
    X(tan, tan(a))                                                                                 \
    X(atan2, atan2(a, b))                                                                          \
    X(erf, erf(a))                                                                                 \
    X(erfc, erfc(a))                                                                               \
    X(exp2, exp2(a))                                                                               \
    X(expm1, expm1(a))                                                                             \
    X(log10, log10(a))                                                                             \
    X(log1p, log1p(a))                                                                             \
    X(log2, log2(a))                                                                               \
    X(celu, a > 0 ? a : b * expm1(a / b))                                                          \
    X(selu, 1.0507009873554805 * (a > 0 ? a : 1.6732632423543773 * expm1(a)))                      \
    X(mish, a * tanh(npu__ref_softplus(a)))                                                        \
    X(softplus, a * b > c ? a : npu__ref_softplus(a * b) / b)                                      \
    X(log_sigmoid, -npu__ref_softplus(-a))                                                         \
    X(addcdiv, a + d * b / c)                                                                      \
    X(lerp, npu__ref_lerp(a, b, c))                                                                \
    X(copysign, copysign(a, b))                                                                    \
    X(nextafter_f16, npu__ref_nextafter_half(a, b, false))                                         \
    X(nextafter_bf16, npu__ref_nextafter_half(a, b, true))                                         \
    X(deg2rad, a * (NPU__REF_PI / 180))                                                            \
    X(rad2deg, a * (180 / NPU__REF_PI))                                                            \
    X(digamma, npu__ref_digamma(a))                                                                \
    X(lgamma, lgamma(a))                                                                           \
    X(polygamma, npu__ref_polygamma(a, b, sin(NPU__REF_PI * b)))                                   \
    X(polygamma_single, npu__ref_polygamma(a, b, (double)sinf((float)NPU__REF_PI * (float)b)))     \
    X(mvlgamma, npu__ref_mvlgamma(a, b))                                                           \
    X(float_power, pow(a, b))                                                                      \
    X(frac, a - trunc(a))                                                                          \
    X(hypot, hypot(a, b))                                                                          \
    X(logaddexp, npu__ref_logaddexp(a, b, 1))                                                      \
    X(logaddexp2, npu__ref_logaddexp(a, b, 0.69314718055994530942))                                \
    X(igamma, npu__ref_igamma(a, b, false))                                                        \
    X(igammac, npu__ref_igamma(a, b, true))                                                        \
    X(ldexp, a * exp2(b))                                                                          \
    X(ldexp_single, a * (double)(float)exp2(b))                                                    \
    X(xlogy, a == 0 && b == b ? 0 : a * log(b))                                                    \
    X(xlog1py, a == 0 && b == b ? 0 : a * log1p(b))                                                \
    X(zeta, npu__ref_zeta(a, b))                                                                   \
    X(logit, npu__ref_logit(a, b, false))                                                          \
    X(logit_single, npu__ref_logit(a, b, true))                                                    \
    X(sinc, a == 0 ? 1 : sin(NPU__REF_PI * a) / (NPU__REF_PI * a))                                 \
    X(angle, a < 0 ? NPU__REF_PI : a != a ? a : 0)                                                 \
    X(erfinv, npu__ref_erfinv(a))                                                                  \
    X(i0, npu__ref_bessel_i(0, a) * exp(fabs(a)))                                                  \
    X(i0e, npu__ref_bessel_i(0, a))                                                                \
    X(i1, npu__ref_bessel_i(1, a) * exp(fabs(a)))                                                  \
    X(i1e, npu__ref_bessel_i(1, a))                                                                \
    X(entr, a > 0 ? -a * log(a) : a == 0 ? 0 : a != a ? a : -HUGE_VAL)                             \
    X(erfcx, npu__ref_erfcx(a))                                                                    \
    X(ndtr, 0.5 * erfc(-a / NPU__REF_SQRT2))                                                       \
    X(log_ndtr, npu__ref_log_ndtr(a))                                                              \
    X(ndtri, npu__ref_ndtri(a))                                                                    \
    X(hardshrink, a >= -b && a <= b ? 0 : a)                                                       \
    X(softshrink, a > b ? a - b : a < -b ? a + b : a * 0)                                          \
    X(gelu_backward, a * npu__ref_gelu_slope(b))                                                   \
    X(gelu_tanh_backward, a * npu__ref_gelu_tanh_slope(b))

/* The same with a value for int64. */
#define NPU__REF_WIDE_NUMBER_OPS(X)                                                                \
    X(fmod, fmod(a, b), npu__ref_fmod_i64(a, b))                                                   \
    X(remainder, npu__ref_remainder(a, b), npu__ref_remainder_i64(a, b))                           \
    X(addcmul, a + d * b * c, NPU__REF_WRAP(a, +, NPU__REF_WRAP(NPU__REF_WRAP(d, *, b), *, c)))    \
    X(fmax, a > b || b != b ? a : b, a > b ? a : b)                                                \
    X(fmin, a < b || b != b ? a : b, a < b ? a : b)                                                \
    X(heaviside, a == 0 ? b : a > 0, a == 0 ? b : a > 0)                                           \
    X(threshold, a <= b ? c : a, a <= b ? c : a)                                                   \
    X(threshold_backward, b <= c ? 0 : a, b <= c ? 0 : a)                                          \
    X(nan_to_num, a != a ? b : a > DBL_MAX ? c : a < -DBL_MAX ? d : a, a)                          \
    X(logical_and, a != 0 && b != 0, a != 0 && b != 0)                                             \
    X(logical_or, a != 0 || b != 0, a != 0 || b != 0)                                              \
    X(logical_xor, (a != 0) != (b != 0), (a != 0) != (b != 0))                                     \
    X(logical_not, a == 0, a == 0)                                                                 \
    X(isneginf, a < -DBL_MAX, 0)                                                                   \
    X(isposinf, a > DBL_MAX, 0)                                                                    \
    X(isreal, 1, 1)                                                                                \
    X(signbit, signbit(a) != 0, a < 0)                                                             \
    X(isclose, a == b || npu__ref_is_close(a, b, c, d), a == b)                                    \
    X(isclose_nan, a == b || npu__ref_is_close(a, b, c, d) || (a != a && b != b), a == b)          \
    X(isnan, a != a, 0)                                                                            \
    X(isinf, a - a != 0 && a == a, 0)                                                              \
    X(isfinite, a - a == 0, 1)

/* Integers and bool only. */
#define NPU__REF_INTEGER_OPS(X)                                                                    \
    X(bitwise_and, a & b)                                                                          \
    X(bitwise_or, a | b)                                                                           \
    X(bitwise_xor, a ^ b)                                                                          \
    X(bitwise_not, ~a)                                                                             \
    X(gcd, npu__ref_gcd_i64(a, b, c))                                                              \
    X(lcm, npu__ref_lcm_i64(a, b, c))                                                              \
    X(div_ceil, npu__ref_div_ceil_i64(a, b))                                                       \
    X(shift_left, b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b))                               \
    X(shift_right, a >> (b < 0 || b > 63 ? 63 : b))

/* y[i] = expression of x[k][i] for n elements; y may be one of the x. Absent operands repeat operand 0. */
typedef void (*npu__ref_map_fn)(void *y, const void *const *x, size_t n);

#define NPU__REF_MAP(name, T, expression)                                                          \
    static void name(void *to, const void *const *x, size_t n)                                     \
    {                                                                                              \
        T *y = (T *)to;                                                                            \
        const T *xa = (const T *)x[0], *xb = (const T *)x[1], *xc = (const T *)x[2], *xd = (const T *)x[3]; \
        NPU__REF_VECTORIZE                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            T a = xa[i], b = xb[i], c = xc[i], d = xd[i];                                          \
            (void)a, (void)b, (void)c, (void)d;                                                    \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }

#define NPU_X(name, real, integer) NPU__REF_MAP(npu__ref_map_##name##_i64, int64_t, integer)
NPU__REF_NUMBER_OPS(NPU_X) NPU__REF_SLOW_OPS(NPU_X) NPU__REF_WIDE_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, integer) NPU__REF_MAP(npu__ref_map_##name##_i64, int64_t, integer)
NPU__REF_INTEGER_OPS(NPU_X)
#undef NPU_X
#define T float
#define M NPU__REF_M_F32
#define NPU_X(name, real, integer) NPU__REF_MAP(npu__ref_map_##name##_f32, float, real)
NPU__REF_NUMBER_OPS(NPU_X) NPU__REF_SLOW_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) NPU__REF_MAP(npu__ref_map_##name##_f32, float, real)
NPU__REF_FLOAT_OPS(NPU_X) NPU__REF_SLOW_FLOAT_OPS(NPU_X)
#undef NPU_X
#undef T
#undef M
#define T double
#define M NPU__REF_M_F64
#define NPU_X(name, real, integer) NPU__REF_MAP(npu__ref_map_##name##_f64, double, real)
NPU__REF_NUMBER_OPS(NPU_X) NPU__REF_SLOW_OPS(NPU_X) NPU__REF_WIDE_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) NPU__REF_MAP(npu__ref_map_##name##_f64, double, real)
NPU__REF_FLOAT_OPS(NPU_X) NPU__REF_SLOW_FLOAT_OPS(NPU_X) NPU__REF_WIDE_OPS(NPU_X)
#undef NPU_X
#undef T
#undef M

#ifdef NPU__REF_HAS_AVX2
/* ---- the same expressions eight floats at a time ----

   Functions of <math.h> without branches, right to 1 to 4 units in the last place. The polynomials are
   Chebyshev fits. NaN goes through: every bound is written so that NaN fails the comparison. */

NPU__REF_INLINE float npu__ref_power_of_2(uint32_t biased) { return npu__ref_from_bits(biased << 23); }

/* Where roots set no errno they are an instruction. */
extern float sqrtf(float x) __attribute__((const));
extern double sqrt(double x) __attribute__((const));

/* sum of c[i] x^i in two chains, since every step of one waits for the last */
NPU__REF_INLINE float npu__ref_horner(const float *c, int count, float x)
{
    float square = x * x, a = c[count - 1], b = c[count - 2];
    for (int i = count - 3; i >= 0; i -= 2) {
        a = fmaf(a, square, c[i]);
        b = i > 0 ? fmaf(b, square, c[i - 1]) : b;
    }
    return count % 2 ? fmaf(b, x, a) : fmaf(a, x, b);
}

/* e^x - 1 for |x| <= ln 2 / 2 */
NPU__REF_INLINE float npu__ref_exp_tail(float x)
{
    static const float c[] = { 0.5f, 1.6666576998e-1f, 4.1666554627e-2f, 8.3631776300e-3f,
                               1.3926181809e-3f };
    return fmaf(x * x, npu__ref_horner(c, 5, x), x);
}

/* x = n ln 2 + rest, |rest| <= ln 2 / 2; adding 1.5 * 2^23 rounds. Returns e^rest - 1. */
NPU__REF_INLINE float npu__ref_exp_parts(float x, uint32_t *n)
{
    float rounded = fmaf(x, 1.44269504f, 12582912.0f), whole = rounded - 12582912.0f;
    *n = npu__ref_bits(rounded) - 0x4b400000u;
    return npu__ref_exp_tail(fmaf(whole, -1.42860677e-6f, fmaf(whole, -0.693145752f, x)));
}

/* y 2^n in two factors, since n reaches from -150 to 128. */
NPU__REF_INLINE float npu__ref_scale(float y, uint32_t n)
{
    uint32_t half = (n + 256) >> 1;
    return y * npu__ref_power_of_2(half - 1) * npu__ref_power_of_2(n + 256 - half - 1);
}

NPU__REF_INLINE float npu__ref_fast_expf(float x)
{
    uint32_t n;
    float y = npu__ref_exp_parts(x < -104 ? -104 : x > 89 ? 89 : x, &n) + 1;
    return npu__ref_scale(y, n);
}

/* e^x / 2, which is finite where sinh and cosh are; x >= 0 */
NPU__REF_INLINE float npu__ref_half_expf(float x)
{
    uint32_t n;
    float y = npu__ref_exp_parts(x > 90 ? 90 : x, &n) + 1;
    return npu__ref_scale(y, n - 1);
}

/* x = n + rest. Returns 2^rest; n ends the bits of *rounded. */
NPU__REF_INLINE float npu__ref_exp2_parts(float x, float *rounded)
{
    static const float c[] = { 1.0f, 6.9314720574e-1f, 2.4022646890e-1f, 5.5503287771e-2f, 9.6184889742e-3f,
                               1.3399931181e-3f, 1.5345807395e-4f };
    *rounded = x + 12582912.0f;
    return npu__ref_horner(c, 7, x - (*rounded - 12582912.0f));
}

NPU__REF_INLINE float npu__ref_fast_exp2f(float x)
{
    float rounded, y = npu__ref_exp2_parts(x < -151 ? -151 : x > 129 ? 129 : x, &rounded);
    return npu__ref_scale(y, npu__ref_bits(rounded) - 0x4b400000u);
}

/* Half of it is finite wherever the sum is. */
NPU__REF_INLINE float npu__ref_fast_expm1f(float x)
{
    uint32_t n;
    float y = npu__ref_exp_parts(x < -20 ? -20 : x > 89 ? 89 : x, &n), half = npu__ref_power_of_2(n + 126);
    return 2 * fmaf(half, y, half - 0.5f);
}

NPU__REF_INLINE float npu__ref_fast_tanhf(float x)
{
    float y = npu__ref_fast_expm1f(2 * (x < -10 ? -10 : x > 10 ? 10 : x));
    return y / (y + 2);
}

NPU__REF_INLINE float npu__ref_fast_coshf(float x)
{
    float y = npu__ref_half_expf(fabsf(x));
    return y + 0.25f / y;
}

NPU__REF_INLINE float npu__ref_fast_sinhf(float x)
{
    static const float c[] = { 1.6666666647e-1f, 8.3333396874e-3f, 1.9838098915e-4f, 2.8063006158e-6f };
    float y = npu__ref_half_expf(fabsf(x)), square = x * x;
    float small = fmaf(x * square, npu__ref_horner(c, 4, square), x);
    return fabsf(x) < 1 ? small : copysignf(y - 0.25f / y, x);
}

/* 1 - exp(-x p(x)), where p is smooth; past 4 the result is 1. */
NPU__REF_INLINE float npu__ref_fast_erff(float x)
{
    static const float c[] = { 1.1283791709f, 6.3661956736e-1f, 1.0277336095e-1f, -1.9121386031e-2f,
                               -2.5815039653e-4f, 1.8230307248e-3f, -7.7187974747e-4f, 1.8809217680e-4f,
                               -2.8743581864e-5f, 2.5587650722e-6f, -1.0139772801e-7f };
    float a = fabsf(x) > 4 ? 4 : fabsf(x);
    return copysignf(npu__ref_fast_expm1f(-a * npu__ref_horner(c, 11, a)), x);
}

/* The normal distribution function is 2^(a p(a)) / 2 at -a, where p is smooth; past 5.6 what is left is below the
   rounding of 1. */
NPU__REF_INLINE float npu__ref_fast_geluf(float x)
{
    static const float c[] = { -1.1511114071f, -4.5915892039e-1f, -5.2637595021e-02f, 7.2601518473e-3f,
                               -2.8361954786e-4f, -1.2656542890e-4f, 2.6992972358e-5f, -1.8103067950e-6f };
    uint32_t size = npu__ref_bits(x) & 0x7fffffffu; /* the bits of |x|: their minimum is one instruction */
    float a = npu__ref_from_bits(size < 0x40b33333u ? size : 0x40b33333u), rounded;
    float y = npu__ref_exp2_parts(a * npu__ref_horner(c, 8, a), &rounded);
    float below = y * npu__ref_from_bits((npu__ref_bits(rounded) << 23) + 0x3f000000u);
    below = size > 0x40b33333u ? 0 : below;
    return x * (x < 0 ? below : 1 - below);
}

/* x = 2^n (1 + f), 1 + f between the roots of 1/2 and 2; denormals are scaled up first. */
NPU__REF_INLINE float npu__ref_log_parts(float x, float *n)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    uint32_t above = npu__ref_bits(scaled) - 0x3f3504f3u;
    *n = (float)((int32_t)above >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    return npu__ref_from_bits((above & 0x7fffffu) + 0x3f3504f3u) - 1;
}

/* log(1 + f) - f */
NPU__REF_INLINE float npu__ref_log_tail(float f)
{
    static const float c[] = { -0.5f, 3.3333330728e-1f, -2.5000306422e-1f, 2.0001045102e-1f,
                               -1.6641281476e-1f, 1.4214495754e-1f, -1.2998183458e-1f, 1.2622320902e-1f,
                               -7.9027459080e-2f };
    return f * f * npu__ref_horner(c, 9, f);
}

/* y where the logarithm of x is a number */
NPU__REF_INLINE float npu__ref_log_ends(float x, float y)
{
    return x > 0 ? (x > 3.40282347e38f ? x : y) : x == 0 ? -INFINITY : NAN;
}

NPU__REF_INLINE float npu__ref_fast_logf(float x)
{
    float n, f = npu__ref_log_parts(x, &n), y = fmaf(n, 1.42860677e-6f, npu__ref_log_tail(f) + f);
    return npu__ref_log_ends(x, fmaf(n, 0.693145752f, y));
}

NPU__REF_INLINE float npu__ref_fast_log2f(float x)
{
    float n, f = npu__ref_log_parts(x, &n), tail = npu__ref_log_tail(f);
    return npu__ref_log_ends(x, fmaf(f, 1.44269502f, fmaf(tail, 1.44269502f, f * 1.92596303e-8f)) + n);
}

NPU__REF_INLINE float npu__ref_fast_log10f(float x)
{
    float n, f = npu__ref_log_parts(x, &n), tail = npu__ref_log_tail(f);
    float y = fmaf(f, 0.434294492f, fmaf(tail, 0.434294492f, fmaf(f, -1.01033685e-8f, n * -1.43209888e-8f)));
    return npu__ref_log_ends(x, fmaf(n, 0.30103001f, y));
}

/* What 1 + x loses goes in later: it is worth as much by the derivative. */
NPU__REF_INLINE float npu__ref_fast_log1pf(float x)
{
    float u = 1 + x, lost = x > 1 ? 1 - (u - x) : x - (u - 1), n, f = npu__ref_log_parts(u, &n);
    float y = fmaf(n, 1.42860677e-6f, npu__ref_log_tail(f) + (f + lost / u));
    return npu__ref_log_ends(u, fmaf(n, 0.693145752f, y));
}

/* log(1 + x) for 0 <= x <= 1 */
NPU__REF_INLINE float npu__ref_log1p_inside(float x)
{
    float half = x > 0.414213562f ? 0.5f : 1, f = x * half - (1 - half);
    return npu__ref_log_tail(f) + f + (half < 1 ? 0.693147181f : 0);
}

NPU__REF_INLINE float npu__ref_fast_softplus(float x)
{
    return (x > 0 ? x : 0) + npu__ref_log1p_inside(npu__ref_fast_expf(-fabsf(x)));
}

/* x - n pi or x - n pi / 2 for |x| < 30000, accurate even near 0 */
NPU__REF_INLINE float npu__ref_less_pi(float x, float n)
{
    return fmaf(n, 3.43024902e-15f, fmaf(n, 8.74227766e-8f, fmaf(n, -3.14159274f, x)));
}

/* sin x, |x| <= pi / 2 */
NPU__REF_INLINE float npu__ref_sin_tail(float x)
{
    static const float c[] = { -1.6666659492e-1f, 8.3330646083e-3f, -1.9809474725e-4f, 2.6054811264e-6f };
    float square = x * x;
    return fmaf(x * square, npu__ref_horner(c, 4, square), x);
}

/* Whether a whole number below 2^22 is odd; any other float gives some answer. */
NPU__REF_INLINE uint32_t npu__ref_low_bit(float n) { return npu__ref_bits(n + 12582912.0f) & 1u; }

/* y or, where n is odd, -y */
NPU__REF_INLINE float npu__ref_negate_if_odd(float y, float n)
{
    return npu__ref_from_bits(npu__ref_bits(y) ^ npu__ref_low_bit(n) << 31);
}

NPU__REF_INLINE float npu__ref_fast_sinf(float x)
{
    float n = rintf(x * 0.318309886f);
    return npu__ref_negate_if_odd(npu__ref_sin_tail(npu__ref_less_pi(x, n)), n);
}

NPU__REF_INLINE float npu__ref_fast_cosf(float x)
{
    float n = floorf(x * 0.318309886f), rest = npu__ref_less_pi(x, n + 0.5f);
    return npu__ref_negate_if_odd(npu__ref_sin_tail(-rest), n);
}

NPU__REF_INLINE float npu__ref_fast_tanf(float x)
{
    static const float c[] = { 3.3333334096e-1f, 1.3333217043e-1f, 5.3997150540e-2f, 2.1602186731e-2f,
                               1.0022440262e-2f, 1.0969518486e-3f, 3.8916703687e-3f };
    float n = rintf(x * 0.636619772f), rest = npu__ref_less_pi(x, n * 0.5f), square = rest * rest;
    float y = fmaf(rest * square, npu__ref_horner(c, 7, square), rest);
    return npu__ref_low_bit(n) ? -1 / y : y;
}

/* sin(pi x) / (pi x) */
NPU__REF_INLINE float npu__ref_fast_sinc(float x)
{
    float n = rintf(x), y = npu__ref_sin_tail((x - n) * 3.14159265f) / (x * 3.14159265f);
    return x == 0 ? 1 : npu__ref_negate_if_odd(y, n);
}

/* asin x, |x| <= 1/2, from x and its square */
NPU__REF_INLINE float npu__ref_asin_tail(float x, float square)
{
    static const float c[] = { 1.6666666295e-1f, 7.5001031557e-2f, 4.4596626037e-2f, 3.1131909428e-2f,
                               1.7005833107e-2f, 3.3921006145e-2f };
    return fmaf(x * square, npu__ref_horner(c, 6, square), x);
}

/* Past 1/2 by the half angle. */
NPU__REF_INLINE float npu__ref_fast_asinf(float x)
{
    float a = fabsf(x), half = (1 - a) * 0.5f, square = a > 0.5f ? half : a * a;
    float y = npu__ref_asin_tail(a > 0.5f ? sqrtf(half) : a, square);
    return copysignf(a > 0.5f ? fmaf(-2, y, 1.57079633f) : y, x);
}

NPU__REF_INLINE float npu__ref_fast_acosf(float x)
{
    float a = fabsf(x), half = (1 - a) * 0.5f, square = a > 0.5f ? half : a * a;
    float y = npu__ref_asin_tail(a > 0.5f ? sqrtf(half) : x, square);
    return a > 0.5f ? (x < 0 ? fmaf(-2, y, 3.14159265f) : 2 * y) : 1.57079637f - (y + 4.37113883e-8f);
}

NPU__REF_INLINE float npu__ref_atan_tail(float x) /* |x| <= 1 */
{
    static const float c[] = { -3.3333332139e-1f, 1.9999790064e-1f, -1.4279616155e-1f, 1.1042035394e-1f,
                               -8.6890441749e-2f, 6.3182196612e-2f, -3.6670281033e-2f, 1.3996482002e-2f,
                               -2.5085760141e-3f };
    float square = x * x;
    return fmaf(x * square, npu__ref_horner(c, 9, square), x);
}

NPU__REF_INLINE float npu__ref_fast_atanf(float x)
{
    float a = fabsf(x), y = npu__ref_atan_tail(a > 1 ? 1 / a : a);
    return copysignf(a > 1 ? 1.57079633f - y : y, x);
}

NPU__REF_INLINE float npu__ref_fast_atan2f(float y, float x)
{
    float a = fabsf(x), b = fabsf(y), more = a > b ? a : b, less = a > b ? b : a;
    float angle = npu__ref_atan_tail(more == less ? (more != 0 ? 1 : 0) : less / more);
    angle = b > a ? 1.57079633f - angle : angle;
    angle = npu__ref_bits(x) >> 31 ? 3.14159265f - angle : angle;
    return x != x || y != y ? NAN : copysignf(angle, y);
}

/* The sum of squares cannot leave the range of double. */
NPU__REF_INLINE float npu__ref_fast_hypotf(float x, float y)
{
    float length = (float)sqrt((double)x * (double)x + (double)y * (double)y);
    return fabsf(x) > 3.40282347e38f || fabsf(y) > 3.40282347e38f ? INFINITY : length;
}

/* By M. Giles: a polynomial of -log(1 - x x), or of its root. */
NPU__REF_INLINE float npu__ref_fast_erfinvf(float x)
{
    static const float near_0[] = { 1.50140941f, 0.246640727f, -0.00417768164f, -0.00125372503f,
                                    0.00021858087f, -4.39150654e-6f, -3.5233877e-6f, 3.43273939e-7f,
                                    2.81022636e-8f };
    static const float near_1[] = { 2.83297682f, 1.00167406f, 0.00943887047f, -0.0076224613f,
                                    0.00573950773f, -0.00367342844f, 0.00134934322f, 0.000100950558f,
                                    -0.000200214257f };
    float w = -npu__ref_fast_logf((1 - x) * (1 + x)), root = sqrtf(w) - 3;
    float y = w < 5 ? npu__ref_horner(near_0, 9, w - 2.5f) : npu__ref_horner(near_1, 9, root);
    return fabsf(x) == 1 ? x * INFINITY : y * x;
}

/* The power series; past 8 an expansion in 1 / x. */
NPU__REF_INLINE float npu__ref_fast_i0(float x)
{
    static const float series[] = { 1.0f, 1.0f, 2.5e-1f, 2.777777778e-2f, 1.736111111e-3f, 6.944444444e-5f,
                                    1.929012346e-6f, 3.936759889e-8f, 6.151187327e-10f, 7.594058428e-12f,
                                    7.594058428e-14f, 6.276081346e-16f, 4.358389823e-18f, 2.578928890e-20f,
                                    1.315780046e-22f, 5.847911314e-25f, 2.284340357e-27f };
    static const float large[] = { 3.9894228089e-1f, 4.9867418952e-2f, 2.8094823253e-2f, 2.7250710033e-2f,
                                   8.5128688764e-2f, -3.0564830685e-1f, 1.8277228212f };
    float a = fabsf(x), root = npu__ref_half_expf(a * 0.5f);
    float y = npu__ref_horner(large, 7, 1 / a) / sqrtf(a) * 4 * root * root;
    return a < 8 ? npu__ref_horner(series, 17, x * x * 0.25f) : y;
}

NPU__REF_INLINE float npu__ref_fast_nextafterf(float x, float y)
{
    uint32_t u = npu__ref_bits(x), away = (y > x) == (x > 0);
    float next = npu__ref_from_bits(x == 0 ? (npu__ref_bits(y) & 0x80000000u) | 1u : away ? u + 1 : u - 1);
    return x != x || y != y ? x + y : x == y ? y : next;
}

/* The rest where the quotient, rounded, is at most one off. */
NPU__REF_INLINE float npu__ref_fast_fmodf(float a, float b)
{
    float size = fabsf(a), divisor = fabsf(b), rest = fmaf(-truncf(size / divisor), divisor, size);
    return copysignf(rest < 0 ? rest + divisor : rest, a);
}

NPU__REF_INLINE float npu__ref_fast_remainder(float a, float b)
{
    float rest = npu__ref_fast_fmodf(a, b);
    return ((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest;
}

NPU__REF_INLINE float npu__ref_fast_div_floor(float a, float b)
{
    float rest = npu__ref_fast_fmodf(a, b), quotient = (a - rest) / b, whole;
    quotient = ((rest != 0) & ((rest < 0) != (b < 0))) ? quotient - 1 : quotient;
    whole = floorf(quotient);
    whole = quotient - whole > 0.5f ? whole + 1 : whole;
    return quotient == 0 ? copysignf(0, a / b) : whole;
}

NPU__REF_INLINE float npu__ref_fast_logaddexp(float a, float b)
{
    float most = a > b ? a : b, y = most + npu__ref_log1p_inside(npu__ref_fast_expf(-fabsf(a - b)));
    return ((a == b) & (a - a != 0)) ? a : y; /* infinities; a NaN is in the difference */
}

NPU__REF_INLINE float npu__ref_fast_mish(float x) /* tanh(log(1 + e)) = n / (n + 2), n = e (e + 2) */
{
    float e = npu__ref_fast_expf(x > 20 ? 20 : x), n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
}

NPU__REF_INLINE float npu__ref_fast_logit(float x, float eps)
{
    float below = x > 1 - eps ? 1 - eps : x, inside = x < eps ? eps : below;
    x = eps >= 0 ? inside : x;
    return npu__ref_fast_logf(x / (1 - x));
}

/* A NaN in x stays, one in a bound is looked for. */
NPU__REF_INLINE float npu__ref_fast_clamp(float x, float low, float high)
{
    float above = low > x ? low : x, inside = high < above ? high : above;
    return ((low != low) | (high != high)) ? NAN : inside;
}

NPU__REF_INLINE float npu__ref_fast_softshrink(float x, float width)
{
    float above = x - width, below = x + width, rest = x < -width ? below : x * 0;
    return x > width ? above : rest;
}

#define npu__ref_fast_sqrtf sqrtf
#define npu__ref_fast_fabsf fabsf
#define npu__ref_fast_truncf truncf
#define npu__ref_fast_ceilf ceilf
#define npu__ref_fast_floorf floorf
#define npu__ref_fast_rintf rintf
#define T float
#define M(name) npu__ref_fast_##name##f
#define NPU_X(name, real, integer) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_avx2, float, real)
NPU__REF_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_avx2, float, real)
NPU__REF_FLOAT_OPS(NPU_X)
#undef NPU_X
#undef T
#undef M

/* The rest has its own text: the name, the value in float. */
#define NPU__REF_FAST_OPS(X)                                                                       \
    X(gelu, npu__ref_fast_geluf(a))                                                                \
    X(nextafter, npu__ref_fast_nextafterf(a, b))                                                   \
    X(clamp, npu__ref_fast_clamp(a, b, c))                                                         \
    X(acos, npu__ref_fast_acosf(a))                                                                \
    X(asin, npu__ref_fast_asinf(a))                                                                \
    X(atan, npu__ref_fast_atanf(a))                                                                \
    X(cosh, npu__ref_fast_coshf(a))                                                                \
    X(sinh, npu__ref_fast_sinhf(a))                                                                \
    X(atan2, npu__ref_fast_atan2f(a, b))                                                           \
    X(erf, npu__ref_fast_erff(a))                                                                  \
    X(exp2, npu__ref_fast_exp2f(a))                                                                \
    X(expm1, npu__ref_fast_expm1f(a))                                                              \
    X(log10, npu__ref_fast_log10f(a))                                                              \
    X(log1p, npu__ref_fast_log1pf(a))                                                              \
    X(log2, npu__ref_fast_log2f(a))                                                                \
    X(celu, a > 0 ? a : b * npu__ref_fast_expm1f(a / b))                                        \
    X(selu, 1.05070099f * (a > 0 ? a : 1.67326324f * npu__ref_fast_expm1f(a)))                  \
    X(mish, npu__ref_fast_mish(a))                                                                 \
    X(softplus, a * b > c ? a : npu__ref_fast_softplus(a * b) / b)                                 \
    X(log_sigmoid, -npu__ref_fast_softplus(-a))                                                    \
    X(addcdiv, a + d * b / c)                                                                      \
    X(addcmul, a + d * b * c)                                                                      \
    X(lerp, fabsf(c) < 0.5f ? a + c * (b - a) : b - (b - a) * (1 - c))                             \
    X(copysign, copysignf(a, b))                                                                   \
    X(deg2rad, a * 0.0174532925f)                                                                  \
    X(rad2deg, a * 57.2957795f)                                                                    \
    X(frac, a - truncf(a))                                                                         \
    X(hypot, npu__ref_fast_hypotf(a, b))                                                           \
    X(logaddexp, npu__ref_fast_logaddexp(a, b))                                                    \
    X(xlogy, ((a == 0) & (b == b)) ? 0 : a * npu__ref_fast_logf(b))                                \
    X(logit_single, npu__ref_fast_logit(a, b))                                                            \
    X(sinc, npu__ref_fast_sinc(a))                                                                 \
    X(angle, a < 0 ? 3.14159265f : a != a ? a : 0)                                                 \
    X(erfinv, npu__ref_fast_erfinvf(a))                                                            \
    X(i0, npu__ref_fast_i0(a))                                                                     \
    X(hardshrink, ((a >= -b) & (a <= b)) ? 0 : a)                                                  \
    X(softshrink, npu__ref_fast_softshrink(a, b))                                                  \
    X(fmax, ((a > b) | (b != b)) ? a : b)                                                          \
    X(fmin, ((a < b) | (b != b)) ? a : b)                                                          \
    X(heaviside, a == 0 ? b : a > 0 ? 1.0f : 0.0f)                                                 \
    X(threshold, a <= b ? c : a)                                                                   \
    X(threshold_backward, b <= c ? 0 : a)                                                          \
    X(nan_to_num, a != a ? b : a > FLT_MAX ? c : a < -FLT_MAX ? d : a)                             \
    X(logical_and, (float)((a != 0) & (b != 0)))                                                   \
    X(logical_or, (float)((a != 0) | (b != 0)))                                                    \
    X(logical_xor, (float)((a != 0) ^ (b != 0)))                                                   \
    X(logical_not, (float)(a == 0))                                                                \
    X(isneginf, (float)(a < -FLT_MAX))                                                             \
    X(isposinf, (float)(a > FLT_MAX))                                                              \
    X(signbit, (float)(npu__ref_bits(a) >> 31))                                                    \
    X(isnan, (float)(a != a))                                                                      \
    X(isinf, (float)(fabsf(a) > FLT_MAX))                                                          \
    X(isfinite, (float)(fabsf(a) <= FLT_MAX))

/* Fast where it fits, else as exact as anywhere: the name, where it fits, the values. A NaN never fits. */
#define NPU__REF_GUARDED_OPS(X)                                                                    \
    X(sin, fabsf(a) < 30000, npu__ref_fast_sinf(a), sin((double)a))                                \
    X(cos, fabsf(a) < 30000, npu__ref_fast_cosf(a), cos((double)a))                                \
    X(tan, fabsf(a) < 30000, npu__ref_fast_tanf(a), tan((double)a))                                \
    X(fmod, npu__ref_divides_fast(a, b), npu__ref_fast_fmodf(a, b), fmod((double)a, (double)b))    \
    X(remainder, npu__ref_divides_fast(a, b), npu__ref_fast_remainder(a, b),                       \
      npu__ref_remainder((double)a, (double)b))                                                    \
    X(div_floor, npu__ref_divides_fast(a, b), npu__ref_fast_div_floor(a, b), npu__ref_div_floorf(a, b))

/* The quotient is a number that float holds with its units. */
NPU__REF_INLINE bool npu__ref_divides_fast(float a, float b)
{
    return (fabsf(a) < fabsf(b) * 4194304.0f) & (fabsf(b) <= FLT_MAX);
}

#define NPU__REF_GUARDED_MAP(name, T, fits, fast, exact)                                           \
    static void name(void *to, const void *const *x, size_t n)                                     \
    {                                                                                              \
        const T *xa = (const T *)x[0], *xb = (const T *)x[1];                                      \
        for (size_t k = 0; k < n; k += 64) {                                                       \
            size_t len = n - k < 64 ? n - k : 64;                                                  \
            T block[64];                                                                           \
            int32_t misfits = 0;                                                                   \
            NPU__REF_VECTORIZE                                                                     \
            for (size_t i = 0; i < len; i++) {                                                     \
                T a = xa[k + i], b = xb[k + i];                                                    \
                (void)b;                                                                           \
                misfits |= !(fits);                                                                \
                block[i] = fast;                                                                   \
            }                                                                                      \
            for (size_t i = 0; i < len && misfits; i++) {                                          \
                T a = xa[k + i], b = xb[k + i];                                                    \
                (void)b;                                                                           \
                block[i] = fits ? block[i] : (T)(exact);                                           \
            }                                                                                      \
            memcpy((T *)to + k, block, len * sizeof *block);                                       \
        }                                                                                          \
    }

#define NPU_X(name, real) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_avx2, float, real)
NPU__REF_FAST_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, fits, fast, exact) \
    NPU__REF_AVX2 NPU__REF_GUARDED_MAP(npu__ref_map_##name##_avx2, float, fits, fast, exact)
NPU__REF_GUARDED_OPS(NPU_X)
#undef NPU_X

/* ---- and four doubles at a time ----

   The same functions in double, right to 1 to 3 units in the last place. Polynomials are Taylor's: past the interval
   that is left of the range they need one or two terms more than the best ones. AVX2 has no conversion to 64-bit
   integers: adding 1.5 * 2^52 rounds, and leaves the integer in the low bits. */

#define NPU__REF_ROUNDER 6755399441055744.0

NPU__REF_INLINE uint64_t npu__ref_bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

NPU__REF_INLINE double npu__ref_from_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

NPU__REF_INLINE double npu__ref_power_of_2_f64(uint64_t biased) { return npu__ref_from_bits_f64(biased << 52); }

/* npu__ref_horner */
NPU__REF_INLINE double npu__ref_horner_f64(const double *c, int count, double x)
{
    double square = x * x, a = c[count - 1], b = c[count - 2];
    for (int i = count - 3; i >= 0; i -= 2) {
        a = fma(a, square, c[i]);
        b = i > 0 ? fma(b, square, c[i - 1]) : b;
    }
    return count % 2 ? fma(b, x, a) : fma(a, x, b);
}

/* x = n ln 2 + rest, |rest| <= ln 2 / 2. Returns e^rest - 1. */
NPU__REF_INLINE double npu__ref_exp_parts_f64(double x, uint64_t *n)
{
    static const double c[] = { 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                                1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800 };
    double rounded = fma(x, 1.4426950408889634, NPU__REF_ROUNDER), whole = rounded - NPU__REF_ROUNDER;
    double rest = fma(whole, -2.3190468138462996e-17, fma(whole, -0.69314718055994531, x));
    *n = npu__ref_bits_f64(rounded) - npu__ref_bits_f64(NPU__REF_ROUNDER);
    return fma(rest * rest, npu__ref_horner_f64(c, 12, rest), rest);
}

/* y 2^n in two factors, since n reaches from -1076 to 1024. */
NPU__REF_INLINE double npu__ref_fast_exp(double x)
{
    uint64_t n, half;
    double y = npu__ref_exp_parts_f64(x < -746 ? -746 : x > 710 ? 710 : x, &n) + 1;
    half = (n + 2048) >> 1;
    return y * npu__ref_power_of_2_f64(half - 1) * npu__ref_power_of_2_f64(n + 2048 - half - 1);
}

/* Half of it is finite wherever the sum is. */
NPU__REF_INLINE double npu__ref_fast_expm1(double x)
{
    uint64_t n;
    double y = npu__ref_exp_parts_f64(x < -40 ? -40 : x > 710 ? 710 : x, &n);
    double half = npu__ref_power_of_2_f64(n + 1022);
    return 2 * fma(half, y, half - 0.5);
}

NPU__REF_INLINE double npu__ref_fast_tanh(double x)
{
    double y = npu__ref_fast_expm1(2 * (x < -20 ? -20 : x > 20 ? 20 : x));
    return y / (y + 2);
}

/* x = 2^n (1 + f), 1 + f between the roots of 1/2 and 2; log(1 + f) by s = f / (2 + f), as fdlibm has it. */
NPU__REF_INLINE double npu__ref_fast_log(double x)
{
    static const double c[] = { 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                1.479819860511658591e-01 };
    double scaled = x < DBL_MIN ? x * 0x1p54 : x;
    uint64_t above = npu__ref_bits_f64(scaled) - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u;
    double n = npu__ref_from_bits_f64(above >> 52 | 0x4330000000000000u) - 0x1p52 - (x < DBL_MIN ? 1077 : 1023);
    double f = npu__ref_from_bits_f64((above & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double s = f / (2 + f), square = 0.5 * f * f, tail = s * s * npu__ref_horner_f64(c, 7, s * s);
    double y = n * 6.93147180369123816490e-01 -
               ((square - fma(s, square + tail, n * 1.90821492927058770002e-10)) - f);
    return x > 0 ? (x > DBL_MAX ? x : y) : x == 0 ? -(double)INFINITY : (double)NAN;
}

/* What 1 + x loses goes in later: it is worth as much by the derivative. */
NPU__REF_INLINE double npu__ref_fast_log1p(double x)
{
    double u = 1 + x, lost = x > 1 ? 1 - (u - x) : x - (u - 1);
    return npu__ref_fast_log(u) + (u > 0 && u <= DBL_MAX ? lost / u : 0);
}

NPU__REF_INLINE double npu__ref_fast_softplus_f64(double x)
{
    double e = npu__ref_fast_exp(-fabs(x)), u = 1 + e;
    return (x > 0 ? x : 0) + (npu__ref_fast_log(u) + (e - (u - 1)) / u);
}

/* From e^|x| - 1; past 22 the rest is below the rounding of e^|x| / 2, which is finite where the result is. */
NPU__REF_INLINE double npu__ref_fast_sinh(double x)
{
    double a = fabs(x), t = npu__ref_fast_expm1(a > 22 ? 22 : a), half = npu__ref_fast_exp(a * 0.5);
    return copysign(a > 22 ? 0.5 * half * half : 0.5 * (t + t / (t + 1)), x);
}

NPU__REF_INLINE double npu__ref_fast_cosh(double x)
{
    double half = npu__ref_fast_exp(fabs(x) * 0.5), y = 0.5 * half * half;
    return y + 0.25 / y;
}

/* x - n pi or x - n pi / 2, accurate even near 0 */
NPU__REF_INLINE double npu__ref_less_pi_f64(double x, double n)
{
    return fma(n, 2.9947698097183397e-33, fma(n, -1.2246467991473532e-16, fma(n, -3.1415926535897931, x)));
}

/* sin x, |x| <= pi / 2 */
NPU__REF_INLINE double npu__ref_sin_tail_f64(double x)
{
    static const double c[] = { -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
                                -1.0 / 1307674368000, 1.0 / 355687428096000, -1.0 / 121645100408832000,
                                1.0 / 51090942171709440000.0 };
    double square = x * x;
    return fma(x * square, npu__ref_horner_f64(c, 10, square), x);
}

NPU__REF_INLINE double npu__ref_fast_sin(double x)
{
    double rounded = fma(x, 0.31830988618379067, NPU__REF_ROUNDER);
    double y = npu__ref_sin_tail_f64(npu__ref_less_pi_f64(x, rounded - NPU__REF_ROUNDER));
    return npu__ref_from_bits_f64(npu__ref_bits_f64(y) ^ npu__ref_bits_f64(rounded) << 63);
}

NPU__REF_INLINE double npu__ref_fast_cos(double x)
{
    double rounded = fma(x, 0.31830988618379067, -0.5) + NPU__REF_ROUNDER;
    double y = npu__ref_sin_tail_f64(-npu__ref_less_pi_f64(x, rounded - NPU__REF_ROUNDER + 0.5));
    return npu__ref_from_bits_f64(npu__ref_bits_f64(y) ^ npu__ref_bits_f64(rounded) << 63);
}

/* x = n pi / 2 + rest: sine by cosine of the rest, or the other way round */
NPU__REF_INLINE double npu__ref_fast_tan(double x)
{
    static const double c[] = { -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                -1.0 / 87178291200, 1.0 / 20922789888000 };
    double rounded = fma(x, 0.63661977236758134, NPU__REF_ROUNDER);
    double rest = npu__ref_less_pi_f64(x, (rounded - NPU__REF_ROUNDER) * 0.5), square = rest * rest;
    double sine = npu__ref_sin_tail_f64(rest), cosine = fma(square, npu__ref_horner_f64(c, 8, square), 1);
    return npu__ref_bits_f64(rounded) & 1 ? -cosine / sine : sine / cosine;
}

/* By Cephes: from 0.66 on seen from pi / 4, from the tangent of 3 pi / 8 on from pi / 2; x >= 0. */
NPU__REF_INLINE double npu__ref_atan_positive(double x)
{
    static const double p[] = { -6.485021904942025371773e1, -1.228866684490136173410e2, -7.500855792314704667340e1,
                                -1.615753718733365076637e1, -8.750608600031904122785e-1 };
    static const double q[] = { 1.945506571482613964425e2, 4.853903996359136964868e2, 4.328810604912902668951e2,
                                1.650270098316988542046e2, 2.485846490142306297962e1, 1 };
    bool is_steep = x > 2.41421356237309504880, is_middle = x > 0.66;
    double from = is_steep ? 1.5707963267948966 : is_middle ? 0.78539816339744831 : 0;
    double lost = is_steep ? 6.123233995736765886e-17 : is_middle ? 3.061616997868382943e-17 : 0;
    double t = is_steep ? -1 / x : is_middle ? (x - 1) / (x + 1) : x, square = t * t;
    double tail = square * npu__ref_horner_f64(p, 5, square) / npu__ref_horner_f64(q, 6, square);
    return from + (fma(t, tail, t) + lost);
}

NPU__REF_INLINE double npu__ref_fast_atan(double x) { return copysign(npu__ref_atan_positive(fabs(x)), x); }

NPU__REF_INLINE double npu__ref_fast_atan2(double y, double x)
{
    double a = fabs(x), b = fabs(y), ratio = a == b ? (a != 0 ? 1 : 0) : b / a;
    double angle = npu__ref_atan_positive(ratio);
    angle = npu__ref_bits_f64(x) >> 63 ? 3.1415926535897931 - (angle - 1.2246467991473532e-16) : angle;
    return x != x || y != y ? (double)NAN : copysign(angle, y);
}

/* npu__ref_fast_clamp */
NPU__REF_INLINE double npu__ref_fast_clamp_f64(double x, double low, double high)
{
    double above = low > x ? low : x, inside = high < above ? high : above;
    return ((low != low) | (high != high)) ? (double)NAN : inside;
}

#define npu__ref_fast_sqrt sqrt
#define npu__ref_fast_fabs fabs
#define npu__ref_fast_trunc trunc
#define npu__ref_fast_ceil ceil
#define npu__ref_fast_floor floor
#define npu__ref_fast_rint rint
#define T double
#define M(name) npu__ref_fast_##name
#define NPU_X(name, real, integer) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_f64_avx2, double, real)
NPU__REF_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_f64_avx2, double, real)
NPU__REF_FLOAT_OPS(NPU_X)
#undef NPU_X
#undef T
#undef M

#define NPU__REF_FAST_OPS_F64(X)                                                                   \
    X(clamp, npu__ref_fast_clamp_f64(a, b, c))                                                     \
    X(expm1, npu__ref_fast_expm1(a))                                                               \
    X(log1p, npu__ref_fast_log1p(a))                                                               \
    X(softplus, a * b > c ? a : npu__ref_fast_softplus_f64(a * b) / b)                             \
    X(log_sigmoid, -npu__ref_fast_softplus_f64(-a))                                                \
    X(sinh, npu__ref_fast_sinh(a))                                                                 \
    X(cosh, npu__ref_fast_cosh(a))                                                                 \
    X(atan, npu__ref_fast_atan(a))                                                                 \
    X(atan2, npu__ref_fast_atan2(a, b))
#define NPU__REF_GUARDED_OPS_F64(X)                                                                \
    X(sin, fabs(a) < 1e9, npu__ref_fast_sin(a), sin(a))                                            \
    X(cos, fabs(a) < 1e9, npu__ref_fast_cos(a), cos(a))                                            \
    X(tan, fabs(a) < 1e9, npu__ref_fast_tan(a), tan(a))
#define NPU_X(name, real) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_f64_avx2, double, real)
NPU__REF_FAST_OPS_F64(NPU_X)
#undef NPU_X
#define NPU_X(name, fits, fast, exact) \
    NPU__REF_AVX2 NPU__REF_GUARDED_MAP(npu__ref_map_##name##_f64_avx2, double, fits, fast, exact)
NPU__REF_GUARDED_OPS_F64(NPU_X)
#undef NPU_X

/* Narrow integers, T of the unsigned type U: the same low bits as of int64. IS_NEGATIVE is 0 of an unsigned T. */
#define NPU__REF_NARROW_OPS(X)                                                                     \
    X(add, (T)((U)a + (U)b))                                                                       \
    X(add_scaled, (T)((U)a + (U)c * (U)b))                                                         \
    X(sub, (T)((U)a - (U)b))                                                                       \
    X(sub_scaled, (T)((U)a - (U)c * (U)b))                                                         \
    X(rsub, (T)((U)b - (U)a))                                                                      \
    X(rsub_scaled, (T)((U)b - (U)c * (U)a))                                                        \
    X(mul, (T)((U)a * (U)b))                                                                       \
    X(square, (T)((U)a * (U)a))                                                                    \
    X(neg, (T)(0u - (U)a))                                                                         \
    X(abs, IS_NEGATIVE(a) ? (T)(0u - (U)a) : a)                                                    \
    X(relu, IS_NEGATIVE(a) ? 0 : a)                                                                \
    X(sign, (T)((a > 0) - IS_NEGATIVE(a)))                                                         \
    X(maximum, a > b ? a : b)                                                                      \
    X(minimum, a < b ? a : b)                                                                      \
    X(clamp, (a > b ? a : b) < c ? (a > b ? a : b) : c)                                            \
    X(eq, a == b)                                                                                  \
    X(ne, a != b)                                                                                  \
    X(lt, a < b)                                                                                   \
    X(le, a <= b)                                                                                  \
    X(gt, a > b)                                                                                   \
    X(ge, a >= b)                                                                                  \
    X(where, a ? b : c)                                                                            \
    X(masked_fill, b ? c : a)                                                                      \
    X(logical_and, (a != 0) & (b != 0))                                                            \
    X(logical_or, (a | b) != 0)                                                                    \
    X(logical_xor, (a != 0) ^ (b != 0))                                                            \
    X(logical_not, a == 0)                                                                         \
    X(bitwise_and, a & b)                                                                          \
    X(bitwise_or, a | b)                                                                           \
    X(bitwise_xor, a ^ b)                                                                          \
    X(bitwise_not, (T)~a)

#define T int32_t
#define U uint32_t
#define IS_NEGATIVE(x) ((x) < 0)
#define NPU_X(name, integer) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_i32_avx2, int32_t, integer)
NPU__REF_NARROW_OPS(NPU_X)
#undef NPU_X
#undef T
#undef U
#undef IS_NEGATIVE
#define T uint8_t
#define U uint8_t
#define IS_NEGATIVE(x) 0
#define NPU_X(name, integer) NPU__REF_AVX2 NPU__REF_MAP(npu__ref_map_##name##_u8_avx2, uint8_t, (uint8_t)(integer))
NPU__REF_NARROW_OPS(NPU_X)
#undef NPU_X
#undef T
#undef U
#undef IS_NEGATIVE

/* Worth twice the width. */
#define NPU__REF_WIDEST_OPS(X)                                                                     \
    X(gelu, npu__ref_fast_geluf(a))
#define NPU_X(name, real) NPU__REF_AVX512 NPU__REF_MAP(npu__ref_map_##name##_avx512, float, real)
NPU__REF_WIDEST_OPS(NPU_X)
#undef NPU_X
#endif

enum {
    NPU__REF_OP_copy,
#define NPU_X(name, real, integer) NPU__REF_OP_##name,
    NPU__REF_NUMBER_OPS(NPU_X) NPU__REF_SLOW_OPS(NPU_X) NPU__REF_WIDE_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) NPU__REF_OP_##name,
    NPU__REF_FLOAT_OPS(NPU_X) NPU__REF_SLOW_FLOAT_OPS(NPU_X) NPU__REF_WIDE_OPS(NPU_X)
    NPU__REF_INTEGER_OPS(NPU_X)
#undef NPU_X
    NPU__REF_OP_COUNT
};

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/* ---- the kinds: which expression, and how many leading arguments of the schema are its operands ---- */

#define NPU__REF_ACTIVATION(X)                                                                     \
    X(NPU_ATEN_RELU, relu, 1)                                                                      \
    X(NPU_ATEN_GELU, gelu, 1)                                                                      \
    X(NPU_ATEN_LEAKY_RELU, leaky_relu, 2)                                                          \
    X(NPU_ATEN_SILU, silu, 1)                                                                      \
    X(NPU_ATEN_SIGMOID, sigmoid, 1)                                                                \
    X(NPU_ATEN_TANH, tanh, 1)                                                                      \
    X(NPU_ATEN_HARDSWISH, hardswish, 1)                                                            \
    X(NPU_ATEN_HARDTANH, clamp, 3)                                                                 \
    X(NPU_ATEN_ELU, elu, 4)

#define NPU__REF_ELEMENTWISE(X)                                                                    \
    X(NPU_ATEN_ADD, add_scaled, 3)                                                                 \
    X(NPU_ATEN_ADD_SCALAR, add_scaled, 3)                                                          \
    X(NPU_ATEN_SUB, sub_scaled, 3)                                                                 \
    X(NPU_ATEN_SUB_SCALAR, sub_scaled, 3)                                                          \
    X(NPU_ATEN_MUL, mul, 2)                                                                        \
    X(NPU_ATEN_MUL_SCALAR, mul, 2)                                                                 \
    X(NPU_ATEN_DIV, div, 2)                                                                        \
    X(NPU_ATEN_DIV_SCALAR, div, 2)                                                                 \
    X(NPU_ATEN_DIV_MODE, div, 2)                                                                   \
    X(NPU_ATEN_DIV_SCALAR_MODE, div, 2)                                                            \
    X(NPU_ATEN_POW, pow, 2)                                                                        \
    X(NPU_ATEN_POW_TENSOR_SCALAR, pow, 2)                                                          \
    X(NPU_ATEN_POW_SCALAR, pow, 2)                                                                 \
    X(NPU_ATEN_SQRT, sqrt, 1)                                                                      \
    X(NPU_ATEN_RSQRT, rsqrt, 1)                                                                    \
    X(NPU_ATEN_NEG, neg, 1)                                                                        \
    X(NPU_ATEN_ABS, abs, 1)                                                                        \
    X(NPU_ATEN_EXP, exp, 1)                                                                        \
    X(NPU_ATEN_LOG, log, 1)                                                                        \
    X(NPU_ATEN_CLAMP, clamp, 3)                                                                    \
    X(NPU_ATEN_CLAMP_TENSOR, clamp, 3)                                                             \
    X(NPU_ATEN_MAXIMUM, maximum, 2)                                                                \
    X(NPU_ATEN_MINIMUM, minimum, 2)                                                                \
    X(NPU_ATEN_ACOS, acos, 1)                                                                      \
    X(NPU_ATEN_ACOSH, acosh, 1)                                                                    \
    X(NPU_ATEN_ASIN, asin, 1)                                                                      \
    X(NPU_ATEN_ASINH, asinh, 1)                                                                    \
    X(NPU_ATEN_ATAN, atan, 1)                                                                      \
    X(NPU_ATEN_ATANH, atanh, 1)                                                                    \
    X(NPU_ATEN_COS, cos, 1)                                                                        \
    X(NPU_ATEN_COSH, cosh, 1)                                                                      \
    X(NPU_ATEN_SIN, sin, 1)                                                                        \
    X(NPU_ATEN_SINH, sinh, 1)                                                                      \
    X(NPU_ATEN_TAN, tan, 1)                                                                        \
    X(NPU_ATEN_ERF, erf, 1)                                                                        \
    X(NPU_ATEN_EXPM1, expm1, 1)                                                                    \
    X(NPU_ATEN_LOG10, log10, 1)                                                                    \
    X(NPU_ATEN_LOG1P, log1p, 1)                                                                    \
    X(NPU_ATEN_LOG2, log2, 1)                                                                      \
    X(NPU_ATEN_RECIPROCAL, reciprocal, 1)                                                          \
    X(NPU_ATEN_ATAN2, atan2, 2)                                                                    \
    X(NPU_ATEN_CEIL, ceil, 1)                                                                      \
    X(NPU_ATEN_FLOOR, floor, 1)                                                                    \
    X(NPU_ATEN_ROUND, round, 1)                                                                    \
    X(NPU_ATEN_TRUNC, trunc, 1)                                                                    \
    X(NPU_ATEN_SIGN, sign, 1)                                                                      \
    X(NPU_ATEN_FMOD_SCALAR, fmod, 2)                                                               \
    X(NPU_ATEN_FMOD_TENSOR, fmod, 2)                                                               \
    X(NPU_ATEN_REMAINDER_SCALAR, remainder, 2)                                                     \
    X(NPU_ATEN_REMAINDER_TENSOR, remainder, 2)                                                     \
    X(NPU_ATEN_CLAMP_MAX, minimum, 2)                                                              \
    X(NPU_ATEN_CLAMP_MAX_TENSOR, minimum, 2)                                                       \
    X(NPU_ATEN_CLAMP_MIN, maximum, 2)                                                              \
    X(NPU_ATEN_CLAMP_MIN_TENSOR, maximum, 2)                                                       \
    X(NPU_ATEN_FLOOR_DIVIDE, div_floor, 2)                                                         \
    X(NPU_ATEN_FLOOR_DIVIDE_SCALAR, div_floor, 2)                                                  \
    X(NPU_ATEN_RSUB_SCALAR, rsub_scaled, 3)                                                        \
    X(NPU_ATEN_RSUB_TENSOR, rsub_scaled, 3)                                                        \
    X(NPU_ATEN_ERFC, erfc, 1)                                                                      \
    X(NPU_ATEN_EXP2, exp2, 1)                                                                      \
    X(NPU_ATEN_SQUARE, square, 1)                                                                  \
    X(NPU_ATEN_HARDSIGMOID, hardsigmoid, 1)                                                        \
    X(NPU_ATEN_CELU, celu, 2)                                                                      \
    X(NPU_ATEN_SELU, selu, 1)                                                                      \
    X(NPU_ATEN_MISH, mish, 1)                                                                      \
    X(NPU_ATEN_SOFTPLUS, softplus, 3)                                                              \
    X(NPU_ATEN_RELU6, relu6, 1)                                                                    \
    X(NPU_ATEN_LOG_SIGMOID, log_sigmoid, 1)                                                        \
    X(NPU_ATEN_MASKED_FILL_SCALAR, masked_fill, 3)                                                 \
    X(NPU_ATEN_MASKED_FILL_TENSOR, masked_fill, 3)

#define NPU__REF_LOGIC(X)                                                                          \
    X(NPU_ATEN_BITWISE_AND_SCALAR, bitwise_and, 2)                                                 \
    X(NPU_ATEN_BITWISE_AND_TENSOR, bitwise_and, 2)                                                 \
    X(NPU_ATEN_BITWISE_OR_SCALAR, bitwise_or, 2)                                                   \
    X(NPU_ATEN_BITWISE_OR_TENSOR, bitwise_or, 2)                                                   \
    X(NPU_ATEN_BITWISE_XOR_SCALAR, bitwise_xor, 2)                                                 \
    X(NPU_ATEN_BITWISE_XOR_TENSOR, bitwise_xor, 2)                                                 \
    X(NPU_ATEN_BITWISE_NOT, bitwise_not, 1)                                                        \
    X(NPU_ATEN_LOGICAL_AND, logical_and, 2)                                                        \
    X(NPU_ATEN_LOGICAL_OR, logical_or, 2)                                                          \
    X(NPU_ATEN_LOGICAL_XOR, logical_xor, 2)                                                        \
    X(NPU_ATEN_LOGICAL_NOT, logical_not, 1)                                                        \
    X(NPU_ATEN_ISINF, isinf, 1)                                                                    \
    X(NPU_ATEN_ISNAN, isnan, 1)                                                                    \
    X(NPU_ATEN_ISFINITE, isfinite, 1)                                                              \
    X(NPU_ATEN_AND___TENSOR, bitwise_and, 2)                                                       \
    X(NPU_ATEN_ISNEGINF, isneginf, 1)                                                              \
    X(NPU_ATEN_ISPOSINF, isposinf, 1)                                                              \
    X(NPU_ATEN_ISREAL, isreal, 1)                                                                  \
    X(NPU_ATEN_SIGNBIT, signbit, 1)                                                                \
    X(NPU_ATEN_ISCLOSE, isclose, 4)

#define NPU__REF_SPECIAL(X)                                                                        \
    X(NPU_ATEN_ADDCDIV, addcdiv, 4)                                                                \
    X(NPU_ATEN_ADDCMUL, addcmul, 4)                                                                \
    X(NPU_ATEN_LERP_SCALAR, lerp, 3)                                                               \
    X(NPU_ATEN_LERP_TENSOR, lerp, 3)                                                               \
    X(NPU_ATEN_COPYSIGN_SCALAR, copysign, 2)                                                       \
    X(NPU_ATEN_COPYSIGN_TENSOR, copysign, 2)                                                       \
    X(NPU_ATEN_DEG2RAD, deg2rad, 1)                                                                \
    X(NPU_ATEN_RAD2DEG, rad2deg, 1)                                                                \
    X(NPU_ATEN_DIGAMMA, digamma, 1)                                                                \
    X(NPU_ATEN_LGAMMA, lgamma, 1)                                                                  \
    X(NPU_ATEN_POLYGAMMA, polygamma, 2)                                                            \
    X(NPU_ATEN_SPECIAL_POLYGAMMA, polygamma, 2)                                                    \
    X(NPU_ATEN_MVLGAMMA, mvlgamma, 2)                                                              \
    X(NPU_ATEN_DIVIDE_TENSOR, div, 2)                                                              \
    X(NPU_ATEN_TRUE_DIVIDE_TENSOR, div, 2)                                                         \
    X(NPU_ATEN_MULTIPLY_TENSOR, mul, 2)                                                            \
    X(NPU_ATEN_SUBTRACT_SCALAR, sub_scaled, 3)                                                     \
    X(NPU_ATEN_SUBTRACT_TENSOR, sub_scaled, 3)                                                     \
    X(NPU_ATEN_FLOAT_POWER_TENSOR_TENSOR, float_power, 2)                                          \
    X(NPU_ATEN_FMAX, fmax, 2)                                                                      \
    X(NPU_ATEN_FMIN, fmin, 2)                                                                      \
    X(NPU_ATEN_FRAC, frac, 1)                                                                      \
    X(NPU_ATEN_GCD, gcd, 2)                                                                        \
    X(NPU_ATEN_LCM, lcm, 2)                                                                        \
    X(NPU_ATEN_BITWISE_LEFT_SHIFT_TENSOR, shift_left, 2)                                           \
    X(NPU_ATEN_BITWISE_RIGHT_SHIFT_TENSOR, shift_right, 2)                                         \
    X(NPU_ATEN_HEAVISIDE, heaviside, 2)                                                            \
    X(NPU_ATEN_HYPOT, hypot, 2)                                                                    \
    X(NPU_ATEN_LOGADDEXP, logaddexp, 2)                                                            \
    X(NPU_ATEN_LOGADDEXP2, logaddexp2, 2)                                                          \
    X(NPU_ATEN_NEXTAFTER, nextafter, 2)                                                            \
    X(NPU_ATEN_IGAMMA, igamma, 2)                                                                  \
    X(NPU_ATEN_IGAMMAC, igammac, 2)                                                                \
    X(NPU_ATEN_LDEXP_TENSOR, ldexp, 2)                                                             \
    X(NPU_ATEN_XLOGY_SCALAR_OTHER, xlogy, 2)                                                       \
    X(NPU_ATEN_XLOGY_TENSOR, xlogy, 2)                                                             \
    X(NPU_ATEN_SPECIAL_XLOG1PY, xlog1py, 2)                                                        \
    X(NPU_ATEN_SPECIAL_ZETA, zeta, 2)                                                              \
    X(NPU_ATEN_LOGIT, logit, 2)                                                                    \
    X(NPU_ATEN_NAN_TO_NUM, nan_to_num, 4)                                                          \
    X(NPU_ATEN_ROUND_DECIMALS, round_decimals, 2)                                                  \
    X(NPU_ATEN_SGN, sign, 1)                                                                       \
    X(NPU_ATEN_SINC, sinc, 1)                                                                      \
    X(NPU_ATEN_ANGLE, angle, 1)                                                                    \
    X(NPU_ATEN_ERFINV, erfinv, 1)                                                                  \
    X(NPU_ATEN_I0, i0, 1)                                                                          \
    X(NPU_ATEN_SPECIAL_I0E, i0e, 1)                                                                \
    X(NPU_ATEN_SPECIAL_I1, i1, 1)                                                                  \
    X(NPU_ATEN_SPECIAL_I1E, i1e, 1)                                                                \
    X(NPU_ATEN_SPECIAL_ENTR, entr, 1)                                                              \
    X(NPU_ATEN_SPECIAL_ERFCX, erfcx, 1)                                                            \
    X(NPU_ATEN_SPECIAL_NDTR, ndtr, 1)                                                              \
    X(NPU_ATEN_SPECIAL_LOG_NDTR, log_ndtr, 1)                                                      \
    X(NPU_ATEN_SPECIAL_NDTRI, ndtri, 1)                                                            \
    X(NPU_ATEN_HARDSHRINK, hardshrink, 2)                                                          \
    X(NPU_ATEN_SOFTSHRINK, softshrink, 2)                                                          \
    X(NPU_ATEN_THRESHOLD, threshold, 3)                                                            \
    X(NPU_ATEN_THRESHOLD_BACKWARD, threshold_backward, 3)                                          \
    X(NPU_ATEN_GELU_BACKWARD, gelu_backward, 2)

#define NPU__REF_COMPARISON(X)                                                                     \
    X(NPU_ATEN_EQ, eq, 2)                                                                          \
    X(NPU_ATEN_EQ_SCALAR, eq, 2)                                                                   \
    X(NPU_ATEN_NE, ne, 2)                                                                          \
    X(NPU_ATEN_NE_SCALAR, ne, 2)                                                                   \
    X(NPU_ATEN_LT, lt, 2)                                                                          \
    X(NPU_ATEN_LT_SCALAR, lt, 2)                                                                   \
    X(NPU_ATEN_LE, le, 2)                                                                          \
    X(NPU_ATEN_LE_SCALAR, le, 2)                                                                   \
    X(NPU_ATEN_GT, gt, 2)                                                                          \
    X(NPU_ATEN_GT_SCALAR, gt, 2)                                                                   \
    X(NPU_ATEN_GE, ge, 2)                                                                          \
    X(NPU_ATEN_GE_SCALAR, ge, 2)                                                                   \
    X(NPU_ATEN_WHERE, where, 3)                                                                    \
    X(NPU_ATEN_WHERE_SCALAR_SELF, where, 3)                                                        \
    X(NPU_ATEN_WHERE_SCALAR_OTHER, where, 3)                                                       \
    X(NPU_ATEN_WHERE_SCALAR, where, 3)

#define NPU__REF_CAST(X)                                                                           \
    X(NPU_ATEN_TO_DTYPE, copy, 1)                                                                  \
    X(NPU_ATEN_TO_COPY, copy, 1)
#define NPU__REF_CAST_TO(X)                                                                        \
    X(NPU_ATEN_TO_DEVICE, copy, 1)                                                                 \
    X(NPU_ATEN_TO_DTYPE_LAYOUT, copy, 1)

#define NPU__REF_TENSOR(X)                                                                         \
    X(NPU_TENSOR_ADD, add, 2)                                                                      \
    X(NPU_TENSOR_SUB, sub, 2)                                                                      \
    X(NPU_TENSOR_MUL, mul, 2)                                                                      \
    X(NPU_TENSOR_DIV, div, 2)                                                                      \
    X(NPU_TENSOR_MAXIMUM, maximum, 2)                                                              \
    X(NPU_TENSOR_EXP, exp, 1)

#define NPU__REF_AICF(X)                                                                           \
    X(NPU_AICF_ADD, add, 2)                                                                        \
    X(NPU_AICF_RELU, relu, 1)                                                                      \
    X(NPU_AICF_BIAS_ADD, add, 2)                                                                   \
    X(NPU_AICF_RELU_BWD, relu_bwd, 2)

/* Tile ops, and integers in registers. */
#define NPU__REF_BLOCK(X)                                                                          \
    X(NPU_BLOCK_ADD, add, 2)                                                                       \
    X(NPU_BLOCK_SUB, sub, 2)                                                                       \
    X(NPU_BLOCK_MUL, mul, 2)                                                                       \
    X(NPU_BLOCK_DIV, div, 2)                                                                       \
    X(NPU_BLOCK_MAXIMUM, maximum, 2)                                                               \
    X(NPU_BLOCK_MINIMUM, minimum, 2)                                                               \
    X(NPU_BLOCK_CMP, eq, 2)                                                                        \
    X(NPU_BLOCK_ADDS, add, 2)                                                                      \
    X(NPU_BLOCK_SUBS, sub, 2)                                                                      \
    X(NPU_BLOCK_MULS, mul, 2)                                                                      \
    X(NPU_BLOCK_DIVS, div, 2)                                                                      \
    X(NPU_BLOCK_MAXIMUMS, maximum, 2)                                                              \
    X(NPU_BLOCK_MINIMUMS, minimum, 2)                                                              \
    X(NPU_BLOCK_CMPS, eq, 2)                                                                       \
    X(NPU_BLOCK_SQRT, sqrt, 1)                                                                     \
    X(NPU_BLOCK_RSQRT, rsqrt, 1)                                                                   \
    X(NPU_BLOCK_EXP, exp, 1)                                                                       \
    X(NPU_BLOCK_LOG, log, 1)                                                                       \
    X(NPU_BLOCK_NEG, neg, 1)                                                                       \
    X(NPU_BLOCK_ABS, abs, 1)                                                                       \
    X(NPU_BLOCK_RECIP, reciprocal, 1)                                                              \
    X(NPU_BLOCK_RELU, relu, 1)
#define NPU__REF_BLOCK_EXPAND(X)                                                                   \
    X(NPU_BLOCK_ROW_EXPAND, copy, 2)                                                               \
    X(NPU_BLOCK_ROW_EXPAND_ADD, add, 2)                                                            \
    X(NPU_BLOCK_ROW_EXPAND_SUB, sub, 2)                                                            \
    X(NPU_BLOCK_ROW_EXPAND_MUL, mul, 2)                                                            \
    X(NPU_BLOCK_ROW_EXPAND_DIV, div, 2)                                                            \
    X(NPU_BLOCK_COL_EXPAND, copy, 2)                                                               \
    X(NPU_BLOCK_COL_EXPAND_ADD, add, 2)                                                            \
    X(NPU_BLOCK_COL_EXPAND_SUB, sub, 2)                                                            \
    X(NPU_BLOCK_COL_EXPAND_MUL, mul, 2)                                                            \
    X(NPU_BLOCK_COL_EXPAND_DIV, div, 2)
#define NPU__REF_ARITH(X)                                                                          \
    X(NPU_ARITH_ADDI, add, 2)                                                                      \
    X(NPU_ARITH_SUBI, sub, 2)                                                                      \
    X(NPU_ARITH_MULI, mul, 2)                                                                      \
    X(NPU_ARITH_DIVSI, div_trunc, 2)                                                               \
    X(NPU_ARITH_REMSI, fmod, 2)                                                                    \
    X(NPU_ARITH_MINSI, minimum, 2)                                                                 \
    X(NPU_ARITH_MAXSI, maximum, 2)

#define NPU__REF_LOOPS(X)                                                                          \
    X(NPU_LINALG_ADD, add, 2)                                                                      \
    X(NPU_LINALG_SUB, sub, 2)                                                                      \
    X(NPU_LINALG_MUL, mul, 2)                                                                      \
    X(NPU_LINALG_DIV, div, 2)                                                                      \
    X(NPU_LINALG_MAX, maximum, 2)                                                                  \
    X(NPU_LINALG_MIN, minimum, 2)                                                                  \
    X(NPU_LINALG_EXP, exp, 1)                                                                      \
    X(NPU_LINALG_LOG, log, 1)                                                                      \
    X(NPU_LINALG_ABS, abs, 1)                                                                      \
    X(NPU_LINALG_CEIL, ceil, 1)                                                                    \
    X(NPU_LINALG_FLOOR, floor, 1)                                                                  \
    X(NPU_LINALG_NEGF, neg, 1)                                                                     \
    X(NPU_LINALG_RECIPROCAL, reciprocal, 1)                                                        \
    X(NPU_LINALG_ROUND, round, 1)                                                                  \
    X(NPU_LINALG_SQRT, sqrt, 1)                                                                    \
    X(NPU_LINALG_RSQRT, rsqrt, 1)                                                                  \
    X(NPU_LINALG_SQUARE, square, 1)                                                                \
    X(NPU_LINALG_TANH, tanh, 1)                                                                    \
    X(NPU_LINALG_ERF, erf, 1)                                                                      \
    X(NPU_LINALG_FILL, copy, 1)

/* Registers: only bodies hold them. */
#define NPU__REF_REGISTERS(X)                                                                      \
    X(NPU_ARITH_ADDF, add, 2)                                                                      \
    X(NPU_ARITH_SUBF, sub, 2)                                                                      \
    X(NPU_ARITH_MULF, mul, 2)                                                                      \
    X(NPU_ARITH_DIVF, div, 2)                                                                      \
    X(NPU_ARITH_REMF, fmod, 2)                                                                     \
    X(NPU_ARITH_MAXIMUMF, maximum, 2)                                                              \
    X(NPU_ARITH_MINIMUMF, minimum, 2)                                                              \
    X(NPU_ARITH_MAXNUMF, fmax, 2)                                                                  \
    X(NPU_ARITH_MINNUMF, fmin, 2)                                                                  \
    X(NPU_ARITH_NEGF, neg, 1)                                                                      \
    X(NPU_ARITH_FLOORDIVSI, div_floor, 2)                                                          \
    X(NPU_ARITH_CEILDIVSI, div_ceil, 2)                                                            \
    X(NPU_ARITH_ANDI, bitwise_and, 2)                                                              \
    X(NPU_ARITH_ORI, bitwise_or, 2)                                                                \
    X(NPU_ARITH_XORI, bitwise_xor, 2)                                                              \
    X(NPU_ARITH_SHLI, shift_left, 2)                                                               \
    X(NPU_ARITH_SHRSI, shift_right, 2)                                                             \
    X(NPU_ARITH_CMPF, eq, 2)                                                                       \
    X(NPU_ARITH_CMPI, eq, 2)                                                                       \
    X(NPU_ARITH_SELECT, where, 3)                                                                  \
    X(NPU_ARITH_EXTF, copy, 1)                                                                     \
    X(NPU_ARITH_TRUNCF, copy, 1)                                                                   \
    X(NPU_ARITH_EXTSI, copy, 1)                                                                    \
    X(NPU_ARITH_EXTUI, copy, 1)                                                                    \
    X(NPU_ARITH_TRUNCI, copy, 1)                                                                   \
    X(NPU_ARITH_SITOFP, copy, 1)                                                                   \
    X(NPU_ARITH_UITOFP, copy, 1)                                                                   \
    X(NPU_ARITH_FPTOSI, copy, 1)                                                                   \
    X(NPU_ARITH_FPTOUI, copy, 1)

typedef struct npu__ref_map_row {
    npu_kind kind;
    uint32_t op, num_operands;
} npu__ref_map_row;

#define NPU__REF_MAP_ROWS(X)                                                                       \
    NPU__REF_ACTIVATION(X) NPU__REF_ELEMENTWISE(X) NPU__REF_COMPARISON(X) NPU__REF_CAST(X)         \
    NPU__REF_CAST_TO(X) NPU__REF_TENSOR(X) NPU__REF_AICF(X) NPU__REF_LOGIC(X)                      \
    NPU__REF_SPECIAL(X) NPU__REF_BLOCK(X) NPU__REF_BLOCK_EXPAND(X) NPU__REF_ARITH(X)               \
    NPU__REF_LOOPS(X) NPU__REF_REGISTERS(X)                                                        \
    X(NPU_ATEN_FILL_TENSOR, copy, 2)                                                               \
    X(NPU_ATEN_PRELU, prelu, 2)                                                                    \
    X(NPU_ATEN_MAX_OTHER, maximum, 2)                                                              \
    X(NPU_ATEN_MIN_OTHER, minimum, 2)                                                              \
    X(NPU_ATEN_TYPE_AS, copy, 1)                                                                   \
    X(NPU_ATEN_COPY, copy, 2)                                                                      \
    X(NPU_ATEN_LOCAL_SCALAR_DENSE, copy, 1)

static const npu__ref_map_row npu__ref_map_rows[] = {
#define NPU_X(kind, op, num_operands) { kind, NPU__REF_OP_##op, num_operands },
    NPU__REF_MAP_ROWS(NPU_X)
#undef NPU_X
};

/* What npu__ref_map_choose may take instead of an op, and ops of kernels that are no rows. */
#define NPU__REF_CHOICES(X, word)                                                                  \
    X(word, add_scaled, add) X(word, sub_scaled, sub) X(word, rsub_scaled, rsub)                   \
    X(word, gelu, gelu_tanh) X(word, gelu_backward, gelu_tanh_backward)                            \
    X(word, polygamma, polygamma_single) X(word, isclose, isclose_nan) X(word, ldexp, ldexp_single) \
    X(word, logit, logit_single)                                                                   \
    X(word, round_decimals, round_tens) X(word, round_decimals, round)                             \
    X(word, nextafter, nextafter_f16) X(word, nextafter, nextafter_bf16)                           \
    X(word, bitwise_not, logical_not) X(word, clamp, maximum) X(word, clamp, minimum)              \
    X(word, div, div_floor) X(word, div, div_trunc)                                                \
    X(word, pow, sqrt) X(word, pow, rsqrt) X(word, pow, square) X(word, pow, cube)                 \
    X(word, pow, reciprocal_square)

/* ---- the loops that are linked: those of the kernels that NPU_IR_HAS_KERNEL lists ----

   A constant cannot be looked up in a table, so the ops in use are bits of enumerators, 31 to a word: first those of
   the rows, then also those that may be taken instead. */
#define NPU__REF_BIT(word, op) ((op) / 31 == (word) ? 1 << (op) % 31 : 0)
#define NPU__REF_IS_IN(set, op)                                                                    \
    (((op) / 31 == 0   ? set##0                                                                    \
      : (op) / 31 == 1 ? set##1                                                                    \
      : (op) / 31 == 2 ? set##2                                                                    \
      : (op) / 31 == 3 ? set##3                                                                    \
      : (op) / 31 == 4 ? set##4                                                                    \
      : (op) / 31 == 5 ? set##5                                                                    \
      : (op) / 31 == 6 ? set##6                                                                    \
      : (op) / 31 == 7 ? set##7                                                                    \
      : (op) / 31 == 8 ? set##8                                                                    \
                       : set##9) >> (op) % 31 & 1)
#define NPU__REF_OF_ROW(word, kind, op)                                                            \
    | (NPU_IR_HAS_KERNEL(kind) ? NPU__REF_BIT(word, NPU__REF_OP_##op) : 0)
#define NPU__REF_ROW_0(kind, op, n) NPU__REF_OF_ROW(0, kind, op)
#define NPU__REF_ROW_1(kind, op, n) NPU__REF_OF_ROW(1, kind, op)
#define NPU__REF_ROW_2(kind, op, n) NPU__REF_OF_ROW(2, kind, op)
#define NPU__REF_ROW_3(kind, op, n) NPU__REF_OF_ROW(3, kind, op)
#define NPU__REF_ROW_4(kind, op, n) NPU__REF_OF_ROW(4, kind, op)
#define NPU__REF_ROW_5(kind, op, n) NPU__REF_OF_ROW(5, kind, op)
#define NPU__REF_ROW_6(kind, op, n) NPU__REF_OF_ROW(6, kind, op)
#define NPU__REF_ROW_7(kind, op, n) NPU__REF_OF_ROW(7, kind, op)
#define NPU__REF_ROW_8(kind, op, n) NPU__REF_OF_ROW(8, kind, op)
#define NPU__REF_ROW_9(kind, op, n) NPU__REF_OF_ROW(9, kind, op)
#define NPU__REF_NAMED(word)                                                                       \
    npu__ref_named_##word = 0 NPU__REF_MAP_ROWS(NPU__REF_ROW_##word)                               \
                              NPU__REF_ROW_##word(NPU_ATEN_GLU, glu, 1)
#define NPU__REF_OF_CHOICE(word, op, other)                                                        \
    | (NPU__REF_IS_IN(npu__ref_named_, NPU__REF_OP_##op) ? NPU__REF_BIT(word, NPU__REF_OP_##other) : 0)
#define NPU__REF_USED(word)                                                                        \
    npu__ref_used_##word = npu__ref_named_##word NPU__REF_CHOICES(NPU__REF_OF_CHOICE, word)
enum {
    NPU__REF_NAMED(0), NPU__REF_NAMED(1), NPU__REF_NAMED(2), NPU__REF_NAMED(3), NPU__REF_NAMED(4),
    NPU__REF_NAMED(5), NPU__REF_NAMED(6), NPU__REF_NAMED(7), NPU__REF_NAMED(8), NPU__REF_NAMED(9)
};
enum {
    NPU__REF_USED(0), NPU__REF_USED(1), NPU__REF_USED(2), NPU__REF_USED(3), NPU__REF_USED(4),
    NPU__REF_USED(5), NPU__REF_USED(6), NPU__REF_USED(7), NPU__REF_USED(8), NPU__REF_USED(9)
};
typedef char npu__ref_words_hold_all_ops[NPU__REF_OP_COUNT <= 10 * 31 ? 1 : -1];
#define NPU__REF_LOOP(name, cls) \
    (NPU__REF_IS_IN(npu__ref_used_, NPU__REF_OP_##name) ? npu__ref_map_##name##_##cls : NULL)

/* By op and class; NULL = not for this class, or nothing to compute. */
static const npu__ref_map_fn npu__ref_map_fns[NPU__REF_OP_COUNT][3] = {
    { NULL, NULL, NULL },
#define NPU_X(name, real, integer) \
    { NPU__REF_LOOP(name, f32), NPU__REF_LOOP(name, f64), NPU__REF_LOOP(name, i64) },
    NPU__REF_NUMBER_OPS(NPU_X) NPU__REF_SLOW_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real, integer) { NULL, NPU__REF_LOOP(name, f64), NPU__REF_LOOP(name, i64) },
    NPU__REF_WIDE_NUMBER_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) { NPU__REF_LOOP(name, f32), NPU__REF_LOOP(name, f64), NULL },
    NPU__REF_FLOAT_OPS(NPU_X) NPU__REF_SLOW_FLOAT_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, real) { NULL, NPU__REF_LOOP(name, f64), NULL },
    NPU__REF_WIDE_OPS(NPU_X)
#undef NPU_X
#define NPU_X(name, integer) { NULL, NULL, NPU__REF_LOOP(name, i64) },
    NPU__REF_INTEGER_OPS(NPU_X)
#undef NPU_X
};

#ifdef NPU__REF_HAS_AVX2
/* For float; NULL = the plain one. */
static const npu__ref_map_fn npu__ref_map_avx2[NPU__REF_OP_COUNT] = {
#define NPU_X(name, ...) [NPU__REF_OP_##name] = NPU__REF_LOOP(name, avx2),
    NPU__REF_NUMBER_OPS(NPU_X)
    NPU__REF_FLOAT_OPS(NPU_X)
    NPU__REF_FAST_OPS(NPU_X)
    NPU__REF_GUARDED_OPS(NPU_X)
#undef NPU_X
};

/* For double. */
static const npu__ref_map_fn npu__ref_map_f64_avx2[NPU__REF_OP_COUNT] = {
#define NPU_X(name, ...) [NPU__REF_OP_##name] = NPU__REF_LOOP(name, f64_avx2),
    NPU__REF_NUMBER_OPS(NPU_X)
    NPU__REF_FLOAT_OPS(NPU_X)
    NPU__REF_FAST_OPS_F64(NPU_X)
    NPU__REF_GUARDED_OPS_F64(NPU_X)
#undef NPU_X
};

/* For NPU__I32 and NPU__U8. */
static const npu__ref_map_fn npu__ref_map_narrow_avx2[2][NPU__REF_OP_COUNT] = { {
#define NPU_X(name, integer) [NPU__REF_OP_##name] = NPU__REF_LOOP(name, i32_avx2),
    NPU__REF_NARROW_OPS(NPU_X)
#undef NPU_X
}, {
#define NPU_X(name, integer) [NPU__REF_OP_##name] = NPU__REF_LOOP(name, u8_avx2),
    NPU__REF_NARROW_OPS(NPU_X)
#undef NPU_X
} };

/* Those that are better than for AVX2. */
static const npu__ref_map_fn npu__ref_map_avx512[NPU__REF_OP_COUNT] = {
#define NPU_X(name, ...) [NPU__REF_OP_##name] = NPU__REF_LOOP(name, avx512),
    NPU__REF_WIDEST_OPS(NPU_X)
#undef NPU_X
};

#endif

/* What elements go through, for float and for any class. */
#define NPU__REF_LOADS_base npu__ref_load_f32, npu__ref_store_f32
#define NPU__REF_LOADS_avx2 npu__ref_load_f32_avx2, npu__ref_store_f32_avx2
#define NPU__REF_CLASSES_base npu__ref_load_class, npu__ref_store_class
#define NPU__REF_CLASSES_avx2 npu__ref_load_class_avx2, npu__ref_store_class_avx2

/* Loops over elements. */
typedef struct npu__ref_element_loops {
    void (*load_f32)(float *to, const void *from, uint32_t dtype, int64_t first, int64_t stride, size_t n);
    void (*store_f32)(void *to, uint32_t dtype, int64_t first, int64_t stride, const float *from, size_t n);
    npu__ref_load_fn load;
    npu__ref_store_fn store;
    const npu__ref_map_fn *maps[5]; /* of a class, by op; no table, or none for an op = that of the set before */
} npu__ref_element_loops;

#define NPU__REF_MAPS_base { NULL, NULL, NULL, NULL, NULL }
#define NPU__REF_MAPS_neon NPU__REF_MAPS_base
#define NPU__REF_MAPS_avx2 \
    { npu__ref_map_avx2, npu__ref_map_f64_avx2, NULL, npu__ref_map_narrow_avx2[0], npu__ref_map_narrow_avx2[1] }
#define NPU__REF_MAPS_avx512 { npu__ref_map_avx512, NULL, NULL, NULL, NULL }
static const npu__ref_element_loops npu__ref_element_loops_of[] = {
#define NPU_X(set, narrow, wide) { NPU__REF_LOADS_##narrow, NPU__REF_CLASSES_##narrow, NPU__REF_MAPS_##set },
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

/* ---- prepare: everything is decided here ---- */

/* How the elements of an operand lie under those of the result. */
enum {
    NPU__REF_DENSE,
    NPU__REF_REPEATED, /* one element for all */
    NPU__REF_BROADCAST,
    NPU__REF_NUMBER    /* an attribute */
};

typedef struct npu__ref_operand {
    uint32_t mode;
    uint32_t index;      /* among the operands of the op */
    uint32_t dtype;
    bool direct;         /* elements in memory are what the expression takes */
    /* a wider dtype than that of the computation, or one that it would hold differently */
    bool round;
    int64_t strides[NPU_MAX_RANK]; /* of the collapsed dims, elements */
    npu_scalar number;
    npu__ref_strip *strip; /* of a number */
} npu__ref_operand;

typedef struct npu__ref_map_state {
    npu__ref_map_fn fn;    /* NULL = the elements of operand 0 themselves */
    npu__ref_load_fn load;
    npu__ref_store_fn store;
    uint32_t op, num_operands;
    int cls;
    uint32_t dtype;        /* of the computation */
    uint32_t out_dtype;
    bool out_direct;       /* the expression may write into the result */
    bool dense;            /* one call does a part */
    bool divides;          /* integers: a zero divisor is an error */
    uint32_t rank;         /* of the collapsed dims */
    int64_t dims[NPU_MAX_RANK];
    size_t len, row;       /* elements; strips end at a multiple of row (0 = anywhere) */
    npu__ref_operand operands[NPU__REF_OPERANDS];
} npu__ref_map_state;

static bool npu__ref_op_compares(uint32_t op)
{
    return (op >= NPU__REF_OP_eq && op <= NPU__REF_OP_ge) ||
           (op >= NPU__REF_OP_logical_and && op <= NPU__REF_OP_isfinite);
}

static uint32_t npu__ref_promote(uint32_t a, uint32_t b)
{
    return a == NPU_NONE ? b : b == NPU_NONE ? a : (uint32_t)npu_dtype_promote((npu_dtype)a, (npu_dtype)b);
}

/* A dtype of a stronger category keeps its own width: tensors before 0-d tensors before numbers. */
static uint32_t npu__ref_promote_weaker(uint32_t strong, uint32_t weak)
{
    bool wins = strong != NPU_NONE && (npu_dtype_is_float((npu_dtype)strong) ||
                                       (strong != NPU_BOOL && !npu_dtype_is_float((npu_dtype)weak)));
    return wins ? strong : npu__ref_promote(strong, weak);
}

static uint32_t npu__ref_number_dtype(npu_scalar x)
{
    return x.is_bool ? NPU_BOOL : x.is_float ? NPU_F32 : NPU_I64;
}

/* torch.result_type of the operands. */
static uint32_t npu__ref_result_type(const npu__ref_map_state *s, const npu_op_info *op)
{
    uint32_t category[3] = { NPU_NONE, NPU_NONE, NPU_NONE };
    for (uint32_t i = 0; i < s->num_operands; i++) {
        const npu__ref_operand *o = &s->operands[i];
        const npu_spec *spec = o->mode == NPU__REF_NUMBER ? NULL : op->in[o->index];
        uint32_t which = !spec || spec->wrapped ? 2 : spec->rank == 0 ? 1 : 0;
        uint32_t dtype = spec ? spec->dtype : npu__ref_number_dtype(o->number);
        dtype = which == 2 && dtype == NPU_F64 ? NPU_F32 : dtype;
        category[which] = npu__ref_promote(category[which], dtype);
    }
    return npu__ref_promote_weaker(category[0], npu__ref_promote_weaker(category[1], category[2]));
}

/* What an absent number stands for, where it stands for one. */
static bool npu__ref_map_default(uint32_t op, uint32_t arg, uint32_t dtype, npu_scalar *number)
{
    double most = dtype == NPU_F16    ? 65504.0
                  : dtype == NPU_BF16 ? 3.3895313892515355e38
                  : dtype == NPU_F32  ? (double)FLT_MAX : DBL_MAX;
    if (op == NPU__REF_OP_nan_to_num) {
        *number = npu_scalar_float(arg == 2 ? most : arg == 3 ? -most : 0);
    } else if (op == NPU__REF_OP_logit) {
        *number = npu_scalar_float(-1); /* no bound */
    }
    return op == NPU__REF_OP_nan_to_num || op == NPU__REF_OP_logit;
}

/* The leading arguments of the schema become operands; absent ones are left out. `present` has a bit for each
   that is there. */
static void npu__ref_map_bind(npu__ref_map_state *s, const npu_op_info *op, uint32_t num_operands,
                              uint32_t *present)
{
    *present = 0;
    for (uint32_t i = 0; i < num_operands && i < op->num_args; i++) {
        const npu_bound_arg *arg = &op->args[i];
        npu__ref_operand *o = &s->operands[s->num_operands];
        bool tensor = arg->form == NPU_ARG_TENSOR;
        if (npu__ref_map_default(s->op, i, op->out[0]->dtype, &o->number) && arg->form == NPU_ARG_NONE) {
            o->mode = NPU__REF_NUMBER;
            s->num_operands++;
            continue;
        }
        if (arg->form == NPU_ARG_NONE || (tensor && !op->in[arg->first])) {
            continue;
        }
        o->mode = tensor ? NPU__REF_DENSE : NPU__REF_NUMBER;
        o->index = tensor ? arg->first : 0;
        if (!tensor) {
            o->number = npu_op_scalar(op, arg->name, npu_scalar_int(0));
        }
        *present |= 1u << i;
        s->num_operands++;
    }
    if (s->op == NPU__REF_OP_copy && s->num_operands == 2) { /* of what is copied over another operand */
        s->operands[0] = s->operands[1];
        s->num_operands = 1;
    }
}

static bool npu__ref_is_number(const npu__ref_operand *o, double x)
{
    return o->mode == NPU__REF_NUMBER && npu_scalar_value(o->number) == x;
}

static bool npu__ref_is_negative(const npu__ref_operand *o)
{
    return o->mode == NPU__REF_NUMBER && npu_scalar_value(o->number) < 0;
}

static uint32_t npu__ref_choose_power(npu__ref_map_state *s)
{
    static const struct { double exponent; uint32_t op; bool integers; } rows[] = {
        { 0.5, NPU__REF_OP_sqrt, false }, { -0.5, NPU__REF_OP_rsqrt, false }, { 2, NPU__REF_OP_square, true },
        { 3, NPU__REF_OP_cube, true }, { -2, NPU__REF_OP_reciprocal_square, false }
    };
    for (size_t i = 0; i < NPU__REF_COUNT(rows); i++) {
        if (npu__ref_is_number(&s->operands[1], rows[i].exponent) &&
            (rows[i].integers || s->cls != NPU__I64)) {
            s->num_operands = 1;
            return rows[i].op;
        }
    }
    return NPU__REF_OP_pow;
}

/* The comparison that a predicate names: "olt", "slt" and "ule" end like their ops. */
static uint32_t npu__ref_choose_compare(const npu_op_info *op)
{
    static const struct { char name[4]; uint32_t op; } rows[] = {
        { "eq", NPU__REF_OP_eq }, { "ne", NPU__REF_OP_ne }, { "lt", NPU__REF_OP_lt },
        { "le", NPU__REF_OP_le }, { "gt", NPU__REF_OP_gt }, { "ge", NPU__REF_OP_ge }
    };
    const npu_bound_arg *arg = npu_op_arg(op, "predicate");
    for (size_t i = 0; arg && i < NPU__REF_COUNT(rows); i++) {
        if (memcmp(arg->data + arg->count - 2, rows[i].name, 2) == 0) {
            return rows[i].op;
        }
    }
    return NPU__REF_OP_eq + (uint32_t)npu_op_int(op, "cmp_type", 0); /* of tiles: a number in the order of the rows */
}

static int64_t npu__ref_least_signed(uint32_t dtype)
{
    int64_t above = (int64_t)1 << (64 - 8 * npu__ref_size(dtype));
    return npu_dtype_is_signed((npu_dtype)dtype) ? INT64_MIN / above : 0;
}

/* The cheaper or other expression that the attributes ask for. */
static uint32_t npu__ref_map_choose(npu__ref_map_state *s, const npu_op_info *op, uint32_t present)
{
    bool whole;
    switch (s->op) {
    case NPU__REF_OP_add_scaled: case NPU__REF_OP_sub_scaled: case NPU__REF_OP_rsub_scaled:
        if (npu__ref_is_number(&s->operands[2], 1)) {
            s->num_operands = 2;
            return s->op == NPU__REF_OP_add_scaled   ? NPU__REF_OP_add
                   : s->op == NPU__REF_OP_sub_scaled ? NPU__REF_OP_sub : NPU__REF_OP_rsub;
        }
        return s->op;
    case NPU__REF_OP_eq: return npu__ref_choose_compare(op);
    case NPU__REF_OP_gelu_backward:
        return npu_op_str_is(op, "approximate", "tanh") ? NPU__REF_OP_gelu_tanh_backward : s->op;
    case NPU__REF_OP_polygamma: return s->dtype == NPU_F64 ? s->op : NPU__REF_OP_polygamma_single;
    case NPU__REF_OP_logit: return s->dtype == NPU_F64 ? s->op : NPU__REF_OP_logit_single;
    case NPU__REF_OP_ldexp: /* the power of 2 is a tensor of its own */
        return s->dtype == NPU_F64 && op->in[1]->dtype != NPU_F32 ? s->op : NPU__REF_OP_ldexp_single;
    case NPU__REF_OP_nextafter:
        return s->dtype == NPU_F16    ? NPU__REF_OP_nextafter_f16
               : s->dtype == NPU_BF16 ? NPU__REF_OP_nextafter_bf16 : s->op;
    case NPU__REF_OP_isclose: return npu_op_int(op, "equal_nan", 0) ? NPU__REF_OP_isclose_nan : s->op;
    case NPU__REF_OP_round_decimals: {
        int64_t decimals = npu_op_int(op, "decimals", 0);
        s->operands[1].number = npu_scalar_float(pow(10, fabs((double)decimals)));
        return decimals < 0 ? NPU__REF_OP_round_tens : decimals > 0 ? s->op : NPU__REF_OP_round;
    }
    case NPU__REF_OP_gcd: case NPU__REF_OP_lcm: /* unsigned numbers have none to keep */
        s->operands[2].mode = NPU__REF_NUMBER;
        s->operands[2].number = npu_scalar_int(npu__ref_least_signed(s->dtype));
        s->num_operands = 3;
        return s->op;
    case NPU__REF_OP_bitwise_not: return s->dtype == NPU_BOOL ? NPU__REF_OP_logical_not : s->op;
    case NPU__REF_OP_clamp:
        return present == 7 ? NPU__REF_OP_clamp : present == 3 ? NPU__REF_OP_maximum : NPU__REF_OP_minimum;
    case NPU__REF_OP_div:
        if (npu_op_str_is(op, "rounding_mode", "floor")) {
            return NPU__REF_OP_div_floor;
        }
        whole = npu_op_str_is(op, "rounding_mode", "trunc") || s->cls == NPU__I64;
        return whole ? NPU__REF_OP_div_trunc : NPU__REF_OP_div;
    case NPU__REF_OP_gelu:
        return npu_op_str_is(op, "approximate", "tanh") ? NPU__REF_OP_gelu_tanh : s->op;
    case NPU__REF_OP_pow: return npu__ref_choose_power(s);
    default: return s->op;
    }
}

/* Strides of every operand for the result's dims, dims of 1 left out and neighbours merged where all operands
   allow it. */
static void npu__ref_map_collapse(npu__ref_map_state *s, const npu_tensor *in, const npu_tensor *out)
{
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t strides[NPU__REF_OPERANDS] = { 0 };
        bool merge = s->rank > 0;
        for (uint32_t k = 0; k < s->num_operands; k++) {
            const npu_tensor *t = &in[s->operands[k].index];
            uint32_t missing = out->rank - t->rank;
            bool there = s->operands[k].mode != NPU__REF_NUMBER && i >= missing && t->dims[i - missing] != 1;
            strides[k] = there ? t->strides[i - missing] : 0;
            merge = merge && s->operands[k].strides[s->rank - 1] == strides[k] * out->dims[i];
        }
        if (out->dims[i] == 1) {
            continue;
        }
        s->rank += !merge;
        s->dims[s->rank - 1] = (merge ? s->dims[s->rank - 1] : 1) * out->dims[i];
        for (uint32_t k = 0; k < s->num_operands; k++) {
            s->operands[k].strides[s->rank - 1] = strides[k];
        }
    }
}

static uint32_t npu__ref_map_mode(const npu__ref_map_state *s, const npu__ref_operand *o)
{
    bool dense = true, repeated = true;
    int64_t stride = 1;
    for (uint32_t i = s->rank; i-- > 0; stride *= s->dims[i]) {
        dense = dense && o->strides[i] == stride;
        repeated = repeated && o->strides[i] == 0;
    }
    return dense ? NPU__REF_DENSE : repeated ? NPU__REF_REPEATED : NPU__REF_BROADCAST;
}

/* Is dtype less than the class holds? Then an operand of another dtype takes its values before it takes part;
   but torch computes half with a number, or a second operand of one element, as that is. */
static bool npu__ref_map_rounds(const npu__ref_map_state *s, uint32_t k, uint32_t dtype, bool single)
{
    if (dtype == s->dtype || s->dtype == npu__ref_class_dtype[s->cls] || s->cls >= NPU__I32 ||
        (s->op == NPU__REF_OP_where && k == 0)) {
        return false;
    }
    return s->cls == NPU__I64 || npu__ref_op_compares(s->op) || !(single && k > 0);
}

/* A number as a strip of equal elements. */
static npu_status npu__ref_map_number(npu_prepare *p, npu__ref_map_state *s, npu__ref_operand *o)
{
    int cls = s->cls < NPU__I32 ? s->cls : NPU__I64;
    double number;
    o->strip = (npu__ref_strip *)npu_prepare_alloc(p, sizeof *o->strip);
    if (!o->strip) {
        return NPU_ERR_NO_MEMORY;
    }
    if (s->dtype == NPU_BOOL) {
        o->number = npu_scalar_int(npu_scalar_value(o->number) != 0);
    }
    if (o->number.is_float) {
        npu__ref_load_class(cls, &number, &o->number.f, NPU_F64, 0, 0, 1);
    } else {
        npu__ref_load_class(cls, &number, &o->number.i, NPU_I64, 0, 0, 1);
    }
    if (o->round || cls != s->cls) {
        npu__ref_round(cls, s->dtype, &number, 1);
    } else if (s->cls == NPU__F64 && s->dtype != NPU_F64) { /* a number is a float to what is less than double */
        npu__ref_round(s->cls, NPU_F32, &number, 1);
    }
    npu__ref_store_class(cls, o->strip, npu__ref_class_dtype[s->cls], 0, 1, &number, 1);
    npu__ref_repeat(o->strip, npu__ref_class_size[s->cls], npu__ref_strip_len(s->cls));
    o->direct = true;
    o->round = false;
    return NPU_OK;
}

/* May one call do n elements? Numbers are strips of `numbers` equal elements. */
static bool npu__ref_map_is_dense(const npu__ref_map_state *s, size_t n, size_t numbers)
{
    bool dense = s->out_direct && s->fn && !s->divides;
    for (uint32_t k = 0; k < s->num_operands; k++) {
        const npu__ref_operand *o = &s->operands[k];
        dense = dense && o->direct &&
                (o->mode == NPU__REF_DENSE || (o->mode == NPU__REF_NUMBER && n <= numbers));
    }
    return dense;
}

/* A bool whose bytes the expression takes as they are, since it asks for zeros only. */
static bool npu__ref_map_is_truth(const npu__ref_map_state *s, uint32_t k)
{
    bool asks = (s->op == NPU__REF_OP_where && k == 0) || (s->op == NPU__REF_OP_masked_fill && k == 1) ||
                (s->op >= NPU__REF_OP_logical_and && s->op <= NPU__REF_OP_logical_not);
    return s->cls == NPU__U8 && s->operands[k].dtype == NPU_BOOL && asks;
}

static npu_status npu__ref_map_operands(npu_prepare *p, npu__ref_map_state *s)
{
    for (uint32_t k = 0; k < s->num_operands; k++) {
        npu__ref_operand *o = &s->operands[k];
        if (o->mode == NPU__REF_NUMBER) {
            npu_status status;
            o->round = npu__ref_map_rounds(s, k, npu__ref_number_dtype(o->number), true);
            status = npu__ref_map_number(p, s, o);
            if (status) {
                return status;
            }
        } else {
            o->dtype = p->in[o->index].dtype;
            o->mode = npu__ref_map_mode(s, o);
            o->round = npu__ref_map_rounds(s, k, o->dtype, npu__ref_len(&p->in[o->index]) == 1);
            o->direct = (o->dtype == npu__ref_class_dtype[s->cls] && !o->round) || npu__ref_map_is_truth(s, k);
        }
        if (o->mode == NPU__REF_BROADCAST && s->dims[s->rank - 1] >= NPU__STRIP / 4) {
            s->row = (size_t)s->dims[s->rank - 1];
        }
    }
    s->dense = npu__ref_map_is_dense(s, s->len, npu__ref_strip_len(s->cls));
    return NPU_OK;
}

/* The dtype that the elements are computed in. A cast takes the class of the floating side, so that nothing
   rounds twice. */
static uint32_t npu__ref_map_dtype(const npu__ref_map_state *s, const npu_prepare *p)
{
    uint32_t in = p->in[s->operands[0].index].dtype, out = p->out[0].dtype;
    if (s->op == NPU__REF_OP_copy) {
        return npu__ref_class_dtype[npu__ref_compute_class(npu_dtype_is_float((npu_dtype)in) ? in : out)];
    }
    if (s->op == NPU__REF_OP_isclose && npu__ref_compute_class(in) == NPU__I64) {
        return NPU_F64; /* of i64, which no float holds */
    }
    if (s->op == NPU__REF_OP_masked_fill && out == NPU_BOOL) {
        return NPU_F64; /* a fraction that fills is true */
    }
    return npu__ref_op_compares(s->op) ? npu__ref_result_type(s, p->op) : out;
}

static const npu__ref_map_row *npu__ref_map_find(npu_kind kind)
{
    for (size_t i = 0; i < NPU__REF_COUNT(npu__ref_map_rows); i++) {
        if (npu__ref_map_rows[i].kind == kind) {
            return &npu__ref_map_rows[i];
        }
    }
    return NULL;
}

/* The loop for an op in a class; NULL = none. */
static npu__ref_map_fn npu__ref_map_loop(uint32_t op, int cls, uint32_t isa)
{
    for (; isa > NPU__REF_ISA_base; isa--) {
        const npu__ref_map_fn *maps = npu__ref_element_loops_of[isa].maps[cls];
        if (maps && maps[op]) {
            return maps[op];
        }
    }
    return cls <= NPU__I64 ? npu__ref_map_fns[op][cls] : NULL;
}

/* Double where there is no loop for float. */
static int npu__ref_map_class(const npu__ref_map_state *s, uint32_t isa)
{
    bool single = s->cls == NPU__F32 && npu__ref_map_loop(s->op, NPU__F32, isa);
    return s->cls == NPU__F32 && !single && npu__ref_map_fns[s->op][NPU__F64] ? NPU__F64 : s->cls;
}

/* Narrow integers as they are, where all tensors are of one dtype or bool and there is a loop. */
static int npu__ref_map_narrow(const npu__ref_map_state *s, const npu_prepare *p, uint32_t isa)
{
    size_t size = npu__ref_size(s->dtype);
    int cls = s->dtype == NPU_U8 || s->dtype == NPU_BOOL ? NPU__U8 : NPU__I32;
    bool fits = s->cls == NPU__I64 && s->dtype != NPU_U32 && size <= 4 && npu__ref_map_loop(s->op, cls, isa) &&
                (p->out[0].dtype == s->dtype || p->out[0].dtype == NPU_BOOL);
    for (uint32_t k = 0; k < s->num_operands; k++) {
        const npu__ref_operand *o = &s->operands[k];
        uint32_t dtype = o->mode == NPU__REF_NUMBER ? s->dtype : p->in[o->index].dtype;
        fits = fits && (dtype == s->dtype || dtype == NPU_BOOL);
    }
    return fits ? cls : s->cls;
}

static npu_status npu__ref_map_create(npu_prepare *p, uint32_t isa)
{
    const npu__ref_map_row *row = npu__ref_map_find(p->op->kind);
    npu__ref_map_state *s = (npu__ref_map_state *)npu_prepare_alloc(p, sizeof *s);
    uint32_t present;
    if (!s || !row) {
        return s ? NPU_ERR_NOT_IMPLEMENTED : NPU_ERR_NO_MEMORY;
    }
    s->op = row->op;
    npu__ref_map_bind(s, p->op, row->num_operands, &present);
    s->dtype = npu__ref_map_dtype(s, p);
    s->cls = npu__ref_compute_class(s->dtype);
    if (s->cls < 0) {
        return NPU_ERR_DTYPE;
    }
    s->op = npu__ref_map_choose(s, p->op, present);
    if (s->op == NPU__REF_OP_pow && s->cls == NPU__I64 && npu__ref_is_negative(&s->operands[1])) {
        return NPU_ERR_RANGE; /* as torch: integers to negative integer powers are not allowed */
    }
    s->cls = npu__ref_map_class(s, isa);
    s->cls = npu__ref_map_narrow(s, p, isa);
    s->fn = npu__ref_map_loop(s->op, s->cls, isa);
    s->load = npu__ref_element_loops_of[isa].load;
    s->store = npu__ref_element_loops_of[isa].store;
    if (!s->fn && s->op != NPU__REF_OP_copy) {
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    s->divides = s->cls == NPU__I64 && (s->op == NPU__REF_OP_div_floor || s->op == NPU__REF_OP_div_trunc ||
                                        s->op == NPU__REF_OP_div_ceil ||
                                        s->op == NPU__REF_OP_fmod || s->op == NPU__REF_OP_remainder);
    s->out_dtype = p->out[0].dtype;
    s->out_direct = s->out_dtype == npu__ref_class_dtype[s->cls] ||
                    (s->cls == NPU__U8 && s->out_dtype == NPU_BOOL && npu__ref_op_compares(s->op));
    s->len = (size_t)npu__ref_len(&p->out[0]);
    npu__ref_map_collapse(s, p->in, p->out);
    p->state = s;
    p->parts = npu__ref_parts(s->len, NPU__REF_GRAIN);
    return npu__ref_map_operands(p, s);
}

static npu_status npu__ref_map_prepare(npu_prepare *p) { return npu__ref_map_create(p, NPU__REF_ISA_base); }
static npu_status npu__ref_map_prepare_fast(npu_prepare *p) { return npu__ref_map_create(p, p->isa); }

/* Operands are read along the result: long rows of neighbours, or of one element, are as good as dense ones. */
static bool npu__ref_map_takes(const npu_op_info *op, uint32_t operand, const npu_tensor *x)
{
    int64_t row = 1, stride = 1;
    (void)op;
    (void)operand;
    for (uint32_t i = x->rank; i-- > 0;) {
        if (x->dims[i] == 1) {
            continue;
        }
        stride = row == 1 ? x->strides[i] : stride;
        if (x->strides[i] != stride * row) {
            break;
        }
        row *= x->dims[i];
    }
    return row >= NPU__STRIP && (stride == 0 || stride == 1);
}

/* ---- launch ---- */

/* Where result element pos is in an operand: its offset, and its index in every collapsed dim. */
static int64_t npu__ref_map_offset(const npu__ref_map_state *s, const npu__ref_operand *o, size_t pos,
                                   int64_t *index)
{
    int64_t rest = (int64_t)pos, offset = 0;
    for (uint32_t i = s->rank; i-- > 0; rest /= s->dims[i]) {
        index[i] = rest % s->dims[i];
        offset += index[i] * o->strides[i];
    }
    return offset;
}

/* From the end of a row of the innermost dim to the begin of the next one; returns the change of the offset.
   */
static int64_t npu__ref_map_next_row(const npu__ref_map_state *s, const npu__ref_operand *o, int64_t *index)
{
    int64_t step = 0;
    for (uint32_t i = s->rank - 1; i-- > 0;) {
        step += o->strides[i];
        if (++index[i] < s->dims[i]) {
            break;
        }
        step -= index[i] * o->strides[i];
        index[i] = 0;
    }
    return step;
}

/* Elements of a broadcast operand, row by row; the operand itself where one row holds them all as they are
   needed. */
static const void *npu__ref_map_gather(const npu__ref_map_state *s, const npu__ref_operand *o, const void *x,
                                       size_t pos, size_t n, npu__ref_strip *strip)
{
    size_t size = npu__ref_class_size[s->cls], run;
    uint32_t last = s->rank - 1;
    int64_t index[NPU_MAX_RANK], offset = npu__ref_map_offset(s, o, pos, index), stride = o->strides[last];
    if (o->direct && stride == 1 && (int64_t)n <= s->dims[last] - index[last]) {
        return (const char *)x + offset * (int64_t)size;
    }
    for (size_t i = 0; i < n; i += run) {
        int64_t left = s->dims[last] - index[last];
        run = (int64_t)(n - i) < left ? n - i : (size_t)left;
        s->load(s->cls, (char *)strip + i * size, x, o->dtype, offset, stride, run);
        offset += npu__ref_map_next_row(s, o, index) - index[last] * stride;
        index[last] = 0;
    }
    return strip;
}

/* Operand elements for result elements at + pos .. at + pos + n: where they are, or in `strip`. x is the address
   of element `at` of a dense operand, of the first element of another. */
static const void *npu__ref_map_read(const npu__ref_map_state *s, const npu__ref_operand *o, const void *x,
                                     size_t at, size_t pos, size_t n, npu__ref_strip *strip)
{
    const void *from = strip;
    switch (o->mode) {
    case NPU__REF_NUMBER: return o->strip;
    case NPU__REF_REPEATED: return strip; /* filled at the start */
    case NPU__REF_BROADCAST: from = npu__ref_map_gather(s, o, x, at + pos, n, strip); break;
    default:
        if (o->direct) {
            return (const char *)x + pos * npu__ref_class_size[s->cls];
        }
        s->load(s->cls, strip, x, o->dtype, (int64_t)pos, 1, n);
        break;
    }
    if (o->round) {
        npu__ref_round(s->cls, s->dtype, strip, n);
    }
    return from;
}

static bool npu__ref_has_zero(const int64_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] == 0) {
            return true;
        }
    }
    return false;
}

/* n times the one element of a repeated operand, as the expression takes it. */
static void npu__ref_map_repeat(const npu__ref_map_state *s, const npu__ref_operand *o, const void *x, void *to,
                                size_t n)
{
    s->load(s->cls, to, x, o->dtype, 0, 0, 1);
    if (o->round) {
        npu__ref_round(s->cls, s->dtype, to, 1);
    }
    npu__ref_repeat(to, npu__ref_class_size[s->cls], n);
}

static npu_status npu__ref_map_strips(const npu__ref_map_state *s, const void *const *from, void *to, size_t at,
                                      size_t len)
{
    npu__ref_strip strips[NPU__REF_OPERANDS], result;
    size_t size = npu__ref_class_size[s->cls], most = npu__ref_strip_len(s->cls), n;
    for (uint32_t k = 0; k < s->num_operands; k++) {
        if (s->operands[k].mode == NPU__REF_REPEATED) {
            npu__ref_map_repeat(s, &s->operands[k], from[k], &strips[k], len < most ? len : most);
        }
    }
    for (size_t pos = 0; pos < len; pos += n) {
        const void *x[NPU__REF_OPERANDS];
        void *y = s->out_direct ? (void *)((char *)to + pos * size) : &result;
        size_t limit = s->row ? s->row - (at + pos) % s->row : most;
        n = len - pos < most ? len - pos : most;
        n = n < limit ? n : limit;
        for (uint32_t k = 0; k < NPU__REF_OPERANDS; k++) {
            x[k] = k < s->num_operands
                       ? npu__ref_map_read(s, &s->operands[k], from[k], at, pos, n, &strips[k]) : x[0];
        }
        if (s->divides && npu__ref_has_zero((const int64_t *)x[1], n)) {
            return NPU_ERR_RANGE;
        }
        if (s->fn) {
            s->fn(y, x, n);
        }
        if (!s->fn || !s->out_direct) {
            s->store(s->cls, to, s->out_dtype, (int64_t)pos, 1, s->fn ? y : x[0], n);
        }
    }
    return NPU_OK;
}

/* Result elements at .. at + n, the first of which goes to y. x[k] is the address of operand k: of its element
   `at` where it is dense, else of its first. */
static npu_status npu__ref_map_run(const npu__ref_map_state *s, const void *const *x, void *y, size_t at, size_t n)
{
    const void *all[NPU__REF_OPERANDS];
    const npu__ref_operand *first = &s->operands[0];
    bool moves = !s->fn && first->mode == NPU__REF_DENSE && !first->round;
    if (moves && first->direct) { /* a cast in one step */
        s->store(s->cls, y, s->out_dtype, 0, 1, x[0], n);
        return NPU_OK;
    }
    if (moves && s->out_direct) {
        s->load(s->cls, y, x[0], first->dtype, 0, 1, n);
        return NPU_OK;
    }
    if (!s->dense) {
        return npu__ref_map_strips(s, x, y, at, n);
    }
    for (uint32_t k = 0; k < NPU__REF_OPERANDS; k++) {
        const npu__ref_operand *o = &s->operands[k < s->num_operands ? k : 0];
        all[k] = o->mode == NPU__REF_NUMBER ? (const void *)o->strip : x[k < s->num_operands ? k : 0];
    }
    s->fn(y, all, n);
    return NPU_OK;
}

static inline size_t npu__ref_skip(uint32_t dtype, size_t elements)
{
    return elements ? elements * npu__ref_size(dtype) : 0;
}

static npu_status npu__ref_map_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_map_state *s = (const npu__ref_map_state *)l->state;
    const void *x[NPU__REF_OPERANDS] = { NULL };
    size_t begin = 0, end = s->len;
    if (end == 0) { /* what is empty may have no address */
        return NPU_OK;
    }
    if (parts > 1) {
        npu__ref_split(s->len, part, parts, &begin, &end);
    }
    for (uint32_t k = 0; k < s->num_operands; k++) {
        const npu__ref_operand *o = &s->operands[k];
        x[k] = o->mode == NPU__REF_NUMBER  ? NULL
               : o->mode == NPU__REF_DENSE ? (const char *)l->x[o->index] + npu__ref_skip(o->dtype, begin)
                                           : l->x[o->index];
    }
    return npu__ref_map_run(s, x, (char *)l->y[0] + npu__ref_skip(s->out_dtype, begin), begin, end - begin);
}

/* ---- fused: the ops of a scalar graph, a block of elements after the other ----

   Every op of the body is prepared as if it stood alone, with the tensors of the fused op for its inputs and a
   buffer of one block for what lies between. What a buffer holds is what memory would: results are the same bits as
   those of the ops one by one. */

enum { NPU__REF_LINE = 64, NPU__REF_FAR = 1 << 23 }; /* bytes of a cache line, and of caches that are close */
enum { NPU__REF_BLOCK = 1024 }; /* elements: a few buffers fit the first-level cache */

enum {
    NPU__REF_FUSED_UNUSED,
    NPU__REF_FUSED_INPUT,
    NPU__REF_FUSED_CONSTANT,
    NPU__REF_FUSED_OUTPUT,
    NPU__REF_FUSED_BUFFER
};

/* A value of the body. */
typedef struct npu__ref_fused_value {
    uint32_t where;     /* NPU__REF_FUSED_ */
    uint32_t index;     /* of the operand, the result or the buffer */
    uint32_t dtype;
    uint32_t last;      /* step that reads it last */
    size_t size, share; /* bytes of an element; of a block, what one step asks for */
    const void *data;   /* of a constant */
} npu__ref_fused_value;

typedef struct npu__ref_fused_step {
    npu__ref_map_state *map;
    uint32_t x[NPU__REF_OPERANDS], y; /* values of the body */
} npu__ref_fused_step;

typedef struct npu__ref_fused {
    uint32_t num_steps, num_buffers, num_streams;
    npu__ref_fused_step *steps;
    npu__ref_fused_value *values;  /* by id */
    uint32_t *outputs;             /* per result: value of the body */
    uint32_t *streams;             /* values of the body that come from memory or go there, element by element */
    uint32_t *until, *sizes;       /* per buffer: step that reads it last, bytes of an element */
    size_t len, part_size;         /* elements; bytes of the workspace of one part */
    bool ahead;                    /* more bytes than a cache holds: they are asked for before they are needed */
} npu__ref_fused;

typedef npu_status (*npu__ref_prepare_fn)(npu_prepare *p);

static npu_status npu__ref_fused_alloc(npu_prepare *p, npu__ref_fused **out)
{
    uint32_t num_steps = npu_graph_num_ops(npu_op_body(p->op, 0));
    size_t num_values = (size_t)npu_graph_num_values(npu_op_body(p->op, 0)) + 1;
    npu__ref_fused *f = (npu__ref_fused *)npu_prepare_alloc(p, sizeof *f);
    if (!f) {
        return NPU_ERR_NO_MEMORY;
    }
    f->steps = (npu__ref_fused_step *)npu_prepare_alloc(p, num_steps * sizeof *f->steps);
    f->values = (npu__ref_fused_value *)npu_prepare_alloc(p, num_values * sizeof *f->values);
    f->outputs = (uint32_t *)npu_prepare_alloc(p, p->op->num_out * sizeof *f->outputs);
    f->streams = (uint32_t *)npu_prepare_alloc(p, ((size_t)p->op->num_in + p->op->num_out) * sizeof *f->streams);
    f->until = (uint32_t *)npu_prepare_alloc(p, num_steps * sizeof *f->until);
    f->sizes = (uint32_t *)npu_prepare_alloc(p, num_steps * sizeof *f->sizes);
    f->num_steps = num_steps;
    f->len = (size_t)npu__ref_len(&p->out[0]);
    *out = f;
    return f->steps && f->values && f->outputs && f->streams && f->until && f->sizes ? NPU_OK : NPU_ERR_NO_MEMORY;
}

/* Where every value of the body is, buffers aside. Result 0 may stand in the memory of an operand: it is written
   directly by the last step only, when all operands were read. */
static void npu__ref_fused_values(const npu_prepare *p, npu__ref_fused *f)
{
    const npu_graph *body = npu_op_body(p->op, 0);
    for (uint32_t id = 1; id <= npu_graph_num_values(body); id++) {
        npu_value v = { id };
        npu__ref_fused_value *value = &f->values[id];
        value->where = npu_value_role(body, v) == NPU_ROLE_CONSTANT ? NPU__REF_FUSED_CONSTANT : NPU__REF_FUSED_BUFFER;
        value->dtype = npu_value_spec(body, v)->dtype;
        value->size = npu__ref_size(value->dtype);
        value->share = NPU__REF_BLOCK * value->size / (f->num_steps ? f->num_steps : 1);
        value->share = (value->share + NPU__REF_LINE - 1) / NPU__REF_LINE * NPU__REF_LINE;
        value->data = npu_value_data(body, v, NULL);
    }
    for (uint32_t i = 0; i < p->op->num_in; i++) {
        uint32_t id = npu_graph_input(body, i).id;
        f->values[id].where = NPU__REF_FUSED_INPUT;
        f->values[id].index = i;
        if ((size_t)npu__ref_len(&p->in[i]) == f->len) {
            f->streams[f->num_streams++] = id;
        }
    }
    for (uint32_t i = 0; i < p->op->num_out; i++) {
        npu_value v = npu_graph_output(body, i);
        npu__ref_fused_value *y = &f->values[v.id];
        f->outputs[i] = v.id;
        y->last = f->num_steps;
        if (npu_value_producer(body, v, NULL).id && (i > 0 || npu_value_producer(body, v, NULL).id == f->num_steps)) {
            y->where = NPU__REF_FUSED_OUTPUT;
            y->index = i;
            f->streams[f->num_streams++] = v.id;
        }
    }
}

/* What an operand or a result of a step is to the kernel that is prepared: dense under the result of the fused op,
   unless it is an operand of that. */
static npu_tensor npu__ref_fused_tensor(const npu_prepare *p, const npu__ref_fused_value *value)
{
    npu_tensor t = value->where == NPU__REF_FUSED_INPUT ? p->in[value->index] : p->out[0];
    t.dtype = value->dtype;
    t.rank = value->where == NPU__REF_FUSED_CONSTANT ? 0 : t.rank;
    return t;
}

/* A number, or a constant at `data`, becomes a block of equal elements. */
static npu_status npu__ref_fused_widen(npu_prepare *p, const npu__ref_map_state *s, npu__ref_operand *o,
                                       const void *data)
{
    size_t size = npu__ref_class_size[s->cls];
    char *strip = (char *)npu_prepare_alloc(p, NPU__REF_BLOCK * size);
    if (!strip) {
        return NPU_ERR_NO_MEMORY;
    }
    if (data) {
        npu__ref_map_repeat(s, o, data, strip, 1);
    } else {
        memcpy(strip, o->strip, size);
    }
    npu__ref_repeat(strip, size, NPU__REF_BLOCK);
    o->mode = NPU__REF_NUMBER;
    o->strip = (npu__ref_strip *)(void *)strip;
    o->direct = true;
    o->round = false;
    return NPU_OK;
}

static npu_status npu__ref_fused_step_of(npu_prepare *p, npu__ref_fused *f, uint32_t index, const npu_op_info *op,
                                         npu__ref_prepare_fn prepare)
{
    npu_op id = { index + 1 };
    npu__ref_fused_step *step = &f->steps[index];
    npu_tensor tensors[NPU__REF_OPERANDS + 1];
    npu_prepare sub = *p;
    npu_status status;
    for (uint32_t i = 0; i < op->num_in; i++) {
        tensors[i] = npu__ref_fused_tensor(p, &f->values[npu_op_operand_value(npu_op_body(p->op, 0), id, i).id]);
    }
    step->y = npu_op_result(npu_op_body(p->op, 0), id, 0).id;
    tensors[op->num_in] = npu__ref_fused_tensor(p, &f->values[step->y]);
    sub.op = op;
    sub.in = tensors;
    sub.out = tensors + op->num_in;
    status = prepare(&sub);
    p->blocks = sub.blocks;
    step->map = (npu__ref_map_state *)sub.state;
    for (uint32_t k = 0; status == NPU_OK && k < step->map->num_operands; k++) {
        npu__ref_operand *o = &step->map->operands[k];
        npu__ref_fused_value *x = NULL;
        if (o->mode != NPU__REF_NUMBER) {
            step->x[k] = npu_op_operand_value(npu_op_body(p->op, 0), id, o->index).id;
            x = &f->values[step->x[k]];
            x->last = x->last > index ? x->last : index;
        }
        if (!x || x->where == NPU__REF_FUSED_CONSTANT) {
            status = npu__ref_fused_widen(p, step->map, o, x ? x->data : NULL);
        }
    }
    if (status == NPU_OK) {
        step->map->dense = npu__ref_map_is_dense(step->map, NPU__REF_BLOCK, NPU__REF_BLOCK);
    }
    return status;
}

/* The first buffer that nobody reads any more. One that the step itself reads last will do if its elements are as
   large: kernels may write where they read. */
static void npu__ref_fused_buffers(npu__ref_fused *f)
{
    for (uint32_t i = 0; i < f->num_steps; i++) {
        npu__ref_fused_value *y = &f->values[f->steps[i].y];
        uint32_t size = (uint32_t)y->size, b = 0;
        if (y->where != NPU__REF_FUSED_BUFFER) {
            continue;
        }
        while (b < f->num_buffers && (f->until[b] > i || (f->until[b] == i && f->sizes[b] != size))) {
            b++;
        }
        f->num_buffers += b == f->num_buffers;
        f->until[b] = y->last > i ? y->last : i;
        f->sizes[b] = size;
        y->index = b;
    }
}

static npu_status npu__ref_fused_create(npu_prepare *p, npu__ref_prepare_fn prepare)
{
    npu__ref_fused *f = NULL;
    npu_op_storage storage;
    size_t bytes = 0;
    npu_status status = npu__ref_fused_alloc(p, &f);
    memset(&storage, 0, sizeof storage);
    if (status == NPU_OK) {
        npu__ref_fused_values(p, f);
    }
    for (uint32_t i = 0; status == NPU_OK && i < f->num_steps; i++) {
        npu_op op = { i + 1 };
        npu_op_info info;
        status = npu_op_describe(npu_op_body(p->op, 0), op, &info, &storage);
        status = status ? status : npu__ref_fused_step_of(p, f, i, &info, prepare);
    }
    npu_op_storage_free(&storage);
    if (status) {
        return status;
    }
    npu__ref_fused_buffers(f);
    f->part_size = f->num_buffers * (size_t)NPU__REF_BLOCK * sizeof(int64_t);
    for (uint32_t i = 0; i < f->num_streams; i++) {
        bytes += f->len * f->values[f->streams[i]].size;
    }
    f->ahead = bytes > NPU__REF_FAR;
    p->state = f;
    p->parts = npu__ref_parts(f->len, NPU__REF_GRAIN);
    p->workspace = p->parts * f->part_size;
    return NPU_OK;
}

static npu_status npu__ref_fused_prepare(npu_prepare *p) { return npu__ref_fused_create(p, npu__ref_map_prepare); }

static npu_status npu__ref_fused_prepare_fast(npu_prepare *p)
{
    return npu__ref_fused_create(p, npu__ref_map_prepare_fast);
}

/* Outputs are results of ops, each once. */
static bool npu__ref_fused_outputs_supported(const npu_graph *body)
{
    for (uint32_t i = 0; i < npu_graph_num_outputs(body); i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (npu_graph_output(body, k).id == npu_graph_output(body, i).id) {
                return false;
            }
        }
        if (!npu_value_producer(body, npu_graph_output(body, i), NULL).id) {
            return false;
        }
    }
    return npu_graph_num_outputs(body) > 0;
}

/* Operands that feed numbers stand beside those that the schema of an op without lists names. */
static bool npu__ref_has_dynamic_args(const npu_graph *body, npu_op op)
{
    const npu_schema *schema = npu_op_definition(body, op)->schema;
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        tensors += schema->args[i].type.base == NPU_T_TENSOR;
    }
    return npu_op_num_operands(body, op) > tensors;
}

/* Asks the graph itself, not for a description of the op, for which memory can be out. */
static bool npu__ref_fused_steps_supported(const npu_graph *body)
{
    bool ok = true;
    for (uint32_t i = 1; ok && i <= npu_graph_num_ops(body); i++) {
        npu_op id = { i };
        npu_kind kind = npu_op_definition(body, id)->kind;
        uint32_t num_in = npu_op_num_operands(body, id), num_out = npu_op_num_results(body, id);
        ok = num_in > 0 && num_in <= NPU__REF_OPERANDS && npu__ref_map_find(kind) && kind != NPU_ATEN_PRELU &&
             !npu__ref_has_dynamic_args(body, id);
        for (uint32_t k = 0; ok && k < num_in + num_out; k++) {
            const npu_spec *x = npu_value_spec(body, k < num_in ? npu_op_operand_value(body, id, k)
                                                               : npu_op_result(body, id, k - num_in));
            ok = !x || x->cls == NPU_CLASS_NONE || npu__ref_compute_class(x->dtype) >= 0;
        }
    }
    return ok;
}

static bool npu__ref_fused_supported(const npu_op_info *op)
{
    const npu_graph *body = npu_op_body(op, 0);
    return body && npu__ref_fused_outputs_supported(body) && npu__ref_fused_steps_supported(body);
}

/* Where a value is for the block that begins at `pos`: its element there if it is `dense`, else its first. */
static char *npu__ref_fused_address(const npu__ref_fused *f, const npu_launch *l, char *buffers, uint32_t id,
                                    size_t pos, bool dense)
{
    const npu__ref_fused_value *v = &f->values[id];
    size_t skip = dense ? pos * v->size : 0;
    switch (v->where) {
    case NPU__REF_FUSED_INPUT: return (char *)(uintptr_t)l->x[v->index] + skip;
    case NPU__REF_FUSED_OUTPUT: return (char *)l->y[v->index] + skip;
    case NPU__REF_FUSED_BUFFER: return buffers + v->index * (size_t)NPU__REF_BLOCK * sizeof(int64_t);
    default: return NULL; /* numbers are where the step has them */
    }
}

/* Asks for one step's share of what the block at pos .. pos + n needs, so that memory is at work while the steps of
   the block before it compute. */
static void npu__ref_fused_prefetch(const npu__ref_fused *f, const npu_launch *l, uint32_t step, size_t pos, size_t n)
{
    for (uint32_t k = 0; k < f->num_streams; k++) {
        const npu__ref_fused_value *v = &f->values[f->streams[k]];
        const char *from = npu__ref_fused_address(f, l, NULL, f->streams[k], pos, true);
        size_t begin = step * v->share, end = begin + v->share < n * v->size ? begin + v->share : n * v->size;
        for (size_t i = begin; i < end; i += NPU__REF_LINE) {
            NPU__REF_PREFETCH(from + i);
        }
    }
}

/* Elements pos .. pos + n, while the next ones come. */
static npu_status npu__ref_fused_block(const npu__ref_fused *f, const npu_launch *l, char *buffers,
                                       size_t pos, size_t n, size_t next)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < f->num_steps && status == NPU_OK; i++) {
        const npu__ref_fused_step *step = &f->steps[i];
        const void *x[NPU__REF_OPERANDS] = { NULL };
        char *y = npu__ref_fused_address(f, l, buffers, step->y, pos, true);
        for (uint32_t k = 0; k < step->map->num_operands; k++) {
            const npu__ref_operand *o = &step->map->operands[k];
            x[k] = o->mode == NPU__REF_NUMBER
                       ? (const char *)o->strip
                       : npu__ref_fused_address(f, l, buffers, step->x[k], pos, o->mode == NPU__REF_DENSE);
        }
        if (next) {
            npu__ref_fused_prefetch(f, l, i, pos + n, next);
        }
        if (step->map->dense) {
            for (uint32_t k = step->map->num_operands; k < NPU__REF_OPERANDS; k++) {
                x[k] = x[0];
            }
            step->map->fn(y, x, n);
        } else {
            status = npu__ref_map_strips(step->map, x, y, pos, n);
        }
    }
    if (status == NPU_OK && f->values[f->outputs[0]].where == NPU__REF_FUSED_BUFFER) {
        size_t size = npu__ref_size(l->out[0].dtype);
        memcpy((char *)l->y[0] + pos * size, npu__ref_fused_address(f, l, buffers, f->outputs[0], pos, true), n * size);
    }
    return status;
}

static npu_status npu__ref_fused_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_fused *f = (const npu__ref_fused *)l->state;
    char *buffers = (char *)l->workspace + part * f->part_size;
    size_t begin, end, n;
    npu_status status = NPU_OK;
    npu__ref_split(f->len, part, parts, &begin, &end);
    for (size_t pos = begin; pos < end && status == NPU_OK; pos += n) {
        size_t left = end - pos, next;
        n = left < NPU__REF_BLOCK ? left : NPU__REF_BLOCK;
        next = left - n < NPU__REF_BLOCK ? left - n : NPU__REF_BLOCK;
        status = npu__ref_fused_block(f, l, buffers, pos, n, f->ahead ? next : 0);
    }
    return status;
}

/* ---- prelu, glu: expressions whose operands lie otherwise ---- */

/* The weight broadcasts along dim 1: seen as [C,1,..]. */
static npu_status npu__ref_prelu_create(npu_prepare *p, uint32_t isa)
{
    const npu_tensor *in = p->in;
    npu_tensor *seen = (npu_tensor *)npu_prepare_alloc(p, 2 * sizeof *seen);
    npu_status status;
    if (!seen) {
        return NPU_ERR_NO_MEMORY;
    }
    memcpy(seen, in, 2 * sizeof *seen);
    if (in[1].rank == 1 && in[0].rank > 1) {
        seen[1].rank = in[0].rank - 1;
        for (uint32_t i = 1; i < seen[1].rank; i++) {
            seen[1].dims[i] = seen[1].strides[i] = 1;
        }
    } else {
        seen[1].rank = 0;
    }
    p->in = seen;
    status = npu__ref_map_create(p, isa);
    p->in = in;
    return status;
}

static npu_status npu__ref_prelu_prepare(npu_prepare *p) { return npu__ref_prelu_create(p, NPU__REF_ISA_base); }
static npu_status npu__ref_prelu_prepare_fast(npu_prepare *p) { return npu__ref_prelu_create(p, p->isa); }

typedef struct npu__ref_glu_state {
    int cls;
    size_t run; /* elements of one half that lie together */
    npu__ref_map_fn fn;
    npu__ref_load_fn load;
    npu__ref_store_fn store;
} npu__ref_glu_state;

static npu_status npu__ref_glu_create(npu_prepare *p, uint32_t isa)
{
    npu__ref_glu_state *s = (npu__ref_glu_state *)npu_prepare_alloc(p, sizeof *s);
    int64_t dim = npu_op_int(p->op, "dim", -1);
    uint32_t rank = p->out[0].rank;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->cls = npu__ref_compute_class(p->out[0].dtype);
    s->run = 1;
    for (uint32_t i = (uint32_t)(dim < 0 ? dim + rank : dim); i < rank; i++) {
        s->run *= (size_t)p->out[0].dims[i];
    }
    s->fn = npu__ref_map_loop(NPU__REF_OP_glu, s->cls, isa);
    s->load = npu__ref_element_loops_of[isa].load;
    s->store = npu__ref_element_loops_of[isa].store;
    p->state = s;
    p->parts = npu__ref_parts((size_t)npu__ref_len(&p->out[0]), NPU__REF_GRAIN);
    return NPU_OK;
}

static npu_status npu__ref_glu_prepare(npu_prepare *p) { return npu__ref_glu_create(p, NPU__REF_ISA_base); }
static npu_status npu__ref_glu_prepare_fast(npu_prepare *p) { return npu__ref_glu_create(p, p->isa); }

static npu_status npu__ref_glu_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_glu_state *s = (const npu__ref_glu_state *)l->state;
    uint32_t dtype = l->out[0].dtype;
    size_t begin, end, n, most = npu__ref_strip_len(s->cls);
    npu__ref_strip a, b;
    const void *x[NPU__REF_OPERANDS] = { &a, &b, &a, &a };
    npu__ref_split((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t pos = begin; pos < end; pos += n) {
        size_t left = s->run - pos % s->run, from = pos / s->run * s->run + pos;
        n = end - pos < most ? end - pos : most;
        n = n < left ? n : left;
        s->load(s->cls, &a, l->x[0], dtype, (int64_t)from, 1, n);
        s->load(s->cls, &b, l->x[0], dtype, (int64_t)(from + s->run), 1, n);
        s->fn(&a, x, n);
        s->store(s->cls, l->y[0], dtype, (int64_t)pos, 1, &a, n);
    }
    return NPU_OK;
}

static npu_status npu__ref_frexp_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t begin, end;
    npu__ref_split((size_t)npu__ref_len(&l->in[0]), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        int exponent = 0;
        double x;
        npu__ref_load_f64(&x, l->x[0], l->in[0].dtype, (int64_t)i, 0, 1);
        x = x - x == 0 ? frexp(x, &exponent) : x;
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)i, 1, &x, 1);
        ((int32_t *)l->y[1])[i] = exponent;
    }
    return NPU_OK;
}

static npu_status npu__ref_log_sigmoid_forward_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t begin, end;
    npu__ref_split((size_t)npu__ref_len(&l->in[0]), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        double x, y[2];
        npu__ref_load_f64(&x, l->x[0], l->in[0].dtype, (int64_t)i, 0, 1);
        y[0] = -npu__ref_softplus(-x);
        y[1] = exp(-fabs(x));
        for (int k = 0; k < 2; k++) {
            npu__ref_store_f64(l->y[k], l->out[k].dtype, (int64_t)i, 1, &y[k], 1);
        }
    }
    return NPU_OK;
}

/* ---- creation: elements that follow from their place ----

   Random numbers are a hash (splitmix64) of a counter and a stream: the counter is the place of the element,
   the stream the id of the op in its graph. Every run gives the same numbers, at any number of threads. */

typedef struct npu__ref_create npu__ref_create;
/* Elements pos .. pos + n into a strip. */
typedef void (*npu__ref_create_fn)(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n);

struct npu__ref_create {
    npu__ref_create_fn fn;
    int cls;             /* i64 or f64 */
    uint32_t dtype;
    double start, end, step, base;
    int64_t first, pace; /* start and step of integers */
    size_t len, columns; /* elements; of a row of a matrix */
    uint64_t stream;
};

static uint64_t npu__ref_random(uint64_t stream, uint64_t counter)
{
    uint64_t z = (stream << 32 ^ counter) * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, 1), with as many bits as the dtype holds, so that nothing is rounded up to 1. */
static double npu__ref_uniform(uint64_t stream, uint64_t counter, uint32_t dtype)
{
    int digits = dtype == NPU_F64 ? 53 : dtype == NPU_F32 ? 24 : dtype == NPU_F16 ? 11 : 8;
    return ldexp((double)(npu__ref_random(stream, counter) >> (64 - digits)), -digits);
}

static void npu__ref_create_constant(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    (void)pos;
    for (size_t i = 0; i < n; i++) {
        if (s->cls == NPU__I64) {
            y->i64[i] = s->first;
        } else {
            y->f64[i] = s->start;
        }
    }
}

static void npu__ref_create_range(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s->cls == NPU__I64) {
            y->i64[i] = NPU__REF_WRAP(s->first, +, NPU__REF_WRAP(s->pace, *, pos + i));
        } else {
            y->f64[i] = s->start + s->step * (double)(pos + i);
        }
    }
}

/* From both ends, so that the last number is the end itself. */
static void npu__ref_create_spaced(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = pos + i;
        y->f64[i] = at < s->len / 2 || s->len == 1 ? s->start + s->step * (double)at
                                                   : s->end - s->step * (double)(s->len - 1 - at);
        y->f64[i] = s->base != 0 ? pow(s->base, y->f64[i]) : y->f64[i];
    }
}

static void npu__ref_create_eye(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t one = (pos + i) / s->columns == (pos + i) % s->columns;
        if (s->cls == NPU__I64) {
            y->i64[i] = one;
        } else {
            y->f64[i] = (double)one;
        }
    }
}

static void npu__ref_create_uniform(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y->f64[i] = npu__ref_uniform(s->stream, pos + i, s->dtype);
    }
}

/* Box and Muller. */
static void npu__ref_create_normal(const npu__ref_create *s, npu__ref_strip *y, size_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double u = 1 - npu__ref_uniform(s->stream, 2 * (pos + i), NPU_F64);
        double angle = 6.283185307179586 * npu__ref_uniform(s->stream, 2 * (pos + i) + 1, NPU_F64);
        y->f64[i] = sqrt(-2 * log(u)) * cos(angle);
    }
}

/* A number in the dtype of the result, both as f64 and as i64. */
static void npu__ref_create_number(const npu__ref_create *s, npu_scalar x, double *real, int64_t *integer)
{
    *real = npu_scalar_value(x);
    *integer = s->dtype == NPU_BOOL ? *real != 0 : x.is_float ? npu__ref_to_i64(x.f) : x.i;
    *real = s->cls == NPU__I64 ? (double)*integer : *real;
}

/* Numbers that are there are read by name; what an op lacks stays as it is. */
static void npu__ref_create_range_of(npu__ref_create *s, const npu_op_info *op)
{
    int64_t end;
    npu__ref_create_number(s, npu_op_scalar(op, "start", npu_scalar_int(0)), &s->start, &s->first);
    npu__ref_create_number(s, npu_op_scalar(op, "step", npu_scalar_int(1)), &s->step, &s->pace);
    npu__ref_create_number(s, npu_op_scalar(op, "end", npu_scalar_int(0)), &s->end, &end);
    s->base = npu_op_float(op, "base", 0);
    if (npu_op_arg(op, "steps")) {
        s->step = s->len > 1 ? (s->end - s->start) / (double)(s->len - 1) : 0;
        s->cls = NPU__F64;
    }
}

/* What a sym_* op tells of its operand. */
static int64_t npu__ref_create_size(const npu_prepare *p)
{
    const npu_tensor *x = &p->in[0];
    uint32_t dim = (uint32_t)npu_op_int(p->op, "dim", 0);
    int64_t stride = 1;
    if (p->op->kind == NPU_ATEN_SYM_NUMEL) {
        return npu__ref_len(x);
    }
    dim = npu_op_int(p->op, "dim", 0) < 0 ? dim + x->rank : dim;
    for (uint32_t i = dim + 1; i < x->rank; i++) {
        stride *= x->dims[i] > 1 ? x->dims[i] : 1;
    }
    return p->op->kind == NPU_ATEN_SYM_SIZE_INT ? x->dims[dim] : stride;
}

static void npu__ref_create_choose(npu__ref_create *s, const npu_prepare *p)
{
    npu_scalar number = npu_scalar_int(0);
    s->fn = npu__ref_create_constant;
    switch (p->op->kind) {
    case NPU_ATEN_FILL_SCALAR: number = npu_op_scalar(p->op, "value", number); break;
    case NPU_ATEN_FULL: case NPU_ATEN_FULL_LIKE: case NPU_ATEN_NEW_FULL:
        number = npu_op_scalar(p->op, "fill_value", number);
        break;
    case NPU_ATEN_SCALAR_TENSOR: number = npu_op_scalar(p->op, "s", number); break;
    case NPU_ATEN_ONES: case NPU_ATEN_ONES_LIKE: case NPU_ATEN_NEW_ONES: case NPU_ATEN_SYM_IS_CONTIGUOUS:
        number = npu_scalar_int(1);
        break;
    case NPU_ATEN_SYM_NUMEL: case NPU_ATEN_SYM_SIZE_INT: case NPU_ATEN_SYM_STRIDE_INT:
        number = npu_scalar_int(npu__ref_create_size(p));
        break;
    case NPU_ATEN_ARANGE: case NPU_ATEN_ARANGE_START: case NPU_ATEN_ARANGE_START_STEP:
        npu__ref_create_range_of(s, p->op);
        s->fn = npu__ref_create_range;
        return;
    case NPU_ATEN_LINSPACE: case NPU_ATEN_LOGSPACE:
        npu__ref_create_range_of(s, p->op);
        s->fn = npu__ref_create_spaced;
        return;
    case NPU_ATEN_EYE: case NPU_ATEN_EYE_M: s->fn = npu__ref_create_eye; return;
    case NPU_ATEN_BERNOULLI: number = npu_scalar_float(-1); break;
    case NPU_ATEN_BERNOULLI_P:
        number = npu_scalar_float(npu_op_float(p->op, "p", 0));
        s->cls = NPU__F64;
        break;
    case NPU_ATEN_RAND: case NPU_ATEN_RAND_LIKE: s->fn = npu__ref_create_uniform; return;
    case NPU_ATEN_RANDN: case NPU_ATEN_RANDN_LIKE: s->fn = npu__ref_create_normal; return;
    default: break; /* zeros, and what may be anything */
    }
    npu__ref_create_number(s, number, &s->start, &s->first);
}

static npu_status npu__ref_create_prepare(npu_prepare *p)
{
    const npu_tensor *out = &p->out[0];
    npu__ref_create *s = (npu__ref_create *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->dtype = out->dtype;
    s->cls = npu__ref_compute_class(out->dtype) == NPU__I64 ? NPU__I64 : NPU__F64;
    s->len = (size_t)npu__ref_len(out);
    s->columns = out->rank ? (size_t)out->dims[out->rank - 1] : 1;
    s->stream = p->op->op;
    npu__ref_create_choose(s, p);
    p->state = s;
    p->parts = npu__ref_parts(s->len, NPU__REF_GRAIN);
    return NPU_OK;
}

static npu_status npu__ref_create_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_create *s = (const npu__ref_create *)l->state;
    npu__ref_strip strip;
    size_t begin, end, n;
    npu__ref_split(s->len, part, parts, &begin, &end);
    for (size_t pos = begin; pos < end; pos += n) {
        n = end - pos < NPU__STRIP ? end - pos : NPU__STRIP;
        s->fn(s, &strip, pos, n);
        npu__ref_store_class(s->cls, l->y[0], s->dtype, (int64_t)pos, 1, &strip, n);
    }
    return NPU_OK;
}

/* Of an operand only the shape counts. */
static bool npu__ref_create_supported(const npu_op_info *op)
{
    return npu__ref_compute_class(op->out[0]->dtype) >= 0;
}

/* ---- tril_indices, triu_indices: rows, then columns ---- */

static npu_status npu__ref_indices_prepare(npu_prepare *p)
{
    int64_t *args = (int64_t *)npu_prepare_alloc(p, 4 * sizeof *args);
    if (!args) {
        return NPU_ERR_NO_MEMORY;
    }
    args[0] = npu_op_int(p->op, "row", 0);
    args[1] = npu_op_int(p->op, "col", 0);
    args[2] = npu_op_int(p->op, "offset", 0);
    args[3] = p->op->kind == NPU_ATEN_TRIU_INDICES;
    p->state = args;
    return NPU_OK;
}

static npu_status npu__ref_indices_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const int64_t *args = (const int64_t *)l->state;
    int64_t rows = args[0], cols = args[1], offset = args[2], n = l->out[0].dims[1], at = 0;
    uint32_t dtype = l->out[0].dtype;
    (void)part;
    (void)parts;
    offset = offset < -rows ? -rows : offset > cols ? cols : offset;
    for (int64_t i = 0; i < rows && at < n; i++) {
        int64_t end = i + offset + !args[3]; /* of the lower triangle, where the upper one begins */
        end = end < 0 ? 0 : end > cols ? cols : end;
        for (int64_t j = args[3] ? end : 0; j < (args[3] ? cols : end); j++) {
            npu__ref_store_i64(l->y[0], dtype, at, 1, &i, 1);
            npu__ref_store_i64(l->y[0], dtype, n + at++, 1, &j, 1);
        }
    }
    return NPU_OK;
}

/* ---- random order, dropout ---- */

static npu_status npu__ref_randperm_prepare(npu_prepare *p)
{
    p->workspace = (size_t)npu__ref_len(&p->out[0]) * sizeof(int64_t);
    return npu__ref_create_prepare(p);
}

/* Fisher and Yates: one part, whatever the number of elements. */
static npu_status npu__ref_randperm_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_create *s = (const npu__ref_create *)l->state;
    int64_t *order = (int64_t *)l->workspace;
    (void)parts;
    for (size_t i = 0; i < s->len && part == 0; i++) {
        size_t j = (size_t)(npu__ref_random(s->stream, i) % (i + 1));
        order[i] = order[j];
        order[j] = (int64_t)i;
    }
    if (part == 0 && s->len) {
        npu__ref_store_class(NPU__I64, l->y[0], s->dtype, 0, 1, order, s->len);
    }
    return NPU_OK;
}

/* The probability of an element is that of the operand, or one number for all. */
static npu_status npu__ref_bernoulli_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_create *s = (const npu__ref_create *)l->state;
    size_t begin, end;
    npu__ref_split(s->len, part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        double p = s->start;
        if (p < 0) {
            npu__ref_load_f64(&p, l->x[0], l->in[0].dtype, (int64_t)i, 0, 1);
        }
        p = npu__ref_uniform(s->stream, i, NPU_F64) < p;
        npu__ref_store_f64(l->y[0], s->dtype, (int64_t)i, 1, &p, 1);
    }
    return NPU_OK;
}

typedef struct npu__ref_dropout {
    bool train;
    double keep;                  /* probability */
    double scale, shift, dropped; /* what is kept becomes scale x + shift, the rest one number */
    size_t group;                 /* elements that are kept or dropped together */
    uint64_t stream;
} npu__ref_dropout;

/* alpha_dropout keeps the mean and the variance of what selu gives: alpha is selu's limit. */
static void npu__ref_dropout_alpha(npu__ref_dropout *s)
{
    const double alpha = 1.7580993408473766;
    double p = 1 - s->keep;
    s->scale = s->keep > 0 ? 1 / sqrt((alpha * alpha * p + 1) * s->keep) : 0;
    s->shift = alpha * s->scale * p;
    s->dropped = s->shift - alpha * s->scale;
}

static npu_status npu__ref_dropout_prepare(npu_prepare *p)
{
    npu__ref_dropout *s = (npu__ref_dropout *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->keep = 1 - npu_op_float(p->op, "p", 0);
    s->train = npu_op_int(p->op, "train", 1) != 0; /* None is training */
    s->scale = s->keep > 0 ? 1 / s->keep : 0;
    s->group = 1;
    if (p->op->kind == NPU_ATEN_ALPHA_DROPOUT) {
        npu__ref_dropout_alpha(s);
    }
    for (uint32_t i = 2; i < x->rank && p->op->kind == NPU_ATEN_FEATURE_DROPOUT; i++) {
        s->group *= x->dims[i] > 0 ? (size_t)x->dims[i] : 1;
    }
    s->stream = p->op->op;
    p->state = s;
    p->parts = npu__ref_parts((size_t)npu__ref_len(x), NPU__REF_GRAIN);
    return NPU_OK;
}

/* A second result says what was kept. */
static npu_status npu__ref_dropout_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_dropout *s = (const npu__ref_dropout *)l->state;
    size_t begin, end;
    npu__ref_split((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        bool kept = !s->train || npu__ref_uniform(s->stream, i / s->group, NPU_F64) < s->keep;
        double x;
        npu__ref_load_f64(&x, l->x[0], l->in[0].dtype, (int64_t)i, 0, 1);
        x = !s->train ? x : kept ? x * s->scale + s->shift : s->dropped;
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)i, 1, &x, 1);
        if (l->num_out > 1) {
            ((uint8_t *)l->y[1])[i] = kept;
        }
    }
    return NPU_OK;
}

/* ---- casts, shape ------------------------------------------------------------------------ >>kernels-shape

   Everything that only moves elements is a list of strided copies: dims, and for the operand and the result
   the first element and the strides. An op fills them; one engine runs them by element size, whatever the
   dtype. */

enum { NPU__REF_COPY_RANK = 2 * NPU_MAX_RANK };

typedef struct npu__ref_strided {
    uint32_t in, out;             /* indices of operand and result */
    uint32_t from_dtype, to_dtype;
    size_t from_size, to_size;    /* bytes of one element */
    uint32_t rank;
    int64_t dims[NPU__REF_COPY_RANK];
    int64_t from[NPU__REF_COPY_RANK], to[NPU__REF_COPY_RANK]; /* strides, elements; bytes once finished */
    int64_t from_first, to_first; /* likewise */
    bool transposes;              /* the operand is dense along another dim than the last */
    uint32_t tiled;               /* that dim; `dims` then counts its tiles, and from and to step by a tile */
    int64_t tile;                 /* elements along both dims, a cache line if possible */
    int64_t tiled_dim, tiled_from, tiled_to;
    size_t rows;                  /* product of all dims but the last: what parts divide */
    uint32_t isa;
} npu__ref_strided;

typedef struct npu__ref_copies {
    uint32_t num_copies;
    npu__ref_strided *copies;
} npu__ref_copies;

/* ---- running a copy ---- */

typedef struct npu__ref_pair { uint64_t low, high; } npu__ref_pair;

#define NPU__REF_MOVE_ROW(type)                                                                    \
    NPU__REF_UNROLL                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                              \
        memcpy(to + i * to_stride, from + i * from_stride, sizeof(type));                          \
    }

/* n elements one by one. The sizes are constants, so that each copy is one move. */
static void npu__ref_move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                          size_t size)
{
    if (to_stride == (int64_t)size && from_stride == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    if (to_stride == (int64_t)size && from_stride == 0 && n > 0) {
        memcpy(to, from, size);
        npu__ref_repeat(to, size, (size_t)n);
        return;
    }
    switch (size) {
    case 1: NPU__REF_MOVE_ROW(uint8_t) break;
    case 2: NPU__REF_MOVE_ROW(uint16_t) break;
    case 4: NPU__REF_MOVE_ROW(uint32_t) break;
    case 8: NPU__REF_MOVE_ROW(uint64_t) break;
    default: NPU__REF_MOVE_ROW(npu__ref_pair) break;
    }
}

/* The same between two dtypes; strides are whole elements. */
static void npu__ref_convert(const npu__ref_strided *c, char *to, int64_t to_stride, const char *from,
                             int64_t from_stride, int64_t n)
{
    npu__ref_strip strip;
    uint32_t real = npu_dtype_is_float((npu_dtype)c->from_dtype) ? c->from_dtype : c->to_dtype;
    int cls = npu__ref_compute_class(real);
    int64_t to_step = to_stride / (int64_t)c->to_size, from_step = from_stride / (int64_t)c->from_size;
    for (int64_t i = 0; i < n; i += NPU__STRIP) {
        size_t count = (size_t)(n - i < NPU__STRIP ? n - i : NPU__STRIP);
        npu__ref_load_class(cls, &strip, from, c->from_dtype, i * from_step, from_step, count);
        npu__ref_store_class(cls, to, c->to_dtype, i * to_step, to_step, &strip, count);
    }
}

static void npu__ref_copy_row(const npu__ref_strided *c, char *to, int64_t to_stride, const char *from,
                              int64_t from_stride, int64_t n)
{
    if (c->from_dtype == c->to_dtype) {
        npu__ref_move(to, to_stride, from, from_stride, n, c->to_size);
    } else {
        npu__ref_convert(c, to, to_stride, from, from_stride, n);
    }
}

#ifdef NPU__REF_HAS_AVX2
/* Eight columns of eight elements of 4 bytes become rows of a square. */
NPU__REF_AVX2 static void npu__ref_transpose_8(char *square, const char *from, int64_t from_stride)
{
    __m256 x[8], y[8];
    for (int i = 0; i < 8; i++) {
        x[i] = _mm256_loadu_ps((const float *)(const void *)(from + i * from_stride));
    }
    for (int i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        float *low = (float *)(void *)(square + i * NPU__REF_LINE), *high = low + 4 * NPU__REF_LINE / 4;
        _mm256_storeu_ps(low, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
        _mm256_storeu_ps(high, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    }
}

static void npu__ref_transpose_16_avx2(char *square, const char *from, int64_t from_stride)
{
    for (int k = 0; k < 4; k++) {
        npu__ref_transpose_8(square + k % 2 * 8 * NPU__REF_LINE + k / 2 * 32,
                             from + k / 2 * 8 * from_stride + k % 2 * 32, from_stride);
    }
}
#endif

/* A square whose rows fill a cache line on both sides, by way of the stack: each line is touched once, so
   that rows a power of two apart do not push each other out of the cache. */
#define NPU__REF_TURN_SQUARE(type, side)                                                           \
    for (int64_t j = 0; j < side; j++) {                                                           \
        type line[side];                                                                           \
        memcpy(line, from + j * from_stride, sizeof line);                                         \
        for (int64_t i = 0; i < side; i++) {                                                       \
            memcpy(square + (i * side + j) * (int64_t)sizeof(type), &line[i], sizeof(type));       \
        }                                                                                          \
    }

static void npu__ref_transpose_square(char *square, const char *from, int64_t from_stride, size_t size)
{
    switch (size) {
    case 1: NPU__REF_TURN_SQUARE(uint8_t, 64) break;
    case 2: NPU__REF_TURN_SQUARE(uint16_t, 32) break;
    case 4: NPU__REF_TURN_SQUARE(uint32_t, 16) break;
    case 8: NPU__REF_TURN_SQUARE(uint64_t, 8) break;
    default: NPU__REF_TURN_SQUARE(npu__ref_pair, 4) break;
    }
}

static void npu__ref_transpose_16_base(char *square, const char *from, int64_t from_stride)
{
    npu__ref_transpose_square(square, from, from_stride, 4);
}

/* A square of elements of 4 bytes, by set. */
static void (*const npu__ref_transpose_16_of[])(char *square, const char *from, int64_t from_stride) = {
#define NPU_X(set, narrow, wide) npu__ref_transpose_16_##narrow,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

static void npu__ref_move_square(uint32_t isa, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                 size_t size)
{
    char square[NPU__REF_LINE * NPU__REF_LINE];
    if (size == 4) {
        npu__ref_transpose_16_of[isa](square, from, from_stride);
    } else {
        npu__ref_transpose_square(square, from, from_stride, size);
    }
    for (int64_t i = 0; i < NPU__REF_LINE / (int64_t)size; i++) {
        memcpy(to + i * to_stride, square + i * NPU__REF_LINE, NPU__REF_LINE);
    }
}

/* A tile of `height` along the tiled dim, square by square; what is left at the edges goes along its longer
   side. */
static void npu__ref_copy_tile(const npu__ref_strided *c, char *to, const char *from, int64_t height)
{
    int64_t n = c->dims[c->rank - 1], to_stride = c->to[c->rank - 1], from_stride = c->from[c->rank - 1];
    bool whole = height == c->tile && height * to_stride == 64 && c->from_dtype == c->to_dtype;
    for (int64_t j = 0; j < n; j += c->tile, to += c->tile * to_stride, from += c->tile * from_stride) {
        int64_t width = n - j < c->tile ? n - j : c->tile;
        if (whole && width == c->tile) {
            npu__ref_move_square(c->isa, to, c->tiled_to, from, from_stride, c->to_size);
            continue;
        }
        for (int64_t i = 0; width >= height && i < height; i++) {
            npu__ref_copy_row(c, to + i * c->tiled_to, to_stride, from + i * c->tiled_from, from_stride,
                              width);
        }
        for (int64_t i = 0; width < height && i < width; i++) {
            npu__ref_copy_row(c, to + i * to_stride, c->tiled_to, from + i * from_stride, c->tiled_from,
                              height);
        }
    }
}

/* Where a copy has got to: an index for every dim but the last, and the addresses that belong to it. */
typedef struct npu__ref_cursor {
    int64_t index[NPU__REF_COPY_RANK];
    char *to;
    const char *from;
} npu__ref_cursor;

static void npu__ref_cursor_start(npu__ref_cursor *at, const npu__ref_strided *c, char *to, const char *from,
                                  size_t row)
{
    int64_t rest = (int64_t)row;
    at->to = to + c->to_first;
    at->from = from + c->from_first;
    for (uint32_t i = c->rank - 1; i-- > 0; rest /= c->dims[i]) {
        at->index[i] = rest % c->dims[i];
        at->to += at->index[i] * c->to[i];
        at->from += at->index[i] * c->from[i];
    }
}

static void npu__ref_cursor_next(npu__ref_cursor *at, const npu__ref_strided *c)
{
    for (uint32_t i = c->rank - 1; i-- > 0;) {
        at->to += c->to[i];
        at->from += c->from[i];
        if (++at->index[i] < c->dims[i]) {
            return;
        }
        at->to -= c->dims[i] * c->to[i];
        at->from -= c->dims[i] * c->from[i];
        at->index[i] = 0;
    }
}

/* The first of n rows everywhere, in blocks that grow. */
static void npu__ref_repeat_row(char *to, size_t size, size_t n)
{
    size_t block = size, len = n * size;
    for (size_t done = size; done < len; done += block) {
        block = done <= 16384 ? done : block;
        memcpy(to + done, to, block < len - done ? block : len - done);
    }
}

/* How many of `rows` rows from this one on hold the same elements, one row behind the other. */
static size_t npu__ref_copy_same(const npu__ref_strided *c, const npu__ref_cursor *at, size_t rows)
{
    uint32_t i = c->rank - 2;
    size_t left = (size_t)(c->dims[i] - at->index[i]);
    bool same = c->from[i] == 0 && c->to[i + 1] == (int64_t)c->to_size && c->to[i] == c->dims[i + 1] * c->to[i + 1];
    return !same || c->transposes ? 1 : left < rows ? left : rows;
}

static void npu__ref_copy_rows(const npu__ref_strided *c, char *to, const char *from, uint32_t part,
                               uint32_t parts)
{
    size_t row = c->rows * part / parts, end = c->rows * (part + 1) / parts;
    uint32_t last = c->rank - 1;
    npu__ref_cursor at;
    npu__ref_cursor_start(&at, c, to, from, row);
    for (size_t same; row < end; row += same) {
        same = npu__ref_copy_same(c, &at, end - row);
        if (c->transposes) {
            int64_t left = c->tiled_dim - at.index[c->tiled] * c->tile;
            npu__ref_copy_tile(c, at.to, at.from, left < c->tile ? left : c->tile);
        } else {
            npu__ref_copy_row(c, at.to, c->to[last], at.from, c->from[last], c->dims[last]);
        }
        if (same > 1) {
            npu__ref_repeat_row(at.to, (size_t)c->to[last - 1], same);
        }
        for (size_t i = 0; i < same; i++) {
            npu__ref_cursor_next(&at, c);
        }
    }
}

/* A single long row is divided itself. */
static void npu__ref_copy_line(const npu__ref_strided *c, char *to, const char *from, uint32_t part,
                               uint32_t parts)
{
    size_t begin, end;
    npu__ref_split((size_t)c->dims[0], part, parts, &begin, &end);
    npu__ref_copy_row(c, to + c->to_first + (int64_t)begin * c->to[0], c->to[0],
                      from + c->from_first + (int64_t)begin * c->from[0], c->from[0], (int64_t)(end - begin));
}

static npu_status npu__ref_copy_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_copies *s = (const npu__ref_copies *)l->state;
    for (uint32_t i = 0; i < s->num_copies; i++) {
        const npu__ref_strided *c = &s->copies[i];
        char *to = (char *)l->y[c->out];
        const char *from = (const char *)l->x[c->in];
        if (to + c->to_first == from + c->from_first) {
            continue; /* the result was planned as a view */
        }
        if (c->rank == 1) {
            npu__ref_copy_line(c, to, from, part, parts);
        } else {
            npu__ref_copy_rows(c, to, from, part, parts);
        }
    }
    return NPU_OK;
}

/* ---- preparing copies ---- */

static void npu__ref_copy_dim(npu__ref_strided *c, int64_t dim, int64_t from, int64_t to)
{
    uint32_t i = c->rank++;
    c->dims[i] = dim;
    c->from[i] = from;
    c->to[i] = to;
}

/* Dims of 1 left out, neighbours merged; at least one dim stays. */
static void npu__ref_copy_collapse(npu__ref_strided *c)
{
    uint32_t rank = c->rank, n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (c->dims[i] == 1) {
            continue;
        }
        if (n > 0 && c->from[n - 1] == c->from[i] * c->dims[i] && c->to[n - 1] == c->to[i] * c->dims[i]) {
            n--;
            c->dims[n] *= c->dims[i];
        } else {
            c->dims[n] = c->dims[i];
        }
        c->from[n] = c->from[i];
        c->to[n++] = c->to[i];
    }
    c->rank = n;
    if (n == 0) {
        npu__ref_copy_dim(c, 1, 1, 1);
    }
}

/* The dim along which the operand is dense, where it is not the last one; else the last one. */
static uint32_t npu__ref_copy_dense(const npu__ref_strided *c)
{
    uint32_t dense = c->rank - 1;
    for (uint32_t i = 0; i < c->rank && c->from[c->rank - 1] > 1; i++) {
        dense = c->from[i] == 1 ? i : dense;
    }
    return dense;
}

/* Strides to bytes, and how the copy is run. */
static void npu__ref_copy_finish(npu__ref_strided *c)
{
    npu__ref_copy_collapse(c);
    c->tiled = npu__ref_copy_dense(c);
    c->transposes = c->tiled != c->rank - 1;
    /* Room is measured before an index that a value feeds is known: then this is no place. */
    c->from_first = NPU__REF_WRAP(c->from_first, *, c->from_size);
    c->to_first *= (int64_t)c->to_size;
    for (uint32_t i = 0; i < c->rank; i++) {
        c->from[i] *= (int64_t)c->from_size;
        c->to[i] *= (int64_t)c->to_size;
    }
    if (c->transposes) {
        int64_t line = 64 / (int64_t)c->to_size;
        c->tiled_dim = c->dims[c->tiled];
        /* no square fits: long runs */
        c->tile = c->dims[c->rank - 1] < line || c->tiled_dim < line ? 512 : line;
        c->tiled_from = c->from[c->tiled];
        c->tiled_to = c->to[c->tiled];
        c->dims[c->tiled] = (c->tiled_dim + c->tile - 1) / c->tile;
        c->from[c->tiled] *= c->tile;
        c->to[c->tiled] *= c->tile;
    }
    c->rows = 1;
    for (uint32_t i = 0; i + 1 < c->rank; i++) {
        c->rows *= (size_t)c->dims[i];
    }
}

/* State for up to `num_copies` copies, in `p`. NULL = out of memory. */
static npu__ref_copies *npu__ref_copies_create(npu_prepare *p, uint32_t num_copies)
{
    npu__ref_copies *s = (npu__ref_copies *)npu_prepare_alloc(p, sizeof *s);
    npu__ref_strided *copies = (npu__ref_strided *)npu_prepare_alloc(p, (size_t)num_copies * sizeof *copies);
    if (!s || !copies) {
        return NULL;
    }
    s->copies = copies;
    p->state = s;
    return s;
}

/* The next copy, between operand `in` and result `out`. */
static npu__ref_strided *npu__ref_copies_add(const npu_prepare *p, npu__ref_copies *s, uint32_t in,
                                             uint32_t out)
{
    npu__ref_strided *c = &s->copies[s->num_copies++];
    c->in = in;
    c->out = out;
    c->isa = p->isa;
    c->from_dtype = p->in[in].dtype;
    c->to_dtype = p->out[out].dtype;
    c->from_size = npu_dtype_bits((npu_dtype)c->from_dtype) / 8;
    c->to_size = npu_dtype_bits((npu_dtype)c->to_dtype) / 8;
    return c;
}

static npu_status npu__ref_copies_finish(npu_prepare *p, npu__ref_copies *s)
{
    size_t bytes = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->num_copies; i++) {
        npu__ref_strided *c = &s->copies[i];
        int64_t n = 1;
        for (uint32_t d = 0; d < c->rank; d++) {
            n *= c->dims[d];
        }
        if (n > 0) {
            npu__ref_copy_finish(c);
            bytes += (size_t)n * c->to_size;
            s->copies[kept++] = *c;
        }
    }
    s->num_copies = kept;
    p->parts = npu__ref_parts(bytes, (size_t)NPU__REF_GRAIN * 4);
    return NPU_OK;
}

/* The dim that an argument names, of a tensor of `rank` dims; a 0-d tensor counts as having one. */
static uint32_t npu__ref_dim(int64_t dim, uint32_t rank)
{
    return (uint32_t)(dim < 0 ? dim + (rank ? rank : 1) : dim);
}

/* ---- ops with one operand and one result: where the element of each result dim comes from ---- */

static void npu__ref_copy_permute(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    int64_t dims[NPU_MAX_RANK] = { 0 };
    npu_op_ints(p->op, p->op->kind == NPU_LINALG_TRANSPOSE ? "permutation" : "dims", dims, NPU_MAX_RANK);
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[npu__ref_dim(dims[i], in->rank)], out->strides[i]);
    }
}

static void npu__ref_copy_swap(const npu_prepare *p, npu__ref_strided *c, int64_t dim0, int64_t dim1)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t a = npu__ref_dim(dim0, in->rank), b = npu__ref_dim(dim1, in->rank);
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i == a ? b : i == b ? a : i], out->strides[i]);
    }
}

static void npu__ref_copy_transpose(const npu_prepare *p, npu__ref_strided *c)
{
    npu__ref_copy_swap(p, c, npu_op_int(p->op, "dim0", 0), npu_op_int(p->op, "dim1", 0));
}

/* Two named axes, or the last two where a tile's move transposes. */
static void npu__ref_copy_move(const npu_prepare *p, npu__ref_strided *c)
{
    bool plain = p->op->kind == (uint32_t)NPU_BLOCK_MOVE && !npu_op_int(p->op, "transpose", 0);
    npu__ref_copy_swap(p, c, plain ? 0 : npu_op_int(p->op, "axis1", -1), plain ? 0 : npu_op_int(p->op, "axis2", -2));
}

static void npu__ref_copy_expand(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t missing = out->rank - in->rank;
    for (uint32_t i = 0; i < out->rank; i++) {
        bool there = i >= missing && in->dims[i - missing] != 1;
        npu__ref_copy_dim(c, out->dims[i], there ? in->strides[i - missing] : 0, out->strides[i]);
    }
}

/* A dim of the result is two: which repetition, and the index in the operand. */
static void npu__ref_copy_repeat(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t missing = out->rank - in->rank;
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t dim = i < missing ? 1 : in->dims[i - missing];
        npu__ref_copy_dim(c, dim ? out->dims[i] / dim : 0, 0, out->strides[i] * dim);
        npu__ref_copy_dim(c, dim, i < missing ? 0 : in->strides[i - missing], out->strides[i]);
    }
}

static void npu__ref_copy_select(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
    int64_t index = npu_op_int(p->op, "index", 0);
    c->from_first = (index < 0 ? index + in->dims[dim] : index) * in->strides[dim];
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i < dim ? i : i + 1], out->strides[i]);
    }
}

static void npu__ref_copy_slice(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
    int64_t size = in->dims[dim], start = npu_op_int(p->op, "start", 0), step = npu_op_int(p->op, "step", 1);
    start = start < 0 ? start + size : start;
    start = start < 0 ? 0 : start > size ? size : start;
    c->from_first = start * in->strides[dim];
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i] * (i == dim && out->dims[i] > 1 ? step : 1), out->strides[i]);
    }
}

/* narrow; narrow.Tensor is an index kernel. */
static void npu__ref_copy_narrow(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
    int64_t start = npu_op_int(p->op, "start", 0);
    c->from_first = (start < 0 ? start + in->dims[dim] : start) * in->strides[dim];
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i], out->strides[i]);
    }
}

static void npu__ref_copy_extract(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    bool has_strides = npu_op_list_len(p->op, "strides") != 0;
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t stride = has_strides ? npu_op_int_at(p->op, "strides", i) : 1;
        c->from_first += npu_op_int_at(p->op, "offsets", i) * in->strides[i];
        npu__ref_copy_dim(c, out->dims[i], in->strides[i] * stride, out->strides[i]);
    }
}

/* t, mT, mH. */
static void npu__ref_copy_matrix(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t from = in->rank < 2 || i + 2 < in->rank ? i : 2 * in->rank - 3 - i;
        npu__ref_copy_dim(c, out->dims[i], in->strides[from], out->strides[i]);
    }
}

/* Number i of an argument that is one number or a list of them, as a dim. */
static uint32_t npu__ref_dim_item(const npu_op_info *op, const char *name, uint32_t i, uint32_t rank)
{
    bool is_list = npu_op_arg(op, name)->form == NPU_ARG_INTS;
    return npu__ref_dim(is_list ? npu_op_int_at(op, name, i) : npu_op_int(op, name, 0), rank);
}

/* from[destination] = source; the dims that do not move fill what is left in order. */
static void npu__ref_copy_movedim(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    const npu_bound_arg *source = npu_op_arg(p->op, "source");
    uint32_t count = source->form == NPU_ARG_INTS ? source->count : 1, from[NPU_MAX_RANK], next = 0;
    bool moves[NPU_MAX_RANK] = { false }, is_taken[NPU_MAX_RANK] = { false };
    for (uint32_t i = 0; i < count && in->rank; i++) {
        uint32_t a = npu__ref_dim_item(p->op, "source", i, in->rank);
        uint32_t b = npu__ref_dim_item(p->op, "destination", i, in->rank);
        from[b] = a;
        moves[a] = is_taken[b] = true;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        while (!is_taken[i] && moves[next]) {
            next++;
        }
        npu__ref_copy_dim(c, out->dims[i], in->strides[is_taken[i] ? from[i] : next++], out->strides[i]);
    }
}

/* flip, fliplr, flipud: dims walked from their end. */
static void npu__ref_copy_flip(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    bool turns[NPU_MAX_RANK] = { false };
    turns[0] = p->op->kind == NPU_ATEN_FLIPUD;
    turns[1] = p->op->kind == NPU_ATEN_FLIPLR;
    for (uint32_t i = 0; i < npu_op_list_len(p->op, "dims"); i++) {
        turns[npu__ref_dim(npu_op_int_at(p->op, "dims", i), in->rank)] = true;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        c->from_first += turns[i] ? (out->dims[i] - 1) * in->strides[i] : 0;
        npu__ref_copy_dim(c, out->dims[i], turns[i] ? -in->strides[i] : in->strides[i], out->strides[i]);
    }
}

/* A quarter turn: a dim walks along b forwards, and b along a backwards, or the other way round. */
static void npu__ref_copy_rot90(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    int64_t turns = (npu_op_int(p->op, "k", 1) % 4 + 4) % 4;
    uint32_t a = npu__ref_dim(npu_op_int_at(p->op, "dims", 0), in->rank);
    uint32_t b = npu__ref_dim(npu_op_int_at(p->op, "dims", 1), in->rank);
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t from = turns % 2 == 0 ? i : i == a ? b : i == b ? a : i;
        bool is_back = (i == a && (turns == 1 || turns == 2)) || (i == b && (turns == 2 || turns == 3));
        c->from_first += is_back ? (out->dims[i] - 1) * in->strides[from] : 0;
        npu__ref_copy_dim(c, out->dims[i], is_back ? -in->strides[from] : in->strides[from], out->strides[i]);
    }
}

/* Where a diagonal of t begins, and its stride; a and b are the dims it crosses. */
static int64_t npu__ref_diagonal(const npu_tensor *t, int64_t offset, uint32_t a, uint32_t b, int64_t *stride)
{
    *stride = t->strides[a] + t->strides[b];
    if (offset <= -t->dims[a] || offset >= t->dims[b]) { /* it has no elements */
        return 0;
    }
    return offset < 0 ? -offset * t->strides[a] : offset * t->strides[b];
}

/* The strides of diagonal's result inside t, the diagonal last. */
static int64_t npu__ref_diagonal_strides(const npu_prepare *p, const npu_tensor *t, int64_t *strides)
{
    uint32_t a = npu__ref_dim(npu_op_int(p->op, "dim1", 0), t->rank), n = 0;
    uint32_t b = npu__ref_dim(npu_op_int(p->op, "dim2", 1), t->rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (i != a && i != b) {
            strides[n++] = t->strides[i];
        }
    }
    return npu__ref_diagonal(t, npu_op_int(p->op, "offset", 0), a, b, &strides[n]);
}

static void npu__ref_copy_diagonal(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *out = &p->out[0];
    int64_t strides[NPU_MAX_RANK];
    c->from_first = npu__ref_diagonal_strides(p, &p->in[0], strides);
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], strides[i], out->strides[i]);
    }
}

static void npu__ref_copy_unfold(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dimension", 0), in->rank);
    int64_t step = npu_op_int(p->op, "step", 1);
    for (uint32_t i = 0; i < in->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i] * (i == dim && out->dims[i] > 1 ? step : 1), out->strides[i]);
    }
    npu__ref_copy_dim(c, out->dims[in->rank], in->rank ? in->strides[dim] : 1, 1);
}

static void npu__ref_copy_as_strided(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *out = &p->out[0];
    c->from_first = npu_op_int(p->op, "storage_offset", 0);
    for (uint32_t i = 0; i < out->rank; i++) {
        npu__ref_copy_dim(c, out->dims[i], npu_op_int_at(p->op, "stride", i), out->strides[i]);
    }
}

/* Both ways the small tensor [.., C, H r, W r] is the large one [.., C r r, H, W] by other strides. */
static void npu__ref_copy_pixels(const npu_prepare *p, npu__ref_strided *c)
{
    bool is_up = p->op->kind == NPU_ATEN_PIXEL_SHUFFLE;
    const npu_tensor *in = &p->in[0], *out = &p->out[0], *deep = is_up ? in : out, *wide = is_up ? out : in;
    int64_t r = npu_op_int(p->op, is_up ? "upscale_factor" : "downscale_factor", 1), from[6], to[6];
    uint32_t at = deep->rank - 3;
    int64_t dims[6], deep_strides[6], wide_strides[6];
    for (uint32_t i = 0; i < at; i++) {
        npu__ref_copy_dim(c, out->dims[i], in->strides[i], out->strides[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        dims[2 * i] = i ? deep->dims[at + i] : wide->dims[at];
        dims[2 * i + 1] = i ? r : 1;
        deep_strides[2 * i] = deep->strides[at + i] * (i ? 1 : r * r);
        deep_strides[2 * i + 1] = deep->strides[at] * (i == 1 ? r : 1);
        wide_strides[2 * i] = wide->strides[at + i] * (i ? r : 1);
        wide_strides[2 * i + 1] = wide->strides[at + i];
    }
    memcpy(from, is_up ? deep_strides : wide_strides, sizeof from);
    memcpy(to, is_up ? wide_strides : deep_strides, sizeof to);
    for (uint32_t i = 0; i < 6; i++) {
        npu__ref_copy_dim(c, dims[i], from[i], to[i]);
    }
}

static void npu__ref_copy_channel_shuffle(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    int64_t groups = npu_op_int(p->op, "groups", 1), width = in->dims[1] / groups;
    npu__ref_copy_dim(c, in->dims[0], in->strides[0], out->strides[0]);
    npu__ref_copy_dim(c, groups, in->strides[1] * width, out->strides[1]);
    npu__ref_copy_dim(c, width, in->strides[1], out->strides[1] * groups);
    npu__ref_copy_dim(c, (int64_t)npu__ref_dims_len(in, 2, in->rank), 1, 1);
}

/* Each index of the dim is written `repeats` times; without a dim the operand is one long dim. */
static void npu__ref_copy_interleave(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    int64_t repeats = npu_op_int(p->op, "repeats", 1);
    if (!npu_op_has(p->op, "dim") || in->rank == 0) {
        npu__ref_copy_dim(c, npu__ref_len(in), 1, repeats);
        npu__ref_copy_dim(c, repeats, 0, 1);
        return;
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        bool is_dim = i == npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
        npu__ref_copy_dim(c, in->dims[i], in->strides[i], out->strides[i] * (is_dim ? repeats : 1));
        if (is_dim) {
            npu__ref_copy_dim(c, repeats, 0, out->strides[i]);
        }
    }
}

typedef void (*npu__ref_copy_fill_fn)(const npu_prepare *p, npu__ref_strided *c);
typedef struct npu__ref_copy_row_of {
    npu_kind kind;
    npu__ref_copy_fill_fn fill;
} npu__ref_copy_row_of;

#define NPU__REF_COPY_ROW(kind, fill) { kind, NPU_IR_HAS_KERNEL(kind) ? fill : (npu__ref_copy_fill_fn)0 }
static const npu__ref_copy_row_of npu__ref_copy_table[] = {
    NPU__REF_COPY_ROW(NPU_ATEN_PERMUTE, npu__ref_copy_permute),
    NPU__REF_COPY_ROW(NPU_LINALG_TRANSPOSE, npu__ref_copy_permute),
    NPU__REF_COPY_ROW(NPU_ATEN_TRANSPOSE, npu__ref_copy_transpose),
    NPU__REF_COPY_ROW(NPU_BLOCK_MOVE, npu__ref_copy_move),
    NPU__REF_COPY_ROW(NPU_BLOCK_TRANSPOSE, npu__ref_copy_move),
    NPU__REF_COPY_ROW(NPU_TENSOR_TRANSPOSE, npu__ref_copy_move),
    NPU__REF_COPY_ROW(NPU_ATEN_EXPAND, npu__ref_copy_expand),
    NPU__REF_COPY_ROW(NPU_ATEN_REPEAT, npu__ref_copy_repeat),
    NPU__REF_COPY_ROW(NPU_ATEN_SELECT, npu__ref_copy_select),
    NPU__REF_COPY_ROW(NPU_ATEN_SLICE, npu__ref_copy_slice),
    NPU__REF_COPY_ROW(NPU_ATEN_T, npu__ref_copy_matrix),
    NPU__REF_COPY_ROW(NPU_ATEN_MATRIX_TRANSPOSE, npu__ref_copy_matrix),
    NPU__REF_COPY_ROW(NPU_ATEN_MATRIX_ADJOINT, npu__ref_copy_matrix),
    NPU__REF_COPY_ROW(NPU_ATEN_MOVEDIM, npu__ref_copy_movedim),
    NPU__REF_COPY_ROW(NPU_ATEN_MOVEDIM_LIST, npu__ref_copy_movedim),
    NPU__REF_COPY_ROW(NPU_ATEN_BROADCAST_TO, npu__ref_copy_expand),
    NPU__REF_COPY_ROW(NPU_ATEN_EXPAND_AS, npu__ref_copy_expand),
    NPU__REF_COPY_ROW(NPU_ATEN_NARROW, npu__ref_copy_narrow),
    NPU__REF_COPY_ROW(NPU_TENSOR_EXTRACT_SLICE, npu__ref_copy_extract),
    NPU__REF_COPY_ROW(NPU_ATEN_TILE, npu__ref_copy_repeat),
    NPU__REF_COPY_ROW(NPU_ATEN_FLIP, npu__ref_copy_flip),
    NPU__REF_COPY_ROW(NPU_ATEN_DIAGONAL, npu__ref_copy_diagonal),
    NPU__REF_COPY_ROW(NPU_ATEN_UNFOLD, npu__ref_copy_unfold),
    NPU__REF_COPY_ROW(NPU_ATEN_AS_STRIDED, npu__ref_copy_as_strided),
    NPU__REF_COPY_ROW(NPU_ATEN_PIXEL_SHUFFLE, npu__ref_copy_pixels),
    NPU__REF_COPY_ROW(NPU_ATEN_REPEAT_INTERLEAVE_INT, npu__ref_copy_interleave),
    NPU__REF_COPY_ROW(NPU_ATEN_NARROW_COPY, npu__ref_copy_narrow),
    NPU__REF_COPY_ROW(NPU_ATEN_PIXEL_UNSHUFFLE, npu__ref_copy_pixels),
    NPU__REF_COPY_ROW(NPU_ATEN_CHANNEL_SHUFFLE, npu__ref_copy_channel_shuffle),
    NPU__REF_COPY_ROW(NPU_ATEN_FLIPLR, npu__ref_copy_flip),
    NPU__REF_COPY_ROW(NPU_ATEN_FLIPUD, npu__ref_copy_flip),
    NPU__REF_COPY_ROW(NPU_ATEN_ROT90, npu__ref_copy_rot90)
};

static npu__ref_copy_fill_fn npu__ref_copy_fill(npu_kind kind)
{
    for (size_t i = 0; i < NPU__REF_COUNT(npu__ref_copy_table); i++) {
        if (npu__ref_copy_table[i].kind == kind) {
            return npu__ref_copy_table[i].fill;
        }
    }
    return NULL;
}

static npu_status npu__ref_copy_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, 1);
    npu__ref_copy_fill_fn fill = npu__ref_copy_fill(p->op->kind);
    if (!s || !fill) {
        return s ? NPU_ERR_NOT_IMPLEMENTED : NPU_ERR_NO_MEMORY;
    }
    fill(p, npu__ref_copies_add(p, s, 0, 0));
    return npu__ref_copies_finish(p, s);
}

/* The operand of an op of NPU__REF_VIEW_KERNEL as its result: where each element is. */
static void npu__ref_view_of(const npu_op_info *op, const npu_tensor *in, npu_tensor *out)
{
    npu__ref_strided c;
    npu_prepare p;
    memset(&c, 0, sizeof c);
    memset(&p, 0, sizeof p);
    p.op = op;
    p.in = in;
    p.out = out;
    npu__ref_copy_fill(op->kind)(&p, &c);
    memcpy(out->strides, c.from, out->rank * sizeof out->strides[0]);
    out->offset = in->offset + (uint64_t)(c.from_first * (int64_t)npu__ref_size(out->dtype));
}

/* Of kernels whose result is a view: the dims of the result walk along those of the operand. */
static bool npu__ref_view_takes(const npu_op_info *op, uint32_t operand, const npu_tensor *x)
{
    (void)op;
    (void)operand;
    (void)x;
    return true;
}

/* ---- ops with several operands or results ---- */

/* The dim of the result along which operands follow each other. */
static uint32_t npu__ref_cat_dim(const npu_prepare *p)
{
    switch (p->op->kind) {
    case NPU_ATEN_VSTACK: return 0;
    case NPU_ATEN_DSTACK: return 2;
    case NPU_ATEN_COLUMN_STACK: return 1;
    case NPU_ATEN_HSTACK: return p->in[0].rank > 1;
    default: return npu__ref_dim(npu_op_int(p->op, "dim", 0), p->out[0].rank);
    }
}

/* Joins operands along a dim, perhaps a new one. Each has as many elements there as its size tells, whatever
   dims it has: a legacy empty operand (dims [0]) adds nothing. */
static npu_status npu__ref_cat_prepare(npu_prepare *p)
{
    const npu_tensor *out = &p->out[0];
    uint32_t dim = npu__ref_cat_dim(p);
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_in);
    int64_t outer = 1, inner = 1, at = 0;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        outer *= i < dim ? out->dims[i] : 1;
        inner *= i > dim ? out->dims[i] : 1;
    }
    for (uint32_t k = 0; k < p->op->num_in && outer * inner > 0; k++) {
        int64_t run = npu__ref_len(&p->in[k]) / outer;
        npu__ref_strided *c = npu__ref_copies_add(p, s, k, 0);
        c->to_first = at;
        npu__ref_copy_dim(c, outer, run, out->dims[dim] * inner);
        npu__ref_copy_dim(c, run, 1, 1);
        at += run;
    }
    return npu__ref_copies_finish(p, s);
}

/* block_diag: every matrix begins where the one before ends. */
static npu_status npu__ref_blocks_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_in + 1);
    int64_t width = p->out[0].dims[1], row = 0, col = 0;
    npu_status status;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < p->op->num_in; k++) {
        const npu_tensor *in = &p->in[k];
        npu__ref_strided *c = npu__ref_copies_add(p, s, k, 0);
        int64_t rows = in->rank > 1 ? in->dims[0] : 1, cols = in->rank ? in->dims[in->rank - 1] : 1;
        c->to_first = row * width + col;
        npu__ref_copy_dim(c, rows, cols, width);
        npu__ref_copy_dim(c, cols, 1, 1);
        row += rows;
        col += cols;
    }
    status = npu__ref_copies_finish(p, s);
    p->parts = 1; /* zeros first */
    return status;
}

/* cartesian_prod: column k repeats every element for all choices of the later operands. */
static npu_status npu__ref_product_prepare(npu_prepare *p)
{
    int64_t cols = p->op->num_in, rows = p->out[0].dims[0], after = rows;
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_in);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < p->op->num_in && rows > 0; k++) {
        npu__ref_strided *c = npu__ref_copies_add(p, s, k, 0);
        int64_t len = p->in[k].dims[0];
        c->to_first = k;
        npu__ref_copy_dim(c, rows / after, 0, after * cols);
        after /= len;
        npu__ref_copy_dim(c, len, 1, after * cols);
        npu__ref_copy_dim(c, after, 0, cols);
    }
    return npu__ref_copies_finish(p, s);
}

/* split and chunk: the result dims say where the pieces are. */
static npu_status npu__ref_split_prepare(npu_prepare *p)
{
    const npu_tensor *in = &p->in[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_out);
    int64_t at = 0;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < p->op->num_out; k++) {
        const npu_tensor *out = &p->out[k];
        npu__ref_strided *c = npu__ref_copies_add(p, s, 0, k);
        c->from_first = at * in->strides[dim];
        for (uint32_t i = 0; i < out->rank; i++) {
            npu__ref_copy_dim(c, out->dims[i], in->strides[i], out->strides[i]);
        }
        at += out->dims[dim];
    }
    return npu__ref_copies_finish(p, s);
}

/* unbind: result k is index k of the dim. */
static npu_status npu__ref_unbind_prepare(npu_prepare *p)
{
    const npu_tensor *in = &p->in[0];
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), in->rank);
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_out);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < p->op->num_out; k++) {
        const npu_tensor *out = &p->out[k];
        npu__ref_strided *c = npu__ref_copies_add(p, s, 0, k);
        c->from_first = (int64_t)k * in->strides[dim];
        for (uint32_t i = 0; i < out->rank; i++) {
            npu__ref_copy_dim(c, out->dims[i], in->strides[i < dim ? i : i + 1], out->strides[i]);
        }
    }
    return npu__ref_copies_finish(p, s);
}

/* One operand per result, expanded: broadcast_tensors; the dims of a meshgrid are an operand each. */
static npu_status npu__ref_each_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_out);
    bool is_grid = p->op->kind == NPU_ATEN_MESHGRID, is_swapped = npu_op_str_is(p->op, "indexing", "xy");
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t k = 0; k < p->op->num_out; k++) {
        const npu_tensor *in = &p->in[k], *out = &p->out[k];
        npu__ref_strided *c = npu__ref_copies_add(p, s, k, k);
        uint32_t missing = out->rank - in->rank;
        uint32_t own = is_swapped && k < 2 && out->rank > 1 ? 1 - k : k;
        for (uint32_t i = 0; i < out->rank; i++) {
            bool there = is_grid ? i == own : i >= missing && in->dims[i - missing] != 1;
            npu__ref_copy_dim(c, out->dims[i], !there ? 0 : is_grid ? 1 : in->strides[i - missing],
                              out->strides[i]);
        }
    }
    return npu__ref_copies_finish(p, s);
}

/* atleast: the same elements. */
static npu_status npu__ref_sames_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, p->op->num_out);
    for (uint32_t k = 0; s && k < p->op->num_out; k++) {
        npu__ref_copy_dim(npu__ref_copies_add(p, s, k, k), npu__ref_len(&p->out[k]), 1, 1);
    }
    return s ? npu__ref_copies_finish(p, s) : NPU_ERR_NO_MEMORY;
}

/* ---- tensor_split: pieces that may begin anywhere, perhaps where a tensor says ---- */

typedef struct npu__ref_cuts {
    uint32_t dim;
    bool follow;    /* pieces follow one another */
    int64_t *starts; /* else where they begin, before it is clamped; NULL = operand 1 says */
} npu__ref_cuts;

static uint32_t npu__ref_cut_dim(const npu_op_info *op, uint32_t rank)
{
    switch (op->kind) {
    case NPU_ATEN_HSPLIT: case NPU_ATEN_HSPLIT_ARRAY: return rank > 1;
    case NPU_ATEN_VSPLIT: case NPU_ATEN_VSPLIT_ARRAY: return 0;
    case NPU_ATEN_DSPLIT: case NPU_ATEN_DSPLIT_ARRAY: return 2;
    default: return npu__ref_dim(npu_op_int(op, "dim", 0), rank);
    }
}

static npu_status npu__ref_cuts_prepare(npu_prepare *p)
{
    npu__ref_cuts *s = (npu__ref_cuts *)npu_prepare_alloc(p, sizeof *s);
    uint32_t count = npu_op_list_len(p->op, "indices");
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->dim = npu__ref_cut_dim(p->op, p->in[0].rank);
    s->follow = npu_op_has(p->op, "sections") || (p->op->num_in > 1 && p->in[1].rank == 0);
    if (s->follow || p->op->num_in > 1) {
        return NPU_OK;
    }
    s->starts = (int64_t *)npu_prepare_alloc(p, (count + 1) * sizeof *s->starts);
    if (!s->starts) {
        return NPU_ERR_NO_MEMORY;
    }
    npu_op_ints(p->op, "indices", s->starts, count);
    return NPU_OK;
}

static npu_status npu__ref_cuts_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_cuts *s = (const npu__ref_cuts *)l->state;
    const int64_t *starts = s->starts ? s->starts : l->num_in > 1 ? (const int64_t *)l->x[1] : NULL;
    const npu_tensor *in = &l->in[0];
    int64_t dim = in->dims[s->dim], start = 0;
    size_t size = npu_dtype_bits((npu_dtype)in->dtype) / 8, row = (size_t)in->strides[s->dim] * size;
    (void)part;
    (void)parts;
    for (uint32_t k = 0; k < l->num_out; k++) {
        int64_t len = l->out[k].dims[s->dim];
        size_t rows = len ? (size_t)npu__ref_len(&l->out[k]) * size / ((size_t)len * (row ? row : 1)) : 0;
        if (!s->follow && k) {
            start = starts[k - 1] < 0 ? starts[k - 1] + dim : starts[k - 1];
            start = start < 0 ? 0 : start > dim ? dim : start;
        }
        if (len > dim - start) {
            return NPU_ERR_RANGE;
        }
        for (size_t i = 0; i < rows && row; i++) {
            memcpy((char *)l->y[k] + i * (size_t)len * row,
                   (const char *)l->x[0] + (i * (size_t)dim + (size_t)start) * row, (size_t)len * row);
        }
        start += s->follow ? len : 0;
    }
    return NPU_OK;
}

/* ---- parts of a tensor replaced, or of zeros: the whole first, then the part ---- */

/* As many elements as both have. */
static npu_status npu__ref_new_size_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, 1);
    int64_t from = npu__ref_len(&p->in[0]), to = npu__ref_len(&p->out[0]);
    npu_status status;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_copy_dim(npu__ref_copies_add(p, s, 0, 0), from < to ? from : to, 1, 1);
    status = npu__ref_copies_finish(p, s);
    p->parts = 1; /* zeros first */
    return status;
}

static npu_status npu__ref_place_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *out = &l->out[0];
    memset(l->y[0], 0, (size_t)npu__ref_len(out) * (npu_dtype_bits((npu_dtype)out->dtype) / 8));
    return npu__ref_copy_launch(l, part, parts);
}

/* Where src lies in the result. */
static void npu__ref_place_part(const npu_prepare *p, npu__ref_strided *c)
{
    const npu_tensor *in = &p->in[1], *out = &p->out[0];
    uint32_t kind = p->op->kind, dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), out->rank);
    int64_t strides[NPU_MAX_RANK] = { 0 }, step = npu_op_int(p->op, "step", 1), start;
    if (kind == NPU_ATEN_DIAGONAL_SCATTER) {
        c->to_first = npu__ref_diagonal_strides(p, out, strides);
    } else if (kind == NPU_ATEN_AS_STRIDED_SCATTER) {
        c->to_first = npu_op_int(p->op, "storage_offset", 0);
        npu_op_ints(p->op, "stride", strides, in->rank);
    } else {
        bool is_select = kind == NPU_ATEN_SELECT_SCATTER;
        start = npu_op_int(p->op, is_select ? "index" : "start", 0);
        start = start < 0 ? start + out->dims[dim] : start;
        start = start < 0 ? 0 : start > out->dims[dim] ? out->dims[dim] : start;
        c->to_first = start * out->strides[dim];
        for (uint32_t i = 0; i < in->rank; i++) {
            strides[i] =
                out->strides[is_select && i >= dim ? i + 1 : i] *
                (!is_select && i == dim && in->dims[i] > 1 ? step : 1);
        }
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        npu__ref_copy_dim(c, in->dims[i], in->strides[i], strides[i]);
    }
}

static npu_status npu__ref_replace_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, 2);
    npu_status status;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_copy_dim(npu__ref_copies_add(p, s, 0, 0), npu__ref_len(&p->out[0]), 1, 1);
    npu__ref_place_part(p, npu__ref_copies_add(p, s, 1, 0));
    status = npu__ref_copies_finish(p, s);
    p->parts = 1; /* the second copy overwrites the first */
    return status;
}

/* diag of a matrix takes its diagonal; else the operand becomes a diagonal of zeros. */
static npu_status npu__ref_diagonal_prepare(npu_prepare *p)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    bool is_embed = p->op->kind == NPU_ATEN_DIAG_EMBED;
    int64_t offset = npu_op_int(p->op, p->op->kind == NPU_ATEN_DIAG ? "diagonal" : "offset", 0), stride;
    uint32_t a = npu__ref_dim(is_embed ? npu_op_int(p->op, "dim1", -2) : 0, out->rank), k = 0;
    uint32_t b = npu__ref_dim(is_embed ? npu_op_int(p->op, "dim2", -1) : 1, out->rank);
    npu__ref_copies *s = npu__ref_copies_create(p, 1);
    npu__ref_strided *c;
    npu_status status;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    c = npu__ref_copies_add(p, s, 0, 0);
    if (p->op->kind == NPU_ATEN_DIAG && out->rank == 1) {
        c->from_first = npu__ref_diagonal(in, offset, 0, 1, &stride);
        npu__ref_copy_dim(c, out->dims[0], stride, 1);
        return npu__ref_copies_finish(p, s);
    }
    c->to_first = npu__ref_diagonal(out, offset, a, b, &stride);
    for (uint32_t i = 0; i < out->rank && is_embed; i++) {
        if (i != a && i != b) {
            npu__ref_copy_dim(c, out->dims[i], in->strides[k++], out->strides[i]);
        }
    }
    npu__ref_copy_dim(c, is_embed ? in->dims[in->rank - 1] : npu__ref_len(in), 1, stride);
    status = npu__ref_copies_finish(p, s);
    p->parts = 1; /* zeros first */
    return status;
}

/* The same elements in the same order: views, clone, getitem. */
static npu_status npu__ref_same_prepare(npu_prepare *p)
{
    npu__ref_copies *s = npu__ref_copies_create(p, 1);
    bool getitem = p->op->kind == NPU_NPU_GETITEM;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_copy_dim(npu__ref_copies_add(p, s, getitem ? (uint32_t)npu_op_int(p->op, "index", 0) : 0, 0),
                      npu__ref_len(&p->out[0]), 1, 1);
    return npu__ref_copies_finish(p, s);
}

/* ---- where(condition): the row-major indices of what is not zero ---- */

/* The indices of what is not zero, of `count` such elements: along dim i that of the k-th at y[i][k step]. Each is
   written before it is known whether it counts, which saves a jump that nobody can foresee. */
static npu_status npu__ref_put_truths(const npu_launch *l, int64_t *const *y, int64_t step, int64_t count)
{
    const npu_tensor *in = &l->in[0];
    int64_t n = npu__ref_len(in), found = 0, at[NPU_MAX_RANK] = { 0 };
    double truth[NPU__STRIP];
    for (int64_t pos = 0; pos < n; pos++) {
        if (pos % NPU__STRIP == 0) {
            size_t len = (size_t)(n - pos < NPU__STRIP ? n - pos : NPU__STRIP);
            npu__ref_load_f64(truth, l->x[0], in->dtype, pos, 1, len);
        }
        for (uint32_t i = 0; i < in->rank && found < count; i++) {
            y[i][found * step] = at[i];
        }
        found += truth[pos % NPU__STRIP] != 0;
        for (uint32_t i = in->rank; i-- > 0 && ++at[i] == in->dims[i];) {
            at[i] = 0;
        }
    }
    return found == count ? NPU_OK : NPU_ERR_RANGE;
}

/* A result for each dim; that of a number has the index 0. */
static npu_status npu__ref_where_indices_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    int64_t *y[NPU_MAX_RANK] = { NULL };
    (void)part;
    (void)parts;
    for (uint32_t i = 0; i < l->num_out; i++) {
        y[i] = (int64_t *)l->y[i];
    }
    if (l->num_out && l->in[0].rank == 0 && l->out[0].dims[0] > 0) {
        y[0][0] = 0;
    }
    return l->num_out ? npu__ref_put_truths(l, y, 1, l->out[0].dims[0]) : NPU_OK;
}

/* ---- combinations: rows of indices in order, each one `step` or more above the one before ---- */

static npu_status npu__ref_combinations_prepare(npu_prepare *p)
{
    int64_t *step = (int64_t *)npu_prepare_alloc(p, sizeof *step);
    if (!step) {
        return NPU_ERR_NO_MEMORY;
    }
    *step = !npu_op_int(p->op, "with_replacement", 0);
    p->workspace = npu__ref_len(&p->out[0]) ? (size_t)p->out[0].dims[1] * sizeof(int64_t) : 0;
    p->state = step;
    return NPU_OK;
}

static npu_status npu__ref_combinations_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *out = &l->out[0];
    int64_t step = *(const int64_t *)l->state, n = l->in[0].dims[0], r = out->rank > 1 ? out->dims[1] : 0;
    int64_t rows = r ? out->dims[0] : 0, *index = (int64_t *)l->workspace;
    size_t size = npu_dtype_bits((npu_dtype)out->dtype) / 8;
    (void)part;
    (void)parts;
    for (int64_t i = 0; i < r && rows; i++) {
        index[i] = i * step;
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t last = r - 1;
        for (int64_t i = 0; i < r; i++) {
            memcpy((char *)l->y[0] + (size_t)(row * r + i) * size,
                   (const char *)l->x[0] + (size_t)index[i] * size, size);
        }
        while (last > 0 && index[last] == n - 1 - (r - 1 - last) * step) {
            last--; /* it cannot grow */
        }
        index[last]++;
        for (int64_t i = last + 1; i < r; i++) {
            index[i] = index[i - 1] + step;
        }
    }
    return NPU_OK;
}

/* ---- tables ---- */

/* Two variants, `name`_prepare_fast before `name`_prepare. */
#define NPU__REF_ELEMENT_KERNELS(kind, name, launch, takes)                                        \
    NPU__REF_ROW_TAKES(kind, "fast", 10, NULL, npu__ref_##name##_prepare_fast, launch, takes),     \
    NPU__REF_ROW_TAKES(kind, "plain", 0, NULL, npu__ref_##name##_prepare, launch, takes),
#define NPU__REF_MAP_KERNEL(kind, op, num_operands) \
    NPU__REF_ELEMENT_KERNELS(kind, map, npu__ref_map_launch, npu__ref_map_takes)
#define NPU__REF_MOVE_KERNEL(kind, prepare, launch, takes) \
    NPU__REF_ROW_OF(NPU_KERNEL_MOVES, kind, "plain", 0, NULL, prepare, launch, takes)
#define NPU__REF_COPY_KERNEL(kind, prepare) \
    NPU__REF_MOVE_KERNEL(kind, prepare, npu__ref_copy_launch, NULL)
#define NPU__REF_VIEW_KERNEL(kind) \
    NPU__REF_MOVE_KERNEL(kind, npu__ref_copy_prepare, npu__ref_copy_launch, npu__ref_view_takes)
#define NPU__REF_ZEROS_KERNEL(kind, prepare) \
    NPU__REF_MOVE_KERNEL(kind, prepare, npu__ref_place_launch, NULL)
#define NPU__REF_CUT_KERNEL(kind) \
    NPU__REF_MOVE_KERNEL(kind, npu__ref_cuts_prepare, npu__ref_cuts_launch, NULL)

static const npu_kernel npu__ref_kernels_activation[] = { NPU__REF_ACTIVATION(NPU__REF_MAP_KERNEL) };
static const npu_kernel npu__ref_kernels_special[] = {
    NPU__REF_SPECIAL(NPU__REF_MAP_KERNEL)
    NPU__REF_ROW(NPU_ATEN_FREXP_TENSOR, "plain", 0, NULL, NULL, npu__ref_frexp_launch),
    NPU__REF_ROW(NPU_ATEN_LOG_SIGMOID_FORWARD, "plain", 0, NULL, NULL,
      npu__ref_log_sigmoid_forward_launch)
};
static const npu_kernel npu__ref_kernels_logic[] = { NPU__REF_LOGIC(NPU__REF_MAP_KERNEL) };
static const npu_kernel npu__ref_kernels_elementwise[] = {
    NPU__REF_ELEMENTWISE(NPU__REF_MAP_KERNEL)
    NPU__REF_ELEMENT_KERNELS(NPU_ATEN_PRELU, prelu, npu__ref_map_launch, (npu__ref_takes_fn)0)
    NPU__REF_ELEMENT_KERNELS(NPU_ATEN_GLU, glu, npu__ref_glu_launch, (npu__ref_takes_fn)0)
    NPU__REF_MAP_KERNEL(NPU_ATEN_MAX_OTHER, maximum, 2)
    NPU__REF_MAP_KERNEL(NPU_ATEN_MIN_OTHER, minimum, 2)
};
static const npu_kernel npu__ref_kernels_comparison[] = {
    NPU__REF_COMPARISON(NPU__REF_MAP_KERNEL)
    NPU__REF_ROW(NPU_ATEN_WHERE_INDICES, "plain", 0, NULL, NULL, npu__ref_where_indices_launch)
};

static const npu_kernel npu__ref_kernels_shape[] = {
    NPU__REF_COPY_KERNEL(NPU_ATEN_VIEW, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RESHAPE, npu__ref_same_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_PERMUTE),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_TRANSPOSE),
    NPU__REF_COPY_KERNEL(NPU_ATEN_FLATTEN, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SQUEEZE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SQUEEZE_DIM, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SQUEEZE_DIMS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNSQUEEZE, npu__ref_same_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_EXPAND),
    NPU__REF_COPY_KERNEL(NPU_ATEN_REPEAT, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_CAT, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_STACK, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SPLIT, npu__ref_split_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SPLIT_SIZES, npu__ref_split_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_CHUNK, npu__ref_split_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_SELECT),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_SLICE),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SPLIT_WITH_SIZES, npu__ref_split_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNBIND, npu__ref_unbind_prepare),
    NPU__REF_CUT_KERNEL(NPU_ATEN_TENSOR_SPLIT),
    NPU__REF_CUT_KERNEL(NPU_ATEN_TENSOR_SPLIT_INDICES),
    NPU__REF_CUT_KERNEL(NPU_ATEN_TENSOR_SPLIT_TENSOR),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_T),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_MATRIX_TRANSPOSE),
    NPU__REF_ROW_TAKES(NPU_ATEN_MATRIX_ADJOINT, "plain", 0, NULL, npu__ref_copy_prepare, npu__ref_copy_launch,
                      npu__ref_view_takes), /* of numbers alone: complex ones would change */
    NPU__REF_VIEW_KERNEL(NPU_ATEN_MOVEDIM),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_MOVEDIM_LIST),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_BROADCAST_TO),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_EXPAND_AS),
    NPU__REF_COPY_KERNEL(NPU_ATEN_VIEW_AS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNFLATTEN, npu__ref_same_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_NARROW),
    NPU__REF_COPY_KERNEL(NPU_ATEN_TILE, npu__ref_copy_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_FLIP),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_DIAGONAL),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_UNFOLD),
    NPU__REF_COPY_KERNEL(NPU_ATEN_AS_STRIDED, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_PIXEL_SHUFFLE, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_MESHGRID, npu__ref_each_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_REPEAT_INTERLEAVE_INT, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RESHAPE_ALIAS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNSAFE_VIEW, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RAVEL, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RESHAPE_AS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_NARROW_COPY, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNSAFE_CHUNK, npu__ref_split_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_UNSAFE_SPLIT, npu__ref_split_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_PIXEL_UNSHUFFLE, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_CHANNEL_SHUFFLE, npu__ref_copy_prepare),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_FLIPLR),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_FLIPUD),
    NPU__REF_VIEW_KERNEL(NPU_ATEN_ROT90)
};

static const npu_kernel npu__ref_kernels_arrangement[] = {
    NPU__REF_CUT_KERNEL(NPU_ATEN_HSPLIT),
    NPU__REF_CUT_KERNEL(NPU_ATEN_HSPLIT_ARRAY),
    NPU__REF_CUT_KERNEL(NPU_ATEN_VSPLIT),
    NPU__REF_CUT_KERNEL(NPU_ATEN_VSPLIT_ARRAY),
    NPU__REF_CUT_KERNEL(NPU_ATEN_DSPLIT),
    NPU__REF_CUT_KERNEL(NPU_ATEN_DSPLIT_ARRAY),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_1D, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_2D, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_3D, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_1D_SEQUENCE, npu__ref_sames_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_2D_SEQUENCE, npu__ref_sames_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_ATLEAST_3D_SEQUENCE, npu__ref_sames_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_BROADCAST_TENSORS, npu__ref_each_prepare),
    NPU__REF_ZEROS_KERNEL(NPU_ATEN_DIAG, npu__ref_diagonal_prepare),
    NPU__REF_ZEROS_KERNEL(NPU_ATEN_DIAGFLAT, npu__ref_diagonal_prepare),
    NPU__REF_ZEROS_KERNEL(NPU_ATEN_DIAG_EMBED, npu__ref_diagonal_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_HSTACK, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_VSTACK, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_DSTACK, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_COLUMN_STACK, npu__ref_cat_prepare),
    NPU__REF_ZEROS_KERNEL(NPU_ATEN_BLOCK_DIAG, npu__ref_blocks_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_CARTESIAN_PROD, npu__ref_product_prepare),
    NPU__REF_MOVE_KERNEL(NPU_ATEN_COMBINATIONS, npu__ref_combinations_prepare, npu__ref_combinations_launch, NULL)
};

static const npu_kernel npu__ref_kernels_memory[] = {
    NPU__REF_CAST(NPU__REF_MAP_KERNEL)
    NPU__REF_COPY_KERNEL(NPU_ATEN_CLONE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_CONTIGUOUS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_DROPOUT, npu__ref_same_prepare),
    NPU__REF_CAST_TO(NPU__REF_MAP_KERNEL)
    NPU__REF_ZEROS_KERNEL(NPU_ATEN_RESIZE, npu__ref_new_size_prepare)
};

#define NPU__REF_CREATE_KERNEL(kind) \
    NPU__REF_ROW_OF(NPU_KERNEL_ANY, kind, "plain", 0, npu__ref_create_supported, npu__ref_create_prepare, \
                   npu__ref_create_launch, NULL)

static const npu_kernel npu__ref_kernels_creation[] = {
    NPU__REF_CREATE_KERNEL(NPU_ATEN_FILL_SCALAR),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_FULL),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_FULL_LIKE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_NEW_FULL),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SCALAR_TENSOR),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ONES),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ONES_LIKE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_NEW_ONES),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ZEROS),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ZEROS_LIKE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_NEW_ZEROS),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_EMPTY_MEMORY_FORMAT),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_EMPTY_STRIDED),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ARANGE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ARANGE_START),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_ARANGE_START_STEP),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_LINSPACE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_EYE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_EYE_M),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_RAND),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_RANDN),
    NPU__REF_ROW(NPU_ATEN_RANDPERM, "plain", 0, NULL, npu__ref_randperm_prepare,
      npu__ref_randperm_launch),
    NPU__REF_ROW(NPU_ATEN_NATIVE_DROPOUT, "plain", 0, NULL, npu__ref_dropout_prepare,
      npu__ref_dropout_launch),
    NPU__REF_MAP_KERNEL(NPU_ATEN_FILL_TENSOR, copy, 2)
    NPU__REF_CREATE_KERNEL(NPU_ATEN_EMPTY_LIKE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_RAND_LIKE),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_RANDN_LIKE),
    NPU__REF_ROW(NPU_ATEN_BERNOULLI, "plain", 0, NULL, npu__ref_create_prepare,
      npu__ref_bernoulli_launch),
    NPU__REF_ROW(NPU_ATEN_BERNOULLI_P, "plain", 0, NULL, npu__ref_create_prepare,
      npu__ref_bernoulli_launch),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_LOGSPACE),
    NPU__REF_ROW(NPU_ATEN_TRIL_INDICES, "plain", 0, NULL, npu__ref_indices_prepare,
      npu__ref_indices_launch),
    NPU__REF_ROW(NPU_ATEN_TRIU_INDICES, "plain", 0, NULL, npu__ref_indices_prepare,
      npu__ref_indices_launch)
};

static npu_status npu__ref_nothing_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)l;
    (void)part;
    (void)parts;
    return NPU_OK;
}

static const npu_kernel npu__ref_kernels_alias[] = {
    NPU__REF_COPY_KERNEL(NPU_ATEN_ALIAS, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_DETACH, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_LIFT_FRESH_COPY, npu__ref_same_prepare),
    NPU__REF_MAP_KERNEL(NPU_ATEN_COPY, copy, 1)
    NPU__REF_MAP_KERNEL(NPU_ATEN_TYPE_AS, copy, 1)
    NPU__REF_MAP_KERNEL(NPU_ATEN_LOCAL_SCALAR_DENSE, copy, 1)
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SYM_NUMEL),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SYM_SIZE_INT),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SYM_STRIDE_INT),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SYM_STORAGE_OFFSET),
    NPU__REF_CREATE_KERNEL(NPU_ATEN_SYM_IS_CONTIGUOUS),
    NPU__REF_COPY_KERNEL(NPU_ATEN_POSITIVE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RESOLVE_CONJ, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_RESOLVE_NEG, npu__ref_same_prepare),
    NPU__REF_ROW(NPU_ATEN_ALPHA_DROPOUT, "plain", 0, NULL, npu__ref_dropout_prepare,
      npu__ref_dropout_launch),
    NPU__REF_ROW(NPU_ATEN_FEATURE_DROPOUT, "plain", 0, NULL, npu__ref_dropout_prepare,
      npu__ref_dropout_launch),
    NPU__REF_ROW_OF(NPU_KERNEL_ANY, NPU_ATEN_ASSERT_TENSOR_METADATA, "plain", 0, NULL, NULL, npu__ref_nothing_launch,
                   NULL)
};

static const npu_kernel npu__ref_kernels_npu[] = {
    NPU__REF_COPY_KERNEL(NPU_NPU_GETITEM, npu__ref_same_prepare),
    NPU__REF_ROW_TAKES(NPU_NPU_FUSED, "fast", 10, npu__ref_fused_supported, npu__ref_fused_prepare_fast,
                      npu__ref_fused_launch, npu__ref_map_takes),
    NPU__REF_ROW_TAKES(NPU_NPU_FUSED, "plain", 0, npu__ref_fused_supported, npu__ref_fused_prepare,
                      npu__ref_fused_launch, npu__ref_map_takes)
};

/* ---- matrix product, convolution -------------------------------------------------------- >>kernels-matrix

   One matrix product is shared by everything here and by whoever else multiplies matrices: fill an npu__ref_product
   in prepare (sizes, dtypes, strides, factors), ask for parts and workspace, pack a constant B; in launch
   copy it, set the addresses and call npu__ref_gemm for the part. Parts split rows and columns of C, never
   the sum over k, and every element is summed in the order of k, so results do not depend on the split.

   Floats go through a blocked product: B is packed in panels as wide as a tile, A is copied a block at a
   time, and a tile of C stays in registers while it is summed. Integers, and floats on request, go through a
   naive one. */

/* A matrix or vector that is read. x NULL = absent. Strides in elements, of any size and sign; 0 repeats. */
typedef struct npu__ref_matrix_view {
    const void *x;
    uint32_t dtype;
    int64_t row, col;
} npu__ref_matrix_view;

/* C = alpha A B + beta C0 + bias, rounded once to C's dtype. A [m,k], B [k,n], C [m,n]; C0 and bias are [m,n]
   by their strides. C0 is not read where beta is 0. k = 0 counts as A B = 0. All dtypes must be of one
   compute class; integers wrap. */
typedef struct npu__ref_product {
    int64_t m, n, k;
    npu__ref_matrix_view a, b, c0, bias;
    void *c;
    uint32_t c_dtype;
    int64_t c_row, c_col;
    double alpha, beta;   /* set alpha: 0 is zero; integers take the whole part */
    const void *packed_b; /* by npu__ref_gemm_pack; then b.x is not read */
    void *workspace;      /* npu__ref_gemm_workspace bytes for every part, 64-byte aligned; unused where 0 */
    bool plain;           /* the naive loop */
    bool onto;            /* C0 lies as C does, and may be C: sums are not taken there */
    uint32_t isa;         /* of its loops */
} npu__ref_product;

/* ---- matrix product: the naive one ---- */

/* One row of A times one column of B, a strip at a time. */
static double npu__ref_dot_f64(const npu__ref_product *g, int64_t row, int64_t col)
{
    double a[NPU__STRIP], b[NPU__STRIP], sum = 0;
    for (int64_t k = 0; k < g->k; k += NPU__STRIP) {
        size_t n = g->k - k < NPU__STRIP ? (size_t)(g->k - k) : NPU__STRIP;
        npu__ref_load_f64(a, g->a.x, g->a.dtype, row * g->a.row + k * g->a.col, g->a.col, n);
        npu__ref_load_f64(b, g->b.x, g->b.dtype, k * g->b.row + col * g->b.col, g->b.row, n);
        for (size_t i = 0; i < n; i++) {
            sum += a[i] * b[i];
        }
    }
    return sum;
}

static uint64_t npu__ref_dot_i64(const npu__ref_product *g, int64_t row, int64_t col)
{
    int64_t a[NPU__STRIP], b[NPU__STRIP];
    uint64_t sum = 0;
    for (int64_t k = 0; k < g->k; k += NPU__STRIP) {
        size_t n = g->k - k < NPU__STRIP ? (size_t)(g->k - k) : NPU__STRIP;
        npu__ref_load_i64(a, g->a.x, g->a.dtype, row * g->a.row + k * g->a.col, g->a.col, n);
        npu__ref_load_i64(b, g->b.x, g->b.dtype, k * g->b.row + col * g->b.col, g->b.row, n);
        for (size_t i = 0; i < n; i++) {
            sum += (uint64_t)a[i] * (uint64_t)b[i];
        }
    }
    return sum;
}

static void npu__ref_gemm_element_f64(const npu__ref_product *g, int64_t row, int64_t col)
{
    double sum = g->alpha * npu__ref_dot_f64(g, row, col), addend;
    if (g->c0.x && g->beta != 0) {
        npu__ref_load_f64(&addend, g->c0.x, g->c0.dtype, row * g->c0.row + col * g->c0.col, 1, 1);
        sum += g->beta * addend;
    }
    if (g->bias.x) {
        npu__ref_load_f64(&addend, g->bias.x, g->bias.dtype, row * g->bias.row + col * g->bias.col, 1, 1);
        sum += addend;
    }
    npu__ref_store_f64(g->c, g->c_dtype, row * g->c_row + col * g->c_col, 1, &sum, 1);
}

static void npu__ref_gemm_element_i64(const npu__ref_product *g, int64_t row, int64_t col)
{
    uint64_t sum = (uint64_t)npu__ref_to_i64(g->alpha) * npu__ref_dot_i64(g, row, col);
    int64_t addend, result;
    if (g->c0.x && g->beta != 0) {
        npu__ref_load_i64(&addend, g->c0.x, g->c0.dtype, row * g->c0.row + col * g->c0.col, 1, 1);
        sum += (uint64_t)npu__ref_to_i64(g->beta) * (uint64_t)addend;
    }
    if (g->bias.x) {
        npu__ref_load_i64(&addend, g->bias.x, g->bias.dtype, row * g->bias.row + col * g->bias.col, 1, 1);
        sum += (uint64_t)addend;
    }
    result = (int64_t)sum;
    npu__ref_store_i64(g->c, g->c_dtype, row * g->c_row + col * g->c_col, 1, &result, 1);
}

static void npu__ref_gemm_naive(const npu__ref_product *g, uint32_t part, uint32_t parts)
{
    bool integer = npu__ref_compute_class(g->a.dtype) == NPU__I64 && npu__ref_compute_class(g->b.dtype) == NPU__I64;
    for (int64_t row = g->m * part / parts; row < g->m * (part + 1) / parts; row++) {
        for (int64_t col = 0; col < g->n; col++) {
            if (integer) {
                npu__ref_gemm_element_i64(g, row, col);
            } else {
                npu__ref_gemm_element_f64(g, row, col);
            }
        }
    }
}

/* ---- matrix product: tiles ----

   A tile of up to ROWS x (VECTORS * WIDTH) sums is kept in registers. The loops below have constant bounds
   after inlining and must be unrolled for that, which -O2 alone does not do. */

#if defined(__clang__)
#define NPU__REF_UNROLL_LOOP _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define NPU__REF_UNROLL_LOOP _Pragma("GCC unroll 16")
#else
#define NPU__REF_UNROLL_LOOP
#endif

typedef struct npu__ref_tile_loops {
    int32_t rows, cols; /* of the largest tile; B is packed in panels of cols */
    /* C (rows x cols) = or += A (rows x k) B (k x cols); row i of B starts at b + offsets[i]. */
    void (*product)(int32_t rows, int64_t k, const void *a, int64_t a_row, const void *b,
                    const int64_t *offsets, void *c, int64_t c_row, bool add);
    /* The same for one row and any n; sums start at c (add) or at *start. */
    void (*row)(int64_t k, int64_t n, const void *a, const void *b, const int64_t *offsets, void *c, bool add,
                const void *start);
    /* sums[j] += x . b[j * b_row ..], j < 8, k numbers each. */
    void (*dots)(int32_t count, int64_t k, const void *x, const void *b, int64_t b_row, void *sums);
    /* y += x[0] b[0 ..] + x[1] b[b_row ..] + ..., n numbers, count <= 4 of them. */
    void (*add_rows)(int32_t count, int64_t n, const void *x, const void *b, int64_t b_row, void *y);
    /* A panel of rows that lie from_row apart. */
    void (*copy)(int64_t rows, const void *from, int64_t from_row, void *panel);
    /* y = alpha y + beta x, n numbers; step 1, or 0 = one x for all. */
    void (*combine)(int64_t n, double alpha, void *y, double beta, const void *x, int64_t step);
} npu__ref_tile_loops;

/* One set of instructions for one type of number. FMA(a, b, c) = a b + c. */
#define NPU__REF_TILE_DEFINE(NAME, TARGET, number, vector, WIDTH, ROWS, VECTORS, LOAD, STORE, SET, FMA)      \
    NPU__REF_INLINE TARGET void npu__ref_tile_##NAME##_rows(const int32_t rows, int64_t k,                     \
        const number *a, int64_t a_row, const number *b, const int64_t *offsets, number *c,                  \
        int64_t c_row, bool add)                                                                             \
    {                                                                                                        \
        vector sum[ROWS][VECTORS];                                                                           \
        NPU__REF_UNROLL_LOOP                                                                                 \
        for (int32_t i = 0; i < rows; i++) {                                                                 \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t v = 0; v < VECTORS; v++) {                                                          \
                sum[i][v] = SET(0);                                                                          \
            }                                                                                                \
        }                                                                                                    \
        for (; k > 0; k--, a++, offsets++) {                                                                 \
            const number *from = b + *offsets;                                                               \
            vector y[VECTORS];                                                                               \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t v = 0; v < VECTORS; v++) {                                                          \
                y[v] = LOAD(from + v * WIDTH);                                                               \
            }                                                                                                \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t i = 0; i < rows; i++) {                                                             \
                vector x = SET(a[i * a_row]);                                                                \
                NPU__REF_UNROLL_LOOP                                                                         \
                for (int32_t v = 0; v < VECTORS; v++) {                                                      \
                    sum[i][v] = FMA(x, y[v], sum[i][v]);                                                     \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        NPU__REF_UNROLL_LOOP                                                                                 \
        for (int32_t i = 0; i < rows; i++) {                                                                 \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t v = 0; v < VECTORS; v++) {                                                          \
                number *to = c + i * c_row + v * WIDTH;                                                      \
                STORE(to, add ? FMA(SET(1), LOAD(to), sum[i][v]) : sum[i][v]);                               \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_product(int32_t rows, int64_t k, const void *a,                \
        int64_t a_row, const void *b, const int64_t *offsets, void *c, int64_t c_row, bool add)              \
    {                                                                                                        \
        switch (rows) {                                                                                      \
        NPU__REF_TILE_CASE(NAME, 1)                                                                          \
        NPU__REF_TILE_CASE(NAME, 2)                                                                          \
        NPU__REF_TILE_CASE(NAME, 3)                                                                          \
        NPU__REF_TILE_CASE(NAME, 4)                                                                          \
        NPU__REF_TILE_ROWS_##ROWS(NAME)                                                                      \
        default: break;                                                                                      \
        }                                                                                                    \
    }                                                                                                        \
    NPU__REF_INLINE TARGET void npu__ref_tile_##NAME##_strip(const int32_t vectors, int64_t k,                 \
        const number *a, const number *b, const int64_t *offsets, number *c, bool add,                       \
        number start)                                                                                        \
    {                                                                                                        \
        vector sum[4];                                                                                       \
        NPU__REF_UNROLL_LOOP                                                                                 \
        for (int32_t v = 0; v < vectors; v++) {                                                              \
            sum[v] = add ? LOAD(c + v * WIDTH) : SET(start);                                                 \
        }                                                                                                    \
        for (int64_t i = 0; i < k; i++) {                                                                    \
            const number *from = b + offsets[i];                                                             \
            vector x = SET(a[i]);                                                                            \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t v = 0; v < vectors; v++) {                                                          \
                sum[v] = FMA(x, LOAD(from + v * WIDTH), sum[v]);                                             \
            }                                                                                                \
        }                                                                                                    \
        NPU__REF_UNROLL_LOOP                                                                                 \
        for (int32_t v = 0; v < vectors; v++) {                                                              \
            STORE(c + v * WIDTH, sum[v]);                                                                    \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_row(int64_t k, int64_t n, const void *a, const void *b,        \
        const int64_t *offsets, void *c, bool add, const void *start)                                        \
    {                                                                                                        \
        const number *x = a, *y = b;                                                                         \
        number *to = c, first = *(const number *)start;                                                      \
        int64_t j = 0;                                                                                       \
        for (; j + 4 * WIDTH <= n; j += 4 * WIDTH) {                                                         \
            npu__ref_tile_##NAME##_strip(4, k, x, y + j, offsets, to + j, add, first);                       \
        }                                                                                                    \
        for (; j + WIDTH <= n; j += WIDTH) {                                                                 \
            npu__ref_tile_##NAME##_strip(1, k, x, y + j, offsets, to + j, add, first);                       \
        }                                                                                                    \
        if (j < n && n >= WIDTH && !add) { /* the last vector overlaps the one before */                     \
            npu__ref_tile_##NAME##_strip(1, k, x, y + n - WIDTH, offsets, to + n - WIDTH, false, first);     \
            return;                                                                                          \
        }                                                                                                    \
        for (; j < n; j++) {                                                                                 \
            to[j] = add ? to[j] : first;                                                                     \
            for (int64_t i = 0; i < k; i++) {                                                                \
                to[j] += x[i] * y[offsets[i] + j];                                                           \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    NPU__REF_INLINE TARGET void npu__ref_tile_##NAME##_dots_of(const int32_t count, int64_t k,                 \
        const number *x, const number *b, int64_t b_row, number *sums)                                       \
    {                                                                                                        \
        vector sum[8];                                                                                       \
        int64_t i = 0;                                                                                       \
        NPU__REF_UNROLL_LOOP                                                                                 \
        for (int32_t j = 0; j < count; j++) {                                                                \
            sum[j] = SET(0);                                                                                 \
        }                                                                                                    \
        for (; i + WIDTH <= k; i += WIDTH) {                                                                 \
            vector y = LOAD(x + i);                                                                          \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t j = 0; j < count; j++) {                                                            \
                sum[j] = FMA(y, LOAD(b + j * b_row + i), sum[j]);                                            \
            }                                                                                                \
        }                                                                                                    \
        for (int32_t j = 0; j < count; j++) {                                                                \
            number lanes[WIDTH];                                                                             \
            STORE(lanes, sum[j]);                                                                            \
            for (int32_t lane = 0; lane < WIDTH; lane++) {                                                   \
                sums[j] += lanes[lane];                                                                      \
            }                                                                                                \
            for (int64_t rest = i; rest < k; rest++) {                                                       \
                sums[j] += x[rest] * b[j * b_row + rest];                                                    \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_dots(int32_t count, int64_t k, const void *x,                  \
        const void *b, int64_t b_row, void *sums)                                                            \
    {                                                                                                        \
        if (count == 8) {                                                                                    \
            npu__ref_tile_##NAME##_dots_of(8, k, x, b, b_row, sums);                                         \
            return;                                                                                          \
        }                                                                                                    \
        for (int32_t j = 0; j < count; j++) {                                                                \
            npu__ref_tile_##NAME##_dots_of(1, k, x, (const number *)b + j * b_row, b_row, (number *)sums + j); \
        }                                                                                                    \
    }                                                                                                        \
    NPU__REF_INLINE TARGET void npu__ref_tile_##NAME##_add_rows_of(const int32_t count, int64_t n,             \
        const number *x, const number *b, int64_t b_row, number *y)                                          \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + WIDTH <= n; j += WIDTH) {                                                                 \
            vector sum = LOAD(y + j);                                                                        \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t i = 0; i < count; i++) {                                                            \
                sum = FMA(SET(x[i]), LOAD(b + i * b_row + j), sum);                                          \
            }                                                                                                \
            STORE(y + j, sum);                                                                               \
        }                                                                                                    \
        for (; j < n; j++) {                                                                                 \
            for (int32_t i = 0; i < count; i++) {                                                            \
                y[j] += x[i] * b[i * b_row + j];                                                             \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_add_rows(int32_t count, int64_t n, const void *x,              \
        const void *b, int64_t b_row, void *y)                                                               \
    {                                                                                                        \
        if (count == 4) {                                                                                    \
            npu__ref_tile_##NAME##_add_rows_of(4, n, x, b, b_row, y);                                        \
            return;                                                                                          \
        }                                                                                                    \
        for (int32_t i = 0; i < count; i++) {                                                                \
            npu__ref_tile_##NAME##_add_rows_of(1, n, (const number *)x + i, (const number *)b + i * b_row, 0, y); \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_copy(int64_t rows, const void *from, int64_t from_row,         \
        void *panel)                                                                                         \
    {                                                                                                        \
        const number *x = from;                                                                              \
        number *y = panel;                                                                                   \
        for (; rows > 0; rows--, x += from_row, y += VECTORS * WIDTH) {                                      \
            NPU__REF_UNROLL_LOOP                                                                             \
            for (int32_t v = 0; v < VECTORS; v++) {                                                          \
                STORE(y + v * WIDTH, LOAD(x + v * WIDTH));                                                   \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static TARGET void npu__ref_tile_##NAME##_combine(int64_t n, double alpha, void *y, double beta,         \
        const void *x, int64_t step)                                                                         \
    {                                                                                                        \
        const number *from = x, a = (number)alpha, b = (number)beta;                                         \
        number *to = y;                                                                                      \
        int64_t j = 0;                                                                                       \
        for (; j + WIDTH <= n; j += WIDTH) {                                                                 \
            vector added = FMA(SET(b), step ? LOAD(from + j) : SET(*from), SET(0));                          \
            STORE(to + j, FMA(SET(a), LOAD(to + j), added));                                                 \
        }                                                                                                    \
        for (; j < n; j++) {                                                                                 \
            to[j] = a * to[j] + b * from[j * step];                                                          \
        }                                                                                                    \
    }                                                                                                        \
    static const npu__ref_tile_loops npu__ref_tile_##NAME = {                                                \
        ROWS, VECTORS * WIDTH, npu__ref_tile_##NAME##_product, npu__ref_tile_##NAME##_row, npu__ref_tile_##NAME##_dots, \
        npu__ref_tile_##NAME##_add_rows, npu__ref_tile_##NAME##_copy, npu__ref_tile_##NAME##_combine         \
    };

#define NPU__REF_TILE_CASE(NAME, n)                                                                     \
    case n: npu__ref_tile_##NAME##_rows(n, k, a, a_row, b, offsets, c, c_row, add); break;
#define NPU__REF_TILE_ROWS_4(NAME)
#define NPU__REF_TILE_ROWS_6(NAME) NPU__REF_TILE_CASE(NAME, 5) NPU__REF_TILE_CASE(NAME, 6)
#define NPU__REF_TILE_ROWS_8(NAME) NPU__REF_TILE_ROWS_6(NAME) NPU__REF_TILE_CASE(NAME, 7) NPU__REF_TILE_CASE(NAME, 8)
#define NPU__REF_TILE_ROWS_12(NAME)                                                                      \
    NPU__REF_TILE_ROWS_8(NAME) NPU__REF_TILE_CASE(NAME, 9) NPU__REF_TILE_CASE(NAME, 10) NPU__REF_TILE_CASE(NAME, 11) \
    NPU__REF_TILE_CASE(NAME, 12)

#define NPU__REF_SCALAR_LOAD(p) (*(p))
#define NPU__REF_SCALAR_STORE(p, x) (*(p) = (x))
#define NPU__REF_SCALAR_SET(x) (x)
#define NPU__REF_SCALAR_FMA(a, b, c) ((a) * (b) + (c))
NPU__REF_TILE_DEFINE(base_f32, , float, float, 1, 4, 4, NPU__REF_SCALAR_LOAD, NPU__REF_SCALAR_STORE,
                     NPU__REF_SCALAR_SET,
                 NPU__REF_SCALAR_FMA)
NPU__REF_TILE_DEFINE(base_f64, , double, double, 1, 4, 4, NPU__REF_SCALAR_LOAD, NPU__REF_SCALAR_STORE,
                 NPU__REF_SCALAR_SET, NPU__REF_SCALAR_FMA)

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define NPU__REF_TILE_AVX512 __attribute__((target("avx512f")))
#define NPU__REF_TILE_AVX2 __attribute__((target("avx2,fma")))
NPU__REF_TILE_DEFINE(avx512_f32, NPU__REF_TILE_AVX512, float, __m512, 16, 12, 2, _mm512_loadu_ps, _mm512_storeu_ps,
                 _mm512_set1_ps, _mm512_fmadd_ps)
NPU__REF_TILE_DEFINE(avx512_f64, NPU__REF_TILE_AVX512, double, __m512d, 8, 12, 2, _mm512_loadu_pd, _mm512_storeu_pd,
                 _mm512_set1_pd, _mm512_fmadd_pd)
NPU__REF_TILE_DEFINE(avx2_f32, NPU__REF_TILE_AVX2, float, __m256, 8, 6, 2, _mm256_loadu_ps, _mm256_storeu_ps,
                 _mm256_set1_ps, _mm256_fmadd_ps)
NPU__REF_TILE_DEFINE(avx2_f64, NPU__REF_TILE_AVX2, double, __m256d, 4, 6, 2, _mm256_loadu_pd, _mm256_storeu_pd,
                 _mm256_set1_pd, _mm256_fmadd_pd)
#elif defined(__GNUC__) && defined(__aarch64__)
#define NPU__REF_NEON_FMA_F32(a, b, c) vfmaq_f32(c, a, b)
#define NPU__REF_NEON_FMA_F64(a, b, c) vfmaq_f64(c, a, b)
NPU__REF_TILE_DEFINE(neon_f32, , float, float32x4_t, 4, 8, 2, vld1q_f32, vst1q_f32, vdupq_n_f32,
                 NPU__REF_NEON_FMA_F32)
NPU__REF_TILE_DEFINE(neon_f64, , double, float64x2_t, 2, 8, 2, vld1q_f64, vst1q_f64, vdupq_n_f64,
                 NPU__REF_NEON_FMA_F64)
#endif

/* By set: for float and for double. */
static const npu__ref_tile_loops *const npu__ref_tiles_of[][2] = {
#define NPU_X(set, narrow, wide) { &npu__ref_tile_##set##_f32, &npu__ref_tile_##set##_f64 },
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

static const npu__ref_tile_loops *npu__ref_tile(const npu__ref_product *g)
{
    return npu__ref_tiles_of[g->isa][npu__ref_compute_class(g->a.dtype) != NPU__F32];
}

/* ---- matrix product: blocks ---- */

/* Numbers of a compute class that is known at run time only. */
typedef union npu__ref_scalar { double f64; float f32; } npu__ref_scalar;
typedef union npu__ref_scalars { double f64[NPU__STRIP]; float f32[NPU__STRIP]; } npu__ref_scalars;

static int64_t npu__ref_min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t npu__ref_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t npu__ref_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static const void *npu__ref_address(const void *x, uint32_t dtype, int64_t i)
{
    return i ? (const char *)x + i * (int64_t)npu__ref_size(dtype) : x; /* NULL: nothing is there */
}

/* n elements as numbers of their compute class, float or double. */
static void npu__ref_load_numbers(uint32_t isa, void *to, const void *from, uint32_t dtype, int64_t first, int64_t stride,
                                  size_t n)
{
    if (npu__ref_compute_class(dtype) != NPU__F32) {
        npu__ref_load_f64(to, from, dtype, first, stride, n);
        return;
    }
    npu__ref_element_loops_of[dtype == NPU_F32 ? NPU__REF_ISA_base : isa].load_f32(to, from, dtype, first, stride, n);
}

static void npu__ref_store_numbers(uint32_t isa, void *to, uint32_t dtype, int64_t first, int64_t stride, const void *from,
                                   size_t n)
{
    if (npu__ref_compute_class(dtype) != NPU__F32) {
        npu__ref_store_f64(to, dtype, first, stride, from, n);
        return;
    }
    npu__ref_element_loops_of[isa].store_f32(to, dtype, first, stride, from, n);
}

/* The dtype that holds sums, and its size. */
static uint32_t npu__ref_sum_dtype(uint32_t dtype)
{
    return npu__ref_compute_class(dtype) == NPU__F32 ? NPU_F32 : NPU_F64;
}

static size_t npu__ref_sum_size(uint32_t dtype)
{
    return npu__ref_compute_class(dtype) == NPU__F32 ? sizeof(float) : sizeof(double);
}

/* sums = alpha sums + beta m, n of row `row` from column col on. */
static void npu__ref_gemm_add(const npu__ref_product *g, const npu__ref_matrix_view *m, int64_t row, int64_t col,
                              double alpha, double beta, void *sums, int64_t n)
{
    const npu__ref_tile_loops *tile = npu__ref_tile(g);
    npu__ref_scalars strip;
    size_t size = npu__ref_sum_size(m->dtype);
    int64_t first = row * m->row + col * m->col;
    if (m->col == 0) {
        npu__ref_load_numbers(g->isa, &strip, m->x, m->dtype, first, 1, 1);
        tile->combine(n, alpha, sums, beta, &strip, 0);
        return;
    }
    for (int64_t j = 0; j < n; j += NPU__STRIP) {
        int64_t len = npu__ref_min(n - j, NPU__STRIP);
        npu__ref_load_numbers(g->isa, &strip, m->x, m->dtype, first + j * m->col, m->col, (size_t)len);
        tile->combine(len, alpha, (char *)sums + (size_t)j * size, beta, &strip, 1);
    }
}

static bool npu__ref_gemm_in_place(const npu__ref_product *g)
{
    return g->c_dtype == npu__ref_sum_dtype(g->a.dtype) && g->c_col == 1 && !g->onto;
}

/* alpha, the addends of row `row` from column col on, and the rounding of n sums to C's element `at` and on;
   `sums` may be where they belong. */
static void npu__ref_gemm_finish_at(const npu__ref_product *g, int64_t row, int64_t col, int64_t at, void *sums,
                                    int64_t n)
{
    const npu__ref_tile_loops *tile = npu__ref_tile(g);
    npu__ref_scalar zero = { 0 };
    double alpha = g->alpha;
    if (g->c0.x && g->beta != 0) {
        npu__ref_matrix_view onto = g->c0;
        onto.row = at, onto.col = g->c_col;
        npu__ref_gemm_add(g, g->onto ? &onto : &g->c0, g->onto ? 1 : row, g->onto ? 0 : col, alpha, g->beta,
                          sums, n);
        alpha = 1;
    }
    if (g->bias.x) {
        npu__ref_gemm_add(g, &g->bias, row, col, alpha, 1, sums, n);
        alpha = 1;
    }
    if (alpha != 1) {
        tile->combine(n, alpha, sums, 0, &zero, 0);
    }
    if (sums != (char *)g->c + at * (int64_t)npu__ref_size(g->c_dtype)) {
        npu__ref_store_numbers(g->isa, g->c, g->c_dtype, at, g->c_col, sums, (size_t)n);
    }
}

static void npu__ref_gemm_finish(const npu__ref_product *g, int64_t row, int64_t col, void *sums, int64_t n)
{
    npu__ref_gemm_finish_at(g, row, col, row * g->c_row + col * g->c_col, sums, n);
}

/* How a product is cut, from its sizes alone. Rows are cut evenly into tiles, columns into panels of the
   tile's width. */
typedef struct npu__ref_product_plan {
    const npu__ref_tile_loops *tile;
    size_t size;                      /* of a number */
    int64_t panels;
    uint32_t row_parts, col_parts;
    int64_t block_rows, block_k;      /* of A that is copied at a time */
    int64_t block_panels;             /* of B that are packed at a time */
    size_t a_bytes, b_bytes, c_bytes; /* of workspace for one part */
} npu__ref_product_plan;

enum {
    NPU__REF_GEMM_K = 256,         /* a panel of B this deep stays in the first-level cache */
    NPU__REF_GEMM_COLS = 256,      /* columns of a block of B and C: they stay in the second-level cache */
    NPU__REF_GEMM_SLAB = 1 << 19,     /* bytes of a slab of a convolution, for the same reason */
    NPU__REF_GEMM_GRAIN = 1 << 22,   /* multiplications that are worth a part */
    NPU__REF_GEMM_MAX_PARTS = 16,
    NPU__REF_GEMM_DIRECT = 6,        /* tiles of rows up to which B is read where it lies */
    NPU__REF_GEMM_VECTOR = 512       /* columns of a part of a vector times a matrix */
};

/* A part per NPU__REF_GEMM_GRAIN multiplications. In double: the product of three dims may not fit an integer. */
static int64_t npu__ref_gemm_wanted_parts(const npu__ref_product *g)
{
    double parts = (double)g->m * (double)g->n * (double)npu__ref_max(g->k, 1) / NPU__REF_GEMM_GRAIN;
    return parts < 1 ? 1 : parts > NPU__REF_GEMM_MAX_PARTS ? NPU__REF_GEMM_MAX_PARTS : (int64_t)parts;
}

/* Cutting columns makes every part copy the same A, cutting rows pack the same B: the cheaper cut comes
   first. */
static void npu__ref_gemm_cut(const npu__ref_product *g, npu__ref_product_plan *plan)
{
    int64_t rows = npu__ref_max(g->m / ((g->packed_b ? 8 : 16) * plan->tile->rows), 1);
    int64_t cols = npu__ref_max(plan->panels / 4, 1);
    int64_t wanted = npu__ref_gemm_wanted_parts(g), first;
    if (g->packed_b) {
        first = npu__ref_min(wanted, rows);
        plan->row_parts = (uint32_t)first;
        plan->col_parts = (uint32_t)npu__ref_min(wanted / first, cols);
    } else {
        first = npu__ref_min(wanted, cols);
        plan->col_parts = (uint32_t)first;
        plan->row_parts = (uint32_t)npu__ref_min(wanted / first, rows);
    }
}

/* A is used where it lies if its rows are numbers side by side; rows a multiple of a KiB apart would share
   cache sets, which costs more than a copy when they are read often. */
static bool npu__ref_gemm_a_is_direct(const npu__ref_product *g, int64_t panels)
{
    return g->a.dtype == npu__ref_sum_dtype(g->a.dtype) && g->a.col == 1 &&
           (panels <= 2 || g->a.row % 256 != 0);
}

static npu__ref_product_plan npu__ref_gemm_plan(const npu__ref_product *g)
{
    npu__ref_product_plan plan = { 0 };
    int64_t rows;
    size_t block_cols;
    plan.tile = npu__ref_tile(g);
    plan.size = npu__ref_sum_size(g->a.dtype);
    plan.panels = npu__ref_ceil_div(g->n, plan.tile->cols);
    npu__ref_gemm_cut(g, &plan);
    plan.block_rows = npu__ref_min(8 * plan.tile->rows, g->m);
    plan.block_k = npu__ref_min(g->k, NPU__REF_GEMM_K);
    plan.block_panels = npu__ref_min(NPU__REF_GEMM_COLS / plan.tile->cols, plan.panels);
    block_cols = (size_t)(plan.block_panels * plan.tile->cols);
    /* Rows of the copy are 64 bytes longer than a power of two, so that they do not share cache sets. */
    if (!npu__ref_gemm_a_is_direct(g, plan.panels)) {
        plan.a_bytes = (size_t)plan.block_rows * ((size_t)plan.block_k * plan.size + 64);
    }
    if (!g->packed_b) {
        plan.b_bytes = (size_t)plan.block_k * block_cols * plan.size;
    }
    if (!npu__ref_gemm_in_place(g)) {
        rows = g->packed_b ? plan.block_rows : npu__ref_ceil_div(g->m, plan.row_parts);
        plan.c_bytes = (size_t)rows * block_cols * plan.size;
    }
    return plan;
}

/* A vector times a matrix reads B once: nothing is packed. */
static bool npu__ref_gemm_is_vector(const npu__ref_product *g) { return g->m == 1 || g->n == 1; }
/* Integers, and what mixes float with double or integers, as tensor.matmul may. */
static bool npu__ref_gemm_is_naive(const npu__ref_product *g)
{
    int cls = npu__ref_compute_class(g->a.dtype);
    return g->plain || g->k == 0 /* nothing to sum, perhaps at no address */ || cls == NPU__I64 ||
        (g->b.dtype && cls != npu__ref_compute_class(g->b.dtype)) ||
        (g->c_dtype && cls != npu__ref_compute_class(g->c_dtype)); /* 0 = not said yet: the same as a */
}

/* How many parts the product is worth; depends on sizes, dtypes and packed_b alone. */
static uint32_t npu__ref_gemm_parts(const npu__ref_product *g)
{
    npu__ref_product_plan plan;
    if (g->m == 0 || g->n == 0) {
        return 1;
    }
    if (npu__ref_gemm_is_naive(g)) {
        return (uint32_t)npu__ref_min(npu__ref_gemm_wanted_parts(g), g->m);
    }
    if (npu__ref_gemm_is_vector(g)) {
        return (uint32_t)npu__ref_min(npu__ref_gemm_wanted_parts(g),
                                      npu__ref_ceil_div(g->m * g->n, NPU__REF_GEMM_VECTOR));
    }
    plan = npu__ref_gemm_plan(g);
    return plan.row_parts * plan.col_parts;
}

/* Bytes of workspace for one part; the caller gives `parts` times as many. Set packed_b first. */
static size_t npu__ref_gemm_workspace(const npu__ref_product *g)
{
    npu__ref_product_plan plan;
    if (g->m == 0 || g->n == 0 || npu__ref_gemm_is_naive(g) || npu__ref_gemm_is_vector(g)) {
        return 0;
    }
    plan = npu__ref_gemm_plan(g);
    return (plan.a_bytes + plan.b_bytes + plan.c_bytes + 63) / 64 * 64;
}

/* to[column + row * to_row] = from[row + column * from_row]: 4 x 4 at a time, which fits the registers of any
   machine. */
static void npu__ref_transpose_f32(float *to, int64_t to_row, const float *from, int64_t from_row,
                                   int64_t rows, int64_t cols)
{
    int64_t i = 0, j = 0;
#if defined(__GNUC__) && defined(__x86_64__)
    for (; j + 4 <= cols; j += 4) {
        const float *p = from + j * from_row;
        for (i = 0; i + 4 <= rows; i += 4) {
            __m128 a = _mm_loadu_ps(p + i), b = _mm_loadu_ps(p + i + from_row);
            __m128 c = _mm_loadu_ps(p + i + 2 * from_row), d = _mm_loadu_ps(p + i + 3 * from_row);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(to + i * to_row + j, a);
            _mm_storeu_ps(to + (i + 1) * to_row + j, b);
            _mm_storeu_ps(to + (i + 2) * to_row + j, c);
            _mm_storeu_ps(to + (i + 3) * to_row + j, d);
        }
        for (; i < rows; i++) {
            for (int64_t more = 0; more < 4; more++) {
                to[i * to_row + j + more] = p[i + more * from_row];
            }
        }
    }
#endif
    for (; j < cols; j++) {
        for (i = 0; i < rows; i++) {
            to[i * to_row + j] = from[i + j * from_row];
        }
    }
}

/* Columns first .. first + cols of B, whose columns are what lies side by side, as a panel. */
static void npu__ref_gemm_pack_columns(const npu__ref_product *g, int64_t first, int64_t cols, int64_t width,
                                       void *to)
{
    const npu__ref_matrix_view *b = &g->b;
    float strips[4 * NPU__STRIP];
    double strip[NPU__STRIP];
    bool single = npu__ref_compute_class(b->dtype) == NPU__F32;
    if (b->dtype == NPU_F32 && b->row == 1) {
        npu__ref_transpose_f32(to, width, (const float *)b->x + first * b->col, b->col, g->k, cols);
        return;
    }
    for (int64_t k = 0; k < g->k; k += NPU__STRIP) {
        int64_t n = npu__ref_min(NPU__STRIP, g->k - k);
        for (int64_t j = 0; j < cols; j += single ? 4 : 1) {
            int64_t some = single ? npu__ref_min(4, cols - j) : 1, at = k * b->row + (first + j) * b->col;
            for (int64_t i = 0; single && i < some; i++) {
                npu__ref_load_numbers(g->isa, strips + i * NPU__STRIP, b->x, b->dtype, at + i * b->col, b->row,
                                      (size_t)n);
            }
            if (single) {
                npu__ref_transpose_f32((float *)to + k * width + j, width, strips, NPU__STRIP, n, some);
                continue;
            }
            npu__ref_load_f64(strip, b->x, b->dtype, at, b->row, (size_t)n);
            for (int64_t i = 0; i < n; i++) {
                ((double *)to)[(k + i) * width + j] = strip[i];
            }
        }
    }
}

/* Columns first .. first + cols of B as a panel: to[k * width + column]. */
static void npu__ref_gemm_pack_panel(const npu__ref_product *g, int64_t first, int64_t cols, int64_t width, void *to)
{
    size_t size = npu__ref_sum_size(g->a.dtype);
    bool direct = g->b.dtype == npu__ref_sum_dtype(g->b.dtype);
    if (cols < width && g->k > 0) {
        memset(to, 0, (size_t)(g->k * width) * size);
    }
    if (g->b.col != 1) {
        npu__ref_gemm_pack_columns(g, first, cols, width, to);
        return;
    }
    if (direct && cols == width) {
        npu__ref_tile(g)->copy(g->k, (const char *)g->b.x + first * (int64_t)size, g->b.row, to);
        return;
    }
    for (int64_t k = 0; k < g->k; k++) {
        char *row = (char *)to + (size_t)(k * width) * size;
        npu__ref_load_numbers(g->isa, row, g->b.x, g->b.dtype, k * g->b.row + first, 1, (size_t)cols);
    }
}

/* Panels first .. end of B, all rows of it, at `to`. */
static void npu__ref_gemm_pack_panels(const npu__ref_product *g, int64_t width, int64_t first, int64_t end, char *to)
{
    size_t bytes = (size_t)(g->k * width) * npu__ref_sum_size(g->a.dtype);
    for (int64_t i = first; i < end; i++, to += bytes) {
        npu__ref_gemm_pack_panel(g, i * width, npu__ref_min(width, g->n - i * width), width, to);
    }
}

/* In prepare, for a B that is constant (b.x set): packs it into memory of the program where that pays and
   sets packed_b. Errors: NO_MEMORY, OVERFLOW. */
static npu_status npu__ref_gemm_pack(npu_prepare *p, npu__ref_product *g)
{
    const npu__ref_tile_loops *tile = npu__ref_tile(g);
    int64_t panels = npu__ref_ceil_div(g->n, tile->cols);
    size_t bytes, size = npu__ref_sum_size(g->a.dtype) * (size_t)tile->cols;
    char *packed;
    g->packed_b = NULL;
    if (npu__ref_gemm_is_naive(g) || npu__ref_gemm_is_vector(g) || g->m == 0 || g->n == 0) {
        return NPU_OK;
    }
    if (!npu_size_mul(size, (size_t)g->k, &bytes) || !npu_size_mul(bytes, (size_t)panels, &bytes)) {
        return NPU_ERR_OVERFLOW;
    }
    packed = npu_prepare_alloc(p, bytes);
    if (!packed) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_gemm_pack_panels(g, tile->cols, 0, panels, packed);
    g->packed_b = packed;
    return NPU_OK;
}

/* A sum over k in blocks: where B lies and the memory for a copy of A. From row k on, row i of panel j of B
   starts at b + j * panel_step + k * k_step + offsets[k * offsets_step + i], all in numbers. The last panel
   is read to its full width. */
typedef struct npu__ref_product_sum {
    const npu__ref_product *g;
    const npu__ref_product_plan *plan;
    const char *b;
    const int64_t *offsets;
    int64_t panel_step, k_step, offsets_step;
    char *a;
} npu__ref_product_sum;

/* One tile; a panel that is cut off by the right edge of C goes by way of a buffer. */
static void npu__ref_gemm_tile(const npu__ref_product_plan *plan, int32_t rows, int64_t cols, int64_t k,
                               const char *a, int64_t a_row, const char *b, const int64_t *offsets, char *c,
                               int64_t c_row, bool add)
{
    union { double f64[12 * 16]; float f32[12 * 32]; } edge; /* the largest tile of any instruction set */
    size_t bytes = (size_t)cols * plan->size, width = (size_t)plan->tile->cols * plan->size;
    if (cols == plan->tile->cols) {
        plan->tile->product(rows, k, a, a_row, b, offsets, c, c_row, add);
        return;
    }
    memset(&edge, 0, sizeof edge);
    for (int32_t i = 0; add && i < rows; i++) {
        memcpy((char *)&edge + (size_t)i * width, c + i * c_row * (int64_t)plan->size, bytes);
    }
    plan->tile->product(rows, k, a, a_row, b, offsets, &edge, plan->tile->cols, add);
    for (int32_t i = 0; i < rows; i++) {
        memcpy(c + i * c_row * (int64_t)plan->size, (char *)&edge + (size_t)i * width, bytes);
    }
}

/* Rows row .. row + rows and k .. k + depth of A as numbers; the result is A itself where it can be used as
   it is. */
static const char *npu__ref_gemm_copy_a(const npu__ref_product_sum *s, int64_t row, int64_t rows, int64_t k,
                                        int64_t depth, int64_t *stride)
{
    const npu__ref_matrix_view *a = &s->g->a;
    size_t size = s->plan->size;
    if (s->plan->a_bytes == 0) {
        *stride = a->row;
        return (const char *)a->x + (row * a->row + k) * (int64_t)size;
    }
    *stride = s->plan->block_k + (int64_t)(64 / size);
    for (int64_t i = 0; i < rows; i++) {
        npu__ref_load_numbers(s->g->isa, s->a + (size_t)(i * *stride) * size, a->x, a->dtype,
                              (row + i) * a->row + k * a->col, a->col, (size_t)depth);
    }
    return s->a;
}

/* c = or += rows of A from row on, times cols columns of B, over k .. k + depth. */
static void npu__ref_gemm_sum_slice(const npu__ref_product_sum *s, int64_t row, int64_t rows, int64_t cols,
                                    int64_t k, int64_t depth, char *c, int64_t c_row)
{
    const npu__ref_tile_loops *tile = s->plan->tile;
    const int64_t *offsets = s->offsets + k * s->offsets_step;
    int64_t width = tile->cols, size = (int64_t)s->plan->size, tiles = npu__ref_ceil_div(rows, tile->rows),
            a_row;
    const char *a = npu__ref_gemm_copy_a(s, row, rows, k, depth, &a_row), *b = s->b + k * s->k_step * size;
    npu__ref_scalar zero = { 0 };
    if (rows == 1 && s->panel_step == width) { /* B is not packed: one strip, as long as it may be */
        tile->row(depth, cols, a, b, offsets, c, k > 0, &zero);
        return;
    }
    for (int64_t j = 0; j < cols; j += width, b += s->panel_step * size) {
        for (int64_t t = 0; t < tiles; t++) {
            int64_t from = rows * t / tiles, to = rows * (t + 1) / tiles;
            npu__ref_gemm_tile(s->plan, (int32_t)(to - from), npu__ref_min(width, cols - j), depth,
                               a + from * a_row * size, a_row, b, offsets, c + (from * c_row + j) * size,
                               c_row, k > 0);
        }
    }
}

/* The same over all k. */
static void npu__ref_gemm_sum(const npu__ref_product_sum *s, int64_t row, int64_t rows, int64_t cols, char *c,
                              int64_t c_row)
{
    int64_t k = 0, depth;
    do {
        depth = npu__ref_min(s->plan->block_k, s->g->k - k);
        npu__ref_gemm_sum_slice(s, row, rows, cols, k, depth, c, c_row);
        k += depth;
    } while (k < s->g->k);
}

/* Where the sums of rows from `row` and columns from `col` on are taken: in C if it can hold them. */
static char *npu__ref_gemm_sums(const npu__ref_product *g, int64_t row, int64_t col, int64_t cols, char *sums,
                                int64_t *c_row)
{
    *c_row = cols;
    if (!npu__ref_gemm_in_place(g)) {
        return sums;
    }
    *c_row = g->c_row;
    return (char *)g->c + (row * g->c_row + col) * (int64_t)npu__ref_size(g->c_dtype);
}

/* Rows of C from `row` and columns from `col` on. */
static void npu__ref_gemm_block(const npu__ref_product_sum *s, int64_t row, int64_t rows, int64_t col, int64_t cols,
                                char *sums)
{
    int64_t c_row;
    char *c = npu__ref_gemm_sums(s->g, row, col, cols, sums, &c_row);
    npu__ref_gemm_sum(s, row, rows, cols, c, c_row);
    for (int64_t i = 0; i < rows; i++) {
        npu__ref_gemm_finish(s->g, row + i, col, c + i * c_row * (int64_t)s->plan->size, cols);
    }
}

/* The same for a B that is packed on the way, a slice of k at a time, for all rows of the part. */
static void npu__ref_gemm_block_packing(npu__ref_product_sum *s, int64_t first, int64_t end, int64_t col,
                                        int64_t cols, char *packed, char *sums)
{
    int64_t width = s->plan->tile->cols, size = (int64_t)s->plan->size, k = 0, c_row;
    char *c = npu__ref_gemm_sums(s->g, first, col, cols, sums, &c_row);
    npu__ref_product slice = *s->g;
    s->b = packed;
    do {
        slice.k = npu__ref_min(s->plan->block_k, s->g->k - k);
        slice.b.x = npu__ref_address(s->g->b.x, slice.b.dtype, k * slice.b.row);
        npu__ref_gemm_pack_panels(&slice, width, col / width, npu__ref_ceil_div(col + cols, width), packed);
        s->panel_step = slice.k * width, s->k_step = 0;
        for (int64_t row = first; row < end; row += s->plan->block_rows) {
            npu__ref_gemm_sum_slice(s, row, npu__ref_min(s->plan->block_rows, end - row), cols, k, slice.k,
                                    c + (row - first) * c_row * size, c_row);
        }
        k += slice.k;
    } while (k < s->g->k);
    for (int64_t i = first; i < end; i++) {
        npu__ref_gemm_finish(s->g, i, col, c + (i - first) * c_row * size, cols);
    }
}

/* B is read where it lies if that is numbers side by side that too few rows of C are summed from for packing
   to pay. */
static bool npu__ref_gemm_b_is_direct(const npu__ref_product *g, const npu__ref_product_plan *plan, int64_t rows)
{
    return !g->packed_b && g->b.dtype == npu__ref_sum_dtype(g->b.dtype) && g->b.col == 1 &&
           rows <= NPU__REF_GEMM_DIRECT * plan->tile->rows;
}

/* Rows first_row .. end_row, columns from col on, with B packed before or read where it lies. */
static void npu__ref_gemm_rows(npu__ref_product_sum *s, int64_t first_row, int64_t end_row, int64_t col,
                               int64_t cols, char *sums)
{
    const npu__ref_product *g = s->g;
    int64_t width = s->plan->tile->cols, size = (int64_t)s->plan->size;
    s->panel_step = g->k * width, s->k_step = width;
    if (g->packed_b) {
        s->b = (const char *)g->packed_b + col * g->k * size;
    } else {
        s->panel_step = width, s->k_step = g->b.row;
        s->b = (const char *)g->b.x + col * size;
    }
    for (int64_t row = first_row; row < end_row; row += s->plan->block_rows) {
        npu__ref_gemm_block(s, row, npu__ref_min(s->plan->block_rows, end_row - row), col, cols, sums);
    }
}

/* Rows first_row .. end_row and panels first .. end of C. A panel that is cut off by the right edge is packed
   in any case, since it is read to its full width. */
static void npu__ref_gemm_region(const npu__ref_product *g, const npu__ref_product_plan *plan, int64_t first_row,
                                 int64_t end_row, int64_t first, int64_t end, char *workspace)
{
    int64_t offsets[NPU__REF_GEMM_K], width = plan->tile->cols, panels;
    char *packed = workspace + plan->a_bytes, *sums = packed + plan->b_bytes;
    bool direct = npu__ref_gemm_b_is_direct(g, plan, end_row - first_row);
    npu__ref_product_sum s = { 0 };
    s.g = g, s.plan = plan, s.offsets = offsets, s.a = workspace;
    for (; first < end; first += panels) {
        int64_t col = first * width, cols;
        bool whole = direct && col + width <= g->n;
        panels =
            npu__ref_min(plan->block_panels, whole ? npu__ref_min(end, g->n / width) - first : end - first);
        cols = npu__ref_min(panels * width, g->n - col);
        for (int64_t i = 0; i < plan->block_k; i++) {
            offsets[i] = i * (whole ? g->b.row : width);
        }
        if (whole || g->packed_b) {
            npu__ref_gemm_rows(&s, first_row, end_row, col, cols, sums);
        } else {
            npu__ref_gemm_block_packing(&s, first_row, end_row, col, cols, packed, sums);
        }
    }
}

static void npu__ref_gemm_blocked(const npu__ref_product *g, uint32_t part, uint32_t parts)
{
    npu__ref_product_plan plan = npu__ref_gemm_plan(g);
    uint32_t all = plan.row_parts * plan.col_parts;
    char *workspace = (char *)g->workspace + part * npu__ref_gemm_workspace(g);
    for (uint32_t i = parts == 1 ? 0 : part; i < (parts == 1 ? all : part + 1); i++) {
        int64_t row = i / plan.col_parts, col = i % plan.col_parts;
        npu__ref_gemm_region(g, &plan, g->m * row / plan.row_parts, g->m * (row + 1) / plan.row_parts,
                             plan.panels * col / plan.col_parts, plan.panels * (col + 1) / plan.col_parts,
                             workspace);
    }
}

/* ---- matrix product: vector times matrix ---- */

/* Eight columns of B, strided by k at will, times the row A. */
static void npu__ref_gemv_dots(const npu__ref_product *g, const npu__ref_tile_loops *tile, int64_t col, int32_t count,
                               void *sums)
{
    npu__ref_scalars x, b[4]; /* eight strips of floats or four of doubles */
    size_t size = npu__ref_sum_size(g->a.dtype);
    bool direct = g->b.dtype == npu__ref_sum_dtype(g->b.dtype) && g->b.row == 1;
    int32_t group = direct || size == sizeof(float) ? 8 : 4;
    for (int64_t k = 0; k < g->k; k += NPU__STRIP) {
        size_t n = g->k - k < NPU__STRIP ? (size_t)(g->k - k) : NPU__STRIP;
        npu__ref_load_numbers(g->isa, &x, g->a.x, g->a.dtype, k * g->a.col, g->a.col, n);
        for (int32_t j = 0; j < count; j += group) {
            int32_t some = count - j < group ? count - j : group;
            const void *from = (const char *)g->b.x + (k + (col + j) * g->b.col) * (int64_t)size;
            for (int32_t i = 0; !direct && i < some; i++) {
                npu__ref_load_numbers(g->isa, (char *)b + (size_t)i * NPU__STRIP * size, g->b.x, g->b.dtype,
                                     k * g->b.row + (col + j + i) * g->b.col, g->b.row, n);
            }
            tile->dots(some, (int64_t)n, &x, direct ? from : b, direct ? g->b.col : NPU__STRIP,
                       (char *)sums + (size_t)j * size);
        }
    }
}

/* Columns of B that lie side by side: rows of B are added up. */
static void npu__ref_gemv_rows(const npu__ref_product *g, const npu__ref_tile_loops *tile, int64_t col, int64_t cols,
                               void *sums)
{
    union { double f64[4]; float f32[4]; } x;
    npu__ref_scalars b;
    size_t size = npu__ref_sum_size(g->a.dtype);
    bool direct = g->b.dtype == npu__ref_sum_dtype(g->b.dtype);
    for (int64_t k = 0; k < g->k; k += direct ? 4 : 1) {
        int64_t rows = direct ? npu__ref_min(4, g->k - k) : 1;
        npu__ref_load_numbers(g->isa, &x, g->a.x, g->a.dtype, k * g->a.col, g->a.col, (size_t)rows);
        if (direct) {
            tile->add_rows((int32_t)rows, cols, &x,
                           (const char *)g->b.x + (k * g->b.row + col) * (int64_t)size, g->b.row, sums);
        }
        for (int64_t j = 0; !direct && j < cols; j += NPU__STRIP) {
            int64_t n = npu__ref_min(NPU__STRIP, cols - j);
            npu__ref_load_numbers(g->isa, &b, g->b.x, g->b.dtype, k * g->b.row + col + j, 1, (size_t)n);
            tile->add_rows(1, n, &x, &b, 0, (char *)sums + (size_t)j * size);
        }
    }
}

static void npu__ref_gemv(const npu__ref_product *g, uint32_t part, uint32_t parts)
{
    union { double f64[NPU__REF_GEMM_VECTOR]; float f32[NPU__REF_GEMM_VECTOR]; } sums;
    const npu__ref_tile_loops *tile = npu__ref_tile(g);
    size_t size = npu__ref_sum_size(g->a.dtype), first, end;
    npu__ref_split((size_t)g->n, part, parts, &first, &end);
    for (int64_t col = (int64_t)first; col < (int64_t)end; col += NPU__REF_GEMM_VECTOR) {
        int64_t cols = npu__ref_min(NPU__REF_GEMM_VECTOR, (int64_t)end - col);
        memset(&sums, 0, (size_t)cols * size);
        if (g->b.col == 1 && g->b.row != 1) {
            npu__ref_gemv_rows(g, tile, col, cols, &sums);
        }
        for (int64_t j = 0; (g->b.col != 1 || g->b.row == 1) && j < cols; j += 8) {
            npu__ref_gemv_dots(g, tile, col + j, (int32_t)npu__ref_min(8, cols - j),
                               (char *)&sums + (size_t)j * size);
        }
        npu__ref_gemm_finish(g, 0, col, &sums, cols);
    }
}

static npu__ref_matrix_view npu__ref_transposed(npu__ref_matrix_view a)
{
    int64_t row = a.row;
    a.row = a.col, a.col = row;
    return a;
}

/* C' = B' A' */
static npu__ref_product npu__ref_gemm_transposed(const npu__ref_product *g)
{
    npu__ref_product t = *g;
    t.m = g->n, t.n = g->m;
    t.a = npu__ref_transposed(g->b), t.b = npu__ref_transposed(g->a);
    t.c0 = npu__ref_transposed(g->c0), t.bias = npu__ref_transposed(g->bias);
    t.c_row = g->c_col, t.c_col = g->c_row;
    return t;
}

/* Part `part` of `parts`; parts must be npu__ref_gemm_parts(g), or 1. */
static void npu__ref_gemm(const npu__ref_product *g, uint32_t part, uint32_t parts)
{
    if (g->m == 0 || g->n == 0) {
        return;
    }
    if (npu__ref_gemm_is_naive(g)) {
        npu__ref_gemm_naive(g, part, parts);
    } else if (!npu__ref_gemm_is_vector(g)) {
        npu__ref_gemm_blocked(g, part, parts);
    } else if (g->m == 1) {
        npu__ref_gemv(g, part, parts);
    } else {
        npu__ref_product t = npu__ref_gemm_transposed(g);
        npu__ref_gemv(&t, part, parts);
    }
}

/* ---- matrix ops ---- */

/* Batch dims of an operand that broadcast to those of the result: element i of the batch starts at the sum
   over dims of index / share * step. share is over 1 where several result indices read one (heads of
   attention). */
typedef struct npu__ref_batches {
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK], step[NPU_MAX_RANK], share[NPU_MAX_RANK];
} npu__ref_batches;

/* `inner` dims at the end of the operand t, and `out_inner` of the result, are not batch dims. */
static npu__ref_batches npu__ref_batch(const npu_tensor *out, uint32_t out_inner, const npu_tensor *t,
                                 uint32_t inner)
{
    npu__ref_batches b = { 0 };
    int64_t step = 1;
    b.rank = out->rank - out_inner;
    for (uint32_t i = t->rank; i-- > 0; step *= t->dims[i]) {
        uint32_t from_end = t->rank - i, at = b.rank + inner - from_end;
        if (from_end > inner && t->dims[i] != 1) {
            b.step[at] = step;
        }
    }
    for (uint32_t i = 0; i < b.rank; i++) {
        b.dims[i] = out->dims[i];
        b.share[i] = 1;
    }
    return b;
}

static int64_t npu__ref_batch_len(const npu__ref_batches *b)
{
    int64_t len = 1;
    for (uint32_t i = 0; i < b->rank; i++) {
        len *= b->dims[i];
    }
    return len;
}

static int64_t npu__ref_batch_start(const npu__ref_batches *b, int64_t item)
{
    int64_t start = 0;
    for (uint32_t i = b->rank; i-- > 0; item /= b->dims[i]) {
        start += item % b->dims[i] / b->share[i] * b->step[i];
    }
    return start;
}

/* What all matrix ops come to: a batch of products. */
typedef struct npu__ref_matmul {
    npu__ref_product gemm;
    npu__ref_batches a, b, c0;
    uint32_t a_index, b_index, c0_index, bias_index; /* operands; NPU_NO_INDEX = none */
    int64_t batch;
    uint32_t gemm_parts; /* of one product; more than 1 only where every part of the op is one of them */
    size_t part_bytes;   /* of workspace */
} npu__ref_matmul;

static npu__ref_matrix_view npu__ref_matrix(const npu_tensor *t, int64_t row, int64_t col)
{
    npu__ref_matrix_view m = { 0 };
    m.dtype = t->dtype;
    m.row = row, m.col = col;
    return m;
}

/* An operand that broadcasts to the result, but for its batch. */
static npu__ref_matrix_view npu__ref_addend(const npu_tensor *t)
{
    int64_t cols = t->rank > 0 ? t->dims[t->rank - 1] : 1, rows = t->rank > 1 ? t->dims[t->rank - 2] : 1;
    return npu__ref_matrix(t, rows == 1 ? 0 : cols, cols == 1 ? 0 : 1);
}

static int64_t npu__ref_last_dim(const npu_tensor *t) { return t->rank > 0 ? t->dims[t->rank - 1] : 1; }

/* Rows of an operand whose leading dims are all rows. */
static int64_t npu__ref_leading(const npu_tensor *t)
{
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < t->rank; i++) {
        rows *= t->dims[i];
    }
    return rows;
}

/* a [..., k], weight [n, k] or [k] */
static void npu__ref_linear_shape(const npu_prepare *p, npu__ref_matmul *s)
{
    npu__ref_product *g = &s->gemm;
    g->m = npu__ref_leading(&p->in[0]);
    g->k = npu__ref_last_dim(&p->in[0]);
    g->n = p->in[1].rank > 1 ? p->in[1].dims[0] : 1;
    g->a = npu__ref_matrix(&p->in[0], g->k, 1);
    g->b = npu__ref_matrix(&p->in[1], 1, g->k);
    if (p->op->num_in > 2 && p->in[2].dtype) {
        s->bias_index = 2;
        g->bias = npu__ref_addend(&p->in[2]);
    }
}

/* The last two dims of an operand as rows and columns, or the other way round; a vector is one row. */
static npu__ref_matrix_view npu__ref_last_matrix(const npu_tensor *t, bool transposed, int64_t *rows, int64_t *cols)
{
    npu__ref_matrix_view m = npu__ref_matrix(t, npu__ref_last_dim(t), 1);
    *rows = t->rank > 1 ? t->dims[t->rank - 2] : 1;
    *cols = npu__ref_last_dim(t);
    if (transposed) {
        int64_t n = *rows;
        *rows = *cols, *cols = n;
        m = npu__ref_transposed(m);
    }
    return m;
}

/* a [..., m, k] or [k], b [..., k, n] or [k]; tensor.matmul may take either transposed. Where b is one matrix, the
   batch of a is more rows. */
static void npu__ref_matmul_shape(const npu_prepare *p, npu__ref_matmul *s)
{
    const npu_tensor *a = &p->in[s->a_index], *b = &p->in[s->b_index], *out = &p->out[0];
    npu__ref_product *g = &s->gemm;
    uint32_t a_inner = a->rank > 1 ? 2 : 1, b_inner = b->rank > 1 ? 2 : 1, out_inner = a_inner + b_inner - 2;
    bool a_trans = a_inner == 2 && npu_op_int(p->op, "a_trans", 0), b_trans = npu_op_int(p->op, "b_trans", 0) != 0;
    g->a = npu__ref_last_matrix(a, a_trans, &g->m, &g->k);
    g->b = npu__ref_last_matrix(b, b_inner == 2 ? b_trans : true, &g->k, &g->n);
    if (b->rank <= 2 && a_inner == 2 && !a_trans) {
        g->m = npu__ref_leading(a);
        return;
    }
    s->a = npu__ref_batch(out, out_inner, a, a_inner);
    s->b = npu__ref_batch(out, out_inner, b, b_inner);
    s->batch = npu__ref_batch_len(&s->a);
}

static void npu__ref_addmm_shape(const npu_prepare *p, npu__ref_matmul *s)
{
    s->a_index = 1, s->b_index = 2, s->c0_index = 0;
    npu__ref_matmul_shape(p, s);
    s->gemm.c0 = npu__ref_addend(&p->in[0]);
    if (p->op->kind == NPU_ATEN_ADDMV) { /* self is a column */
        s->gemm.c0 = npu__ref_matrix(&p->in[0], npu__ref_last_dim(&p->in[0]) != 1, 0);
    } else {
        s->c0 = npu__ref_batch(&p->out[0], 2, &p->in[0], 2);
    }
    s->gemm.alpha = npu_scalar_value(npu_op_scalar(p->op, "alpha", npu_scalar_int(1)));
    s->gemm.beta = npu_scalar_value(npu_op_scalar(p->op, "beta", npu_scalar_int(1)));
}

/* outs + the product: the third operand lies as the result does. */
static void npu__ref_loop_matmul_shape(const npu_prepare *p, npu__ref_matmul *s)
{
    npu__ref_product *g = &s->gemm;
    if (p->op->kind == NPU_LINALG_MATMUL_TRANSPOSE_B) {
        g->m = p->in[0].dims[0], g->k = p->in[0].dims[1], g->n = p->in[1].dims[0];
        g->a = npu__ref_matrix(&p->in[0], g->k, 1);
        g->b = npu__ref_matrix(&p->in[1], 1, g->k);
    } else {
        npu__ref_matmul_shape(p, s);
    }
    s->c0_index = 2;
    g->c0 = npu__ref_matrix(&p->in[2], g->n, 1);
    g->beta = 1;
    g->onto = true;
    if (s->batch != 1) {
        s->c0 = npu__ref_batch(&p->out[0], 2, &p->in[2], 2);
    }
}

/* Parts: each product cut, or, where there are many, several products in one part. */
static npu_status npu__ref_matmul_parts(npu_prepare *p, npu__ref_matmul *s)
{
    double work =
        (double)s->gemm.m * (double)s->gemm.n * (double)npu__ref_max(s->gemm.k, 1) * (double)s->batch;
    int64_t wanted = work / NPU__REF_GEMM_GRAIN > 64 ? 64 : (int64_t)(work / NPU__REF_GEMM_GRAIN);
    s->gemm_parts = npu__ref_gemm_parts(&s->gemm);
    if (s->batch * s->gemm_parts > 64) {
        s->gemm_parts = 1;
    }
    p->parts = (uint32_t)npu__ref_max(1, s->gemm_parts > 1 ? s->batch * s->gemm_parts
                                                           : npu__ref_min(s->batch, wanted));
    s->part_bytes = npu__ref_gemm_workspace(&s->gemm);
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

static npu_status npu__ref_matmul_state(npu_prepare *p, bool plain)
{
    npu__ref_matmul *s = npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->b_index = 1, s->c0_index = s->bias_index = NPU_NO_INDEX, s->batch = 1;
    s->gemm.plain = plain;
    s->gemm.alpha = 1;
    s->gemm.isa = p->isa;
    switch (p->op->kind) {
    case NPU_ATEN_LINEAR: npu__ref_linear_shape(p, s); break;
    case NPU_ATEN_ADDMM: case NPU_ATEN_BADDBMM: case NPU_ATEN_ADDMV: npu__ref_addmm_shape(p, s); break;
    case NPU_LINALG_MATMUL: case NPU_LINALG_MATMUL_TRANSPOSE_B: case NPU_LINALG_BATCH_MATMUL:
        npu__ref_loop_matmul_shape(p, s);
        break;
    default: npu__ref_matmul_shape(p, s); break;
    }
    s->gemm.c_dtype = p->out[0].dtype;
    s->gemm.c_row = s->gemm.n, s->gemm.c_col = 1;
    s->gemm.b.x = p->op->in_data ? p->op->in_data[s->b_index] : NULL;
    if (s->gemm.b.x && s->batch == 1) {
        npu_status status = npu__ref_gemm_pack(p, &s->gemm);
        if (status) {
            return status;
        }
    }
    return npu__ref_matmul_parts(p, s);
}

static npu_status npu__ref_matmul_prepare(npu_prepare *p) { return npu__ref_matmul_state(p, false); }
static npu_status npu__ref_matmul_prepare_plain(npu_prepare *p) { return npu__ref_matmul_state(p, true); }

static npu_status npu__ref_matmul_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_matmul *s = l->state;
    npu__ref_product g = s->gemm;
    int64_t items = s->batch * s->gemm_parts, end = items * (part + 1) / parts;
    g.bias.x = s->bias_index == NPU_NO_INDEX ? NULL : l->x[s->bias_index];
    for (int64_t i = items * part / parts; i < end; i++) {
        int64_t item = i / s->gemm_parts;
        uint32_t piece = (uint32_t)(i % s->gemm_parts);
        g.a.x = npu__ref_address(l->x[s->a_index], g.a.dtype, npu__ref_batch_start(&s->a, item));
        g.b.x = npu__ref_address(l->x[s->b_index], g.b.dtype, npu__ref_batch_start(&s->b, item));
        if (s->c0_index != NPU_NO_INDEX) {
            g.c0.x = npu__ref_address(l->x[s->c0_index], g.c0.dtype, npu__ref_batch_start(&s->c0, item));
        }
        g.c = (char *)l->y[0] + (size_t)(item * g.m * g.n) * npu__ref_size(g.c_dtype);
        g.workspace = (char *)l->workspace + (part - piece) * s->part_bytes;
        npu__ref_gemm(&g, piece, s->gemm_parts);
    }
    return NPU_OK;
}

/* The blocked product is for floats. */
static bool npu__ref_is_float_op(const npu_op_info *op)
{
    return npu__ref_compute_class(op->in[0]->dtype) != NPU__I64;
}

#define NPU__REF_MATMUL_ROWS(kind)                                                                      \
    NPU__REF_ROW(kind, "packed", 10, npu__ref_is_float_op, npu__ref_matmul_prepare, npu__ref_matmul_launch),  \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_matmul_prepare_plain, npu__ref_matmul_launch)

static const npu_kernel npu__ref_kernels_matrix[] = {
    NPU__REF_MATMUL_ROWS(NPU_ATEN_LINEAR), NPU__REF_MATMUL_ROWS(NPU_ATEN_MM), NPU__REF_MATMUL_ROWS(NPU_ATEN_BMM),
    NPU__REF_MATMUL_ROWS(NPU_ATEN_MATMUL), NPU__REF_MATMUL_ROWS(NPU_ATEN_ADDMM), NPU__REF_MATMUL_ROWS(NPU_ATEN_BADDBMM),
    NPU__REF_MATMUL_ROWS(NPU_ATEN_MV), NPU__REF_MATMUL_ROWS(NPU_ATEN_DOT), NPU__REF_MATMUL_ROWS(NPU_ATEN_VDOT),
    NPU__REF_MATMUL_ROWS(NPU_ATEN_ADDMV)
};

/* ---- tensor.cast ---- */

/* A whole number by the rounding modes of the operator document: 1 rint, 2 round, 3 floor, 4 ceil, 5 trunc, 6 odd. */
static double npu__ref_round_mode(double x, int64_t mode)
{
    double whole = trunc(x);
    switch (mode) {
    case 1: return nearbyint(x);
    case 2: return round(x);
    case 3: return floor(x);
    case 4: return ceil(x);
    case 6: return whole == x || fmod(whole, 2.0) != 0.0 ? whole : whole + copysign(1.0, x);
    default: return whole;
    }
}

/* x rounded to `digits` binary digits, with steps that are never finer than 2^lowest. */
static double npu__ref_round_digits(double x, int digits, int lowest, int64_t mode)
{
    int exponent;
    if (x == 0.0 || !isfinite(x)) {
        return x;
    }
    frexp(x, &exponent);
    exponent = exponent - digits < lowest ? lowest : exponent - digits;
    return ldexp(npu__ref_round_mode(ldexp(x, -exponent), mode), exponent);
}

static double npu__ref_cast_mode(double x, uint32_t dtype, int64_t mode)
{
    switch (dtype) {
    case NPU_F64: return x;
    case NPU_F32: return npu__ref_round_digits(x, 24, -149, mode);
    case NPU_F16: return npu__ref_round_digits(x, 11, -24, mode);
    case NPU_BF16: return npu__ref_round_digits(x, 8, -133, mode);
    case NPU_BOOL: return x;
    default: return npu__ref_round_mode(x, mode);
    }
}

static npu_status npu__ref_cast_prepare(npu_prepare *p)
{
    int64_t *mode = (int64_t *)npu_prepare_alloc(p, sizeof *mode);
    if (!mode) {
        return NPU_ERR_NO_MEMORY;
    }
    *mode = npu_op_int(p->op, "mode", 0);
    p->state = mode;
    p->parts = npu__ref_parts((size_t)npu__ref_len(&p->out[0]), NPU__REF_GRAIN);
    return NPU_OK;
}

/* Integers stay integers; all else goes through double, which holds every float exactly. */
static npu_status npu__ref_cast_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const uint32_t from = l->in[0].dtype, to = l->out[0].dtype;
    const int64_t mode = *(const int64_t *)l->state;
    const int both = npu__ref_compute_class(from) == NPU__I64 && npu__ref_compute_class(to) == NPU__I64;
    const int cls = both ? NPU__I64 : NPU__F64;
    npu__ref_strip strip;
    size_t begin, end;
    npu__ref_share((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i += NPU__STRIP) {
        size_t n = end - i < NPU__STRIP ? end - i : NPU__STRIP;
        npu__ref_load_class(cls, &strip, l->x[0], from, (int64_t)i, 1, n);
        for (size_t k = 0; k < n && mode && !both; k++) {
            strip.f64[k] = npu__ref_cast_mode(strip.f64[k], to, mode);
        }
        npu__ref_store_class(cls, l->y[0], to, (int64_t)i, 1, &strip, n);
    }
    return NPU_OK;
}

static const npu_kernel npu__ref_kernels_tensor[] = {
    NPU__REF_TENSOR(NPU__REF_MAP_KERNEL)
    NPU__REF_MATMUL_ROWS(NPU_TENSOR_MATMUL),
    NPU__REF_ROW(NPU_TENSOR_CAST, "plain", 0, NULL, npu__ref_cast_prepare, npu__ref_cast_launch),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_RESHAPE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_TRANSPOSE, npu__ref_copy_prepare)
};

/* ---- convolution ---- */

/* A convolution as one in three dims: leading ones where it has fewer. */
typedef struct npu__ref_conv_shape {
    int64_t images, groups, in_channels, out_channels; /* channels of one group */
    int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    bool transposed;
    uint32_t dtype;
    const npu_tensor *bias; /* NULL = none */
    bool onto;              /* sums are added to operand 2, which lies as the result does and may be it */
    uint32_t isa;           /* of the loops */
} npu__ref_conv_shape;

/* Spatial dims at the end of a tensor, the last one at [2]. */
static void npu__ref_conv_dims(int64_t *to, const npu_tensor *t, uint32_t dims)
{
    for (uint32_t i = 0; i < 3; i++) {
        to[i] = i + dims < 3 ? 1 : t->dims[t->rank - 3 + i];
    }
}

static void npu__ref_conv_attribute(int64_t *to, const npu_op_info *op, const char *name, uint32_t dims,
                                    int64_t fallback)
{
    int64_t list[3] = { 0 };
    list[0] = list[1] = list[2] = fallback;
    npu_op_ints(op, name, list, dims);
    for (uint32_t i = 0; i < 3; i++) {
        to[i] = i + dims < 3 ? fallback : list[i + dims - 3];
    }
}

/* 'same' pads the right by one more where it cannot be even. */
static void npu__ref_conv_pad(npu__ref_conv_shape *c, const npu_op_info *op, uint32_t dims)
{
    bool words = npu_op_arg(op, "padding")->form == NPU_ARG_STR;
    bool same = words && npu_op_str_is(op, "padding", "same");
    if (!words) {
        npu__ref_conv_attribute(c->pad, op, "padding", dims, 0);
    }
    for (uint32_t i = 0; same && i < 3; i++) {
        c->pad[i] = c->dilation[i] * (c->kernel[i] - 1) / 2;
    }
}

static bool npu__ref_conv_is_transposed(const npu_op_info *op)
{
    return npu_op_int(op, "transposed", npu_op_has(op, "output_padding")) != 0;
}

/* A structured one: [N,C,..] with [F,C,..], or [N,G,C,..] with [G,F,C,..]; nothing is padded. */
static npu__ref_conv_shape npu__ref_loop_conv(const npu_prepare *p)
{
    npu__ref_conv_shape c = { 0 };
    const npu_tensor *x = &p->in[0], *w = &p->in[1];
    uint32_t grouped = p->op->kind == NPU_LINALG_CONV_2D_NGCHW_GFCHW, dims = x->rank - 2 - grouped;
    c.isa = p->isa;
    c.groups = grouped ? x->dims[1] : 1;
    c.images = x->dims[0];
    c.in_channels = x->dims[1 + grouped];
    c.out_channels = w->dims[grouped];
    c.dtype = x->dtype;
    c.onto = true;
    npu__ref_conv_dims(c.in, x, dims);
    npu__ref_conv_dims(c.out, &p->out[0], dims);
    npu__ref_conv_dims(c.kernel, w, dims);
    npu__ref_conv_attribute(c.stride, p->op, "strides", dims, 1);
    npu__ref_conv_attribute(c.dilation, p->op, "dilations", dims, 1);
    return c;
}

static npu__ref_conv_shape npu__ref_conv(const npu_prepare *p)
{
    npu__ref_conv_shape c = { 0 };
    const npu_op_info *op = p->op;
    const npu_tensor *x = &p->in[0], *w = &p->in[1], *out = &p->out[0];
    uint32_t dims;
    bool batched;
    if (NPU_KIND_NAMESPACE(op->kind) == NPU_NS_LINALG) {
        return npu__ref_loop_conv(p);
    }
    c.isa = p->isa;
    if (op->kind == NPU_ATEN_CONVOLUTION_BACKWARD) { /* the convolution's result is what comes in */
        x = &p->in[1], w = &p->in[2], out = &p->in[0];
    }
    dims = w->rank - 2;
    batched = x->rank == dims + 2;
    c.transposed = npu__ref_conv_is_transposed(op);
    c.groups = op->kind == NPU_ATEN_CONV_DEPTHWISE2D ? x->dims[batched] : npu_op_int(op, "groups", 1);
    c.images = batched ? x->dims[0] : 1;
    c.in_channels = x->dims[batched] / c.groups;
    c.out_channels = c.transposed ? w->dims[1] : w->dims[0] / c.groups;
    c.dtype = x->dtype;
    c.bias = out == &p->out[0] && op->num_in > 2 && p->in[2].dtype ? &p->in[2] : NULL;
    npu__ref_conv_dims(c.in, x, dims);
    npu__ref_conv_dims(c.out, out, dims);
    npu__ref_conv_dims(c.kernel, w, dims);
    npu__ref_conv_attribute(c.stride, op, "stride", dims, 1);
    npu__ref_conv_attribute(c.dilation, op, "dilation", dims, 1);
    npu__ref_conv_pad(&c, op, dims);
    return c;
}

static int64_t npu__ref_volume(const int64_t *dims) { return dims[0] * dims[1] * dims[2]; }

/* ---- convolution: direct ---- */

/* The input index that output index o meets at tap k of one dim, -1 = padding (or a gap of a transposed one).
   */
static int64_t npu__ref_conv_at(const npu__ref_conv_shape *c, uint32_t dim, int64_t o, int64_t k)
{
    int64_t at = c->transposed ? o + c->pad[dim] - k * c->dilation[dim]
                               : o * c->stride[dim] - c->pad[dim] + k * c->dilation[dim];
    if (c->transposed) {
        at = at % c->stride[dim] ? -1 : at / c->stride[dim];
    }
    return at < c->in[dim] ? at : -1;
}

/* Where one output element is summed. */
typedef struct npu__ref_conv_sum {
    const npu_launch *l;
    const npu__ref_conv_shape *c;
    bool integer;
    double real;
    uint64_t whole;
} npu__ref_conv_sum;

static void npu__ref_conv_add(npu__ref_conv_sum *s, int64_t x_at, int64_t w_at)
{
    if (s->integer) {
        int64_t x = 0, w = 0;
        npu__ref_load_i64(&x, s->l->x[0], s->c->dtype, x_at, 1, 1);
        npu__ref_load_i64(&w, s->l->x[1], s->c->dtype, w_at, 1, 1);
        s->whole += (uint64_t)x * (uint64_t)w;
    } else {
        double x = 0, w = 0;
        npu__ref_load_f64(&x, s->l->x[0], s->c->dtype, x_at, 1, 1);
        npu__ref_load_f64(&w, s->l->x[1], s->c->dtype, w_at, 1, 1);
        s->real += x * w;
    }
}

/* All taps of one channel; x_first and w_first are its first elements. */
static void npu__ref_conv_taps(npu__ref_conv_sum *s, const int64_t *o, int64_t x_first, int64_t w_first)
{
    const npu__ref_conv_shape *c = s->c;
    for (int64_t k0 = 0; k0 < c->kernel[0]; k0++) {
        int64_t i0 = npu__ref_conv_at(c, 0, o[0], k0);
        for (int64_t k1 = 0; i0 >= 0 && k1 < c->kernel[1]; k1++) {
            int64_t i1 = npu__ref_conv_at(c, 1, o[1], k1);
            for (int64_t k2 = 0; i1 >= 0 && k2 < c->kernel[2]; k2++) {
                int64_t i2 = npu__ref_conv_at(c, 2, o[2], k2);
                if (i2 >= 0) {
                    npu__ref_conv_add(s, x_first + (i0 * c->in[1] + i1) * c->in[2] + i2,
                                      w_first + (k0 * c->kernel[1] + k1) * c->kernel[2] + k2);
                }
            }
        }
    }
}

/* The bias of an output channel, or what element `at` is added to, or 0. */
static void npu__ref_conv_start(npu__ref_conv_sum *s, int64_t channel, int64_t at)
{
    int64_t whole = 0;
    s->real = 0, s->whole = 0;
    if (!s->c->bias && !s->c->onto) {
        return;
    }
    at = s->c->onto ? at : channel;
    if (s->integer) {
        npu__ref_load_i64(&whole, s->l->x[2], s->c->dtype, at, 1, 1);
        s->whole = (uint64_t)whole;
    } else {
        npu__ref_load_f64(&s->real, s->l->x[2], s->c->dtype, at, 1, 1);
    }
}

/* One element of the result, by its channel among all groups and its place. */
static void npu__ref_conv_element(npu__ref_conv_sum *s, int64_t image, int64_t channel, int64_t place)
{
    const npu__ref_conv_shape *c = s->c;
    int64_t group = channel / c->out_channels, out = channel % c->out_channels;
    int64_t in_size = npu__ref_volume(c->in);
    int64_t taps = npu__ref_volume(c->kernel);
    int64_t at = (image * c->groups * c->out_channels + channel) * npu__ref_volume(c->out) + place;
    int64_t o[3], whole;
    o[2] = place % c->out[2], o[1] = place / c->out[2] % c->out[1], o[0] = place / c->out[2] / c->out[1];
    npu__ref_conv_start(s, channel, at);
    for (int64_t i = 0; i < c->in_channels; i++) {
        int64_t in = group * c->in_channels + i;
        int64_t w = c->transposed ? in * c->out_channels + out : channel * c->in_channels + i;
        npu__ref_conv_taps(s, o, (image * c->groups * c->in_channels + in) * in_size, w * taps);
    }
    whole = (int64_t)s->whole;
    if (s->integer) {
        npu__ref_store_i64(s->l->y[0], c->dtype, at, 1, &whole, 1);
    } else {
        npu__ref_store_f64(s->l->y[0], c->dtype, at, 1, &s->real, 1);
    }
}

static npu_status npu__ref_conv_prepare_plain(npu_prepare *p)
{
    npu__ref_conv_shape *c = npu_prepare_alloc(p, sizeof *c);
    if (!c) {
        return NPU_ERR_NO_MEMORY;
    }
    *c = npu__ref_conv(p);
    p->state = c;
    p->parts = npu__ref_parts((size_t)(c->images * c->groups * c->out_channels), 1);
    return NPU_OK;
}

static npu_status npu__ref_conv_launch_plain(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_conv_shape *c = l->state;
    int64_t channels = c->groups * c->out_channels, all = c->images * channels;
    int64_t places = npu__ref_volume(c->out);
    npu__ref_conv_sum s = { 0 };
    s.l = l, s.c = c;
    s.integer = npu__ref_compute_class(c->dtype) == NPU__I64;
    for (int64_t i = all * part / parts; i < all * (part + 1) / parts; i++) {
        for (int64_t place = 0; place < places; place++) {
            npu__ref_conv_element(&s, i / channels, i % channels, place);
        }
    }
    return NPU_OK;
}

/* ---- convolution: one tap ---- */

/* Weights times the images as they lie: a batch of products. */
static npu_status npu__ref_conv_prepare_pointwise(npu_prepare *p)
{
    npu__ref_matmul *s = npu_prepare_alloc(p, sizeof *s);
    npu__ref_conv_shape c = npu__ref_conv(p);
    npu__ref_product *g;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    g = &s->gemm;
    g->m = c.out_channels, g->k = c.in_channels, g->n = npu__ref_volume(c.out);
    g->a = npu__ref_matrix(&p->in[1], g->k, 1);
    g->b = npu__ref_matrix(&p->in[0], g->n, 1);
    s->a_index = 1, s->b_index = 0, s->c0_index = NPU_NO_INDEX;
    s->bias_index = c.bias ? 2 : NPU_NO_INDEX;
    if (c.bias) {
        g->bias = npu__ref_matrix(c.bias, 1, 0);
    }
    g->c_dtype = c.dtype, g->c_row = g->n, g->c_col = 1;
    g->alpha = 1;
    g->isa = p->isa;
    s->batch = c.images;
    s->b.rank = s->a.rank = 1;
    s->b.dims[0] = s->a.dims[0] = c.images;
    s->b.share[0] = s->a.share[0] = 1;
    s->b.step[0] = g->k * g->n;
    if (c.onto) {
        s->c0_index = 2;
        s->c0 = s->b;
        s->c0.step[0] = g->m * g->n;
        g->c0 = npu__ref_matrix(&p->in[2], g->n, 1);
        g->beta = 1;
        g->onto = true;
    }
    return npu__ref_matmul_parts(p, s);
}

static bool npu__ref_all_are(const npu_op_info *op, const char *name, int64_t value)
{
    for (uint32_t i = 0; i < npu_op_list_len(op, name); i++) {
        if (npu_op_int_at(op, name, i) != value) {
            return false;
        }
    }
    return true;
}

static bool npu__ref_conv_is_pointwise(const npu_op_info *op)
{
    const npu_spec *w = op->in[1];
    const npu_bound_arg *padding = npu_op_arg(op, "padding");
    bool words = padding && padding->form == NPU_ARG_STR; /* one tap is never padded */
    for (uint32_t i = 2; i < w->rank; i++) {
        if (w->dims[i] != 1) {
            return false;
        }
    }
    return npu__ref_is_float_op(op) && !npu__ref_conv_is_transposed(op) && npu_op_int(op, "groups", 1) == 1 &&
           op->kind != NPU_ATEN_CONV_DEPTHWISE2D &&
           op->kind != NPU_LINALG_CONV_2D_NGCHW_GFCHW && npu__ref_all_are(op, "stride", 1) &&
           npu__ref_all_are(op, "strides", 1) && (words || npu__ref_all_are(op, "padding", 0));
}

/* ---- convolution: blocked ----

   A product of the weights with columns of the input, none of which is stored. A band of output rows needs
   some input rows: they are copied with their padding into a slab, split by the phase of the stride, so that
   what one tap reads for neighbouring outputs lies side by side. A tap is then an offset into the slab, and
   the band is one row of outputs as long as the slab's rows; the few sums between the rows of the result are
   dropped.

   A transposed convolution is an ordinary one for every phase of its stride: outputs of one phase meet the
   same taps. */

/* How outputs, taps and input of one dim meet: output o and tap k at input o * step + k * dilation - first.
   Output o is number out_first + o * out_step of the result, tap k is number tap_first + k * tap_step of the
   weights. */
typedef struct npu__ref_conv_axis {
    int64_t out, in, taps, step, dilation, first;
    int64_t out_first, out_step, tap_first, tap_step;
    int64_t phases, period; /* tap k is in phase k % period of step; there are `phases` of them */
} npu__ref_conv_axis;

/* One phase of a transposed convolution, or all of an ordinary one. */
typedef struct npu__ref_conv_blocked {
    const npu__ref_conv_shape *conv;
    npu__ref_conv_axis dim[3];
    npu__ref_product gemm;       /* of one image and group */
    npu__ref_product_plan plan;
    const char *weights;  /* as numbers, NULL = the operand */
    int64_t *offsets;     /* of every channel and tap in the slab */
    int64_t bands, band;  /* of rows of the result */
    int64_t rows, row;    /* of one phase plane of the slab, and elements in one */
    int64_t chunks;       /* of output channels */
    int64_t items;        /* images, groups, planes, bands, chunks */
    size_t slab_bytes;
} npu__ref_conv_blocked;

typedef struct npu__ref_conv_state {
    npu__ref_conv_shape conv;
    npu__ref_conv_blocked *parts; /* phases */
    uint32_t num_parts;
    int64_t items;
    size_t part_bytes; /* of workspace */
} npu__ref_conv_state;

static int64_t npu__ref_gcd(int64_t a, int64_t b) { return b == 0 ? a : npu__ref_gcd(b, a % b); }

static npu__ref_conv_axis npu__ref_conv_dim(const npu__ref_conv_shape *c, uint32_t i)
{
    npu__ref_conv_axis d = { 0 };
    d.out = c->out[i], d.in = c->in[i], d.taps = c->kernel[i];
    d.step = c->stride[i], d.dilation = c->dilation[i], d.first = c->pad[i];
    d.out_step = d.tap_step = 1;
    d.period = d.step / npu__ref_gcd(d.step, d.dilation);
    d.phases = npu__ref_min(d.taps, d.period);
    return d;
}

/* Outputs phase, phase + stride ... of a transposed convolution. They meet a tap k where phase + pad - k *
   dilation is a multiple of the stride: every `every`-th one, taken from the last down so that the input
   index grows. */
static npu__ref_conv_axis npu__ref_conv_transposed_dim(const npu__ref_conv_shape *c, uint32_t i, int64_t phase)
{
    npu__ref_conv_axis d = { 0 };
    int64_t stride = c->stride[i], every = stride / npu__ref_gcd(stride, c->dilation[i]), last = -1;
    d.in = c->in[i], d.step = d.phases = d.period = 1;
    d.dilation = every * c->dilation[i] / stride;
    d.out = npu__ref_ceil_div(npu__ref_max(c->out[i] - phase, 0), stride);
    d.out_first = phase, d.out_step = stride;
    for (int64_t k = 0; k < c->kernel[i]; k++) {
        if ((phase + c->pad[i] - k * c->dilation[i]) % stride == 0) {
            last = k;
            d.taps++;
        }
    }
    if (d.taps > 0) {
        d.tap_first = last, d.tap_step = -every;
        d.first = (last * c->dilation[i] - phase - c->pad[i]) / stride;
    }
    return d;
}

/* Rows or columns that n outputs read in one phase. */
static int64_t npu__ref_conv_reach(const npu__ref_conv_axis *d, int64_t n)
{
    return n + (npu__ref_max(d->taps, 1) - 1) * d->dilation / d->step;
}

static int64_t npu__ref_conv_planes(const npu__ref_conv_blocked *s)
{
    return s->conv->in_channels * s->dim[0].taps * s->dim[1].phases * s->dim[2].phases;
}

/* Bands as high as a slab in the second-level cache allows, and more where there is work for more parts. */
static void npu__ref_conv_cut_bands(npu__ref_conv_blocked *s, int64_t wanted)
{
    int64_t height = s->dim[1].out, row_bytes, fitting;
    s->row = npu__ref_conv_reach(&s->dim[2], s->dim[2].out);
    row_bytes = npu__ref_max(npu__ref_conv_planes(s) * s->row * (int64_t)s->plan.size, 1);
    fitting = NPU__REF_GEMM_SLAB / row_bytes - npu__ref_conv_reach(&s->dim[1], 0);
    s->bands = npu__ref_ceil_div(height, npu__ref_max(npu__ref_min(fitting, height), 1));
    s->bands = npu__ref_max(s->bands, npu__ref_min(wanted, height / 8));
    s->band = npu__ref_ceil_div(height, s->bands);
    s->bands = npu__ref_ceil_div(height, s->band);
    s->rows = npu__ref_conv_reach(&s->dim[1], s->band);
}

/* Chunks of output channels: every one copies the slab again, which is to stay a small part of its work. */
static void npu__ref_conv_cut_channels(npu__ref_conv_blocked *s, int64_t wanted)
{
    double filled = (double)npu__ref_max(npu__ref_conv_planes(s), 1) * (double)s->rows * (double)s->row;
    double worth = (double)s->gemm.m * (double)s->gemm.k * (double)(s->band * s->row) / (512 * filled);
    int64_t chunks = npu__ref_min(wanted / s->bands, s->gemm.m / (4 * s->plan.tile->rows));
    s->chunks = npu__ref_max(npu__ref_min(chunks, worth < 16 ? (int64_t)worth : 16), 1);
}

static void npu__ref_conv_cut(npu__ref_conv_blocked *s)
{
    int64_t outer = s->conv->images * s->conv->groups;
    npu__ref_product whole = s->gemm;
    int64_t wanted;
    whole.n = outer * s->dim[0].out * s->dim[1].out * s->dim[2].out;
    wanted = npu__ref_ceil_div(npu__ref_gemm_wanted_parts(&whole), outer * s->dim[0].out);
    npu__ref_conv_cut_bands(s, wanted);
    npu__ref_conv_cut_channels(s, wanted);
    s->items = outer * s->dim[0].out * s->bands * s->chunks;
}

static void npu__ref_conv_offsets(npu__ref_conv_blocked *s)
{
    const npu__ref_conv_axis *d = s->dim;
    int64_t *to = s->offsets, plane = s->rows * s->row;
    for (int64_t i = 0; i < s->conv->in_channels * d[0].taps; i++) {
        for (int64_t k1 = 0; k1 < d[1].taps; k1++) {
            for (int64_t k2 = 0; k2 < d[2].taps; k2++) {
                int64_t phase = (i * d[1].phases + k1 % d[1].period) * d[2].phases + k2 % d[2].period;
                *to++ =
                    phase * plane + k1 * d[1].dilation / d[1].step * s->row + k2 * d[2].dilation / d[2].step;
            }
        }
    }
}

/* The taps of one output and one input channel that belong to s. */
static void npu__ref_conv_pack_taps(const npu__ref_conv_blocked *s, const void *from, int64_t first, char **to)
{
    const npu__ref_conv_axis *d = s->dim;
    const npu__ref_conv_shape *c = s->conv;
    for (int64_t k0 = 0; k0 < d[0].taps; k0++) {
        for (int64_t k1 = 0; k1 < d[1].taps; k1++) {
            int64_t row =
                (d[0].tap_first + k0 * d[0].tap_step) * c->kernel[1] + d[1].tap_first + k1 * d[1].tap_step;
            npu__ref_load_numbers(c->isa, *to, from, c->dtype, first + row * c->kernel[2] + d[2].tap_first,
                                  d[2].tap_step, (size_t)d[2].taps);
            *to += (size_t)d[2].taps * s->plan.size;
        }
    }
}

/* The weights as [group, out, in, tap]; those of a transposed convolution are [group, in, out, tap]. */
static void npu__ref_conv_pack_weights(const npu__ref_conv_blocked *s, const void *from, char *to)
{
    const npu__ref_conv_shape *c = s->conv;
    int64_t taps = npu__ref_volume(c->kernel);
    for (int64_t group = 0; group < c->groups; group++) {
        for (int64_t out = 0; out < c->out_channels; out++) {
            for (int64_t in = 0; in < c->in_channels; in++) {
                int64_t at = c->transposed ? (group * c->in_channels + in) * c->out_channels + out
                                           : (group * c->out_channels + out) * c->in_channels + in;
                npu__ref_conv_pack_taps(s, from, at * taps, &to);
            }
        }
    }
}

/* Constant weights that are not numbers in the right order are packed once; others are converted at every
   launch. */
static npu_status npu__ref_conv_pack(npu_prepare *p, npu__ref_conv_blocked *s)
{
    const npu__ref_conv_shape *c = s->conv;
    size_t bytes;
    const void *from = p->op->in_data ? p->op->in_data[1] : NULL;
    char *to;
    if (!from || (!c->transposed && c->dtype == npu__ref_sum_dtype(c->dtype))) {
        return NPU_OK;
    }
    if (!npu_size_mul((size_t)(c->groups * c->out_channels), (size_t)s->gemm.k, &bytes) ||
        !npu_size_mul(bytes, s->plan.size, &bytes)) {
        return NPU_ERR_OVERFLOW;
    }
    to = npu_prepare_alloc(p, bytes);
    if (!to) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_conv_pack_weights(s, from, to);
    s->weights = to;
    s->gemm.a.dtype = npu__ref_sum_dtype(c->dtype);
    s->plan = npu__ref_gemm_plan(&s->gemm);
    return NPU_OK;
}

static void npu__ref_conv_gemm(npu__ref_conv_blocked *s)
{
    const npu__ref_conv_shape *c = s->conv;
    npu__ref_product *g = &s->gemm;
    g->m = c->out_channels;
    g->k = c->in_channels * s->dim[0].taps * s->dim[1].taps * s->dim[2].taps;
    g->n = npu__ref_volume(c->out);
    g->a.dtype = c->dtype, g->a.row = g->k, g->a.col = 1;
    g->bias.dtype = c->dtype, g->bias.row = 1;
    g->c_dtype = c->dtype, g->c_row = g->n, g->c_col = s->dim[2].out_step;
    g->alpha = 1;
    g->isa = c->isa;
    g->c0.dtype = c->dtype, g->beta = 1, g->onto = c->onto;
    g->packed_b = s; /* the slab takes its place */
    s->plan = npu__ref_gemm_plan(g);
}

/* The sums of a band of a single channel are one row, others go by blocks. */
static npu_status npu__ref_conv_workspace(npu__ref_conv_blocked *s, size_t *part_bytes)
{
    int64_t width = s->plan.tile->cols, sums = (s->band - 1) * s->row + s->dim[2].out;
    int64_t block = s->gemm.m == 1 ? INT64_MAX : NPU__REF_GEMM_COLS / width;
    size_t slab = (size_t)(npu__ref_conv_planes(s) * s->rows), bytes;
    s->plan.block_panels = npu__ref_min(npu__ref_ceil_div(sums, width), block);
    s->plan.c_bytes = (size_t)(s->plan.block_rows * s->plan.block_panels * width) * s->plan.size;
    /* The last panel of the last tap is read to its full width. */
    if (!npu_size_mul(slab, (size_t)s->row * s->plan.size, &slab) ||
        !npu_size_add(slab, (size_t)(width + 16) * s->plan.size, &slab)) {
        return NPU_ERR_OVERFLOW;
    }
    s->slab_bytes = (slab + 63) / 64 * 64;
    bytes = (s->slab_bytes + s->plan.a_bytes + s->plan.c_bytes + 63) / 64 * 64;
    *part_bytes = bytes > *part_bytes ? bytes : *part_bytes;
    return NPU_OK;
}

static npu_status npu__ref_conv_prepare_part(npu_prepare *p, npu__ref_conv_state *state, npu__ref_conv_blocked *s)
{
    npu_status status;
    npu__ref_conv_gemm(s);
    if (state->conv.images == 0 || s->gemm.m == 0 || s->dim[0].out * s->dim[1].out * s->dim[2].out == 0) {
        return NPU_OK;
    }
    npu__ref_conv_cut(s);
    state->items += s->items;
    s->offsets = npu_prepare_alloc(p, (size_t)npu__ref_max(s->gemm.k, 1) * sizeof *s->offsets);
    if (!s->offsets) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_conv_offsets(s);
    status = npu__ref_conv_pack(p, s);
    return status ? status : npu__ref_conv_workspace(s, &state->part_bytes);
}

/* An ordinary convolution has one part; a transposed one has one for every phase of its stride. */
static npu_status npu__ref_conv_make_parts(npu_prepare *p, npu__ref_conv_state *state)
{
    const npu__ref_conv_shape *c = &state->conv;
    const int64_t *stride = c->stride;
    int64_t phases = c->transposed ? stride[0] * stride[1] * stride[2] : 1;
    if (phases > 4096) {
        return NPU_ERR_UNSUPPORTED;
    }
    state->num_parts = (uint32_t)phases;
    state->parts = npu_prepare_alloc(p, (size_t)phases * sizeof *state->parts);
    if (!state->parts) {
        return NPU_ERR_NO_MEMORY;
    }
    for (int64_t i = 0; i < phases; i++) {
        npu__ref_conv_blocked *s = &state->parts[i];
        int64_t phase[3];
        npu_status status;
        phase[2] = i % stride[2], phase[1] = i / stride[2] % stride[1], phase[0] = i / stride[2] / stride[1];
        s->conv = c;
        for (uint32_t j = 0; j < 3; j++) {
            s->dim[j] =
                c->transposed ? npu__ref_conv_transposed_dim(c, j, phase[j]) : npu__ref_conv_dim(c, j);
        }
        status = npu__ref_conv_prepare_part(p, state, s);
        if (status) {
            return status;
        }
    }
    return NPU_OK;
}

static npu_status npu__ref_conv_prepare(npu_prepare *p)
{
    npu__ref_conv_state *state = npu_prepare_alloc(p, sizeof *state);
    npu_status status;
    double work;
    if (!state) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = state;
    state->conv = npu__ref_conv(p);
    status = npu__ref_conv_make_parts(p, state);
    if (status) {
        return status;
    }
    work = (double)state->conv.images * (double)state->conv.groups * (double)state->conv.out_channels *
           (double)state->parts[0].gemm.n * (double)state->parts[0].gemm.k;
    work = work * 4 / NPU__REF_GEMM_GRAIN;
    p->parts = (uint32_t)npu__ref_max(npu__ref_min(state->items, work < 64 ? (int64_t)work : 64), 1);
    return npu_size_mul(state->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* Every second float: what a stride of 2 reads. */
#define NPU__REF_EVERY_SECOND(attribute, name)                                                          \
    attribute static void name(float *to, const float *from, size_t n)                              \
    {                                                                                               \
        NPU__REF_VECTORIZE                                                                          \
        for (size_t i = 0; i < n; i++) {                                                            \
            to[i] = from[2 * i];                                                                    \
        }                                                                                           \
    }
NPU__REF_EVERY_SECOND(, npu__ref_every_second_base)
#ifdef NPU__REF_HAS_AVX2
NPU__REF_EVERY_SECOND(NPU__REF_AVX2, npu__ref_every_second_avx2)
#endif

static void (*const npu__ref_every_second_of[])(float *to, const float *from, size_t n) = {
#define NPU_X(set, narrow, wide) npu__ref_every_second_##narrow,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

static void npu__ref_conv_load(const npu__ref_conv_shape *c, char *to, const void *x, int64_t first, int64_t step,
                               size_t n)
{
    if (c->dtype != NPU_F32 || step != 2) {
        npu__ref_load_numbers(c->isa, to, x, c->dtype, first, step, n);
        return;
    }
    npu__ref_every_second_of[c->isa]((float *)(void *)to, (const float *)x + first, n);
}

/* A phase plane of the slab: what outputs from row `row` on read in the input plane that begins at x_first.
   Zeros stay where there is no input: above begin, below end, and beside the columns left .. right. */
static void npu__ref_conv_fill_plane(const npu__ref_conv_blocked *s, char *to, const void *x, int64_t x_first,
                                     int64_t row, int64_t phase1, int64_t phase2)
{
    const npu__ref_conv_axis *d1 = &s->dim[1], *d2 = &s->dim[2];
    int64_t size = (int64_t)s->plan.size, y = row * d1->step + phase1 - d1->first, z = phase2 - d2->first;
    int64_t begin = y < 0 ? npu__ref_ceil_div(-y, d1->step) : 0;
    int64_t left = z < 0 ? npu__ref_ceil_div(-z, d2->step) : 0;
    int64_t end = npu__ref_min(d1->in > y ? npu__ref_ceil_div(d1->in - y, d1->step) : 0, s->rows);
    int64_t right = npu__ref_min(d2->in > z ? npu__ref_ceil_div(d2->in - z, d2->step) : 0, s->row);
    if (begin > 0 || left > 0 || end < s->rows || right < s->row) {
        memset(to, 0, (size_t)(s->rows * s->row * size));
    }
    for (int64_t i = begin; left < right && i < end; i++) {
        npu__ref_conv_load(s->conv, to + (i * s->row + left) * size, x,
                           x_first + (y + i * d1->step) * d2->in + z + left * d2->step, d2->step,
                           (size_t)(right - left));
    }
}

/* channel: the first one of the group among all images; plane, row: of the result. */
static void npu__ref_conv_fill(const npu__ref_conv_blocked *s, char *to, const void *x, int64_t channel,
                               int64_t plane, int64_t row)
{
    const npu__ref_conv_axis *d = s->dim;
    size_t bytes = (size_t)(s->rows * s->row) * s->plan.size;
    for (int64_t i = 0; i < s->conv->in_channels * d[0].taps; i++) {
        int64_t at = plane * d[0].step + i % d[0].taps * d[0].dilation - d[0].first;
        int64_t first = ((channel + i / d[0].taps) * d[0].in + at) * d[1].in * d[2].in;
        for (int64_t j = 0; j < d[1].phases * d[2].phases; j++, to += bytes) {
            if (at < 0 || at >= d[0].in) {
                memset(to, 0, bytes);
                continue;
            }
            npu__ref_conv_fill_plane(s, to, x, first, row, j / d[2].phases * d[1].dilation % d[1].step,
                                     j % d[2].phases * d[2].dilation % d[2].step);
        }
    }
}

/* Where a band lies in the result: element `at` of a channel is its first, rows are `step` apart. */
typedef struct npu__ref_conv_place {
    int64_t at, step, rows;
} npu__ref_conv_place;

/* Sums number first .. first + n of a band of one output channel: those between the rows of the result are
   dropped. */
static void npu__ref_conv_finish(const npu__ref_conv_blocked *s, const npu__ref_product *g, int64_t channel,
                                 const npu__ref_conv_place *place, int64_t first, int64_t n, char *sums)
{
    int64_t width = s->dim[2].out;
    for (int64_t i = 0; i < n;) {
        int64_t row = (first + i) / s->row, col = (first + i) % s->row,
                end = npu__ref_min(n, i + s->row - col);
        if (col < width) {
            int64_t at = channel * g->c_row + place->at + row * place->step + col * g->c_col;
            npu__ref_gemm_finish_at(g, channel, 0, at, sums + i * (int64_t)s->plan.size,
                                    npu__ref_min(end - i, width - col));
        }
        i = end;
    }
}

/* Output channels channel .. end of a band. Where the result has no gaps, sums are taken in place. */
static void npu__ref_conv_band(const npu__ref_conv_blocked *s, npu__ref_product_sum *sum, int64_t channel, int64_t end,
                               const npu__ref_conv_place *place, char *sums)
{
    const char *slab = sum->b;
    int64_t n = (place->rows - 1) * s->row + s->dim[2].out, size = (int64_t)s->plan.size;
    int64_t step = s->plan.block_panels * s->plan.tile->cols;
    for (int64_t first = 0; first < n; first += step) {
        int64_t cols = npu__ref_min(step, n - first);
        sum->b = slab + first * size;
        for (int64_t i = channel; i < end; i += s->plan.block_rows) {
            int64_t count = npu__ref_min(s->plan.block_rows, end - i);
            if (s->row == place->step && sum->g->c_col == 1) {
                npu__ref_gemm_block(sum, i, count, place->at + first, cols, sums);
                continue;
            }
            npu__ref_gemm_sum(sum, i, count, cols, sums, cols);
            for (int64_t j = 0; j < count; j++) {
                npu__ref_conv_finish(s, sum->g, i + j, place, first, cols, sums + j * cols * size);
            }
        }
    }
}

/* One input and one output channel: one row of sums that starts at the bias. */
static void npu__ref_conv_single(const npu__ref_conv_blocked *s, const npu__ref_product *g, const char *slab,
                                 const npu__ref_conv_place *place, char *sums)
{
    int64_t n = (place->rows - 1) * s->row + s->dim[2].out;
    npu__ref_scalar bias = { 0 };
    if (g->bias.x) {
        npu__ref_load_numbers(g->isa, &bias, g->bias.x, g->bias.dtype, 0, 1, 1);
    }
    s->plan.tile->row(g->k, n, g->a.x, slab, s->offsets, sums, false, &bias);
    if (g->onto) {
        npu__ref_conv_finish(s, g, 0, place, 0, n, sums);
        return;
    }
    for (int64_t i = 0; i < place->rows; i++) {
        npu__ref_store_numbers(g->isa, g->c, g->c_dtype, place->at + i * place->step, g->c_col,
                               sums + i * s->row * (int64_t)s->plan.size, (size_t)s->dim[2].out);
    }
}

static void npu__ref_conv_item(const npu__ref_conv_blocked *s, const npu_launch *l, int64_t item, char *workspace)
{
    const npu__ref_conv_shape *c = s->conv;
    const npu__ref_conv_axis *d = s->dim;
    npu__ref_product g = s->gemm;
    npu__ref_product_sum sum = { 0 };
    npu__ref_conv_place place;
    int64_t chunk = item % s->chunks, row = item / s->chunks % s->bands * s->band;
    int64_t plane = item / s->chunks / s->bands % d[0].out;
    int64_t group = item / s->chunks / s->bands / d[0].out;
    int64_t first = group % c->groups * g.m; /* group: among all images */
    place.rows = npu__ref_min(s->band, d[1].out - row);
    place.step = d[1].out_step * c->out[2];
    place.at = ((d[0].out_first + plane * d[0].out_step) * c->out[1] + d[1].out_first) * c->out[2] +
               row * place.step + d[2].out_first;
    npu__ref_conv_fill(s, workspace, l->x[0], group * c->in_channels, plane, row);
    g.a.x = npu__ref_address(s->weights ? s->weights : l->x[1], g.a.dtype, first * g.k);
    g.bias.x = c->bias ? npu__ref_address(l->x[2], g.bias.dtype, first) : NULL;
    g.c0.x = c->onto ? npu__ref_address(l->x[2], g.c0.dtype, group * g.m * g.n) : NULL;
    g.c = (char *)l->y[0] + (size_t)(group * g.m * g.n) * npu__ref_size(g.c_dtype);
    sum.g = &g, sum.plan = &s->plan;
    sum.b = workspace, sum.offsets = s->offsets;
    sum.panel_step = s->plan.tile->cols, sum.offsets_step = 1;
    sum.a = workspace + s->slab_bytes;
    if (g.m == 1 && s->plan.a_bytes == 0) {
        npu__ref_conv_single(s, &g, workspace, &place, sum.a);
        return;
    }
    npu__ref_conv_band(s, &sum, g.m * chunk / s->chunks, g.m * (chunk + 1) / s->chunks, &place,
                       sum.a + s->plan.a_bytes);
}

static npu_status npu__ref_conv_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_conv_state *state = l->state;
    int64_t begin = state->items * part / parts, end = state->items * (part + 1) / parts, first = 0;
    for (uint32_t i = 0; i < state->num_parts; i++) {
        const npu__ref_conv_blocked *s = &state->parts[i];
        for (int64_t j = npu__ref_max(begin, first); j < npu__ref_min(end, first + s->items); j++) {
            npu__ref_conv_item(s, l, j - first, (char *)l->workspace + part * state->part_bytes);
        }
        first += s->items;
    }
    return NPU_OK;
}

static bool npu__ref_conv_is_blocked(const npu_op_info *op)
{
    return npu__ref_is_float_op(op) && (!npu__ref_conv_is_transposed(op) || (op->in_data && op->in_data[1]));
}

/* ---- convolution: gradients ----

   An output meets an input at a tap: y += x w. So x's gradient is the sum of g w, and w's of g x, over the
   same meetings. A piece of work is one plane of a gradient, summed in double: of the input for one image and
   channel, of the weights for one pair of channels, of the bias for one channel. */

typedef struct npu__ref_conv_back {
    npu__ref_conv_shape conv;
    int64_t pieces[3]; /* of each gradient; 0 = not wanted */
    size_t part_bytes;
} npu__ref_conv_back;

/* Planes in workspace, as doubles. */
typedef struct npu__ref_conv_plane {
    double *g, *x, *w;
} npu__ref_conv_plane;

static npu_status npu__ref_conv_back_prepare(npu_prepare *p)
{
    npu__ref_conv_back *s = npu_prepare_alloc(p, sizeof *s);
    npu__ref_conv_shape *c;
    size_t numbers;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->conv = npu__ref_conv(p);
    c = &s->conv;
    s->pieces[0] = c->images * c->groups * c->in_channels;
    s->pieces[1] = c->groups * c->out_channels * c->in_channels;
    s->pieces[2] = c->groups * c->out_channels;
    for (uint32_t i = 0; i < 3; i++) {
        s->pieces[i] = npu_op_int_at(p->op, "output_mask", i) ? s->pieces[i] : 0;
    }
    numbers = (size_t)(npu__ref_volume(c->in) + npu__ref_volume(c->out) + npu__ref_volume(c->kernel));
    s->part_bytes = (numbers * sizeof(double) + 63) / 64 * 64;
    p->parts = npu__ref_parts((size_t)(s->pieces[0] + s->pieces[1]), 4);
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* Rows of outputs, inputs and taps that meet in the last dim. */
static void npu__ref_conv_back_row(const npu__ref_conv_shape *c, const double *g, double *x, double *w, bool to_input)
{
    for (int64_t k = 0; k < c->kernel[2]; k++) {
        for (int64_t o = 0; o < c->out[2]; o++) {
            int64_t i = npu__ref_conv_at(c, 2, o, k);
            if (i >= 0 && to_input) {
                x[i] += g[o] * w[k];
            } else if (i >= 0) {
                w[k] += g[o] * x[i];
            }
        }
    }
}

/* All meetings of a plane of outputs and a plane of inputs, over the tap in `tap` of the first two dims. */
static void npu__ref_conv_back_tap(const npu__ref_conv_shape *c, const npu__ref_conv_plane *p, const int64_t *tap,
                                   bool to_input)
{
    for (int64_t o0 = 0; o0 < c->out[0]; o0++) {
        int64_t i0 = npu__ref_conv_at(c, 0, o0, tap[0]);
        for (int64_t o1 = 0; i0 >= 0 && o1 < c->out[1]; o1++) {
            int64_t i1 = npu__ref_conv_at(c, 1, o1, tap[1]);
            if (i1 >= 0) {
                npu__ref_conv_back_row(c, p->g + (o0 * c->out[1] + o1) * c->out[2],
                                       p->x + (i0 * c->in[1] + i1) * c->in[2],
                                       p->w + (tap[0] * c->kernel[1] + tap[1]) * c->kernel[2], to_input);
            }
        }
    }
}

/* Plane `out` of outputs among all images, `in` of inputs and `pair` of weights; the one that is not summed
   is loaded. */
static void npu__ref_conv_back_planes(const npu__ref_conv_shape *c, const npu_launch *l, const npu__ref_conv_plane *p,
                                      int64_t out, int64_t in, int64_t pair, bool to_input)
{
    int64_t tap[2], outs = npu__ref_volume(c->out), ins = npu__ref_volume(c->in),
                    taps = npu__ref_volume(c->kernel);
    npu__ref_load_f64(p->g, l->x[0], c->dtype, out * outs, 1, (size_t)outs);
    if (to_input) {
        npu__ref_load_f64(p->w, l->x[2], c->dtype, pair * taps, 1, (size_t)taps);
    } else {
        npu__ref_load_f64(p->x, l->x[1], c->dtype, in * ins, 1, (size_t)ins);
    }
    for (tap[0] = 0; tap[0] < c->kernel[0]; tap[0]++) {
        for (tap[1] = 0; tap[1] < c->kernel[1]; tap[1]++) {
            npu__ref_conv_back_tap(c, p, tap, to_input);
        }
    }
}

/* Where the taps of an output and an input channel of a group lie, in planes. */
static int64_t npu__ref_conv_pair(const npu__ref_conv_shape *c, int64_t group, int64_t out, int64_t in)
{
    return c->transposed ? (group * c->in_channels + in) * c->out_channels + out
                         : (group * c->out_channels + out) * c->in_channels + in;
}

static void npu__ref_conv_back_input(const npu__ref_conv_shape *c, const npu_launch *l, const npu__ref_conv_plane *p,
                                     int64_t plane)
{
    int64_t group = plane / c->in_channels, in = plane % c->in_channels, ins = npu__ref_volume(c->in);
    memset(p->x, 0, (size_t)ins * sizeof *p->x);
    for (int64_t out = 0; out < c->out_channels; out++) { /* `group` counts those of all images */
        npu__ref_conv_back_planes(c, l, p, group * c->out_channels + out, plane,
                                  npu__ref_conv_pair(c, group % c->groups, out, in), true);
    }
    npu__ref_store_f64(l->y[0], c->dtype, plane * ins, 1, p->x, (size_t)ins);
}

static void npu__ref_conv_back_weight(const npu__ref_conv_shape *c, const npu_launch *l, const npu__ref_conv_plane *p,
                                      int64_t item)
{
    int64_t group = item / (c->out_channels * c->in_channels), taps = npu__ref_volume(c->kernel);
    int64_t out = item / c->in_channels % c->out_channels, in = item % c->in_channels,
            pair = npu__ref_conv_pair(c, group, out, in);
    memset(p->w, 0, (size_t)taps * sizeof *p->w);
    for (int64_t image = 0; image < c->images; image++) {
        int64_t groups = image * c->groups + group;
        npu__ref_conv_back_planes(c, l, p, groups * c->out_channels + out, groups * c->in_channels + in, pair,
                                  false);
    }
    npu__ref_store_f64(l->y[1], c->dtype, pair * taps, 1, p->w, (size_t)taps);
}

static void npu__ref_conv_back_bias(const npu__ref_conv_shape *c, const npu_launch *l, const npu__ref_conv_plane *p,
                                    int64_t channel)
{
    int64_t outs = npu__ref_volume(c->out), channels = c->groups * c->out_channels;
    double sum = 0;
    for (int64_t image = 0; image < c->images; image++) {
        npu__ref_load_f64(p->g, l->x[0], c->dtype, (image * channels + channel) * outs, 1, (size_t)outs);
        for (int64_t i = 0; i < outs; i++) {
            sum += p->g[i];
        }
    }
    npu__ref_store_f64(l->y[2], c->dtype, channel, 1, &sum, 1);
}

static npu_status npu__ref_conv_back_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_conv_back *s = l->state;
    const npu__ref_conv_shape *c = &s->conv;
    int64_t inputs = s->pieces[0], both = inputs + s->pieces[1], all = both + s->pieces[2];
    npu__ref_conv_plane p;
    p.g = (double *)(void *)((char *)l->workspace + part * s->part_bytes);
    p.x = p.g + npu__ref_volume(c->out);
    p.w = p.x + npu__ref_volume(c->in);
    for (int64_t i = all * part / parts; i < all * (part + 1) / parts; i++) {
        if (i < inputs) {
            npu__ref_conv_back_input(c, l, &p, i);
        } else if (i < both) {
            npu__ref_conv_back_weight(c, l, &p, i - inputs);
        } else {
            npu__ref_conv_back_bias(c, l, &p, i - both);
        }
    }
    return NPU_OK;
}

#define NPU__REF_CONV_ROWS(kind)                                                                             \
    NPU__REF_ROW(kind, "pointwise", 20, npu__ref_conv_is_pointwise, npu__ref_conv_prepare_pointwise, \
                 npu__ref_matmul_launch), \
    NPU__REF_ROW(kind, "blocked", 10, npu__ref_conv_is_blocked, npu__ref_conv_prepare, npu__ref_conv_launch), \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_conv_prepare_plain, npu__ref_conv_launch_plain)

static const npu_kernel npu__ref_kernels_convolution[] = { NPU__REF_CONV_ROWS(NPU_ATEN_CONV1D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV1D_PADDING),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV2D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV2D_PADDING),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV_TRANSPOSE2D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONVOLUTION),
                                                           NPU__REF_ROW(NPU_ATEN_CONVOLUTION_BACKWARD, "plain", 0, NULL,
                                                             npu__ref_conv_back_prepare,
                                                             npu__ref_conv_back_launch),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV3D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV3D_PADDING),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV_TRANSPOSE1D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV_TRANSPOSE3D),
                                                           NPU__REF_CONV_ROWS(NPU_ATEN_CONV_DEPTHWISE2D) };

/* ---- contractions ----

   Result element = alpha times the sum, over axes that the result has not, of products of one element from
   each factor, plus beta times an addend. Every tensor goes over the axes by steps of its own: 0 repeats it,
   an axis that it names twice is a diagonal. Sums are double or int64, a strip along the longest axis at a
   time. */

enum { NPU__AXES = NPU_EINSUM_AXES };

typedef struct npu__ref_contraction {
    uint32_t rank, axes;       /* the axes of the result are the first ones */
    uint32_t strip;            /* the axis that strips lie along */
    uint32_t factors, first;   /* operands: how many, from which on */
    uint32_t addend;           /* operand; NPU_NO_INDEX = none */
    int64_t dims[NPU__AXES];
    int64_t (*steps)[NPU__AXES]; /* of factors, then of the result and the addend */
    double alpha, beta;
    int cls;
} npu__ref_contraction;

static int64_t npu__ref_axis_step(const npu__ref_contraction *s, uint32_t axis)
{
    return axis == s->strip ? NPU__STRIP : 1;
}

/* The next place among axes first .. end, false after the last. */
static bool npu__ref_axis_next(const npu__ref_contraction *s, int64_t *index, uint32_t first, uint32_t end)
{
    for (uint32_t i = end; i-- > first;) {
        index[i] += npu__ref_axis_step(s, i);
        if (index[i] < s->dims[i]) {
            return true;
        }
        index[i] = 0;
    }
    return false;
}

static int64_t npu__ref_axis_offset(const npu__ref_contraction *s, uint32_t tensor, const int64_t *index)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < s->axes; i++) {
        offset += index[i] * s->steps[tensor][i];
    }
    return offset;
}

/* n products along the strip. */
static void npu__ref_contract_products(const npu__ref_contraction *s, const npu_launch *l, const int64_t *index,
                                       size_t n, npu__ref_strip *to)
{
    npu__ref_strip x;
    for (uint32_t k = 0; k < s->factors; k++) {
        npu__ref_load_class(s->cls, k ? &x : to, l->x[s->first + k], l->in[s->first + k].dtype,
                            npu__ref_axis_offset(s, k, index), s->axes ? s->steps[k][s->strip] : 1, n);
        for (size_t i = 0; k && i < n; i++) {
            if (s->cls == NPU__I64) {
                to->i64[i] = (int64_t)((uint64_t)to->i64[i] * (uint64_t)x.i64[i]);
            } else {
                to->f64[i] *= x.f64[i];
            }
        }
    }
}

static void npu__ref_contract_add(int cls, npu__ref_strip *sums, const npu__ref_strip *x, size_t n,
                                  size_t step)
{
    for (size_t i = 0; i < n; i++) {
        if (cls == NPU__I64) {
            sums->i64[i * step] = (int64_t)((uint64_t)sums->i64[i * step] + (uint64_t)x->i64[i]);
        } else {
            sums->f64[i * step] += x->f64[i];
        }
    }
}

/* sums = alpha sums + beta addend */
static void npu__ref_contract_finish(const npu__ref_contraction *s, const npu_launch *l, const int64_t *index,
                                     size_t n, npu__ref_strip *sums)
{
    npu__ref_strip c;
    bool has_addend = s->addend != NPU_NO_INDEX && s->beta != 0;
    memset(&c, 0, sizeof c);
    if (has_addend) {
        npu__ref_load_class(s->cls, &c, l->x[s->addend], l->in[s->addend].dtype,
                            npu__ref_axis_offset(s, s->factors + 1, index),
                            s->steps[s->factors + 1][s->strip], n);
    }
    for (size_t i = 0; i < n; i++) {
        if (s->cls == NPU__I64) {
            sums->i64[i] = (int64_t)((uint64_t)npu__ref_to_i64(s->alpha) * (uint64_t)sums->i64[i] +
                                     (uint64_t)npu__ref_to_i64(s->beta) * (uint64_t)c.i64[i]);
        } else {
            sums->f64[i] = s->alpha * sums->f64[i] + (has_addend ? s->beta * c.f64[i] : 0);
        }
    }
}

static size_t npu__ref_contract_len(const npu__ref_contraction *s, const int64_t *index)
{
    return s->axes == 0 ? 1 : (size_t)npu__ref_min(NPU__STRIP, s->dims[s->strip] - index[s->strip]);
}

/* One strip, or one element where strips lie along a summed axis, at the place of the first `rank` indices.
   */
static void npu__ref_contract_strip(const npu__ref_contraction *s, const npu_launch *l, int64_t *index)
{
    npu__ref_strip sums, x;
    bool across = s->axes == 0 || s->strip < s->rank, some = true;
    size_t n = across ? npu__ref_contract_len(s, index) : 1;
    memset(&sums, 0, sizeof sums);
    for (uint32_t i = s->rank; i < s->axes; i++) {
        index[i] = 0;
        some = some && s->dims[i] > 0;
    }
    while (some) {
        size_t len = npu__ref_contract_len(s, index);
        npu__ref_contract_products(s, l, index, len, &x);
        npu__ref_contract_add(s->cls, &sums, &x, len, across);
        some = npu__ref_axis_next(s, index, s->rank, s->axes);
    }
    npu__ref_contract_finish(s, l, index, n, &sums);
    npu__ref_store_class(s->cls, l->y[0], l->out[0].dtype, npu__ref_axis_offset(s, s->factors, index),
                         across && s->axes ? s->steps[s->factors][s->strip] : 1, &sums, n);
}

static int64_t npu__ref_contract_items(const npu__ref_contraction *s)
{
    int64_t items = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        items *= npu__ref_ceil_div(s->dims[i], npu__ref_axis_step(s, i));
    }
    return items;
}

static npu_status npu__ref_contract_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_contraction *s = l->state;
    int64_t items = npu__ref_contract_items(s), item = items * part / parts, end = items * (part + 1) / parts,
            rest = item;
    int64_t index[NPU__AXES] = { 0 };
    for (uint32_t i = s->rank; i-- > 0 && items > 0;) {
        int64_t count = npu__ref_ceil_div(s->dims[i], npu__ref_axis_step(s, i));
        index[i] = rest % count * npu__ref_axis_step(s, i);
        rest /= count;
    }
    for (; item < end; item++) {
        npu__ref_contract_strip(s, l, index);
        npu__ref_axis_next(s, index, 0, s->rank);
    }
    return NPU_OK;
}

/* Says which axis each dim of a tensor lies on; dims of 1 are repeated. */
static void npu__ref_contract_map(npu__ref_contraction *s, uint32_t tensor, const npu_tensor *t,
                                  const uint8_t *axes)
{
    int64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0; step *= t->dims[i]) {
        NPU_IR_ASSERT(axes[i] < NPU__AXES);
        if (t->dims[i] != 1) {
            s->steps[tensor][axes[i]] += step;
            s->dims[axes[i]] = t->dims[i];
        }
    }
}

static void npu__ref_contract_letters(npu__ref_contraction *s, uint32_t tensor, const npu_tensor *t,
                                      const char *letters)
{
    uint8_t axes[NPU_MAX_RANK] = { 0 };
    for (uint32_t i = 0; letters[i]; i++) {
        NPU_IR_ASSERT(i < NPU_MAX_RANK && letters[i] >= 'a');
        axes[i] = (uint8_t)(letters[i] - 'a');
    }
    npu__ref_contract_map(s, tensor, t, axes);
}

/* Axes from `first` on for all dims of a tensor but those in the mask. Returns the next free axis. */
static uint8_t npu__ref_contract_free(uint8_t *axes, uint32_t rank, uint32_t mask, uint8_t first)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (!(mask >> i & 1u)) {
            axes[i] = first++;
        }
    }
    return first;
}

static void npu__ref_contract_einsum(const npu_prepare *p, npu__ref_contraction *s)
{
    const npu_bound_arg *equation = npu_op_arg(p->op, "equation");
    uint8_t axes[NPU_MAX_RANK], uses[NPU__AXES] = { 0 };
    int ellipsis = 0, n;
    s->factors = p->op->num_in;
    for (uint32_t k = 0; k < s->factors; k++) {
        int rank = (int)p->in[k].rank, own = rank - npu_einsum_term(equation, k, false, 0, axes);
        npu_einsum_term(equation, k, false, own, axes);
        ellipsis = own > ellipsis ? own : ellipsis;
        npu__ref_contract_map(s, k, &p->in[k], axes);
        for (int i = 0; i < rank; i++) {
            uses[axes[i]] = (uint8_t)(uses[axes[i]] ? 2 : 1);
        }
    }
    n = npu_einsum_term(equation, 0, true, ellipsis, axes);
    if (n < 0) { /* no "->": the ellipsis and letters that occur once */
        n = npu__ref_contract_free(axes, (uint32_t)ellipsis, 0, (uint8_t)(59 - ellipsis)) ? ellipsis : 0;
        for (uint8_t i = 0; i < 52; i++) {
            if (uses[i] == 1) {
                axes[n++] = i;
            }
        }
    }
    npu__ref_contract_map(s, s->factors, &p->out[0], axes);
}

/* self and other of ranks a and b: the last dims, or those listed, lie on shared axes. */
static void npu__ref_contract_pairs(const npu_prepare *p, npu__ref_contraction *s)
{
    const npu_tensor *a = &p->in[0], *b = &p->in[1];
    uint8_t a_axes[NPU_MAX_RANK], b_axes[NPU_MAX_RANK], out[2 * NPU_MAX_RANK], next;
    bool listed = npu_op_arg(p->op, "dims_self") != NULL;
    uint32_t a_mask = 0, b_mask = 0,
             count = listed ? npu_op_list_len(p->op, "dims_self") : a->rank && b->rank;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = npu__ref_dim(listed ? npu_op_int_at(p->op, "dims_self", i) : -1, a->rank);
        uint32_t y = npu__ref_dim(listed ? npu_op_int_at(p->op, "dims_other", i) : -1, b->rank);
        a_mask |= 1u << x, b_mask |= 1u << y;
        a_axes[x < NPU_MAX_RANK ? x : 0] = b_axes[y < NPU_MAX_RANK ? y : 0] = (uint8_t)(2 * NPU_MAX_RANK + i);
    }
    next = npu__ref_contract_free(a_axes, a->rank, a_mask, 0);
    npu__ref_contract_free(b_axes, b->rank, b_mask, next);
    npu__ref_contract_free(out, 2 * NPU_MAX_RANK, 0, 0);
    npu__ref_contract_map(s, 0, a, a_axes);
    npu__ref_contract_map(s, 1, b, b_axes);
    npu__ref_contract_map(s, 2, &p->out[0], out);
}

/* Every dim of the result is an axis of self and, inside it, one of other. */
static void npu__ref_contract_kron(const npu_prepare *p, npu__ref_contraction *s)
{
    uint32_t rank = p->out[0].rank;
    int64_t step = 1;
    for (uint32_t k = 0; k < 2; k++) {
        uint8_t axes[NPU_MAX_RANK];
        for (uint32_t i = 0; i < p->in[k].rank; i++) {
            axes[i] = (uint8_t)(2 * (rank - p->in[k].rank + i) + k);
        }
        npu__ref_contract_map(s, k, &p->in[k], axes);
    }
    for (uint32_t i = rank; i-- > 0; step *= p->out[0].dims[i]) {
        s->steps[2][2 * i + 1] = step;
        s->steps[2][2 * i] = step * s->dims[2 * i + 1];
    }
    for (uint32_t i = 0; i < 2 * rank; i++) {
        s->steps[2][i] = s->dims[i] == 1 ? 0 : s->steps[2][i];
    }
}

/* Dims from the end on axes 7 - i, but for the one that is summed. */
static void npu__ref_contract_vecdot(const npu_prepare *p, npu__ref_contraction *s)
{
    uint32_t rank = p->out[0].rank + 1, at = npu__ref_dim(npu_op_int(p->op, "dim", -1), rank), n = 0;
    uint8_t axes[NPU_MAX_RANK], out[NPU_MAX_RANK];
    npu__ref_contract_free(axes, rank, 0, 0);
    for (uint32_t i = 0; i < rank; i++) {
        if (i != at) {
            out[n++] = (uint8_t)i;
        }
    }
    npu__ref_contract_map(s, 0, &p->in[0], axes + rank - p->in[0].rank);
    npu__ref_contract_map(s, 1, &p->in[1], axes + rank - p->in[1].rank);
    npu__ref_contract_map(s, 2, &p->out[0], out);
}

/* An addend whose last dims are those of the result. */
static void npu__ref_contract_addend(const npu_prepare *p, npu__ref_contraction *s, uint32_t operand,
                                     const char *letters)
{
    uint32_t rank = p->in[operand].rank, skip = (uint32_t)strlen(letters) - rank;
    s->addend = operand;
    npu__ref_contract_letters(s, s->factors + 1, &p->in[operand], letters + skip);
    s->alpha = npu_scalar_value(npu_op_scalar(p->op, "alpha", npu_scalar_int(1)));
    s->beta = npu_scalar_value(npu_op_scalar(p->op, "beta", npu_scalar_int(1)));
}

static void npu__ref_contract_letters3(const npu_prepare *p, npu__ref_contraction *s, const char *a,
                                       const char *b, const char *y)
{
    npu__ref_contract_letters(s, 0, &p->in[s->first], a);
    npu__ref_contract_letters(s, 1, &p->in[s->first + 1], b);
    npu__ref_contract_letters(s, s->factors, &p->out[0], y);
}

/* Leading dims are a .. g, then i and j are summed, o is kept. */
static void npu__ref_contract_bilinear(const npu_prepare *p, npu__ref_contraction *s)
{
    char a[NPU_MAX_RANK + 1] = "abcdefg", b[NPU_MAX_RANK + 1] = "abcdefg", y[NPU_MAX_RANK + 1] = "abcdefg";
    uint32_t last = p->in[0].rank - 1;
    a[last] = 'i', b[last] = 'j', y[last] = 'o';
    a[last + 1] = b[last + 1] = y[last + 1] = 0;
    s->factors = 3;
    npu__ref_contract_letters3(p, s, a, b, y);
    npu__ref_contract_letters(s, 2, &p->in[2], "oij");
    if (p->op->num_in > 3 && p->in[3].dtype) {
        npu__ref_contract_addend(p, s, 3, "o");
    }
}

static void npu__ref_contract_axes(const npu_prepare *p, npu__ref_contraction *s)
{
    switch (p->op->kind) {
    case NPU_ATEN_EINSUM: npu__ref_contract_einsum(p, s); break;
    case NPU_ATEN_OUTER: npu__ref_contract_letters3(p, s, "i", "j", "ij"); break;
    case NPU_ATEN_KRON: npu__ref_contract_kron(p, s); break;
    case NPU_ATEN_BILINEAR: npu__ref_contract_bilinear(p, s); break;
    case NPU_ATEN_LINALG_VECDOT: npu__ref_contract_vecdot(p, s); break;
    case NPU_ATEN_ADDR: case NPU_ATEN_ADDBMM:
        s->first = 1;
        npu__ref_contract_letters3(p, s, p->op->kind == NPU_ATEN_ADDR ? "i" : "bik",
                                   p->op->kind == NPU_ATEN_ADDR ? "j" : "bkj", "ij");
        npu__ref_contract_addend(p, s, 0, "ij");
        break;
    default: npu__ref_contract_pairs(p, s); break;
    }
}

/* Moves an axis down to place `to`. */
static void npu__ref_contract_move(npu__ref_contraction *s, uint32_t to, uint32_t from)
{
    int64_t dim = s->dims[to];
    s->dims[to] = s->dims[from], s->dims[from] = dim;
    for (uint32_t k = 0; k < s->factors + 2; k++) {
        int64_t step = s->steps[k][to];
        s->steps[k][to] = s->steps[k][from], s->steps[k][from] = step;
    }
}

/* Axes of 1 fall away, those of the result come first, and the longest gets the strips. */
static void npu__ref_contract_sort(npu__ref_contraction *s)
{
    s->axes = NPU__AXES;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t n = pass ? s->rank : 0;
        for (uint32_t i = n; i < NPU__AXES; i++) {
            if (s->dims[i] != 1 && (pass || s->steps[s->factors][i] != 0)) {
                npu__ref_contract_move(s, n++, i);
            }
        }
        *(pass ? &s->axes : &s->rank) = n;
    }
    for (uint32_t i = 1; i < s->axes; i++) {
        s->strip = s->dims[i] > s->dims[s->strip] ? i : s->strip;
    }
}

static npu_status npu__ref_contract_prepare(npu_prepare *p)
{
    npu__ref_contraction *s = npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->steps = npu_prepare_alloc(p, (p->op->num_in + 2) * sizeof *s->steps);
    if (!s->steps) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < NPU__AXES; i++) {
        s->dims[i] = 1;
    }
    s->alpha = 1, s->factors = 2, s->addend = NPU_NO_INDEX;
    s->cls = npu__ref_compute_class(p->out[0].dtype) == NPU__I64 ? NPU__I64 : NPU__F64;
    npu__ref_contract_axes(p, s);
    npu__ref_contract_sort(s);
    p->parts = npu__ref_parts((size_t)npu__ref_contract_items(s), 64);
    return NPU_OK;
}

#define NPU__REF_CONTRACT_ROW(kind) \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_contract_prepare, npu__ref_contract_launch)

static const npu_kernel npu__ref_kernels_contraction[] = {
    NPU__REF_CONTRACT_ROW(NPU_ATEN_EINSUM),       NPU__REF_CONTRACT_ROW(NPU_ATEN_OUTER),
    NPU__REF_CONTRACT_ROW(NPU_ATEN_INNER),        NPU__REF_CONTRACT_ROW(NPU_ATEN_TENSORDOT),
    NPU__REF_CONTRACT_ROW(NPU_ATEN_KRON),         NPU__REF_CONTRACT_ROW(NPU_ATEN_BILINEAR),
    NPU__REF_CONTRACT_ROW(NPU_ATEN_ADDBMM),       NPU__REF_CONTRACT_ROW(NPU_ATEN_ADDR),
    NPU__REF_CONTRACT_ROW(NPU_ATEN_LINALG_VECDOT)
};

/* ---- linear algebra ----

   Matrices are copied to workspace as doubles. Determinants, inverses and solutions come from one
   elimination: the square matrix, beside it the columns that are solved for. */

typedef struct npu__ref_linalg {
    npu__ref_batches a, b;        /* of squares, and of what is solved for */
    uint32_t a_index, b_index; /* operands */
    int64_t batch, n, cols; /* cols beside the square */
    bool left, upper, check, unit, transposed;
    npu_kind kind;
    size_t part_bytes;
} npu__ref_linalg;

static void npu__ref_swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = a[i];
        a[i] = b[i], b[i] = x;
    }
}

/* Row operations with pivots until the square is an upper triangle. Returns the sign of the swaps, 0 =
   singular. */
static double npu__ref_eliminate(double *a, int64_t n, int64_t width)
{
    double sign = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            pivot = fabs(a[i * width + k]) > fabs(a[pivot * width + k]) ? i : pivot;
        }
        if (a[pivot * width + k] == 0) {
            return 0;
        }
        if (pivot != k) {
            npu__ref_swap_rows(a + k * width, a + pivot * width, width);
            sign = -sign;
        }
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * width + k] / a[k * width + k];
            for (int64_t j = k; j < width; j++) {
                a[i * width + j] -= factor * a[k * width + j];
            }
        }
    }
    return sign;
}

/* The columns beside a triangle become the solutions. */
static void npu__ref_substitute(double *a, int64_t n, int64_t width, bool upper)
{
    for (int64_t step = 0; step < n; step++) {
        int64_t i = upper ? n - 1 - step : step, first = upper ? i + 1 : 0, end = upper ? n : i;
        for (int64_t col = n; col < width; col++) {
            double sum = a[i * width + col];
            for (int64_t k = first; k < end; k++) {
                sum -= a[i * width + k] * a[k * width + col];
            }
            a[i * width + col] = sum / a[i * width + i];
        }
    }
}

/* The lower triangle becomes its Cholesky factor. Returns 0, or the order of the first minor that is not
   positive. */
static int64_t npu__ref_cholesky(double *a, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = k; i < n; i++) {
            double sum = a[i * n + k];
            for (int64_t j = 0; j < k; j++) {
                sum -= a[i * n + j] * a[k * n + j];
            }
            if (i == k && !(sum > 0)) {
                return k + 1;
            }
            a[i * n + k] = i == k ? sqrt(sum) : sum / a[k * n + k];
        }
    }
    return 0;
}

static void npu__ref_determinant(const npu__ref_linalg *s, const npu_launch *l, double *a, int64_t item)
{
    double sign = npu__ref_eliminate(a, s->n, s->n), log_size = 0, det, first;
    for (int64_t i = 0; i < s->n; i++) {
        log_size += log(fabs(a[i * s->n + i]));
        sign = a[i * s->n + i] < 0 ? -sign : sign;
    }
    det = sign;
    for (int64_t i = 0; i < s->n; i++) {
        det *= fabs(a[i * s->n + i]);
    }
    det = sign == 0 ? 0 : det;
    log_size = sign == 0 ? -HUGE_VAL : log_size;
    first = s->kind == NPU_ATEN_LOGDET ? (sign < 0 ? (double)NAN : log_size) : det;
    if (s->kind == NPU_ATEN_SLOGDET || s->kind == NPU_ATEN_LINALG_SLOGDET) {
        first = det != det ? det : sign;
        npu__ref_store_f64(l->y[1], l->out[1].dtype, item, 1, &log_size, 1);
    }
    npu__ref_store_f64(l->y[0], l->out[0].dtype, item, 1, &first, 1);
}

static npu_status npu__ref_cholesky_item(const npu__ref_linalg *s, const npu_launch *l, double *a, int64_t item)
{
    int64_t n = s->n, info = npu__ref_cholesky(a, n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            a[i * n + j] = 0;
        }
        npu__ref_store_f64(l->y[0], l->out[0].dtype, item * n * n + i * (s->upper ? 1 : n), s->upper ? n : 1,
                           a + i * n, (size_t)n);
    }
    if (s->kind == NPU_ATEN_LINALG_CHOLESKY_EX) {
        npu__ref_store_i64(l->y[1], l->out[1].dtype, item, 1, &info, 1);
    }
    return info && s->check ? NPU_ERR_RANGE : NPU_OK;
}

/* The columns beside the square become the solutions. */
static npu_status npu__ref_solve(const npu__ref_linalg *s, double *a)
{
    int64_t n = s->n, width = n + s->cols;
    switch (s->kind) {
    case NPU_ATEN_LINALG_SOLVE_TRIANGULAR:
        for (int64_t i = 0; i < n && s->unit; i++) {
            a[i * width + i] = 1;
        }
        npu__ref_substitute(a, n, width, s->upper == s->left);
        return NPU_OK;
    case NPU_ATEN_CHOLESKY_SOLVE: /* the factor, then its transpose */
        npu__ref_substitute(a, n, width, false);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < i; j++) {
                a[j * width + i] = a[i * width + j];
            }
        }
        npu__ref_substitute(a, n, width, true);
        return NPU_OK;
    default:
        if (npu__ref_eliminate(a, n, width) == 0) {
            return NPU_ERR_RANGE;
        }
        npu__ref_substitute(a, n, width, true);
        return NPU_OK;
    }
}

/* A unit matrix beside the square. */
static void npu__ref_augment_identity(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        memset(a + (2 * i + 1) * n, 0, (size_t)n * sizeof *a);
        a[(2 * i + 1) * n + i] = 1;
    }
}

static bool npu__ref_is_inverse(npu_kind kind)
{
    return kind == NPU_ATEN_LINALG_INV || kind == NPU_ATEN_LINALG_TENSORINV;
}

/* Beside A come the columns of B, or its rows for X A = B, or the unit matrix. */
static npu_status npu__ref_solve_item(const npu__ref_linalg *s, const npu_launch *l, double *a, int64_t item)
{
    int64_t n = s->n, width = n + s->cols, b = npu__ref_batch_start(&s->b, item), row = s->left ? s->cols : 1;
    npu_status status;
    if (npu__ref_is_inverse(s->kind)) {
        npu__ref_augment_identity(a, n);
    }
    for (int64_t i = 0; i < n && !npu__ref_is_inverse(s->kind); i++) {
        npu__ref_load_f64(a + i * width + n, l->x[s->b_index], l->in[s->b_index].dtype, b + i * row,
                          s->left ? 1 : n, (size_t)s->cols);
    }
    status = npu__ref_solve(s, a);
    for (int64_t i = 0; i < n && !status; i++) {
        npu__ref_store_f64(l->y[0], l->out[0].dtype, item * n * s->cols + i * row, s->left ? 1 : n,
                           a + i * width + n, (size_t)s->cols);
    }
    return status;
}

/* The dims of self in the order of tensorsolve: those that it lists last. */
static npu__ref_batches npu__ref_tensorsolve_order(const npu_prepare *p)
{
    const npu_tensor *a = &p->in[0];
    npu__ref_batches all = npu__ref_batch(a, 0, a, 0), order = all;
    uint32_t count = npu_op_list_len(p->op, "dims"), mask = 0, at = 0;
    for (uint32_t i = 0; i < count; i++) {
        mask |= 1u << npu__ref_dim(npu_op_int_at(p->op, "dims", i), a->rank);
    }
    for (uint32_t i = 0; i < a->rank + count; i++) {
        uint32_t from = i < a->rank ? i : npu__ref_dim(npu_op_int_at(p->op, "dims", i - a->rank), a->rank);
        if (i >= a->rank || !(mask >> i & 1u)) {
            order.dims[at] = all.dims[from], order.step[at++] = all.step[from];
        }
    }
    return order;
}

/* How operands and result divide into matrices. */
static void npu__ref_linalg_shape(const npu_prepare *p, npu__ref_linalg *s)
{
    const npu_tensor *a = &p->in[s->a_index], *b = p->op->num_in > 1 ? &p->in[s->b_index] : a;
    const npu_tensor *out = &p->out[0];
    uint32_t inner = 2;
    s->n = npu__ref_last_dim(a);
    switch (s->kind) {
    case NPU_ATEN_LINALG_TENSORSOLVE:
        s->n = npu__ref_len(out), s->cols = 1, s->batch = s->n > 0;
        s->a = npu__ref_tensorsolve_order(p);
        return;
    case NPU_ATEN_LINALG_TENSORINV:
        s->n = s->cols = (int64_t)npu__ref_dims_len(a, (uint32_t)npu_op_int(p->op, "ind", 2), a->rank);
        s->batch = 1;
        return;
    case NPU_ATEN_LINALG_INV: s->cols = s->n; break;
    case NPU_ATEN_LINALG_SOLVE:
        inner = b->rank == 1 ||
                (b->rank + 1 == a->rank && memcmp(b->dims, a->dims, b->rank * sizeof b->dims[0]) == 0)
            ? 1
            : 2; /* fall through */
    case NPU_ATEN_CHOLESKY_SOLVE: case NPU_ATEN_LINALG_SOLVE_TRIANGULAR:
        s->cols = inner == 1 ? 1 : b->dims[b->rank - (s->left ? 1 : 2)];
        s->b = npu__ref_batch(out, inner, b, inner);
        break;
    case NPU_ATEN_LINALG_CHOLESKY: case NPU_ATEN_LINALG_CHOLESKY_EX: break;
    default: inner = 0; break;
    }
    s->a = npu__ref_batch(out, inner, a, 2);
    s->batch = npu__ref_batch_len(&s->a);
}

/* Workspace of `columns` columns of n doubles for each part. */
static npu_status npu__ref_linalg_parts(npu_prepare *p, npu__ref_linalg *s, int64_t columns, size_t extra)
{
    size_t size;
    if (!npu_size_mul((size_t)s->n * sizeof(double), (size_t)columns, &size) ||
        !npu_size_add(size, 63, &size) || !npu_size_add(size / 64 * 64, extra, &s->part_bytes)) {
        return NPU_ERR_OVERFLOW;
    }
    p->state = s;
    p->parts = npu__ref_parts((size_t)s->batch, (size_t)(NPU__REF_GRAIN / (s->n * s->n * s->n + 1) + 1));
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

static npu_status npu__ref_linalg_prepare(npu_prepare *p)
{
    npu__ref_linalg *s = npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->kind = p->op->kind;
    s->a_index = s->kind == NPU_ATEN_CHOLESKY_SOLVE, s->b_index = !s->a_index;
    s->left = npu_op_int(p->op, "left", 1) != 0;
    s->upper = npu_op_int(p->op, "upper", 0) != 0;
    s->unit = npu_op_int(p->op, "unitriangular", 0) != 0;
    s->transposed = !s->left || (s->upper && s->kind != NPU_ATEN_LINALG_SOLVE_TRIANGULAR);
    s->check = npu_op_int(p->op, "check_errors", s->kind == NPU_ATEN_LINALG_CHOLESKY) != 0;
    npu__ref_linalg_shape(p, s);
    return npu__ref_linalg_parts(p, s, s->n + s->cols, 0);
}

/* The square of one item, a row at a time. */
static void npu__ref_linalg_load(const npu__ref_linalg *s, const npu_launch *l, int64_t item, double *a)
{
    int64_t n = s->n, first = npu__ref_batch_start(&s->a, item);
    if (s->kind == NPU_ATEN_LINALG_TENSORSOLVE) { /* its dims may be in any order */
        for (int64_t i = 0; i < n * n; i++) {
            npu__ref_load_f64(a + i / n * (n + 1) + i % n, l->x[0], l->in[0].dtype,
                              npu__ref_batch_start(&s->a, i), 1, 1);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        npu__ref_load_f64(a + i * (n + s->cols), l->x[s->a_index], l->in[s->a_index].dtype,
                          first + i * (s->transposed ? 1 : n), s->transposed ? n : 1, (size_t)n);
    }
}

static npu_status npu__ref_linalg_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_linalg *s = l->state;
    double *a = (double *)(void *)((char *)l->workspace + part * s->part_bytes);
    npu_status status = NPU_OK;
    for (int64_t item = s->batch * part / parts; item < s->batch * (part + 1) / parts && !status; item++) {
        npu__ref_linalg_load(s, l, item, a);
        switch (s->kind) {
        case NPU_ATEN_DET: case NPU_ATEN_LINALG_DET: case NPU_ATEN_LOGDET: case NPU_ATEN_SLOGDET:
        case NPU_ATEN_LINALG_SLOGDET: npu__ref_determinant(s, l, a, item); break;
        case NPU_ATEN_LINALG_CHOLESKY: case NPU_ATEN_LINALG_CHOLESKY_EX:
            status = npu__ref_cholesky_item(s, l, a, item);
            break;
        default: status = npu__ref_solve_item(s, l, a, item); break;
        }
    }
    return status;
}

/* ---- powers of matrices ---- */

typedef struct npu__ref_power {
    npu__ref_linalg square; /* beside it the unit matrix, or the inverse */
    npu__ref_product gemm;
    uint64_t exponent;
    int cls;
    size_t gemm_bytes;
} npu__ref_power;

/* All matrices have rows of 2 n numbers: the square and what is beside it, then two products side by
   side. */
static npu_status npu__ref_power_prepare(npu_prepare *p)
{
    npu__ref_power *s = npu_prepare_alloc(p, sizeof *s);
    int64_t exponent = npu_op_int(p->op, "n", 1), n = npu__ref_last_dim(&p->in[0]);
    npu_status status;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->exponent = exponent < 0 ? 0 - (uint64_t)exponent : (uint64_t)exponent;
    s->cls = npu__ref_compute_class(p->in[0].dtype) == NPU__I64 ? NPU__I64 : NPU__F64;
    s->square.kind = p->op->kind;
    s->square.check = exponent < 0;
    s->square.n = s->square.cols = n;
    s->square.a = npu__ref_batch(&p->out[0], 2, &p->in[0], 2);
    s->square.batch = npu__ref_batch_len(&s->square.a);
    s->gemm.m = s->gemm.n = s->gemm.k = n;
    s->gemm.a.dtype = s->gemm.b.dtype = s->gemm.c_dtype = npu__ref_class_dtype[s->cls];
    s->gemm.a.row = s->gemm.b.row = s->gemm.c_row = 2 * n;
    s->gemm.a.col = s->gemm.b.col = s->gemm.c_col = 1;
    s->gemm.alpha = 1;
    s->gemm.isa = p->isa;
    s->gemm_bytes = npu__ref_gemm_workspace(&s->gemm);
    status = npu__ref_linalg_parts(p, &s->square, 4 * n, s->gemm_bytes);
    p->state = s;
    return status;
}

/* Squares and products as the bits of the exponent have it, from the highest one down. */
static npu_status npu__ref_power_item(const npu__ref_power *s, const npu_launch *l, double *a, int64_t item)
{
    int64_t n = s->square.n, turn = 0;
    int bit = 0, cls = s->exponent ? s->cls : NPU__F64; /* power 0 is the unit matrix */
    npu__ref_product g = s->gemm;
    double *base = s->exponent == 0 || s->square.check ? a + n : a;
    for (int64_t i = 0; i < n; i++) {
        npu__ref_load_class(cls, a + 2 * i * n, l->x[0], l->in[0].dtype, (item * n + i) * n, 1, (size_t)n);
    }
    if (base != a) {
        npu__ref_augment_identity(a, n);
    }
    if (s->square.check && npu__ref_solve(&s->square, a)) {
        return NPU_ERR_RANGE;
    }
    while (s->exponent >> bit > 1) {
        bit++;
    }
    g.a.x = base;
    g.workspace = (char *)a + s->square.part_bytes - s->gemm_bytes;
    for (bit--; bit >= 0; bit--) {
        for (uint64_t factors = 0; factors <= (s->exponent >> bit & 1); factors++) {
            g.b.x = factors ? base : g.a.x;
            g.c = a + 2 * n * n + turn * n;
            npu__ref_gemm(&g, 0, 1);
            g.a.x = g.c;
            turn = !turn;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        npu__ref_store_class(cls, l->y[0], l->out[0].dtype, (item * n + i) * n, 1,
                             (const double *)g.a.x + 2 * i * n, (size_t)n);
    }
    return NPU_OK;
}

static npu_status npu__ref_power_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_power *s = l->state;
    double *a = (double *)(void *)((char *)l->workspace + part * s->square.part_bytes);
    int64_t batch = s->square.batch;
    npu_status status = NPU_OK;
    for (int64_t item = batch * part / parts; item < batch * (part + 1) / parts && !status; item++) {
        status = npu__ref_power_item(s, l, a, item);
    }
    return status;
}

/* ---- chains of matrices ----

   Multiplied one after the other, from the left or from the right, whichever is cheaper. */

typedef struct npu__ref_chain {
    bool from_right;
    size_t buffer; /* bytes of a product; two lie in front of what npu__ref_gemm needs */
} npu__ref_chain;

/* A vector is a row in front and a column at the end. */
static void npu__ref_chain_size(const npu_tensor *in, uint32_t count, uint32_t i, int64_t *rows,
                                int64_t *cols)
{
    bool is_column = i + 1 == count;
    *rows = in[i].rank == 2 || is_column ? in[i].dims[0] : 1;
    *cols = in[i].rank == 2 ? in[i].dims[1] : is_column ? 1 : in[i].dims[0];
}

/* Product `step` of the chain: A and B are matrices `first` and first + 1, but for the side that is the
   product so far. */
static npu__ref_product npu__ref_chain_step(const npu_tensor *in, uint32_t count, const npu_tensor *out,
                                     bool from_right, uint32_t step, uint32_t *first)
{
    bool integer = npu__ref_compute_class(out->dtype) == NPU__I64;
    uint32_t done = integer ? NPU_I64 : npu__ref_sum_dtype(out->dtype);
    npu__ref_product g = { 0 };
    int64_t shared;
    *first = from_right ? count - 2 - step : step;
    npu__ref_chain_size(in, count, from_right ? *first : 0, &g.m, &shared);
    npu__ref_chain_size(in, count, from_right ? count - 1 : *first + 1, &shared, &g.n);
    npu__ref_chain_size(in, count, *first + 1, &g.k, &shared);
    g.a.dtype = step && !from_right ? done : out->dtype;
    g.b.dtype = step && from_right ? done : out->dtype;
    g.c_dtype = step + 2 == count ? out->dtype : done;
    g.a.row = g.k, g.b.row = g.c_row = g.n;
    g.a.col = g.b.col = g.c_col = 1;
    g.alpha = 1;
    return g;
}

static npu_status npu__ref_chain_prepare(npu_prepare *p)
{
    npu__ref_chain *s = npu_prepare_alloc(p, sizeof *s);
    uint32_t count = p->op->num_in, first;
    double costs[2] = { 0, 0 };
    size_t most = 0;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < 2 * (count - 1); i++) {
        npu__ref_product g = npu__ref_chain_step(p->in, count, p->out, i >= count - 1, i % (count - 1), &first);
        costs[i >= count - 1] += (double)g.m * (double)g.k * (double)g.n;
    }
    s->from_right = costs[1] < costs[0];
    for (uint32_t i = 0; i < count - 1; i++) {
        npu__ref_product g = npu__ref_chain_step(p->in, count, p->out, s->from_right, i, &first);
        size_t bytes, size;
        g.isa = p->isa;
        bytes = npu__ref_gemm_workspace(&g);
        if (!npu_size_mul((size_t)g.m * sizeof(double), (size_t)g.n, &size) ||
            !npu_size_add(size, 63, &size)) {
            return NPU_ERR_OVERFLOW;
        }
        most = bytes > most ? bytes : most;
        s->buffer = size / 64 * 64 > s->buffer ? size / 64 * 64 : s->buffer;
    }
    p->state = s;
    return npu_size_mul(s->buffer, 2, &p->workspace) && npu_size_add(p->workspace, most, &p->workspace)
               ? NPU_OK
               : NPU_ERR_OVERFLOW;
}

static npu_status npu__ref_chain_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_chain *s = l->state;
    char *workspace = l->workspace, *done = NULL;
    (void)part, (void)parts;
    for (uint32_t step = 0; step + 1 < l->num_in; step++) {
        uint32_t first;
        npu__ref_product g = npu__ref_chain_step(l->in, l->num_in, l->out, s->from_right, step, &first);
        g.isa = l->isa;
        g.a.x = done && !s->from_right ? done : l->x[first];
        g.b.x = done && s->from_right ? done : l->x[first + 1];
        done = step + 2 == l->num_in ? (char *)l->y[0] : workspace + step % 2 * s->buffer;
        g.c = done;
        g.workspace = workspace + 2 * s->buffer;
        npu__ref_gemm(&g, 0, 1);
    }
    return NPU_OK;
}

/* ---- cross products ---- */

typedef struct npu__ref_cross {
    npu__ref_batches operands[2];
    int64_t steps[2], inner; /* between the three numbers of a vector: in operands, in the result */
    int cls;
} npu__ref_cross;

static npu_status npu__ref_cross_prepare(npu_prepare *p)
{
    npu__ref_cross *s = npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *out = &p->out[0];
    uint32_t axis = 0;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    while (p->in[0].dims[axis] != 3) {
        axis++;
    }
    axis = npu_op_has(p->op, "dim") ? npu__ref_dim(npu_op_int(p->op, "dim", -1), out->rank) : axis;
    s->cls = npu__ref_compute_class(out->dtype) == NPU__I64 ? NPU__I64 : NPU__F64;
    for (uint32_t k = 0; k < 2; k++) {
        s->operands[k] = npu__ref_batch(out, 0, &p->in[k], 0);
        s->steps[k] = s->operands[k].step[axis];
    }
    s->inner = (int64_t)npu__ref_dims_len(out, axis + 1, out->rank);
    p->state = s;
    p->parts = npu__ref_parts((size_t)npu__ref_len(out), NPU__REF_GRAIN / 16);
    return NPU_OK;
}

static npu_status npu__ref_cross_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_cross *s = l->state;
    int64_t items = npu__ref_len(&l->out[0]) / 3;
    for (int64_t item = items * part / parts; item < items * (part + 1) / parts; item++) {
        int64_t first = item / s->inner * 3 * s->inner + item % s->inner;
        npu__ref_strip x[2], y;
        for (int k = 0; k < 2; k++) {
            npu__ref_load_class(s->cls, &x[k], l->x[k], l->in[k].dtype,
                                npu__ref_batch_start(&s->operands[k], first), s->steps[k], 3);
        }
        for (int c = 0; c < 3; c++) {
            int i = (c + 1) % 3, j = (c + 2) % 3;
            if (s->cls == NPU__I64) {
                y.i64[c] = NPU__REF_WRAP(NPU__REF_WRAP(x[0].i64[i], *, x[1].i64[j]), -,
                                         NPU__REF_WRAP(x[0].i64[j], *, x[1].i64[i]));
            } else {
                y.f64[c] = x[0].f64[i] * x[1].f64[j] - x[0].f64[j] * x[1].f64[i];
            }
        }
        npu__ref_store_class(s->cls, l->y[0], l->out[0].dtype, first, s->inner, &y, 3);
    }
    return NPU_OK;
}

#define NPU__REF_LINALG_ROW(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_linalg_prepare, npu__ref_linalg_launch)

static const npu_kernel npu__ref_kernels_linalg[] = {
    NPU__REF_LINALG_ROW(NPU_ATEN_DET),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_DET),
    NPU__REF_LINALG_ROW(NPU_ATEN_LOGDET),
    NPU__REF_LINALG_ROW(NPU_ATEN_SLOGDET),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_SLOGDET),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_INV),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_CHOLESKY),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_CHOLESKY_EX),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_SOLVE),
    NPU__REF_LINALG_ROW(NPU_ATEN_CHOLESKY_SOLVE),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_SOLVE_TRIANGULAR),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_TENSORINV),
    NPU__REF_LINALG_ROW(NPU_ATEN_LINALG_TENSORSOLVE),
    NPU__REF_ROW(NPU_ATEN_LINALG_MATRIX_POWER, "plain", 0, NULL, npu__ref_power_prepare, npu__ref_power_launch),
    NPU__REF_ROW(NPU_ATEN_MATRIX_POWER, "plain", 0, NULL, npu__ref_power_prepare, npu__ref_power_launch),
    NPU__REF_ROW(NPU_ATEN_LINALG_MULTI_DOT, "plain", 0, NULL, npu__ref_chain_prepare, npu__ref_chain_launch),
    NPU__REF_ROW(NPU_ATEN_CROSS, "plain", 0, NULL, npu__ref_cross_prepare, npu__ref_cross_launch),
    NPU__REF_ROW(NPU_ATEN_LINALG_CROSS, "plain", 0, NULL, npu__ref_cross_prepare, npu__ref_cross_launch)
};

/* ---- Fourier transforms ----

   A transform over several dims is one along each of them, in double. Along a dim of n = p m numbers (p the smallest
   prime factor): p transforms of m numbers each, and p times m sums of p products, so n (p1 + p2 + ..) in all. The
   complex side of the transform is worked on in place; the real one is read or written along the last dim listed. */

typedef struct npu__ref_fft_dim {
    int64_t len, kept;     /* numbers of the transform, and of the complex side */
    int64_t outer, inner;  /* lines, and the step from one number of a line to the next */
    double *roots;         /* len complex numbers: powers of exp(-2 pi i / len), conjugate for inverses */
} npu__ref_fft_dim;

typedef struct npu__ref_fft {
    npu__ref_fft_dim dims[NPU_MAX_RANK]; /* in the order listed */
    uint32_t num_dims, real;         /* real: the dtype of numbers in memory */
    int64_t numbers, longest;        /* of the complex side; of a line */
    bool from_real, to_real;
    double scale;
} npu__ref_fft;

static int64_t npu__ref_prime_factor(int64_t n)
{
    int64_t p = 2;
    while (p * p <= n && n % p) {
        p += p == 2 ? 1 : 2;
    }
    return p * p <= n ? p : n;
}

/* y[0..n) becomes the transform of x[0], x[step] ..; numbers are pairs. roots[i * every] is the i-th power for n. */
static void npu__ref_fft_line(const double *x, int64_t step, double *y, int64_t n, const double *roots, int64_t every,
                              double *terms)
{
    int64_t p = npu__ref_prime_factor(n), m = n / p;
    if (n == 1) {
        y[0] = x[0], y[1] = x[1];
        return;
    }
    for (int64_t r = 0; r < p; r++) {
        npu__ref_fft_line(x + 2 * r * step, step * p, y + 2 * r * m, m, roots, every * p, terms);
    }
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++) {
            const double *w = roots + 2 * (r * k * every), *t = y + 2 * (r * m + k);
            terms[2 * r] = t[0] * w[0] - t[1] * w[1];
            terms[2 * r + 1] = t[0] * w[1] + t[1] * w[0];
        }
        for (int64_t q = 0; q < p; q++) {
            double re = 0, im = 0;
            for (int64_t r = 0; r < p; r++) {
                const double *w = roots + 2 * (r * q % p * m * every);
                re += terms[2 * r] * w[0] - terms[2 * r + 1] * w[1];
                im += terms[2 * r] * w[1] + terms[2 * r + 1] * w[0];
            }
            y[2 * (q * m + k)] = re, y[2 * (q * m + k) + 1] = im;
        }
    }
}

static npu_status npu__ref_fft_roots(npu_prepare *p, npu__ref_fft_dim *dim, bool is_forward)
{
    double turn = (is_forward ? -2 : 2) * 3.14159265358979323846;
    size_t size;
    dim->roots = npu_size_mul((size_t)dim->len, 2 * sizeof *dim->roots, &size) ? npu_prepare_alloc(p, size) : NULL;
    for (int64_t i = 0; dim->roots && i < dim->len; i++) {
        dim->roots[2 * i] = cos(turn * (double)i / (double)dim->len);
        dim->roots[2 * i + 1] = sin(turn * (double)i / (double)dim->len);
    }
    return dim->roots ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static void npu__ref_fft_dims(npu__ref_fft *s, const npu_op_info *op, const npu_tensor *whole, const npu_tensor *other)
{
    int64_t signal = 1, normalization = npu_op_int(op, "normalization", 0);
    s->num_dims = npu_op_list_len(op, "dim");
    s->numbers = npu__ref_len(whole);
    for (uint32_t i = 0; i < s->num_dims; i++) {
        uint32_t axis = npu__ref_dim(npu_op_int_at(op, "dim", i), whole->rank);
        npu__ref_fft_dim *dim = &s->dims[i];
        dim->kept = whole->dims[axis];
        dim->len = other->dims[axis] > dim->kept ? other->dims[axis] : dim->kept;
        dim->len = i + 1 == s->num_dims && (s->from_real || s->to_real) ? other->dims[axis] : dim->len;
        dim->inner = 1;
        for (uint32_t k = axis + 1; k < whole->rank; k++) {
            dim->inner *= whole->dims[k];
        }
        dim->outer = s->numbers ? s->numbers / (dim->kept * dim->inner) : 0;
        s->longest = dim->len > s->longest ? dim->len : s->longest;
        signal *= dim->len;
    }
    s->scale = normalization == 1 ? 1 / sqrt((double)signal) : normalization == 2 ? 1 / (double)signal : 1;
}

static npu_status npu__ref_fft_prepare(npu_prepare *p)
{
    npu__ref_fft *s = npu_prepare_alloc(p, sizeof *s);
    npu_status status = s ? NPU_OK : NPU_ERR_NO_MEMORY;
    size_t numbers;
    if (status) {
        return status;
    }
    p->state = s;
    s->from_real = p->op->kind == NPU_ATEN_FFT_R2C;
    s->to_real = p->op->kind == NPU_ATEN_FFT_C2R;
    s->real = s->from_real ? p->in[0].dtype : p->in[0].dtype == NPU_C128 ? (uint32_t)NPU_F64 : (uint32_t)NPU_F32;
    npu__ref_fft_dims(s, p->op, s->from_real ? &p->out[0] : &p->in[0], s->from_real ? &p->in[0] : &p->out[0]);
    for (uint32_t i = 0; i < s->num_dims && status == NPU_OK; i++) {
        bool is_forward = s->from_real || (!s->to_real && npu_op_int(p->op, "forward", 0));
        status = npu__ref_fft_roots(p, &s->dims[i], is_forward);
    }
    p->parts = 1;
    return status                                                                                          ? status
           : npu_size_add((size_t)s->numbers, 3 * (size_t)s->longest, &numbers) &&
                     npu_size_mul(numbers, 2 * sizeof(double), &p->workspace) ? NPU_OK
                                                                              : NPU_ERR_OVERFLOW;
}

/* The line at `first`, with `step`, of the complex side: transformed into `to`. */
static void npu__ref_fft_whole(const npu__ref_fft_dim *dim, double *work, double *to, double *terms)
{
    npu__ref_fft_line(work, dim->inner, to, dim->len, dim->roots, 1, terms);
    for (int64_t i = 0; i < dim->kept; i++) {
        memcpy(work + 2 * i * dim->inner, to + 2 * i, 2 * sizeof *to);
    }
}

/* A line of real numbers: read from x, its first numbers kept. */
static void npu__ref_fft_from_real(const npu__ref_fft *s, const npu__ref_fft_dim *dim, const void *x, int64_t at,
                                   double *work, double *line)
{
    double *to = line + 2 * dim->len, *terms = to + 2 * dim->len;
    npu__ref_load_f64(to, x, s->real, at, dim->inner, (size_t)dim->len);
    for (int64_t i = 0; i < dim->len; i++) {
        line[2 * i] = to[i], line[2 * i + 1] = 0;
    }
    npu__ref_fft_line(line, 1, to, dim->len, dim->roots, 1, terms);
    for (int64_t i = 0; i < dim->kept; i++) {
        memcpy(work + 2 * i * dim->inner, to + 2 * i, 2 * sizeof *to);
    }
}

/* The other way: the half that is left out is the conjugate of the other, and what must be real counts as real. */
static void npu__ref_fft_to_real(const npu__ref_fft *s, const npu__ref_fft_dim *dim, const double *work, void *y,
                                 int64_t at, double *line)
{
    double *to = line + 2 * dim->len, *terms = to + 2 * dim->len;
    for (int64_t i = 0; i < dim->len; i++) {
        bool is_left_out = i >= dim->kept, is_real = i == 0 || 2 * i == dim->len;
        const double *from = work + 2 * (is_left_out ? dim->len - i : i) * dim->inner;
        line[2 * i] = from[0];
        line[2 * i + 1] = is_real ? 0 : is_left_out ? -from[1] : from[1];
    }
    npu__ref_fft_line(line, 1, to, dim->len, dim->roots, 1, terms);
    for (int64_t i = 0; i < dim->len; i++) {
        line[i] = to[2 * i] * s->scale;
    }
    npu__ref_store_f64(y, s->real, at, dim->inner, line, (size_t)dim->len);
}

/* All lines along one dim. */
static void npu__ref_fft_lines(const npu__ref_fft *s, const npu_launch *l, const npu__ref_fft_dim *dim, double *work)
{
    double *line = work + 2 * s->numbers;
    bool is_last = dim == &s->dims[s->num_dims - 1];
    for (int64_t i = 0; i < dim->outer * dim->inner; i++) {
        int64_t outer = i / dim->inner, inner = i % dim->inner;
        double *first = work + 2 * (outer * dim->kept * dim->inner + inner);
        int64_t real = outer * dim->len * dim->inner + inner;
        if (is_last && s->from_real) {
            npu__ref_fft_from_real(s, dim, l->x[0], real, first, line);
        } else if (is_last && s->to_real) {
            npu__ref_fft_to_real(s, dim, first, l->y[0], real, line);
        } else {
            npu__ref_fft_whole(dim, first, line, line + 2 * dim->len);
        }
    }
}

static npu_status npu__ref_fft_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_fft *s = l->state;
    double *work = l->workspace;
    size_t numbers = (size_t)s->numbers * 2;
    (void)part, (void)parts;
    if (s->from_real) {
        npu__ref_fft_lines(s, l, &s->dims[s->num_dims - 1], work);
    } else {
        npu__ref_load_f64(work, l->x[0], s->real, 0, 1, numbers);
    }
    for (uint32_t i = 0; i + (s->from_real || s->to_real) < s->num_dims; i++) {
        npu__ref_fft_lines(s, l, &s->dims[i], work);
    }
    if (s->to_real) {
        npu__ref_fft_lines(s, l, &s->dims[s->num_dims - 1], work);
        return NPU_OK;
    }
    for (size_t i = 0; i < numbers; i++) {
        work[i] *= s->scale;
    }
    npu__ref_store_f64(l->y[0], s->real, 0, 1, work, numbers);
    return NPU_OK;
}

/* The same bytes. */
static npu_status npu__ref_view_complex_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *out = &l->out[0];
    size_t begin, end;
    npu__ref_split((size_t)npu__ref_len(out) * (npu_dtype_bits((npu_dtype)out->dtype) / 8), part, parts, &begin, &end);
    memcpy((char *)l->y[0] + begin, (const char *)l->x[0] + begin, end - begin);
    return NPU_OK;
}

#define NPU__REF_COMPLEX_KERNEL(kind, prepare, launch) \
    NPU__REF_ROW_OF(NPU_KERNEL_COMPLEX, kind, "plain", 0, NULL, prepare, launch, NULL)

static const npu_kernel npu__ref_kernels_spectral[] = {
    NPU__REF_COMPLEX_KERNEL(NPU_ATEN_FFT_R2C, npu__ref_fft_prepare, npu__ref_fft_launch),
    NPU__REF_COMPLEX_KERNEL(NPU_ATEN_FFT_C2R, npu__ref_fft_prepare, npu__ref_fft_launch),
    NPU__REF_COMPLEX_KERNEL(NPU_ATEN_FFT_C2C, npu__ref_fft_prepare, npu__ref_fft_launch),
    NPU__REF_COMPLEX_KERNEL(NPU_ATEN_VIEW_AS_REAL, NULL, npu__ref_view_complex_launch),
    NPU__REF_COMPLEX_KERNEL(NPU_ATEN_VIEW_AS_COMPLEX, NULL, npu__ref_view_complex_launch)
};

/* ---- recurrent layers ----

   All steps of a cell's input are one matrix product; then each step adds that of the state, and the gates
   are computed in double. States stay numbers (float or double) until the end. A cell op is one step of one
   layer. */

typedef struct npu__ref_rnn {
    int64_t steps, batch, input, gates, cell, state; /* as in the type rule; gates 4 = LSTM, 3 = GRU */
    int64_t layers, directions;
    bool relu, sequence, batch_first;
    uint32_t first, per_cell, projection; /* operands; projection: among those of a cell, 0 = none */
    uint32_t dtype, number;               /* of the operands, of sums */
    size_t size;                          /* of a number */
    size_t from_input, from_state, h, c, wide, line[2], gemm; /* offsets in the workspace */
    uint32_t isa;
} npu__ref_rnn;

/* c [m,n] = a [m,k] times the weights [n,k] transposed, plus a bias */
static npu__ref_product npu__ref_rnn_gemm(const npu__ref_rnn *s, uint32_t a_dtype, int64_t m, int64_t n, int64_t k)
{
    npu__ref_product g = { 0 };
    g.m = m, g.n = n, g.k = k;
    g.a.dtype = a_dtype, g.a.row = k, g.a.col = 1;
    g.b.dtype = s->dtype, g.b.row = 1, g.b.col = k;
    g.bias.dtype = s->dtype, g.bias.col = 1;
    g.c_dtype = s->number, g.c_row = n, g.c_col = 1;
    g.alpha = 1;
    g.isa = s->isa;
    return g;
}

static void npu__ref_rnn_sizes(npu__ref_rnn *s, const npu_prepare *p)
{
    npu_kind kind = p->op->kind;
    const npu_tensor *x = &p->in[0], *h = &p->in[1];
    bool lstm = kind == NPU_ATEN_LSTM || kind == NPU_ATEN_LSTM_CELL;
    s->sequence = npu_op_arg(p->op, "params") != NULL;
    s->relu = kind == NPU_ATEN_RNN_RELU || kind == NPU_ATEN_RNN_RELU_CELL;
    s->gates = lstm ? 4 : kind == NPU_ATEN_GRU || kind == NPU_ATEN_GRU_CELL ? 3 : 1;
    s->batch_first = npu_op_int(p->op, "batch_first", 0) != 0;
    s->layers = npu_op_int(p->op, "num_layers", 1);
    s->directions = npu_op_int(p->op, "bidirectional", 0) ? 2 : 1;
    s->batch = s->sequence && h->rank == 2 ? 1 : h->dims[h->rank - 2];
    s->steps = s->sequence ? x->dims[s->batch_first ? 1 : 0] : 1;
    s->input = x->dims[x->rank - 1];
    s->state = h->dims[h->rank - 1];
    s->cell = lstm ? p->in[2].dims[h->rank - 1] : s->state;
    s->first = lstm ? 3 : 2;
    s->per_cell = npu_op_int(p->op, "has_biases", 1) ? 4 : 2;
    s->projection = s->cell != s->state ? s->per_cell++ : 0;
    s->dtype = x->dtype, s->number = npu__ref_sum_dtype(x->dtype), s->size = npu__ref_sum_size(x->dtype);
}

/* Adds rows x cols numbers to the workspace, which becomes SIZE_MAX where they do not fit; returns where they
   begin. */
static size_t npu__ref_rnn_reserve(const npu__ref_rnn *s, size_t *total, int64_t rows, int64_t cols)
{
    size_t at = *total, size;
    bool fits = npu_size_mul((size_t)rows, (size_t)cols, &size) && npu_size_mul(size, s->size, &size) &&
                npu_size_add(size, 63, &size) && npu_size_add(at, size / 64 * 64, total);
    *total = fits ? *total : SIZE_MAX;
    return at;
}

static npu_status npu__ref_rnn_prepare(npu_prepare *p)
{
    npu__ref_rnn *s = npu_prepare_alloc(p, sizeof *s);
    npu__ref_product g[4];
    int64_t rows, width;
    size_t product = 0;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->isa = p->isa;
    npu__ref_rnn_sizes(s, p);
    rows = s->steps * s->batch, width = s->directions * s->state;
    s->from_input = npu__ref_rnn_reserve(s, &p->workspace, rows, s->gates * s->cell);
    s->from_state = npu__ref_rnn_reserve(s, &p->workspace, s->batch, s->gates * s->cell);
    s->h = npu__ref_rnn_reserve(s, &p->workspace, s->batch, s->state);
    s->c = npu__ref_rnn_reserve(s, &p->workspace, s->batch, s->cell);
    s->wide = npu__ref_rnn_reserve(s, &p->workspace, s->batch, s->cell);
    s->line[0] = npu__ref_rnn_reserve(s, &p->workspace, rows, width);
    s->line[1] = npu__ref_rnn_reserve(s, &p->workspace, rows, width);
    s->gemm = p->workspace;
    if (p->workspace == SIZE_MAX) {
        return NPU_ERR_OVERFLOW;
    }
    g[0] = npu__ref_rnn_gemm(s, s->dtype, rows, s->gates * s->cell, s->input);
    g[1] = npu__ref_rnn_gemm(s, s->number, rows, s->gates * s->cell, width);
    g[2] = npu__ref_rnn_gemm(s, s->number, s->batch, s->gates * s->cell, s->state);
    g[3] = npu__ref_rnn_gemm(s, s->number, s->batch, s->state, s->cell);
    for (uint32_t i = 0; i < 4; i++) {
        size_t bytes = npu__ref_gemm_workspace(&g[i]);
        product = bytes > product ? bytes : product;
    }
    return npu_size_add(p->workspace, product, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

static double npu__ref_rnn_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* One number of a cell: x and h are the gates' sums of input and state; the new state is returned. */
static double npu__ref_rnn_number(const npu__ref_rnn *s, const double *x, const double *h, double state,
                                  double *c)
{
    if (s->gates == 4) {
        *c = npu__ref_rnn_sigmoid(x[1] + h[1]) * *c + npu__ref_rnn_sigmoid(x[0] + h[0]) * tanh(x[2] + h[2]);
        return npu__ref_rnn_sigmoid(x[3] + h[3]) * tanh(*c);
    }
    if (s->gates == 3) {
        double update = npu__ref_rnn_sigmoid(x[1] + h[1]);
        double fresh = tanh(x[2] + npu__ref_rnn_sigmoid(x[0] + h[0]) * h[2]);
        return (state - fresh) * update + fresh;
    }
    return !s->relu ? tanh(x[0] + h[0]) : x[0] + h[0] < 0 ? 0 : x[0] + h[0];
}

/* One row of the batch: x and h are rows of gates, c the cell's row, `to` the new state's, which may be
   `state`. */
static void npu__ref_rnn_gates(const npu__ref_rnn *s, const void *x, const void *h, const void *state, void *c,
                               void *to)
{
    for (int64_t i = 0; i < s->cell; i++) {
        double xs[4] = { 0 }, hs[4] = { 0 }, old = 0, memory = 0;
        npu__ref_load_f64(xs, x, s->number, i, s->cell, (size_t)s->gates);
        npu__ref_load_f64(hs, h, s->number, i, s->cell, (size_t)s->gates);
        if (s->gates == 4) {
            npu__ref_load_f64(&memory, c, s->number, i, 1, 1);
        } else {
            npu__ref_load_f64(&old, state, s->number, i, 1, 1);
        }
        old = npu__ref_rnn_number(s, xs, hs, old, &memory);
        npu__ref_store_f64(to, s->number, i, 1, &old, 1);
        npu__ref_store_f64(c, s->number, i, 1, &memory, 1);
    }
}

static void npu__ref_rnn_product(const npu__ref_rnn *s, const npu_launch *l, npu__ref_product *g, const void *a,
                                 uint32_t weight, uint32_t bias, size_t to)
{
    g->a.x = a;
    g->b.x = l->x[weight];
    g->bias.x = bias ? l->x[bias] : NULL;
    g->c = (char *)l->workspace + to;
    g->workspace = (char *)l->workspace + s->gemm;
    npu__ref_gemm(g, 0, 1);
}

/* One step: row `row` of the input's products is that of batch item 0, the others `step` rows apart. */
static void npu__ref_rnn_step(const npu__ref_rnn *s, const npu_launch *l, uint32_t weights, int64_t row,
                              int64_t step)
{
    char *base = (char *)l->workspace;
    int64_t gates = s->gates * s->cell, size = (int64_t)s->size;
    bool biases = s->per_cell >= 4;
    npu__ref_product g = npu__ref_rnn_gemm(s, s->number, s->batch, gates, s->state);
    npu__ref_rnn_product(s, l, &g, base + s->h, weights + 1, biases ? weights + 3 : 0, s->from_state);
    for (int64_t b = 0; b < s->batch; b++) {
        char *state = base + s->h + b * s->state * size,
             *to = s->projection ? base + s->wide + b * s->cell * size : state;
        npu__ref_rnn_gates(s, base + s->from_input + (row + b * step) * gates * size,
                           base + s->from_state + b * gates * size, state, base + s->c + b * s->cell * size,
                           to);
    }
    if (s->projection) {
        g = npu__ref_rnn_gemm(s, s->number, s->batch, s->state, s->cell);
        npu__ref_rnn_product(s, l, &g, base + s->wide, weights + s->projection, 0, s->h);
    }
}

/* A layer in one direction, from x to columns of the line `to`; rows of both are in the order of the operand.
   */
static void npu__ref_rnn_direction(const npu__ref_rnn *s, const npu_launch *l, const void *x, bool first,
                                   int64_t cell, size_t to)
{
    char *base = (char *)l->workspace;
    int64_t backward = cell % s->directions, width = s->directions * s->state, n = s->batch * s->state;
    int64_t time = s->batch_first ? 1 : s->batch, item = s->batch_first ? s->steps : 1;
    uint32_t weights = s->first + (uint32_t)cell * s->per_cell;
    npu__ref_product g = npu__ref_rnn_gemm(s, first ? s->dtype : s->number, s->steps * s->batch, s->gates * s->cell,
                                    first ? s->input : width);
    npu__ref_rnn_product(s, l, &g, x, weights, s->per_cell >= 4 ? weights + 2 : 0, s->from_input);
    npu__ref_load_numbers(s->isa, base + s->h, l->x[1], s->dtype, cell * n, 1, (size_t)n);
    if (s->gates == 4) {
        npu__ref_load_numbers(s->isa, base + s->c, l->x[2], s->dtype, cell * s->batch * s->cell, 1,
                              (size_t)(s->batch * s->cell));
    }
    for (int64_t t = 0; t < s->steps; t++) {
        int64_t row = (backward ? s->steps - 1 - t : t) * time;
        npu__ref_rnn_step(s, l, weights, row, item);
        for (int64_t b = 0; b < s->batch; b++) {
            memcpy(base + to + (size_t)((row + b * item) * width + backward * s->state) * s->size,
                   base + s->h + (size_t)(b * s->state) * s->size, (size_t)s->state * s->size);
        }
    }
    npu__ref_store_numbers(s->isa, l->y[s->sequence], s->dtype, cell * n, 1, base + s->h, (size_t)n);
    if (s->gates == 4) {
        npu__ref_store_numbers(s->isa, l->y[s->sequence + 1], s->dtype, cell * s->batch * s->cell, 1, base + s->c,
                               (size_t)(s->batch * s->cell));
    }
}

static npu_status npu__ref_rnn_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_rnn *s = l->state;
    const void *x = l->x[0];
    (void)part, (void)parts;
    for (int64_t layer = 0; layer < s->layers; layer++) {
        size_t to = s->line[layer % 2];
        for (int64_t i = 0; i < s->directions; i++) {
            npu__ref_rnn_direction(s, l, x, layer == 0, layer * s->directions + i, to);
        }
        x = (char *)l->workspace + to;
    }
    if (s->sequence) {
        npu__ref_store_numbers(s->isa, l->y[0], s->dtype, 0, 1, x,
                               (size_t)(s->steps * s->batch * s->directions * s->state));
    }
    return NPU_OK;
}

#define NPU__REF_RNN_ROW(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_rnn_prepare, npu__ref_rnn_launch)

static const npu_kernel npu__ref_kernels_recurrent[] = {
    NPU__REF_RNN_ROW(NPU_ATEN_GRU),           NPU__REF_RNN_ROW(NPU_ATEN_GRU_CELL),
    NPU__REF_RNN_ROW(NPU_ATEN_LSTM),          NPU__REF_RNN_ROW(NPU_ATEN_LSTM_CELL),
    NPU__REF_RNN_ROW(NPU_ATEN_RNN_RELU),      NPU__REF_RNN_ROW(NPU_ATEN_RNN_TANH),
    NPU__REF_RNN_ROW(NPU_ATEN_RNN_RELU_CELL), NPU__REF_RNN_ROW(NPU_ATEN_RNN_TANH_CELL)
};

/* ---- distances ---- */

typedef struct npu__ref_cdist {
    npu__ref_batches a, b;
    double p;
    int64_t batch, rows, cols, len;
} npu__ref_cdist;

/* The p-norm of n differences, folded into *sum: a count for 0, the maximum for infinity, else a sum of
   powers. */
static void npu__ref_cdist_fold(double p, const double *a, const double *b, size_t n, double *sum)
{
    for (size_t i = 0; i < n; i++) {
        double x = fabs(a[i] - b[i]);
        if (p == 2) {
            *sum += x * x;
        } else if (p == 0) {
            *sum += x != 0;
        } else if (p > 1e300) { /* infinite */
            *sum = x > *sum || x != x ? x : *sum;
        } else {
            *sum += p == 1 ? x : pow(x, p);
        }
    }
}

static double npu__ref_cdist_finish(double p, double sum)
{
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || p > 1e300 ? sum : pow(sum, 1 / p);
}

static npu_status npu__ref_cdist_prepare(npu_prepare *p)
{
    npu__ref_cdist *s = npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->a = npu__ref_batch(&p->out[0], 2, &p->in[0], 2);
    s->b = npu__ref_batch(&p->out[0], 2, &p->in[1], 2);
    s->batch = npu__ref_batch_len(&s->a);
    s->p = npu_op_float(p->op, "p", 2);
    s->rows = p->out[0].dims[p->out[0].rank - 2];
    s->cols = npu__ref_last_dim(&p->out[0]);
    s->len = npu__ref_last_dim(&p->in[0]);
    p->parts =
        npu__ref_parts((size_t)(s->batch * s->rows), (size_t)(NPU__REF_GRAIN / (s->cols * s->len + 1) + 1));
    return NPU_OK;
}

static npu_status npu__ref_cdist_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_cdist *s = l->state;
    double a[NPU__STRIP], b[NPU__STRIP];
    int64_t all = s->batch * s->rows;
    for (int64_t i = all * part / parts; i < all * (part + 1) / parts; i++) {
        int64_t row = npu__ref_batch_start(&s->a, i / s->rows) + i % s->rows * s->len;
        int64_t first = npu__ref_batch_start(&s->b, i / s->rows);
        for (int64_t j = 0; j < s->cols; j++) {
            double sum = 0;
            for (int64_t k = 0; k < s->len; k += NPU__STRIP) {
                size_t n = (size_t)npu__ref_min(NPU__STRIP, s->len - k);
                npu__ref_load_f64(a, l->x[0], l->in[0].dtype, row + k, 1, n);
                npu__ref_load_f64(b, l->x[1], l->in[1].dtype, first + j * s->len + k, 1, n);
                npu__ref_cdist_fold(s->p, a, b, n, &sum);
            }
            sum = npu__ref_cdist_finish(s->p, sum);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, i * s->cols + j, 1, &sum, 1);
        }
    }
    return NPU_OK;
}

static const npu_kernel npu__ref_kernels_distance[] = {
    NPU__REF_ROW(NPU_ATEN_CDIST, "plain", 0, NULL, npu__ref_cdist_prepare, npu__ref_cdist_launch)
};

/* -----------------------------------------------------------------------------------------------------------
   ATTENTION, LOOKUP                                                                          >>kernels-lookup

   Attention by blocks of queries and keys, embeddings, and everything that picks or places elements by index: indices
   are read, checked and made positive in one place (npu__ref_check_indices). Borders, triangles and windows as columns
   are here too: they place elements by rule.
   -------------------------------------------------------------------------------------------------------- */

/* ---- attention ----

   softmax(scale Q K' + mask) V for a block of queries at a time: keys are taken in blocks, and of the scores
   only one block by one block exists. Each row keeps the largest score so far and the sum of its
   exponentials; when a block raises the largest, what was summed before is scaled down. A row that is masked
   everywhere gives zeros, as in torch. */

enum { NPU__REF_ATTENTION_ROWS = 96, NPU__REF_ATTENTION_KEYS = 128 };

typedef struct npu__ref_attention {
    npu__ref_product scores, mix;         /* scale Q K' and weights V, of a whole block */
    npu__ref_batches q, k, v, mask;
    int64_t batch, rows, keys, blocks; /* blocks of rows in one element of the batch */
    npu__ref_matrix_view mask_of;           /* x not set; dtype 0 = none */
    bool causal;
    size_t gemm_bytes, part_bytes; /* of workspace */
} npu__ref_attention;

/* The workspace of a part: scores [rows, NPU__REF_ATTENTION_KEYS], mixed values and results [rows, width], and
   for each row the largest score, the sum, and the factor of what was summed before. */
typedef struct npu__ref_attention_block {
    const npu__ref_attention *s;
    const npu_launch *l;
    int64_t item, first, rows; /* of the batch; queries */
    char *scores, *mixed, *result, *largest, *sum, *factor;
} npu__ref_attention_block;

/* Scores of one row to n keys, that become weights. */
typedef struct npu__ref_attention_row {
    void *score;
    const void *mask;            /* numbers, NULL = none */
    bool is_choice;              /* the mask was bool */
    int64_t n, visible;          /* keys from `visible` on are masked */
    void *largest, *sum, *factor;
} npu__ref_attention_row;

enum {
    NPU__REF_ATTENTION_LANES = 16
}; /* sums and maxima go to lanes, so that a compiler uses vectors without reordering */

#define NPU__REF_ATTENTION_WEIGH(attribute, suffix, number, EXP)                                             \
    attribute static void npu__ref_attention_weigh_##suffix(const npu__ref_attention_row *r)                 \
    {                                                                                                        \
        number lanes[NPU__REF_ATTENTION_LANES], *score = (number *)r->score, top = *(number *)r->largest, base, sum = 0; \
        const number *mask = (const number *)r->mask;                                                        \
        const int64_t width = NPU__REF_ATTENTION_LANES, n = (r->n + width - 1) / width * width;              \
        for (int64_t j = 0; mask && r->is_choice && j < r->n; j++) {                                         \
            score[j] = mask[j] != 0 ? score[j] : (number)-INFINITY;                                          \
        }                                                                                                    \
        for (int64_t j = 0; mask && !r->is_choice && j < r->n; j++) {                                        \
            score[j] += mask[j];                                                                             \
        }                                                                                                    \
        for (int64_t j = r->visible; j < n; j++) {                                                           \
            score[j] = (number)-INFINITY;                                                                    \
        }                                                                                                    \
        for (int64_t j = 0; j < width; j++) {                                                                \
            lanes[j] = top;                                                                                  \
        }                                                                                                    \
        for (int64_t i = 0; i < n; i += width) {                                                             \
            for (int64_t j = 0; j < NPU__REF_ATTENTION_LANES; j++) {                                         \
                lanes[j] = score[i + j] > lanes[j] ? score[i + j] : lanes[j];                                \
            }                                                                                                \
        }                                                                                                    \
        for (int64_t j = 0; j < width; j++) {                                                                \
            top = lanes[j] > top ? lanes[j] : top;                                                           \
            lanes[j] = 0;                                                                                    \
        }                                                                                                    \
        base = top == (number)-INFINITY ? 0 : top; /* nothing but masked keys so far */                      \
        for (int64_t i = 0; i < n; i += width) {                                                             \
            for (int64_t j = 0; j < NPU__REF_ATTENTION_LANES; j++) {                                         \
                score[i + j] = EXP(score[i + j] - base);                                                     \
                lanes[j] += score[i + j];                                                                    \
            }                                                                                                \
        }                                                                                                    \
        for (int64_t j = 0; j < width; j++) {                                                                \
            sum += lanes[j];                                                                                 \
        }                                                                                                    \
        *(number *)r->factor = EXP(*(number *)r->largest - base);                                            \
        *(number *)r->sum = *(number *)r->sum * *(number *)r->factor + sum;                                  \
        *(number *)r->largest = top;                                                                         \
    }
NPU__REF_ATTENTION_WEIGH(, f32_base, float, expf)
NPU__REF_ATTENTION_WEIGH(, f64, double, exp)
#ifdef NPU__REF_HAS_AVX2
NPU__REF_ATTENTION_WEIGH(NPU__REF_AVX2, f32_avx2, float, npu__ref_fast_expf)
#endif

typedef void (*npu__ref_attention_weigh_fn)(const npu__ref_attention_row *r);
static const npu__ref_attention_weigh_fn npu__ref_attention_weigh_of[] = {
#define NPU_X(set, narrow, wide) npu__ref_attention_weigh_f32_##narrow,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

/* All rows of a block: scores to keys first .. first + n become weights. */
static void npu__ref_attention_weights(const npu__ref_attention_block *b, int64_t first, int64_t n)
{
    const npu__ref_attention *s = b->s;
    const npu__ref_matrix_view *mask = &s->mask_of;
    int64_t size = (int64_t)npu__ref_sum_size(s->scores.a.dtype);
    int64_t start = npu__ref_batch_start(&s->mask, b->item) + first * mask->col;
    bool single = npu__ref_compute_class(s->scores.a.dtype) == NPU__F32;
    npu__ref_attention_weigh_fn weigh =
        single ? npu__ref_attention_weigh_of[s->scores.isa] : npu__ref_attention_weigh_f64;
    union { double f64[NPU__REF_ATTENTION_KEYS]; float f32[NPU__REF_ATTENTION_KEYS]; } strip;
    npu__ref_attention_row r = { 0 };
    r.mask = mask->dtype ? &strip : NULL;
    r.is_choice = mask->dtype == NPU_BOOL;
    r.n = n;
    for (int64_t i = 0; i < b->rows; i++) {
        int64_t row = b->first + i;
        if (mask->dtype && single) {
            npu__ref_load_f32(strip.f32, b->l->x[3], mask->dtype, start + row * mask->row, mask->col,
                              (size_t)n);
        } else if (mask->dtype) {
            npu__ref_load_f64(strip.f64, b->l->x[3], mask->dtype, start + row * mask->row, mask->col,
                              (size_t)n);
        }
        r.score = b->scores + i * NPU__REF_ATTENTION_KEYS * size;
        r.visible = s->causal ? npu__ref_max(npu__ref_min(row + 1 - first, n), 0) : n;
        r.largest = b->largest + i * size, r.sum = b->sum + i * size, r.factor = b->factor + i * size;
        weigh(&r);
    }
}

/* Keys first .. first + n, for all rows of the block. */
static void npu__ref_attention_keys(const npu__ref_attention_block *b, int64_t first, int64_t n, void *workspace)
{
    const npu__ref_attention *s = b->s;
    const npu__ref_tile_loops *tile = npu__ref_tile(&s->scores);
    npu__ref_product scores = s->scores, mix = s->mix;
    int64_t size = (int64_t)npu__ref_sum_size(scores.a.dtype);
    scores.m = mix.m = b->rows, scores.n = mix.k = n;
    scores.workspace = mix.workspace = workspace;
    scores.a.x = npu__ref_address(b->l->x[0], scores.a.dtype,
                                  npu__ref_batch_start(&s->q, b->item) + b->first * scores.k);
    scores.b.x =
        npu__ref_address(b->l->x[1], scores.b.dtype, npu__ref_batch_start(&s->k, b->item) + first * scores.k);
    scores.c = b->scores;
    npu__ref_gemm(&scores, 0, 1);
    npu__ref_attention_weights(b, first, n);
    mix.a.x = b->scores;
    mix.b.x = npu__ref_address(b->l->x[2], mix.b.dtype, npu__ref_batch_start(&s->v, b->item) + first * mix.n);
    mix.c = b->mixed;
    npu__ref_gemm(&mix, 0, 1);
    for (int64_t i = 0; i < b->rows; i++) {
        double factor;
        npu__ref_load_f64(&factor, b->factor, mix.a.dtype, i, 1, 1);
        tile->combine(mix.n, factor, b->result + i * mix.n * size, 1, b->mixed + i * mix.n * size, 1);
    }
}

/* The logarithms of the sums, if the op has them: 0 for a row that is masked everywhere, and past the last row. */
static void npu__ref_attention_sums(const npu__ref_attention_block *b)
{
    const npu_tensor *out = &b->l->out[1];
    uint32_t dtype = b->s->mix.a.dtype;
    int64_t width = npu__ref_last_dim(out), end = b->first + b->rows;
    for (int64_t i = b->first; i < (end == b->s->rows ? width : end) && width; i++) {
        double sum = 0, largest = 0;
        if (i < end) {
            npu__ref_load_f64(&sum, b->sum, dtype, i - b->first, 1, 1);
            npu__ref_load_f64(&largest, b->largest, dtype, i - b->first, 1, 1);
        }
        sum = sum == 0 ? 0 : largest + log(sum);
        npu__ref_store_f64(b->l->y[1], out->dtype, b->item * width + i, 1, &sum, 1);
    }
}

/* Every row divided by its sum. */
static void npu__ref_attention_finish(const npu__ref_attention_block *b)
{
    const npu__ref_product *mix = &b->s->mix;
    const npu__ref_tile_loops *tile = npu__ref_tile(mix);
    int64_t size = (int64_t)npu__ref_sum_size(mix->a.dtype), at = (b->item * b->s->rows + b->first) * mix->n;
    for (int64_t i = 0; i < b->rows; i++) {
        npu__ref_scalar zero = { 0 };
        double sum;
        npu__ref_load_f64(&sum, b->sum, mix->a.dtype, i, 1, 1);
        tile->combine(mix->n, sum == 0 ? 0 : 1 / sum, b->result + i * mix->n * size, 0, &zero, 0);
    }
    npu__ref_store_numbers(mix->isa, b->l->y[0], b->l->out[0].dtype, at, 1, b->result, (size_t)(b->rows * mix->n));
    if (b->l->num_out > 1) {
        npu__ref_attention_sums(b);
    }
}

/* Block `block` of the rows of one element of the batch. */
static void npu__ref_attention_rows(const npu__ref_attention *s, const npu_launch *l, int64_t item, int64_t block,
                                    char *workspace)
{
    npu__ref_attention_block b = { 0 };
    size_t size = npu__ref_sum_size(s->scores.a.dtype), rows = (size_t)s->scores.m * size,
           values = rows * (size_t)s->mix.n;
    int64_t end = s->rows * (block + 1) / s->blocks, keys = s->causal ? npu__ref_min(s->keys, end) : s->keys;
    double least = (double)-INFINITY;
    b.s = s, b.l = l, b.item = item;
    b.first = s->rows * block / s->blocks, b.rows = end - b.first;
    b.scores = workspace + s->gemm_bytes;
    b.mixed = b.scores + rows * NPU__REF_ATTENTION_KEYS;
    b.result = b.mixed + values;
    b.sum = b.result + values;
    b.factor = b.sum + rows, b.largest = b.factor + rows;
    memset(b.result, 0, values + rows);
    for (int64_t i = 0; i < b.rows; i++) {
        npu__ref_store_f64(b.largest, s->mix.a.dtype, i, 1, &least, 1);
    }
    for (int64_t first = 0; first < keys;
         first += NPU__REF_ATTENTION_KEYS) { /* later keys are masked for every row */
        npu__ref_attention_keys(&b, first, npu__ref_min(NPU__REF_ATTENTION_KEYS, keys - first), workspace);
    }
    npu__ref_attention_finish(&b);
}

/* Seeds, lengths and what is empty. */
static void npu__ref_attention_rest(const npu__ref_attention *s, const npu_launch *l)
{
    for (uint32_t k = 2; k < l->num_out; k++) {
        const npu_tensor *out = &l->out[k];
        memset(l->y[k], 0, (size_t)npu__ref_len(out) * (npu_dtype_bits((npu_dtype)out->dtype) / 8));
    }
    if (l->num_out > 5) {
        memcpy(l->y[4], &s->rows, sizeof s->rows);
        memcpy(l->y[5], &s->keys, sizeof s->keys);
    }
}

static npu_status npu__ref_attention_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_attention *s = l->state;
    int64_t items = s->batch * s->blocks;
    if (part == 0) {
        npu__ref_attention_rest(s, l);
    }
    for (int64_t i = items * part / parts; i < items * (part + 1) / parts; i++) {
        npu__ref_attention_rows(s, l, i / s->blocks, i % s->blocks,
                                (char *)l->workspace + part * s->part_bytes);
    }
    return NPU_OK;
}

/* Batch dims of key or value; with enable_gqa neighbouring heads of the query read one of theirs. */
static npu__ref_batches npu__ref_attention_batch(const npu_prepare *p, const npu_tensor *t)
{
    npu__ref_batches b = npu__ref_batch(&p->out[0], 2, t, 2);
    if (npu_op_int(p->op, "enable_gqa", 0) && t->rank > 2 && t->dims[t->rank - 3] > 0) {
        b.share[b.rank - 1] = npu__ref_max(b.dims[b.rank - 1] / t->dims[t->rank - 3], 1);
    }
    return b;
}

static void npu__ref_attention_products(const npu_prepare *p, npu__ref_attention *s)
{
    const npu_tensor *q = &p->in[0], *v = &p->in[2];
    uint32_t sum = npu__ref_sum_dtype(q->dtype);
    npu__ref_product *scores = &s->scores, *mix = &s->mix;
    scores->m = mix->m = npu__ref_min(s->rows, NPU__REF_ATTENTION_ROWS);
    scores->n = mix->k = npu__ref_min(s->keys, NPU__REF_ATTENTION_KEYS);
    scores->k = npu__ref_last_dim(q), mix->n = npu__ref_last_dim(v);
    scores->a = npu__ref_matrix(q, scores->k, 1);
    scores->b = npu__ref_matrix(&p->in[1], 1, scores->k);
    mix->a = npu__ref_matrix(q, NPU__REF_ATTENTION_KEYS, 1);
    mix->a.dtype = sum;
    mix->b = npu__ref_matrix(v, mix->n, 1);
    scores->c_dtype = mix->c_dtype = sum;
    scores->c_row = NPU__REF_ATTENTION_KEYS, mix->c_row = mix->n;
    scores->c_col = mix->c_col = 1;
    scores->alpha = npu_op_float(p->op, "scale", 1 / sqrt((double)scores->k));
    mix->alpha = 1;
}

static npu_status npu__ref_attention_state(npu_prepare *p, bool plain)
{
    npu__ref_attention *s = npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *q = &p->in[0], *mask = &p->in[3];
    size_t size = npu__ref_sum_size(q->dtype), numbers;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    p->state = s;
    s->rows = q->dims[q->rank - 2], s->keys = p->in[1].dims[p->in[1].rank - 2];
    s->blocks = npu__ref_ceil_div(s->rows, NPU__REF_ATTENTION_ROWS);
    s->q = npu__ref_batch(&p->out[0], 2, q, 2);
    s->k = npu__ref_attention_batch(p, &p->in[1]), s->v = npu__ref_attention_batch(p, &p->in[2]);
    s->batch = npu__ref_batch_len(&s->q);
    s->causal = npu_op_int(p->op, "is_causal", 0) != 0;
    if (p->op->num_in > 3 && mask->dtype) {
        s->mask = npu__ref_batch(&p->out[0], 2, mask, mask->rank < 2 ? mask->rank : 2);
        s->mask_of = npu__ref_addend(mask);
    }
    npu__ref_attention_products(p, s);
    s->scores.plain = s->mix.plain = plain;
    s->scores.isa = s->mix.isa = p->isa;
    s->gemm_bytes = npu__ref_gemm_workspace(&s->scores) + npu__ref_gemm_workspace(&s->mix);
    numbers = (size_t)s->scores.m * (NPU__REF_ATTENTION_KEYS + 2 * (size_t)s->mix.n + 3);
    s->part_bytes = (s->gemm_bytes + numbers * size + 63) / 64 * 64;
    p->parts = (uint32_t)npu__ref_max(npu__ref_min(s->batch * s->blocks, 32), 1);
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

static npu_status npu__ref_attention_prepare(npu_prepare *p) { return npu__ref_attention_state(p, false); }
static npu_status npu__ref_attention_prepare_plain(npu_prepare *p)
{
    return npu__ref_attention_state(p, true);
}

/* ---- lookup ---- */

/* Parts for n items of `work` elements each. */
static inline uint32_t npu__ref_item_parts(size_t n, size_t work)
{
    size_t parts = npu__ref_parts(n, work >= 32768 ? 1 : 32768 / (work ? work : 1));
    return (uint32_t)(parts > n && n ? n : parts);
}

/* A dim counted from the front; scalars have one dim. */
static inline uint32_t npu__ref_axis(int64_t dim, uint32_t rank)
{
    return (uint32_t)(dim < 0 ? dim + (rank ? (int64_t)rank : 1) : dim);
}

/* Index i of an operand, of any integer dtype; false unless it is less than `limit`. */
static bool npu__ref_read_index(const npu_launch *l, uint32_t operand, size_t i, size_t limit, int64_t *index)
{
    npu__ref_load_i64(index, l->x[operand], l->in[operand].dtype, (int64_t)i, 1, 1);
    return *index >= 0 && (uint64_t)*index < limit;
}

/* Once npu__ref_check_indices has found nothing wrong with them. */
static inline int64_t npu__ref_index(const void *x, uint32_t dtype, size_t i)
{
    return dtype == NPU_I32 ? ((const int32_t *)x)[i] : ((const int64_t *)x)[i];
}

/* What becomes of an element that another is placed on. */
enum { NPU__PLACE_SET, NPU__PLACE_ADD, NPU__PLACE_MUL, NPU__PLACE_MAX, NPU__PLACE_MIN };

/* Loops over many indices. */
typedef struct npu__ref_index_loops {
    /* whether an index is less than -wrap or more than last */
    bool (*outside)(const void *index, uint32_t dtype, size_t n, uint64_t wrap, uint64_t last);
    /* indices, of which negative ones count from `wrap`, to offsets: times `axis`, and `far` more each */
    void (*offsets)(int64_t *index, size_t n, int64_t wrap, int64_t axis, int64_t far);
    /* of a class: to[at[i]] = fold of it and x[i]; `at` NULL = to[i] */
    void (*place[3])(uint32_t fold, void *to, const int64_t *at, const void *x, size_t n);
    npu__ref_load_fn load;
    npu__ref_store_fn store;
} npu__ref_index_loops;

/* The first bit of `outside`: an index and wrap, or what it leaves of the last one, was negative. */
#define NPU__REF_OUTSIDE(type)                                                                     \
    for (size_t i = 0; i < n; i++) {                                                               \
        uint64_t k = (uint64_t)(int64_t)((const type *)index)[i];                                  \
        outside |= (k + wrap) | (last - k);                                                        \
    }

#define NPU__REF_PLACE_EACH(code, T, both)                                                         \
    case code:                                                                                     \
        if (at) {                                                                                  \
            NPU__REF_UNROLL                                                                        \
            for (size_t i = 0; i < n; i++) { T a = y[at[i]], b = x[i]; y[at[i]] = both; (void)a; } \
            return;                                                                                \
        }                                                                                          \
        NPU__REF_VECTORIZE                                                                         \
        for (size_t i = 0; i < n; i++) { T a = y[i], b = x[i]; y[i] = both; (void)a; }             \
        return;

/* A NaN on either side wins. */
#define NPU__REF_DEFINE_PLACE(name, T, SUM, PRODUCT)                                               \
    static void name(uint32_t fold, void *to, const int64_t *at, const void *from, size_t n)       \
    {                                                                                              \
        T *y = (T *)to;                                                                            \
        const T *x = (const T *)from;                                                              \
        switch (fold) {                                                                            \
        NPU__REF_PLACE_EACH(NPU__PLACE_ADD, T, SUM)                                                \
        NPU__REF_PLACE_EACH(NPU__PLACE_MUL, T, PRODUCT)                                            \
        NPU__REF_PLACE_EACH(NPU__PLACE_MAX, T, b != b ? b : b > a ? b : a)                         \
        NPU__REF_PLACE_EACH(NPU__PLACE_MIN, T, b != b ? b : b < a ? b : a)                         \
        default: return;                                                                           \
        NPU__REF_PLACE_EACH(NPU__PLACE_SET, T, b)                                                  \
        }                                                                                          \
    }

#define NPU__REF_PLACE_LOOPS(attribute, suffix)                                                    \
    attribute NPU__REF_DEFINE_PLACE(npu__ref_place_f32_##suffix, float, a + b, a * b)              \
    attribute NPU__REF_DEFINE_PLACE(npu__ref_place_f64_##suffix, double, a + b, a * b)             \
    attribute NPU__REF_DEFINE_PLACE(npu__ref_place_i64_##suffix, int64_t, NPU__REF_WRAP(a, +, b),  \
                                    NPU__REF_WRAP(a, *, b))

#define NPU__REF_INDEX_LOOPS(attribute, suffix)                                                    \
    attribute static bool npu__ref_outside_##suffix(const void *index, uint32_t dtype, size_t n, uint64_t wrap, \
                                                    uint64_t last)                                 \
    {                                                                                              \
        uint64_t outside = 0;                                                                      \
        if (dtype == NPU_I32) {                                                                    \
            NPU__REF_OUTSIDE(int32_t)                                                              \
        } else {                                                                                   \
            NPU__REF_OUTSIDE(int64_t)                                                              \
        }                                                                                          \
        return outside >> 63;                                                                      \
    }                                                                                              \
    attribute static void npu__ref_offsets_##suffix(int64_t *index, size_t n, int64_t wrap, int64_t axis, \
                                                    int64_t far)                                   \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            index[i] = (index[i] + (index[i] < 0 ? wrap : 0)) * axis + (int64_t)i * far;           \
        }                                                                                          \
    }

NPU__REF_PLACE_LOOPS(, base)
NPU__REF_INDEX_LOOPS(, base)
#ifdef NPU__REF_HAS_AVX2
NPU__REF_PLACE_LOOPS(NPU__REF_AVX2, avx2)
NPU__REF_INDEX_LOOPS(NPU__REF_AVX2, avx2)
NPU__REF_INDEX_LOOPS(NPU__REF_AVX512, avx512)
#endif

static const npu__ref_index_loops npu__ref_index_loops_of[] = {
#define NPU_X(set, narrow, wide)                                                                   \
    { npu__ref_outside_##wide, npu__ref_offsets_##wide,                                            \
      { npu__ref_place_f32_##narrow, npu__ref_place_f64_##narrow, npu__ref_place_i64_##narrow },   \
      NPU__REF_CLASSES_##narrow },
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

/* Everything is checked before anything is read or written through an index: they are i64 or i32, and
   -wrap <= index < limit. An operand without indices has any dtype. */
static npu_status npu__ref_check_indices(uint32_t isa, const void *x, uint32_t dtype, size_t n, int64_t wrap,
                                         int64_t limit)
{
    if (n == 0 || (dtype != NPU_I64 && dtype != NPU_I32)) {
        return n == 0 ? NPU_OK : NPU_ERR_DTYPE;
    }
    bool outside = npu__ref_index_loops_of[isa].outside(x, dtype, n, (uint64_t)wrap, (uint64_t)limit - 1);
    return outside ? NPU_ERR_RANGE : NPU_OK;
}

static inline void npu__ref_copy_element(void *to, size_t i, const void *from, size_t j, size_t size)
{
    uint8_t *y = (uint8_t *)to + i * size;
    const uint8_t *x = (const uint8_t *)from + j * size;
    switch (size) {
    case 1: *y = *x; return;
    case 2: memcpy(y, x, 2); return;
    case 4: memcpy(y, x, 4); return;
    default: memcpy(y, x, size); return;
    }
}

/* ---- picking and placing by index ----

   A walk goes through positions of up to three tensors at once: the far one, which an index reaches into, the
   index, and the near one. Picking reads the far tensor at far + index * axis_stride; placing writes there.
   */

enum { NPU__REF_WALK_RANK = 2 * NPU_MAX_RANK };

typedef struct npu__ref_walk {
    uint32_t rank;
    int64_t dims[NPU__REF_WALK_RANK], far[NPU__REF_WALK_RANK], index[NPU__REF_WALK_RANK],
        near[NPU__REF_WALK_RANK];
    int64_t axis_stride, limit; /* 0 <= index < limit */
    int64_t wrap;               /* added to a negative index; 0 = there are none */
    int64_t unit;               /* neighbours that move together, as one element */
} npu__ref_walk;

typedef struct npu__ref_place_of { int64_t far, index, near; } npu__ref_place_of;

static void npu__ref_walk_dim(npu__ref_walk *w, int64_t dim, int64_t far, int64_t index, int64_t near)
{
    uint32_t i = w->rank++;
    w->dims[i] = dim;
    w->far[i] = far;
    w->index[i] = index;
    w->near[i] = near;
}

/* The stride of t along dim i of `rank` dims that it broadcasts to. */
static int64_t npu__ref_spread(const npu_tensor *t, uint32_t i, uint32_t rank)
{
    uint32_t missing = rank - t->rank;
    return i < missing || t->dims[i - missing] == 1 ? 0 : t->strides[i - missing];
}

/* Neighbours merged where all three tensors allow it; at least one dim stays. */
static void npu__ref_walk_finish(npu__ref_walk *w)
{
    uint32_t rank = w->rank;
    w->rank = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t n = w->rank - 1;
        int64_t dim = w->dims[i];
        bool merges = w->rank && w->far[n] == w->far[i] * dim && w->index[n] == w->index[i] * dim &&
                      w->near[n] == w->near[i] * dim;
        w->rank -= merges;
        npu__ref_walk_dim(w, merges ? w->dims[n] * dim : dim, w->far[i], w->index[i], w->near[i]);
    }
    if (w->rank == 0) {
        npu__ref_walk_dim(w, 1, 0, 0, 0);
    }
    w->unit = 1;
}

/* Makes one element of neighbours along the last dim that share an index: for walks that only move elements. */
static void npu__ref_walk_unite(npu__ref_walk *w)
{
    uint32_t last = w->rank - 1;
    if (last > 0 && w->dims[last] > 0 && w->far[last] == 1 && w->index[last] == 0 && w->near[last] == 1) {
        w->unit = w->dims[last];
        w->rank--;
    }
}

static size_t npu__ref_walk_len(const npu__ref_walk *w)
{
    size_t n = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        n *= (size_t)w->dims[i];
    }
    return n;
}

/* Positions but for the last dim. */
static size_t npu__ref_walk_rows(const npu__ref_walk *w)
{
    size_t rows = w->dims[w->rank - 1] != 0;
    for (uint32_t i = 0; i + 1 < w->rank; i++) {
        rows *= (size_t)w->dims[i];
    }
    return rows;
}

static npu__ref_place_of npu__ref_walk_row(const npu__ref_walk *w, size_t row)
{
    npu__ref_place_of at = { 0, 0, 0 };
    for (uint32_t i = w->rank - 1; i-- > 0; row /= (size_t)w->dims[i]) {
        int64_t k = (int64_t)(row % (size_t)w->dims[i]);
        at.far += k * w->far[i];
        at.index += k * w->index[i];
        at.near += k * w->near[i];
    }
    return at;
}

/* A walk in runs of neighbours: positions near + j step of the near tensor and far + at[j] of the far one. */
typedef struct npu__ref_runs {
    const npu__ref_walk *w;
    const void *index;
    uint32_t dtype;
    int64_t most;           /* positions in a run */
    int64_t left;           /* positions from the run on */
    int64_t row[NPU__REF_WALK_RANK]; /* where in every dim; in the last one where the run begins */
    npu__ref_place_of first; /* of the row */
    int64_t far, near, n;   /* the run */
    const int64_t *at;      /* NULL = far + j, all of the one index k */
    int64_t k;
    const npu__ref_index_loops *loops;
    int64_t room[NPU__STRIP];
} npu__ref_runs;

/* Positions begin .. end of a walk. */
static void npu__ref_runs_start(npu__ref_runs *r, uint32_t isa, const npu__ref_walk *w, const void *index,
                                uint32_t dtype, size_t begin, size_t end, int64_t most)
{
    npu__ref_place_of none = { 0, 0, 0 };
    r->w = w;
    r->index = index;
    r->dtype = dtype;
    r->most = most;
    r->left = (int64_t)(end - begin);
    r->n = 0;
    r->first = none;
    r->loops = &npu__ref_index_loops_of[isa];
    for (uint32_t i = w->rank; i-- > 0 && r->left > 0; begin /= (size_t)w->dims[i]) {
        int64_t k = r->row[i] = (int64_t)(begin % (size_t)w->dims[i]);
        r->first.far += i + 1 < w->rank ? k * w->far[i] : 0;
        r->first.index += i + 1 < w->rank ? k * w->index[i] : 0;
        r->first.near += i + 1 < w->rank ? k * w->near[i] : 0;
    }
}

static void npu__ref_runs_next_row(npu__ref_runs *r)
{
    const npu__ref_walk *w = r->w;
    r->row[w->rank - 1] = 0;
    for (uint32_t i = w->rank - 1; i-- > 0; r->row[i] = 0) {
        int64_t steps = ++r->row[i] < w->dims[i] ? 1 : 1 - w->dims[i];
        r->first.far += steps * w->far[i];
        r->first.index += steps * w->index[i];
        r->first.near += steps * w->near[i];
        if (steps == 1) {
            return;
        }
    }
}

/* What the indices of a run say; those that are offsets as they are stay where they are. */
static void npu__ref_runs_look_up(npu__ref_runs *r, int64_t first, int64_t step, int64_t far)
{
    const npu__ref_walk *w = r->w;
    if (step == 0 && far == 1) {
        r->k = npu__ref_index(r->index, r->dtype, (size_t)first);
        r->k += r->k < 0 ? w->wrap : 0;
        r->far += r->k * w->axis_stride;
        r->at = NULL;
    } else if (r->dtype == NPU_I64 && step == 1 && far == 0 && w->axis_stride == 1 && w->wrap == 0) {
        r->at = (const int64_t *)r->index + first;
    } else {
        r->n = npu__ref_min(r->n, NPU__STRIP);
        npu__ref_load_i64(r->room, r->index, r->dtype, first, step, (size_t)r->n);
        r->loops->offsets(r->room, (size_t)r->n, w->wrap, w->axis_stride, far);
        r->at = r->room;
    }
}

/* The next run; false after the last one. */
static bool npu__ref_runs_next(npu__ref_runs *r)
{
    const npu__ref_walk *w = r->w;
    uint32_t last = w->rank - 1;
    r->left -= r->n;
    if (r->left <= 0) {
        return false;
    }
    r->row[last] += r->n;
    if (r->row[last] == w->dims[last]) {
        npu__ref_runs_next_row(r);
    }
    r->n = npu__ref_min(npu__ref_min(w->dims[last] - r->row[last], r->left), r->most);
    r->far = r->first.far + r->row[last] * w->far[last];
    r->near = r->first.near + r->row[last] * w->near[last];
    npu__ref_runs_look_up(r, r->first.index + r->row[last] * w->index[last], w->index[last], w->far[last]);
    return true;
}

#define NPU__REF_MOVE_EACH(to_at, from_at, size, bytes)                                            \
    NPU__REF_UNROLL                                                                                \
    for (int64_t j = 0; j < n; j++) {                                                              \
        memcpy(to + (to_at) * (int64_t)(size), from + (from_at) * (int64_t)(size), bytes);         \
    }                                                                                              \
    break;

/* Single elements, whose size is a constant so that each copy is one move, or units of them. */
#define NPU__REF_MOVE_RUN(to_at, from_at)                                                          \
    switch (r->w->unit == 1 ? size : 0) {                                                          \
    case 1: NPU__REF_MOVE_EACH(to_at, from_at, 1, 1)                                               \
    case 2: NPU__REF_MOVE_EACH(to_at, from_at, 2, 2)                                               \
    case 4: NPU__REF_MOVE_EACH(to_at, from_at, 4, 4)                                               \
    case 8: NPU__REF_MOVE_EACH(to_at, from_at, 8, 8)                                               \
    default: NPU__REF_MOVE_EACH(to_at, from_at, size, bytes)                                       \
    }

/* A run from the far tensor to the near one. */
static void npu__ref_pick_run(const npu__ref_runs *r, char *near, const char *far, size_t size)
{
    int64_t step = r->w->near[r->w->rank - 1], n = r->n;
    char *to = near + r->near * (int64_t)size;
    const char *from = far + r->far * (int64_t)size;
    const int64_t *at = r->at;
    size_t bytes = (size_t)r->w->unit * size;
    if (at) {
        NPU__REF_MOVE_RUN(j * step, at[j])
    } else {
        npu__ref_move(to, step * (int64_t)size, from, (int64_t)size, n, size);
    }
}

/* The other way round. */
static void npu__ref_put_run(const npu__ref_runs *r, char *far, const char *near, size_t size)
{
    int64_t step = r->w->near[r->w->rank - 1], n = r->n;
    char *to = far + r->far * (int64_t)size;
    const char *from = near + r->near * (int64_t)size;
    const int64_t *at = r->at;
    size_t bytes = (size_t)r->w->unit * size;
    if (at) {
        NPU__REF_MOVE_RUN(at[j], j * step)
    } else {
        npu__ref_move(to, (int64_t)size, from, step * (int64_t)size, n, size);
    }
}

/* Positions begin .. end of the walk; the indices are checked. */
static void npu__ref_walk_pick(uint32_t isa, const npu__ref_walk *w, void *y, const void *x, size_t size,
                               const void *index, uint32_t dtype, size_t begin, size_t end)
{
    npu__ref_runs r;
    npu__ref_runs_start(&r, isa, w, index, dtype, begin, end, INT64_MAX);
    while (npu__ref_runs_next(&r)) {
        npu__ref_pick_run(&r, (char *)y, (const char *)x, size);
    }
}

static void npu__ref_pick_dims(npu_prepare *p, npu__ref_walk *w)
{
    const npu_tensor *self = &p->in[0], *index = &p->in[1], *out = &p->out[0];
    bool along = p->op->kind == NPU_ATEN_TAKE_ALONG_DIM || p->op->kind == NPU_ATEN_GATHER;
    bool narrow = p->op->kind == NPU_ATEN_NARROW_TENSOR;
    bool is_flat = p->op->kind == NPU_ATEN_TAKE || (along && !npu_op_has(p->op, "dim")) || self->rank == 0;
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), self->rank);
    if (is_flat) {
        w->axis_stride = 1;
        w->limit = npu__ref_len(self);
        npu__ref_walk_dim(w, npu__ref_len(out), 0, 1, 1);
    }
    for (uint32_t i = 0; i < out->rank && !is_flat; i++) {
        int64_t step = along ? npu__ref_spread(index, i, out->rank) : i == dim && !narrow;
        int64_t far = along ? npu__ref_spread(self, i, out->rank) : self->strides[i];
        npu__ref_walk_dim(w, out->dims[i], i == dim && !narrow ? 0 : far, step, out->strides[i]);
    }
    if (!is_flat) {
        w->axis_stride = self->strides[dim];
        w->limit = self->dims[dim] - (narrow ? out->dims[dim] - 1 : 0);
    }
    w->wrap = p->op->kind == NPU_ATEN_TAKE ? w->limit : narrow ? self->dims[dim] : 0;
}

/* The indices. Where narrow starts is one number of any integer dtype, which goes to `room` as i64. */
static const void *npu__ref_pick_index(const npu_launch *l, int64_t *room, uint32_t *dtype)
{
    *dtype = l->in[1].dtype;
    if (*dtype == NPU_I64 || *dtype == NPU_I32 || npu__ref_len(&l->in[1]) == 0) {
        return l->x[1];
    }
    npu__ref_load_i64(room, l->x[1], *dtype, 0, 1, 1);
    *dtype = NPU_I64;
    return room;
}

static npu_status npu__ref_pick_check(const npu_launch *l)
{
    const npu__ref_walk *w = (const npu__ref_walk *)l->state;
    int64_t room;
    uint32_t dtype;
    const void *index = npu__ref_pick_index(l, &room, &dtype);
    return npu__ref_check_indices(l->isa, index, dtype, (size_t)npu__ref_len(&l->in[1]), w->wrap, w->limit);
}

static npu_status npu__ref_pick_finish(npu_prepare *p, npu__ref_walk *w)
{
    npu__ref_walk_finish(w);
    npu__ref_walk_unite(w);
    p->state = w;
    p->before = npu__ref_pick_check;
    p->parts = npu__ref_item_parts(npu__ref_walk_len(w), (size_t)w->unit);
    return NPU_OK;
}

/* gather, index_select, take, take_along_dim, narrow.Tensor. */
static npu_status npu__ref_pick_prepare(npu_prepare *p)
{
    npu__ref_walk *w = (npu__ref_walk *)npu_prepare_alloc(p, sizeof *w);
    if (!w) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_pick_dims(p, w);
    return npu__ref_pick_finish(p, w);
}

/* Rows of the weight. */
static npu_status npu__ref_embedding_prepare(npu_prepare *p)
{
    npu__ref_walk *w = (npu__ref_walk *)npu_prepare_alloc(p, sizeof *w);
    if (!w) {
        return NPU_ERR_NO_MEMORY;
    }
    w->limit = p->in[0].dims[0];
    w->axis_stride = (int64_t)npu__ref_dims_len(&p->in[0], 1, p->in[0].rank);
    npu__ref_walk_dim(w, npu__ref_len(&p->in[1]), 0, 1, w->axis_stride);
    npu__ref_walk_dim(w, w->axis_stride, 1, 0, 1);
    return npu__ref_pick_finish(p, w);
}

static npu_status npu__ref_pick_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_walk *w = (const npu__ref_walk *)l->state;
    size_t begin, end;
    int64_t room;
    uint32_t dtype;
    const void *index = npu__ref_pick_index(l, &room, &dtype);
    npu__ref_share(npu__ref_walk_len(w), part, parts, &begin, &end);
    npu__ref_walk_pick(l->isa, w, l->y[0], l->x[0], npu__ref_size(l->in[0].dtype), index, dtype, begin, end);
    return NPU_OK;
}

/* repeat_interleave: a count per index of the dim, or one for all, to a list of indices. */
static npu_status npu__ref_repeat_list(const npu_launch *l, uint32_t operand, int64_t dim, int64_t *list,
                                       int64_t len)
{
    const npu_tensor *repeats = &l->in[operand];
    bool is_one = npu__ref_len(repeats) == 1;
    int64_t n = 0;
    for (int64_t i = 0; i < dim; i++) {
        int64_t count = npu__ref_index(l->x[operand], repeats->dtype, is_one ? 0 : (size_t)i);
        if (count < 0 || count > len - n) {
            return NPU_ERR_RANGE;
        }
        while (count-- > 0) {
            list[n++] = i;
        }
    }
    return n == len ? NPU_OK : NPU_ERR_RANGE;
}

static npu_status npu__ref_repeat_prepare(npu_prepare *p)
{
    const npu_tensor *self = &p->in[0], *out = &p->out[0];
    bool has_dim = p->op->num_in > 1 && npu_op_has(p->op, "dim") && self->rank;
    uint32_t dim = has_dim ? npu__ref_dim(npu_op_int(p->op, "dim", 0), self->rank) : 0;
    npu__ref_walk *w = (npu__ref_walk *)npu_prepare_alloc(p, sizeof *w);
    if (!w) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t far = i == dim ? 0 : self->strides[i];
        npu__ref_walk_dim(w, out->dims[i], far, i == dim, out->strides[i]);
    }
    w->axis_stride = has_dim ? self->strides[dim] : 1;
    w->limit = has_dim ? self->dims[dim] : npu__ref_len(self);
    npu__ref_walk_finish(w);
    npu__ref_walk_unite(w);
    p->workspace = (size_t)out->dims[dim] * sizeof(int64_t);
    p->state = w;
    return NPU_OK;
}

/* Without self the list itself is the result. */
static npu_status npu__ref_repeat_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_walk *w = (const npu__ref_walk *)l->state;
    int64_t *list = (int64_t *)l->workspace, len = 0;
    npu_status status;
    (void)part;
    (void)parts;
    for (uint32_t i = 0; i < w->rank; i++) {
        len = w->index[i] ? w->dims[i] : len;
    }
    status = npu__ref_repeat_list(l, l->num_in - 1, w->limit, list, len);
    if (!status && l->num_in == 1) {
        npu__ref_store_i64(l->y[0], l->out[0].dtype, 0, 1, list, (size_t)len);
    } else if (!status) {
        npu__ref_walk_pick(l->isa, w, l->y[0], l->x[0], npu__ref_size(l->in[0].dtype), list, NPU_I64, 0,
                           npu__ref_walk_len(w));
    }
    return status;
}

/* ---- lists of index tensors ---- */

static bool npu__ref_is_mask(const npu_tensor *t) { return t->dtype == NPU_BOOL || t->dtype == NPU_U8; }

static int64_t npu__ref_count_mask(const npu_tensor *t, const void *x)
{
    int64_t count = 0;
    for (int64_t i = 0; i < npu__ref_len(t); i++) {
        count += ((const uint8_t *)x)[i] != 0;
    }
    return count;
}

/* Dims that indices have in common; a mask stands for one dim of as many elements as are true. */
typedef struct npu__ref_common {
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK];
    size_t len;
} npu__ref_common;

/* Adds an index of which a mask has `count`. False where dims differ. */
static bool npu__ref_common_add(npu__ref_common *c, const npu_tensor *t, int64_t count)
{
    bool is_mask = npu__ref_is_mask(t), fits = true;
    uint32_t rank = is_mask ? 1 : t->rank, grown = rank > c->rank ? rank - c->rank : 0;
    memmove(c->dims + grown, c->dims, c->rank * sizeof c->dims[0]);
    for (uint32_t i = 0; i < grown; i++) {
        c->dims[i] = 1;
    }
    c->rank += grown;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t dim = is_mask ? count : t->dims[i], *have = &c->dims[c->rank - rank + i];
        fits = fits && (dim == *have || dim == 1 || *have == 1);
        *have = *have == 1 ? dim : *have;
    }
    c->len = 1;
    for (uint32_t i = 0; i < c->rank; i++) {
        c->len *= (size_t)c->dims[i];
    }
    return fits;
}

/* Adds what a mask over dims that end at a stride of self contributes to the offsets. */
static void npu__ref_offsets_of_mask(const npu_tensor *t, const uint8_t *mask, int64_t stride,
                                     const npu__ref_common *c, int64_t count, int64_t *offsets)
{
    size_t len = (size_t)npu__ref_len(t), step = count == 1 ? 1 : (size_t)c->dims[c->rank - 1], found = 0;
    for (size_t i = 0; i < len; i++) {
        for (size_t k = mask[i] ? found : c->len; k < c->len; k += step) {
            offsets[k] += (int64_t)i * stride;
        }
        found += mask[i] != 0;
    }
}

/* Adds what an index of a dim, of which self has a stride, contributes to the offsets. */
static npu_status npu__ref_offsets_of_index(uint32_t isa, const npu_tensor *t, const void *x, int64_t dim,
                                            int64_t stride, const npu__ref_common *c, int64_t *offsets)
{
    npu__ref_walk w = { 0, { 0 }, { 0 }, { 0 }, { 0 }, stride, dim, dim, 1 };
    npu__ref_runs r;
    int64_t near = (int64_t)c->len;
    if (c->len == 0) {
        return NPU_OK;
    }
    for (uint32_t i = 0; i < c->rank; i++) {
        near /= c->dims[i];
        npu__ref_walk_dim(&w, c->dims[i], 0, npu__ref_spread(t, i, c->rank), near);
    }
    npu__ref_walk_finish(&w);
    npu__ref_runs_start(&r, isa, &w, x, t->dtype, 0, npu__ref_walk_len(&w), NPU__STRIP);
    if (npu__ref_check_indices(isa, x, t->dtype, (size_t)npu__ref_len(t), w.wrap, w.limit)) {
        return NPU_ERR_RANGE;
    }
    while (npu__ref_runs_next(&r)) {
        r.loops->place[NPU__I64](NPU__PLACE_ADD, offsets + r.near, NULL, r.at, (size_t)r.n);
    }
    return NPU_OK;
}

/* Puts the common dims, which offsets stand for, before kept dim `at`, and finds the strides of near. */
static npu_status npu__ref_index_near(npu__ref_walk *w, const npu__ref_common *c, uint32_t at,
                                      const npu_tensor *near)
{
    npu__ref_walk kept = *w;
    int64_t step = (int64_t)c->len;
    if (kept.rank + c->rank > NPU__REF_WALK_RANK || near->rank > kept.rank + c->rank) {
        return NPU_ERR_RANGE;
    }
    w->rank = 0;
    for (uint32_t i = 0; i <= kept.rank; i++) {
        for (uint32_t k = 0; i == at && k < c->rank; k++) {
            step = c->dims[k] ? step / c->dims[k] : 0;
            npu__ref_walk_dim(w, c->dims[k], 0, step, 0);
        }
        if (i < kept.rank) {
            npu__ref_walk_dim(w, kept.dims[i], kept.far[i], 0, 0);
        }
    }
    for (uint32_t i = w->rank - near->rank; i < w->rank; i++) {
        int64_t dim = near->dims[i - (w->rank - near->rank)];
        if (dim != 1 && dim != w->dims[i]) {
            return NPU_ERR_RANGE; /* a mask selects another number of elements than there is room for */
        }
        w->near[i] = npu__ref_spread(near, i, w->rank);
    }
    w->axis_stride = 1;
    w->limit = INT64_MAX;
    npu__ref_walk_finish(w);
    return NPU_OK;
}

/* The list begins at operand `first`. Fills the walk for a tensor `near` that has, or broadcasts to, the dims
   that are selected, and one offset into self for each position of the common dims. */
static npu_status npu__ref_index_walk(const npu_launch *l, uint32_t first, uint32_t count,
                                      const npu_tensor *near, npu__ref_walk *w, int64_t *offsets)
{
    const npu_tensor *self = &l->in[0];
    npu__ref_common c = { 0, { 0 }, 1 };
    uint32_t dim = 0, kept = 0, at = 0, last = 0, used = 0;
    int64_t counts[NPU__REF_WALK_RANK] = { 0 };
    bool is_split = false, fits = count <= NPU__REF_WALK_RANK;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < count && fits; i++) {
        const npu_tensor *t = &l->in[first + i];
        if (t->dtype) {
            counts[i] = npu__ref_is_mask(t) ? npu__ref_count_mask(t, l->x[first + i]) : 0;
            fits = npu__ref_common_add(&c, t, counts[i]);
        }
    }
    if (!fits) {
        return NPU_ERR_RANGE;
    }
    if (c.len) { /* else there may be no room at all */
        memset(offsets, 0, c.len * sizeof *offsets);
    }
    memset(w, 0, sizeof *w);
    for (uint32_t i = 0; i < count && !status; i++) {
        const npu_tensor *t = &l->in[first + i];
        if (!t->dtype) {
            npu__ref_walk_dim(w, self->dims[dim], self->strides[dim], 0, 0);
            kept++, dim++;
            continue;
        }
        is_split = is_split || (used && last != kept);
        at = used++ ? at : kept;
        last = kept;
        if (npu__ref_is_mask(t)) {
            dim += t->rank;
            npu__ref_offsets_of_mask(t, (const uint8_t *)l->x[first + i],
                                     t->rank ? self->strides[dim - 1] : 0, &c, counts[i], offsets);
        } else {
            status = npu__ref_offsets_of_index(l->isa, t, l->x[first + i], self->dims[dim], self->strides[dim],
                                               &c, offsets);
            dim++;
        }
    }
    for (; dim < self->rank; dim++) {
        npu__ref_walk_dim(w, self->dims[dim], self->strides[dim], 0, 0);
    }
    return status ? status : npu__ref_index_near(w, &c, is_split ? 0 : at, near);
}

/* An upper bound of the positions of the common dims, in bytes of offsets. */
static npu_status npu__ref_offsets_size(const npu_prepare *p, uint32_t first, uint32_t count, size_t *size)
{
    npu__ref_common c = { 0, { 0 }, 1 };
    int64_t most[NPU_MAX_RANK] = { 0 };
    size_t len = sizeof(int64_t);
    for (uint32_t i = 0; i < count; i++) {
        const npu_tensor *t = &p->in[first + i];
        if (t->dtype) {
            uint32_t rank = npu__ref_is_mask(t) ? 1 : t->rank;
            npu__ref_common_add(&c, t, npu__ref_len(t));
            for (uint32_t k = 0; k < rank; k++) {
                int64_t dim = npu__ref_is_mask(t) ? npu__ref_len(t) : t->dims[k], *m = &most[rank - 1 - k];
                *m = dim > *m ? dim : *m;
            }
        }
    }
    for (uint32_t i = 0; i < c.rank; i++) {
        if (!npu_size_mul(len, (size_t)most[i], &len)) {
            return NPU_ERR_OVERFLOW;
        }
    }
    *size = len;
    return NPU_OK;
}

static npu_status npu__ref_index_prepare(npu_prepare *p)
{
    const npu_bound_arg *list = npu_op_arg(p->op, "indices");
    return npu__ref_offsets_size(p, list->first, list->count, &p->workspace);
}

static npu_status npu__ref_index_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    int64_t *offsets = (int64_t *)l->workspace;
    npu__ref_walk w;
    npu_status status = npu__ref_index_walk(l, 1, l->num_in - 1, &l->out[0], &w, offsets);
    (void)part;
    (void)parts;
    if (!status) {
        npu__ref_walk_unite(&w);
        npu__ref_walk_pick(l->isa, &w, l->y[0], l->x[0], npu__ref_size(l->in[0].dtype), offsets, NPU_I64, 0,
                           npu__ref_walk_len(&w));
    }
    return status;
}

/* ---- placing: self, or zeros, with elements written or folded where indices say ---- */

typedef struct npu__ref_placing {
    npu__ref_walk walk;
    bool is_list;           /* of indices, perhaps without any */
    uint32_t first, count;  /* the index operand, or those of the list */
    uint32_t src;           /* operand that is placed; NPU_NO_INDEX = the number */
    uint32_t fold;
    bool mean, fresh;       /* fresh: what is hit does not count itself */
    bool zeros;             /* the result begins with zeros, not with self */
    bool by_count;          /* what is added is divided by how often its index occurs */
    int64_t skip;           /* an index that adds nothing */
    bool scaled;
    bool stepwise;          /* sums are rounded after every step, as in torch's own kernel */
    int cls;                /* folds happen in it */
    npu__ref_strip number;  /* element 0; for PLACE_SET an element of the result's dtype */
    npu__ref_strip alpha;   /* element 0 */
    size_t sums, counts;    /* bytes of workspace: sums where the result cannot hold them, hits for the mean */
} npu__ref_placing;

/* Element 0 of a strip. */
static void npu__ref_strip_set(int cls, npu__ref_strip *strip, double f, int64_t i)
{
    switch (cls) {
    case NPU__F32: strip->f32[0] = (float)f; break;
    case NPU__F64: strip->f64[0] = f; break;
    default: strip->i64[0] = i; break;
    }
}

/* What folds to x itself. */
static void npu__ref_fold_neutral(int cls, uint32_t fold, npu__ref_strip *strip)
{
    switch (fold) {
    case NPU__PLACE_MUL: npu__ref_strip_set(cls, strip, 1, 1); break;
    case NPU__PLACE_MAX: npu__ref_strip_set(cls, strip, -HUGE_VAL, INT64_MIN); break;
    case NPU__PLACE_MIN: npu__ref_strip_set(cls, strip, HUGE_VAL, INT64_MAX); break;
    default: npu__ref_strip_set(cls, strip, 0, 0); break;
    }
}

/* Where a run is placed. */
typedef struct npu__ref_placer {
    const npu__ref_placing *s;
    const void *src;
    uint32_t src_dtype, out_dtype;
    void *sums;
    int64_t *counts;
    size_t size;            /* bytes of a sum */
    npu__ref_runs *runs;
} npu__ref_placer;

/* Places x[0 .. n-1] of the class at positions far + at[j] of the sums. */
static void npu__ref_place_at(const npu__ref_placer *p, uint32_t fold, int64_t far, const int64_t *at, const void *x,
                              int64_t n)
{
    p->runs->loops->place[p->s->cls](fold, (char *)p->sums + far * (int64_t)p->size, at, x, (size_t)n);
}

/* Multiplies x[0 .. n-1] by alpha, or by one over the number of times that their index occurs. */
static void npu__ref_place_scale(const npu__ref_placer *p, npu__ref_strip *x)
{
    npu__ref_strip scale = p->s->alpha;
    size_t n = (size_t)p->runs->n;
    if (p->s->by_count) {
        npu__ref_strip_set(p->s->cls, &scale, 1.0 / (double)p->counts[p->runs->k], 0);
    }
    npu__ref_repeat(&scale, p->size, n);
    p->runs->loops->place[p->s->cls](NPU__PLACE_MUL, x, NULL, &scale, n);
}

/* The elements of a run: where they are, or in `strip`. */
static const void *npu__ref_place_from(const npu__ref_placer *p, npu__ref_strip *strip)
{
    const npu__ref_runs *r = p->runs;
    int64_t step = r->w->near[r->w->rank - 1];
    bool scaled = p->s->scaled || p->s->by_count;
    if (step == 1 && p->src_dtype == npu__ref_class_dtype[p->s->cls] && !scaled) {
        return (const char *)p->src + r->near * (int64_t)p->size;
    }
    r->loops->load(p->s->cls, strip, p->src, p->src_dtype, r->near, step, (size_t)r->n);
    if (scaled) {
        npu__ref_place_scale(p, strip);
    }
    return strip;
}

/* One after the other, each rounded as the result is. */
static void npu__ref_place_stepwise(const npu__ref_placer *p, const char *x)
{
    const npu__ref_runs *r = p->runs;
    for (int64_t j = 0; j < r->n; j++) {
        int64_t to = r->far + (r->at ? r->at[j] : j);
        npu__ref_place_at(p, p->s->fold, to, NULL, x + j * (int64_t)p->size, 1);
        npu__ref_round(p->s->cls, p->out_dtype, (char *)p->sums + to * (int64_t)p->size, 1);
    }
}

static void npu__ref_place_run(const npu__ref_placer *p)
{
    const npu__ref_runs *r = p->runs;
    npu__ref_strip strip;
    const void *x;
    if (!r->at && r->k == p->s->skip) {
        return;
    }
    x = npu__ref_place_from(p, &strip);
    if (p->s->stepwise) {
        npu__ref_place_stepwise(p, (const char *)x);
    } else {
        npu__ref_place_at(p, p->s->fold, r->far, r->at, x, r->n);
    }
    for (int64_t j = 0; j < r->n && p->s->mean; j++) {
        p->counts[r->far + (r->at ? r->at[j] : j)]++;
    }
}

/* The mean of what was summed: integers round down. */
static void npu__ref_place_mean(const npu__ref_placer *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t count = r->counts[i];
        if (count < 2) {
            continue;
        }
        switch (r->s->cls) {
        case NPU__F32: ((float *)r->sums)[i] /= (float)count; break;
        case NPU__F64: ((double *)r->sums)[i] /= (double)count; break;
        default: ((int64_t *)r->sums)[i] = npu__ref_div_floor_i64(((int64_t *)r->sums)[i], count); break;
        }
    }
}

/* Folds into y, or into sums of a wider type that are rounded once. */
static void npu__ref_place_fold(npu__ref_placer *p, const npu_tensor *out, void *y)
{
    int64_t n = npu__ref_len(out);
    npu__ref_runs begin = *p->runs, *r = p->runs;
    npu__ref_strip neutral;
    for (int64_t i = 0; p->s->mean && i < n; i++) {
        p->counts[i] = !p->s->fresh;
    }
    if (p->s->sums) {
        r->loops->load(p->s->cls, p->sums, y, out->dtype, 0, 1, (size_t)n);
    } else {
        p->sums = y;
    }
    npu__ref_fold_neutral(p->s->cls, p->s->fold, &neutral);
    npu__ref_repeat(&neutral, p->size, NPU__STRIP);
    while (p->s->fresh && npu__ref_runs_next(r)) {
        npu__ref_place_at(p, NPU__PLACE_SET, r->far, r->at, &neutral, r->n);
    }
    for (*r = begin; npu__ref_runs_next(r);) {
        npu__ref_place_run(p);
    }
    if (p->s->mean) {
        npu__ref_place_mean(p, n);
    }
    if (p->s->sums) {
        r->loops->store(p->s->cls, y, out->dtype, 0, 1, p->sums, (size_t)n);
    }
}

/* How often each index occurs. */
static void npu__ref_place_count(const npu__ref_placer *p, const npu_tensor *index)
{
    memset(p->counts, 0, p->s->counts);
    for (int64_t i = 0; i < npu__ref_len(index); i++) {
        p->counts[npu__ref_index(p->runs->index, p->runs->dtype, (size_t)i)]++;
    }
}

/* The result before anything is placed. */
static void npu__ref_place_begin(const npu__ref_placing *s, const npu_launch *l, size_t bytes)
{
    if (s->zeros) {
        memset(l->y[0], 0, bytes);
    } else if (l->y[0] != l->x[0]) {
        memcpy(l->y[0], l->x[0], bytes);
    }
}

/* The walk, and what it looks up: the index operand, or offsets made of a list of them. */
static npu_status npu__ref_place_walk(const npu__ref_placing *s, const npu_launch *l, npu__ref_walk *w,
                                      npu__ref_runs *r)
{
    bool moves = s->fold == NPU__PLACE_SET;
    const npu_tensor *index = &l->in[s->first];
    const void *x = l->x[s->first];
    uint32_t dtype = index->dtype;
    npu_status status;
    *w = s->walk;
    if (s->is_list) {
        int64_t *offsets = (int64_t *)(void *)((char *)l->workspace + s->sums + s->counts);
        status = npu__ref_index_walk(l, s->first, s->count, &l->in[s->src], w, offsets);
        x = offsets;
        dtype = NPU_I64;
    } else {
        status = npu__ref_check_indices(l->isa, x, dtype, (size_t)npu__ref_len(index), w->wrap, w->limit);
    }
    if (status) {
        return status;
    }
    if (moves) {
        npu__ref_walk_unite(w);
    }
    npu__ref_runs_start(r, l->isa, w, x, dtype, 0, npu__ref_walk_len(w), moves ? INT64_MAX : NPU__STRIP);
    return NPU_OK;
}

static npu_status npu__ref_placing_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_placing *s = (const npu__ref_placing *)l->state;
    const npu_tensor *out = &l->out[0];
    char *workspace = (char *)l->workspace;
    bool has_src = s->src != NPU_NO_INDEX;
    npu__ref_walk walk;
    npu__ref_runs runs;
    npu__ref_placer p = { s, has_src ? l->x[s->src] : &s->number,
                          has_src ? l->in[s->src].dtype : npu__ref_class_dtype[s->cls], out->dtype, workspace,
                          (int64_t *)(void *)(workspace + s->sums), npu__ref_class_size[s->cls], &runs };
    size_t size = npu__ref_size(out->dtype);
    npu_status status = npu__ref_place_walk(s, l, &walk, &runs);
    (void)part;
    (void)parts;
    if (status) {
        return status;
    }
    npu__ref_place_begin(s, l, (size_t)npu__ref_len(out) * size);
    if (s->by_count) {
        npu__ref_place_count(&p, &l->in[s->first]);
    }
    if (s->fold != NPU__PLACE_SET) {
        npu__ref_place_fold(&p, out, l->y[0]);
        return NPU_OK;
    }
    while (npu__ref_runs_next(&runs)) {
        npu__ref_put_run(&runs, (char *)l->y[0], (const char *)p.src, size);
    }
    return NPU_OK;
}

/* ---- preparing to place ---- */

static void npu__ref_placing_number(npu__ref_placing *s, uint32_t dtype, npu_scalar x)
{
    double f = npu_scalar_value(x);
    npu__ref_strip strip = { { 0 } };
    npu__ref_strip_set(s->cls, &strip, f, dtype == NPU_BOOL ? f != 0 : x.is_float ? npu__ref_to_i64(f) : x.i);
    if (s->fold == NPU__PLACE_SET) {
        npu__ref_store_class(s->cls, &s->number, dtype, 0, 1, &strip, 1);
    } else {
        s->number = strip;
    }
}

/* scatter: the positions of index; index_add and the like: those of source, along one dim the index's. */
static void npu__ref_placing_dims(const npu_prepare *p, npu__ref_placing *s, const npu_tensor *self,
                                  const npu_tensor *index, const npu_tensor *src, bool is_slices)
{
    npu__ref_walk *w = &s->walk;
    uint32_t dim = npu__ref_dim(npu_op_int(p->op, "dim", 0), self->rank);
    int64_t len = index->rank && is_slices ? index->dims[0] : 1;
    w->axis_stride = self->rank ? self->strides[dim] : 1;
    w->limit = self->rank ? self->dims[dim] : 1;
    if (self->rank == 0) {
        npu__ref_walk_dim(w, npu__ref_len(index), 0, 1, src ? 1 : 0);
    }
    for (uint32_t i = 0; i < self->rank; i++) {
        int64_t size = is_slices ? (i == dim ? len : self->dims[i]) : index->rank ? index->dims[i] : 1;
        int64_t step = is_slices ? i == dim : index->rank ? index->strides[i] : 0;
        npu__ref_walk_dim(w, size, i == dim ? 0 : self->strides[i], step,
                          src && src->rank ? src->strides[i] : 0);
    }
    if (npu__ref_len(index) == 0) {
        w->rank = 0;
        npu__ref_walk_dim(w, 0, 0, 0, 0);
    }
}

static uint32_t npu__ref_placing_fold(const npu_op_info *op)
{
    static const struct { const char *word; uint32_t fold; } words[] = {
        { "sum", NPU__PLACE_ADD }, { "add", NPU__PLACE_ADD }, { "mean", NPU__PLACE_ADD },
        { "prod", NPU__PLACE_MUL }, { "multiply", NPU__PLACE_MUL },
        { "amax", NPU__PLACE_MAX }, { "amin", NPU__PLACE_MIN }
    };
    for (size_t i = 0; i < NPU__REF_COUNT(words); i++) {
        if (npu_op_str_is(op, "reduce", words[i].word)) {
            return words[i].fold;
        }
    }
    switch (op->kind) {
    case NPU_ATEN_SCATTER_ADD: case NPU_ATEN_INDEX_ADD: case NPU_ATEN_EMBEDDING_DENSE_BACKWARD:
        return NPU__PLACE_ADD;
    default: return npu_op_int(op, "accumulate", 0) ? NPU__PLACE_ADD : NPU__PLACE_SET;
    }
}

/* What the op is, before its positions are known. */
static npu__ref_placing *npu__ref_placing_create(npu_prepare *p)
{
    npu__ref_placing *s = (npu__ref_placing *)npu_prepare_alloc(p, sizeof *s);
    uint32_t dtype = p->out[0].dtype;
    npu_scalar none = npu_scalar_int(0), one = npu_scalar_int(1), alpha = npu_op_scalar(p->op, "alpha", one);
    if (!s) {
        return NULL;
    }
    p->state = s;
    s->cls = npu__ref_compute_class(dtype);
    s->fold = npu__ref_placing_fold(p->op);
    s->first = 1;
    s->src = NPU_NO_INDEX;
    s->skip = INT64_MIN;
    s->mean = npu_op_str_is(p->op, "reduce", "mean");
    s->fresh = npu_op_arg(p->op, "include_self") && !npu_op_int(p->op, "include_self", 1);
    s->scaled = npu_scalar_value(alpha) != 1;
    npu__ref_strip_set(s->cls, &s->alpha, npu_scalar_value(alpha),
                       alpha.is_float ? npu__ref_to_i64(alpha.f) : alpha.i);
    npu__ref_placing_number(s, dtype, npu_op_scalar(p->op, "value", none));
    return s;
}

static npu_status npu__ref_placing_finish(npu_prepare *p, npu__ref_placing *s)
{
    size_t n = (size_t)npu__ref_len(&p->out[0]), extra = 0;
    npu_status status = NPU_OK;
    if (s->fold != NPU__PLACE_SET && p->out[0].dtype != npu__ref_class_dtype[s->cls]) {
        s->sums = (n * sizeof(int64_t) + 63) / 64 * 64;
    }
    s->counts = s->mean ? n * sizeof(int64_t) : s->by_count ? (size_t)s->walk.limit * sizeof(int64_t) : 0;
    s->counts = (s->counts + 63) / 64 * 64;
    if (s->is_list) {
        status = npu__ref_offsets_size(p, s->first, s->count, &extra);
    } else {
        npu__ref_walk_finish(&s->walk);
    }
    p->workspace = s->sums + s->counts + extra;
    return status;
}

static npu_status npu__ref_scatter_prepare(npu_prepare *p)
{
    npu__ref_placing *s = npu__ref_placing_create(p);
    bool is_slices = !npu_op_arg(p->op, "src") && p->op->kind != NPU_ATEN_SCATTER_VALUE &&
                     p->op->kind != NPU_ATEN_SCATTER_VALUE_REDUCE;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->src = p->op->num_in > 2 ? 2 : NPU_NO_INDEX;
    npu__ref_placing_dims(p, s, &p->in[0], &p->in[1], s->src == 2 ? &p->in[2] : NULL, is_slices);
    s->walk.wrap = p->op->kind == NPU_ATEN_INDEX_FILL ? s->walk.limit : 0;
    return npu__ref_placing_finish(p, s);
}

/* put: self and source are flat. */
static npu_status npu__ref_put_prepare(npu_prepare *p)
{
    npu__ref_placing *s = npu__ref_placing_create(p);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->src = 2;
    s->walk.axis_stride = 1;
    s->walk.limit = s->walk.wrap = npu__ref_len(&p->in[0]);
    npu__ref_walk_dim(&s->walk, npu__ref_len(&p->in[1]), 0, 1, 1);
    return npu__ref_placing_finish(p, s);
}

static npu_status npu__ref_index_put_prepare(npu_prepare *p)
{
    npu__ref_placing *s = npu__ref_placing_create(p);
    const npu_bound_arg *list = npu_op_arg(p->op, "indices");
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->first = list->first;
    s->count = list->count;
    s->is_list = true;
    s->stepwise = p->op->kind == NPU_ATEN_UNSAFE_INDEX_PUT;
    s->src = npu_op_arg(p->op, "values")->first;
    return npu__ref_placing_finish(p, s);
}

/* Rows of gradients added into zeros; those of padding_idx are left out. */
static npu_status npu__ref_embedding_backward_prepare(npu_prepare *p)
{
    npu__ref_placing *s = npu__ref_placing_create(p);
    int64_t width = p->out[0].dims[1];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->src = 0;
    s->zeros = true;
    s->by_count = npu_op_int(p->op, "scale_grad_by_freq", 0) != 0;
    s->skip = npu_op_int(p->op, "padding_idx", -1);
    s->walk.axis_stride = width;
    s->walk.limit = p->out[0].dims[0];
    npu__ref_walk_dim(&s->walk, npu__ref_len(&p->in[1]), 0, 1, width);
    npu__ref_walk_dim(&s->walk, width, 1, 0, 1);
    return npu__ref_placing_finish(p, s);
}

static npu_status npu__ref_one_hot_prepare(npu_prepare *p)
{
    npu__ref_placing *s = npu__ref_placing_create(p);
    int64_t classes = p->out[0].dims[p->out[0].rank - 1];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->first = 0;
    s->zeros = true;
    s->number.i64[0] = 1;
    s->walk.axis_stride = 1;
    s->walk.limit = classes;
    npu__ref_walk_dim(&s->walk, npu__ref_len(&p->in[0]), classes, 1, 0);
    return npu__ref_placing_finish(p, s);
}

/* ---- masks ---- */

static npu_status npu__ref_nonzero_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    int64_t *y[NPU_MAX_RANK] = { NULL };
    (void)part;
    (void)parts;
    for (uint32_t i = 0; i < l->in[0].rank; i++) {
        y[i] = (int64_t *)l->y[0] + i;
    }
    return npu__ref_put_truths(l, y, (int64_t)l->in[0].rank, l->out[0].dims[0]);
}

/* far is a, index is b, near a dense result of the dims that both broadcast to. */
static npu_status npu__ref_walk_both(npu__ref_walk *w, const npu_tensor *a, const npu_tensor *b)
{
    int64_t dims[NPU_MAX_RANK], stride = 1;
    uint32_t rank;
    if (npu_dims_broadcast(a->dims, a->rank, b->dims, b->rank, dims, &rank, NULL)) {
        return NPU_ERR_SHAPE;
    }
    w->rank = rank;
    for (uint32_t i = rank; i-- > 0; stride *= dims[i]) {
        w->dims[i] = dims[i];
        w->far[i] = npu__ref_spread(a, i, rank);
        w->index[i] = npu__ref_spread(b, i, rank);
        w->near[i] = stride;
    }
    npu__ref_walk_finish(w);
    return NPU_OK;
}

static npu_status npu__ref_masked_prepare(npu_prepare *p)
{
    npu__ref_walk *w = (npu__ref_walk *)npu_prepare_alloc(p, sizeof *w);
    p->state = w;
    return w ? npu__ref_walk_both(w, &p->in[0], &p->in[1]) : NPU_ERR_NO_MEMORY;
}

/* masked_select writes the true elements one after another; masked_scatter reads source so. */
static npu_status npu__ref_masked_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_walk *w = (const npu__ref_walk *)l->state;
    bool selects = l->num_in == 2;
    uint32_t last = w->rank - 1;
    int64_t limit = npu__ref_len(selects ? &l->out[0] : &l->in[2]), found = 0;
    size_t size = npu__ref_size(l->in[0].dtype);
    (void)part;
    (void)parts;
    for (size_t row = 0; row < npu__ref_walk_rows(w); row++) {
        npu__ref_place_of at = npu__ref_walk_row(w, row);
        for (int64_t j = 0; j < w->dims[last]; j++) {
            bool is_true = ((const uint8_t *)l->x[1])[at.index + j * w->index[last]] != 0;
            size_t from = (size_t)(at.far + j * w->far[last]), to = (size_t)(at.near + j * w->near[last]);
            if (is_true && found == limit) {
                return NPU_ERR_RANGE;
            }
            if (selects && is_true) {
                npu__ref_copy_element(l->y[0], (size_t)found, l->x[0], from, size);
            } else if (!selects) {
                npu__ref_copy_element(l->y[0], to, l->x[is_true ? 2 : 0], is_true ? (size_t)found : from,
                                      size);
            }
            found += is_true;
        }
    }
    return found == limit || !selects ? NPU_OK : NPU_ERR_RANGE;
}

#define NPU__REF_PLACE_KERNEL(kind, prepare) \
    NPU__REF_ROW(kind, "plain", 0, NULL, prepare, npu__ref_placing_launch)

static const npu_kernel npu__ref_kernels_indexing[] = {
    NPU__REF_ROW(NPU_ATEN_INDEX, "plain", 0, NULL, npu__ref_index_prepare, npu__ref_index_launch),
    NPU__REF_ROW(NPU_ATEN_UNSAFE_INDEX, "plain", 0, NULL, npu__ref_index_prepare,
      npu__ref_index_launch),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_INDEX_PUT, npu__ref_index_put_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_UNSAFE_INDEX_PUT, npu__ref_index_put_prepare),
    NPU__REF_ROW(NPU_ATEN_INDEX_SELECT, "plain", 0, NULL, npu__ref_pick_prepare,
      npu__ref_pick_launch),
    NPU__REF_ROW(NPU_ATEN_TAKE, "plain", 0, NULL, npu__ref_pick_prepare, npu__ref_pick_launch),
    NPU__REF_ROW(NPU_ATEN_TAKE_ALONG_DIM, "plain", 0, NULL, npu__ref_pick_prepare,
      npu__ref_pick_launch),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER_VALUE, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER_REDUCE_WORD, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER_VALUE_REDUCE, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER_ADD, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_SCATTER_REDUCE, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_INDEX_ADD, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_INDEX_COPY, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_INDEX_FILL, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_INDEX_REDUCE, npu__ref_scatter_prepare),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_PUT, npu__ref_put_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SELECT_SCATTER, npu__ref_replace_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_SLICE_SCATTER, npu__ref_replace_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_DIAGONAL_SCATTER, npu__ref_replace_prepare),
    NPU__REF_COPY_KERNEL(NPU_ATEN_AS_STRIDED_SCATTER, npu__ref_replace_prepare),
    NPU__REF_ROW(NPU_ATEN_MASKED_SCATTER, "plain", 0, NULL, npu__ref_masked_prepare,
      npu__ref_masked_launch),
    NPU__REF_ROW(NPU_ATEN_MASKED_SELECT, "plain", 0, NULL, npu__ref_masked_prepare,
      npu__ref_masked_launch),
    NPU__REF_ROW(NPU_ATEN_NONZERO, "plain", 0, NULL, NULL, npu__ref_nonzero_launch),
    NPU__REF_ROW(NPU_ATEN_ARGWHERE, "plain", 0, NULL, NULL, npu__ref_nonzero_launch),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_ONE_HOT, npu__ref_one_hot_prepare),
    NPU__REF_ROW(NPU_ATEN_REPEAT_INTERLEAVE, "plain", 0, NULL, npu__ref_repeat_prepare,
      npu__ref_repeat_launch),
    NPU__REF_ROW(NPU_ATEN_REPEAT_INTERLEAVE_TENSOR, "plain", 0, NULL, npu__ref_repeat_prepare,
      npu__ref_repeat_launch),
    NPU__REF_PLACE_KERNEL(NPU_ATEN_EMBEDDING_DENSE_BACKWARD, npu__ref_embedding_backward_prepare)
};

/* ---- borders: pads and roll ----

   A result is read at the operand's index minus `before`; what lies outside is a number, or comes from
   inside. */

enum { NPU__BORDER_NUMBER, NPU__BORDER_MIRROR, NPU__BORDER_EDGE, NPU__BORDER_WRAP };

typedef struct npu__ref_border {
    uint32_t mode, rank;
    int64_t dims[NPU_MAX_RANK], before[NPU_MAX_RANK];
    int64_t first[NPU_MAX_RANK], len[NPU_MAX_RANK]; /* what is used of the operand */
    int64_t strides[NPU_MAX_RANK];
    size_t size;
    unsigned char number[8];
} npu__ref_border;

/* Where index i of a dim of n comes from; -1 = it is the number. */
static int64_t npu__ref_border_index(uint32_t mode, int64_t i, int64_t n)
{
    if (n <= 0 || (i >= 0 && i < n)) {
        return n <= 0 ? -1 : i;
    }
    switch (mode) {
    case NPU__BORDER_MIRROR: return i < 0 ? -i : 2 * (n - 1) - i;
    case NPU__BORDER_EDGE: return i < 0 ? 0 : n - 1;
    case NPU__BORDER_WRAP: return (i % n + n) % n;
    default: return -1;
    }
}

/* One row of the last dim; `from` is its row of the operand, NULL = the number everywhere. */
static void npu__ref_border_row(const npu__ref_border *s, char *to, const char *from)
{
    uint32_t last = s->rank - 1;
    int64_t n = s->len[last], len = s->dims[last], j = 0;
    from = from ? from + (size_t)s->first[last] * s->size : NULL;
    while (j < len) {
        int64_t i = j - s->before[last], at = from ? npu__ref_border_index(s->mode, i, n) : -1, run = 1;
        if (at >= 0 && (at == i || s->mode == NPU__BORDER_WRAP)) {
            run = n - at < len - j ? n - at : len - j;
        }
        if (run > 1) {
            memcpy(to + (size_t)j * s->size, from + (size_t)at * s->size, (size_t)run * s->size);
        } else {
            npu__ref_copy_element(to, (size_t)j, at < 0 ? (const char *)s->number : from,
                                  at < 0 ? 0 : (size_t)at, s->size);
        }
        j += run;
    }
}

static npu_status npu__ref_border_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_border *s = (const npu__ref_border *)l->state;
    size_t width = (size_t)s->dims[s->rank - 1], rows = width ? (size_t)npu__ref_len(&l->out[0]) / width : 0;
    size_t begin, end;
    npu__ref_share(rows, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        size_t rest = row;
        int64_t from = 0;
        for (uint32_t i = s->rank - 1; i-- > 0; rest /= (size_t)s->dims[i]) {
            int64_t at = (int64_t)(rest % (size_t)s->dims[i]) - s->before[i];
            at = npu__ref_border_index(s->mode, at, s->len[i]);
            from = at < 0 || from < 0 ? -1 : from + (s->first[i] + at) * s->strides[i];
        }
        npu__ref_border_row(s, (char *)l->y[0] + row * width * s->size,
                            from < 0 ? NULL : (const char *)l->x[0] + (size_t)from * s->size);
    }
    return NPU_OK;
}

/* A border of nothing around the operand; a scalar is a row of one. */
static npu__ref_border *npu__ref_border_create(npu_prepare *p, uint32_t mode)
{
    const npu_tensor *in = &p->in[0], *out = &p->out[0];
    npu__ref_border *s = (npu__ref_border *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->mode = mode;
    s->size = npu__ref_size(in->dtype);
    s->rank = in->rank ? in->rank : 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        s->dims[i] = in->rank ? out->dims[i] : 1;
        s->len[i] = in->rank ? in->dims[i] : 1;
        s->strides[i] = in->rank ? in->strides[i] : 1;
    }
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(out) / 256, 256);
    return s;
}

static uint32_t npu__ref_border_mode(const npu_op_info *op)
{
    switch (op->kind) {
    case NPU_ATEN_CONSTANT_PAD_ND: return NPU__BORDER_NUMBER;
    case NPU_ATEN_PAD:
        return npu_op_str_is(op, "mode", "reflect")     ? NPU__BORDER_MIRROR
               : npu_op_str_is(op, "mode", "replicate") ? NPU__BORDER_EDGE
               : npu_op_str_is(op, "mode", "circular")  ? NPU__BORDER_WRAP
                                                        : NPU__BORDER_NUMBER;
    case NPU_ATEN_REFLECTION_PAD1D: case NPU_ATEN_REFLECTION_PAD2D: case NPU_ATEN_REFLECTION_PAD3D:
        return NPU__BORDER_MIRROR;
    default: return NPU__BORDER_EDGE;
    }
}

/* The argument `value` as an element. */
static void npu__ref_border_number(const npu_prepare *p, npu__ref_border *s)
{
    npu_scalar value = npu_op_scalar(p->op, "value", npu_scalar_int(0));
    npu__ref_strip strip = { { 0 } };
    int cls = npu__ref_compute_class(p->in[0].dtype);
    double f = npu_scalar_value(value);
    npu__ref_strip_set(cls, &strip, f,
                       p->in[0].dtype == NPU_BOOL ? f != 0 : value.is_float ? npu__ref_to_i64(f) : value.i);
    npu__ref_store_class(cls, s->number, p->in[0].dtype, 0, 1, &strip, 1);
}

static npu_status npu__ref_pad_prepare(npu_prepare *p)
{
    const char *name = npu_op_arg(p->op, "pad") ? "pad" : "padding";
    npu__ref_border *s = npu__ref_border_create(p, npu__ref_border_mode(p->op));
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < npu_op_list_len(p->op, name) / 2; i++) {
        int64_t before = npu_op_int_at(p->op, name, 2 * i), after = npu_op_int_at(p->op, name, 2 * i + 1);
        uint32_t dim = s->rank - 1 - i;
        bool cuts = s->mode == NPU__BORDER_WRAP; /* what is cut off does not come back on the other side */
        s->first[dim] = cuts && before < 0 ? -before : 0;
        s->len[dim] -= s->first[dim] + (cuts && after < 0 ? -after : 0);
        s->before[dim] = before + s->first[dim];
    }
    npu__ref_border_number(p, s);
    return NPU_OK;
}

/* Without dims the operand rolls as one row. */
static npu_status npu__ref_roll_prepare(npu_prepare *p)
{
    npu__ref_border *s = npu__ref_border_create(p, NPU__BORDER_WRAP);
    uint32_t count = npu_op_list_len(p->op, "dims");
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    if (count == 0) {
        s->rank = 1;
        s->dims[0] = s->len[0] = npu__ref_len(&p->in[0]);
        s->strides[0] = 1;
    }
    for (uint32_t i = 0; i < (count ? count : 1); i++) {
        uint32_t dim = count ? npu__ref_dim(npu_op_int_at(p->op, "dims", i), p->in[0].rank) : 0;
        int64_t n = s->len[dim] ? s->len[dim] : 1;
        s->before[dim] = (s->before[dim] + npu_op_int_at(p->op, "shifts", i) % n) % n;
    }
    return NPU_OK;
}

/* ---- tril, triu ---- */

static npu_status npu__ref_triangle_prepare(npu_prepare *p)
{
    int64_t *diagonal = (int64_t *)npu_prepare_alloc(p, 2 * sizeof *diagonal);
    if (!diagonal) {
        return NPU_ERR_NO_MEMORY;
    }
    diagonal[0] = npu_op_int(p->op, "diagonal", 0);
    diagonal[1] = p->op->kind == NPU_ATEN_TRIU;
    p->state = diagonal;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(&p->in[0]) / 256, 256);
    return NPU_OK;
}

/* Row i keeps its columns up to i + diagonal, or from there on; the others are 0. */
static npu_status npu__ref_triangle_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *in = &l->in[0];
    const int64_t *diagonal = (const int64_t *)l->state;
    int64_t height = in->dims[in->rank - 2], width = in->dims[in->rank - 1];
    size_t size = npu__ref_size(in->dtype), begin, end;
    npu__ref_share(width ? (size_t)(npu__ref_len(in) / width) : 0, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        int64_t i = (int64_t)row % height + !diagonal[1], first = 0, last;
        int64_t cut = diagonal[0] < -i ? 0 : diagonal[0] > width - i ? width : diagonal[0] + i;
        char *y = (char *)l->y[0] + row * (size_t)width * size;
        const char *x = (const char *)l->x[0] + row * (size_t)width * size;
        first = diagonal[1] ? cut : 0;
        last = diagonal[1] ? width : cut;
        memset(y, 0, (size_t)first * size);
        memcpy(y + (size_t)first * size, x + (size_t)first * size, (size_t)(last - first) * size);
        memset(y + (size_t)last * size, 0, (size_t)(width - last) * size);
    }
    return NPU_OK;
}

/* ---- windows as columns: [N, C k0 k1, positions] and [N, C, height, width] ---- */

typedef struct npu__ref_columns {
    int64_t planes; /* N C */
    int64_t kernel[2], dilation[2], padding[2], stride[2], size[2], steps[2];
} npu__ref_columns;

static npu_status npu__ref_columns_prepare(npu_prepare *p)
{
    npu__ref_columns *s = (npu__ref_columns *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *image = p->op->kind == NPU_ATEN_IM2COL ? &p->in[0] : &p->out[0];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu_op_ints(p->op, "kernel_size", s->kernel, 2);
    npu_op_ints(p->op, "dilation", s->dilation, 2);
    npu_op_ints(p->op, "padding", s->padding, 2);
    npu_op_ints(p->op, "stride", s->stride, 2);
    for (uint32_t i = 0; i < 2; i++) {
        s->size[i] = image->dims[image->rank - 2 + i];
        s->steps[i] =
            (s->size[i] + 2 * s->padding[i] - s->dilation[i] * (s->kernel[i] - 1) - 1) / s->stride[i] + 1;
    }
    s->planes = (int64_t)npu__ref_dims_len(image, 0, image->rank - 2);
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)s->planes, (size_t)(s->size[0] * s->size[1] * s->kernel[0]));
    return NPU_OK;
}

static npu_status npu__ref_im2col_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_columns *s = (const npu__ref_columns *)l->state;
    size_t kernel = (size_t)(s->kernel[0] * s->kernel[1]), size = npu__ref_size(l->in[0].dtype), begin, end,
           at;
    static const double zero = 0;
    npu__ref_share((size_t)s->planes * kernel, part, parts, &begin, &end);
    at = begin * (size_t)(s->steps[0] * s->steps[1]);
    for (size_t row = begin; row < end; row++) {
        int64_t plane = (int64_t)(row / kernel), k = (int64_t)(row % kernel);
        int64_t top = k / s->kernel[1] * s->dilation[0] - s->padding[0];
        int64_t left = k % s->kernel[1] * s->dilation[1] - s->padding[1];
        for (int64_t i = 0; i < s->steps[0]; i++) {
            int64_t y = top + i * s->stride[0];
            bool is_inside = y >= 0 && y < s->size[0];
            for (int64_t j = 0; j < s->steps[1]; j++, at++) {
                int64_t x = left + j * s->stride[1];
                if (is_inside && x >= 0 && x < s->size[1]) {
                    npu__ref_copy_element(l->y[0], at, l->x[0],
                                          (size_t)((plane * s->size[0] + y) * s->size[1] + x), size);
                } else {
                    npu__ref_copy_element(l->y[0], at, &zero, 0, size);
                }
            }
        }
    }
    return NPU_OK;
}

/* Position of the window whose element k lies on pixel i; -1 = there is none. */
static int64_t npu__ref_column_step(const npu__ref_columns *s, uint32_t dim, int64_t i, int64_t k)
{
    int64_t at = i + s->padding[dim] - k * s->dilation[dim];
    return at >= 0 && at % s->stride[dim] == 0 && at / s->stride[dim] < s->steps[dim] ? at / s->stride[dim]
                                                                                      : -1;
}

/* Everything that lies on one pixel. */
static double npu__ref_col2im_pixel(const npu__ref_columns *s, const npu_launch *l, int64_t plane, int64_t y,
                                    int64_t x)
{
    double sum = 0, e;
    for (int64_t k = 0; k < s->kernel[0] * s->kernel[1]; k++) {
        int64_t i = npu__ref_column_step(s, 0, y, k / s->kernel[1]);
        int64_t j = npu__ref_column_step(s, 1, x, k % s->kernel[1]);
        if (i >= 0 && j >= 0) {
            int64_t row = plane * s->kernel[0] * s->kernel[1] + k;
            npu__ref_load_f64(&e, l->x[0], l->in[0].dtype, (row * s->steps[0] + i) * s->steps[1] + j, 1, 1);
            sum += e;
        }
    }
    return sum;
}

static npu_status npu__ref_col2im_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_columns *s = (const npu__ref_columns *)l->state;
    int64_t pixels = s->size[0] * s->size[1];
    size_t begin, end;
    npu__ref_share((size_t)s->planes, part, parts, &begin, &end);
    for (size_t plane = begin; plane < end; plane++) {
        for (int64_t i = 0; i < pixels; i++) {
            double sum = npu__ref_col2im_pixel(s, l, (int64_t)plane, i / s->size[1], i % s->size[1]);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)plane * pixels + i, 1, &sum, 1);
        }
    }
    return NPU_OK;
}

#define NPU__REF_BORDER_KERNEL(kind, prepare) \
    NPU__REF_ROW(kind, "plain", 0, NULL, prepare, npu__ref_border_launch)

static const npu_kernel npu__ref_kernels_border[] = {
    NPU__REF_BORDER_KERNEL(NPU_ATEN_CONSTANT_PAD_ND, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REFLECTION_PAD1D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REFLECTION_PAD2D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REFLECTION_PAD3D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REPLICATION_PAD1D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REPLICATION_PAD2D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_REPLICATION_PAD3D, npu__ref_pad_prepare),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_PAD, npu__ref_pad_prepare),
    NPU__REF_ROW(NPU_ATEN_TRIL, "plain", 0, NULL, npu__ref_triangle_prepare,
      npu__ref_triangle_launch),
    NPU__REF_ROW(NPU_ATEN_TRIU, "plain", 0, NULL, npu__ref_triangle_prepare,
      npu__ref_triangle_launch),
    NPU__REF_ROW(NPU_ATEN_IM2COL, "plain", 0, NULL, npu__ref_columns_prepare,
      npu__ref_im2col_launch),
    NPU__REF_ROW(NPU_ATEN_COL2IM, "plain", 0, NULL, npu__ref_columns_prepare, npu__ref_col2im_launch)
};

/* roll is a border that wraps; narrow.Tensor picks. */
static const npu_kernel npu__ref_kernels_moved[] = {
    NPU__REF_ROW(NPU_ATEN_NARROW_TENSOR, "plain", 0, NULL, npu__ref_pick_prepare,
      npu__ref_pick_launch),
    NPU__REF_BORDER_KERNEL(NPU_ATEN_ROLL, npu__ref_roll_prepare)
};

#define NPU__REF_ATTENTION_KERNELS(kind)                                                                     \
    NPU__REF_ROW(kind, "packed", 10, NULL, npu__ref_attention_prepare, npu__ref_attention_launch),            \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_attention_prepare_plain, npu__ref_attention_launch)

static const npu_kernel npu__ref_kernels_lookup[] = {
    NPU__REF_ATTENTION_KERNELS(NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION),
    NPU__REF_ROW(NPU_ATEN_EMBEDDING, "plain", 0, NULL, npu__ref_embedding_prepare,
      npu__ref_pick_launch),
    NPU__REF_ROW(NPU_ATEN_GATHER, "plain", 0, NULL, npu__ref_pick_prepare, npu__ref_pick_launch),
    NPU__REF_ATTENTION_KERNELS(NPU_ATEN_FLASH_ATTENTION_FOR_CPU),
    NPU__REF_ATTENTION_KERNELS(NPU_ATEN_EFFICIENT_ATTENTION),
    NPU__REF_ATTENTION_KERNELS(NPU_ATEN_FLASH_ATTENTION)
};

/* -----------------------------------------------------------------------------------------------------------
   NORMALISATION, POOLING                                                              >>kernels-normalization

   Loops over rows of floats with their vector variants, the normalisations and their gradients, and pools of any kind.
   A kernel brings its op to rows, or windows, and one engine of each sort runs them; each row is summed in one order.
   -------------------------------------------------------------------------------------------------------- */

static inline bool npu__ref_is_integer(uint32_t dtype) { return npu__ref_compute_class(dtype) == NPU__I64; }

/* What a strip is folded into. In maxima and minima NaN wins. */
enum { NPU__SUM, NPU__PRODUCT, NPU__MAX, NPU__MIN };
typedef struct npu__ref_number {
    double f;
    int64_t i;
} npu__ref_number;

static npu__ref_number npu__ref_fold_start(uint32_t fold)
{
    static const npu__ref_number starts[] = {
        { 0.0, 0 }, { 1.0, 1 }, { -(double)INFINITY, INT64_MIN }, { (double)INFINITY, INT64_MAX }
    };
    return starts[fold];
}

static double npu__ref_fold_f64(uint32_t fold, double a, const double *x, size_t n)
{
    switch (fold) {
    case NPU__SUM: for (size_t i = 0; i < n; i++) { a += x[i]; } break;
    case NPU__PRODUCT: for (size_t i = 0; i < n; i++) { a *= x[i]; } break;
    case NPU__MAX: for (size_t i = 0; i < n; i++) { a = x[i] > a || isnan(x[i]) ? x[i] : a; } break;
    default: for (size_t i = 0; i < n; i++) { a = x[i] < a || isnan(x[i]) ? x[i] : a; } break;
    }
    return a;
}

static int64_t npu__ref_fold_i64(uint32_t fold, int64_t a, const int64_t *x, size_t n)
{
    switch (fold) { /* unsigned arithmetic, because it may wrap */
    case NPU__SUM: for (size_t i = 0; i < n; i++) { a = (int64_t)((uint64_t)a + (uint64_t)x[i]); } break;
    case NPU__PRODUCT: for (size_t i = 0; i < n; i++) { a = (int64_t)((uint64_t)a * (uint64_t)x[i]); } break;
    case NPU__MAX: for (size_t i = 0; i < n; i++) { a = x[i] > a ? x[i] : a; } break;
    default: for (size_t i = 0; i < n; i++) { a = x[i] < a ? x[i] : a; } break;
    }
    return a;
}

/* Folds n elements x[first + i stride] into *a. */
static void npu__ref_fold(npu__ref_number *a, uint32_t fold, bool integer, const void *x, uint32_t dtype,
                          int64_t first, int64_t stride, size_t n)
{
    npu__ref_strip strip;
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        npu__ref_load_class(integer ? NPU__I64 : NPU__F64, &strip, x, dtype, first + (int64_t)i * stride,
                            stride, len);
        if (integer) {
            a->i = npu__ref_fold_i64(fold, a->i, strip.i64, len);
        } else {
            a->f = npu__ref_fold_f64(fold, a->f, strip.f64, len);
        }
    }
}

static inline void npu__ref_store_number(void *y, uint32_t dtype, size_t at, bool integer,
                                         const npu__ref_number *a)
{
    if (integer) {
        npu__ref_store_i64(y, dtype, (int64_t)at, 1, &a->i, 1);
    } else {
        npu__ref_store_f64(y, dtype, (int64_t)at, 1, &a->f, 1);
    }
}

/* ---- inner loops over floats ----

   The variant "f32" of a kernel computes in float what the plain one computes in double; sums leave float
   every few hundred or thousand elements. Its loops are compiled for the base machine and for AVX2, those with
   exponentials also for AVX-512, from one text: sums and maxima go to lanes, which is what lets a compiler use
   vectors without reordering anything. */

/* Elements of a converted strip; of a run that is folded where it lies. */
enum { NPU__REF_LANES = 32, NPU__REF_FLOAT_STRIP = 1024, NPU__REF_FLOAT_RUN = 4096 };

/* What sums may add up: the name, the term of an element e and its column's number m. */
#define NPU__REF_TERMS(X, attribute, suffix, exp_of)                                               \
    X(attribute, suffix, value, e) NPU__REF_OTHER_TERMS(X, attribute, suffix, exp_of)
#define NPU__REF_OTHER_TERMS(X, attribute, suffix, exp_of)                                         \
    X(attribute, suffix, present, e == e ? e : 0)                                                  \
    X(attribute, suffix, number, (float)(e == e))                                                  \
    X(attribute, suffix, nonzero, (float)(e != 0))                                                 \
    X(attribute, suffix, zero, (float)(e == 0))                                                    \
    X(attribute, suffix, size, fabsf(e))                                                           \
    X(attribute, suffix, square, e * e)                                                            \
    X(attribute, suffix, deviation, (e - m) * (e - m))                                             \
    X(attribute, suffix, exp, exp_of(e - m))

enum {
#define NPU_X(attribute, suffix, name, term) NPU__REF_TERM_##name,
    NPU__REF_TERMS(NPU_X, , , )
#undef NPU_X
    NPU__REF_TERM_COUNT
};

typedef double (*npu__ref_sum_fn)(const float *x, size_t n, float m);
/* acc[i] += term of x[i] of every row, the rows `stride` apart */
typedef void (*npu__ref_add_fn)(float *acc, const float *x, size_t n, const float *m, size_t rows,
                                int64_t stride);

typedef struct npu__ref_floats {
    npu__ref_sum_fn sums[NPU__REF_TERM_COUNT];
    npu__ref_add_fn adds[NPU__REF_TERM_COUNT];
    /* acc[j] = fold of acc[j] and run j of n elements, the runs `stride` apart */
    void (*fold_runs)(uint32_t fold, double *acc, const float *x, size_t n, size_t runs, int64_t stride);
    void (*fold_into)(uint32_t fold, double *acc, const float *x, size_t n); /* acc[i] = fold of acc[i] and x[i] */
    size_t (*find)(const float *x, size_t n, float value); /* the first that is value or NaN; n = none */
    /* acc[i] = fold of acc[i] and x[i step] of every row, the rows `stride` apart */
    void (*fold_rows)(uint32_t fold, float *acc, const float *x, size_t n, int64_t step, size_t rows,
                      int64_t stride);
    /* best[i] = x[i] and index[i] = row, where x[i] beats best[i]: is more, or less */
    void (*arg_extreme_rows)(bool least, float *best, int32_t *index, const float *x, size_t n, int32_t row);
    void (*affine)(float *y, const float *x, size_t n, float mean, float scale, float shift);
    void (*affine_each)(float *y, const float *x, size_t n, float mean, float rstd, const float *w,
                        const float *b);
    void (*times)(float *y, const float *x, const float *w, size_t n);
    void (*minus)(float *y, const float *x, const float *a, const float *b, size_t n); /* x - a - b */
    double (*exp_sum)(float *y, const float *x, size_t n, float max); /* y = exp(x - max); its sum */
    void (*exp_each)(float *y, const float *x, const float *max, size_t n);
    void (*load)(float *to, const void *from, uint32_t dtype, int64_t first, int64_t stride, size_t n);
    void (*store)(void *to, uint32_t dtype, int64_t first, int64_t stride, const float *from, size_t n);
} npu__ref_floats;

/* In steps that vector code has; a NaN of either stays. */
NPU__REF_INLINE float npu__ref_larger(float a, float b)
{
    float most = a > b ? a : b;
    return a != a ? a : most;
}

NPU__REF_INLINE float npu__ref_smaller(float a, float b)
{
    float least = a < b ? a : b;
    return a != a ? a : least;
}

NPU__REF_INLINE float npu__ref_fold_two(uint32_t fold, float a, float b)
{
    return fold == NPU__SUM       ? a + b
           : fold == NPU__PRODUCT ? a * b
           : fold == NPU__MAX     ? npu__ref_larger(a, b) : npu__ref_smaller(a, b);
}

#if defined(__GNUC__)
#define NPU__REF_AHEAD(x) __builtin_prefetch(x) /* harmless past the end */
#else
#define NPU__REF_AHEAD(x) (void)0
#endif

/* Lanes and what is left of the length: `step` is done for every element, with j its lane. */
#define NPU__REF_IN_LANES(step)                                                                    \
    size_t i = 0;                                                                                  \
    for (; i + NPU__REF_LANES <= n; i += NPU__REF_LANES) {                                         \
        for (size_t j = 0; j < NPU__REF_LANES; j += 16) {                                          \
            NPU__REF_AHEAD((const char *)(x + i + j) + 2048);                                      \
        }                                                                                          \
        for (size_t j = 0; j < NPU__REF_LANES; j++) { step; }                                      \
    }                                                                                              \
    for (size_t j = 0; i + j < n; j++) { step; }

NPU__REF_INLINE double npu__ref_add_lanes(float *lanes)
{
    for (size_t half = NPU__REF_LANES / 2; half >= 4; half /= 2) {
        for (size_t j = 0; j < half; j++) { lanes[j] += lanes[j + half]; }
    }
    return ((double)lanes[0] + (double)lanes[1]) + ((double)lanes[2] + (double)lanes[3]);
}

NPU__REF_INLINE double npu__ref_fold_wide(uint32_t fold, double a, double b)
{
    return fold == NPU__SUM       ? a + b
           : fold == NPU__PRODUCT ? a * b
           : fold == NPU__MAX     ? (((b > a) | (b != b)) ? b : a) : (((b < a) | (b != b)) ? b : a);
}

/* At least as many elements as there are lanes. What the lanes do not divide is left to the last ones of the run, of
   which the first then count as nothing. */
NPU__REF_INLINE double npu__ref_fold_lanes(uint32_t fold, const float *x, size_t n)
{
    float lanes[NPU__REF_LANES], start = fold == NPU__SUM       ? 0
                                         : fold == NPU__PRODUCT ? 1 : fold == NPU__MAX ? -INFINITY : INFINITY;
    double y[8];
    size_t i = 0;
    for (size_t j = 0; j < NPU__REF_LANES; j++) { lanes[j] = start; }
    for (; i + NPU__REF_LANES <= n; i += NPU__REF_LANES) {
        NPU__REF_AHEAD((const char *)(x + i) + 2048);
        NPU__REF_AHEAD((const char *)(x + i) + 2112);
        for (size_t j = 0; j < NPU__REF_LANES; j++) { lanes[j] = npu__ref_fold_two(fold, lanes[j], x[i + j]); }
    }
    for (int32_t j = 0, done = (int32_t)(i + NPU__REF_LANES - n); i < n && j < NPU__REF_LANES; j++) {
        float e = x[n - NPU__REF_LANES + (size_t)j];
        lanes[j] = npu__ref_fold_two(fold, lanes[j], j < done ? start : e);
    }
    for (size_t j = 0; j < 8; j++) { y[j] = (double)lanes[j]; }
    for (size_t k = 8; k < NPU__REF_LANES; k += 8) {
        for (size_t j = 0; j < 8; j++) { y[j] = npu__ref_fold_wide(fold, y[j], (double)lanes[k + j]); }
    }
    for (size_t half = 4; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) { y[j] = npu__ref_fold_wide(fold, y[j], y[j + half]); }
    }
    return y[0];
}

NPU__REF_INLINE void npu__ref_fold_runs_of(uint32_t fold, double *acc, const float *x, size_t n, size_t runs,
                                           int64_t stride)
{
    for (size_t j = 0; j < runs; j++, x += stride) {
        for (size_t i = 0; i < n && n < NPU__REF_LANES; i++) {
            acc[j] = npu__ref_fold_wide(fold, acc[j], (double)x[i]);
        }
        acc[j] = n < NPU__REF_LANES ? acc[j] : npu__ref_fold_wide(fold, acc[j], npu__ref_fold_lanes(fold, x, n));
    }
}

/* The kinds of folds are constants to the compiler. */
NPU__REF_INLINE void npu__ref_fold_runs_body(uint32_t fold, double *acc, const float *x, size_t n, size_t runs,
                                             int64_t stride)
{
    switch (fold) {
    case NPU__SUM: npu__ref_fold_runs_of(NPU__SUM, acc, x, n, runs, stride); break;
    case NPU__PRODUCT: npu__ref_fold_runs_of(NPU__PRODUCT, acc, x, n, runs, stride); break;
    case NPU__MAX: npu__ref_fold_runs_of(NPU__MAX, acc, x, n, runs, stride); break;
    default: npu__ref_fold_runs_of(NPU__MIN, acc, x, n, runs, stride); break;
    }
}

NPU__REF_INLINE void npu__ref_fold_into_body(uint32_t fold, double *acc, const float *x, size_t n)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) { acc[i] = npu__ref_fold_wide(fold, acc[i], (double)x[i]); }
}

NPU__REF_INLINE size_t npu__ref_find_body(const float *x, size_t n, float value)
{
    size_t i = 0;
    for (int32_t found = 0; i + NPU__REF_LANES <= n; i += NPU__REF_LANES) {
        for (size_t j = 0; j < NPU__REF_LANES; j++) {
            found |= x[i + j] == value || x[i + j] != x[i + j];
        }
        if (found) {
            break;
        }
    }
    while (i < n && x[i] != value && x[i] == x[i]) {
        i++;
    }
    return i;
}

/* Four rows at a time, so that acc is touched less. */
NPU__REF_INLINE void npu__ref_fold_four(uint32_t fold, float *acc, const float *x, size_t n, int64_t step,
                                        size_t rows, int64_t stride)
{
    for (; rows >= 4; rows -= 4, x += 4 * stride) {
        const float *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        NPU__REF_VECTORIZE
        for (size_t i = 0; i < n; i++) {
            int64_t at = (int64_t)i * step;
            float a = npu__ref_fold_two(fold, x[at], x1[at]), b = npu__ref_fold_two(fold, x2[at], x3[at]);
            acc[i] = npu__ref_fold_two(fold, acc[i], npu__ref_fold_two(fold, a, b));
        }
    }
    for (; rows > 0; rows--, x += stride) {
        NPU__REF_VECTORIZE
        for (size_t i = 0; i < n; i++) { acc[i] = npu__ref_fold_two(fold, acc[i], x[(int64_t)i * step]); }
    }
}

/* Steps of 1 and 2 are constants to the compiler. */
NPU__REF_INLINE void npu__ref_fold_steps(uint32_t fold, float *acc, const float *x, size_t n, int64_t step,
                                         size_t rows, int64_t stride)
{
    if (step == 1) {
        npu__ref_fold_four(fold, acc, x, n, 1, rows, stride);
    } else if (step == 2) {
        npu__ref_fold_four(fold, acc, x, n, 2, rows, stride);
    } else {
        npu__ref_fold_four(fold, acc, x, n, step, rows, stride);
    }
}

NPU__REF_INLINE void npu__ref_fold_rows_body(uint32_t fold, float *acc, const float *x, size_t n,
                                             int64_t step, size_t rows, int64_t stride)
{
    switch (fold) {
    case NPU__SUM: npu__ref_fold_steps(NPU__SUM, acc, x, n, step, rows, stride); break;
    case NPU__PRODUCT: npu__ref_fold_four(NPU__PRODUCT, acc, x, n, 1, rows, stride); break;
    case NPU__MAX: npu__ref_fold_steps(NPU__MAX, acc, x, n, step, rows, stride); break;
    default: npu__ref_fold_four(NPU__MIN, acc, x, n, 1, rows, stride); break;
    }
}

/* The first NaN beats all. */
NPU__REF_INLINE void npu__ref_arg_extreme_rows_body(bool least, float *best, int32_t *index, const float *x, size_t n,
                                             int32_t row)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) {
        float b = best[i], e = x[i];
        int32_t beats = (least ? e < b : e > b) | ((e != e) & (b == b));
        index[i] = beats ? row : index[i];
        best[i] = beats ? e : b;
    }
}

NPU__REF_INLINE void npu__ref_affine_body(float *y, const float *x, size_t n, float mean, float scale,
                                          float shift)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) * scale + shift;
    }
}

NPU__REF_INLINE void npu__ref_affine_each_body(float *y, const float *x, size_t n, float mean, float rstd,
                                               const float *w, const float *b)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) * rstd * w[i] + b[i];
    }
}

NPU__REF_INLINE double npu__ref_sum_floats(const float *x, size_t n)
{
    float lanes[NPU__REF_LANES];
    for (size_t j = 0; j < NPU__REF_LANES; j++) { lanes[j] = 0; }
    NPU__REF_IN_LANES(lanes[j] += x[i + j])
    return npu__ref_add_lanes(lanes);
}

NPU__REF_INLINE void npu__ref_times_body(float *y, const float *x, const float *w, size_t n)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) { y[i] = x[i] * w[i]; }
}

NPU__REF_INLINE void npu__ref_minus_body(float *y, const float *x, const float *a, const float *b, size_t n)
{
    NPU__REF_VECTORIZE
    for (size_t i = 0; i < n; i++) { y[i] = x[i] - a[i] - b[i]; }
}

/* The exponentials of both texts differ, so they are named by the macro. */
#define NPU__REF_EXP_LOOPS(attribute, suffix, exp_of)                                              \
    attribute static double npu__ref_exp_sum_##suffix(float *y, const float *x, size_t n, float max) \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) { y[i] = exp_of(x[i] - max); }                              \
        return npu__ref_sum_floats(y, n);                                                          \
    }                                                                                              \
    attribute static void npu__ref_exp_each_##suffix(float *y, const float *x, const float *max, size_t n) \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) { y[i] = exp_of(x[i] - max[i]); }                           \
    }

#define NPU__REF_TERM_LOOPS(attribute, suffix, name, term)                                         \
    attribute static double npu__ref_sum_##name##_##suffix(const float *x, size_t n, float m)      \
    {                                                                                              \
        float lanes[NPU__REF_LANES];                                                               \
        (void)m;                                                                                   \
        for (size_t j = 0; j < NPU__REF_LANES; j++) { lanes[j] = 0; }                              \
        NPU__REF_IN_LANES(float e = x[i + j]; lanes[j] += term)                                    \
        return npu__ref_add_lanes(lanes);                                                          \
    }                                                                                              \
    attribute static void npu__ref_add_##name##_##suffix(float *acc, const float *x, size_t n,     \
                                                         const float *ms, size_t rows, int64_t stride) \
    {                                                                                              \
        for (; rows > 0; rows--, x += stride) {                                                    \
            NPU__REF_VECTORIZE                                                                     \
            for (size_t i = 0; i < n; i++) {                                                       \
                float e = x[i], m = ms[i];                                                         \
                (void)m;                                                                           \
                acc[i] += term;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }

#define NPU__REF_FLOAT_LOOPS(attribute, suffix, exp_of)                                            \
    NPU__REF_EXP_LOOPS(attribute, suffix, exp_of)                                                  \
    NPU__REF_TERMS(NPU__REF_TERM_LOOPS, attribute, suffix, exp_of)                                 \
    attribute static void npu__ref_fold_runs_##suffix(uint32_t fold, double *acc, const float *x, size_t n, \
                                                      size_t runs, int64_t stride)                 \
    {                                                                                              \
        npu__ref_fold_runs_body(fold, acc, x, n, runs, stride);                                    \
    }                                                                                              \
    attribute static void npu__ref_fold_into_##suffix(uint32_t fold, double *acc, const float *x, size_t n) \
    {                                                                                              \
        npu__ref_fold_into_body(fold, acc, x, n);                                                  \
    }                                                                                              \
    attribute static size_t npu__ref_find_##suffix(const float *x, size_t n, float value)          \
    {                                                                                              \
        return npu__ref_find_body(x, n, value);                                                    \
    }                                                                                              \
    attribute static void npu__ref_fold_rows_##suffix(uint32_t fold, float *acc, const float *x, size_t n, \
                                                      int64_t step, size_t rows, int64_t stride)   \
    {                                                                                              \
        npu__ref_fold_rows_body(fold, acc, x, n, step, rows, stride);                              \
    }                                                                                              \
    attribute static void npu__ref_arg_extreme_rows_##suffix(bool least, float *best, int32_t *index, const float *x, \
                                                      size_t n, int32_t row)                       \
    {                                                                                              \
        if (least) {                                                                               \
            npu__ref_arg_extreme_rows_body(true, best, index, x, n, row);                                 \
        } else {                                                                                   \
            npu__ref_arg_extreme_rows_body(false, best, index, x, n, row);                                \
        }                                                                                          \
    }                                                                                              \
    attribute static void npu__ref_affine_##suffix(float *y, const float *x, size_t n, float mean, float scale, \
                                                   float shift)                                    \
    {                                                                                              \
        npu__ref_affine_body(y, x, n, mean, scale, shift);                                         \
    }                                                                                              \
    attribute static void npu__ref_affine_each_##suffix(float *y, const float *x, size_t n, float mean, \
                                                        float rstd, const float *w, const float *b) \
    {                                                                                              \
        npu__ref_affine_each_body(y, x, n, mean, rstd, w, b);                                      \
    }                                                                                              \
    attribute static void npu__ref_times_##suffix(float *y, const float *x, const float *w, size_t n) \
    {                                                                                              \
        npu__ref_times_body(y, x, w, n);                                                           \
    }                                                                                              \
    attribute static void npu__ref_minus_##suffix(float *y, const float *x, const float *a, const float *b, size_t n) \
    {                                                                                              \
        npu__ref_minus_body(y, x, a, b, n);                                                        \
    }

#define NPU__REF_SUM_NAME(attribute, suffix, name, term) npu__ref_sum_##name##_##suffix,
#define NPU__REF_ADD_NAME(attribute, suffix, name, term) npu__ref_add_##name##_##suffix,
#define NPU__REF_FLOATS(suffix, widest, ...)                                                       \
    { { npu__ref_sum_value_##widest, NPU__REF_OTHER_TERMS(NPU__REF_SUM_NAME, , suffix, ) }, { NPU__REF_TERMS(NPU__REF_ADD_NAME, , suffix, ) }, \
      npu__ref_fold_runs_##widest, npu__ref_fold_into_##suffix, npu__ref_find_##suffix,            \
      npu__ref_fold_rows_##suffix, npu__ref_arg_extreme_rows_##suffix, npu__ref_affine_##suffix,          \
      npu__ref_affine_each_##suffix, npu__ref_times_##suffix, npu__ref_minus_##suffix,             \
      npu__ref_exp_sum_##widest, npu__ref_exp_each_##widest, __VA_ARGS__ }

NPU__REF_FLOAT_LOOPS(, base, expf)
#ifdef NPU__REF_HAS_AVX2
NPU__REF_FLOAT_LOOPS(NPU__REF_AVX2, avx2, npu__ref_fast_expf)
NPU__REF_EXP_LOOPS(NPU__REF_AVX512, avx512, npu__ref_fast_expf)

NPU__REF_INLINE NPU__REF_AVX512 __m512 npu__ref_fold_two_avx512(uint32_t fold, __m512 a, __m512 b)
{
    switch (fold) { /* a maximum is its second operand where one is NaN */
    case NPU__SUM: return _mm512_add_ps(a, b);
    case NPU__PRODUCT: return _mm512_mul_ps(a, b);
    case NPU__MAX: return _mm512_mask_mov_ps(_mm512_max_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
    default: return _mm512_mask_mov_ps(_mm512_min_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
    }
}

NPU__REF_INLINE NPU__REF_AVX512 double npu__ref_fold_lanes_avx512(uint32_t fold, __m512 *lanes)
{
    __m512d wide = _mm512_set1_pd(1.0);
    __m512 all;
    for (size_t j = 0; j < 4 && fold == NPU__PRODUCT; j++) {
        wide = _mm512_mul_pd(wide, _mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(lanes[j])),
                                                 _mm512_cvtps_pd(_mm512_extractf32x8_ps(lanes[j], 1))));
    }
    all = npu__ref_fold_two_avx512(fold, npu__ref_fold_two_avx512(fold, lanes[0], lanes[1]),
                                   npu__ref_fold_two_avx512(fold, lanes[2], lanes[3]));
    if (fold == NPU__SUM || fold == NPU__PRODUCT) {
        return fold == NPU__SUM ? (double)_mm512_reduce_add_ps(all) : _mm512_reduce_mul_pd(wide);
    }
    if (_mm512_cmp_ps_mask(all, all, _CMP_UNORD_Q)) {
        return (double)NAN;
    }
    return (double)(fold == NPU__MAX ? _mm512_reduce_max_ps(all) : _mm512_reduce_min_ps(all));
}

/* Short runs are all about their ends, which masks make cheap. */
NPU__REF_INLINE NPU__REF_AVX512 double npu__ref_fold_run_avx512(uint32_t fold, const float *x, size_t n)
{
    __m512 start = _mm512_set1_ps(fold == NPU__SUM       ? 0
                                  : fold == NPU__PRODUCT ? 1 : fold == NPU__MAX ? -INFINITY : INFINITY);
    __m512 lanes[4] = { start, start, start, start };
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        for (size_t j = 0; j < 4; j++) {
            NPU__REF_AHEAD((const char *)(x + i + 16 * j) + 2048);
            lanes[j] = npu__ref_fold_two_avx512(fold, lanes[j], _mm512_loadu_ps(x + i + 16 * j));
        }
    }
    for (size_t j = 0; i < n && j < 4; j++) {
        __mmask16 there = (__mmask16)((((uint64_t)1 << (n - i)) - 1) >> 16 * j);
        lanes[j] = npu__ref_fold_two_avx512(fold, lanes[j], _mm512_mask_loadu_ps(start, there, x + i + 16 * j));
    }
    return npu__ref_fold_lanes_avx512(fold, lanes);
}

NPU__REF_INLINE NPU__REF_AVX512 void npu__ref_fold_runs_of_avx512(uint32_t fold, double *acc, const float *x, size_t n,
                                                                  size_t runs, int64_t stride)
{
    for (size_t j = 0; j < runs; j++, x += stride) {
        acc[j] = npu__ref_fold_wide(fold, acc[j], npu__ref_fold_run_avx512(fold, x, n));
    }
}

NPU__REF_AVX512 static void npu__ref_fold_runs_avx512(uint32_t fold, double *acc, const float *x, size_t n, size_t runs,
                                                      int64_t stride)
{
    switch (fold) {
    case NPU__SUM: npu__ref_fold_runs_of_avx512(NPU__SUM, acc, x, n, runs, stride); break;
    case NPU__PRODUCT: npu__ref_fold_runs_of_avx512(NPU__PRODUCT, acc, x, n, runs, stride); break;
    case NPU__MAX: npu__ref_fold_runs_of_avx512(NPU__MAX, acc, x, n, runs, stride); break;
    default: npu__ref_fold_runs_of_avx512(NPU__MIN, acc, x, n, runs, stride); break;
    }
}

NPU__REF_AVX512 static double npu__ref_sum_value_avx512(const float *x, size_t n, float m)
{
    (void)m;
    return npu__ref_fold_run_avx512(NPU__SUM, x, n);
}
#endif

static const npu__ref_floats npu__ref_floats_of[] = {
#define NPU_X(set, narrow, wide) NPU__REF_FLOATS(narrow, wide, NPU__REF_LOADS_##narrow),
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

/* Where every tensor computes in float, the variant "f32" applies. */
static bool npu__ref_all_f32(const npu_op_info *op)
{
    for (uint32_t i = 0; i < op->num_in; i++) {
        if (op->in[i] && npu__ref_compute_class(op->in[i]->dtype) != NPU__F32) {
            return false;
        }
    }
    return npu__ref_compute_class(op->out[0]->dtype) == NPU__F32;
}

/* n elements where they are, or converted in `strip`. */
static inline const float *npu__ref_floats_at(const npu__ref_floats *f, float *strip, const void *x,
                                              uint32_t dtype, int64_t first, int64_t stride, size_t n)
{
    if (dtype == NPU_F32 && stride == 1) {
        return (const float *)x + first;
    }
    f->load(strip, x, dtype, first, stride, n);
    return strip;
}

/* Where to put n results: the result itself, or `strip`, which npu__ref_floats_put then stores. */
static inline float *npu__ref_floats_to(float *strip, void *y, uint32_t dtype, int64_t first)
{
    return dtype == NPU_F32 ? (float *)y + first : strip;
}

static inline void npu__ref_floats_put(const npu__ref_floats *f, void *y, uint32_t dtype, int64_t first,
                                       const float *from, size_t n)
{
    if (dtype != NPU_F32) {
        f->store(y, dtype, first, 1, from, n);
    }
}

/* ---- normalisation: y = (x - mean) rstd weight + bias; kinds differ in what shares a mean and a weight ----
   */

typedef struct npu__ref_norm {
    int weight, bias, mean, variance; /* operands, -1 = none; mean and variance are given statistics */
    double eps;
    size_t rows, channels, run;       /* x is [rows, channels, run] */
    bool over_rows;                   /* statistics of a channel over the rows, else of a row over the channels */
    bool along_run;                   /* a weight per element of the run, else one per channel */
    bool root_mean_square;            /* no mean is taken off */
    double momentum;                  /* of new running statistics */
    size_t weights;                   /* channels of x before they were grouped */
    const npu__ref_floats *floats;    /* NULL = in double */
} npu__ref_norm;

typedef struct npu__ref_stats {
    double mean, rstd, variance;
} npu__ref_stats;

/* n neighbouring elements in double: where they are, or in `strip`. */
static const double *npu__ref_doubles_at(double *strip, const void *from, uint32_t dtype, int64_t first, size_t n)
{
    if (dtype == NPU_F64) {
        return (const double *)from + first;
    }
    npu__ref_load_f64(strip, from, dtype, first, 1, n);
    return strip;
}

/* Sum of (x - mean), or of its square: in four sums, since each waits for its last. */
NPU__REF_INLINE double npu__ref_central_run(const double *x, size_t n, double mean, bool squared)
{
    double a = 0, b = 0, c = 0, d = 0;
    for (; n >= 4; n -= 4, x += 4) {
        a += (x[0] - mean) * (squared ? x[0] - mean : 1);
        b += (x[1] - mean) * (squared ? x[1] - mean : 1);
        c += (x[2] - mean) * (squared ? x[2] - mean : 1);
        d += (x[3] - mean) * (squared ? x[3] - mean : 1);
    }
    for (; n > 0; n--, x++) {
        a += (x[0] - mean) * (squared ? x[0] - mean : 1);
    }
    return a + b + (c + d);
}

/* That of n elements from `first`. */
static double npu__ref_central_sum(const void *from, uint32_t dtype, int64_t first, size_t n, double mean,
                                   bool squared)
{
    double strip[NPU__STRIP], sum = 0.0;
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        const double *x = npu__ref_doubles_at(strip, from, dtype, first + (int64_t)i, len);
        sum += squared ? npu__ref_central_run(x, len, mean, true) : npu__ref_central_run(x, len, mean, false);
    }
    return sum;
}

/* The same in float, except that the sum without squares takes no mean. */
static double npu__ref_central_sum_f32(const npu__ref_floats *f, const void *x, uint32_t dtype, int64_t first,
                                       size_t n, double mean, bool squared)
{
    float strip[NPU__REF_FLOAT_STRIP];
    double sum = 0.0;
    for (size_t i = 0; i < n; i += NPU__REF_FLOAT_STRIP) {
        size_t len = n - i < NPU__REF_FLOAT_STRIP ? n - i : NPU__REF_FLOAT_STRIP;
        const float *at = npu__ref_floats_at(f, strip, x, dtype, first + (int64_t)i, 1, len);
        sum += f->sums[squared ? NPU__REF_TERM_deviation : NPU__REF_TERM_value](at, len, (float)mean);
    }
    return sum;
}

/* Moments of `segments` runs of n elements, `step` apart; f NULL = in double. Two passes: large sums would cancel
   each other. */
static npu__ref_stats npu__ref_moments_by(const npu__ref_floats *f, const npu_launch *l, int64_t first, size_t n,
                                          size_t segments, size_t step)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    double sums[2] = { 0.0, 0.0 }, count = (double)n * (double)segments;
    npu__ref_stats m = { 0.0, 0.0, 0.0 };
    for (int squared = norm->root_mean_square; squared < 2; squared++) {
        for (size_t s = 0; s < segments; s++) {
            int64_t at = first + (int64_t)(s * step);
            sums[squared] += f
                ? npu__ref_central_sum_f32(f, l->x[0], l->in[0].dtype, at, n, m.mean, squared)
                : npu__ref_central_sum(l->x[0], l->in[0].dtype, at, n, m.mean, squared);
        }
        m.mean = sums[0] / count;
    }
    m.variance = sums[1] / count;
    m.rstd = 1.0 / sqrt(m.variance + norm->eps);
    return m;
}

/* Where squares leave the range of float, in double. */
static npu__ref_stats npu__ref_moments(const npu_launch *l, int64_t first, size_t n, size_t segments,
                                       size_t step)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    npu__ref_stats m = npu__ref_moments_by(norm->floats, l, first, n, segments, step);
    return norm->floats && !(m.variance <= DBL_MAX) ? npu__ref_moments_by(NULL, l, first, n, segments, step) : m;
}

static double npu__ref_element(const npu_launch *l, int operand, size_t i)
{
    double x;
    npu__ref_load_f64(&x, l->x[operand], l->in[operand].dtype, (int64_t)i, 1, 1);
    return x;
}

static inline bool npu__ref_has(const npu_launch *l, int operand) { return operand >= 0 && l->x[operand]; }

/* n weights or biases from element w: where they are, or in `strip`; absent ones are all `absent`. */
static const double *npu__ref_norm_weights(const npu_launch *l, int operand, double *strip, int64_t w, int64_t w_stride,
                                           size_t n, double absent)
{
    if (!npu__ref_has(l, operand)) {
        npu__ref_load_f64(strip, &absent, NPU_F64, 0, 0, n);
        return strip;
    }
    if (w_stride == 1) {
        return npu__ref_doubles_at(strip, l->x[operand], l->in[operand].dtype, w, n);
    }
    npu__ref_load_f64(strip, l->x[operand], l->in[operand].dtype, w, 0, n);
    return strip;
}

static void npu__ref_normalize_f64(const npu_launch *l, size_t first, size_t n, npu__ref_stats m, int64_t w,
                                   int64_t w_stride)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    double strip[NPU__STRIP], weights[NPU__STRIP], biases[NPU__STRIP];
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        int64_t at = (int64_t)(first + i), w_at = w + (int64_t)i * w_stride;
        const double *x = npu__ref_doubles_at(strip, l->x[0], l->in[0].dtype, at, len);
        const double *weight = npu__ref_norm_weights(l, norm->weight, weights, w_at, w_stride, len, 1.0);
        const double *bias = npu__ref_norm_weights(l, norm->bias, biases, w_at, w_stride, len, 0.0);
        for (size_t j = 0; j < len; j++) {
            strip[j] = (x[j] - m.mean) * m.rstd * weight[j] + bias[j];
        }
        npu__ref_store_f64(l->y[0], l->out[0].dtype, at, 1, strip, len);
    }
}

/* All elements of the run share a weight. */
static void npu__ref_normalize_channel_f32(const npu_launch *l, size_t first, size_t n, npu__ref_stats m,
                                           size_t w)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    const npu__ref_floats *f = norm->floats;
    double scale = m.rstd * (npu__ref_has(l, norm->weight) ? npu__ref_element(l, norm->weight, w) : 1.0);
    double shift = npu__ref_has(l, norm->bias) ? npu__ref_element(l, norm->bias, w) : 0.0;
    float strip[NPU__REF_FLOAT_STRIP];
    for (size_t i = 0; i < n; i += NPU__REF_FLOAT_STRIP) {
        size_t len = n - i < NPU__REF_FLOAT_STRIP ? n - i : NPU__REF_FLOAT_STRIP;
        int64_t at = (int64_t)(first + i);
        const float *x = npu__ref_floats_at(f, strip, l->x[0], l->in[0].dtype, at, 1, len);
        float *y = npu__ref_floats_to(strip, l->y[0], l->out[0].dtype, at);
        f->affine(y, x, len, (float)m.mean, (float)scale, (float)shift);
        npu__ref_floats_put(f, l->y[0], l->out[0].dtype, at, y, len);
    }
}

/* Weights lie along the run; absent ones are 1 and 0. */
static void npu__ref_normalize_row_f32(const npu_launch *l, size_t first, size_t n, npu__ref_stats m)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    const npu__ref_floats *f = norm->floats;
    float strip[NPU__STRIP], weight[NPU__STRIP], bias[NPU__STRIP];
    const float *w = weight, *b = bias;
    for (size_t i = 0; i < NPU__STRIP; i++) {
        weight[i] = 1.0f;
        bias[i] = 0.0f;
    }
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        int64_t at = (int64_t)(first + i);
        const float *x = npu__ref_floats_at(f, strip, l->x[0], l->in[0].dtype, at, 1, len);
        float *y = npu__ref_floats_to(strip, l->y[0], l->out[0].dtype, at);
        if (npu__ref_has(l, norm->weight)) {
            w = npu__ref_floats_at(f, weight, l->x[norm->weight], l->in[norm->weight].dtype, (int64_t)i, 1,
                                   len);
        }
        if (npu__ref_has(l, norm->bias)) {
            b = npu__ref_floats_at(f, bias, l->x[norm->bias], l->in[norm->bias].dtype, (int64_t)i, 1, len);
        }
        f->affine_each(y, x, len, (float)m.mean, (float)m.rstd, w, b);
        npu__ref_floats_put(f, l->y[0], l->out[0].dtype, at, y, len);
    }
}

/* One run of elements from `first`; w is the index of the first weight, w_stride 0 or 1. */
static void npu__ref_normalize_run(const npu_launch *l, size_t first, size_t n, npu__ref_stats m, size_t w,
                                   bool along)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    if (!norm->floats) {
        npu__ref_normalize_f64(l, first, n, m, (int64_t)w, along);
    } else if (along) {
        npu__ref_normalize_row_f32(l, first, n, m);
    } else {
        npu__ref_normalize_channel_f32(l, first, n, m, w);
    }
}

/* Results 1 and 2 of the kinds that have them; given statistics are not saved. */
static void npu__ref_save_moments(const npu_launch *l, size_t i, npu__ref_stats m)
{
    if (l->num_out >= 3 && npu__ref_len(&l->out[1]) > 0) {
        npu__ref_store_f64(l->y[1], l->out[1].dtype, (int64_t)i, 1, &m.mean, 1);
        npu__ref_store_f64(l->y[2], l->out[2].dtype, (int64_t)i, 1, &m.rstd, 1);
    }
}

/* Results 3 and 4: operands running_mean and running_var, moved towards the moments of n elements. */
static void npu__ref_save_running(const npu_launch *l, size_t channel, npu__ref_stats m, size_t n)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    double unbiased = m.variance * (double)n / ((double)n - 1.0), moments[2];
    moments[0] = m.mean;
    moments[1] = unbiased;
    for (int i = 0; i < 2 && l->num_out == 5; i++) {
        double y = npu__ref_element(l, 3 + i, channel);
        if (!npu__ref_has(l, norm->mean)) {
            y += norm->momentum * (moments[i] - y);
        }
        npu__ref_store_f64(l->y[3 + i], l->out[3 + i].dtype, (int64_t)channel, 1, &y, 1);
    }
}

static void npu__ref_normalize_channel(const npu_launch *l, size_t channel)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    size_t step = norm->channels * norm->run;
    npu__ref_stats m;
    if (npu__ref_has(l, norm->mean)) {
        m.mean = npu__ref_element(l, norm->mean, channel);
        m.variance = npu__ref_element(l, norm->variance, channel);
        m.rstd = 1.0 / sqrt(m.variance + norm->eps);
    } else {
        m = npu__ref_moments(l, (int64_t)(channel * norm->run), norm->run, norm->rows, step);
    }
    npu__ref_save_moments(l, channel, m);
    npu__ref_save_running(l, channel, m, norm->rows * norm->run);
    for (size_t row = 0; row < norm->rows; row++) {
        npu__ref_normalize_run(l, row * step + channel * norm->run, norm->run, m, channel, false);
    }
}

static void npu__ref_normalize_row(const npu_launch *l, size_t row)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    size_t n = norm->channels * norm->run, first = row * n;
    npu__ref_stats m = npu__ref_moments(l, (int64_t)first, n, 1, 0);
    npu__ref_save_moments(l, row, m);
    for (size_t c = 0; c < norm->channels; c++) {
        size_t w = norm->along_run ? 0 : (row * norm->channels + c) % norm->weights;
        npu__ref_normalize_run(l, first + c * norm->run, norm->run, m, w, norm->along_run);
    }
}

static npu_status npu__ref_norm_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    size_t begin, end;
    npu__ref_share(norm->over_rows ? norm->channels : norm->rows, part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        if (norm->over_rows) {
            npu__ref_normalize_channel(l, i);
        } else {
            npu__ref_normalize_row(l, i);
        }
    }
    return NPU_OK;
}

/* The machine epsilon of what a tensor computes in. */
static double npu__ref_epsilon(const npu_tensor *x)
{
    return x->dtype == NPU_F64 ? 0x1p-52 : 0x1p-23;
}

/* The state, with the operands that all kinds have. NULL = out of memory. */
static npu__ref_norm *npu__ref_norm_state(npu_prepare *p)
{
    npu__ref_norm *norm = (npu__ref_norm *)npu_prepare_alloc(p, sizeof *norm);
    bool aicf = NPU_KIND_NAMESPACE(p->op->kind) == NPU_NS_AICF;
    if (norm) {
        norm->weight = npu_op_operand(p->op, aicf ? "gamma" : "weight");
        norm->bias = npu_op_operand(p->op, aicf ? "beta" : "bias");
        norm->mean = norm->variance = -1;
        norm->eps =
            npu_op_float(p->op, "eps", p->op->kind == NPU_ATEN_RMS_NORM ? npu__ref_epsilon(&p->in[0]) : 1e-5);
        norm->momentum = npu_op_float(p->op, "momentum", 0.0);
        norm->root_mean_square = p->op->kind == NPU_ATEN_RMS_NORM;
        p->state = norm;
    }
    return norm;
}

/* The last dims, as many as normalized_shape has. */
static npu_status npu__ref_layer_norm_prepare(npu_prepare *p)
{
    npu__ref_norm *norm = npu__ref_norm_state(p);
    uint32_t rank = p->in[0].rank, shape = npu_op_list_len(p->op, "normalized_shape");
    uint32_t lead = rank - (shape ? shape : 1);
    if (!norm) {
        return NPU_ERR_NO_MEMORY;
    }
    norm->rows = npu__ref_dims_len(&p->in[0], 0, lead);
    norm->channels = 1;
    norm->run = npu__ref_dims_len(&p->in[0], lead, rank);
    norm->along_run = true;
    p->parts = npu__ref_item_parts(norm->rows, norm->run);
    return NPU_OK;
}

/* x is [N, C, ...]. */
static npu_status npu__ref_batch_norm_prepare(npu_prepare *p)
{
    npu__ref_norm *norm = npu__ref_norm_state(p);
    const npu_tensor *x = &p->in[0];
    bool aicf = NPU_KIND_NAMESPACE(p->op->kind) == NPU_NS_AICF;
    bool given = aicf ? (npu_op_int(p->op, "flags", 0) & 1) != 0 : !npu_op_int(p->op, "training", 0);
    if (!norm) {
        return NPU_ERR_NO_MEMORY;
    }
    if (given) {
        norm->mean = npu_op_operand(p->op, "running_mean");
        norm->variance = npu_op_operand(p->op, "running_var");
    }
    norm->rows = (size_t)x->dims[0];
    norm->channels = (size_t)x->dims[x->rank > 1]; /* of one dim it is empty */
    norm->run = x->rank > 1 ? npu__ref_dims_len(x, 2, x->rank) : 1;
    norm->over_rows = true;
    p->parts = npu__ref_item_parts(norm->channels, norm->rows * norm->run);
    return NPU_OK;
}

/* x is [N, groups, C / groups, ...]: rows are groups. */
static npu_status npu__ref_group_norm_prepare(npu_prepare *p)
{
    npu__ref_norm *norm = npu__ref_norm_state(p);
    const npu_tensor *x = &p->in[0];
    bool native = npu_op_arg(p->op, "group") != NULL;
    size_t groups = (size_t)npu_op_int(p->op, native ? "group" : "num_groups", 1);
    if (!norm) {
        return NPU_ERR_NO_MEMORY;
    }
    norm->weights = (size_t)(native ? npu_op_int(p->op, "C", 1) : x->dims[1]);
    norm->rows = (size_t)(native ? npu_op_int(p->op, "N", 1) : x->dims[0]) * groups;
    norm->channels = norm->weights / groups;
    norm->run = native ? (size_t)npu_op_int(p->op, "HxW", 1) : npu__ref_dims_len(x, 2, x->rank);
    p->parts = npu__ref_item_parts(norm->rows, norm->channels * norm->run);
    return NPU_OK;
}

/* As batch norm where statistics are given, else rows are channels of samples. */
static npu_status npu__ref_instance_norm_prepare(npu_prepare *p)
{
    npu_status status = npu__ref_batch_norm_prepare(p);
    npu__ref_norm *norm = (npu__ref_norm *)p->state;
    if (status || !npu_op_int(p->op, "use_input_stats", 0)) {
        return status;
    }
    norm->mean = norm->variance = -1;
    norm->over_rows = false;
    norm->weights = norm->channels;
    norm->rows *= norm->channels;
    norm->channels = 1;
    p->parts = npu__ref_item_parts(norm->rows, norm->run);
    return NPU_OK;
}

/* ---- gradients of layer and group norm, rows as above ---- */

enum { NPU__NORM_GRAD, NPU__NORM_INPUT }; /* operands grad_out and input */

typedef struct npu__ref_norm_sums {
    double mean, rstd;
    double grad, grad_x; /* of grad weight, and of that times the normalised x */
} npu__ref_norm_sums;

/* The weight of element i of a row. */
static size_t npu__ref_norm_weight(const npu__ref_norm *norm, size_t row, size_t i)
{
    return norm->along_run ? i : (row * norm->channels + i / norm->run) % norm->weights;
}

static void npu__ref_norm_backward_row(const npu_launch *l, const npu__ref_norm *norm, size_t row,
                                       double *sums)
{
    size_t n = norm->channels * norm->run, first = row * n;
    npu__ref_norm_sums s = { npu__ref_element(l, norm->mean, row), npu__ref_element(l, norm->variance, row),
                             0.0, 0.0 };
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            size_t at = npu__ref_norm_weight(norm, row, i);
            double g = npu__ref_element(l, NPU__NORM_GRAD, first + i);
            double x = (npu__ref_element(l, NPU__NORM_INPUT, first + i) - s.mean) * s.rstd;
            double weighted = npu__ref_has(l, norm->weight) ? g * npu__ref_element(l, norm->weight, at) : g;
            if (pass == 0) {
                s.grad += weighted;
                s.grad_x += weighted * x;
                sums[2 * at] += g * x;
                sums[2 * at + 1] += g;
            } else {
                double y = s.rstd * (weighted - (s.grad + x * s.grad_x) / (double)n);
                npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(first + i), 1, &y, 1);
            }
        }
        if (npu__ref_len(&l->out[0]) == 0) { /* left out */
            return;
        }
    }
}

static npu_status npu__ref_norm_backward_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    double *sums = (double *)l->workspace;
    (void)part, (void)parts;
    memset(sums, 0, 2 * norm->weights * sizeof *sums);
    for (size_t row = 0; row < norm->rows; row++) {
        npu__ref_norm_backward_row(l, norm, row, sums);
    }
    for (size_t k = 1; k < 3; k++) {
        size_t n = (size_t)npu__ref_len(&l->out[k]);
        for (size_t i = 0; i < n; i++) {
            npu__ref_store_f64(l->y[k], l->out[k].dtype, (int64_t)i, 1, &sums[2 * i + k - 1], 1);
        }
    }
    return NPU_OK;
}

static npu_status npu__ref_norm_backward_prepare(npu_prepare *p)
{
    bool layer = npu_op_arg(p->op, "normalized_shape") != NULL;
    npu_status status = layer ? npu__ref_layer_norm_prepare(p) : npu__ref_group_norm_prepare(p);
    npu__ref_norm *norm = (npu__ref_norm *)p->state;
    if (status) {
        return status;
    }
    norm->weights = layer ? norm->run : norm->weights;
    norm->mean = npu_op_operand(p->op, "mean");
    norm->variance = npu_op_operand(p->op, "rstd");
    p->parts = 1; /* the gradients of weight and bias add up over all rows */
    return npu_size_mul(2 * sizeof(double), norm->weights, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* The variant "f32" of a prepare function that made a norm. */
static npu_status npu__ref_norm_in_f32(npu_prepare *p, npu_status status)
{
    if (!status) {
        ((npu__ref_norm *)p->state)->floats = &npu__ref_floats_of[p->isa];
    }
    return status;
}

static npu_status npu__ref_layer_norm_prepare_f32(npu_prepare *p)
{
    return npu__ref_norm_in_f32(p, npu__ref_layer_norm_prepare(p));
}

static npu_status npu__ref_batch_norm_prepare_f32(npu_prepare *p)
{
    return npu__ref_norm_in_f32(p, npu__ref_batch_norm_prepare(p));
}

static npu_status npu__ref_group_norm_prepare_f32(npu_prepare *p)
{
    return npu__ref_norm_in_f32(p, npu__ref_group_norm_prepare(p));
}

static npu_status npu__ref_instance_norm_prepare_f32(npu_prepare *p)
{
    return npu__ref_norm_in_f32(p, npu__ref_instance_norm_prepare(p));
}

/* The two variants of a kind whose plain one computes in double. */
#define NPU__REF_F32_KERNELS(kind, supported, prepare, launch, launch_f32) \
    NPU__REF_F32_KERNELS_TAKE(kind, supported, prepare, launch, launch_f32, (npu__ref_takes_fn)0)
#define NPU__REF_F32_KERNELS_TAKE(kind, supported, prepare, launch, launch_f32, takes)             \
    NPU__REF_ROW_TAKES(kind, "f32", 1, supported, npu__ref_##prepare##_prepare_f32, npu__ref_##launch_f32, takes), \
    NPU__REF_ROW_TAKES(kind, "plain", 0, NULL, npu__ref_##prepare##_prepare, npu__ref_##launch, takes)
#define NPU__REF_NORM_KERNELS(kind, prepare) \
    NPU__REF_F32_KERNELS(kind, npu__ref_all_f32, prepare, norm_launch, norm_launch)

static const npu_kernel npu__ref_kernels_normalization[] = {
    NPU__REF_NORM_KERNELS(NPU_ATEN_BATCH_NORM, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_LAYER_NORM, layer_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_GROUP_NORM, group_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_LAYER_NORM, layer_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_BATCH_NORM_LEGIT, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_NO_STATS, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_FUNCTIONAL, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_BATCH_NORM, batch_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_INSTANCE_NORM, instance_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_RMS_NORM, layer_norm),
    NPU__REF_NORM_KERNELS(NPU_ATEN_NATIVE_GROUP_NORM, group_norm),
    NPU__REF_ROW(NPU_ATEN_NATIVE_LAYER_NORM_BACKWARD, "plain", 0, NULL, npu__ref_norm_backward_prepare,
      npu__ref_norm_backward_launch),
    NPU__REF_ROW(NPU_ATEN_NATIVE_GROUP_NORM_BACKWARD, "plain", 0, NULL, npu__ref_norm_backward_prepare,
      npu__ref_norm_backward_launch)
};

/* ---- pooling: windows over one, two or three dims, the missing ones in front being 1 ---- */

enum { NPU__POOL_DIMS = 3 };

/* The elements of a window along one dim: `count` of them from `first`, a dilation apart; `padded` is the
   count with padding. */
typedef struct npu__ref_span {
    int64_t first, count, padded;
} npu__ref_span;

typedef struct npu__ref_pool {
    size_t planes;
    int64_t in[NPU__POOL_DIMS], out[NPU__POOL_DIMS];
    int64_t kernel[NPU__POOL_DIMS], stride[NPU__POOL_DIMS], padding[NPU__POOL_DIMS], dilation[NPU__POOL_DIMS];
    bool adaptive, mean, include_padding;
    bool onto;       /* sums or maxima begin at operand 1, which lies as the result does and may be it */
    int64_t divisor; /* 0 = elements of the window */
    const npu__ref_floats *floats; /* of the variant "f32" */
    const npu__ref_span *columns;  /* its windows along the last dim */
} npu__ref_pool;

static npu__ref_span npu__ref_window(const npu__ref_pool *pool, uint32_t d, int64_t o)
{
    int64_t in = pool->in[d], step = pool->dilation[d], start = o * pool->stride[d] - pool->padding[d];
    int64_t skip = start < 0 ? (step - 1 - start) / step : 0;
    int64_t stop = start < in ? (in - start + step - 1) / step : 0;
    npu__ref_span w;
    if (pool->adaptive) {
        w.first = o * in / pool->out[d];
        w.count = w.padded = ((o + 1) * in + pool->out[d] - 1) / pool->out[d] - w.first;
        return w;
    }
    stop = stop < pool->kernel[d] ? stop : pool->kernel[d];
    w.first = start + skip * step;
    w.count = stop > skip ? stop - skip : 0;
    w.padded = in + pool->padding[d] - start;
    w.padded = w.padded < pool->kernel[d] ? w.padded : pool->kernel[d];
    return w;
}

/* Mean of a window: an empty one is 0, as in torch; integers truncate. */
static void npu__ref_pool_divide(const npu__ref_pool *pool, const npu__ref_span *w, npu__ref_number *a)
{
    int64_t padded = w[0].padded * w[1].padded * w[2].padded, count = w[0].count * w[1].count * w[2].count;
    int64_t divisor = pool->divisor ? pool->divisor : pool->include_padding ? padded : count;
    if (count == 0 && !pool->adaptive) {
        a->f = 0.0;
        a->i = 0;
        return;
    }
    a->f /= (double)divisor;
    a->i = divisor ? a->i / divisor : 0;
}

static npu__ref_number npu__ref_pool_window(const npu_launch *l, const npu__ref_pool *pool, size_t plane,
                                            const npu__ref_span *w, bool integer)
{
    uint32_t fold = pool->mean ? NPU__SUM : NPU__MAX;
    npu__ref_number a = npu__ref_fold_start(fold);
    for (int64_t i = 0; i < w[0].count; i++) {
        int64_t depth = (int64_t)plane * pool->in[0] + w[0].first + i * pool->dilation[0];
        for (int64_t j = 0; j < w[1].count; j++) {
            int64_t row = depth * pool->in[1] + w[1].first + j * pool->dilation[1];
            npu__ref_fold(&a, fold, integer, l->x[0], l->in[0].dtype, row * pool->in[2] + w[2].first,
                          pool->dilation[2], (size_t)w[2].count);
        }
    }
    if (pool->mean && !pool->onto) {
        npu__ref_pool_divide(pool, w, &a);
    }
    return a;
}

/* Parts are ranges of rows of the result. */
static npu_status npu__ref_pool_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_pool *pool = (const npu__ref_pool *)l->state;
    bool integer = npu__ref_is_integer(l->in[0].dtype);
    size_t depth = (size_t)pool->out[0], height = (size_t)pool->out[1], width = (size_t)pool->out[2];
    size_t begin, end;
    npu__ref_share(pool->planes * depth * height, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        npu__ref_span w[NPU__POOL_DIMS];
        w[0] = npu__ref_window(pool, 0, (int64_t)(row / height % depth));
        w[1] = npu__ref_window(pool, 1, (int64_t)(row % height));
        for (size_t o = 0; o < width; o++) {
            w[2] = npu__ref_window(pool, 2, (int64_t)o);
            npu__ref_number a = npu__ref_pool_window(l, pool, row / (depth * height), w, integer);
            if (pool->onto) {
                npu__ref_fold(&a, pool->mean ? NPU__SUM : NPU__MAX, integer, l->x[1], l->out[0].dtype,
                              (int64_t)(row * width + o), 1, 1);
            }
            npu__ref_store_number(l->y[0], l->out[0].dtype, row * width + o, integer, &a);
        }
    }
    return NPU_OK;
}

/* The list `name` of `dims` numbers as the last members of to[3]; the fallback where it is empty or absent.
   */
static void npu__ref_pool_list(const npu_op_info *op, const char *name, uint32_t dims,
                               const int64_t *fallback, int64_t *to)
{
    bool given = npu_op_list_len(op, name) > 0;
    memcpy(to, fallback, NPU__POOL_DIMS * sizeof *to);
    if (given) {
        npu_op_ints(op, name, to + NPU__POOL_DIMS - dims, dims);
    }
}

static uint32_t npu__ref_pool_dims(const npu_op_info *op)
{
    return npu_op_list_len(op, npu_op_arg(op, "output_size") ? "output_size" : "kernel_size");
}

/* The window of an op that pools x to y. */
static npu_status npu__ref_pool_init(npu_prepare *p, const npu_tensor *x, const npu_tensor *y, uint32_t dims)
{
    static const int64_t ones[NPU__POOL_DIMS] = { 1, 1, 1 }, zeros[NPU__POOL_DIMS] = { 0, 0, 0 };
    npu__ref_pool *pool = (npu__ref_pool *)npu_prepare_alloc(p, sizeof *pool);
    uint32_t lead = x->rank - dims;
    size_t work;
    if (!pool) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t d = 0; d < NPU__POOL_DIMS; d++) {
        uint32_t from = lead + d - (NPU__POOL_DIMS - dims);
        pool->in[d] = d < NPU__POOL_DIMS - dims ? 1 : x->dims[from];
        pool->out[d] = d < NPU__POOL_DIMS - dims ? 1 : y->dims[from];
    }
    npu__ref_pool_list(p->op, "kernel_size", dims, ones, pool->kernel);
    npu__ref_pool_list(p->op, "stride", dims, pool->kernel, pool->stride);
    npu__ref_pool_list(p->op, "padding", dims, zeros, pool->padding);
    npu__ref_pool_list(p->op, "dilation", dims, ones, pool->dilation);
    pool->planes = npu__ref_dims_len(x, 0, lead);
    pool->adaptive = npu_op_arg(p->op, "kernel_size") == NULL;
    pool->mean = (pool->adaptive && p->op->num_out == 1) || npu_op_arg(p->op, "count_include_pad") != NULL;
    pool->include_padding = npu_op_int(p->op, "count_include_pad", 0) != 0;
    pool->divisor = npu_op_int(p->op, "divisor_override", 0);
    if (NPU_KIND_NAMESPACE(p->op->kind) == NPU_NS_LINALG) {
        npu__ref_pool_list(p->op, "strides", dims, ones, pool->stride);
        npu__ref_pool_list(p->op, "dilations", dims, ones, pool->dilation);
        pool->onto = true;
        pool->mean = p->op->kind == NPU_LINALG_POOLING_NCW_SUM || p->op->kind == NPU_LINALG_POOLING_NCHW_SUM ||
                     p->op->kind == NPU_LINALG_POOLING_NCDHW_SUM;
    }
    p->state = pool;
    work = (size_t)(pool->out[2] * pool->kernel[0] * pool->kernel[1] * pool->kernel[2]);
    p->parts = npu__ref_item_parts(pool->planes * (size_t)(pool->out[0] * pool->out[1]), work);
    return NPU_OK;
}

static npu_status npu__ref_pool_prepare(npu_prepare *p)
{
    return npu__ref_pool_init(p, &p->in[0], &p->out[0], npu__ref_pool_dims(p->op));
}

/* The spans of element `o` of a plane of results. */
static void npu__ref_pool_spans(const npu__ref_pool *pool, size_t o, npu__ref_span *w)
{
    for (uint32_t d = NPU__POOL_DIMS; d-- > 0;) {
        w[d] = npu__ref_window(pool, d, (int64_t)(o % (size_t)pool->out[d]));
        o /= (size_t)pool->out[d];
    }
}

/* Where element (i, j, k) of a window is in its plane. */
static inline int64_t npu__ref_pool_at(const npu__ref_pool *pool, const npu__ref_span *w, int64_t i,
                                       int64_t j, int64_t k)
{
    int64_t row = (w[0].first + i * pool->dilation[0]) * pool->in[1] + w[1].first + j * pool->dilation[1];
    return row * pool->in[2] + w[2].first + k * pool->dilation[2];
}

/* Puts the maximum of window `o` and its index in the plane; as in torch the first of equals, but the last NaN. */
static void npu__ref_pool_put_max(const npu_launch *l, const npu__ref_pool *pool, const npu__ref_span *w, size_t o)
{
    size_t windows = (size_t)(pool->out[0] * pool->out[1] * pool->out[2]);
    int64_t first = (int64_t)(o / windows) * pool->in[0] * pool->in[1] * pool->in[2];
    int64_t index = npu__ref_pool_at(pool, w, 0, 0, 0), count = w[0].count * w[1].count * w[2].count;
    bool integer = npu__ref_is_integer(l->in[0].dtype);
    npu__ref_number max = npu__ref_fold_start(NPU__MAX), x = max;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / w[2].count, at;
        at = npu__ref_pool_at(pool, w, row / w[1].count, row % w[1].count, i % w[2].count);
        if (integer) {
            npu__ref_load_i64(&x.i, l->x[0], l->in[0].dtype, first + at, 1, 1);
        } else {
            npu__ref_load_f64(&x.f, l->x[0], l->in[0].dtype, first + at, 1, 1);
        }
        if (integer ? x.i > max.i : x.f > max.f || isnan(x.f)) {
            max = x;
            index = at;
        }
    }
    ((int64_t *)l->y[1])[o] = index;
    npu__ref_store_number(l->y[0], l->out[0].dtype, o, integer, &max);
}

static npu_status npu__ref_pool_index_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_pool *pool = (const npu__ref_pool *)l->state;
    size_t size = (size_t)(pool->out[0] * pool->out[1] * pool->out[2]), begin, end;
    npu__ref_share(pool->planes * size, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_span w[NPU__POOL_DIMS];
        npu__ref_pool_spans(pool, o % size, w);
        npu__ref_pool_put_max(l, pool, w, o);
    }
    return NPU_OK;
}

/* ---- fractional pools: windows that a random number for each plane and dim spreads ---- */

/* Where window i of a dim begins, in the arithmetic of the dtype. The last one is at the end. */
static int64_t npu__ref_fraction(uint32_t dtype, double sample, int64_t room, int64_t out, int64_t i)
{
    float single = (float)sample, step = (float)room / (float)(out - 1);
    double step_f64 = (double)room / (double)(out - 1);
    if (dtype == NPU_F64) {
        return npu__ref_to_i64(((double)i + sample) * step_f64) - npu__ref_to_i64(sample * step_f64);
    }
    return npu__ref_to_i64((double)(((float)i + single) * step)) - npu__ref_to_i64((double)(single * step));
}

/* The spans of element `o` of a plane. False where a random number far from 0 to 1 leads out of it. */
static bool npu__ref_fraction_spans(const npu_launch *l, const npu__ref_pool *pool, size_t plane, size_t o,
                                    npu__ref_span *w)
{
    uint32_t dims = (uint32_t)l->in[1].dims[2];
    for (uint32_t d = NPU__POOL_DIMS; d-- > 0;) {
        int64_t i = (int64_t)(o % (size_t)pool->out[d]), room = pool->in[d] - pool->kernel[d];
        uint32_t at = dims == 2 ? NPU__POOL_DIMS - 1 - d : d; /* two dims have theirs in reverse order */
        w[d].first = room;
        if (i + 1 < pool->out[d]) {
            double sample = npu__ref_element(l, 1, plane * dims + at);
            w[d].first = npu__ref_fraction(l->in[0].dtype, sample, room, pool->out[d], i);
        }
        if (w[d].first < 0 || w[d].first > room) {
            return false;
        }
        w[d].count = w[d].padded = pool->kernel[d];
        o /= (size_t)pool->out[d];
    }
    return true;
}

static npu_status npu__ref_fractional_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_pool *pool = (const npu__ref_pool *)l->state;
    size_t size = (size_t)(pool->out[0] * pool->out[1] * pool->out[2]), begin, end;
    npu__ref_share(pool->planes * size, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_span w[NPU__POOL_DIMS];
        if (!npu__ref_fraction_spans(l, pool, o / size, o % size, w)) {
            return NPU_ERR_RANGE;
        }
        npu__ref_pool_put_max(l, pool, w, o);
    }
    return NPU_OK;
}

/* ---- gradients of pools: every window spreads its gradient over its elements ---- */

static void npu__ref_pool_spread(const npu__ref_pool *pool, size_t o, double gradient, double *plane)
{
    npu__ref_span w[NPU__POOL_DIMS];
    npu__ref_number share;
    npu__ref_pool_spans(pool, o, w);
    share.f = gradient;
    share.i = 0;
    npu__ref_pool_divide(pool, w, &share);
    for (int64_t i = 0; i < w[0].count; i++) {
        for (int64_t j = 0; j < w[1].count; j++) {
            for (int64_t k = 0; k < w[2].count; k++) {
                plane[npu__ref_pool_at(pool, w, i, j, k)] += share.f;
            }
        }
    }
}

/* Operand 2, where there is one, holds the index in the plane of each window's maximum. */
static npu_status npu__ref_pool_backward_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_pool *pool = (const npu__ref_pool *)l->state;
    size_t in = (size_t)(pool->in[0] * pool->in[1] * pool->in[2]);
    size_t out = (size_t)(pool->out[0] * pool->out[1] * pool->out[2]), begin, end;
    double *plane = (double *)l->workspace + part * in;
    npu__ref_share(pool->planes, part, parts, &begin, &end);
    for (size_t p = begin; p < end; p++) {
        memset(plane, 0, in * sizeof *plane);
        for (size_t o = 0; o < out; o++) {
            double gradient = npu__ref_element(l, 0, p * out + o);
            if (l->num_in < 3) {
                npu__ref_pool_spread(pool, o, gradient, plane);
                continue;
            }
            int64_t at;
            if (!npu__ref_read_index(l, 2, p * out + o, in, &at)) {
                return NPU_ERR_RANGE;
            }
            plane[at] += gradient;
        }
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(p * in), 1, plane, in);
    }
    return NPU_OK;
}

/* Each part has room for a plane. */
static npu_status npu__ref_pool_backward_prepare(npu_prepare *p)
{
    npu_status status = npu__ref_pool_init(p, &p->in[1], &p->in[0], 2);
    const npu__ref_pool *pool = (const npu__ref_pool *)p->state;
    if (status) {
        return status;
    }
    p->parts = npu__ref_item_parts(pool->planes, (size_t)(pool->in[1] * pool->in[2]));
    return npu_size_mul(p->parts * sizeof(double), (size_t)(pool->in[1] * pool->in[2]), &p->workspace)
               ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* ---- the same in float: the rows of a window become one row, then every window is a piece of that ---- */

/* All rows of the input that a window has, folded into one. */
static void npu__ref_pool_rows_f32(const npu_launch *l, const npu__ref_pool *pool, size_t plane,
                                   const npu__ref_span *w, float *row)
{
    const npu__ref_floats *f = pool->floats;
    size_t width = (size_t)pool->in[2];
    uint32_t fold = pool->mean ? NPU__SUM : NPU__MAX;
    float strip[NPU__REF_FLOAT_STRIP];
    for (size_t i = 0; i < width; i++) {
        row[i] = pool->mean ? 0.0f : -INFINITY;
    }
    for (int64_t i = 0; i < w[0].count; i++) {
        int64_t depth = (int64_t)plane * pool->in[0] + w[0].first + i * pool->dilation[0];
        for (int64_t j = 0; j < w[1].count; j++) {
            int64_t at = (depth * pool->in[1] + w[1].first + j * pool->dilation[1]) * pool->in[2];
            const float *x = npu__ref_floats_at(f, strip, l->x[0], l->in[0].dtype, at, 1, width);
            f->fold_rows(fold, row, x, width, 1, 1, 0);
        }
    }
}

/* Windows of one size: element k of all windows at a time, which lie a stride apart. */
static void npu__ref_pool_windows_f32(const npu__ref_pool *pool, const float *row, float *y)
{
    int64_t num = pool->out[2], in = pool->in[2], stride = pool->stride[2];
    for (int64_t o = 0; o < num && !pool->onto; o++) {
        y[o] = pool->mean ? 0.0f : -INFINITY;
    }
    for (int64_t k = 0; k < pool->kernel[2]; k++) {
        int64_t at = k * pool->dilation[2] - pool->padding[2];
        int64_t begin = at < 0 ? (stride - 1 - at) / stride : 0;
        int64_t end = at < in ? (in - 1 - at) / stride + 1 : 0;
        end = end < num ? end : num;
        if (begin < end) {
            pool->floats->fold_rows(pool->mean ? NPU__SUM : NPU__MAX, y + begin, row + begin * stride + at,
                                    (size_t)(end - begin), stride, 1, 0);
        }
    }
}

static void npu__ref_pool_adaptive_f32(const npu__ref_pool *pool, const float *row, float *y)
{
    for (int64_t o = 0; o < pool->out[2]; o++) {
        const npu__ref_span *w = &pool->columns[o];
        y[o] = 0.0f;
        for (int64_t i = 0; i < w->count; i++) {
            y[o] += row[w->first + i];
        }
    }
}

/* Sums to means: npu__ref_pool_divide for a row. */
static void npu__ref_pool_divide_f32(const npu__ref_pool *pool, const npu__ref_span *w, float *y)
{
    float rows = (float)(pool->include_padding ? w[0].padded * w[1].padded : w[0].count * w[1].count);
    for (int64_t o = 0; o < pool->out[2]; o++) {
        const npu__ref_span *column = &pool->columns[o];
        float divisor = rows * (float)(pool->include_padding ? column->padded : column->count);
        bool empty = w[0].count * w[1].count * column->count == 0 && !pool->adaptive;
        y[o] = empty ? 0.0f : y[o] / (pool->divisor ? (float)pool->divisor : divisor);
    }
}

static void npu__ref_pool_row_f32(const npu_launch *l, const npu__ref_pool *pool, size_t plane,
                                  const npu__ref_span *w, size_t first)
{
    float row[NPU__REF_FLOAT_STRIP], strip[NPU__REF_FLOAT_STRIP];
    float *y = npu__ref_floats_to(strip, l->y[0], l->out[0].dtype, (int64_t)first);
    npu__ref_pool_rows_f32(l, pool, plane, w, row);
    if (pool->onto && (y == strip || l->y[0] != l->x[1])) {
        npu__ref_load_f32(y, l->x[1], l->in[1].dtype, (int64_t)first, 1, (size_t)pool->out[2]);
    }
    if (pool->adaptive) {
        npu__ref_pool_adaptive_f32(pool, row, y);
    } else {
        npu__ref_pool_windows_f32(pool, row, y);
    }
    if (pool->mean && !pool->onto) {
        npu__ref_pool_divide_f32(pool, w, y);
    }
    npu__ref_floats_put(pool->floats, l->y[0], l->out[0].dtype, (int64_t)first, y, (size_t)pool->out[2]);
}

static npu_status npu__ref_pool_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_pool *pool = (const npu__ref_pool *)l->state;
    size_t depth = (size_t)pool->out[0], height = (size_t)pool->out[1], begin, end;
    if (!pool->columns) {
        return npu__ref_pool_launch(l, part, parts);
    }
    npu__ref_share(pool->planes * depth * height, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        npu__ref_span w[NPU__POOL_DIMS];
        w[0] = npu__ref_window(pool, 0, (int64_t)(row / height % depth));
        w[1] = npu__ref_window(pool, 1, (int64_t)(row % height));
        npu__ref_pool_row_f32(l, pool, row / (depth * height), w, row * (size_t)pool->out[2]);
    }
    return NPU_OK;
}

/* Rows too long for a strip are left to the plain variant. */
static npu_status npu__ref_pool_prepare_f32(npu_prepare *p)
{
    npu_status status = npu__ref_pool_prepare(p);
    npu__ref_pool *pool = (npu__ref_pool *)p->state;
    npu__ref_span *columns;
    if (status || pool->in[2] > NPU__REF_FLOAT_STRIP || pool->out[2] > NPU__REF_FLOAT_STRIP) {
        return status;
    }
    columns = (npu__ref_span *)npu_prepare_alloc(p, (size_t)pool->out[2] * sizeof *columns);
    if (!columns) {
        return NPU_ERR_NO_MEMORY;
    }
    for (int64_t o = 0; o < pool->out[2]; o++) {
        columns[o] = npu__ref_window(pool, 2, o);
    }
    pool->columns = columns;
    pool->floats = &npu__ref_floats_of[p->isa];
    return NPU_OK;
}

#define NPU__REF_POOL_KERNELS(kind) \
    NPU__REF_F32_KERNELS(kind, npu__ref_all_f32, pool, pool_launch, pool_launch_f32)
#define NPU__REF_POOL_INDEX_KERNEL(kind)                                                                     \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_pool_prepare, npu__ref_pool_index_launch)

static const npu_kernel npu__ref_kernels_pooling[] = {
    NPU__REF_POOL_KERNELS(NPU_ATEN_MAX_POOL2D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_AVG_POOL2D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_ADAPTIVE_AVG_POOL2D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_AVG_POOL1D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_AVG_POOL3D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_ADAPTIVE_AVG_POOL1D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_ADAPTIVE_AVG_POOL3D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_ADAPTIVE_AVG_POOL2D_RAW),
    NPU__REF_POOL_KERNELS(NPU_ATEN_ADAPTIVE_AVG_POOL3D_RAW),
    NPU__REF_POOL_KERNELS(NPU_ATEN_MAX_POOL1D),
    NPU__REF_POOL_KERNELS(NPU_ATEN_MAX_POOL3D),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_MAX_POOL1D_WITH_INDICES),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_MAX_POOL2D_WITH_INDICES),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_MAX_POOL3D_WITH_INDICES),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_ADAPTIVE_MAX_POOL1D),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_ADAPTIVE_MAX_POOL2D),
    NPU__REF_POOL_INDEX_KERNEL(NPU_ATEN_ADAPTIVE_MAX_POOL3D),
    NPU__REF_ROW(NPU_ATEN_AVG_POOL2D_BACKWARD, "plain", 0, NULL, npu__ref_pool_backward_prepare,
      npu__ref_pool_backward_launch),
    NPU__REF_ROW(NPU_ATEN_MAX_POOL2D_WITH_INDICES_BACKWARD, "plain", 0, NULL, npu__ref_pool_backward_prepare,
      npu__ref_pool_backward_launch),
    NPU__REF_ROW(NPU_ATEN_ADAPTIVE_AVG_POOL2D_BACKWARD, "plain", 0, NULL, npu__ref_pool_backward_prepare,
      npu__ref_pool_backward_launch),
    NPU__REF_ROW(NPU_ATEN_FRACTIONAL_MAX_POOL2D, "plain", 0, NULL, npu__ref_pool_prepare, npu__ref_fractional_launch),
    NPU__REF_ROW(NPU_ATEN_FRACTIONAL_MAX_POOL3D, "plain", 0, NULL, npu__ref_pool_prepare, npu__ref_fractional_launch)
};

/* -----------------------------------------------------------------------------------------------------------
   REDUCTION, SOFTMAX, ORDER                                                               >>kernels-reduction

   What folds or orders elements along dims: reductions, statistics, softmax, scans, sorts, searches, histograms, sets,
   and what is made of them: resizing, distances, losses, covariances. An op says which dims are reduced; neighbouring
   dims are merged first, so that kernels see few long ones. The order of a sum depends on the dims alone.
   -------------------------------------------------------------------------------------------------------- */

/* Kept and reduced dims, innermost first, neighbours of one sort merged and dims of 1 left out. The order of reduced
   dims is free: one whose elements are neighbours comes first. */
typedef struct npu__ref_dim_group {
    uint32_t rank;
    size_t len;
    int64_t dims[NPU_MAX_RANK], strides[NPU_MAX_RANK];
} npu__ref_dim_group;

typedef struct npu__ref_reduction {
    npu__ref_dim_group kept, reduced;
    uint32_t fold;
    bool mean;
    const npu__ref_floats *floats; /* NULL = in double */
    const struct npu__ref_wide *wide; /* of the variant "wide" */
} npu__ref_reduction;

/* Offset of item i of a group, its first `skip` dims left out. */
static inline int64_t npu__ref_group_offset(const npu__ref_dim_group *g, uint32_t skip, size_t i)
{
    int64_t offset = 0;
    for (uint32_t d = skip; d + 1 < g->rank; d++) {
        offset += (int64_t)(i % (size_t)g->dims[d]) * g->strides[d];
        i /= (size_t)g->dims[d];
    }
    return g->rank > skip ? offset + (int64_t)i * g->strides[g->rank - 1] : offset;
}

static void npu__ref_collapse(npu__ref_reduction *r, const npu_tensor *x, const bool *is_reduced)
{
    r->kept.len = r->reduced.len = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        npu__ref_dim_group *g = is_reduced[i] ? &r->reduced : &r->kept;
        g->len *= (size_t)x->dims[i];
        if (x->dims[i] == 1) {
            continue;
        }
        if (g->rank > 0 && g->strides[g->rank - 1] * g->dims[g->rank - 1] == x->strides[i]) {
            g->dims[g->rank - 1] *= x->dims[i];
        } else {
            g->dims[g->rank] = x->dims[i];
            g->strides[g->rank++] = x->strides[i];
        }
    }
    for (uint32_t i = 1; i < r->reduced.rank && r->reduced.strides[0] != 1; i++) {
        if (r->reduced.strides[i] == 1) {
            int64_t dim = r->reduced.dims[i];
            r->reduced.dims[i] = r->reduced.dims[0];
            r->reduced.strides[i] = r->reduced.strides[0];
            r->reduced.dims[0] = dim;
            r->reduced.strides[0] = 1;
        }
    }
}

/* Marks the dims an op reduces: a list or one number; none or an empty list means all. sum_to_size reduces
   those that its result has not, or has once. */
static void npu__ref_reduced_dims(const npu_op_info *op, uint32_t rank, bool *is_reduced)
{
    const char *name = npu_op_arg(op, "axis") ? "axis" : "dim";
    const npu_bound_arg *arg = npu_op_arg(op, name);
    uint32_t n = npu_op_list_len(op, name), missing = rank - op->out[0]->rank;
    bool to_size = op->kind == NPU_ATEN_SUM_TO_SIZE || (op->kind >= NPU_BLOCK_ROW_SUM && op->kind <= NPU_BLOCK_ROW_MIN);
    memset(is_reduced, 0, NPU_MAX_RANK * sizeof *is_reduced);
    for (uint32_t i = 0; i < rank && to_size; i++) {
        is_reduced[i] = i < missing || op->out[0]->dims[i - missing] == 1;
    }
    if (to_size) {
        return;
    }
    if (arg && arg->form == NPU_ARG_INT) {
        is_reduced[npu__ref_axis(arg->i, rank)] = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        is_reduced[npu__ref_axis(npu_op_int_at(op, name, i), rank)] = true;
    }
    for (uint32_t i = 0; i < rank && n == 0; i++) {
        is_reduced[i] = true;
    }
}

/* Neighbours are reduced, or are neighbours in the result: any other operand is better copied first. */
static bool npu__ref_reduce_takes(const npu_op_info *op, uint32_t operand, const npu_tensor *x)
{
    bool is_reduced[NPU_MAX_RANK], is_innermost = true;
    (void)operand;
    npu__ref_reduced_dims(op, x->rank, is_reduced);
    for (uint32_t i = x->rank; i-- > 0;) {
        if (x->dims[i] != 1 && x->strides[i] == 1 && (is_reduced[i] || is_innermost)) {
            return true;
        }
        is_innermost = is_innermost && (is_reduced[i] || x->dims[i] == 1);
    }
    return false;
}

static npu_status npu__ref_reduce_prepare(npu_prepare *p)
{
    npu__ref_reduction *r = (npu__ref_reduction *)npu_prepare_alloc(p, sizeof *r);
    bool is_reduced[NPU_MAX_RANK];
    if (!r) {
        return NPU_ERR_NO_MEMORY;
    }
    switch (p->op->kind) {
    case NPU_ATEN_MEAN: case NPU_ATEN_MEAN_DIM: r->mean = true; break;
    case NPU_BLOCK_MAX: case NPU_BLOCK_ROW_MAX: case NPU_TENSOR_ROW_MAX:
    case NPU_ATEN_AMAX: case NPU_ATEN_MAX: r->fold = NPU__MAX; break;
    case NPU_BLOCK_MIN: case NPU_BLOCK_ROW_MIN:
    case NPU_ATEN_AMIN: case NPU_ATEN_MIN: r->fold = NPU__MIN; break;
    case NPU_ATEN_PROD: case NPU_ATEN_PROD_DIM_INT: r->fold = NPU__PRODUCT; break;
    default: break;
    }
    npu__ref_reduced_dims(p->op, p->in[0].rank, is_reduced);
    npu__ref_collapse(r, &p->in[0], is_reduced);
    p->state = r;
    p->parts = npu__ref_item_parts(r->kept.len, r->reduced.len);
    return NPU_OK;
}

/* Folds what n elements are as bools: a sum is any of them, a product all. */
static void npu__ref_fold_truths(npu__ref_number *a, uint32_t fold, const void *x, uint32_t dtype, int64_t first,
                                 int64_t stride, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double e;
        npu__ref_load_f64(&e, x, dtype, first + (int64_t)i * stride, 1, 1);
        a->i = fold == NPU__PRODUCT ? a->i && e != 0.0 : a->i || e != 0.0;
    }
}

/* Results compute in the class of their own dtype: sum(i32, dtype=f64) adds doubles. */
static npu_status npu__ref_reduce_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_reduction *r = (const npu__ref_reduction *)l->state;
    const npu__ref_dim_group *reduced = &r->reduced;
    uint32_t from = l->in[0].dtype;
    bool integer = npu__ref_is_integer(l->out[0].dtype);
    bool truths = l->out[0].dtype == NPU_BOOL && from != NPU_BOOL;
    size_t run = reduced->rank ? (size_t)reduced->dims[0] : 1, begin, end;
    int64_t stride = reduced->rank ? reduced->strides[0] : 1;
    npu__ref_share(r->kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_number a = npu__ref_fold_start(r->fold);
        int64_t base = npu__ref_group_offset(&r->kept, 0, o);
        for (size_t i = 0; i < reduced->len; i += run) {
            int64_t first = base + npu__ref_group_offset(reduced, 1, i / run);
            if (truths) {
                npu__ref_fold_truths(&a, r->fold, l->x[0], from, first, stride, run);
            } else {
                npu__ref_fold(&a, r->fold, integer, l->x[0], from, first, stride, run);
            }
        }
        if (r->mean) {
            a.f /= (double)reduced->len;
        }
        npu__ref_store_number(l->y[0], l->out[0].dtype, o, integer, &a);
    }
    return NPU_OK;
}

/* A pass over reduced elements in float: a sum of terms, or a fold of the elements themselves. */
typedef struct npu__ref_pass {
    const npu__ref_reduction *r;
    const npu__ref_floats *floats;
    uint32_t fold, term; /* term: of sums */
} npu__ref_pass;

/* The elements themselves are added up, or folded. */
static bool npu__ref_pass_is_fold(const npu__ref_pass *pass)
{
    return pass->fold != NPU__SUM || pass->term == NPU__REF_TERM_value;
}

/* Results whose reduced elements come in runs of neighbours, those of results `stride` apart; m goes to the terms. */
static void npu__ref_pass_runs(const npu__ref_pass *pass, const npu_launch *l, int64_t first, size_t n, size_t runs,
                               int64_t stride, double *acc, const float *m)
{
    bool direct = l->in[0].dtype == NPU_F32, is_fold = npu__ref_pass_is_fold(pass);
    size_t most = direct && pass->fold != NPU__PRODUCT ? NPU__REF_FLOAT_RUN : NPU__REF_FLOAT_STRIP;
    float strip[NPU__REF_FLOAT_STRIP];
    if (direct && is_fold && n <= most) {
        pass->floats->fold_runs(pass->fold, acc, (const float *)l->x[0] + first, n, runs, stride);
        return;
    }
    for (size_t j = 0; j < runs; j++, first += stride) {
        for (size_t i = 0; i < n; i += most) {
            size_t len = n - i < most ? n - i : most;
            const float *x = npu__ref_floats_at(pass->floats, strip, l->x[0], l->in[0].dtype, first + (int64_t)i, 1,
                                                len);
            if (is_fold) {
                pass->floats->fold_runs(pass->fold, &acc[j], x, len, 1, 0);
            } else {
                acc[j] += pass->floats->sums[pass->term](x, len, m[j]);
            }
        }
    }
}

/* Results at a time: neighbours, or of a run each. */
enum { NPU__REF_COLUMNS = 1024, NPU__REF_RUNS = 64 };

/* How many narrow rows that follow each other are folded as one. */
static size_t npu__ref_rows_per_strip(const npu__ref_reduction *r, size_t width)
{
    bool dense = r->reduced.rank > 0 && r->reduced.strides[0] == (int64_t)width;
    return dense && width < NPU__STRIP ? NPU__STRIP / width : 1;
}

static size_t npu__ref_pass_rows_per_strip(const npu__ref_pass *pass, size_t width)
{
    return npu__ref_pass_is_fold(pass) ? npu__ref_rows_per_strip(pass->r, width) : 1;
}

/* `rows` neighbouring rows of `width` elements folded into each other, added to acc. */
static void npu__ref_pass_block(const npu__ref_pass *pass, const npu_launch *l, int64_t first, size_t rows,
                                size_t width, double *acc, const float *m)
{
    float partial[NPU__REF_COLUMNS], strip[NPU__REF_COLUMNS];
    int64_t stride = pass->r->reduced.rank ? pass->r->reduced.strides[0] : 0;
    bool direct = l->in[0].dtype == NPU_F32;
    size_t beside = npu__ref_pass_rows_per_strip(pass, width), wide = beside * width;
    partial[0] = (float)npu__ref_fold_start(pass->fold).f;
    npu__ref_repeat(partial, sizeof partial[0], wide);
    for (size_t row = 0, step; row < rows; row += step) {
        int64_t at = first + (int64_t)row * stride;
        const float *x;
        step = direct ? rows : rows - row < beside ? rows - row : beside;
        x = npu__ref_floats_at(pass->floats, strip, l->x[0], l->in[0].dtype, at, 1, step * width);
        if (npu__ref_pass_is_fold(pass)) {
            size_t whole = step / beside;
            pass->floats->fold_rows(pass->fold, partial, x, wide, 1, whole, (int64_t)beside * stride);
            pass->floats->fold_rows(pass->fold, partial, x + whole * wide, width, 1, step - whole * beside, stride);
        } else {
            pass->floats->adds[pass->term](partial, x, width, m, step, stride);
        }
    }
    for (size_t j = 0; j < beside; j++) {
        pass->floats->fold_into(pass->fold, acc, partial + j * width, width);
    }
}

/* `width` neighbouring results from `base`. Sums and products move to double every few rows. */
static void npu__ref_pass_rows(const npu__ref_pass *pass, const npu_launch *l, int64_t base, size_t width, double *acc,
                               const float *m)
{
    const npu__ref_dim_group *reduced = &pass->r->reduced;
    size_t run = reduced->rank ? (size_t)reduced->dims[0] : 1;
    size_t most = (pass->fold == NPU__PRODUCT ? 32 : 256) * npu__ref_pass_rows_per_strip(pass, width);
    for (size_t i = 0; i < reduced->len; i += run) {
        int64_t first = base + npu__ref_group_offset(reduced, 1, i / run);
        for (size_t row = 0; row < run; row += most) {
            int64_t at = first + (reduced->rank ? (int64_t)row * reduced->strides[0] : 0);
            npu__ref_pass_block(pass, l, at, run - row < most ? run - row : most, width, acc, m);
        }
    }
}

static bool npu__ref_pass_in_rows(const npu__ref_reduction *r) { return r->kept.rank > 0 && r->kept.strides[0] == 1; }

/* Neighbours go to a part in numbers that memory likes: narrower rows are read at half the speed. */
static void npu__ref_pass_parts(npu_prepare *p, const npu__ref_reduction *r)
{
    size_t most = r->kept.len / NPU__REF_COLUMNS + 1;
    p->parts = npu__ref_pass_in_rows(r) && p->parts > most ? (uint32_t)most : p->parts;
}

static void npu__ref_pass_start(npu_prepare *p, npu__ref_reduction *r)
{
    r->floats = &npu__ref_floats_of[p->isa];
    npu__ref_pass_parts(p, r);
}

/* How many results from o are done at once: those in line with it. */
static size_t npu__ref_pass_width(const npu__ref_reduction *r, size_t o, size_t end)
{
    size_t most = npu__ref_pass_in_rows(r) ? NPU__REF_COLUMNS : NPU__REF_RUNS;
    size_t left = r->kept.rank ? (size_t)r->kept.dims[0] - o % (size_t)r->kept.dims[0] : 1;
    size_t width = left < end - o ? left : end - o;
    return width < most ? width : most;
}

/* Results o .. o + width - 1, added to acc. */
static void npu__ref_pass_columns(const npu__ref_pass *pass, const npu_launch *l, size_t o, size_t width, double *acc,
                               const float *m)
{
    const npu__ref_dim_group *kept = &pass->r->kept, *reduced = &pass->r->reduced;
    size_t run = reduced->rank ? (size_t)reduced->dims[0] : 1;
    int64_t base = npu__ref_group_offset(kept, 0, o), stride = kept->rank ? kept->strides[0] : 0;
    if (npu__ref_pass_in_rows(pass->r)) {
        npu__ref_pass_rows(pass, l, base, width, acc, m);
        return;
    }
    for (size_t i = 0; i < reduced->len; i += run) {
        int64_t first = base + npu__ref_group_offset(reduced, 1, i / run);
        npu__ref_pass_runs(pass, l, first, run, width, stride, acc, m);
    }
}

static npu_status npu__ref_reduce_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_reduction *r = (const npu__ref_reduction *)l->state;
    npu__ref_pass pass = { r, r->floats, r->fold, NPU__REF_TERM_value };
    double acc[NPU__REF_COLUMNS];
    static const float none[NPU__REF_COLUMNS] = { 0 }; /* the elements themselves need no numbers */
    double share = 1.0 / (double)r->reduced.len;
    size_t begin, end, width;
    npu__ref_share(r->kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o += width) {
        width = npu__ref_pass_width(r, o, end);
        for (size_t j = 0; j < width; j++) {
            acc[j] = npu__ref_fold_start(r->fold).f;
        }
        npu__ref_pass_columns(&pass, l, o, width, acc, none);
        for (size_t j = 0; j < width && r->mean; j++) {
            acc[j] *= share;
        }
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, acc, width);
    }
    return NPU_OK;
}

static npu_status npu__ref_reduce_prepare_f32(npu_prepare *p)
{
    npu_status status = npu__ref_reduce_prepare(p);
    if (!status) {
        npu__ref_pass_start(p, (npu__ref_reduction *)p->state);
    }
    return status;
}

/* ---- the variant "wide": doubles and integers, rows at a time ----

   Neighbouring results take the rows they lie in. One result of a run of neighbours cuts the run into rows as well:
   of a few lanes, folded into each other at the end. Which elements meet in which order depends on the dims alone. */

enum { NPU__REF_WIDE_COLUMNS = 512, NPU__REF_WIDE_LANES = 64 };
/* Lanes that a scan takes at a time, elements of each in a strip; elements that one for maxima looks over at once. */
enum { NPU__REF_SCAN_LANES = 4, NPU__REF_SCAN_STRIP = 128, NPU__REF_SCAN_BLOCK = 32 };

typedef union npu__ref_wide_strip {
    double f64[NPU__REF_WIDE_COLUMNS];
    int64_t i64[NPU__REF_WIDE_COLUMNS];
    int32_t i32[NPU__REF_WIDE_COLUMNS]; /* of maxima */
} npu__ref_wide_strip;

typedef struct npu__ref_wide {
    int cls;
    uint32_t own; /* elements of this dtype need no conversion */
    npu__ref_load_fn load;
    npu__ref_store_fn store;
    /* acc[i] = fold of acc[i] and x[i] of every row, the rows `stride` apart */
    void (*rows)(uint32_t fold, void *acc, const void *x, size_t n, size_t rows, int64_t stride);
    /* y = the sums, or products, of *acc and the elements of x up to each, in `lanes` rows or columns of n: lanes
       lie `lane` apart, elements of one `step` */
    void (*scan)(bool product, void *acc, const void *x, void *y, size_t lanes, size_t lane, size_t n, size_t step);
    /* y = the maximum, or minimum, of *best and the elements of x up to each, index = where; x is from `first` */
    void (*peaks)(bool least, void *best, int64_t *at, const void *x, void *y, int64_t *index, size_t n, int64_t first);
    /* the same for columns, whose x is of one row, in place */
    void (*peak_row)(bool least, void *best, int64_t *at, const void *x, size_t n, int64_t row);
} npu__ref_wide;

/* Two rows at a time, so that acc is touched less. */
#define NPU__REF_WIDE_FOLD(code, T, two)                                                           \
    case code:                                                                                     \
        for (; rows >= 2; rows -= 2, x += 2 * stride) {                                            \
            NPU__REF_VECTORIZE                                                                     \
            for (size_t i = 0; i < n; i++) {                                                       \
                T b = x[i], a = acc[i];                                                            \
                a = two;                                                                           \
                b = x[(int64_t)i + stride];                                                        \
                acc[i] = two;                                                                      \
            }                                                                                      \
        }                                                                                          \
        for (size_t i = 0; i < n && rows; i++) {                                                   \
            T b = x[i], a = acc[i];                                                                \
            acc[i] = two;                                                                          \
        }                                                                                          \
        break;

/* NaN wins; integers wrap. */
#define NPU__REF_WIDE_ROWS(attribute, suffix, T, U)                                                \
    attribute static void npu__ref_wide_rows_##suffix(uint32_t fold, void *to, const void *from, size_t n, \
                                                      size_t rows, int64_t stride)                 \
    {                                                                                              \
        T *acc = (T *)to;                                                                          \
        const T *x = (const T *)from;                                                              \
        switch (fold) {                                                                            \
        NPU__REF_WIDE_FOLD(NPU__SUM, T, (T)((U)a + (U)b))                                          \
        NPU__REF_WIDE_FOLD(NPU__PRODUCT, T, (T)((U)a * (U)b))                                      \
        NPU__REF_WIDE_FOLD(NPU__MAX, T, ((b > a) | (b != b)) ? b : a)                                \
        NPU__REF_WIDE_FOLD(NPU__MIN, T, ((b < a) | (b != b)) ? b : a)                                \
        default: break;                                                                            \
        }                                                                                          \
    }

/* A sum waits for the one before it: lanes side by side wait at the same time. */
#define NPU__REF_WIDE_SCAN(attribute, suffix, T, U)                                                \
    NPU__REF_INLINE void npu__ref_wide_scan_of_##suffix(bool product, T *acc, const T *x, T *y, const size_t lanes, \
                                                        size_t lane, size_t n, size_t step)        \
    {                                                                                              \
        T a[NPU__REF_SCAN_LANES];                                                                  \
        for (size_t j = 0; j < lanes; j++) { a[j] = acc[j]; }                                      \
        for (size_t i = 0; i < n; i++, x += step, y += step) {                                     \
            NPU__REF_UNROLL                                                                        \
            for (size_t j = 0; j < lanes; j++) {                                                   \
                a[j] = product ? (T)((U)a[j] * (U)x[j * lane]) : (T)((U)a[j] + (U)x[j * lane]);    \
                y[j * lane] = a[j];                                                                \
            }                                                                                      \
        }                                                                                          \
        for (size_t j = 0; j < lanes; j++) { acc[j] = a[j]; }                                      \
    }                                                                                              \
    attribute static void npu__ref_wide_scan_##suffix(bool product, void *acc, const void *x, void *y, size_t lanes, \
                                                      size_t lane, size_t n, size_t step)          \
    {                                                                                              \
        size_t j = 0;                                                                              \
        for (; j + NPU__REF_SCAN_LANES <= lanes; j += NPU__REF_SCAN_LANES) {                       \
            npu__ref_wide_scan_of_##suffix(product, (T *)acc + j, (const T *)x + j * lane, (T *)y + j * lane, \
                                           NPU__REF_SCAN_LANES, lane, n, step);                    \
        }                                                                                          \
        for (; j < lanes; j++) {                                                                   \
            npu__ref_wide_scan_of_##suffix(product, (T *)acc + j, (const T *)x + j * lane, (T *)y + j * lane, \
                                           1, lane, n, step);                                      \
        }                                                                                          \
    }

/* Of equal elements the last one counts, and so does every NaN. Few elements of most rows beat those before them:
   blocks without one are filled. */
#define NPU__REF_WIDE_TAKES(least, x, best) (((least) ? (x) <= (best) : (x) >= (best)) | ((x) != (x)))
#define NPU__REF_WIDE_PEAKS(attribute, suffix, T)                                                  \
    attribute static void npu__ref_wide_peaks_##suffix(bool least, void *best, int64_t *at, const void *from, void *to, \
                                                       int64_t *index, size_t n, int64_t first)    \
    {                                                                                              \
        const T *x = (const T *)from;                                                              \
        T *y = (T *)to, b = *(T *)best;                                                            \
        int64_t a = *at;                                                                           \
        for (size_t i = 0, end; i < n; i = end) {                                                  \
            int64_t some = 0;                                                                      \
            end = n - i < NPU__REF_SCAN_BLOCK ? n : i + NPU__REF_SCAN_BLOCK;                       \
            for (size_t j = i; j < end; j++) { some |= !(least ? x[j] > b : x[j] < b); }           \
            for (size_t j = i; j < end && some; j++) {                                             \
                if (NPU__REF_WIDE_TAKES(least, x[j], b)) {                                         \
                    b = x[j];                                                                      \
                    a = first + (int64_t)j;                                                        \
                }                                                                                  \
                y[j] = b;                                                                          \
                index[j] = a;                                                                      \
            }                                                                                      \
            for (size_t j = i; j < end && !some; j++) { y[j] = b; }                                \
            for (size_t j = i; j < end && !some; j++) { index[j] = a; }                            \
        }                                                                                          \
        *(T *)best = b;                                                                            \
        *at = a;                                                                                   \
    }                                                                                              \
    attribute static void npu__ref_wide_peak_row_##suffix(bool least, void *to, int64_t *at, const void *from, \
                                                          size_t n, int64_t row)                   \
    {                                                                                              \
        const T *x = (const T *)from;                                                              \
        T *best = (T *)to;                                                                         \
        NPU__REF_VECTORIZE                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            int64_t takes = NPU__REF_WIDE_TAKES(least, x[i], best[i]);                             \
            best[i] = takes ? x[i] : best[i];                                                      \
            at[i] = takes ? row : at[i];                                                           \
        }                                                                                          \
    }

#define NPU__REF_WIDE_LOOPS(attribute, suffix, T, U)                                               \
    NPU__REF_WIDE_ROWS(attribute, suffix, T, U)                                                    \
    NPU__REF_WIDE_SCAN(attribute, suffix, T, U)                                                    \
    NPU__REF_WIDE_PEAKS(attribute, suffix, T)
#define NPU__REF_WIDE(type, elements, rows, suffix)                                                \
    { NPU__##type, NPU_##type, elements, npu__ref_wide_rows_##rows, npu__ref_wide_scan_##suffix,   \
      npu__ref_wide_peaks_##suffix, npu__ref_wide_peak_row_##suffix }

NPU__REF_WIDE_LOOPS(, f64_base, double, double)
NPU__REF_WIDE_LOOPS(, i64_base, int64_t, uint64_t)
/* Not worth loops of their own without instructions for them. */
#define npu__ref_wide_rows_i32_base NULL
#ifdef NPU__REF_HAS_AVX2
NPU__REF_WIDE_LOOPS(NPU__REF_AVX2, f64_avx2, double, double)
NPU__REF_WIDE_LOOPS(NPU__REF_AVX2, i64_avx2, int64_t, uint64_t)
NPU__REF_WIDE_ROWS(NPU__REF_AVX512, i64_avx512, int64_t, uint64_t)
NPU__REF_WIDE_ROWS(NPU__REF_AVX2, i32_avx2, int32_t, uint32_t)
#endif

/* For double and for int64. */
static const npu__ref_wide npu__ref_wide_of[][2] = {
#define NPU_X(set, narrow, wide)                                                                   \
    { NPU__REF_WIDE(F64, NPU__REF_CLASSES_##narrow, f64_##narrow, f64_##narrow),                   \
      NPU__REF_WIDE(I64, NPU__REF_CLASSES_##narrow, i64_##wide, i64_##narrow) },
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

/* Maxima and minima of integers that fit half the width need no more; NULL = the wide loops do them. */
static const npu__ref_wide *npu__ref_narrow_loops(uint32_t fold, uint32_t dtype, uint32_t isa)
{
    static const npu__ref_wide narrow_of[] = {
#define NPU_X(set, narrow, wide) \
        { NPU__I32, NPU_I32, NPU__REF_CLASSES_##narrow, npu__ref_wide_rows_i32_##narrow, NULL, NULL, NULL },
        NPU__REF_ISAS(NPU_X)
#undef NPU_X
    };
    bool fits = npu__ref_is_integer(dtype) && (npu__ref_size(dtype) < 4 || dtype == NPU_I32);
    return fits && (fold == NPU__MAX || fold == NPU__MIN) && narrow_of[isa].rows ? &narrow_of[isa] : NULL;
}

/* n elements where they are, or converted in `strip`. */
static const void *npu__ref_wide_at(const npu__ref_wide *w, npu__ref_wide_strip *strip, const npu_launch *l,
                                    int64_t first, size_t n)
{
    if (l->in[0].dtype == w->own) {
        return (const char *)l->x[0] + first * (int64_t)npu__ref_class_size[w->cls];
    }
    w->load(w->cls, strip, l->x[0], l->in[0].dtype, first, 1, n);
    return strip;
}

static void npu__ref_wide_fill(const npu__ref_wide *w, void *acc, uint32_t fold, size_t n)
{
    npu__ref_number start = npu__ref_fold_start(fold);
    int32_t narrow = fold == NPU__MAX ? INT32_MIN : INT32_MAX;
    const void *from = w->cls == NPU__I32 ? (const void *)&narrow : &start.f;
    memcpy(acc, w->cls == NPU__I64 ? &start.i : from, npu__ref_class_size[w->cls]);
    npu__ref_repeat(acc, npu__ref_class_size[w->cls], n);
}

/* All lanes, a power of two of them, into the first. */
static void npu__ref_wide_join(const npu__ref_wide *w, uint32_t fold, void *acc, size_t lanes)
{
    for (; lanes > (w->cls == NPU__I32 ? 1 : 8); lanes /= 2) {
        w->rows(fold, acc, (const char *)acc + lanes / 2 * npu__ref_class_size[w->cls], lanes / 2, 1, 0);
    }
    if (w->cls == NPU__I32) {
        return;
    }
    if (w->cls == NPU__I64) {
        *(int64_t *)acc = npu__ref_fold_i64(fold, *(int64_t *)acc, (const int64_t *)acc + 1, lanes - 1);
    } else {
        *(double *)acc = npu__ref_fold_f64(fold, *(double *)acc, (const double *)acc + 1, lanes - 1);
    }
}

/* One result whose reduced elements come in runs of neighbours; `acc` holds what its lanes need. */
static void npu__ref_wide_run(const npu__ref_reduction *r, const npu_launch *l, int64_t base, void *acc)
{
    const npu__ref_wide *w = r->wide;
    npu__ref_wide_strip strip;
    size_t run = r->reduced.rank ? (size_t)r->reduced.dims[0] : 1, lanes = 1;
    size_t most = l->in[0].dtype == w->own ? run : NPU__REF_WIDE_COLUMNS;
    while (lanes < NPU__REF_WIDE_LANES && (lanes < 8 ? lanes < run : lanes * 8 <= run)) {
        lanes *= 2;
    }
    npu__ref_wide_fill(w, acc, r->fold, lanes);
    for (size_t i = 0; i < r->reduced.len; i += run) {
        int64_t first = base + npu__ref_group_offset(&r->reduced, 1, i / run);
        for (size_t at = 0; at < run; at += most) {
            size_t n = run - at < most ? run - at : most, whole = n / lanes * lanes;
            const char *x = (const char *)npu__ref_wide_at(w, &strip, l, first + (int64_t)at, n);
            w->rows(r->fold, acc, x, lanes, n / lanes, (int64_t)lanes);
            w->rows(r->fold, acc, x + whole * npu__ref_class_size[w->cls], n - whole, 1, 0);
        }
    }
    npu__ref_wide_join(w, r->fold, acc, lanes);
}

/* `width` neighbouring results from `base`. */
static void npu__ref_wide_columns(const npu__ref_reduction *r, const npu_launch *l, int64_t base, size_t width,
                                  void *acc)
{
    const npu__ref_wide *w = r->wide;
    npu__ref_wide_strip strip;
    size_t run = r->reduced.rank ? (size_t)r->reduced.dims[0] : 1;
    size_t beside = npu__ref_rows_per_strip(r, width), wide = beside * width, size = npu__ref_class_size[w->cls];
    int64_t stride = r->reduced.rank ? r->reduced.strides[0] : 0;
    npu__ref_wide_fill(w, acc, r->fold, wide);
    for (size_t i = 0, step; i < r->reduced.len; i += step) {
        int64_t first = base + npu__ref_group_offset(&r->reduced, 1, i / run) + (int64_t)(i % run) * stride;
        size_t left = run - i % run, whole;
        const char *x;
        step = l->in[0].dtype == w->own || left < beside ? left : beside;
        x = (const char *)npu__ref_wide_at(w, &strip, l, first, step * width);
        whole = step / beside;
        w->rows(r->fold, acc, x, wide, whole, (int64_t)beside * stride);
        w->rows(r->fold, acc, x + whole * wide * size, width, step - whole * beside, stride);
    }
    for (size_t j = 1; j < beside; j++) {
        w->rows(r->fold, acc, (const char *)acc + j * width * size, width, 1, 0);
    }
}

static npu_status npu__ref_reduce_launch_wide(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_reduction *r = (const npu__ref_reduction *)l->state;
    npu__ref_wide_strip acc;
    size_t begin, end, width;
    npu__ref_share(r->kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o += width) {
        int64_t base = npu__ref_group_offset(&r->kept, 0, o);
        width = npu__ref_pass_in_rows(r) ? npu__ref_pass_width(r, o, end) : 1;
        width = width < NPU__REF_WIDE_COLUMNS ? width : NPU__REF_WIDE_COLUMNS;
        if (npu__ref_pass_in_rows(r)) {
            npu__ref_wide_columns(r, l, base, width, &acc);
        } else {
            npu__ref_wide_run(r, l, base, &acc);
        }
        for (size_t j = 0; j < width && r->mean; j++) {
            acc.f64[j] /= (double)r->reduced.len;
        }
        r->wide->store(r->wide->cls, l->y[0], l->out[0].dtype, (int64_t)o, 1, &acc, width);
    }
    return NPU_OK;
}

static npu_status npu__ref_reduce_prepare_wide(npu_prepare *p)
{
    npu_status status = npu__ref_reduce_prepare(p);
    if (!status) {
        npu__ref_reduction *r = (npu__ref_reduction *)p->state;
        r->wide = npu__ref_narrow_loops(r->fold, p->in[0].dtype, p->isa);
        r->wide = r->wide ? r->wide : &npu__ref_wide_of[p->isa][npu__ref_is_integer(p->out[0].dtype)];
        npu__ref_pass_parts(p, r);
    }
    return status;
}

/* Truths of other elements than bools are left to the plain variant. */
static bool npu__ref_wide_supported(const npu_op_info *op)
{
    uint32_t from = op->in[0]->dtype, to = op->out[0]->dtype;
    int cls = npu__ref_compute_class(to);
    if (npu__ref_compute_class(from) < 0 || (to == NPU_BOOL && from != NPU_BOOL)) {
        return false;
    }
    return cls == NPU__F64 || cls == NPU__I64;
}

/* ---- statistics: what one or two passes over the reduced elements add up ---- */

typedef struct npu__ref_sums {
    double first, second; /* what the passes make; the second may use what the first made */
    double p;             /* exponent of a norm, or what is taken off the count */
    double count;
} npu__ref_sums;

typedef struct npu__ref_statistic {
    double start; /* of `first`; `second` starts at 0 */
    void (*passes[2])(npu__ref_sums *s, const double *x, size_t n);
    double (*finish)(const npu__ref_sums *s);
    /* The same in float: 1 + the terms of both sums; the first may be a maximum. 0 = only in double. */
    uint32_t terms[2];
} npu__ref_statistic;

#define NPU__REF_TERM(name) (1 + NPU__REF_TERM_##name)
enum { NPU__REF_TERM_MAX = 1 + NPU__REF_TERM_COUNT };

/* The maximum that exponentials are taken from; an infinite one would make NaN. */
static inline double npu__ref_finite(double max) { return isinf(max) ? 0.0 : max; }

static inline double npu__ref_central(const npu__ref_sums *s, double a) { return a - s->first / s->count; }

#define NPU__REF_STEP(name, statement)                                                             \
    static void npu__ref_step_##name(npu__ref_sums *to, const double *x, size_t n)                 \
    {                                                                                              \
        npu__ref_sums sums = *to, *s = &sums; /* in registers */                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            double a = x[i];                                                                       \
            statement;                                                                             \
        }                                                                                          \
        *to = sums;                                                                                \
    }
NPU__REF_STEP(any, s->first = a != 0 ? 1 : s->first)
NPU__REF_STEP(all, s->first = a != 0 ? s->first : 0)
NPU__REF_STEP(count, s->first += a != 0)
NPU__REF_STEP(sum, s->first += a)
NPU__REF_STEP(present, s->first += isnan(a) ? 0 : a; s->second += !isnan(a))
NPU__REF_STEP(deviations, double d = npu__ref_central(s, a); s->second += d * d)
NPU__REF_STEP(max, s->first = NPU__REF_MOST(s->first, a))
NPU__REF_STEP(exp, s->second += exp(a - npu__ref_finite(s->first)))
NPU__REF_STEP(max_abs, double b = fabs(a); s->first = NPU__REF_MOST(s->first, b))
NPU__REF_STEP(min_abs, double b = fabs(a); s->first = NPU__REF_LEAST(s->first, b))
NPU__REF_STEP(abs, s->first += fabs(a))
NPU__REF_STEP(squares, s->first += a * a)
NPU__REF_STEP(powers, s->first += pow(fabs(a), s->p))

static double npu__ref_finish_first(const npu__ref_sums *s) { return s->first; }
static double npu__ref_finish_any(const npu__ref_sums *s) { return s->first != 0; } /* u8 has a u8 result */
static double npu__ref_finish_all(const npu__ref_sums *s) { return s->second == 0 && s->first != 0; }
static double npu__ref_finish_mean(const npu__ref_sums *s) { return s->first / s->second; }
static double npu__ref_finish_root(const npu__ref_sums *s) { return sqrt(s->first); }
static double npu__ref_finish_power(const npu__ref_sums *s) { return pow(s->first, 1.0 / s->p); }
static double npu__ref_finish_variance(const npu__ref_sums *s)
{
    return s->second / (s->count > s->p && s->count > 0 ? s->count - s->p : 0.0); /* of nothing: NaN */
}

static double npu__ref_finish_deviation(const npu__ref_sums *s) { return sqrt(npu__ref_finish_variance(s)); }
static double npu__ref_finish_logsumexp(const npu__ref_sums *s)
{
    return npu__ref_finite(s->first) + log(s->second);
}

static const npu__ref_statistic *npu__ref_norm_statistic(double p)
{
    static const npu__ref_statistic zero = {
        0.0, { npu__ref_step_count, NULL }, npu__ref_finish_first, { NPU__REF_TERM(nonzero), 0 }
    };
    static const npu__ref_statistic one = {
        0.0, { npu__ref_step_abs, NULL }, npu__ref_finish_first, { NPU__REF_TERM(size), 0 }
    };
    static const npu__ref_statistic two = {
        0.0, { npu__ref_step_squares, NULL }, npu__ref_finish_root, { NPU__REF_TERM(square), 0 }
    };
    static const npu__ref_statistic most = {
        0.0, { npu__ref_step_max_abs, NULL }, npu__ref_finish_first, { 0, 0 }
    };
    static const npu__ref_statistic least = {
        (double)INFINITY, { npu__ref_step_min_abs, NULL }, npu__ref_finish_first, { 0, 0 }
    };
    static const npu__ref_statistic other = {
        0.0, { npu__ref_step_powers, NULL }, npu__ref_finish_power, { 0, 0 }
    };
    if (isinf(p)) {
        return p > 0.0 ? &most : &least;
    }
    return p == 0.0 ? &zero : p == 1.0 ? &one : p == 2.0 ? &two : &other;
}

typedef struct npu__ref_statistics {
    npu__ref_reduction r;
    const npu__ref_statistic *statistic;
    double p;
} npu__ref_statistics;

/* The statistic of a kind; *p is set where it has a number. */
static const npu__ref_statistic *npu__ref_statistic_of(const npu_op_info *op, double *p)
{
    static const npu__ref_statistic any = {
        0.0, { npu__ref_step_any, NULL }, npu__ref_finish_any, { NPU__REF_TERM(nonzero), 0 }
    };
    static const npu__ref_statistic all = {
        1.0, { npu__ref_step_all, NULL }, npu__ref_finish_all, { 0, NPU__REF_TERM(zero) }
    };
    static const npu__ref_statistic count = {
        0.0, { npu__ref_step_count, NULL }, npu__ref_finish_first, { NPU__REF_TERM(nonzero), 0 }
    };
    static const npu__ref_statistic nansum = {
        0.0, { npu__ref_step_present, NULL }, npu__ref_finish_first, { NPU__REF_TERM(present), 0 }
    };
    static const npu__ref_statistic nanmean = {
        0.0, { npu__ref_step_present, NULL }, npu__ref_finish_mean, { NPU__REF_TERM(present), NPU__REF_TERM(number) }
    };
    static const npu__ref_statistic logsumexp = {
        -(double)INFINITY, { npu__ref_step_max, npu__ref_step_exp }, npu__ref_finish_logsumexp,
        { NPU__REF_TERM_MAX, NPU__REF_TERM(exp) }
    };
    static const npu__ref_statistic variance = {
        0.0, { npu__ref_step_sum, npu__ref_step_deviations }, npu__ref_finish_variance,
        { NPU__REF_TERM(value), NPU__REF_TERM(deviation) }
    };
    static const npu__ref_statistic deviation = {
        0.0, { npu__ref_step_sum, npu__ref_step_deviations }, npu__ref_finish_deviation,
        { NPU__REF_TERM(value), NPU__REF_TERM(deviation) }
    };
    switch (op->kind) {
    case NPU_ATEN_ANY: case NPU_ATEN_ANY_DIM: case NPU_ATEN_ANY_DIMS: return &any;
    case NPU_ATEN_ALL: case NPU_ATEN_ALL_DIM: case NPU_ATEN_ALL_DIMS: return &all;
    case NPU_ATEN_COUNT_NONZERO: case NPU_ATEN_COUNT_NONZERO_DIM_INTLIST: return &count;
    case NPU_ATEN_NANSUM: return &nansum;
    case NPU_ATEN_NANMEAN: return &nanmean;
    case NPU_ATEN_LOGSUMEXP: return &logsumexp;
    case NPU_ATEN_LINALG_VECTOR_NORM: case NPU_ATEN_NORM_SCALAR: case NPU_ATEN_NORM_SCALAROPT_DIM:
    case NPU_ATEN_FROBENIUS_NORM_DIM: case NPU_ATEN_LINALG_NORM: case NPU_ATEN_LINALG_NORM_ORD_STR:
    case NPU_ATEN_LINALG_MATRIX_NORM_STR_ORD:
        *p = npu_scalar_value(npu_op_scalar(op, npu_op_arg(op, "ord") ? "ord" : "p", npu_scalar_int(2)));
        return npu__ref_norm_statistic(*p);
    default: break;
    }
    *p = npu_op_arg(op, "unbiased") ? (double)npu_op_int(op, "unbiased", 1)
                                    : npu_scalar_value(npu_op_scalar(op, "correction", npu_scalar_int(1)));
    return op->kind >= NPU_ATEN_STD && op->kind != NPU_ATEN_VAR_MEAN && op->kind != NPU_ATEN_VAR_MEAN_DIM &&
                   op->kind != NPU_ATEN_VAR_MEAN_CORRECTION ? &deviation : &variance;
}

static npu_status npu__ref_statistic_prepare(npu_prepare *p)
{
    npu__ref_statistics *s = (npu__ref_statistics *)npu_prepare_alloc(p, sizeof *s);
    bool is_reduced[NPU_MAX_RANK],
        by_dims = p->op->kind == NPU_ATEN_ANY_DIMS || p->op->kind == NPU_ATEN_ALL_DIMS;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->statistic = npu__ref_statistic_of(p->op, &s->p);
    npu__ref_reduced_dims(p->op, p->in[0].rank, is_reduced);
    if (by_dims && npu_op_has(p->op, "dim") && npu_op_list_len(p->op, "dim") == 0) {
        memset(is_reduced, 0, sizeof is_reduced);
    }
    npu__ref_collapse(&s->r, &p->in[0], is_reduced);
    p->state = s;
    p->parts = npu__ref_item_parts(s->r.kept.len, s->r.reduced.len);
    return NPU_OK;
}

/* One pass over the elements of result o. */
static void npu__ref_statistic_pass(const npu_launch *l, npu__ref_sums *sums, int pass, size_t o)
{
    const npu__ref_statistics *s = (const npu__ref_statistics *)l->state;
    const npu__ref_dim_group *reduced = &s->r.reduced;
    size_t run = reduced->rank ? (size_t)reduced->dims[0] : 1;
    int64_t stride = reduced->rank ? reduced->strides[0] : 1, base = npu__ref_group_offset(&s->r.kept, 0, o);
    double strip[NPU__STRIP];
    for (size_t i = 0; i < reduced->len; i += run) {
        int64_t first = base + npu__ref_group_offset(reduced, 1, i / run);
        for (size_t j = 0; j < run; j += NPU__STRIP) {
            size_t n = run - j < NPU__STRIP ? run - j : NPU__STRIP;
            npu__ref_load_f64(strip, l->x[0], l->in[0].dtype, first + (int64_t)j * stride, stride, n);
            s->statistic->passes[pass](sums, strip, n);
        }
    }
}

/* A second result is the mean. */
/* The mean beside a variance is torch's running one: an infinity makes it NaN when elements follow. */
static double npu__ref_running_mean(const npu_launch *l, const npu__ref_reduction *r, size_t o, double mean)
{
    int64_t base = npu__ref_group_offset(&r->kept, 0, o);
    for (size_t i = 0; isinf(mean) && i + 1 < r->reduced.len; i++) {
        double e;
        npu__ref_load_f64(&e, l->x[0], l->in[0].dtype, base + npu__ref_group_offset(&r->reduced, 0, i), 1, 1);
        mean = isinf(e) ? (double)NAN : mean;
    }
    return mean;
}

/* The sums of result o, both passes in double. */
static npu__ref_sums npu__ref_statistic_sums(const npu_launch *l, size_t o)
{
    const npu__ref_statistics *s = (const npu__ref_statistics *)l->state;
    npu__ref_sums sums = { s->statistic->start, 0.0, s->p, (double)s->r.reduced.len };
    npu__ref_statistic_pass(l, &sums, 0, o);
    if (s->statistic->passes[1]) {
        npu__ref_statistic_pass(l, &sums, 1, o);
    }
    return sums;
}

static void npu__ref_statistic_store(const npu_launch *l, size_t o, const npu__ref_sums *sums)
{
    const npu__ref_statistics *s = (const npu__ref_statistics *)l->state;
    double y[2] = { s->statistic->finish(sums), 0.0 };
    y[1] = l->num_out > 1 ? npu__ref_running_mean(l, &s->r, o, sums->first / sums->count) : 0.0;
    for (uint32_t i = 0; i < l->num_out; i++) {
        npu__ref_store_f64(l->y[i], l->out[i].dtype, (int64_t)o, 1, &y[i], 1);
    }
}

static npu_status npu__ref_statistic_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_statistics *s = (const npu__ref_statistics *)l->state;
    size_t begin, end;
    npu__ref_share(s->r.kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_sums sums = npu__ref_statistic_sums(l, o);
        npu__ref_statistic_store(l, o, &sums);
    }
    return NPU_OK;
}

/* What the terms of the second pass need of the first. */
static float npu__ref_statistic_number(const npu__ref_statistic *t, const npu__ref_sums *sums)
{
    return (float)(t->terms[0] == NPU__REF_TERM_MAX ? npu__ref_finite(sums->first) : sums->first / sums->count);
}

enum { NPU__REF_STATISTICS = NPU__REF_COLUMNS / 4 }; /* results at a time: what they need fits the stack */

/* The sums of `width` results from o, both passes in float. */
static void npu__ref_statistic_block_f32(const npu__ref_statistics *s, const npu_launch *l, size_t o, size_t width,
                                        npu__ref_sums *sums)
{
    float numbers[NPU__REF_STATISTICS] = { 0 };
    for (int i = 0; i < 2; i++) {
        uint32_t term = s->statistic->terms[i];
        npu__ref_pass pass = { &s->r, s->r.floats, term == NPU__REF_TERM_MAX ? NPU__MAX : NPU__SUM, term - 1 };
        double acc[NPU__REF_STATISTICS];
        for (size_t j = 0; j < width; j++) {
            acc[j] = i ? 0.0 : s->statistic->start;
            numbers[j] = i && width ? npu__ref_statistic_number(s->statistic, &sums[j]) : 0.0f;
        }
        if (term) {
            npu__ref_pass_columns(&pass, l, o, width, acc, numbers);
        }
        for (size_t j = 0; j < width; j++) {
            *(i ? &sums[j].second : &sums[j].first) = acc[j];
        }
    }
}

/* Squares leave the range of float long before their root does; then the sums say so, or are next to nothing. */
static bool npu__ref_statistic_fits(const npu__ref_statistic *t, const npu__ref_sums *sums)
{
    double x = t->terms[1] ? sums->second : sums->first;
    bool squares = t->terms[0] == NPU__REF_TERM(square) || t->terms[1] == NPU__REF_TERM(deviation);
    return !squares || (x <= DBL_MAX && x >= sums->count * 1e-30);
}

static npu_status npu__ref_statistic_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_statistics *s = (const npu__ref_statistics *)l->state;
    npu__ref_sums sums[NPU__REF_STATISTICS];
    size_t begin, end, width;
    npu__ref_share(s->r.kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o += width) {
        width = npu__ref_pass_width(&s->r, o, end);
        width = width < NPU__REF_COUNT(sums) ? width : NPU__REF_COUNT(sums);
        for (size_t j = 0; j < width; j++) {
            sums[j].p = s->p;
            sums[j].count = (double)s->r.reduced.len;
        }
        npu__ref_statistic_block_f32(s, l, o, width, sums);
        for (size_t j = 0; j < width; j++) {
            if (!npu__ref_statistic_fits(s->statistic, &sums[j])) {
                sums[j] = npu__ref_statistic_sums(l, o + j);
            }
            npu__ref_statistic_store(l, o + j, &sums[j]);
        }
    }
    return NPU_OK;
}

static npu_status npu__ref_statistic_prepare_f32(npu_prepare *p)
{
    npu_status status = npu__ref_statistic_prepare(p);
    if (!status) {
        npu__ref_pass_start(p, &((npu__ref_statistics *)p->state)->r);
    }
    return status;
}

/* Floats, or what is only asked for zeros: no number but a double becomes a zero in float. */
static bool npu__ref_statistic_supported_f32(const npu_op_info *op)
{
    double p = 0;
    const npu__ref_statistic *t = npu__ref_statistic_of(op, &p);
    uint32_t term = t->terms[0] ? t->terms[0] : t->terms[1];
    bool asks = term == NPU__REF_TERM(nonzero) || term == NPU__REF_TERM(zero);
    int cls = npu__ref_compute_class(op->in[0]->dtype);
    return term && (asks ? cls == NPU__F32 || cls == NPU__I64
                         : npu__ref_all_f32(op) && (op->num_out < 2 || op->out[1]->dtype == op->out[0]->dtype));
}

/* ---- norms of matrices: an extreme of sums along one dim, or what the singular values come to ---- */

typedef struct npu__ref_matrix_norm {
    npu__ref_dim_group kept;
    size_t n[2];      /* elements of a run, and runs: columns for order 1, rows for inf, else the fewer */
    int64_t steps[2]; /* between the elements of a run, between runs */
    double order;     /* 0 = nuclear */
    bool singular;    /* values, of runs in workspace */
    size_t part_bytes;
} npu__ref_matrix_norm;

/* The others are norms of all elements. */
static bool npu__ref_is_matrix_norm(const npu_op_info *op)
{
    uint32_t count = npu_op_has(op, "dim") ? npu_op_list_len(op, "dim") : op->in[0]->rank;
    bool is_word = npu_op_arg(op, "ord")->form == NPU_ARG_STR;
    return is_word ? npu_op_str_is(op, "ord", "nuc") : npu_op_has(op, "ord") && count == 2;
}

static npu_status npu__ref_matrix_norm_prepare(npu_prepare *p)
{
    npu__ref_matrix_norm *s = (npu__ref_matrix_norm *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    bool is_reduced[NPU_MAX_RANK] = { 0 }, turned;
    npu__ref_reduction r = { 0 };
    uint32_t axes[2];
    size_t bytes;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->order = npu_scalar_value(npu_op_scalar(p->op, "ord", npu_scalar_int(0)));
    for (uint32_t i = 0; i < 2; i++) {
        axes[i] = npu_op_has(p->op, "dim") ? npu__ref_axis(npu_op_int_at(p->op, "dim", i), x->rank) : i;
        is_reduced[axes[i]] = true;
    }
    npu__ref_collapse(&r, x, is_reduced);
    s->kept = r.kept;
    s->singular = fabs(s->order) != 1.0 && !isinf(s->order);
    turned = s->singular ? x->dims[axes[0]] < x->dims[axes[1]] : isinf(s->order);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t axis = axes[turned ? 1 - i : i];
        s->n[i] = (size_t)x->dims[axis];
        s->steps[i] = (int64_t)npu__ref_dims_len(x, axis + 1, x->rank);
    }
    if (!npu_size_mul(s->n[0] * sizeof(double), s->n[1], &bytes) || !npu_size_add(bytes, 63, &bytes)) {
        return NPU_ERR_OVERFLOW;
    }
    s->part_bytes = s->singular ? bytes / 64 * 64 : 0;
    p->state = s;
    p->parts = npu__ref_item_parts(s->kept.len, s->n[0] * s->n[1]);
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* Sum of the absolute elements of a run. */
static double npu__ref_run_sum(const npu_launch *l, const npu__ref_matrix_norm *s, int64_t first)
{
    npu__ref_sums sums = { 0.0, 0.0, 0.0, 0.0 };
    double strip[NPU__STRIP];
    for (size_t i = 0; i < s->n[0]; i += NPU__STRIP) {
        size_t n = s->n[0] - i < NPU__STRIP ? s->n[0] - i : NPU__STRIP;
        npu__ref_load_f64(strip, l->x[0], l->in[0].dtype, first + (int64_t)i * s->steps[0], s->steps[0], n);
        npu__ref_step_abs(&sums, strip, n);
    }
    return sums.first;
}

/* Turns two vectors in their plane until they are orthogonal. False where they are. */
static bool npu__ref_orthogonalize(double *a, double *b, size_t n)
{
    double aa = 0.0, bb = 0.0, ab = 0.0, zeta, t, c;
    for (size_t i = 0; i < n; i++) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    if (!(fabs(ab) > DBL_EPSILON * sqrt((double)n) * sqrt(aa) * sqrt(bb))) {
        return false;
    }
    zeta = (bb - aa) / (2.0 * ab);
    t = copysign(1.0, zeta) / (fabs(zeta) + hypot(1.0, zeta));
    c = 1.0 / hypot(1.0, t);
    for (size_t i = 0; i < n; i++) {
        double x = a[i];
        a[i] = c * (x - t * b[i]);
        b[i] = c * (b[i] + t * x);
    }
    return true;
}

/* One-sided Jacobi: runs become orthogonal; their lengths are the singular values then. Ten sweeps are many,
   the limit is for numbers that never settle. */
static void npu__ref_jacobi(double *a, size_t n, size_t runs)
{
    bool turned = true;
    for (int sweep = 0; sweep < 64 && turned; sweep++) {
        turned = false;
        for (size_t i = 0; i < runs; i++) {
            for (size_t j = i + 1; j < runs; j++) {
                turned = npu__ref_orthogonalize(a + i * n, a + j * n, n) || turned;
            }
        }
    }
}

static double npu__ref_length(const double *x, size_t n)
{
    npu__ref_sums sums = { 0.0, 0.0, 0.0, 0.0 };
    npu__ref_step_squares(&sums, x, n);
    return sqrt(sums.first);
}

static npu_status npu__ref_matrix_norm_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_matrix_norm *s = (const npu__ref_matrix_norm *)l->state;
    double *a = (double *)(void *)((char *)l->workspace + part * s->part_bytes);
    size_t n = s->n[0], runs = s->n[1], begin, end;
    npu__ref_share(s->kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        int64_t first = npu__ref_group_offset(&s->kept, 0, o);
        double y = s->order < 0.0 ? (double)INFINITY : 0.0;
        for (size_t j = 0; j < runs && s->singular; j++) {
            npu__ref_load_f64(a + j * n, l->x[0], l->in[0].dtype, first + (int64_t)j * s->steps[1],
                              s->steps[0], n);
        }
        if (s->singular) {
            npu__ref_jacobi(a, n, runs);
        }
        for (size_t j = 0; j < runs; j++) {
            double size = s->singular ? npu__ref_length(a + j * n, n)
                                      : npu__ref_run_sum(l, s, first + (int64_t)j * s->steps[1]);
            y = s->order == 0.0  ? y + size
                : s->order < 0.0 ? NPU__REF_LEAST(y, size)
                                 : NPU__REF_MOST(y, size);
        }
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, &y, 1);
    }
    return NPU_OK;
}

/* Integers have no NaN, and do not fit doubles. */
static npu_status npu__ref_nansum_prepare(npu_prepare *p)
{
    return npu__ref_is_integer(p->out[0].dtype) ? npu__ref_reduce_prepare(p) : npu__ref_statistic_prepare(p);
}

static npu_status npu__ref_nansum_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    return npu__ref_is_integer(l->out[0].dtype) ? npu__ref_reduce_launch(l, part, parts)
                                                : npu__ref_statistic_launch(l, part, parts);
}

/* Minimum and maximum are results 0 and 1. */
static npu_status npu__ref_aminmax(const npu_launch *l, uint32_t part, uint32_t parts, npu__ref_launch_op_fn reduce)
{
    npu__ref_reduction r = *(const npu__ref_reduction *)l->state;
    npu_status status = NPU_OK;
    npu_launch one = *l;
    one.state = &r;
    one.num_out = 1;
    for (uint32_t i = 0; i < 2 && !status; i++) {
        r.fold = i ? NPU__MAX : NPU__MIN;
        one.y = l->y + i;
        one.out = l->out + i;
        status = reduce(&one, part, parts);
    }
    return status;
}

static npu_status npu__ref_aminmax_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    return npu__ref_aminmax(l, part, parts, npu__ref_reduce_launch);
}

static npu_status npu__ref_aminmax_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    return npu__ref_aminmax(l, part, parts, npu__ref_reduce_launch_f32);
}

static npu_status npu__ref_aminmax_launch_wide(const npu_launch *l, uint32_t part, uint32_t parts)
{
    return npu__ref_aminmax(l, part, parts, npu__ref_reduce_launch_wide);
}

/* ---- renorm: a norm per index of a dim, and what it is over the most ---- */

typedef struct npu__ref_renorm {
    npu__ref_statistics norm; /* first: npu__ref_statistic_pass looks there */
    double most;
} npu__ref_renorm;

static npu_status npu__ref_renorm_prepare(npu_prepare *p)
{
    npu__ref_renorm *s = (npu__ref_renorm *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    bool is_reduced[NPU_MAX_RANK];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        is_reduced[i] = i != npu__ref_axis(npu_op_int(p->op, "dim", 0), x->rank);
    }
    npu__ref_collapse(&s->norm.r, x, is_reduced);
    s->norm.p = npu_scalar_value(npu_op_scalar(p->op, "p", npu_scalar_int(2)));
    s->norm.statistic = npu__ref_norm_statistic(s->norm.p);
    s->most = npu_scalar_value(npu_op_scalar(p->op, "maxnorm", npu_scalar_int(0)));
    p->state = s;
    p->parts = npu__ref_item_parts(s->norm.r.kept.len, s->norm.r.reduced.len);
    return NPU_OK;
}

/* Elements of slice o times a factor. */
static void npu__ref_scale_slice(const npu_launch *l, const npu__ref_reduction *r, size_t o, double factor)
{
    size_t run = r->reduced.rank ? (size_t)r->reduced.dims[0] : 1;
    int64_t stride = r->reduced.rank ? r->reduced.strides[0] : 1, base = npu__ref_group_offset(&r->kept, 0, o);
    double strip[NPU__STRIP];
    for (size_t i = 0; i < r->reduced.len; i += run) {
        int64_t first = base + npu__ref_group_offset(&r->reduced, 1, i / run);
        for (size_t j = 0; j < run; j += NPU__STRIP) {
            size_t n = run - j < NPU__STRIP ? run - j : NPU__STRIP;
            int64_t at = first + (int64_t)j * stride;
            npu__ref_load_f64(strip, l->x[0], l->in[0].dtype, at, stride, n);
            for (size_t k = 0; k < n; k++) {
                strip[k] *= factor;
            }
            npu__ref_store_f64(l->y[0], l->out[0].dtype, at, stride, strip, n);
        }
    }
}

static npu_status npu__ref_renorm_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_renorm *s = (const npu__ref_renorm *)l->state;
    const npu__ref_statistic *norm = s->norm.statistic;
    size_t begin, end;
    npu__ref_share(s->norm.r.kept.len, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_sums sums = { norm->start, 0.0, s->norm.p, (double)s->norm.r.reduced.len };
        double length;
        npu__ref_statistic_pass(l, &sums, 0, o);
        length = norm->finish(&sums);
        npu__ref_scale_slice(l, &s->norm.r, o, length > s->most ? s->most / (length + 1e-7) : 1.0);
    }
    return NPU_OK;
}

static npu_status npu__ref_trace_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *x = &l->in[0];
    bool integer = npu__ref_is_integer(l->out[0].dtype);
    npu__ref_number sum = npu__ref_fold_start(NPU__SUM);
    (void)part;
    (void)parts;
    npu__ref_fold(&sum, NPU__SUM, integer, l->x[0], x->dtype, 0, x->dims[1] + 1,
                  (size_t)npu__ref_min(x->dims[0], x->dims[1]));
    npu__ref_store_number(l->y[0], l->out[0].dtype, 0, integer, &sum);
    return NPU_OK;
}

/* ---- along one dim: x is [outer, n, inner] ---- */

typedef struct npu__ref_along {
    size_t outer, n, inner;
    bool log, safe, least; /* safe: the softmax of a row of -inf is 0; least: minimum, not maximum */
    const npu__ref_floats *floats; /* NULL = in double */
} npu__ref_along;

/* All dims as one, or those before, at and after an axis. */
static void npu__ref_along_init(npu__ref_along *a, const npu_tensor *x, bool all, int64_t dim)
{
    if (x->rank == 0 || all) {
        a->outer = a->inner = 1;
        a->n = (size_t)npu__ref_len(x);
    } else {
        uint32_t axis = npu__ref_axis(dim, x->rank);
        a->outer = npu__ref_dims_len(x, 0, axis);
        a->n = (size_t)x->dims[axis];
        a->inner = npu__ref_dims_len(x, axis + 1, x->rank);
    }
}

static npu_status npu__ref_along_prepare(npu_prepare *p)
{
    npu__ref_along *a = (npu__ref_along *)npu_prepare_alloc(p, sizeof *a);
    const npu_tensor *x = &p->in[0];
    const npu_bound_arg *dim = npu_op_arg(p->op, "dim");
    if (!a) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_along_init(a, x, dim && dim->form == NPU_ARG_NONE,
                        npu_op_int(p->op, "dim", -1)); /* argmax of all */
    a->log = p->op->kind == NPU_ATEN_LOG_SOFTMAX || p->op->kind == NPU_ATEN_LOG_SOFTMAX_RAW ||
             p->op->kind == NPU_ATEN_LOG_SOFTMAX_BACKWARD_DATA;
    a->safe = p->op->kind == NPU_ATEN_SAFE_SOFTMAX;
    a->least = p->op->kind == NPU_ATEN_ARGMIN || p->op->kind == NPU_ATEN_MIN_DIM;
    p->state = a;
    p->parts = npu__ref_item_parts(a->outer * a->inner, a->n);
    return NPU_OK;
}

static inline size_t npu__ref_along_first(const npu__ref_along *a, size_t o)
{
    return o / a->inner * a->n * a->inner + o % a->inner;
}

/* Where the maximum of strip[0 .. n-1] is first, if it beats *best, which it becomes; else n. The first NaN
   beats all. In most blocks nothing does, which one look without branches tells. */
static size_t npu__ref_arg_extreme_f64(double *best, const double *strip, size_t n)
{
    size_t index = n;
    for (size_t i = 0; i < n && !isnan(*best); i += 16) {
        size_t end = n - i < 16 ? n : i + 16;
        int any = 0;
        for (size_t j = i; j < end; j++) {
            any |= !(strip[j] <= *best);
        }
        for (size_t j = i; j < end && any; j++) {
            if (strip[j] > *best || (isnan(strip[j]) && !isnan(*best))) {
                *best = strip[j];
                index = j;
            }
        }
    }
    return index;
}

static size_t npu__ref_arg_extreme_i64(int64_t *best, const int64_t *strip, size_t n)
{
    size_t index = n;
    for (size_t i = 0; i < n; i++) {
        if (strip[i] > *best) {
            *best = strip[i];
            index = i;
        }
    }
    return index;
}

/* Turns the order of a strip around: no two integers change their places, NaN stays NaN. */
static void npu__ref_negate_order(bool integer, npu__ref_strip *strip, size_t n)
{
    for (size_t i = 0; i < n && integer; i++) {
        strip->i64[i] = ~strip->i64[i];
    }
    for (size_t i = 0; i < n && !integer; i++) {
        strip->f64[i] = -strip->f64[i];
    }
}

/* The maximum (or minimum) of a row from `first`, and its index. */
static npu__ref_number npu__ref_arg_max(const npu_launch *l, size_t first, int64_t *index)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    size_t n = a->n, stride = a->inner;
    bool integer = npu__ref_is_integer(l->in[0].dtype);
    npu__ref_number best = npu__ref_fold_start(NPU__MAX);
    npu__ref_strip strip;
    *index = 0;
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP, at;
        npu__ref_load_class(integer ? NPU__I64 : NPU__F64, &strip, l->x[0], l->in[0].dtype,
                            (int64_t)(first + i * stride), (int64_t)stride, len);
        if (a->least) {
            npu__ref_negate_order(integer, &strip, len);
        }
        at = integer ? npu__ref_arg_extreme_i64(&best.i, strip.i64, len)
                     : npu__ref_arg_extreme_f64(&best.f, strip.f64, len);
        *index = at < len ? (int64_t)(i + at) : *index;
    }
    if (a->least) {
        best.i = ~best.i;
        best.f = -best.f;
    }
    return best;
}

/* argmax has one result, max.dim two: values, then indices. */
static npu_status npu__ref_arg_max_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    uint32_t last = l->num_out - 1;
    bool integer = npu__ref_is_integer(l->in[0].dtype);
    size_t begin, end;
    npu__ref_share(a->outer * a->inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        int64_t index;
        npu__ref_number best = npu__ref_arg_max(l, npu__ref_along_first(a, o), &index);
        npu__ref_store_i64(l->y[last], l->out[last].dtype, (int64_t)o, 1, &index, 1);
        if (last) {
            npu__ref_store_number(l->y[0], l->out[0].dtype, o, integer, &best);
        }
    }
    return NPU_OK;
}

/* What softmax subtracts and divides by. */
typedef struct npu__ref_softmax {
    double max, sum;
} npu__ref_softmax;

/* `exps`, if any, gets the exponentials where the elements lie in x. */
static npu__ref_softmax npu__ref_softmax_sum(const void *x, uint32_t dtype, size_t first, size_t n,
                                             size_t stride, double *exps)
{
    npu__ref_number max = npu__ref_fold_start(NPU__MAX);
    npu__ref_softmax row = { 0.0, 0.0 };
    double strip[NPU__STRIP];
    npu__ref_fold(&max, NPU__MAX, false, x, dtype, (int64_t)first, (int64_t)stride, n);
    row.max = max.f;
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        npu__ref_load_f64(strip, x, dtype, (int64_t)(first + i * stride), (int64_t)stride, len);
        for (size_t j = 0; j < len; j++) {
            strip[j] = exp(strip[j] - row.max);
            row.sum += strip[j];
        }
        if (exps) {
            npu__ref_store_f64(exps, NPU_F64, (int64_t)(first + i * stride), (int64_t)stride, strip, len);
        }
    }
    return row;
}

/* Results in double keep the exponentials, which are most of the work. */
static void npu__ref_softmax_run(const npu_launch *l, void *y, uint32_t y_dtype, size_t first, size_t n,
                                 size_t stride, bool log_of, bool safe)
{
    double *exps = !log_of && y_dtype == NPU_F64 ? (double *)y : NULL;
    npu__ref_softmax row = npu__ref_softmax_sum(l->x[0], l->in[0].dtype, first, n, stride, exps);
    double strip[NPU__STRIP], log_sum = log(row.sum);
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        int64_t at = (int64_t)(first + i * stride);
        npu__ref_load_f64(strip, exps ? exps : l->x[0], exps ? NPU_F64 : l->in[0].dtype, at, (int64_t)stride, len);
        for (size_t j = 0; j < len; j++) {
            double d = strip[j] - row.max, e = exps ? strip[j] : log_of ? 0.0 : exp(d);
            strip[j] = safe && row.max == -(double)INFINITY ? 0.0 : log_of ? d - log_sum : e / row.sum;
        }
        npu__ref_store_f64(y, y_dtype, at, (int64_t)stride, strip, len);
    }
}

static npu_status npu__ref_softmax_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    size_t begin, end;
    npu__ref_share(a->outer * a->inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_softmax_run(l, l->y[0], l->out[0].dtype, npu__ref_along_first(a, o), a->n, a->inner, a->log,
                             a->safe);
    }
    return NPU_OK;
}

/* ---- the same in float: rows of neighbours one by one, other layouts a strip of columns at a time ---- */

/* Items are rows, or blocks of up to a strip of columns. */
static inline size_t npu__ref_along_blocks(const npu__ref_along *a)
{
    return (a->inner + NPU__STRIP - 1) / NPU__STRIP;
}

static npu_status npu__ref_along_prepare_f32(npu_prepare *p)
{
    npu_status status = npu__ref_along_prepare(p);
    npu__ref_along *a = (npu__ref_along *)p->state;
    if (!status) {
        size_t width = a->inner < NPU__STRIP ? a->inner : NPU__STRIP;
        a->floats = &npu__ref_floats_of[p->isa];
        p->parts = npu__ref_item_parts(a->outer * npu__ref_along_blocks(a), a->n * width);
    }
    return status;
}

/* First element of item i, and in *width its columns. */
static size_t npu__ref_along_item(const npu__ref_along *a, size_t i, size_t *width)
{
    size_t blocks = npu__ref_along_blocks(a), column = i % blocks * NPU__STRIP;
    *width = a->inner - column < NPU__STRIP ? a->inner - column : NPU__STRIP;
    return i / blocks * a->n * a->inner + column;
}

static void npu__ref_arg_max_columns_f32(const npu_launch *l, const npu__ref_along *a, size_t first, size_t o,
                                         size_t width)
{
    const float *x = (const float *)l->x[0] + first;
    uint32_t last = l->num_out - 1;
    float best[NPU__STRIP];
    int32_t index[NPU__STRIP];
    memcpy(best, x, width * sizeof *best);
    memset(index, 0, sizeof index);
    for (size_t row = 1; row < a->n; row++) {
        a->floats->arg_extreme_rows(a->least, best, index, x + row * a->inner, width, (int32_t)row);
    }
    for (size_t j = 0; j < width; j++) {
        ((int64_t *)l->y[last])[o + j] = index[j];
    }
    if (last) {
        memcpy((float *)l->y[0] + o, best, width * sizeof *best);
    }
}

static npu_status npu__ref_arg_max_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    uint32_t last = l->num_out - 1;
    size_t begin, end, width;
    npu__ref_share(a->outer * npu__ref_along_blocks(a), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t first = npu__ref_along_item(a, i, &width);
        const float *x = (const float *)l->x[0] + first;
        if (a->inner > 1) {
            size_t o = first / (a->n * a->inner) * a->inner + first % a->inner;
            npu__ref_arg_max_columns_f32(l, a, first, o, width);
            continue;
        }
        double max = npu__ref_fold_start(a->least ? NPU__MIN : NPU__MAX).f;
        a->floats->fold_runs(a->least ? NPU__MIN : NPU__MAX, &max, x, a->n, 1, 0);
        ((int64_t *)l->y[last])[i] = (int64_t)a->floats->find(x, a->n, (float)max);
        if (last) {
            ((float *)l->y[0])[i] = (float)max;
        }
    }
    return NPU_OK;
}

/* f32 in memory, and few enough for the indices of columns. */
static bool npu__ref_arg_max_supported_f32(const npu_op_info *op)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < op->in[0]->rank; i++) {
        most = op->in[0]->dims[i] > most ? op->in[0]->dims[i] : most;
    }
    return op->in[0]->dtype == NPU_F32 && most < INT32_MAX;
}

static void npu__ref_softmax_row_f32(const npu_launch *l, const npu__ref_along *a, size_t first)
{
    const npu__ref_floats *f = a->floats;
    uint32_t in = l->in[0].dtype, out = l->out[0].dtype;
    float strip[NPU__REF_FLOAT_STRIP], exps[NPU__REF_FLOAT_STRIP], max = -INFINITY;
    double sum = 0.0, most = npu__ref_fold_start(NPU__MAX).f;
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < a->n; i += NPU__REF_FLOAT_STRIP) {
            size_t n = a->n - i < NPU__REF_FLOAT_STRIP ? a->n - i : NPU__REF_FLOAT_STRIP;
            int64_t at = (int64_t)(first + i);
            const float *x = npu__ref_floats_at(f, strip, l->x[0], in, at, 1, n);
            float *y = npu__ref_floats_to(strip, l->y[0], out, at);
            if (pass == 0) {
                f->fold_runs(NPU__MAX, &most, x, n, 1, 0);
                max = (float)most;
            } else if (pass == 1) {
                sum += f->exp_sum(exps, x, n, max);
            } else if (a->log) {
                f->affine(y, x, n, max, 1.0f, (float)-log(sum));
                npu__ref_floats_put(f, l->y[0], out, at, y, n);
            } else {
                if (a->n > NPU__REF_FLOAT_STRIP) { /* else they are still there */
                    f->exp_sum(exps, x, n, max);
                }
                f->affine(y, exps, n, 0.0f, (float)(1.0 / sum), 0.0f);
                npu__ref_floats_put(f, l->y[0], out, at, y, n);
            }
        }
    }
}

/* Columns of [n, inner]: the maximum of each, the sum of its exponentials, the results. Between the last two,
   sums become what the results take: factors or, for the logarithm, terms. */
static void npu__ref_softmax_columns_f32(const npu_launch *l, const npu__ref_along *a, size_t first,
                                         size_t width)
{
    const npu__ref_floats *f = a->floats;
    uint32_t in = l->in[0].dtype, out = l->out[0].dtype;
    float strip[NPU__STRIP], max[NPU__STRIP], sum[NPU__STRIP], e[NPU__STRIP];
    for (size_t j = 0; j < width; j++) {
        max[j] = -INFINITY;
        sum[j] = 0.0f;
    }
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < a->n; i++) {
            int64_t at = (int64_t)(first + i * a->inner);
            float *y = npu__ref_floats_to(e, l->y[0], out, at);
            /* exponentials of an earlier pass are still in the result, which may be the operand's memory */
            bool is_kept = pass == 2 && y != e && !a->log;
            const float *x = is_kept ? y : npu__ref_floats_at(f, strip, l->x[0], in, at, 1, width);
            if (pass == 0) {
                f->fold_rows(NPU__MAX, max, x, width, 1, 1, 0);
                continue;
            }
            if (!a->log && !is_kept) {
                f->exp_each(y, x, max, width);
            } else if (pass == 1) {
                f->adds[NPU__REF_TERM_exp](sum, x, width, max, 1, 0);
            }
            if (pass == 1 && !a->log) {
                f->fold_rows(NPU__SUM, sum, y, width, 1, 1, 0);
            } else if (pass == 2 && a->log) {
                f->minus(y, x, max, sum, width);
            } else if (pass == 2) {
                f->times(y, y, sum, width);
            }
            if (pass == 2) {
                npu__ref_floats_put(f, l->y[0], out, at, y, width);
            }
        }
        for (size_t j = 0; j < width && pass == 1; j++) {
            sum[j] = a->log ? logf(sum[j]) : 1.0f / sum[j];
        }
    }
}

static npu_status npu__ref_softmax_launch_f32(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    size_t begin, end, width;
    npu__ref_share(a->outer * npu__ref_along_blocks(a), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t first = npu__ref_along_item(a, i, &width);
        if (a->inner == 1) {
            npu__ref_softmax_row_f32(l, a, first);
        } else {
            npu__ref_softmax_columns_f32(l, a, first, width);
        }
    }
    return NPU_OK;
}

/* ---- the variant "wide" of softmax: doubles, rows at a time ----

   Where elements that belong together are neighbours, a row is a few of them, and its lanes are joined. */

static bool npu__ref_softmax_supported_wide(const npu_op_info *op)
{
    return op->in[0]->dtype == NPU_F64 && op->out[0]->dtype == NPU_F64;
}

/* What it takes of the elementwise loops for double. */
typedef struct npu__ref_softmax_loops {
    npu__ref_map_fn sub, exp, log, div;
} npu__ref_softmax_loops;

#define NPU__REF_SOFTMAX_base \
    { npu__ref_map_sub_f64, npu__ref_map_exp_f64, npu__ref_map_log_f64, npu__ref_map_div_f64 }
#define NPU__REF_SOFTMAX_avx2 \
    { npu__ref_map_sub_f64_avx2, npu__ref_map_exp_f64_avx2, npu__ref_map_log_f64_avx2, npu__ref_map_div_f64_avx2 }
static const npu__ref_softmax_loops npu__ref_softmax_loops_of[] = {
#define NPU_X(set, narrow, wide) NPU__REF_SOFTMAX_##narrow,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

static void npu__ref_map_two(npu__ref_map_fn fn, double *y, const double *a, const double *b, size_t n)
{
    const void *x[NPU__REF_OPERANDS] = { NULL };
    x[0] = x[2] = x[3] = a;
    x[1] = b;
    fn(y, x, n);
}

/* `lanes` columns of n elements in rows that are `stride` apart; in lines, all n are one softmax. */
static void npu__ref_softmax_wide(uint32_t isa, bool is_log, const double *x, double *y, size_t lanes, size_t n, size_t stride,
                                  bool in_line)
{
    const npu__ref_wide *w = &npu__ref_wide_of[isa][0];
    const npu__ref_softmax_loops *f = &npu__ref_softmax_loops_of[isa];
    npu__ref_wide_strip max, sum, strip;
    size_t rows = in_line ? n / lanes : n, tail = in_line ? n % lanes : 0;
    npu__ref_wide_fill(w, &max, NPU__MAX, lanes);
    npu__ref_wide_fill(w, &sum, NPU__SUM, lanes);
    w->rows(NPU__MAX, &max, x, lanes, rows, (int64_t)stride);
    w->rows(NPU__MAX, &max, x + rows * stride, tail, 1, 0);
    if (in_line) {
        npu__ref_wide_join(w, NPU__MAX, &max, lanes);
        npu__ref_repeat(&max, sizeof max.f64[0], lanes);
    }
    for (size_t i = 0; i < rows + (tail > 0); i++) {
        double *e = is_log ? strip.f64 : y + i * stride;
        size_t len = i < rows ? lanes : tail;
        npu__ref_map_two(f->sub, e, x + i * stride, max.f64, len);
        npu__ref_map_two(f->exp, e, e, e, len);
        w->rows(NPU__SUM, &sum, e, len, 1, 0);
    }
    if (in_line) {
        npu__ref_wide_join(w, NPU__SUM, &sum, lanes);
        npu__ref_repeat(&sum, sizeof sum.f64[0], lanes);
    }
    if (is_log) {
        npu__ref_map_two(f->log, sum.f64, sum.f64, sum.f64, lanes);
    }
    for (size_t i = 0; i < rows + (tail > 0); i++) {
        double *to = y + i * stride;
        size_t len = i < rows ? lanes : tail;
        if (is_log) {
            npu__ref_map_two(f->sub, to, x + i * stride, max.f64, len);
        }
        npu__ref_map_two(is_log ? f->sub : f->div, to, to, sum.f64, len);
    }
}

static npu_status npu__ref_softmax_launch_wide(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    size_t begin, end, width;
    npu__ref_share(a->outer * npu__ref_along_blocks(a), part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t first = npu__ref_along_item(a, i, &width);
        bool in_line = a->inner == 1;
        npu__ref_softmax_wide(l->isa, a->log, (const double *)l->x[0] + first, (double *)l->y[0] + first,
                              in_line ? NPU__REF_WIDE_LANES : width, a->n, in_line ? NPU__REF_WIDE_LANES : a->inner,
                              in_line);
    }
    return NPU_OK;
}

#define NPU__REF_SOFTMAX_KERNELS(kind)                                                             \
    NPU__REF_ROW(kind, "wide", 2, npu__ref_softmax_supported_wide, npu__ref_along_prepare_f32,      \
                npu__ref_softmax_launch_wide),                                                     \
    NPU__REF_F32_KERNELS(kind, npu__ref_all_f32, along, softmax_launch, softmax_launch_f32)

#define NPU__REF_WIDE_KERNEL(kind, launch) \
    NPU__REF_ROW_TAKES(kind, "wide", 1, npu__ref_wide_supported, npu__ref_reduce_prepare_wide, launch, \
                      npu__ref_reduce_takes)
#define NPU__REF_REDUCE_KERNELS(kind) \
    NPU__REF_WIDE_KERNEL(kind, npu__ref_reduce_launch_wide), \
    NPU__REF_F32_KERNELS_TAKE(kind, npu__ref_all_f32, reduce, reduce_launch, reduce_launch_f32, npu__ref_reduce_takes)
#define NPU__REF_ARG_MAX_KERNELS(kind) \
    NPU__REF_F32_KERNELS(kind, npu__ref_arg_max_supported_f32, along, arg_max_launch, arg_max_launch_f32)

#define NPU__REF_STATISTIC_KERNEL(kind)                                                            \
    NPU__REF_F32_KERNELS_TAKE(kind, npu__ref_statistic_supported_f32, statistic, statistic_launch, \
                              statistic_launch_f32, npu__ref_reduce_takes)

static const npu_kernel npu__ref_kernels_reduction[] = {
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_MEAN),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_MEAN_DIM),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_SUM),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_SUM_DIM),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_AMAX),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_AMIN),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_MAX),
    NPU__REF_ARG_MAX_KERNELS(NPU_ATEN_MAX_DIM),
    NPU__REF_ARG_MAX_KERNELS(NPU_ATEN_ARGMAX),
    NPU__REF_SOFTMAX_KERNELS(NPU_ATEN_SOFTMAX),
    NPU__REF_SOFTMAX_KERNELS(NPU_ATEN_LOG_SOFTMAX),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ANY),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ANY_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ANY_DIMS),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ALL),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ALL_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_ALL_DIMS),
    NPU__REF_ARG_MAX_KERNELS(NPU_ATEN_ARGMIN),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_MIN),
    NPU__REF_ARG_MAX_KERNELS(NPU_ATEN_MIN_DIM),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_PROD),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_PROD_DIM_INT),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR_CORRECTION),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD_CORRECTION),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR_MEAN),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR_MEAN_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_VAR_MEAN_CORRECTION),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD_MEAN),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD_MEAN_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_STD_MEAN_CORRECTION),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_LOGSUMEXP),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_LINALG_VECTOR_NORM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_NORM_SCALAR),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_NORM_SCALAROPT_DIM),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_FROBENIUS_NORM_DIM),
    NPU__REF_SOFTMAX_KERNELS(NPU_ATEN_SOFTMAX_RAW),
    NPU__REF_SOFTMAX_KERNELS(NPU_ATEN_LOG_SOFTMAX_RAW),
    NPU__REF_ROW(NPU_ATEN_SAFE_SOFTMAX, "plain", 0, NULL, npu__ref_along_prepare, npu__ref_softmax_launch),
    NPU__REF_ROW(NPU_ATEN_NANSUM, "f32", 1, npu__ref_statistic_supported_f32, npu__ref_statistic_prepare_f32,
                npu__ref_statistic_launch_f32),
    NPU__REF_ROW(NPU_ATEN_NANSUM, "plain", 0, NULL, npu__ref_nansum_prepare, npu__ref_nansum_launch),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_NANMEAN),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_COUNT_NONZERO),
    NPU__REF_STATISTIC_KERNEL(NPU_ATEN_COUNT_NONZERO_DIM_INTLIST),
    NPU__REF_WIDE_KERNEL(NPU_ATEN_AMINMAX, npu__ref_aminmax_launch_wide),
    NPU__REF_F32_KERNELS_TAKE(NPU_ATEN_AMINMAX, npu__ref_all_f32, reduce, aminmax_launch, aminmax_launch_f32,
                              npu__ref_reduce_takes),
    NPU__REF_REDUCE_KERNELS(NPU_ATEN_SUM_TO_SIZE),
    NPU__REF_ROW(NPU_ATEN_TRACE, "plain", 0, NULL, NULL, npu__ref_trace_launch),
    NPU__REF_ROW(NPU_ATEN_RENORM, "plain", 0, NULL, npu__ref_renorm_prepare, npu__ref_renorm_launch)
};

static bool npu__ref_vector_norm_supported_f32(const npu_op_info *op)
{
    return !npu__ref_is_matrix_norm(op) && npu__ref_statistic_supported_f32(op);
}

#define NPU__REF_MATRIX_NORM_KERNELS(kind)                                                         \
    NPU__REF_ROW(kind, "f32", 1, npu__ref_vector_norm_supported_f32, npu__ref_statistic_prepare_f32, \
                npu__ref_statistic_launch_f32),                                                    \
    NPU__REF_ROW(kind, "plain", 0, npu__ref_is_matrix_norm, npu__ref_matrix_norm_prepare,           \
                npu__ref_matrix_norm_launch),                                                      \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_statistic_prepare, npu__ref_statistic_launch)

static const npu_kernel npu__ref_kernels_norm[] = {
    NPU__REF_ROW(NPU_ATEN_LINALG_MATRIX_NORM, "plain", 0, NULL, npu__ref_matrix_norm_prepare,
      npu__ref_matrix_norm_launch),
    NPU__REF_MATRIX_NORM_KERNELS(NPU_ATEN_LINALG_MATRIX_NORM_STR_ORD),
    NPU__REF_MATRIX_NORM_KERNELS(NPU_ATEN_LINALG_NORM),
    NPU__REF_MATRIX_NORM_KERNELS(NPU_ATEN_LINALG_NORM_ORD_STR)
};

/* ---- order: scans and sorts along one dim ---- */

typedef struct npu__ref_scan {
    npu__ref_number value;
    int64_t index;
} npu__ref_scan;

/* log(exp(a) + exp(b)). */
static double npu__ref_log_add_exp(double a, double b)
{
    double max = NPU__REF_MOST(a, b);
    return isinf(max) || isnan(max) ? max : max + log1p(exp((a < b ? a : b) - max));
}

/* Replaces each element by what has run up to it. */
static void npu__ref_scan_f64(uint32_t kind, double *carry, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *carry = kind == NPU_ATEN_CUMSUM    ? *carry + x[i]
                 : kind == NPU_ATEN_CUMPROD ? *carry * x[i]
                                            : npu__ref_log_add_exp(*carry, x[i]);
        x[i] = *carry;
    }
}

static void npu__ref_scan_i64(uint32_t kind, int64_t *carry, int64_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *carry = kind == NPU_ATEN_CUMSUM ? NPU__REF_WRAP(*carry, +, x[i]) : NPU__REF_WRAP(*carry, *, x[i]);
        x[i] = *carry;
    }
}

typedef struct npu__ref_order {
    npu__ref_along along;
    uint32_t kind;
    int64_t k;
    bool descending;
    double q;           /* of the quantile kinds without a tensor */
    const char *way;    /* between two elements: linear, lower, higher, midpoint, nearest */
    const npu__ref_wide *wide; /* of the variant "wide" */
} npu__ref_order;

static npu_status npu__ref_order_prepare(npu_prepare *p)
{
    npu__ref_order *s = (npu__ref_order *)npu_prepare_alloc(p, sizeof *s);
    const npu_op_info *op = p->op;
    const npu_bound_arg *dim = npu_op_arg(op, "dim");
    bool all = (!dim || dim->form == NPU_ARG_NONE) && op->kind != NPU_ATEN_MSORT;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_along_init(&s->along, &p->in[0], all, dim ? npu_op_int(op, "dim", -1) : 0);
    s->kind = op->kind;
    s->k = npu_op_int(op, "k", 1);
    s->descending = op->kind == NPU_ATEN_TOPK ? npu_op_int(op, "largest", 1) != 0
                                              : npu_op_int(op, "descending", 0) != 0;
    s->q = npu_op_float(op, "q", 0.0);
    p->state = s;
    p->parts = npu__ref_item_parts(s->along.outer * s->along.inner, s->along.n);
    return NPU_OK;
}

/* What a scan folds its elements into; logarithms of sums start as maxima do. */
static uint32_t npu__ref_scan_fold(uint32_t kind)
{
    switch (kind) {
    case NPU_ATEN_CUMSUM: return NPU__SUM;
    case NPU_ATEN_CUMPROD: return NPU__PRODUCT;
    case NPU_ATEN_CUMMIN: return NPU__MIN;
    default: return NPU__MAX;
    }
}

static void npu__ref_scan_row(const npu_launch *l, const npu__ref_order *s, size_t first)
{
    bool integer = npu__ref_is_integer(l->out[0].dtype);
    int cls = integer ? NPU__I64 : NPU__F64;
    int64_t stride = (int64_t)s->along.inner;
    npu__ref_number carry = npu__ref_fold_start(npu__ref_scan_fold(s->kind));
    npu__ref_strip strip;
    for (size_t i = 0; i < s->along.n; i += NPU__STRIP) {
        size_t n = s->along.n - i < NPU__STRIP ? s->along.n - i : NPU__STRIP;
        int64_t at = (int64_t)first + (int64_t)i * stride;
        npu__ref_load_class(cls, &strip, l->x[0], l->in[0].dtype, at, stride, n);
        if (integer) {
            npu__ref_scan_i64(s->kind, &carry.i, strip.i64, n);
        } else {
            npu__ref_scan_f64(s->kind, &carry.f, strip.f64, n);
        }
        npu__ref_store_class(cls, l->y[0], l->out[0].dtype, at, stride, &strip, n);
    }
}

static npu_status npu__ref_scan_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_order *s = (const npu__ref_order *)l->state;
    size_t begin, end;
    npu__ref_share(s->along.outer * s->along.inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        npu__ref_scan_row(l, s, npu__ref_along_first(&s->along, o));
    }
    return NPU_OK;
}

/* n <= NPU__STRIP elements as numbers that order as they do, NaN above all, -0 like 0; or the other way round. */
static void npu__ref_keys(const void *x, uint32_t dtype, int64_t first, int64_t stride, size_t n, bool descending,
                          uint64_t *keys)
{
    uint64_t top = 0x8000000000000000u, turn = descending ? UINT64_MAX : 0;
    int64_t whole[NPU__STRIP];
    double real[NPU__STRIP];
    if (npu__ref_is_integer(dtype)) {
        npu__ref_load_i64(whole, x, dtype, first, stride, n);
        turn ^= dtype == NPU_U64 ? 0 : top;
        for (size_t i = 0; i < n; i++) {
            keys[i] = (uint64_t)whole[i] ^ turn;
        }
        return;
    }
    npu__ref_load_f64(real, x, dtype, first, stride, n);
    for (size_t i = 0; i < n; i++) {
        double f = real[i] + 0.0;
        uint64_t u;
        memcpy(&u, &f, sizeof u);
        u ^= (0 - (u >> 63)) | top;
        keys[i] = (isnan(f) ? UINT64_MAX : u) ^ turn;
    }
}

static uint64_t npu__ref_key(const void *x, uint32_t dtype, int64_t at)
{
    uint64_t key;
    npu__ref_keys(x, dtype, at, 1, 1, false, &key);
    return key;
}

/* cummax and cummin: of equal elements the last one counts, and so does every NaN. */
static npu_status npu__ref_scan_index_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_order *s = (const npu__ref_order *)l->state;
    size_t begin, end, size = npu__ref_size(l->in[0].dtype);
    bool least = s->kind == NPU_ATEN_CUMMIN, real = !npu__ref_is_integer(l->in[0].dtype);
    npu__ref_share(s->along.outer * s->along.inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        size_t first = npu__ref_along_first(&s->along, o), inner = s->along.inner;
        uint64_t best = 0;
        int64_t index = 0;
        for (size_t i = 0; i < s->along.n; i++) {
            size_t at = first + i * inner;
            uint64_t key = npu__ref_key(l->x[0], l->in[0].dtype, (int64_t)at);
            key = least && !(real && key == UINT64_MAX) ? ~key : key;
            index = key >= best ? (int64_t)i : index;
            best = key >= best ? key : best;
            memcpy((char *)l->y[0] + at * size,
                   (const char *)l->x[0] + (first + (size_t)index * inner) * size, size);
            ((int64_t *)l->y[1])[at] = index;
        }
    }
    return NPU_OK;
}

/* ---- scans of the variant "wide": a few rows, or neighbouring columns, at a time ---- */

/* Fewer columns than that lie side by side like rows. */
enum { NPU__REF_SCAN_COLUMNS = 16 };

static bool npu__ref_scan_in_columns(const npu__ref_order *s) { return s->along.inner >= NPU__REF_SCAN_COLUMNS; }

static npu_status npu__ref_scan_prepare_wide(npu_prepare *p)
{
    npu_status status = npu__ref_order_prepare(p);
    npu__ref_order *s = (npu__ref_order *)p->state;
    if (!status) {
        size_t most = s->along.outer * s->along.inner / NPU__STRIP + 1;
        s->wide = &npu__ref_wide_of[p->isa][npu__ref_is_integer(p->out[0].dtype)];
        p->parts = npu__ref_scan_in_columns(s) && p->parts > most ? (uint32_t)most : p->parts;
    }
    return status;
}

/* Sums up to each element in a few rows of neighbours from o, or in all of a few columns. */
static void npu__ref_scan_sums(const npu_launch *l, const npu__ref_order *s, size_t o, size_t lanes)
{
    const npu__ref_wide *w = s->wide;
    size_t inner = s->along.inner, rows = inner == 1 ? lanes : 1, len = s->along.n;
    bool direct = l->in[0].dtype == w->own && l->out[0].dtype == w->own;
    size_t most = direct ? len : inner == 1 ? NPU__REF_SCAN_STRIP : NPU__REF_WIDE_COLUMNS / inner;
    npu__ref_wide_strip strip;
    npu__ref_strip acc;
    npu__ref_wide_fill(w, &acc, npu__ref_scan_fold(s->kind), lanes);
    for (size_t i = 0; i < len; i += most) {
        size_t n = len - i < most ? len - i : most, first = npu__ref_along_first(&s->along, o) + i * inner;
        const void *x = direct ? (const char *)l->x[0] + first * 8 : (const void *)&strip;
        void *y = direct ? (char *)l->y[0] + first * 8 : (void *)&strip;
        for (size_t j = 0; j < rows && !direct; j++) {
            w->load(w->cls, strip.i64 + j * most, l->x[0], l->in[0].dtype, (int64_t)(first + j * len), 1, n * inner);
        }
        w->scan(s->kind == NPU_ATEN_CUMPROD, &acc, x, y, lanes, inner == 1 ? most : 1, n, inner);
        for (size_t j = 0; j < rows && !direct; j++) {
            w->store(w->cls, l->y[0], l->out[0].dtype, (int64_t)(first + j * len), 1, strip.i64 + j * most, n * inner);
        }
    }
}

/* Maxima up to each element of row o. */
static void npu__ref_scan_peaks(const npu_launch *l, const npu__ref_order *s, size_t o)
{
    const npu__ref_wide *w = s->wide;
    npu__ref_wide_strip strip;
    npu__ref_strip best;
    int64_t at = 0, index[NPU__REF_WIDE_COLUMNS], stride = (int64_t)s->along.inner;
    bool direct = l->in[0].dtype == w->own && stride == 1;
    npu__ref_wide_fill(w, &best, npu__ref_scan_fold(s->kind), 1);
    for (size_t i = 0; i < s->along.n; i += NPU__REF_WIDE_COLUMNS) {
        size_t n = s->along.n - i < NPU__REF_WIDE_COLUMNS ? s->along.n - i : NPU__REF_WIDE_COLUMNS;
        int64_t first = (int64_t)npu__ref_along_first(&s->along, o) + (int64_t)i * stride;
        const void *x = direct ? (const char *)l->x[0] + first * 8 : (const void *)&strip;
        void *y = direct ? (char *)l->y[0] + first * 8 : (void *)&strip;
        int64_t *where = stride == 1 ? (int64_t *)l->y[1] + first : index;
        if (!direct) {
            w->load(w->cls, &strip, l->x[0], l->in[0].dtype, first, stride, n);
        }
        w->peaks(s->kind == NPU_ATEN_CUMMIN, &best, &at, x, y, where, n, (int64_t)i);
        if (!direct) {
            w->store(w->cls, l->y[0], l->out[0].dtype, first, stride, &strip, n);
        }
        if (stride != 1) {
            npu__ref_store_i64(l->y[1], NPU_I64, first, stride, index, n);
        }
    }
}

/* `width` neighbouring columns from o. */
static void npu__ref_scan_columns(const npu_launch *l, const npu__ref_order *s, size_t o, size_t width)
{
    const npu__ref_wide *w = s->wide;
    npu__ref_wide_strip strip;
    npu__ref_strip acc;
    int64_t at[NPU__STRIP], first = (int64_t)npu__ref_along_first(&s->along, o);
    npu__ref_wide_fill(w, &acc, npu__ref_scan_fold(s->kind), width);
    memset(at, 0, sizeof at);
    for (size_t row = 0; row < s->along.n; row++, first += (int64_t)s->along.inner) {
        const void *x = npu__ref_wide_at(w, &strip, l, first, width);
        if (l->num_out == 2) {
            w->peak_row(s->kind == NPU_ATEN_CUMMIN, &acc, at, x, width, (int64_t)row);
            npu__ref_store_i64(l->y[1], l->out[1].dtype, first, 1, at, width);
        } else {
            w->rows(npu__ref_scan_fold(s->kind), &acc, x, width, 1, 0);
        }
        w->store(w->cls, l->y[0], l->out[0].dtype, first, 1, &acc, width);
    }
}

static npu_status npu__ref_scan_launch_wide(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_order *s = (const npu__ref_order *)l->state;
    size_t inner = s->along.inner, begin, end, width;
    bool columns = npu__ref_scan_in_columns(s);
    npu__ref_share(columns ? s->along.outer * inner : s->along.outer, part, parts, &begin, &end);
    for (size_t o = columns ? begin : begin * inner, last = columns ? end : end * inner; o < last; o += width) {
        width = inner > 1 ? inner - o % inner : NPU__REF_SCAN_LANES;
        width = width < NPU__STRIP ? width : NPU__STRIP;
        width = last - o < width ? last - o : width;
        if (columns) {
            npu__ref_scan_columns(l, s, o, width);
        } else if (l->num_out == 2) {
            npu__ref_scan_peaks(l, s, o);
            width = 1;
        } else {
            npu__ref_scan_sums(l, s, o, width);
        }
    }
    return NPU_OK;
}

/* Maxima of u64 would be signed ones. */
static bool npu__ref_scan_supported_wide(const npu_op_info *op)
{
    return op->num_out == 1 || op->in[0]->dtype != NPU_U64;
}

typedef struct npu__ref_entry {
    uint64_t key;
    int64_t index;
} npu__ref_entry;

/* Merges a[0 .. half-1] and a[half .. n-1] into b; of equal keys the first comes first. */
static void npu__ref_merge(const npu__ref_entry *a, npu__ref_entry *b, size_t half, size_t n)
{
    size_t i = 0, j = half;
    for (size_t k = 0; k < n; k++) {
        b[k] = j == n || (i < half && a[i].key <= a[j].key) ? a[i++] : a[j++];
    }
}

/* Sorts n entries with as much room again in b; returns the one of both that holds them. */
static npu__ref_entry *npu__ref_merge_sort(npu__ref_entry *a, npu__ref_entry *b, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        npu__ref_entry *swap = a;
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t left = n - i, len = left < 2 * width ? left : 2 * width;
            npu__ref_merge(a + i, b + i, len < width ? len : width, len);
        }
        a = b;
        b = swap;
    }
    return a;
}

/* Puts an entry where it belongs among the first ones, which are in order; returns how many there are now. */
static size_t npu__ref_put_among(npu__ref_entry *few, size_t kept, size_t most, npu__ref_entry e)
{
    size_t at = kept < most ? kept : most - 1;
    for (; at > 0 && e.key < few[at - 1].key; at--) {
        few[at] = few[at - 1];
    }
    few[at] = e;
    return kept < most ? kept + 1 : most;
}

/* The keys of a row from element i on; returns how many. */
static size_t npu__ref_row_keys(const npu_launch *l, const npu__ref_order *s, size_t first, size_t i, uint64_t *keys)
{
    size_t n = s->along.n - i < NPU__STRIP ? s->along.n - i : NPU__STRIP, inner = s->along.inner;
    npu__ref_keys(l->x[0], l->in[0].dtype, (int64_t)(first + i * inner), (int64_t)inner, n, s->descending, keys);
    return n;
}

/* The first k entries of a row in order, kept so while the row goes by. */
static void npu__ref_first_few(const npu_launch *l, const npu__ref_order *s, size_t first, npu__ref_entry *few)
{
    uint64_t keys[NPU__STRIP], last = UINT64_MAX;
    size_t k = (size_t)s->k, kept = 0, n;
    for (size_t i = 0; i < s->along.n && k > 0; i += n) {
        n = npu__ref_row_keys(l, s, first, i, keys);
        for (size_t j = 0; j < n; j++) {
            if (keys[j] < last || kept < k) {
                npu__ref_entry e = { keys[j], (int64_t)(i + j) };
                kept = npu__ref_put_among(few, kept, k, e);
                last = kept == k ? few[k - 1].key : last;
            }
        }
    }
}

static void npu__ref_all_entries(const npu_launch *l, const npu__ref_order *s, size_t first, npu__ref_entry *row)
{
    uint64_t keys[NPU__STRIP];
    for (size_t i = 0, n; i < s->along.n; i += n) {
        n = npu__ref_row_keys(l, s, first, i, keys);
        for (size_t j = 0; j < n; j++) {
            row[i + j].key = keys[j];
            row[i + j].index = (int64_t)(i + j);
        }
    }
}

/* So few entries that keeping them in order costs less than sorting the row. */
enum { NPU__REF_FEW = 128 };

/* The elements of row o in order, as keys and indices; only as many as topk and kthvalue want. */
static npu__ref_entry *npu__ref_sort_row(const npu_launch *l, const npu__ref_order *s, size_t o,
                                         npu__ref_entry *work)
{
    size_t first = npu__ref_along_first(&s->along, o), n = s->along.n;
    if ((s->kind == NPU_ATEN_TOPK || s->kind == NPU_ATEN_KTHVALUE) && s->k <= NPU__REF_FEW) {
        npu__ref_first_few(l, s, first, work);
        return work;
    }
    npu__ref_all_entries(l, s, first, work);
    return npu__ref_merge_sort(work, work + n, n);
}

/* Entry e of row o as element `to` of values and indices; argsort has no values, msort no indices. */
static void npu__ref_put_entry(const npu_launch *l, const npu__ref_order *s, size_t o, npu__ref_entry e,
                               size_t to)
{
    size_t size = npu__ref_size(l->in[0].dtype);
    size_t from = npu__ref_along_first(&s->along, o) + (size_t)e.index * s->along.inner;
    if (s->kind != NPU_ATEN_ARGSORT) {
        memcpy((char *)l->y[0] + to * size, (const char *)l->x[0] + from * size, size);
    }
    if (s->kind == NPU_ATEN_ARGSORT || l->num_out == 2) {
        ((int64_t *)l->y[l->num_out - 1])[to] = e.index;
    }
}

/* The first of the largest run of equal keys, its index that of the last of them. */
static npu__ref_entry npu__ref_mode_of(const npu__ref_entry *row, size_t n)
{
    size_t best = 0, end = 0;
    for (size_t i = 0, run = 0; i < n; i++) {
        run = i && row[i].key == row[i - 1].key ? run + 1 : 1;
        if (run > best) {
            best = run;
            end = i;
        }
    }
    return row[end];
}

/* Elements of a sorted row that are not NaN. */
static size_t npu__ref_count_present(const npu_launch *l, const npu__ref_entry *row, size_t n)
{
    while (n && row[n - 1].key == UINT64_MAX && !npu__ref_is_integer(l->in[0].dtype)) {
        n--;
    }
    return n;
}

/* The one element of a sorted row that a kind wants. */
static npu__ref_entry npu__ref_pick(const npu_launch *l, const npu__ref_order *s, const npu__ref_entry *row)
{
    size_t n = s->along.n, present = npu__ref_count_present(l, row, n);
    switch (s->kind) {
    case NPU_ATEN_KTHVALUE: return row[s->k - 1];
    case NPU_ATEN_MODE: return npu__ref_mode_of(row, n);
    case NPU_ATEN_NANMEDIAN: case NPU_ATEN_NANMEDIAN_DIM: return row[present ? (present - 1) / 2 : 0];
    default: return row[present < n ? present : (n - 1) / 2]; /* the first NaN wins */
    }
}

/* Between the elements around position q (n - 1). */
static double npu__ref_quantile_of(const npu_launch *l, const npu__ref_order *s, size_t o,
                                   const npu__ref_entry *row, double q)
{
    size_t n = s->along.n, present = npu__ref_count_present(l, row, n),
           first = npu__ref_along_first(&s->along, o);
    bool skips = s->kind == NPU_ATEN_NANQUANTILE || s->kind == NPU_ATEN_NANQUANTILE_SCALAR;
    double position, weight, low, high;
    size_t at, next;
    bool between = s->way[0] == 'm' || strcmp(s->way, "linear") == 0;
    if (present == 0 || (present < n && !skips)) {
        return (double)NAN;
    }
    position = q * (double)(present - 1);
    position = l->in[0].dtype == NPU_F32 ? (double)(float)position : position;
    position = s->way[0] == 'n' ? nearbyint(position) : s->way[1] == 'o' ? floor(position)
             : s->way[0] == 'h' ? ceil(position) : position;
    at = (size_t)position;
    next = (size_t)ceil(position);
    weight = s->way[0] == 'm' ? 0.5 : position - (double)at;
    npu__ref_load_f64(&low, l->x[0], l->in[0].dtype,
                      (int64_t)(first + (size_t)row[at].index * s->along.inner), 1, 1);
    npu__ref_load_f64(&high, l->x[0], l->in[0].dtype,
                      (int64_t)(first + (size_t)row[next].index * s->along.inner), 1, 1);
    return between ? npu__ref_lerp(low, high, weight) : low;
}

static bool npu__ref_is_quantile(uint32_t kind)
{
    return kind == NPU_ATEN_QUANTILE || kind == NPU_ATEN_QUANTILE_SCALAR || kind == NPU_ATEN_NANQUANTILE ||
           kind == NPU_ATEN_NANQUANTILE_SCALAR;
}

/* All quantiles of row o; q is the first dim of the result. */
static npu_status npu__ref_put_quantiles(const npu_launch *l, const npu__ref_order *s, size_t o,
                                         const npu__ref_entry *row)
{
    size_t num = l->num_in > 1 ? (size_t)npu__ref_len(&l->in[1]) : 1;
    for (size_t i = 0; i < num; i++) {
        double q = s->q, y;
        if (l->num_in > 1) {
            npu__ref_load_f64(&q, l->x[1], l->in[1].dtype, (int64_t)i, 1, 1);
        }
        if (!(q >= 0.0 && q <= 1.0)) {
            return NPU_ERR_RANGE;
        }
        y = npu__ref_quantile_of(l, s, o, row, q);
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(i * s->along.outer * s->along.inner + o), 1,
                           &y, 1);
    }
    return NPU_OK;
}

/* Results of row o: one element, quantiles, or the first `k` entries. */
static npu_status npu__ref_put_row(const npu_launch *l, const npu__ref_order *s, size_t o,
                                   const npu__ref_entry *row)
{
    size_t inner = s->along.inner, first = o / inner * (size_t)s->k * inner + o % inner;
    if (npu__ref_is_quantile(s->kind)) {
        return npu__ref_put_quantiles(l, s, o, row);
    }
    if (s->kind >= NPU_ATEN_KTHVALUE) {
        npu__ref_put_entry(l, s, o, npu__ref_pick(l, s, row), o);
        return NPU_OK;
    }
    for (size_t i = 0; i < (size_t)s->k; i++) {
        npu__ref_put_entry(l, s, o, row[i], first + i * inner);
    }
    return NPU_OK;
}

static npu_status npu__ref_sort_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_order *s = (const npu__ref_order *)l->state;
    npu__ref_entry *work = (npu__ref_entry *)l->workspace + part * 2 * s->along.n;
    npu_status status = NPU_OK;
    size_t begin, end;
    if (s->along.n == 0) { /* only the median of nothing has a result */
        double nan = (double)NAN;
        if (s->kind == NPU_ATEN_MEDIAN || s->kind == NPU_ATEN_NANMEDIAN) {
            npu__ref_store_f64(l->y[0], l->out[0].dtype, 0, 1, &nan, 1);
        }
        return NPU_OK;
    }
    npu__ref_share(s->along.outer * s->along.inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end && !status; o++) {
        status = npu__ref_put_row(l, s, o, npu__ref_sort_row(l, s, o, work));
    }
    return status;
}

/* Every part has room for two rows. */
static npu_status npu__ref_sort_prepare(npu_prepare *p)
{
    static const char *const ways[] = { "linear", "lower", "higher", "midpoint", "nearest" };
    npu_status status = npu__ref_order_prepare(p);
    npu__ref_order *s = (npu__ref_order *)p->state;
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < NPU__REF_COUNT(ways); i++) {
        s->way = npu_op_str_is(p->op, "interpolation", ways[i]) ? ways[i] : s->way;
    }
    if (p->in[0].rank == 0 || (p->op->kind != NPU_ATEN_TOPK && p->op->kind != NPU_ATEN_KTHVALUE)) {
        s->k = (int64_t)s->along.n; /* a number is its own topk, whatever k is */
    }
    p->parts = p->parts < 8 ? p->parts : 8;
    if (!npu_size_mul(2 * sizeof(npu__ref_entry) * p->parts, s->along.n, &p->workspace)) {
        return NPU_ERR_OVERFLOW;
    }
    return NPU_OK;
}

/* ---- diff: what lies before, self and what lies after as one row ---- */

typedef struct npu__ref_diff {
    size_t outer, inner;
    size_t len, n;  /* elements of a row, how often neighbours are subtracted */
    uint32_t dtype; /* of the row: that of the result, but halves are rounded to at the end only */
} npu__ref_diff;

/* The operands in the order in which they lie along the dim; without a difference to take only self counts. */
static uint32_t npu__ref_diff_operands(const npu_tensor *in, uint32_t num_in, size_t n, uint32_t *operands)
{
    static const uint32_t order[] = { 1, 0, 2 };
    uint32_t num = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (order[i] < num_in && in[order[i]].dtype && (n || order[i] == 0)) {
            operands[num++] = order[i];
        }
    }
    return num;
}

static npu_status npu__ref_diff_prepare(npu_prepare *p)
{
    npu__ref_diff *s = (npu__ref_diff *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    uint32_t axis = npu__ref_axis(npu_op_int(p->op, "dim", -1), x->rank), operands[3], num;
    int64_t n = npu_op_int(p->op, "n", 1);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->outer = npu__ref_dims_len(x, 0, axis);
    s->inner = npu__ref_dims_len(x, axis + 1, x->rank);
    num = npu__ref_diff_operands(p->in, p->op->num_in, n > 0, operands);
    for (uint32_t i = 0; i < num; i++) {
        s->len += (size_t)p->in[operands[i]].dims[axis];
    }
    s->n = (uint64_t)n < s->len ? (size_t)n : s->len;
    s->dtype = npu__ref_compute_class(p->out[0].dtype) == NPU__F32 ? NPU_F32 : p->out[0].dtype;
    p->state = s;
    p->parts = npu__ref_item_parts(s->outer * s->inner, s->len * (s->n + 1));
    return npu_size_mul(p->parts * sizeof(int64_t), s->len, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* Converts n elements from one stride to another. */
static void npu__ref_convert_run(void *to, uint32_t to_dtype, int64_t to_first, int64_t to_stride,
                                 const void *from, uint32_t from_dtype, int64_t first, int64_t stride, size_t n)
{
    int cls = npu__ref_is_integer(from_dtype) ? NPU__I64 : NPU__F64;
    npu__ref_strip strip;
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        npu__ref_load_class(cls, &strip, from, from_dtype, first + (int64_t)i * stride, stride, len);
        npu__ref_store_class(cls, to, to_dtype, to_first + (int64_t)i * to_stride, to_stride, &strip, len);
    }
}

/* Replaces n elements by their n - 1 differences; of truth values that is whether they differ. */
static void npu__ref_diff_row(void *row, uint32_t dtype, size_t n)
{
    bool integer = npu__ref_is_integer(dtype);
    int cls = integer ? NPU__I64 : NPU__F64;
    npu__ref_strip a, b;
    for (size_t i = 0; i + 1 < n; i += NPU__STRIP) {
        size_t len = n - 1 - i < NPU__STRIP ? n - 1 - i : NPU__STRIP;
        npu__ref_load_class(cls, &a, row, dtype, (int64_t)i, 1, len);
        npu__ref_load_class(cls, &b, row, dtype, (int64_t)i + 1, 1, len);
        for (size_t k = 0; k < len; k++) {
            if (integer) {
                b.i64[k] = NPU__REF_WRAP(b.i64[k], -, a.i64[k]);
            } else {
                b.f64[k] -= a.f64[k];
            }
        }
        npu__ref_store_class(cls, row, dtype, (int64_t)i, 1, &b, len);
    }
}

static npu_status npu__ref_diff_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_diff *s = (const npu__ref_diff *)l->state;
    uint32_t operands[3], num = npu__ref_diff_operands(l->in, l->num_in, s->n, operands);
    int64_t *row = (int64_t *)l->workspace + part * s->len, inner = (int64_t)s->inner;
    size_t begin, end;
    npu__ref_share(s->outer * s->inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        int64_t outer = (int64_t)(o / s->inner), column = (int64_t)(o % s->inner), at = 0;
        for (uint32_t i = 0; i < num; i++) {
            const npu_tensor *x = &l->in[operands[i]];
            int64_t n = npu__ref_len(x) / (int64_t)(s->outer * s->inner);
            npu__ref_convert_run(row, s->dtype, at, 1, l->x[operands[i]], x->dtype, outer * n * inner + column,
                                 inner, (size_t)n);
            at += n;
        }
        for (size_t i = 0; i < s->n; i++) {
            npu__ref_diff_row(row, s->dtype, s->len - i);
        }
        at -= (int64_t)s->n;
        npu__ref_convert_run(l->y[0], l->out[0].dtype, outer * at * inner + column, inner, row, s->dtype, 0, 1,
                             (size_t)at);
    }
    return NPU_OK;
}

/* ---- powers of each element as a row ---- */

static npu_status npu__ref_vander_prepare(npu_prepare *p)
{
    bool *descends = (bool *)npu_prepare_alloc(p, sizeof *descends);
    if (!descends) {
        return NPU_ERR_NO_MEMORY;
    }
    *descends = p->op->kind == NPU_ATEN_VANDER && !npu_op_int(p->op, "increasing", 0);
    p->state = descends;
    return NPU_OK;
}

static npu_status npu__ref_vander_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *out = &l->out[0];
    bool descends = *(const bool *)l->state, integer = npu__ref_is_integer(out->dtype);
    size_t n = (size_t)out->dims[out->rank - 1];
    (void)part;
    (void)parts;
    for (int64_t i = 0; i < npu__ref_len(&l->in[0]); i++) {
        npu__ref_number power = npu__ref_fold_start(NPU__PRODUCT);
        for (size_t k = 0; k < n; k++) {
            npu__ref_store_number(l->y[0], out->dtype, (size_t)i * n + (descends ? n - 1 - k : k), integer,
                                  &power);
            npu__ref_fold(&power, NPU__PRODUCT, integer, l->x[0], l->in[0].dtype, i, 1, 1);
        }
    }
    return NPU_OK;
}

#define NPU__REF_SORT_KERNEL(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_sort_prepare, npu__ref_sort_launch)
#define NPU__REF_SCAN_KERNEL(kind, launch) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_order_prepare, launch)
#define NPU__REF_SCAN_KERNELS(kind, launch)                                                        \
    NPU__REF_ROW(kind, "wide", 1, npu__ref_scan_supported_wide, npu__ref_scan_prepare_wide, \
                 npu__ref_scan_launch_wide), \
    NPU__REF_SCAN_KERNEL(kind, launch)

static const npu_kernel npu__ref_kernels_order[] = {
    NPU__REF_SCAN_KERNELS(NPU_ATEN_CUMSUM, npu__ref_scan_launch),
    NPU__REF_SCAN_KERNELS(NPU_ATEN_CUMPROD, npu__ref_scan_launch),
    NPU__REF_SCAN_KERNELS(NPU_ATEN_CUMMAX, npu__ref_scan_index_launch),
    NPU__REF_SCAN_KERNELS(NPU_ATEN_CUMMIN, npu__ref_scan_index_launch),
    NPU__REF_SCAN_KERNEL(NPU_ATEN_LOGCUMSUMEXP, npu__ref_scan_launch),
    NPU__REF_SCAN_KERNEL(NPU_ATEN_LOGCUMSUMEXP_RAW, npu__ref_scan_launch),
    NPU__REF_SORT_KERNEL(NPU_ATEN_SORT),
    NPU__REF_SORT_KERNEL(NPU_ATEN_SORT_STABLE),
    NPU__REF_SORT_KERNEL(NPU_ATEN_ARGSORT),
    NPU__REF_SORT_KERNEL(NPU_ATEN_MSORT),
    NPU__REF_SORT_KERNEL(NPU_ATEN_TOPK),
    NPU__REF_SORT_KERNEL(NPU_ATEN_KTHVALUE),
    NPU__REF_SORT_KERNEL(NPU_ATEN_MEDIAN),
    NPU__REF_SORT_KERNEL(NPU_ATEN_MEDIAN_DIM),
    NPU__REF_SORT_KERNEL(NPU_ATEN_NANMEDIAN),
    NPU__REF_SORT_KERNEL(NPU_ATEN_NANMEDIAN_DIM),
    NPU__REF_SORT_KERNEL(NPU_ATEN_MODE),
    NPU__REF_SORT_KERNEL(NPU_ATEN_QUANTILE),
    NPU__REF_SORT_KERNEL(NPU_ATEN_QUANTILE_SCALAR),
    NPU__REF_SORT_KERNEL(NPU_ATEN_NANQUANTILE),
    NPU__REF_SORT_KERNEL(NPU_ATEN_NANQUANTILE_SCALAR),
    NPU__REF_ROW(NPU_ATEN_DIFF, "plain", 0, NULL, npu__ref_diff_prepare, npu__ref_diff_launch),
    NPU__REF_ROW(NPU_ATEN_VANDER, "plain", 0, NULL, npu__ref_vander_prepare, npu__ref_vander_launch),
    NPU__REF_ROW(NPU_ATEN_LINALG_VANDER, "plain", 0, NULL, npu__ref_vander_prepare, npu__ref_vander_launch)
};

/* ---- whole tensors compared ---- */

typedef struct npu__ref_close {
    npu__ref_walk walk;
    double relative, absolute;
    bool equal_nan;
} npu__ref_close;

static npu_status npu__ref_close_prepare(npu_prepare *p)
{
    npu__ref_close *s = (npu__ref_close *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->relative = npu_op_float(p->op, "rtol", 0.0);
    s->absolute = npu_op_float(p->op, "atol", 0.0);
    s->equal_nan = npu_op_int(p->op, "equal_nan", 0) != 0;
    p->state = s;
    return npu__ref_walk_both(&s->walk, &p->in[0], &p->in[1]);
}

/* Whether n elements a and b are close, each to its fellow. Integers that differ are so as doubles. */
static bool npu__ref_all_close(const npu__ref_close *s, bool integer, const npu__ref_strip *a,
                               const npu__ref_strip *b, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        double x = integer ? (double)a->i64[i] : a->f64[i], y = integer ? (double)b->i64[i] : b->f64[i];
        bool same = integer ? a->i64[i] == b->i64[i] : x == y || (s->equal_nan && isnan(x) && isnan(y));
        bool exact = s->relative == 0.0 && s->absolute == 0.0;
        all = all && (same || (!exact && npu__ref_is_close(x, y, s->relative, s->absolute)));
    }
    return all;
}

/* equal is allclose without tolerances; only tensors of the same dims can be. */
static npu_status npu__ref_close_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_close *s = (const npu__ref_close *)l->state;
    const npu__ref_walk *w = &s->walk;
    uint32_t last = w->rank - 1;
    bool integer = npu__ref_is_integer(l->in[0].dtype) && npu__ref_is_integer(l->in[1].dtype), all = true;
    int cls = integer ? NPU__I64 : NPU__F64;
    uint32_t dtype = npu__ref_promote(l->in[0].dtype, l->in[1].dtype);
    (void)part;
    (void)parts;
    for (size_t row = 0; row < npu__ref_walk_rows(w) && all; row++) {
        npu__ref_place_of at = npu__ref_walk_row(w, row);
        npu__ref_strip a, b;
        for (int64_t j = 0; j < w->dims[last] && all; j += NPU__STRIP) {
            size_t n = (size_t)npu__ref_min(w->dims[last] - j, NPU__STRIP);
            npu__ref_load_class(cls, &a, l->x[0], l->in[0].dtype, at.far + j * w->far[last], w->far[last], n);
            npu__ref_load_class(cls, &b, l->x[1], l->in[1].dtype, at.index + j * w->index[last],
                                w->index[last], n);
            if (l->in[0].dtype != l->in[1].dtype) {
                npu__ref_round(cls, dtype, &a, n);
                npu__ref_round(cls, dtype, &b, n);
            }
            all = npu__ref_all_close(s, integer, &a, &b, n);
        }
    }
    *(uint8_t *)l->y[0] = all;
    return NPU_OK;
}

static npu_status npu__ref_equal_prepare(npu_prepare *p)
{
    const npu_tensor *a = &p->in[0], *b = &p->in[1];
    bool same = a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
    return same ? npu__ref_close_prepare(p) : NPU_OK;
}

/* No state stands for dims that differ. */
static npu_status npu__ref_equal_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    *(uint8_t *)l->y[0] = 0;
    return l->state ? npu__ref_close_launch(l, part, parts) : NPU_OK;
}

/* ---- places among sorted numbers ---- */

typedef struct npu__ref_search {
    size_t n, row;  /* sorted numbers of a row; elements that look in one row, 0 = all */
    bool right;     /* behind equal numbers, not before them */
    uint32_t dtype; /* what both are compared as */
} npu__ref_search;

/* npu__ref_key of an element once it is of another dtype. */
static uint64_t npu__ref_key_as(const void *x, uint32_t dtype, int64_t at, uint32_t as)
{
    int cls = npu__ref_is_integer(dtype) ? NPU__I64 : NPU__F64;
    uint64_t number, element;
    if (dtype == as) {
        return npu__ref_key(x, dtype, at);
    }
    npu__ref_load_class(cls, &number, x, dtype, at, 1, 1);
    npu__ref_store_class(cls, &element, as, 0, 1, &number, 1);
    return npu__ref_key(&element, as, 0);
}

static npu_status npu__ref_search_prepare(npu_prepare *p)
{
    npu__ref_search *s = (npu__ref_search *)npu_prepare_alloc(p, sizeof *s);
    bool buckets = p->op->kind == NPU_ATEN_BUCKETIZE;
    const npu_tensor *sorted = &p->in[buckets], *x = &p->in[!buckets];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->n = (size_t)sorted->dims[sorted->rank - 1];
    s->row = sorted->rank > 1 ? (size_t)x->dims[x->rank - 1] : 0;
    s->right = npu_op_int(p->op, "right", 0) || npu_op_str_is(p->op, "side", "right");
    s->dtype = x->rank ? npu__ref_promote(sorted->dtype, x->dtype)
                       : npu__ref_promote_weaker(sorted->dtype, x->dtype);
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(x), 64);
    return NPU_OK;
}

/* How many of the n numbers from `first` on an element of this key lies behind. A comparison with NaN is
   false, so that it lies behind one, and NaN itself behind all. sorter gives the order of the numbers. */
static npu_status npu__ref_search_row(const npu__ref_search *s, const void *sorted, uint32_t dtype,
                                      const int64_t *sorter, int64_t first, uint64_t key, int64_t *place)
{
    int64_t low = 0, high = (int64_t)s->n;
    bool real = !npu__ref_is_integer(s->dtype);
    while (low < high) {
        int64_t middle = low + (high - low) / 2, at = sorter ? sorter[first + middle] : middle;
        uint64_t number;
        if (at < 0 || at >= (int64_t)s->n) {
            return NPU_ERR_RANGE;
        }
        number = npu__ref_key_as(sorted, dtype, first + at, s->dtype);
        if ((real && (number == UINT64_MAX || key == UINT64_MAX)) || (s->right ? number <= key : number < key)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *place = low;
    return NPU_OK;
}

static npu_status npu__ref_search_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_search *s = (const npu__ref_search *)l->state;
    uint32_t k = l->num_in == 2; /* bucketize has no sorter, and the sorted numbers second */
    const int64_t *sorter = k ? NULL : (const int64_t *)l->x[2];
    npu_status status = NPU_OK;
    size_t begin, end;
    npu__ref_share((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t i = begin; i < end && !status; i++) {
        uint64_t key = npu__ref_key_as(l->x[!k], l->in[!k].dtype, (int64_t)i, s->dtype);
        int64_t first = s->row ? (int64_t)(i / s->row * s->n) : 0, place = 0;
        status = npu__ref_search_row(s, l->x[k], l->in[k].dtype, sorter, first, key, &place);
        npu__ref_store_i64(l->y[0], l->out[0].dtype, (int64_t)i, 1, &place, 1);
    }
    return status;
}

/* ---- isin: binary search among the others, sorted ---- */

typedef struct npu__ref_isin {
    uint32_t dtype;
    bool invert;
} npu__ref_isin;

static npu_status npu__ref_isin_prepare(npu_prepare *p)
{
    npu__ref_isin *s = (npu__ref_isin *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->dtype = npu__ref_promote(p->in[0].dtype, p->in[1].dtype);
    s->invert = npu_op_int(p->op, "invert", 0) != 0;
    p->state = s;
    return npu_size_mul(2 * sizeof(npu__ref_entry), (size_t)npu__ref_len(&p->in[1]), &p->workspace)
               ? NPU_OK
               : NPU_ERR_OVERFLOW;
}

static bool npu__ref_has_key(const npu__ref_entry *sorted, size_t n, uint64_t key)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && sorted[low].key == key;
}

/* NaN is nowhere. */
static npu_status npu__ref_isin_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_isin *s = (const npu__ref_isin *)l->state;
    size_t n = (size_t)npu__ref_len(&l->in[1]), len = (size_t)npu__ref_len(&l->in[0]);
    npu__ref_entry *work = (npu__ref_entry *)l->workspace, *sorted;
    bool real = !npu__ref_is_integer(s->dtype);
    (void)part;
    (void)parts;
    for (size_t i = 0; i < n; i++) {
        work[i].key = npu__ref_key_as(l->x[1], l->in[1].dtype, (int64_t)i, s->dtype);
        work[i].index = 0;
    }
    sorted = npu__ref_merge_sort(work, work + n, n);
    for (size_t i = 0; i < len; i++) {
        uint64_t key = npu__ref_key_as(l->x[0], l->in[0].dtype, (int64_t)i, s->dtype);
        bool found = !(real && key == UINT64_MAX) && npu__ref_has_key(sorted, n, key);
        ((uint8_t *)l->y[0])[i] = found != s->invert;
    }
    return NPU_OK;
}

/* ---- bincount ---- */

static npu_status npu__ref_bincount_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu_tensor *x = &l->in[0], *out = &l->out[0];
    (void)part;
    (void)parts;
    memset(l->y[0], 0, (size_t)out->dims[0] * npu__ref_size(out->dtype));
    for (int64_t i = 0; i < x->dims[0]; i++) {
        int64_t bin;
        double weight, sum;
        if (!npu__ref_read_index(l, 0, (size_t)i, (size_t)out->dims[0], &bin)) {
            return NPU_ERR_RANGE;
        }
        if (out->dtype == NPU_I64) {
            ((int64_t *)l->y[0])[bin]++;
            continue;
        }
        npu__ref_load_f64(&weight, l->x[1], l->in[1].dtype, i, 1, 1);
        npu__ref_load_f64(&sum, l->y[0], out->dtype, bin, 1, 1);
        sum += weight;
        npu__ref_store_f64(l->y[0], out->dtype, bin, 1, &sum, 1);
    }
    return NPU_OK;
}

/* ---- histograms: edges, the sum of what lies between them, and that as a density ---- */

typedef struct npu__ref_histogram {
    size_t bins;
    bool density;
    bool counts;      /* histc: its edges are no result, so that a place may be off by a rounding */
    bool given;       /* the range is not that of the elements */
    double low, high;
} npu__ref_histogram;

static npu_status npu__ref_histogram_prepare(npu_prepare *p)
{
    npu__ref_histogram *s = (npu__ref_histogram *)npu_prepare_alloc(p, sizeof *s);
    npu_scalar none = npu_scalar_int(0);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->bins = (size_t)p->out[0].dims[0];
    s->density = npu_op_int(p->op, "density", 0) != 0;
    s->counts = p->op->kind == NPU_ATEN_HISTC;
    if (s->counts) {
        s->low = npu_scalar_value(npu_op_scalar(p->op, "min", none));
        s->high = npu_scalar_value(npu_op_scalar(p->op, "max", none));
        s->given = s->low < s->high || npu__ref_len(&p->in[0]) == 0;
    } else {
        s->given = npu_op_has(p->op, "range") || npu__ref_len(&p->in[0]) == 0;
        s->low = npu_op_has(p->op, "range") ? npu_op_float_at(p->op, "range", 0) : 0.0;
        s->high = npu_op_has(p->op, "range") ? npu_op_float_at(p->op, "range", 1) : 1.0;
    }
    p->state = s;
    return npu_size_mul(2 * sizeof(double), s->bins + 1, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* What a number computed with elements is: halves are computed with as floats. */
static double npu__ref_in_class(uint32_t dtype, double x) { return dtype == NPU_F64 ? x : (double)(float)x; }

/* Edges one width apart. A range of no width is made wider. */
static npu_status npu__ref_histogram_edges(const npu_launch *l, const npu__ref_histogram *s, double *edges)
{
    uint32_t dtype = l->in[0].dtype;
    npu__ref_number low = { s->low, 0 }, high = { s->high, 0 };
    double step;
    if (!s->given) {
        low = npu__ref_fold_start(NPU__MIN);
        high = npu__ref_fold_start(NPU__MAX);
        npu__ref_fold(&low, NPU__MIN, false, l->x[0], dtype, 0, 1, (size_t)npu__ref_len(&l->in[0]));
        npu__ref_fold(&high, NPU__MAX, false, l->x[0], dtype, 0, 1, (size_t)npu__ref_len(&l->in[0]));
    }
    if (!(high.f - high.f == 0.0 && low.f - low.f == 0.0)) {
        return NPU_ERR_RANGE;
    }
    if (low.f == high.f) {
        low.f -= s->counts ? 1.0 : 0.5;
        high.f += s->counts ? 1.0 : 0.5;
    }
    low.f = npu__ref_in_class(dtype, low.f);
    high.f = npu__ref_in_class(dtype, high.f);
    step = npu__ref_in_class(dtype, npu__ref_in_class(dtype, high.f - low.f) / (double)s->bins);
    for (size_t i = 0; i <= s->bins; i++) { /* from both ends, so that both are met; rounded once */
        bool lower = i < (s->bins + 1) / 2;
        double steps = (double)(lower ? i : s->bins - i);
        edges[i] = npu__ref_in_class(dtype, fma(lower ? step : -step, steps, lower ? low.f : high.f));
    }
    return NPU_OK;
}

/* The bin of x, which lies between the outer edges: the last one holds both of its own. */
static size_t npu__ref_histogram_bin(const npu__ref_histogram *s, const double *edges, uint32_t dtype, double x)
{
    size_t low = 0, high = s->bins + 1;
    if (s->counts) {
        double way = npu__ref_in_class(dtype, npu__ref_in_class(dtype, x - edges[0]) * (double)s->bins);
        way = npu__ref_in_class(dtype, way / npu__ref_in_class(dtype, edges[s->bins] - edges[0]));
        low = way < (double)s->bins ? (size_t)way + 1 : high;
        high = low;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (edges[middle] > x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low > s->bins ? s->bins - 1 : low - 1;
}

static void npu__ref_histogram_add(const npu_launch *l, const npu__ref_histogram *s, const double *edges,
                                   double *sums, const void *weights)
{
    uint32_t dtype = l->in[0].dtype;
    memset(sums, 0, s->bins * sizeof *sums);
    for (int64_t i = 0; i < npu__ref_len(&l->in[0]); i++) {
        double x, weight = 1.0;
        npu__ref_load_f64(&x, l->x[0], dtype, i, 1, 1);
        if (weights) {
            npu__ref_load_f64(&weight, weights, dtype, i, 1, 1);
        }
        if (x >= edges[0] && x <= edges[s->bins]) {
            sums[npu__ref_histogram_bin(s, edges, dtype, x)] += weight;
        }
    }
}

/* The operands are self, perhaps a tensor of edges, and for histogram weights, or a hole. */
static npu_status npu__ref_histogram_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_histogram *s = (const npu__ref_histogram *)l->state;
    double *edges = (double *)l->workspace, *sums = edges + s->bins + 1, total = 0.0;
    uint32_t dtype = l->in[0].dtype;
    npu_status status = NPU_OK;
    (void)part;
    (void)parts;
    if (l->num_in > 2) {
        npu__ref_load_f64(edges, l->x[1], dtype, 0, 1, s->bins + 1);
    } else {
        status = npu__ref_histogram_edges(l, s, edges);
    }
    if (status) {
        return status;
    }
    npu__ref_histogram_add(l, s, edges, sums, l->num_in > 1 ? l->x[l->num_in - 1] : NULL);
    for (size_t i = 0; i < s->bins; i++) {
        total += sums[i];
    }
    for (size_t i = 0; i < s->bins && s->density; i++) {
        sums[i] = sums[i] / total / (edges[i + 1] - edges[i]);
    }
    npu__ref_store_f64(l->y[0], dtype, 0, 1, sums, s->bins);
    if (l->num_out > 1) {
        npu__ref_store_f64(l->y[1], dtype, 0, 1, edges, s->bins + 1);
    }
    return NPU_OK;
}

/* ---- sets: slices of a dim, or elements, each once ---- */

typedef struct npu__ref_unique {
    npu__ref_along along; /* a slice is element [o, i, j] for all o and j */
    uint32_t axis;
    bool sorts;
    bool inverse, counts; /* results that are wanted */
} npu__ref_unique;

static npu_status npu__ref_unique_prepare(npu_prepare *p)
{
    npu__ref_unique *s = (npu__ref_unique *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    bool is_flat = !npu_op_has(p->op, "dim");
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_along_init(&s->along, x, is_flat, npu_op_int(p->op, "dim", 0));
    s->axis = is_flat ? 0 : npu__ref_axis(npu_op_int(p->op, "dim", 0), x->rank);
    s->sorts = p->op->kind != NPU_ATEN_UNIQUE_CONSECUTIVE;
    s->inverse = npu_op_int(p->op, "return_inverse", 0) != 0;
    s->counts = npu_op_int(p->op, "return_counts", 0) != 0;
    p->state = s;
    return npu_size_mul(2 * sizeof(npu__ref_entry), s->along.n, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* Where element k of slice i lies. */
static int64_t npu__ref_slice_at(const npu__ref_along *a, size_t k, size_t i)
{
    return (int64_t)((k / a->inner * a->n + i) * a->inner + k % a->inner);
}

/* The slices in order, stable: by their last elements first. */
static npu__ref_entry *npu__ref_sort_slices(const npu_launch *l, const npu__ref_along *a, npu__ref_entry *work)
{
    npu__ref_entry *sorted = work;
    for (size_t k = a->outer * a->inner; k-- > 0;) {
        npu__ref_entry *other = sorted == work ? work + a->n : work;
        for (size_t i = 0; i < a->n; i++) {
            int64_t at = npu__ref_slice_at(a, k, (size_t)sorted[i].index);
            sorted[i].key = npu__ref_key(l->x[0], l->in[0].dtype, at);
        }
        sorted = npu__ref_merge_sort(sorted, other, a->n);
    }
    return sorted;
}

/* NaN differs from itself. */
static bool npu__ref_slices_differ(const npu_launch *l, const npu__ref_along *a, int64_t one, int64_t other)
{
    bool real = !npu__ref_is_integer(l->in[0].dtype);
    for (size_t k = 0; k < a->outer * a->inner; k++) {
        uint64_t x = npu__ref_key(l->x[0], l->in[0].dtype, npu__ref_slice_at(a, k, (size_t)one)),
                 y = npu__ref_key(l->x[0], l->in[0].dtype, npu__ref_slice_at(a, k, (size_t)other));
        if (x != y || (real && x == UINT64_MAX)) {
            return true;
        }
    }
    return false;
}

/* Makes keys the numbers of the groups of equal neighbours; returns how many there are. */
static size_t npu__ref_number_groups(const npu_launch *l, const npu__ref_along *a, npu__ref_entry *slices)
{
    size_t groups = 0;
    for (size_t i = 0; i < a->n; i++) {
        groups += i == 0 || npu__ref_slices_differ(l, a, slices[i].index, slices[i - 1].index);
        slices[i].key = groups - 1;
    }
    return groups;
}

/* Writes the first slice of each group, where each slice has gone, and how many each group has. */
static void npu__ref_put_groups(const npu_launch *l, const npu__ref_unique *s, const npu__ref_entry *slices,
                                size_t groups)
{
    const npu__ref_along *a = &s->along;
    size_t run = a->inner * npu__ref_size(l->in[0].dtype);
    if (s->counts) {
        memset(l->y[2], 0, groups * sizeof(int64_t));
    }
    for (size_t i = 0; i < a->n; i++) {
        size_t group = (size_t)slices[i].key, index = (size_t)slices[i].index;
        bool is_first = i == 0 || slices[i - 1].key != slices[i].key;
        for (size_t o = 0; o < a->outer && is_first; o++) {
            memcpy((char *)l->y[0] + (o * groups + group) * run,
                   (const char *)l->x[0] + (o * a->n + index) * run, run);
        }
        if (s->inverse) {
            ((int64_t *)l->y[1])[index] = (int64_t)group;
        }
        if (s->counts) {
            ((int64_t *)l->y[2])[group]++;
        }
    }
}

static npu_status npu__ref_unique_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_unique *s = (const npu__ref_unique *)l->state;
    npu__ref_entry *slices = (npu__ref_entry *)l->workspace;
    size_t groups;
    (void)part;
    (void)parts;
    for (size_t i = 0; i < s->along.n; i++) {
        slices[i].index = (int64_t)i;
    }
    slices = s->sorts ? npu__ref_sort_slices(l, &s->along, slices) : slices;
    groups = npu__ref_number_groups(l, &s->along, slices);
    if (l->dims) {
        l->dims[0][s->axis] = (int64_t)groups;
        l->dims[2][0] = s->counts ? (int64_t)groups : 0;
    } else if ((int64_t)groups != l->out[0].dims[s->axis]) {
        return NPU_ERR_RANGE;
    }
    npu__ref_put_groups(l, s, slices, groups);
    return NPU_OK;
}

static const npu_kernel npu__ref_kernels_search[] = {
    NPU__REF_ROW(NPU_ATEN_EQUAL, "plain", 0, NULL, npu__ref_equal_prepare, npu__ref_equal_launch),
    NPU__REF_ROW(NPU_ATEN_ALLCLOSE, "plain", 0, NULL, npu__ref_close_prepare, npu__ref_close_launch),
    NPU__REF_ROW(NPU_ATEN_SEARCHSORTED, "plain", 0, NULL, npu__ref_search_prepare, npu__ref_search_launch),
    NPU__REF_ROW(NPU_ATEN_BUCKETIZE, "plain", 0, NULL, npu__ref_search_prepare, npu__ref_search_launch),
    NPU__REF_ROW(NPU_ATEN_ISIN, "plain", 0, NULL, npu__ref_isin_prepare, npu__ref_isin_launch),
    NPU__REF_ROW(NPU_ATEN_BINCOUNT, "plain", 0, NULL, NULL, npu__ref_bincount_launch),
    NPU__REF_ROW(NPU_ATEN_HISTC, "plain", 0, NULL, npu__ref_histogram_prepare, npu__ref_histogram_launch),
    NPU__REF_ROW(NPU_ATEN_HISTOGRAM_BINS_TENSOR, "plain", 0, NULL, npu__ref_histogram_prepare,
      npu__ref_histogram_launch),
    NPU__REF_ROW(NPU_ATEN_HISTOGRAM_BIN_CT, "plain", 0, NULL, npu__ref_histogram_prepare, npu__ref_histogram_launch),
    NPU__REF_ROW(NPU_ATEN_UNIQUE2, "plain", 0, NULL, npu__ref_unique_prepare, npu__ref_unique_launch),
    NPU__REF_ROW(NPU_ATEN_UNIQUE_CONSECUTIVE, "plain", 0, NULL, npu__ref_unique_prepare, npu__ref_unique_launch),
    NPU__REF_ROW(NPU_ATEN_UNIQUE_DIM, "plain", 0, NULL, npu__ref_unique_prepare, npu__ref_unique_launch)
};

/* ---- resize: every result is a sum over taps, which are the product of those of its dims ---- */

enum { NPU__TAPS = 4 };

/* Elements along one dim and their weights; those past `count` are not there, index -1 counts as 0. */
typedef struct npu__ref_taps {
    int64_t index[NPU__TAPS];
    double weight[NPU__TAPS];
    int count;
} npu__ref_taps;

static npu__ref_taps npu__ref_tap(int64_t index)
{
    npu__ref_taps t = { { 0 }, { 1.0 }, 1 };
    t.index[0] = index;
    return t;
}

/* The cubic convolution with a = -0.75 for the fraction f; element 1 is the one below.
   Source: ATen UpSample.h. */
static void npu__ref_cubic_weights(double f, double *w)
{
    const double a = -0.75;
    double inner[2], outer[2];
    inner[0] = f;
    inner[1] = 1.0 - f;
    for (int i = 0; i < 2; i++) {
        double x = inner[i], y = x + 1.0;
        inner[i] = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
        outer[i] = ((a * y - 5.0 * a) * y + 8.0 * a) * y - 4.0 * a;
    }
    w[0] = outer[0];
    w[1] = inner[0];
    w[2] = inner[1];
    w[3] = outer[1];
}

static inline int64_t npu__ref_clamp_index(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* Sum of the elements of one plane at taps w[0] x w[1] x w[2]. */
static double npu__ref_tap_sum(const npu_launch *l, size_t plane, const int64_t *in, const npu__ref_taps *w)
{
    double sum = 0.0;
    for (int i = 0; i < w[0].count; i++) {
        for (int j = 0; j < w[1].count; j++) {
            for (int k = 0; k < w[2].count; k++) {
                int64_t z = w[0].index[i], y = w[1].index[j], x = w[2].index[k];
                if (z >= 0 && y >= 0 && x >= 0) {
                    size_t at =
                        ((plane * (size_t)in[0] + (size_t)z) * (size_t)in[1] + (size_t)y) * (size_t)in[2];
                    sum += w[0].weight[i] * w[1].weight[j] * w[2].weight[k] *
                           npu__ref_element(l, 0, at + (size_t)x);
                }
            }
        }
    }
    return sum;
}

/* Sizes of three spatial dims, the missing ones in front being 1. */
static void npu__ref_spatial(const npu_tensor *t, int64_t *dims)
{
    uint32_t missing = 5 - t->rank;
    for (uint32_t d = 0; d < 3; d++) {
        dims[d] = d < missing ? 1 : t->dims[2 + d - missing];
    }
}

typedef struct npu__ref_resize {
    size_t planes;
    int64_t in[3], out[3];
    const npu__ref_taps *taps[3]; /* of each result along a dim */
    bool is_bytes;                /* mixed as whole numbers, whose weights have so many */
    int bits[3];                  /* binary digits after the point */
} npu__ref_resize;

enum { NPU__NEAREST, NPU__NEAREST_EXACT, NPU__LINEAR, NPU__CUBIC };

/* `scale` is a factor of the size, 0 where none is given. Source: ATen UpSample.h. */
static npu__ref_taps npu__ref_nearest_tap(int mode, int64_t in, int64_t out, double scale, int64_t o)
{
    float step = scale > 0.0 ? (float)(1.0 / scale) : (float)in / (float)out;
    float at = ((float)o + (mode == NPU__NEAREST_EXACT ? 0.5f : 0.0f)) * step;
    /* A tiny factor has an infinite step, and 0 such steps are no number. */
    return npu__ref_tap(at < (float)in ? npu__ref_clamp_index((int64_t)floorf(at), in) : in - 1);
}

static npu__ref_taps npu__ref_resize_taps(int mode, bool align, int64_t in, int64_t out, double scale,
                                          int64_t o)
{
    double step = align ? (out > 1 ? (double)(in - 1) / (double)(out - 1) : 0.0)
                        : scale > 0.0 ? 1.0 / scale : (double)in / (double)out;
    double at = align ? step * (double)o : step * ((double)o + 0.5) - 0.5;
    npu__ref_taps t = npu__ref_tap(0);
    int64_t first;
    if (mode == NPU__NEAREST || mode == NPU__NEAREST_EXACT) {
        return npu__ref_nearest_tap(mode, in, out, scale, o);
    }
    if (mode == NPU__LINEAR && in == out) { /* whatever the scale */
        return npu__ref_tap(o);
    }
    at = NPU__REF_LEAST(at, (double)in + 4.0); /* far outside there is nothing else */
    at = NPU__REF_MOST(at, mode == NPU__LINEAR ? 0.0 : -4.0);
    first = (int64_t)floor(at);
    first = mode == NPU__LINEAR ? npu__ref_clamp_index(first, in) : first;
    at -= (double)first;
    t.count = mode == NPU__LINEAR ? 2 : 4;
    for (int i = 0; i < t.count; i++) {
        t.index[i] = npu__ref_clamp_index(first + i - (mode == NPU__CUBIC), in);
    }
    if (mode == NPU__CUBIC) {
        npu__ref_cubic_weights(at, t.weight);
    } else {
        at = at > 1.0 ? 1.0 : at;
        t.weight[0] = 1.0 - at;
        t.weight[1] = at;
    }
    return t;
}

/* The factor given for spatial dim d of `dims`: in a list, or one argument per dim. */
static double npu__ref_resize_scale(const npu_op_info *op, uint32_t d, uint32_t dims)
{
    static const char *const names[] = { "scales_d", "scales_h", "scales_w" };
    int64_t in = op->in[0]->dims[2 + d], out = op->out[0]->dims[2 + d];
    if ((op->kind == NPU_ATEN_UPSAMPLE_NEAREST2D || op->kind == NPU_ATEN_UPSAMPLE_NEAREST2D_VEC) &&
        (out == in || out == 2 * in)) { /* here ATen's loop for images goes by the sizes */
        return 0.0;
    }
    if (npu_op_list_len(op, "scale_factors")) {
        return npu_op_float_at(op, "scale_factors", d);
    }
    return npu_op_float(op, dims == 1 ? "scales" : names[3 - dims + d], 0.0);
}

/* Weights of one element become one, as at the borders. */
static void npu__ref_merge_taps(npu__ref_taps *t)
{
    int n = 0;
    for (int i = 1; i < t->count; i++) {
        if (t->index[i] == t->index[n]) {
            t->weight[n] += t->weight[i];
        } else {
            t->index[++n] = t->index[i];
            t->weight[n] = t->weight[i];
        }
    }
    t->count = n + 1;
}

/* Bytes are mixed with whole numbers of 16 bits, which have as many digits as the largest weight of a dim allows.
   Source: ATen UpSampleKernel.cpp. */
static int npu__ref_round_taps(npu__ref_taps *taps, int64_t count)
{
    double most = 0.0;
    int bits = 0;
    for (int64_t o = 0; o < count; o++) {
        npu__ref_merge_taps(&taps[o]);
        for (int i = 0; i < taps[o].count; i++) {
            most = taps[o].weight[i] > most ? taps[o].weight[i] : most;
        }
    }
    while (bits < 22 && floor(0.5 + ldexp(most, bits + 1)) < 32768) {
        bits++;
    }
    for (int64_t o = 0; o < count; o++) {
        for (int i = 0; i < taps[o].count; i++) {
            taps[o].weight[i] = round(ldexp(taps[o].weight[i], bits));
        }
    }
    return bits;
}

/* A sum of bytes times such weights as a byte. */
static double npu__ref_byte_of(double sum, int bits)
{
    double y = floor(ldexp(sum, -bits) + 0.5);
    return y < 0 ? 0 : y > 255 ? 255 : y;
}

/* Rows are mixed to bytes first, then the columns. */
static double npu__ref_tap_bytes(const npu_launch *l, const npu__ref_resize *r, size_t plane, const npu__ref_taps *w)
{
    const uint8_t *x = (const uint8_t *)l->x[0] + plane * (size_t)(r->in[1] * r->in[2]);
    double sum = 0.0;
    for (int i = 0; i < w[1].count; i++) {
        const uint8_t *row = x + w[1].index[i] * r->in[2];
        double mixed = 0.0;
        for (int j = 0; j < w[2].count; j++) {
            mixed += w[2].weight[j] * row[w[2].index[j]];
        }
        sum += w[1].weight[i] * npu__ref_byte_of(mixed, r->bits[2]);
    }
    return npu__ref_byte_of(sum, r->bits[1]);
}

static npu_status npu__ref_resize_prepare(npu_prepare *p)
{
    npu__ref_resize *r = (npu__ref_resize *)npu_prepare_alloc(p, sizeof *r);
    uint32_t dims = p->in[0].rank - 2, kind = p->op->kind;
    bool align = npu_op_int(p->op, "align_corners", 0) != 0;
    int mode = kind < NPU_ATEN_UPSAMPLE_LINEAR1D ? NPU__NEAREST
               : kind < NPU_ATEN_UPSAMPLE_BICUBIC2D ? NPU__LINEAR
               : kind < NPU_ATEN_UPSAMPLE_NEAREST_EXACT1D_VEC ? NPU__CUBIC : NPU__NEAREST_EXACT;
    if (!r) {
        return NPU_ERR_NO_MEMORY;
    }
    r->is_bytes = p->in[0].dtype == NPU_U8 && (mode == NPU__LINEAR || mode == NPU__CUBIC);
    npu__ref_spatial(&p->in[0], r->in);
    npu__ref_spatial(&p->out[0], r->out);
    if (npu__ref_len(&p->out[0]) == 0) {
        memset(r->out, 0, sizeof r->out); /* no taps, however large the result would be */
    }
    for (uint32_t d = 0; d < 3; d++) {
        npu__ref_taps *taps = (npu__ref_taps *)npu_prepare_alloc(p, (size_t)r->out[d] * sizeof *taps);
        if (!taps) {
            return NPU_ERR_NO_MEMORY;
        }
        for (int64_t o = 0; o < r->out[d]; o++) {
            taps[o] = d + dims < 3
                          ? npu__ref_tap(0)
                          : npu__ref_resize_taps(mode, align, r->in[d], r->out[d],
                                                 npu__ref_resize_scale(p->op, d + dims - 3, dims), o);
        }
        r->bits[d] = r->is_bytes ? npu__ref_round_taps(taps, r->out[d]) : 0;
        r->taps[d] = taps;
    }
    r->planes = npu__ref_dims_len(&p->in[0], 0, 2);
    p->state = r;
    p->parts = npu__ref_item_parts(r->planes * (size_t)(r->out[0] * r->out[1]), (size_t)r->out[2] * 8);
    return NPU_OK;
}

/* Parts are ranges of rows of the result. */
static npu_status npu__ref_resize_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_resize *r = (const npu__ref_resize *)l->state;
    size_t depth = (size_t)r->out[0], height = (size_t)r->out[1], width = (size_t)r->out[2], begin, end;
    npu__ref_share(r->planes * depth * height, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        npu__ref_taps w[3];
        w[0] = r->taps[0][row / height % depth];
        w[1] = r->taps[1][row % height];
        for (size_t o = 0; o < width; o++) {
            double y;
            w[2] = r->taps[2][o];
            y = r->is_bytes ? npu__ref_tap_bytes(l, r, row / height, w)
                            : npu__ref_tap_sum(l, row / (depth * height), r->in, w);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(row * width + o), 1, &y, 1);
        }
    }
    return NPU_OK;
}

/* ---- sampling at the points of a grid ---- */

typedef struct npu__ref_grid {
    int64_t in[3], out[3];
    uint32_t dims;
    size_t channels;
    int interpolation; /* 0 linear, 1 nearest, 2 cubic */
    int padding;       /* 0 zeros, 1 border, 2 reflection */
    bool align;
} npu__ref_grid;

/* A coordinate between low / 2 and high / 2, reflected there as often as it takes. */
static double npu__ref_reflect(double x, double low, double high)
{
    double min = low / 2.0, span = (high - low) / 2.0, rest, flips;
    if (low == high) {
        return 0.0;
    }
    x = fabs(x - min);
    rest = fmod(x, span);
    flips = floor(x / span);
    return fmod(flips, 2.0) == 0.0 ? rest + min : span - rest + min;
}

/* The padding mode's answer to a coordinate outside of 0 .. n - 1. What is no number becomes far outside. */
static double npu__ref_grid_pad(const npu__ref_grid *g, double x, int64_t n)
{
    double last = (double)(n - 1);
    if (g->padding == 2) {
        x = g->align ? npu__ref_reflect(x, 0.0, 2.0 * last)
                     : npu__ref_reflect(x, -1.0, 2.0 * (double)n - 1.0);
    }
    if (g->padding) {
        return x > 0.0 ? (x < last ? x : last) : 0.0;
    }
    return x > -100.0 && x < (double)n + 100.0 ? x : -100.0;
}

/* The taps of one coordinate of a point, -1 to 1 being the edges of the input. */
static npu__ref_taps npu__ref_grid_taps(const npu__ref_grid *g, double x, int64_t n)
{
    npu__ref_taps t = npu__ref_tap(0);
    double first;
    x = g->align ? (x + 1.0) / 2.0 * (double)(n - 1) : ((x + 1.0) * (double)n - 1.0) / 2.0;
    if (g->interpolation != 2) {
        x = npu__ref_grid_pad(g, x, n);
    } else if (!(fabs(x) < 1e15)) {
        x = -100.0;
    }
    first = g->interpolation == 1 ? nearbyint(x) : floor(x);
    t.count = g->interpolation == 1 ? 1 : g->interpolation == 0 ? 2 : 4;
    for (int i = 0; i < t.count; i++) {
        double at = first + i - (g->interpolation == 2);
        at = g->interpolation == 2 ? npu__ref_grid_pad(g, at, n) : at;
        t.index[i] = at >= 0.0 && at < (double)n ? (int64_t)at : -1;
    }
    if (t.count == 2) {
        t.weight[0] = 1.0 - (x - first);
        t.weight[1] = x - first;
    } else if (t.count == 4) {
        npu__ref_cubic_weights(x - first, t.weight);
    }
    return t;
}

static npu_status npu__ref_grid_prepare(npu_prepare *p)
{
    npu__ref_grid *g = (npu__ref_grid *)npu_prepare_alloc(p, sizeof *g);
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_spatial(&p->in[0], g->in);
    npu__ref_spatial(&p->out[0], g->out);
    g->dims = p->in[0].rank - 2;
    g->channels = (size_t)p->in[0].dims[1];
    g->interpolation = (int)npu_op_int(p->op, "interpolation_mode", 0);
    g->padding = (int)npu_op_int(p->op, "padding_mode", 0);
    g->align = npu_op_int(p->op, "align_corners", 0) != 0;
    p->state = g;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(&p->out[0]) / (g->channels ? g->channels : 1),
                                   g->channels * 16);
    return NPU_OK;
}

/* Items are points; coordinates lie innermost dim first. */
static npu_status npu__ref_grid_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_grid *g = (const npu__ref_grid *)l->state;
    size_t points = (size_t)(g->out[0] * g->out[1] * g->out[2]), begin, end;
    npu__ref_share((size_t)l->in[0].dims[0] * points, part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        npu__ref_taps w[3];
        w[0] = npu__ref_tap(0);
        for (uint32_t d = 0; d < g->dims; d++) {
            w[2 - d] = npu__ref_grid_taps(g, npu__ref_element(l, 1, i * g->dims + d), g->in[2 - d]);
        }
        for (size_t c = 0; c < g->channels; c++) {
            size_t plane = i / points * g->channels + c;
            double y = npu__ref_tap_sum(l, plane, g->in, w);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(plane * points + i % points), 1, &y, 1);
        }
    }
    return NPU_OK;
}

#define NPU__REF_RESIZE_KERNEL(kind)                                                                         \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_resize_prepare, npu__ref_resize_launch)
#define NPU__REF_GRID_KERNEL(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_grid_prepare, npu__ref_grid_launch)

static const npu_kernel npu__ref_kernels_resize[] = {
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST1D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST1D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST2D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST2D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST3D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST3D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_LINEAR1D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_LINEAR1D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_BILINEAR2D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_BILINEAR2D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_TRILINEAR3D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_TRILINEAR3D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_BICUBIC2D),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_BICUBIC2D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST_EXACT1D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST_EXACT2D_VEC),
    NPU__REF_RESIZE_KERNEL(NPU_ATEN_UPSAMPLE_NEAREST_EXACT3D_VEC),
    NPU__REF_GRID_KERNEL(NPU_ATEN_GRID_SAMPLER),
    NPU__REF_GRID_KERNEL(NPU_ATEN_GRID_SAMPLER_2D),
    NPU__REF_GRID_KERNEL(NPU_ATEN_GRID_SAMPLER_3D)
};

/* ---- distances and bags ---- */

/* p-norm of the difference of two rows of n elements, from operands a and b. */
static double npu__ref_row_distance(const npu_launch *l, int a, size_t a_first, int b, size_t b_first,
                                    size_t n, double p)
{
    const npu__ref_statistic *norm = npu__ref_norm_statistic(p);
    npu__ref_sums sums = { 0.0, 0.0, p, 0.0 };
    double x[NPU__STRIP], y[NPU__STRIP];
    for (size_t i = 0; i < n; i += NPU__STRIP) {
        size_t len = n - i < NPU__STRIP ? n - i : NPU__STRIP;
        npu__ref_load_f64(x, l->x[a], l->in[a].dtype, (int64_t)(a_first + i), 1, len);
        npu__ref_load_f64(y, l->x[b], l->in[b].dtype, (int64_t)(b_first + i), 1, len);
        for (size_t j = 0; j < len; j++) {
            x[j] -= y[j];
        }
        norm->passes[0](&sums, x, len);
    }
    return norm->finish(&sums);
}

typedef struct npu__ref_distance {
    double p;
    size_t n, rows[2];
    uint32_t batch_rank;
    int64_t batch[NPU_MAX_RANK], strides[2][NPU_MAX_RANK]; /* in matrices; 0 where a dim is broadcast */
} npu__ref_distance;

static npu_status npu__ref_distances_prepare(npu_prepare *p)
{
    npu__ref_distance *s = (npu__ref_distance *)npu_prepare_alloc(p, sizeof *s);
    uint32_t operands = p->op->num_in;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->p = npu_op_float(p->op, "p", 2.0);
    s->batch_rank = operands == 2 ? p->out[0].rank - 2 : 0;
    memcpy(s->batch, p->out[0].dims, s->batch_rank * sizeof s->batch[0]);
    for (uint32_t k = 0; k < operands; k++) {
        const npu_tensor *x = &p->in[k];
        int64_t stride = 1;
        s->n = (size_t)x->dims[x->rank - 1];
        s->rows[k] = (size_t)x->dims[x->rank - 2];
        for (uint32_t i = 0; i + 2 < x->rank; i++) {
            uint32_t from = x->rank - 3 - i, to = s->batch_rank - 1 - i;
            s->strides[k][to] = x->dims[from] == 1 ? 0 : stride;
            stride *= x->dims[from];
        }
    }
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(&p->out[0]), s->n);
    return NPU_OK;
}

/* The matrix of operand k in batch b. */
static size_t npu__ref_distance_matrix(const npu__ref_distance *s, int k, size_t b)
{
    size_t at = 0;
    for (uint32_t d = s->batch_rank; d-- > 0;) {
        at += b % (size_t)s->batch[d] * (size_t)s->strides[k][d];
        b /= (size_t)s->batch[d];
    }
    return at;
}

static npu_status npu__ref_distances_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_distance *s = (const npu__ref_distance *)l->state;
    size_t size = s->rows[0] * s->rows[1], begin, end;
    npu__ref_share((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        size_t a = npu__ref_distance_matrix(s, 0, o / size) * s->rows[0] + o % size / s->rows[1];
        size_t b = npu__ref_distance_matrix(s, 1, o / size) * s->rows[1] + o % s->rows[1];
        double y = npu__ref_row_distance(l, 0, a * s->n, 1, b * s->n, s->n, s->p);
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, &y, 1);
    }
    return NPU_OK;
}

/* Pairs i < j in order of i; a part does every parts-th i. */
static npu_status npu__ref_pdist_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_distance *s = (const npu__ref_distance *)l->state;
    size_t rows = s->rows[0], first = 0;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = i + 1; j < rows && i % parts == part; j++) {
            double y = npu__ref_row_distance(l, 0, i * s->n, 0, j * s->n, s->n, s->p);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(first + j - i - 1), 1, &y, 1);
        }
        first += rows - i - 1;
    }
    return NPU_OK;
}

typedef struct npu__ref_bags {
    int64_t mode, padding; /* 0 sum, 1 mean, 2 maximum; an index that does not count, -1 = none */
    int weights;           /* operand per_sample_weights, -1 = none */
    size_t bags, dim, rows, indices;
    bool has_last;
} npu__ref_bags;

static npu_status npu__ref_bags_prepare(npu_prepare *p)
{
    npu__ref_bags *s = (npu__ref_bags *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->mode = npu_op_int(p->op, "mode", 0);
    s->padding = npu_op_int(p->op, "padding_idx", -1);
    s->weights = npu_op_operand(p->op, "per_sample_weights");
    s->rows = (size_t)p->in[0].dims[0];
    s->dim = (size_t)p->in[0].dims[1];
    s->indices = (size_t)p->in[1].dims[0];
    s->bags = (size_t)p->out[0].dims[0];
    s->has_last = npu_op_int(p->op, "include_last_offset", 0) != 0;
    if (p->op->kind == NPU_ATEN_EMBEDDING_BAG_PADDING_IDX && npu_op_has(p->op, "padding_idx") &&
        s->padding < 0) {
        s->padding += (int64_t)s->rows;
    }
    p->state = s;
    return NPU_OK;
}

/* Begin and end of a bag among the indices. */
static bool npu__ref_bag_range(const npu_launch *l, const npu__ref_bags *s, size_t bag, size_t *begin,
                               size_t *end)
{
    bool last = bag + 1 == s->bags && !s->has_last;
    int64_t first = npu__ref_index(l->x[2], l->in[2].dtype, bag);
    int64_t stop = last ? (int64_t)s->indices : npu__ref_index(l->x[2], l->in[2].dtype, bag + 1);
    *begin = (size_t)first;
    *end = (size_t)stop;
    return first >= 0 && first <= stop && (uint64_t)stop <= s->indices && (bag > 0 || first == 0);
}

/* One column of a bag; the index of a maximum goes to *at. */
static double npu__ref_bag_column(const npu_launch *l, const npu__ref_bags *s, size_t begin, size_t end,
                                  size_t column, int64_t *at)
{
    double y = 0.0;
    int64_t count = 0;
    *at = 0;
    for (size_t i = begin; i < end; i++) {
        int64_t index = npu__ref_index(l->x[1], l->in[1].dtype, i);
        double x, weight = npu__ref_has(l, s->weights) ? npu__ref_element(l, s->weights, i) : 1.0;
        if (index == s->padding) {
            continue;
        }
        x = npu__ref_element(l, 0, (size_t)index * s->dim + column);
        if (s->mode != 2) {
            y += weight * x;
        } else if (count == 0 || x > y || isnan(x)) {
            y = x;
            *at = index;
        }
        count++;
    }
    return s->mode == 1 && count ? y / (double)count : y;
}

static void npu__ref_put_index(const npu_launch *l, uint32_t result, size_t at, int64_t index)
{
    npu__ref_store_i64(l->y[result], l->out[result].dtype, (int64_t)at, 1, &index, 1);
}

/* All of one bag: its row, the bag of its indices, its size, and where its maxima are. */
static npu_status npu__ref_bag(const npu_launch *l, const npu__ref_bags *s, size_t bag)
{
    size_t begin, end;
    int64_t count = 0, at;
    if (!npu__ref_bag_range(l, s, bag, &begin, &end)) {
        return NPU_ERR_RANGE;
    }
    for (size_t i = begin; i < end; i++) {
        int64_t index;
        if (!npu__ref_read_index(l, 1, i, s->rows, &index)) {
            return NPU_ERR_RANGE;
        }
        count += index != s->padding;
        npu__ref_put_index(l, 1, i, (int64_t)bag);
    }
    npu__ref_put_index(l, 2, bag, count);
    if (s->mode != 2) {
        npu__ref_put_index(l, 3, bag, 0);
    }
    for (size_t column = 0; column < s->dim; column++) {
        double y = npu__ref_bag_column(l, s, begin, end, column, &at);
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(bag * s->dim + column), 1, &y, 1);
        if (s->mode == 2) {
            npu__ref_put_index(l, 3, bag * s->dim + column, at);
        }
    }
    return NPU_OK;
}

static npu_status npu__ref_bags_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_bags *s = (const npu__ref_bags *)l->state;
    npu_status status = NPU_OK;
    (void)part, (void)parts;
    for (size_t i = 0; i < s->indices; i++) { /* those before the first bag have none */
        npu__ref_put_index(l, 1, i, 0);
    }
    for (size_t bag = 0; bag < s->bags && !status; bag++) {
        status = npu__ref_bag(l, s, bag);
    }
    return status;
}

static const npu_kernel npu__ref_kernels_vectors[] = {
    NPU__REF_ROW(NPU_ATEN_CDIST_FORWARD, "plain", 0, NULL, npu__ref_distances_prepare, npu__ref_distances_launch),
    NPU__REF_ROW(NPU_ATEN_EUCLIDEAN_DIST, "plain", 0, NULL, npu__ref_distances_prepare, npu__ref_distances_launch),
    NPU__REF_ROW(NPU_ATEN_PDIST_FORWARD, "plain", 0, NULL, npu__ref_distances_prepare, npu__ref_pdist_launch),
    NPU__REF_ROW(NPU_ATEN_PDIST, "plain", 0, NULL, npu__ref_distances_prepare, npu__ref_pdist_launch),
    NPU__REF_ROW(NPU_ATEN_EMBEDDING_BAG_RAW, "plain", 0, NULL, npu__ref_bags_prepare, npu__ref_bags_launch),
    NPU__REF_ROW(NPU_ATEN_EMBEDDING_BAG, "plain", 0, NULL, npu__ref_bags_prepare, npu__ref_bags_launch),
    NPU__REF_ROW(NPU_ATEN_EMBEDDING_BAG_PADDING_IDX, "plain", 0, NULL, npu__ref_bags_prepare, npu__ref_bags_launch)
};

/* ---- losses of elements: all operands broadcast to one shape ---- */

enum { NPU__LOSS_NONE, NPU__LOSS_MEAN, NPU__LOSS_SUM };

typedef struct npu__ref_loss {
    uint32_t kind, rank, num_in;
    size_t len;
    int64_t dims[NPU_MAX_RANK], strides[NPU__REF_OPERANDS][NPU_MAX_RANK];
    int64_t reduction;
    double p, eps;         /* beta, delta, margin; eps */
    bool flag, full;       /* log_target or log_input; full */
    uint32_t wraps;        /* the integer dtype of all operands, 0 where there is none */
} npu__ref_loss;

/* Joins the dims of one more operand. */
static void npu__ref_loss_join(npu__ref_loss *s, const npu_tensor *x)
{
    uint32_t rank = x->rank > s->rank ? x->rank : s->rank;
    for (uint32_t i = 0; i < rank; i++) { /* from the last dim */
        int64_t have = i < s->rank ? s->dims[i] : 1, dim = i < x->rank ? x->dims[x->rank - 1 - i] : 1;
        s->dims[i] = have == 1 ? dim : have;
    }
    s->rank = rank;
}

/* dims and strides count from the last dim; a broadcast dim has stride 0. */
static void npu__ref_loss_shape(npu_prepare *p, npu__ref_loss *s)
{
    s->num_in = p->op->num_in;
    s->wraps = npu__ref_is_integer(p->in[0].dtype) ? p->in[0].dtype : 0;
    for (uint32_t k = 1; k < s->num_in; k++) {
        s->wraps = p->in[k].dtype == s->wraps || p->op->kind == NPU_ATEN_HINGE_EMBEDDING_LOSS ? s->wraps : 0;
    }
    for (uint32_t k = 0; k < s->num_in; k++) {
        if (p->in[k].dtype) {
            npu__ref_loss_join(s, &p->in[k]);
        }
    }
    s->len = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        s->len *= (size_t)s->dims[i];
    }
    for (uint32_t k = 0; k < s->num_in; k++) {
        int64_t stride = 1;
        for (uint32_t i = 0; i < p->in[k].rank && p->in[k].dtype; i++) {
            int64_t dim = p->in[k].dims[p->in[k].rank - 1 - i];
            s->strides[k][i] = dim == 1 ? 0 : stride;
            stride *= dim;
        }
    }
}

static npu_status npu__ref_loss_prepare(npu_prepare *p)
{
    npu__ref_loss *s = (npu__ref_loss *)npu_prepare_alloc(p, sizeof *s);
    const npu_op_info *op = p->op;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_loss_shape(p, s);
    s->kind = op->kind;
    s->reduction = npu_op_int(op, "reduction", NPU__LOSS_MEAN);
    s->p = npu_op_float(op, "beta", npu_op_float(op, "delta", npu_op_float(op, "margin", 0.0)));
    s->eps = npu_op_float(op, "eps", 0.0);
    s->flag = npu_op_int(op, "log_target", npu_op_int(op, "log_input", 0)) != 0;
    s->full = npu_op_int(op, "full", 0) != 0;
    p->state = s;
    p->parts = s->reduction ? 1 : npu__ref_item_parts(s->len, 4);
    return NPU_OK;
}

/* Element i of operand k. */
static double npu__ref_loss_operand(const npu_launch *l, const npu__ref_loss *s, uint32_t k, size_t i)
{
    size_t at = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        at += i % (size_t)s->dims[d] * (size_t)s->strides[k][d];
        i /= (size_t)s->dims[d];
    }
    return npu__ref_element(l, (int)k, at);
}

/* An intermediate number of integers is one of their dtype, 0 = none: 0 - 1 is 255 in u8. */
static double npu__ref_wrapped(uint32_t dtype, double x)
{
    int64_t i, memory;
    if (!dtype) {
        return x;
    }
    i = npu__ref_to_i64(x);
    npu__ref_store_i64(&memory, dtype, 0, 1, &i, 1);
    npu__ref_load_i64(&i, &memory, dtype, 0, 1, 1);
    return (double)i;
}

static double npu__ref_x_log_x(double x) { return x == 0.0 ? 0.0 : x * log(x); }
static double npu__ref_log_100(double x)
{
    return NPU__REF_MOST(x, -100.0);
} /* torch's bound of log(0) here */

static double npu__ref_poisson_loss(const npu__ref_loss *s, double x, double t)
{
    double y = s->flag ? exp(x) - t * x : x - t * log(x + s->eps);
    return y + (s->full && t > 1.0 ? t * log(t) - t + 0.5 * log(6.283185307179586 * t) : 0.0);
}

/* weight of the classes that are 1. */
static double npu__ref_logits_loss(double x, double t, double weight)
{
    return (1.0 - t) * x + (1.0 + (weight - 1.0) * t) * (log1p(exp(-fabs(x))) + (x < 0.0 ? -x : 0.0));
}

/* x are the operands; those that are not there are 1. */
static double npu__ref_loss_of(const npu__ref_loss *s, const double *x)
{
    double a = x[0], t = x[1], d = fabs(a - t), hinge;
    switch (s->kind) {
    case NPU_ATEN_L1_LOSS: return npu__ref_wrapped(s->wraps, fabs(npu__ref_wrapped(s->wraps, a - t)));
    case NPU_ATEN_MSE_LOSS: return d * d;
    case NPU_ATEN_SMOOTH_L1_LOSS: return d < s->p ? 0.5 * d * d / s->p : d - 0.5 * s->p;
    case NPU_ATEN_HUBER_LOSS: return d <= s->p ? 0.5 * d * d : s->p * (d - 0.5 * s->p);
    case NPU_ATEN_KL_DIV: return s->flag ? exp(t) * (t - a) : npu__ref_x_log_x(t) - t * a;
    case NPU_ATEN_BINARY_CROSS_ENTROPY:
        return x[2] * ((t - 1.0) * npu__ref_log_100(log1p(-a)) - t * npu__ref_log_100(log(a)));
    case NPU_ATEN_BINARY_CROSS_ENTROPY_WITH_LOGITS: return x[2] * npu__ref_logits_loss(a, t, x[3]);
    case NPU_ATEN_SOFT_MARGIN_LOSS: return log1p(exp(-t * a));
    case NPU_ATEN_POISSON_NLL_LOSS: return npu__ref_poisson_loss(s, a, t);
    case NPU_ATEN_HINGE_EMBEDDING_LOSS:
        hinge = npu__ref_wrapped(s->wraps, npu__ref_wrapped(s->wraps, s->p) - a);
        hinge = t != 1.0 ? NPU__REF_MOST(hinge, 0.0) : 0.0;
        return npu__ref_wrapped(s->wraps, hinge + (t != -1.0 ? a : 0.0));
    default:
        hinge = s->p + npu__ref_wrapped(s->wraps, -x[2] * (a - t));
        return NPU__REF_MOST(hinge, 0.0);
    }
}

/* The loss of one item: itself a result, or part of the only one. */
static void npu__ref_loss_add(const npu_launch *l, int64_t reduction, size_t i, double y, double *sum)
{
    *sum += y;
    if (reduction == NPU__LOSS_NONE) {
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)i, 1, &y, 1);
    }
}

static void npu__ref_loss_end(const npu_launch *l, int64_t reduction, double sum, double count)
{
    sum = reduction == NPU__LOSS_MEAN ? sum / count : sum;
    if (reduction != NPU__LOSS_NONE) {
        npu__ref_store_f64(l->y[0], l->out[0].dtype, 0, 1, &sum, 1);
    }
}

static npu_status npu__ref_loss_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_loss *s = (const npu__ref_loss *)l->state;
    double sum = 0.0;
    size_t begin, end;
    npu__ref_share(s->len, part, parts, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        double x[NPU__REF_OPERANDS] = { 1.0, 1.0, 1.0, 1.0 };
        for (uint32_t k = 0; k < s->num_in; k++) {
            x[k] = l->x[k] ? npu__ref_loss_operand(l, s, k, i) : 1.0;
        }
        if (s->kind == NPU_ATEN_BINARY_CROSS_ENTROPY && !(x[0] >= 0.0 && x[0] <= 1.0)) {
            return NPU_ERR_RANGE;
        }
        npu__ref_loss_add(l, s->reduction, i, npu__ref_loss_of(s, x), &sum);
    }
    npu__ref_loss_end(l, s->reduction, sum, (double)s->len);
    return NPU_OK;
}

/* ---- losses of classes: x is [outer, classes, inner] ---- */

typedef struct npu__ref_nll {
    npu__ref_along along;
    int weight; /* operand, -1 = none */
    int64_t ignored, reduction;
    double smoothing;
    bool entropy, probabilities;
} npu__ref_nll;

static npu_status npu__ref_nll_prepare(npu_prepare *p)
{
    npu__ref_nll *s = (npu__ref_nll *)npu_prepare_alloc(p, sizeof *s);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_along_init(&s->along, &p->in[0], false, p->in[0].rank > 1);
    s->weight = npu_op_operand(p->op, "weight");
    s->ignored = npu_op_int(p->op, "ignore_index", -100);
    s->reduction = npu_op_int(p->op, "reduction", NPU__LOSS_MEAN);
    s->smoothing = npu_op_float(p->op, "label_smoothing", 0.0);
    s->entropy = p->op->kind == NPU_ATEN_CROSS_ENTROPY_LOSS;
    s->probabilities = !npu__ref_is_integer(p->in[1].dtype);
    p->state = s;
    return NPU_OK;
}

/* What the score of a class is lessened by to be a logarithm of a probability. */
static double npu__ref_nll_shift(const npu_launch *l, const npu__ref_nll *s, size_t first)
{
    npu__ref_softmax row;
    if (!s->entropy) {
        return 0.0;
    }
    row = npu__ref_softmax_sum(l->x[0], l->in[0].dtype, first, s->along.n, s->along.inner, NULL);
    return row.max + log(row.sum);
}

/* Loss of one row, whose classes have the given share in it besides that of class `target` (-1 = that of
   operand 1). */
static double npu__ref_nll_spread(const npu_launch *l, const npu__ref_nll *s, size_t first, int64_t target)
{
    double shift = npu__ref_nll_shift(l, s, first), loss = 0.0, even = s->smoothing / (double)s->along.n;
    for (size_t c = 0; c < s->along.n; c++) {
        size_t at = first + c * s->along.inner;
        double hit = target < 0 ? npu__ref_element(l, 1, at) : (double)((size_t)target == c);
        double share = hit * (1.0 - s->smoothing) + even;
        double weight = npu__ref_has(l, s->weight) ? npu__ref_element(l, s->weight, c) : 1.0;
        if (target < 0 || share != 0.0) { /* a score that does not count may be infinite */
            loss -= share * weight * (npu__ref_element(l, 0, at) - shift);
        }
    }
    return loss;
}

/* Row o: its loss and the weight that it adds to the mean. */
static npu_status npu__ref_nll_row(const npu_launch *l, const npu__ref_nll *s, size_t o, double *loss,
                                   double *weight)
{
    size_t first = npu__ref_along_first(&s->along, o);
    int64_t target;
    *loss = 0.0;
    *weight = 1.0;
    if (s->probabilities) {
        *loss = npu__ref_nll_spread(l, s, first, -1);
        return NPU_OK;
    }
    bool inside = npu__ref_read_index(l, 1, o, s->along.n, &target);
    if (target == s->ignored) {
        *weight = 0.0;
        return NPU_OK;
    }
    if (!inside) {
        return NPU_ERR_RANGE;
    }
    *weight = npu__ref_has(l, s->weight) ? npu__ref_element(l, s->weight, (size_t)target) : 1.0;
    *loss = npu__ref_nll_spread(l, s, first, target);
    return NPU_OK;
}

/* A second result is the sum of weights, 0 where nothing is reduced. */
static npu_status npu__ref_nll_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_nll *s = (const npu__ref_nll *)l->state;
    size_t rows = s->along.outer * s->along.inner;
    double sum = 0.0, total = 0.0, loss, weight;
    (void)part, (void)parts;
    for (size_t o = 0; o < rows; o++) {
        npu_status status = npu__ref_nll_row(l, s, o, &loss, &weight);
        if (status) {
            return status;
        }
        npu__ref_loss_add(l, s->reduction, o, loss, &sum);
        total += weight;
    }
    npu__ref_loss_end(l, s->reduction, sum, total);
    total = s->reduction == NPU__LOSS_NONE && l->in[0].rank > 1 ? 0.0 : total; /* as ATen */
    if (l->num_out == 2) {
        npu__ref_store_f64(l->y[1], l->out[1].dtype, 0, 1, &total, 1);
    }
    return NPU_OK;
}

/* ---- cosine similarity: operands broadcast as in losses, one dim summed ---- */

typedef struct npu__ref_cosine {
    npu__ref_loss shape;
    uint32_t axis; /* from the last dim */
    size_t inner, n;
} npu__ref_cosine;

static npu_status npu__ref_cosine_prepare(npu_prepare *p)
{
    npu__ref_cosine *s = (npu__ref_cosine *)npu_prepare_alloc(p, sizeof *s);
    uint32_t rank;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_loss_shape(p, &s->shape);
    s->shape.eps = npu_op_float(p->op, "eps", 1e-8);
    rank = s->shape.rank;
    s->axis = rank ? rank - 1 - npu__ref_axis(npu_op_int(p->op, "dim", 1), rank) : 0;
    s->inner = s->n = 1;
    for (uint32_t i = 0; i < s->axis; i++) {
        s->inner *= (size_t)s->shape.dims[i];
    }
    s->n = rank ? (size_t)s->shape.dims[s->axis] : 1;
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(&p->out[0]), s->n * 4);
    return NPU_OK;
}

static npu_status npu__ref_cosine_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_cosine *s = (const npu__ref_cosine *)l->state;
    size_t begin, end;
    npu__ref_share((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        double dot = 0.0, squares[2] = { 0.0, 0.0 }, y;
        for (size_t i = 0; i < s->n; i++) {
            size_t at = (o / s->inner * s->n + i) * s->inner + o % s->inner;
            double a = npu__ref_loss_operand(l, &s->shape, 0, at),
                   b = npu__ref_loss_operand(l, &s->shape, 1, at);
            dot += a * b;
            squares[0] += a * a;
            squares[1] += b * b;
        }
        y = dot /
            (NPU__REF_MOST(sqrt(squares[0]), s->shape.eps) * NPU__REF_MOST(sqrt(squares[1]), s->shape.eps));
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, &y, 1);
    }
    return NPU_OK;
}

/* ---- norms of differences: runs of n elements of the broadcast shape ---- */

typedef struct npu__ref_difference {
    npu__ref_loss shape;
    size_t n;
} npu__ref_difference;

static npu_status npu__ref_difference_prepare(npu_prepare *p)
{
    npu__ref_difference *s = (npu__ref_difference *)npu_prepare_alloc(p, sizeof *s);
    bool pairwise = p->op->kind == NPU_ATEN_PAIRWISE_DISTANCE;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__ref_loss_shape(p, &s->shape);
    s->shape.p = npu_scalar_value(npu_op_scalar(p->op, "p", npu_scalar_int(2)));
    s->shape.eps = npu_op_float(p->op, "eps", 0.0);
    s->n = pairwise && s->shape.rank ? (size_t)s->shape.dims[0] : s->shape.len;
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)npu__ref_len(&p->out[0]), s->n * 4);
    return NPU_OK;
}

/* Of operands a and b: n elements from the first one. The difference of integers is one. */
static double npu__ref_difference_norm(const npu_launch *l, const npu__ref_loss *s, uint32_t a, uint32_t b,
                                       size_t first, size_t n)
{
    const npu__ref_statistic *norm = npu__ref_norm_statistic(s->p);
    npu__ref_sums sums = { norm->start, 0.0, s->p, 0.0 };
    uint32_t wraps = npu__ref_promote(l->in[a].dtype, l->in[b].dtype);
    for (size_t i = first; i < first + n; i++) {
        double d = npu__ref_loss_operand(l, s, a, i) - npu__ref_loss_operand(l, s, b, i);
        d = npu__ref_wrapped(npu__ref_is_integer(wraps) ? wraps : 0, d) + s->eps;
        norm->passes[0](&sums, &d, 1);
    }
    return norm->finish(&sums);
}

static npu_status npu__ref_difference_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_difference *s = (const npu__ref_difference *)l->state;
    size_t begin, end;
    npu__ref_share((size_t)npu__ref_len(&l->out[0]), part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        double y = npu__ref_difference_norm(l, &s->shape, 0, 1, o * s->n, s->n);
        npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, &y, 1);
    }
    return NPU_OK;
}

/* ---- losses of rows ---- */

typedef struct npu__ref_row_loss npu__ref_row_loss;
struct npu__ref_row_loss {
    npu_status (*row)(const npu_launch *l, const npu__ref_row_loss *s, size_t row, double *loss);
    npu__ref_loss shape; /* of the operands of a triplet; p and eps */
    size_t rows, n;      /* n numbers in a row */
    int64_t reduction;
    double margin;
    int weight;          /* operand, -1 = none */
    bool swap;
};

/* Sum of the products of two operands in a row. A row of one number, and an only row, is repeated. */
static double npu__ref_row_product(const npu_launch *l, uint32_t a, uint32_t b, size_t row)
{
    const uint32_t k[2] = { a, b };
    uint32_t wraps = npu__ref_promote(l->in[a].dtype, l->in[b].dtype);
    size_t first[2], step[2], n = 1;
    double sum = 0.0;
    for (int i = 0; i < 2; i++) {
        const npu_tensor *x = &l->in[k[i]];
        size_t len = (size_t)npu__ref_last_dim(x);
        first[i] = npu__ref_leading(x) == 1 ? 0 : row * len;
        step[i] = len != 1;
        n = n == 1 ? len : n;
    }
    for (size_t i = 0; i < n; i++) {
        double x = npu__ref_element(l, (int)a, first[0] + i * step[0]);
        x *= npu__ref_element(l, (int)b, first[1] + i * step[1]);
        sum += npu__ref_wrapped(npu__ref_is_integer(wraps) ? wraps : 0, x);
    }
    return sum;
}

/* -1 in an unsigned target is its largest number. */
static npu_status npu__ref_cosine_row(const npu_launch *l, const npu__ref_row_loss *s, size_t row,
                                      double *loss)
{
    uint32_t dtype = l->in[2].dtype;
    double target = npu__ref_element(l, 2, npu__ref_len(&l->in[2]) == 1 ? 0 : row);
    double other = npu__ref_wrapped(npu__ref_is_integer(dtype) ? dtype : 0, -1.0), eps = (double)1e-12f;
    double a = npu__ref_row_product(l, 0, 0, row) + eps, b = npu__ref_row_product(l, 1, 1, row) + eps;
    double cosine = npu__ref_row_product(l, 0, 1, row) / sqrt(a * b);
    *loss = target == 1.0 ? 1.0 - cosine : target == other ? NPU__REF_MOST(cosine - s->margin, 0.0) : 0.0;
    return NPU_OK;
}

/* The distance of two operands in a row, over as many numbers as these two have. */
static double npu__ref_row_difference(const npu_launch *l, const npu__ref_row_loss *s, uint32_t a,
                                      uint32_t b, size_t row)
{
    bool single = npu__ref_last_dim(&l->in[a]) == 1 && npu__ref_last_dim(&l->in[b]) == 1;
    return npu__ref_difference_norm(l, &s->shape, a, b, row * (size_t)s->shape.dims[0], single ? 1 : s->n);
}

static npu_status npu__ref_triplet_row(const npu_launch *l, const npu__ref_row_loss *s, size_t row,
                                       double *loss)
{
    double near = npu__ref_row_difference(l, s, 0, 1, row), far = npu__ref_row_difference(l, s, 0, 2, row);
    double other = s->swap ? npu__ref_row_difference(l, s, 1, 2, row) : far;
    double y = s->margin + near - NPU__REF_LEAST(far, other);
    *loss = NPU__REF_MOST(y, 0.0);
    return NPU_OK;
}

static npu_status npu__ref_multi_margin_row(const npu_launch *l, const npu__ref_row_loss *s, size_t row,
                                            double *loss)
{
    int64_t target;
    double sum = 0.0, weight;
    if (!npu__ref_read_index(l, 1, row, s->n, &target)) {
        return NPU_ERR_RANGE;
    }
    weight = npu__ref_has(l, s->weight) ? npu__ref_element(l, s->weight, (size_t)target) : 1.0;
    for (size_t c = 0; c < s->n; c++) {
        double z = s->margin - npu__ref_element(l, 0, row * s->n + (size_t)target);
        z += npu__ref_element(l, 0, row * s->n + c);
        sum += c == (size_t)target || !(z > 0.0) ? 0.0 : weight * (s->shape.p == 1.0 ? z : z * z);
    }
    *loss = sum / (double)s->n;
    return NPU_OK;
}

/* Marks the targets of a row, those before its first -1. Returns how many there are. */
static size_t npu__ref_mark_targets(const int64_t *targets, size_t n, bool *marks)
{
    size_t count = 0;
    memset(marks, 0, n * sizeof *marks);
    while (count < n && targets[count] >= 0) {
        marks[targets[count++]] = true;
    }
    return count;
}

static npu_status npu__ref_multilabel_row(const npu_launch *l, const npu__ref_row_loss *s, size_t row,
                                          double *loss)
{
    const int64_t *targets = (const int64_t *)l->x[1] + row * s->n;
    bool *marks = (bool *)l->workspace;
    size_t count;
    double sum = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        if (targets[i] < -1 || targets[i] >= (int64_t)s->n) {
            return NPU_ERR_RANGE;
        }
    }
    count = npu__ref_mark_targets(targets, s->n, marks);
    for (size_t i = 0; i < s->n * count; i++) {
        double z = 1.0 - npu__ref_element(l, 0, row * s->n + (size_t)targets[i / s->n]);
        z += npu__ref_element(l, 0, row * s->n + i % s->n);
        sum += marks[i % s->n] || !(z > 0.0) ? 0.0 : z;
    }
    for (size_t c = 0; c < s->n && l->num_out == 2; c++) {
        double mark = marks[c];
        npu__ref_store_f64(l->y[1], l->out[1].dtype, (int64_t)(row * s->n + c), 1, &mark, 1);
    }
    *loss = sum / (double)s->n;
    return NPU_OK;
}

static npu_status npu__ref_row_loss_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_row_loss *s = (const npu__ref_row_loss *)l->state;
    size_t alike = s->n == 0 && s->reduction != NPU__LOSS_NONE ? s->rows : 1; /* rows that hold nothing */
    double sum = 0.0, loss;
    (void)part, (void)parts;
    for (size_t row = 0; row < s->rows; row += alike) {
        npu_status status = s->row(l, s, row, &loss);
        if (status) {
            return status;
        }
        npu__ref_loss_add(l, s->reduction, row, loss * (double)alike, &sum);
    }
    npu__ref_loss_end(l, s->reduction, sum, (double)s->rows);
    return NPU_OK;
}

/* Rows of cosine_embedding_loss: those of an operand that has more than one. */
static size_t npu__ref_cosine_rows(const npu_prepare *p)
{
    int64_t rows = npu__ref_len(&p->in[2]);
    for (uint32_t k = 0; k < 2; k++) {
        rows = rows == 1 ? npu__ref_leading(&p->in[k]) : rows;
    }
    return (size_t)rows;
}

static npu_status npu__ref_row_loss_prepare(npu_prepare *p)
{
    npu__ref_row_loss *s = (npu__ref_row_loss *)npu_prepare_alloc(p, sizeof *s);
    const npu_op_info *op = p->op;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->n = (size_t)npu__ref_last_dim(&p->in[0]);
    s->rows = (size_t)npu__ref_leading(&p->in[0]);
    s->reduction = npu_op_int(op, "reduction", NPU__LOSS_MEAN);
    s->margin = npu_scalar_value(npu_op_scalar(op, "margin", npu_scalar_int(1)));
    s->weight = npu_op_operand(op, "weight");
    s->swap = npu_op_int(op, "swap", 0) != 0;
    s->shape.p = (double)npu_op_int(op, "p", 1);
    p->state = s;
    switch (op->kind) {
    case NPU_ATEN_COSINE_EMBEDDING_LOSS:
        s->rows = npu__ref_cosine_rows(p);
        s->row = npu__ref_cosine_row;
        break;
    case NPU_ATEN_TRIPLET_MARGIN_LOSS:
        npu__ref_loss_shape(p, &s->shape);
        s->shape.p = npu_op_float(op, "p", 2.0);
        s->shape.eps = npu_op_float(op, "eps", 1e-6);
        s->n = s->shape.rank ? (size_t)s->shape.dims[0] : 1;
        s->shape.dims[0] = s->n ? (int64_t)s->n : 1; /* two of the operands may have a number in each row */
        s->rows = 1;
        for (uint32_t i = 1; i < s->shape.rank; i++) {
            s->rows *= (size_t)s->shape.dims[i];
        }
        s->row = npu__ref_triplet_row;
        break;
    case NPU_ATEN_MULTI_MARGIN_LOSS: s->row = npu__ref_multi_margin_row; break;
    default:
        s->row = npu__ref_multilabel_row;
        p->workspace = s->n * sizeof(bool);
        break;
    }
    return NPU_OK;
}

/* ---- gradients of softmax and its logarithm: operands grad_output and output ---- */

static npu_status npu__ref_softmax_backward_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    size_t begin, end;
    npu__ref_share(a->outer * a->inner, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        size_t first = npu__ref_along_first(a, o);
        double sum = 0.0;
        for (size_t i = 0; i < a->n; i++) {
            size_t at = first + i * a->inner;
            sum += npu__ref_element(l, 0, at) * (a->log ? 1.0 : npu__ref_element(l, 1, at));
        }
        for (size_t i = 0; i < a->n; i++) {
            size_t at = first + i * a->inner;
            double g = npu__ref_element(l, 0, at), y = npu__ref_element(l, 1, at);
            double x = a->log ? g - exp(y) * sum : y * (g - sum);
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)at, 1, &x, 1);
        }
    }
    return NPU_OK;
}

/* ---- covariances: rows of the operand, whose columns are observations ---- */

typedef struct npu__ref_covariance {
    int64_t rows, n;
    double correction;
    int fweights, aweights; /* operands, -1 = none */
    bool correlation;
    uint32_t wraps;         /* the integer dtype of self times fweights alone, 0 = none */
    size_t part_bytes;      /* the weights and two rows */
} npu__ref_covariance;

static npu_status npu__ref_covariance_prepare(npu_prepare *p)
{
    npu__ref_covariance *s = (npu__ref_covariance *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *x = &p->in[0];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->rows = x->rank == 2 ? x->dims[0] : 1;
    s->n = npu__ref_last_dim(x);
    s->correction = (double)npu_op_int(p->op, "correction", 1);
    s->fweights = npu_op_operand(p->op, "fweights");
    s->aweights = npu_op_operand(p->op, "aweights");
    s->correlation = p->op->kind == NPU_ATEN_CORRCOEF;
    if (s->fweights > 0 && s->aweights < 0 && npu__ref_is_integer(x->dtype)) {
        s->wraps = npu__ref_promote(x->dtype, p->in[s->fweights].dtype);
    }
    if (!npu_size_mul((size_t)s->n + 1, 3 * sizeof(double), &s->part_bytes)) {
        return NPU_ERR_OVERFLOW;
    }
    p->state = s;
    p->parts = npu__ref_item_parts((size_t)s->rows, (size_t)(s->rows * s->n));
    return npu_size_mul(s->part_bytes, p->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* The weight of each observation, and what sums of products are divided by: 0 where too few are free. */
static npu_status npu__ref_covariance_weights(const npu_launch *l, const npu__ref_covariance *s, double *w,
                                              double *sum, double *divisor)
{
    double squares = 0.0;
    *sum = 0.0;
    for (int64_t i = 0; i < s->n; i++) {
        double f = s->fweights > 0 ? npu__ref_element(l, s->fweights, (size_t)i) : 1.0;
        double a = s->aweights > 0 ? npu__ref_element(l, s->aweights, (size_t)i) : 1.0;
        if (!(f >= 0.0 && a >= 0.0)) {
            return NPU_ERR_RANGE;
        }
        w[i] = f * a;
        *sum += w[i];
        squares += w[i] * a;
    }
    if ((s->fweights > 0 || s->aweights > 0) && *sum == 0.0) {
        return NPU_ERR_RANGE;
    }
    *divisor = *sum - s->correction * (s->aweights > 0 ? squares / *sum : 1.0);
    if (s->fweights < 0 && s->n == 1 && s->correction == 1.0) {
        *divisor = 0.0;
    }
    *divisor = *divisor <= 0.0 ? 0.0 : *divisor;
    return NPU_OK;
}

/* Row i without its mean. */
static void npu__ref_deviations(const npu_launch *l, const npu__ref_covariance *s, int64_t i, const double *w,
                                double sum, double *to)
{
    bool single = s->n == 1 && (s->fweights > 0) != (s->aweights > 0);
    double mean = 0.0;
    npu__ref_load_f64(to, l->x[0], l->in[0].dtype, i * s->n, 1, (size_t)s->n);
    for (int64_t k = 0; k < s->n; k++) {
        mean += npu__ref_wrapped(s->wraps, to[k] * w[k]);
    }
    mean /= sum;
    for (int64_t k = 0; k < s->n; k++) {
        to[k] = single ? 0.0 : to[k] - mean;
    }
}

static double npu__ref_weighted_product(const double *a, const double *b, const double *w, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * b[i] * w[i];
    }
    return sum;
}

static npu_status npu__ref_covariance_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_covariance *s = (const npu__ref_covariance *)l->state;
    double *w = (double *)(void *)((char *)l->workspace + part * s->part_bytes), *a = w + s->n, *b = a + s->n;
    double sum = 0, divisor = 1;
    size_t begin, end;
    npu_status status = npu__ref_covariance_weights(l, s, w, &sum, &divisor);
    npu__ref_share((size_t)s->rows, part, parts, &begin, &end);
    for (int64_t i = (int64_t)begin; i < (int64_t)end && !status; i++) {
        npu__ref_deviations(l, s, i, w, sum, a);
        for (int64_t j = 0; j < s->rows; j++) {
            double y;
            npu__ref_deviations(l, s, j, w, sum, b);
            y = npu__ref_weighted_product(a, b, w, s->n) / divisor;
            if (s->correlation && s->rows == 1) {
                y /= y;
            } else if (s->correlation) {
                y /= sqrt(npu__ref_weighted_product(a, a, w, s->n) / divisor);
                y /= sqrt(npu__ref_weighted_product(b, b, w, s->n) / divisor);
                y = y < -1.0 ? -1.0 : y > 1.0 ? 1.0 : y;
            }
            npu__ref_store_f64(l->y[0], l->out[0].dtype, i * s->rows + j, 1, &y, 1);
        }
    }
    return status;
}

/* ---- integrals by the trapezoid rule: sums over pieces, between neighbours along one dim ---- */

typedef struct npu__ref_trapezoid {
    npu__ref_along along;   /* the pieces */
    npu__ref_batches pieces[2];   /* where those of y and x begin */
    int64_t steps[2];       /* to the neighbour */
    int64_t samples;        /* of y along the dim */
    bool running, over_x;
    double dx;
    uint32_t wraps;         /* the dtype of the products where it is an integer, 0 = none */
} npu__ref_trapezoid;

/* Operand k under as many dims as y has, or more; a vector lies along the axis. */
static npu_tensor npu__ref_trapezoid_operand(const npu_prepare *p, uint32_t k, uint32_t axis)
{
    npu_tensor t = p->in[k];
    uint32_t rank = p->in[0].rank, more = t.rank < rank ? rank - t.rank : 0, from = t.rank == 1 ? axis : more;
    for (uint32_t i = 0; i < t.rank + more; i++) {
        bool is_new = i < from || i >= from + p->in[k].rank;
        t.dims[i] = is_new ? 1 : p->in[k].dims[i - from];
    }
    t.rank += more;
    return t;
}

static npu_status npu__ref_trapezoid_prepare(npu_prepare *p)
{
    npu__ref_trapezoid *s = (npu__ref_trapezoid *)npu_prepare_alloc(p, sizeof *s);
    uint32_t axis = npu__ref_axis(npu_op_int(p->op, "dim", -1), p->in[0].rank);
    npu__ref_loss whole = { 0 };
    npu_tensor operands[2], pieces = p->out[0];
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->running = p->op->kind >= (uint32_t)NPU_ATEN_CUMULATIVE_TRAPEZOID_X;
    s->over_x = npu_op_arg(p->op, "x") != NULL;
    s->dx = npu_scalar_value(npu_op_scalar(p->op, "dx", npu_scalar_int(1)));
    s->samples = p->in[0].dims[axis];
    s->wraps = s->over_x ? npu__ref_promote(p->in[0].dtype, p->in[1].dtype) : 0;
    s->wraps = npu__ref_is_integer(s->wraps) ? s->wraps : 0;
    for (uint32_t k = 0; k <= (uint32_t)s->over_x; k++) {
        npu_tensor cut = operands[k] = npu__ref_trapezoid_operand(p, k, axis);
        cut.dims[axis] -= cut.dims[axis] > 0;
        npu__ref_loss_join(&whole, &cut);
    }
    pieces.rank = whole.rank;
    for (uint32_t i = 0; i < whole.rank; i++) {
        pieces.dims[i] = whole.dims[whole.rank - 1 - i];
    }
    npu__ref_along_init(&s->along, &pieces, false, axis);
    for (uint32_t k = 0; k <= (uint32_t)s->over_x; k++) {
        uint32_t at = axis + pieces.rank - operands[k].rank;
        s->pieces[k] = npu__ref_batch(&pieces, 0, &operands[k], 0);
        s->steps[k] = s->pieces[k].step[at];
        s->pieces[k].step[at] = operands[k].dims[axis] == 2 ? 0 : s->steps[k]; /* one piece is repeated */
    }
    p->state = s;
    p->parts = npu__ref_item_parts(s->along.outer * s->along.inner, s->along.n);
    return NPU_OK;
}

/* Two neighbours: x[at + step] + sign x[at]. Integers wrap in their dtype. */
static npu__ref_number npu__ref_neighbours(const npu_launch *l, int k, int64_t at, int64_t step, int sign)
{
    uint32_t dtype = l->in[k].dtype;
    npu__ref_number y;
    double f[2];
    int64_t i[2];
    npu__ref_load_f64(f, l->x[k], dtype, at, step, 2);
    npu__ref_load_i64(i, l->x[k], dtype, at, step, 2);
    y.i = NPU__REF_WRAP(i[1], +, NPU__REF_WRAP(sign, *, i[0]));
    npu__ref_round(NPU__I64, dtype, &y.i, 1);
    y.f = npu__ref_is_integer(dtype) ? (double)y.i : f[1] + sign * f[0];
    return y;
}

/* Height times width of a piece, twice its area over x. */
static npu__ref_number npu__ref_trapezoid_piece(const npu_launch *l, const npu__ref_trapezoid *s, int64_t at)
{
    int64_t y_at = npu__ref_batch_start(&s->pieces[0], at), x_at = npu__ref_batch_start(&s->pieces[1], at);
    npu__ref_number y = npu__ref_neighbours(l, 0, y_at, s->steps[0], 1), dx;
    if (!s->over_x) {
        y.f *= s->dx / 2.0;
        return y;
    }
    dx = npu__ref_neighbours(l, 1, x_at, s->steps[1], -1);
    y.f *= dx.f;
    y.i = NPU__REF_WRAP(y.i, *, dx.i);
    if (s->wraps) {
        npu__ref_round(NPU__I64, s->wraps, &y.i, 1);
    }
    return y;
}

/* Row o in equal steps: as in torch, the sum of samples without half of the first and the last. */
static double npu__ref_trapezoid_even(const npu_launch *l, const npu__ref_trapezoid *s, size_t o)
{
    bool integer = npu__ref_is_integer(l->in[0].dtype);
    int64_t inner = (int64_t)s->along.inner;
    int64_t at = (int64_t)o / inner * s->samples * inner + (int64_t)o % inner;
    npu__ref_number sum = npu__ref_fold_start(NPU__SUM), ends;
    npu__ref_fold(&sum, NPU__SUM, integer, l->x[0], l->in[0].dtype, at, inner, (size_t)s->samples);
    ends = npu__ref_neighbours(l, 0, at, (s->samples - 1) * inner, 1);
    return ((integer ? (double)sum.i : sum.f) - 0.5 * ends.f) * s->dx;
}

/* The pieces of row o; all sums on the way are results where they are wanted. */
static double npu__ref_trapezoid_row(const npu_launch *l, const npu__ref_trapezoid *s, size_t o)
{
    size_t first = npu__ref_along_first(&s->along, o);
    npu__ref_number sum = npu__ref_fold_start(NPU__SUM);
    double y = 0.0;
    for (size_t i = 0; i < s->along.n; i++) {
        int64_t at = (int64_t)(first + i * s->along.inner);
        npu__ref_number piece = npu__ref_trapezoid_piece(l, s, at);
        sum.f += piece.f;
        sum.i = NPU__REF_WRAP(sum.i, +, piece.i);
        y = (s->wraps ? (double)sum.i : sum.f) / (s->over_x ? 2.0 : 1.0);
        if (s->running) {
            npu__ref_store_f64(l->y[0], l->out[0].dtype, at, 1, &y, 1);
        }
    }
    return y;
}

static npu_status npu__ref_trapezoid_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_trapezoid *s = (const npu__ref_trapezoid *)l->state;
    bool even = !s->over_x && !s->running, empty = s->samples == 0; /* whose x may have any dims */
    size_t begin, end, rows = s->along.outer * s->along.inner;
    npu__ref_share(empty ? (size_t)npu__ref_len(&l->out[0]) : rows, part, parts, &begin, &end);
    for (size_t o = begin; o < end; o++) {
        double y = empty ? 0.0 : even ? npu__ref_trapezoid_even(l, s, o) : npu__ref_trapezoid_row(l, s, o);
        if (!s->running) {
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)o, 1, &y, 1);
        }
    }
    return NPU_OK;
}

#define NPU__REF_TRAPEZOID_KERNEL(kind) \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_trapezoid_prepare, npu__ref_trapezoid_launch)

static const npu_kernel npu__ref_kernels_statistics[] = {
    NPU__REF_ROW(NPU_ATEN_COV, "plain", 0, NULL, npu__ref_covariance_prepare, npu__ref_covariance_launch),
    NPU__REF_ROW(NPU_ATEN_CORRCOEF, "plain", 0, NULL, npu__ref_covariance_prepare, npu__ref_covariance_launch),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_TRAPEZOID_X),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_TRAPEZOID_DX),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_TRAPZ_X),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_TRAPZ_DX),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_CUMULATIVE_TRAPEZOID_X),
    NPU__REF_TRAPEZOID_KERNEL(NPU_ATEN_CUMULATIVE_TRAPEZOID_DX)
};

#define NPU__REF_LOSS_KERNEL(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_loss_prepare, npu__ref_loss_launch)
#define NPU__REF_ROW_LOSS_KERNEL(kind) \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_row_loss_prepare, npu__ref_row_loss_launch)
#define NPU__REF_NLL_KERNEL(kind) NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_nll_prepare, npu__ref_nll_launch)

static const npu_kernel npu__ref_kernels_loss[] = {
    NPU__REF_LOSS_KERNEL(NPU_ATEN_L1_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_MSE_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_SMOOTH_L1_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_HUBER_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_KL_DIV),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_BINARY_CROSS_ENTROPY),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_BINARY_CROSS_ENTROPY_WITH_LOGITS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_SOFT_MARGIN_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_POISSON_NLL_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_HINGE_EMBEDDING_LOSS),
    NPU__REF_LOSS_KERNEL(NPU_ATEN_MARGIN_RANKING_LOSS),
    NPU__REF_NLL_KERNEL(NPU_ATEN_NLL_LOSS),
    NPU__REF_NLL_KERNEL(NPU_ATEN_NLL_LOSS_ND),
    NPU__REF_NLL_KERNEL(NPU_ATEN_NLL_LOSS_FORWARD),
    NPU__REF_NLL_KERNEL(NPU_ATEN_NLL_LOSS2D_FORWARD),
    NPU__REF_NLL_KERNEL(NPU_ATEN_CROSS_ENTROPY_LOSS),
    NPU__REF_ROW(NPU_ATEN_COSINE_SIMILARITY, "plain", 0, NULL, npu__ref_cosine_prepare, npu__ref_cosine_launch),
    NPU__REF_ROW(NPU_ATEN_SOFTMAX_BACKWARD_DATA, "plain", 0, NULL, npu__ref_along_prepare,
      npu__ref_softmax_backward_launch),
    NPU__REF_ROW(NPU_ATEN_LOG_SOFTMAX_BACKWARD_DATA, "plain", 0, NULL, npu__ref_along_prepare,
      npu__ref_softmax_backward_launch),
    NPU__REF_ROW(NPU_ATEN_PAIRWISE_DISTANCE, "plain", 0, NULL, npu__ref_difference_prepare, npu__ref_difference_launch),
    NPU__REF_ROW(NPU_ATEN_DIST, "plain", 0, NULL, npu__ref_difference_prepare, npu__ref_difference_launch),
    NPU__REF_ROW_LOSS_KERNEL(NPU_ATEN_COSINE_EMBEDDING_LOSS),
    NPU__REF_ROW_LOSS_KERNEL(NPU_ATEN_MULTI_MARGIN_LOSS),
    NPU__REF_ROW_LOSS_KERNEL(NPU_ATEN_MULTILABEL_MARGIN_LOSS),
    NPU__REF_ROW_LOSS_KERNEL(NPU_ATEN_MULTILABEL_MARGIN_LOSS_FORWARD),
    NPU__REF_ROW_LOSS_KERNEL(NPU_ATEN_TRIPLET_MARGIN_LOSS)
};

/* -----------------------------------------------------------------------------------------------------------
   AICF                                                                                         >>kernels-aicf

   The device kinds. Results accumulate in double here, which contains the device's f32.
   -------------------------------------------------------------------------------------------------------- */

/* mse_grad: scale (pred - target); sgd_step: p - scale g. */
typedef struct npu__ref_aicf_scaled {
    double scale;
    bool step;
    size_t len;
} npu__ref_aicf_scaled;

static npu_status npu__ref_aicf_scaled_prepare(npu_prepare *p)
{
    npu__ref_aicf_scaled *state = (npu__ref_aicf_scaled *)npu_prepare_alloc(p, sizeof *state);
    if (!state) {
        return NPU_ERR_NO_MEMORY;
    }
    state->len = (size_t)npu__ref_len(&p->in[0]);
    state->step = p->op->kind == NPU_AICF_SGD_STEP;
    state->scale = npu_op_float(p->op, state->step ? "lr" : "scale", 2.0 / (double)state->len);
    p->state = state;
    p->parts = npu__ref_parts(state->len, NPU__REF_GRAIN);
    return NPU_OK;
}

#define NPU__REF_AICF_SCALED(T, name, suffix)                                                            \
    static void name(const npu_launch *l, const npu__ref_aicf_scaled *state, size_t begin, size_t end)  \
    {                                                                                                   \
        T a[NPU__STRIP], b[NPU__STRIP], scale = (T)state->scale;                                        \
        for (size_t i = begin; i < end; i += NPU__STRIP) {                                              \
            size_t n = end - i < NPU__STRIP ? end - i : NPU__STRIP;                                     \
            npu__ref_load_##suffix(a, l->x[0], l->in[0].dtype, (int64_t)i, 1, n);                       \
            npu__ref_load_##suffix(b, l->x[1], l->in[1].dtype, (int64_t)i, 1, n);                       \
            for (size_t j = 0; j < n; j++) {                                                            \
                a[j] = state->step ? a[j] - scale * b[j] : scale * (a[j] - b[j]);                       \
            }                                                                                           \
            npu__ref_store_##suffix(l->y[0], l->out[0].dtype, (int64_t)i, 1, a, n);                     \
        }                                                                                               \
    }

NPU__REF_AICF_SCALED(float, npu__ref_aicf_scaled_f32, f32)
NPU__REF_AICF_SCALED(double, npu__ref_aicf_scaled_f64, f64)
#undef NPU__REF_AICF_SCALED

static npu_status npu__ref_aicf_scaled_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_aicf_scaled *state = (const npu__ref_aicf_scaled *)l->state;
    size_t begin, end;
    npu__ref_split(state->len, part, parts, &begin, &end);
    if (l->out[0].dtype == NPU_F64) {
        npu__ref_aicf_scaled_f64(l, state, begin, end);
    } else {
        npu__ref_aicf_scaled_f32(l, state, begin, end);
    }
    return NPU_OK;
}

static npu_status npu__ref_aicf_grad_zero_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t size = (size_t)npu__ref_len(&l->out[0]) * npu__ref_size(l->out[0].dtype);
    (void)part;
    (void)parts;
    if (size) {
        memset(l->y[0], 0, size);
    }
    return NPU_OK;
}

/* ---- training steps ---- */

typedef struct npu__ref_adam {
    float lr, beta1, beta2, eps;
    size_t len;
} npu__ref_adam;

static npu_status npu__ref_aicf_adam_prepare(npu_prepare *p)
{
    npu__ref_adam *adam = (npu__ref_adam *)npu_prepare_alloc(p, sizeof *adam);
    if (!adam) {
        return NPU_ERR_NO_MEMORY;
    }
    adam->lr = (float)npu_op_float(p->op, "lr", 1e-3);
    adam->beta1 = (float)npu_op_float(p->op, "beta1", 0.9);
    adam->beta2 = (float)npu_op_float(p->op, "beta2", 0.999);
    adam->eps = (float)npu_op_float(p->op, "eps", 1e-8);
    adam->len = (size_t)npu__ref_len(&p->in[0]);
    p->state = adam;
    p->parts = npu__ref_parts(adam->len, NPU__REF_GRAIN);
    return NPU_OK;
}

/* p, g, m, v, bc1, bc2 to p, m, v. A strip is read whole before it is written, so that results may take their
   operands' memory. */
static npu_status npu__ref_aicf_adam_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_adam *adam = (const npu__ref_adam *)l->state;
    size_t begin, end;
    float x[4][NPU__STRIP], bc1, bc2;
    npu__ref_split(adam->len, part, parts, &begin, &end);
    npu__ref_load_f32(&bc1, l->x[4], l->in[4].dtype, 0, 1, 1);
    npu__ref_load_f32(&bc2, l->x[5], l->in[5].dtype, 0, 1, 1);
    for (size_t i = begin; i < end; i += NPU__STRIP) {
        size_t n = end - i < NPU__STRIP ? end - i : NPU__STRIP;
        for (uint32_t k = 0; k < 4; k++) {
            npu__ref_load_f32(x[k], l->x[k], l->in[k].dtype, (int64_t)i, 1, n);
        }
        for (size_t j = 0; j < n; j++) {
            float g = x[1][j], m = adam->beta1 * x[2][j] + (1.0f - adam->beta1) * g;
            float v = adam->beta2 * x[3][j] + (1.0f - adam->beta2) * g * g;
            x[0][j] -= adam->lr * (m * bc1) / (sqrtf(v * bc2) + adam->eps);
            x[2][j] = m;
            x[3][j] = v;
        }
        npu__ref_store_f32(l->y[0], l->out[0].dtype, (int64_t)i, 1, x[0], n);
        npu__ref_store_f32(l->y[1], l->out[1].dtype, (int64_t)i, 1, x[2], n);
        npu__ref_store_f32(l->y[2], l->out[2].dtype, (int64_t)i, 1, x[3], n);
    }
    return NPU_OK;
}

static npu_status npu__ref_aicf_step_inc_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    int64_t step;
    (void)part;
    (void)parts;
    npu__ref_load_i64(&step, l->x[0], l->in[0].dtype, 0, 1, 1);
    step++;
    npu__ref_store_i64(l->y[0], l->out[0].dtype, 0, 1, &step, 1);
    return NPU_OK;
}

static npu_status npu__ref_aicf_bias_corr_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_adam *adam = (const npu__ref_adam *)l->state;
    double step, bc1, bc2;
    (void)part;
    (void)parts;
    npu__ref_load_f64(&step, l->x[0], l->in[0].dtype, 0, 1, 1);
    bc1 = 1.0 / (1.0 - pow((double)adam->beta1, step));
    bc2 = 1.0 / (1.0 - pow((double)adam->beta2, step));
    npu__ref_store_f64(l->y[0], l->out[0].dtype, 0, 1, &bc1, 1);
    npu__ref_store_f64(l->y[1], l->out[1].dtype, 0, 1, &bc2, 1);
    return NPU_OK;
}

/* ---- gradients of the normalisations: x, dy, gamma, mean, rstd to dx, dgamma, dbeta ----
   With xhat = (x - mean) rstd and d = dy gamma: dx = rstd (d - mean(d) - xhat mean(d xhat)), means over what
   shares the statistics; dgamma = sum(dy xhat), dbeta = sum(dy). */

static npu_status npu__ref_aicf_norm_bwd_prepare(npu_prepare *p)
{
    npu__ref_norm *norm = npu__ref_norm_state(p);
    const npu_tensor *x = &p->in[0];
    if (!norm) {
        return NPU_ERR_NO_MEMORY;
    }
    norm->over_rows = p->op->kind == NPU_AICF_BATCHNORM_BWD;
    norm->rows = (size_t)x->dims[0];
    norm->channels = (size_t)x->dims[1];
    norm->run = norm->over_rows ? npu__ref_dims_len(x, 2, x->rank) : 1;
    if (norm->over_rows) { /* else in one part: dgamma is over the rows, dx along them */
        p->parts = npu__ref_item_parts(norm->channels, norm->rows * norm->run);
    }
    return NPU_OK;
}

/* Elements of one run as xhat and dy. */
static void npu__ref_load_xhat(const npu_launch *l, size_t first, size_t stride, size_t n, npu__ref_stats m,
                               double *xhat, double *dy)
{
    npu__ref_load_f64(xhat, l->x[0], l->in[0].dtype, (int64_t)first, (int64_t)stride, n);
    npu__ref_load_f64(dy, l->x[1], l->in[1].dtype, (int64_t)first, (int64_t)stride, n);
    for (size_t i = 0; i < n; i++) {
        xhat[i] = (xhat[i] - m.mean) * m.rstd;
    }
}

static npu__ref_stats npu__ref_saved_moments(const npu_launch *l, size_t i)
{
    npu__ref_stats m;
    m.mean = npu__ref_element(l, 3, i);
    m.rstd = npu__ref_element(l, 4, i);
    return m;
}

static void npu__ref_store_sums(const npu_launch *l, size_t channel, double dgamma, double dbeta)
{
    npu__ref_store_f64(l->y[1], l->out[1].dtype, (int64_t)channel, 1, &dgamma, 1);
    npu__ref_store_f64(l->y[2], l->out[2].dtype, (int64_t)channel, 1, &dbeta, 1);
}

/* Channel c of [N, C, run]. */
static void npu__ref_aicf_batchnorm_bwd_channel(const npu_launch *l, const npu__ref_norm *norm, size_t c)
{
    npu__ref_stats m = npu__ref_saved_moments(l, c);
    double xhat[NPU__STRIP], dy[NPU__STRIP], sums[2] = { 0.0, 0.0 };
    double count = (double)norm->rows * (double)norm->run;
    double scale = m.rstd * (npu__ref_has(l, norm->weight) ? npu__ref_element(l, norm->weight, c) : 1.0);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < norm->rows * norm->run;) {
            size_t at = i % norm->run, rest = norm->run - at, n = rest < NPU__STRIP ? rest : NPU__STRIP;
            size_t first = (i / norm->run * norm->channels + c) * norm->run + at;
            npu__ref_load_xhat(l, first, 1, n, m, xhat, dy);
            for (size_t j = 0; j < n && pass == 0; j++) {
                sums[0] += dy[j] * xhat[j];
                sums[1] += dy[j];
            }
            for (size_t j = 0; j < n && pass == 1; j++) {
                dy[j] = scale * (dy[j] - (sums[1] + xhat[j] * sums[0]) / count);
            }
            if (pass == 1) {
                npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)first, 1, dy, n);
            }
            i += n;
        }
    }
    npu__ref_store_sums(l, c, sums[0], sums[1]);
}

static npu_status npu__ref_aicf_batchnorm_bwd_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    size_t begin, end;
    npu__ref_share(norm->channels, part, parts, &begin, &end);
    for (size_t c = begin; c < end; c++) {
        npu__ref_aicf_batchnorm_bwd_channel(l, norm, c);
    }
    return NPU_OK;
}

/* Row r of [M, N]. */
static void npu__ref_aicf_layernorm_bwd_row(const npu_launch *l, const npu__ref_norm *norm, size_t r)
{
    npu__ref_stats m = npu__ref_saved_moments(l, r);
    size_t len = norm->channels;
    double xhat[NPU__STRIP], d[NPU__STRIP], gamma[NPU__STRIP], sums[2] = { 0.0, 0.0 };
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < len; i += NPU__STRIP) {
            size_t n = len - i < NPU__STRIP ? len - i : NPU__STRIP;
            npu__ref_load_xhat(l, r * len + i, 1, n, m, xhat, d);
            if (npu__ref_has(l, norm->weight)) {
                npu__ref_load_f64(gamma, l->x[norm->weight], l->in[norm->weight].dtype, (int64_t)i, 1, n);
                for (size_t j = 0; j < n; j++) { d[j] *= gamma[j]; }
            }
            for (size_t j = 0; j < n && pass == 0; j++) {
                sums[0] += d[j] * xhat[j];
                sums[1] += d[j];
            }
            for (size_t j = 0; j < n && pass == 1; j++) {
                d[j] = m.rstd * (d[j] - (sums[1] + xhat[j] * sums[0]) / (double)len);
            }
            if (pass == 1) {
                npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(r * len + i), 1, d, n);
            }
        }
    }
}

static npu_status npu__ref_aicf_layernorm_bwd_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_norm *norm = (const npu__ref_norm *)l->state;
    (void)part;
    (void)parts;
    for (size_t c = 0; c < norm->channels; c++) { /* before dx, which may take the memory of dy */
        double dgamma = 0.0, dbeta = 0.0, xhat, dy;
        for (size_t r = 0; r < norm->rows; r++) {
            npu__ref_load_xhat(l, r * norm->channels + c, 1, 1, npu__ref_saved_moments(l, r), &xhat, &dy);
            dgamma += dy * xhat;
            dbeta += dy;
        }
        npu__ref_store_sums(l, c, dgamma, dbeta);
    }
    for (size_t r = 0; r < norm->rows; r++) {
        npu__ref_aicf_layernorm_bwd_row(l, norm, r);
    }
    return NPU_OK;
}

/* ---- losses and softmax ---- */

static npu_status npu__ref_aicf_softmax_bwd_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_along *a = (const npu__ref_along *)l->state;
    double y[NPU__STRIP], dy[NPU__STRIP];
    size_t begin, end;
    npu__ref_share(a->outer, part, parts, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        double dot = 0.0;
        for (int pass = 0; pass < 2; pass++) {
            for (size_t i = 0; i < a->n; i += NPU__STRIP) {
                size_t n = a->n - i < NPU__STRIP ? a->n - i : NPU__STRIP;
                int64_t at = (int64_t)(row * a->n + i);
                npu__ref_load_f64(y, l->x[0], l->in[0].dtype, at, 1, n);
                npu__ref_load_f64(dy, l->x[1], l->in[1].dtype, at, 1, n);
                for (size_t j = 0; j < n && pass == 0; j++) { dot += y[j] * dy[j]; }
                for (size_t j = 0; j < n && pass == 1; j++) { y[j] *= dy[j] - dot; }
                if (pass == 1) {
                    npu__ref_store_f64(l->y[0], l->out[0].dtype, at, 1, y, n);
                }
            }
        }
    }
    return NPU_OK;
}

static npu_status npu__ref_aicf_mse_loss_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t len = (size_t)npu__ref_len(&l->in[0]);
    double a[NPU__STRIP], b[NPU__STRIP], loss = 0.0;
    (void)part;
    (void)parts;
    for (size_t i = 0; i < len; i += NPU__STRIP) {
        size_t n = len - i < NPU__STRIP ? len - i : NPU__STRIP;
        npu__ref_load_f64(a, l->x[0], l->in[0].dtype, (int64_t)i, 1, n);
        npu__ref_load_f64(b, l->x[1], l->in[1].dtype, (int64_t)i, 1, n);
        for (size_t j = 0; j < n; j++) {
            loss += (a[j] - b[j]) * (a[j] - b[j]);
        }
    }
    loss /= (double)len;
    npu__ref_store_f64(l->y[0], l->out[0].dtype, 0, 1, &loss, 1);
    return NPU_OK;
}

/* logits [M, N], target [M] to the mean loss and the softmax. */
static npu_status npu__ref_aicf_cross_entropy_fwd_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t rows = (size_t)l->in[0].dims[0], n = (size_t)l->in[0].dims[1];
    npu_status status = npu__ref_check_indices(l->isa, l->x[1], l->in[1].dtype, rows, 0, (int64_t)n);
    double loss = 0.0;
    (void)part;
    (void)parts;
    if (status) {
        return status;
    }
    for (size_t r = 0; r < rows; r++) {
        npu__ref_softmax row = npu__ref_softmax_sum(l->x[0], l->in[0].dtype, r * n, n, 1, NULL);
        size_t target = (size_t)npu__ref_index(l->x[1], l->in[1].dtype, r);
        loss += log(row.sum) + row.max - npu__ref_element(l, 0, r * n + target);
        npu__ref_softmax_run(l, l->y[1], l->out[1].dtype, r * n, n, 1, false, false);
    }
    loss /= (double)rows;
    npu__ref_store_f64(l->y[0], l->out[0].dtype, 0, 1, &loss, 1);
    return NPU_OK;
}

static npu_status npu__ref_aicf_cross_entropy_bwd_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    size_t rows = (size_t)l->in[0].dims[0], len = (size_t)l->in[0].dims[1];
    npu_status status = npu__ref_check_indices(l->isa, l->x[1], l->in[1].dtype, rows, 0, (int64_t)len);
    double d[NPU__STRIP];
    (void)part;
    (void)parts;
    for (size_t r = 0; r < rows && !status; r++) {
        size_t target = (size_t)npu__ref_index(l->x[1], l->in[1].dtype, r);
        for (size_t i = 0; i < len; i += NPU__STRIP) {
            size_t n = len - i < NPU__STRIP ? len - i : NPU__STRIP;
            npu__ref_load_f64(d, l->x[0], l->in[0].dtype, (int64_t)(r * len + i), 1, n);
            for (size_t j = 0; j < n; j++) {
                d[j] = (d[j] - (i + j == target ? 1.0 : 0.0)) / (double)rows;
            }
            npu__ref_store_f64(l->y[0], l->out[0].dtype, (int64_t)(r * len + i), 1, d, n);
        }
    }
    return status;
}

/* ---- matrix product: A and B are matrices, or A is [..., K] and not transposed ---- */

typedef struct npu__ref_aicf_gemm {
    npu__ref_product gemm;
    bool relu;
    uint32_t parts;
} npu__ref_aicf_gemm;

static npu__ref_matrix_view npu__ref_aicf_matrix(const npu_tensor *t, bool transposed)
{
    npu__ref_matrix_view m = { NULL, t->dtype, t->dims[t->rank - 1], 1 };
    if (transposed) {
        m.col = m.row;
        m.row = 1;
    }
    return m;
}

static npu_status npu__ref_aicf_gemm_prepare(npu_prepare *p)
{
    npu__ref_aicf_gemm *state = (npu__ref_aicf_gemm *)npu_prepare_alloc(p, sizeof *state);
    bool trans_a = npu_op_int(p->op, "transA", 0) != 0, trans_b = npu_op_int(p->op, "transB", 0) != 0;
    const npu_tensor *a = &p->in[0], *c = &p->out[0];
    npu__ref_product *g;
    if (!state) {
        return NPU_ERR_NO_MEMORY;
    }
    g = &state->gemm;
    g->m = (int64_t)npu__ref_dims_len(c, 0, c->rank - 1);
    g->n = c->dims[c->rank - 1];
    g->k = a->dims[trans_a ? 0 : a->rank - 1];
    g->a = npu__ref_aicf_matrix(a, trans_a);
    g->b = npu__ref_aicf_matrix(&p->in[1], trans_b);
    g->c_dtype = c->dtype;
    g->c_row = g->n;
    g->c_col = 1;
    g->alpha = 1.0;
    g->isa = p->isa;
    if (p->op->num_in > 2) {
        g->bias.dtype = p->in[2].dtype;
        g->bias.col = 1;
        state->relu = npu_op_int(p->op, "relu", 1) != 0;
    }
    p->state = state;
    if (p->op->in_data && p->op->in_data[1]) {
        npu_status status;
        g->b.x = p->op->in_data[1];
        status = npu__ref_gemm_pack(p, g);
        if (status) {
            return status;
        }
    }
    state->parts = npu__ref_gemm_parts(g);
    p->parts = state->relu ? 1 : state->parts;
    return npu_size_mul(npu__ref_gemm_workspace(g), state->parts, &p->workspace) ? NPU_OK : NPU_ERR_OVERFLOW;
}

/* With relu in one part, because the product does not tell which elements a part makes. */
static npu_status npu__ref_aicf_gemm_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_aicf_gemm *state = (const npu__ref_aicf_gemm *)l->state;
    npu__ref_product g = state->gemm;
    float strip[NPU__STRIP];
    size_t len = (size_t)(g.m * g.n);
    g.a.x = l->x[0];
    g.b.x = l->x[1];
    g.bias.x = l->num_in > 2 ? l->x[2] : NULL;
    g.c = l->y[0];
    g.workspace = l->workspace;
    if (!state->relu) {
        npu__ref_gemm(&g, part, parts);
        return NPU_OK;
    }
    for (uint32_t i = 0; i < state->parts; i++) {
        npu__ref_gemm(&g, i, state->parts);
    }
    for (size_t i = 0; i < len; i += NPU__STRIP) {
        size_t n = len - i < NPU__STRIP ? len - i : NPU__STRIP;
        npu__ref_load_f32(strip, g.c, g.c_dtype, (int64_t)i, 1, n);
        for (size_t j = 0; j < n; j++) {
            strip[j] = strip[j] < 0.0f ? 0.0f : strip[j];
        }
        npu__ref_store_f32(g.c, g.c_dtype, (int64_t)i, 1, strip, n);
    }
    return NPU_OK;
}

static const npu_kernel npu__ref_kernels_aicf[] = {
    NPU__REF_MAP_KERNEL(NPU_AICF_ADD, 0, 0)
    NPU__REF_MAP_KERNEL(NPU_AICF_RELU, 0, 0)
    NPU__REF_ROW(NPU_AICF_GEMM, "plain", 0, NULL, npu__ref_aicf_gemm_prepare, npu__ref_aicf_gemm_launch),
    NPU__REF_MAP_KERNEL(NPU_AICF_BIAS_ADD, 0, 0)
    NPU__REF_REDUCE_KERNELS(NPU_AICF_REDUCE_SUM),
    NPU__REF_ROW(NPU_AICF_MSE_GRAD, "plain", 0, NULL, npu__ref_aicf_scaled_prepare, npu__ref_aicf_scaled_launch),
    NPU__REF_MAP_KERNEL(NPU_AICF_RELU_BWD, 0, 0)
    NPU__REF_ROW(NPU_AICF_SGD_STEP, "plain", 0, NULL, npu__ref_aicf_scaled_prepare, npu__ref_aicf_scaled_launch),
    NPU__REF_COPY_KERNEL(NPU_AICF_COPY, npu__ref_same_prepare),
    NPU__REF_ROW(NPU_AICF_GRAD_ZERO, "plain", 0, NULL, NULL, npu__ref_aicf_grad_zero_launch),
    NPU__REF_ROW(NPU_AICF_ADAM_STEP, "plain", 0, NULL, npu__ref_aicf_adam_prepare, npu__ref_aicf_adam_launch),
    NPU__REF_ROW(NPU_AICF_STEP_INC, "plain", 0, NULL, NULL, npu__ref_aicf_step_inc_launch),
    NPU__REF_ROW(NPU_AICF_BIAS_CORR, "plain", 0, NULL, npu__ref_aicf_adam_prepare, npu__ref_aicf_bias_corr_launch),
    NPU__REF_NORM_KERNELS(NPU_AICF_LAYERNORM_FWD, layer_norm),
    NPU__REF_ROW(NPU_AICF_LAYERNORM_BWD, "plain", 0, NULL, npu__ref_aicf_norm_bwd_prepare,
      npu__ref_aicf_layernorm_bwd_launch),
    NPU__REF_NORM_KERNELS(NPU_AICF_BATCHNORM_FWD, batch_norm),
    NPU__REF_ROW(NPU_AICF_BATCHNORM_BWD, "plain", 0, NULL, npu__ref_aicf_norm_bwd_prepare,
      npu__ref_aicf_batchnorm_bwd_launch),
    NPU__REF_ROW(NPU_AICF_GEMM_EPILOGUE, "plain", 0, NULL, npu__ref_aicf_gemm_prepare, npu__ref_aicf_gemm_launch),
    NPU__REF_SOFTMAX_KERNELS(NPU_AICF_SOFTMAX),
    NPU__REF_ROW(NPU_AICF_SOFTMAX_BWD, "plain", 0, NULL, npu__ref_along_prepare, npu__ref_aicf_softmax_bwd_launch),
    NPU__REF_ROW(NPU_AICF_MSE_LOSS, "plain", 0, NULL, NULL, npu__ref_aicf_mse_loss_launch),
    NPU__REF_ROW(NPU_AICF_CROSS_ENTROPY_FWD, "plain", 0, NULL, NULL, npu__ref_aicf_cross_entropy_fwd_launch),
    NPU__REF_ROW(NPU_AICF_CROSS_ENTROPY_BWD, "plain", 0, NULL, NULL, npu__ref_aicf_cross_entropy_bwd_launch)
};

/* ---- structured loops ------------------------------------------------------------------------ >>kernels-loops

   The named ones are the kernels above with a destination to begin from. The generic nest runs its body over
   strips of parallel iterations: operands are gathered by the strides that their maps give, and each iteration of
   the reductions folds into the strip of the destination. Where there are few results, strips go along the reductions
   and are folded element by element: the same order, the same bits. */

static npu_status npu__ref_empty_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)l;
    (void)part;
    (void)parts;
    return NPU_OK;
}

static npu_status npu__ref_tensor_pad_prepare(npu_prepare *p)
{
    npu__ref_border *s = npu__ref_border_create(p, NPU__BORDER_NUMBER);
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < p->in[0].rank; i++) {
        s->before[i] = npu_op_int_at(p->op, "low", i);
    }
    npu__ref_border_number(p, s);
    return NPU_OK;
}

/* ---- the nest ---- */

/* Operand elements by loop: iteration (i0, i1 ..) meets element first + i0 * strides[0] + ... */
typedef struct npu__ref_nest_operand {
    int64_t first, strides[NPU_MAX_LOOPS];
    uint32_t dtype;
    size_t size;   /* of an element */
    bool is_used;  /* the body reads it */
    bool is_fixed; /* the reductions do not move it */
} npu__ref_nest_operand;

typedef struct npu__ref_nest {
    npu__ref_fused *body;
    uint32_t num_in, num_out, num_parallel, num_loops; /* parallel loops come first */
    int64_t extents[NPU_MAX_LOOPS];
    npu__ref_nest_operand *operands;
    npu_tensor *strips;    /* what the body takes operands and results for: dense strips */
    size_t len, rounds;    /* iterations of the parallel loops, and of the reductions in each */
    size_t part_size;
    bool folds;            /* strips go along the reductions, and are folded in order by the last step of the body */
    uint32_t fold, folded; /* its op, and the value of the body that it folds */
    npu__ref_fused before; /* the body without that step */
} npu__ref_nest;

/* Bytes of the strip of one operand; operands and results of one op. */
enum { NPU__REF_NEST_BYTES = NPU__REF_BLOCK * 8, NPU__REF_NEST_TENSORS = 32 };

static npu_status npu__ref_nest_operand_of(const npu_prepare *p, npu__ref_nest *s, uint32_t i, int64_t *extents)
{
    npu__ref_nest_operand *o = &s->operands[i];
    const npu_tensor *t = &p->in[i];
    npu_affine_map map;
    uint32_t len;
    const char *text = npu_op_str_at(p->op, "maps", i, &len);
    npu_status status = npu_affine_map_parse(&map, text, len, NULL);
    for (uint32_t k = 0; k < map.num_results && !status; k++) {
        int dim = npu_affine_expr_dim(&map.results[k]);
        if (dim >= 0) {
            extents[dim] = t->dims[k];
        }
        o->first += map.results[k].constant * t->strides[k];
        for (uint32_t d = 0; d < map.num_dims; d++) {
            o->strides[d] += map.results[k].factors[d] * t->strides[k];
        }
    }
    o->dtype = t->dtype;
    o->size = npu__ref_size(t->dtype);
    return status;
}

/* Are loop d of the op and the last one so far the inner and the outer half of one loop? */
static bool npu__ref_nest_merges(const npu__ref_nest *s, const npu__ref_nest_operand *by_loop, uint32_t d,
                                 int64_t extent)
{
    for (uint32_t i = 0; i < s->num_in; i++) {
        if (s->operands[i].strides[s->num_loops - 1] != by_loop[i].strides[d] * extent) {
            return false;
        }
    }
    return true;
}

/* Appends the loops of one kind, those of one iteration left out and neighbours merged. */
static void npu__ref_nest_loops(const npu_prepare *p, npu__ref_nest *s, const npu__ref_nest_operand *by_loop,
                                const int64_t *extents, bool reductions)
{
    uint32_t first = s->num_loops;
    for (uint32_t d = 0; d < npu_op_list_len(p->op, "iterators"); d++) {
        uint32_t len;
        bool is_reduction = npu_op_str_at(p->op, "iterators", d, &len)[0] == 'r', merges;
        if (is_reduction != reductions || extents[d] == 1) {
            continue;
        }
        merges = s->num_loops > first && npu__ref_nest_merges(s, by_loop, d, extents[d]);
        s->num_loops += !merges;
        s->extents[s->num_loops - 1] = (merges ? s->extents[s->num_loops - 1] : 1) * extents[d];
        for (uint32_t i = 0; i < s->num_in; i++) {
            s->operands[i].strides[s->num_loops - 1] = by_loop[i].strides[d];
        }
    }
}

static npu_status npu__ref_nest_shape(npu_prepare *p, npu__ref_nest *s)
{
    int64_t extents[NPU_MAX_LOOPS] = { 0 };
    npu__ref_nest_operand *by_loop = (npu__ref_nest_operand *)npu_prepare_alloc(p, s->num_in * sizeof *by_loop);
    npu_status status = by_loop ? NPU_OK : NPU_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < s->num_in && !status; i++) {
        status = npu__ref_nest_operand_of(p, s, i, extents);
        by_loop[i] = s->operands[i];
    }
    if (status) {
        return status;
    }
    npu__ref_nest_loops(p, s, by_loop, extents, false);
    s->num_parallel = s->num_loops;
    npu__ref_nest_loops(p, s, by_loop, extents, true);
    s->len = s->rounds = 1;
    for (uint32_t d = 0; d < s->num_loops; d++) {
        *(d < s->num_parallel ? &s->len : &s->rounds) *= (size_t)s->extents[d];
    }
    for (uint32_t i = 0; i < s->num_in; i++) {
        s->operands[i].is_fixed = true;
        for (uint32_t d = s->num_parallel; d < s->num_loops; d++) {
            s->operands[i].is_fixed = s->operands[i].is_fixed && s->operands[i].strides[d] == 0;
        }
    }
    return NPU_OK;
}

/* The body as a fused op on strips. */
static npu_status npu__ref_nest_body(npu_prepare *p, npu__ref_nest *s, npu__ref_prepare_fn prepare)
{
    npu_prepare sub = *p;
    npu_status status;
    for (uint32_t i = 0; i < s->num_in + s->num_out; i++) {
        s->strips[i] = i < s->num_in ? p->in[i] : p->out[i - s->num_in];
        s->strips[i].rank = 1;
        s->strips[i].dims[0] = NPU__REF_BLOCK;
        s->strips[i].strides[0] = 1;
    }
    sub.in = s->strips;
    sub.out = s->strips + s->num_in;
    status = npu__ref_fused_create(&sub, prepare);
    p->blocks = sub.blocks;
    s->body = (npu__ref_fused *)sub.state;
    for (uint32_t i = 0; i < s->num_in && !status; i++) {
        npu_value v = npu_graph_input(npu_op_body(p->op, 0), i);
        s->operands[i].is_used = npu_value_num_users(npu_op_body(p->op, 0), v) > 0;
        for (uint32_t k = 0; k < s->num_out; k++) {
            s->operands[i].is_used = s->operands[i].is_used || npu_graph_output(npu_op_body(p->op, 0), k).id == v.id;
        }
    }
    return status;
}

/* Is the body `destination op value`, with an op that is folded here, and the destination read nowhere else? */
static bool npu__ref_nest_is_fold(const npu_prepare *p, npu__ref_nest *s)
{
    const npu_graph *body = npu_op_body(p->op, 0);
    const npu__ref_fused_step *last = &s->body->steps[s->body->num_steps ? s->body->num_steps - 1 : 0];
    npu_value destination = s->num_in ? npu_graph_input(body, s->num_in - 1) : npu_graph_output(body, 0);
    uint32_t op = s->body->num_steps ? last->map->op : NPU__REF_OP_copy;
    if (s->num_out != 1 || (op != NPU__REF_OP_add && op != NPU__REF_OP_maximum && op != NPU__REF_OP_minimum) ||
        last->y != npu_graph_output(body, 0).id || npu_value_num_users(body, destination) != 1 ||
        last->map->cls > NPU__I32 || !npu__ref_map_is_dense(last->map, NPU__REF_BLOCK, NPU__REF_BLOCK)) {
        return false;
    }
    s->fold = op;
    s->folded = last->x[0] == destination.id ? last->x[1] : last->x[0];
    return (last->x[0] == destination.id || last->x[1] == destination.id) && s->folded != 0 &&
           s->body->values[s->folded].where != NPU__REF_FUSED_CONSTANT;
}

/* Few results of many elements each, or elements that lie side by side along the reductions. */
static bool npu__ref_nest_folds(const npu_prepare *p, npu__ref_nest *s)
{
    bool dense = s->num_loops > s->num_parallel;
    for (uint32_t i = 0; i + 1 < s->num_in && dense; i++) {
        int64_t step = s->operands[i].strides[s->num_loops - 1];
        dense = step == 0 || step == 1;
    }
    return s->rounds >= 32 && (dense || s->len < 16) && npu__ref_nest_is_fold(p, s);
}

static npu_status npu__ref_nest_create(npu_prepare *p, npu__ref_prepare_fn prepare)
{
    npu__ref_nest *s = (npu__ref_nest *)npu_prepare_alloc(p, sizeof *s);
    npu_status status;
    double work;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->num_in = p->op->num_in;
    s->num_out = p->op->num_out;
    s->operands = (npu__ref_nest_operand *)npu_prepare_alloc(p, s->num_in * sizeof *s->operands);
    s->strips = (npu_tensor *)npu_prepare_alloc(p, ((size_t)s->num_in + s->num_out) * sizeof *s->strips);
    status = s->operands && s->strips ? npu__ref_nest_shape(p, s) : NPU_ERR_NO_MEMORY;
    status = status ? status : npu__ref_nest_body(p, s, prepare);
    if (status) {
        return status;
    }
    work = (double)s->len * (double)(s->rounds ? s->rounds : 1) / NPU__REF_GRAIN;
    p->state = s;
    s->folds = npu__ref_nest_folds(p, s);
    s->before = *s->body;
    s->before.num_steps -= s->folds;
    p->parts = npu__ref_parts(s->len, s->len / (work < 64 ? (size_t)work + 1 : 64) + 1);
    s->part_size = ((size_t)s->num_in + s->num_out) * NPU__REF_NEST_BYTES + s->body->part_size;
    p->workspace = p->parts * s->part_size;
    return NPU_OK;
}

static npu_status npu__ref_nest_prepare(npu_prepare *p) { return npu__ref_nest_create(p, npu__ref_map_prepare); }

static npu_status npu__ref_nest_prepare_fast(npu_prepare *p)
{
    return npu__ref_nest_create(p, npu__ref_map_prepare_fast);
}

static bool npu__ref_nest_supported(const npu_op_info *op)
{
    for (uint32_t i = 0; i < op->num_in; i++) {
        if (npu__ref_compute_class(op->in[i]->dtype) < 0) {
            return false;
        }
    }
    return op->num_in + op->num_out <= NPU__REF_NEST_TENSORS && npu_op_body(op, 0) &&
           npu__ref_fused_steps_supported(npu_op_body(op, 0));
}

/* ---- launch of the nest ---- */

/* A strip on its way: n iterations of the loops first .. end - 1 from `index` on, where the others stand still. */
typedef struct npu__ref_nest_strip {
    const npu__ref_nest *nest;
    int64_t index[NPU_MAX_LOOPS];
    uint32_t first, end; /* the parallel loops; the reductions where a nest folds */
    size_t n;
} npu__ref_nest_strip;

/* Moves the elements that an operand has for the strip, between memory and a dense strip. */
static void npu__ref_nest_move(const npu__ref_nest_strip *at, const npu__ref_nest_operand *o, char *memory, char *strip,
                               bool to_strip)
{
    const npu__ref_nest *s = at->nest;
    int64_t index[NPU_MAX_LOOPS], size = (int64_t)o->size, offset = o->first, run;
    int64_t step = at->end > at->first ? o->strides[at->end - 1] * size : 0;
    for (uint32_t d = 0; d < s->num_loops; d++) {
        index[d] = at->index[d];
        offset += index[d] * o->strides[d];
    }
    for (int64_t i = 0; i < (int64_t)at->n; i += run) {
        uint32_t d = at->end > at->first ? at->end - 1 : 0;
        run = at->end > at->first ? s->extents[d] - index[d] : 1;
        run = run < (int64_t)at->n - i ? run : (int64_t)at->n - i;
        if (to_strip) {
            npu__ref_move(strip + i * size, size, memory + offset * size, step, run, o->size);
        } else {
            npu__ref_move(memory + offset * size, step, strip + i * size, size, run, o->size);
        }
        offset += at->end > at->first ? run * o->strides[d] : 0;
        for (index[d] += run; d > at->first && index[d] == s->extents[d]; index[d]++) {
            offset -= index[d] * o->strides[d];
            index[d--] = 0;
            offset += o->strides[d];
        }
    }
}

/* The operand's own memory where the strip is one dense run of it, else NULL. */
static char *npu__ref_nest_direct(const npu__ref_nest_strip *at, const npu__ref_nest_operand *o, char *memory)
{
    const npu__ref_nest *s = at->nest;
    uint32_t last = at->end - 1;
    int64_t offset = o->first;
    if (at->end == at->first || o->strides[last] != 1 || s->extents[last] - at->index[last] < (int64_t)at->n) {
        return NULL;
    }
    for (uint32_t d = 0; d < s->num_loops; d++) {
        offset += at->index[d] * o->strides[d];
    }
    return memory + offset * (int64_t)o->size;
}

/* The next round of the reductions. */
static void npu__ref_nest_next(npu__ref_nest_strip *at)
{
    const npu__ref_nest *s = at->nest;
    for (uint32_t d = s->num_loops; d-- > s->num_parallel;) {
        if (++at->index[d] < s->extents[d]) {
            return;
        }
        at->index[d] = 0;
    }
}

/* What the body gave for result k goes to the strip `to`. */
static void npu__ref_nest_yield(const npu__ref_nest *s, const npu_launch *body, char *buffers, uint32_t k, size_t n,
                                char *to)
{
    const npu__ref_fused_value *v = &s->body->values[s->body->outputs[k]];
    const char *from = npu__ref_fused_address(s->body, body, buffers, s->body->outputs[k], 0, true);
    int64_t size = (int64_t)npu__ref_size(v->dtype);
    if (!from) {
        npu__ref_move(to, size, (const char *)v->data, 0, (int64_t)n, (size_t)size);
    } else if (from != to) {
        memmove(to, from, n * (size_t)size);
    }
}

static char *npu__ref_nest_strip_at(char *strips, uint32_t i) { return strips + i * (size_t)NPU__REF_NEST_BYTES; }

/* Where the body finds its operands in this round. Destinations lie in strips of their own: results may take their
   memory. */
static void npu__ref_nest_read(const npu__ref_nest_strip *at, const npu_launch *l, const void **x, char *strips,
                               size_t round, uint32_t count)
{
    const npu__ref_nest *s = at->nest;
    for (uint32_t i = 0; i < count; i++) {
        const npu__ref_nest_operand *o = &s->operands[i];
        bool is_source = i < s->num_in - s->num_out;
        char *memory = (char *)(uintptr_t)l->x[i], *strip = npu__ref_nest_strip_at(strips, i);
        char *direct = is_source ? npu__ref_nest_direct(at, o, memory) : NULL;
        x[i] = direct ? direct : strip;
        if (!direct && (o->is_used || s->rounds == 0) && (round == 0 || (is_source && !o->is_fixed))) {
            npu__ref_nest_move(at, o, memory, strip, true);
        }
    }
}

/* Where the body puts its results: into memory if one round is all and the strip is one run there. */
static void npu__ref_nest_aim(const npu__ref_nest_strip *at, const npu_launch *l, void **y, char *strips)
{
    const npu__ref_nest *s = at->nest;
    for (uint32_t k = 0; k < s->num_out; k++) {
        const npu__ref_nest_operand *o = &s->operands[s->num_in - s->num_out + k];
        char *direct = s->rounds == 1 ? npu__ref_nest_direct(at, o, (char *)l->y[k]) : NULL;
        y[k] = direct ? direct : npu__ref_nest_strip_at(strips, s->num_in + k);
    }
}

/* All rounds of a strip: what one round yields is the destination of the next. */
static npu_status npu__ref_nest_run(npu__ref_nest_strip *at, const npu_launch *l, const npu_launch *body,
                                    const void **x, void **y, char *strips)
{
    const npu__ref_nest *s = at->nest;
    char *buffers = npu__ref_nest_strip_at(strips, s->num_in + s->num_out);
    uint32_t num_ins = s->num_in - s->num_out;
    npu_status status = NPU_OK;
    npu__ref_nest_aim(at, l, y, strips);
    npu__ref_nest_read(at, l, x, strips, 0, s->num_in);
    for (size_t round = 0; round < s->rounds && status == NPU_OK; round++) {
        if (round > 0) {
            npu__ref_nest_next(at);
            npu__ref_nest_read(at, l, x, strips, round, s->num_in);
        }
        status = npu__ref_fused_block(s->body, body, buffers, 0, at->n, 0);
        for (uint32_t k = 0; k < s->num_out; k++) {
            bool is_last = round + 1 == s->rounds;
            npu__ref_nest_yield(s, body, buffers, k, at->n,
                                is_last ? (char *)y[k] : npu__ref_nest_strip_at(strips, num_ins + k));
        }
    }
    npu__ref_nest_next(at); /* back to the first */
    for (uint32_t k = 0; k < s->num_out && status == NPU_OK; k++) {
        const npu__ref_nest_operand *o = &s->operands[num_ins + k];
        char *strip = npu__ref_nest_strip_at(strips, s->rounds ? s->num_in + k : num_ins + k);
        if (s->rounds == 0 || (char *)y[k] == strip) {
            npu__ref_nest_move(at, o, (char *)l->y[k], strip, false);
        }
    }
    return status;
}

/* acc = acc op x[0] op x[1] ..., in this order. */
#define NPU__REF_FOLD_LOOP(T, member)                                                              \
    {                                                                                              \
        T a = *(T *)acc;                                                                           \
        const T *v = (const T *)x;                                                                 \
        for (size_t i = 0; i < n && op == NPU__REF_OP_add; i++) {                                  \
            a = NPU__REF_FOLD_##member(a, v[i]);                                                   \
        }                                                                                          \
        for (size_t i = 0; i < n && op == NPU__REF_OP_maximum; i++) {                              \
            a = NPU__REF_MOST(a, v[i]);                                                            \
        }                                                                                          \
        for (size_t i = 0; i < n && op == NPU__REF_OP_minimum; i++) {                              \
            a = NPU__REF_LEAST(a, v[i]);                                                           \
        }                                                                                          \
        *(T *)acc = a;                                                                             \
        break;                                                                                     \
    }
#define NPU__REF_FOLD_f32(a, b) ((a) + (b))
#define NPU__REF_FOLD_f64(a, b) ((a) + (b))
#define NPU__REF_FOLD_i64(a, b) NPU__REF_WRAP(a, +, b)
#define NPU__REF_FOLD_i32(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))

static void npu__ref_nest_fold_strip(int cls, uint32_t op, void *acc, const void *x, size_t n)
{
    switch (cls) {
    case NPU__F32: NPU__REF_FOLD_LOOP(float, f32)
    case NPU__F64: NPU__REF_FOLD_LOOP(double, f64)
    case NPU__I32: NPU__REF_FOLD_LOOP(int32_t, i32)
    default: NPU__REF_FOLD_LOOP(int64_t, i64)
    }
}

/* One parallel iteration of a nest that folds: strips of its reductions. The destination's strip holds one element. */
static npu_status npu__ref_nest_fold(npu__ref_nest_strip *at, const npu_launch *l, const npu_launch *body,
                                     const void **x, char *strips)
{
    const npu__ref_nest *s = at->nest;
    char *acc = npu__ref_nest_strip_at(strips, s->num_in - 1), *buffers = npu__ref_nest_strip_at(strips, s->num_in + 1);
    const npu__ref_nest_operand *o = &s->operands[s->num_in - 1];
    npu_status status = NPU_OK;
    at->n = 1; /* of the destination */
    npu__ref_nest_move(at, o, (char *)(uintptr_t)l->x[s->num_in - 1], acc, true);
    for (size_t round = 0; round < s->rounds && status == NPU_OK; round += at->n) {
        size_t rest = round;
        for (uint32_t d = s->num_loops; d-- > s->num_parallel; rest /= (size_t)s->extents[d]) {
            at->index[d] = (int64_t)(rest % (size_t)s->extents[d]);
        }
        at->n = s->rounds - round < NPU__REF_BLOCK ? s->rounds - round : NPU__REF_BLOCK;
        npu__ref_nest_read(at, l, x, strips, 0, s->num_in - 1);
        status = npu__ref_fused_block(&s->before, body, buffers, 0, at->n, 0);
        npu__ref_nest_fold_strip(s->body->steps[s->before.num_steps].map->cls, s->fold, acc,
                                 npu__ref_fused_address(s->body, body, buffers, s->folded, 0, true), at->n);
    }
    memset(at->index + s->num_parallel, 0, (s->num_loops - s->num_parallel) * sizeof at->index[0]);
    at->n = 1;
    npu__ref_nest_move(at, o, (char *)l->y[0], acc, false);
    return status;
}

static npu_status npu__ref_nest_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_nest *s = (const npu__ref_nest *)l->state;
    const void *x[NPU__REF_NEST_TENSORS];
    void *y[NPU__REF_NEST_TENSORS];
    char *strips = (char *)l->workspace + part * s->part_size;
    npu__ref_nest_strip at;
    npu_launch body = *l;
    size_t begin, end;
    npu_status status = NPU_OK;
    npu__ref_split(s->len, part, parts, &begin, &end);
    body.in = s->strips;
    body.out = s->strips + s->num_in;
    body.x = x;
    body.y = y;
    memset(&at, 0, sizeof at);
    at.nest = s;
    at.first = s->folds ? s->num_parallel : 0;
    at.end = s->folds ? s->num_loops : s->num_parallel;
    for (size_t pos = begin; pos < end && status == NPU_OK; pos += at.n) {
        size_t rest = pos;
        for (uint32_t d = s->num_parallel; d-- > 0; rest /= (size_t)s->extents[d]) {
            at.index[d] = (int64_t)(rest % (size_t)s->extents[d]);
        }
        at.n = end - pos < NPU__REF_BLOCK ? end - pos : NPU__REF_BLOCK;
        status = s->folds ? npu__ref_nest_fold(&at, l, &body, x, strips)
                          : npu__ref_nest_run(&at, l, &body, x, y, strips);
    }
    return status;
}

/* ---- tables ---- */

static const npu_kernel npu__ref_kernels_structure[] = {
    NPU__REF_REDUCE_KERNELS(NPU_TENSOR_ROW_SUM),
    NPU__REF_REDUCE_KERNELS(NPU_TENSOR_ROW_MAX),
    NPU__REF_ROW(NPU_TENSOR_EMPTY, "plain", 0, NULL, NULL, npu__ref_empty_launch),
    NPU__REF_ROW(NPU_TENSOR_PAD, "plain", 0, NULL, npu__ref_tensor_pad_prepare,
                npu__ref_border_launch),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_COLLAPSE_SHAPE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_EXPAND_SHAPE, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_CONCAT, npu__ref_cat_prepare),
    NPU__REF_COPY_KERNEL(NPU_TENSOR_EXTRACT_SLICE, npu__ref_copy_prepare)
};

static const npu_kernel npu__ref_kernels_loops[] = {
    NPU__REF_LOOPS(NPU__REF_MAP_KERNEL) NPU__REF_COPY_KERNEL(NPU_LINALG_TRANSPOSE, npu__ref_copy_prepare),
    NPU__REF_MATMUL_ROWS(NPU_LINALG_MATMUL),
    NPU__REF_MATMUL_ROWS(NPU_LINALG_MATMUL_TRANSPOSE_B),
    NPU__REF_MATMUL_ROWS(NPU_LINALG_BATCH_MATMUL),
    NPU__REF_CONV_ROWS(NPU_LINALG_CONV_1D_NCW_FCW),
    NPU__REF_CONV_ROWS(NPU_LINALG_CONV_2D_NCHW_FCHW),
    NPU__REF_CONV_ROWS(NPU_LINALG_CONV_3D_NCDHW_FCDHW),
    NPU__REF_CONV_ROWS(NPU_LINALG_CONV_2D_NGCHW_GFCHW),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCHW_MAX),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCHW_SUM),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCW_MAX),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCW_SUM),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCDHW_MAX),
    NPU__REF_POOL_KERNELS(NPU_LINALG_POOLING_NCDHW_SUM),
    NPU__REF_ROW(NPU_LINALG_GENERIC, "fast", 10, npu__ref_nest_supported, npu__ref_nest_prepare_fast,
                npu__ref_nest_launch),
    NPU__REF_ROW(NPU_LINALG_GENERIC, "plain", 0, npu__ref_nest_supported, npu__ref_nest_prepare,
                npu__ref_nest_launch)
};

/* -----------------------------------------------------------------------------------------------------------
   THE BACKEND                                                                                      >>impl-ref

   The slots of npu_backend over the kernels: choosing a variant, preparing the ops of a group once, running them in
   order, each in parts. Only the public API of npu_ir.h is used. Host memory is its one region, so views cost nothing.
   Tile programs and results of a lesser dtype, which run other kernels, stand behind it.
   -------------------------------------------------------------------------------------------------------- */

#define NPU__REF_ALIGN 64u

/* What every instance is: the tables it looks through. */
typedef struct npu__ref {
    const npu_kernel_table *tables;
    uint32_t num_tables;
    const char *variant; /* NULL = by priority */
    const npu_registry *registry;
    npu_allocator allocator;
    uint32_t isa;
} npu__ref;

/* Every processor with AVX2 has F16C. */
static bool npu__ref_has_isa(uint32_t isa)
{
    switch (isa) {
#ifdef NPU__REF_HAS_AVX2
    case NPU__REF_ISA_avx512:
        return npu__ref_has_isa(NPU__REF_ISA_avx2) &&
               (!!__builtin_cpu_supports("avx512f") & !!__builtin_cpu_supports("avx512bw") &
                !!__builtin_cpu_supports("avx512dq") & !!__builtin_cpu_supports("avx512vl"));
    case NPU__REF_ISA_avx2: return !!__builtin_cpu_supports("avx2") & !!__builtin_cpu_supports("fma");
#endif
    default: return isa < NPU__REF_ISA_COUNT;
    }
}

static uint32_t npu__ref_isa(const npu__ref *ref)
{
    uint32_t isa = ref->isa == NPU__REF_ISA_BEST ? NPU__REF_ISA_COUNT - 1 : ref->isa;
    while (!npu__ref_has_isa(isa)) {
        isa--;
    }
    return isa;
}

static const char *const npu__ref_isa_names[] = {
#define NPU_X(set, narrow, wide) #set,
    NPU__REF_ISAS(NPU_X)
#undef NPU_X
};

NPU_IR_API const char *npu_ref_isa(uint32_t index)
{
    for (uint32_t isa = NPU__REF_ISA_COUNT; isa-- > 0;) {
        if (npu__ref_has_isa(isa) && index-- == 0) {
            return npu__ref_isa_names[isa];
        }
    }
    return NULL;
}

/* The static instance has no allocator of its own: it takes the core's default one. */
static npu_allocator npu__ref_allocator(const npu__ref *ref)
{
    return ref->allocator.resize ? ref->allocator : npu_text_init(NULL).allocator;
}

/* Aligned memory: the block's start and size stand right before it. */
typedef struct npu__ref_head {
    void *start;
    size_t size;
} npu__ref_head;

static void *npu__ref_alloc(const npu_allocator *a, size_t size)
{
    size_t total;
    char *start;
    uintptr_t p;
    npu__ref_head head;
    if (!npu_size_add(size, sizeof head + NPU__REF_ALIGN, &total)) {
        return NULL;
    }
    start = (char *)a->resize(a->ctx, NULL, 0, total);
    if (!start) {
        return NULL;
    }
    p = ((uintptr_t)start + sizeof head + NPU__REF_ALIGN - 1) & ~(uintptr_t)(NPU__REF_ALIGN - 1);
    head.start = start;
    head.size = total;
    memcpy((char *)p - sizeof head, &head, sizeof head);
    return (void *)p;
}

static void npu__ref_free(const npu_allocator *a, void *ptr)
{
    npu__ref_head head;
    if (ptr) {
        memcpy(&head, (char *)ptr - sizeof head, sizeof head);
        a->resize(a->ctx, head.start, head.size, 0);
    }
}

/* State blocks of a program form a list; the payload starts one alignment after the link and the block's bytes. */
typedef struct npu__ref_link {
    void *next;
    size_t bytes;
} npu__ref_link;

NPU_IR_API void *npu_prepare_alloc(npu_prepare *p, size_t size)
{
    size_t total;
    char *block =
        npu_size_add(size, NPU__REF_ALIGN, &total) ? (char *)npu__ref_alloc(p->allocator, total) : NULL;
    if (!block) {
        return NULL;
    }
    memset(block, 0, total);
    ((npu__ref_link *)(void *)block)->next = p->blocks;
    ((npu__ref_link *)(void *)block)->bytes = total;
    p->blocks = block;
    return block + NPU__REF_ALIGN;
}

static void npu__ref_free_blocks(const npu_allocator *a, void *blocks)
{
    while (blocks) {
        void *next = ((npu__ref_link *)blocks)->next;
        npu__ref_free(a, blocks);
        blocks = next;
    }
}

static uint64_t npu__ref_sum_blocks(const void *blocks)
{
    uint64_t bytes = 0;
    for (const npu__ref_link *l = (const npu__ref_link *)blocks; l; l = (const npu__ref_link *)l->next) {
        bytes += l->bytes;
    }
    return bytes;
}

/* ---- choosing a kernel ---- */

/* First row of a kind in a sorted table, or NULL. */
static const npu_kernel *npu__ref_first(const npu_kernel_table *table, npu_kind kind)
{
    uint32_t low = 0, high = table->num_kernels;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->kernels[middle].kind < kind) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    /* a kind that NPU_IR_HAS_KERNEL left out has rows without functions */
    return low < table->num_kernels && table->kernels[low].kind == kind && table->kernels[low].launch
               ? &table->kernels[low]
               : NULL;
}

/* ---- executors as a kernel ---- */

/* What an executor gets at each run. */
typedef struct npu__ref_execution {
    npu_executor executor;
    const npu_op_info *op;
} npu__ref_execution;

static const npu_executor *npu__ref_executor(const npu_registry *registry, const npu_op_info *op)
{
    const npu_executor *e = npu_registry_find_executor(registry, op->name);
    return e && (!e->num_results || !op->args || e->num_results == op->num_out) ? e : NULL;
}

/* Copies of `count` specs and pointers to them; NULL where there is none. */
static const npu_spec *const *npu__ref_copy_specs(npu_prepare *p, const npu_spec *const *specs,
                                                  uint32_t count)
{
    const npu_spec **out = (const npu_spec **)npu_prepare_alloc(p, (count + 1) * sizeof *out);
    npu_spec *copies = (npu_spec *)npu_prepare_alloc(p, (count + 1) * sizeof *copies);
    for (uint32_t i = 0; out && copies && i < count; i++) {
        if (specs[i]) {
            copies[i] = *specs[i];
            out[i] = &copies[i];
        }
    }
    return copies ? out : NULL;
}

/* A copy of an op that lives as long as the state: all that it points to, but names, data and children, which belong
   to the graph. NULL = out of memory. */
static npu_op_info *npu__ref_keep_info(npu_prepare *p, const npu_op_info *op)
{
    npu_op_info *to = (npu_op_info *)npu_prepare_alloc(p, sizeof *to);
    npu_bound_arg *args = (npu_bound_arg *)npu_prepare_alloc(p, (op->num_args + 1) * sizeof *args);
    uint8_t *attrs = (uint8_t *)npu_prepare_alloc(p, op->attrs_size + 1u);
    uint8_t *device = (uint8_t *)npu_prepare_alloc(p, op->device_size + 1u);
    const npu_graph **bodies = (const npu_graph **)npu_prepare_alloc(p, (op->num_bodies + 1) * sizeof *bodies);
    if (!to || !args || !attrs || !device || !bodies) {
        return NULL;
    }
    *to = *op;
    if (op->attrs_size) {
        memcpy(attrs, op->attrs, op->attrs_size);
    }
    if (op->device_attrs && op->device_size) {
        memcpy(device, op->device_attrs, op->device_size);
    }
    for (uint32_t i = 0; i < op->num_args; i++) {
        args[i] = *npu_op_arg_at(op, i);
        args[i].data = args[i].data ? attrs + (args[i].data - op->attrs) : NULL;
    }
    for (uint32_t i = 0; i < op->num_bodies; i++) {
        bodies[i] = op->bodies[i];
    }
    to->attrs = attrs;
    to->device_attrs = op->device_attrs ? device : NULL;
    to->args = args;
    to->arg_size = (uint32_t)sizeof *args;
    to->bodies = bodies;
    to->in_data = NULL;
    to->in = npu__ref_copy_specs(p, op->in, op->num_in);
    to->out = npu__ref_copy_specs(p, op->out, op->num_out);
    return to->in && to->out ? to : NULL;
}

static npu_status npu__ref_execute_prepare(npu_prepare *p)
{
    npu__ref_execution *e = (npu__ref_execution *)npu_prepare_alloc(p, sizeof *e);
    const npu_op_info *op = npu__ref_keep_info(p, p->op);
    if (!e || !op) {
        return NPU_ERR_NO_MEMORY;
    }
    e->executor = *npu__ref_executor(p->registry, p->op);
    e->op = op;
    p->state = e;
    return NPU_OK;
}

static npu_status npu__ref_execute_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_execution *e = (const npu__ref_execution *)l->state;
    (void)part;
    (void)parts;
    return e->executor.run(e->executor.ctx, e->op, l->x, l->y);
}

static const npu_kernel npu__ref_execute = {
    0, "executor", 0, NULL, npu__ref_execute_prepare, npu__ref_execute_launch, NULL, NPU_KERNEL_ANY
};

static bool npu__ref_accepts(const npu_kernel *k, const npu_op_info *op)
{
    return !npu__ref_misfit(k->dtypes, op) && (!k->supported || k->supported(op));
}

static const npu_kernel *npu__ref_choose(const npu__ref *ref, const npu_op_info *op, bool *kind_known)
{
    *kind_known = ref->registry && npu__ref_executor(ref->registry, op);
    if (*kind_known) {
        return &npu__ref_execute;
    }
    for (uint32_t t = 0; t < ref->num_tables; t++) {
        const npu_kernel *end = ref->tables[t].kernels + ref->tables[t].num_kernels, *fallback = NULL;
        const npu_kernel *k = npu__ref_first(&ref->tables[t], op->kind);
        for (; k && k < end && k->kind == op->kind; k++) {
            *kind_known = true;
            if (op->args && !npu__ref_accepts(k, op)) { /* without arguments only the kind is asked */
                continue;
            }
            if (!ref->variant || strcmp(k->variant, ref->variant) == 0) {
                return k;
            }
            fallback = fallback ? fallback : k;
        }
        if (fallback) {
            return fallback;
        }
    }
    return NULL;
}

static npu_status npu__ref_call_supported(const npu__ref *ref, const npu_op_info *op, npu_support *answer);

static npu_status npu__ref_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    npu_status status = NPU_OK;
    bool kind_known;
    if (op->kind == NPU_NPU_CALL) { /* no kernel: compile takes it apart */
        answer->reason = NPU_REASON_CLAIMED;
        status = op->args ? npu__ref_call_supported((const npu__ref *)ctx, op, answer) : NPU_OK;
    } else if (!npu__ref_choose((const npu__ref *)ctx, op, &kind_known)) {
        const npu_spec *misfit = op->args ? npu__ref_misfit(NPU_KERNEL_NUMBERS, op) : NULL;
        answer->reason = kind_known ? NPU_REASON_DTYPE : NPU_REASON_OP;
        if (kind_known && misfit) {
            snprintf(answer->text, sizeof answer->text, "no kernel for %s", npu_dtype_name((npu_dtype)misfit->dtype));
        }
    }
    return status;
}

/* ---- buffers: plain host memory ---- */

static npu_status npu__ref_buffer_alloc(void *ctx, const npu_allocation *what, npu_buffer *out)
{
    npu_allocator a = npu__ref_allocator((const npu__ref *)ctx);
    if (what->region != 0 || what->alignment > NPU__REF_ALIGN) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    if (what->bytes > SIZE_MAX - NPU__REF_ALIGN) {
        return NPU_ERR_OVERFLOW;
    }
    out->handle = npu__ref_alloc(&a, (size_t)what->bytes + NPU__REF_ALIGN); /* the slack that the region promises */
    out->region = 0;
    out->bytes = what->bytes;
    return out->handle ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static void npu__ref_buffer_free(void *ctx, npu_buffer *buffer)
{
    npu_allocator a = npu__ref_allocator((const npu__ref *)ctx);
    npu__ref_free(&a, buffer->handle);
    buffer->handle = NULL;
}

static bool npu__ref_inside(const npu_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

static npu_status npu__ref_moved(void *to, const void *from, uint64_t bytes, npu_fence *fence)
{
    if (bytes) {
        memmove(to, from, (size_t)bytes);
    }
    if (fence) {
        *fence = 0;
    }
    return NPU_OK;
}

static npu_status npu__ref_upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    (void)ctx;
    return npu__ref_inside(t->to, t->to_offset, t->bytes)
               ? npu__ref_moved((char *)t->to->handle + t->to_offset, t->from_host, t->bytes, fence)
               : NPU_ERR_RANGE;
}

static npu_status npu__ref_download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    (void)ctx;
    return npu__ref_inside(t->from, t->from_offset, t->bytes)
               ? npu__ref_moved(t->to_host, (const char *)t->from->handle + t->from_offset, t->bytes, fence)
               : NPU_ERR_RANGE;
}

static npu_status npu__ref_copy(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_transfer to = *t;
    if (!npu__ref_inside(t->from, t->from_offset, t->bytes)) {
        return NPU_ERR_RANGE;
    }
    to.from_host = (const char *)t->from->handle + t->from_offset;
    return npu__ref_upload(ctx, &to, fence);
}

static void *npu__ref_map(void *ctx, npu_buffer *buffer)
{
    (void)ctx;
    return buffer->handle;
}

static void npu__ref_unmap(void *ctx, npu_buffer *buffer)
{
    (void)ctx;
    (void)buffer;
}

/* ---- programs ---- */

typedef struct npu__ref_op {
    npu_status (*launch)(const npu_launch *l, uint32_t part, uint32_t parts);
    npu_status (*before)(const npu_launch *l); /* NULL = nothing to do */
    const npu_tensor *tensors;  /* operands, then results */
    void *state;
    uint32_t num_in, num_out;
    uint32_t first_ref;         /* index of its operands and results in refs */
    uint32_t parts;
    uint32_t id;                /* of the op in the graph */
    bool is_dynamic;            /* a run tells its dims: nothing of it is prepared */
} npu__ref_op;

#define NPU__REF_IN_SCRATCH (NPU_NO_INDEX - 1u) /* the buffer of a place that compile chose itself */

typedef struct npu__ref_program {
    npu_allocator allocator;
    uint32_t num_ops, num_refs, num_values, num_inplace, num_views;
    uint32_t num_inner;         /* values inside calls so far: they follow those of the group */
    npu__ref_op *ops;
    uint32_t *refs;             /* value of every operand and result; NPU_NO_INDEX = hole */
    npu_tensor *tensors;        /* one per ref */
    const void **data;          /* per value: address of a weight, else NULL */
    npu_place *places;          /* per value */
    npu_inplace *inplace;
    npu_inplace *views;         /* results that no op makes: those who read them read the operand at strides */
    const char **variants;      /* per op of the group */
    void *blocks;
    size_t table_size;          /* bytes of the address table at the start of the scratch */
    size_t workspace;           /* bytes behind it: of launch, or all that an op takes whose dims a run tells */
    size_t inner;               /* bytes behind that: of values inside calls */
} npu__ref_program;

static void npu__ref_release(void *ctx, void *program)
{
    npu__ref_program *p = (npu__ref_program *)program;
    npu_allocator a;
    (void)ctx;
    if (!p) {
        return;
    }
    a = p->allocator;
    npu__ref_free_blocks(&a, p->blocks);
    npu__ref_free(&a, p->ops);
    npu__ref_free(&a, p->refs);
    npu__ref_free(&a, p->tensors);
    npu__ref_free(&a, (void *)p->data);
    npu__ref_free(&a, p->places);
    npu__ref_free(&a, p->inplace);
    npu__ref_free(&a, p->views);
    npu__ref_free(&a, (void *)p->variants);
    npu__ref_free(&a, p);
}

/* Zeroed array of n elements; never NULL for a size that fits. */
static void *npu__ref_array(const npu_allocator *a, size_t n, size_t element)
{
    size_t bytes;
    void *p = npu_size_mul(n ? n : 1, element, &bytes) ? npu__ref_alloc(a, bytes) : NULL;
    if (p) {
        memset(p, 0, bytes);
    }
    return p;
}

/* Operands and results of all ops of a body. */
static size_t npu__ref_body_refs(const npu_graph *body)
{
    size_t n = 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(body); i++) {
        npu_op op = { i };
        n += (size_t)npu_op_num_operands(body, op) + npu_op_num_results(body, op);
    }
    return n;
}

static npu__ref_program *npu__ref_program_new(const npu_allocator *a, const npu_group *group)
{
    npu__ref_program *p = (npu__ref_program *)npu__ref_array(a, 1, sizeof *p);
    size_t num_refs = 0, num_in = 0, num_ops = group->num_ops, num_values = group->num_values;
    if (!p) {
        return NULL;
    }
    for (uint32_t i = 0; i < group->num_ops; i++) {
        const npu_op_info *op = group->ops[i]->info;
        num_refs += (size_t)op->num_in + op->num_out;
        num_in += op->num_in;
        const npu_graph *body = npu_op_body(op, 0);
        if (op->kind == NPU_NPU_CALL && body) {
            num_ops += npu_graph_num_ops(body);
            num_values += npu_graph_num_values(body);
            num_refs += npu__ref_body_refs(body);
        }
    }
    p->allocator = *a;
    p->num_values = group->num_values;
    p->ops = (npu__ref_op *)npu__ref_array(a, num_ops, sizeof *p->ops);
    p->refs = (uint32_t *)npu__ref_array(a, num_refs, sizeof *p->refs);
    p->tensors = (npu_tensor *)npu__ref_array(a, num_refs, sizeof *p->tensors);
    p->data = (const void **)npu__ref_array(a, num_values, sizeof *p->data);
    p->places = (npu_place *)npu__ref_array(a, num_values, sizeof *p->places);
    p->inplace = (npu_inplace *)npu__ref_array(a, num_in, sizeof *p->inplace);
    p->views = (npu_inplace *)npu__ref_array(a, group->num_ops, sizeof *p->views);
    p->variants = (const char **)npu__ref_array(a, group->num_ops, sizeof *p->variants);
    if (num_refs > UINT32_MAX / 2 || !p->ops || !p->refs || !p->tensors || !p->data || !p->places ||
        !p->inplace || !p->views || !p->variants) {
        npu__ref_release(NULL, p);
        return NULL;
    }
    return p;
}

/* The description of a dense tensor of a spec; NULL = a hole. Nothing leads from one element to the next where there
   are none: the product of dims beside a 0 may not fit. */
static void npu__ref_describe(npu_tensor *t, const npu_spec *spec)
{
    int64_t stride = 1;
    memset(t, 0, sizeof *t);
    t->size = (uint32_t)sizeof *t;
    if (!spec) {
        return;
    }
    t->dtype = spec->dtype;
    t->rank = spec->rank;
    for (uint32_t i = 0; i < spec->rank; i++) {
        stride = spec->dims[i] == 0 ? 0 : stride;
    }
    for (uint32_t i = spec->rank; i-- > 0;) {
        t->dims[i] = spec->dims[i];
        t->strides[i] = stride;
        stride *= spec->dims[i] > 0 ? spec->dims[i] : 1;
    }
}

static npu_status npu__ref_prepare(const npu__ref *ref, const npu_kernel *kernel, const npu_op_info *op,
                                   const npu_tensor *tensors, const npu_allocator *a, npu_prepare *p, void *blocks)
{
    memset(p, 0, sizeof *p);
    p->registry = ref->registry;
    p->tables = ref->tables;
    p->num_tables = ref->num_tables;
    p->variant = ref->variant;
    p->isa = npu__ref_isa(ref);
    p->op = op;
    p->in = tensors;
    p->out = tensors + op->num_in;
    p->parts = 1;
    p->allocator = a;
    p->blocks = blocks;
    return kernel->prepare ? kernel->prepare(p) : NPU_OK;
}

/* ---- views: results that are read where their operand is, at strides ----

   Nothing is copied where all who read a result take it as it is. But the operand stays in memory until then, so
   that they must come soon, and must not read the small part of something large. */

enum { NPU__REF_NEAR = 64 }; /* ops */

/* A value of the group as its readers see it, in the memory of another one. */
typedef struct npu__ref_view {
    uint32_t base;
    npu_tensor x;
} npu__ref_view;

typedef struct npu__ref_views {
    const npu_group *group;
    uint32_t *last; /* per value: the op that reads it last */
    uint32_t *of;   /* per value: 1 + its view; 0 = it has memory of its own */
    npu__ref_view *views;
    uint32_t num_views;
} npu__ref_views;

static bool npu__ref_views_init(npu__ref_views *v, const npu_allocator *a, const npu_group *group)
{
    size_t num_views = 0;
    v->group = group;
    for (uint32_t i = 0; i < group->num_ops; i++) {
        num_views += npu__ref_copy_fill(group->ops[i]->info->kind) != NULL;
    }
    v->last = (uint32_t *)npu__ref_array(a, group->num_values, sizeof *v->last);
    v->of = (uint32_t *)npu__ref_array(a, group->num_values, sizeof *v->of);
    v->views = (npu__ref_view *)npu__ref_array(a, num_views, sizeof *v->views);
    for (uint32_t i = 0; v->last && i < group->num_ops; i++) {
        for (uint32_t k = 0; k < group->ops[i]->info->num_in; k++) {
            if (group->ops[i]->in[k] != NPU_NO_INDEX) {
                v->last[group->ops[i]->in[k]] = i;
            }
        }
    }
    return v->last && v->of && v->views;
}

static void npu__ref_views_free(npu__ref_views *v, const npu_allocator *a)
{
    npu__ref_free(a, v->last);
    npu__ref_free(a, v->of);
    npu__ref_free(a, v->views);
}

/* Operand i of an op of the group: the value that it is read from, and how. */
static uint32_t npu__ref_views_operand(const npu__ref_views *v, const npu_op_info *op, const uint32_t *in, uint32_t i,
                                       npu_tensor *x)
{
    const npu__ref_view *view = v && in[i] != NPU_NO_INDEX && v->of[in[i]] ? &v->views[v->of[in[i]] - 1] : NULL;
    if (view) {
        *x = view->x;
        return view->base;
    }
    npu__ref_describe(x, op->in[i]);
    return in[i];
}

static bool npu__ref_op_takes(const npu__ref *ref, const npu_group_op *op, uint32_t operand, const npu_tensor *x)
{
    bool known;
    const npu_kernel *kernel = npu__ref_choose(ref, op->info, &known);
    return kernel && kernel->takes && !op->info->dynamic && kernel->takes(op->info, operand, x);
}

/* Do the ops from `first` on that read a value take it as x says? */
static bool npu__ref_views_taken(const npu__ref *ref, const npu__ref_views *v, uint32_t first, uint32_t value,
                                 const npu_tensor *x)
{
    for (uint32_t i = first; i <= v->last[value]; i++) {
        const npu_group_op *op = v->group->ops[i];
        for (uint32_t k = 0; k < op->info->num_in; k++) {
            if (op->in[k] == value && !npu__ref_op_takes(ref, op, k, x)) {
                return false;
            }
        }
    }
    return true;
}

static bool npu__ref_is_dense(const npu_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0; stride *= t->dims[i] > 0 ? t->dims[i] : 1) {
        if (t->dims[i] > 1 && t->strides[i] != stride) {
            return false;
        }
    }
    return true;
}

/* Is op i of the group one whose result may be a view? Only what the group alone reads, and soon. */
static bool npu__ref_views_may(const npu__ref *ref, const npu__ref_views *v, uint32_t i)
{
    const npu_group_op *op = v->group->ops[i];
    bool known;
    const npu_kernel *kernel = npu__ref_choose(ref, op->info, &known);
    return kernel && kernel->takes == npu__ref_view_takes && !op->info->dynamic &&
           v->group->values[op->out[0]]->role == NPU_GROUP_INNER && v->last[op->out[0]] > i &&
           v->last[op->out[0]] - i <= NPU__REF_NEAR;
}

/* True where op i of the group has nothing to do: its result is a view from now on. One that is dense is left to the
   planner of memory. */
static bool npu__ref_views_add(const npu__ref *ref, npu__ref_views *v, uint32_t i)
{
    const npu_group_op *op = v->group->ops[i];
    npu__ref_view *view = &v->views[v->num_views];
    npu_tensor x;
    if (!npu__ref_views_may(ref, v, i)) {
        return false;
    }
    view->base = npu__ref_views_operand(v, op->info, op->in, 0, &x);
    npu__ref_describe(&view->x, op->info->out[0]);
    npu__ref_view_of(op->info, &x, &view->x);
    if (npu__ref_len(&view->x) < npu__ref_len(&x) / 2 || npu__ref_is_dense(&view->x) ||
        !npu__ref_views_taken(ref, v, i + 1, op->out[0], &view->x)) {
        return false;
    }
    v->of[op->out[0]] = ++v->num_views;
    return true;
}

/* Every kernel here keeps to the rules: it has read an operand's element when it writes a result there; one at
   other strides it reads later. */
static void npu__ref_add_inplace(npu__ref_program *p, const npu_op_info *op, const npu_tensor *in, uint32_t index)
{
    for (uint32_t i = 0; i < op->num_in; i++) {
        for (uint32_t result = 0; result < op->num_out; result++) {
            if (npu_op_may_alias(op, result, i) && npu__ref_is_dense(&in[i])) {
                npu_inplace *pair = &p->inplace[p->num_inplace++];
                pair->size = (uint32_t)sizeof *pair;
                pair->op = index;
                pair->operand = i;
                pair->result = result;
            }
        }
    }
}

/* ---- ops whose dims a run tells: prepared for one launch, in the program's scratch ---- */

/* Memory from the scratch until it is full, then from the heap: what an op takes at its largest dims is known
   from compile, and few take more at smaller ones. */
typedef struct npu__ref_arena {
    char *base;
    size_t size, used; /* used grows on past size: what would have been enough */
    npu_allocator heap;
} npu__ref_arena;

static void *npu__ref_arena_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    npu__ref_arena *a = (npu__ref_arena *)ctx;
    uintptr_t at = (uintptr_t)ptr, base = (uintptr_t)a->base;
    size_t begin = a->used, mask = NPU__REF_ALIGN - 1;
    if (new_size == 0) {
        return at >= base && at < base + a->size ? NULL : a->heap.resize(a->heap.ctx, ptr, old_size, 0);
    }
    NPU_IR_ASSERT((begin & mask) == 0);
    if (ptr || new_size > SIZE_MAX - mask || !npu_size_add(begin, (new_size + mask) & ~mask, &a->used)) {
        return NULL;
    }
    return a->used <= a->size ? a->base + begin : a->heap.resize(a->heap.ctx, NULL, 0, new_size);
}

/* One op ready to be launched. */
typedef struct npu__ref_ready {
    const npu_kernel *kernel;
    npu_tensor *tensors;
    int64_t (*dims)[NPU_MAX_RANK]; /* of the results, where only the kernel can tell them */
    void *workspace;
    npu_prepare prepare;
} npu__ref_ready;

static void npu__ref_unready(const npu_allocator *a, npu__ref_ready *r)
{
    npu__ref_free_blocks(a, r->prepare.blocks);
    npu__ref_free(a, r->workspace);
    npu__ref_free(a, r->dims);
    npu__ref_free(a, r->tensors);
}

static npu_status npu__ref_make_ready(const npu__ref *ref, const npu_op_info *op, const npu_allocator *a,
                                      npu__ref_ready *r)
{
    bool kind_known;
    npu_status status;
    memset(r, 0, sizeof *r);
    r->kernel = npu__ref_choose(ref, op, &kind_known);
    r->tensors = (npu_tensor *)npu__ref_alloc(a, (op->num_in + op->num_out) * sizeof *r->tensors);
    r->dims = (int64_t(*)[NPU_MAX_RANK])npu__ref_alloc(a, op->num_out * sizeof *r->dims);
    if (!r->kernel || !r->tensors || !r->dims) {
        return r->kernel ? NPU_ERR_NO_MEMORY : NPU_ERR_NOT_IMPLEMENTED;
    }
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        npu__ref_describe(&r->tensors[i], i < op->num_in ? op->in[i] : op->out[i - op->num_in]);
        if (i >= op->num_in) {
            memcpy(r->dims[i - op->num_in], r->tensors[i].dims, sizeof r->tensors[i].dims);
        }
    }
    status = npu__ref_prepare(ref, r->kernel, op, r->tensors, a, &r->prepare, NULL);
    r->workspace = status ? NULL : npu__ref_alloc(a, r->prepare.workspace);
    return status ? status : r->workspace ? NPU_OK : NPU_ERR_NO_MEMORY;
}

#define NPU__REF_MISFIT_ROOM 8192u /* bytes for an op that cannot be measured; the rest comes from the heap */

/* Bytes that an op takes when it runs at its largest dims, which fit together. */
static npu_status npu__ref_measure(const npu__ref *ref, const npu_op_info *op, const npu_allocator *heap,
                                   size_t *bytes)
{
    npu__ref_arena arena = { NULL, 0, 0, { NULL, NULL } };
    npu_allocator a = { NULL, npu__ref_arena_resize };
    npu__ref_ready ready;
    npu_status status;
    arena.heap = *heap;
    a.ctx = &arena;
    status = npu__ref_make_ready(ref, op, &a, &ready);
    npu__ref_unready(&a, &ready);
    *bytes = arena.used;
    return status == NPU_ERR_NO_MEMORY ? status : NPU_OK;
}

/* An op of the group, the index of which in it is given for results in place, or of the body of a call. `in`
   and `out` are its values. */
static npu_status npu__ref_compile_op(const npu__ref *ref, npu__ref_program *p, const npu_op_info *op,
                                      const uint32_t *in, const uint32_t *out, const npu__ref_views *views,
                                      uint32_t index, size_t *workspace, char text[96])
{
    npu__ref_op *o = &p->ops[p->num_ops];
    npu_tensor *tensors = p->tensors + p->num_refs;
    bool kind_known;
    const npu_kernel *kernel = npu__ref_choose(ref, op, &kind_known);
    npu_prepare prepare;
    npu_status status = NPU_OK;
    if (!kernel) {
        snprintf(text, 96, "no kernel for %.60s", op->name);
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    for (uint32_t i = 0; i < op->num_in; i++) {
        p->refs[p->num_refs + i] = npu__ref_views_operand(views, op, in, i, &tensors[i]);
    }
    for (uint32_t i = 0; i < op->num_out; i++) {
        p->refs[p->num_refs + op->num_in + i] = out[i];
        npu__ref_describe(&tensors[op->num_in + i], op->out[i]);
    }
    o->is_dynamic = op->dynamic != 0;
    if (o->is_dynamic) {
        memset(&prepare, 0, sizeof prepare);
        prepare.workspace = NPU__REF_MISFIT_ROOM;
        status = op->dynamic & NPU_DYNAMIC_MISFIT
                     ? NPU_OK
                     : npu__ref_measure(ref, op, &p->allocator, &prepare.workspace);
    } else {
        status = npu__ref_prepare(ref, kernel, op, tensors, &p->allocator, &prepare, p->blocks);
        p->blocks = prepare.blocks;
    }
    if (status) {
        snprintf(text, 96, "%.60s: cannot be prepared", op->name);
        if (prepare.text[0]) {
            memcpy(text, prepare.text, sizeof prepare.text);
        }
        return status;
    }
    o->launch = kernel->launch;
    o->before = prepare.before;
    o->tensors = tensors;
    o->state = prepare.state;
    o->num_in = op->num_in;
    o->num_out = op->num_out;
    o->first_ref = p->num_refs;
    o->parts = prepare.parts ? prepare.parts : 1;
    o->id = op->op;
    *workspace = prepare.workspace > *workspace ? prepare.workspace : *workspace;
    if (index != NPU_NO_INDEX) {
        p->variants[index] = kernel->variant;
    }
    if (op->num_out && kernel != &npu__ref_execute && index != NPU_NO_INDEX) {
        npu__ref_add_inplace(p, op, tensors, index);
    }
    p->num_refs += op->num_in + op->num_out;
    p->num_ops++;
    return NPU_OK;
}

/* ---- calls: the ops of the body, one after the other, with what lies between in the scratch ---- */

enum { NPU__REF_CALL_TENSORS = 64 }; /* operands and results of one op of a body */

/* What only a run tells: a number that a value feeds, or a dim. The run tells it of ops, not of those in a body. */
static bool npu__ref_waits(const npu_op_info *op, const npu_schema *schema)
{
    for (uint32_t i = 0; i < schema->num_args; i++) {
        const npu_schema_arg *arg = &schema->args[i];
        bool is_int = arg->type.base == NPU_T_INT || arg->type.base == NPU_T_SYMINT;
        for (uint32_t k = 0; is_int && (k == 0 || k < npu_op_list_len(op, arg->name)); k++) {
            if (npu_op_dynamic_operand(op, arg->name, k) >= 0) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        const npu_spec *x = i < op->num_in ? op->in[i] : op->out[i - op->num_in];
        if (x && !npu_spec_is_static(x)) {
            return true;
        }
    }
    return false;
}

/* Every output is the result of an op, each once, and every op has a kernel. Random numbers follow from the id of the
   op, which two calls of one body share: there are none. */
static npu_status npu__ref_call_supported(const npu__ref *ref, const npu_op_info *op, npu_support *answer)
{
    const npu_graph *body = npu_op_body(op, 0);
    npu_op_storage storage;
    npu_status status = NPU_OK;
    bool ok = body && !op->dynamic && npu__ref_fused_outputs_supported(body);
    memset(&storage, 0, sizeof storage);
    for (uint32_t i = 1; ok && i <= npu_graph_num_ops(body); i++) {
        npu_op id = { i };
        npu_op_info info;
        bool known;
        status = npu_op_describe(body, id, &info, &storage);
        ok = status == NPU_OK && info.num_in + info.num_out <= NPU__REF_CALL_TENSORS &&
             !(info.traits & NPU_RANDOM) && npu__ref_choose(ref, &info, &known);
        if (ok && npu__ref_waits(&info, npu_op_definition(body, id)->schema)) {
            snprintf(answer->text, sizeof answer->text, "in its body only a run tells dims or numbers of %.40s", info.name);
            answer->reason = NPU_REASON_DYNAMIC;
            ok = false;
        }
    }
    for (uint32_t i = 1; ok && i <= npu_graph_num_values(body); i++) {
        npu_value v = { i };
        npu_role role = npu_value_role(body, v);
        ok = role == NPU_ROLE_INPUT || role == NPU_ROLE_TEMPORARY || npu_value_data(body, v, NULL);
    }
    npu_op_storage_free(&storage);
    answer->reason = ok ? NPU_REASON_CLAIMED : answer->reason ? answer->reason : NPU_REASON_OP;
    return status;
}

/* Values of the body by id: operands and results of the call, weights, and the rest in the scratch. */
static npu_status npu__ref_call_values(npu__ref_program *p, const npu_group_op *call, uint32_t *values)
{
    const npu_graph *body = npu_op_body(call->info, 0);
    for (uint32_t i = 0; i < call->info->num_in; i++) {
        values[npu_graph_input(body, i).id] = call->in[i];
    }
    for (uint32_t i = 0; i < call->info->num_out; i++) {
        values[npu_graph_output(body, i).id] = call->out[i];
    }
    for (uint32_t id = 1; id <= npu_graph_num_values(body); id++) {
        npu_value v = { id };
        uint32_t index = p->num_values + p->num_inner;
        size_t size;
        if (values[id] != NPU_NO_INDEX) {
            continue;
        }
        if (npu_spec_size(npu_value_spec(body, v), &size) || !npu_size_add(size, NPU__REF_ALIGN - 1, &size)) {
            return NPU_ERR_OVERFLOW;
        }
        values[id] = index;
        p->num_inner++;
        p->data[index] = npu_value_data(body, v, NULL);
        p->places[index].buffer = p->data[index] ? NPU_NO_INDEX : NPU__REF_IN_SCRATCH;
        p->places[index].offset = p->inner;
        p->inner += p->data[index] ? 0 : size & ~(size_t)(NPU__REF_ALIGN - 1);
    }
    return NPU_OK;
}

static npu_status npu__ref_compile_call(const npu__ref *ref, npu__ref_program *p, const npu_group_op *call,
                                        size_t *workspace, char text[96])
{
    const npu_graph *body = npu_op_body(call->info, 0);
    size_t num = (size_t)npu_graph_num_values(body) + 1;
    uint32_t *values = (uint32_t *)npu__ref_array(&p->allocator, num, sizeof *values);
    npu_op_storage storage;
    npu_status status = values ? NPU_OK : NPU_ERR_NO_MEMORY;
    memset(&storage, 0, sizeof storage);
    if (values) {
        memset(values, 0xff, num * sizeof *values); /* NPU_NO_INDEX */
        status = npu__ref_call_values(p, call, values);
    }
    for (uint32_t id = 1; status == NPU_OK && id <= npu_graph_num_ops(body); id++) {
        npu_op op = { id };
        uint32_t of[NPU__REF_CALL_TENSORS];
        npu_op_info info;
        status = npu_op_describe(body, op, &info, &storage);
        for (uint32_t i = 0; status == NPU_OK && i < info.num_in + info.num_out; i++) {
            npu_value v = i < info.num_in ? npu_op_operand_value(body, op, i)
                                          : npu_op_result(body, op, i - info.num_in);
            of[i] = v.id ? values[v.id] : NPU_NO_INDEX;
        }
        status =
            status ? status
                   : npu__ref_compile_op(ref, p, &info, of, of + info.num_in, NULL, NPU_NO_INDEX, workspace, text);
        if (status == NPU_OK) {
            p->ops[p->num_ops - 1].id = call->info->op; /* whose time and whose failure it is */
        }
    }
    npu_op_storage_free(&storage);
    npu__ref_free(&p->allocator, values);
    return status;
}

static npu_status npu__ref_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    const npu__ref *ref = (const npu__ref *)ctx;
    npu_allocator a = npu__ref_allocator(ref);
    npu__ref_program *p = npu__ref_program_new(&a, group);
    npu__ref_views views = { NULL, NULL, NULL, NULL, 0 };
    size_t workspace = 0;
    npu_status status = npu__ref_views_init(&views, &a, group) && p ? NPU_OK : NPU_ERR_NO_MEMORY;
    for (uint32_t i = 0; p && i < group->num_values; i++) {
        p->data[i] = group->values[i]->role == NPU_GROUP_WEIGHT ? group->values[i]->data : NULL;
        p->places[i].buffer = NPU_NO_INDEX;
    }
    for (uint32_t i = 0; status == NPU_OK && i < group->num_ops; i++) {
        const npu_group_op *op = group->ops[i];
        if (npu__ref_views_add(ref, &views, i)) {
            p->views[p->num_views].size = (uint32_t)sizeof *p->views;
            p->views[p->num_views++].op = i; /* operand 0, result 0 */
            continue;
        }
        status = op->info->kind == NPU_NPU_CALL
                     ? npu__ref_compile_call(ref, p, op, &workspace, out->text)
                     : npu__ref_compile_op(ref, p, op->info, op->in, op->out, &views, i, &workspace, out->text);
        out->failed_op = status ? op->info->op : 0;
    }
    npu__ref_views_free(&views, &a);
    if (status) {
        npu__ref_release(NULL, p);
        return status;
    }
    p->table_size = (p->num_refs * sizeof(void *) + NPU__REF_ALIGN - 1) & ~(size_t)(NPU__REF_ALIGN - 1);
    p->workspace = (workspace + NPU__REF_ALIGN - 1) & ~(size_t)(NPU__REF_ALIGN - 1);
    out->program = p;
    out->scratch = p->table_size + p->workspace + p->inner;
    out->scratch_alignment = NPU__REF_ALIGN;
    out->num_inplace = p->num_inplace;
    out->inplace = p->inplace;
    out->prepared = npu__ref_sum_blocks(p->blocks);
    out->num_views = p->num_views;
    out->views = p->views;
    out->variants = p->variants;
    return NPU_OK;
}

/* Remembers where values are and drops the ops whose results are views of their operand. */
static npu_status npu__ref_place(void *ctx, void *program, const npu_places *places)
{
    npu__ref_program *p = (npu__ref_program *)program;
    uint32_t kept = 0;
    (void)ctx;
    if (places->num_values != p->num_values) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < p->num_values; i++) {
        p->places[i] = *npu_place_at(places, i);
    }
    for (uint32_t i = 0; i < p->num_ops; i++) {
        const npu__ref_op *o = &p->ops[i];
        uint32_t aliases = 0;
        for (uint32_t r = 0; r < o->num_out; r++) {
            NPU_IR_ASSERT(p->refs[o->first_ref + o->num_in + r] < p->num_values + p->num_inner);
            aliases += p->places[p->refs[o->first_ref + o->num_in + r]].alias;
        }
        if (o->num_out == 0 || aliases < o->num_out || o->is_dynamic) { /* dims are still to be told */
            p->ops[kept++] = *o;
        }
    }
    p->num_ops = kept;
    return NPU_OK;
}

#if defined(__GNUC__)
#define NPU__REF_ATOMIC_STORE(target, value) __atomic_store_n((target), (value), __ATOMIC_RELAXED)
#define NPU__REF_ATOMIC_LOAD(target) __atomic_load_n((target), __ATOMIC_RELAXED)
#else
#define NPU__REF_ATOMIC_STORE(target, value) (*(volatile int *)(target) = (value))
#define NPU__REF_ATOMIC_LOAD(target) (*(volatile int *)(target))
#endif

typedef struct npu__ref_task {
    const npu__ref_op *op;
    const npu_launch *launch;
    int status; /* of any part that failed */
} npu__ref_task;

static void npu__ref_run_part(void *arg, uint32_t part, uint32_t parts, uint32_t worker)
{
    npu__ref_task *t = (npu__ref_task *)arg;
    npu_status status = t->op->launch(t->launch, part, parts);
    (void)worker; /* all parts share one workspace */
    if (status) {
        NPU__REF_ATOMIC_STORE(&t->status, (int)status);
    }
}

static npu_status npu__ref_run_parts(const npu__ref_op *o, const npu_launch *l, const npu_parallel *parallel)
{
    npu__ref_task task;
    task.op = o;
    task.launch = l;
    task.status = o->before ? (int)o->before(l) : (int)NPU_OK;
    if (task.status) {
        return (npu_status)task.status;
    }
    if (parallel && parallel->width > 1) {
        parallel->run(parallel->ctx, npu__ref_run_part, &task, o->parts);
    } else {
        for (uint32_t i = 0; i < o->parts; i++) {
            npu__ref_run_part(&task, i, o->parts, 0);
        }
    }
    return (npu_status)NPU__REF_ATOMIC_LOAD(&task.status);
}

/* Fills `count` addresses of the table from `first` on, in the order of refs. What has no bytes may have no memory; but
   NULL would be a hole, and no address to copy from. */
static void npu__ref_addresses(const npu__ref_program *p, const npu_binding *b, void **table, uint32_t first,
                               uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t v = p->refs[i];
        if (v == NPU_NO_INDEX) {
            table[i] = NULL;
        } else if (p->places[v].buffer == NPU_NO_INDEX) {
            table[i] = p->data[v] ? (char *)(uintptr_t)p->data[v] + p->tensors[i].offset : (void *)table;
        } else if (p->places[v].buffer == NPU__REF_IN_SCRATCH) {
            table[i] = (char *)table + p->table_size + p->workspace + p->places[v].offset;
        } else {
            char *base = (char *)b->buffers[p->places[v].buffer]->handle;
            table[i] = base ? base + p->places[v].offset + p->tensors[i].offset : (void *)table;
        }
    }
}

static void npu__ref_launch_of(npu_launch *l, const npu__ref_op *o, const npu_tensor *tensors,
                               void *const *table)
{
    l->in = tensors;
    l->out = tensors + o->num_in;
    l->num_in = o->num_in;
    l->num_out = o->num_out;
    l->x = (const void *const *)(table + o->first_ref);
    l->y = table + o->first_ref + o->num_in;
}

static npu_status npu__ref_run_dynamic(const npu__ref *ref, const npu__ref_program *p, const npu__ref_op *o,
                                       const npu_binding *b, void **table)
{
    const npu_dynamic *dynamic = b->dynamic;
    uint32_t num = o->num_in + o->num_out;
    npu__ref_arena arena = { NULL, 0, 0, { NULL, NULL } };
    npu_allocator a = { NULL, npu__ref_arena_resize };
    npu__ref_op now = *o;
    npu__ref_ready ready;
    npu_launch l;
    const npu_op_info *info;
    npu_status status;
    npu__ref_addresses(p, b, table, o->first_ref, num);
    status = dynamic->describe(dynamic->ctx, o->id, (const void *const *)(table + o->first_ref), &info);
    if (status || (o->num_out && p->places[p->refs[o->first_ref + o->num_in]].alias)) {
        return status;
    }
    npu__ref_addresses(p, b, table, o->first_ref, num); /* results may have moved to more room */
    arena.base = (char *)table + p->table_size;
    arena.size = p->workspace;
    arena.heap = p->allocator;
    a.ctx = &arena;
    status = npu__ref_make_ready(ref, info, &a, &ready);
    if (status == NPU_OK) {
        npu__ref_launch_of(&l, o, ready.tensors, table);
        l.worker_workspace = NULL;
        l.state = ready.prepare.state;
        l.workspace = ready.workspace;
        l.isa = ready.prepare.isa;
        l.dims = info->dynamic & NPU_DYNAMIC_RESULTS ? ready.dims : NULL;
        now.launch = ready.kernel->launch;
        now.before = ready.prepare.before;
        now.parts = ready.prepare.parts ? ready.prepare.parts : 1;
        status = npu__ref_run_parts(&now, &l, b->parallel);
    }
    if (status == NPU_OK && (info->dynamic & NPU_DYNAMIC_RESULTS)) {
        status = dynamic->set_result_dims(dynamic->ctx, o->id, (const int64_t(*)[NPU_MAX_RANK])ready.dims);
    }
    npu__ref_unready(&a, &ready);
    return status;
}

static npu_status npu__ref_submit(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    const npu__ref_program *p = (const npu__ref_program *)program;
    const npu_place *place = b->places->scratch;
    char *scratch = (char *)b->buffers[place->buffer]->handle + place->offset;
    void **table = (void **)(void *)scratch;
    npu_launch l;
    npu_status status = NPU_OK;
    uint64_t begin = 0;
    NPU_IR_ASSERT((uintptr_t)scratch % sizeof(void *) == 0);
    npu__ref_addresses(p, b, table, 0, p->num_refs);
    l.workspace = scratch + p->table_size;
    l.worker_workspace = NULL;
    l.isa = npu__ref_isa((const npu__ref *)ctx);
    l.dims = NULL;
    for (uint32_t i = 0; i < p->num_ops && status == NPU_OK; i++) {
        const npu__ref_op *o = &p->ops[i];
        npu__ref_launch_of(&l, o, o->tensors, table);
        l.state = o->state;
        begin = b->op_done ? b->clock() : 0;
        status = o->is_dynamic  ? npu__ref_run_dynamic((const npu__ref *)ctx, p, o, b, table)
                 : o->parts == 1 && !o->before ? o->launch(&l, 0, 1)
                                 : npu__ref_run_parts(o, &l, b->parallel);
        if (b->op_done) {
            b->op_done(b->op_done_ctx, o->id, begin, b->clock());
        }
        if (status && b->failed_op) {
            *b->failed_op = o->id;
        }
    }
    if (fence) {
        *fence = 0;
    }
    return status;
}

/* One op on tensors that lie anywhere in host memory: prepared, launched and forgotten. */
static npu_status npu__ref_op_call(void *ctx, const npu_call *call)
{
    const npu__ref *ref = (const npu__ref *)ctx;
    const npu_op_info *op = call->op;
    npu_allocator a = npu__ref_allocator(ref);
    bool kind_known;
    const npu_kernel *kernel = npu__ref_choose(ref, op, &kind_known);
    size_t n = (size_t)op->num_in + op->num_out;
    npu_tensor *tensors = (npu_tensor *)npu__ref_array(&a, n, sizeof *tensors);
    void **table = (void **)npu__ref_array(&a, n, sizeof *table);
    npu_prepare prepare;
    npu_launch l;
    npu_status status = !kernel ? NPU_ERR_NOT_IMPLEMENTED : tensors && table ? NPU_OK : NPU_ERR_NO_MEMORY;
    memset(&prepare, 0, sizeof prepare);
    memset(&l, 0, sizeof l);
    for (size_t i = 0; status == NPU_OK && i < n; i++) {
        tensors[i] = i < op->num_in ? *call->in[i] : *call->out[i - op->num_in];
        if (tensors[i].dtype) { /* without bytes, perhaps without memory */
            char *base = (char *)tensors[i].buffer->handle;
            table[i] = base ? base + tensors[i].offset : (void *)table;
        }
    }
    if (status == NPU_OK) {
        status = npu__ref_prepare(ref, kernel, op, tensors, &a, &prepare, NULL);
        l.workspace = status ? NULL : npu__ref_alloc(&a, prepare.workspace ? prepare.workspace : 1);
        status = status ? status : l.workspace ? NPU_OK : NPU_ERR_NO_MEMORY;
    }
    if (status == NPU_OK) {
        l.in = tensors;
        l.out = tensors + op->num_in;
        l.num_in = op->num_in;
        l.num_out = op->num_out;
        l.x = (const void *const *)table;
        l.y = table + op->num_in;
        l.state = prepare.state;
        l.isa = prepare.isa;
        status = prepare.before ? prepare.before(&l) : NPU_OK;
        for (uint32_t i = 0; i < prepare.parts && status == NPU_OK; i++) {
            status = kernel->launch(&l, i, prepare.parts);
        }
    }
    npu__ref_free(&a, l.workspace);
    npu__ref_free_blocks(&a, prepare.blocks);
    npu__ref_free(&a, (void *)table);
    npu__ref_free(&a, tensors);
    return status;
}

/* ---- tile programs --------------------------------------------------------------------------- >>kernels-tiles

   npu.launch prepares every op of its program once, as if it stood alone, and lists what is left to do as
   steps: kernels and the values that they read and write. A part runs some blocks one after the other in
   memory of its own, which holds a table of addresses, registers of 8 bytes and the on-chip memories.
   Synchronisation has nothing to do: steps run in program order. Blocks that store where others store or
   load run in one part, in order, so that results never depend on threads. */

/* Part of a tensor, rows of `run` bytes, dense on the other side. */
typedef struct npu__ref_region {
    uint32_t rank, outer; /* dims; those outside of a run */
    size_t run;           /* bytes that are neighbours on both sides */
    size_t rows;
    int64_t dims[NPU_MAX_RANK], most[NPU_MAX_RANK]; /* of the part; largest offset */
    int64_t strides[NPU_MAX_RANK];                  /* bytes */
    int64_t offsets[NPU_MAX_RANK];
    int fed[NPU_MAX_RANK]; /* operand whose value is the offset; -1 = offsets holds it */
} npu__ref_region;

static npu_status npu__ref_region_prepare(npu_prepare *p)
{
    const npu_tensor *t = p->op->kind == NPU_BLOCK_STORE ? &p->out[0] : &p->in[0];
    bool is_view = p->op->kind == NPU_BLOCK_VIEW;
    const char *offsets = is_view ? "offset" : "offsets";
    npu__ref_region *r = (npu__ref_region *)npu_prepare_alloc(p, sizeof *r);
    size_t size = npu__ref_size(t->dtype);
    if (!r) {
        return NPU_ERR_NO_MEMORY;
    }
    r->rank = t->rank;
    for (uint32_t i = 0; i < r->rank; i++) {
        r->dims[i] = npu_op_int_at(p->op, is_view ? "shape" : "shapes", i);
        r->most[i] = t->dims[i] - r->dims[i];
        r->strides[i] = t->strides[i] * (int64_t)size;
        r->offsets[i] = npu_op_int_at(p->op, offsets, i);
        r->fed[i] = npu_op_dynamic_operand(p->op, offsets, i);
    }
    r->run = size;
    for (r->outer = r->rank; r->outer > 0 && r->strides[r->outer - 1] == (int64_t)r->run; r->outer--) {
        r->run *= (size_t)r->dims[r->outer - 1];
    }
    r->rows = 1;
    for (uint32_t i = 0; i < r->outer; i++) {
        r->rows *= (size_t)r->dims[i];
    }
    p->state = r;
    return size ? NPU_OK : NPU_ERR_DTYPE;
}

/* Bytes from the start of the tensor. */
static npu_status npu__ref_region_start(const npu__ref_region *r, const npu_launch *l, int64_t *start)
{
    *start = 0;
    for (uint32_t i = 0; i < r->rank; i++) {
        int64_t offset = r->offsets[i];
        if (r->fed[i] >= 0) {
            npu__ref_load_i64(&offset, l->x[r->fed[i]], l->in[r->fed[i]].dtype, 0, 1, 1);
        }
        if (offset < 0 || offset > r->most[i]) {
            return NPU_ERR_RANGE;
        }
        *start += offset * r->strides[i];
    }
    return NPU_OK;
}

/* Offset of the next row: counts up `index`, which starts as zeros. */
static int64_t npu__ref_region_next(const npu__ref_region *r, int64_t *index)
{
    int64_t step = 0;
    for (uint32_t i = r->outer; i-- > 0;) {
        step += r->strides[i];
        if (++index[i] < r->dims[i]) {
            break;
        }
        step -= index[i] * r->strides[i];
        index[i] = 0;
    }
    return step;
}

static npu_status npu__ref_load_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_region *r = (const npu__ref_region *)l->state;
    int64_t index[NPU_MAX_RANK] = { 0 }, at;
    npu_status status = npu__ref_region_start(r, l, &at);
    (void)part;
    (void)parts;
    for (size_t row = 0; row < r->rows && !status; row++) {
        memcpy((char *)l->y[0] + row * r->run, (const char *)l->x[0] + at, r->run);
        at += npu__ref_region_next(r, index);
    }
    return status;
}

static npu_status npu__ref_store_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_region *r = (const npu__ref_region *)l->state;
    int64_t index[NPU_MAX_RANK] = { 0 }, at;
    npu_status status = npu__ref_region_start(r, l, &at);
    (void)part;
    (void)parts;
    for (size_t row = 0; row < r->rows && !status; row++) {
        memcpy((char *)l->y[0] + at, (const char *)l->x[0] + row * r->run, r->run);
        at += npu__ref_region_next(r, index);
    }
    return status;
}

/* One number for all elements; create_tile gives zeros, so that a run depends on nothing that was there
   before. */
typedef struct npu__ref_splat {
    npu_scalar number;
    int fed; /* operand that holds it; -1 = number */
} npu__ref_splat;

static npu_status npu__ref_splat_prepare(npu_prepare *p)
{
    npu__ref_splat *s = (npu__ref_splat *)npu_prepare_alloc(p, sizeof *s);
    const char *name = p->op->kind == NPU_BLOCK_EXPANDS ? "scalar" : "value";
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->number = npu_op_scalar(p->op, name, npu_scalar_int(0));
    s->fed = npu_op_dynamic_operand(p->op, name, 0);
    p->state = s;
    return NPU_OK;
}

static npu_status npu__ref_splat_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_splat *s = (const npu__ref_splat *)l->state;
    int cls = npu__ref_compute_class(l->out[0].dtype);
    size_t len = (size_t)npu__ref_len(&l->out[0]);
    npu__ref_strip strip;
    (void)part;
    (void)parts;
    if (s->fed >= 0) {
        npu__ref_load_class(cls, &strip, l->x[s->fed], l->in[s->fed].dtype, 0, 0, NPU__STRIP);
    } else if (s->number.is_float) {
        npu__ref_load_class(cls, &strip, &s->number.f, NPU_F64, 0, 0, NPU__STRIP);
    } else {
        npu__ref_load_class(cls, &strip, &s->number.i, NPU_I64, 0, 0, NPU__STRIP);
    }
    for (size_t i = 0; i < len; i += NPU__STRIP) {
        size_t n = len - i < NPU__STRIP ? len - i : NPU__STRIP;
        npu__ref_store_class(cls, l->y[0], l->out[0].dtype, (int64_t)i, 1, &strip, n);
    }
    return NPU_OK;
}

/* ---- tile programs: matmul, matmul_acc ---- */

/* The sum so far lies where the result goes, so the product reads a copy of it. */
typedef struct npu__ref_tile_matmul {
    npu__ref_product gemm;
    size_t copy, copy_size; /* bytes: where in the workspace, 0 of them = there is no sum yet */
} npu__ref_tile_matmul;

static npu_status npu__ref_tile_matmul_prepare(npu_prepare *p)
{
    npu__ref_tile_matmul *s = (npu__ref_tile_matmul *)npu_prepare_alloc(p, sizeof *s);
    const npu_tensor *a = &p->in[p->op->num_in - 2], *b = &p->in[p->op->num_in - 1];
    npu__ref_product *g = s ? &s->gemm : NULL;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    g->m = a->dims[0];
    g->n = b->dims[1];
    g->k = a->dims[1];
    g->a = npu__ref_aicf_matrix(a, false);
    g->b = npu__ref_aicf_matrix(b, false);
    g->c_dtype = p->out[0].dtype;
    g->c_row = g->n;
    g->c_col = 1;
    g->alpha = 1;
    g->isa = p->isa;
    if (p->op->num_in == 3) {
        g->c0 = npu__ref_aicf_matrix(&p->in[0], false);
        g->beta = 1;
    }
    p->state = s;
    p->parts = npu__ref_gemm_parts(g);
    s->copy_size = p->op->num_in == 3 ? (size_t)(g->m * g->n) * npu__ref_size(g->c_dtype) : 0;
    return npu_size_mul(npu__ref_gemm_workspace(g), p->parts, &s->copy) &&
                   npu_size_add(s->copy, s->copy_size, &p->workspace)
               ? NPU_OK
               : NPU_ERR_OVERFLOW;
}

/* The parts of a step come one after the other, so that the first may make the copy. */
static npu_status npu__ref_tile_matmul_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_tile_matmul *s = (const npu__ref_tile_matmul *)l->state;
    npu__ref_product g = s->gemm;
    g.a.x = l->x[l->num_in - 2];
    g.b.x = l->x[l->num_in - 1];
    g.c0.x = s->copy_size ? (char *)l->workspace + s->copy : NULL;
    g.c = l->y[0];
    g.workspace = l->workspace;
    if (part == 0 && s->copy_size) {
        memcpy((char *)l->workspace + s->copy, l->x[0], s->copy_size);
    }
    npu__ref_gemm(&g, part, parts);
    return NPU_OK;
}

#define NPU__REF_SPLAT_KERNEL(kind) \
    NPU__REF_ROW(kind, "plain", 0, NULL, npu__ref_splat_prepare, npu__ref_splat_launch)
/* What the ops of a program run; sync ops, block numbers and reshape need nothing. */
static const npu_kernel npu__ref_kernels_block[] = {
    NPU__REF_SPLAT_KERNEL(NPU_BLOCK_CREATE_TILE),
    NPU__REF_SPLAT_KERNEL(NPU_BLOCK_FULL),
    NPU__REF_ROW(NPU_BLOCK_LOAD, "plain", 0, NULL, npu__ref_region_prepare, npu__ref_load_launch),
    NPU__REF_ROW(NPU_BLOCK_STORE, "plain", 0, NULL, npu__ref_region_prepare, npu__ref_store_launch),
    NPU__REF_COPY_KERNEL(NPU_BLOCK_MOVE, npu__ref_copy_prepare),
    NPU__REF_COPY_KERNEL(NPU_BLOCK_UB_COPY, npu__ref_same_prepare),
    NPU__REF_COPY_KERNEL(NPU_BLOCK_TRANSPOSE, npu__ref_copy_prepare),
    NPU__REF_ROW(NPU_BLOCK_VIEW, "plain", 0, NULL, npu__ref_region_prepare, npu__ref_load_launch),
    NPU__REF_BLOCK(NPU__REF_MAP_KERNEL)
    NPU__REF_ROW(NPU_BLOCK_CAST, "plain", 0, NULL, npu__ref_cast_prepare,
                npu__ref_cast_launch),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_SUM),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_MAX),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_MIN),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_ROW_SUM),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_ROW_MAX),
    NPU__REF_REDUCE_KERNELS(NPU_BLOCK_ROW_MIN),
    NPU__REF_BLOCK_EXPAND(NPU__REF_MAP_KERNEL)
    NPU__REF_SPLAT_KERNEL(NPU_BLOCK_EXPANDS),
    NPU__REF_ROW(NPU_BLOCK_MATMUL, "plain", 0, NULL, npu__ref_tile_matmul_prepare,
                npu__ref_tile_matmul_launch),
    NPU__REF_ROW(NPU_BLOCK_MATMUL_ACC, "plain", 0, NULL, npu__ref_tile_matmul_prepare,
                npu__ref_tile_matmul_launch),
    NPU__REF_ROW(NPU_BLOCK_BATCH_MATMUL, "plain", 0, NULL, npu__ref_matmul_prepare_plain,
                npu__ref_matmul_launch)
};
static const npu_kernel npu__ref_kernels_arith[] = {
    NPU__REF_REGISTERS(NPU__REF_MAP_KERNEL)
    NPU__REF_SPLAT_KERNEL(NPU_ARITH_CONSTANT),
    NPU__REF_ARITH(NPU__REF_MAP_KERNEL)
};

/* ---- tile programs: the launch ---- */

enum { NPU__REF_AT_INPUT, NPU__REF_AT_OUTPUT, NPU__REF_AT_LOCAL, NPU__REF_MAX_BLOCK_PARTS = 64 };

/* Where a value of the program is: an operand or a result of the launch, or bytes from the start of a
   part's memory. */
typedef struct npu__ref_where {
    uint32_t kind;
    size_t at;
} npu__ref_where;

typedef struct npu__ref_step {
    npu_status (*launch)(const npu_launch *l, uint32_t part, uint32_t parts);
    void *state;
    const npu_tensor *tensors; /* operands, then results */
    uint32_t num_in, num_out, parts;
    uint32_t first_ref;
} npu__ref_step;

typedef struct npu__ref_tiles {
    npu__ref_step *steps;
    npu__ref_where *refs; /* of every operand and result */
    uint32_t *inputs;     /* the operand that each result starts from */
    size_t *bytes;        /* of each result */
    uint32_t num_steps, num_refs;
    int64_t blocks;
    size_t registers, local; /* bytes: where registers start, and where they and the memories end */
    size_t part_size;
    uint32_t isa;
} npu__ref_tiles;

static size_t npu__ref_round_up(size_t n) { return (n + 63) & ~(size_t)63; }

/* Everything that prepare needs besides. */
typedef struct npu__ref_tiles_making {
    npu_prepare *p;
    const npu_graph *body;
    bool plain;   /* kernels of the plain variant only */
    npu__ref ref; /* its registry and tables, for prepare */
    npu__ref_tiles *s;
    npu_tile_place *places; /* by value id */
    npu__ref_where *where;
    npu_tensor *tensors; /* by ref */
    size_t workspace;    /* of a step */
} npu__ref_tiles_making;

/* Registers first, then one memory after the other; tensors are operands or, where they are stored into,
   results. */
static void npu__ref_tiles_locate(npu__ref_tiles_making *m)
{
    size_t ends[NPU_SPACE_L0C + 1] = { 0 }, at = 2 * sizeof(uint64_t);
    uint32_t n = npu_graph_num_values(m->body);
    for (uint32_t id = 1; id <= n; id++) {
        npu_value v = { id };
        npu_op o = npu_value_producer(m->body, v, NULL);
        size_t end = (size_t)(m->places[id].offset + m->places[id].size);
        ends[m->places[id].space] = end > ends[m->places[id].space] ? end : ends[m->places[id].space];
        if (npu_value_spec(m->body, v)->cls == NPU_CLASS_SCALAR) {
            bool is_index = npu_op_kind(m->body, o) == NPU_BLOCK_GET_BLOCK_IDX;
            bool is_num = npu_op_kind(m->body, o) == NPU_BLOCK_GET_BLOCK_NUM;
            m->where[id].kind = NPU__REF_AT_LOCAL;
            m->where[id].at = m->s->registers + (is_index ? 0 : is_num ? sizeof(uint64_t) : at);
            at += is_index || is_num ? 0 : sizeof(uint64_t);
        }
    }
    at = npu__ref_round_up(m->s->registers + at);
    for (uint32_t space = NPU_SPACE_UB; space <= NPU_SPACE_L0C; space++) {
        for (uint32_t id = 1; id <= n; id++) {
            if (m->places[id].space == space) {
                m->where[id].kind = NPU__REF_AT_LOCAL;
                m->where[id].at = at + (size_t)m->places[id].offset;
            }
        }
        at = npu__ref_round_up(at + ends[space]);
    }
    m->s->local = at;
}

static void npu__ref_tiles_tensors(npu__ref_tiles_making *m)
{
    for (uint32_t i = 0; i < npu_graph_num_inputs(m->body); i++) {
        m->where[npu_graph_input(m->body, i).id].at = i;
    }
    for (uint32_t i = 0; i < npu_graph_num_outputs(m->body); i++) {
        npu__ref_where *root = &m->where[npu_value_tile_root(m->body, npu_graph_output(m->body, i)).id];
        m->s->inputs[i] = (uint32_t)root->at;
        m->s->bytes[i] = (size_t)npu__ref_len(&m->p->out[i]) * npu__ref_size(m->p->out[i].dtype);
        root->kind = NPU__REF_AT_OUTPUT;
        root->at = i;
    }
    for (uint32_t op = 1; op <= npu_graph_num_ops(m->body); op++) {
        npu_op o = { op };
        if (npu_op_kind(m->body, o) == NPU_BLOCK_STORE) { /* the operand comes before, so it is known */
            m->where[npu_op_result(m->body, o, 0).id] =
                m->where[npu_op_operand_value(m->body, o, npu_op_num_operands(m->body, o) - 1).id];
        }
    }
}

static const npu_kernel *npu__ref_tiles_find(const npu__ref_tiles_making *m, const npu_kernel_table *tables,
                                             uint32_t num_tables, const npu_op_info *op)
{
    for (uint32_t t = 0; t < num_tables; t++) {
        const npu_kernel *k = npu__ref_first(&tables[t], op->kind);
        for (; k && k < tables[t].kernels + tables[t].num_kernels && k->kind == op->kind; k++) {
            if ((!m->plain || k->priority == 0) && npu__ref_accepts(k, op)) {
                return k;
            }
        }
    }
    return NULL;
}

/* Built-in kernels of tiles and registers, else one of the backend's, as for tile ops of a program's own. */
static const npu_kernel *npu__ref_tiles_kernel(const npu__ref_tiles_making *m, const npu_op_info *op)
{
    static const npu_kernel_table tables[] = {
        NPU_KERNEL_TABLE(npu__ref_kernels_block),
        NPU_KERNEL_TABLE(npu__ref_kernels_arith)
    };
    const npu_kernel *k = npu__ref_tiles_find(m, tables, (uint32_t)NPU__REF_COUNT(tables), op);
    return k ? k : npu__ref_tiles_find(m, m->ref.tables, m->ref.num_tables, op);
}

static npu_status npu__ref_tiles_step(npu__ref_tiles_making *m, npu_op id, const npu_op_info *op)
{
    npu__ref_step *step = &m->s->steps[m->s->num_steps];
    npu_tensor *tensors = m->tensors + m->s->num_refs;
    const npu_kernel *kernel = npu__ref_tiles_kernel(m, op);
    npu_prepare prepare;
    npu_status status;
    if (!kernel) {
        snprintf(m->p->text, sizeof m->p->text, "no kernel for %.60s in a tile program", op->name);
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        npu_value v = i < op->num_in ? npu_op_operand_value(m->body, id, i)
                                     : npu_op_result(m->body, id, i - op->num_in);
        npu__ref_describe(&tensors[i], i < op->num_in ? op->in[i] : op->out[i - op->num_in]);
        m->s->refs[m->s->num_refs + i] = m->where[v.id];
    }
    status = npu__ref_prepare(&m->ref, kernel, op, tensors, m->p->allocator, &prepare, m->p->blocks);
    m->p->blocks = prepare.blocks;
    if (status) {
        snprintf(m->p->text, sizeof m->p->text, "op %u (%.40s) of a tile program cannot be prepared",
                 (unsigned)id.id, op->name);
        return status;
    }
    step->launch = kernel->launch;
    step->state = prepare.state;
    step->tensors = tensors;
    step->num_in = op->num_in;
    step->num_out = op->num_out;
    step->parts = prepare.parts ? prepare.parts : 1;
    step->first_ref = m->s->num_refs;
    m->workspace = prepare.workspace > m->workspace ? prepare.workspace : m->workspace;
    m->s->num_refs += op->num_in + op->num_out;
    m->s->num_steps++;
    return NPU_OK;
}

static bool npu__ref_tiles_has_step(npu_kind kind)
{
    return NPU_KIND_NAMESPACE(kind) != NPU_NS_SYSTEM && kind != NPU_BLOCK_GET_BLOCK_IDX &&
           kind != NPU_BLOCK_GET_BLOCK_NUM && kind != NPU_BLOCK_RESHAPE;
}

static npu_status npu__ref_tiles_steps(npu__ref_tiles_making *m)
{
    npu_op_storage storage;
    npu_status status = NPU_OK;
    memset(&storage, 0, sizeof storage);
    for (uint32_t op = 1; op <= npu_graph_num_ops(m->body) && !status; op++) {
        npu_op id = { op };
        npu_op_info info;
        if (npu__ref_tiles_has_step(npu_op_kind(m->body, id))) {
            status = npu_op_describe(m->body, id, &info, &storage);
            status = status ? status : npu__ref_tiles_step(m, id, &info);
        }
    }
    npu_op_storage_free(&storage);
    return status;
}

static npu_status npu__ref_tiles_alloc(npu__ref_tiles_making *m)
{
    npu_prepare *p = m->p;
    size_t num_ops = npu_graph_num_ops(m->body), num_values = (size_t)npu_graph_num_values(m->body) + 1,
           num_refs = 0;
    npu__ref_tiles *s = (npu__ref_tiles *)npu_prepare_alloc(p, sizeof *s);
    for (uint32_t op = 1; op <= num_ops; op++) {
        npu_op o = { op };
        num_refs += npu_op_num_operands(m->body, o) + (size_t)npu_op_num_results(m->body, o);
    }
    m->s = s;
    m->places = (npu_tile_place *)npu__ref_array(p->allocator, num_values, sizeof *m->places);
    m->where = (npu__ref_where *)npu__ref_array(p->allocator, num_values, sizeof *m->where);
    m->tensors = (npu_tensor *)npu_prepare_alloc(p, num_refs * sizeof *m->tensors);
    if (!s || !m->places || !m->where || !m->tensors) {
        return NPU_ERR_NO_MEMORY;
    }
    s->steps = (npu__ref_step *)npu_prepare_alloc(p, num_ops * sizeof *s->steps);
    s->refs = (npu__ref_where *)npu_prepare_alloc(p, num_refs * sizeof *s->refs);
    s->inputs = (uint32_t *)npu_prepare_alloc(p, p->op->num_out * sizeof *s->inputs);
    s->bytes = (size_t *)npu_prepare_alloc(p, p->op->num_out * sizeof *s->bytes);
    s->registers = npu__ref_round_up(num_refs * sizeof(void *));
    return s->steps && s->refs && s->inputs && s->bytes ? NPU_OK : NPU_ERR_NO_MEMORY;
}

/* Results begin as the operands that they are stored over. */
static npu_status npu__ref_tiles_before(const npu_launch *l)
{
    const npu__ref_tiles *s = (const npu__ref_tiles *)l->state;
    for (uint32_t i = 0; i < l->num_out; i++) {
        if (l->y[i] != l->x[s->inputs[i]] && s->bytes[i]) {
            memcpy(l->y[i], l->x[s->inputs[i]], s->bytes[i]);
        }
    }
    return NPU_OK;
}

static void npu__ref_tiles_meet(void *ctx, const npu_hazard *h)
{
    bool *meet = (bool *)ctx;
    bool hides_the_rest = h->kind == NPU_HAZARD_DEADLOCK;
    *meet = *meet || hides_the_rest || h->kind == NPU_HAZARD_BLOCKS;
}

/* How many parts the blocks make. */
static uint32_t npu__ref_tiles_parts(const npu_graph *body, const npu_tile_desc *desc)
{
    bool meet = false;
    npu_status status = npu_tile_check(body, desc, npu__ref_tiles_meet, &meet);
    bool is_serial = meet || (status != NPU_OK && status != NPU_ERR_GRAPH);
    int64_t parts = is_serial ? 1 : desc->blocks;
    return parts < NPU__REF_MAX_BLOCK_PARTS ? (uint32_t)parts : NPU__REF_MAX_BLOCK_PARTS;
}

static npu_status npu__ref_tiles_create(npu_prepare *p, bool plain)
{
    npu__ref_tiles_making m;
    npu_tile_desc desc;
    npu_diag diag;
    npu_status status;
    memset(&m, 0, sizeof m);
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    m.p = p;
    m.body = npu_op_body(p->op, 0);
    m.plain = plain;
    m.ref.registry = p->registry;
    m.ref.tables = p->tables;
    m.ref.num_tables = p->num_tables;
    m.ref.isa = p->isa;
    desc.blocks = npu_op_int(p->op, "blocks", 1);
    desc.sizes[NPU_SPACE_UB] = (uint64_t)npu_op_int(p->op, "buffer_size", 0);
    desc.allocator = p->allocator;
    status = npu__ref_tiles_alloc(&m);
    status = status ? status : npu_tile_plan(m.body, &desc, m.places, &diag);
    if (status) {
        snprintf(p->text, sizeof p->text, "%.95s", diag.message);
    } else {
        npu__ref_tiles_tensors(&m);
        npu__ref_tiles_locate(&m);
        status = npu__ref_tiles_steps(&m);
        m.s->blocks = desc.blocks;
        m.s->part_size = npu__ref_round_up(m.s->local + m.workspace);
        p->parts = npu__ref_tiles_parts(m.body, &desc);
        p->workspace = p->parts * m.s->part_size;
        p->before = npu__ref_tiles_before;
        m.s->isa = p->isa;
        p->state = m.s;
    }
    npu__ref_free(p->allocator, m.places);
    npu__ref_free(p->allocator, m.where);
    return status;
}

static npu_status npu__ref_tiles_prepare(npu_prepare *p) { return npu__ref_tiles_create(p, false); }
static npu_status npu__ref_tiles_prepare_plain(npu_prepare *p) { return npu__ref_tiles_create(p, true); }

static void npu__ref_tiles_addresses(const npu__ref_tiles *s, const npu_launch *l, char *memory)
{
    void **table = (void **)(void *)memory;
    for (uint32_t i = 0; i < s->num_refs; i++) {
        const npu__ref_where *w = &s->refs[i];
        table[i] = w->kind == NPU__REF_AT_LOCAL    ? (void *)(memory + w->at)
                   : w->kind == NPU__REF_AT_OUTPUT ? l->y[w->at]
                                                   : (void *)(uintptr_t)l->x[w->at];
    }
}

static npu_status npu__ref_tiles_block(const npu__ref_tiles *s, char *memory)
{
    void **table = (void **)(void *)memory;
    npu_status status = NPU_OK;
    npu_launch l;
    l.workspace = memory + s->local;
    l.dims = NULL;
    l.isa = s->isa;
    for (uint32_t i = 0; i < s->num_steps && !status; i++) {
        const npu__ref_step *step = &s->steps[i];
        l.in = step->tensors;
        l.out = step->tensors + step->num_in;
        l.num_in = step->num_in;
        l.num_out = step->num_out;
        l.x = (const void *const *)(table + step->first_ref);
        l.y = table + step->first_ref + step->num_in;
        l.state = step->state;
        for (uint32_t part = 0; part < step->parts && !status; part++) {
            status = step->launch(&l, part, step->parts);
        }
    }
    return status;
}

static npu_status npu__ref_tiles_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_tiles *s = (const npu__ref_tiles *)l->state;
    char *memory = (char *)l->workspace + part * s->part_size;
    uint64_t index[2];
    npu_status status = NPU_OK;
    npu__ref_tiles_addresses(s, l, memory);
    index[1] = (uint64_t)s->blocks;
    for (int64_t b = s->blocks * part / parts; b < s->blocks * (part + 1) / parts && !status; b++) {
        index[0] = (uint64_t)b;
        memcpy(memory + s->registers, index, sizeof index);
        status = npu__ref_tiles_block(s, memory);
    }
    return status;
}

static const npu_kernel npu__ref_kernels_launch[] = {
    NPU__REF_ROW(NPU_NPU_LAUNCH, "fast", 10, NULL, npu__ref_tiles_prepare, npu__ref_tiles_launch),
    NPU__REF_ROW(NPU_NPU_LAUNCH, "plain", 0, NULL, npu__ref_tiles_prepare_plain, npu__ref_tiles_launch)
};

/* ---- results of a lesser dtype: what takes `dtype` casts its operand first, and computes with what is left ---- */

/* Binary digits that numbers of a dtype have; those of any integer lie in the range of any float. */
static int npu__ref_digits(uint32_t dtype)
{
    switch (dtype) {
    case NPU_F64: return 53;
    case NPU_F32: return 24;
    case NPU_F16: return 11;
    case NPU_BF16: return 8;
    case NPU_BOOL: return 1;
    default: return 8 * (int)npu__ref_size(dtype);
    }
}

/* A mean in half adds floats. */
static npu_dtype npu__ref_cast_first_dtype(const npu_op_info *op)
{
    bool mean = op->kind == NPU_ATEN_MEAN || op->kind == NPU_ATEN_MEAN_DIM;
    return mean && npu__ref_compute_class(op->out[0]->dtype) == NPU__F32 ? NPU_F32 : op->out[0]->dtype;
}

/* Double is what elements are read as anyway, and integers come out the same when only the result wraps. u64 is left
   out: its numbers pass through double. */
static bool npu__ref_cast_first_supported(const npu_op_info *op)
{
    uint32_t from = op->in[0]->dtype, to = npu__ref_cast_first_dtype(op);
    return npu_op_has(op, "dtype") && from != NPU_U64 && (to == NPU_F32 || to == NPU_F16 || to == NPU_BF16) &&
           (npu__ref_digits(from) > npu__ref_digits(to) || (from == NPU_BF16 && to == NPU_F16));
}

typedef struct npu__ref_cast_first {
    npu_tensor x; /* the operand as the kernel gets it, at the start of the workspace */
    size_t bytes;
    npu_status (*before)(const npu_launch *l);
    npu__ref_launch_op_fn launch;
    void *state;
} npu__ref_cast_first;

/* The launch of the kernel behind the cast; *x holds its operand's address. */
static npu_launch npu__ref_cast_first_inner(const npu_launch *l, const void **x)
{
    const npu__ref_cast_first *s = (const npu__ref_cast_first *)l->state;
    npu_launch inner = *l;
    *x = l->workspace;
    inner.in = &s->x;
    inner.x = x;
    inner.state = s->state;
    inner.workspace = (char *)l->workspace + s->bytes;
    return inner;
}

static npu_status npu__ref_cast_first_before(const npu_launch *l)
{
    const npu__ref_cast_first *s = (const npu__ref_cast_first *)l->state;
    const void *x;
    npu_launch inner = npu__ref_cast_first_inner(l, &x);
    npu__ref_convert_run(l->workspace, s->x.dtype, 0, 1, l->x[0], l->in[0].dtype, 0, 1, (size_t)npu__ref_len(&s->x));
    return s->before ? s->before(&inner) : NPU_OK;
}

static npu_status npu__ref_cast_first_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const npu__ref_cast_first *s = (const npu__ref_cast_first *)l->state;
    const void *x;
    npu_launch inner = npu__ref_cast_first_inner(l, &x);
    return s->launch(&inner, part, parts);
}

/* Prepares the kernel for an operand of the dtype that it is cast to. */
static npu_status npu__ref_cast_first_prepare(npu_prepare *p)
{
    npu__ref_cast_first *s = (npu__ref_cast_first *)npu_prepare_alloc(p, sizeof *s);
    npu__ref ref = { p->tables, p->num_tables, p->variant, NULL, { NULL, NULL }, p->isa };
    npu_op_info op = *p->op;
    npu_spec x = *op.in[0];
    const npu_spec *in = &x;
    const npu_prepare outer = *p;
    const npu_kernel *kernel;
    npu_status status;
    bool kind_known;
    if (!s) {
        return NPU_ERR_NO_MEMORY;
    }
    s->x = p->in[0];
    s->x.dtype = x.dtype = (uint8_t)npu__ref_cast_first_dtype(&op);
    op.in = &in;
    op.in_data = NULL;
    kernel = npu__ref_choose(&ref, &op, &kind_known);
    if (!kernel) { /* tables of a program's own choice */
        snprintf(p->text, sizeof p->text, "%.40s: no kernel for %s", op.name, npu_dtype_name((npu_dtype)x.dtype));
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    p->op = &op;
    p->in = &s->x;
    status = kernel->prepare ? kernel->prepare(p) : NPU_OK;
    p->op = outer.op;
    p->in = outer.in;
    s->bytes = npu__ref_round_up((size_t)npu__ref_len(&s->x) * npu__ref_size(s->x.dtype));
    s->before = p->before;
    s->launch = kernel->launch;
    s->state = p->state;
    p->before = npu__ref_cast_first_before;
    p->state = s;
    return status || npu_size_add(p->workspace, s->bytes, &p->workspace) ? status : NPU_ERR_OVERFLOW;
}

#define NPU__REF_CAST_FIRST(kind)                                                                  \
    NPU__REF_ROW(kind, "cast", 0, npu__ref_cast_first_supported, npu__ref_cast_first_prepare,       \
                npu__ref_cast_first_launch)

/* Asked before the tables of these kinds, so that any variant has a cast first. */
static const npu_kernel npu__ref_kernels_cast_first[] = {
    NPU__REF_CAST_FIRST(NPU_ATEN_MEAN),
    NPU__REF_CAST_FIRST(NPU_ATEN_MEAN_DIM),
    NPU__REF_CAST_FIRST(NPU_ATEN_SUM),
    NPU__REF_CAST_FIRST(NPU_ATEN_SUM_DIM),
    NPU__REF_CAST_FIRST(NPU_ATEN_SOFTMAX),
    NPU__REF_CAST_FIRST(NPU_ATEN_LOG_SOFTMAX),
    NPU__REF_CAST_FIRST(NPU_ATEN_PROD),
    NPU__REF_CAST_FIRST(NPU_ATEN_PROD_DIM_INT),
    NPU__REF_CAST_FIRST(NPU_ATEN_SAFE_SOFTMAX),
    NPU__REF_CAST_FIRST(NPU_ATEN_NANSUM),
    NPU__REF_CAST_FIRST(NPU_ATEN_NANMEAN),
    NPU__REF_CAST_FIRST(NPU_ATEN_CUMSUM),
    NPU__REF_CAST_FIRST(NPU_ATEN_CUMPROD)
};

static const npu_kernel_table npu__ref_tables[] = {
    NPU_KERNEL_TABLE(npu__ref_kernels_activation),    NPU_KERNEL_TABLE(npu__ref_kernels_elementwise),
    NPU_KERNEL_TABLE(npu__ref_kernels_comparison),    NPU_KERNEL_TABLE(npu__ref_kernels_shape),
    NPU_KERNEL_TABLE(npu__ref_kernels_logic),         NPU_KERNEL_TABLE(npu__ref_kernels_creation),
    NPU_KERNEL_TABLE(npu__ref_kernels_alias),         NPU_KERNEL_TABLE(npu__ref_kernels_special),
    NPU_KERNEL_TABLE(npu__ref_kernels_memory),        NPU_KERNEL_TABLE(npu__ref_kernels_tensor),
    NPU_KERNEL_TABLE(npu__ref_kernels_npu),           NPU_KERNEL_TABLE(npu__ref_kernels_matrix),
    NPU_KERNEL_TABLE(npu__ref_kernels_convolution),   NPU_KERNEL_TABLE(npu__ref_kernels_lookup),
    NPU_KERNEL_TABLE(npu__ref_kernels_normalization), NPU_KERNEL_TABLE(npu__ref_kernels_pooling),
    NPU_KERNEL_TABLE(npu__ref_kernels_cast_first),
    NPU_KERNEL_TABLE(npu__ref_kernels_reduction),     NPU_KERNEL_TABLE(npu__ref_kernels_aicf),
    NPU_KERNEL_TABLE(npu__ref_kernels_contraction),
    NPU_KERNEL_TABLE(npu__ref_kernels_arrangement),   NPU_KERNEL_TABLE(npu__ref_kernels_indexing),
    NPU_KERNEL_TABLE(npu__ref_kernels_border),        NPU_KERNEL_TABLE(npu__ref_kernels_moved),
    NPU_KERNEL_TABLE(npu__ref_kernels_linalg),        NPU_KERNEL_TABLE(npu__ref_kernels_norm),
    NPU_KERNEL_TABLE(npu__ref_kernels_recurrent),     NPU_KERNEL_TABLE(npu__ref_kernels_distance),
    NPU_KERNEL_TABLE(npu__ref_kernels_order),         NPU_KERNEL_TABLE(npu__ref_kernels_resize),
    NPU_KERNEL_TABLE(npu__ref_kernels_vectors),       NPU_KERNEL_TABLE(npu__ref_kernels_loss),
    NPU_KERNEL_TABLE(npu__ref_kernels_statistics),
    NPU_KERNEL_TABLE(npu__ref_kernels_block),         NPU_KERNEL_TABLE(npu__ref_kernels_arith),
    NPU_KERNEL_TABLE(npu__ref_kernels_launch),
    NPU_KERNEL_TABLE(npu__ref_kernels_search),        NPU_KERNEL_TABLE(npu__ref_kernels_spectral),
    NPU_KERNEL_TABLE(npu__ref_kernels_loops),         NPU_KERNEL_TABLE(npu__ref_kernels_structure),
};

NPU_IR_API const npu_kernel_table *npu_ref_kernels(uint32_t *num_tables)
{
    *num_tables = (uint32_t)(sizeof npu__ref_tables / sizeof npu__ref_tables[0]);
    return npu__ref_tables;
}

static const npu_region npu__ref_regions[] = { { sizeof(npu_region), 0, "host", 0, NPU__REF_ALIGN,
                                                 NPU__REF_ALIGN, 1, 0 } };

static const npu__ref npu__ref_default = {
    npu__ref_tables, (uint32_t)(sizeof npu__ref_tables / sizeof npu__ref_tables[0]), NULL, NULL, { NULL, NULL },
    NPU__REF_ISA_BEST
};

NPU_IR_API const npu_backend *npu_ref_backend(void)
{
    static const npu_backend backend = { .size = sizeof(npu_backend),
                                         .api_version = NPU_BACKEND_API,
                                         .name = "cpu",
                                         .ctx = (void *)(uintptr_t)&npu__ref_default,
                                         .traits = NPU_BACKEND_HOST | NPU_BACKEND_DYNAMIC | NPU_BACKEND_EVERYTHING,
                                         .num_regions = 1,
                                         .regions = npu__ref_regions,
                                         .supports = npu__ref_supports,
                                         .alloc = npu__ref_buffer_alloc,
                                         .free = npu__ref_buffer_free,
                                         .upload = npu__ref_upload,
                                         .download = npu__ref_download,
                                         .copy = npu__ref_copy,
                                         .map = npu__ref_map,
                                         .unmap = npu__ref_unmap,
                                         .compile = npu__ref_compile,
                                         .place = npu__ref_place,
                                         .submit = npu__ref_submit,
                                         .release = npu__ref_release,
                                         .op_call = npu__ref_op_call };
    return &backend;
}

typedef struct npu__ref_instance {
    npu_backend backend;
    npu__ref ref;
    char name[32];
    npu_kernel_table tables[]; /* with_built_in: the caller's and the built-in ones */
} npu__ref_instance;

/* Says why a create function fails, where somebody wants to know. */
static npu_status npu__ref_fail(npu_diag *diag, npu_status status, const char *format, ...) NPU_IR_PRINTF(3, 4);
static npu_status npu__ref_fail(npu_diag *diag, npu_status status, const char *format, ...)
{
    va_list args;
    if (diag) {
        memset(diag, 0, sizeof *diag);
        diag->status = status;
        va_start(args, format);
        vsnprintf(diag->message, sizeof diag->message, format, args);
        va_end(args);
    }
    return status;
}

static bool npu__ref_sorted(const npu_kernel_table *table)
{
    for (uint32_t i = 1; i < table->num_kernels; i++) {
        const npu_kernel *a = &table->kernels[i - 1], *b = &table->kernels[i];
        if (a->kind > b->kind || (a->kind == b->kind && a->priority < b->priority)) {
            return false;
        }
    }
    return true;
}

/* The caller's tables, then the built-in ones, into an instance that has room for both. */
static void npu__ref_join_tables(npu__ref_instance *instance, const npu_ref_desc *d)
{
    uint32_t num_built_in;
    const npu_kernel_table *built_in = npu_ref_kernels(&num_built_in);
    instance->ref.tables = instance->tables;
    instance->ref.num_tables = d->num_tables + num_built_in;
    for (uint32_t i = 0; i < instance->ref.num_tables; i++) {
        instance->tables[i] = i < d->num_tables ? d->tables[i] : built_in[i - d->num_tables];
    }
}

/* The set of a name; NULL = the best one. */
static bool npu__ref_find_isa(const char *name, uint32_t *isa)
{
    *isa = NPU__REF_ISA_BEST;
    for (uint32_t i = 0; name && i < NPU__REF_ISA_COUNT; i++) {
        *isa = strcmp(name, npu__ref_isa_names[i]) == 0 && npu__ref_has_isa(i) ? i : *isa;
    }
    return !name || *isa != NPU__REF_ISA_BEST;
}

static npu_status npu__ref_no_isa(const npu_ref_desc *d)
{
    char names[64];
    for (uint32_t i = 0, len = 0; npu_ref_isa(i); i++) {
        len += (uint32_t)snprintf(names + len, sizeof names - len, i ? ", %s" : "%s", npu_ref_isa(i));
    }
    return npu__ref_fail(d->diag, NPU_ERR_UNSUPPORTED, "cpu: this machine has no instruction set \"%.40s\", but %s",
                         d->isa, names);
}

NPU_IR_API npu_status npu_ref_create(npu_backend **out, const npu_ref_desc *desc)
{
    npu_ref_desc d;
    npu_allocator a;
    npu__ref_instance *instance;
    uint32_t num_more = 0, isa;
    size_t size;
    if (!out) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    memset(&d, 0, sizeof d);
    d = desc ? *desc : d;
    *out = NULL;
    if (d._canary) { /* nothing in it can be trusted, its diag neither */
        return NPU_ERR_INVALID_ARGUMENT;
    }
    a = npu_text_init(d.allocator).allocator;
    if (!d.tables) {
        d.tables = npu_ref_kernels(&d.num_tables);
        d.with_built_in = false;
    }
    if (d.diag) {
        memset(d.diag, 0, sizeof *d.diag);
    }
    for (uint32_t i = 0; i < d.num_tables; i++) {
        if (d.tables[i].version != NPU_IR_VERSION) {
            return npu__ref_fail(d.diag, NPU_ERR_VERSION,
                                 "cpu: kernel table %u is of version 0x%06x, needed is 0x%06x: make it with "
                                 "NPU_KERNEL_TABLE and this header", (unsigned)i, (unsigned)d.tables[i].version,
                                 NPU_IR_VERSION);
        }
        if (!npu__ref_sorted(&d.tables[i])) {
            return npu__ref_fail(d.diag, NPU_ERR_INVALID_ARGUMENT,
                                 "cpu: kernel table %u is not sorted by kind, then by falling priority", (unsigned)i);
        }
    }
    if (!npu__ref_find_isa(d.isa, &isa)) {
        return npu__ref_no_isa(&d);
    }
    npu_ref_kernels(&num_more);
    if (!npu_size_mul((size_t)d.num_tables + num_more, sizeof d.tables[0], &size) ||
        !npu_size_add(size, sizeof *instance, &size)) {
        return npu__ref_fail(d.diag, NPU_ERR_NO_MEMORY, "cpu: out of memory");
    }
    instance = (npu__ref_instance *)npu__ref_alloc(&a, d.with_built_in ? size : sizeof *instance);
    if (!instance) {
        return npu__ref_fail(d.diag, NPU_ERR_NO_MEMORY, "cpu: out of memory");
    }
    instance->ref.tables = d.tables;
    instance->ref.num_tables = d.num_tables;
    if (d.with_built_in) {
        npu__ref_join_tables(instance, &d);
    }
    instance->ref.variant = d.variant;
    instance->ref.isa = isa;
    instance->ref.registry = d.registry;
    instance->ref.allocator = a;
    snprintf(instance->name, sizeof instance->name, "%s", d.name ? d.name : "cpu");
    instance->backend = *npu_ref_backend();
    instance->backend.name = instance->name;
    instance->backend.ctx = &instance->ref;
    *out = &instance->backend;
    return NPU_OK;
}

NPU_IR_API void npu_ref_destroy(npu_backend *backend)
{
    npu_allocator a;
    if (backend) {
        a = npu__ref_allocator((const npu__ref *)backend->ctx);
        npu__ref_free(&a, backend);
    }
}

/* -----------------------------------------------------------------------------------------------------------
   A SMALL DOOR FOR ACCELERATORS                                                                  >>impl-accel

   An npu_backend made of the few functions of an npu_accel: groups are lists of ops that are called one after the
   other. What a device cannot be asked for, views above all, is done here by its own transfers.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu__accel {
    npu_backend backend;
    npu_region region;
    npu_accel desc;
    npu_allocator allocator;
} npu__accel;

/* One op as op_call gets it. */
typedef struct npu__accel_op {
    const npu_op_info *info;   /* kept; of the run where is_dynamic */
    uint32_t view; /* operand that result 0 is a view of; NPU_NO_INDEX = none, op_call is needed */
    bool is_dynamic;           /* a run tells its dims: info and tensors are made then */
    const npu_tensor *tensors; /* operands, then results, not yet bound to buffers */
    const uint32_t *values;    /* indices into the places, in the same order; NPU_NO_INDEX = a hole */
} npu__accel_op;

typedef struct npu__accel_program {
    uint32_t num_ops;
    npu__accel_op *ops;
    npu_tensor *tensors;       /* of all ops */
    uint32_t *values;
    void *blocks;              /* of the infos */
} npu__accel_program;

static npu_status npu__accel_refuse(npu_support *answer, uint32_t reason, const char *words)
{
    answer->reason = reason;
    snprintf(answer->text, sizeof answer->text, "%s", words);
    return NPU_OK;
}

static bool npu__accel_in_abi(const npu_accel *accel, uint32_t kind)
{
    const npu_abi *abi = accel->abi;
    uint32_t i = abi ? abi->num_rows : 0;
    const char *row = abi ? (const char *)abi->rows + (size_t)i * abi->row_size : NULL;
    while (i && ((const npu_abi_row *)(const void *)(row -= abi->row_size))->kind != kind) {
        i--;
    }
    return i != 0;
}

static bool npu__accel_takes(const npu_accel *accel, const npu_op_info *op)
{
    if (!accel->abi && accel->num_ops == 0) {
        return true;
    }
    for (uint32_t i = 0; i < accel->num_ops; i++) {
        if (strcmp(accel->ops[i], op->name) == 0) {
            return true;
        }
    }
    return npu__accel_in_abi(accel, op->kind);
}

/* The operand that result 0 is a view of, or NPU_NO_INDEX. */
static uint32_t npu__accel_view(const npu_op_info *op)
{
    if (!(op->traits & NPU_VIEW)) {
        return NPU_NO_INDEX;
    }
    return op->kind == NPU_NPU_GETITEM ? (uint32_t)npu_op_int(op, "index", 0) : 0;
}

/* False where a tensor has an unknown dim, or, with f32 set, another dtype. */
static bool npu__accel_all_specs(const npu_op_info *op, bool f32)
{
    for (uint32_t i = 0; i < op->num_in + op->num_out; i++) {
        const npu_spec *spec = i < op->num_in ? op->in[i] : op->out[i - op->num_in];
        if (spec && (f32 ? spec->dtype != NPU_F32 : !npu_spec_is_static(spec))) {
            return false;
        }
    }
    return true;
}

static npu_status npu__accel_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    answer->reason = NPU_REASON_CLAIMED;
    if (npu__accel_view(op) == NPU_NO_INDEX && !npu__accel_takes(accel, op)) {
        return npu__accel_refuse(answer, NPU_REASON_OP, "");
    }
    if (op->num_out == 0) {
        return NPU_OK; /* asked for the name alone */
    }
    if (op->num_bodies) {
        return npu__accel_refuse(answer, NPU_REASON_OP, "op_call cannot see the body of an op");
    }
    if (!npu__accel_all_specs(op, false)) {
        return npu__accel_refuse(answer, NPU_REASON_DYNAMIC, "");
    }
    if (op->dynamic & NPU_DYNAMIC_RESULTS) {
        return npu__accel_refuse(answer, NPU_REASON_DYNAMIC, "data decides sizes or attributes of it");
    }
    if (npu__accel_view(op) != NPU_NO_INDEX && !op->dynamic) {
        return NPU_OK;
    }
    if (op->num_in > NPU_ACCEL_MAX_TENSORS || op->num_out > NPU_ACCEL_MAX_TENSORS - op->num_in) {
        return npu__accel_refuse(answer, NPU_REASON_SHAPE, "too many operands");
    }
    if (npu__accel_view(op) != NPU_NO_INDEX) {
        return NPU_OK;
    }
    if (!op->device_attrs) {
        return npu__accel_refuse(answer, NPU_REASON_ATTRIBUTE, "no device form holds it");
    }
    if (accel->supports) {
        return accel->supports(accel->ctx, op, answer);
    }
    return npu__accel_all_specs(op, true) ? NPU_OK : npu__accel_refuse(answer, NPU_REASON_DTYPE, "f32 only");
}

static npu_status npu__accel_alloc(void *ctx, const npu_allocation *what, npu_buffer *out)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc; /* its alloc gives at least the region's alignment */
    out->region = what->region;
    out->bytes = what->bytes;
    out->handle = accel->alloc(accel->ctx, what->bytes ? what->bytes : 1);
    return out->handle ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static void npu__accel_free(void *ctx, npu_buffer *buffer)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    if (buffer->handle) {
        accel->free(accel->ctx, buffer->handle);
        buffer->handle = NULL;
    }
}

static npu_status npu__accel_upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    if (fence) {
        *fence = 0;
    }
    return t->bytes ? accel->upload(accel->ctx, t->to->handle, t->to_offset, t->from_host, t->bytes) : NPU_OK;
}

static npu_status npu__accel_download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    if (fence) {
        *fence = 0;
    }
    return t->bytes ? accel->download(accel->ctx, t->to_host, t->from->handle, t->from_offset, t->bytes) : NPU_OK;
}

static void npu__accel_release(void *ctx, void *program)
{
    const npu_allocator *a = &((const npu__accel *)ctx)->allocator;
    npu__accel_program *p = program;
    if (p) {
        npu__ref_free(a, p->ops);
        npu__ref_free(a, p->tensors);
        npu__ref_free(a, p->values);
        npu__ref_free_blocks(a, p->blocks);
        npu__ref_free(a, p);
    }
}

static npu__accel_program *npu__accel_program_new(npu__accel *accel, const npu_group *group)
{
    const npu_allocator *a = &accel->allocator;
    npu__accel_program *p = npu__ref_array(a, 1, sizeof *p);
    size_t num_tensors = 0;
    if (!p) {
        return NULL;
    }
    for (uint32_t i = 0; i < group->num_ops; i++) {
        num_tensors += group->ops[i]->info->num_in + group->ops[i]->info->num_out;
    }
    p->ops = npu__ref_array(a, group->num_ops, sizeof *p->ops);
    p->tensors = npu__ref_array(a, num_tensors, sizeof *p->tensors);
    p->values = npu__ref_array(a, num_tensors, sizeof *p->values);
    if (!p->ops || !p->tensors || !p->values) {
        npu__accel_release(accel, p);
        return NULL;
    }
    return p;
}

/* Fills the next op of the program from tensors and values on. */
static npu_status npu__accel_compile_op(npu_prepare *memory, const npu_group_op *from, npu__accel_op *op,
                                        npu_tensor *tensors, uint32_t *values)
{
    const npu_op_info *info = from->info;
    op->info = npu__ref_keep_info(memory, info);
    op->view = npu__accel_view(info);
    op->is_dynamic = info->dynamic != 0;
    op->tensors = tensors;
    op->values = values;
    for (uint32_t i = 0; i < info->num_in + info->num_out; i++) {
        bool is_in = i < info->num_in;
        npu__ref_describe(&tensors[i], is_in ? info->in[i] : info->out[i - info->num_in]);
        values[i] = is_in ? from->in[i] : from->out[i - info->num_in];
    }
    return op->info ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static npu_status npu__accel_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu__accel *accel = ctx;
    npu__accel_program *p = npu__accel_program_new(accel, group);
    npu_prepare memory;
    size_t tensor = 0;
    if (!p) {
        return NPU_ERR_NO_MEMORY;
    }
    memset(&memory, 0, sizeof memory);
    memory.allocator = &accel->allocator;
    for (; p->num_ops < group->num_ops; p->num_ops++) {
        const npu_group_op *op = group->ops[p->num_ops];
        npu_status status = npu__accel_compile_op(&memory, op, &p->ops[p->num_ops], p->tensors + tensor,
                                                  p->values + tensor);
        p->blocks = memory.blocks;
        if (status == NPU_OK && !op->info->device_attrs && npu__accel_view(op->info) == NPU_NO_INDEX) {
            snprintf(out->text, sizeof out->text, "%.60s: no device form holds it", op->info->name);
            status = NPU_ERR_ATTRIBUTE;
        }
        if (status) {
            out->failed_op = op->info->op;
            npu__accel_release(accel, p);
            return status;
        }
        tensor += op->info->num_in + op->info->num_out;
    }
    out->program = p;
    return NPU_OK;
}

/* Copies through the host, for a view that the core gave a place of its own. */
static npu_status npu__accel_copy(const npu_accel *accel, const npu_tensor *from, const npu_tensor *to)
{
    uint8_t chunk[4096];
    uint64_t size = npu_dtype_bits((npu_dtype)to->dtype), step;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < to->rank; i++) {
        size *= (uint64_t)to->dims[i];
    }
    size = (size + 7) / 8;
    for (uint64_t done = 0; done < size && !status; done += step) {
        step = size - done < sizeof chunk ? size - done : sizeof chunk;
        status = accel->download(accel->ctx, chunk, from->buffer->handle, from->offset + done, step);
        if (!status) {
            status = accel->upload(accel->ctx, to->buffer->handle, to->offset + done, chunk, step);
        }
    }
    return status;
}

static npu_status npu__accel_bind(const npu__accel_op *op, uint32_t i, const npu_binding *binding,
                                  npu_tensor *tensor)
{
    *tensor = op->tensors[i];
    if (op->values[i] == NPU_NO_INDEX) {
        return NPU_OK; /* a hole */
    }
    const npu_place *place = npu_place_at(binding->places, op->values[i]);
    if (place->buffer >= binding->num_buffers) {
        return NPU_ERR_INTERNAL;
    }
    tensor->buffer = binding->buffers[place->buffer];
    tensor->offset = place->offset;
    return NPU_OK;
}

static npu_status npu__accel_run_view(const npu_accel *accel, const npu__accel_op *op,
                                      const npu_binding *binding)
{
    npu_tensor from, to;
    uint32_t num_in = op->info->num_in;
    if (npu_place_at(binding->places, op->values[num_in])->alias) {
        return NPU_OK;
    }
    npu_status status = npu__accel_bind(op, op->view, binding, &from);
    if (!status) {
        status = npu__accel_bind(op, num_in, binding, &to);
    }
    return status ? status : npu__accel_copy(accel, &from, &to);
}

static npu_status npu__accel_run(const npu_accel *accel, const npu__accel_op *op, const npu_binding *binding)
{
    npu_tensor tensors[NPU_ACCEL_MAX_TENSORS]; /* on the stack: two execs may submit one program at once */
    const npu_tensor *pointers[NPU_ACCEL_MAX_TENSORS];
    const npu_op_info *info = op->info;
    npu_call call;
    npu_status status = NPU_OK;
    if (op->view != NPU_NO_INDEX) {
        return npu__accel_run_view(accel, op, binding);
    }
    for (uint32_t i = 0; i < info->num_in + info->num_out && !status; i++) {
        pointers[i] = &tensors[i];
        status = npu__accel_bind(op, i, binding, &tensors[i]);
    }
    memset(&call, 0, sizeof call);
    call.size = (uint32_t)sizeof call;
    call.op = info;
    call.in = pointers;
    call.out = pointers + info->num_in;
    call.stream = binding->stream;
    return status ? status : accel->op_call(accel->ctx, &call);
}

/* The op of this run: its info and its tensors are made anew. */
static npu_status npu__accel_run_dynamic(const npu_accel *accel, const npu__accel_op *op,
                                         const npu_binding *binding)
{
    npu_tensor tensors[NPU_ACCEL_MAX_TENSORS];
    npu__accel_op now = *op;
    const npu_op_info *info;
    npu_status status = binding->dynamic->describe(binding->dynamic->ctx, op->info->op, NULL, &info);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < info->num_in + info->num_out; i++) {
        npu__ref_describe(&tensors[i], i < info->num_in ? info->in[i] : info->out[i - info->num_in]);
    }
    now.info = info;
    now.tensors = tensors;
    return info->device_attrs || op->view != NPU_NO_INDEX ? npu__accel_run(accel, &now, binding) : NPU_ERR_ATTRIBUTE;
}

static npu_status npu__accel_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    const npu__accel_program *p = program;
    npu_status status = NPU_OK;
    if (fence) {
        *fence = 0;
    }
    for (uint32_t i = 0; i < p->num_ops && !status; i++) {
        uint64_t begin = binding->op_done ? binding->clock() : 0;
        status = p->ops[i].is_dynamic ? npu__accel_run_dynamic(accel, &p->ops[i], binding)
                                      : npu__accel_run(accel, &p->ops[i], binding);
        if (status && binding->failed_op) {
            *binding->failed_op = p->ops[i].info->op;
        }
        if (binding->op_done) {
            binding->op_done(binding->op_done_ctx, p->ops[i].info->op, begin, binding->clock());
        }
    }
    if (!status && accel->finish) {
        status = accel->finish(accel->ctx, binding->stream);
    }
    return status;
}

static npu_status npu__accel_op_call(void *ctx, const npu_call *call)
{
    const npu_accel *accel = &((const npu__accel *)ctx)->desc;
    uint32_t view = npu__accel_view(call->op);
    npu_status status;
    if (view != NPU_NO_INDEX) {
        return npu__accel_copy(accel, call->in[view], call->out[0]);
    }
    status = call->op->device_attrs ? accel->op_call(accel->ctx, call) : NPU_ERR_ATTRIBUTE;
    return status || !accel->finish ? status : accel->finish(accel->ctx, call->stream);
}

static uint64_t npu__accel_stream(void *ctx)
{
    return ((const npu__accel *)ctx)->desc.stream;
}

/* The member that is missing or wrong, NULL = none. */
static const char *npu__accel_wrong(const npu_accel *accel)
{
    return !accel->name          ? "name"
           : !accel->alloc       ? "alloc"
           : !accel->free        ? "free"
           : !accel->upload      ? "upload"
           : !accel->download    ? "download"
           : !accel->op_call     ? "op_call"
           : !accel->supports && !accel->abi && !accel->num_ops ? "supports (or abi, or ops)"
           : !accel->ops && accel->num_ops ? "ops"
           : accel->alignment > 4096 || (accel->alignment & (accel->alignment - 1)) ? "alignment" : NULL;
}

/* Every slot of the backend and its one region, from the desc. */
static void npu__accel_fill(npu__accel *accel)
{
    npu_backend *backend = &accel->backend;
    accel->region.size = (uint32_t)sizeof accel->region;
    accel->region.name = accel->desc.name;
    accel->region.capacity = accel->desc.capacity;
    accel->region.alignment = accel->desc.alignment ? accel->desc.alignment : 64;
    backend->size = (uint32_t)sizeof *backend;
    backend->api_version = NPU_BACKEND_API;
    backend->name = accel->desc.name;
    backend->ctx = accel;
    backend->traits = accel->desc.dynamic ? NPU_BACKEND_DYNAMIC : 0;
    backend->num_regions = 1;
    backend->regions = &accel->region;
    backend->abi = accel->desc.abi;
    backend->supports = npu__accel_supports;
    backend->alloc = npu__accel_alloc;
    backend->free = npu__accel_free;
    backend->upload = npu__accel_upload;
    backend->download = npu__accel_download;
    backend->compile = npu__accel_compile;
    backend->submit = npu__accel_submit;
    backend->release = npu__accel_release;
    backend->stream = npu__accel_stream;
    backend->op_call = npu__accel_op_call;
}

NPU_IR_API npu_status npu_accel_create(npu_backend **out, const npu_accel *accel,
                                       const npu_allocator *allocator)
{
    const uint32_t least = (uint32_t)(offsetof(npu_accel, diag) + sizeof accel->diag); /* of 0.2 */
    npu_allocator a = npu_text_init(allocator).allocator;
    npu__accel *made;
    npu_accel desc;
    const char *wrong;
    if (!out || !accel) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    *out = NULL;
    if (accel->size < least) {
        return npu__ref_fail(accel->diag, NPU_ERR_VERSION, "accel: its size is %u, at least %u is needed: set it to "
                             "sizeof(npu_accel)", (unsigned)accel->size, (unsigned)least);
    }
    memset(&desc, 0, sizeof desc);
    memcpy(&desc, accel, accel->size < sizeof desc ? accel->size : sizeof desc);
    wrong = npu__accel_wrong(&desc);
    if (wrong) {
        return npu__ref_fail(desc.diag, NPU_ERR_INVALID_ARGUMENT, "accel %s: %s is missing or wrong",
                             desc.name ? desc.name : "", wrong);
    }
    made = npu__ref_array(&a, 1, sizeof *made);
    if (!made) {
        return npu__ref_fail(desc.diag, NPU_ERR_NO_MEMORY, "accel %s: out of memory", desc.name);
    }
    made->desc = desc;
    made->allocator = a;
    npu__accel_fill(made);
    if (npu_backend_check(&made->backend, desc.diag)) {
        npu__ref_free(&a, made);
        return NPU_ERR_VERSION; /* of the ABI table */
    }
    *out = &made->backend;
    return NPU_OK;
}

NPU_IR_API void npu_accel_destroy(npu_backend *backend)
{
    if (backend) {
        npu__accel *accel = backend->ctx;
        npu_allocator a = accel->allocator;
        npu__ref_free(&a, accel);
    }
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#endif
