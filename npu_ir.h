/* npu_ir.h - 0.1 - a neural-network graph library for C: describe a model, check it, split it between an
   accelerator and the CPU, plan every byte, run it, and say why each op ran where it did.

   Do this:

       #define NPU_IR_IMPLEMENTATION
       #include "npu_ir.h"
       #include "npu_ir_backend_ref.h"        // the CPU kernels

   before you include the two headers in *one* C file, to create the implementation; everywhere else
   include them without the #define. The implementation is C (C99 or later): compile it in a .c file.
   The declarations also compile as C++11. Link with -lm and, unless NPU_IR_NO_THREADS, -lpthread.

   A complete program (make check compiles and runs it):

       #define NPU_IR_IMPLEMENTATION
       #include "npu_ir.h"
       #include "npu_ir_backend_ref.h"
       #include <stdio.h>

       int main(void)
       {
           npu_graph *g = npu_graph_create(NULL);
           npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 2, 3 }));
           npu_value y = npu_softmax(g, npu_relu(g, x), -1);
           npu_output(g, "y", y);

           const npu_backend *cpu = npu_ref_backend();
           npu_exec *exec = NULL;
           npu_diag diag = { 0 };
           if (npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) {
               fprintf(stderr, "%s\n", diag.message);
               return 1;
           }
           float in[6] = { 1, 2, 3, -1, 0, 1 }, out[6];
           npu_exec_set_input(exec, "x", in, sizeof in);
           npu_exec_set_output(exec, "y", out, sizeof out);
           if (npu_exec_run(exec)) { return 1; }
           printf("%.3f %.3f %.3f\n", out[0], out[1], out[2]);
           npu_exec_destroy(exec);
           npu_graph_destroy(g);
           return 0;
       }

   What it does not do: it does not train, download models, generate code, choose tile sizes for your device,
   or guess: what cannot be done is a status with a message, never an abort and never a silent substitute.

   CONTENTS                          declarations   implementation   tests
     1 config, status, allocator     >>config       >>impl-config    tests/test_config.c
     2 dtypes, shapes, specs         >>spec         >>impl-spec      tests/test_spec.c
     3 schemas, attribute blobs      >>schema       >>impl-schema    tests/test_schema.c
     4 op rows and registry          >>registry     >>impl-registry  tests/test_registry.c
     5 graph                         >>graph        >>impl-graph     tests/test_graph.c
     6 type deduction                >>deduce       >>impl-deduce    tests/test_deduce.c
     7 builder, layers, models       >>builder      >>impl-builder   tests/test_builder.c
     8 graph forms: text, DOT        >>forms        >>impl-forms     tests/test_forms.c
     9 backend interface             >>backend      >>impl-backend   tests/test_backend.c
    10 rewriting                     >>rewrite      >>impl-rewrite   tests/test_rewrite.c
    11 partitioner                   >>partition    >>impl-partition tests/test_partition.c
    12 memory planner                >>memory       >>impl-memory    tests/test_memory.c
    13 program and executor          >>exec         >>impl-exec      tests/test_exec.c
    14 plan forms, profile, trace    >>report       >>impl-report    tests/test_report.c

   A section calls only sections above it. Licence (public domain or MIT, your choice) at the end.

   CONCEPTS
     value    a tensor in the graph: id, name, spec, role, producer, users. Handle: npu_value, id 0 = none.
     op       one call of a kind: operands, packed attributes, results. Handle: npu_op, id 0 = none.
     spec     class (tensor, tile, scalar, none), dtype, rank, dims, optional memory reference, quantisation.
     kind     namespace << 16 | number, permanent: NPU_ATEN_RELU, NPU_AICF_GEMM.
     row      the one place where an op is declared: number, symbol, traits, type rule, schema, documentation.
     graph -> plan (steps, reasons, transfers, byte offsets; pure data) -> program (compiled groups, weights;
     immutable, shared by threads) -> exec (activations and state; one thread at a time).

   ERRORS
     Fallible calls return npu_status (0 = ok) or a handle (id 0 = failed). A builder given a failed handle
     returns a failed handle, so a model is written without checking each line and checked once, with
     npu_graph_status(). Objects keep their first diagnostic. Nothing prints, exits or aborts.

   THREADS, OWNERSHIP, MEMORY
     There are no globals. Objects may be used by one thread at a time, except that a frozen registry, a
     finished graph, a plan and a program are immutable and may be shared. Names, attributes and small data
     are copied; npu_constant_ref and weights bound by pointer are borrowed and must outlive what is made from
     them; backends must outlive programs. All memory comes from the allocator of the desc (default:
     NPU_IR_MALLOC).

   WRITING A BACKEND    see >>backend: fill an npu_backend in call order, or start with npu_accel in
                        npu_ir_backend_ref.h (alloc, free, upload, download, op_call).
   ADDING AN OP         a row in its family's table (>>registry), a type rule if none fits (>>impl-deduce), a
                        kernel in npu_ir_backend_ref.h, test rows. From outside: npu_registry_add.
*/
#ifndef NPU_IR_H
#define NPU_IR_H

/* Editors should show the implementation without greying it out. */
#if defined(__INTELLISENSE__) || defined(__JETBRAINS_IDE__) || defined(Q_CREATOR_RUN) || defined(__CDT_PARSER__)
#define NPU_IR_IMPLEMENTATION
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -----------------------------------------------------------------------------------------------------------
   1  CONFIG, STATUS, ALLOCATOR, PARALLEL-FOR                                                         >>config

   macro                   default          scope
   NPU_IR_API              extern           every file: prefix of every public function
   NPU_IR_STATIC           undefined        every file: all functions are static (several copies in one program)
   NPU_IR_MALLOC(n)        malloc           implementation file; MALLOC, REALLOC and FREE: all three or none
   NPU_IR_REALLOC(p, n)    realloc          implementation file
   NPU_IR_FREE(p)          free             implementation file
   NPU_IR_ASSERT(x)        nothing          implementation file; with NPU_IR_DEBUG it defaults to assert()
   NPU_IR_DEBUG            undefined        implementation file: check broken invariants
   NPU_IR_NO_STDIO         undefined        implementation file: no file functions (npu_*_load, npu_*_save)
   NPU_IR_NO_THREADS       undefined        implementation file: npu_threads_create returns NPU_ERR_UNSUPPORTED
   NPU_IR_NO_STRINGS       undefined        implementation file: messages and op documentation are empty strings
   NPU_IR_RUNTIME_ONLY     undefined        reserved: the profile that runs planned-model files
   -------------------------------------------------------------------------------------------------------- */

#define NPU_IR_VERSION 0x000100u /* major << 16 | minor << 8 | patch */

#ifndef NPU_IR_API
#ifdef NPU_IR_STATIC
#if defined(__GNUC__)
#define NPU_IR_API static __attribute__((unused))
#else
#define NPU_IR_API static
#endif
#else
#define NPU_IR_API extern
#endif
#endif

#if defined(__GNUC__)
#define NPU_IR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define NPU_IR_PRINTF(fmt, args)
#endif

/* Every status: number, symbol, text. If an error led you here: the object that failed (graph, plan, program,
   exec) or the npu_diag you passed holds the message with the op, the operand, what was expected and what
   came. */
#define NPU_IR_STATUSES(X)                                                                         \
    X(0, NPU_OK, "ok")                                                                             \
    X(1, NPU_ERR_INVALID_ARGUMENT, "invalid argument")                                             \
    X(2, NPU_ERR_NOT_IMPLEMENTED, "no kernel for this op")                                         \
    X(3, NPU_ERR_INTERNAL, "internal error")                                                       \
    X(4, NPU_ERR_BAD_SCHEMA, "attribute schema id is not the one of this op")                      \
    X(5, NPU_ERR_BAD_ATTR_SIZE, "attribute blob has the wrong size")                               \
    X(6, NPU_ERR_NO_MEMORY, "out of memory")                                                       \
    X(7, NPU_ERR_OVERFLOW, "a size does not fit")                                                  \
    X(8, NPU_ERR_NOT_FOUND, "not found")                                                           \
    X(9, NPU_ERR_DUPLICATE, "already exists")                                                      \
    X(10, NPU_ERR_SHAPE, "shape mismatch")                                                         \
    X(11, NPU_ERR_RANK, "wrong rank")                                                              \
    X(12, NPU_ERR_DTYPE, "wrong dtype")                                                            \
    X(13, NPU_ERR_AXIS, "axis out of range")                                                       \
    X(14, NPU_ERR_ATTRIBUTE, "missing, unknown or wrong attribute")                                \
    X(15, NPU_ERR_ARITY, "wrong number of operands")                                               \
    X(16, NPU_ERR_CLASS, "wrong class of operand (tensor, tile, scalar)")                          \
    X(17, NPU_ERR_PARSE, "cannot be parsed")                                                       \
    X(18, NPU_ERR_IO, "file error")                                                                \
    X(19, NPU_ERR_DYNAMIC_SHAPE, "a dimension is not known")                                       \
    X(20, NPU_ERR_GRAPH, "graph invariant violated")                                               \
    X(21, NPU_ERR_MISSING_FEED, "an input or output is not bound")                                 \
    X(22, NPU_ERR_MISSING_WEIGHT, "a parameter has no data")                                       \
    X(23, NPU_ERR_RANGE, "index out of range")                                                     \
    X(24, NPU_ERR_BACKEND, "backend failed")                                                       \
    X(25, NPU_ERR_TIMEOUT, "backend timed out")                                                    \
    X(26, NPU_ERR_CANCELLED, "cancelled by the poll callback")                                     \
    X(27, NPU_ERR_UNSUPPORTED, "not supported in this configuration")                              \
    X(28, NPU_ERR_NOT_LEGAL, "an op that must be converted is left")                               \
    X(29, NPU_ERR_VERSION, "version mismatch")                                                     \
    X(30, NPU_ERR_STATE, "called in the wrong state")                                              \
    X(31, NPU_ERR_CONVERSION, "constant without data")                                             \
    X(32, NPU_ERR_BUDGET, "a limit given in the options is exceeded")                              \
    X(33, NPU_ERR_NO_MATCH, "a pattern does not match")                                            \
    X(34, NPU_ERR_NO_FIXED_POINT, "patterns match again and again")

typedef enum npu_status {
#define NPU_X(number, symbol, text) symbol = number,
    NPU_IR_STATUSES(NPU_X)
#undef NPU_X
} npu_status;

/* The symbol's text ("shape mismatch"); "unknown status" for a number that is none. Static string. */
NPU_IR_API const char *npu_status_text(npu_status status);
/* The symbol itself ("NPU_ERR_SHAPE"). Static string. */
NPU_IR_API const char *npu_status_name(npu_status status);

/* The first thing that went wrong with an object: plain data, copied by value, no pointers to free. */
typedef struct npu_diag {
    npu_status status;
    uint32_t op;       /* id of the op, 0 = none */
    uint32_t value;    /* id of the value, 0 = none */
    int32_t line;      /* where the op was built (NPU_AT) or read (line of the text form), 0 = unknown */
    char file[64];     /* the end of that file's name, empty = unknown */
    char operand[32];  /* schema argument name, empty = none */
    char message[256]; /* "conv2d: weight dim 1 is 16, expected channels / groups = 8" */
} npu_diag;

/* One function for all memory: ptr NULL allocates, new_size 0 frees (and returns NULL), else it reallocates.
   A block is aligned for any C object. NULL for new_size > 0 means out of memory; ptr stays valid then. */
typedef struct npu_allocator {
    void *ctx;
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
} npu_allocator;

/* An allocator that counts, for memory reports, and can fail on purpose, for tests. Wrap it with
   npu_counting_allocator(&c) and pass that; live_bytes must be 0 when everything was destroyed. */
typedef struct npu_alloc_counter {
    size_t live_bytes, peak_bytes; /* bytes */
    uint64_t num_calls;            /* calls that allocate or grow */
    uint64_t fail_at;              /* 0 = never, n = the nth of those calls returns NULL */
} npu_alloc_counter;
NPU_IR_API npu_allocator npu_counting_allocator(npu_alloc_counter *counter);

/* Runs task(arg, part, parts) for every part in 0..parts-1, at most `width` at a time, and returns when all
   are done. NULL wherever an npu_parallel is taken means: serial, in the calling thread. */
typedef struct npu_parallel {
    uint32_t width; /* threads, including the caller; >= 1 */
    void *ctx;
    void (*run)(void *ctx, void (*task)(void *arg, uint32_t part, uint32_t parts), void *arg, uint32_t parts);
} npu_parallel;

/* A pool of width - 1 threads, sleeping between runs. One run at a time: calls from several threads take
   turns, so a pool may be shared between programs. Errors: NO_MEMORY, UNSUPPORTED (no threads in this build),
   BACKEND. */
NPU_IR_API npu_status npu_threads_create(npu_parallel **out, uint32_t width, const npu_allocator *allocator);
NPU_IR_API void npu_threads_destroy(npu_parallel *threads); /* NULL is fine */

/* Called with every diagnostic when set in a desc; level 0 = error, 1 = warning, 2 = note. */
typedef struct npu_logger {
    void *ctx;
    void (*write)(void *ctx, int level, const char *message);
} npu_logger;

/* Growable text, the target of every printer. `data` is NUL-terminated and belongs to the npu_text; on
   failure of the allocator the text is cut and status is NPU_ERR_NO_MEMORY. Start from
   npu_text_make(allocator or NULL). */
typedef struct npu_text {
    char *data;
    size_t len, capacity; /* bytes, without the NUL; capacity with it */
    npu_status status;
    npu_allocator allocator;
} npu_text;
NPU_IR_API npu_text npu_text_make(const npu_allocator *allocator);
NPU_IR_API void npu_text_printf(npu_text *text, const char *format, ...) NPU_IR_PRINTF(2, 3);
NPU_IR_API void npu_text_append(npu_text *text, const char *data, size_t len);
NPU_IR_API void npu_text_free(npu_text *text);

/* Sizes are added and multiplied through these: false and *out = 0 when the result does not fit. */
NPU_IR_API bool npu_size_add(size_t a, size_t b, size_t *out);
NPU_IR_API bool npu_size_mul(size_t a, size_t b, size_t *out);

/* -----------------------------------------------------------------------------------------------------------
   2  DTYPES, SHAPES, SPECS                                                                             >>spec

   Dtype codes are those of the operator document (f32 = 51 = 0x33), except that 0 is none and bool is 1.
   Sub-byte elements: low nibble first along the last dim, rows padded to a byte. fp8 and 4-bit types have
   codes and sizes; no kernel takes them yet.
   -------------------------------------------------------------------------------------------------------- */

/*    code  symbol    name   bits  kind (b bool, i signed, u unsigned, f float, c complex, - other)  ATen name */
#define NPU_IR_DTYPES(X)                                                                           \
    X(0x00, NPU_NONE, "none", 0, '-', "")                                                          \
    X(0x01, NPU_BOOL, "bool", 8, 'b', "Bool")                                                      \
    X(0x10, NPU_I4, "i4", 4, 'i', "")                                                              \
    X(0x11, NPU_I8, "i8", 8, 'i', "Char")                                                          \
    X(0x12, NPU_I16, "i16", 16, 'i', "Short")                                                      \
    X(0x13, NPU_I32, "i32", 32, 'i', "Int")                                                        \
    X(0x14, NPU_I64, "i64", 64, 'i', "Long")                                                       \
    X(0x20, NPU_U4, "u4", 4, 'u', "")                                                              \
    X(0x21, NPU_U8, "u8", 8, 'u', "Byte")                                                          \
    X(0x22, NPU_U16, "u16", 16, 'u', "UInt16")                                                     \
    X(0x23, NPU_U32, "u32", 32, 'u', "UInt32")                                                     \
    X(0x24, NPU_U64, "u64", 64, 'u', "UInt64")                                                     \
    X(0x30, NPU_F4, "f4", 4, 'f', "")                                                              \
    X(0x31, NPU_F8, "f8", 8, 'f', "Float8_e4m3fn")                                                 \
    X(0x32, NPU_F16, "f16", 16, 'f', "Half")                                                       \
    X(0x33, NPU_F32, "f32", 32, 'f', "Float")                                                      \
    X(0x34, NPU_F64, "f64", 64, 'f', "Double")                                                     \
    X(0x40, NPU_BF16, "bf16", 16, 'f', "BFloat16")                                                 \
    X(0x41, NPU_HF4, "hf4", 4, 'f', "")                                                            \
    X(0x42, NPU_HF8, "hf8", 8, 'f', "")                                                            \
    X(0x50, NPU_C64, "c64", 64, 'c', "ComplexFloat")                                               \
    X(0x51, NPU_C128, "c128", 128, 'c', "ComplexDouble")

typedef enum npu_dtype {
#define NPU_X(code, symbol, name, bits, letter, aten) symbol = code,
    NPU_IR_DTYPES(NPU_X)
#undef NPU_X
} npu_dtype;

NPU_IR_API bool npu_dtype_is_valid(uint32_t dtype);          /* a code of the table other than NPU_NONE */
NPU_IR_API uint32_t npu_dtype_bits(npu_dtype dtype);         /* bits of one element, 0 for none */
NPU_IR_API const char *npu_dtype_name(npu_dtype dtype);      /* "f32"; "?" for a number that is no code */
NPU_IR_API bool npu_dtype_is_float(npu_dtype dtype);         /* f4 .. f64, bf16, hf4, hf8 */
NPU_IR_API bool npu_dtype_is_integer(npu_dtype dtype);       /* signed or unsigned, not bool */
NPU_IR_API bool npu_dtype_is_signed(npu_dtype dtype);        /* signed integer */
NPU_IR_API bool npu_dtype_is_complex(npu_dtype dtype);
/* "f32", "float32", "torch.float32", "Float": NPU_NONE when the text is none of a dtype's names. */
NPU_IR_API npu_dtype npu_dtype_parse(const char *text);
/* ATen promotion of two *types* (torch.promote_types): i8 + u8 = i16, f16 + bf16 = f32, bool + i64 = i64.
   NPU_NONE when the pair has no common type. Source: torch/csrc ScalarType promotion table. */
NPU_IR_API npu_dtype npu_promote_types(npu_dtype a, npu_dtype b);
/* The rule of the `tensor` namespace: float beats int, larger beats smaller, signed beats unsigned at equal
   size, else the first; bool loses to every number. Source: operator document, "Type Promotion". */
NPU_IR_API npu_dtype npu_promote_tensor(npu_dtype a, npu_dtype b);

/* One element between memory and host numbers, bit-exact where the type can hold it, f16/bf16 rounded to
   nearest even. */
NPU_IR_API float npu_f16_to_f32(uint16_t bits);
NPU_IR_API uint16_t npu_f32_to_f16(float x);
NPU_IR_API float npu_bf16_to_f32(uint16_t bits);
NPU_IR_API uint16_t npu_f32_to_bf16(float x);

#define NPU_MAX_RANK 8
#define NPU_DYNAMIC_DIM (-1) /* a dim that is not known; values below -1 are symbols of the graph */

typedef enum npu_class {
    NPU_CLASS_NONE = 0,   /* no value: synchronisation ops */
    NPU_CLASS_TENSOR = 1, /* N-D, in device or host memory */
    NPU_CLASS_TILE = 2,   /* N-D, in a unified buffer */
    NPU_CLASS_SCALAR = 3  /* 0-D, in a register */
} npu_class;

/* Memory spaces of the operator document; 0 = wherever the planner puts it. */
typedef enum npu_space {
    NPU_SPACE_DEFAULT = 0, NPU_SPACE_DDR = 1, NPU_SPACE_UB = 2, NPU_SPACE_L1 = 3,
    NPU_SPACE_L0A = 4, NPU_SPACE_L0B = 5, NPU_SPACE_L0C = 6
} npu_space;

/* Quantisation of a spec: real = (stored - zero) * scale. scheme 0 none, 1 per tensor, 2 per axis, 3 per
   block of `block` elements along axis. Carried, printed and compared; no kernel reads it yet. Borrowed by
   the spec that points to it. */
typedef struct npu_quant {
    uint32_t scheme;
    int32_t axis;
    uint32_t block, count;   /* elements; entries of scales and zeros */
    const float *scales;
    const int32_t *zeros;    /* NULL = all 0 */
} npu_quant;

/* Type of a value. All zero = no type. Compare with npu_spec_equal. */
typedef struct npu_spec {
    uint8_t cls;     /* npu_class */
    uint8_t dtype;   /* npu_dtype */
    uint8_t rank;    /* 0..NPU_MAX_RANK */
    uint8_t wrapped; /* 1 = a Python number in a tensor slot: takes part in promotion by its category only */
    uint8_t space;   /* npu_space */
    uint8_t _reserved[3];
    int64_t dims[NPU_MAX_RANK]; /* elements; >= 0, NPU_DYNAMIC_DIM, or a symbol below -1; 0 past rank */
    int64_t offset;             /* bytes from the start of `space`, meaningful where space is not DEFAULT */
    const npu_quant *quant;     /* NULL = not quantised */
} npu_spec;

NPU_IR_API npu_spec npu_spec_tensor(npu_dtype dtype, uint32_t rank, const int64_t *dims); /* rank > 8: an invalid spec */
NPU_IR_API npu_spec npu_spec_tile(npu_dtype dtype, uint32_t rank, const int64_t *dims);
NPU_IR_API npu_spec npu_spec_scalar(npu_dtype dtype);
NPU_IR_API bool npu_spec_equal(const npu_spec *a, const npu_spec *b);
NPU_IR_API bool npu_spec_is_static(const npu_spec *spec); /* no dim below 0 */
/* Elements and bytes, dense row-major. Errors: DYNAMIC_SHAPE, OVERFLOW, DTYPE. *out is 0 on error. */
NPU_IR_API npu_status npu_spec_len(const npu_spec *spec, size_t *out);
NPU_IR_API npu_status npu_spec_size(const npu_spec *spec, size_t *out);
/* "f32[2,3]", "tile f16[32,128]", "f32[?,3]". Appends to text. */
NPU_IR_API void npu_spec_print(npu_text *text, const npu_spec *spec);
/* NumPy broadcasting, aligned right to left; -1 and symbols match themselves and 1. Errors: SHAPE; *bad (may
   be NULL) is the failing dim counted from the right. out_dims may alias a or b. */
NPU_IR_API npu_status npu_broadcast(const int64_t *a, uint32_t rank_a, const int64_t *b, uint32_t rank_b,
                                    int64_t *out_dims, uint32_t *out_rank, uint32_t *bad);

/* -----------------------------------------------------------------------------------------------------------
   3  SCHEMAS AND ATTRIBUTE BLOBS                                                                     >>schema

   A schema is one line in ATen's grammar (native_functions.yaml), plus our types Tile, Pipe, AffineMap and
   Graph:

       conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt groups=1) -> Tensor

   It is parsed once into npu_schema, which prints back to the same line. From it come argument binding,
   defaults, packing and printing. Parsed schemas belong to the arena they were parsed into and are immutable.

   Attribute blob of an op: its non-tensor arguments in schema order, no padding, little-endian on every host.
     int, SymInt, and enumerations (dtype codes, layout, memory format, device)   8 bytes signed ("q")
     float                     8 bytes IEEE double ("d")
     bool                      1 byte
     ScalarType                1 byte, an npu_dtype code
     X[k], fixed               k elements; one number given for it fills all k
     X[], X[k] as a hint       u32 count, then the elements. X[k] is fixed where its default is one number, or k >= 2 and the
                               default is not "[]"; else k is ATen's hint that one number may stand for the
                               list
     X? (optional)             1 byte present, then the value where it is 1
     Scalar                    1 tag byte (0 bool, 1 int, 2 float), then 8 bytes (q or d)
     str                       u32 length, then the bytes
     Graph                     u32 index of a child graph
     SymInt fed by a value     INT64_MIN, and the value is an operand, in schema order; so is each such element of a list
   Device, Layout, MemoryFormat, Generator, Storage and Stream arguments take part as enumerations (default
   0). Their words ("cuda:1", "torch.strided") become the numbers of c10; a device is its type plus 256 times
   its index. An optional argument that has no default and is not given is none.
   -------------------------------------------------------------------------------------------------------- */

typedef enum npu_type_base {
    NPU_T_INVALID = 0, NPU_T_TENSOR = 1, NPU_T_INT = 2, NPU_T_SYMINT = 3, NPU_T_FLOAT = 4, NPU_T_BOOL = 5,
    NPU_T_STR = 6, NPU_T_SCALAR = 7, NPU_T_DTYPE = 8 /* ScalarType */, NPU_T_DEVICE = 9, NPU_T_LAYOUT = 10,
    NPU_T_MEMORY_FORMAT = 11, NPU_T_GENERATOR = 12, NPU_T_STORAGE = 13, NPU_T_STREAM = 14,
    NPU_T_DEVICE_INDEX = 15, NPU_T_DIMNAME = 16, NPU_T_QSCHEME = 17, NPU_T_SYMBOOL = 18, NPU_T_TILE = 19,
    NPU_T_PIPE = 20, NPU_T_AFFINE_MAP = 21, NPU_T_GRAPH = 22, NPU_T_CONST_QUANTIZER = 23, NPU_T_SYMFLOAT = 24
} npu_type_base;

typedef struct npu_schema_type {
    uint8_t base;             /* npu_type_base */
    uint8_t optional;         /* "int?" or "int[]?" */
    uint8_t list;             /* 0 no list, 1 "[]" or "[k]" */
    uint8_t element_optional; /* "Tensor?[]" */
    int32_t list_size;        /* k of "[k]", 0 for "[]" */
    const char *alias;        /* "a", "a!", "a -> *"; NULL = none */
} npu_schema_type;

typedef enum npu_default_form {
    NPU_DEFAULT_REQUIRED = 0, NPU_DEFAULT_NONE = 1, NPU_DEFAULT_BOOL = 2, NPU_DEFAULT_INT = 3,
    NPU_DEFAULT_FLOAT = 4, NPU_DEFAULT_STR = 5, NPU_DEFAULT_INTS = 6, NPU_DEFAULT_WORD = 7 /* Mean, long, contiguous_format */
} npu_default_form;

typedef struct npu_schema_arg {
    const char *name;         /* never NULL for arguments; returns may have none */
    npu_schema_type type;
    uint8_t keyword_only;     /* after "*" */
    uint8_t default_form;     /* npu_default_form */
    char quote;               /* ' or " of a string default */
    int64_t default_int;      /* int, bool, and the value that a word stands for */
    double default_float;
    const char *default_str;  /* string (unescaped) or word */
    uint32_t num_default_ints;
    const int64_t *default_ints;
} npu_schema_arg;

typedef struct npu_schema {
    const char *name;         /* "conv2d" */
    const char *overload;     /* "padding", or "" */
    uint32_t num_args, num_returns;
    const npu_schema_arg *args;
    const npu_schema_arg *returns;
    uint8_t returns_in_parentheses;
} npu_schema;

/* Parses one line. The result lives in one block from the allocator: free it with npu_schema_free. Errors:
   PARSE (diag->message names the column), NO_MEMORY. */
NPU_IR_API npu_status npu_schema_parse(npu_schema **out, const char *line, const npu_allocator *allocator,
                                       npu_diag *diag);
NPU_IR_API void npu_schema_free(npu_schema *schema, const npu_allocator *allocator);
NPU_IR_API void npu_schema_print(npu_text *text, const npu_schema *schema);
NPU_IR_API int npu_schema_find_arg(const npu_schema *schema, const char *name); /* -1 = none */

/* Where the members of a typed attrs struct lie: the schema's non-tensor arguments in order with their
   natural types.
     int, SymInt   int64_t                      float         double
     bool          bool                         ScalarType    npu_dtype (uint32_t)
     Scalar        npu_scalar                   str           const char *
     X[k], fixed   X[k]                         other lists   npu_ints / npu_floats / npu_bools
     Device, Layout, MemoryFormat, Generator    int64_t
   A `bool has_x` follows x where x is optional (and no list or string), or where its default is not zero and
   zero is legal: float and bool with a nonzero default, int with a default other than 0 and 1, Scalar with a
   nonzero default. */
typedef struct npu_attr_slot {
    uint32_t arg;       /* index into schema->args */
    uint32_t offset;    /* bytes from the start of the struct */
    uint32_t has_offset; /* of has_x, 0 = there is none */
} npu_attr_slot;
/* Fills at most `capacity` slots; returns their number and stores sizeof the struct. */
NPU_IR_API uint32_t npu_schema_attrs_layout(const npu_schema *schema, npu_attr_slot *slots, uint32_t capacity,
                                            size_t *size);

typedef struct npu_ints { const int64_t *data; uint32_t len; } npu_ints;
typedef struct npu_floats { const double *data; uint32_t len; } npu_floats;
typedef struct npu_bools { const bool *data; uint32_t len; } npu_bools;

/* A number that keeps its kind, as a Python number does. All zero = integer 0. */
typedef struct npu_scalar {
    int64_t i;       /* value when is_float is 0 (a bool is 0 or 1) */
    double f;        /* value when is_float is 1 */
    uint8_t is_float, is_bool;
} npu_scalar;
NPU_IR_API npu_scalar npu_scalar_int(int64_t x);
NPU_IR_API npu_scalar npu_scalar_float(double x);
NPU_IR_API npu_scalar npu_scalar_bool(bool x);
NPU_IR_API double npu_scalar_value(npu_scalar s);

typedef struct npu_value { uint32_t id; } npu_value; /* id 0 = none or failed */
typedef struct npu_op { uint32_t id; } npu_op;       /* id 0 = none or failed */

typedef enum npu_arg_form {
    NPU_ARG_NONE = 0, NPU_ARG_TENSOR = 1, NPU_ARG_TENSORS = 2, NPU_ARG_INT = 3, NPU_ARG_FLOAT = 4, NPU_ARG_BOOL = 5,
    NPU_ARG_STR = 6, NPU_ARG_DTYPE = 7, NPU_ARG_INTS = 8, NPU_ARG_FLOATS = 9, NPU_ARG_BOOLS = 10, NPU_ARG_SCALARS = 11,
    NPU_ARG_GRAPH = 12
} npu_arg_form;

/* One argument given to npu_emit by name (or, name NULL, by position). Pointers are read during the call
   only. */
typedef struct npu_arg {
    const char *name;
    uint32_t form;  /* npu_arg_form */
    uint32_t count; /* elements of a list */
    union {
        int64_t i;               /* INT, BOOL, DTYPE, GRAPH */
        double f;                /* FLOAT */
        npu_value value;         /* TENSOR; id 0 is a hole */
        const npu_value *values; /* TENSORS; id 0 is a hole */
        const int64_t *ints;
        const double *floats;
        const bool *bools;
        const npu_scalar *scalars;
        const char *str;
    } as;
} npu_arg;

static inline npu_arg npu_arg_none(const char *name)
{
    npu_arg a;
    a.name = name;
    a.form = NPU_ARG_NONE;
    a.count = 0;
    a.as.i = 0;
    return a;
}

static inline npu_arg npu_arg_int(const char *name, int64_t x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_INT;
    a.as.i = x;
    return a;
}

static inline npu_arg npu_arg_bool(const char *name, bool x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_BOOL;
    a.as.i = x;
    return a;
}

static inline npu_arg npu_arg_float(const char *name, double x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_FLOAT;
    a.as.f = x;
    return a;
}

static inline npu_arg npu_arg_dtype(const char *name, npu_dtype x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_DTYPE;
    a.as.i = (int64_t)x;
    return a;
}

static inline npu_arg npu_arg_str(const char *name, const char *x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_STR;
    a.as.str = x;
    return a;
}

static inline npu_arg npu_arg_tensor(const char *name, npu_value x)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_TENSOR;
    a.as.value = x;
    return a;
}

static inline npu_arg npu_arg_tensors(const char *name, const npu_value *x, uint32_t n)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_TENSORS;
    a.count = n;
    a.as.values = x;
    return a;
}

static inline npu_arg npu_arg_ints(const char *name, const int64_t *x, uint32_t n)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_INTS;
    a.count = n;
    a.as.ints = x;
    return a;
}

static inline npu_arg npu_arg_floats(const char *name, const double *x, uint32_t n)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_FLOATS;
    a.count = n;
    a.as.floats = x;
    return a;
}

static inline npu_arg npu_arg_bools(const char *name, const bool *x, uint32_t n)
{
    npu_arg a = npu_arg_none(name);
    a.form = NPU_ARG_BOOLS;
    a.count = n;
    a.as.bools = x;
    return a;
}

/* One argument as bound to an op: what type rules, backends and kernels read. In schema order, one entry per
   schema argument, defaults filled in. */
typedef struct npu_bound_arg {
    const char *name;     /* of the schema */
    uint32_t form;        /* npu_arg_form; NONE = an absent optional; a Scalar is INT, FLOAT or BOOL */
    uint32_t first;       /* TENSOR(S): index of the first operand in npu_op_info.in */
    uint32_t count;       /* TENSORS and other lists, STR: elements */
    int64_t i;            /* INT, BOOL, DTYPE; for FLOAT the truncated value */
    double f;             /* FLOAT; for INT and BOOL the same number */
    const uint8_t *data;  /* lists and STR: packed little-endian elements inside the blob, unaligned */
} npu_bound_arg;

/* What crosses to type rules, partitioner, backends and kernels about one op. Plain data: nothing needs an
   npu_ function. Valid during the call only, except where a slot says otherwise. */
typedef struct npu_op_info {
    uint32_t size;                /* sizeof(npu_op_info) of the core that fills it */
    uint32_t kind;                /* npu_kind */
    uint32_t op;                  /* id in the graph, 0 = standalone */
    uint32_t traits;              /* of its row: NPU_ELEMENTWISE ... */
    uint32_t num_args, num_in, num_out;
    const char *name;             /* "aten.conv2d.default" */
    const npu_bound_arg *args;
    const npu_spec *const *in;    /* num_in operand specs; NULL = a hole (absent optional tensor) */
    const npu_spec *const *out;   /* num_out result specs */
    const void *const *in_data;   /* num_in: host data of constant operands, NULL = not known */
    const uint8_t *attrs;         /* the packed blob described above */
    uint32_t attrs_size;          /* bytes */
    uint32_t device_kind;         /* id, schema and blob by the backend's ABI table; device_size 0 and schema 0 without one */
    uint32_t device_schema;
    uint32_t device_size;
    const uint8_t *device_attrs;
    const struct npu_graph *body; /* the child graph that the op's Graph argument names, NULL = none; lives as long as its graph */
} npu_op_info;

/* Reading bound arguments by name. A name the schema does not have, or an absent optional, gives the stated
   fallback. */
NPU_IR_API const npu_bound_arg *npu_op_arg(const npu_op_info *op, const char *name); /* NULL = no such argument */
NPU_IR_API bool npu_op_has(const npu_op_info *op, const char *name);                 /* present and not none */
NPU_IR_API int64_t npu_op_int(const npu_op_info *op, const char *name, int64_t fallback);
NPU_IR_API double npu_op_float(const npu_op_info *op, const char *name, double fallback);
NPU_IR_API npu_scalar npu_op_scalar(const npu_op_info *op, const char *name, npu_scalar fallback);
NPU_IR_API bool npu_op_str_is(const npu_op_info *op, const char *name, const char *text);
NPU_IR_API uint32_t npu_op_list_len(const npu_op_info *op, const char *name);
NPU_IR_API int64_t npu_op_int_at(const npu_op_info *op, const char *name, uint32_t i); /* element i of a list of int or bool */
NPU_IR_API double npu_op_float_at(const npu_op_info *op, const char *name, uint32_t i);
/* Copies a list of int into out[capacity], a list of one element filling all of them; returns the length in
   the blob. */
NPU_IR_API uint32_t npu_op_ints(const npu_op_info *op, const char *name, int64_t *out, uint32_t capacity);
/* Index into op->in of a tensor argument, -1 = hole or no such argument. */
NPU_IR_API int npu_op_operand(const npu_op_info *op, const char *name);

/* The axes of term `term` of an einsum equation, the result's where is_result: letters are 0..51, the dims of
   an ellipsis 59 - ellipsis .. 58. Returns their number; -1 = malformed or more than NPU_MAX_RANK, -2 = no
   such term. */
enum { NPU_EINSUM_AXES = 60 };
static inline int npu_einsum_term(const npu_bound_arg *equation, uint32_t term, bool is_result, int ellipsis,
                                  uint8_t axes[NPU_MAX_RANK])
{
    bool after = false;
    uint32_t commas = 0;
    int n = is_result ? -2 : commas == term ? 0 : -2;
    for (uint32_t i = 0; i < equation->count; i++) {
        char c = (char)equation->data[i];
        bool is_mine = is_result ? after : !after && commas == term, is_dots = c == '.';
        int first, count = 1;
        if (c == ' ') {
            continue;
        } else if (c == ',' && !after) {
            n = !is_result && ++commas == term ? 0 : n;
            continue;
        } else if (c == '-' && !after && i + 1 < equation->count && equation->data[i + 1] == '>') {
            after = true, i++;
            n = is_result ? 0 : n;
            continue;
        } else if (c >= 'A' && c <= 'Z') {
            first = c - 'A';
        } else if (c >= 'a' && c <= 'z') {
            first = c - 'a' + 26;
        } else if (is_dots && i + 2 < equation->count && equation->data[i + 1] == '.' &&
                   equation->data[i + 2] == '.') {
            first = 59 - ellipsis, count = ellipsis, i += 2;
        } else {
            return -1;
        }
        for (int k = 0; is_mine && k < count; k++) {
            if (n >= NPU_MAX_RANK) {
                return -1;
            }
            axes[n++] = (uint8_t)(first + k);
        }
    }
    return n;
}

/* The device's own form of a kind: {kind, device id, attr_schema, layout}. The layout is a Python struct
   format without padding ("<q", "<ii", "<ffff", "<fI"; q i I f d B), one letter per non-tensor argument of
   the kind's schema that is present, in order; a row whose layout has as many letters as arguments are
   present is the one that applies. */
typedef struct npu_abi_row {
    uint32_t kind;        /* npu_kind */
    uint32_t device_kind; /* the device's number for it */
    uint32_t attr_schema; /* NPU_FOURCC or 0 */
    const char *layout;   /* "" = an empty blob */
} npu_abi_row;
#define NPU_FOURCC(a, b, c, d) \
    ((uint32_t)(uint8_t)(a) | (uint32_t)(uint8_t)(b) << 8 | (uint32_t)(uint8_t)(c) << 16 | (uint32_t)(uint8_t)(d) << 24)

/* -----------------------------------------------------------------------------------------------------------
   4  OP ROWS AND REGISTRY                                                                          >>registry

   An op is declared once, as a row of its family's table below: permanent number, symbol, traits, type rule,
   schema, one line of documentation. `make ops` prints them all. A registry holds the tables wanted, custom
   rows and their parsed schemas; it is frozen by its first graph and may then be shared between threads.
   -------------------------------------------------------------------------------------------------------- */

typedef uint32_t npu_kind; /* namespace << 16 | number; 0 = none */

typedef enum npu_namespace {
    NPU_NS_AICF = 1,   /* device kinds with byte-exact attributes; the number is the device's OpKind */
    NPU_NS_ATEN = 2,   /* what PyTorch exports */
    NPU_NS_TENSOR = 3, /* tensor ops of the operator document; empty, pad, collapse_shape, expand_shape */
    NPU_NS_BLOCK = 4, NPU_NS_SYSTEM = 5, NPU_NS_LINALG = 6, NPU_NS_ARITH = 7, NPU_NS_GAWEE = 8,
    NPU_NS_NPU = 9,    /* transfer, getitem, call, fused ... */
    NPU_NS_USER = 0x0100 /* first number free for custom namespaces */
} npu_namespace;
#define NPU_KIND_NAMESPACE(kind) ((kind) >> 16)
#define NPU_KIND_NUMBER(kind) ((kind) & 0xffffu)

/* Traits of a row. */
enum {
    NPU_ELEMENTWISE = 1u << 0, /* result element i depends on operand elements i (after broadcasting) only */
    NPU_VIEW = 1u << 1,        /* result 0 has operand 0's elements in the same dense order: free on every backend */
    NPU_SLICE = 1u << 2,       /* results are parts of operand 0: a view when the part is leading */
    NPU_INPLACE = 1u << 3,     /* result 0 may overwrite an operand of the same size that dies here */
    NPU_EFFECT = 1u << 4,      /* kept, in order; never dropped, merged or moved */
    NPU_RANDOM = 1u << 5,
    NPU_DATA = 1u << 6,        /* the type rule reads operand data where it is constant */
    NPU_VARIADIC = 1u << 7,    /* the number of results depends on the arguments */
    NPU_NO_KERNEL = 1u << 8    /* structural: nothing executes it */
};

struct npu_deduce;
/* Fills the result specs of one op; see >>deduce for what it may call. */
typedef npu_status (*npu_type_rule)(struct npu_deduce *d);

typedef struct npu_op_row {
    npu_kind kind;
    uint32_t traits;
    npu_type_rule rule; /* NULL: results must be given with npu_emit_typed */
    const char *schema; /* borrowed; must outlive the registry */
    const char *doc;    /* one line */
} npu_op_row;

/* One family of rows. All pointers are borrowed and must outlive the registry. */
typedef struct npu_op_table {
    const char *space;    /* namespace name: "aten" */
    const char *category; /* "convolution"; a custom table may use any string */
    const npu_op_row *rows;
    uint32_t num_rows;
} npu_op_table;

/* ---- aten: convolution ---- */
#define NPU_IR_OPS_ATEN_CONVOLUTION(X)                                                                       \
    X(0x0001, NPU_ATEN_CONV1D, 0, npu__type_conv,                                                            \
      "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "     \
      "SymInt[1] dilation=1, SymInt groups=1) -> Tensor", "1-D convolution, [N,]C,L")                        \
    X(0x0002, NPU_ATEN_CONV1D_PADDING, 0, npu__type_conv,                                                    \
      "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding=\"valid\", " \
      "SymInt[1] dilation=1, SymInt groups=1) -> Tensor", "1-D convolution with padding 'same' or 'valid'")  \
    X(0x0003, NPU_ATEN_CONV2D, 0, npu__type_conv,                                                            \
      "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "     \
      "SymInt[2] dilation=1, SymInt groups=1) -> Tensor", "2-D convolution, [N,]C,H,W")                      \
    X(0x0004, NPU_ATEN_CONV2D_PADDING, 0, npu__type_conv,                                                    \
      "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding=\"valid\", " \
      "SymInt[2] dilation=1, SymInt groups=1) -> Tensor", "2-D convolution with padding 'same' or 'valid'")  \
    X(0x0005, NPU_ATEN_CONV_TRANSPOSE2D, 0, npu__type_conv,                                                  \
      "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, " \
      "SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor", "transposed 2-D convolution") \
    X(0x0006, NPU_ATEN_CONVOLUTION, 0, npu__type_conv,                                                       \
      "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, " \
      "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor", "convolution in 1, 2 or 3 dims, or transposed") \
    X(0x0007, NPU_ATEN_CONVOLUTION_BACKWARD, 0, npu__type_conv_backward,                                     \
      "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "                     \
      "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "                  \
      "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",            \
      "gradients of input, weight and bias; those masked off are empty")                                     \
    X(0x0008, NPU_ATEN_CONV3D, 0, npu__type_conv,                                                            \
      "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "                \
      "padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor",                                         \
      "3-D convolution, [N,]C,D,H,W")                                                                        \
    X(0x0009, NPU_ATEN_CONV3D_PADDING, 0, npu__type_conv,                                                    \
      "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str "              \
      "padding=\"valid\", SymInt[3] dilation=1, SymInt groups=1) -> Tensor",                                 \
      "3-D convolution with padding 'same' or 'valid'")                                                      \
    X(0x000a, NPU_ATEN_CONV_TRANSPOSE1D, 0, npu__type_conv,                                                  \
      "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, "                \
      "SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) "             \
      "-> Tensor", "transposed 1-D convolution")                                                             \
    X(0x000b, NPU_ATEN_CONV_TRANSPOSE3D, 0, npu__type_conv,                                                  \
      "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] "                    \
      "stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] "               \
      "dilation=1) -> Tensor", "transposed 3-D convolution")

/* ---- aten: matrix ---- */
#define NPU_IR_OPS_ATEN_MATRIX(X)                                                                            \
    X(0x0020, NPU_ATEN_LINEAR, 0, npu__type_linear,                                                          \
      "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", "input times weight transposed, plus bias") \
    X(0x0021, NPU_ATEN_MM, 0, npu__type_matmul, "mm(Tensor self, Tensor mat2) -> Tensor", "matrix product [M,K] [K,N]") \
    X(0x0022, NPU_ATEN_BMM, 0, npu__type_matmul, "bmm(Tensor self, Tensor mat2) -> Tensor", "batched matrix product") \
    X(0x0023, NPU_ATEN_MATMUL, 0, npu__type_matmul,                                                          \
      "matmul(Tensor self, Tensor other) -> Tensor", "matrix product of 1-D to N-D operands, batch dims broadcast") \
    X(0x0024, NPU_ATEN_ADDMM, 0, npu__type_addmm,                                                            \
      "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",            \
      "beta self + alpha mat1 mat2")                                                                         \
    X(0x0025, NPU_ATEN_BADDBMM, 0, npu__type_addmm,                                                          \
      "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "             \
      "Tensor", "beta self + alpha batch1 batch2")                                                           \
    X(0x0026, NPU_ATEN_MV, 0, npu__type_matmul,                                                              \
      "mv(Tensor self, Tensor vec) -> Tensor", "matrix [M,K] times vector [K]")                              \
    X(0x0027, NPU_ATEN_DOT, 0, npu__type_matmul,                                                             \
      "dot(Tensor self, Tensor tensor) -> Tensor", "inner product of two vectors")                           \
    X(0x0028, NPU_ATEN_VDOT, 0, npu__type_matmul,                                                            \
      "vdot(Tensor self, Tensor other) -> Tensor", "dot, of real vectors")                                   \
    X(0x0029, NPU_ATEN_ADDMV, 0, npu__type_addmm,                                                            \
      "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",              \
      "beta self + alpha mat vec")

/* ---- aten: contraction ---- */
#define NPU_IR_OPS_ATEN_CONTRACTION(X)                                                             \
    X(0x0620, NPU_ATEN_EINSUM, 0, npu__type_einsum,                                                \
      "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",                     \
      "sum of products over the axes that the result does not name")                               \
    X(0x0621, NPU_ATEN_OUTER, 0, npu__type_outer,                                                  \
      "outer(Tensor self, Tensor vec2) -> Tensor", "products of all pairs of two vectors")         \
    X(0x0622, NPU_ATEN_INNER, 0, npu__type_inner,                                                  \
      "inner(Tensor self, Tensor other) -> Tensor", "sums of products over the last dims")         \
    X(0x0623, NPU_ATEN_TENSORDOT, 0, npu__type_tensordot,                                          \
      "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",         \
      "sums of products over the dims listed")                                                     \
    X(0x0624, NPU_ATEN_KRON, 0, npu__type_kron,                                                    \
      "kron(Tensor self, Tensor other) -> Tensor", "Kronecker product")                            \
    X(0x0625, NPU_ATEN_BILINEAR, 0, npu__type_bilinear,                                            \
      "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",        \
      "input1 weight input2 for each output, plus bias")                                           \
    X(0x0626, NPU_ATEN_ADDBMM, 0, npu__type_addmm,                                                 \
      "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "    \
      "Tensor", "beta self + alpha times the sum of batch1 batch2 over the batch")                 \
    X(0x0627, NPU_ATEN_ADDR, 0, npu__type_addr,                                                    \
      "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",   \
      "beta self + alpha times the outer product")                                                 \
    X(0x0628, NPU_ATEN_LINALG_VECDOT, 0, npu__type_vecdot,                                         \
      "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",                                \
      "inner products along a dim, the others broadcast")

/* ---- aten: linear algebra ---- */
#define NPU_IR_OPS_ATEN_LINALG(X)                                                                  \
    X(0x0640, NPU_ATEN_DET, 0, npu__type_determinant,                                              \
      "det(Tensor self) -> Tensor", "determinant")                                                 \
    X(0x0641, NPU_ATEN_LINALG_DET, 0, npu__type_determinant,                                       \
      "linalg_det(Tensor A) -> Tensor", "determinant")                                             \
    X(0x0642, NPU_ATEN_LOGDET, 0, npu__type_determinant,                                           \
      "logdet(Tensor self) -> Tensor",                                                             \
      "logarithm of the determinant, NaN where that is negative")                                  \
    X(0x0643, NPU_ATEN_SLOGDET, 0, npu__type_determinant,                                          \
      "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",                                   \
      "sign and logarithm of the absolute determinant")                                            \
    X(0x0644, NPU_ATEN_LINALG_SLOGDET, 0, npu__type_determinant,                                   \
      "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",                               \
      "sign and logarithm of the absolute determinant")                                            \
    X(0x0645, NPU_ATEN_LINALG_INV, 0, npu__type_factor,                                            \
      "linalg_inv(Tensor A) -> Tensor", "inverse; a singular matrix fails")                        \
    X(0x0646, NPU_ATEN_LINALG_CHOLESKY, 0, npu__type_factor,                                       \
      "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",                               \
      "triangle L of L times its transpose; fails where there is none")                            \
    X(0x0647, NPU_ATEN_LINALG_CHOLESKY_EX, 0, npu__type_factor,                                    \
      "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "          \
      "(Tensor L, Tensor info)",                                                                   \
      "the same, and the order of the first minor that is not positive")                           \
    X(0x0648, NPU_ATEN_LINALG_SOLVE, 0, npu__type_solve,                                           \
      "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",                             \
      "X of A X = B, or of X A = B; a singular matrix fails")                                      \
    X(0x0649, NPU_ATEN_CHOLESKY_SOLVE, 0, npu__type_solve_factored,                                \
      "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",                    \
      "X of A X = self, where input2 is the Cholesky factor of A")                                 \
    X(0x064a, NPU_ATEN_LINALG_SOLVE_TRIANGULAR, 0, npu__type_solve_factored,                       \
      "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "        \
      "unitriangular=False) -> Tensor",                                                            \
      "X of self X = B, or of X self = B; only the triangle of self is read")                      \
    X(0x064b, NPU_ATEN_LINALG_TENSORINV, 0, npu__type_tensorinv,                                   \
      "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",                                        \
      "inverse, the first ind dims being rows, the others columns")                                \
    X(0x064c, NPU_ATEN_LINALG_TENSORSOLVE, 0, npu__type_tensorsolve,                               \
      "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",                 \
      "X of tensordot(self, X) = other; dims of self that are listed come last")                   \
    X(0x064d, NPU_ATEN_LINALG_MATRIX_POWER, 0, npu__type_matrix_power,                             \
      "linalg_matrix_power(Tensor self, int n) -> Tensor",                                         \
      "product of n times self, of its inverse where n is negative")                               \
    X(0x064e, NPU_ATEN_MATRIX_POWER, 0, npu__type_matrix_power,                                    \
      "matrix_power(Tensor self, int n) -> Tensor", "linalg_matrix_power")                         \
    X(0x064f, NPU_ATEN_LINALG_MULTI_DOT, 0, npu__type_multi_dot,                                   \
      "linalg_multi_dot(Tensor[] tensors) -> Tensor",                                              \
      "product of a chain of matrices, from the cheaper end")                                      \
    X(0x0650, NPU_ATEN_CROSS, 0, npu__type_cross,                                                  \
      "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",                                 \
      "cross product along dim, the first of size 3 where none is given")                          \
    X(0x0651, NPU_ATEN_LINALG_CROSS, 0, npu__type_cross,                                           \
      "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",                          \
      "cross product along dim, the others broadcast")

/* ---- aten: recurrent ---- */
#define NPU_IR_OPS_ATEN_RECURRENT(X)                                                               \
    X(0x0600, NPU_ATEN_GRU, 0, npu__type_rnn,                                                      \
      "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "      \
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",      \
      "gated recurrent layers over a sequence")                                                    \
    X(0x0601, NPU_ATEN_GRU_CELL, 0, npu__type_rnn_cell,                                            \
      "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "    \
      "b_hh=None) -> Tensor", "one step of a gated recurrent layer")                               \
    X(0x0602, NPU_ATEN_LSTM, 0, npu__type_rnn,                                                     \
      "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "   \
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, "      \
      "Tensor)", "long short-term memory layers over a sequence")                                  \
    X(0x0603, NPU_ATEN_LSTM_CELL, 0, npu__type_rnn_cell,                                           \
      "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "         \
      "Tensor? b_hh=None) -> (Tensor, Tensor)", "one step of a long short-term memory layer")      \
    X(0x0604, NPU_ATEN_RNN_RELU, 0, npu__type_rnn,                                                 \
      "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "             \
      "num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "           \
      "(Tensor, Tensor)", "recurrent layers with relu over a sequence")                            \
    X(0x0605, NPU_ATEN_RNN_TANH, 0, npu__type_rnn,                                                 \
      "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "             \
      "num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "           \
      "(Tensor, Tensor)", "recurrent layers with tanh over a sequence")                            \
    X(0x0606, NPU_ATEN_RNN_RELU_CELL, 0, npu__type_rnn_cell,                                       \
      "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "       \
      "Tensor? b_hh=None) -> Tensor", "one step of a recurrent layer with relu")                   \
    X(0x0607, NPU_ATEN_RNN_TANH_CELL, 0, npu__type_rnn_cell,                                       \
      "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "       \
      "Tensor? b_hh=None) -> Tensor", "one step of a recurrent layer with tanh")

/* ---- aten: distance ---- */
#define NPU_IR_OPS_ATEN_DISTANCE(X)                                                                \
    X(0x0618, NPU_ATEN_CDIST, 0, npu__type_cdist,                                                  \
      "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",                  \
      "p-norms of differences of rows")

/* ---- aten: activation ---- */
#define NPU_IR_OPS_ATEN_ACTIVATION(X)                                                                        \
    X(0x0040, NPU_ATEN_RELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                           \
      "relu(Tensor self) -> Tensor", "max(x, 0)")                                                            \
    X(0x0041, NPU_ATEN_GELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                            \
      "gelu(Tensor self, *, str approximate='none') -> Tensor", "x times the normal distribution function of x") \
    X(0x0042, NPU_ATEN_LEAKY_RELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                      \
      "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", "x where x > 0, else slope times x")  \
    X(0x0043, NPU_ATEN_SILU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                            \
      "silu(Tensor self) -> Tensor", "x / (1 + exp(-x))")                                                    \
    X(0x0044, NPU_ATEN_SIGMOID, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                      \
      "sigmoid(Tensor self) -> Tensor", "1 / (1 + exp(-x))")                                                 \
    X(0x0045, NPU_ATEN_TANH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "tanh(Tensor self) -> Tensor", "hyperbolic tangent")                                                   \
    X(0x0046, NPU_ATEN_HARDSWISH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                       \
      "hardswish(Tensor self) -> Tensor", "x clamp(x + 3, 0, 6) / 6")                                        \
    X(0x0047, NPU_ATEN_HARDTANH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                       \
      "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", "clamp(x, min_val, max_val)")  \
    X(0x0048, NPU_ATEN_ELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                             \
      "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",                    \
      "scale x where x > 0, else scale alpha (exp(input_scale x) - 1)")

/* ---- aten: normalisation ---- */
#define NPU_IR_OPS_ATEN_NORMALIZATION(X)                                                                     \
    X(0x0060, NPU_ATEN_BATCH_NORM, 0, npu__type_batch_norm,                                                  \
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, " \
      "float momentum, float eps, bool cudnn_enabled) -> Tensor", "per-channel normalisation over N and the spatial dims") \
    X(0x0061, NPU_ATEN_LAYER_NORM, 0, npu__type_layer_norm,                                                  \
      "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, " \
      "bool cudnn_enable=True) -> Tensor", "normalisation over the trailing dims")                           \
    X(0x0062, NPU_ATEN_GROUP_NORM, 0, npu__type_group_norm,                                                  \
      "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "   \
      "bool cudnn_enabled=True) -> Tensor", "normalisation over groups of channels")                         \
    X(0x0063, NPU_ATEN_NATIVE_LAYER_NORM, 0, npu__type_layer_norm,                                           \
      "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> " \
      "(Tensor, Tensor, Tensor)", "layer_norm that also returns mean and reciprocal deviation")              \
    X(0x0064, NPU_ATEN_NATIVE_BATCH_NORM_LEGIT, 0, npu__type_batch_norm,                                     \
      "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "                     \
      "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> "                  \
      "(Tensor, Tensor, Tensor)", "batch_norm with its mean and reciprocal deviation")                       \
    X(0x0065, NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_NO_STATS, 0, npu__type_batch_norm,                            \
      "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "                  \
      "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",                                    \
      "the same without running statistics")                                                                 \
    X(0x0066, NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, 0, npu__type_batch_norm,                         \
      "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "             \
      "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",            \
      "the same with given statistics")                                                                      \
    X(0x0067, NPU_ATEN_NATIVE_BATCH_NORM_LEGIT_FUNCTIONAL, 0, npu__type_batch_norm,                          \
      "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "              \
      "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "             \
      "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",                                    \
      "the same with new running statistics")                                                                \
    X(0x0068, NPU_ATEN_NATIVE_BATCH_NORM, 0, npu__type_batch_norm,                                           \
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "                 \
      "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "                  \
      "Tensor)", "batch_norm with its mean and reciprocal deviation")                                        \
    X(0x0069, NPU_ATEN_INSTANCE_NORM, 0, npu__type_instance_norm,                                            \
      "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "             \
      "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> "                \
      "Tensor", "normalisation of each channel of each sample")                                              \
    X(0x006a, NPU_ATEN_RMS_NORM, 0, npu__type_layer_norm,                                                    \
      "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) "             \
      "-> Tensor", "x over the root of its mean square, over the trailing dims")                             \
    X(0x006b, NPU_ATEN_NATIVE_GROUP_NORM, 0, npu__type_native_group_norm,                                    \
      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "                   \
      "SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",                                       \
      "group_norm with mean and reciprocal deviation")                                                       \
    X(0x006c, NPU_ATEN_NATIVE_LAYER_NORM_BACKWARD, 0, npu__type_norm_backward,                               \
      "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "                \
      "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> "                     \
      "(Tensor, Tensor, Tensor)", "gradients of input, weight, bias; masked ones are empty")                 \
    X(0x006d, NPU_ATEN_NATIVE_GROUP_NORM_BACKWARD, 0, npu__type_norm_backward,                               \
      "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "                 \
      "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> "                  \
      "(Tensor, Tensor, Tensor)", "gradients of input, weight, bias; masked ones are empty")

/* ---- aten: pooling ---- */
#define NPU_IR_OPS_ATEN_POOLING(X)                                                                           \
    X(0x0080, NPU_ATEN_MAX_POOL2D, 0, npu__type_pool,                                                        \
      "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "  \
      "bool ceil_mode=False) -> Tensor", "maximum over windows; padding never wins")                         \
    X(0x0081, NPU_ATEN_AVG_POOL2D, 0, npu__type_pool,                                                        \
      "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, " \
      "bool count_include_pad=True, int? divisor_override=None) -> Tensor", "mean over windows")             \
    X(0x0082, NPU_ATEN_ADAPTIVE_AVG_POOL2D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",                                   \
      "mean over windows floor(i n / m) .. ceil((i + 1) n / m)")                                             \
    X(0x0083, NPU_ATEN_AVG_POOL1D, 0, npu__type_pool,                                                        \
      "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "                \
      "ceil_mode=False, bool count_include_pad=True) -> Tensor", "mean over windows")                        \
    X(0x0084, NPU_ATEN_AVG_POOL3D, 0, npu__type_pool,                                                        \
      "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "                \
      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",                 \
      "mean over windows")                                                                                   \
    X(0x0085, NPU_ATEN_ADAPTIVE_AVG_POOL1D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",                                      \
      "adaptive_avg_pool2d over one dim")                                                                    \
    X(0x0086, NPU_ATEN_ADAPTIVE_AVG_POOL3D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",                                   \
      "adaptive_avg_pool2d over three dims")                                                                 \
    X(0x0087, NPU_ATEN_ADAPTIVE_AVG_POOL2D_RAW, 0, npu__type_adaptive_pool,                                  \
      "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",                                  \
      "adaptive_avg_pool2d")                                                                                 \
    X(0x0088, NPU_ATEN_ADAPTIVE_AVG_POOL3D_RAW, 0, npu__type_adaptive_pool,                                  \
      "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",                                  \
      "adaptive_avg_pool3d")                                                                                 \
    X(0x0089, NPU_ATEN_MAX_POOL1D, 0, npu__type_pool,                                                        \
      "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "              \
      "dilation=1, bool ceil_mode=False) -> Tensor", "maximum over windows")                                 \
    X(0x008a, NPU_ATEN_MAX_POOL3D, 0, npu__type_pool,                                                        \
      "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "              \
      "dilation=1, bool ceil_mode=False) -> Tensor", "maximum over windows")                                 \
    X(0x008b, NPU_ATEN_MAX_POOL1D_WITH_INDICES, 0, npu__type_pool,                                           \
      "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "                   \
      "padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",                             \
      "max_pool1d and where in the row each maximum is")                                                     \
    X(0x008c, NPU_ATEN_MAX_POOL2D_WITH_INDICES, 0, npu__type_pool,                                           \
      "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "                   \
      "padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",                             \
      "max_pool2d and where in the plane each maximum is")                                                   \
    X(0x008d, NPU_ATEN_MAX_POOL3D_WITH_INDICES, 0, npu__type_pool,                                           \
      "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "                   \
      "padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",                             \
      "max_pool3d and where in the volume each maximum is")                                                  \
    X(0x008e, NPU_ATEN_ADAPTIVE_MAX_POOL1D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",                            \
      "maximum over adaptive windows, and its index")                                                        \
    X(0x008f, NPU_ATEN_ADAPTIVE_MAX_POOL2D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",                            \
      "maximum over adaptive windows, and its index")                                                        \
    X(0x0090, NPU_ATEN_ADAPTIVE_MAX_POOL3D, 0, npu__type_adaptive_pool,                                      \
      "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",                            \
      "maximum over adaptive windows, and its index")                                                        \
    X(0x0091, NPU_ATEN_AVG_POOL2D_BACKWARD, 0, npu__type_pool_backward,                                      \
      "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "             \
      "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",            \
      "gradient of avg_pool2d")                                                                              \
    X(0x0092, NPU_ATEN_MAX_POOL2D_WITH_INDICES_BACKWARD, 0, npu__type_pool_backward,                         \
      "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "               \
      "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> "                  \
      "Tensor", "gradient of max_pool2d, sent to the indices")                                               \
    X(0x0093, NPU_ATEN_ADAPTIVE_AVG_POOL2D_BACKWARD, 0, npu__type_pool_backward,                             \
      "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",                            \
      "gradient of adaptive_avg_pool2d")

/* ---- aten: elementwise ---- */
#define NPU_IR_OPS_ATEN_ELEMENTWISE(X)                                                                       \
    X(0x00a0, NPU_ATEN_ADD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                                 \
      "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "self + alpha other")            \
    X(0x00a1, NPU_ATEN_ADD_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                          \
      "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "self + alpha other")               \
    X(0x00a2, NPU_ATEN_SUB, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,                          \
      "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "self - alpha other")            \
    X(0x00a3, NPU_ATEN_SUB_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,                   \
      "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "self - alpha other")               \
    X(0x00a4, NPU_ATEN_MUL, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                                 \
      "mul.Tensor(Tensor self, Tensor other) -> Tensor", "product")                                          \
    X(0x00a5, NPU_ATEN_MUL_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                          \
      "mul.Scalar(Tensor self, Scalar other) -> Tensor", "product with a number")                            \
    X(0x00a6, NPU_ATEN_DIV, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,                                 \
      "div.Tensor(Tensor self, Tensor other) -> Tensor", "true division")                                    \
    X(0x00a7, NPU_ATEN_DIV_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,                          \
      "div.Scalar(Tensor self, Scalar other) -> Tensor", "true division by a number")                        \
    X(0x00a8, NPU_ATEN_DIV_MODE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,                            \
      "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",                         \
      "division, rounded 'floor' or 'trunc', or true division for None")                                     \
    X(0x00a9, NPU_ATEN_DIV_SCALAR_MODE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,                     \
      "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", "division by a number, rounded") \
    X(0x00aa, NPU_ATEN_POW, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_power,                                  \
      "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", "power")                                  \
    X(0x00ab, NPU_ATEN_POW_TENSOR_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_power,                    \
      "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", "power with a number as exponent")        \
    X(0x00ac, NPU_ATEN_POW_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_power,                           \
      "pow.Scalar(Scalar self, Tensor exponent) -> Tensor", "power with a number as base")                   \
    X(0x00ad, NPU_ATEN_SQRT, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "sqrt(Tensor self) -> Tensor", "square root")                                                          \
    X(0x00ae, NPU_ATEN_RSQRT, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "rsqrt(Tensor self) -> Tensor", "1 / square root")                                                     \
    X(0x00af, NPU_ATEN_NEG, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                            \
      "neg(Tensor self) -> Tensor", "-x")                                                                    \
    X(0x00b0, NPU_ATEN_ABS, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                            \
      "abs(Tensor self) -> Tensor", "absolute value")                                                        \
    X(0x00b1, NPU_ATEN_EXP, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "exp(Tensor self) -> Tensor", "e to the x")                                                            \
    X(0x00b2, NPU_ATEN_LOG, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "log(Tensor self) -> Tensor", "natural logarithm")                                                     \
    X(0x00b3, NPU_ATEN_CLAMP, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                                \
      "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", "min(max(x, min), max)")           \
    X(0x00b4, NPU_ATEN_CLAMP_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                         \
      "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", "min(max(x, min), max), broadcasting") \
    X(0x00b5, NPU_ATEN_MAXIMUM, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                             \
      "maximum(Tensor self, Tensor other) -> Tensor", "larger of two; NaN wins")                             \
    X(0x00b6, NPU_ATEN_MINIMUM, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                             \
      "minimum(Tensor self, Tensor other) -> Tensor", "smaller of two; NaN wins")                            \
    X(0x00b7, NPU_ATEN_ACOS, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "acos(Tensor self) -> Tensor", "arc cosine")                                                           \
    X(0x00b8, NPU_ATEN_ACOSH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "acosh(Tensor self) -> Tensor", "inverse hyperbolic cosine")                                           \
    X(0x00b9, NPU_ATEN_ASIN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "asin(Tensor self) -> Tensor", "arc sine")                                                             \
    X(0x00ba, NPU_ATEN_ASINH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "asinh(Tensor self) -> Tensor", "inverse hyperbolic sine")                                             \
    X(0x00bb, NPU_ATEN_ATAN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "atan(Tensor self) -> Tensor", "arc tangent")                                                          \
    X(0x00bc, NPU_ATEN_ATANH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "atanh(Tensor self) -> Tensor", "inverse hyperbolic tangent")                                          \
    X(0x00bd, NPU_ATEN_COS, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "cos(Tensor self) -> Tensor", "cosine")                                                                \
    X(0x00be, NPU_ATEN_COSH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "cosh(Tensor self) -> Tensor", "hyperbolic cosine")                                                    \
    X(0x00bf, NPU_ATEN_SIN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "sin(Tensor self) -> Tensor", "sine")                                                                  \
    X(0x00c0, NPU_ATEN_SINH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "sinh(Tensor self) -> Tensor", "hyperbolic sine")                                                      \
    X(0x00c1, NPU_ATEN_TAN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "tan(Tensor self) -> Tensor", "tangent")                                                               \
    X(0x00c2, NPU_ATEN_ERF, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                          \
      "erf(Tensor self) -> Tensor", "error function")                                                        \
    X(0x00c3, NPU_ATEN_EXPM1, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "expm1(Tensor self) -> Tensor", "e to the x, less 1")                                                  \
    X(0x00c4, NPU_ATEN_LOG10, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "log10(Tensor self) -> Tensor", "logarithm to base 10")                                                \
    X(0x00c5, NPU_ATEN_LOG1P, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                        \
      "log1p(Tensor self) -> Tensor", "logarithm of 1 + x")                                                  \
    X(0x00c6, NPU_ATEN_LOG2, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "log2(Tensor self) -> Tensor", "logarithm to base 2")                                                  \
    X(0x00c7, NPU_ATEN_RECIPROCAL, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                   \
      "reciprocal(Tensor self) -> Tensor", "1 / x")                                                          \
    X(0x00c8, NPU_ATEN_ATAN2, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,                               \
      "atan2(Tensor self, Tensor other) -> Tensor", "angle of the point (other, self)")                      \
    X(0x00c9, NPU_ATEN_CEIL, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                           \
      "ceil(Tensor self) -> Tensor", "next integer above")                                                   \
    X(0x00ca, NPU_ATEN_FLOOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                          \
      "floor(Tensor self) -> Tensor", "next integer below")                                                  \
    X(0x00cb, NPU_ATEN_ROUND, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                          \
      "round(Tensor self) -> Tensor", "nearest integer, ties to even")                                       \
    X(0x00cc, NPU_ATEN_TRUNC, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                          \
      "trunc(Tensor self) -> Tensor", "integer part")                                                        \
    X(0x00cd, NPU_ATEN_SIGN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_real,                             \
      "sign(Tensor self) -> Tensor", "-1, 0 or 1")                                                           \
    X(0x00ce, NPU_ATEN_FMOD_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,                     \
      "fmod.Scalar(Tensor self, Scalar other) -> Tensor",                                                    \
      "rest of truncated division by a number")                                                              \
    X(0x00cf, NPU_ATEN_FMOD_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,                     \
      "fmod.Tensor(Tensor self, Tensor other) -> Tensor", "rest of truncated division")                      \
    X(0x00d0, NPU_ATEN_REMAINDER_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,                \
      "remainder.Scalar(Tensor self, Scalar other) -> Tensor",                                               \
      "rest of floor division by a number")                                                                  \
    X(0x00d1, NPU_ATEN_REMAINDER_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,                \
      "remainder.Tensor(Tensor self, Tensor other) -> Tensor", "rest of floor division")                     \
    X(0x00d2, NPU_ATEN_CLAMP_MAX, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                            \
      "clamp_max(Tensor self, Scalar max) -> Tensor", "min(x, max)")                                         \
    X(0x00d3, NPU_ATEN_CLAMP_MAX_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                     \
      "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", "min(x, max), broadcasting")                    \
    X(0x00d4, NPU_ATEN_CLAMP_MIN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                            \
      "clamp_min(Tensor self, Scalar min) -> Tensor", "max(x, min)")                                         \
    X(0x00d5, NPU_ATEN_CLAMP_MIN_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_clamp,                     \
      "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", "max(x, min), broadcasting")                    \
    X(0x00d6, NPU_ATEN_FLOOR_DIVIDE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,                    \
      "floor_divide(Tensor self, Tensor other) -> Tensor", "floor of the quotient")                          \
    X(0x00d7, NPU_ATEN_FLOOR_DIVIDE_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_arithmetic,             \
      "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",                                            \
      "floor of the quotient with a number")                                                                 \
    X(0x00d8, NPU_ATEN_RSUB_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,                  \
      "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "number - alpha self")             \
    X(0x00d9, NPU_ATEN_RSUB_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,                  \
      "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",                                 \
      "other - alpha self")                                                                                  \
    X(0x00da, NPU_ATEN_ERFC, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "erfc(Tensor self) -> Tensor", "1 - error function")                                                   \
    X(0x00db, NPU_ATEN_EXP2, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                         \
      "exp2(Tensor self) -> Tensor", "2 to the x")                                                           \
    X(0x00dc, NPU_ATEN_SQUARE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_square,                              \
      "square(Tensor self) -> Tensor", "x x; bool gives i64")                                                \
    X(0x00dd, NPU_ATEN_HARDSIGMOID, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                     \
      "hardsigmoid(Tensor self) -> Tensor", "clamp(x + 3, 0, 6) / 6")                                        \
    X(0x00de, NPU_ATEN_CELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_celu,                                  \
      "celu(Tensor self, Scalar alpha=1.0) -> Tensor",                                                       \
      "x where x > 0, else alpha expm1(x / alpha)")                                                          \
    X(0x00df, NPU_ATEN_SELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                            \
      "selu(Tensor self) -> Tensor", "elu with the constants of self-normalising networks")                  \
    X(0x00e0, NPU_ATEN_MISH, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                            \
      "mish(Tensor self) -> Tensor", "x tanh(softplus(x))")                                                  \
    X(0x00e1, NPU_ATEN_SOFTPLUS, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                        \
      "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",                                 \
      "log(1 + exp(beta x)) / beta; x above the threshold")                                                  \
    X(0x00e2, NPU_ATEN_RELU6, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,                          \
      "relu6(Tensor self) -> Tensor", "clamp(x, 0, 6)")                                                      \
    X(0x00e3, NPU_ATEN_LOG_SIGMOID, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                     \
      "log_sigmoid(Tensor self) -> Tensor", "logarithm of the sigmoid")                                      \
    X(0x00e4, NPU_ATEN_MASKED_FILL_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_masked_fill,             \
      "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",                                \
      "number where mask, else self")                                                                        \
    X(0x00e5, NPU_ATEN_MASKED_FILL_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_masked_fill,             \
      "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",                                \
      "0-d value where mask, else self")                                                                     \
    X(0x00e6, NPU_ATEN_PRELU, 0, npu__type_prelu,                                                            \
      "prelu(Tensor self, Tensor weight) -> Tensor",                                                         \
      "x where x > 0, else weight of the channel times x")                                                   \
    X(0x00e7, NPU_ATEN_GLU, 0, npu__type_glu,                                                                \
      "glu(Tensor self, int dim=-1) -> Tensor",                                                              \
      "first half along a dim times the sigmoid of the second")

/* ---- aten: comparison and selection ---- */
#define NPU_IR_OPS_ATEN_COMPARISON(X)                                                                        \
    X(0x0100, NPU_ATEN_EQ, NPU_ELEMENTWISE, npu__type_compare, "eq.Tensor(Tensor self, Tensor other) -> Tensor", "==") \
    X(0x0101, NPU_ATEN_EQ_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "eq.Scalar(Tensor self, Scalar other) -> Tensor", "==") \
    X(0x0102, NPU_ATEN_NE, NPU_ELEMENTWISE, npu__type_compare, "ne.Tensor(Tensor self, Tensor other) -> Tensor", "!=") \
    X(0x0103, NPU_ATEN_NE_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "ne.Scalar(Tensor self, Scalar other) -> Tensor", "!=") \
    X(0x0104, NPU_ATEN_LT, NPU_ELEMENTWISE, npu__type_compare, "lt.Tensor(Tensor self, Tensor other) -> Tensor", "<") \
    X(0x0105, NPU_ATEN_LT_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "lt.Scalar(Tensor self, Scalar other) -> Tensor", "<") \
    X(0x0106, NPU_ATEN_LE, NPU_ELEMENTWISE, npu__type_compare, "le.Tensor(Tensor self, Tensor other) -> Tensor", "<=") \
    X(0x0107, NPU_ATEN_LE_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "le.Scalar(Tensor self, Scalar other) -> Tensor", "<=") \
    X(0x0108, NPU_ATEN_GT, NPU_ELEMENTWISE, npu__type_compare, "gt.Tensor(Tensor self, Tensor other) -> Tensor", ">") \
    X(0x0109, NPU_ATEN_GT_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "gt.Scalar(Tensor self, Scalar other) -> Tensor", ">") \
    X(0x010a, NPU_ATEN_GE, NPU_ELEMENTWISE, npu__type_compare, "ge.Tensor(Tensor self, Tensor other) -> Tensor", ">=") \
    X(0x010b, NPU_ATEN_GE_SCALAR, NPU_ELEMENTWISE, npu__type_compare, "ge.Scalar(Tensor self, Scalar other) -> Tensor", ">=") \
    X(0x010c, NPU_ATEN_WHERE, NPU_ELEMENTWISE, npu__type_where,                                              \
      "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", "self where condition, else other") \
    X(0x010d, NPU_ATEN_WHERE_SCALAR_SELF, NPU_ELEMENTWISE, npu__type_where,                                  \
      "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", "number where condition, else other") \
    X(0x010e, NPU_ATEN_WHERE_SCALAR_OTHER, NPU_ELEMENTWISE, npu__type_where,                                 \
      "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", "self where condition, else number") \
    X(0x010f, NPU_ATEN_WHERE_SCALAR, NPU_ELEMENTWISE, npu__type_where,                                       \
      "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", "one of two numbers")           \
    X(0x0110, NPU_ATEN_WHERE_INDICES, NPU_DATA | NPU_VARIADIC, npu__type_where_indices,                      \
      "where(Tensor condition) -> Tensor[]", "indices of the true elements, one tensor per dim")

/* ---- aten: shape ---- */
#define NPU_IR_OPS_ATEN_SHAPE(X)                                                                             \
    X(0x0140, NPU_ATEN_VIEW, NPU_VIEW, npu__type_reshape, "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "new dims") \
    X(0x0141, NPU_ATEN_RESHAPE, NPU_VIEW, npu__type_reshape,                                                 \
      "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", "new dims")                                    \
    X(0x0142, NPU_ATEN_PERMUTE, 0, npu__type_permute,                                                        \
      "permute(Tensor(a) self, int[] dims) -> Tensor(a)", "dims reordered")                                  \
    X(0x0143, NPU_ATEN_TRANSPOSE, 0, npu__type_transpose,                                                    \
      "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", "two dims swapped")                  \
    X(0x0144, NPU_ATEN_FLATTEN, NPU_VIEW, npu__type_flatten,                                                 \
      "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", "dims start..end merged") \
    X(0x0145, NPU_ATEN_SQUEEZE, NPU_VIEW, npu__type_squeeze, "squeeze(Tensor(a) self) -> Tensor(a)", "dims of 1 removed") \
    X(0x0146, NPU_ATEN_SQUEEZE_DIM, NPU_VIEW, npu__type_squeeze,                                             \
      "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", "one dim removed if it is 1")                     \
    X(0x0147, NPU_ATEN_SQUEEZE_DIMS, NPU_VIEW, npu__type_squeeze,                                            \
      "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", "listed dims removed if they are 1")           \
    X(0x0148, NPU_ATEN_UNSQUEEZE, NPU_VIEW, npu__type_unsqueeze,                                             \
      "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", "a dim of 1 inserted")                              \
    X(0x0149, NPU_ATEN_EXPAND, 0, npu__type_expand,                                                          \
      "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", "dims of 1 repeated; -1 keeps a dim") \
    X(0x014a, NPU_ATEN_REPEAT, 0, npu__type_repeat, "repeat(Tensor self, SymInt[] repeats) -> Tensor", "tiled copies") \
    X(0x014b, NPU_ATEN_CAT, 0, npu__type_cat, "cat(Tensor[] tensors, int dim=0) -> Tensor", "joined along a dim") \
    X(0x014c, NPU_ATEN_STACK, 0, npu__type_stack, "stack(Tensor[] tensors, int dim=0) -> Tensor", "joined along a new dim") \
    X(0x014d, NPU_ATEN_SPLIT, NPU_SLICE | NPU_VARIADIC, npu__type_split,                                     \
      "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", "pieces of one size") \
    X(0x014e, NPU_ATEN_SPLIT_SIZES, NPU_SLICE | NPU_VARIADIC, npu__type_split,                               \
      "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", "pieces of given sizes") \
    X(0x014f, NPU_ATEN_CHUNK, NPU_SLICE | NPU_VARIADIC, npu__type_split,                                     \
      "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", "about equal pieces")              \
    X(0x0150, NPU_ATEN_SELECT, NPU_SLICE, npu__type_select,                                                  \
      "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", "one index of a dim")                \
    X(0x0151, NPU_ATEN_SLICE, NPU_SLICE, npu__type_slice,                                                    \
      "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", \
      "start..end by step; bounds are clamped")                                                              \
    X(0x0152, NPU_ATEN_SPLIT_WITH_SIZES, NPU_SLICE | NPU_VARIADIC, npu__type_split,                          \
      "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> "                           \
      "Tensor(a)[]", "pieces of given sizes")                                                                \
    X(0x0153, NPU_ATEN_UNBIND, NPU_VARIADIC, npu__type_unbind,                                               \
      "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",                                           \
      "one piece per index of a dim, without the dim")                                                       \
    X(0x0154, NPU_ATEN_TENSOR_SPLIT, NPU_SLICE | NPU_VARIADIC, npu__type_tensor_split,                       \
      "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> "                           \
      "Tensor(a)[]", "pieces of sizes that differ by one")                                                   \
    X(0x0155, NPU_ATEN_TENSOR_SPLIT_INDICES, NPU_VARIADIC, npu__type_tensor_split,                           \
      "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> "                           \
      "Tensor(a)[]", "pieces between indices")                                                               \
    X(0x0156, NPU_ATEN_TENSOR_SPLIT_TENSOR, NPU_VARIADIC | NPU_DATA, npu__type_tensor_split,                 \
      "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "                                 \
      "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",                                               \
      "tensor_split by the elements of a constant")                                                          \
    X(0x0157, NPU_ATEN_T, 0, npu__type_matrix_transpose,                                                     \
      "t(Tensor(a) self) -> Tensor(a)", "matrix transposed")                                                 \
    X(0x0158, NPU_ATEN_MATRIX_TRANSPOSE, 0, npu__type_matrix_transpose,                                      \
      "mT(Tensor(a) self) -> Tensor(a)", "last two dims swapped")                                            \
    X(0x0159, NPU_ATEN_MATRIX_ADJOINT, 0, npu__type_matrix_transpose,                                        \
      "mH(Tensor(a) self) -> Tensor(a)", "last two dims swapped")                                            \
    X(0x015a, NPU_ATEN_MOVEDIM, 0, npu__type_movedim,                                                        \
      "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", "one dim moved")              \
    X(0x015b, NPU_ATEN_MOVEDIM_LIST, 0, npu__type_movedim,                                                   \
      "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",                       \
      "dims moved")                                                                                          \
    X(0x015c, NPU_ATEN_BROADCAST_TO, 0, npu__type_expand,                                                    \
      "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",                                            \
      "dims of 1 repeated; -1 keeps a dim")                                                                  \
    X(0x015d, NPU_ATEN_EXPAND_AS, 0, npu__type_expand_as,                                                    \
      "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", "expand to the dims of other")                 \
    X(0x015e, NPU_ATEN_VIEW_AS, NPU_VIEW, npu__type_view_as,                                                 \
      "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", "the dims of other")                             \
    X(0x015f, NPU_ATEN_UNFLATTEN, NPU_VIEW, npu__type_unflatten,                                             \
      "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",                                 \
      "one dim to several")                                                                                  \
    X(0x0160, NPU_ATEN_NARROW, NPU_SLICE, npu__type_narrow,                                                  \
      "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",                           \
      "length indices of a dim from start on")                                                               \
    X(0x0161, NPU_ATEN_NARROW_TENSOR, 0, npu__type_narrow,                                                   \
      "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",                    \
      "narrow that starts where a tensor says")                                                              \
    X(0x0162, NPU_ATEN_TILE, 0, npu__type_repeat,                                                            \
      "tile(Tensor self, SymInt[] dims) -> Tensor", "tiled copies")                                          \
    X(0x0163, NPU_ATEN_ROLL, 0, npu__type_roll,                                                              \
      "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",                                       \
      "elements moved along dims, round the end")                                                            \
    X(0x0164, NPU_ATEN_FLIP, 0, npu__type_flip,                                                              \
      "flip(Tensor self, int[] dims) -> Tensor", "dims in reverse order")                                    \
    X(0x0165, NPU_ATEN_DIAGONAL, 0, npu__type_diagonal,                                                      \
      "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",                         \
      "a diagonal of two dims as last dim")                                                                  \
    X(0x0166, NPU_ATEN_UNFOLD, 0, npu__type_unfold,                                                          \
      "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",                              \
      "windows of a dim as last dim")                                                                        \
    X(0x0167, NPU_ATEN_AS_STRIDED, 0, npu__type_as_strided,                                                  \
      "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "                                  \
      "storage_offset=None) -> Tensor(a)", "elements at strides of the dense operand")                       \
    X(0x0168, NPU_ATEN_PIXEL_SHUFFLE, 0, npu__type_pixel_shuffle,                                            \
      "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",                                            \
      "channels to squares of pixels")                                                                       \
    X(0x0169, NPU_ATEN_MESHGRID, NPU_VARIADIC, npu__type_meshgrid,                                           \
      "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",                                    \
      "vectors expanded to a grid")                                                                          \
    X(0x016a, NPU_ATEN_REPEAT_INTERLEAVE_INT, 0, npu__type_repeat_interleave,                                \
      "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "                   \
      "output_size=None) -> Tensor", "each element repeated in place")                                       \
    X(0x016b, NPU_ATEN_RESHAPE_ALIAS, NPU_VIEW, npu__type_reshape,                                           \
      "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", "new dims")             \
    X(0x016c, NPU_ATEN_UNSAFE_VIEW, NPU_VIEW, npu__type_reshape,                                             \
      "_unsafe_view(Tensor self, SymInt[] size) -> Tensor", "new dims")                                      \
    X(0x016d, NPU_ATEN_RAVEL, NPU_VIEW, npu__type_flatten,                                                   \
      "ravel(Tensor(a) self) -> Tensor(a)", "one dim")                                                       \
    X(0x016e, NPU_ATEN_RESHAPE_AS, NPU_VIEW, npu__type_view_as,                                              \
      "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", "the dims of other")                          \
    X(0x016f, NPU_ATEN_NARROW_COPY, NPU_SLICE, npu__type_narrow,                                             \
      "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",                            \
      "length indices of a dim from start on")                                                               \
    X(0x0170, NPU_ATEN_UNSAFE_CHUNK, NPU_SLICE | NPU_VARIADIC, npu__type_split,                              \
      "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", "about equal pieces")                  \
    X(0x0171, NPU_ATEN_UNSAFE_SPLIT, NPU_SLICE | NPU_VARIADIC, npu__type_split,                              \
      "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",                          \
      "pieces of one size")                                                                                  \
    X(0x0172, NPU_ATEN_PIXEL_UNSHUFFLE, 0, npu__type_pixel_shuffle,                                          \
      "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",                                        \
      "squares of pixels to channels")                                                                       \
    X(0x0173, NPU_ATEN_CHANNEL_SHUFFLE, 0, npu__type_channel_shuffle,                                        \
      "channel_shuffle(Tensor self, SymInt groups) -> Tensor", "channels of groups interleaved")             \
    X(0x0174, NPU_ATEN_FLIPLR, 0, npu__type_flip,                                                            \
      "fliplr(Tensor self) -> Tensor", "dim 1 in reverse order")                                             \
    X(0x0175, NPU_ATEN_FLIPUD, 0, npu__type_flip,                                                            \
      "flipud(Tensor self) -> Tensor", "dim 0 in reverse order")                                             \
    X(0x0176, NPU_ATEN_ROT90, 0, npu__type_rot90,                                                            \
      "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", "two dims turned by quarters")

/* ---- aten: reduction ---- */
#define NPU_IR_OPS_ATEN_REDUCTION(X)                                                                         \
    X(0x0180, NPU_ATEN_MEAN, 0, npu__type_mean, "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", "mean of all") \
    X(0x0181, NPU_ATEN_MEAN_DIM, 0, npu__type_mean,                                                          \
      "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "mean over dims") \
    X(0x0182, NPU_ATEN_SUM, 0, npu__type_sum, "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", "sum of all") \
    X(0x0183, NPU_ATEN_SUM_DIM, 0, npu__type_sum,                                                            \
      "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",  \
      "sum over dims; integers sum in i64")                                                                  \
    X(0x0184, NPU_ATEN_AMAX, 0, npu__type_reduce_same,                                                       \
      "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "maximum over dims; NaN wins")       \
    X(0x0185, NPU_ATEN_AMIN, 0, npu__type_reduce_same,                                                       \
      "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "minimum over dims; NaN wins")       \
    X(0x0186, NPU_ATEN_MAX, 0, npu__type_reduce_same, "max(Tensor self) -> Tensor", "maximum of all; NaN wins") \
    X(0x0187, NPU_ATEN_MAX_DIM, 0, npu__type_reduce_index,                                                   \
      "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",                \
      "maximum along a dim and the index of the first one")                                                  \
    X(0x0188, NPU_ATEN_ARGMAX, 0, npu__type_arg_reduce,                                                      \
      "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "index of the first maximum, i64") \
    X(0x0189, NPU_ATEN_SOFTMAX, NPU_INPLACE, npu__type_softmax,                                              \
      "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "exp(x - max) over its sum along a dim") \
    X(0x018a, NPU_ATEN_LOG_SOFTMAX, NPU_INPLACE, npu__type_softmax,                                          \
      "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "logarithm of softmax")     \
    X(0x018b, NPU_ATEN_ANY, 0, npu__type_any,                                                                \
      "any(Tensor self) -> Tensor", "whether any element is not zero")                                       \
    X(0x018c, NPU_ATEN_ANY_DIM, 0, npu__type_any,                                                            \
      "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",                                         \
      "whether any element is not zero")                                                                     \
    X(0x018d, NPU_ATEN_ANY_DIMS, 0, npu__type_any,                                                           \
      "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",                                \
      "whether any element is not zero; no dims reduce none")                                                \
    X(0x018e, NPU_ATEN_ALL, 0, npu__type_any,                                                                \
      "all(Tensor self) -> Tensor", "whether no element is zero")                                            \
    X(0x018f, NPU_ATEN_ALL_DIM, 0, npu__type_any,                                                            \
      "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",                                         \
      "whether no element is zero")                                                                          \
    X(0x0190, NPU_ATEN_ALL_DIMS, 0, npu__type_any,                                                           \
      "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",                                \
      "whether no element is zero; no dims reduce none")                                                     \
    X(0x0191, NPU_ATEN_ARGMIN, 0, npu__type_arg_reduce,                                                      \
      "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",                                    \
      "index of the first minimum, i64")                                                                     \
    X(0x0192, NPU_ATEN_MIN, 0, npu__type_reduce_same,                                                        \
      "min(Tensor self) -> Tensor", "minimum of all; NaN wins")                                              \
    X(0x0193, NPU_ATEN_MIN_DIM, 0, npu__type_reduce_index,                                                   \
      "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",                \
      "minimum along a dim and the index of the first one")                                                  \
    X(0x0194, NPU_ATEN_PROD, 0, npu__type_sum,                                                               \
      "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", "product of all")                            \
    X(0x0195, NPU_ATEN_PROD_DIM_INT, 0, npu__type_sum,                                                       \
      "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> "                \
      "Tensor", "product along a dim; integers multiply in i64")                                             \
    X(0x0196, NPU_ATEN_VAR, 0, npu__type_variance,                                                           \
      "var(Tensor self, bool unbiased=True) -> Tensor", "variance of all")                                   \
    X(0x0197, NPU_ATEN_VAR_DIM, 0, npu__type_variance,                                                       \
      "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",                 \
      "variance over dims")                                                                                  \
    X(0x0198, NPU_ATEN_VAR_CORRECTION, 0, npu__type_variance,                                                \
      "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "                      \
      "keepdim=False) -> Tensor", "squared deviations over count - correction")                              \
    X(0x0199, NPU_ATEN_STD, 0, npu__type_variance,                                                           \
      "std(Tensor self, bool unbiased=True) -> Tensor", "standard deviation of all")                         \
    X(0x019a, NPU_ATEN_STD_DIM, 0, npu__type_variance,                                                       \
      "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",                 \
      "standard deviation over dims")                                                                        \
    X(0x019b, NPU_ATEN_STD_CORRECTION, 0, npu__type_variance,                                                \
      "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "                      \
      "keepdim=False) -> Tensor", "root of var.correction")                                                  \
    X(0x019c, NPU_ATEN_VAR_MEAN, 0, npu__type_variance,                                                      \
      "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",                                       \
      "variance and mean of all")                                                                            \
    X(0x019d, NPU_ATEN_VAR_MEAN_DIM, 0, npu__type_variance,                                                  \
      "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "                   \
      "(Tensor, Tensor)", "variance and mean over dims")                                                     \
    X(0x019e, NPU_ATEN_VAR_MEAN_CORRECTION, 0, npu__type_variance,                                           \
      "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "                 \
      "keepdim=False) -> (Tensor, Tensor)", "var.correction and the mean")                                   \
    X(0x019f, NPU_ATEN_STD_MEAN, 0, npu__type_variance,                                                      \
      "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",                                       \
      "standard deviation and mean of all")                                                                  \
    X(0x01a0, NPU_ATEN_STD_MEAN_DIM, 0, npu__type_variance,                                                  \
      "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "                   \
      "(Tensor, Tensor)", "standard deviation and mean over dims")                                           \
    X(0x01a1, NPU_ATEN_STD_MEAN_CORRECTION, 0, npu__type_variance,                                           \
      "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "                 \
      "keepdim=False) -> (Tensor, Tensor)", "std.correction and the mean")                                   \
    X(0x01a2, NPU_ATEN_LOGSUMEXP, 0, npu__type_logsumexp,                                                    \
      "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",                                    \
      "logarithm of the sum of exponentials")                                                                \
    X(0x01a3, NPU_ATEN_LINALG_VECTOR_NORM, 0, npu__type_norm,                                                \
      "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "              \
      "ScalarType? dtype=None) -> Tensor", "p-norm over dims; inf and -inf are the extremes")                \
    X(0x01a4, NPU_ATEN_NORM_SCALAR, 0, npu__type_norm,                                                       \
      "norm.Scalar(Tensor self, Scalar p=2) -> Tensor", "p-norm of all")                                     \
    X(0x01a5, NPU_ATEN_NORM_SCALAROPT_DIM, 0, npu__type_norm,                                                \
      "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",                \
      "p-norm over dims")                                                                                    \
    X(0x01a6, NPU_ATEN_FROBENIUS_NORM_DIM, 0, npu__type_norm,                                                \
      "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",                           \
      "2-norm over dims")                                                                                    \
    X(0x01a7, NPU_ATEN_SOFTMAX_RAW, NPU_INPLACE, npu__type_softmax,                                          \
      "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",                                        \
      "softmax.int; half_to_float gives f32 for f16")                                                        \
    X(0x01a8, NPU_ATEN_LOG_SOFTMAX_RAW, NPU_INPLACE, npu__type_softmax,                                      \
      "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",                                    \
      "log_softmax.int; half_to_float gives f32 for f16")                                                    \
    X(0x01a9, NPU_ATEN_SAFE_SOFTMAX, NPU_INPLACE, npu__type_softmax,                                         \
      "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",                               \
      "softmax.int, 0 where all of x is -inf")                                                               \
    X(0x01aa, NPU_ATEN_NANSUM, 0, npu__type_sum,                                                             \
      "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "             \
      "Tensor", "sum over dims, NaN counts as 0")                                                            \
    X(0x01ab, NPU_ATEN_NANMEAN, 0, npu__type_mean,                                                           \
      "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "               \
      "-> Tensor", "mean over dims of what is not NaN")                                                      \
    X(0x01ac, NPU_ATEN_COUNT_NONZERO, 0, npu__type_count,                                                    \
      "count_nonzero(Tensor self, int? dim=None) -> Tensor", "elements that are not zero")                   \
    X(0x01ad, NPU_ATEN_COUNT_NONZERO_DIM_INTLIST, 0, npu__type_count,                                        \
      "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",                                         \
      "elements that are not zero, over dims")                                                               \
    X(0x01ae, NPU_ATEN_AMINMAX, 0, npu__type_aminmax,                                                        \
      "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",              \
      "minimum and maximum; NaN wins") \
    X(0x01af, NPU_ATEN_SUM_TO_SIZE, 0, npu__type_sum_to_size,                                                \
      "sum_to_size(Tensor self, SymInt[] size) -> Tensor", "sum over the dims that broadcasting added")      \
    X(0x01b0, NPU_ATEN_TRACE, 0, npu__type_trace,                                                            \
      "trace(Tensor self) -> Tensor", "sum of the diagonal")

/* ---- aten: attention and lookup ---- */
#define NPU_IR_OPS_ATEN_LOOKUP(X)                                                                            \
    X(0x01c0, NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION, 0, npu__type_attention,                                 \
      "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "        \
      "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",   \
      "softmax(query key' scale + mask) value, the score matrix never stored")                               \
    X(0x01c1, NPU_ATEN_EMBEDDING, 0, npu__type_embedding,                                                    \
      "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "      \
      "bool sparse=False) -> Tensor", "rows of weight")                                                      \
    X(0x01c2, NPU_ATEN_GATHER, 0, npu__type_gather,                                                          \
      "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", "elements picked along a dim")

/* ---- aten: picking and placing elements ---- */
#define NPU_IR_OPS_ATEN_INDEXING(X)                                                               \
    X(0x0400, NPU_ATEN_INDEX, NPU_DATA, npu__type_index,                                          \
      "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",                                   \
      "elements at indices that broadcast; holes keep a dim")                                     \
    X(0x0401, NPU_ATEN_UNSAFE_INDEX, NPU_DATA, npu__type_index,                                   \
      "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", "index")                  \
    X(0x0402, NPU_ATEN_INDEX_PUT, 0, npu__type_index_put,                                         \
      "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "       \
      "Tensor", "values written or added where indices say")                                      \
    X(0x0403, NPU_ATEN_UNSAFE_INDEX_PUT, 0, npu__type_index_put,                                  \
      "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool "                    \
      "accumulate=False) -> Tensor", "index_put")                                                 \
    X(0x0404, NPU_ATEN_INDEX_SELECT, 0, npu__type_index_select,                                   \
      "index_select(Tensor self, int dim, Tensor index) -> Tensor", "indices of a dim")           \
    X(0x0405, NPU_ATEN_TAKE, 0, npu__type_take,                                                   \
      "take(Tensor self, Tensor index) -> Tensor", "elements by their number")                    \
    X(0x0406, NPU_ATEN_TAKE_ALONG_DIM, 0, npu__type_take_along_dim,                               \
      "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",                     \
      "gather that broadcasts")                                                                   \
    X(0x0407, NPU_ATEN_SCATTER, 0, npu__type_scatter,                                             \
      "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",                    \
      "src written at indices of a dim")                                                          \
    X(0x0408, NPU_ATEN_SCATTER_VALUE, 0, npu__type_scatter,                                       \
      "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",                \
      "a number written at indices of a dim")                                                     \
    X(0x0409, NPU_ATEN_SCATTER_REDUCE_WORD, 0, npu__type_scatter,                                 \
      "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> "         \
      "Tensor", "src added or multiplied at indices of a dim")                                    \
    X(0x040a, NPU_ATEN_SCATTER_VALUE_REDUCE, 0, npu__type_scatter,                                \
      "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str "            \
      "reduce) -> Tensor", "a number added or multiplied at indices of a dim")                    \
    X(0x040b, NPU_ATEN_SCATTER_ADD, 0, npu__type_scatter,                                         \
      "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",                    \
      "src added at indices of a dim")                                                            \
    X(0x040c, NPU_ATEN_SCATTER_REDUCE, 0, npu__type_scatter,                                      \
      "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "        \
      "bool include_self=True) -> Tensor", "src reduced at indices of a dim")                     \
    X(0x040d, NPU_ATEN_INDEX_ADD, 0, npu__type_index_slices,                                      \
      "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "       \
      "Tensor", "slices added at indices of a dim")                                               \
    X(0x040e, NPU_ATEN_INDEX_COPY, 0, npu__type_index_slices,                                     \
      "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",                  \
      "slices written at indices of a dim")                                                       \
    X(0x040f, NPU_ATEN_INDEX_FILL, 0, npu__type_index_fill,                                       \
      "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",        \
      "a number written at indices of a dim")                                                     \
    X(0x0410, NPU_ATEN_INDEX_REDUCE, 0, npu__type_index_slices,                                   \
      "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "      \
      "include_self=True) -> Tensor", "slices reduced at indices of a dim")                       \
    X(0x0411, NPU_ATEN_PUT, 0, npu__type_put,                                                     \
      "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",           \
      "elements written or added by their number")                                                \
    X(0x0412, NPU_ATEN_SELECT_SCATTER, 0, npu__type_select_scatter,                               \
      "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",                 \
      "one index of a dim replaced")                                                              \
    X(0x0413, NPU_ATEN_SLICE_SCATTER, 0, npu__type_slice_scatter,                                 \
      "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? "            \
      "end=None, SymInt step=1) -> Tensor", "a slice replaced")                                   \
    X(0x0414, NPU_ATEN_DIAGONAL_SCATTER, 0, npu__type_diagonal_scatter,                           \
      "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> "       \
      "Tensor", "a diagonal replaced")                                                            \
    X(0x0415, NPU_ATEN_AS_STRIDED_SCATTER, 0, npu__type_as_strided_scatter,                       \
      "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "      \
      "storage_offset=None) -> Tensor", "elements at strides replaced")                           \
    X(0x0416, NPU_ATEN_MASKED_SCATTER, 0, npu__type_masked_scatter,                               \
      "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",                        \
      "true elements replaced by those of source in order")                                       \
    X(0x0417, NPU_ATEN_MASKED_SELECT, NPU_DATA, npu__type_masked_select,                          \
      "masked_select(Tensor self, Tensor mask) -> Tensor", "true elements as a vector")           \
    X(0x0418, NPU_ATEN_NONZERO, NPU_DATA, npu__type_nonzero,                                      \
      "nonzero(Tensor self) -> Tensor", "indices of what is not zero, one row each")              \
    X(0x0419, NPU_ATEN_ARGWHERE, NPU_DATA, npu__type_nonzero,                                     \
      "argwhere(Tensor self) -> Tensor", "indices of what is not zero, one row each")             \
    X(0x041a, NPU_ATEN_ONE_HOT, NPU_DATA, npu__type_one_hot,                                      \
      "one_hot(Tensor self, int num_classes=-1) -> Tensor",                                       \
      "1 at the index of each element, else 0")                                                   \
    X(0x041b, NPU_ATEN_REPEAT_INTERLEAVE, NPU_DATA, npu__type_repeat_indices,                     \
      "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",          \
      "index i repeats[i] times")                                                                 \
    X(0x041c, NPU_ATEN_REPEAT_INTERLEAVE_TENSOR, NPU_DATA, npu__type_repeat_tensor,               \
      "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "             \
      "SymInt? output_size=None) -> Tensor", "each index of a dim repeated by its own count")     \
    X(0x041d, NPU_ATEN_EMBEDDING_DENSE_BACKWARD, 0, npu__type_embedding_backward,                 \
      "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "         \
      "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor", "gradient rows added per index")

/* ---- aten: borders, triangles, windows as columns ---- */
#define NPU_IR_OPS_ATEN_BORDER(X)                                                                 \
    X(0x0440, NPU_ATEN_CONSTANT_PAD_ND, 0, npu__type_constant_pad,                                \
      "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",                     \
      "a border of one number; negative cuts off")                                                \
    X(0x0441, NPU_ATEN_REFLECTION_PAD1D, 0, npu__type_reflection_pad,                             \
      "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", "a border that mirrors")      \
    X(0x0442, NPU_ATEN_REFLECTION_PAD2D, 0, npu__type_reflection_pad,                             \
      "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", "a border that mirrors")      \
    X(0x0443, NPU_ATEN_REFLECTION_PAD3D, 0, npu__type_reflection_pad,                             \
      "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", "a border that mirrors")      \
    X(0x0444, NPU_ATEN_REPLICATION_PAD1D, 0, npu__type_replication_pad,                           \
      "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",                              \
      "a border that repeats the edge")                                                           \
    X(0x0445, NPU_ATEN_REPLICATION_PAD2D, 0, npu__type_replication_pad,                           \
      "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",                              \
      "a border that repeats the edge")                                                           \
    X(0x0446, NPU_ATEN_REPLICATION_PAD3D, 0, npu__type_replication_pad,                           \
      "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",                              \
      "a border that repeats the edge")                                                           \
    X(0x0447, NPU_ATEN_PAD, 0, npu__type_pad,                                                     \
      "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",       \
      "a border: 'constant', 'reflect', 'replicate' or 'circular'")                               \
    X(0x0448, NPU_ATEN_TRIL, 0, npu__type_triangle,                                               \
      "tril(Tensor self, SymInt diagonal=0) -> Tensor", "lower triangle, else 0")                 \
    X(0x0449, NPU_ATEN_TRIU, 0, npu__type_triangle,                                               \
      "triu(Tensor self, SymInt diagonal=0) -> Tensor", "upper triangle, else 0")                 \
    X(0x044a, NPU_ATEN_IM2COL, 0, npu__type_im2col,                                               \
      "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "          \
      "stride) -> Tensor", "windows as columns")                                                  \
    X(0x044b, NPU_ATEN_COL2IM, 0, npu__type_col2im,                                               \
      "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, "          \
      "int[2] padding, int[2] stride) -> Tensor", "columns added up where their windows were")

/* ---- aten: arrangements of whole tensors ---- */
#define NPU_IR_OPS_ATEN_ARRANGEMENT(X)                                                            \
    X(0x0480, NPU_ATEN_HSPLIT, NPU_VARIADIC, npu__type_tensor_split,                              \
      "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", "equal pieces of columns")  \
    X(0x0481, NPU_ATEN_HSPLIT_ARRAY, NPU_VARIADIC, npu__type_tensor_split,                        \
      "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",                          \
      "pieces of columns between indices")                                                        \
    X(0x0482, NPU_ATEN_VSPLIT, NPU_VARIADIC, npu__type_tensor_split,                              \
      "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", "equal pieces of rows")     \
    X(0x0483, NPU_ATEN_VSPLIT_ARRAY, NPU_VARIADIC, npu__type_tensor_split,                        \
      "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",                          \
      "pieces of rows between indices")                                                           \
    X(0x0484, NPU_ATEN_DSPLIT, NPU_VARIADIC, npu__type_tensor_split,                              \
      "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", "equal pieces of dim 2")    \
    X(0x0485, NPU_ATEN_DSPLIT_ARRAY, NPU_VARIADIC, npu__type_tensor_split,                        \
      "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",                          \
      "pieces of dim 2 between indices")                                                          \
    X(0x0486, NPU_ATEN_ATLEAST_1D, NPU_VIEW, npu__type_atleast,                                   \
      "atleast_1d(Tensor self) -> Tensor", "a scalar gets a dim")                                 \
    X(0x0487, NPU_ATEN_ATLEAST_2D, NPU_VIEW, npu__type_atleast,                                   \
      "atleast_2d(Tensor self) -> Tensor", "dims of 1 up to two")                                 \
    X(0x0488, NPU_ATEN_ATLEAST_3D, NPU_VIEW, npu__type_atleast,                                   \
      "atleast_3d(Tensor self) -> Tensor", "dims of 1 up to three")                               \
    X(0x0489, NPU_ATEN_ATLEAST_1D_SEQUENCE, NPU_VARIADIC, npu__type_atleast,                      \
      "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_1d of each")                  \
    X(0x048a, NPU_ATEN_ATLEAST_2D_SEQUENCE, NPU_VARIADIC, npu__type_atleast,                      \
      "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_2d of each")                  \
    X(0x048b, NPU_ATEN_ATLEAST_3D_SEQUENCE, NPU_VARIADIC, npu__type_atleast,                      \
      "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", "atleast_3d of each")                  \
    X(0x048c, NPU_ATEN_BROADCAST_TENSORS, NPU_VARIADIC, npu__type_broadcast_tensors,              \
      "broadcast_tensors(Tensor[] tensors) -> Tensor[]", "expanded to common dims")               \
    X(0x048d, NPU_ATEN_DIAG, 0, npu__type_diag,                                                   \
      "diag(Tensor self, int diagonal=0) -> Tensor",                                              \
      "matrix of a diagonal, or diagonal of a matrix")                                            \
    X(0x048e, NPU_ATEN_DIAGFLAT, 0, npu__type_diag,                                               \
      "diagflat(Tensor self, int offset=0) -> Tensor", "matrix with all elements on a diagonal")  \
    X(0x048f, NPU_ATEN_DIAG_EMBED, 0, npu__type_diag_embed,                                       \
      "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",                \
      "last dim as a diagonal of two")                                                            \
    X(0x0490, NPU_ATEN_HSTACK, 0, npu__type_cat,                                                  \
      "hstack(Tensor[] tensors) -> Tensor", "columns joined; vectors end to end")                 \
    X(0x0491, NPU_ATEN_VSTACK, 0, npu__type_cat,                                                  \
      "vstack(Tensor[] tensors) -> Tensor", "rows joined; a vector is a row")                     \
    X(0x0492, NPU_ATEN_DSTACK, 0, npu__type_cat,                                                  \
      "dstack(Tensor[] tensors) -> Tensor", "joined along dim 2, after atleast_3d")               \
    X(0x0493, NPU_ATEN_COLUMN_STACK, 0, npu__type_cat,                                            \
      "column_stack(Tensor[] tensors) -> Tensor", "columns joined; a vector is a column")         \
    X(0x0494, NPU_ATEN_BLOCK_DIAG, 0, npu__type_block_diag,                                       \
      "block_diag(Tensor[] tensors) -> Tensor", "matrices along the diagonal of zeros")           \
    X(0x0495, NPU_ATEN_CARTESIAN_PROD, 0, npu__type_cartesian_prod,                               \
      "cartesian_prod(Tensor[] tensors) -> Tensor",                                               \
      "every choice of one element of each vector, one row each")                                 \
    X(0x0496, NPU_ATEN_COMBINATIONS, 0, npu__type_combinations,                                   \
      "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",                \
      "every choice of r elements of a vector, one row each")

/* ---- aten: type and memory ---- */
#define NPU_IR_OPS_ATEN_MEMORY(X)                                                                            \
    X(0x0200, NPU_ATEN_TO_DTYPE, NPU_ELEMENTWISE, npu__type_cast,                                            \
      "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "                \
      "MemoryFormat? memory_format=None) -> Tensor(a)", "converted to another dtype")                        \
    X(0x0201, NPU_ATEN_TO_COPY, NPU_ELEMENTWISE, npu__type_cast,                                             \
      "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "          \
      "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",         \
      "copied, and converted where dtype is given")                                                          \
    X(0x0202, NPU_ATEN_CLONE, NPU_VIEW, npu__type_same,                                                      \
      "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "the same elements")              \
    X(0x0203, NPU_ATEN_CONTIGUOUS, NPU_VIEW, npu__type_same,                                                 \
      "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", "the same elements") \
    X(0x0204, NPU_ATEN_DROPOUT, NPU_VIEW, npu__type_dropout,                                                 \
      "dropout(Tensor input, float p, bool train) -> Tensor", "the same elements; training is an error")

/* ---- aten: bits, truth and tests ---- */
#define NPU_IR_OPS_ATEN_LOGIC(X)                                                                   \
    X(0x0300, NPU_ATEN_BITWISE_AND_SCALAR, NPU_ELEMENTWISE, npu__type_bitwise,                     \
      "bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", "and of the bits with a number")  \
    X(0x0301, NPU_ATEN_BITWISE_AND_TENSOR, NPU_ELEMENTWISE, npu__type_bitwise,                     \
      "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", "and of the bits")                \
    X(0x0302, NPU_ATEN_BITWISE_OR_SCALAR, NPU_ELEMENTWISE, npu__type_bitwise,                      \
      "bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", "or of the bits with a number")    \
    X(0x0303, NPU_ATEN_BITWISE_OR_TENSOR, NPU_ELEMENTWISE, npu__type_bitwise,                      \
      "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", "or of the bits")                  \
    X(0x0304, NPU_ATEN_BITWISE_XOR_SCALAR, NPU_ELEMENTWISE, npu__type_bitwise,                     \
      "bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",                                   \
      "exclusive or of the bits with a number")                                                    \
    X(0x0305, NPU_ATEN_BITWISE_XOR_TENSOR, NPU_ELEMENTWISE, npu__type_bitwise,                     \
      "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", "exclusive or of the bits")       \
    X(0x0306, NPU_ATEN_BITWISE_NOT, NPU_ELEMENTWISE, npu__type_bitwise,                            \
      "bitwise_not(Tensor self) -> Tensor", "complement of the bits; of a bool its negation")      \
    X(0x0307, NPU_ATEN_LOGICAL_AND, NPU_ELEMENTWISE, npu__type_compare,                            \
      "logical_and(Tensor self, Tensor other) -> Tensor", "both are not 0")                        \
    X(0x0308, NPU_ATEN_LOGICAL_OR, NPU_ELEMENTWISE, npu__type_compare,                             \
      "logical_or(Tensor self, Tensor other) -> Tensor", "one is not 0")                           \
    X(0x0309, NPU_ATEN_LOGICAL_XOR, NPU_ELEMENTWISE, npu__type_compare,                            \
      "logical_xor(Tensor self, Tensor other) -> Tensor", "exactly one is not 0")                  \
    X(0x030a, NPU_ATEN_LOGICAL_NOT, NPU_ELEMENTWISE, npu__type_test,                               \
      "logical_not(Tensor self) -> Tensor", "x == 0")                                              \
    X(0x030b, NPU_ATEN_ISINF, NPU_ELEMENTWISE, npu__type_test,                                     \
      "isinf(Tensor self) -> Tensor", "is infinite")                                               \
    X(0x030c, NPU_ATEN_ISNAN, NPU_ELEMENTWISE, npu__type_test,                                     \
      "isnan(Tensor self) -> Tensor", "is not a number")                                           \
    X(0x030d, NPU_ATEN_ISFINITE, NPU_ELEMENTWISE, npu__type_test,                                  \
      "isfinite(Tensor self) -> Tensor", "is neither infinite nor NaN")                            \
    X(0x030e, NPU_ATEN_AND___TENSOR, NPU_ELEMENTWISE, npu__type_bitwise,                           \
      "__and__.Tensor(Tensor self, Tensor other) -> Tensor", "and of the bits")                    \
    X(0x030f, NPU_ATEN_ISNEGINF, NPU_ELEMENTWISE, npu__type_test,                                  \
      "isneginf(Tensor self) -> Tensor", "is -infinity")                                           \
    X(0x0310, NPU_ATEN_ISPOSINF, NPU_ELEMENTWISE, npu__type_test,                                  \
      "isposinf(Tensor self) -> Tensor", "is +infinity")                                           \
    X(0x0311, NPU_ATEN_ISREAL, NPU_ELEMENTWISE, npu__type_test,                                    \
      "isreal(Tensor self) -> Tensor", "true: no kernel takes complex numbers")                    \
    X(0x0312, NPU_ATEN_SIGNBIT, NPU_ELEMENTWISE, npu__type_test,                                   \
      "signbit(Tensor self) -> Tensor", "the sign bit is set")                                     \
    X(0x0313, NPU_ATEN_ISCLOSE, NPU_ELEMENTWISE, npu__type_isclose,                                \
      "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "               \
      "equal_nan=False) -> Tensor", "|self - other| is at most atol + |rtol other|")

/* ---- aten: creation ---- */
#define NPU_IR_OPS_ATEN_CREATION(X)                                                                \
    X(0x0320, NPU_ATEN_FILL_SCALAR, 0, npu__type_create,                                           \
      "fill.Scalar(Tensor self, Scalar value) -> Tensor", "one number everywhere")                 \
    X(0x0321, NPU_ATEN_FULL, 0, npu__type_create,                                                  \
      "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "    \
      "Device? device=None, bool? pin_memory=None) -> Tensor", "one number everywhere")            \
    X(0x0322, NPU_ATEN_FULL_LIKE, 0, npu__type_create,                                             \
      "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? "              \
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "                    \
      "memory_format=None) -> Tensor", "one number, dims of self")                                 \
    X(0x0323, NPU_ATEN_NEW_FULL, 0, npu__type_create,                                              \
      "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "        \
      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                \
      "one number, dtype of self")                                                                 \
    X(0x0324, NPU_ATEN_SCALAR_TENSOR, 0, npu__type_create,                                         \
      "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "           \
      "device=None, bool? pin_memory=None) -> Tensor", "a number as a 0-d tensor")                 \
    X(0x0325, NPU_ATEN_ONES, 0, npu__type_create,                                                  \
      "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "  \
      "bool? pin_memory=None) -> Tensor", "1 everywhere")                                          \
    X(0x0326, NPU_ATEN_ONES_LIKE, 0, npu__type_create,                                             \
      "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "            \
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",           \
      "1, dims of self")                                                                           \
    X(0x0327, NPU_ATEN_NEW_ONES, 0, npu__type_create,                                              \
      "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "      \
      "Device? device=None, bool? pin_memory=None) -> Tensor", "1, dtype of self")                 \
    X(0x0328, NPU_ATEN_ZEROS, 0, npu__type_create,                                                 \
      "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "              \
      "device=None, bool? pin_memory=None) -> Tensor", "0 everywhere")                             \
    X(0x0329, NPU_ATEN_ZEROS_LIKE, 0, npu__type_create,                                            \
      "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "           \
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",           \
      "0, dims of self")                                                                           \
    X(0x032a, NPU_ATEN_NEW_ZEROS, 0, npu__type_create,                                             \
      "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "     \
      "Device? device=None, bool? pin_memory=None) -> Tensor", "0, dtype of self")                 \
    X(0x032b, NPU_ATEN_EMPTY_MEMORY_FORMAT, 0, npu__type_create,                                   \
      "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "        \
      "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",   \
      "any elements; here 0")                                                                      \
    X(0x032c, NPU_ATEN_EMPTY_STRIDED, 0, npu__type_create,                                         \
      "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "          \
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                        \
      "any elements, dense; here 0")                                                               \
    X(0x032d, NPU_ATEN_ARANGE, 0, npu__type_arange,                                                \
      "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "   \
      "bool? pin_memory=None) -> Tensor", "0, 1 .. below end")                                     \
    X(0x032e, NPU_ATEN_ARANGE_START, 0, npu__type_arange,                                          \
      "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "    \
      "Device? device=None, bool? pin_memory=None) -> Tensor", "start, start + 1 .. below end")    \
    X(0x032f, NPU_ATEN_ARANGE_START_STEP, 0, npu__type_arange,                                     \
      "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "     \
      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                \
      "start, start + step .. before end")                                                         \
    X(0x0330, NPU_ATEN_LINSPACE, 0, npu__type_spaced,                                              \
      "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "          \
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                        \
      "steps numbers from start to end")                                                           \
    X(0x0331, NPU_ATEN_EYE, 0, npu__type_eye,                                                      \
      "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "  \
      "pin_memory=None) -> Tensor", "1 on the diagonal of [n,n]")                                  \
    X(0x0332, NPU_ATEN_EYE_M, 0, npu__type_eye,                                                    \
      "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "         \
      "device=None, bool? pin_memory=None) -> Tensor", "1 on the diagonal of [n,m]")               \
    X(0x0333, NPU_ATEN_RAND, NPU_RANDOM, npu__type_random,                                         \
      "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "  \
      "bool? pin_memory=None) -> Tensor", "uniform in [0, 1)")                                     \
    X(0x0334, NPU_ATEN_RANDN, NPU_RANDOM, npu__type_random,                                        \
      "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "              \
      "device=None, bool? pin_memory=None) -> Tensor", "normally distributed")                     \
    X(0x0335, NPU_ATEN_RANDPERM, NPU_RANDOM, npu__type_randperm,                                   \
      "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "   \
      "bool? pin_memory=None) -> Tensor", "0 .. n - 1 in random order")                            \
    X(0x0336, NPU_ATEN_NATIVE_DROPOUT, NPU_RANDOM, npu__type_random_dropout,                       \
      "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",                    \
      "elements kept with probability 1 - p and scaled; also which")                               \
    X(0x0337, NPU_ATEN_FILL_TENSOR, 0, npu__type_create,                                           \
      "fill.Tensor(Tensor self, Tensor value) -> Tensor", "a 0-d value everywhere")                \
    X(0x0338, NPU_ATEN_EMPTY_LIKE, 0, npu__type_create,                                            \
      "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "           \
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",           \
      "any elements; here 0")                                                                      \
    X(0x0339, NPU_ATEN_RAND_LIKE, NPU_RANDOM, npu__type_random,                                    \
      "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "            \
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",           \
      "uniform in [0, 1)")                                                                         \
    X(0x033a, NPU_ATEN_RANDN_LIKE, NPU_RANDOM, npu__type_random,                                   \
      "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "           \
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",           \
      "normally distributed")                                                                      \
    X(0x033b, NPU_ATEN_BERNOULLI, NPU_RANDOM, npu__type_bernoulli,                                 \
      "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",                            \
      "1 with the probability self")                                                               \
    X(0x033c, NPU_ATEN_BERNOULLI_P, NPU_RANDOM, npu__type_bernoulli,                               \
      "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",                 \
      "1 with the probability p")                                                                  \
    X(0x033d, NPU_ATEN_LOGSPACE, 0, npu__type_spaced,                                              \
      "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? "             \
      "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",    \
      "steps powers of base, exponents from start to end")                                         \
    X(0x033e, NPU_ATEN_TRIL_INDICES, 0, npu__type_triangle_indices,                                \
      "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "           \
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                        \
      "rows and columns of a lower triangle")                                                      \
    X(0x033f, NPU_ATEN_TRIU_INDICES, 0, npu__type_triangle_indices,                                \
      "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "           \
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",                        \
      "rows and columns of an upper triangle")

/* ---- aten: aliases and numbers ---- */
#define NPU_IR_OPS_ATEN_ALIAS(X)                                                                   \
    X(0x0350, NPU_ATEN_ALIAS, NPU_VIEW, npu__type_same,                                            \
      "alias(Tensor(a) self) -> Tensor(a)", "the same elements")                                   \
    X(0x0351, NPU_ATEN_DETACH, NPU_VIEW, npu__type_same,                                           \
      "detach(Tensor(a) self) -> Tensor(a)", "the same elements")                                  \
    X(0x0352, NPU_ATEN_LIFT_FRESH_COPY, NPU_VIEW, npu__type_same,                                  \
      "lift_fresh_copy(Tensor self) -> Tensor", "the same elements")                               \
    X(0x0353, NPU_ATEN_COPY, 0, npu__type_copy,                                                    \
      "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",                          \
      "src, broadcast and converted to the spec of self")                                          \
    X(0x0354, NPU_ATEN_TYPE_AS, NPU_ELEMENTWISE, npu__type_type_as,                                \
      "type_as(Tensor self, Tensor other) -> Tensor", "converted to the dtype of other")           \
    X(0x0355, NPU_ATEN_LOCAL_SCALAR_DENSE, 0, npu__type_number,                                    \
      "_local_scalar_dense(Tensor self) -> Scalar",                                                \
      "the only element, as a 0-d f64, i64 or bool")                                               \
    X(0x0356, NPU_ATEN_SYM_NUMEL, 0, npu__type_number,                                             \
      "sym_numel(Tensor self) -> SymInt", "number of elements, 0-d")                               \
    X(0x0357, NPU_ATEN_SYM_SIZE_INT, 0, npu__type_number,                                          \
      "sym_size.int(Tensor self, int dim) -> SymInt", "one dim, 0-d")                              \
    X(0x0358, NPU_ATEN_SYM_STRIDE_INT, 0, npu__type_number,                                        \
      "sym_stride.int(Tensor self, int dim) -> SymInt",                                            \
      "elements from one index of a dim to the next, 0-d")                                         \
    X(0x0359, NPU_ATEN_SYM_STORAGE_OFFSET, 0, npu__type_number,                                    \
      "sym_storage_offset(Tensor self) -> SymInt", "0: results are dense")                         \
    X(0x035a, NPU_ATEN_SYM_IS_CONTIGUOUS, 0, npu__type_number,                                     \
      "sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool",   \
      "true: results are dense")                                                                   \
    X(0x035b, NPU_ATEN_POSITIVE, NPU_VIEW, npu__type_same_number,                                  \
      "positive(Tensor(a) self) -> Tensor(a)", "the same elements")                                \
    X(0x035c, NPU_ATEN_RESOLVE_CONJ, NPU_VIEW, npu__type_same,                                     \
      "resolve_conj(Tensor(a) self) -> Tensor(a)", "the same elements")                            \
    X(0x035d, NPU_ATEN_RESOLVE_NEG, NPU_VIEW, npu__type_same,                                      \
      "resolve_neg(Tensor(a) self) -> Tensor(a)", "the same elements")                             \
    X(0x035e, NPU_ATEN_ALPHA_DROPOUT, NPU_RANDOM, npu__type_random_dropout,                        \
      "alpha_dropout(Tensor input, float p, bool train) -> Tensor",                                \
      "dropout that keeps the mean and variance of what selu gives")                               \
    X(0x035f, NPU_ATEN_FEATURE_DROPOUT, NPU_RANDOM, npu__type_random_dropout,                      \
      "feature_dropout(Tensor input, float p, bool train) -> Tensor",                              \
      "whole channels of [N,C,..] kept with probability 1 - p")

/* ---- aten: further functions ---- */
#define NPU_IR_OPS_ATEN_SPECIAL(X)                                                                 \
    X(0x0370, NPU_ATEN_ADDCDIV, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_pointwise,                \
      "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",         \
      "self + value tensor1 / tensor2")                                                            \
    X(0x0371, NPU_ATEN_ADDCMUL, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_pointwise,                \
      "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",         \
      "self + value tensor1 tensor2")                                                              \
    X(0x0372, NPU_ATEN_LERP_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_lerp,                 \
      "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",                             \
      "self + weight (end - self)")                                                                \
    X(0x0373, NPU_ATEN_LERP_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_lerp,                 \
      "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",                             \
      "self + weight (end - self)")                                                                \
    X(0x0374, NPU_ATEN_COPYSIGN_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,           \
      "copysign.Scalar(Tensor self, Scalar other) -> Tensor", "size of self, sign of the number")  \
    X(0x0375, NPU_ATEN_COPYSIGN_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,           \
      "copysign.Tensor(Tensor self, Tensor other) -> Tensor", "size of self, sign of other")       \
    X(0x0376, NPU_ATEN_DEG2RAD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,            \
      "deg2rad(Tensor self) -> Tensor", "degrees to radians")                                      \
    X(0x0377, NPU_ATEN_RAD2DEG, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,            \
      "rad2deg(Tensor self) -> Tensor", "radians to degrees")                                      \
    X(0x0378, NPU_ATEN_DIGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,            \
      "digamma(Tensor self) -> Tensor", "derivative of lgamma")                                    \
    X(0x0379, NPU_ATEN_LGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,             \
      "lgamma(Tensor self) -> Tensor", "logarithm of the gamma function")                          \
    X(0x037a, NPU_ATEN_POLYGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_polygamma,              \
      "polygamma(int n, Tensor self) -> Tensor", "n-th derivative of digamma")                     \
    X(0x037b, NPU_ATEN_SPECIAL_POLYGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_polygamma,      \
      "special_polygamma(int n, Tensor self) -> Tensor", "n-th derivative of digamma")             \
    X(0x037c, NPU_ATEN_MVLGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_mvlgamma,                \
      "mvlgamma(Tensor self, int p) -> Tensor", "logarithm of the multivariate gamma function")    \
    X(0x037d, NPU_ATEN_DIVIDE_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,             \
      "divide.Tensor(Tensor self, Tensor other) -> Tensor", "true division")                       \
    X(0x037e, NPU_ATEN_TRUE_DIVIDE_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,        \
      "true_divide.Tensor(Tensor self, Tensor other) -> Tensor", "true division")                  \
    X(0x037f, NPU_ATEN_MULTIPLY_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,           \
      "multiply.Tensor(Tensor self, Tensor other) -> Tensor", "product")                           \
    X(0x0380, NPU_ATEN_SUBTRACT_SCALAR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,    \
      "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",                      \
      "self - alpha other")                                                                        \
    X(0x0381, NPU_ATEN_SUBTRACT_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_number,    \
      "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",                   \
      "self - alpha other")                                                                        \
    X(0x0382, NPU_ATEN_FLOAT_POWER_TENSOR_TENSOR, NPU_ELEMENTWISE, npu__type_float_power,          \
      "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", "power in f64")         \
    X(0x0383, NPU_ATEN_FMAX, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                      \
      "fmax(Tensor self, Tensor other) -> Tensor", "larger of two; NaN loses")                     \
    X(0x0384, NPU_ATEN_FMIN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary,                      \
      "fmin(Tensor self, Tensor other) -> Tensor", "smaller of two; NaN loses")                    \
    X(0x0385, NPU_ATEN_FRAC, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,                  \
      "frac(Tensor self) -> Tensor", "x - trunc(x)")                                               \
    X(0x0386, NPU_ATEN_GCD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_integer,                      \
      "gcd(Tensor self, Tensor other) -> Tensor", "greatest common divisor")                       \
    X(0x0387, NPU_ATEN_LCM, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_integer,                      \
      "lcm(Tensor self, Tensor other) -> Tensor", "least common multiple")                         \
    X(0x0388, NPU_ATEN_BITWISE_LEFT_SHIFT_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE,                   \
      npu__type_integer,                                                                           \
      "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",                            \
      "self times 2 to the other; 0 when all bits are out")                                        \
    X(0x0389, NPU_ATEN_BITWISE_RIGHT_SHIFT_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE,                  \
      npu__type_integer,                                                                           \
      "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",                           \
      "self by 2 to the other, rounded down")                                                      \
    X(0x038a, NPU_ATEN_HEAVISIDE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_heaviside,              \
      "heaviside(Tensor self, Tensor values) -> Tensor", "0 below 0, 1 above, values at 0")        \
    X(0x038b, NPU_ATEN_HYPOT, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_float,               \
      "hypot(Tensor self, Tensor other) -> Tensor", "length of (self, other)")                     \
    X(0x038c, NPU_ATEN_LOGADDEXP, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_float,           \
      "logaddexp(Tensor self, Tensor other) -> Tensor", "log(exp(self) + exp(other))")             \
    X(0x038d, NPU_ATEN_LOGADDEXP2, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_float,          \
      "logaddexp2(Tensor self, Tensor other) -> Tensor", "log2(2^self + 2^other)")                 \
    X(0x038e, NPU_ATEN_NEXTAFTER, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_nextafter,              \
      "nextafter(Tensor self, Tensor other) -> Tensor", "next number from self towards other")     \
    X(0x038f, NPU_ATEN_IGAMMA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_float,              \
      "igamma(Tensor self, Tensor other) -> Tensor",                                               \
      "lower incomplete gamma function, regularized")                                              \
    X(0x0390, NPU_ATEN_IGAMMAC, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_binary_float,             \
      "igammac(Tensor self, Tensor other) -> Tensor",                                              \
      "upper incomplete gamma function, regularized")                                              \
    X(0x0391, NPU_ATEN_LDEXP_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_ldexp,               \
      "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", "self times 2 to the other")            \
    X(0x0392, NPU_ATEN_XLOGY_SCALAR_OTHER, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,        \
      "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",                                   \
      "self log(number), 0 where self is 0")                                                       \
    X(0x0393, NPU_ATEN_XLOGY_TENSOR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,              \
      "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", "self log(other), 0 where self is 0")   \
    X(0x0394, NPU_ATEN_SPECIAL_XLOG1PY, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,           \
      "special_xlog1py(Tensor self, Tensor other) -> Tensor",                                      \
      "self log(1 + other), 0 where self is 0")                                                    \
    X(0x0395, NPU_ATEN_SPECIAL_ZETA, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_divide,              \
      "special_zeta(Tensor self, Tensor other) -> Tensor", "Hurwitz zeta function")                \
    X(0x0396, NPU_ATEN_LOGIT, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,              \
      "logit(Tensor self, float? eps=None) -> Tensor",                                             \
      "log(x / (1 - x)), x clamped to eps .. 1 - eps")                                             \
    X(0x0397, NPU_ATEN_NAN_TO_NUM, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_real,             \
      "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> "       \
      "Tensor", "NaN and infinities replaced")                                                     \
    X(0x0398, NPU_ATEN_ROUND_DECIMALS, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,        \
      "round.decimals(Tensor self, *, int decimals) -> Tensor",                                    \
      "rounded to decimals, ties to even")                                                         \
    X(0x0399, NPU_ATEN_SGN, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_real,                    \
      "sgn(Tensor self) -> Tensor", "-1, 0 or 1")                                                  \
    X(0x039a, NPU_ATEN_SINC, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,               \
      "sinc(Tensor self) -> Tensor", "sin(pi x) / (pi x)")                                         \
    X(0x039b, NPU_ATEN_ANGLE, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,              \
      "angle(Tensor self) -> Tensor", "pi below 0, else 0")                                        \
    X(0x039c, NPU_ATEN_ERFINV, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,             \
      "erfinv(Tensor self) -> Tensor", "inverse of the error function")                            \
    X(0x039d, NPU_ATEN_I0, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,                 \
      "i0(Tensor self) -> Tensor", "modified Bessel function of order 0")                          \
    X(0x039e, NPU_ATEN_SPECIAL_I0E, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,        \
      "special_i0e(Tensor self) -> Tensor", "exp(-|x|) i0(x)")                                     \
    X(0x039f, NPU_ATEN_SPECIAL_I1, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,         \
      "special_i1(Tensor self) -> Tensor", "modified Bessel function of order 1")                  \
    X(0x03a0, NPU_ATEN_SPECIAL_I1E, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,        \
      "special_i1e(Tensor self) -> Tensor", "exp(-|x|) i1(x)")                                     \
    X(0x03a1, NPU_ATEN_SPECIAL_ENTR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,       \
      "special_entr(Tensor self) -> Tensor", "-x log(x)")                                          \
    X(0x03a2, NPU_ATEN_SPECIAL_ERFCX, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,      \
      "special_erfcx(Tensor self) -> Tensor", "exp(x x) erfc(x)")                                  \
    X(0x03a3, NPU_ATEN_SPECIAL_NDTR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,       \
      "special_ndtr(Tensor self) -> Tensor", "normal distribution function")                       \
    X(0x03a4, NPU_ATEN_SPECIAL_LOG_NDTR, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,   \
      "special_log_ndtr(Tensor self) -> Tensor", "its logarithm")                                  \
    X(0x03a5, NPU_ATEN_SPECIAL_NDTRI, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_promote_float,      \
      "special_ndtri(Tensor self) -> Tensor", "its inverse")                                       \
    X(0x03a6, NPU_ATEN_HARDSHRINK, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,            \
      "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "0 from -lambd to lambd, else x")     \
    X(0x03a7, NPU_ATEN_SOFTSHRINK, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_float,            \
      "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "x moved towards 0 by lambd")         \
    X(0x03a8, NPU_ATEN_THRESHOLD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same_number,            \
      "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",                          \
      "x where x > threshold, else value")                                                         \
    X(0x03a9, NPU_ATEN_THRESHOLD_BACKWARD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_pointwise,     \
      "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",           \
      "grad_output where self > threshold, else 0")                                                \
    X(0x03aa, NPU_ATEN_GELU_BACKWARD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_pointwise,          \
      "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",       \
      "gradient of gelu")                                                                          \
    X(0x03ab, NPU_ATEN_FREXP_TENSOR, 0, npu__type_frexp,                                           \
      "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",                           \
      "mantissa of size [1/2, 1) and exponent of 2")

/* ---- aten: order: along one dim, scans and sorts ---- */
#define NPU_IR_OPS_ATEN_ORDER(X)                                                                   \
    X(0x0500, NPU_ATEN_CUMSUM, 0, npu__type_scan,                                                  \
      "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "running sum")          \
    X(0x0501, NPU_ATEN_CUMPROD, 0, npu__type_scan,                                                 \
      "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "running product")     \
    X(0x0502, NPU_ATEN_CUMMAX, 0, npu__type_scan_index,                                            \
      "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",                           \
      "running maximum and its last index")                                                        \
    X(0x0503, NPU_ATEN_CUMMIN, 0, npu__type_scan_index,                                            \
      "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",                           \
      "running minimum and its last index")                                                        \
    X(0x0504, NPU_ATEN_LOGCUMSUMEXP, 0, npu__type_same_float,                                      \
      "logcumsumexp(Tensor self, int dim) -> Tensor",                                              \
      "running logarithm of the sum of exponentials")                                              \
    X(0x0505, NPU_ATEN_LOGCUMSUMEXP_RAW, 0, npu__type_same_float,                                  \
      "_logcumsumexp(Tensor self, int dim) -> Tensor", "as logcumsumexp")                          \
    X(0x0506, NPU_ATEN_SORT, 0, npu__type_sort,                                                    \
      "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",   \
      "sorted values and where they were; stable, NaN is largest")                                 \
    X(0x0507, NPU_ATEN_SORT_STABLE, 0, npu__type_sort,                                             \
      "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "   \
      "values, Tensor indices)", "sorted values and where they were; NaN is largest")              \
    X(0x0508, NPU_ATEN_ARGSORT, 0, npu__type_sort,                                                 \
      "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",                         \
      "where the sorted values were")                                                              \
    X(0x0509, NPU_ATEN_MSORT, 0, npu__type_sort,                                                   \
      "msort(Tensor self) -> Tensor", "sorted along dim 0")                                        \
    X(0x050a, NPU_ATEN_TOPK, 0, npu__type_topk,                                                    \
      "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "   \
      "values, Tensor indices)", "the k largest or smallest along a dim, sorted")                  \
    X(0x050b, NPU_ATEN_KTHVALUE, 0, npu__type_kth,                                                 \
      "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, "        \
      "Tensor indices)", "the k-th smallest along a dim and its index")                            \
    X(0x050c, NPU_ATEN_MEDIAN, 0, npu__type_median,                                                \
      "median(Tensor self) -> Tensor", "the lower median of all; NaN wins")                        \
    X(0x050d, NPU_ATEN_MEDIAN_DIM, 0, npu__type_median,                                            \
      "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",   \
      "the lower median along a dim and its index; NaN wins")                                      \
    X(0x050e, NPU_ATEN_NANMEDIAN, 0, npu__type_median,                                             \
      "nanmedian(Tensor self) -> Tensor", "median of what is not NaN")                             \
    X(0x050f, NPU_ATEN_NANMEDIAN_DIM, 0, npu__type_median,                                         \
      "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "         \
      "indices)", "median.dim of what is not NaN")                                                 \
    X(0x0510, NPU_ATEN_MODE, 0, npu__type_reduce_index,                                            \
      "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",      \
      "the most frequent value, the least of them, and its last index")                            \
    X(0x0511, NPU_ATEN_QUANTILE, 0, npu__type_quantile,                                            \
      "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "                 \
      "interpolation='linear') -> Tensor", "quantiles q of all or along a dim; NaN wins")          \
    X(0x0512, NPU_ATEN_QUANTILE_SCALAR, 0, npu__type_quantile,                                     \
      "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "           \
      "interpolation='linear') -> Tensor", "one quantile; NaN wins")                               \
    X(0x0513, NPU_ATEN_NANQUANTILE, 0, npu__type_quantile,                                         \
      "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "              \
      "interpolation='linear') -> Tensor", "quantiles of what is not NaN")                         \
    X(0x0514, NPU_ATEN_NANQUANTILE_SCALAR, 0, npu__type_quantile,                                  \
      "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "        \
      "interpolation='linear') -> Tensor", "one quantile of what is not NaN")

/* ---- aten: loss: losses and similarity ---- */
#define NPU_IR_OPS_ATEN_LOSS(X)                                                                    \
    X(0x05a0, NPU_ATEN_L1_LOSS, 0, npu__type_loss,                                                 \
      "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",                         \
      "distance of self to target")                                                                \
    X(0x05a1, NPU_ATEN_MSE_LOSS, 0, npu__type_loss,                                                \
      "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",                        \
      "square of the distance")                                                                    \
    X(0x05a2, NPU_ATEN_SMOOTH_L1_LOSS, 0, npu__type_loss,                                          \
      "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",  \
      "square below beta, straight above")                                                         \
    X(0x05a3, NPU_ATEN_HUBER_LOSS, 0, npu__type_loss,                                              \
      "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",     \
      "square below delta, straight above")                                                        \
    X(0x05a4, NPU_ATEN_KL_DIV, 0, npu__type_loss,                                                  \
      "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> "       \
      "Tensor", "target (log target - self)")                                                      \
    X(0x05a5, NPU_ATEN_BINARY_CROSS_ENTROPY, 0, npu__type_loss,                                    \
      "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int "                 \
      "reduction=Mean) -> Tensor", "of probabilities")                                             \
    X(0x05a6, NPU_ATEN_BINARY_CROSS_ENTROPY_WITH_LOGITS, 0, npu__type_loss,                        \
      "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "         \
      "Tensor? pos_weight=None, int reduction=Mean) -> Tensor", "of sigmoid(self)")                \
    X(0x05a7, NPU_ATEN_SOFT_MARGIN_LOSS, 0, npu__type_loss,                                        \
      "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",                \
      "log(1 + exp(-target self))")                                                                \
    X(0x05a8, NPU_ATEN_POISSON_NLL_LOSS, 0, npu__type_loss,                                        \
      "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "   \
      "reduction) -> Tensor", "exp(input) - target input, or without the exponential")             \
    X(0x05a9, NPU_ATEN_HINGE_EMBEDDING_LOSS, 0, npu__type_loss,                                    \
      "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) "    \
      "-> Tensor", "self where target is 1, what it lacks to margin where it is -1")               \
    X(0x05aa, NPU_ATEN_MARGIN_RANKING_LOSS, 0, npu__type_loss,                                     \
      "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "    \
      "reduction=Mean) -> Tensor", "max(0, margin - target (input1 - input2))")                    \
    X(0x05ab, NPU_ATEN_NLL_LOSS, 0, npu__type_nll,                                                 \
      "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "      \
      "ignore_index=-100) -> Tensor", "minus the score of the target class")                       \
    X(0x05ac, NPU_ATEN_NLL_LOSS_ND, 0, npu__type_nll,                                              \
      "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "   \
      "ignore_index=-100) -> Tensor", "minus the score of the target class")                       \
    X(0x05ad, NPU_ATEN_NLL_LOSS_FORWARD, 0, npu__type_nll,                                         \
      "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "        \
      "ignore_index) -> (Tensor output, Tensor total_weight)",                                     \
      "nll_loss and the sum of weights")                                                           \
    X(0x05ae, NPU_ATEN_NLL_LOSS2D_FORWARD, 0, npu__type_nll,                                       \
      "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "      \
      "ignore_index) -> (Tensor output, Tensor total_weight)",                                     \
      "nll_loss over two spatial dims, and the sum of weights")                                    \
    X(0x05af, NPU_ATEN_CROSS_ENTROPY_LOSS, 0, npu__type_nll,                                       \
      "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "   \
      "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",                            \
      "nll_loss of log_softmax; targets are classes or probabilities")                             \
    X(0x05b0, NPU_ATEN_COSINE_SIMILARITY, 0, npu__type_cosine,                                     \
      "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",             \
      "x1 x2 over the product of their norms along dim")                                           \
    X(0x05b1, NPU_ATEN_SOFTMAX_BACKWARD_DATA, 0, npu__type_softmax_backward,                       \
      "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "             \
      "input_dtype) -> Tensor", "output (grad_output - sum(grad_output output))")                  \
    X(0x05b2, NPU_ATEN_LOG_SOFTMAX_BACKWARD_DATA, 0, npu__type_softmax_backward,                   \
      "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "         \
      "input_dtype) -> Tensor", "grad_output - exp(output) sum(grad_output)")                      \
    X(0x05b3, NPU_ATEN_PAIRWISE_DISTANCE, 0, npu__type_difference,                                 \
      "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) "   \
      "-> Tensor", "p-norm of x1 - x2 + eps along the last dim")                                   \
    X(0x05b4, NPU_ATEN_DIST, 0, npu__type_difference,                                              \
      "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", "p-norm of self - other")

/* ---- aten: vectors: distances between them, and bags of them ---- */
#define NPU_IR_OPS_ATEN_VECTORS(X)                                                                 \
    X(0x0580, NPU_ATEN_CDIST_FORWARD, 0, npu__type_distances,                                          \
      "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",                \
      "p-distances of all rows of x1 to all rows of x2")                                           \
    X(0x0581, NPU_ATEN_EUCLIDEAN_DIST, 0, npu__type_distances,                                         \
      "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",                                           \
      "2-distances of all rows of x1 to all rows of x2")                                           \
    X(0x0582, NPU_ATEN_PDIST_FORWARD, 0, npu__type_pdist,                                          \
      "_pdist_forward(Tensor self, float p=2) -> Tensor", "p-distances of rows i < j")             \
    X(0x0583, NPU_ATEN_PDIST, 0, npu__type_pdist,                                                  \
      "pdist(Tensor self, float p=2) -> Tensor", "p-distances of rows i < j")                      \
    X(0x0584, NPU_ATEN_EMBEDDING_BAG_RAW, 0, npu__type_embedding_bag,                              \
      "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "                        \
      "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "                          \
      "per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "           \
      "(Tensor, Tensor, Tensor, Tensor)", "sums, means or maxima of bags of rows")                 \
    X(0x0585, NPU_ATEN_EMBEDDING_BAG, 0, npu__type_embedding_bag,                                  \
      "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "                         \
      "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "                          \
      "per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, "      \
      "Tensor)", "sums, means or maxima of bags of rows")                                          \
    X(0x0586, NPU_ATEN_EMBEDDING_BAG_PADDING_IDX, 0, npu__type_embedding_bag,                      \
      "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "             \
      "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "               \
      "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",                \
      "the same; padding_idx does not count")

/* ---- aten: resize: upsampling and sampling at given points ---- */
#define NPU_IR_OPS_ATEN_RESIZE(X)                                                                  \
    X(0x0540, NPU_ATEN_UPSAMPLE_NEAREST1D, 0, npu__type_resize,                                    \
      "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",      \
      "nearest element")                                                                           \
    X(0x0541, NPU_ATEN_UPSAMPLE_NEAREST1D_VEC, 0, npu__type_resize,                                \
      "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "    \
      "Tensor", "nearest element")                                                                 \
    X(0x0542, NPU_ATEN_UPSAMPLE_NEAREST2D, 0, npu__type_resize,                                    \
      "upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "       \
      "scales_w=None) -> Tensor", "nearest element")                                               \
    X(0x0543, NPU_ATEN_UPSAMPLE_NEAREST2D_VEC, 0, npu__type_resize,                                \
      "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "    \
      "Tensor", "nearest element")                                                                 \
    X(0x0544, NPU_ATEN_UPSAMPLE_NEAREST3D, 0, npu__type_resize,                                    \
      "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "       \
      "scales_h=None, float? scales_w=None) -> Tensor", "nearest element")                         \
    X(0x0545, NPU_ATEN_UPSAMPLE_NEAREST3D_VEC, 0, npu__type_resize,                                \
      "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "    \
      "Tensor", "nearest element")                                                                 \
    X(0x0546, NPU_ATEN_UPSAMPLE_LINEAR1D, 0, npu__type_resize,                                     \
      "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "          \
      "scales=None) -> Tensor", "linear between two elements")                                     \
    X(0x0547, NPU_ATEN_UPSAMPLE_LINEAR1D_VEC, 0, npu__type_resize,                                 \
      "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "   \
      "scale_factors) -> Tensor", "linear between two elements")                                   \
    X(0x0548, NPU_ATEN_UPSAMPLE_BILINEAR2D, 0, npu__type_resize,                                   \
      "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "        \
      "scales_h=None, float? scales_w=None) -> Tensor", "linear along two dims")                   \
    X(0x0549, NPU_ATEN_UPSAMPLE_BILINEAR2D_VEC, 0, npu__type_resize,                               \
      "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "          \
      "float[]? scale_factors) -> Tensor", "linear along two dims")                                \
    X(0x054a, NPU_ATEN_UPSAMPLE_TRILINEAR3D, 0, npu__type_resize,                                  \
      "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "       \
      "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",                      \
      "linear along three dims")                                                                   \
    X(0x054b, NPU_ATEN_UPSAMPLE_TRILINEAR3D_VEC, 0, npu__type_resize,                              \
      "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "         \
      "float[]? scale_factors) -> Tensor", "linear along three dims")                              \
    X(0x054c, NPU_ATEN_UPSAMPLE_BICUBIC2D, 0, npu__type_resize,                                    \
      "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "         \
      "scales_h=None, float? scales_w=None) -> Tensor", "cubic convolution, a = -0.75")            \
    X(0x054d, NPU_ATEN_UPSAMPLE_BICUBIC2D_VEC, 0, npu__type_resize,                                \
      "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "           \
      "float[]? scale_factors) -> Tensor", "cubic convolution, a = -0.75")                         \
    X(0x054e, NPU_ATEN_UPSAMPLE_NEAREST_EXACT1D_VEC, 0, npu__type_resize,                          \
      "_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? "               \
      "scale_factors) -> Tensor", "nearest element to the centre")                                 \
    X(0x054f, NPU_ATEN_UPSAMPLE_NEAREST_EXACT2D_VEC, 0, npu__type_resize,                          \
      "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? "               \
      "scale_factors) -> Tensor", "nearest element to the centre")                                 \
    X(0x0550, NPU_ATEN_UPSAMPLE_NEAREST_EXACT3D_VEC, 0, npu__type_resize,                          \
      "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? "               \
      "scale_factors) -> Tensor", "nearest element to the centre")                                 \
    X(0x0551, NPU_ATEN_GRID_SAMPLER, 0, npu__type_grid,                                            \
      "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "    \
      "align_corners) -> Tensor", "values at the points of grid, -1 to 1 along each dim")          \
    X(0x0552, NPU_ATEN_GRID_SAMPLER_2D, 0, npu__type_grid,                                         \
      "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "      \
      "bool align_corners) -> Tensor", "values at the points of grid, -1 to 1 along each dim")     \
    X(0x0553, NPU_ATEN_GRID_SAMPLER_3D, 0, npu__type_grid,                                         \
      "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "      \
      "bool align_corners) -> Tensor", "values at the points of grid, -1 to 1 along each dim")

/* ---- aicf: the 23 device kinds, numbers as in OpKind ---- */
#define NPU_IR_OPS_AICF(X)                                                                                   \
    X(0, NPU_AICF_ADD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_equal,                                       \
      "add(Tensor a, Tensor c) -> Tensor", "a + c, equal specs")                                             \
    X(1, NPU_AICF_RELU, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_same, "relu(Tensor x) -> Tensor", "max(x, 0)") \
    X(2, NPU_AICF_GEMM, 0, npu__type_aicf_gemm,                                                              \
      "gemm(Tensor a, Tensor b, *, bool transA=False, bool transB=False) -> Tensor", "A B, either operand transposed") \
    X(3, NPU_AICF_BIAS_ADD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_aicf_bias_add,                          \
      "bias_add(Tensor x, Tensor bias, *, int axis=-1) -> Tensor", "x + bias along the last dim")            \
    X(4, NPU_AICF_REDUCE_SUM, 0, npu__type_aicf_reduce_sum,                                                  \
      "reduce_sum(Tensor x, *, int axis) -> Tensor", "sum over one axis")                                    \
    X(5, NPU_AICF_MSE_GRAD, NPU_ELEMENTWISE, npu__type_equal,                                                \
      "mse_grad(Tensor pred, Tensor target, *, float? scale=None) -> Tensor", "scale (pred - target), scale 2 / elements") \
    X(6, NPU_AICF_RELU_BWD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_equal,                                  \
      "relu_bwd(Tensor dout, Tensor x) -> Tensor", "dout where x > 0")                                       \
    X(7, NPU_AICF_SGD_STEP, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_equal,                                  \
      "sgd_step(Tensor p, Tensor g, *, float lr) -> Tensor", "p - lr g")                                     \
    X(8, NPU_AICF_COPY, NPU_VIEW, npu__type_same, "copy(Tensor x) -> Tensor", "the same elements")           \
    X(9, NPU_AICF_GRAD_ZERO, 0, npu__type_same, "grad_zero(Tensor g) -> Tensor", "zeros like g")             \
    X(10, NPU_AICF_ADAM_STEP, 0, npu__type_aicf_adam_step,                                                   \
      "adam_step(Tensor p, Tensor g, Tensor m, Tensor v, Tensor bc1, Tensor bc2, *, float lr=0.001, float beta1=0.9, " \
      "float beta2=0.999, float eps=1e-08) -> (Tensor, Tensor, Tensor)", "one Adam step; bc are 1 / (1 - beta^t)") \
    X(11, NPU_AICF_STEP_INC, NPU_INPLACE, npu__type_aicf_step, "step_inc(Tensor step) -> Tensor", "step + 1, i32 scalar") \
    X(12, NPU_AICF_BIAS_CORR, 0, npu__type_aicf_bias_corr,                                                   \
      "bias_corr(Tensor step, *, float beta1=0.9, float beta2=0.999) -> (Tensor, Tensor)", "1 / (1 - beta^step)") \
    X(13, NPU_AICF_LAYERNORM_FWD, 0, npu__type_aicf_layernorm,                                               \
      "layernorm_fwd(Tensor x, Tensor? gamma, Tensor? beta, *, float eps=1e-05) -> (Tensor, Tensor, Tensor)", \
      "last dim of [M,N] normalised; also mean and reciprocal deviation [M], f32")                           \
    X(14, NPU_AICF_LAYERNORM_BWD, 0, npu__type_aicf_layernorm_bwd,                                           \
      "layernorm_bwd(Tensor x, Tensor dy, Tensor? gamma, Tensor mean, Tensor rstd) -> (Tensor, Tensor, Tensor)", \
      "gradients of x, gamma, beta")                                                                         \
    X(15, NPU_AICF_BATCHNORM_FWD, 0, npu__type_aicf_batchnorm,                                               \
      "batchnorm_fwd(Tensor x, Tensor? gamma, Tensor? beta, Tensor? running_mean, Tensor? running_var, *, "  \
      "float eps=1e-05, int flags=0) -> (Tensor, Tensor, Tensor)",                                           \
      "channels of [N,C,H,W] normalised; flags bit 0 uses the running statistics")                           \
    X(16, NPU_AICF_BATCHNORM_BWD, 0, npu__type_aicf_batchnorm_bwd,                                           \
      "batchnorm_bwd(Tensor x, Tensor dy, Tensor? gamma, Tensor save_mean, Tensor save_rstd) -> "            \
      "(Tensor, Tensor, Tensor)", "gradients of x, gamma, beta")                                             \
    X(17, NPU_AICF_GEMM_EPILOGUE, 0, npu__type_aicf_gemm,                                                    \
      "gemm_epilogue(Tensor a, Tensor b, Tensor bias, *, bool transA=False, bool transB=False, bool relu=True) -> Tensor", \
      "gemm, bias_add and relu in one")                                                                      \
    X(18, NPU_AICF_SOFTMAX, 0, npu__type_same, "softmax(Tensor x) -> Tensor", "softmax of the last dim")     \
    X(19, NPU_AICF_SOFTMAX_BWD, 0, npu__type_equal,                                                          \
      "softmax_bwd(Tensor y, Tensor dy) -> Tensor", "y (dy - sum(y dy))")                                    \
    X(20, NPU_AICF_MSE_LOSS, 0, npu__type_aicf_loss, "mse_loss(Tensor pred, Tensor target) -> Tensor", "mean square error") \
    X(21, NPU_AICF_CROSS_ENTROPY_FWD, 0, npu__type_aicf_cross_entropy,                                       \
      "cross_entropy_fwd(Tensor logits, Tensor target) -> (Tensor, Tensor)",                                 \
      "mean of -log softmax at the target index; also the softmax [M,N]")                                    \
    X(22, NPU_AICF_CROSS_ENTROPY_BWD, 0, npu__type_aicf_cross_entropy_bwd,                                   \
      "cross_entropy_bwd(Tensor softmax, Tensor target) -> Tensor", "(softmax - one hot) / M")

/* ---- tensor: ops of the operator document ---- */
#define NPU_IR_OPS_TENSOR(X)                                                                                 \
    X(0x0001, NPU_TENSOR_ADD, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_tensor_binary,                        \
      "add(Tensor lhs, Tensor rhs) -> Tensor", "lhs + rhs")                                                  \
    X(0x0002, NPU_TENSOR_SUB, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_tensor_binary,                        \
      "sub(Tensor lhs, Tensor rhs) -> Tensor", "lhs - rhs")                                                  \
    X(0x0003, NPU_TENSOR_MUL, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_tensor_binary,                        \
      "mul(Tensor lhs, Tensor rhs) -> Tensor", "lhs rhs")                                                    \
    X(0x0004, NPU_TENSOR_DIV, NPU_ELEMENTWISE | NPU_INPLACE, npu__type_tensor_binary,                        \
      "div(Tensor lhs, Tensor rhs) -> Tensor", "lhs / rhs; integers truncate towards zero")

/* ---- npu: what the core itself needs ---- */
#define NPU_IR_OPS_NPU(X)                                                                                    \
    X(0x0001, NPU_NPU_TRANSFER, NPU_VIEW | NPU_NO_KERNEL, npu__type_same,                                    \
      "transfer(Tensor x) -> Tensor", "a move between backends: what a transfer step does")                  \
    X(0x0002, NPU_NPU_GETITEM, NPU_VIEW, npu__type_getitem,                                                  \
      "getitem(Tensor[] results, *, int index=0) -> Tensor", "one result of an op with several")             \
    X(0x0003, NPU_NPU_CALL, 0, npu__type_body,                                                               \
      "call(Tensor[] args, *, Graph body) -> Tensor[]", "the outputs of a child graph, its inputs being args")

/* Every family: namespace, name, category, rows. A new family is one line here. */
#define NPU_IR_FAMILIES(X)                                                                                   \
    X(NPU_NS_ATEN, "aten", "convolution", NPU_IR_OPS_ATEN_CONVOLUTION)                                       \
    X(NPU_NS_ATEN, "aten", "matrix", NPU_IR_OPS_ATEN_MATRIX)                                                 \
    X(NPU_NS_ATEN, "aten", "contraction", NPU_IR_OPS_ATEN_CONTRACTION)                                       \
    X(NPU_NS_ATEN, "aten", "linalg", NPU_IR_OPS_ATEN_LINALG)                                                 \
    X(NPU_NS_ATEN, "aten", "recurrent", NPU_IR_OPS_ATEN_RECURRENT)                                           \
    X(NPU_NS_ATEN, "aten", "distance", NPU_IR_OPS_ATEN_DISTANCE)                                             \
    X(NPU_NS_ATEN, "aten", "activation", NPU_IR_OPS_ATEN_ACTIVATION)                                         \
    X(NPU_NS_ATEN, "aten", "normalisation", NPU_IR_OPS_ATEN_NORMALIZATION)                                   \
    X(NPU_NS_ATEN, "aten", "pooling", NPU_IR_OPS_ATEN_POOLING)                                               \
    X(NPU_NS_ATEN, "aten", "elementwise", NPU_IR_OPS_ATEN_ELEMENTWISE)                                       \
    X(NPU_NS_ATEN, "aten", "comparison", NPU_IR_OPS_ATEN_COMPARISON)                                         \
    X(NPU_NS_ATEN, "aten", "shape", NPU_IR_OPS_ATEN_SHAPE)                                                   \
    X(NPU_NS_ATEN, "aten", "reduction", NPU_IR_OPS_ATEN_REDUCTION)                                           \
    X(NPU_NS_ATEN, "aten", "lookup", NPU_IR_OPS_ATEN_LOOKUP)                                                 \
    X(NPU_NS_ATEN, "aten", "indexing", NPU_IR_OPS_ATEN_INDEXING)                                             \
    X(NPU_NS_ATEN, "aten", "border", NPU_IR_OPS_ATEN_BORDER)                                                 \
    X(NPU_NS_ATEN, "aten", "arrangement", NPU_IR_OPS_ATEN_ARRANGEMENT)                                       \
    X(NPU_NS_ATEN, "aten", "memory", NPU_IR_OPS_ATEN_MEMORY)                                                 \
    X(NPU_NS_ATEN, "aten", "logic", NPU_IR_OPS_ATEN_LOGIC)                                                   \
    X(NPU_NS_ATEN, "aten", "creation", NPU_IR_OPS_ATEN_CREATION)                                             \
    X(NPU_NS_ATEN, "aten", "alias", NPU_IR_OPS_ATEN_ALIAS)                                                   \
    X(NPU_NS_ATEN, "aten", "order", NPU_IR_OPS_ATEN_ORDER)                                                   \
    X(NPU_NS_ATEN, "aten", "loss", NPU_IR_OPS_ATEN_LOSS)                                                     \
    X(NPU_NS_ATEN, "aten", "vectors", NPU_IR_OPS_ATEN_VECTORS)                                               \
    X(NPU_NS_ATEN, "aten", "resize", NPU_IR_OPS_ATEN_RESIZE)                                                 \
    X(NPU_NS_ATEN, "aten", "special", NPU_IR_OPS_ATEN_SPECIAL)                                               \
    X(NPU_NS_AICF, "aicf", "device", NPU_IR_OPS_AICF)                                                        \
    X(NPU_NS_TENSOR, "tensor", "TensorOp", NPU_IR_OPS_TENSOR)                                                \
    X(NPU_NS_NPU, "npu", "structure", NPU_IR_OPS_NPU)

/* The symbols of all rows: NPU_ATEN_RELU == 0x00020040. */
enum {
#define NPU_X(number, symbol, traits, rule, schema, doc) symbol = (int)(NPU_NS_ATEN) << 16 | (number),
    NPU_IR_OPS_ATEN_CONVOLUTION(NPU_X) NPU_IR_OPS_ATEN_MATRIX(NPU_X) NPU_IR_OPS_ATEN_ACTIVATION(NPU_X)
    NPU_IR_OPS_ATEN_RECURRENT(NPU_X) NPU_IR_OPS_ATEN_DISTANCE(NPU_X)
    NPU_IR_OPS_ATEN_CONTRACTION(NPU_X) NPU_IR_OPS_ATEN_LINALG(NPU_X)
    NPU_IR_OPS_ATEN_NORMALIZATION(NPU_X) NPU_IR_OPS_ATEN_POOLING(NPU_X) NPU_IR_OPS_ATEN_ELEMENTWISE(NPU_X)
    NPU_IR_OPS_ATEN_COMPARISON(NPU_X) NPU_IR_OPS_ATEN_SHAPE(NPU_X) NPU_IR_OPS_ATEN_REDUCTION(NPU_X)
    NPU_IR_OPS_ATEN_LOOKUP(NPU_X) NPU_IR_OPS_ATEN_MEMORY(NPU_X)
    NPU_IR_OPS_ATEN_INDEXING(NPU_X) NPU_IR_OPS_ATEN_BORDER(NPU_X) NPU_IR_OPS_ATEN_ARRANGEMENT(NPU_X)
    NPU_IR_OPS_ATEN_LOGIC(NPU_X) NPU_IR_OPS_ATEN_CREATION(NPU_X) NPU_IR_OPS_ATEN_ALIAS(NPU_X)
    NPU_IR_OPS_ATEN_ORDER(NPU_X)
    NPU_IR_OPS_ATEN_LOSS(NPU_X)
    NPU_IR_OPS_ATEN_VECTORS(NPU_X)
    NPU_IR_OPS_ATEN_RESIZE(NPU_X)
    NPU_IR_OPS_ATEN_SPECIAL(NPU_X)
#undef NPU_X
#define NPU_X(number, symbol, traits, rule, schema, doc) symbol = (int)(NPU_NS_AICF) << 16 | (number),
    NPU_IR_OPS_AICF(NPU_X)
#undef NPU_X
#define NPU_X(number, symbol, traits, rule, schema, doc) symbol = (int)(NPU_NS_TENSOR) << 16 | (number),
    NPU_IR_OPS_TENSOR(NPU_X)
#undef NPU_X
#define NPU_X(number, symbol, traits, rule, schema, doc) symbol = (int)(NPU_NS_NPU) << 16 | (number),
    NPU_IR_OPS_NPU(NPU_X)
#undef NPU_X
    NPU_KIND_NONE = 0
};

/* What the registry knows of one kind. Immutable; belongs to the registry. */
typedef struct npu_op_def {
    npu_kind kind;
    uint32_t traits;
    npu_type_rule rule;
    const char *space;      /* "aten" */
    const char *category;
    const char *name;       /* "aten.conv2d.default"; "aicf.gemm" where the schema has no overload outside aten */
    const char *doc;
    const npu_schema *schema;
    const uint8_t *defaults;   /* the blob of all defaults; NULL where an argument is required */
    uint32_t defaults_size;
    uint32_t num_operand_args; /* Tensor arguments */
    bool is_custom;            /* added by npu_registry_add, or synthesised for an unknown op of a file */
} npu_op_def;

typedef struct npu_registry npu_registry;
typedef struct npu_registry_desc {
    const npu_op_table *tables; /* NULL = the built-in ones, npu_op_tables() */
    uint32_t num_tables;
    const npu_allocator *allocator; /* copied; NULL = NPU_IR_MALLOC */
    uint32_t _canary;               /* must be 0 */
} npu_registry_desc;

/* The built-in families. Static data. */
NPU_IR_API const npu_op_table *npu_op_tables(uint32_t *num_tables);
/* Errors: PARSE (a schema), DUPLICATE (a kind or a name), NO_MEMORY. */
NPU_IR_API npu_status npu_registry_create(npu_registry **out, const npu_registry_desc *desc, npu_diag *diag);
NPU_IR_API void npu_registry_destroy(npu_registry *registry); /* after all graphs that use it; NULL is fine */
/* Adds one row; `space` and the row's strings are borrowed. Give kinds in a namespace >= NPU_NS_USER. Errors:
   DUPLICATE, PARSE, STATE (frozen by a graph), NO_MEMORY. */
NPU_IR_API npu_status npu_registry_add(npu_registry *registry, const char *space, const npu_op_row *row,
                                       npu_diag *diag);
/* Accepts "aten.conv2d.default", "aten.conv2d" (its first overload), "aten::conv2d",
   "torch.ops.aten.conv2d.padding", "gemm" (an aicf kind) and "<built-in function getitem>". NULL = unknown;
   an unknown overload is unknown. */
NPU_IR_API const npu_op_def *npu_registry_find(const npu_registry *registry, const char *name);
NPU_IR_API const npu_op_def *npu_registry_get(const npu_registry *registry, npu_kind kind); /* NULL = unknown */
NPU_IR_API uint32_t npu_registry_count(const npu_registry *registry);
NPU_IR_API const npu_op_def *npu_registry_at(const npu_registry *registry, uint32_t i); /* in table order */

/* The built-in ABI table of the aicf kinds: ids 0..22, BADD RSUM MSEG SGDS ADAM BCOR LNEP BNEP GMEP, others
   0. */
NPU_IR_API const npu_abi_row *npu_aicf_abi(uint32_t *num_rows);
/* The device's blob for one op: bytes written to out (capacity at least 64). Errors: NOT_FOUND (no row fits),
   OVERFLOW (a value does not fit its letter, or capacity). Source: aicf attribute packers. */
NPU_IR_API npu_status npu_abi_encode(const npu_abi_row *rows, uint32_t num_rows, const npu_op_info *op,
                                     uint32_t *device_kind, uint32_t *attr_schema, uint8_t *out,
                                     uint32_t capacity, uint32_t *size);
/* The reverse: from (kind, schema id, device blob) to the packed blob of the kind's schema. Errors: NOT_FOUND
   (kind has no row), BAD_SCHEMA, BAD_ATTR_SIZE. Never a silent default. */
NPU_IR_API npu_status npu_abi_decode(const npu_abi_row *rows, uint32_t num_rows, const npu_op_def *def,
                                     uint32_t attr_schema, const uint8_t *blob, uint32_t blob_size,
                                     uint8_t *out, uint32_t capacity, uint32_t *size);

/* Binds a packed blob to a schema: args[num_args] point into the blob. operand_counts gives, per tensor-list
   argument, the number of its operands (NULL when there is none). Errors: BAD_ATTR_SIZE (truncated or
   trailing bytes, a bad tag), ARITY. */
NPU_IR_API npu_status npu_blob_bind(const npu_schema *schema, const uint8_t *blob, uint32_t size,
                                    const uint32_t *operand_counts, uint32_t num_operands,
                                    npu_bound_arg *args, npu_diag *diag);
/* Packs named values (tensors are skipped) in schema order, defaults filled in. Errors: ATTRIBUTE (unknown
   name, missing required value, wrong type), OVERFLOW (capacity). *size is the size needed. */
NPU_IR_API npu_status npu_blob_pack(const npu_schema *schema, const npu_arg *values, uint32_t num_values,
                                    uint8_t *out, uint32_t capacity, uint32_t *size, npu_diag *diag);
/* The same from a typed attrs struct (see npu_schema_attrs_layout); struct_size must be its sizeof. Errors:
   INVALID_ARGUMENT (size), OVERFLOW. */
NPU_IR_API npu_status npu_blob_pack_struct(const npu_schema *schema, const void *attrs, size_t struct_size,
                                           uint8_t *out, uint32_t capacity, uint32_t *size, npu_diag *diag);

/* -----------------------------------------------------------------------------------------------------------
   5  GRAPH                                                                                            >>graph

   Arrays addressed by 32-bit ids, in topological order because emit can only use values that exist. It owns
   the names, attributes, small constants and child graphs. Planning and running take it as const; rewriting
   builds a new one. Not thread-safe while it is being built. Getters given an id that does not exist return
   NULL, 0 or an empty string.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_graph npu_graph;

typedef enum npu_role {
    NPU_ROLE_NONE = 0, NPU_ROLE_INPUT = 1, NPU_ROLE_PARAM = 2, NPU_ROLE_CONSTANT = 3, NPU_ROLE_STATE = 4,
    NPU_ROLE_TEMPORARY = 5
} npu_role; /* an output is any value listed by npu_graph_output */

typedef enum npu_level { NPU_LEVEL_TENSOR = 0, NPU_LEVEL_TILE = 1, NPU_LEVEL_SCALAR = 2 } npu_level;

typedef struct npu_graph_desc {
    const char *name;               /* copied; NULL = "main" */
    npu_registry *registry;         /* borrowed and frozen; NULL = a private built-in one */
    const npu_allocator *allocator; /* copied; NULL = NPU_IR_MALLOC */
    const npu_logger *logger;             /* copied; NULL = none */
    uint32_t level;                 /* npu_level */
    uint32_t _canary;               /* must be 0 */
} npu_graph_desc;

/* NULL when memory is out or the desc is bad; every function takes that NULL and fails. */
NPU_IR_API npu_graph *npu_graph_create(const npu_graph_desc *desc);
NPU_IR_API void npu_graph_destroy(npu_graph *g);
NPU_IR_API npu_status npu_graph_status(const npu_graph *g);    /* of the first failed call; NO_MEMORY for NULL */
NPU_IR_API const npu_diag *npu_graph_diag(const npu_graph *g); /* of that call; never NULL */
NPU_IR_API void npu_graph_clear_error(npu_graph *g);           /* forget it: the graph itself is unharmed */
NPU_IR_API const npu_registry *npu_graph_registry(const npu_graph *g);
NPU_IR_API const char *npu_graph_name(const npu_graph *g);

/* The source location of what is built next: npu_relu(NPU_AT(g), x). */
#define NPU_AT(g) npu_graph_at((g), __FILE__, __LINE__)
NPU_IR_API npu_graph *npu_graph_at(npu_graph *g, const char *file, int line); /* `file` is borrowed; returns g */

/* A graph owns its child graphs; `index` is what a Graph attribute holds. */
NPU_IR_API npu_graph *npu_graph_child(npu_graph *g, const char *name, npu_level level, uint32_t *index);
NPU_IR_API npu_graph *npu_graph_child_at(const npu_graph *g, uint32_t index);
NPU_IR_API uint32_t npu_graph_num_children(const npu_graph *g);

NPU_IR_API uint32_t npu_graph_num_values(const npu_graph *g); /* ids 1 .. n */
NPU_IR_API uint32_t npu_graph_num_ops(const npu_graph *g);    /* ids 1 .. n, in topological order */
NPU_IR_API uint32_t npu_graph_num_inputs(const npu_graph *g);
NPU_IR_API uint32_t npu_graph_num_outputs(const npu_graph *g);
NPU_IR_API npu_value npu_graph_input(const npu_graph *g, uint32_t i);
NPU_IR_API npu_value npu_graph_output(const npu_graph *g, uint32_t i);
NPU_IR_API const char *npu_graph_output_name(const npu_graph *g, uint32_t i);
NPU_IR_API npu_value npu_graph_find(const npu_graph *g, const char *name); /* by value name; id 0 = none */
NPU_IR_API size_t npu_graph_memory(const npu_graph *g); /* bytes it holds */

NPU_IR_API const npu_spec *npu_value_spec(const npu_graph *g, npu_value v);
/* The given name, else "%" and the id; the text belongs to the graph's scratch and lives until the next call
   for an unnamed value. */
NPU_IR_API const char *npu_value_name(const npu_graph *g, npu_value v);
NPU_IR_API bool npu_value_has_name(const npu_graph *g, npu_value v);
NPU_IR_API npu_role npu_value_role(const npu_graph *g, npu_value v);
NPU_IR_API npu_op npu_value_producer(const npu_graph *g, npu_value v, uint32_t *result_index); /* id 0 = none */
NPU_IR_API uint32_t npu_value_num_users(const npu_graph *g, npu_value v); /* an op that uses it twice counts twice */
NPU_IR_API npu_op npu_value_user(const npu_graph *g, npu_value v, uint32_t i); /* in order of emission; O(i) */
NPU_IR_API const void *npu_value_data(const npu_graph *g, npu_value v, size_t *size); /* constants, bound params; else NULL */

NPU_IR_API npu_kind npu_op_kind(const npu_graph *g, npu_op op);
NPU_IR_API const npu_op_def *npu_op_definition(const npu_graph *g, npu_op op);
NPU_IR_API const char *npu_op_name(const npu_graph *g, npu_op op); /* "" = unnamed */
NPU_IR_API uint32_t npu_op_num_operands(const npu_graph *g, npu_op op); /* holes counted, lists flattened */
NPU_IR_API npu_value npu_op_operand_value(const npu_graph *g, npu_op op, uint32_t i); /* id 0 = a hole */
NPU_IR_API uint32_t npu_op_num_results(const npu_graph *g, npu_op op);
NPU_IR_API npu_value npu_op_result(const npu_graph *g, npu_op op, uint32_t i);
NPU_IR_API const uint8_t *npu_op_attrs(const npu_graph *g, npu_op op, uint32_t *size); /* the packed blob */
NPU_IR_API uint32_t npu_op_location(const npu_graph *g, npu_op op, const char **file); /* line, 0 = unknown */
/* Everything about an op as backends see it. `info` points into `storage`, which must outlive it. */
#define NPU_MAX_ARGS 40
typedef struct npu_op_storage {
    npu_bound_arg args[NPU_MAX_ARGS];
    const npu_spec **specs;    /* in, then out; owned: free with npu_op_storage_free */
    const void **data;
    size_t capacity;
    npu_spec *known;           /* copies of specs in which symbols have values */
    uint8_t *blob;             /* a copy of the attributes in which they do */
    size_t num_known, blob_size;
    npu_allocator allocator;
} npu_op_storage;
NPU_IR_API npu_status npu_op_describe(const npu_graph *g, npu_op op, npu_op_info *info,
                                      npu_op_storage *storage);
NPU_IR_API void npu_op_storage_free(npu_op_storage *storage);

/* Constraints and training notes, kept, printed and given to backends. */
enum { NPU_CONSTRAINT_INPLACE_OK = 1u << 0, NPU_HINT_PREFER_EPILOGUE = 1u << 1 };
NPU_IR_API npu_status npu_op_set_name(npu_graph *g, npu_op op, const char *name);
NPU_IR_API npu_status npu_op_set_constraints(npu_graph *g, npu_op op, uint32_t constraints);
NPU_IR_API uint32_t npu_op_constraints(const npu_graph *g, npu_op op);
NPU_IR_API npu_status npu_op_add_saved(npu_graph *g, npu_op op, npu_value v); /* v is kept for the backward pass */
NPU_IR_API uint32_t npu_op_num_saved(const npu_graph *g, npu_op op);
NPU_IR_API npu_value npu_op_saved(const npu_graph *g, npu_op op, uint32_t i);

/* Checks every invariant: ids in range, operands before their op, producers and users agree, specs equal what
   deduction gives, names unique, blobs decode. Calls report for each violation (report may be NULL); returns
   the status of the first. */
NPU_IR_API npu_status npu_graph_validate(const npu_graph *g, void (*report)(void *ctx, const npu_diag *diag),
                                         void *ctx);

/* Symbolic dims: dims equal to the returned value (below -1) are equal. max 0 = unbounded. Errors: 0 is
   returned. A dim of a result that cannot be told from the operands' specs gets a symbol of its own: "d0" ..,
   at least 0, at most what the op gives where all its operands' dims are at their largest. npu_emit_typed
   gives such a dim a symbol of the caller's, with a bound of the caller's. */
NPU_IR_API int64_t npu_graph_symbol(npu_graph *g, const char *name, int64_t min, int64_t max);
NPU_IR_API const char *npu_graph_symbol_name(const npu_graph *g, int64_t dim);
/* Bounds of a dim, which may be a number; false where it has none above: an unbounded symbol, or
   NPU_DYNAMIC_DIM. */
NPU_IR_API bool npu_graph_dim_bounds(const npu_graph *g, int64_t dim, int64_t *min, int64_t *max);
/* A new graph in which every listed symbol has its value; all specs are deduced again. Errors: RANGE (outside
   min..max), those of emit. */
NPU_IR_API npu_status npu_graph_specialize(npu_graph **out, const npu_graph *g, const char *const *names,
                                           const int64_t *dims, uint32_t count, npu_diag *diag);

/* -----------------------------------------------------------------------------------------------------------
   6  TYPE DEDUCTION                                                                                  >>deduce

   A type rule reads the specs, bound arguments and constant data of an op and adds one spec per result. It is
   pure: no allocation, no state. Rules are named after what they do; the table of rules is at >>impl-deduce.
   It runs when the op is built, with symbols among the dims, and again in every run of an op whose dims are
   not all known before (>>exec): then with this run's dims, and for NPU_DATA with the data of all operands.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_deduce {
    const npu_op_info *op;
    const npu_op_def *def;
    npu_diag *diag;          /* where npu_deduce_fail writes */
    npu_spec *results;       /* filled by npu_deduce_result */
    uint32_t num_results, capacity;
    npu_allocator allocator; /* grows results */
    bool is_scalar;          /* in a graph of NPU_LEVEL_SCALAR: operands and results are scalars, whatever the schema says */
} npu_deduce;

NPU_IR_API npu_status npu_deduce_result(npu_deduce *d, const npu_spec *spec);
/* Writes "<op>: <message>" with the operand's name and returns status. operand may be NULL. */
NPU_IR_API npu_status npu_deduce_fail(npu_deduce *d, npu_status status, const char *operand,
                                      const char *format, ...) NPU_IR_PRINTF(4, 5);
/* Spec of a tensor argument by name, NULL = a hole. */
NPU_IR_API const npu_spec *npu_deduce_spec(const npu_deduce *d, const char *name);
/* What a rule makes of a dim that data decides, where it does not see the data: a negative number that stands
   for at most `most` elements (below 0 = no bound). Dims of one op made with equal arguments are equal dims;
   `which` keeps others apart. A size that only has to be computed from dims that are not known is
   NPU_DYNAMIC_DIM. The graph gives both a symbol. */
NPU_IR_API int64_t npu_deduce_unknown(uint32_t which, int64_t most);

/* -----------------------------------------------------------------------------------------------------------
   7  BUILDER, LAYERS, MODELS                                                                        >>builder

   Builders read like mathematics: y = npu_relu(g, npu_linear(g, x, w, b)). A builder returns a failed handle
   (id 0) when an operand has failed or the op is rejected; the graph keeps the first diagnostic. Required
   operands and dims are parameters; options are one attrs struct last, NULL = all defaults. Attrs structs are
   the schema's non-tensor arguments in order: a nonzero member always counts; where zero is legal but not the
   default, `bool has_x` follows x and is needed only to pass zero. Any op can also be emitted by name.
   -------------------------------------------------------------------------------------------------------- */

/* Values without a producer. Names are copied and must be unique in the graph (NULL = unnamed). Errors:
   DUPLICATE, RANK, DTYPE. */
NPU_IR_API npu_value npu_input(npu_graph *g, const char *name, npu_spec spec);
/* A parameter; the same name again returns the first one when the specs agree. Its data is bound with
   npu_param_bind. */
NPU_IR_API npu_value npu_param(npu_graph *g, const char *name, npu_spec spec);
/* Binds host data of exactly `size` bytes to a parameter; borrowed until everything made from the graph is
   destroyed. Errors: SHAPE (size), NOT_FOUND, INVALID_ARGUMENT (not a parameter). */
NPU_IR_API npu_status npu_param_bind(npu_graph *g, const char *name, const void *data, size_t size);
NPU_IR_API npu_value npu_constant(npu_graph *g, const char *name, npu_spec spec, const void *data);     /* copies the data */
NPU_IR_API npu_value npu_constant_ref(npu_graph *g, const char *name, npu_spec spec, const void *data); /* borrows it */
NPU_IR_API npu_value npu_number(npu_graph *g, npu_scalar x); /* a wrapped number: what x * 0.5 holds as its second operand */
/* State lives in the exec across runs (zero at first); npu_update names the value that it has in the next
   run, else it stays. */
NPU_IR_API npu_value npu_state(npu_graph *g, const char *name, npu_spec spec);
NPU_IR_API npu_status npu_update(npu_graph *g, npu_value state, npu_value next);
/* Lists v as an output. name NULL = the value's name. Errors: DUPLICATE (name), INVALID_ARGUMENT. */
NPU_IR_API npu_status npu_output(npu_graph *g, const char *name, npu_value v);
NPU_IR_API npu_status npu_value_set_name(npu_graph *g, npu_value v, const char *name); /* DUPLICATE */

/* Emits one op. Arguments by name or position; a missing one takes its schema default, an unknown one is an
   error. A number given for a Tensor argument becomes npu_number. Errors: those of the type rule; NOT_FOUND
   (kind), ATTRIBUTE, ARITY. */
NPU_IR_API npu_op npu_emit(npu_graph *g, npu_kind kind, const npu_arg *args, uint32_t num_args);
NPU_IR_API npu_op npu_emit_name(npu_graph *g, const char *name, const npu_arg *args, uint32_t num_args);
/* The same with the result specs given: checked against the type rule where there is one. An unknown name
   gets a synthesised row, so that graphs with unknown ops load, print and partition. */
NPU_IR_API npu_op npu_emit_typed(npu_graph *g, const char *name, const npu_arg *args, uint32_t num_args,
                                 const npu_spec *results, uint32_t num_results);
/* The core of every builder: operands in schema order (holes have id 0), `groups` the lengths of tensor
   lists, attrs a typed struct or NULL. */
NPU_IR_API npu_op npu_emit_struct(npu_graph *g, npu_kind kind, const npu_value *operands,
                                  uint32_t num_operands, const uint32_t *groups, const void *attrs,
                                  size_t attrs_size);

/* ---- convolution ----
   x [N,C,H,W] or [C,H,W], w [O,C/groups,R,S], b [O] or none; all one float dtype (or i64).
   result [N,O,H',W'] with H' = (H + 2 padding - dilation (R - 1) - 1) / stride + 1.
   Errors: RANK, SHAPE, DTYPE.                                               Source: ATen conv1d, conv2d, conv_transpose2d. */
typedef struct npu_conv1d_attrs {
    int64_t stride[1];   /* >= 1, default 1 */
    int64_t padding[1];  /* >= 0 */
    int64_t dilation[1]; /* >= 1, default 1 */
    int64_t groups;      /* >= 1, default 1 */
} npu_conv1d_attrs;
typedef struct npu_conv2d_attrs {
    int64_t stride[2];   /* rows, columns; >= 1, default 1 */
    int64_t padding[2];  /* zeros on both sides, >= 0 */
    int64_t dilation[2]; /* >= 1, default 1 */
    int64_t groups;      /* >= 1, default 1 */
} npu_conv2d_attrs;
typedef struct npu_conv_transpose2d_attrs {
    int64_t stride[2], padding[2];
    int64_t output_padding[2]; /* < max(stride, dilation) */
    int64_t groups;            /* w is [C,O/groups,R,S] */
    int64_t dilation[2];
} npu_conv_transpose2d_attrs;
NPU_IR_API npu_value npu_conv1d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                const npu_conv1d_attrs *attrs);
NPU_IR_API npu_value npu_conv2d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                const npu_conv2d_attrs *attrs);
NPU_IR_API npu_value npu_conv_transpose2d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                          const npu_conv_transpose2d_attrs *attrs);

/* ---- matrix ----
   linear: x [...,K], w [N,K], b [N] or none -> [...,N].   mm: [M,K] [K,N].   bmm: [B,M,K] [B,K,N].
   matmul: 1-D to N-D, batch dims broadcast.               addmm: beta c + alpha a b, c broadcast to [M,N].
   All operands have one dtype.  Errors: RANK, SHAPE, DTYPE.                                       Source: ATen. */
typedef struct npu_addmm_attrs {
    npu_scalar beta;  bool has_beta;  /* default 1 */
    npu_scalar alpha; bool has_alpha; /* default 1 */
} npu_addmm_attrs;
NPU_IR_API npu_value npu_linear(npu_graph *g, npu_value x, npu_value w, npu_value b);
NPU_IR_API npu_value npu_mm(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_bmm(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_matmul(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_addmm(npu_graph *g, npu_value c, npu_value a, npu_value b,
                               const npu_addmm_attrs *attrs);

/* ---- activation ----   x [...]: result has its spec (sigmoid and tanh of integers give f32). Errors: DTYPE. Source: ATen. */
typedef struct npu_gelu_attrs { const char *approximate; /* "none" (default) or "tanh" */ } npu_gelu_attrs;
typedef struct npu_leaky_relu_attrs { npu_scalar negative_slope; bool has_negative_slope; /* default 0.01 */ } npu_leaky_relu_attrs;
typedef struct npu_hardtanh_attrs {
    npu_scalar min_val; bool has_min_val; /* default -1 */
    npu_scalar max_val; bool has_max_val; /* default 1 */
} npu_hardtanh_attrs;
typedef struct npu_elu_attrs {
    npu_scalar alpha; bool has_alpha;             /* default 1 */
    npu_scalar scale; bool has_scale;             /* default 1 */
    npu_scalar input_scale; bool has_input_scale; /* default 1 */
} npu_elu_attrs;
NPU_IR_API npu_value npu_relu(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_silu(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_sigmoid(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_tanh(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_hardswish(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_gelu(npu_graph *g, npu_value x, const npu_gelu_attrs *attrs);
NPU_IR_API npu_value npu_leaky_relu(npu_graph *g, npu_value x, const npu_leaky_relu_attrs *attrs);
NPU_IR_API npu_value npu_hardtanh(npu_graph *g, npu_value x, const npu_hardtanh_attrs *attrs);
NPU_IR_API npu_value npu_elu(npu_graph *g, npu_value x, const npu_elu_attrs *attrs);

/* ---- normalisation ----
   batch_norm: x [N,C,...], weight, bias, mean, var [C]; evaluation mode (running statistics), eps > 0.
   layer_norm: over the trailing num_dims dims of x, weight and bias of that shape or none.
   group_norm: x [N,C,...], weight, bias [C] or none.     Errors: RANK, SHAPE, DTYPE.     Source: ATen; eps default 1e-5. */
NPU_IR_API npu_value npu_batch_norm(npu_graph *g, npu_value x, npu_value weight, npu_value bias,
                                    npu_value mean, npu_value var, double eps);
NPU_IR_API npu_value npu_layer_norm(npu_graph *g, npu_value x, npu_value weight, npu_value bias,
                                    uint32_t num_dims, double eps);
NPU_IR_API npu_value npu_group_norm(npu_graph *g, npu_value x, int64_t num_groups, npu_value weight,
                                    npu_value bias, double eps);

/* ---- pooling ----   x [N,C,H,W] or [C,H,W]; kernel rows, columns. Errors: RANK, SHAPE, DTYPE. Source: ATen. */
typedef struct npu_max_pool2d_attrs {
    int64_t kernel_size[2]; /* >= 1, required */
    npu_ints stride;        /* 1 or 2 numbers, empty = kernel_size */
    int64_t padding[2];     /* <= kernel / 2 */
    int64_t dilation[2];    /* default 1 */
    bool ceil_mode;
} npu_max_pool2d_attrs;
typedef struct npu_avg_pool2d_attrs {
    int64_t kernel_size[2]; /* >= 1, required */
    npu_ints stride;        /* 1 or 2 numbers, empty = kernel_size */
    int64_t padding[2];
    bool ceil_mode;
    bool count_include_pad; bool has_count_include_pad;   /* default true */
    int64_t divisor_override; bool has_divisor_override;  /* not 0 */
} npu_avg_pool2d_attrs;
NPU_IR_API npu_value npu_max_pool2d(npu_graph *g, npu_value x, const npu_max_pool2d_attrs *attrs);
NPU_IR_API npu_value npu_avg_pool2d(npu_graph *g, npu_value x, const npu_avg_pool2d_attrs *attrs);
NPU_IR_API npu_value npu_adaptive_avg_pool2d(npu_graph *g, npu_value x, int64_t rows, int64_t columns);

/* ---- elementwise ----   operands broadcast and promote as ATen does. Errors: SHAPE, DTYPE. Source: ATen. */
NPU_IR_API npu_value npu_add(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_sub(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_mul(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_div(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_pow(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_maximum(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_minimum(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_sqrt(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_rsqrt(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_neg(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_abs(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_exp(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_log(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_clamp(npu_graph *g, npu_value x, double min, double max);
NPU_IR_API npu_value npu_eq(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_ne(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_lt(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_le(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_gt(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_ge(npu_graph *g, npu_value a, npu_value b);
NPU_IR_API npu_value npu_where(npu_graph *g, npu_value condition, npu_value a, npu_value b);

/* ---- shape ----   negative dims count from the end; one size may be -1 (what is left). Errors: SHAPE, RANK, AXIS, RANGE. Source: ATen.
   split and chunk return the op: its pieces are npu_op_result(g, op, i). */
NPU_IR_API npu_value npu_reshape(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank);
NPU_IR_API npu_value npu_permute(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank);
NPU_IR_API npu_value npu_transpose(npu_graph *g, npu_value x, int64_t dim0, int64_t dim1);
NPU_IR_API npu_value npu_flatten(npu_graph *g, npu_value x, int64_t start_dim, int64_t end_dim);
NPU_IR_API npu_value npu_squeeze(npu_graph *g, npu_value x, int64_t dim);
NPU_IR_API npu_value npu_unsqueeze(npu_graph *g, npu_value x, int64_t dim);
NPU_IR_API npu_value npu_expand(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank);
NPU_IR_API npu_value npu_repeat(npu_graph *g, npu_value x, const int64_t *repeats, uint32_t rank);
NPU_IR_API npu_value npu_cat(npu_graph *g, const npu_value *xs, uint32_t n, int64_t dim);
NPU_IR_API npu_value npu_stack(npu_graph *g, const npu_value *xs, uint32_t n, int64_t dim);
NPU_IR_API npu_op npu_split(npu_graph *g, npu_value x, int64_t size, int64_t dim);
NPU_IR_API npu_op npu_chunk(npu_graph *g, npu_value x, int64_t chunks, int64_t dim);
NPU_IR_API npu_value npu_select(npu_graph *g, npu_value x, int64_t dim, int64_t index);
NPU_IR_API npu_value npu_slice(npu_graph *g, npu_value x, int64_t dim, int64_t start, int64_t end,
                               int64_t step);

/* ---- reduction, softmax, attention, lookup, memory ----
   dims NULL with n 0 = all dims. max_dim returns the op: result 0 values, result 1 indices (i64). attention:
   q [...,L,E], k [...,S,E],
   v [...,S,V], mask broadcast to [...,L,S], bool or q's dtype, or none.            Errors: AXIS, DTYPE, SHAPE. Source: ATen. */
typedef struct npu_attention_attrs {
    double dropout_p;                /* must be 0: evaluation only */
    bool is_causal;
    double scale; bool has_scale;    /* default 1 / sqrt(E) */
    bool enable_gqa;                 /* key and value heads repeat */
} npu_attention_attrs;
NPU_IR_API npu_value npu_sum(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim);
NPU_IR_API npu_value npu_mean(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim);
NPU_IR_API npu_value npu_amax(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim);
NPU_IR_API npu_value npu_amin(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim);
NPU_IR_API npu_op npu_max_dim(npu_graph *g, npu_value x, int64_t dim, bool keepdim);
NPU_IR_API npu_value npu_argmax(npu_graph *g, npu_value x, int64_t dim, bool keepdim);
NPU_IR_API npu_value npu_softmax(npu_graph *g, npu_value x, int64_t dim);
NPU_IR_API npu_value npu_log_softmax(npu_graph *g, npu_value x, int64_t dim);
NPU_IR_API npu_value npu_scaled_dot_product_attention(npu_graph *g, npu_value q, npu_value k, npu_value v,
                                                      npu_value mask, const npu_attention_attrs *attrs);
NPU_IR_API npu_value npu_embedding(npu_graph *g, npu_value weight, npu_value indices);
NPU_IR_API npu_value npu_gather(npu_graph *g, npu_value x, int64_t dim, npu_value index);
NPU_IR_API npu_value npu_to(npu_graph *g, npu_value x, npu_dtype dtype);
NPU_IR_API npu_value npu_clone(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_dropout(npu_graph *g, npu_value x, double p); /* evaluation: the identity */

/* ---- aicf ---- device kinds with byte-exact attributes: equal specs, no broadcasting. Source: aicf op
   contracts. */
typedef struct npu_aicf_gemm_attrs { bool transA, transB; } npu_aicf_gemm_attrs;
NPU_IR_API npu_value npu_aicf_add(npu_graph *g, npu_value a, npu_value c);
NPU_IR_API npu_value npu_aicf_relu(npu_graph *g, npu_value x);
NPU_IR_API npu_value npu_aicf_gemm(npu_graph *g, npu_value a, npu_value b, const npu_aicf_gemm_attrs *attrs);
NPU_IR_API npu_value npu_aicf_bias_add(npu_graph *g, npu_value x, npu_value bias);
NPU_IR_API npu_value npu_aicf_reduce_sum(npu_graph *g, npu_value x, int64_t axis);

/* ---- layers and models ----
   A model is the user's view of a graph: inputs, layers, outputs. A layer is a plain struct with an emit
   function; it adds its parameters (named "<layer>.W") and ops to the graph and returns the result. Layers
   are read during npu_model_add only. Put your own members behind `npu_layer base` for a custom layer. */
typedef struct npu_model npu_model;
typedef struct npu_layer {
    const char *name; /* prefix of everything it emits; NULL = unnamed */
    npu_value (*emit)(const struct npu_layer *layer, npu_graph *g, const npu_value *x, uint32_t num_x);
} npu_layer;

typedef struct npu_layer_linear {    /* x [...,in] -> [...,out]; params <name>.W [out,in], <name>.b [out] */
    npu_layer base;
    int64_t in_features, out_features;
    bool no_bias;
    npu_dtype dtype;                 /* default f32 */
} npu_layer_linear;
typedef struct npu_layer_relu { npu_layer base; bool save_for_backward; } npu_layer_relu;
typedef struct npu_layer_add { npu_layer base; } npu_layer_add; /* two inputs of equal specs */
typedef struct npu_layer_conv2d {    /* params <name>.weight [out,in/groups,R,S], <name>.bias [out] */
    npu_layer base;
    int64_t in_channels, out_channels, kernel_size[2];
    npu_conv2d_attrs attrs;
    bool no_bias;
    npu_dtype dtype;
} npu_layer_conv2d;
typedef struct npu_layer_batch_norm { /* params <name>.weight .bias .running_mean .running_var [features] */
    npu_layer base;
    int64_t num_features;
    double eps;                      /* default 1e-5 */
    npu_dtype dtype;
} npu_layer_batch_norm;
typedef struct npu_layer_layer_norm {
    npu_layer base;
    int64_t features;
    double eps;
    npu_dtype dtype;
} npu_layer_layer_norm;
typedef struct npu_layer_embedding {
    npu_layer base;
    int64_t num_embeddings, features;
    npu_dtype dtype;
} npu_layer_embedding;
typedef struct npu_layer_attention { /* x [N,L,E] -> [N,L,E]; linear layers <name>.q_proj .k_proj .v_proj .out_proj */
    npu_layer base;
    int64_t features, num_heads;     /* num_heads divides features */
    bool is_causal;
    npu_dtype dtype;
} npu_layer_attention;

NPU_IR_API npu_layer_linear npu_linear_layer(const char *name, int64_t in_features, int64_t out_features);
NPU_IR_API npu_layer_relu npu_relu_layer(const char *name);
NPU_IR_API npu_layer_add npu_add_layer(const char *name);
NPU_IR_API npu_layer_conv2d npu_conv2d_layer(const char *name, int64_t in_channels, int64_t out_channels,
                                             int64_t kernel_size);
NPU_IR_API npu_layer_batch_norm npu_batch_norm_layer(const char *name, int64_t num_features);
NPU_IR_API npu_layer_layer_norm npu_layer_norm_layer(const char *name, int64_t features);
NPU_IR_API npu_layer_embedding npu_embedding_layer(const char *name, int64_t num_embeddings,
                                                   int64_t features);
NPU_IR_API npu_layer_attention npu_attention_layer(const char *name, int64_t features, int64_t num_heads);

NPU_IR_API npu_model *npu_model_create(const npu_graph_desc *desc); /* NULL = out of memory */
NPU_IR_API void npu_model_destroy(npu_model *m);                    /* and its graph */
NPU_IR_API npu_graph *npu_model_graph(npu_model *m);                /* borrowed: the builder below the model */
NPU_IR_API npu_value npu_model_input(npu_model *m, const char *name, npu_spec spec);
NPU_IR_API npu_value npu_model_add(npu_model *m, const npu_layer *layer, npu_value x);
NPU_IR_API npu_value npu_model_add2(npu_model *m, const npu_layer *layer, npu_value x, npu_value y);
NPU_IR_API npu_status npu_model_output(npu_model *m, const char *name, npu_value v);

/* -----------------------------------------------------------------------------------------------------------
   8  GRAPH FORMS                                                                                      >>forms

   Text that parses back: print, parse, print gives the identical text and the same ids, constants bit-exact.
   Data of parameters and source locations are not part of it. The grammar is at >>impl-forms.

       npu_ir 1
       graph main
       input x : f32[2,3]
       param fc.W : f32[4,3]
       %3 = aicf.gemm(a=x, b=fc.W, transB=true) : f32[2,4]
       output y = %3
   -------------------------------------------------------------------------------------------------------- */

NPU_IR_API npu_status npu_graph_print(const npu_graph *g, npu_text *text);
/* Parses the text form. On failure *out is NULL and diag has the line. Errors: PARSE, NOT_FOUND (a value
   before its definition: a cycle, too), DUPLICATE, and those of emit. Unknown ops load with the printed
   result specs. */
NPU_IR_API npu_status npu_graph_parse(npu_graph **out, const char *text, size_t len,
                                      const npu_graph_desc *desc, npu_diag *diag);
/* The short dump of document 002: "[Graph] inputs=[x] outputs=[y] ops=1", then one line per op. */
NPU_IR_API npu_status npu_graph_dump(const npu_graph *g, npu_text *text);
NPU_IR_API npu_status npu_graph_print_dot(const npu_graph *g, npu_text *text); /* Graphviz */

/* -----------------------------------------------------------------------------------------------------------
   9  BACKEND INTERFACE                                                                              >>backend

   A backend is one npu_backend: plain data and function pointers. Everything that crosses it is a plain
   struct that starts with its size and holds fixed-width integers and pointers; a backend needs no npu_
   function to do its job. In call order:

     1 supports   asked once per op while partitioning: yes, or a reason code and words
     2 compile    once per group of ops: makes a program from host memory only; says scratch, in-place pairs, and
                  whether the core plans the memory of the group's inner values. A failure is no error: the
                  group is offered to the next backend, with the reason REJECTED.
     3 alloc      one buffer per region for all planned values, one for weights; upload for each weight, once
     4 place      (optional) tells a program where its values were planned
     5 upload     graph inputs and transfers in          } every run; with `fence` non-NULL they may return at once
     6 submit     runs a program                         } and set *fence; wait or poll tell when it is done.
     7 download   graph outputs and transfers out        } fence NULL = synchronous.
     8 release    the program; free: the buffers

   Any function may be called from the thread that uses the exec; supports and compile from the thread that
   plans. Two execs of one program may submit from two threads at once. Failures are npu_status values; the
   core adds what it knows.
   -------------------------------------------------------------------------------------------------------- */

#define NPU_BACKEND_API 1u
#define NPU_NO_INDEX 0xffffffffu

/* Why an op is where it is. */
#define NPU_IR_REASONS(X)                                                                          \
    X(0, NPU_REASON_CLAIMED, "claimed")                                                            \
    X(1, NPU_REASON_OP, "op not supported")                                                        \
    X(2, NPU_REASON_DTYPE, "dtype not supported")                                                  \
    X(3, NPU_REASON_SHAPE, "shape not supported")                                                  \
    X(4, NPU_REASON_ATTRIBUTE, "attribute not supported")                                          \
    X(5, NPU_REASON_TOO_SMALL, "group too small")                                                  \
    X(6, NPU_REASON_COST, "not worth the transfers")                                               \
    X(7, NPU_REASON_CYCLE, "would make a cycle")                                                   \
    X(8, NPU_REASON_BUDGET, "over the limit of groups or bytes")                                   \
    X(9, NPU_REASON_FORCED, "placed by the caller")                                                \
    X(10, NPU_REASON_REJECTED, "compile refused the group")                                        \
    X(11, NPU_REASON_DYNAMIC, "dynamic dims not supported")
typedef enum npu_reason {
#define NPU_X(number, symbol, text) symbol = number,
    NPU_IR_REASONS(NPU_X)
#undef NPU_X
} npu_reason;
NPU_IR_API const char *npu_reason_text(uint32_t reason);

typedef struct npu_support {
    uint32_t size;
    uint32_t reason; /* npu_reason; 0 = yes */
    char text[96];   /* the backend's own words, may stay empty */
} npu_support;

enum { /* traits of a backend */
    NPU_BACKEND_HOST = 1u << 0,    /* buffers are host memory: handle is the address, no copies are needed */
    NPU_BACKEND_DYNAMIC = 1u << 1, /* takes ops whose dims are only bounded */
    NPU_BACKEND_EVERYTHING = 1u << 2 /* worth asking for any op; set by the CPU backend */
};

typedef struct npu_region {
    uint32_t size;
    uint32_t id;
    const char *name;
    uint64_t capacity;   /* bytes, 0 = unlimited */
    uint32_t alignment;  /* bytes, power of two */
    uint32_t slack;      /* bytes that kernels may read past the end */
    uint32_t shared_with_host; /* 1 = the host may use handles as addresses */
} npu_region;

typedef struct npu_buffer {
    uint32_t size;
    uint32_t region;  /* index into npu_backend.regions */
    void *handle;     /* the backend's; the address where the region is host memory */
    uint64_t bytes;
} npu_buffer;

/* A tensor at the ABI: dense row-major unless strides say otherwise. */
typedef struct npu_tensor {
    uint32_t size;
    uint32_t dtype;            /* npu_dtype; 0 = absent */
    uint32_t rank;
    uint32_t _reserved;
    npu_buffer *buffer;
    uint64_t offset;           /* bytes */
    int64_t dims[NPU_MAX_RANK];
    int64_t strides[NPU_MAX_RANK]; /* elements */
} npu_tensor;

enum { NPU_GROUP_INPUT = 1, NPU_GROUP_OUTPUT = 2, NPU_GROUP_INNER = 3, NPU_GROUP_WEIGHT = 4 };
typedef struct npu_group_value {
    uint32_t size;
    uint32_t value;        /* id in the graph */
    uint32_t role;         /* NPU_GROUP_ */
    const npu_spec *spec;
    const char *name;      /* "" = unnamed; during compile only */
    const void *data;      /* weights: host memory, valid as long as the program; else NULL */
} npu_group_value;
typedef struct npu_group_op {
    npu_op_info info;      /* in_data set for weights */
    const uint32_t *in;    /* info.num_in indices into the group's values; NPU_NO_INDEX = a hole */
    const uint32_t *out;
} npu_group_op;
/* What compile gets; all of it valid during the call only, except weight data. */
typedef struct npu_group {
    uint32_t size;
    uint32_t num_ops, num_values;
    const npu_group_op *ops;       /* in execution order */
    const npu_group_value *values;
} npu_group;

typedef struct npu_inplace { uint32_t op, operand, result; } npu_inplace; /* result may take the operand's memory */
/* What compile gives back, zeroed before the call. */
typedef struct npu_compiled {
    uint32_t size;
    void *program;             /* the backend's; given to place, submit, release */
    uint64_t scratch;          /* bytes needed while the group runs */
    uint32_t scratch_alignment;
    uint32_t plans_inner;      /* 0 = the core plans inner values, 1 = the program needs none from the core */
    uint32_t num_inplace;
    const npu_inplace *inplace; /* read right after compile; owned by the program */
    char text[96];             /* why, when compile fails */
} npu_compiled;

/* Where a value of a group is: buffers[buffer] + offset. A view shares its base's place. */
typedef struct npu_place {
    uint32_t buffer; /* index into npu_binding.buffers; NPU_NO_INDEX = nowhere (inner value that the backend plans) */
    uint32_t alias;  /* 1 = the same bytes as the operand it is a view of: the op that makes it has nothing to do */
    uint64_t offset; /* bytes */
} npu_place;
typedef struct npu_binding {
    uint32_t size;
    uint32_t num_buffers;
    npu_buffer *const *buffers;  /* of this backend; [0] planned values, [1] weights, then bound inputs and outputs */
    const npu_place *places;     /* one per value of the group; the same at every submit of an exec's program */
    npu_place scratch;
    const npu_parallel *parallel; /* NULL = serial */
    uint64_t stream;
    void (*op_done)(void *ctx, uint32_t op, uint64_t begin_ns, uint64_t end_ns); /* NULL = not profiled */
    void *op_done_ctx;
    uint64_t (*clock)(void);     /* nanoseconds, for op_done; never NULL */
    uint32_t *failed_op;         /* where a failing submit may say which op it was; never NULL */
} npu_binding;

typedef uint64_t npu_fence; /* the backend's; 0 = nothing to wait for */

typedef struct npu_backend {
    /* identity: required */
    uint32_t size;        /* sizeof(npu_backend) of the one who fills it; the core reads no member past it */
    uint32_t api_version; /* NPU_BACKEND_API */
    const char *name;     /* "cpu", "npu0" */
    void *ctx;            /* first argument of every function */
    uint32_t traits;      /* NPU_BACKEND_ */
    uint32_t num_regions; /* at least 1; [0] holds planned values and weights */
    const npu_region *regions;
    const npu_abi_row *abi; /* the device's form of kinds; NULL = none */
    uint32_t num_abi;

    /* planning: required. op->args NULL and no operands: only the kind is asked about */
    npu_status (*supports)(void *ctx, const npu_op_info *op, npu_support *answer);
    /* optional: estimated nanoseconds of one op; NULL = unknown */
    uint64_t (*cost)(void *ctx, const npu_op_info *op);

    /* buffers: required */
    npu_status (*alloc)(void *ctx, uint32_t region, uint64_t bytes, uint64_t alignment, npu_buffer *out);
    void (*free)(void *ctx, npu_buffer *buffer);
    npu_status (*upload)(void *ctx, npu_buffer *to, uint64_t offset, const void *from, uint64_t bytes,
                         npu_fence *fence);
    npu_status (*download)(void *ctx, void *to, npu_buffer *from, uint64_t offset, uint64_t bytes,
                           npu_fence *fence);
    /* optional: between two buffers of this backend; NULL = through the host */
    npu_status (*copy)(void *ctx, npu_buffer *to, uint64_t to_offset, npu_buffer *from, uint64_t from_offset,
                       uint64_t bytes, npu_fence *fence);
    /* optional: host address of a buffer, until unmap; NULL = upload and download are used */
    void *(*map)(void *ctx, npu_buffer *buffer);
    void (*unmap)(void *ctx, npu_buffer *buffer);

    /* programs: compile, submit, release required */
    npu_status (*compile)(void *ctx, const npu_group *group, npu_compiled *out);
    npu_status (*place)(void *ctx, void *program, const npu_place *places, uint32_t num_values); /* optional */
    npu_status (*submit)(void *ctx, void *program, const npu_binding *binding, npu_fence *fence);
    void (*release)(void *ctx, void *program);
    /* optional, nothing calls them yet: the program as bytes for a planned-model file */
    npu_status (*save)(void *ctx, void *program, npu_text *out);
    npu_status (*load)(void *ctx, const void *bytes, uint64_t size, npu_compiled *out);

    /* completion: required where a fence is ever set */
    npu_status (*wait)(void *ctx, npu_fence fence, uint64_t timeout_ns); /* TIMEOUT when it is not done by then */
    npu_status (*poll)(void *ctx, npu_fence fence, uint32_t *done);      /* optional */
    /* optional: the current stream handle, 0 = default */
    uint64_t (*stream)(void *ctx);
    /* optional, nothing calls them yet: record submits once, replay them many times */
    npu_status (*capture_begin)(void *ctx);
    npu_status (*capture_end)(void *ctx, void **capture);
    npu_status (*replay)(void *ctx, void *capture, npu_fence *fence);

    /* optional: one op standalone on this backend's buffers. attrs come in info (packed and device form).
       NULL = compile and submit a group of one. */
    npu_status (*op_call)(void *ctx, const npu_op_info *op, const npu_tensor *in, const npu_tensor *out,
                          uint64_t stream);
} npu_backend;

/* Errors: VERSION (api), INVALID_ARGUMENT (a required slot is NULL, no region, wrong alignment). */
NPU_IR_API npu_status npu_backend_check(const npu_backend *backend, npu_diag *diag);
/* The built-in answer of one backend for one op kind with given specs, outside any graph. */
NPU_IR_API bool npu_is_op_supported(const npu_backend *backend, const npu_registry *registry,
                                    const char *name);

/* Runs one op standalone on a backend, with tensors in that backend's buffers (see alloc). attr_schema and
   blob are the device form where the backend (or the built-in aicf table) has a row for the kind, else the
   packed blob with attr_schema 0. Result specs are deduced and compared with `out`. Errors: NOT_FOUND (kind),
   BAD_SCHEMA, BAD_ATTR_SIZE, ARITY, those of the type rule, NOT_IMPLEMENTED (no kernel). Source: document
   002, op_call. */
NPU_IR_API npu_status npu_op_call(const npu_backend *backend, npu_kind kind, const npu_tensor *in,
                                  uint32_t num_in, const npu_tensor *out, uint32_t num_out,
                                  uint32_t attr_schema, const void *blob, uint32_t blob_size, uint64_t stream,
                                  npu_diag *diag);
/* A dense tensor over host memory, for backends with NPU_BACKEND_HOST: fills `buffer` and `tensor` (which
   points to it). */
NPU_IR_API npu_status npu_tensor_host(npu_tensor *tensor, npu_buffer *buffer, npu_dtype dtype, uint32_t rank,
                                      const int64_t *dims, const void *data);

/* -----------------------------------------------------------------------------------------------------------
  10  REWRITING                                                                                      >>rewrite

   A rewrite builds a new graph from an old one through a value map, so operands are already converted,
   failure leaves the old graph as it was, and ops without a path to an effect, an update or an output
   disappear by themselves. Inputs, params (with their bound data), constants, states, names, notes and
   children are kept; results are deduced again. On top of it: patterns, applied until nothing changes or until
   the ops left are legal, and passes.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_rewrite npu_rewrite;
/* Called for each op in order. Emit into npu_rewrite_target, or call npu_rewrite_copy for an op that stays;
   results must be set with npu_rewrite_replace unless it was copied or nothing uses them any more. A status
   other than OK stops and destroys the new graph. New ops get the old op's location. */
typedef npu_status (*npu_rewrite_fn)(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op);
/* fn NULL copies all live ops. */
NPU_IR_API npu_status npu_graph_rewrite(npu_graph **out, const npu_graph *from, npu_rewrite_fn fn, void *ctx,
                                        npu_diag *diag);
NPU_IR_API npu_graph *npu_rewrite_target(npu_rewrite *rw);
NPU_IR_API npu_value npu_rewrite_value(npu_rewrite *rw, npu_value old); /* the new value for an old one; id 0 = none yet */
NPU_IR_API npu_op npu_rewrite_copy(npu_rewrite *rw, npu_op op);
/* Later ops get `now` where they used `old`; an unnamed `now` takes over the name of `old`. */
NPU_IR_API void npu_rewrite_replace(npu_rewrite *rw, npu_value old, npu_value now);
/* The adaptor: operand i of an old op as it is in the new graph. Attributes are read from the old op. */
NPU_IR_API npu_value npu_rewrite_operand(npu_rewrite *rw, npu_op op, uint32_t i); /* id 0 = a hole */
/* An op of the old graph with its attributes, described on demand; valid until another op is asked for.
   NULL = no such op or out of memory: return any status then, the rewrite has failed. */
NPU_IR_API const npu_op_info *npu_rewrite_info(npu_rewrite *rw, npu_op op);
/* What a pattern returns that does not match, and why; the words appear when an op had to be converted. */
NPU_IR_API npu_status npu_rewrite_no_match(npu_rewrite *rw, const char *format, ...) NPU_IR_PRINTF(2, 3);

/* ---- patterns ----
   A pattern rewrites one kind of op: it reads operands through npu_rewrite_operand and attributes from the old op,
   emits into the target, replaces the results, and returns OK; or it returns npu_rewrite_no_match before it
   emitted anything. Any other status stops the whole rewrite. What it looks at is the graph before the sweep. */
typedef struct npu_pattern {
    const char *name;       /* in messages */
    npu_kind root;          /* kind that it is tried on; 0 = see root_name */
    const char *root_name;  /* by name, for ops without a permanent kind ("my.op"); NULL and root 0 = any op */
    uint32_t benefit;       /* the highest is tried first; equal ones in the order of the list */
    npu_rewrite_fn rewrite;
    void *ctx;              /* first argument of rewrite */
} npu_pattern;

typedef struct npu_pattern_options {
    uint32_t max_sweeps; /* over the graph, default 32 */
    uint32_t _canary;    /* must be 0 */
} npu_pattern_options;
typedef struct npu_pattern_stats {
    uint32_t num_sweeps, num_rewrites;
    uint32_t *counts;    /* rewrites of each pattern, an array of the caller; NULL = not wanted */
} npu_pattern_stats;

/* Applies patterns until none matches. Every op of a sweep is rewritten by at most one. Errors: NO_FIXED_POINT (something
   still matched in the last sweep: names the pattern and the op), those of the patterns, NO_MEMORY. */
NPU_IR_API npu_status npu_graph_apply_patterns(npu_graph **out, const npu_graph *g, const npu_pattern *patterns,
                                               uint32_t num_patterns, const npu_pattern_options *options,
                                               npu_pattern_stats *stats, npu_diag *diag);

/* ---- conversion ----
   What the result of a conversion may consist of. A rule names an op ("gawee.conv") or a namespace ("gawee");
   the op's rule wins. An op without a rule is unknown. */
typedef enum npu_legality { NPU_LEGALITY_UNKNOWN = 0, NPU_LEGAL = 1, NPU_ILLEGAL = 2 } npu_legality;
typedef struct npu_legality_rule {
    const char *name;
    npu_legality legality;
    npu_legality (*decide)(void *ctx, const npu_graph *g, npu_op op); /* NULL = always `legality` */
    void *ctx;
} npu_legality_rule;
typedef struct npu_conversion_target {
    const npu_legality_rule *rules;
    uint32_t num_rules;
    bool is_full; /* unknown ops may not stay either */
} npu_conversion_target;
NPU_IR_API npu_legality npu_target_legality(const npu_conversion_target *target, const npu_graph *g, npu_op op);

/* Applies patterns until no op matches that is not legal: legal ops stay, illegal ones must go, unknown ones are converted
   where a pattern matches and stay otherwise (partial conversion). Errors: NOT_LEGAL (names the op that is left and why
   no pattern matched), and those of npu_graph_apply_patterns. */
NPU_IR_API npu_status npu_graph_convert(npu_graph **out, const npu_graph *g, const npu_conversion_target *target,
                                        const npu_pattern *patterns, uint32_t num_patterns,
                                        const npu_pattern_options *options, npu_pattern_stats *stats,
                                        npu_diag *diag);

/* ---- passes ----   A pass makes a new graph from a graph. */
typedef struct npu_pass {
    const char *name;              /* "convert-gawee-to-linalg" */
    const char *const *namespaces; /* whose ops it may bring in, NULL at the end; NULL = none that are not there already */
    npu_status (*run)(void *ctx, npu_graph **out, const npu_graph *g, npu_diag *diag);
    void *ctx;
} npu_pass;
typedef struct npu_pass_options {
    void (*dump)(void *ctx, const npu_pass *pass, bool is_after, const npu_graph *g); /* before and after each pass */
    void *ctx;
    bool validate;    /* check every invariant of each result */
    uint32_t _canary; /* must be 0 */
} npu_pass_options;
/* Runs passes one after the other; with none it copies the live ops. Errors: those of the passes, with the pass named;
   GRAPH (an op of a namespace that the pass does not declare), those of npu_graph_validate. */
NPU_IR_API npu_status npu_graph_run_passes(npu_graph **out, const npu_graph *g, const npu_pass *passes,
                                           uint32_t num_passes, const npu_pass_options *options, npu_diag *diag);

/* -----------------------------------------------------------------------------------------------------------
  11  PARTITIONER                                                                                  >>partition

   Tags each op with the first backend in priority order that supports it, groups maximal runs of ops with one
   target in topological order, and lists the transfers between them. A plan is pure data; no device is
   touched. Every op carries a reason. The last backend is the fallback, usually npu_ref_backend().
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_plan npu_plan;
typedef struct npu_plan_desc {
    const npu_backend *const *backends; /* by falling priority; required, borrowed */
    uint32_t num_backends;              /* 1 .. 32 */
    /* Places ops by hand: returns the index of a backend, or -1 to let the partitioner decide. */
    int (*override)(void *ctx, const npu_op_info *op, const char *op_label);
    void *override_ctx;
    const char *const *force_last;      /* kinds ("aten.relu.default"), or op names, that go to the last backend */
    uint32_t num_force_last;
    uint32_t min_group_ops;             /* smaller groups (views not counted) of any but the last backend are given up; 0 = no limit */
    uint32_t max_groups;                /* on any but the last backend; the smallest are given up first; 0 = no limit */
    uint64_t max_transfer_bytes;        /* of the whole plan: more is NPU_ERR_BUDGET; 0 = no limit */
    bool no_fallback;                   /* an op on the last backend is NPU_ERR_BUDGET */
    bool no_inplace;                    /* results never take an operand's memory */
    const npu_allocator *allocator;
    uint32_t _canary;
} npu_plan_desc;

typedef enum npu_step_type { NPU_STEP_PARTITION = 1, NPU_STEP_TRANSFER = 2 } npu_step_type;
/* Ids and arrays belong to the plan. */
typedef struct npu_step {
    uint32_t type;         /* npu_step_type */
    uint32_t backend;      /* partition: where it runs, 255 = no backend takes its ops; transfer: destination */
    uint32_t from;         /* transfer: source backend */
    uint32_t num_ops;      /* partition */
    const npu_op *ops;     /* in order */
    uint32_t num_inputs;   /* partition: values made outside, graph inputs and weights included */
    const npu_value *inputs;
    uint32_t num_outputs;  /* partition: values used outside or by the graph; transfer: the values moved */
    const npu_value *outputs;
    uint64_t bytes;        /* transfer: moved */
    uint32_t num_dependencies; /* steps that must be done before */
    const uint32_t *dependencies;
} npu_step;

/* Errors: INVALID_ARGUMENT, GRAPH (the graph has failed), DYNAMIC_SHAPE (an unbound dim), BUDGET, NO_MEMORY.
   An op that no backend takes is no error here; it is listed with its reason and npu_program_create refuses.
   */
NPU_IR_API npu_status npu_plan_create(npu_plan **out, const npu_graph *g, const npu_plan_desc *desc,
                                      npu_diag *diag);
NPU_IR_API void npu_plan_destroy(npu_plan *plan);
NPU_IR_API const npu_graph *npu_plan_graph(const npu_plan *plan);
NPU_IR_API uint32_t npu_plan_num_steps(const npu_plan *plan);
NPU_IR_API const npu_step *npu_plan_step(const npu_plan *plan, uint32_t i);
NPU_IR_API uint32_t npu_plan_num_backends(const npu_plan *plan);
NPU_IR_API const npu_backend *npu_plan_backend(const npu_plan *plan, uint32_t i);
/* Where an op went: index of the backend, or -1; why: the reason that the first-choice backend did not get it
   (CLAIMED when it did), and the words of the backend that refused it last. Strings belong to the plan. */
NPU_IR_API int npu_plan_op_backend(const npu_plan *plan, npu_op op, uint32_t *reason, const char **words);

/* -----------------------------------------------------------------------------------------------------------
  12  MEMORY PLANNER                                                                                  >>memory

   Gives each temporary a lifetime and (region, offset, size). Views and permitted in-place results share
   memory only when liveness allows. Sizes are exact before anything is allocated.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_memory {        /* bytes, of one backend */
    uint64_t activations;          /* the planned arena, scratch included */
    uint64_t scratch;              /* the largest scratch of a group, part of activations */
    uint64_t weights;              /* uploaded once, or borrowed on a host backend */
    uint64_t inputs, outputs;      /* bound by the caller */
    uint64_t state;
    uint64_t lower_bound;          /* peak of live bytes: no plan can be smaller */
    uint64_t no_reuse;             /* what activations would take if nothing shared memory */
    bool exact;                    /* false in a dry run: scratch and in-place pairs are known after compile only */
} npu_memory;
NPU_IR_API npu_status npu_plan_memory(const npu_plan *plan, uint32_t backend, npu_memory *out);
/* Place of a value in the arena of a backend; size 0 = it has none there. first and last are positions of ops
   in plan order. */
NPU_IR_API npu_status npu_plan_value_memory(const npu_plan *plan, npu_value v, uint32_t backend,
                                            uint64_t *offset, uint64_t *size, uint32_t *first,
                                            uint32_t *last);

/* -----------------------------------------------------------------------------------------------------------
  13  PROGRAM AND EXECUTOR                                                                              >>exec

   program: groups compiled, weights uploaded once; immutable and shared. exec: activations, state, bindings;
   one thread at a time. A run allocates nothing. Order: compile each group (a refused group goes to the next
   backend and makes a new plan) -> memory plan -> weights -> bind -> run.
   -------------------------------------------------------------------------------------------------------- */

typedef struct npu_program npu_program;
typedef struct npu_exec npu_exec;

/* The plan is copied as far as it is needed; the graph, its borrowed data and the backends must outlive the
   program. Errors: NOT_IMPLEMENTED (ops without a kernel: the message lists all of them), MISSING_WEIGHT,
   NO_MEMORY, BACKEND. */
NPU_IR_API npu_status npu_program_create(npu_program **out, const npu_plan *plan, npu_diag *diag);
NPU_IR_API void npu_program_destroy(npu_program *program); /* after its execs */
NPU_IR_API const npu_plan *npu_program_plan(const npu_program *program); /* the plan that runs: rejected groups moved, memory exact */

typedef struct npu_exec_desc {
    const npu_parallel *parallel; /* borrowed; NULL = serial */
    /* Called before each step; false cancels the run with NPU_ERR_CANCELLED. */
    bool (*poll)(void *ctx, uint32_t step);
    void *poll_ctx;
    uint64_t timeout_ns;          /* of one wait for a device; 0 = 10 s */
    bool profile;                 /* record times, see >>report */
    uint64_t (*clock)(void);      /* nanoseconds that only grow; NULL = the best clock that the C library's headers show */
    const npu_allocator *allocator;
    uint32_t _canary;
} npu_exec_desc;
NPU_IR_API npu_status npu_exec_create(npu_exec **out, npu_program *program, const npu_exec_desc *desc,
                                      npu_diag *diag);
/* Plan, program and exec in one call, for programs that need only one: all three are destroyed with the exec.
   */
NPU_IR_API npu_status npu_exec_create_simple(npu_exec **out, const npu_graph *g,
                                             const npu_backend *const *backends, uint32_t num_backends,
                                             npu_diag *diag);
NPU_IR_API void npu_exec_destroy(npu_exec *exec);
NPU_IR_API const npu_program *npu_exec_program(const npu_exec *exec);

/* Binds the caller's memory, borrowed until it is bound again or the exec is destroyed; used without a copy
   by host backends when it is aligned to the element. size must be the exact bytes. Errors: NOT_FOUND (name,
   index), SHAPE (size), NO_MEMORY (staging for unaligned memory). */
NPU_IR_API npu_status npu_exec_set_input(npu_exec *exec, const char *name, const void *data, size_t size);
NPU_IR_API npu_status npu_exec_set_input_at(npu_exec *exec, uint32_t index, const void *data, size_t size);
NPU_IR_API npu_status npu_exec_set_output(npu_exec *exec, const char *name, void *data, size_t size);
NPU_IR_API npu_status npu_exec_set_output_at(npu_exec *exec, uint32_t index, void *data, size_t size);
/* The result of the last run: in the caller's memory where it was bound, else in the exec's own. NULL before
   the first run or for a bad index. */
NPU_IR_API const void *npu_exec_output(const npu_exec *exec, uint32_t index, size_t *size);
NPU_IR_API const void *npu_exec_output_by_name(const npu_exec *exec, const char *name, size_t *size);
/* Errors: MISSING_FEED (names the input), CANCELLED, TIMEOUT, those of kernels (RANGE ...) and backends. The
   exec stays usable. */
NPU_IR_API npu_status npu_exec_run(npu_exec *exec);
NPU_IR_API const npu_diag *npu_exec_diag(const npu_exec *exec); /* of the last call that failed; never NULL */
NPU_IR_API npu_status npu_exec_reset_state(npu_exec *exec);     /* all states to zero */

/* -----------------------------------------------------------------------------------------------------------
  14  PLAN FORMS, PROFILE, TRACE                                                                      >>report
   -------------------------------------------------------------------------------------------------------- */

NPU_IR_API void npu_plan_print(const npu_plan *plan, npu_text *text);     /* steps, one line each; then ops that were refused, and why */
NPU_IR_API void npu_plan_print_ops(const npu_plan *plan, npu_text *text); /* a line per op: backend, reason, words */
NPU_IR_API void npu_plan_print_memory(const npu_plan *plan, npu_text *text);
NPU_IR_API void npu_plan_print_dot(const npu_plan *plan, npu_text *text); /* Graphviz, ops coloured by backend */

typedef struct npu_profile_step {
    uint32_t step;      /* index in the plan; NPU_NO_INDEX = moving graph inputs or outputs */
    uint32_t op;        /* id of an op inside the step, 0 = the whole step */
    uint64_t begin_ns, end_ns; /* since the start of the last run */
} npu_profile_step;
/* Of the last run with desc.profile set; belongs to the exec. */
NPU_IR_API const npu_profile_step *npu_exec_profile(const npu_exec *exec, uint32_t *count);
NPU_IR_API void npu_exec_print_profile(const npu_exec *exec, npu_text *text);
NPU_IR_API void npu_exec_print_trace(const npu_exec *exec, npu_text *text); /* Chrome trace JSON: load in chrome://tracing or Perfetto */

#ifdef __cplusplus
}

/* C++ takes options by reference, too: npu_conv2d(g, x, w, b, attrs). */
#define NPU_X(name, parameters, arguments)                                                                   \
    inline npu_value npu_##name(npu_graph *g, NPU_IR_UNPACK parameters, const npu_##name##_attrs &attrs)     \
    {                                                                                                        \
        return npu_##name(g, NPU_IR_UNPACK arguments, &attrs);                                               \
    }
#define NPU_IR_UNPACK(...) __VA_ARGS__
NPU_X(conv1d, (npu_value x, npu_value w, npu_value b), (x, w, b))
NPU_X(conv2d, (npu_value x, npu_value w, npu_value b), (x, w, b))
NPU_X(conv_transpose2d, (npu_value x, npu_value w, npu_value b), (x, w, b))
NPU_X(addmm, (npu_value c, npu_value a, npu_value b), (c, a, b))
NPU_X(gelu, (npu_value x), (x))
NPU_X(leaky_relu, (npu_value x), (x))
NPU_X(hardtanh, (npu_value x), (x))
NPU_X(elu, (npu_value x), (x))
NPU_X(max_pool2d, (npu_value x), (x))
NPU_X(avg_pool2d, (npu_value x), (x))
NPU_X(aicf_gemm, (npu_value a, npu_value b), (a, b))
#undef NPU_IR_UNPACK
#undef NPU_X
#endif

#endif /* NPU_IR_H */

/* ============================================================================================================
   IMPLEMENTATION
   ==========================================================================================================
   */
#if defined(NPU_IR_IMPLEMENTATION) && !defined(NPU_IR_IMPLEMENTATION_DONE)
#define NPU_IR_IMPLEMENTATION_DONE

#ifdef __cplusplus
#error "npu_ir.h: compile the implementation in a .c file; the declarations work in C++"
#endif
#if defined(__FAST_MATH__) && !defined(NPU_IR_ALLOW_FAST_MATH)
#error "npu_ir.h: -ffast-math changes results (NaN, infinity, rounding); define NPU_IR_ALLOW_FAST_MATH to accept that"
#endif

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <locale.h>
#ifndef NPU_IR_NO_THREADS
#include <pthread.h>
#endif
#include <time.h>

/* -------------------------------------------------------------------------------------------------------- */

#if defined(NPU_IR_MALLOC) && defined(NPU_IR_REALLOC) && defined(NPU_IR_FREE)
#elif !defined(NPU_IR_MALLOC) && !defined(NPU_IR_REALLOC) && !defined(NPU_IR_FREE)
#define NPU_IR_MALLOC(n) malloc(n)
#define NPU_IR_REALLOC(p, n) realloc((p), (n))
#define NPU_IR_FREE(p) free(p)
#else
#error "npu_ir.h: define all of NPU_IR_MALLOC, NPU_IR_REALLOC and NPU_IR_FREE, or none"
#endif

#ifndef NPU_IR_ASSERT
#ifdef NPU_IR_DEBUG
#include <assert.h>
#define NPU_IR_ASSERT(x) assert(x)
#else
#define NPU_IR_ASSERT(x) ((void)0)
#endif
#endif

#if __STDC_VERSION__ >= 201112L
#define NPU__STATIC_ASSERT(condition, name) _Static_assert(condition, #name)
#else
#define NPU__STATIC_ASSERT(condition, name) typedef char npu__assert_##name[(condition) ? 1 : -1]
#endif
#define NPU__COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void *npu__default_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        NPU_IR_FREE(ptr);
        return NULL;
    }
    return ptr ? NPU_IR_REALLOC(ptr, new_size) : NPU_IR_MALLOC(new_size);
}

static npu_allocator npu__allocator(const npu_allocator *given)
{
    npu_allocator a = { NULL, npu__default_resize };
    return given && given->resize ? *given : a;
}

static void *npu__alloc(const npu_allocator *a, size_t size)
{
    return a->resize(a->ctx, NULL, 0, size ? size : 1);
}

static void *npu__alloc_zero(const npu_allocator *a, size_t size)
{
    void *p = npu__alloc(a, size);
    if (p) {
        memset(p, 0, size ? size : 1);
    }
    return p;
}

static void npu__free(const npu_allocator *a, void *ptr, size_t size)
{
    if (ptr) {
        a->resize(a->ctx, ptr, size ? size : 1, 0);
    }
}

static void *npu__counting_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    npu_alloc_counter *c = (npu_alloc_counter *)ctx;
    void *p;
    if (new_size > old_size || (!ptr && new_size)) {
        c->num_calls++;
        if (c->fail_at && c->num_calls == c->fail_at) {
            return NULL;
        }
    }
    p = npu__default_resize(NULL, ptr, old_size, new_size);
    if (p || new_size == 0) {
        c->live_bytes += new_size;
        c->live_bytes -= ptr ? old_size : 0;
        c->peak_bytes = c->live_bytes > c->peak_bytes ? c->live_bytes : c->peak_bytes;
    }
    return p;
}

NPU_IR_API npu_allocator npu_counting_allocator(npu_alloc_counter *counter)
{
    npu_allocator a = { NULL, npu__counting_resize };
    a.ctx = counter;
    return a;
}

NPU_IR_API bool npu_size_add(size_t a, size_t b, size_t *out)
{
    bool fits = a <= SIZE_MAX - b;
    *out = fits ? a + b : 0;
    return fits;
}

NPU_IR_API bool npu_size_mul(size_t a, size_t b, size_t *out)
{
    bool fits = b == 0 || a <= SIZE_MAX / b;
    *out = fits ? a * b : 0;
    return fits;
}

/* Makes room for `need` elements of `element` bytes in a growing array; false = out of memory, array
   unchanged. */
static bool npu__reserve(const npu_allocator *a, void **array, uint32_t *capacity, uint64_t need,
                         size_t element)
{
    uint64_t grown = (uint64_t)*capacity + *capacity / 2 + 8;
    size_t bytes;
    void *p;
    if (need <= *capacity) {
        return true;
    }
    grown = grown < need ? need : grown;
    if (grown >= NPU_NO_INDEX || !npu_size_mul((size_t)grown, element, &bytes)) {
        return false;
    }
    p = a->resize(a->ctx, *array, *capacity * element, bytes);
    if (!p) {
        return false;
    }
    *array = p;
    *capacity = (uint32_t)grown;
    return true;
}

/* Blocks of memory that are freed together; what is inside never moves. */
typedef struct npu__block {
    struct npu__block *next;
    size_t size, used; /* bytes after the header */
} npu__block;

typedef struct npu__arena {
    npu_allocator allocator;
    npu__block *blocks;
    size_t total;
} npu__arena;

#define NPU__ALIGN16(n) (((n) + 15u) & ~(size_t)15u)

static void *npu__arena_alloc(npu__arena *arena, size_t size)
{
    npu__block *b = arena->blocks;
    size_t head = NPU__ALIGN16(sizeof *b), want = size > 8000 ? size : 8000, total;
    void *p;
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = NPU__ALIGN16(size);
    if (!b || b->size - b->used < size) {
        want = NPU__ALIGN16(want < size ? size : want);
        total = head + want;
        b = (npu__block *)npu__alloc(&arena->allocator, total);
        if (!b) {
            return NULL;
        }
        b->size = want;
        b->used = 0;
        b->next = arena->blocks;
        arena->blocks = b;
        arena->total += total;
    }
    p = (char *)b + head + b->used;
    b->used += size;
    return p;
}

static char *npu__arena_str(npu__arena *arena, const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = (char *)npu__arena_alloc(arena, size);
    if (copy) {
        memcpy(copy, s, size);
    }
    return copy;
}

static void npu__arena_free(npu__arena *arena)
{
    for (npu__block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        npu__free(&arena->allocator, b, NPU__ALIGN16(sizeof *b) + b->size);
    }
    arena->blocks = NULL;
    arena->total = 0;
}

NPU_IR_API const char *npu_status_text(npu_status status)
{
    switch ((int)status) {
#define NPU_X(number, symbol, text) case number: return text;
    NPU_IR_STATUSES(NPU_X)
#undef NPU_X
    default: return "unknown status";
    }
}

NPU_IR_API const char *npu_status_name(npu_status status)
{
    switch ((int)status) {
#define NPU_X(number, symbol, text) case number: return #symbol;
    NPU_IR_STATUSES(NPU_X)
#undef NPU_X
    default: return "unknown status";
    }
}

/* Copies the end of src when it is too long: the end of a path says more than its start. */
static void npu__copy_tail(char *dst, size_t size, const char *src)
{
    size_t len = src ? strlen(src) : 0;
    const char *from = len >= size ? src + len - (size - 1) : src;
    len = len >= size ? size - 1 : len;
    if (len) {
        memcpy(dst, from, len);
    }
    dst[len] = 0;
}

static void npu__copy_head(char *dst, size_t size, const char *src)
{
    size_t len = src ? strlen(src) : 0;
    len = len >= size ? size - 1 : len;
    if (len) {
        memcpy(dst, src, len);
    }
    dst[len] = 0;
}

/* Fills diag (may be NULL) unless it already holds an earlier failure; returns status. */
static npu_status npu__fail(npu_diag *diag, npu_status status, const char *format, ...) NPU_IR_PRINTF(3, 4);
static npu_status npu__fail(npu_diag *diag, npu_status status, const char *format, ...)
{
    va_list args;
    if (!diag || diag->status != NPU_OK) {
        return status;
    }
    diag->status = status;
#ifndef NPU_IR_NO_STRINGS
    va_start(args, format);
    vsnprintf(diag->message, sizeof diag->message, format, args);
    va_end(args);
#else
    (void)args;
    (void)format;
#endif
    return status;
}

NPU_IR_API npu_text npu_text_make(const npu_allocator *allocator)
{
    npu_text t;
    memset(&t, 0, sizeof t);
    t.allocator = npu__allocator(allocator);
    return t;
}

static bool npu__text_reserve(npu_text *text, size_t extra)
{
    size_t need, grown = text->capacity + text->capacity / 2 + 64;
    char *p;
    if (!npu_size_add(text->len, extra, &need) || !npu_size_add(need, 1, &need)) {
        text->status = NPU_ERR_OVERFLOW;
        return false;
    }
    if (need <= text->capacity) {
        return true;
    }
    grown = grown < need ? need : grown;
    p = (char *)text->allocator.resize(text->allocator.ctx, text->data, text->capacity, grown);
    if (!p) {
        text->status = NPU_ERR_NO_MEMORY;
        return false;
    }
    text->data = p;
    text->capacity = grown;
    return true;
}

NPU_IR_API void npu_text_append(npu_text *text, const char *data, size_t len)
{
    if (text->status == NPU_OK && npu__text_reserve(text, len)) {
        if (len) {
            memcpy(text->data + text->len, data, len);
        }
        text->len += len;
        text->data[text->len] = 0;
    }
}

static void npu__text_str(npu_text *text, const char *s)
{
    npu_text_append(text, s, strlen(s));
}

NPU_IR_API void npu_text_printf(npu_text *text, const char *format, ...)
{
    char small[256];
    va_list args;
    int len;
    va_start(args, format);
    len = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (len < 0 || text->status != NPU_OK) {
        return;
    }
    if ((size_t)len < sizeof small) {
        npu_text_append(text, small, (size_t)len);
    } else if (npu__text_reserve(text, (size_t)len)) {
        va_start(args, format);
        vsnprintf(text->data + text->len, (size_t)len + 1, format, args);
        va_end(args);
        text->len += (size_t)len;
    }
}

NPU_IR_API void npu_text_free(npu_text *text)
{
    npu__free(&text->allocator, text->data, text->capacity);
    *text = npu_text_make(&text->allocator);
}

/* ---- numbers as text, the same in every locale ---- */

/* Appends x so that reading it back gives the same double: "0.1", "1e-05", "inf", "-inf", "nan". */
static void npu__text_double(npu_text *text, double x)
{
    char buf[40];
    const char *point = localeconv()->decimal_point;
    char *p;
    int digits;
    if (x != x || x - x != 0) {
        npu__text_str(text, x != x ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    for (digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        if (strtod(buf, NULL) == x) {
            break;
        }
    }
    if (point[0] != '.' && (p = strstr(buf, point)) != NULL) {
        *p = '.';
        memmove(p + 1, p + strlen(point), strlen(p + strlen(point)) + 1);
    }
    npu__text_str(text, buf);
    if (!strpbrk(buf, ".e")) {
        npu__text_str(text, ".0");
    }
}

/* Reads a double written with '.', whatever the locale; *end as strtod. At most 63 characters are looked at.
   */
static double npu__parse_double(const char *s, const char **end)
{
    char buf[64 + 8];
    const char *point = localeconv()->decimal_point;
    size_t n = 0, out = 0;
    char *stop;
    double x;
    while (n < 63 && (strchr("+-.0123456789eE", s[n]) ? s[n] != 0 : (s[n] >= 'a' && s[n] <= 'z'))) {
        n++;
    }
    for (size_t i = 0; i < n && out + 8 < sizeof buf; i++) {
        if (s[i] == '.') {
            memcpy(buf + out, point, strlen(point));
            out += strlen(point);
        } else {
            buf[out++] = s[i];
        }
    }
    buf[out] = 0;
    x = strtod(buf, &stop);
    /* One '.' at most can have been widened: translate the stop position back. */
    out = (size_t)(stop - buf);
    if (memchr(s, '.', n) && out > (size_t)((const char *)memchr(s, '.', n) - s)) {
        out -= strlen(point) - 1;
    }
    *end = s + out;
    return x;
}

/* ---- little-endian bytes, on every host ---- */

static void npu__put_le(uint8_t *out, uint64_t x, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(x >> (8 * i));
    }
}

static uint64_t npu__get_le(const uint8_t *in, uint32_t bytes)
{
    uint64_t x = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        x |= (uint64_t)in[i] << (8 * i);
    }
    return x;
}

static uint64_t npu__double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static double npu__bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* FNV-1a, 32 bits: names are short and few collide. */
static uint32_t npu__hash(const void *data, size_t len)
{
    const uint8_t *p = (const uint8_t *)data;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * 16777619u;
    }
    return h;
}

/* ---- threads ---- */

#ifdef NPU_IR_NO_THREADS
NPU_IR_API npu_status npu_threads_create(npu_parallel **out, uint32_t width, const npu_allocator *allocator)
{
    (void)width;
    (void)allocator;
    *out = NULL;
    return NPU_ERR_UNSUPPORTED;
}

NPU_IR_API void npu_threads_destroy(npu_parallel *threads)
{
    (void)threads;
}
#else
typedef struct npu__threads {
    npu_parallel base;
    npu_allocator allocator;
    size_t size;
    pthread_mutex_t turn, lock; /* turn: one run at a time; lock: the members below */
    pthread_cond_t wake, done;
    void (*task)(void *arg, uint32_t part, uint32_t parts);
    void *arg;
    uint32_t parts, next, unfinished;
    bool stop;
    uint32_t num_workers;
    pthread_t workers[1]; /* width - 1 */
} npu__threads;

/* Takes parts until none is left. Called with the lock held, returns with it held. */
static void npu__threads_work(npu__threads *t)
{
    while (t->next < t->parts) {
        uint32_t part = t->next++;
        pthread_mutex_unlock(&t->lock);
        t->task(t->arg, part, t->parts);
        pthread_mutex_lock(&t->lock);
        if (--t->unfinished == 0) {
            pthread_cond_signal(&t->done);
        }
    }
}

static void *npu__threads_main(void *arg)
{
    npu__threads *t = (npu__threads *)arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        npu__threads_work(t);
        if (!t->stop) {
            pthread_cond_wait(&t->wake, &t->lock);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void npu__threads_run(void *ctx, void (*task)(void *arg, uint32_t part, uint32_t parts), void *arg,
                             uint32_t parts)
{
    npu__threads *t = (npu__threads *)ctx;
    if (parts <= 1 || t->num_workers == 0) {
        for (uint32_t i = 0; i < parts; i++) {
            task(arg, i, parts);
        }
        return;
    }
    pthread_mutex_lock(&t->turn);
    pthread_mutex_lock(&t->lock);
    t->task = task;
    t->arg = arg;
    t->parts = t->unfinished = parts;
    t->next = 0;
    pthread_cond_broadcast(&t->wake);
    npu__threads_work(t);
    while (t->unfinished) {
        pthread_cond_wait(&t->done, &t->lock);
    }
    t->parts = t->next = 0;
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_unlock(&t->turn);
}

NPU_IR_API void npu_threads_destroy(npu_parallel *threads)
{
    npu__threads *t = threads ? (npu__threads *)threads->ctx : NULL;
    npu_allocator allocator;
    if (!t) {
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->num_workers; i++) {
        pthread_join(t->workers[i], NULL);
    }
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->turn);
    allocator = t->allocator;
    npu__free(&allocator, t, t->size);
}

NPU_IR_API npu_status npu_threads_create(npu_parallel **out, uint32_t width, const npu_allocator *allocator)
{
    npu_allocator a = npu__allocator(allocator);
    npu__threads *t;
    size_t size;
    *out = NULL;
    if (width == 0 || width > 1024) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    size = sizeof *t + (width - 1) * sizeof(pthread_t);
    t = (npu__threads *)npu__alloc_zero(&a, size);
    if (!t) {
        return NPU_ERR_NO_MEMORY;
    }
    t->allocator = a;
    t->size = size;
    t->base.width = width;
    t->base.ctx = t;
    t->base.run = npu__threads_run;
    pthread_mutex_init(&t->turn, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->done, NULL);
    for (uint32_t i = 0; i + 1 < width; i++) {
        if (pthread_create(&t->workers[i], NULL, npu__threads_main, t)) {
            npu_threads_destroy(&t->base);
            return NPU_ERR_BACKEND;
        }
        t->num_workers++;
    }
    *out = &t->base;
    return NPU_OK;
}
#endif

/* -------------------------------------------------------------------------------------------------------- */

typedef struct npu__dtype_row {
    uint8_t code, bits;
    char letter;
    const char *name, *aten;
} npu__dtype_row;

static const npu__dtype_row npu__dtypes[] = {
#define NPU_X(code, symbol, name, bits, letter, aten) { code, bits, letter, name, aten },
    NPU_IR_DTYPES(NPU_X)
#undef NPU_X
};

/* A switch compiles to a jump table, and a code listed twice does not compile. */
static const npu__dtype_row *npu__dtype(uint32_t dtype)
{
    enum {
#define NPU_X(code, symbol, name, bits, letter, aten) symbol##_INDEX,
        NPU_IR_DTYPES(NPU_X)
#undef NPU_X
        NPU_DTYPE_COUNT
    };
    switch (dtype) {
#define NPU_X(code, symbol, name, bits, letter, aten) case code: return &npu__dtypes[symbol##_INDEX];
    NPU_IR_DTYPES(NPU_X)
#undef NPU_X
    default: return NULL;
    }
}

NPU_IR_API bool npu_dtype_is_valid(uint32_t dtype) { return dtype != NPU_NONE && npu__dtype(dtype) != NULL; }

NPU_IR_API uint32_t npu_dtype_bits(npu_dtype dtype)
{
    const npu__dtype_row *row = npu__dtype((uint32_t)dtype);
    return row ? row->bits : 0;
}

NPU_IR_API const char *npu_dtype_name(npu_dtype dtype)
{
    const npu__dtype_row *row = npu__dtype((uint32_t)dtype);
    return row ? row->name : "?";
}

/* The kind letter of the table; '-' for a number that is no code. */
static char npu__dtype_letter(npu_dtype dtype)
{
    const npu__dtype_row *row = npu__dtype((uint32_t)dtype);
    return row ? row->letter : '-';
}

NPU_IR_API bool npu_dtype_is_float(npu_dtype dtype) { return npu__dtype_letter(dtype) == 'f'; }
NPU_IR_API bool npu_dtype_is_signed(npu_dtype dtype) { return npu__dtype_letter(dtype) == 'i'; }
NPU_IR_API bool npu_dtype_is_complex(npu_dtype dtype) { return npu__dtype_letter(dtype) == 'c'; }

NPU_IR_API bool npu_dtype_is_integer(npu_dtype dtype)
{
    char letter = npu__dtype_letter(dtype);
    return letter == 'i' || letter == 'u';
}

NPU_IR_API npu_dtype npu_dtype_parse(const char *text)
{
    static const struct { const char *name; npu_dtype dtype;
    } torch_names[] = { { "float32", NPU_F32 },   { "float64", NPU_F64 },     { "float16", NPU_F16 },
                        { "bfloat16", NPU_BF16 }, { "int8", NPU_I8 },         { "int16", NPU_I16 },
                        { "int32", NPU_I32 },     { "int64", NPU_I64 },       { "uint8", NPU_U8 },
                        { "uint16", NPU_U16 },    { "uint32", NPU_U32 },      { "uint64", NPU_U64 },
                        { "complex64", NPU_C64 }, { "complex128", NPU_C128 }, { "float", NPU_F32 },
                        { "double", NPU_F64 },    { "half", NPU_F16 },        { "int", NPU_I32 },
                        { "long", NPU_I64 },      { "short", NPU_I16 } };
    if (strncmp(text, "torch.", 6) == 0) {
        text += 6;
    }
    for (size_t i = 1; i < NPU__COUNT(npu__dtypes); i++) {
        if (strcmp(text, npu__dtypes[i].name) == 0 ||
            (npu__dtypes[i].aten[0] && strcmp(text, npu__dtypes[i].aten) == 0)) {
            return (npu_dtype)npu__dtypes[i].code;
        }
    }
    for (size_t i = 0; i < NPU__COUNT(torch_names); i++) {
        if (strcmp(text, torch_names[i].name) == 0) {
            return torch_names[i].dtype;
        }
    }
    return NPU_NONE;
}

/* Category order of ATen: bool < integers < floats < complex. */
static int npu__dtype_rank(npu_dtype dtype)
{
    switch (npu__dtype_letter(dtype)) {
    case 'b': return 1;
    case 'i':
    case 'u': return 2;
    case 'f': return 3;
    case 'c': return 4;
    default: return 0;
    }
}

static npu_dtype npu__promote_complex(npu_dtype a, npu_dtype b)
{
    bool wide = a == NPU_C128 || b == NPU_C128 || a == NPU_F64 || b == NPU_F64;
    return wide ? NPU_C128 : NPU_C64;
}

static npu_dtype npu__promote_integers(npu_dtype a, npu_dtype b)
{
    npu_dtype wide = npu_dtype_bits(a) >= npu_dtype_bits(b) ? a : b, other = wide == a ? b : a;
    if (npu_dtype_is_signed(a) == npu_dtype_is_signed(b) ||
        (npu_dtype_is_signed(wide) && npu_dtype_bits(wide) > npu_dtype_bits(other))) {
        return wide;
    }
    /* unsigned at least as wide as signed: the next signed type; only u8 has one that torch uses */
    return npu_dtype_bits(wide) == 8 ? NPU_I16 : NPU_NONE;
}

NPU_IR_API npu_dtype npu_promote_types(npu_dtype a, npu_dtype b)
{
    int ra = npu__dtype_rank(a), rb = npu__dtype_rank(b);
    if (a == b || ra == 0 || rb == 0) {
        return a == b ? a : NPU_NONE;
    }
    if (ra == 4 || rb == 4) {
        return npu__promote_complex(a, b);
    }
    if (ra != rb) {
        return ra > rb ? a : b;
    }
    if (ra == 2) {
        return npu__promote_integers(a, b);
    }
    if (npu_dtype_bits(a) == npu_dtype_bits(b)) { /* f16 with bf16 */
        return npu_dtype_bits(a) == 16 ? NPU_F32 : NPU_NONE;
    }
    return npu_dtype_bits(a) > npu_dtype_bits(b) ? a : b;
}

NPU_IR_API npu_dtype npu_promote_tensor(npu_dtype a, npu_dtype b)
{
    int ra = npu__dtype_rank(a), rb = npu__dtype_rank(b);
    if (ra == 0 || rb == 0) {
        return NPU_NONE;
    }
    if (ra != rb) {
        return ra > rb ? a : b;
    }
    if (npu_dtype_bits(a) != npu_dtype_bits(b)) {
        return npu_dtype_bits(a) > npu_dtype_bits(b) ? a : b;
    }
    return npu_dtype_is_signed(b) && !npu_dtype_is_signed(a) ? b : a;
}

NPU_IR_API float npu_bf16_to_f32(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

NPU_IR_API uint16_t npu_f32_to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(u >> 16 | 0x40u); /* NaN stays NaN, quiet */
    }
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

NPU_IR_API float npu_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 0x3ffu,
             u;
    float x;
    if (exponent == 31) {
        u = sign | 0x7f800000u | mantissa << 13;
    } else if (exponent) {
        u = sign | (exponent + 112) << 23 | mantissa << 13;
    } else { /* zero or subnormal: mantissa times 2^-24, exact in f32 */
        x = (float)mantissa * 5.9604644775390625e-8f;
        memcpy(&u, &x, 4);
        u |= sign;
    }
    memcpy(&x, &u, 4);
    return x;
}

NPU_IR_API uint16_t npu_f32_to_f16(float x)
{
    uint32_t u, sign, mantissa, rest, half, shift = 13;
    int exponent;
    memcpy(&u, &x, 4);
    sign = u >> 16 & 0x8000u;
    exponent = (int)(u >> 23 & 255u) - 127;
    mantissa = u & 0x7fffffu;
    if (exponent == 128) {
        return (uint16_t)(sign | 0x7c00u | (mantissa ? 0x200u | mantissa >> 13 : 0u));
    }
    if (exponent > 15) {
        return (uint16_t)(sign | 0x7c00u);
    }
    if (exponent < -14) { /* subnormal half: shift the whole significand */
        if (exponent < -25) {
            return (uint16_t)sign;
        }
        mantissa |= 0x800000u;
        shift = (uint32_t)(-exponent - 1);
        exponent = -15;
    }
    half = (uint32_t)(exponent + 15) << 10 | mantissa >> shift;
    rest = mantissa & ((1u << shift) - 1);
    half += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (half & 1u)); /* nearest even; may carry into the exponent */
    return (uint16_t)(sign | half);
}

static npu_spec npu__spec(npu_class cls, npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    npu_spec s;
    memset(&s, 0, sizeof s);
    if (rank > NPU_MAX_RANK || !npu_dtype_is_valid((uint32_t)dtype)) {
        return s;
    }
    s.cls = (uint8_t)cls;
    s.dtype = (uint8_t)dtype;
    s.rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        s.dims[i] = dims[i];
    }
    return s;
}

NPU_IR_API npu_spec npu_spec_tensor(npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    return npu__spec(NPU_CLASS_TENSOR, dtype, rank, dims);
}

NPU_IR_API npu_spec npu_spec_tile(npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    return npu__spec(NPU_CLASS_TILE, dtype, rank, dims);
}

NPU_IR_API npu_spec npu_spec_scalar(npu_dtype dtype) { return npu__spec(NPU_CLASS_SCALAR, dtype, 0, NULL); }

static bool npu__quant_equal(const npu_quant *a, const npu_quant *b)
{
    if (a == b || !a || !b) {
        return a == b;
    }
    return a->scheme == b->scheme && a->axis == b->axis && a->block == b->block && a->count == b->count &&
           memcmp(a->scales, b->scales, a->count * sizeof *a->scales) == 0 && (!a->zeros) == (!b->zeros) &&
           (!a->zeros || memcmp(a->zeros, b->zeros, a->count * sizeof *a->zeros) == 0);
}

NPU_IR_API bool npu_spec_equal(const npu_spec *a, const npu_spec *b)
{
    return a->cls == b->cls && a->dtype == b->dtype && a->rank == b->rank && a->wrapped == b->wrapped &&
        a->space == b->space && a->offset == b->offset &&
        memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0 && npu__quant_equal(a->quant, b->quant);
}

NPU_IR_API bool npu_spec_is_static(const npu_spec *spec)
{
    for (uint32_t i = 0; i < spec->rank; i++) {
        if (spec->dims[i] < 0) {
            return false;
        }
    }
    return true;
}

NPU_IR_API npu_status npu_spec_len(const npu_spec *spec, size_t *out)
{
    size_t n = 1;
    bool empty = false;
    *out = 0;
    if (!npu_spec_is_static(spec)) {
        return NPU_ERR_DYNAMIC_SHAPE;
    }
    for (uint32_t i = 0; i < spec->rank; i++) {
        if (spec->dims[i] == 0) {
            empty = true;
        } else if ((uint64_t)spec->dims[i] > SIZE_MAX || !npu_size_mul(n, (size_t)spec->dims[i], &n)) {
            return NPU_ERR_OVERFLOW;
        }
    }
    *out = empty ? 0 : n;
    return NPU_OK;
}

NPU_IR_API npu_status npu_spec_size(const npu_spec *spec, size_t *out)
{
    uint32_t bits = npu_dtype_bits((npu_dtype)spec->dtype);
    npu_status status = npu_spec_len(spec, out);
    size_t len = *out, row = spec->rank ? (size_t)spec->dims[spec->rank - 1] : 1;
    *out = 0;
    if (status || bits == 0) {
        return status ? status : NPU_ERR_DTYPE;
    }
    if (bits < 8) { /* rows are padded to a byte */
        *out = len ? len / row * ((row + 1) / 2) : 0;
        return NPU_OK;
    }
    return npu_size_mul(len, bits / 8, out) ? NPU_OK : NPU_ERR_OVERFLOW;
}

NPU_IR_API void npu_spec_print(npu_text *text, const npu_spec *spec)
{
    static const char *const classes[] = { "none ", "", "tile ", "scalar " };
    npu_text_printf(text, "%s%s[", classes[spec->cls & 3], npu_dtype_name((npu_dtype)spec->dtype));
    for (uint32_t i = 0; i < spec->rank; i++) {
        if (spec->dims[i] >= 0) {
            npu_text_printf(text, "%s%lld", i ? "," : "", (long long)spec->dims[i]);
        } else {
            npu_text_printf(text, "%s?", i ? "," : "");
        }
    }
    npu__text_str(text, spec->wrapped ? "] wrapped" : "]");
}

NPU_IR_API npu_status npu_broadcast(const int64_t *a, uint32_t rank_a, const int64_t *b, uint32_t rank_b,
                                    int64_t *out_dims, uint32_t *out_rank, uint32_t *bad)
{
    uint32_t rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t result[NPU_MAX_RANK];
    if (rank > NPU_MAX_RANK) {
        return NPU_ERR_RANK;
    }
    for (uint32_t i = 0; i < rank; i++) { /* i counts from the right */
        int64_t x = i < rank_a ? a[rank_a - 1 - i] : 1, y = i < rank_b ? b[rank_b - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) {
            if (bad) {
                *bad = i;
            }
            return NPU_ERR_SHAPE;
        }
        result[rank - 1 - i] = x == 1 ? y : x;
    }
    for (uint32_t i = 0; i < rank; i++) {
        out_dims[i] = result[i];
    }
    *out_rank = rank;
    return NPU_OK;
}

/* -------------------------------------------------------------------------------------------------------- */

/* What is known of a base type: spelling, form of a bound value and of a bound list, bytes of one value in a
   blob (0 = they vary), and the defaults it takes: i int, f float, b bool, s string, w word. Indexed by
   npu_type_base. */
typedef struct npu__base {
    const char *name;
    uint8_t form, list_form, size;
    char defaults[4];
} npu__base;

static const npu__base npu__bases[] = {
    { "", NPU_ARG_NONE, NPU_ARG_NONE, 0, "" },
    { "Tensor", NPU_ARG_TENSOR, NPU_ARG_TENSORS, 0, "" },
    { "int", NPU_ARG_INT, NPU_ARG_INTS, 8, "iw" },
    { "SymInt", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "float", NPU_ARG_FLOAT, NPU_ARG_FLOATS, 8, "if" },
    { "bool", NPU_ARG_BOOL, NPU_ARG_BOOLS, 1, "b" },
    { "str", NPU_ARG_STR, NPU_ARG_STR, 0, "s" },
    { "Scalar", NPU_ARG_INT, NPU_ARG_SCALARS, 9, "ifb" },
    { "ScalarType", NPU_ARG_DTYPE, NPU_ARG_DTYPE, 1, "w" },
    { "Device", NPU_ARG_INT, NPU_ARG_INTS, 8, "iw" },
    { "Layout", NPU_ARG_INT, NPU_ARG_INTS, 8, "iw" },
    { "MemoryFormat", NPU_ARG_INT, NPU_ARG_INTS, 8, "iw" },
    { "Generator", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "Storage", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "Stream", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "DeviceIndex", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "Dimname", NPU_ARG_STR, NPU_ARG_STR, 0, "s" },
    { "QScheme", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "SymBool", NPU_ARG_BOOL, NPU_ARG_BOOLS, 1, "b" },
    { "Tile", NPU_ARG_TENSOR, NPU_ARG_TENSORS, 0, "" },
    { "Pipe", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "AffineMap", NPU_ARG_STR, NPU_ARG_STR, 0, "s" },
    { "Graph", NPU_ARG_GRAPH, NPU_ARG_GRAPH, 4, "" },
    { "ConstQuantizerPtr", NPU_ARG_INT, NPU_ARG_INTS, 8, "i" },
    { "SymFloat", NPU_ARG_FLOAT, NPU_ARG_FLOATS, 8, "if" }
};
NPU__STATIC_ASSERT(NPU__COUNT(npu__bases) == NPU_T_SYMFLOAT + 1, every_base_has_a_row);

/* Tensors and tiles are operands; everything else is packed into the blob. */
static bool npu__is_operand(const npu_schema_arg *arg)
{
    return npu__bases[arg->type.base].form == NPU_ARG_TENSOR;
}

/* An integer that a value can feed: INT64_MIN stands for it. */
static bool npu__is_feedable(const npu_schema_arg *arg)
{
    return arg->type.base == NPU_T_INT || arg->type.base == NPU_T_SYMINT;
}

/* Elements of a list whose length is fixed, else 0. */
static uint32_t npu__fixed_count(const npu_schema_arg *arg)
{
    bool one_number = arg->default_form >= NPU_DEFAULT_BOOL && arg->default_form <= NPU_DEFAULT_FLOAT;
    bool empty = arg->default_form == NPU_DEFAULT_INTS && arg->num_default_ints == 0;
    return arg->type.list && (one_number || (arg->type.list_size >= 2 && !empty))
               ? (uint32_t)arg->type.list_size
               : 0;
}

/* ---- words ---- */

typedef struct npu__word {
    uint8_t base, value;
    const char *text;
} npu__word;

/* The numbers are those of c10; "npu" is its PrivateUse1. */
static const npu__word npu__words[] = {
    { NPU_T_INT, 1, "Mean" }, { NPU_T_INT, 2, "Sum" },
    { NPU_T_MEMORY_FORMAT, 0, "contiguous_format" }, { NPU_T_MEMORY_FORMAT, 1, "preserve_format" },
    { NPU_T_MEMORY_FORMAT, 2, "channels_last" }, { NPU_T_MEMORY_FORMAT, 3, "channels_last_3d" },
    { NPU_T_LAYOUT, 0, "strided" }, { NPU_T_LAYOUT, 1, "sparse_coo" }, { NPU_T_LAYOUT, 2, "sparse_csr" },
    { NPU_T_LAYOUT, 3, "_mkldnn" }, { NPU_T_LAYOUT, 4, "sparse_csc" }, { NPU_T_LAYOUT, 5, "sparse_bsr" },
    { NPU_T_LAYOUT, 6, "sparse_bsc" }, { NPU_T_LAYOUT, 7, "jagged" },
    { NPU_T_DEVICE, 0, "cpu" }, { NPU_T_DEVICE, 1, "cuda" }, { NPU_T_DEVICE, 12, "xpu" },
    { NPU_T_DEVICE, 13, "mps" }, { NPU_T_DEVICE, 14, "meta" }, { NPU_T_DEVICE, 20, "npu" },
    { NPU_T_DEVICE, 20, "privateuseone" }
};

/* The index of "cuda:1", 0 without one; -1 = not an index. */
static int64_t npu__device_index(const char *text)
{
    int64_t index = 0;
    if (text[0] == 0) {
        return 0;
    }
    if (text[0] != ':' || text[1] == 0 || strlen(text) > 4) {
        return -1;
    }
    for (text++; *text; text++) {
        if (*text < '0' || *text > '9') {
            return -1;
        }
        index = index * 10 + (*text - '0');
    }
    return index;
}

/* The number that a word stands for where a `base` is expected: "Mean", "torch.strided", "cuda:0", "f32". */
static bool npu__word_value(uint32_t base, const char *text, int64_t *value)
{
    if (base == NPU_T_DTYPE) {
        *value = npu_dtype_parse(text);
        return *value != NPU_NONE;
    }
    text += strncmp(text, "torch.", 6) == 0 ? 6 : 0;
    for (size_t i = 0; i < NPU__COUNT(npu__words); i++) {
        size_t len = strlen(npu__words[i].text);
        int64_t index = -1;
        if (npu__words[i].base == base && strncmp(text, npu__words[i].text, len) == 0) {
            index = base == NPU_T_DEVICE ? npu__device_index(text + len) : text[len] ? -1 : 0;
        }
        if (index >= 0) {
            *value = npu__words[i].value + 256 * index;
            return true;
        }
    }
    return false;
}

/* ---- parsing ---- */

/* Strings, arguments and numbers go to the ends of three runs of memory, see npu__schema_measure. */
typedef struct npu__schema_parser {
    const char *line, *at;
    npu_diag *diag;
    npu_schema_arg *args;
    int64_t *ints;
    char *chars;
} npu__schema_parser;

static bool npu__schema_expected(npu__schema_parser *p, const char *what)
{
    npu__fail(p->diag, NPU_ERR_PARSE, "schema column %u: expected %s in \"%.120s\"",
              (unsigned)(p->at - p->line) + 1, what, p->line);
    return false;
}

static bool npu__schema_accept(npu__schema_parser *p, const char *text)
{
    size_t len = strlen(text);
    bool found = strncmp(p->at, text, len) == 0;
    p->at += found ? len : 0;
    return found;
}

static bool npu__is_digit(char c) { return c >= '0' && c <= '9'; }

static bool npu__is_name_char(char c)
{
    return c == '_' || npu__is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t npu__name_length(const char *s)
{
    size_t len = 0;
    while (npu__is_name_char(s[len])) {
        len++;
    }
    return len;
}

/* Moves past `len` characters and returns a copy of them. */
static const char *npu__schema_take(npu__schema_parser *p, size_t len)
{
    char *copy = p->chars;
    memcpy(copy, p->at, len);
    copy[len] = 0;
    p->chars += len + 1;
    p->at += len;
    return copy;
}

static bool npu__parse_name(npu__schema_parser *p, const char *what, const char **out)
{
    size_t len = npu__name_length(p->at);
    if (len == 0 || npu__is_digit(*p->at)) {
        return npu__schema_expected(p, what);
    }
    *out = npu__schema_take(p, len);
    return true;
}

static uint8_t npu__find_base(const char *text, size_t len)
{
    for (size_t i = 1; i < NPU__COUNT(npu__bases); i++) {
        if (strncmp(text, npu__bases[i].name, len) == 0 && npu__bases[i].name[len] == 0) {
            return (uint8_t)i;
        }
    }
    return NPU_T_INVALID;
}

/* Characters of "a", "a|b" or "*". */
static size_t npu__alias_set_length(const char *s)
{
    size_t len = *s == '*' ? 1 : npu__name_length(s);
    while (len && s[len] == '|' && npu__name_length(s + len + 1)) {
        len += 1 + npu__name_length(s + len + 1);
    }
    return len;
}

/* The inside of "(a!)" or "(a -> *)". */
static bool npu__parse_alias(npu__schema_parser *p, const char **alias)
{
    size_t len = npu__alias_set_length(p->at);
    if (len == 0) {
        return npu__schema_expected(p, "an alias set");
    }
    len += p->at[len] == '!';
    if (strncmp(p->at + len, " -> ", 4) == 0 && npu__alias_set_length(p->at + len + 4)) {
        len += 4 + npu__alias_set_length(p->at + len + 4);
    }
    *alias = npu__schema_take(p, len);
    return npu__schema_accept(p, ")") || npu__schema_expected(p, "')' after the alias set");
}

static bool npu__parse_list_suffix(npu__schema_parser *p, npu_schema_type *type)
{
    type->list = 1;
    type->element_optional = type->optional;
    type->optional = 0;
    while (npu__is_digit(*p->at) && type->list_size < 1000) {
        type->list_size = type->list_size * 10 + (*p->at++ - '0');
    }
    if (p->at[-1] != '[' && type->list_size == 0) {
        return npu__schema_expected(p, "a list of at least one element");
    }
    if (!npu__schema_accept(p, "]")) {
        return npu__schema_expected(p, "']'");
    }
    type->optional = npu__schema_accept(p, "?");
    return true;
}

/* base ["(" alias ")"] ["?"] ["[" [k] "]" ["?"]] */
static bool npu__parse_type(npu__schema_parser *p, npu_schema_type *type)
{
    size_t len = npu__name_length(p->at);
    type->base = npu__find_base(p->at, len);
    if (type->base == NPU_T_INVALID) {
        return npu__schema_expected(p, "a type");
    }
    p->at += len;
    if (npu__schema_accept(p, "(") && !npu__parse_alias(p, &type->alias)) {
        return false;
    }
    type->optional = npu__schema_accept(p, "?");
    if (npu__schema_accept(p, "[") && !npu__parse_list_suffix(p, type)) {
        return false;
    }
    return !type->element_optional || npu__bases[type->base].form == NPU_ARG_TENSOR ||
           npu__schema_expected(p, "a list without optional elements");
}

static bool npu__parse_int(npu__schema_parser *p, int64_t *out)
{
    bool negative = npu__schema_accept(p, "-");
    int64_t x = 0; /* kept negative: its range is the larger one */
    if (!npu__is_digit(*p->at)) {
        return npu__schema_expected(p, "a number");
    }
    for (; npu__is_digit(*p->at); p->at++) {
        int digit = *p->at - '0';
        if (x < (INT64_MIN + digit) / 10) {
            return npu__schema_expected(p, "a number of 64 bits");
        }
        x = x * 10 - digit;
    }
    if (!negative && x == INT64_MIN) {
        return npu__schema_expected(p, "a number of 64 bits");
    }
    *out = negative ? x : -x;
    return true;
}

static bool npu__parse_number(npu__schema_parser *p, npu_schema_arg *arg)
{
    size_t digits = *p->at == '-';
    const char *end;
    while (npu__is_digit(p->at[digits])) {
        digits++;
    }
    if (!strchr(".eE", p->at[digits]) || p->at[digits] == 0) {
        arg->default_form = NPU_DEFAULT_INT;
        return npu__parse_int(p, &arg->default_int);
    }
    arg->default_form = NPU_DEFAULT_FLOAT;
    arg->default_float = npu__parse_double(p->at, &end);
    if (end == p->at || arg->default_float - arg->default_float != 0) {
        return npu__schema_expected(p, "a finite number");
    }
    p->at = end;
    return true;
}

static bool npu__parse_ints(npu__schema_parser *p, npu_schema_arg *arg)
{
    arg->default_form = NPU_DEFAULT_INTS;
    arg->default_ints = p->ints;
    p->at++;
    if (npu__schema_accept(p, "]")) {
        return true;
    }
    do {
        if (!npu__parse_int(p, p->ints)) {
            return false;
        }
        p->ints++;
        arg->num_default_ints++;
    } while (npu__schema_accept(p, ","));
    return npu__schema_accept(p, "]") || npu__schema_expected(p, "',' or ']'");
}

/* Escapes: \\ \' \" \n \t. */
static bool npu__parse_string(npu__schema_parser *p, npu_schema_arg *arg)
{
    arg->default_form = NPU_DEFAULT_STR;
    arg->default_str = p->chars;
    arg->quote = *p->at++;
    while (*p->at != arg->quote) {
        const char *escape = *p->at == '\\' && p->at[1] ? strchr("\\\\''\"\"n\nt\t", p->at[1]) : NULL;
        if ((unsigned char)*p->at < 0x20 || (*p->at == '\\' && (!escape || (unsigned char)p->at[1] < 0x20))) {
            return npu__schema_expected(p, *p->at ? "a character or escape of a string"
                                                  : "the end of the string");
        }
        *p->chars++ = escape ? escape[1] : *p->at;
        p->at += escape ? 2 : 1;
    }
    *p->chars++ = 0;
    p->at++;
    return true;
}

static bool npu__parse_word(npu__schema_parser *p, npu_schema_arg *arg)
{
    const char *start = p->at, *word;
    if (!npu__parse_name(p, "a default", &word)) {
        return false;
    }
    if (strcmp(word, "None") == 0) {
        arg->default_form = NPU_DEFAULT_NONE;
    } else if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0) {
        arg->default_form = NPU_DEFAULT_BOOL;
        arg->default_int = word[0] == 'T';
    } else if (npu__word_value(arg->type.base, word, &arg->default_int)) {
        arg->default_form = NPU_DEFAULT_WORD;
        arg->default_str = word;
    } else {
        p->at = start;
        return npu__schema_expected(p, "a default");
    }
    return true;
}

static bool npu__default_fits(const npu_schema_arg *arg)
{
    static const char letters[] = { 0, 0, 'b', 'i', 'f', 's', 0, 'w' };
    const char *takes = npu__bases[arg->type.base].defaults;
    uint32_t fixed = npu__fixed_count(arg);
    switch (arg->default_form) {
    case NPU_DEFAULT_NONE: return arg->type.optional != 0;
    case NPU_DEFAULT_INTS:
        return arg->type.list &&
               (fixed == 0 || arg->num_default_ints == 1 || arg->num_default_ints == fixed) &&
               (arg->num_default_ints == 0 || strchr(takes, 'i'));
    default:
        return strchr(takes, letters[arg->default_form]) != NULL &&
               (!arg->type.list || arg->type.list_size > 0);
    }
}

static bool npu__parse_default(npu__schema_parser *p, npu_schema_arg *arg)
{
    const char *start = p->at;
    bool ok;
    if (*p->at == '[') {
        ok = npu__parse_ints(p, arg);
    } else if (*p->at == '"' || *p->at == '\'') {
        ok = npu__parse_string(p, arg);
    } else if (*p->at == '-' || npu__is_digit(*p->at)) {
        ok = npu__parse_number(p, arg);
    } else {
        ok = npu__parse_word(p, arg);
    }
    if (ok && !npu__default_fits(arg)) {
        p->at = start;
        return npu__schema_expected(p, "a default of the argument's type");
    }
    return ok;
}

static bool npu__parse_schema_arg(npu__schema_parser *p, npu_schema *schema, bool keyword_only)
{
    npu_schema_arg *arg = p->args;
    const char *start;
    arg->keyword_only = keyword_only;
    if (!npu__parse_type(p, &arg->type)) {
        return false;
    }
    start = ++p->at; /* behind the space */
    if (start[-1] != ' ') {
        p->at--;
        return npu__schema_expected(p, "' ' and an argument name");
    }
    if (!npu__parse_name(p, "an argument name", &arg->name)) {
        return false;
    }
    if (npu_schema_find_arg(schema, arg->name) >= 0 || schema->num_args == NPU_MAX_ARGS) {
        p->at = start;
        return npu__schema_expected(p, schema->num_args == NPU_MAX_ARGS ? "at most 40 arguments"
                                                                        : "a name that is not used yet");
    }
    p->args++;
    schema->num_args++;
    return !npu__schema_accept(p, "=") || npu__parse_default(p, arg);
}

static bool npu__parse_schema_args(npu__schema_parser *p, npu_schema *schema)
{
    bool keyword_only = false;
    if (npu__schema_accept(p, ")")) {
        return true;
    }
    do {
        if (!keyword_only && npu__schema_accept(p, "*")) {
            keyword_only = true;
            if (!npu__schema_accept(p, ", ")) {
                return npu__schema_expected(p, "', ' and an argument");
            }
        }
        if (!npu__parse_schema_arg(p, schema, keyword_only)) {
            return false;
        }
    } while (npu__schema_accept(p, ", "));
    return npu__schema_accept(p, ")") || npu__schema_expected(p, "', ' or ')'");
}

static bool npu__parse_returns(npu__schema_parser *p, npu_schema *schema)
{
    bool parentheses = npu__schema_accept(p, "(");
    schema->returns_in_parentheses = parentheses;
    schema->returns = p->args;
    if (parentheses && npu__schema_accept(p, ")")) {
        return true;
    }
    do {
        if (!npu__parse_type(p, &p->args->type) ||
            (npu__schema_accept(p, " ") && !npu__parse_name(p, "a result name", &p->args->name))) {
            return false;
        }
        p->args++;
        schema->num_returns++;
    } while (parentheses && npu__schema_accept(p, ", "));
    return !parentheses || npu__schema_accept(p, ")") || npu__schema_expected(p, "', ' or ')'");
}

static bool npu__parse_schema(npu__schema_parser *p, npu_schema *schema)
{
    size_t len;
    schema->overload = "";
    schema->args = p->args;
    if (!npu__parse_name(p, "an op name", &schema->name)) {
        return false;
    }
    if (npu__schema_accept(p, ".")) {
        len = npu__name_length(p->at);
        if (len == 0) {
            return npu__schema_expected(p, "an overload name");
        }
        schema->overload = npu__schema_take(p, len);
    }
    if (!npu__schema_accept(p, "(")) {
        return npu__schema_expected(p, "'('");
    }
    if (!npu__parse_schema_args(p, schema)) {
        return false;
    }
    if (!npu__schema_accept(p, " -> ")) {
        return npu__schema_expected(p, "' -> '");
    }
    return npu__parse_returns(p, schema) && (*p->at == 0 || npu__schema_expected(p, "the end"));
}

/* Where the parts of a parsed schema lie in its block, from counts that can only be too large. */
typedef struct npu__schema_room {
    size_t ints, chars, size; /* bytes: offsets, and all of it */
} npu__schema_room;

static bool npu__schema_measure(const char *line, npu__schema_room *room)
{
    size_t args = 2, ints = 0, len = 0, bytes;
    for (; line[len]; len++) {
        args += line[len] == ',';
        ints += line[len] == ',' || line[len] == '[';
    }
    return npu_size_mul(args, sizeof(npu_schema_arg), &bytes) &&
           npu_size_add(bytes, NPU__ALIGN16(sizeof(npu_schema)), &room->ints) &&
           npu_size_mul(ints, sizeof(int64_t), &bytes) && npu_size_add(bytes, room->ints, &room->chars) &&
           npu_size_add(room->chars, len + 2, &room->size);
}

/* Parses into memory of room->size bytes. */
static npu_status npu__schema_fill(void *memory, const npu__schema_room *room, const char *line,
                                   npu_diag *diag)
{
    npu_schema *schema = (npu_schema *)memory;
    npu__schema_parser p;
    memset(memory, 0, room->size);
    p.line = p.at = line;
    p.diag = diag;
    p.args = (npu_schema_arg *)(void *)((char *)memory + NPU__ALIGN16(sizeof *schema));
    p.ints = (int64_t *)(void *)((char *)memory + room->ints);
    p.chars = (char *)memory + room->chars;
    return npu__parse_schema(&p, schema) ? NPU_OK : NPU_ERR_PARSE;
}

/* The size of the block lies in front of the schema: the allocator wants it back. */
#define NPU__SCHEMA_HEAD NPU__ALIGN16(sizeof(size_t))

NPU_IR_API npu_status npu_schema_parse(npu_schema **out, const char *line, const npu_allocator *allocator,
                                       npu_diag *diag)
{
    npu_allocator a = npu__allocator(allocator);
    npu__schema_room room;
    npu_status status;
    size_t size;
    char *block;
    *out = NULL;
    if (!line) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "schema: no line");
    }
    if (!npu__schema_measure(line, &room) || !npu_size_add(room.size, NPU__SCHEMA_HEAD, &size)) {
        return npu__fail(diag, NPU_ERR_OVERFLOW, "schema: the line is too long");
    }
    block = (char *)npu__alloc(&a, size);
    if (!block) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "schema: out of memory");
    }
    status = npu__schema_fill(block + NPU__SCHEMA_HEAD, &room, line, diag);
    if (status) {
        npu__free(&a, block, size);
        return status;
    }
    memcpy(block, &size, sizeof size);
    *out = (npu_schema *)(void *)(block + NPU__SCHEMA_HEAD);
    return NPU_OK;
}

NPU_IR_API void npu_schema_free(npu_schema *schema, const npu_allocator *allocator)
{
    npu_allocator a = npu__allocator(allocator);
    size_t size;
    if (schema) {
        char *block = (char *)schema - NPU__SCHEMA_HEAD;
        memcpy(&size, block, sizeof size);
        npu__free(&a, block, size);
    }
}

/* Looks from `first` on, round the end: arguments are mostly given in schema order. */
static int npu__find_arg(const npu_schema *schema, const char *name, uint32_t first)
{
    for (uint32_t i = 0, at = first; i < schema->num_args; i++, at++) {
        at = at >= schema->num_args ? 0 : at;
        if (strcmp(schema->args[at].name, name) == 0) {
            return (int)at;
        }
    }
    return -1;
}

NPU_IR_API int npu_schema_find_arg(const npu_schema *schema, const char *name)
{
    return npu__find_arg(schema, name, 0);
}

/* ---- printing ---- */

static void npu__print_type(npu_text *text, const npu_schema_type *type)
{
    npu__text_str(text, npu__bases[type->base].name);
    if (type->alias) {
        npu_text_printf(text, "(%s)", type->alias);
    }
    if (type->list) {
        npu__text_str(text, type->element_optional ? "?[" : "[");
        if (type->list_size) {
            npu_text_printf(text, "%d", (int)type->list_size);
        }
        npu__text_str(text, "]");
    }
    npu__text_str(text, type->optional ? "?" : "");
}

static void npu__print_quoted(npu_text *text, const char *s, char quote)
{
    npu_text_append(text, &quote, 1);
    for (; *s; s++) {
        char escape = *s == '\n' ? 'n' : *s == '\t' ? 't' : *s;
        if (escape != *s || *s == quote || *s == '\\') {
            npu_text_append(text, "\\", 1);
        }
        npu_text_append(text, &escape, 1);
    }
    npu_text_append(text, &quote, 1);
}

static void npu__print_default(npu_text *text, const npu_schema_arg *arg)
{
    switch (arg->default_form) {
    case NPU_DEFAULT_NONE: npu__text_str(text, "None"); break;
    case NPU_DEFAULT_BOOL: npu__text_str(text, arg->default_int ? "True" : "False"); break;
    case NPU_DEFAULT_INT: npu_text_printf(text, "%lld", (long long)arg->default_int); break;
    case NPU_DEFAULT_FLOAT: npu__text_double(text, arg->default_float); break;
    case NPU_DEFAULT_STR: npu__print_quoted(text, arg->default_str, arg->quote); break;
    case NPU_DEFAULT_INTS:
        npu__text_str(text, "[");
        for (uint32_t i = 0; i < arg->num_default_ints; i++) {
            npu_text_printf(text, "%s%lld", i ? "," : "", (long long)arg->default_ints[i]);
        }
        npu__text_str(text, "]");
        break;
    default: npu__text_str(text, arg->default_str); break;
    }
}

/* " name=default", as far as there is one */
static void npu__print_arg(npu_text *text, const npu_schema_arg *arg)
{
    npu__print_type(text, &arg->type);
    if (arg->name) {
        npu_text_printf(text, " %s", arg->name);
    }
    if (arg->default_form != NPU_DEFAULT_REQUIRED) {
        npu__text_str(text, "=");
        npu__print_default(text, arg);
    }
}

NPU_IR_API void npu_schema_print(npu_text *text, const npu_schema *schema)
{
    bool keyword_only = false;
    npu_text_printf(text, "%s%s%s(", schema->name, schema->overload[0] ? "." : "", schema->overload);
    for (uint32_t i = 0; i < schema->num_args; i++) {
        npu__text_str(text, i ? ", " : "");
        npu__text_str(text, schema->args[i].keyword_only && !keyword_only ? "*, " : "");
        keyword_only = schema->args[i].keyword_only;
        npu__print_arg(text, &schema->args[i]);
    }
    npu__text_str(text, schema->returns_in_parentheses ? ") -> (" : ") -> ");
    for (uint32_t i = 0; i < schema->num_returns; i++) {
        npu__text_str(text, i ? ", " : "");
        npu__print_arg(text, &schema->returns[i]);
    }
    npu__text_str(text, schema->returns_in_parentheses ? ")" : "");
}

/* ---- attrs structs ---- */

/* Alignment of a type as a member; i386 aligns int64_t and double to 4 there. */
#define NPU__MEMBER(type) struct npu__member_##type { char before; type member; }
#define NPU__MEMBER_ALIGN(type) offsetof(struct npu__member_##type, member)
typedef const char *npu__str;
NPU__MEMBER(int64_t);
NPU__MEMBER(double);
NPU__MEMBER(npu_dtype);
NPU__MEMBER(npu_scalar);
NPU__MEMBER(npu_ints);
NPU__MEMBER(npu__str);

NPU__STATIC_ASSERT(sizeof(npu_ints) == sizeof(npu_floats) && sizeof(npu_ints) == sizeof(npu_bools),
                   lists_are_alike);

typedef struct npu__layout {
    size_t size, align;
} npu__layout;

static npu__layout npu__element_layout(const npu_schema_arg *arg)
{
    npu__layout int_layout = { sizeof(int64_t), NPU__MEMBER_ALIGN(int64_t) };
    npu__layout float_layout = { sizeof(double), NPU__MEMBER_ALIGN(double) };
    npu__layout bool_layout = { sizeof(bool), 1 };
    npu__layout str_layout = { sizeof(npu__str), NPU__MEMBER_ALIGN(npu__str) };
    npu__layout scalar_layout = { sizeof(npu_scalar), NPU__MEMBER_ALIGN(npu_scalar) };
    npu__layout dtype_layout = { sizeof(npu_dtype), NPU__MEMBER_ALIGN(npu_dtype) };
    switch (npu__bases[arg->type.base].form) {
    case NPU_ARG_FLOAT: return float_layout;
    case NPU_ARG_BOOL: return bool_layout;
    case NPU_ARG_STR: return str_layout;
    case NPU_ARG_DTYPE: return arg->type.list ? int_layout : dtype_layout;
    default: return arg->type.base == NPU_T_SCALAR ? scalar_layout : int_layout;
    }
}

static npu__layout npu__member_layout(const npu_schema_arg *arg)
{
    npu__layout list_layout = { sizeof(npu_ints), NPU__MEMBER_ALIGN(npu_ints) };
    npu__layout layout = npu__element_layout(arg);
    uint32_t fixed = npu__fixed_count(arg);
    layout.size *= fixed ? fixed : 1;
    return arg->type.list && !fixed ? list_layout : layout;
}

/* Is there a bool has_x? Only then can zero be told from nothing. */
static bool npu__has_flag(const npu_schema_arg *arg)
{
    uint8_t form = npu__bases[arg->type.base].form;
    bool nonzero = arg->default_int != 0 || arg->default_float != 0;
    if (arg->type.list || form == NPU_ARG_STR) {
        return false;
    }
    if (arg->type.optional) {
        return true;
    }
    if (npu__is_feedable(arg)) {
        return nonzero && arg->default_int != 1;
    }
    return nonzero && (form == NPU_ARG_FLOAT || form == NPU_ARG_BOOL || arg->type.base == NPU_T_SCALAR);
}

static size_t npu__align_up(size_t x, size_t align) { return (x + align - 1) / align * align; }

/* Places the member of one argument behind *end. */
static npu_attr_slot npu__layout_next(const npu_schema *schema, uint32_t arg, npu__layout *end)
{
    npu__layout member = npu__member_layout(&schema->args[arg]);
    npu_attr_slot slot = { 0, 0, 0 };
    slot.arg = arg;
    slot.offset = (uint32_t)npu__align_up(end->size, member.align);
    end->size = slot.offset + member.size;
    end->align = end->align < member.align ? member.align : end->align;
    if (npu__has_flag(&schema->args[arg])) {
        slot.has_offset = (uint32_t)end->size;
        end->size += sizeof(bool);
    }
    return slot;
}

NPU_IR_API uint32_t npu_schema_attrs_layout(const npu_schema *schema, npu_attr_slot *slots, uint32_t capacity,
                                            size_t *size)
{
    npu__layout end = { 0, 1 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        if (!npu__is_operand(&schema->args[i])) {
            npu_attr_slot slot = npu__layout_next(schema, i, &end);
            if (count < capacity) {
                slots[count] = slot;
            }
            count++;
        }
    }
    *size = npu__align_up(end.size, end.align);
    return count;
}

/* ---- numbers ---- */

NPU_IR_API npu_scalar npu_scalar_int(int64_t x)
{
    npu_scalar s = { 0, 0, 0, 0 };
    s.i = x;
    return s;
}

NPU_IR_API npu_scalar npu_scalar_float(double x)
{
    npu_scalar s = { 0, 0, 1, 0 };
    s.f = x;
    return s;
}

NPU_IR_API npu_scalar npu_scalar_bool(bool x)
{
    npu_scalar s = { 0, 0, 0, 1 };
    s.i = x;
    return s;
}

NPU_IR_API double npu_scalar_value(npu_scalar s) { return s.is_float ? s.f : (double)s.i; }

/* Towards zero; what does not fit becomes the nearest that does, NaN becomes 0. */
static int64_t npu__truncate(double x)
{
    if (!(x > -9223372036854775808.0)) {
        return x != x ? 0 : INT64_MIN;
    }
    return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

/* ---- reading bound arguments ---- */

NPU_IR_API const npu_bound_arg *npu_op_arg(const npu_op_info *op, const char *name)
{
    for (uint32_t i = 0; i < op->num_args; i++) {
        if (strcmp(op->args[i].name, name) == 0) {
            return &op->args[i];
        }
    }
    return NULL;
}

/* The argument when it is one number, else NULL. */
static const npu_bound_arg *npu__op_number(const npu_op_info *op, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    if (!arg || arg->data) {
        return NULL;
    }
    switch (arg->form) {
    case NPU_ARG_INT: case NPU_ARG_FLOAT: case NPU_ARG_BOOL:
    case NPU_ARG_DTYPE: case NPU_ARG_GRAPH: return arg;
    default: return NULL;
    }
}

NPU_IR_API bool npu_op_has(const npu_op_info *op, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    return arg && arg->form != NPU_ARG_NONE && (arg->form != NPU_ARG_TENSOR || op->in[arg->first] != NULL);
}

NPU_IR_API int64_t npu_op_int(const npu_op_info *op, const char *name, int64_t fallback)
{
    const npu_bound_arg *arg = npu__op_number(op, name);
    return arg ? arg->i : fallback;
}

NPU_IR_API double npu_op_float(const npu_op_info *op, const char *name, double fallback)
{
    const npu_bound_arg *arg = npu__op_number(op, name);
    return arg ? arg->f : fallback;
}

NPU_IR_API npu_scalar npu_op_scalar(const npu_op_info *op, const char *name, npu_scalar fallback)
{
    const npu_bound_arg *arg = npu__op_number(op, name);
    if (!arg) {
        return fallback;
    }
    return arg->form == NPU_ARG_FLOAT  ? npu_scalar_float(arg->f)
           : arg->form == NPU_ARG_BOOL ? npu_scalar_bool(arg->i != 0)
                                       : npu_scalar_int(arg->i);
}

NPU_IR_API bool npu_op_str_is(const npu_op_info *op, const char *name, const char *text)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    return arg && arg->form == NPU_ARG_STR && strlen(text) == arg->count &&
           memcmp(arg->data, text, arg->count) == 0;
}

NPU_IR_API uint32_t npu_op_list_len(const npu_op_info *op, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    bool is_list = arg && (arg->form == NPU_ARG_TENSORS || (arg->data && arg->form != NPU_ARG_STR));
    return is_list ? arg->count : 0;
}

/* Reads one packed element as a number of `base`: form, i and f of b. False = a value that cannot be. */
static bool npu__read_number(uint32_t base, const uint8_t *p, npu_bound_arg *b)
{
    static const uint8_t tags[] = { NPU_ARG_BOOL, NPU_ARG_INT, NPU_ARG_FLOAT };
    uint32_t size = npu__bases[base].size;
    uint64_t bits;
    b->form = npu__bases[base].form;
    if (base == NPU_T_SCALAR) {
        if (*p > 2) {
            return false;
        }
        b->form = tags[*p++];
        size = 8;
    }
    bits = npu__get_le(p, size);
    if (b->form == NPU_ARG_FLOAT) {
        b->f = npu__bits_double(bits);
        b->i = npu__truncate(b->f);
        return true;
    }
    b->i = (int64_t)bits;
    b->f = (double)b->i;
    return b->form == NPU_ARG_BOOL ? bits <= 1
                                   : b->form != NPU_ARG_DTYPE || npu_dtype_is_valid((uint32_t)bits);
}

/* Element i of a list of numbers; false = there is none. */
static bool npu__list_element(const npu_op_info *op, const char *name, uint32_t i, npu_bound_arg *out)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    uint32_t base = 0;
    switch (arg && arg->data && i < arg->count ? arg->form : (uint32_t)NPU_ARG_NONE) {
    case NPU_ARG_INTS: base = NPU_T_INT; break;
    case NPU_ARG_FLOATS: base = NPU_T_FLOAT; break;
    case NPU_ARG_BOOLS: base = NPU_T_BOOL; break;
    case NPU_ARG_SCALARS: base = NPU_T_SCALAR; break;
    case NPU_ARG_DTYPE: base = NPU_T_DTYPE; break;
    case NPU_ARG_GRAPH: base = NPU_T_GRAPH; break;
    default: return false;
    }
    return npu__read_number(base, arg->data + (size_t)i * npu__bases[base].size, out);
}

NPU_IR_API int64_t npu_op_int_at(const npu_op_info *op, const char *name, uint32_t i)
{
    npu_bound_arg element;
    return npu__list_element(op, name, i, &element) ? element.i : 0;
}

NPU_IR_API double npu_op_float_at(const npu_op_info *op, const char *name, uint32_t i)
{
    npu_bound_arg element;
    return npu__list_element(op, name, i, &element) ? element.f : 0.0;
}

NPU_IR_API uint32_t npu_op_ints(const npu_op_info *op, const char *name, int64_t *out, uint32_t capacity)
{
    const npu_bound_arg *number = npu__op_number(op, name);
    uint32_t len = number ? 1 : npu_op_list_len(op, name);
    for (uint32_t i = 0; len && i < capacity && (i < len || len == 1); i++) {
        out[i] = number ? number->i : npu_op_int_at(op, name, len == 1 ? 0 : i);
    }
    return len;
}

NPU_IR_API int npu_op_operand(const npu_op_info *op, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(op, name);
    return arg && arg->form == NPU_ARG_TENSOR && op->in[arg->first] ? (int)arg->first : -1;
}

/* ---- blobs: binding ---- */

typedef struct npu__binder {
    const uint8_t *at;
    uint32_t left;               /* bytes */
    const uint32_t *counts;      /* of the tensor lists that are still to come */
    uint32_t operand, num_operands;
} npu__binder;

/* The next n bytes, NULL = there are not that many. */
static const uint8_t *npu__read(npu__binder *b, uint64_t n)
{
    const uint8_t *p = b->at;
    if (n > b->left) {
        return NULL;
    }
    b->at += n;
    b->left -= (uint32_t)n;
    return p;
}

static npu_status npu__bind_operands(npu__binder *b, uint32_t count, npu_bound_arg *out)
{
    if (count > b->num_operands - b->operand) {
        return NPU_ERR_ARITY;
    }
    out->first = b->operand;
    out->count = count;
    b->operand += count;
    return NPU_OK;
}

/* Bytes of `count` elements, each checked; strings vary in length. */
static bool npu__skip_elements(npu__binder *b, uint32_t base, uint32_t count)
{
    uint32_t size = npu__bases[base].size;
    const uint8_t *p = npu__read(b, (uint64_t)count * size);
    npu_bound_arg element;
    if (!p) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *head = size ? p : npu__read(b, 4);
        if (!head || (size ? !npu__read_number(base, p + (size_t)i * size, &element)
                           : !npu__read(b, npu__get_le(head, 4)))) {
            return false;
        }
    }
    return true;
}

static npu_status npu__bind_list(npu__binder *b, const npu_schema_arg *arg, npu_bound_arg *out)
{
    uint32_t count = npu__fixed_count(arg), fed = 0;
    const uint8_t *p = count ? NULL : npu__read(b, 4);
    if (!count && !p) {
        return NPU_ERR_BAD_ATTR_SIZE;
    }
    count = count ? count : (uint32_t)npu__get_le(p, 4);
    out->form = npu__bases[arg->type.base].list_form;
    out->data = b->at;
    if (!npu__skip_elements(b, arg->type.base, count)) {
        return NPU_ERR_BAD_ATTR_SIZE;
    }
    for (uint32_t i = 0; npu__is_feedable(arg) && i < count; i++) {
        fed += npu__get_le(out->data + (size_t)i * 8, 8) == (uint64_t)INT64_MIN;
    }
    if (fed && npu__bind_operands(b, fed, out)) {
        return NPU_ERR_ARITY;
    }
    out->count = out->form == NPU_ARG_STR ? (uint32_t)(b->at - out->data) : count;
    return NPU_OK;
}

static npu_status npu__bind_value(npu__binder *b, const npu_schema_arg *arg, npu_bound_arg *out)
{
    uint32_t size = npu__bases[arg->type.base].size;
    const uint8_t *p = npu__read(b, size ? size : 4);
    if (!p) {
        return NPU_ERR_BAD_ATTR_SIZE;
    }
    if (!size) {
        out->form = NPU_ARG_STR;
        out->count = (uint32_t)npu__get_le(p, 4);
        out->data = npu__read(b, out->count);
        return out->data ? NPU_OK : NPU_ERR_BAD_ATTR_SIZE;
    }
    if (!npu__read_number(arg->type.base, p, out)) {
        return NPU_ERR_BAD_ATTR_SIZE;
    }
    return npu__is_feedable(arg) && out->i == INT64_MIN ? npu__bind_operands(b, 1, out) : NPU_OK;
}

static npu_status npu__bind_arg(npu__binder *b, const npu_schema_arg *arg, npu_bound_arg *out)
{
    memset(out, 0, sizeof *out);
    out->name = arg->name;
    if (npu__is_operand(arg)) {
        out->form = arg->type.list ? NPU_ARG_TENSORS : NPU_ARG_TENSOR;
        if (arg->type.list && !b->counts) {
            return NPU_ERR_ARITY;
        }
        return npu__bind_operands(b, arg->type.list ? *b->counts++ : 1, out);
    }
    if (arg->type.optional) {
        const uint8_t *present = npu__read(b, 1);
        if (!present || *present > 1) {
            return NPU_ERR_BAD_ATTR_SIZE;
        }
        if (!*present) {
            return NPU_OK;
        }
    }
    return arg->type.list ? npu__bind_list(b, arg, out) : npu__bind_value(b, arg, out);
}

NPU_IR_API npu_status npu_blob_bind(const npu_schema *schema, const uint8_t *blob, uint32_t size,
                                    const uint32_t *operand_counts, uint32_t num_operands,
                                    npu_bound_arg *args, npu_diag *diag)
{
    static const uint8_t nothing[1] = { 0 };
    npu__binder b;
    b.at = blob ? blob : nothing;
    b.left = blob ? size : 0;
    b.counts = operand_counts;
    b.operand = 0;
    b.num_operands = num_operands;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        npu_status status = npu__bind_arg(&b, &schema->args[i], &args[i]);
        if (status) {
            return npu__fail(diag, status, "%s: '%s' %s", schema->name, schema->args[i].name,
                             status == NPU_ERR_ARITY ? "lacks its operand"
                                                     : "cannot be read from the attribute blob");
        }
    }
    if (b.operand != num_operands) {
        return npu__fail(diag, NPU_ERR_ARITY, "%s: %u operands, expected %u", schema->name,
                         (unsigned)num_operands, (unsigned)b.operand);
    }
    return b.left == 0 ? NPU_OK
                       : npu__fail(diag, NPU_ERR_BAD_ATTR_SIZE, "%s: the attribute blob is %u bytes too long",
                                   schema->name, (unsigned)b.left);
}

/* ---- blobs: packing ---- */

/* Counts on when the room is used up, so that one failed call tells the size needed. */
typedef struct npu__writer {
    uint8_t *out;
    uint64_t capacity, size;
} npu__writer;

static void npu__write(npu__writer *w, const void *data, uint32_t n)
{
    if (n && w->size + n <= w->capacity) {
        memcpy(w->out + w->size, data, n);
    }
    w->size += n;
}

static void npu__write_le(npu__writer *w, uint64_t x, uint32_t bytes)
{
    uint8_t le[8];
    npu__put_le(le, x, bytes);
    npu__write(w, le, bytes);
}

static npu_arg npu__scalar_arg(npu_scalar s)
{
    return s.is_float  ? npu_arg_float(NULL, s.f)
           : s.is_bool ? npu_arg_bool(NULL, s.i != 0)
                       : npu_arg_int(NULL, s.i);
}

/* Can `base` hold the number: as bool, dtype code, graph index? */
static bool npu__fits_base(uint32_t base, int64_t i)
{
    switch (npu__bases[base].form) {
    case NPU_ARG_BOOL: return i == 0 || i == 1;
    case NPU_ARG_DTYPE: return i > 0 && i < 256 && npu_dtype_is_valid((uint32_t)i);
    case NPU_ARG_GRAPH: return i >= 0 && i <= (int64_t)UINT32_MAX;
    default: return true;
    }
}

static bool npu__arg_int(uint32_t base, const npu_arg *v, int64_t *i)
{
    switch (v->form) {
    case NPU_ARG_BOOL:
        *i = v->as.i != 0;
        break;
    case NPU_ARG_INT: case NPU_ARG_DTYPE: case NPU_ARG_GRAPH: *i = v->as.i; break;
    case NPU_ARG_STR: return v->as.str && npu__word_value(base, v->as.str, i);
    default: return false;
    }
    return npu__fits_base(base, *i);
}

static bool npu__write_scalar(npu__writer *w, const npu_arg *v)
{
    switch (v->form) {
    case NPU_ARG_BOOL:
        npu__write_le(w, 0, 1);
        npu__write_le(w, v->as.i != 0, 8);
        return true;
    case NPU_ARG_INT:
        npu__write_le(w, 1, 1);
        npu__write_le(w, (uint64_t)v->as.i, 8);
        return true;
    case NPU_ARG_FLOAT:
        npu__write_le(w, 2, 1);
        npu__write_le(w, npu__double_bits(v->as.f), 8);
        return true;
    default: return false;
    }
}

/* One value that is no list. False = it is not of the type. */
static bool npu__write_value(npu__writer *w, uint32_t base, const npu_arg *v)
{
    int64_t i = 0;
    size_t len;
    if (base == NPU_T_SCALAR) {
        return npu__write_scalar(w, v);
    }
    switch (npu__bases[base].form) {
    case NPU_ARG_FLOAT:
        if (v->form != NPU_ARG_FLOAT && v->form != NPU_ARG_INT && v->form != NPU_ARG_BOOL) {
            return false;
        }
        npu__write_le(w, npu__double_bits(v->form == NPU_ARG_FLOAT ? v->as.f : (double)v->as.i), 8);
        return true;
    case NPU_ARG_STR:
        if (v->form != NPU_ARG_STR || !v->as.str || (len = strlen(v->as.str)) > UINT32_MAX / 2) {
            return false;
        }
        npu__write_le(w, len, 4);
        npu__write(w, v->as.str, (uint32_t)len);
        return true;
    default:
        if (!npu__arg_int(base, v, &i)) {
            return false;
        }
        npu__write_le(w, (uint64_t)i, npu__bases[base].size);
        return true;
    }
}

static npu_arg npu__arg_element(const npu_arg *v, uint32_t i)
{
    switch (v->form) {
    case NPU_ARG_INTS: return npu_arg_int(NULL, v->as.ints[i]);
    case NPU_ARG_FLOATS: return npu_arg_float(NULL, v->as.floats[i]);
    case NPU_ARG_BOOLS: return npu_arg_bool(NULL, v->as.bools[i]);
    case NPU_ARG_SCALARS: return npu__scalar_arg(v->as.scalars[i]);
    default: return *v;
    }
}

static bool npu__write_list(npu__writer *w, const npu_schema_arg *arg, const npu_arg *v)
{
    bool is_list = v->form >= NPU_ARG_INTS && v->form <= NPU_ARG_SCALARS;
    uint32_t fixed = npu__fixed_count(arg), count = is_list ? v->count : 1, n = fixed ? fixed : count;
    if ((!is_list && arg->type.list_size == 0) || (fixed && count != fixed && count != 1)) {
        return false;
    }
    if (!fixed) {
        npu__write_le(w, count, 4);
    }
    for (uint32_t i = 0; i < n; i++) {
        npu_arg element = npu__arg_element(v, count == 1 ? 0 : i);
        if (!npu__write_value(w, arg->type.base, &element)) {
            return false;
        }
    }
    return true;
}

static bool npu__write_arg(npu__writer *w, const npu_schema_arg *arg, const npu_arg *v)
{
    if (v->form == NPU_ARG_NONE) {
        npu__write_le(w, 0, 1);
        return arg->type.optional != 0;
    }
    if (arg->type.optional) {
        npu__write_le(w, 1, 1);
    }
    if (arg->type.list) {
        return npu__write_list(w, arg, v);
    }
    if (v->form == NPU_ARG_TENSOR && npu__is_feedable(arg)) {
        npu__write_le(w, (uint64_t)INT64_MIN, 8);
        return true;
    }
    return npu__write_value(w, arg->type.base, v);
}

/* Where a tensor lives and how it lies has a default even where the schema gives none. */
static bool npu__is_required(const npu_schema_arg *arg)
{
    return arg->default_form == NPU_DEFAULT_REQUIRED && !arg->type.optional &&
           (arg->type.base < NPU_T_DEVICE || arg->type.base > NPU_T_STREAM);
}

static npu_arg npu__default_arg(const npu_schema_arg *arg)
{
    switch (arg->default_form) {
    case NPU_DEFAULT_BOOL:
        return npu_arg_bool(NULL, arg->default_int != 0);
    case NPU_DEFAULT_INT: case NPU_DEFAULT_WORD: return npu_arg_int(NULL, arg->default_int);
    case NPU_DEFAULT_FLOAT: return npu_arg_float(NULL, arg->default_float);
    case NPU_DEFAULT_STR: return npu_arg_str(NULL, arg->default_str);
    case NPU_DEFAULT_INTS: return npu_arg_ints(NULL, arg->default_ints, arg->num_default_ints);
    default: return arg->type.optional ? npu_arg_none(NULL) : npu_arg_int(NULL, 0);
    }
}

static npu_status npu__attribute_fail(npu_diag *diag, npu_status status, const npu_schema *schema,
                                      const char *name, const char *verb, const char *rest)
{
    if (diag && diag->status == NPU_OK) {
        npu__copy_head(diag->operand, sizeof diag->operand, name);
    }
    return npu__fail(diag, status, "%s %s '%s'%s", schema->name, verb, name, rest);
}

/* Packs one argument from a value, or from its default when the value is NULL. */
static npu_status npu__pack_arg(npu__writer *w, const npu_schema *schema, const npu_schema_arg *arg,
                                const npu_arg *v, npu_diag *diag)
{
    npu_arg fallback;
    if (!v && npu__is_required(arg)) {
        return npu__attribute_fail(diag, NPU_ERR_ATTRIBUTE, schema, arg->name, "requires", "");
    }
    if (!v) {
        fallback = npu__default_arg(arg);
        v = &fallback;
    }
    if (!npu__write_arg(w, arg, v)) {
        char type[48];
        snprintf(type, sizeof type, " only as %s%s%s", npu__bases[arg->type.base].name,
                 arg->type.list ? " list" : "", arg->type.optional ? " or none" : "");
        return npu__attribute_fail(diag, NPU_ERR_ATTRIBUTE, schema, arg->name, "takes", type);
    }
    return NPU_OK;
}

static npu_status npu__writer_done(const npu__writer *w, const npu_schema *schema, uint32_t *size,
                                   npu_diag *diag)
{
    *size = w->size > UINT32_MAX ? UINT32_MAX : (uint32_t)w->size;
    return w->size <= w->capacity ? NPU_OK
                                  : npu__fail(diag, NPU_ERR_OVERFLOW, "%s: %u bytes of attributes do not fit",
                                              schema->name, (unsigned)*size);
}

/* The schema argument that values[i] is for: by name, or by position among all values. -1 = none. */
static int npu__arg_target(const npu_schema *schema, const npu_arg *values, uint32_t i)
{
    if (values[i].name) {
        return npu__find_arg(schema, values[i].name, i);
    }
    return i < schema->num_args && !schema->args[i].keyword_only ? (int)i : -1;
}

/* given[a] = the value of argument a, or NULL. */
static npu_status npu__match_values(const npu_schema *schema, const npu_arg *values, uint32_t num_values,
                                    const npu_arg **given, npu_diag *diag)
{
    for (uint32_t a = 0; a < schema->num_args; a++) {
        given[a] = NULL;
    }
    for (uint32_t i = 0; i < num_values; i++) {
        int a = npu__arg_target(schema, values, i);
        if (a < 0 && !values[i].name) {
            return npu__fail(diag, NPU_ERR_ARITY, "%s takes fewer than %u arguments by position",
                             schema->name, (unsigned)i + 1);
        }
        if (a < 0) {
            return npu__attribute_fail(diag, NPU_ERR_ATTRIBUTE, schema, values[i].name, "has no", "");
        }
        if (given[a]) {
            return npu__attribute_fail(diag, NPU_ERR_ATTRIBUTE, schema, schema->args[a].name, "is given",
                                       " twice");
        }
        given[a] = &values[i];
    }
    return NPU_OK;
}

NPU_IR_API npu_status npu_blob_pack(const npu_schema *schema, const npu_arg *values, uint32_t num_values,
                                    uint8_t *out, uint32_t capacity, uint32_t *size, npu_diag *diag)
{
    const npu_arg *given[NPU_MAX_ARGS];
    npu__writer w;
    npu_status status = npu__match_values(schema, values, num_values, given, diag);
    w.out = out;
    w.capacity = out ? capacity : 0;
    w.size = 0;
    *size = 0;
    for (uint32_t a = 0; status == NPU_OK && a < schema->num_args; a++) {
        if (!npu__is_operand(&schema->args[a])) {
            status = npu__pack_arg(&w, schema, &schema->args[a], given[a], diag);
        }
    }
    return status ? status : npu__writer_done(&w, schema, size, diag);
}

/* ---- blobs: packing typed structs ---- */

/* A list member as a value: a fixed one lies in the struct, else it is pointer and length. */
static npu_arg npu__member_list(const npu_schema_arg *arg, const char *member)
{
    npu_arg v = npu_arg_none(NULL);
    uint32_t fixed = npu__fixed_count(arg);
    npu_ints list;
    list.data = (const int64_t *)(const void *)member;
    list.len = fixed;
    if (!fixed) {
        memcpy(&list, member, sizeof list);
    }
    v.form = npu__bases[arg->type.base].list_form;
    v.form = v.form == NPU_ARG_STR || v.form == NPU_ARG_DTYPE || v.form == NPU_ARG_GRAPH
                 ? (uint32_t)NPU_ARG_INTS
                 : v.form;
    v.count = list.len;
    v.as.ints = list.data; /* or whatever the form says: all are pointers */
    return v;
}

static npu_arg npu__member_value(const npu_schema_arg *arg, const char *member)
{
    union { int64_t i; double f; bool b; npu_dtype dtype; npu_scalar scalar; const char *str; } x;
    if (arg->type.list) {
        return npu__member_list(arg, member);
    }
    memcpy(&x, member, npu__member_layout(arg).size);
    switch (npu__bases[arg->type.base].form) {
    case NPU_ARG_FLOAT: return npu_arg_float(NULL, x.f);
    case NPU_ARG_BOOL: return npu_arg_bool(NULL, x.b);
    case NPU_ARG_STR: return npu_arg_str(NULL, x.str);
    case NPU_ARG_DTYPE: return npu_arg_dtype(NULL, x.dtype);
    default: break;
    }
    if (arg->type.base == NPU_T_SCALAR) {
        return npu__scalar_arg(x.scalar);
    }
    return npu_arg_int(NULL, x.i);
}

static bool npu__is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) {
            return false;
        }
    }
    return true;
}

/* Compares what a member holds, not the padding inside it. */
static bool npu__member_is_zero(const npu_schema_arg *arg, const char *member)
{
    npu_scalar s;
    npu_ints list;
    if (arg->type.list && !npu__fixed_count(arg)) {
        memcpy(&list, member, sizeof list);
        return !list.data && !list.len;
    }
    if (arg->type.base == NPU_T_SCALAR && !arg->type.list) {
        memcpy(&s, member, sizeof s);
        return s.i == 0 && !s.is_float && !s.is_bool;
    }
    return npu__is_zero(member, npu__member_layout(arg).size);
}

/* A member that is zero and not marked by has_x means "as by default"; without one, zero is its value. */
static bool npu__member_is_given(const npu_schema_arg *arg, const char *attrs, const npu_attr_slot *slot)
{
    uint8_t form = npu__bases[arg->type.base].form;
    bool has = false;
    if (slot->has_offset) {
        memcpy(&has, attrs + slot->has_offset, sizeof has);
    }
    return has || !npu__member_is_zero(arg, attrs + slot->offset) ||
           (npu__is_required(arg) && form != NPU_ARG_STR && form != NPU_ARG_DTYPE);
}

NPU_IR_API npu_status npu_blob_pack_struct(const npu_schema *schema, const void *attrs, size_t struct_size,
                                           uint8_t *out, uint32_t capacity, uint32_t *size, npu_diag *diag)
{
    npu__layout end = { 0, 1 };
    npu__writer w;
    npu_status status = NPU_OK;
    size_t expected;
    *size = 0;
    npu_schema_attrs_layout(schema, NULL, 0, &expected);
    if (!attrs || struct_size != expected) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "%s: the attrs struct has %u bytes, expected %u",
                         schema->name, (unsigned)struct_size, (unsigned)expected);
    }
    w.out = out;
    w.capacity = out ? capacity : 0;
    w.size = 0;
    for (uint32_t a = 0; status == NPU_OK && a < schema->num_args; a++) {
        if (!npu__is_operand(&schema->args[a])) {
            npu_attr_slot slot = npu__layout_next(schema, a, &end);
            bool given = npu__member_is_given(&schema->args[a], (const char *)attrs, &slot);
            npu_arg v = npu__member_value(&schema->args[a], (const char *)attrs + slot.offset);
            status = npu__pack_arg(&w, schema, &schema->args[a], given ? &v : NULL, diag);
        }
    }
    return status ? status : npu__writer_done(&w, schema, size, diag);
}

/* -------------------------------------------------------------------------------------------------------- */

/* ---- built-in rows ---- */

/* The rules are written in section 6. */
#define NPU__FAMILY(space_number, space, category, ops) ops(NPU__ROW)
#define NPU__ROW(number, symbol, traits, rule, schema, doc) static npu_status rule(struct npu_deduce *d);
NPU_IR_FAMILIES(NPU__FAMILY)
#undef NPU__FAMILY
#undef NPU__ROW

#ifndef NPU_IR_NO_STRINGS
#define NPU__DOC(doc) doc
#else
#define NPU__DOC(doc) ""
#endif
#define NPU__FAMILY(space_number, space, category, ops) \
    static const npu_op_row npu__rows_##ops[] = { ops(NPU__ROW) };
#define NPU__ROW(number, symbol, traits, rule, schema, doc) \
    { (npu_kind)(symbol), (uint32_t)(traits), rule, schema, NPU__DOC(doc) },
NPU_IR_FAMILIES(NPU__FAMILY)
#undef NPU__FAMILY
#undef NPU__ROW

static const npu_op_table npu__op_tables[] = {
#define NPU__FAMILY(space_number, space, category, ops) \
    { space, category, npu__rows_##ops, (uint32_t)NPU__COUNT(npu__rows_##ops) },
    NPU_IR_FAMILIES(NPU__FAMILY)
#undef NPU__FAMILY
};

NPU_IR_API const npu_op_table *npu_op_tables(uint32_t *num_tables)
{
    *num_tables = (uint32_t)NPU__COUNT(npu__op_tables);
    return npu__op_tables;
}

/* Their numbers are permanent: no custom row may take one. A number given twice does not compile here. */
static bool npu__kind_is_built_in(npu_kind kind)
{
    switch ((int)kind) {
#define NPU__FAMILY(space_number, space, category, ops) ops(NPU__ROW)
#define NPU__ROW(number, symbol, traits, rule, schema, doc) case symbol:
    NPU_IR_FAMILIES(NPU__FAMILY)
#undef NPU__FAMILY
#undef NPU__ROW
        return true;
    default: return false;
    }
}

/* ---- registry ---- */

struct npu_registry {
    npu_allocator allocator;
    npu__arena arena;        /* definitions, names, schemas, default blobs */
    const npu_op_def **defs; /* in table order */
    uint32_t num_defs, cap_defs;
    uint32_t *kinds;         /* open addressing: index of a definition + 1; a power of two, at most half full */
    uint32_t *names;         /* twice as large: (index + 1) * 2, plus 1 for a name without overload */
    uint32_t table_size;
    bool is_frozen;
};

/* One thread may freeze a registry that others already read: do not write what is true. */
static void npu__registry_freeze(npu_registry *registry)
{
    if (!registry->is_frozen) {
        registry->is_frozen = true;
    }
}

static uint32_t *npu__kind_slot(const npu_registry *r, npu_kind kind)
{
    uint32_t mask = r->table_size - 1, h = kind * 2654435761u, i = (h ^ h >> 15) & mask;
    while (r->kinds[i] && r->defs[r->kinds[i] - 1]->kind != kind) {
        i = (i + 1) & mask;
    }
    return &r->kinds[i];
}

/* The next character of a name, where "::" is read as '.'. */
static char npu__name_char(const char **text)
{
    char c = **text;
    if (c == ':' && (*text)[1] == ':') {
        c = '.';
        ++*text;
    }
    *text += c != 0;
    return c;
}

/* A name as it is looked up: prefix and text, read on end. len = SIZE_MAX takes all of the text. */
typedef struct npu__key {
    const char *prefix, *text;
    size_t len;
} npu__key;

static uint32_t npu__key_hash(const npu__key *key)
{
    uint32_t h = npu__hash(key->prefix, strlen(key->prefix));
    const char *at = key->text;
    while ((size_t)(at - key->text) < key->len && *at) {
        h = (h ^ (uint8_t)npu__name_char(&at)) * 16777619u;
    }
    return h;
}

/* Characters of a definition's name that an entry of the name table stands for: all, or to the overload. */
static size_t npu__entry_length(const npu_op_def *def, uint32_t entry)
{
    return entry & 1u ? strlen(def->space) + 1 + strlen(def->schema->name) : strlen(def->name);
}

static bool npu__key_equal(const npu__key *key, const char *name, size_t len)
{
    size_t prefix = strlen(key->prefix), i = prefix;
    const char *at = key->text;
    if (prefix > len || memcmp(key->prefix, name, prefix) != 0) {
        return false;
    }
    while ((size_t)(at - key->text) < key->len && *at) {
        if (i == len || npu__name_char(&at) != name[i++]) {
            return false;
        }
    }
    return i == len;
}

static uint32_t *npu__registry_name_slot(const npu_registry *r, const npu__key *key)
{
    uint32_t mask = r->table_size * 2 - 1, i = npu__key_hash(key) & mask;
    while (r->names[i]) {
        const npu_op_def *def = r->defs[r->names[i] / 2 - 1];
        if (npu__key_equal(key, def->name, npu__entry_length(def, r->names[i]))) {
            break;
        }
        i = (i + 1) & mask;
    }
    return &r->names[i];
}

/* Slot of the whole name of a definition (entry 0), or of the part before its overload (entry 1). */
static uint32_t *npu__def_slot(const npu_registry *r, const npu_op_def *def, uint32_t entry)
{
    npu__key key = { "", NULL, 0 };
    key.text = def->name;
    key.len = npu__entry_length(def, entry);
    return npu__registry_name_slot(r, &key);
}

/* A whole name replaces the shortened name of another. A shortened name belongs to the first overload. */
static void npu__registry_enter(npu_registry *r, uint32_t index)
{
    const npu_op_def *def = r->defs[index];
    uint32_t *short_slot;
    *npu__kind_slot(r, def->kind) = index + 1;
    *npu__def_slot(r, def, 0) = (index + 1) * 2;
    short_slot = npu__def_slot(r, def, 1);
    if (!*short_slot) {
        *short_slot = (index + 1) * 2 + 1;
    }
}

/* Makes room for `count` definitions in all. */
static bool npu__registry_reserve(npu_registry *r, uint32_t count)
{
    uint32_t size = r->table_size ? r->table_size : 64, *tables;
    if (!npu__reserve(&r->allocator, (void **)&r->defs, &r->cap_defs, count, sizeof *r->defs)) {
        return false;
    }
    while (size / 2 < count && size < NPU_NO_INDEX / 16) {
        size *= 2;
    }
    if (size == r->table_size) {
        return true;
    }
    tables = (uint32_t *)npu__alloc_zero(&r->allocator, (size_t)size * 3 * sizeof *tables);
    if (!tables) {
        return false;
    }
    npu__free(&r->allocator, r->kinds, (size_t)r->table_size * 3 * sizeof *tables);
    r->table_size = size;
    r->kinds = tables;
    r->names = tables + size;
    for (uint32_t i = 0; i < r->num_defs; i++) {
        npu__registry_enter(r, i);
    }
    return true;
}

/* "space.name.overload"; outside aten an empty overload is left out. */
static const char *npu__def_name(npu__arena *arena, const char *space, const npu_schema *schema)
{
    const char *overload = schema->overload[0] || strcmp(space, "aten") != 0 ? schema->overload : "default";
    size_t size = strlen(space) + strlen(schema->name) + strlen(overload) + 3;
    char *name = (char *)npu__arena_alloc(arena, size);
    if (name) {
        snprintf(name, size, "%s.%s%s%s", space, schema->name, overload[0] ? "." : "", overload);
    }
    return name;
}

static bool npu__def_defaults(npu__arena *arena, npu_op_def *def)
{
    uint8_t *blob;
    npu_status status = npu_blob_pack(def->schema, NULL, 0, NULL, 0, &def->defaults_size, NULL);
    if (status == NPU_ERR_ATTRIBUTE) { /* one is required */
        return true;
    }
    blob = (uint8_t *)npu__arena_alloc(arena, (size_t)def->defaults_size + 1);
    if (!blob) {
        return false;
    }
    npu_blob_pack(def->schema, NULL, 0, blob, def->defaults_size, &def->defaults_size, NULL);
    def->defaults = blob;
    return true;
}

static npu_status npu__def_make(npu__arena *arena, const npu_op_table *table, const npu_op_row *row,
                                npu_op_def **out, npu_diag *diag)
{
    npu__schema_room room;
    npu_op_def *def = (npu_op_def *)npu__arena_alloc(arena, sizeof *def);
    npu_schema *schema = def && npu__schema_measure(row->schema, &room)
                             ? (npu_schema *)npu__arena_alloc(arena, room.size)
                             : NULL;
    npu_status status = schema ? npu__schema_fill(schema, &room, row->schema, diag) : NPU_ERR_NO_MEMORY;
    if (!status) {
        memset(def, 0, sizeof *def);
        def->kind = row->kind;
        def->traits = row->traits;
        def->rule = row->rule;
        def->space = table->space;
        def->category = table->category;
        def->doc = row->doc ? row->doc : "";
        def->schema = schema;
        for (uint32_t i = 0; i < schema->num_args; i++) {
            def->num_operand_args += npu__is_operand(&schema->args[i]);
        }
        def->name = npu__def_name(arena, table->space, schema);
        status = def->name && npu__def_defaults(arena, def) ? NPU_OK : NPU_ERR_NO_MEMORY;
        *out = def;
    }
    return status == NPU_ERR_NO_MEMORY ? npu__fail(diag, status, "registry: out of memory") : status;
}

/* On failure the registry is as it was, but for memory that it keeps until it is destroyed. */
static npu_status npu__registry_insert(npu_registry *r, const npu_op_table *table, const npu_op_row *row,
                                       bool is_custom, npu_diag *diag)
{
    npu_op_def *def = NULL;
    npu_status status;
    uint32_t taken;
    if (!table->space || !table->space[0] || !row->schema || NPU_KIND_NAMESPACE(row->kind) == 0) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "registry: kind 0x%08x lacks a namespace or schema",
                         (unsigned)row->kind);
    }
    if (!npu__registry_reserve(r, r->num_defs + 1)) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "registry: out of memory");
    }
    status = npu__def_make(&r->arena, table, row, &def, diag);
    if (status) {
        return status;
    }
    def->is_custom = is_custom;
    taken = *npu__kind_slot(r, def->kind);
    if (taken || (is_custom && npu__kind_is_built_in(def->kind))) {
        return npu__fail(diag, NPU_ERR_DUPLICATE, "%s: kind 0x%08x is that of %s", def->name,
                         (unsigned)def->kind, taken ? r->defs[taken - 1]->name : "a built-in op");
    }
    taken = *npu__def_slot(r, def, 0);
    if (taken && !(taken & 1u)) {
        return npu__fail(diag, NPU_ERR_DUPLICATE, "%s: the name is that of kind 0x%08x", def->name,
                         (unsigned)r->defs[taken / 2 - 1]->kind);
    }
    r->defs[r->num_defs] = def;
    npu__registry_enter(r, r->num_defs++);
    return NPU_OK;
}

static npu_status npu__registry_fill(npu_registry *r, const npu_op_table *tables, uint32_t num_tables,
                                     npu_diag *diag)
{
    npu_status status = NPU_OK;
    uint64_t count = 0;
    for (uint32_t t = 0; t < num_tables; t++) {
        count += tables[t].num_rows;
    }
    if (count > NPU_NO_INDEX / 64 || !npu__registry_reserve(r, (uint32_t)count)) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "registry: out of memory");
    }
    for (uint32_t t = 0; t < num_tables; t++) {
        for (uint32_t i = 0; status == NPU_OK && i < tables[t].num_rows; i++) {
            status = npu__registry_insert(r, &tables[t], &tables[t].rows[i], false, diag);
        }
    }
    return status;
}

NPU_IR_API npu_status npu_registry_create(npu_registry **out, const npu_registry_desc *desc, npu_diag *diag)
{
    npu_registry_desc d = { NULL, 0, NULL, 0 };
    npu_allocator a;
    npu_status status;
    *out = NULL;
    d = desc ? *desc : d;
    if (d._canary || (d.num_tables && !d.tables)) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "registry: the desc is not zero-initialised");
    }
    if (!d.tables) {
        d.tables = npu_op_tables(&d.num_tables);
    }
    a = npu__allocator(d.allocator);
    *out = (npu_registry *)npu__alloc_zero(&a, sizeof **out);
    if (!*out) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "registry: out of memory");
    }
    (*out)->allocator = (*out)->arena.allocator = a;
    status = npu__registry_fill(*out, d.tables, d.num_tables, diag);
    if (status) {
        npu_registry_destroy(*out);
        *out = NULL;
    }
    return status;
}

NPU_IR_API void npu_registry_destroy(npu_registry *registry)
{
    npu_allocator a;
    if (!registry) {
        return;
    }
    a = registry->allocator;
    npu__free(&a, registry->kinds, (size_t)registry->table_size * 3 * sizeof *registry->kinds);
    npu__free(&a, (void *)registry->defs, registry->cap_defs * sizeof *registry->defs);
    npu__arena_free(&registry->arena);
    npu__free(&a, registry, sizeof *registry);
}

NPU_IR_API npu_status npu_registry_add(npu_registry *registry, const char *space, const npu_op_row *row,
                                       npu_diag *diag)
{
    npu_op_table table = { NULL, "custom", NULL, 1 };
    if (!registry || !row) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "registry: no registry or row to add");
    }
    if (registry->is_frozen) {
        return npu__fail(diag, NPU_ERR_STATE, "registry: a graph uses it, no row can be added");
    }
    table.space = space;
    table.rows = row;
    return npu__registry_insert(registry, &table, row, true, diag);
}

NPU_IR_API const npu_op_def *npu_registry_find(const npu_registry *registry, const char *name)
{
    npu__key key = { "", NULL, SIZE_MAX };
    uint32_t entry;
    if (!registry || !name) {
        return NULL;
    }
    if (strcmp(name, "<built-in function getitem>") == 0) {
        return npu_registry_get(registry, NPU_NPU_GETITEM);
    }
    key.text = strncmp(name, "torch.ops.", 10) == 0 ? name + 10 : name;
    key.prefix = strpbrk(name, ".:") ? "" : "aicf.";
    entry = *npu__registry_name_slot(registry, &key);
    return entry ? registry->defs[entry / 2 - 1] : NULL;
}

NPU_IR_API const npu_op_def *npu_registry_get(const npu_registry *registry, npu_kind kind)
{
    uint32_t index = registry ? *npu__kind_slot(registry, kind) : 0;
    return index ? registry->defs[index - 1] : NULL;
}

NPU_IR_API uint32_t npu_registry_count(const npu_registry *registry)
{
    return registry ? registry->num_defs : 0;
}

NPU_IR_API const npu_op_def *npu_registry_at(const npu_registry *registry, uint32_t i)
{
    return registry && i < registry->num_defs ? registry->defs[i] : NULL;
}

/* ---- device ABI ---- */

static const npu_abi_row npu__aicf_abi[] = {
    { NPU_AICF_ADD, 0, 0, "" },
    { NPU_AICF_RELU, 1, 0, "" },
    { NPU_AICF_GEMM, 2, 0, "<ii" },
    { NPU_AICF_BIAS_ADD, 3, NPU_FOURCC('B', 'A', 'D', 'D'), "<q" },
    { NPU_AICF_REDUCE_SUM, 4, NPU_FOURCC('R', 'S', 'U', 'M'), "<q" },
    { NPU_AICF_MSE_GRAD, 5, 0, "" },
    { NPU_AICF_MSE_GRAD, 5, NPU_FOURCC('M', 'S', 'E', 'G'), "<f" },
    { NPU_AICF_RELU_BWD, 6, 0, "" },
    { NPU_AICF_SGD_STEP, 7, NPU_FOURCC('S', 'G', 'D', 'S'), "<f" },
    { NPU_AICF_COPY, 8, 0, "" },
    { NPU_AICF_GRAD_ZERO, 9, 0, "" },
    { NPU_AICF_ADAM_STEP, 10, NPU_FOURCC('A', 'D', 'A', 'M'), "<ffff" },
    { NPU_AICF_STEP_INC, 11, 0, "" },
    { NPU_AICF_BIAS_CORR, 12, NPU_FOURCC('B', 'C', 'O', 'R'), "<ff" },
    { NPU_AICF_LAYERNORM_FWD, 13, NPU_FOURCC('L', 'N', 'E', 'P'), "<f" },
    { NPU_AICF_LAYERNORM_BWD, 14, 0, "" },
    { NPU_AICF_BATCHNORM_FWD, 15, NPU_FOURCC('B', 'N', 'E', 'P'), "<fI" },
    { NPU_AICF_BATCHNORM_BWD, 16, 0, "" },
    { NPU_AICF_GEMM_EPILOGUE, 17, NPU_FOURCC('G', 'M', 'E', 'P'), "<iii" },
    { NPU_AICF_SOFTMAX, 18, 0, "" },
    { NPU_AICF_SOFTMAX_BWD, 19, 0, "" },
    { NPU_AICF_MSE_LOSS, 20, 0, "" },
    { NPU_AICF_CROSS_ENTROPY_FWD, 21, 0, "" },
    { NPU_AICF_CROSS_ENTROPY_BWD, 22, 0, "" },
    { NPU_ATEN_RELU, 1, 0, "" }
};

NPU_IR_API const npu_abi_row *npu_aicf_abi(uint32_t *num_rows)
{
    *num_rows = (uint32_t)NPU__COUNT(npu__aicf_abi);
    return npu__aicf_abi;
}

static const char *npu__abi_letters(const npu_abi_row *row) { return row->layout + (row->layout[0] == '<'); }

/* Bytes of a letter; 0 = no letter. */
static uint32_t npu__abi_size(char letter)
{
    switch (letter) {
    case 'q': case 'd': return 8;
    case 'i': case 'I': case 'f': return 4;
    case 'B': return 1;
    default: return 0;
    }
}

static uint32_t npu__abi_blob_size(const npu_abi_row *row)
{
    uint32_t size = 0;
    for (const char *letter = npu__abi_letters(row); *letter; letter++) {
        size += npu__abi_size(*letter);
    }
    return size;
}

static bool npu__abi_is_float(char letter) { return letter == 'f' || letter == 'd'; }

/* The bits of a bound number in the device's form; false = it does not fit. */
static bool npu__abi_put(char letter, const npu_bound_arg *arg, uint64_t *bits)
{
    float single = (float)arg->f;
    uint32_t word;
    if (!npu__abi_is_float(letter)) {
        *bits = (uint64_t)arg->i;
        return arg->form != NPU_ARG_FLOAT &&
               (letter == 'q' || (letter == 'i' && arg->i >= INT32_MIN && arg->i <= INT32_MAX) ||
                (letter == 'I' && arg->i >= 0 && arg->i <= (int64_t)UINT32_MAX) ||
                (letter == 'B' && arg->i >= 0 && arg->i <= 255));
    }
    memcpy(&word, &single, sizeof word);
    *bits = letter == 'f' ? word : npu__double_bits(arg->f);
    /* finite, unless the number was not */
    return letter == 'd' || single - single == 0 || arg->f - arg->f != 0;
}

/* Is this an attribute that a layout has a letter for? */
static bool npu__abi_has_letter(const npu_bound_arg *arg)
{
    return arg->form != NPU_ARG_NONE && arg->form != NPU_ARG_TENSOR && arg->form != NPU_ARG_TENSORS;
}

static bool npu__abi_is_number(const npu_bound_arg *arg)
{
    return !arg->data && arg->count == 0 &&
           (arg->form == NPU_ARG_INT || arg->form == NPU_ARG_FLOAT || arg->form == NPU_ARG_BOOL ||
            arg->form == NPU_ARG_DTYPE);
}

/* The row with a letter for every attribute that is present, NULL = none. */
static const npu_abi_row *npu__abi_find(const npu_abi_row *rows, uint32_t num_rows, const npu_op_info *op)
{
    size_t present = 0;
    for (uint32_t a = 0; a < op->num_args; a++) {
        present += npu__abi_has_letter(&op->args[a]);
        if (npu__abi_has_letter(&op->args[a]) && !npu__abi_is_number(&op->args[a])) {
            return NULL;
        }
    }
    for (uint32_t i = 0; i < num_rows; i++) {
        if (rows[i].kind == op->kind && strlen(npu__abi_letters(&rows[i])) == present) {
            return &rows[i];
        }
    }
    return NULL;
}

NPU_IR_API npu_status npu_abi_encode(const npu_abi_row *rows, uint32_t num_rows, const npu_op_info *op,
                                     uint32_t *device_kind, uint32_t *attr_schema, uint8_t *out,
                                     uint32_t capacity, uint32_t *size)
{
    const npu_abi_row *row = npu__abi_find(rows, num_rows, op);
    const char *letter;
    *size = 0;
    if (!row) {
        return NPU_ERR_NOT_FOUND;
    }
    if (npu__abi_blob_size(row) > capacity) {
        return NPU_ERR_OVERFLOW;
    }
    letter = npu__abi_letters(row);
    for (uint32_t a = 0; a < op->num_args; a++) {
        uint64_t bits;
        if (!npu__abi_has_letter(&op->args[a])) {
            continue;
        }
        if (!npu__abi_put(*letter, &op->args[a], &bits)) {
            *size = 0;
            return NPU_ERR_OVERFLOW;
        }
        npu__put_le(out + *size, bits, npu__abi_size(*letter));
        *size += npu__abi_size(*letter++);
    }
    *device_kind = row->device_kind;
    *attr_schema = row->attr_schema;
    return NPU_OK;
}

static npu_arg npu__abi_get(char letter, const char *name, const uint8_t *p)
{
    uint64_t bits = npu__get_le(p, npu__abi_size(letter));
    uint32_t word = (uint32_t)bits;
    int32_t integer;
    float single;
    memcpy(&single, &word, sizeof single);
    memcpy(&integer, &word, sizeof integer);
    switch (letter) {
    case 'f': return npu_arg_float(name, (double)single);
    case 'd': return npu_arg_float(name, npu__bits_double(bits));
    case 'i': return npu_arg_int(name, integer);
    default: return npu_arg_int(name, (int64_t)bits);
    }
}

/* Names the values of a device blob after the attributes of the schema. With fewer letters than attributes,
   the last optional ones are absent. */
static uint32_t npu__abi_values(const npu_abi_row *row, const npu_schema *schema, const uint8_t *blob,
                                npu_arg *values)
{
    const char *letters = npu__abi_letters(row);
    size_t left = strlen(letters), needed = 0;
    uint32_t count = 0;
    for (uint32_t a = 0; a < schema->num_args; a++) {
        needed += !npu__is_operand(&schema->args[a]) && !schema->args[a].type.optional;
    }
    for (uint32_t a = 0; a < schema->num_args && left; a++) {
        bool optional = schema->args[a].type.optional != 0;
        if (!npu__is_operand(&schema->args[a]) && (!optional || left > needed)) {
            values[count] = npu__abi_get(letters[count], schema->args[a].name, blob);
            blob += npu__abi_size(letters[count++]);
            needed -= !optional;
            left--;
        }
    }
    return count;
}

NPU_IR_API npu_status npu_abi_decode(const npu_abi_row *rows, uint32_t num_rows, const npu_op_def *def,
                                     uint32_t attr_schema, const uint8_t *blob, uint32_t blob_size,
                                     uint8_t *out, uint32_t capacity, uint32_t *size)
{
    npu_arg values[NPU_MAX_ARGS];
    npu_status status = NPU_ERR_NOT_FOUND;
    *size = 0;
    for (uint32_t i = 0; i < num_rows; i++) {
        if (rows[i].kind != def->kind) {
            continue;
        }
        if (rows[i].attr_schema != attr_schema) {
            status = status == NPU_ERR_NOT_FOUND ? NPU_ERR_BAD_SCHEMA : status;
        } else if (npu__abi_blob_size(&rows[i]) != blob_size) {
            status = NPU_ERR_BAD_ATTR_SIZE;
        } else {
            uint32_t count = npu__abi_values(&rows[i], def->schema, blob, values);
            return npu_blob_pack(def->schema, values, count, out, capacity, size, NULL);
        }
    }
    return status;
}

/* -------------------------------------------------------------------------------------------------------- */

/* An operand slot of an op; the slots that hold one value form a list, in order of emission. */
typedef struct npu__use {
    uint32_t value; /* 0 = a hole */
    uint32_t op;
    uint32_t next;  /* slot + 1 of the next use of the same value, 0 = last */
} npu__use;

typedef struct npu__value {
    uint32_t name;     /* index into names, 0 = unnamed */
    uint32_t spec;     /* index into specs */
    uint32_t producer; /* op id, 0 = none */
    uint32_t role : 3, result : 29;
    uint32_t first_use, last_use; /* slot + 1, 0 = none */
    uint32_t num_uses;
    uint32_t data;     /* index into data, 0 = none */
} npu__value;

typedef struct npu__op {
    const npu_op_def *def;
    uint32_t first_operand, num_operands; /* slots */
    uint32_t first_result, num_results;   /* value ids; without results: the next free id, which keeps the order of statements */
    uint32_t attrs, attrs_size;           /* in blobs; NPU_NO_INDEX = the defaults of def */
    uint32_t groups;                      /* in groups: one length per tensor-list argument */
    uint32_t name;
    uint32_t location;                    /* index into locations, 0 = unknown */
    uint32_t constraints;
} npu__op;

typedef struct npu__data {
    const void *data;
    size_t size;
    bool is_owned; /* lies in the graph's arena */
} npu__data;

typedef struct npu__location {
    const char *file;
    uint32_t line;
} npu__location;

typedef struct npu__pair {
    uint32_t a, b;
} npu__pair;

typedef struct npu__symbol {
    const char *name;
    int64_t min, max; /* max 0 = unbounded */
    bool is_deduced;  /* of a result: a rewrite deduces it again */
} npu__symbol;

/* A growing array: elements, how many, how many fit. */
#define NPU__ARRAY(type, name) type *name; uint32_t num_##name, cap_##name

struct npu_graph {
    npu_allocator allocator;
    npu_logger logger;
    npu_registry *registry;
    bool owns_registry;
    uint32_t level;
    const char *name;
    npu__arena arena;                 /* names, specs, constant data, synthesised definitions */
    NPU__ARRAY(npu__value, values);   /* [0] unused */
    NPU__ARRAY(npu__op, ops);         /* [0] unused */
    NPU__ARRAY(npu__use, uses);
    NPU__ARRAY(const npu_spec *, specs);
    NPU__ARRAY(const char *, names);  /* [0] "" */
    NPU__ARRAY(uint8_t, blobs);
    NPU__ARRAY(uint32_t, groups);
    NPU__ARRAY(npu__data, data);      /* [0] unused */
    NPU__ARRAY(npu__location, locations);
    NPU__ARRAY(uint32_t, inputs);
    NPU__ARRAY(npu__pair, outputs);   /* value, name */
    NPU__ARRAY(npu__pair, saved);     /* op, value */
    NPU__ARRAY(npu__pair, updates);   /* state, next */
    NPU__ARRAY(npu__symbol, symbols);
    NPU__ARRAY(npu_graph *, children);
    NPU__ARRAY(const npu_op_def *, unknown); /* rows synthesised for unknown ops */
    uint32_t *name_table, name_table_size; /* open addressing over value ids; a power of two */
    uint32_t num_named;
    uint32_t *spec_table, spec_table_size; /* open addressing over spec index + 1 */
    uint32_t last_spec;
    const char *at_file;
    int at_line;
    npu_diag diag;
    char unnamed[16];
    /* scratch of emit, kept so that building does not allocate per op */
    NPU__ARRAY(const npu_spec *, in_specs);
    NPU__ARRAY(const void *, in_data);
    NPU__ARRAY(npu_value, operands);
    NPU__ARRAY(uint32_t, counts);
    NPU__ARRAY(npu_spec, results);
    NPU__ARRAY(uint8_t, packed);
    npu_op_storage bounds;
};

#define NPU__RESERVE(g, array, extra) \
    npu__reserve(&(g)->allocator, (void **)&(g)->array, &(g)->cap_##array, (uint64_t)(g)->num_##array + (extra), sizeof *(g)->array)
#define NPU__RELEASE(g, array) npu__free(&(g)->allocator, (void *)(g)->array, (g)->cap_##array * sizeof *(g)->array)

static void npu__graph_log(npu_graph *g, const npu_diag *diag)
{
    if (g->logger.write) {
        g->logger.write(g->logger.ctx, 0, diag->message);
    }
}

/* Keeps the first failure of a graph, with the location of what is being built. */
static npu_status npu__graph_adopt(npu_graph *g, const npu_diag *diag)
{
    npu_diag d = *diag;
    if (d.line == 0 && g->at_file) {
        d.line = g->at_line;
        npu__copy_tail(d.file, sizeof d.file, g->at_file);
    }
    if (g->diag.status == NPU_OK) {
        g->diag = d;
    }
    npu__graph_log(g, &d);
    return d.status;
}

static npu_status npu__graph_fail(npu_graph *g, npu_status status, const char *format, ...)
    NPU_IR_PRINTF(3, 4);
static npu_status npu__graph_fail(npu_graph *g, npu_status status, const char *format, ...)
{
    npu_diag d;
    va_list args;
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    memset(&d, 0, sizeof d);
    d.status = status;
    va_start(args, format);
#ifndef NPU_IR_NO_STRINGS
    vsnprintf(d.message, sizeof d.message, format, args);
#else
    (void)format;
#endif
    va_end(args);
    return npu__graph_adopt(g, &d);
}

static npu_status npu__graph_no_memory(npu_graph *g)
{
    return npu__graph_fail(g, NPU_ERR_NO_MEMORY, "graph %s: out of memory", g ? g->name : "");
}

static bool npu__graph_init(npu_graph *g, const char *name)
{
    static const char empty[] = "";
    g->name = npu__arena_str(&g->arena, name);
    if (!g->name || !NPU__RESERVE(g, values, 16) || !NPU__RESERVE(g, ops, 16) ||
        !NPU__RESERVE(g, names, 16) || !NPU__RESERVE(g, data, 1) || !NPU__RESERVE(g, locations, 1)) {
        return false;
    }
    memset(&g->values[0], 0, sizeof g->values[0]);
    memset(&g->ops[0], 0, sizeof g->ops[0]);
    memset(&g->data[0], 0, sizeof g->data[0]);
    memset(&g->locations[0], 0, sizeof g->locations[0]);
    g->names[0] = empty;
    g->num_values = g->num_ops = g->num_names = g->num_data = g->num_locations = 1;
    return true;
}

static npu_graph *npu__graph_new(const npu_allocator *a, npu_registry *registry, const char *name,
                                 uint32_t level)
{
    npu_graph *g = (npu_graph *)npu__alloc_zero(a, sizeof *g);
    if (!g) {
        return NULL;
    }
    g->allocator = g->arena.allocator = *a;
    g->registry = registry;
    g->level = level;
    if (!npu__graph_init(g, name)) {
        npu_graph_destroy(g);
        return NULL;
    }
    return g;
}

NPU_IR_API npu_graph *npu_graph_create(const npu_graph_desc *desc)
{
    npu_graph_desc d;
    npu_allocator a;
    npu_registry_desc rd;
    npu_registry *own = NULL;
    npu_graph *g;
    memset(&d, 0, sizeof d);
    memset(&rd, 0, sizeof rd);
    d = desc ? *desc : d;
    a = npu__allocator(d.allocator);
    if (d._canary || d.level > NPU_LEVEL_SCALAR) {
        return NULL;
    }
    if (!d.registry) {
        rd.allocator = &a;
        if (npu_registry_create(&own, &rd, NULL)) {
            return NULL;
        }
    }
    g = npu__graph_new(&a, d.registry ? d.registry : own, d.name ? d.name : "main", d.level);
    if (!g) {
        npu_registry_destroy(own);
        return NULL;
    }
    g->owns_registry = own != NULL;
    npu__registry_freeze(g->registry);
    if (d.logger) {
        g->logger = *d.logger;
    }
    return g;
}

NPU_IR_API void npu_graph_destroy(npu_graph *g)
{
    npu_allocator a;
    if (!g) {
        return;
    }
    for (uint32_t i = 0; i < g->num_children; i++) {
        npu_graph_destroy(g->children[i]);
    }
    for (uint32_t i = 0; i < g->num_unknown; i++) {
        npu_schema_free((npu_schema *)(uintptr_t)g->unknown[i]->schema, &g->allocator);
    }
    NPU__RELEASE(g, values);
    NPU__RELEASE(g, ops);
    NPU__RELEASE(g, uses);
    NPU__RELEASE(g, specs);
    NPU__RELEASE(g, names);
    NPU__RELEASE(g, blobs);
    NPU__RELEASE(g, groups);
    NPU__RELEASE(g, data);
    NPU__RELEASE(g, locations);
    NPU__RELEASE(g, inputs);
    NPU__RELEASE(g, outputs);
    NPU__RELEASE(g, saved);
    NPU__RELEASE(g, updates);
    NPU__RELEASE(g, symbols);
    NPU__RELEASE(g, children);
    NPU__RELEASE(g, unknown);
    NPU__RELEASE(g, in_specs);
    NPU__RELEASE(g, in_data);
    NPU__RELEASE(g, operands);
    NPU__RELEASE(g, counts);
    NPU__RELEASE(g, results);
    NPU__RELEASE(g, packed);
    npu_op_storage_free(&g->bounds);
    npu__free(&g->allocator, g->name_table, g->name_table_size * sizeof *g->name_table);
    npu__free(&g->allocator, g->spec_table, g->spec_table_size * sizeof *g->spec_table);
    npu__arena_free(&g->arena);
    if (g->owns_registry) {
        npu_registry_destroy(g->registry);
    }
    a = g->allocator;
    npu__free(&a, g, sizeof *g);
}

NPU_IR_API npu_status npu_graph_status(const npu_graph *g) { return g ? g->diag.status : NPU_ERR_NO_MEMORY; }

NPU_IR_API const npu_diag *npu_graph_diag(const npu_graph *g)
{
    static const npu_diag no_graph = {
        NPU_ERR_NO_MEMORY, 0, 0, 0, "", "", "the graph is NULL: out of memory, or a bad desc"
    };
    return g ? &g->diag : &no_graph;
}

NPU_IR_API void npu_graph_clear_error(npu_graph *g)
{
    if (g) {
        memset(&g->diag, 0, sizeof g->diag);
    }
}

NPU_IR_API const npu_registry *npu_graph_registry(const npu_graph *g) { return g ? g->registry : NULL; }
NPU_IR_API const char *npu_graph_name(const npu_graph *g) { return g ? g->name : ""; }

NPU_IR_API npu_graph *npu_graph_at(npu_graph *g, const char *file, int line)
{
    if (g) {
        g->at_file = file;
        g->at_line = line;
    }
    return g;
}

NPU_IR_API npu_graph *npu_graph_child(npu_graph *g, const char *name, npu_level level, uint32_t *index)
{
    npu_graph *child;
    if (!g || !NPU__RESERVE(g, children, 1)) {
        npu__graph_no_memory(g);
        return NULL;
    }
    child = npu__graph_new(&g->allocator, g->registry, name ? name : "child", (uint32_t)level);
    if (!child) {
        npu__graph_no_memory(g);
        return NULL;
    }
    child->logger = g->logger;
    if (index) {
        *index = g->num_children;
    }
    g->children[g->num_children++] = child;
    return child;
}

NPU_IR_API npu_graph *npu_graph_child_at(const npu_graph *g, uint32_t index)
{
    return g && index < g->num_children ? g->children[index] : NULL;
}

NPU_IR_API uint32_t npu_graph_num_children(const npu_graph *g) { return g ? g->num_children : 0; }

/* ---- names ---- */

/* Slot of the name table that holds `name` or is free for it. The table is never full. */
static uint32_t *npu__name_slot(const npu_graph *g, const char *name)
{
    uint32_t mask = g->name_table_size - 1, i = npu__hash(name, strlen(name)) & mask;
    while (g->name_table[i] && strcmp(g->names[g->values[g->name_table[i]].name], name) != 0) {
        i = (i + 1) & mask;
    }
    return &g->name_table[i];
}

static bool npu__name_table_grow(npu_graph *g)
{
    uint32_t *old = g->name_table, old_size = g->name_table_size, size = old_size ? old_size * 2 : 64;
    uint32_t *table = (uint32_t *)npu__alloc_zero(&g->allocator, size * sizeof *table);
    if (!table) {
        return false;
    }
    g->name_table = table;
    g->name_table_size = size;
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i]) {
            *npu__name_slot(g, g->names[g->values[old[i]].name]) = old[i];
        }
    }
    npu__free(&g->allocator, old, old_size * sizeof *old);
    return true;
}

static npu_status npu__name_add(npu_graph *g, const char *name, uint32_t *index)
{
    char *copy;
    if (!NPU__RESERVE(g, names, 1) || (copy = npu__arena_str(&g->arena, name)) == NULL) {
        return npu__graph_no_memory(g);
    }
    g->names[g->num_names] = copy;
    *index = g->num_names++;
    return NPU_OK;
}

/* Gives value id a name; empty or NULL = none. On failure nothing has changed. */
static npu_status npu__value_name_set(npu_graph *g, uint32_t id, const char *name)
{
    uint32_t *slot, index = 0;
    npu_status status;
    if (!name || !name[0]) {
        return NPU_OK;
    }
    if (g->num_named * 2 >= g->name_table_size && !npu__name_table_grow(g)) {
        return npu__graph_no_memory(g);
    }
    slot = npu__name_slot(g, name);
    if (*slot) {
        return npu__graph_fail(g, NPU_ERR_DUPLICATE, "graph %s: a value named '%s' already exists", g->name,
                               name);
    }
    status = npu__name_add(g, name, &index);
    if (status == NPU_OK) {
        g->values[id].name = index;
        *slot = id;
        g->num_named++;
    }
    return status;
}

NPU_IR_API npu_value npu_graph_find(const npu_graph *g, const char *name)
{
    npu_value v = { 0 };
    if (g && name && name[0] && g->name_table_size) {
        v.id = *npu__name_slot(g, name);
    }
    return v;
}

/* ---- specs ---- */

static uint32_t npu__spec_hash(const npu_spec *s)
{
    uint64_t h = (uint64_t)s->cls | (uint64_t)s->dtype << 8 | (uint64_t)s->rank << 16 |
        (uint64_t)s->wrapped << 24 | (uint64_t)s->space << 32;
    for (uint32_t i = 0; i < s->rank; i++) {
        h = (h ^ (uint64_t)s->dims[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t *npu__spec_slot(const npu_graph *g, const npu_spec *s)
{
    uint32_t mask = g->spec_table_size - 1, i = npu__spec_hash(s) & mask;
    while (g->spec_table[i] && !npu_spec_equal(g->specs[g->spec_table[i] - 1], s)) {
        i = (i + 1) & mask;
    }
    return &g->spec_table[i];
}

static bool npu__spec_table_grow(npu_graph *g)
{
    uint32_t old_size = g->spec_table_size, size = old_size ? old_size * 2 : 64;
    uint32_t *table = (uint32_t *)npu__alloc_zero(&g->allocator, size * sizeof *table);
    if (!table) {
        return false;
    }
    npu__free(&g->allocator, g->spec_table, old_size * sizeof *table);
    g->spec_table = table;
    g->spec_table_size = size;
    for (uint32_t i = 0; i < g->num_specs; i++) {
        *npu__spec_slot(g, g->specs[i]) = i + 1;
    }
    return true;
}

/* A copy of quant and its arrays inside the graph. */
static const npu_quant *npu__quant_copy(npu_graph *g, const npu_quant *quant)
{
    npu_quant *q = (npu_quant *)npu__arena_alloc(&g->arena, sizeof *q);
    float *scales = (float *)npu__arena_alloc(&g->arena, quant->count * sizeof *scales);
    int32_t *zeros =
        quant->zeros ? (int32_t *)npu__arena_alloc(&g->arena, quant->count * sizeof *zeros) : NULL;
    if (!q || !scales || (quant->zeros && !zeros)) {
        return NULL;
    }
    *q = *quant;
    memcpy(scales, quant->scales, quant->count * sizeof *scales);
    if (zeros) {
        memcpy(zeros, quant->zeros, quant->count * sizeof *zeros);
    }
    q->scales = scales;
    q->zeros = zeros;
    return q;
}

/* Index of the one stored copy of a spec; NPU_NO_INDEX = out of memory. */
static uint32_t npu__spec_intern(npu_graph *g, const npu_spec *s)
{
    uint32_t *slot;
    npu_spec *copy;
    if (g->num_specs && npu_spec_equal(g->specs[g->last_spec], s)) { /* chains repeat one spec */
        return g->last_spec;
    }
    if ((g->num_specs * 2 >= g->spec_table_size && !npu__spec_table_grow(g)) || !NPU__RESERVE(g, specs, 1)) {
        return NPU_NO_INDEX;
    }
    slot = npu__spec_slot(g, s);
    if (!*slot) {
        copy = (npu_spec *)npu__arena_alloc(&g->arena, sizeof *copy);
        if (!copy) {
            return NPU_NO_INDEX;
        }
        *copy = *s;
        if (s->quant && (copy->quant = npu__quant_copy(g, s->quant)) == NULL) {
            return NPU_NO_INDEX;
        }
        g->specs[g->num_specs++] = copy;
        *slot = g->num_specs;
    }
    g->last_spec = *slot - 1;
    return *slot - 1;
}

/* ---- reading ---- */

static const npu__value *npu__value_at(const npu_graph *g, npu_value v)
{
    return g && v.id && v.id < g->num_values ? &g->values[v.id] : NULL;
}

static const npu__op *npu__op_at(const npu_graph *g, npu_op op)
{
    return g && op.id && op.id < g->num_ops ? &g->ops[op.id] : NULL;
}

static npu_value npu__make_value(uint32_t id)
{
    npu_value v;
    v.id = id;
    return v;
}

static npu_op npu__make_op(uint32_t id)
{
    npu_op op;
    op.id = id;
    return op;
}

NPU_IR_API uint32_t npu_graph_num_values(const npu_graph *g) { return g ? g->num_values - 1 : 0; }
NPU_IR_API uint32_t npu_graph_num_ops(const npu_graph *g) { return g ? g->num_ops - 1 : 0; }
NPU_IR_API uint32_t npu_graph_num_inputs(const npu_graph *g) { return g ? g->num_inputs : 0; }
NPU_IR_API uint32_t npu_graph_num_outputs(const npu_graph *g) { return g ? g->num_outputs : 0; }
NPU_IR_API npu_value npu_graph_input(const npu_graph *g, uint32_t i)
{
    return npu__make_value(g && i < g->num_inputs ? g->inputs[i] : 0);
}

NPU_IR_API npu_value npu_graph_output(const npu_graph *g, uint32_t i)
{
    return npu__make_value(g && i < g->num_outputs ? g->outputs[i].a : 0);
}

NPU_IR_API const char *npu_graph_output_name(const npu_graph *g, uint32_t i)
{
    return g && i < g->num_outputs ? g->names[g->outputs[i].b] : "";
}

NPU_IR_API size_t npu_graph_memory(const npu_graph *g)
{
    size_t n = 0;
    if (!g) {
        return 0;
    }
#define NPU__BYTES(array) n += g->cap_##array * sizeof *g->array
    NPU__BYTES(values);
    NPU__BYTES(ops);
    NPU__BYTES(uses);
    NPU__BYTES(specs);
    NPU__BYTES(names);
    NPU__BYTES(blobs);
    NPU__BYTES(groups);
    NPU__BYTES(data);
    NPU__BYTES(locations);
    NPU__BYTES(inputs);
    NPU__BYTES(outputs);
#undef NPU__BYTES
    n += (g->name_table_size + g->spec_table_size) * sizeof(uint32_t);
    return n + g->arena.total + sizeof *g;
}

NPU_IR_API const npu_spec *npu_value_spec(const npu_graph *g, npu_value v)
{
    const npu__value *value = npu__value_at(g, v);
    return value ? g->specs[value->spec] : NULL;
}

NPU_IR_API bool npu_value_has_name(const npu_graph *g, npu_value v)
{
    const npu__value *value = npu__value_at(g, v);
    return value && value->name;
}

/* "%12" or the name, written to buf where it has to be made. */
static const char *npu__value_label(const npu_graph *g, uint32_t id, char buf[16])
{
    if (g->values[id].name) {
        return g->names[g->values[id].name];
    }
    snprintf(buf, 16, "%%%u", (unsigned)id);
    return buf;
}

NPU_IR_API const char *npu_value_name(const npu_graph *g, npu_value v)
{
    return npu__value_at(g, v) ? npu__value_label(g, v.id, ((npu_graph *)(uintptr_t)g)->unnamed) : "";
}

NPU_IR_API npu_role npu_value_role(const npu_graph *g, npu_value v)
{
    const npu__value *value = npu__value_at(g, v);
    return value ? (npu_role)value->role : NPU_ROLE_NONE;
}

NPU_IR_API npu_op npu_value_producer(const npu_graph *g, npu_value v, uint32_t *result_index)
{
    const npu__value *value = npu__value_at(g, v);
    if (result_index) {
        *result_index = value ? value->result : 0;
    }
    return npu__make_op(value ? value->producer : 0);
}

NPU_IR_API uint32_t npu_value_num_users(const npu_graph *g, npu_value v)
{
    const npu__value *value = npu__value_at(g, v);
    return value ? value->num_uses : 0;
}

NPU_IR_API npu_op npu_value_user(const npu_graph *g, npu_value v, uint32_t i)
{
    const npu__value *value = npu__value_at(g, v);
    uint32_t slot = value ? value->first_use : 0;
    while (slot && i--) {
        slot = g->uses[slot - 1].next;
    }
    return npu__make_op(slot ? g->uses[slot - 1].op : 0);
}

NPU_IR_API const void *npu_value_data(const npu_graph *g, npu_value v, size_t *size)
{
    const npu__value *value = npu__value_at(g, v);
    const npu__data *data = value ? &g->data[value->data] : NULL;
    if (size) {
        *size = data ? data->size : 0;
    }
    return data ? data->data : NULL;
}

/* Data that type rules may read: a parameter's can still change, so a type must not depend on it. */
static const void *npu__constant_data(const npu_graph *g, uint32_t id)
{
    return g->values[id].role == NPU_ROLE_CONSTANT ? g->data[g->values[id].data].data : NULL;
}

NPU_IR_API npu_kind npu_op_kind(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? o->def->kind : 0;
}

NPU_IR_API const npu_op_def *npu_op_definition(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? o->def : NULL;
}

NPU_IR_API const char *npu_op_name(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? g->names[o->name] : "";
}

NPU_IR_API uint32_t npu_op_num_operands(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? o->num_operands : 0;
}

NPU_IR_API npu_value npu_op_operand_value(const npu_graph *g, npu_op op, uint32_t i)
{
    const npu__op *o = npu__op_at(g, op);
    return npu__make_value(o && i < o->num_operands ? g->uses[o->first_operand + i].value : 0);
}

NPU_IR_API uint32_t npu_op_num_results(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? o->num_results : 0;
}

NPU_IR_API npu_value npu_op_result(const npu_graph *g, npu_op op, uint32_t i)
{
    const npu__op *o = npu__op_at(g, op);
    return npu__make_value(o && i < o->num_results ? o->first_result + i : 0);
}

NPU_IR_API const uint8_t *npu_op_attrs(const npu_graph *g, npu_op op, uint32_t *size)
{
    const npu__op *o = npu__op_at(g, op);
    bool defaults = o && o->attrs == NPU_NO_INDEX;
    if (size) {
        *size = !o ? 0 : defaults ? o->def->defaults_size : o->attrs_size;
    }
    return !o           ? NULL
        : defaults      ? o->def->defaults
        : o->attrs_size ? g->blobs + o->attrs
                        : (const uint8_t *)"";
}

NPU_IR_API uint32_t npu_op_location(const npu_graph *g, npu_op op, const char **file)
{
    const npu__op *o = npu__op_at(g, op);
    if (file) {
        *file = o ? g->locations[o->location].file : NULL;
    }
    return o ? g->locations[o->location].line : 0;
}

/* ---- describing an op ---- */

/* Number of tensor-list arguments: as many entries as groups has for one op. */
static uint32_t npu__num_lists(const npu_schema *schema)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        n += npu__is_operand(&schema->args[i]) && schema->args[i].type.list;
    }
    return n;
}

NPU_IR_API void npu_op_storage_free(npu_op_storage *storage)
{
    if (storage->capacity) {
        npu__free(&storage->allocator, (void *)storage->specs, storage->capacity * sizeof *storage->specs);
        npu__free(&storage->allocator, (void *)storage->data, storage->capacity * sizeof *storage->data);
    }
    npu__free(&storage->allocator, storage->known, storage->num_known * sizeof *storage->known);
    npu__free(&storage->allocator, storage->blob, storage->blob_size);
    memset(storage, 0, sizeof *storage);
}

static npu_status npu__storage_reserve(const npu_graph *g, npu_op_storage *storage, size_t need)
{
    if (storage->capacity >= need) {
        return NPU_OK;
    }
    npu_op_storage_free(storage);
    storage->allocator = g->allocator;
    need += 16;
    storage->specs = (const npu_spec **)npu__alloc(&g->allocator, need * sizeof *storage->specs);
    storage->data = (const void **)npu__alloc(&g->allocator, need * sizeof *storage->data);
    if (!storage->specs || !storage->data) {
        npu__free(&g->allocator, (void *)storage->specs, need * sizeof *storage->specs);
        npu__free(&g->allocator, (void *)storage->data, need * sizeof *storage->data);
        storage->specs = NULL;
        storage->data = NULL;
        return NPU_ERR_NO_MEMORY;
    }
    storage->capacity = need;
    return NPU_OK;
}

/* The child graph that the first Graph argument names; NULL = no such argument, or no such child. */
static const npu_graph *npu__body(const npu_graph *g, const npu_op_info *info)
{
    for (uint32_t a = 0; a < info->num_args; a++) {
        if (info->args[a].form == NPU_ARG_GRAPH) {
            return npu_graph_child_at(g, (uint32_t)info->args[a].i);
        }
    }
    return NULL;
}

NPU_IR_API npu_status npu_op_describe(const npu_graph *g, npu_op op, npu_op_info *info,
                                      npu_op_storage *storage)
{
    const npu__op *o = npu__op_at(g, op);
    npu_status status;
    if (!o) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    status = npu__storage_reserve(g, storage, (size_t)o->num_operands + o->num_results);
    if (status) {
        return status;
    }
    memset(info, 0, sizeof *info);
    info->size = (uint32_t)sizeof *info;
    info->kind = o->def->kind;
    info->traits = o->def->traits;
    info->op = op.id;
    info->name = o->def->name;
    info->num_args = o->def->schema->num_args;
    info->num_in = o->num_operands;
    info->num_out = o->num_results;
    info->attrs = npu_op_attrs(g, op, &info->attrs_size);
    info->args = storage->args;
    info->in = storage->specs;
    info->out = storage->specs + o->num_operands;
    info->in_data = storage->data;
    for (uint32_t i = 0; i < o->num_operands; i++) {
        const npu__value *v = &g->values[g->uses[o->first_operand + i].value];
        bool hole = v == g->values;
        storage->specs[i] = hole ? NULL : g->specs[v->spec];
        storage->data[i] = hole ? NULL : g->data[v->data].data;
    }
    for (uint32_t i = 0; i < o->num_results; i++) {
        storage->specs[o->num_operands + i] = g->specs[g->values[o->first_result + i].spec];
    }
    status = npu_blob_bind(o->def->schema, info->attrs, info->attrs_size, g->groups ? g->groups + o->groups : NULL,
                           o->num_operands, storage->args, NULL);
    info->body = status ? NULL : npu__body(g, info);
    return status;
}

/* ---- symbols ---- */

static npu__symbol *npu__symbol_of(const npu_graph *g, int64_t dim)
{
    uint64_t i = (uint64_t)(-2 - dim);
    return dim < NPU_DYNAMIC_DIM && i < g->num_symbols ? &g->symbols[i] : NULL;
}

/* The dim that a symbol stands for, 0 = there is none of this name. */
static int64_t npu__find_symbol(const npu_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->num_symbols; i++) {
        if (strcmp(g->symbols[i].name, name) == 0) {
            return -2 - (int64_t)i;
        }
    }
    return 0;
}

/* A new symbol; 0 = out of memory. */
static int64_t npu__symbol_add(npu_graph *g, const char *name, int64_t min, int64_t max)
{
    char *copy;
    npu__symbol *s;
    if (!NPU__RESERVE(g, symbols, 1) || (copy = npu__arena_str(&g->arena, name)) == NULL) {
        npu__graph_no_memory(g);
        return 0;
    }
    s = &g->symbols[g->num_symbols];
    s->name = copy;
    s->min = min;
    s->max = max;
    s->is_deduced = false;
    return -2 - (int64_t)g->num_symbols++;
}

NPU_IR_API int64_t npu_graph_symbol(npu_graph *g, const char *name, int64_t min, int64_t max)
{
    int64_t known;
    if (!g || min < 0 || (max && max < min) || !name || !name[0]) {
        npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "symbol '%s': bounds %lld..%lld", name ? name : "",
                        (long long)min, (long long)max);
        return 0;
    }
    known = npu__find_symbol(g, name);
    return known ? known : npu__symbol_add(g, name, min, max);
}

/* A symbol for a dim of a result, "d" and its number, or the next number that is free. */
static int64_t npu__symbol_fresh(npu_graph *g, int64_t max)
{
    char name[16];
    uint32_t number = g->num_symbols;
    int64_t dim;
    do {
        snprintf(name, sizeof name, "d%u", (unsigned)number++);
    } while (npu__find_symbol(g, name));
    dim = npu__symbol_add(g, name, 0, max);
    if (dim) {
        npu__symbol_of(g, dim)->is_deduced = true;
    }
    return dim;
}

NPU_IR_API const char *npu_graph_symbol_name(const npu_graph *g, int64_t dim)
{
    const npu__symbol *s = g ? npu__symbol_of(g, dim) : NULL;
    return s ? s->name : "?";
}

NPU_IR_API bool npu_graph_dim_bounds(const npu_graph *g, int64_t dim, int64_t *min, int64_t *max)
{
    const npu__symbol *s = g ? npu__symbol_of(g, dim) : NULL;
    *min = dim >= 0 ? dim : s ? s->min : 0;
    *max = dim >= 0 ? dim : s ? s->max : 0;
    return dim >= 0 || (s && s->max);
}

/* ---- an op with values for its symbols ---- */

/* The value of a dim: that of its symbol in `values`, or where there are none the largest; a dim that has no
   value stays what it is. */
static int64_t npu__dim_at(const npu_graph *g, const int64_t *values, int64_t dim)
{
    const npu__symbol *s = npu__symbol_of(g, dim);
    int64_t value = !s ? NPU_DYNAMIC_DIM : values ? values[-2 - dim] : s->max ? s->max : NPU_DYNAMIC_DIM;
    return value >= 0 ? value : dim;
}

static npu_spec npu__spec_at(const npu_graph *g, const int64_t *values, const npu_spec *spec)
{
    npu_spec known = *spec;
    for (uint32_t i = 0; i < known.rank; i++) {
        known.dims[i] = npu__dim_at(g, values, known.dims[i]);
    }
    return known;
}

/* Symbols stand in lists named size or shape only: elsewhere a number below -1 counts from an end. */
static bool npu__arg_has_symbols(const npu_bound_arg *arg)
{
    return arg->form == NPU_ARG_INTS && (strcmp(arg->name, "size") == 0 || strcmp(arg->name, "shape") == 0);
}

static npu_status npu__storage_reserve_known(const npu_graph *g, npu_op_storage *s, size_t specs, size_t bytes)
{
    s->allocator = g->allocator;
    if (s->num_known < specs) {
        npu__free(&s->allocator, s->known, s->num_known * sizeof *s->known);
        s->known = (npu_spec *)npu__alloc(&s->allocator, specs * sizeof *s->known);
        s->num_known = s->known ? specs : 0;
    }
    if (s->blob_size < bytes) {
        npu__free(&s->allocator, s->blob, s->blob_size);
        s->blob = (uint8_t *)npu__alloc(&s->allocator, bytes);
        s->blob_size = s->blob ? bytes : 0;
    }
    return s->num_known < specs || s->blob_size < bytes ? NPU_ERR_NO_MEMORY : NPU_OK;
}

/* Binds a copy of the op's blob, in which sizes that are symbols have their values. */
static npu_status npu__info_sizes_at(const npu_graph *g, const npu_schema *schema, const uint32_t *groups,
                                     const int64_t *values, npu_op_info *info, npu_op_storage *s)
{
    if (info->attrs_size) {
        memcpy(s->blob, info->attrs, info->attrs_size);
    }
    for (uint32_t a = 0; a < info->num_args; a++) {
        const npu_bound_arg *arg = &info->args[a];
        for (uint32_t i = 0; npu__arg_has_symbols(arg) && i < arg->count; i++) {
            int64_t dim = (int64_t)npu__get_le(arg->data + 8u * i, 8);
            npu__put_le(s->blob + (arg->data - info->attrs) + 8u * i, (uint64_t)npu__dim_at(g, values, dim), 8);
        }
    }
    info->attrs = info->attrs_size ? s->blob : (const uint8_t *)"";
    info->args = s->args;
    return npu_blob_bind(schema, info->attrs, info->attrs_size, groups, info->num_in, s->args, NULL);
}

/* Turns info, which may point into storage, into the op with values for its symbols; info->out may be NULL. */
static npu_status npu__info_at(const npu_graph *g, const npu_schema *schema, const uint32_t *groups,
                               const int64_t *values, npu_op_info *info, npu_op_storage *s)
{
    uint32_t num = info->num_in + (info->out ? info->num_out : 0);
    npu_status status = npu__storage_reserve(g, s, num);
    status = status ? status : npu__storage_reserve_known(g, s, num, info->attrs_size);
    for (uint32_t i = 0; i < num && status == NPU_OK; i++) {
        const npu_spec *spec = i < info->num_in ? info->in[i] : info->out[i - info->num_in];
        if (spec) {
            s->known[i] = npu__spec_at(g, values, spec);
        }
        s->specs[i] = spec ? &s->known[i] : NULL;
    }
    if (status) {
        return status;
    }
    info->in = s->specs;
    info->out = info->out ? s->specs + info->num_in : NULL;
    return npu__info_sizes_at(g, schema, groups, values, info, s);
}

/* ---- naming and notes on ops ---- */

static npu__op *npu__op_mutable(npu_graph *g, npu_op op)
{
    if (!npu__op_at(g, op)) {
        npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "graph: there is no op %u", (unsigned)op.id);
        return NULL;
    }
    return &g->ops[op.id];
}

NPU_IR_API npu_status npu_op_set_name(npu_graph *g, npu_op op, const char *name)
{
    npu__op *o = npu__op_mutable(g, op);
    return !o ? NPU_ERR_INVALID_ARGUMENT : !name || !name[0] ? NPU_OK : npu__name_add(g, name, &o->name);
}

NPU_IR_API npu_status npu_op_set_constraints(npu_graph *g, npu_op op, uint32_t constraints)
{
    npu__op *o = npu__op_mutable(g, op);
    if (!o) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    o->constraints = constraints;
    return NPU_OK;
}

NPU_IR_API uint32_t npu_op_constraints(const npu_graph *g, npu_op op)
{
    const npu__op *o = npu__op_at(g, op);
    return o ? o->constraints : 0;
}

/* Index of the first pair of saved that belongs to op or a later one: saved is sorted by op. */
static uint32_t npu__first_saved(const npu_graph *g, uint32_t op)
{
    uint32_t low = 0, high = g->num_saved;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->saved[middle].a < op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

NPU_IR_API npu_status npu_op_add_saved(npu_graph *g, npu_op op, npu_value v)
{
    uint32_t at;
    if (!npu__op_mutable(g, op) || !npu__value_at(g, v)) {
        return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "graph: there is no op %u or no value %u",
                               (unsigned)op.id, (unsigned)v.id);
    }
    if (!NPU__RESERVE(g, saved, 1)) {
        return npu__graph_no_memory(g);
    }
    at = npu__first_saved(g, op.id + 1); /* nearly always the end */
    memmove(g->saved + at + 1, g->saved + at, (g->num_saved - at) * sizeof *g->saved);
    g->saved[at].a = op.id;
    g->saved[at].b = v.id;
    g->num_saved++;
    return NPU_OK;
}

NPU_IR_API uint32_t npu_op_num_saved(const npu_graph *g, npu_op op)
{
    return npu__op_at(g, op) ? npu__first_saved(g, op.id + 1) - npu__first_saved(g, op.id) : 0;
}

NPU_IR_API npu_value npu_op_saved(const npu_graph *g, npu_op op, uint32_t i)
{
    return npu__make_value(i < npu_op_num_saved(g, op) ? g->saved[npu__first_saved(g, op.id) + i].b : 0);
}

/* ---- validation ---- */

typedef struct npu__validation {
    const npu_graph *g;
    void (*report)(void *ctx, const npu_diag *diag);
    void *ctx;
    npu_status first;
} npu__validation;

static void npu__violation(npu__validation *v, uint32_t op, uint32_t value, npu_status status,
                           const char *format, ...) NPU_IR_PRINTF(5, 6);
static void npu__violation(npu__validation *v, uint32_t op, uint32_t value, npu_status status,
                           const char *format, ...)
{
    npu_diag d;
    va_list args;
    memset(&d, 0, sizeof d);
    d.status = status;
    d.op = op;
    d.value = value;
    va_start(args, format);
    vsnprintf(d.message, sizeof d.message, format, args);
    va_end(args);
    v->first = v->first ? v->first : status;
    if (v->report) {
        v->report(v->ctx, &d);
    }
}

static void npu__validate_value(npu__validation *v, uint32_t id)
{
    const npu_graph *g = v->g;
    const npu__value *value = &g->values[id];
    uint32_t uses = 0;
    if (value->spec >= g->num_specs || value->name >= g->num_names || value->data >= g->num_data) {
        npu__violation(v, 0, id, NPU_ERR_GRAPH, "value %u: spec, name or data out of range", (unsigned)id);
        return;
    }
    if ((value->role == NPU_ROLE_TEMPORARY) != (value->producer != 0) || value->producer >= g->num_ops) {
        npu__violation(v, value->producer, id, NPU_ERR_GRAPH, "value %u: role %u with producer %u",
                       (unsigned)id, (unsigned)value->role, (unsigned)value->producer);
    } else if (value->producer) {
        const npu__op *o = &g->ops[value->producer];
        if (value->result >= o->num_results || o->first_result + value->result != id) {
            npu__violation(v, value->producer, id, NPU_ERR_GRAPH,
                           "value %u: op %u does not list it as result %u", (unsigned)id,
                           (unsigned)value->producer, (unsigned)value->result);
        }
    }
    for (uint32_t s = value->first_use; s && s <= g->num_uses && uses <= value->num_uses;
         s = g->uses[s - 1].next) {
        uses += g->uses[s - 1].value == id;
    }
    if (uses != value->num_uses) {
        npu__violation(v, 0, id, NPU_ERR_GRAPH, "value %u: %u users listed, %u counted", (unsigned)id,
                       (unsigned)uses, (unsigned)value->num_uses);
    }
    if (value->name && npu_graph_find(g, g->names[value->name]).id != id) {
        npu__violation(v, 0, id, NPU_ERR_DUPLICATE, "value %u: the name '%s' is not its own", (unsigned)id,
                       g->names[value->name]);
    }
}

static npu_status npu__deduce(npu_deduce *d);

/* True for a dim of a result that a type rule left open: it is no number and no symbol of an operand. */
static bool npu__is_open(const npu_graph *g, int64_t dim) { return dim < 0 && !npu__symbol_of(g, dim); }

/* Dims that are open in a deduced spec become those of `as` where these are no numbers. */
static void npu__settle(const npu_graph *g, npu_spec *deduced, const npu_spec *as)
{
    for (uint32_t i = 0; i < deduced->rank && i < as->rank; i++) {
        bool is_settled = as->dims[i] == NPU_DYNAMIC_DIM || npu__symbol_of(g, as->dims[i]);
        if (is_settled && npu__is_open(g, deduced->dims[i])) {
            deduced->dims[i] = as->dims[i];
        }
    }
}

/* Deduces the results again and compares. */
static void npu__validate_types(npu__validation *v, uint32_t id, const npu_op_info *info)
{
    const npu__op *o = &v->g->ops[id];
    npu_deduce d;
    npu_diag diag;
    memset(&d, 0, sizeof d);
    memset(&diag, 0, sizeof diag);
    d.op = info;
    d.def = o->def;
    d.diag = &diag;
    d.allocator = v->g->allocator;
    d.is_scalar = v->g->level == NPU_LEVEL_SCALAR;
    if (o->def->rule && npu__deduce(&d)) {
        npu__violation(v, id, 0, diag.status, "%s", diag.message);
    } else if (o->def->rule) {
        bool same = d.num_results == o->num_results;
        for (uint32_t i = 0; same && i < d.num_results; i++) {
            npu__settle(v->g, &d.results[i], info->out[i]);
            same = npu_spec_equal(&d.results[i], info->out[i]);
        }
        if (!same) {
            npu__violation(v, id, 0, NPU_ERR_SHAPE, "%s: results differ from what its type rule gives",
                           info->name);
        }
    }
    npu__free(&d.allocator, d.results, d.capacity * sizeof *d.results);
}

static void npu__validate_op(npu__validation *v, uint32_t id, npu_op_storage *storage)
{
    const npu_graph *g = v->g;
    const npu__op *o = &g->ops[id];
    npu_op_info info;
    npu_status status;
    if ((uint64_t)o->first_operand + o->num_operands > g->num_uses ||
        (uint64_t)o->first_result + o->num_results > g->num_values) {
        npu__violation(v, id, 0, NPU_ERR_GRAPH, "op %u: operands or results out of range", (unsigned)id);
        return;
    }
    for (uint32_t i = 0; i < o->num_operands; i++) {
        const npu__use *use = &g->uses[o->first_operand + i];
        if (use->op != id || use->value >= g->num_values ||
            (use->value && g->values[use->value].producer >= id)) {
            npu__violation(v, id, use->value, NPU_ERR_GRAPH, "op %u: operand %u is not defined before it",
                           (unsigned)id, (unsigned)i);
            return;
        }
    }
    status = npu_op_describe(g, npu__make_op(id), &info, storage);
    for (uint32_t i = 0; status == NPU_OK && i < o->num_operands; i++) {
        storage->data[i] = npu__constant_data(g, g->uses[o->first_operand + i].value);
    }
    if (status) {
        npu__violation(v, id, 0, status, "%s: its attribute blob does not decode", o->def->name);
    } else {
        npu__validate_types(v, id, &info);
    }
}

NPU_IR_API npu_status npu_graph_validate(const npu_graph *g, void (*report)(void *ctx, const npu_diag *diag),
                                         void *ctx)
{
    npu__validation v = { NULL, NULL, NULL, NPU_OK };
    npu_op_storage storage;
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    memset(&storage, 0, sizeof storage);
    v.g = g;
    v.report = report;
    v.ctx = ctx;
    if (g->diag.status) {
        npu__violation(&v, g->diag.op, g->diag.value, g->diag.status, "%s", g->diag.message);
    }
    for (uint32_t i = 1; i < g->num_values; i++) {
        npu__validate_value(&v, i);
    }
    for (uint32_t i = 1; i < g->num_ops; i++) {
        npu__validate_op(&v, i, &storage);
    }
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        if (g->outputs[i].a == 0 || g->outputs[i].a >= g->num_values) {
            npu__violation(&v, 0, g->outputs[i].a, NPU_ERR_GRAPH, "output %u: value out of range",
                           (unsigned)i);
        }
    }
    npu_op_storage_free(&storage);
    for (uint32_t i = 0; i < g->num_children; i++) {
        npu_status status = npu_graph_validate(g->children[i], report, ctx);
        v.first = v.first ? v.first : status;
    }
    return v.first;
}

/* -------------------------------------------------------------------------------------------------------- */

/* The rules. type(..) is ATen's result_type: tensors with dims beat 0-d tensors, which beat numbers, within
   one category (bool < integer < float < complex); float(t) is t, or f32 for integers and bool.

     conv           [N,C,in..] w [O,C/g,k..] -> [N,O,out..], out = (in + 2 pad - dilation (k - 1) - 1) / stride + 1;
                    transposed: w [C,O/g,k..], out = (in - 1) stride - 2 pad + dilation (k - 1) +
                    output_padding + 1
     conv_backward  dims of input, weight, [O]
     einsum         dims of the labels of the result        outer, addr    [M] [N] -> [M,N], type(..)
     inner          all dims but the last ones              tensordot      all dims but those listed
     kron           dims multiplied, type(..)               bilinear       [..,I] [..,J] w [N,I,J] -> [..,N]
     vecdot         broadcast, without dim                 determinant    [b..,N,N] -> [b..]
     factor         same, square                           solve          [b..,N,N] B [b..,N,K] -> [b..,N,K]
     solve_factored as solve, B a matrix                   matrix_power   same, square
     tensorinv      [a..,b..] -> [b..,a..]                 tensorsolve    [a..,b..] [a..] -> [b..]
     multi_dot      [M,..] .. [..,N] -> [M,N]              cross          broadcast, 3 along dim
     rnn            [T,N,I] [cells,N,H] -> [T,N,H], states  rnn_cell       [N,I] [N,H] -> states
     cdist          [b..,P,M] [b..,R,M] -> [b..,P,R]
     pool           as conv, or rounded up                  adaptive_pool  [N,C,output_size..]
     linear         [..,K] w [N,K] -> [..,N]                matmul         [b..,M,K] [b..,K,N] -> [b..,M,N]
     addmm          c, a product -> its dims                attention      [b..,L,E] [b..,S,E] [b..,S,V] -> [b..,L,V]
     same           spec of the operand                     equal          all operands alike, that spec
     same_number    same, bool is an error                  same_float     same, floating point only
     promote_float  same dims, float(t)                     batch_norm     same, parameters [dim 1]
     layer_norm     same, parameters of the trailing dims   group_norm     same, parameters [dim 1]
     binary         broadcast, type(..)                     binary_number  binary, bool is an error
     divide         binary, float(..) unless rounded        power          binary, no negative integer powers
     clamp          binary with the bounds that are given   compare        broadcast, bool
     where          binary, condition bool or u8            where_indices  i64 [true elements], one per dim
     reshape        new dims, one may be -1                 flatten        dims start..end multiplied
     permute        dims reordered                          transpose      two dims swapped
     squeeze        dims of 1 removed                       unsqueeze      a dim of 1 inserted
     expand         dims of 1 enlarged                      repeat         dims times repeats
     cat            type(..), one dim summed                stack          type(..), a new dim
     block_diag     type(..), rows and columns summed       cartesian_prod [product of the lengths, tensors]
     combinations   [n] -> [n over r, r]                    triangle_indices [2, elements of the triangle]
     sum_to_size    size, i64 for integers where it sums    trace          0-d, i64 for integers and bool
     split          pieces along a dim                      select, slice  one index, a range of a dim
     mean           reduced dims, floating point            sum            reduced dims, i64 for integers and bool
     reduce_same    reduced dims, same dtype                reduce_index   values and i64 indices
     arg_reduce     reduced dims, i64                       softmax        same, or dtype
     any            reduced dims, bool, u8 for u8           variance       reduced dims, floating point
     logsumexp      reduced dims, float(t)                  norm           reduced dims, dtype
     count          reduced dims, i64                       aminmax        reduce_same, twice
     scan           same, i64 for integers and bool         scan_index     same, and i64 indices
     sort           same and i64 indices, or one of them    topk           as sort, k along the dim
     norm_backward  gradients, empty where masked           pool_backward  spec of self
     resize         [N,C,in..] -> [N,C,output_size..]       grid           [N,C,in..] [N,out..,dims] -> [N,C,out..]
     distances      [b..,P,M] [b..,R,M] -> [b..,P,R]        embedding_bag  [V,D] [indices] [B] -> [B,D]
     loss           0-d, or broadcast without reduction     nll            0-d, or the dims of target
     cosine         broadcast, one dim reduced
     kth, median    as reduce_index                         quantile       [q] and the reduced dims
     embedding      [V,D] [..] -> [..,D]                    gather         dims of index
     movedim        dims reordered                          unfold         windows of a dim as last dim
     tensor_split   pieces between indices                  unbind         one piece per index
     index          kept dims and those of the indices      index_put      same, values broadcast to what index gives
     scatter        same, index within src and self         index_slices   same, source like self along other dims
     nonzero        [true elements, rank] i64               masked_select  [true elements]
     constant_pad   dims with borders                       im2col         [N,C k..,windows], col2im back
     cast           same dims, dtype                        dropout        same, training is an error
     tensor_binary  broadcast, npu_promote_tensor           getitem        operand number index
     same_real      same, a number or bool                  test           same dims, bool
     arithmetic     binary, the common dtype no bool        bitwise        binary, integers and bool
     square         same, i64 for bool                      masked_fill    self and mask broadcast, dtype of self
     prelu          same, weight [dim 1] or one             glu            one dim halved
     create         size or dims of self, dtype or self's   random         create, floating point
     arange         [ceil((end - start) / step)]            spaced         [steps]
     eye            [n,m]                                   randperm       [n]
     random_dropout same_float, and bool of the same dims   number         0-d f64, i64 or bool
     copy           same as self, src broadcasts            type_as        same dims, dtype of other
     celu           same_float, alpha not 0
     binary_float   binary, floating point only             integer        binary, integers only
     nextafter      binary_float, f32 and f64               isclose        compare, one dtype
     heaviside      binary, one dtype                       float_power    broadcast, f64
     ldexp          type(self, 2^other)                     pointwise      all tensors broadcast, type(..)
     lerp           pointwise, one floating dtype           polygamma      promote_float, n from 0
     mvlgamma       promote_float, p from 1                 frexp          same_float, and i32
     bernoulli      same; probabilities floating point
     aicf_*         the contracts of the device: see their schemas

   A dim that is not known agrees with any other where sizes must be equal: an op is deduced again when its
   symbols get values. Where a size must be computed from one, the result is NPU_DYNAMIC_DIM, and where data
   decides it, npu_deduce_unknown: the graph makes symbols of both (npu__emit_symbols). */

#define NPU__MAX_RESULTS 65536u /* of one op: no attribute may ask for more */

#ifndef NPU_IR_NO_STRINGS
#ifndef NPU_IR_NO_STRINGS
static const char *npu__deduce_name(const npu_deduce *d)
{
    return d->def && d->def->schema ? d->def->schema->name : d->op->name ? d->op->name : "";
}
#endif
#endif

NPU_IR_API npu_status npu_deduce_fail(npu_deduce *d, npu_status status, const char *operand,
                                      const char *format, ...)
{
    npu_diag *diag = d->diag;
    if (!diag || diag->status != NPU_OK) {
        return status;
    }
    diag->status = status;
    diag->op = d->op->op;
    npu__copy_head(diag->operand, sizeof diag->operand, operand);
#ifndef NPU_IR_NO_STRINGS
    {
        int len = snprintf(diag->message, sizeof diag->message, "%s: ", npu__deduce_name(d));
        va_list args;
        if (len > 0 && (size_t)len < sizeof diag->message) {
            va_start(args, format);
            vsnprintf(diag->message + len, sizeof diag->message - (size_t)len, format, args);
            va_end(args);
        }
    }
#else
    diag->message[0] = 0;
    (void)format;
#endif
    return status;
}

NPU_IR_API npu_status npu_deduce_result(npu_deduce *d, const npu_spec *spec)
{
    npu_allocator allocator = npu__allocator(&d->allocator);
    void *results = d->results;
    size_t size;
    if (d->num_results >= NPU__MAX_RESULTS || npu_spec_size(spec, &size) == NPU_ERR_OVERFLOW) {
        return npu_deduce_fail(d, NPU_ERR_OVERFLOW, NULL, "result %u is too large", (unsigned)d->num_results);
    }
    if (!npu__reserve(&allocator, &results, &d->capacity, (uint64_t)d->num_results + 1, sizeof *spec)) {
        return npu_deduce_fail(d, NPU_ERR_NO_MEMORY, NULL, "out of memory");
    }
    d->results = (npu_spec *)results;
    d->results[d->num_results++] = *spec;
    return NPU_OK;
}

NPU_IR_API const npu_spec *npu_deduce_spec(const npu_deduce *d, const char *name)
{
    int i = npu_op_operand(d->op, name);
    return i < 0 ? NULL : d->op->in[i];
}

/* Arithmetic on registers: all of a scalar graph, and arith wherever it stands. */
static bool npu__is_scalar_op(const npu_deduce *d)
{
    return d->is_scalar || NPU_KIND_NAMESPACE(d->def->kind) == NPU_NS_ARITH;
}

/* Dims that data decides lie far below all symbols: the bound and `which` in one number. INT64_MIN is none of
   them. */
#define NPU__UNKNOWN_FIRST (-((int64_t)1 << 62))
#define NPU__UNKNOWN_MOST ((int64_t)1 << 44)

NPU_IR_API int64_t npu_deduce_unknown(uint32_t which, int64_t most)
{
    int64_t bound = most < 0 || most > NPU__UNKNOWN_MOST ? 0 : most + 1; /* 0 = none */
    return most == 0 ? 0 : NPU__UNKNOWN_FIRST - (bound * 65536 + (int64_t)(which & 0xffffu));
}

static bool npu__is_unknown(int64_t dim) { return dim <= NPU__UNKNOWN_FIRST && dim != INT64_MIN; }

/* The bound of a deduced dim: NPU_DYNAMIC_DIM = there is none. */
static int64_t npu__dim_bound(int64_t dim)
{
    return dim >= 0 ? dim : npu__is_unknown(dim) ? (NPU__UNKNOWN_FIRST - dim) / 65536 - 1 : NPU_DYNAMIC_DIM;
}

/* Runs the type rule of an op whose operands are there, once they are of the class that its schema wants. */
static npu_status npu__deduce(npu_deduce *d)
{
    static const char *const words[] = { "value", "tensor", "tile", "scalar" };
    npu_status status;
    for (uint32_t i = 0; i < d->op->num_args; i++) {
        const npu_bound_arg *arg = &d->op->args[i];
        npu_class wanted = d->def->schema->args[i].type.base == NPU_T_TILE ? NPU_CLASS_TILE
            : npu__is_scalar_op(d)                                         ? NPU_CLASS_SCALAR
                                                                           : NPU_CLASS_TENSOR;
        uint32_t count = arg->form == NPU_ARG_TENSORS ? arg->count : arg->form == NPU_ARG_TENSOR;
        for (uint32_t k = 0; k < count; k++) {
            const npu_spec *x = d->op->in[arg->first + k];
            if (x && x->cls != wanted) {
                return npu_deduce_fail(d, NPU_ERR_CLASS, arg->name, "%s is no %s", arg->name, words[wanted]);
            }
        }
    }
    status = d->def->rule(d);
    for (uint32_t i = 0; status == NPU_OK && npu__is_scalar_op(d) && i < d->num_results; i++) {
        d->results[i].cls = NPU_CLASS_SCALAR;
    }
    return status;
}

/* ---- what the rules share: sizes, axes, checks ---- */

/* Sizes are never negative here. False when the result does not fit. */
static bool npu__dim_mul(int64_t a, int64_t b, int64_t *out)
{
    bool fits = b == 0 || a <= INT64_MAX / b;
    *out = fits ? a * b : 0;
    return fits;
}

static bool npu__dim_add(int64_t a, int64_t b, int64_t *out)
{
    bool fits = a <= INT64_MAX - b;
    *out = fits ? a + b : 0;
    return fits;
}

static bool npu__dims_agree(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

/* Types that are computed with; the smaller ones are only stored. */
static bool npu__is_float(npu_dtype t) { return npu_dtype_is_float(t) && npu_dtype_bits(t) >= 16; }
static bool npu__is_integer(npu_dtype t) { return npu_dtype_is_integer(t) && npu_dtype_bits(t) >= 8; }
static bool npu__is_number(npu_dtype t) { return npu__is_float(t) || npu__is_integer(t); }
static bool npu__is_real(npu_dtype t) { return npu__is_number(t) || t == NPU_BOOL; }

static npu_dtype npu__dtype_of(const npu_spec *spec) { return (npu_dtype)spec->dtype; }

static npu_status npu__result(npu_deduce *d, npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    npu_spec spec = npu_spec_tensor(dtype, rank, dims);
    return npu_deduce_result(d, &spec);
}

static npu_status npu__result_like(npu_deduce *d, const npu_spec *x, npu_dtype dtype)
{
    return npu__result(d, dtype, x->rank, x->dims);
}

static npu_status npu__check_dtype(npu_deduce *d, const char *name, npu_dtype dtype, bool is_right,
                                   const char *expected)
{
    return is_right ? NPU_OK
                    : npu_deduce_fail(d, NPU_ERR_DTYPE, name, "%s is %s, expected %s", name,
                                      npu_dtype_name(dtype), expected);
}

static npu_status npu__check_float(npu_deduce *d, const char *name, npu_dtype dtype)
{
    return npu__check_dtype(d, name, dtype, npu__is_float(dtype), "floating point");
}

/* bool counts as a number here, as it does in sums. */
static npu_status npu__check_arithmetic(npu_deduce *d, npu_dtype dtype)
{
    return npu__check_dtype(d, "self", dtype, npu__is_real(dtype) || npu_dtype_is_complex(dtype),
                            "a number or bool of at least 8 bits");
}

/* The dtype of an operand, if it is there, is that of another one. */
static npu_status npu__check_same_dtype(npu_deduce *d, const char *name, const char *like)
{
    const npu_spec *x = npu_deduce_spec(d, name), *y = npu_deduce_spec(d, like);
    if (!x || x->dtype == y->dtype) {
        return NPU_OK;
    }
    return npu_deduce_fail(d, NPU_ERR_DTYPE, name, "%s is %s, expected %s like %s", name,
                           npu_dtype_name(npu__dtype_of(x)), npu_dtype_name(npu__dtype_of(y)), like);
}

static npu_status npu__check_rank(npu_deduce *d, const char *name, uint32_t min, uint32_t max)
{
    uint32_t rank = npu_deduce_spec(d, name)->rank;
    if (rank >= min && rank <= max) {
        return NPU_OK;
    }
    if (min == max) {
        return npu_deduce_fail(d, NPU_ERR_RANK, name, "%s has %u dims, expected %u", name, (unsigned)rank,
                               (unsigned)min);
    }
    return npu_deduce_fail(d, NPU_ERR_RANK, name, "%s has %u dims, expected %u to %u", name, (unsigned)rank,
                           (unsigned)min, (unsigned)max);
}

static npu_status npu__check_dim(npu_deduce *d, const char *name, uint32_t axis, int64_t expected,
                                 const char *what)
{
    int64_t dim = npu_deduce_spec(d, name)->dims[axis];
    if (npu__dims_agree(dim, expected)) {
        return NPU_OK;
    }
    return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s dim %u is %lld, expected %s = %lld", name,
                           (unsigned)axis, (long long)dim, what, (long long)expected);
}

/* The operand, if it is there, is [len]. */
static npu_status npu__check_vector(npu_deduce *d, const char *name, int64_t len, const char *what)
{
    npu_status status;
    if (!npu_deduce_spec(d, name)) {
        return NPU_OK;
    }
    status = npu__check_rank(d, name, 1, 1);
    return status ? status : npu__check_dim(d, name, 0, len, what);
}

/* Two operands have the same dims. */
static npu_status npu__check_same_dims(npu_deduce *d, const char *name, const char *like)
{
    const npu_spec *x = npu_deduce_spec(d, name), *y = npu_deduce_spec(d, like);
    if (x->rank != y->rank) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s has %u dims, expected %u like %s", name,
                               (unsigned)x->rank, (unsigned)y->rank, like);
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        npu_status status = npu__check_dim(d, name, i, y->dims[i], like);
        if (status) {
            return status;
        }
    }
    return NPU_OK;
}

static npu_status npu__check_equal(npu_deduce *d, const char *name, const char *like)
{
    npu_status status = npu__check_same_dtype(d, name, like);
    return status ? status : npu__check_same_dims(d, name, like);
}

static npu_status npu__check_attribute(npu_deduce *d, const char *name, int64_t value, int64_t min)
{
    return value >= min ? NPU_OK
                        : npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s is %lld, expected at least %lld",
                                          name, (long long)value, (long long)min);
}

/* A result of more dims than a spec holds. */
static npu_status npu__check_result_rank(npu_deduce *d, uint32_t rank)
{
    return rank <= NPU_MAX_RANK
               ? NPU_OK
               : npu_deduce_fail(d, NPU_ERR_RANK, NULL, "result has %u dims, expected at most %d",
                                 (unsigned)rank, NPU_MAX_RANK);
}

static npu_status npu__too_large(npu_deduce *d, const char *name)
{
    return npu_deduce_fail(d, NPU_ERR_OVERFLOW, name, "a size computed from %s does not fit", name);
}

/* Axis of a tensor with `rank` dims from a number that may count from the end; 0-d tensors take 0 and -1. */
static npu_status npu__axis(npu_deduce *d, const char *name, int64_t value, uint32_t rank, uint32_t *axis)
{
    int64_t count = rank ? rank : 1;
    *axis = 0;
    if (value < -count || value >= count) {
        return npu_deduce_fail(d, NPU_ERR_AXIS, name, "%s is %lld, expected %lld to %lld", name,
                               (long long)value, (long long)-count, (long long)(count - 1));
    }
    *axis = (uint32_t)(value < 0 ? value + count : value);
    return NPU_OK;
}

static npu_status npu__axis_arg(npu_deduce *d, const char *name, uint32_t rank, uint32_t *axis)
{
    return npu__axis(d, name, npu_op_int(d->op, name, 0), rank, axis);
}

/* Bit mask of the axes that an int or a list of int names; 0 when there are none. */
static npu_status npu__axes(npu_deduce *d, const char *name, uint32_t rank, uint32_t *mask)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, name);
    bool is_list = arg && arg->form == NPU_ARG_INTS;
    uint32_t axis, count = is_list ? arg->count : npu_op_has(d->op, name);
    *mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = is_list ? npu_op_int_at(d->op, name, i) : npu_op_int(d->op, name, 0);
        npu_status status = npu__axis(d, name, value, rank, &axis);
        if (status) {
            return status;
        }
        if (*mask >> axis & 1u) {
            return npu_deduce_fail(d, NPU_ERR_AXIS, name, "%s names %u twice", name, (unsigned)axis);
        }
        *mask |= 1u << axis;
    }
    return NPU_OK;
}

/* The dtype argument, or what stands for an absent one. */
static npu_status npu__dtype_arg(npu_deduce *d, npu_dtype fallback, npu_dtype *dtype)
{
    int64_t code = npu_op_int(d->op, "dtype", (int64_t)fallback);
    if (code < 0 || code > 255 || !npu_dtype_is_valid((uint32_t)code)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "dtype", "dtype is %lld, which is no code",
                               (long long)code);
    }
    *dtype = (npu_dtype)code;
    return NPU_OK;
}

/* Elements of a spec as a product of the sizes that are known and a number of dims that are not. */
typedef struct npu__extent {
    int64_t known;
    int64_t unknown; /* the last of the dims that are not known */
    uint32_t num_unknown;
} npu__extent;

static bool npu__extent_add(npu__extent *e, int64_t dim)
{
    if (dim < 0) {
        e->unknown = dim;
        e->num_unknown++;
        return true;
    }
    return npu__dim_mul(e->known, dim, &e->known);
}

/* The product as one dim. */
static int64_t npu__extent_dim(const npu__extent *e)
{
    if (e->num_unknown == 0 || e->known == 0) {
        return e->known;
    }
    return e->num_unknown == 1 && e->known == 1 ? e->unknown : NPU_DYNAMIC_DIM;
}

/* ---- promotion and broadcasting ---- */

/* What elementwise operands join to: dims broadcast, dtypes kept apart by category. */
typedef struct npu__join {
    npu_dtype tensors, zeros, numbers; /* with dims, 0-d, wrapped numbers; NPU_NONE = there was none */
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK];
} npu__join;

static npu_dtype npu__promote_given(npu_dtype a, npu_dtype b)
{
    return a == NPU_NONE ? b : b == NPU_NONE ? a : npu_promote_types(a, b);
}

/* Source: ATen/native/TypeProperties.cpp, combine_categories. */
static npu_dtype npu__promote_categories(npu_dtype high, npu_dtype low)
{
    bool low_is_higher = npu_dtype_is_float(low) || npu_dtype_is_complex(low);
    if (npu_dtype_is_complex(high) || (npu_dtype_is_float(high) && !npu_dtype_is_complex(low))) {
        return high;
    }
    return high == NPU_BOOL || low_is_higher ? npu__promote_given(high, low) : high != NPU_NONE ? high : low;
}

static npu_dtype npu__join_dtype(const npu__join *j)
{
    return npu__promote_categories(j->tensors, npu__promote_categories(j->zeros, j->numbers));
}

static npu_status npu__join_dims(npu_deduce *d, npu__join *j, const char *name, const npu_spec *x)
{
    uint32_t bad = 0;
    int64_t had[NPU_MAX_RANK];
    uint32_t rank = j->rank;
    memcpy(had, j->dims, sizeof had);
    if (!npu_broadcast(j->dims, j->rank, x->dims, x->rank, j->dims, &j->rank, &bad)) {
        return NPU_OK;
    }
    if (x->dims[x->rank - 1 - bad] < 0 || had[rank - 1 - bad] < 0) {
        return npu_deduce_fail(d, NPU_ERR_DYNAMIC_SHAPE, name,
                               "%s dim %u is not known to be equal to the dim it meets, or 1", name,
                               (unsigned)(x->rank - 1 - bad));
    }
    return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s dim %u is %lld, expected %lld or 1", name,
                           (unsigned)(x->rank - 1 - bad), (long long)x->dims[x->rank - 1 - bad],
                           (long long)had[rank - 1 - bad]);
}

static void npu__join_type(npu__join *j, const npu_spec *x)
{
    npu_dtype t = npu__dtype_of(x);
    npu_dtype *category = x->rank ? &j->tensors : x->wrapped ? &j->numbers : &j->zeros;
    *category = npu__promote_given(*category, x->wrapped && npu_dtype_is_float(t) ? NPU_F32 : t);
}

/* Adds a tensor or a number by name; an argument that is not there adds nothing. A bool given for a Scalar
   counts as an integer: ATen's dispatcher takes it for one. */
static npu_status npu__join_arg(npu_deduce *d, npu__join *j, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, name);
    const npu_spec *x = npu_deduce_spec(d, name);
    if (x) {
        npu__join_type(j, x);
        return npu__join_dims(d, j, name, x);
    }
    if (arg && (arg->form == NPU_ARG_BOOL || arg->form == NPU_ARG_INT || arg->form == NPU_ARG_FLOAT)) {
        j->numbers = npu__promote_given(j->numbers, arg->form == NPU_ARG_FLOAT ? NPU_F32 : NPU_I64);
    }
    return NPU_OK;
}

/* Joins up to three arguments (NULL = no more) and finds the common dtype. */
static npu_status npu__join_args(npu_deduce *d, npu__join *j, const char *a, const char *b, const char *c,
                                 npu_dtype *dtype)
{
    npu_status status;
    memset(j, 0, sizeof *j);
    *dtype = NPU_NONE;
    status = npu__join_arg(d, j, a);
    status = status ? status : npu__join_arg(d, j, b);
    status = status || !c ? status : npu__join_arg(d, j, c);
    if (status) {
        return status;
    }
    *dtype = npu__join_dtype(j);
    return *dtype != NPU_NONE ? NPU_OK
                              : npu_deduce_fail(d, NPU_ERR_DTYPE, b, "%s and %s have no common dtype", a, b);
}

static npu_dtype npu__float_of(npu_dtype t) { return npu__is_integer(t) || t == NPU_BOOL ? NPU_F32 : t; }

/* ---- rules: elementwise ---- */

static npu_status npu__type_same(npu_deduce *d)
{
    npu_spec y = *d->op->in[0];
    y.wrapped = d->op->kind == (uint32_t)NPU_NPU_TRANSFER ? y.wrapped : 0;
    y.space = NPU_SPACE_DEFAULT;
    y.offset = 0;
    return npu_deduce_result(d, &y);
}

/* hardtanh takes its bounds to the dtype of self, where unsigned ones cannot be negative. */
static npu_status npu__type_same_number(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    npu_status status = npu__check_dtype(d, "self", t, npu__is_number(t), "a number, not bool");
    if (!status && npu_dtype_is_integer(t) && !npu_dtype_is_signed(t) && npu_op_has(d->op, "min_val")) {
        status = npu__check_attribute(d, "min_val", npu_op_int(d->op, "min_val", 0), 0);
        status = status ? status : npu__check_attribute(d, "max_val", npu_op_int(d->op, "max_val", 0), 0);
    }
    return status ? status : npu__result_like(d, x, t);
}

static npu_status npu__type_same_float(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_float(d, "self", npu__dtype_of(x));
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_celu(npu_deduce *d)
{
    if (npu_scalar_value(npu_op_scalar(d->op, "alpha", npu_scalar_int(1))) == 0) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "alpha", "alpha is 0");
    }
    return npu__type_same_float(d);
}

static npu_status npu__type_promote_float(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    npu_status status = npu__check_arithmetic(d, t);
    return status ? status : npu__result_like(d, x, npu__float_of(t));
}

/* alpha may not be of a higher category than the result. */
static npu_status npu__check_alpha(npu_deduce *d, npu_dtype result)
{
    const npu_bound_arg *alpha = npu_op_arg(d->op, "alpha");
    if (alpha && alpha->form == NPU_ARG_FLOAT && !npu_dtype_is_float(result) &&
        !npu_dtype_is_complex(result)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "alpha", "alpha is a float, expected an integer for %s",
                               npu_dtype_name(result));
    }
    return NPU_OK;
}

static npu_status npu__type_binary(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__check_arithmetic(d, t);
    status = status ? status : npu__check_alpha(d, t);
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_binary_number(npu_deduce *d)
{
    static const char *const names[] = { "self", "other" };
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < NPU__COUNT(names) && !status; i++) {
        const npu_spec *x = npu_deduce_spec(d, names[i]);
        status =
            x ? npu__check_dtype(d, names[i], npu__dtype_of(x), x->dtype != NPU_BOOL, "a number") : NPU_OK;
    }
    return status ? status : npu__type_binary(d);
}

static npu_status npu__type_divide(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    bool is_rounded = npu_op_has(d->op, "rounding_mode");
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__check_arithmetic(d, t);
    if (!status && is_rounded) {
        if (!npu_op_str_is(d->op, "rounding_mode", "floor") &&
            !npu_op_str_is(d->op, "rounding_mode", "trunc")) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "rounding_mode",
                                   "rounding_mode is neither 'floor' nor 'trunc'");
        }
        status = npu__check_dtype(d, "self", t, npu__is_number(t), "a number to round");
    }
    return status ? status : npu__result(d, is_rounded ? t : npu__float_of(t), j.rank, j.dims);
}

static npu_status npu__type_power(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    const npu_bound_arg *exponent = npu_op_arg(d->op, "exponent");
    npu_status status = npu__join_args(d, &j, "self", "exponent", NULL, &t);
    if (!status && exponent->form == NPU_ARG_INT && exponent->i < 0 && npu__is_integer(t)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "exponent",
                               "exponent is %lld, integers have no negative powers", (long long)exponent->i);
    }
    status = status ? status : npu__check_arithmetic(d, t);
    status = status ? status : npu__check_dtype(d, "self", t, t != NPU_BOOL, "a number");
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

/* With one bound clamp is maximum or minimum, which take bool. */
static npu_status npu__type_clamp(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    bool has_min = npu_op_has(d->op, "min"), has_max = npu_op_has(d->op, "max");
    npu_status status = npu__join_args(d, &j, "self", "min", "max", &t);
    if (!has_min && !has_max) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "min", "neither min nor max is given");
    }
    if (!status && (has_min == has_max || t != NPU_BOOL)) {
        status = npu__check_dtype(d, "self", t, npu__is_number(t), "a number");
    }
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_compare(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    return status ? status : npu__result(d, NPU_BOOL, j.rank, j.dims);
}

static npu_status npu__type_where(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    const npu_spec *condition = npu_deduce_spec(d, "condition");
    bool is_mask = condition->dtype == NPU_BOOL || condition->dtype == NPU_U8;
    npu_status status = npu__check_dtype(d, "condition", npu__dtype_of(condition), is_mask, "bool or u8");
    status = status ? status : npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__join_dims(d, &j, "condition", condition);
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

/* Elements of a tensor that are not zero, dim `which` of the op: at most all of them where the data is not
   known. -0.0 is zero: a sign bit does not count. */
static int64_t npu__count_true(const npu_spec *x, const void *data, uint32_t which)
{
    npu_dtype t = npu__dtype_of(x);
    size_t len, bytes = npu_dtype_bits(t) / 8;
    int64_t count = 0;
    if (npu_spec_len(x, &len)) {
        return npu_deduce_unknown(which, -1);
    }
    if (!data || !npu__is_real(t)) {
        return npu_deduce_unknown(which, (uint64_t)len > INT64_MAX ? -1 : (int64_t)len);
    }
    for (size_t i = 0; i < len; i++) {
        const uint8_t *at = (const uint8_t *)data + i * bytes;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u = 0;
        switch (bytes) {
        case 1: memcpy(&u8, at, 1), u = u8; break;
        case 2: memcpy(&u16, at, 2), u = u16; break;
        case 4: memcpy(&u32, at, 4), u = u32; break;
        default: memcpy(&u, at, 8); break;
        }
        count += (npu_dtype_is_float(t) ? u << (65 - 8 * bytes) : u) != 0;
    }
    return count;
}

static npu_status npu__type_where_indices(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "condition");
    int64_t count = npu__count_true(x, d->op->in_data ? d->op->in_data[0] : NULL, 0);
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < (x->rank ? x->rank : 1u) && !status; i++) {
        status = npu__result(d, NPU_I64, 1, &count);
    }
    return status;
}

static npu_status npu__type_cast(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t;
    npu_status status = npu__dtype_arg(d, npu__dtype_of(x), &t);
    return status ? status : npu__result_like(d, x, t);
}

static npu_status npu__type_dropout(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    double p = npu_op_float(d->op, "p", 0.0);
    if (!(p >= 0.0 && p <= 1.0)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "p", "p is %g, expected 0 to 1", p);
    }
    if (npu_op_int(d->op, "train", 0) && p != 0.0) {
        return npu_deduce_fail(d, NPU_ERR_UNSUPPORTED, "train",
                               "train is set, only the evaluation mode is there");
    }
    return npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_tensor_binary(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "lhs"), *b = npu_deduce_spec(d, "rhs");
    npu_dtype t = npu_promote_tensor(npu__dtype_of(a), npu__dtype_of(b));
    npu__join j;
    npu_status status;
    memset(&j, 0, sizeof j);
    status = npu__join_dims(d, &j, "lhs", a);
    status = status ? status : npu__join_dims(d, &j, "rhs", b);
    status = status ? status
                    : npu__check_dtype(d, "rhs", npu__dtype_of(b), t != NPU_NONE,
                                       "a dtype that lhs promotes with");
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_getitem(npu_deduce *d)
{
    const npu_bound_arg *results = npu_op_arg(d->op, "results");
    int64_t index = npu_op_int(d->op, "index", 0);
    npu_spec y;
    if (index < 0 || index >= (int64_t)results->count) {
        return npu_deduce_fail(d, NPU_ERR_RANGE, "index", "index is %lld, expected 0 to %lld",
                               (long long)index, (long long)results->count - 1);
    }
    y = *d->op->in[results->first + (uint32_t)index];
    return npu_deduce_result(d, &y);
}

/* Results are the outputs of a child graph whose inputs are the operands, in order. */
static npu_status npu__type_body(npu_deduce *d)
{
    const npu_graph *body = d->op->body;
    npu_status status = NPU_OK;
    if (!body || npu_graph_status(body)) {
        return npu_deduce_fail(d, NPU_ERR_GRAPH, "body", "the child graph '%s' has failed: %s", npu_graph_name(body),
                               npu_graph_diag(body)->message);
    }
    if (d->op->num_in != npu_graph_num_inputs(body)) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "args", "%u operands, but '%s' has %u inputs", (unsigned)d->op->num_in,
                               npu_graph_name(body), (unsigned)npu_graph_num_inputs(body));
    }
    for (uint32_t i = 0; i < d->op->num_in; i++) {
        if (!npu_spec_equal(d->op->in[i], npu_value_spec(body, npu_graph_input(body, i)))) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "args", "operand %u differs from input '%s' of '%s'", (unsigned)i,
                                   npu_value_name(body, npu_graph_input(body, i)), npu_graph_name(body));
        }
    }
    for (uint32_t i = 0; status == NPU_OK && i < npu_graph_num_outputs(body); i++) {
        status = npu_deduce_result(d, npu_value_spec(body, npu_graph_output(body, i)));
    }
    return status;
}

/* ---- rules: logic, creation ---- */

static npu_status npu__check_real(npu_deduce *d, npu_dtype t)
{
    return npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
}

static npu_status npu__type_same_real(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_real(d, npu__dtype_of(x));
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_test(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_arithmetic(d, npu__dtype_of(x));
    return status ? status : npu__result_like(d, x, NPU_BOOL);
}

static npu_status npu__type_square(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_arithmetic(d, npu__dtype_of(x));
    return status ? status : npu__result_like(d, x, x->dtype == NPU_BOOL ? NPU_I64 : npu__dtype_of(x));
}

static npu_status npu__type_arithmetic(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_number(t), "a number, not bool");
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

/* Also of one operand. */
static npu_status npu__type_bitwise(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status
        ? status
        : npu__check_dtype(d, "self", t, npu__is_integer(t) || t == NPU_BOOL, "an integer or bool");
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

/* The largest magnitude of a dtype. */
static double npu__largest(npu_dtype t)
{
    switch (t) {
    case NPU_F16: return 65504.0;
    case NPU_BF16: return 3.3895313892515355e38;
    case NPU_F32: return 3.4028234663852886e38;
    case NPU_F64: return 1.7976931348623157e308;
    default: return npu_dtype_is_signed(t) ? (double)(INT64_MAX >> (64 - npu_dtype_bits(t)))
                                           : (double)(UINT64_MAX >> (64 - npu_dtype_bits(t)));
    }
}

/* A number that elements of dtype t are set to fits it. The negative numbers of an unsigned dtype wrap. */
static npu_status npu__check_fits(npu_deduce *d, const char *name, npu_dtype t)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, name);
    bool is_number = arg && (arg->form == NPU_ARG_INT || arg->form == NPU_ARG_FLOAT);
    npu_scalar zero = npu_scalar_int(0);
    double most = npu__largest(t), x = is_number ? npu_scalar_value(npu_op_scalar(d->op, name, zero)) : 0;
    double least = npu_dtype_is_signed(t) ? -most - 1 : -most;
    bool is_infinite = npu__is_float(t) && x - x != 0;
    if (t == NPU_BOOL || is_infinite || (x >= least && x <= most)) {
        return NPU_OK;
    }
    return npu_deduce_fail(d, NPU_ERR_OVERFLOW, name, "%s is %g, which does not fit %s", name, x,
                           npu_dtype_name(t));
}

/* A number has no dims; a tensor that stands for one must have none either. */
static npu_status npu__type_masked_fill(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *mask = npu_deduce_spec(d, "mask");
    npu__join j;
    npu_dtype t;
    npu_status status = npu__check_dtype(d, "mask", npu__dtype_of(mask), mask->dtype == NPU_BOOL, "bool");
    status = status ? status : npu__join_args(d, &j, "self", "value", NULL, &t);
    status = status ? status : npu__join_dims(d, &j, "mask", mask);
    if (!status && npu_deduce_spec(d, "value")) {
        status = npu__check_rank(d, "value", 0, 0);
    }
    status = status ? status : npu__check_fits(d, "value", npu__dtype_of(x));
    return status ? status : npu__result(d, npu__dtype_of(x), j.rank, j.dims);
}

/* One weight for all, or one per channel: dim 1, where there is one. */
static npu_status npu__type_prelu(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *w = npu_deduce_spec(d, "weight");
    npu_status status = npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__check_same_dtype(d, "weight", "self");
    status = status ? status : npu__check_rank(d, "weight", 0, 1);
    if (!status && w->rank == 1 && w->dims[0] != 1) {
        status = npu__check_dim(d, "weight", 0, x->rank > 1 ? x->dims[1] : 1, "channels");
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_glu(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_spec y = *x;
    uint32_t axis;
    npu_status status = npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    if (!status && x->dims[axis] > 0 && x->dims[axis] % 2) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self dim %u is %lld, expected an even number",
                                 (unsigned)axis, (long long)x->dims[axis]);
    }
    if (status) {
        return status;
    }
    y.dims[axis] = x->dims[axis] < 0 ? NPU_DYNAMIC_DIM : x->dims[axis] / 2;
    return npu__result_like(d, &y, npu__dtype_of(x));
}

/* A size given as a number; INT64_MIN stands for one that is not known. */
static npu_status npu__size_arg(npu_deduce *d, const char *name, int64_t value, int64_t *dim)
{
    *dim = value == INT64_MIN ? NPU_DYNAMIC_DIM : value;
    return value == INT64_MIN ? NPU_OK : npu__check_attribute(d, name, value, 0);
}

/* Dims of a new tensor: size, else those of self, else none. */
static npu_status npu__create_dims(npu_deduce *d, npu_spec *y)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = NPU_OK;
    memset(y, 0, sizeof *y);
    if (!npu_op_arg(d->op, "size")) {
        y->rank = x ? x->rank : 0;
        memcpy(y->dims, x ? x->dims : y->dims, sizeof y->dims);
        return NPU_OK;
    }
    status = npu__check_result_rank(d, npu_op_list_len(d->op, "size"));
    y->rank = (uint8_t)(status ? 0 : npu_op_list_len(d->op, "size"));
    for (uint32_t i = 0; i < y->rank && !status; i++) {
        status = npu__size_arg(d, "size", npu_op_int_at(d->op, "size", i), &y->dims[i]);
    }
    if (!status && npu_op_arg(d->op, "stride") && npu_op_list_len(d->op, "stride") != y->rank) {
        status =
            npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "stride", "stride has %u numbers, expected %u like size",
                            (unsigned)npu_op_list_len(d->op, "stride"), (unsigned)y->rank);
    }
    return status;
}

/* The dtype where none is given: that of self, of the number for all, else f32. A bool counts as an integer.
   */
static npu_status npu__create_dtype(npu_deduce *d, npu_dtype *t)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const npu_bound_arg *number = npu_op_arg(d->op, "fill_value");
    npu_dtype fallback = number && number->form != NPU_ARG_FLOAT ? NPU_I64 : NPU_F32;
    npu_status status = npu__dtype_arg(d, x ? npu__dtype_of(x) : fallback, t);
    return status ? status : npu__check_dtype(d, "dtype", *t, npu__is_real(*t), "a number or bool");
}

/* A value tensor (fill.Tensor) has no dims. */
static npu_status npu__type_create(npu_deduce *d)
{
    static const char *const numbers[] = { "value", "fill_value", "s" };
    npu_spec y;
    npu_dtype t;
    npu_status status = npu__create_dims(d, &y);
    status = status ? status : npu__create_dtype(d, &t);
    if (!status && npu_deduce_spec(d, "value")) {
        status = npu__check_rank(d, "value", 0, 0);
    }
    for (uint32_t i = 0; i < NPU__COUNT(numbers) && !status; i++) {
        status = npu__check_fits(d, numbers[i], t);
    }
    return status ? status : npu__result(d, t, y.rank, y.dims);
}

static npu_status npu__type_random(npu_deduce *d)
{
    npu_dtype t;
    npu_status status = npu__create_dtype(d, &t);
    status = status ? status : npu__check_float(d, "dtype", t);
    return status ? status : npu__type_create(d);
}

static npu_status npu__type_randperm(npu_deduce *d)
{
    int64_t n;
    npu_dtype t;
    npu_status status = npu__size_arg(d, "n", npu_op_int(d->op, "n", 0), &n);
    status = status ? status : npu__dtype_arg(d, NPU_I64, &t);
    status = status ? status : npu__check_dtype(d, "dtype", t, npu__is_number(t), "a number");
    return status ? status : npu__result(d, t, 1, &n);
}

static npu_status npu__type_eye(npu_deduce *d)
{
    int64_t dims[2];
    npu_dtype t;
    int64_t n = npu_op_int(d->op, "n", 0);
    npu_status status = npu__size_arg(d, "n", n, &dims[0]);
    status = status ? status : npu__size_arg(d, "m", npu_op_int(d->op, "m", n), &dims[1]);
    status = status ? status : npu__create_dtype(d, &t);
    return status ? status : npu__result(d, t, 2, dims);
}

/* Elements on and below diagonal `offset` of a matrix whose size fits: rows of first, first + 1 .. of them,
   then full ones. */
static int64_t npu__triangle_len(int64_t rows, int64_t cols, int64_t offset)
{
    int64_t skipped = offset >= 0 ? 0 : offset < -rows ? rows : -offset;
    int64_t first = offset < 0 ? 1 : offset < cols ? offset + 1 : cols, growing;
    if (cols == 0) {
        return 0;
    }
    rows -= skipped;
    growing = cols - first < rows ? cols - first : rows;
    return growing * first + (int64_t)((uint64_t)growing * (uint64_t)(growing - 1) / 2) +
           (rows - growing) * cols;
}

/* The upper triangle is what the lower one below its diagonal leaves. */
static npu_status npu__type_triangle_indices(npu_deduce *d)
{
    int64_t rows = npu_op_int(d->op, "row", 0), cols = npu_op_int(d->op, "col", 0), dims[2] = { 2, 0 };
    int64_t offset = npu_op_int(d->op, "offset", 0);
    bool is_upper = d->op->kind == (uint32_t)NPU_ATEN_TRIU_INDICES;
    npu_dtype t;
    npu_status status = npu__check_attribute(d, "row", rows, 0);
    status = status ? status : npu__check_attribute(d, "col", cols, 0);
    status = status ? status : npu__dtype_arg(d, NPU_I64, &t);
    status = status ? status : npu__check_dtype(d, "dtype", t, npu__is_number(t), "a number");
    if (!status && !npu__dim_mul(rows, cols, &dims[1])) {
        status = npu__too_large(d, "row");
    }
    offset -= is_upper && offset > INT64_MIN;
    dims[1] = is_upper ? dims[1] - npu__triangle_len(rows, cols, offset)
                       : npu__triangle_len(rows, cols, offset);
    return status ? status : npu__result(d, t, 2, dims);
}

/* Numbers of a range of integers: the magnitudes fit where the difference may not. */
static uint64_t npu__range_len_int(int64_t start, int64_t end, int64_t step)
{
    uint64_t span = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end,
             pace = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return span / pace + (span % pace != 0);
}

/* Integers count in i64, everything else in double. */
static npu_status npu__range_len(npu_deduce *d, npu_dtype t, int64_t *len)
{
    npu_scalar zero = npu_scalar_int(0), one = npu_scalar_int(1), start = npu_op_scalar(d->op, "start", zero),
               end = npu_op_scalar(d->op, "end", zero), step = npu_op_scalar(d->op, "step", one);
    double from = npu_scalar_value(start), to = npu_scalar_value(end), pace = npu_scalar_value(step);
    double count = (to - from) / pace;
    if (!(pace > 0 || pace < 0) || !(from - from == 0 && to - to == 0)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "step", "a range from %g to %g by %g", from, to, pace);
    }
    if (pace > 0 ? from > to : from < to) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "end", "steps of %g do not lead from %g to %g", pace,
                               from, to);
    }
    if (!(count < 9.2e18)) {
        return npu__too_large(d, "end");
    }
    *len = (int64_t)count;
    *len += count > (double)*len;
    if (t == NPU_I64) {
        int64_t by = step.is_float ? (int64_t)step.f : step.i;
        if (by == 0) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "step", "step is 0 as an integer");
        }
        *len = (int64_t)npu__range_len_int(start.is_float ? (int64_t)start.f : start.i,
                                           end.is_float ? (int64_t)end.f : end.i, by);
    }
    return NPU_OK;
}

static npu_status npu__type_arange(npu_deduce *d)
{
    static const char *const names[] = { "start", "end", "step" };
    npu_dtype t = NPU_I64;
    int64_t len = 0;
    npu_status status;
    for (uint32_t i = 0; i < NPU__COUNT(names); i++) {
        const npu_bound_arg *arg = npu_op_arg(d->op, names[i]);
        t = arg && arg->form == NPU_ARG_FLOAT ? NPU_F32 : t;
    }
    status = npu__dtype_arg(d, t, &t);
    status = status ? status : npu__check_dtype(d, "dtype", t, npu__is_number(t), "a number");
    status = status ? status : npu__range_len(d, t, &len);
    return status ? status : npu__result(d, t, 1, &len);
}

static npu_status npu__type_spaced(npu_deduce *d)
{
    int64_t steps;
    npu_dtype t;
    npu_status status = npu__size_arg(d, "steps", npu_op_int(d->op, "steps", 0), &steps);
    status = status ? status : npu__create_dtype(d, &t);
    status = status ? status : npu__check_dtype(d, "dtype", t, npu__is_number(t), "a number");
    return status ? status : npu__result(d, t, 1, &steps);
}

/* With two results the second says what was kept. */
static npu_status npu__type_random_dropout(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    double p = npu_op_float(d->op, "p", 0.0);
    npu_status status = npu__check_float(d, "input", npu__dtype_of(x));
    if (!status && !(p >= 0.0 && p <= 1.0)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "p", "p is %g, expected 0 to 1", p);
    }
    if (!status && d->op->kind == (uint32_t)NPU_ATEN_FEATURE_DROPOUT && npu_op_int(d->op, "train", 0)) {
        status = npu__check_rank(d, "input", 2, NPU_MAX_RANK);
    }
    status = status ? status : npu__result_like(d, x, npu__dtype_of(x));
    return status || d->def->schema->num_returns < 2 ? status : npu__result_like(d, x, NPU_BOOL);
}

/* ---- rules: copies and numbers ---- */

static npu_status npu__type_copy(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *src = npu_deduce_spec(d, "src");
    npu_status status = NPU_OK;
    if (src->rank > x->rank) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, "src", "src has %u dims, expected at most %u like self",
                                 (unsigned)src->rank, (unsigned)x->rank);
    }
    for (uint32_t i = 0; i < src->rank && !status; i++) {
        status = src->dims[i] == 1
            ? NPU_OK
            : npu__check_dim(d, "src", i, x->dims[x->rank - src->rank + i], "dim of self");
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_type_as(npu_deduce *d)
{
    return npu__result_like(d, npu_deduce_spec(d, "self"), npu__dtype_of(npu_deduce_spec(d, "other")));
}

/* What is a number in ATen is a tensor without dims here: f64, i64 or bool. */
static npu_status npu__type_number(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = d->op->kind == (uint32_t)NPU_ATEN_SYM_IS_CONTIGUOUS ? NPU_BOOL : NPU_I64;
    uint32_t axis;
    npu_status status = NPU_OK;
    if (d->op->kind == (uint32_t)NPU_ATEN_LOCAL_SCALAR_DENSE) {
        t = x->dtype == NPU_BOOL ? NPU_BOOL : npu__is_float(npu__dtype_of(x)) ? NPU_F64 : NPU_I64;
        status = npu__check_real(d, npu__dtype_of(x));
        for (uint32_t i = 0; i < x->rank && !status; i++) {
            status = npu__check_dim(d, "self", i, 1, "one element");
        }
    } else if (npu_op_arg(d->op, "dim")) {
        status = npu__axis_arg(d, "dim", x->rank, &axis);
        status = status ? status : npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    }
    return status ? status : npu__result(d, t, 0, NULL);
}

/* ---- rules: further functions ---- */

static npu_status npu__type_binary_float(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__check_float(d, "self", t);
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_nextafter(npu_deduce *d)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "self"));
    npu_status status = npu__check_dtype(d, "self", t, t == NPU_F32 || t == NPU_F64, "f32 or f64");
    status = status ? status : npu__check_same_dtype(d, "other", "self");
    return status ? status : npu__type_binary_float(d);
}

static npu_status npu__type_integer(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_integer(t), "an integer");
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_isclose(npu_deduce *d)
{
    npu_status status = npu__check_same_dtype(d, "other", "self");
    if (!status && !(npu_op_float(d->op, "rtol", 0) >= 0 && npu_op_float(d->op, "atol", 0) >= 0)) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "rtol", "rtol or atol is negative");
    }
    return status ? status : npu__type_compare(d);
}

static npu_status npu__type_heaviside(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__check_same_dtype(d, "values", "self");
    status = status ? status : npu__join_args(d, &j, "self", "values", NULL, &t);
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_float_power(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "exponent", NULL, &t);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
    return status ? status : npu__result(d, NPU_F64, j.rank, j.dims);
}

/* As the product of self and 2 to the other, which is floating point. */
static npu_status npu__type_ldexp(npu_deduce *d)
{
    npu_spec power = *npu_deduce_spec(d, "other");
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, "self", "other", NULL, &t);
    if (status) {
        return status;
    }
    j.tensors = j.zeros = j.numbers = NPU_NONE;
    power.dtype = (uint8_t)npu__float_of(npu__dtype_of(&power));
    npu__join_type(&j, npu_deduce_spec(d, "self"));
    npu__join_type(&j, &power);
    return npu__result(d, npu__join_dtype(&j), j.rank, j.dims);
}

/* All tensors broadcast and promote; a number takes their dtype. ATen has no quotients (tensor1 / tensor2) of
   integers. */
static npu_status npu__type_pointwise(npu_deduce *d)
{
    bool is_quotient = d->op->kind == (uint32_t)NPU_ATEN_ADDCDIV,
         is_gelu = d->op->kind == (uint32_t)NPU_ATEN_GELU_BACKWARD;
    npu__join j;
    npu_dtype t;
    npu_status status = NPU_OK;
    memset(&j, 0, sizeof j);
    for (uint32_t i = 0; i < d->op->num_args && !status; i++) {
        if (d->op->args[i].form == NPU_ARG_TENSOR) {
            status = npu__join_arg(d, &j, d->op->args[i].name);
        }
    }
    t = npu__join_dtype(&j);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_number(t), "a number, not bool");
    if (!status && is_gelu) {
        status = npu__check_float(d, "self", t);
    }
    for (uint32_t i = 1; is_quotient && i < 3 && !status; i++) {
        status = npu__check_float(d, d->op->args[i].name, npu__dtype_of(d->op->in[i]));
    }
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

static npu_status npu__type_lerp(npu_deduce *d)
{
    npu_status status = npu__check_float(d, "self", npu__dtype_of(npu_deduce_spec(d, "self")));
    status = status ? status : npu__check_same_dtype(d, "end", "self");
    status = status ? status : npu__check_same_dtype(d, "weight", "self");
    return status ? status : npu__type_pointwise(d);
}

static npu_status npu__type_polygamma(npu_deduce *d)
{
    npu_status status = npu__check_attribute(d, "n", npu_op_int(d->op, "n", 0), 0);
    return status ? status : npu__type_promote_float(d);
}

static npu_status npu__type_mvlgamma(npu_deduce *d)
{
    npu_status status = npu__check_attribute(d, "p", npu_op_int(d->op, "p", 1), 1);
    return status ? status : npu__type_promote_float(d);
}

static npu_status npu__type_frexp(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__type_same_float(d);
    return status ? status : npu__result_like(d, x, NPU_I32);
}

/* Probabilities are floating point; with a number for all, self only gives dims and dtype. */
static npu_status npu__type_bernoulli(npu_deduce *d)
{
    double p = npu_op_float(d->op, "p", 0.0);
    if (!(p >= 0.0 && p <= 1.0)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "p", "p is %g, expected 0 to 1", p);
    }
    return npu_op_arg(d->op, "p") ? npu__type_same_real(d) : npu__type_same_float(d);
}

/* ---- rules: matrix, convolution, pooling, normalisation ---- */

static npu_status npu__check_number(npu_deduce *d, const char *name)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, name));
    return npu__check_dtype(d, name, t, npu__is_number(t), "a number, not bool");
}

/* A weight of one dim is a single output without its dim; its bias is a 0-d tensor. */
static npu_status npu__type_linear(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input"), *w = npu_deduce_spec(d, "weight"),
                   *b = npu_deduce_spec(d, "bias");
    npu_status status = npu__check_rank(d, "input", 1, NPU_MAX_RANK);
    npu_spec y = *x;
    status = status ? status : npu__check_rank(d, "weight", 1, 2);
    status = status ? status : npu__check_number(d, "input");
    status = status ? status : npu__check_same_dtype(d, "weight", "input");
    status = status ? status : npu__check_same_dtype(d, "bias", "input");
    status = status ? status
                    : npu__check_dim(d, "weight", w->rank - 1u, x->dims[x->rank - 1], "last dim of input");
    if (!status && b) {
        status = w->rank == 2 ? npu__check_vector(d, "bias", w->dims[0], "weight dim 0")
                              : npu__check_rank(d, "bias", 0, 0);
    }
    y.dims[(x->rank ? x->rank : 1u) - 1] = w->dims[0];
    return status ? status : npu__result(d, npu__dtype_of(x), w->rank == 2 ? x->rank : x->rank - 1u, y.dims);
}

/* Appends the product of a [..,M,K] and b [..,K,N] to the batch dims; a 1-D operand has no M or N. */
static npu_status npu__matrix_product(npu_deduce *d, const char *a_name, const char *b_name)
{
    const npu_spec *a = npu_deduce_spec(d, a_name), *b = npu_deduce_spec(d, b_name);
    uint32_t batch_a = a->rank > 2 ? a->rank - 2u : 0, batch_b = b->rank > 2 ? b->rank - 2u : 0, rank = 0;
    int64_t dims[NPU_MAX_RANK + 2];
    npu_status status = npu__check_dim(d, b_name, b->rank > 1 ? b->rank - 2u : 0, a->dims[a->rank - 1],
                                       "last dim of the first");
    if (!status && npu_broadcast(a->dims, batch_a, b->dims, batch_b, dims, &rank, NULL)) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, b_name, "the batch dims of %s and %s do not broadcast",
                                 a_name, b_name);
    }
    if (status) {
        return status;
    }
    if (a->rank > 1) {
        dims[rank++] = a->dims[a->rank - 2];
    }
    if (b->rank > 1) {
        dims[rank++] = b->dims[b->rank - 1];
    }
    status = npu__check_result_rank(d, rank);
    return status ? status : npu__result(d, npu__dtype_of(a), rank, dims);
}

/* Where the schema fixes a product: names and ranks of its operands. */
typedef struct npu__product_form {
    npu_kind kind;
    const char *a, *b;
    uint32_t a_rank, b_rank;
} npu__product_form;

static const npu__product_form npu__product_forms[] = {
    { NPU_ATEN_MM, "self", "mat2", 2, 2 },         { NPU_ATEN_BMM, "self", "mat2", 3, 3 },
    { NPU_ATEN_MV, "self", "vec", 2, 1 },          { NPU_ATEN_DOT, "self", "tensor", 1, 1 },
    { NPU_ATEN_VDOT, "self", "other", 1, 1 },      { NPU_ATEN_ADDMM, "mat1", "mat2", 2, 2 },
    { NPU_ATEN_BADDBMM, "batch1", "batch2", 3, 3 }, { NPU_ATEN_ADDMV, "mat", "vec", 2, 1 },
    { NPU_ATEN_ADDBMM, "batch1", "batch2", 3, 3 },
    { NPU_ATEN_MATMUL, "self", "other", 0, 0 }, /* ranks from 1 up */
};

/* The operands agree, in a batch too, and their product is the result. */
static npu_status npu__fixed_product(npu_deduce *d, const npu__product_form *form)
{
    const char *a = form->a, *b = form->b;
    uint32_t max = form->a_rank ? 0 : NPU_MAX_RANK, min = form->a_rank ? 0 : 1;
    npu_status status = npu__check_rank(d, a, form->a_rank + min, form->a_rank + max);
    status = status ? status : npu__check_rank(d, b, form->b_rank + min, form->b_rank + max);
    status = status ? status : npu__check_number(d, a);
    status = status ? status : npu__check_same_dtype(d, b, a);
    if (!status && form->a_rank == 3) {
        status = npu__check_dim(d, b, 0, npu_deduce_spec(d, a)->dims[0], "batch of the first");
    }
    return status ? status : npu__matrix_product(d, a, b);
}

static const npu__product_form *npu__find_product(npu_kind kind)
{
    uint32_t i = 0;
    while (npu__product_forms[i].kind != kind && i + 1 < NPU__COUNT(npu__product_forms)) {
        i++;
    }
    return &npu__product_forms[i];
}

static npu_status npu__type_matmul(npu_deduce *d)
{
    return npu__fixed_product(d, npu__find_product(d->op->kind));
}

/* An addend is expanded to y, never the other way round. */
static npu_status npu__check_expands(npu_deduce *d, const char *name, const npu_spec *y)
{
    const npu_spec *c = npu_deduce_spec(d, name);
    npu_status status = npu__check_rank(d, name, 0, y->rank);
    for (uint32_t i = 0; i < c->rank && !status; i++) {
        int64_t expected = y->dims[y->rank - c->rank + i];
        status = c->dims[i] == 1 ? NPU_OK : npu__check_dim(d, name, i, expected, "dim of the product, or 1,");
    }
    return status;
}

static npu_status npu__type_addmm(npu_deduce *d)
{
    const npu__product_form *form = npu__find_product(d->op->kind);
    npu_status status = npu__fixed_product(d, form);
    status = status ? status : npu__check_same_dtype(d, "self", form->a);
    if (!status && d->op->kind == (uint32_t)NPU_ATEN_ADDBMM) { /* the batch is summed */
        npu_spec *y = &d->results[0];
        y->dims[0] = y->dims[1], y->dims[1] = y->dims[2], y->rank = 2;
        *y = npu_spec_tensor(npu__dtype_of(y), 2, y->dims);
    }
    return status ? status : npu__check_expands(d, "self", &d->results[0]);
}

/* A window that moves over up to three dims. */
typedef struct npu__window {
    uint32_t rank;
    bool ceil_mode;
    int64_t kernel[3], stride[3], padding[3], dilation[3], output_padding[3];
} npu__window;

/* The list's size in the schema: 2 for SymInt[2]; 0 for SymInt[]. */
static uint32_t npu__schema_list_size(const npu_deduce *d, const char *name)
{
    int i = npu_schema_find_arg(d->def->schema, name);
    return i < 0 || d->def->schema->args[i].type.list_size < 0
               ? 0
               : (uint32_t)d->def->schema->args[i].type.list_size;
}

/* A list of one number per dim, or of one for all; where it is absent or empty, out stays as it is. */
static npu_status npu__window_arg(npu_deduce *d, const char *name, uint32_t rank, int64_t min, int64_t *out)
{
    uint32_t len = npu_op_list_len(d->op, name);
    npu_status status = NPU_OK;
    if (len > 1 && len != rank) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s has %u numbers, expected %u", name,
                               (unsigned)len, (unsigned)rank);
    }
    if (len) {
        npu_op_ints(d->op, name, out, rank);
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        status = npu__check_attribute(d, name, out[i], min);
    }
    return status;
}

/* What the window covers of dim i: dilation (kernel - 1) + 1. */
static npu_status npu__window_reach(npu_deduce *d, const npu__window *w, uint32_t i, int64_t *reach)
{
    *reach = 0;
    if (w->kernel[i] < 1) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "kernel", "kernel dim %u is %lld, expected at least 1",
                               (unsigned)i, (long long)w->kernel[i]);
    }
    return npu__dim_mul(w->dilation[i], w->kernel[i] - 1, reach) && npu__dim_add(*reach, 1, reach)
               ? NPU_OK
               : npu__too_large(d, "dilation");
}

/* Positions of the window in dim i. With ceil_mode the last may stick out, but not start in the padding. */
static npu_status npu__window_steps(npu_deduce *d, const npu__window *w, uint32_t i, int64_t in, int64_t *out)
{
    int64_t reach, padded, room, stride = w->stride[i], padding = w->padding[i];
    npu_status status = npu__window_reach(d, w, i, &reach);
    if (status) {
        return status;
    }
    if (in < 0) {
        *out = stride == 1 && (reach - 1) / 2 == padding && reach % 2 == 1 ? in : NPU_DYNAMIC_DIM;
        return NPU_OK;
    }
    if (!npu__dim_mul(padding, 2, &padded) || !npu__dim_add(padded, in, &padded) ||
        !npu__dim_add(padded, stride, &room)) {
        return npu__too_large(d, "padding and stride");
    }
    room = padded - reach + (w->ceil_mode ? stride - 1 : 0);
    if (in == 0 || room < 0) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, NULL,
                               "spatial dim %u is %lld with padding, the window needs %lld", (unsigned)i,
                               (long long)padded, (long long)reach);
    }
    *out = room / stride + 1;
    if (w->ceil_mode && (*out - 1) * stride >= in + padding) {
        *out -= 1;
    }
    return NPU_OK;
}

/* The size whose window positions are `in`. */
static npu_status npu__window_spread(npu_deduce *d, const npu__window *w, uint32_t i, int64_t in,
                                     int64_t *out)
{
    int64_t reach, padded, size;
    npu_status status = npu__window_reach(d, w, i, &reach);
    if (status || in < 0) {
        *out = NPU_DYNAMIC_DIM;
        return status;
    }
    if (w->output_padding[i] >= w->stride[i] && w->output_padding[i] >= w->dilation[i]) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "output_padding",
                               "output_padding is %lld, expected less than stride or dilation",
                               (long long)w->output_padding[i]);
    }
    if (!npu__dim_mul(in ? in - 1 : 0, w->stride[i], &size) || !npu__dim_add(size, reach, &size) ||
        !npu__dim_add(size, w->output_padding[i], &size) || !npu__dim_mul(w->padding[i], 2, &padded)) {
        return npu__too_large(d, "stride and padding");
    }
    if (in == 0 || size <= padded) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, NULL, "spatial dim %u of the result is not at least 1",
                               (unsigned)i);
    }
    *out = size - padded;
    return NPU_OK;
}

/* Input channels against weight and groups; *out is the number of output channels. */
static npu_status npu__conv_channels(npu_deduce *d, bool is_transposed, int64_t channels, int64_t *out)
{
    const npu_spec *w = npu_deduce_spec(d, "weight");
    int64_t groups = npu_op_int(d->op, "groups", 1), filters = w->dims[0];
    npu_status status = npu__check_attribute(d, "groups", groups, 1);
    *out = is_transposed ? NPU_DYNAMIC_DIM : filters;
    if (status) {
        return status;
    }
    if ((channels > 0 && channels % groups) || (filters > 0 && filters % groups)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "groups",
                               "channels %lld and weight dim 0 = %lld, expected multiples of groups = %lld",
                               (long long)channels, (long long)filters, (long long)groups);
    }
    if (!is_transposed) {
        return npu__check_dim(d, "weight", 1, channels < 0 ? channels : channels / groups,
                              "channels / groups");
    }
    if (w->dims[1] >= 0 && !npu__dim_mul(w->dims[1], groups, out)) {
        return npu__too_large(d, "groups");
    }
    return npu__check_dim(d, "weight", 0, channels, "channels");
}

/* padding is a list, or the word 'valid' (none) or 'same' (the result keeps the spatial dims). */
static npu_status npu__conv_padding(npu_deduce *d, npu__window *w, bool *is_same)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, "padding");
    *is_same = npu_op_str_is(d->op, "padding", "same");
    if (!arg || arg->form != NPU_ARG_STR) {
        return npu__window_arg(d, "padding", w->rank, 0, w->padding);
    }
    if (!*is_same && !npu_op_str_is(d->op, "padding", "valid")) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "padding", "padding is neither 'same' nor 'valid'");
    }
    for (uint32_t i = 0; *is_same && i < w->rank; i++) {
        if (w->stride[i] != 1) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "padding",
                                   "padding 'same' expects stride 1, not %lld", (long long)w->stride[i]);
        }
    }
    return NPU_OK;
}

static npu_status npu__conv_window(npu_deduce *d, npu__window *w, uint32_t rank, bool *is_same)
{
    npu_status status;
    memset(w, 0, sizeof *w);
    w->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        w->kernel[i] = npu_deduce_spec(d, "weight")->dims[2 + i];
        w->stride[i] = w->dilation[i] = 1;
    }
    status = npu__window_arg(d, "stride", rank, 1, w->stride);
    status = status ? status : npu__window_arg(d, "dilation", rank, 1, w->dilation);
    status = status ? status : npu__window_arg(d, "output_padding", rank, 0, w->output_padding);
    return status ? status : npu__conv_padding(d, w, is_same);
}

/* Dtypes and ranks; *rank is the number of spatial dims, which the schema fixes or the weight tells. */
static npu_status npu__conv_operands(npu_deduce *d, uint32_t *rank)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "input"));
    uint32_t fixed = npu__schema_list_size(d, "stride"), weight_rank = npu_deduce_spec(d, "weight")->rank;
    npu_status status = npu__check_rank(d, "weight", fixed ? fixed + 2 : 3, fixed ? fixed + 2 : 5);
    *rank = weight_rank >= 3 ? weight_rank - 2 : 1;
    status = status ? status : npu__check_rank(d, "input", *rank + 1, *rank + 2);
    status = status
                 ? status
                 : npu__check_dtype(d, "input", t, npu__is_float(t) || t == NPU_I64, "floating point or i64");
    status = status ? status : npu__check_same_dtype(d, "weight", "input");
    return status ? status : npu__check_same_dtype(d, "bias", "input");
}

/* *y becomes the result of the convolution; *channels is where its channels are among the dims. */
static npu_status npu__conv_result(npu_deduce *d, npu_spec *y, uint32_t *channels)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    bool is_transposed = npu_op_int(d->op, "transposed", npu_op_has(d->op, "output_padding")) != 0,
         is_same = false;
    npu__window w;
    uint32_t rank, first;
    npu_status status = npu__conv_operands(d, &rank);
    *channels = 0;
    if (status) {
        return status;
    }
    first = x->rank - rank;
    *channels = first - 1;
    *y = npu_spec_tensor(npu__dtype_of(x), x->rank, x->dims);
    status = npu__conv_window(d, &w, rank, &is_same);
    status = status ? status : npu__conv_channels(d, is_transposed, x->dims[first - 1], &y->dims[first - 1]);
    for (uint32_t i = 0; i < rank && !status && !is_same; i++) {
        if (w.kernel[i] < 0) {
            y->dims[first + i] = NPU_DYNAMIC_DIM;
        } else {
            status = is_transposed ? npu__window_spread(d, &w, i, x->dims[first + i], &y->dims[first + i])
                                   : npu__window_steps(d, &w, i, x->dims[first + i], &y->dims[first + i]);
        }
    }
    return status;
}

static npu_status npu__type_conv(npu_deduce *d)
{
    npu_spec y;
    uint32_t channels;
    npu_status status = npu__conv_result(d, &y, &channels);
    status = status ? status : npu__check_vector(d, "bias", y.dims[channels], "output channels");
    return status ? status : npu_deduce_result(d, &y);
}

/* A result that the mask turns off is there, but empty. */
static npu_status npu__result_masked(npu_deduce *d, uint32_t i, npu_dtype dtype, uint32_t rank,
                                     const int64_t *dims)
{
    static const int64_t none = 0;
    bool is_wanted = npu_op_int_at(d->op, "output_mask", i) != 0;
    return is_wanted ? npu__result(d, dtype, rank, dims) : npu__result(d, dtype, 1, &none);
}

/* Unlike the convolution, its backward pass has a batch always. */
static npu_status npu__type_conv_backward(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input"), *w = npu_deduce_spec(d, "weight"),
                   *g = npu_deduce_spec(d, "grad_output");
    npu_spec y;
    uint32_t channels;
    npu_status status = npu__conv_result(d, &y, &channels);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(x));
    status = status ? status : npu__check_rank(d, "input", w->rank, w->rank);
    status = status ? status : npu__check_rank(d, "grad_output", x->rank, x->rank);
    status = status ? status : npu__check_same_dtype(d, "grad_output", "input");
    for (uint32_t i = 0; i < g->rank && !status; i++) {
        status = npu__check_dim(d, "grad_output", i, y.dims[i], "dim of the convolution");
    }
    status = status ? status : npu__result_masked(d, 0, npu__dtype_of(x), x->rank, x->dims);
    status = status ? status : npu__result_masked(d, 1, npu__dtype_of(x), w->rank, w->dims);
    return status ? status : npu__result_masked(d, 2, npu__dtype_of(x), 1, &y.dims[channels]);
}

static npu_status npu__pool_window(npu_deduce *d, npu__window *w, uint32_t rank)
{
    npu_status status;
    memset(w, 0, sizeof *w);
    w->rank = rank;
    w->ceil_mode = npu_op_int(d->op, "ceil_mode", 0) != 0;
    w->dilation[0] = w->dilation[1] = w->dilation[2] = 1;
    status = npu__window_arg(d, "kernel_size", rank, 1, w->kernel);
    memcpy(w->stride, w->kernel, sizeof w->stride);
    status = status ? status : npu__window_arg(d, "stride", rank, 1, w->stride);
    status = status ? status : npu__window_arg(d, "padding", rank, 0, w->padding);
    status = status ? status : npu__window_arg(d, "dilation", rank, 1, w->dilation);
    for (uint32_t i = 0; i < rank && !status; i++) {
        if (w->padding[i] > w->kernel[i] / 2) {
            status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "padding",
                                     "padding is %lld, expected at most kernel_size / 2 = %lld",
                                     (long long)w->padding[i], (long long)(w->kernel[i] / 2));
        }
    }
    return status;
}

/* A pool's schema with two results gives the i64 indices too. */
static npu_status npu__pool_results(npu_deduce *d, const npu_spec *x, const int64_t *dims)
{
    npu_status status = npu__result(d, npu__dtype_of(x), x->rank, dims);
    return status || d->def->schema->num_returns < 2 ? status : npu__result(d, NPU_I64, x->rank, dims);
}

/* Averages are the pools without dilation; they take i64 too. The batch alone may be empty. */
static npu_status npu__type_pool(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool is_average = npu_op_arg(d->op, "dilation") == NULL;
    uint32_t rank = npu__schema_list_size(d, "kernel_size");
    npu_dtype t = npu__dtype_of(x);
    npu_spec y = *x;
    npu__window w;
    npu_status status = npu__check_rank(d, "self", rank + 1, rank + 2);
    status = status ? status
                    : npu__check_dtype(d, "self", t, npu__is_float(t) || (is_average && t == NPU_I64),
                                       is_average ? "floating point or i64" : "floating point");
    status = status ? status : npu__pool_window(d, &w, rank);
    if (!status && npu_op_has(d->op, "divisor_override") && npu_op_int(d->op, "divisor_override", 0) == 0) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "divisor_override", "divisor_override is 0");
    }
    if (!status && x->dims[x->rank - rank - 1] == 0) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self has no channels");
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        status = npu__window_steps(d, &w, i, x->dims[x->rank - rank + i], &y.dims[x->rank - rank + i]);
    }
    return status ? status : npu__pool_results(d, x, y.dims);
}

static npu_status npu__type_adaptive_pool(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t rank = npu__schema_list_size(d, "output_size");
    npu_spec y = *x;
    npu_status status = npu__check_rank(d, "self", rank + 1, rank + 2);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__window_arg(d, "output_size", rank, 0, &y.dims[x->rank - rank]);
    for (uint32_t i = x->rank - rank; i < x->rank && !status; i++) {
        if (x->dims[i] == 0) {
            status = npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self dim %u is 0, expected at least 1",
                                     (unsigned)i);
        }
    }
    return status ? status : npu__pool_results(d, x, y.dims);
}

/* grad_output has the dims that the pool makes of self, which become those of the result again. */
static npu_status npu__type_pool_backward(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *g = npu_deduce_spec(d, "grad_output");
    bool is_adaptive = npu_op_arg(d->op, "kernel_size") == NULL;
    npu__window w;
    npu_status status = npu__check_rank(d, "self", 3, 4);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__check_same_dtype(d, "grad_output", "self");
    status = status ? status : npu__check_rank(d, "grad_output", x->rank, x->rank);
    status = status || is_adaptive ? status : npu__pool_window(d, &w, 2);
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        int64_t expected = i + 2 < x->rank ? x->dims[i] : g->dims[i];
        if (i + 2 >= x->rank && !is_adaptive) {
            status = npu__window_steps(d, &w, i + 2 - x->rank, x->dims[i], &expected);
        }
        status = status ? status : npu__check_dim(d, "grad_output", i, expected, "windows of self");
    }
    if (!status && npu_op_has(d->op, "indices")) {
        npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "indices"));
        status = npu__check_dtype(d, "indices", t, t == NPU_I64, "i64");
        status = status ? status : npu__check_same_dims(d, "indices", "grad_output");
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* Parameters are one per channel; where x is f16 or bf16 they may all be f32. */
static npu_status npu__batch_norm_parameters(npu_deduce *d, npu_dtype t, int64_t channels)
{
    static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
    npu_dtype expected = t;
    npu_status status = NPU_OK;
    for (uint32_t i = (uint32_t)NPU__COUNT(names); i-- > 0;) {
        const npu_spec *p = npu_deduce_spec(d, names[i]);
        expected = p && p->dtype == NPU_F32 && npu_dtype_bits(t) == 16 ? NPU_F32 : expected;
    }
    for (uint32_t i = 0; i < NPU__COUNT(names) && !status; i++) {
        const npu_spec *p = npu_deduce_spec(d, names[i]);
        status = npu__check_vector(d, names[i], channels, "channels");
        if (!status && p) {
            status = npu__check_dtype(d, names[i], npu__dtype_of(p), p->dtype == expected,
                                      npu_dtype_name(expected));
        }
    }
    return status;
}

/* What a schema returns besides the result: mean and reciprocal deviation, empty where they were given, then
   the new running statistics. */
static npu_status npu__batch_norm_statistics(npu_deduce *d, int64_t channels)
{
    const npu_spec *x = npu_deduce_spec(d, "input"), *weight = npu_deduce_spec(d, "weight"),
                   *running = npu_deduce_spec(d, "running_mean");
    const npu_spec *like = weight ? weight : running ? running : x;
    int64_t saved = npu_op_int(d->op, "training", 0) ? channels : 0;
    npu_status status = NPU_OK;
    for (uint32_t i = 1; i < d->def->schema->num_returns && !status; i++) {
        status = npu__result(d, npu__dtype_of(like), 1, i < 3 ? &saved : &channels);
    }
    return status;
}

/* ATen takes an empty 1-D input, which has no channels. */
static npu_status npu__type_batch_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    bool is_empty = x->rank == 1 && x->dims[0] == 0;
    npu_status status = npu__check_rank(d, "input", is_empty ? 1 : 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(x));
    if (!status && !npu_op_int(d->op, "training", 0) &&
        (!npu_op_has(d->op, "running_mean") || !npu_op_has(d->op, "running_var"))) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "running_mean",
                               "running_mean and running_var are missing, expected in evaluation mode");
    }
    status = status ? status : npu__batch_norm_parameters(d, npu__dtype_of(x), is_empty ? 0 : x->dims[1]);
    status = status ? status : npu__result_like(d, x, npu__dtype_of(x));
    return status ? status : npu__batch_norm_statistics(d, is_empty ? 0 : x->dims[1]);
}

/* use_input_stats stands for training. */
static npu_status npu__type_instance_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    npu_status status = npu__check_rank(d, "input", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(x));
    if (!status && !npu_op_int(d->op, "use_input_stats", 0) &&
        (!npu_op_has(d->op, "running_mean") || !npu_op_has(d->op, "running_var"))) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "running_mean",
                               "running_mean and running_var are missing, expected without use_input_stats");
    }
    status = status ? status : npu__batch_norm_parameters(d, npu__dtype_of(x), x->dims[1]);
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* weight and bias have the dims that are normalised. */
static npu_status npu__layer_norm_parameter(npu_deduce *d, const char *name, const npu_spec *x,
                                            uint32_t count)
{
    npu_status status = NPU_OK;
    if (!npu_deduce_spec(d, name)) {
        return NPU_OK;
    }
    status = npu__check_rank(d, name, count, count);
    for (uint32_t i = 0; i < count && !status; i++) {
        status = npu__check_dim(d, name, i, x->dims[x->rank - count + i], "normalised dim");
    }
    return status ? status : npu__check_same_dtype(d, name, "input");
}

/* native_layer_norm gives mean and reciprocal deviation too, the normalised dims kept as 1. */
static npu_status npu__type_layer_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    uint32_t count = npu_op_list_len(d->op, "normalized_shape"), num_results = d->def->schema->num_returns;
    npu_spec statistics = *x;
    npu_status status = npu__check_float(d, "input", npu__dtype_of(x));
    status = status ? status : npu__check_attribute(d, "normalized_shape", count, 1);
    status = status ? status : npu__check_rank(d, "input", count, NPU_MAX_RANK);
    for (uint32_t i = 0; i < count && !status; i++) {
        int64_t expected = npu_op_int_at(d->op, "normalized_shape", i);
        status = npu__check_dim(d, "input", x->rank - count + i, expected, "normalized_shape");
        statistics.dims[x->rank - count + i] = 1;
    }
    status = status ? status : npu__layer_norm_parameter(d, "weight", x, count);
    status = status ? status : npu__layer_norm_parameter(d, "bias", x, count);
    status = status ? status : npu__result_like(d, x, npu__dtype_of(x));
    for (uint32_t i = 1; i < num_results && !status; i++) {
        status = npu__result_like(d, &statistics, npu__dtype_of(x));
    }
    return status;
}

static npu_status npu__type_group_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    int64_t groups = npu_op_int(d->op, "num_groups", 1);
    npu_status status = npu__check_rank(d, "input", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(x));
    status = status ? status : npu__check_attribute(d, "num_groups", groups, 1);
    if (!status && x->dims[1] > 0 && x->dims[1] % groups) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "input",
                               "input dim 1 is %lld, expected a multiple of num_groups = %lld",
                               (long long)x->dims[1], (long long)groups);
    }
    status = status ? status : npu__check_vector(d, "weight", x->dims[1], "channels");
    status = status ? status : npu__check_vector(d, "bias", x->dims[1], "channels");
    status = status ? status : npu__check_same_dtype(d, "weight", "input");
    status = status ? status : npu__check_same_dtype(d, "bias", "input");
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* N, C, HxW and group are numbers that must fit input, whose dims but the first two are free. */
static npu_status npu__native_group_norm(npu_deduce *d, int64_t *n, int64_t *group)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    int64_t c = npu_op_int(d->op, "C", 1), size = npu_op_int(d->op, "HxW", 1), wanted;
    size_t len;
    npu_status status = npu__check_float(d, "input", npu__dtype_of(x));
    *n = npu_op_int(d->op, "N", 1);
    *group = npu_op_int(d->op, "group", 1);
    status = status ? status : npu__check_attribute(d, "N", *n, 0);
    status = status ? status : npu__check_attribute(d, "C", c, 0);
    status = status ? status : npu__check_attribute(d, "HxW", size, 0);
    status = status ? status : npu__check_attribute(d, "group", *group, 1);
    if (!status && (c % *group || !npu__dim_mul(*n, c, &wanted) || !npu__dim_mul(wanted, size, &wanted) ||
                    (!npu_spec_len(x, &len) && len != (uint64_t)wanted))) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "input",
                               "input is not N C HxW, or C no multiple of group = %lld", (long long)*group);
    }
    status = status ? status : npu__check_vector(d, "weight", c, "C");
    return status ? status : npu__check_same_dtype(d, "weight", "input");
}

static npu_status npu__type_native_group_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    int64_t dims[2];
    npu_status status = npu__native_group_norm(d, &dims[0], &dims[1]);
    status = status ? status : npu__check_vector(d, "bias", npu_op_int(d->op, "C", 1), "C");
    status = status ? status : npu__check_same_dtype(d, "bias", "input");
    status = status ? status : npu__result_like(d, x, npu__dtype_of(x));
    status = status ? status : npu__result(d, npu__dtype_of(x), 2, dims);
    return status ? status : npu__result(d, npu__dtype_of(x), 2, dims);
}

/* The normalised dims of input, and a mean for each row of them. */
static npu_status npu__layer_norm_rows(npu_deduce *d, const npu_spec *x, uint32_t count, int64_t *dims)
{
    npu_status status = npu__check_attribute(d, "normalized_shape", count, 1);
    status = status ? status : npu__check_rank(d, "input", count, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "mean", x->rank, x->rank);
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        bool is_row = i < x->rank - count;
        int64_t expected =
            is_row ? x->dims[i] : npu_op_int_at(d->op, "normalized_shape", i - (x->rank - count));
        status = npu__check_dim(d, "input", i, expected, "normalized_shape");
        status = status ? status : npu__check_dim(d, "mean", i, is_row ? expected : 1, "row");
        if (!is_row) {
            dims[i - (x->rank - count)] = expected;
        }
    }
    return status ? status : npu__layer_norm_parameter(d, "weight", x, count);
}

/* Gradients of layer and group norm. There is one mean per group of a sample, or per normalised row. */
static npu_status npu__type_norm_backward(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input");
    int64_t dims[NPU_MAX_RANK], n = 0, group = 0;
    uint32_t count = npu_op_list_len(d->op, "normalized_shape");
    bool is_layer = npu_op_arg(d->op, "normalized_shape") != NULL;
    npu_status status = npu__check_equal(d, "grad_out", "input");
    status = status ? status : npu__check_same_dims(d, "rstd", "mean");
    if (!status && is_layer) {
        status = npu__layer_norm_rows(d, x, count, dims);
    } else if (!status) {
        count = 1;
        dims[0] = npu_op_int(d->op, "C", 1);
        status = npu__native_group_norm(d, &n, &group);
        status = status ? status : npu__check_rank(d, "mean", 2, 2);
        status = status ? status : npu__check_dim(d, "mean", 0, n, "N");
        status = status ? status : npu__check_dim(d, "mean", 1, group, "group");
    }
    status = status ? status : npu__result_masked(d, 0, npu__dtype_of(x), x->rank, x->dims);
    status = status ? status : npu__result_masked(d, 1, npu__dtype_of(x), count, dims);
    return status ? status : npu__result_masked(d, 2, npu__dtype_of(x), count, dims);
}

/* ---- rules: contractions ---- */

/* The axes of operand k of einsum; the ellipsis takes the dims that letters leave. -1 = they do not fit. */
static int npu__einsum_operand(const npu_deduce *d, uint32_t k, uint8_t *axes, int *ellipsis)
{
    const npu_bound_arg *equation = npu_op_arg(d->op, "equation");
    int rank = d->op->in[k]->rank, letters = npu_einsum_term(equation, k, false, 0, axes);
    int all =
        letters < 0 ? -1 : npu_einsum_term(equation, k, false, rank > letters ? rank - letters : 0, axes);
    *ellipsis = rank - letters > *ellipsis ? rank - letters : *ellipsis;
    return all == rank ? rank : -1;
}

/* Without "->" the result has the ellipsis and all letters that occur once, in order. */
static int npu__einsum_implicit(const uint8_t *uses, int ellipsis, uint8_t *axes)
{
    int n = 0;
    for (int i = 0; i < ellipsis; i++) {
        axes[n++] = (uint8_t)(59 - ellipsis + i);
    }
    for (uint8_t i = 0; i < 52; i++) {
        if (uses[i] == 1 && n < NPU_MAX_RANK) {
            axes[n++] = i;
        }
    }
    return n;
}

/* Joins the dims of an operand with those that its axes have; an axis named twice is a diagonal. */
static npu_status npu__einsum_join(npu_deduce *d, const npu_spec *x, const uint8_t *axes, int64_t *dims)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t *dim = &dims[axes[i]];
        if (*dim == 1 || (*dim < 0 && x->dims[i] > 1)) {
            *dim = x->dims[i];
        } else if (x->dims[i] != 1 && !npu__dims_agree(*dim, x->dims[i])) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "tensors",
                                   "dim %u is %lld, expected %lld like others of its label", (unsigned)i,
                                   (long long)x->dims[i], (long long)*dim);
        }
    }
    return NPU_OK;
}

static npu_status npu__einsum_result(npu_deduce *d, const uint8_t *uses, const int64_t *axis_dims,
                                     int ellipsis)
{
    uint8_t axes[NPU_MAX_RANK], seen[NPU_EINSUM_AXES] = { 0 };
    int64_t dims[NPU_MAX_RANK];
    npu_dtype t = npu__dtype_of(d->op->in[0]);
    int n = npu_einsum_term(npu_op_arg(d->op, "equation"), 0, true, ellipsis, axes);
    n = n == -2 ? npu__einsum_implicit(uses, ellipsis, axes) : n;
    if (n < 0) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "equation",
                               "equation has a result that is malformed or too long");
    }
    for (int i = 0; i < n; i++) {
        if (!uses[axes[i]] || seen[axes[i]]++) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "equation",
                                   "a label of the result is not in a term, or twice");
        }
        dims[i] = axis_dims[axes[i]];
    }
    for (uint32_t i = 0; i < NPU_EINSUM_AXES && d->op->num_in == 1 && npu__is_integer(t); i++) {
        t = uses[i] && !seen[i] ? NPU_I64 : t; /* the sum of one tensor is that of aten.sum */
    }
    return npu__result(d, t, (uint32_t)n, dims);
}

static npu_status npu__type_einsum(npu_deduce *d)
{
    const npu_bound_arg *tensors = npu_op_arg(d->op, "tensors");
    uint8_t axes[NPU_MAX_RANK], uses[NPU_EINSUM_AXES] = { 0 };
    int64_t dims[NPU_EINSUM_AXES];
    int ellipsis = 0, beyond;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < NPU_EINSUM_AXES; i++) {
        dims[i] = 1;
    }
    beyond = npu_einsum_term(npu_op_arg(d->op, "equation"), tensors->count, false, 0, axes);
    if (beyond == -1) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "equation",
                               "equation is malformed or has a term that is too long");
    }
    if (!tensors->count || beyond != -2) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "tensors", "equation has not a term for each of %u tensors",
                               (unsigned)tensors->count);
    }
    for (uint32_t k = 0; k < tensors->count && !status; k++) {
        const npu_spec *x = d->op->in[k];
        int n = npu__einsum_operand(d, k, axes, &ellipsis);
        if (n < 0) {
            return npu_deduce_fail(d, NPU_ERR_RANK, "tensors", "term %u does not fit its tensor of %u dims",
                                   (unsigned)k, (unsigned)x->rank);
        }
        for (int i = 0; i < n; i++) {
            uses[axes[i]] = (uint8_t)(uses[axes[i]] < 2 ? uses[axes[i]] + 1 : 2);
        }
        status = npu__check_dtype(d, "tensors", npu__dtype_of(x), npu__is_number(npu__dtype_of(x)),
                                  "a number, not bool");
        status = status ? status
                        : npu__check_dtype(d, "tensors", npu__dtype_of(x), x->dtype == d->op->in[0]->dtype,
                                           npu_dtype_name(npu__dtype_of(d->op->in[0])));
        status = status ? status : npu__einsum_join(d, x, axes, dims);
    }
    return status ? status : npu__einsum_result(d, uses, dims, ellipsis);
}

/* The common dtype of two operands, whatever their dims. */
static npu_dtype npu__promote_pair(const npu_spec *a, const npu_spec *b, const npu_spec *c)
{
    npu__join j;
    memset(&j, 0, sizeof j);
    npu__join_type(&j, a);
    npu__join_type(&j, b);
    if (c) {
        npu__join_type(&j, c);
    }
    return npu__join_dtype(&j);
}

static npu_status npu__type_outer(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self"), *b = npu_deduce_spec(d, "vec2");
    int64_t dims[2];
    npu_dtype t = npu__promote_pair(a, b, NULL);
    npu_status status = npu__check_rank(d, "self", 1, 1);
    status = status ? status : npu__check_rank(d, "vec2", 1, 1);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
    dims[0] = a->dims[0], dims[1] = b->dims[0];
    return status ? status : npu__result(d, t, 2, dims);
}

static npu_status npu__type_addr(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "vec1"), *b = npu_deduce_spec(d, "vec2");
    int64_t dims[2];
    npu_dtype t = npu__promote_pair(a, b, npu_deduce_spec(d, "self"));
    npu_status status = npu__check_rank(d, "vec1", 1, 1);
    status = status ? status : npu__check_rank(d, "vec2", 1, 1);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
    status = status ? status : npu__check_alpha(d, t);
    dims[0] = a->dims[0], dims[1] = b->dims[0];
    status = status ? status : npu__result(d, t, 2, dims);
    return status ? status : npu__check_expands(d, "self", &d->results[0]);
}

/* With a 0-d operand this is a product of elements. */
static npu_status npu__type_inner(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self"), *b = npu_deduce_spec(d, "other");
    int64_t dims[2 * NPU_MAX_RANK];
    uint32_t rank = 0;
    npu_status status = NPU_OK;
    if (a->rank == 0 || b->rank == 0) {
        return npu__type_binary(d);
    }
    status = npu__check_number(d, "self");
    status = status ? status : npu__check_same_dtype(d, "other", "self");
    status =
        status ? status : npu__check_dim(d, "other", b->rank - 1u, a->dims[a->rank - 1], "last dim of self");
    status = status ? status : npu__check_result_rank(d, a->rank + b->rank - 2u);
    for (uint32_t i = 0; i + 1 < a->rank; i++) {
        dims[rank++] = a->dims[i];
    }
    for (uint32_t i = 0; i + 1 < b->rank; i++) {
        dims[rank++] = b->dims[i];
    }
    return status ? status : npu__result(d, npu__dtype_of(a), rank, dims);
}

/* Appends the dims of x that the mask does not name. */
static void npu__free_dims(const npu_spec *x, uint32_t mask, int64_t *dims, uint32_t *rank)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1u)) {
            dims[(*rank)++] = x->dims[i];
        }
    }
}

static npu_status npu__type_tensordot(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self"), *b = npu_deduce_spec(d, "other");
    uint32_t a_mask, b_mask, rank = 0, count = npu_op_list_len(d->op, "dims_self"), i_axis, j_axis;
    int64_t dims[2 * NPU_MAX_RANK];
    npu_status status = npu__check_number(d, "self");
    status = status ? status : npu__check_same_dtype(d, "other", "self");
    status = status ? status : npu__axes(d, "dims_self", a->rank, &a_mask);
    status = status ? status : npu__axes(d, "dims_other", b->rank, &b_mask);
    if (!status && count != npu_op_list_len(d->op, "dims_other")) {
        status =
            npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "dims_other", "dims_self and dims_other differ in length");
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        status = npu__axis(d, "dims_self", npu_op_int_at(d->op, "dims_self", i), a->rank, &i_axis);
        status = status ? status
                        : npu__axis(d, "dims_other", npu_op_int_at(d->op, "dims_other", i), b->rank, &j_axis);
        if (!status && a->dims[i_axis] != 1 && b->dims[j_axis] != 1) {
            status = npu__check_dim(d, "other", j_axis, a->dims[i_axis], "dim of self");
        }
    }
    if (status) {
        return status;
    }
    npu__free_dims(a, a_mask, dims, &rank);
    npu__free_dims(b, b_mask, dims, &rank);
    status = npu__check_result_rank(d, rank);
    return status ? status : npu__result(d, npu__dtype_of(a), rank, dims);
}

static npu_status npu__type_kron(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self"), *b = npu_deduce_spec(d, "other");
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    npu_dtype t = npu__promote_pair(a, b, NULL);
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
    for (uint32_t i = 0; i < rank && !status; i++) {
        int64_t x = i + a->rank < rank ? 1 : a->dims[i + a->rank - rank];
        int64_t y = i + b->rank < rank ? 1 : b->dims[i + b->rank - rank];
        if (x < 0 || y < 0) {
            dims[i] = NPU_DYNAMIC_DIM;
        } else if (!npu__dim_mul(x, y, &dims[i])) {
            status = npu__too_large(d, "other");
        }
    }
    return status ? status : npu__result(d, t, rank, dims);
}

static npu_status npu__type_bilinear(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "input1"), *b = npu_deduce_spec(d, "input2"),
                   *w = npu_deduce_spec(d, "weight");
    npu_spec y = *a;
    npu_status status = npu__check_rank(d, "weight", 3, 3);
    status = status ? status : npu__check_rank(d, "input1", 1, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "input2", a->rank, a->rank);
    status = status ? status : npu__check_number(d, "input1");
    status = status ? status : npu__check_same_dtype(d, "input2", "input1");
    status = status ? status : npu__check_same_dtype(d, "weight", "input1");
    status = status ? status : npu__check_same_dtype(d, "bias", "input1");
    for (uint32_t i = 0; i + 1 < a->rank && !status; i++) {
        status = npu__check_dim(d, "input2", i, a->dims[i], "dim of input1");
    }
    status = status ? status : npu__check_dim(d, "weight", 1, a->dims[a->rank - 1], "last dim of input1");
    status = status ? status : npu__check_dim(d, "weight", 2, b->dims[a->rank - 1], "last dim of input2");
    status = status ? status : npu__check_vector(d, "bias", w->dims[0], "weight dim 0");
    y.dims[(y.rank ? y.rank : 1u) - 1] = w->dims[0];
    return status ? status : npu__result_like(d, &y, npu__dtype_of(a));
}

static npu_status npu__type_vecdot(npu_deduce *d)
{
    npu__join j;
    uint32_t axis;
    npu_dtype t;
    npu_status status = npu__check_float(d, "x", npu__dtype_of(npu_deduce_spec(d, "x")));
    status = status ? status : npu__check_same_dtype(d, "y", "x");
    status = status ? status : npu__join_args(d, &j, "x", "y", NULL, &t);
    status = status ? status : npu__axis_arg(d, "dim", j.rank, &axis);
    if (!status && j.rank == 0) {
        status = npu_deduce_fail(d, NPU_ERR_RANK, "x", "x and y have no dims, expected at least 1");
    }
    if (status) {
        return status;
    }
    j.rank--;
    memmove(&j.dims[axis], &j.dims[axis + 1], (j.rank - axis) * sizeof j.dims[0]);
    return npu__result(d, t, j.rank, j.dims);
}

/* ---- rules: linear algebra ---- */

/* What is factored is f32 or f64. */
static npu_status npu__check_factored(npu_deduce *d, const char *name)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, name));
    return npu__check_dtype(d, name, t, t == NPU_F32 || t == NPU_F64, "f32 or f64");
}

/* A batch of square matrices. */
static npu_status npu__check_square(npu_deduce *d, const char *name)
{
    const npu_spec *a = npu_deduce_spec(d, name);
    npu_status status = npu__check_rank(d, name, 2, NPU_MAX_RANK);
    return status ? status : npu__check_dim(d, name, a->rank - 1u, a->dims[a->rank - 2], "number of rows");
}

/* Operand 0 is a batch of square matrices that are factored. */
static npu_status npu__check_first_square(npu_deduce *d)
{
    npu_status status = npu__check_square(d, d->op->args[0].name);
    return status ? status : npu__check_factored(d, d->op->args[0].name);
}

/* As many numbers for each matrix as the schema has results. */
static npu_status npu__type_determinant(npu_deduce *d)
{
    const npu_spec *a = d->op->in[0];
    npu_status status = npu__check_first_square(d);
    for (uint32_t i = 0; i < d->def->schema->num_returns && !status; i++) {
        status = npu__result(d, npu__dtype_of(a), a->rank - 2u, a->dims);
    }
    return status;
}

static npu_status npu__type_factor(npu_deduce *d)
{
    const npu_spec *a = d->op->in[0];
    npu_status status = npu__check_first_square(d);
    status = status ? status : npu__result_like(d, a, npu__dtype_of(a));
    return status || d->def->schema->num_returns < 2 ? status
                                                     : npu__result(d, NPU_I32, a->rank - 2u, a->dims);
}

/* X of A X = B, or of X A = B. The last `inner` dims of B, 1 or 2, are a vector or a matrix; those before
   broadcast with the batch of A. */
static npu_status npu__result_solved(npu_deduce *d, const char *a_name, const char *b_name, uint32_t inner,
                                     bool is_left)
{
    npu_spec a = *npu_deduce_spec(d, a_name), b = *npu_deduce_spec(d, b_name);
    npu__join j;
    npu_status status =
        npu__check_dim(d, b_name, b.rank - (is_left ? inner : 1u), a.dims[a.rank - 1], "number of rows");
    memset(&j, 0, sizeof j);
    a.rank = (uint8_t)(a.rank - 2), b.rank = (uint8_t)(b.rank - inner);
    status = status ? status : npu__join_dims(d, &j, a_name, &a);
    status = status ? status : npu__join_dims(d, &j, b_name, &b);
    memcpy(&j.dims[j.rank], &b.dims[b.rank], inner * sizeof b.dims[0]);
    return status ? status : npu__result(d, npu__dtype_of(&a), j.rank + inner, j.dims);
}

/* B is one vector, or one for each matrix, where its dims are those of A without the last. */
static npu_status npu__type_solve(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "A"), *b = npu_deduce_spec(d, "B");
    bool is_vector = b->rank == 1, is_left = npu_op_int(d->op, "left", 1) != 0;
    npu_status status = npu__check_first_square(d);
    status = status ? status : npu__check_same_dtype(d, "B", "A");
    status = status ? status : npu__check_rank(d, "B", 1, NPU_MAX_RANK);
    if (status) {
        return status;
    }
    is_vector =
        is_vector || (b->rank + 1 == a->rank && memcmp(b->dims, a->dims, b->rank * sizeof b->dims[0]) == 0);
    if (is_vector && !is_left) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "left", "left is false, expected matrices then");
    }
    return npu__result_solved(d, "A", "B", is_vector ? 1 : 2, is_left);
}

/* The matrix comes as a triangle. */
static npu_status npu__type_solve_factored(npu_deduce *d)
{
    bool is_cholesky = d->op->kind == NPU_ATEN_CHOLESKY_SOLVE;
    const char *a = is_cholesky ? "input2" : "self", *b = is_cholesky ? "self" : "B";
    npu_status status = npu__check_square(d, a);
    status = status ? status : npu__check_factored(d, a);
    status = status ? status : npu__check_same_dtype(d, b, a);
    status = status ? status : npu__check_rank(d, b, 2, NPU_MAX_RANK);
    return status ? status : npu__result_solved(d, a, b, 2, npu_op_int(d->op, "left", 1) != 0);
}

/* The product of some dims is *size, or becomes that where it is not known yet. */
static npu_status npu__check_product(npu_deduce *d, const char *name, const int64_t *dims, uint32_t rank,
                                     int64_t *size)
{
    npu__extent e = { 1, 0, 0 };
    int64_t product;
    for (uint32_t i = 0; i < rank; i++) {
        if (!npu__extent_add(&e, dims[i])) {
            return npu__too_large(d, name);
        }
    }
    product = npu__extent_dim(&e);
    if (!npu__dims_agree(product, *size)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s has dims of product %lld, expected %lld", name,
                               (long long)product, (long long)*size);
    }
    *size = *size < 0 ? product : *size;
    return NPU_OK;
}

static npu_status npu__type_tensorinv(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self");
    int64_t ind = npu_op_int(d->op, "ind", 2), size = NPU_DYNAMIC_DIM;
    npu_spec y = *a;
    npu_status status = npu__check_factored(d, "self");
    if (!status && (ind < 1 || ind > a->rank)) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "ind", "ind is %lld, expected 1 to %u",
                                 (long long)ind, (unsigned)a->rank);
    }
    status = status ? status : npu__check_product(d, "self", a->dims, (uint32_t)ind, &size);
    status = status ? status
                    : npu__check_product(d, "self", a->dims + ind, a->rank - (uint32_t)ind, &size);
    for (uint32_t i = 0; i < a->rank && !status; i++) {
        y.dims[i] = a->dims[(i + (uint32_t)ind) % a->rank];
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(a));
}

/* The dims of self that are listed move to the end; then its first dims are rows, and the others those of
   the result. */
static npu_status npu__type_tensorsolve(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self"), *b = npu_deduce_spec(d, "other");
    int64_t dims[NPU_MAX_RANK], size = NPU_DYNAMIC_DIM;
    uint32_t mask, rank = 0, axis, kept = a->rank - (uint32_t)b->rank;
    npu_status status = npu__check_factored(d, "self");
    status = status ? status : npu__check_same_dtype(d, "other", "self");
    status = status ? status : npu__check_rank(d, "other", 0, a->rank);
    status = status ? status : npu__axes(d, "dims", a->rank, &mask);
    if (status) {
        return status;
    }
    npu__free_dims(a, mask, dims, &rank);
    for (uint32_t i = 0; rank < a->rank; i++) {
        npu__axis(d, "dims", npu_op_int_at(d->op, "dims", i), a->rank, &axis);
        dims[rank++] = a->dims[axis];
    }
    status = npu__check_product(d, "other", b->dims, b->rank, &size);
    status = status ? status : npu__check_product(d, "self", dims, b->rank, &size);
    status = status ? status : npu__check_product(d, "self", dims + b->rank, kept, &size);
    return status ? status : npu__result(d, npu__dtype_of(a), kept, dims + b->rank);
}

/* A negative power is one of the inverse. */
static npu_status npu__type_matrix_power(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self");
    npu_status status = npu__check_square(d, "self");
    status = status ? status : npu__check_number(d, "self");
    if (!status && npu_op_int(d->op, "n", 0) < 0) {
        status = npu__check_factored(d, "self");
    }
    return status ? status : npu__result_like(d, a, npu__dtype_of(a));
}

/* Matrix i of a chain: the first may be a row and the last a column, of one dim each. */
static npu_status npu__check_chain(npu_deduce *d, const npu_bound_arg *list, uint32_t i)
{
    const npu_spec *x = d->op->in[list->first + i], *first = d->op->in[list->first], *last;
    bool is_end = i == 0 || i + 1 == list->count;
    if (x->rank != 2 && !(is_end && x->rank == 1)) {
        return npu_deduce_fail(d, NPU_ERR_RANK, list->name, "%s %u has %u dims, expected 2%s", list->name,
                               (unsigned)i, (unsigned)x->rank, is_end ? " or 1" : "");
    }
    if (x->dtype != first->dtype || !npu__is_number(npu__dtype_of(x))) {
        return npu_deduce_fail(d, NPU_ERR_DTYPE, list->name, "%s %u is %s, expected numbers like the first",
                               list->name, (unsigned)i, npu_dtype_name(npu__dtype_of(x)));
    }
    if (i == 0) {
        return NPU_OK;
    }
    last = d->op->in[list->first + i - 1];
    return npu__dims_agree(x->dims[0], last->dims[last->rank - 1])
               ? NPU_OK
               : npu_deduce_fail(d, NPU_ERR_SHAPE, list->name, "%s %u has %lld rows, expected %lld",
                                 list->name, (unsigned)i, (long long)x->dims[0],
                                 (long long)last->dims[last->rank - 1]);
}

static npu_status npu__type_multi_dot(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    const npu_spec *first, *last;
    int64_t dims[2];
    uint32_t rank = 0;
    npu_status status = NPU_OK;
    if (list->count < 2) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "tensors", "%u tensors, expected at least 2",
                               (unsigned)list->count);
    }
    for (uint32_t i = 0; i < list->count && !status; i++) {
        status = npu__check_chain(d, list, i);
    }
    first = d->op->in[list->first], last = d->op->in[list->first + list->count - 1];
    if (first->rank == 2) {
        dims[rank++] = first->dims[0];
    }
    if (last->rank == 2) {
        dims[rank++] = last->dims[1];
    }
    return status ? status : npu__result(d, npu__dtype_of(first), rank, dims);
}

static npu_status npu__type_cross(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "self");
    npu__join j;
    npu_dtype t;
    uint32_t axis = 0;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "other", a->rank, a->rank);
    status = status ? status : npu__check_number(d, "self");
    status = status ? status : npu__check_same_dtype(d, "other", "self");
    if (!status && npu_op_has(d->op, "dim")) {
        status = npu__axis_arg(d, "dim", a->rank, &axis);
    } else {
        while (axis + 1 < a->rank && a->dims[axis] != 3) {
            axis++;
        }
    }
    status = status ? status : npu__check_dim(d, "self", axis, 3, "size of a vector");
    status = status ? status : npu__check_dim(d, "other", axis, 3, "size of a vector");
    status = status ? status : npu__join_args(d, &j, "self", "other", NULL, &t);
    return status ? status : npu__result(d, t, j.rank, j.dims);
}

/* ---- rules: recurrent layers, distances ---- */

/* Sizes that the operands of recurrent layers share. With a projection the state has fewer numbers than the
   cell. */
typedef struct npu__rnn_sizes {
    bool is_lstm;
    int64_t gates, cell, state, cells; /* gates per number of the cell; cells: layers times directions */
    uint32_t first, per_cell;          /* operands: the first weight, and how many there are for each cell */
} npu__rnn_sizes;

static npu__rnn_sizes npu__rnn_sizes_of(const npu_deduce *d)
{
    npu_kind kind = d->op->kind;
    npu__rnn_sizes s;
    const npu_spec *h = d->op->in[1];
    s.is_lstm = kind == NPU_ATEN_LSTM || kind == NPU_ATEN_LSTM_CELL;
    s.gates = s.is_lstm ? 4 : kind == NPU_ATEN_GRU || kind == NPU_ATEN_GRU_CELL ? 3 : 1;
    s.state = h->dims[h->rank - 1];
    s.cell = s.is_lstm ? d->op->in[2]->dims[h->rank - 1] : s.state;
    s.cells = npu_op_int(d->op, "num_layers", 1) * (npu_op_int(d->op, "bidirectional", 0) ? 2 : 1);
    s.first = s.is_lstm ? 3 : 2;
    s.per_cell = (npu_op_int(d->op, "has_biases", 1) ? 4u : 2u) + (s.cell != s.state);
    return s;
}

/* Operand i, if it is there, has the dtype of the first and the dims given. */
static npu_status npu__check_operand(npu_deduce *d, uint32_t i, const char *name, uint32_t rank, int64_t dim0,
                                     int64_t dim1, int64_t dim2)
{
    const npu_spec *x = d->op->in[i];
    int64_t dims[3];
    dims[0] = dim0, dims[1] = dim1, dims[2] = dim2;
    if (!x) {
        return NPU_OK;
    }
    if (x->dtype != d->op->in[0]->dtype) {
        return npu_deduce_fail(d, NPU_ERR_DTYPE, name, "operand %u is %s, expected %s like input",
                               (unsigned)i, npu_dtype_name(npu__dtype_of(x)),
                               npu_dtype_name(npu__dtype_of(d->op->in[0])));
    }
    for (uint32_t k = 0; k < rank && x->rank == rank; k++) {
        if (!npu__dims_agree(x->dims[k], dims[k])) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "dim %u of operand %u is %lld, expected %lld",
                                   (unsigned)k, (unsigned)i, (long long)x->dims[k], (long long)dims[k]);
        }
    }
    return x->rank == rank ? NPU_OK
                           : npu_deduce_fail(d, NPU_ERR_RANK, name, "operand %u has %u dims, expected %u",
                                             (unsigned)i, (unsigned)x->rank, (unsigned)rank);
}

/* The weights of one cell: of the input, of the state, their biases, the projection. */
static npu_status npu__check_rnn_cell(npu_deduce *d, const npu__rnn_sizes *s, uint32_t first, int64_t input)
{
    int64_t rows = s->cell;
    uint32_t has_projection = s->cell != s->state, biases = s->per_cell - 2 - has_projection;
    npu_status status;
    if (rows >= 0 && !npu__dim_mul(rows, s->gates, &rows)) {
        return npu__too_large(d, "hx");
    }
    status = npu__check_operand(d, first, "w_ih", 2, rows, input, 0);
    status = status ? status : npu__check_operand(d, first + 1, "w_hh", 2, rows, s->state, 0);
    for (uint32_t i = 0; i < biases && !status; i++) {
        status = npu__check_operand(d, first + 2 + i, "bias", 1, rows, 0, 0);
    }
    return status || !has_projection
               ? status
               : npu__check_operand(d, first + s->per_cell - 1, "w_hr", 2, s->state, s->cell, 0);
}

/* hx is there, once or, for LSTM, twice, with `rank` dims. */
static npu_status npu__check_rnn_states(npu_deduce *d, uint32_t rank)
{
    const npu_bound_arg *hx = npu_op_arg(d->op, "hx");
    bool is_list = hx->form == NPU_ARG_TENSORS;
    npu_status status = npu__check_rank(d, "input", rank, rank);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(d->op->in[0]));
    if (!status && is_list && hx->count != 2) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "hx", "hx has %u tensors, expected 2", (unsigned)hx->count);
    }
    for (uint32_t i = 0; i < (is_list ? 2u : 1u) && !status; i++) {
        const npu_spec *x = d->op->in[hx->first + i];
        if (!x || x->rank != rank) {
            status = npu_deduce_fail(d, NPU_ERR_RANK, "hx", "hx has not %u dims", (unsigned)rank);
        }
    }
    return status;
}

/* Input [steps, batch, n], or with batch_first [batch, steps, n]; states [cells, batch, n]. */
static npu_status npu__type_rnn(npu_deduce *d)
{
    npu_spec y = *d->op->in[0];
    int64_t layers = npu_op_int(d->op, "num_layers", 1),
            directions = npu_op_int(d->op, "bidirectional", 0) ? 2 : 1;
    bool is_batch_first = npu_op_int(d->op, "batch_first", 0) != 0;
    int64_t batch = y.dims[is_batch_first ? 0 : 1], width;
    npu__rnn_sizes s;
    npu_status status = npu__check_attribute(d, "num_layers", layers, 1);
    status = status ? status : npu__check_rnn_states(d, 3);
    if (!status && npu_op_int(d->op, "train", 0) && npu_op_float(d->op, "dropout", 0) != 0 && layers > 1) {
        return npu_deduce_fail(d, NPU_ERR_UNSUPPORTED, "dropout",
                               "dropout is set for training, only the evaluation mode is there");
    }
    if (status || layers > NPU__MAX_RESULTS) {
        return status ? status : npu__too_large(d, "num_layers");
    }
    s = npu__rnn_sizes_of(d);
    width = s.state >= 0 ? s.state * directions : NPU_DYNAMIC_DIM;
    if (npu_op_arg(d->op, "params")->count != (uint64_t)s.cells * s.per_cell) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "params",
                               "params has %u tensors, expected %u for each of %lld cells",
                               (unsigned)npu_op_arg(d->op, "params")->count, (unsigned)s.per_cell,
                               (long long)s.cells);
    }
    status = npu__check_operand(d, 1, "hx", 3, s.cells, batch, s.state);
    status = status || !s.is_lstm ? status : npu__check_operand(d, 2, "hx", 3, s.cells, batch, s.cell);
    for (uint32_t i = 0; i < (uint32_t)s.cells && !status; i++) {
        status = npu__check_rnn_cell(d, &s, s.first + i * s.per_cell,
                                     i < (uint32_t)directions ? y.dims[2] : width);
    }
    y.dims[2] = width;
    status = status ? status : npu__result_like(d, &y, npu__dtype_of(&y));
    status = status ? status : npu__result_like(d, d->op->in[1], npu__dtype_of(&y));
    return status || !s.is_lstm ? status : npu__result_like(d, d->op->in[2], npu__dtype_of(&y));
}

static npu_status npu__type_rnn_cell(npu_deduce *d)
{
    const npu_spec *x = d->op->in[0];
    npu__rnn_sizes s;
    npu_status status = npu__check_rnn_states(d, 2);
    if (status) {
        return status;
    }
    s = npu__rnn_sizes_of(d);
    status = npu__check_operand(d, 1, "hx", 2, x->dims[0], s.state, 0);
    status = status || !s.is_lstm ? status : npu__check_operand(d, 2, "hx", 2, x->dims[0], s.state, 0);
    status = status ? status : npu__check_rnn_cell(d, &s, s.first, x->dims[1]);
    status = status ? status : npu__result_like(d, d->op->in[1], npu__dtype_of(x));
    return status || !s.is_lstm ? status : npu__result_like(d, d->op->in[2], npu__dtype_of(x));
}

/* x1 [..,P,M], x2 [..,R,M] -> [..,P,R] */
static npu_status npu__type_cdist(npu_deduce *d)
{
    npu_spec a = *npu_deduce_spec(d, "x1"), b = *npu_deduce_spec(d, "x2");
    double p = npu_op_float(d->op, "p", 2);
    int64_t mode = npu_op_int(d->op, "compute_mode", 0);
    npu__join j;
    npu_status status = npu__check_rank(d, "x1", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "x2", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "x1", npu__dtype_of(&a));
    status = status ? status : npu__check_same_dtype(d, "x2", "x1");
    status = status ? status : npu__check_dim(d, "x2", b.rank - 1u, a.dims[a.rank - 1], "last dim of x1");
    if (!status && (!(p >= 0) || mode < 0 || mode > 2)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "p",
                               "p is %g, expected at least 0; compute_mode is 0 to 2", p);
    }
    memset(&j, 0, sizeof j);
    a.rank = (uint8_t)(a.rank - 2), b.rank = (uint8_t)(b.rank - 2);
    status = status ? status : npu__join_dims(d, &j, "x1", &a);
    status = status ? status : npu__join_dims(d, &j, "x2", &b);
    j.dims[j.rank] = a.dims[a.rank], j.dims[j.rank + 1] = b.dims[b.rank];
    return status ? status : npu__result(d, npu__dtype_of(&a), j.rank + 2, j.dims);
}

/* ---- rules: attention and lookup ---- */

/* The mask broadcasts to the scores and never enlarges them. */
static npu_status npu__attention_mask(npu_deduce *d, const npu_spec *scores)
{
    const npu_spec *mask = npu_deduce_spec(d, "attn_mask");
    npu__join j;
    npu_status status;
    if (!mask) {
        return NPU_OK;
    }
    if (npu_op_int(d->op, "is_causal", 0)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "attn_mask",
                               "attn_mask is given, expected none with is_causal");
    }
    status = npu__check_dtype(d, "attn_mask", npu__dtype_of(mask),
                              mask->dtype == NPU_BOOL || mask->dtype == scores->dtype,
                              "bool or the dtype of query");
    memset(&j, 0, sizeof j);
    j.rank = scores->rank;
    memcpy(j.dims, scores->dims, sizeof j.dims);
    status = status ? status : npu__join_dims(d, &j, "attn_mask", mask);
    if (!status && (j.rank != scores->rank || memcmp(j.dims, scores->dims, j.rank * sizeof j.dims[0]) != 0)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "attn_mask", "attn_mask is larger than the scores");
    }
    return status;
}

/* Joins the batch dims of key or value; with enable_gqa one of their heads serves several of query. */
static npu_status npu__attention_batch(npu_deduce *d, npu__join *batch, const char *name)
{
    const npu_spec *q = npu_deduce_spec(d, "query");
    npu_spec x = *npu_deduce_spec(d, name);
    if (npu_op_int(d->op, "enable_gqa", 0)) {
        int64_t heads = x.rank > 2 ? x.dims[x.rank - 3] : 0, wanted = q->rank > 2 ? q->dims[q->rank - 3] : 0;
        if (heads == 0 || (heads > 0 && wanted > 0 && wanted % heads)) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, name,
                                   "%s has %lld heads, expected a divisor of query's %lld", name,
                                   (long long)heads, (long long)wanted);
        }
        x.dims[x.rank - 3] = wanted;
    }
    x.rank = (uint8_t)(x.rank - 2);
    return npu__join_dims(d, batch, name, &x);
}

static npu_status npu__attention_operands(npu_deduce *d)
{
    npu_status status = npu__check_rank(d, "query", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "key", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "value", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "query", npu__dtype_of(npu_deduce_spec(d, "query")));
    status = status ? status : npu__check_same_dtype(d, "key", "query");
    status = status ? status : npu__check_same_dtype(d, "value", "query");
    if (!status && !(npu_op_float(d->op, "dropout_p", 0.0) == 0.0)) {
        status = npu_deduce_fail(d, NPU_ERR_UNSUPPORTED, "dropout_p",
                                 "dropout_p is not 0, only the evaluation mode is there");
    }
    return status;
}

static npu_status npu__type_attention(npu_deduce *d)
{
    const npu_spec *q = npu_deduce_spec(d, "query"), *k = npu_deduce_spec(d, "key"),
                   *v = npu_deduce_spec(d, "value");
    npu__join j;
    npu_spec scores;
    npu_status status = npu__attention_operands(d);
    if (status) {
        return status;
    }
    memset(&j, 0, sizeof j);
    j.rank = q->rank - 2u;
    memcpy(j.dims, q->dims, j.rank * sizeof j.dims[0]);
    status = npu__check_dim(d, "key", k->rank - 1u, q->dims[q->rank - 1], "last dim of query");
    status =
        status ? status : npu__check_dim(d, "value", v->rank - 2u, k->dims[k->rank - 2], "length of key");
    status = status ? status : npu__attention_batch(d, &j, "key");
    if (status) {
        return status;
    }
    scores = npu_spec_tensor(npu__dtype_of(q), j.rank + 2, j.dims);
    scores.dims[j.rank] = q->dims[q->rank - 2];
    scores.dims[j.rank + 1] = k->dims[k->rank - 2];
    status = npu__attention_mask(d, &scores);
    status = status ? status : npu__attention_batch(d, &j, "value");
    scores.rank = (uint8_t)(j.rank + 2);
    memcpy(scores.dims, j.dims, j.rank * sizeof j.dims[0]);
    scores.dims[j.rank] = q->dims[q->rank - 2];
    scores.dims[j.rank + 1] = v->dims[v->rank - 1];
    return status ? status : npu_deduce_result(d, &scores);
}

static npu_status npu__type_embedding(npu_deduce *d)
{
    const npu_spec *w = npu_deduce_spec(d, "weight"), *x = npu_deduce_spec(d, "indices");
    npu_status status = npu__check_rank(d, "weight", 2, 2);
    npu_spec y = *x;
    status = status ? status
                    : npu__check_dtype(d, "indices", npu__dtype_of(x),
                                       x->dtype == NPU_I32 || x->dtype == NPU_I64, "i32 or i64");
    status = status ? status : npu__check_result_rank(d, x->rank + 1u);
    if (status) {
        return status;
    }
    y.dims[x->rank] = w->dims[1];
    return npu__result(d, npu__dtype_of(w), x->rank + 1u, y.dims);
}

/* Off the axis index must fit into self. An empty index may be anything, as in ATen. */
static npu_status npu__type_gather(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "index");
    size_t len;
    uint32_t axis;
    bool is_empty = !npu_spec_len(index, &len) && len == 0;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    if (status || is_empty) {
        return status ? status : npu__result_like(d, index, npu__dtype_of(x));
    }
    status = npu__check_dtype(d, "index", npu__dtype_of(index), index->dtype == NPU_I64, "i64");
    if (!status && x->rank + (x->rank == 0) != index->rank + (index->rank == 0)) {
        status = npu__check_rank(d, "index", x->rank, x->rank);
    }
    for (uint32_t i = 0; i < x->rank && i < index->rank && !status; i++) {
        if (i != axis && index->dims[i] > x->dims[i] && x->dims[i] >= 0) {
            status = npu_deduce_fail(d, NPU_ERR_SHAPE, "index", "index dim %u is %lld, expected at most %lld",
                                     (unsigned)i, (long long)index->dims[i], (long long)x->dims[i]);
        }
    }
    return status ? status : npu__result_like(d, index, npu__dtype_of(x));
}

/* ---- rules: shape ---- */

/* Sizes of a reshape with those that stand for an operand's symbols taken out of both products. */
typedef struct npu__reshape {
    uint32_t rank, inferred; /* inferred = index of the -1, rank = there is none */
    int64_t dims[NPU_MAX_RANK];
    npu__extent have, wanted;
} npu__reshape;

/* True when the operand has this symbol in a dim that no earlier size has taken. */
static bool npu__take_symbol(const npu_spec *x, int64_t symbol, uint32_t *taken)
{
    for (uint32_t i = 0; symbol < NPU_DYNAMIC_DIM && i < x->rank; i++) {
        if (x->dims[i] == symbol && !(*taken >> i & 1u)) {
            *taken |= 1u << i;
            return true;
        }
    }
    return false;
}

/* INT64_MIN is a size that a value feeds: it is not known here. */
static npu_status npu__reshape_size(npu_deduce *d, npu__reshape *r, const char *name, const npu_spec *x,
                                    uint32_t i, uint32_t *taken)
{
    int64_t size = r->dims[i];
    if (size == -1) {
        if (r->inferred != r->rank) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s has more than one -1", name);
        }
        r->inferred = i;
        return NPU_OK;
    }
    if (npu__take_symbol(x, size, taken)) {
        return NPU_OK;
    }
    if (size < 0 && size != INT64_MIN) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s dim %u is %lld", name, (unsigned)i,
                               (long long)size);
    }
    r->dims[i] = size < 0 ? NPU_DYNAMIC_DIM : size;
    return npu__extent_add(&r->wanted, r->dims[i]) ? NPU_OK : npu__too_large(d, name);
}

static npu_status npu__reshape_read(npu_deduce *d, npu__reshape *r, const char *name, const npu_spec *x)
{
    uint32_t taken = 0;
    npu_status status = npu__check_result_rank(d, npu_op_list_len(d->op, name));
    memset(r, 0, sizeof *r);
    r->have.known = r->wanted.known = 1;
    if (status) {
        return status;
    }
    r->rank = r->inferred = npu_op_list_len(d->op, name);
    for (uint32_t i = 0; i < r->rank && !status; i++) {
        r->dims[i] = npu_op_int_at(d->op, name, i);
        status = npu__reshape_size(d, r, name, x, i, &taken);
    }
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        if (!(taken >> i & 1u) && !npu__extent_add(&r->have, x->dims[i])) {
            status = npu__too_large(d, "self");
        }
    }
    return status;
}

/* Finds the -1, or checks that the products agree where they are known. */
static npu_status npu__reshape_solve(npu_deduce *d, npu__reshape *r, const char *name)
{
    const npu__extent *have = &r->have, *wanted = &r->wanted;
    bool is_known = have->num_unknown == 0 && wanted->num_unknown == 0;
    if (r->inferred == r->rank) {
        return !is_known || have->known == wanted->known
                   ? NPU_OK
                   : npu_deduce_fail(d, NPU_ERR_SHAPE, name,
                                     "%s has %lld elements, expected those of self = %lld", name,
                                     (long long)wanted->known, (long long)have->known);
    }
    if (is_known && (wanted->known == 0 || have->known % wanted->known)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s has a -1 that %lld elements of self do not give",
                               name, (long long)have->known);
    }
    if (is_known) {
        r->dims[r->inferred] = have->known / wanted->known;
    } else {
        bool is_kept = have->num_unknown == 1 && wanted->num_unknown == 0 && have->known == wanted->known;
        r->dims[r->inferred] = is_kept ? have->unknown : NPU_DYNAMIC_DIM;
    }
    return NPU_OK;
}

static npu_status npu__type_reshape(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const char *name = npu_op_arg(d->op, "size") ? "size" : "shape";
    npu__reshape r;
    npu_status status = npu__reshape_read(d, &r, name, x);
    status = status ? status : npu__reshape_solve(d, &r, name);
    return status ? status : npu__result(d, npu__dtype_of(x), r.rank, r.dims);
}

static npu_status npu__type_permute(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask, axis, len = npu_op_list_len(d->op, "dims");
    int64_t dims[NPU_MAX_RANK];
    npu_status status;
    if (len != x->rank) {
        return npu_deduce_fail(d, NPU_ERR_RANK, "dims", "dims has %u numbers, expected %u", (unsigned)len,
                               (unsigned)x->rank);
    }
    status = npu__axes(d, "dims", x->rank, &mask);
    for (uint32_t i = 0; i < len && !status; i++) {
        status = npu__axis(d, "dims", npu_op_int_at(d->op, "dims", i), x->rank, &axis);
        dims[i] = x->dims[axis];
    }
    return status ? status : npu__result(d, npu__dtype_of(x), x->rank, dims);
}

static npu_status npu__type_transpose(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_spec y = *x;
    uint32_t a, b;
    npu_status status = npu__axis_arg(d, "dim0", x->rank, &a);
    status = status ? status : npu__axis_arg(d, "dim1", x->rank, &b);
    if (status) {
        return status;
    }
    y.dims[a] = x->dims[b];
    y.dims[b] = x->dims[a];
    return npu__result(d, npu__dtype_of(x), x->rank, y.dims);
}

/* A 0-d tensor flattens to one element. */
static npu_status npu__type_flatten(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu__extent merged = { 1, 0, 0 };
    int64_t dims[NPU_MAX_RANK] = { 1 };
    uint32_t first, last, rank = 0;
    npu_status status = npu__axis_arg(d, "start_dim", x->rank, &first);
    status = status ? status : npu__axis(d, "end_dim", npu_op_int(d->op, "end_dim", -1), x->rank, &last);
    if (status) {
        return status;
    }
    if (first > last) {
        return npu_deduce_fail(d, NPU_ERR_AXIS, "start_dim", "start_dim %u comes after end_dim %u",
                               (unsigned)first, (unsigned)last);
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i < first || i > last) {
            dims[rank++] = x->dims[i];
        } else if (!npu__extent_add(&merged, x->dims[i])) {
            return npu__too_large(d, "self");
        } else if (i == last) {
            dims[rank++] = npu__extent_dim(&merged);
        }
    }
    return npu__result(d, npu__dtype_of(x), rank ? rank : 1, dims);
}

/* A dim that is not known counts as other than 1. */
static npu_status npu__type_squeeze(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t dims[NPU_MAX_RANK];
    uint32_t mask = UINT32_MAX, rank = 0;
    npu_status status = npu_op_arg(d->op, "dim") ? npu__axes(d, "dim", x->rank, &mask) : NPU_OK;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dims[i] != 1 || !(mask >> i & 1u)) {
            dims[rank++] = x->dims[i];
        }
    }
    return status ? status : npu__result(d, npu__dtype_of(x), rank, dims);
}

/* The dims of x with one more before `axis`. */
static npu_status npu__result_with_dim(npu_deduce *d, const npu_spec *x, npu_dtype dtype, uint32_t axis,
                                       int64_t dim)
{
    int64_t dims[NPU_MAX_RANK + 1];
    npu_status status = npu__check_result_rank(d, x->rank + 1u);
    for (uint32_t i = 0; i <= x->rank; i++) {
        dims[i] = i < axis ? x->dims[i] : i == axis ? dim : x->dims[i - 1];
    }
    return status ? status : npu__result(d, dtype, x->rank + 1u, dims);
}

static npu_status npu__type_unsqueeze(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank + 1u, &axis);
    return status ? status : npu__result_with_dim(d, x, npu__dtype_of(x), axis, 1);
}

/* One dim of expand: have (1 where self has none) to the size asked for. */
static npu_status npu__expand_dim(npu_deduce *d, const npu_spec *x, uint32_t i, bool is_new, int64_t have,
                                  int64_t *size)
{
    uint32_t taken = 0;
    if (*size == INT64_MIN) {
        *size = NPU_DYNAMIC_DIM;
    } else if (*size == -1 && !is_new) {
        *size = have;
    } else if (*size < 0 && !npu__take_symbol(x, *size, &taken)) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "size", "size dim %u is %lld", (unsigned)i,
                               (long long)*size);
    }
    if (have != 1 && !npu__dims_agree(have, *size)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "size", "size dim %u is %lld, expected that of self = %lld",
                               (unsigned)i, (long long)*size, (long long)have);
    }
    return NPU_OK;
}

static npu_status npu__type_expand(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t rank = npu_op_list_len(d->op, "size");
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__check_result_rank(d, rank);
    if (!status && rank < x->rank) {
        status = npu_deduce_fail(d, NPU_ERR_RANK, "size", "size has %u dims, expected at least %u",
                                 (unsigned)rank, (unsigned)x->rank);
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        bool is_new = i < rank - x->rank;
        dims[i] = npu_op_int_at(d->op, "size", i);
        status = npu__expand_dim(d, x, i, is_new, is_new ? 1 : x->dims[i - (rank - x->rank)], &dims[i]);
    }
    return status ? status : npu__result(d, npu__dtype_of(x), rank, dims);
}

/* dim times count; a dim that is not known stays what it is when it is taken once. */
static bool npu__repeat_dim(int64_t dim, int64_t count, int64_t *out)
{
    if (dim >= 0 && count >= 0) {
        return npu__dim_mul(dim, count, out);
    }
    *out = count == 1 ? dim : count == 0 ? 0 : NPU_DYNAMIC_DIM;
    return true;
}

/* repeat wants a number for every dim; tile adds what is missing in front, on either side. */
static npu_status npu__type_repeat(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const char *name = npu_op_arg(d->op, "repeats") ? "repeats" : "dims";
    uint32_t len = npu_op_list_len(d->op, name), rank = len < x->rank ? x->rank : len;
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__check_result_rank(d, rank);
    if (!status && rank != len && npu_op_arg(d->op, "repeats")) {
        status = npu_deduce_fail(d, NPU_ERR_RANK, name, "%s has %u numbers, expected at least %u", name,
                                 (unsigned)len, (unsigned)rank);
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        int64_t count = i < rank - len ? 1 : npu_op_int_at(d->op, name, i - (rank - len));
        status = count == INT64_MIN ? NPU_OK : npu__check_attribute(d, name, count, 0);
        if (!status &&
            !npu__repeat_dim(i < rank - x->rank ? 1 : x->dims[i - (rank - x->rank)], count, &dims[i])) {
            status = npu__too_large(d, name);
        }
    }
    return status ? status : npu__result(d, npu__dtype_of(x), rank, dims);
}

/* ---- rules: lists of tensors, parts of tensors ---- */

/* x with at least 1, 2 or 3 dims: a vector is a row, and the last of three dims is added at the end. */
static npu_spec npu__at_least(const npu_spec *x, uint32_t rank)
{
    npu_spec y = *x;
    uint32_t lead = x->rank == 1;
    for (uint32_t i = 0; i < rank && x->rank < rank; i++) {
        y.dims[i] = i >= lead && i - lead < x->rank ? x->dims[i - lead] : 1;
    }
    return npu_spec_tensor(npu__dtype_of(x), x->rank < rank ? rank : x->rank, y.dims);
}

/* Element i of a list, with the dims that the op first gives it. */
static npu_spec npu__list_item(const npu_deduce *d, const npu_bound_arg *list, uint32_t i)
{
    const npu_spec *x = d->op->in[list->first + i];
    int64_t column[2];
    switch (d->op->kind) {
    case NPU_ATEN_HSTACK: return npu__at_least(x, 1);
    case NPU_ATEN_VSTACK: return npu__at_least(x, 2);
    case NPU_ATEN_DSTACK: return npu__at_least(x, 3);
    case NPU_ATEN_COLUMN_STACK:
        column[0] = x->rank ? x->dims[0] : 1;
        column[1] = 1;
        return x->rank > 1 ? *x : npu_spec_tensor(npu__dtype_of(x), 2, column);
    default: return *x;
    }
}

/* type(..) of a list, which must not be empty. */
static npu_status npu__list_dtype(npu_deduce *d, const npu_bound_arg *list, npu_dtype *dtype)
{
    npu__join j;
    memset(&j, 0, sizeof j);
    *dtype = NPU_NONE;
    if (list->count == 0) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, list->name, "%s is empty", list->name);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        npu_spec x = npu__list_item(d, list, i);
        npu__join_type(&j, &x);
    }
    *dtype = npu__join_dtype(&j);
    return *dtype != NPU_NONE
               ? NPU_OK
               : npu_deduce_fail(d, NPU_ERR_DTYPE, list->name, "%s have no common dtype", list->name);
}

/* x, element i, has the dims of `first`, but for dim `axis` (the rank = none). */
static npu_status npu__list_dims(npu_deduce *d, const npu_bound_arg *list, uint32_t i, const npu_spec *x,
                                 const npu_spec *first, uint32_t axis)
{
    if (x->rank != first->rank) {
        return npu_deduce_fail(d, NPU_ERR_RANK, list->name, "%s %u has %u dims, expected %u", list->name,
                               (unsigned)i, (unsigned)x->rank, (unsigned)first->rank);
    }
    for (uint32_t k = 0; k < x->rank; k++) {
        if (k != axis && !npu__dims_agree(x->dims[k], first->dims[k])) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, list->name, "%s %u dim %u is %lld, expected %lld",
                                   list->name, (unsigned)i, (unsigned)k, (long long)x->dims[k],
                                   (long long)first->dims[k]);
        }
    }
    return NPU_OK;
}

/* ATen lets cat skip empty 1-D tensors whatever the rank of the others. */
static bool npu__cat_skips(const npu_spec *x) { return x->rank == 1 && x->dims[0] == 0; }

/* The first tensor that cat takes; the first of all where it takes none. */
static npu_spec npu__cat_first(const npu_deduce *d, const npu_bound_arg *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        npu_spec x = npu__list_item(d, list, i);
        if (!npu__cat_skips(&x)) {
            return x;
        }
    }
    return npu__list_item(d, list, 0);
}

/* The dim that is summed: hstack takes the first one where its first tensor is a vector. */
static npu_status npu__cat_axis(npu_deduce *d, const npu_bound_arg *list, const npu_spec *first,
                                uint32_t *axis)
{
    *axis = 0;
    switch (d->op->kind) {
    case NPU_ATEN_VSTACK: return NPU_OK;
    case NPU_ATEN_DSTACK: *axis = 2; return NPU_OK;
    case NPU_ATEN_COLUMN_STACK: *axis = 1; return NPU_OK;
    case NPU_ATEN_HSTACK: *axis = d->op->in[list->first]->rank > 1; return NPU_OK;
    default: return npu__axis_arg(d, "dim", first->rank, axis);
    }
}

/* Adds a dim to a sum that starts at 0. */
static npu_status npu__sum_dim(npu_deduce *d, const char *name, int64_t dim, int64_t *sum)
{
    if (*sum < 0 || dim < 0) {
        *sum = *sum == 0 ? dim : NPU_DYNAMIC_DIM;
        return NPU_OK;
    }
    return npu__dim_add(*sum, dim, sum) ? NPU_OK : npu__too_large(d, name);
}

/* Adds an operand to the dim that cat sums, and its other dims where the result does not know them yet. */
static npu_status npu__cat_add(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t *sum, npu_spec *y)
{
    for (uint32_t k = 0; k < x->rank; k++) {
        y->dims[k] = y->dims[k] < 0 && x->dims[k] >= 0 ? x->dims[k] : y->dims[k];
    }
    return npu__sum_dim(d, "tensors", x->dims[axis], sum);
}

static npu_status npu__type_cat(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    npu_spec first, y;
    npu_dtype t;
    uint32_t axis;
    int64_t sum = 0;
    npu_status status = npu__list_dtype(d, list, &t);
    if (status) {
        return status;
    }
    first = y = npu__cat_first(d, list);
    status = npu__cat_axis(d, list, &first, &axis);
    for (uint32_t i = 0; i < list->count && !status; i++) {
        npu_spec x = npu__list_item(d, list, i);
        if (x.rank == 0) {
            status = npu_deduce_fail(d, NPU_ERR_RANK, "tensors", "tensors %u has 0 dims, expected at least 1",
                                     (unsigned)i);
        } else if (!npu__cat_skips(&x)) {
            status = npu__list_dims(d, list, i, &x, &first, axis);
            status = status ? status : npu__cat_add(d, &x, axis, &sum, &y);
        }
    }
    y.dims[axis] = sum;
    return status ? status : npu__result(d, t, y.rank, y.dims);
}

static npu_status npu__type_stack(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    npu_dtype t;
    uint32_t axis = 0;
    npu_status status = npu__list_dtype(d, list, &t);
    for (uint32_t i = 1; i < list->count && !status; i++) {
        status = npu__list_dims(d, list, i, d->op->in[list->first + i], d->op->in[list->first], NPU_MAX_RANK);
    }
    status = status ? status : npu__axis_arg(d, "dim", d->op->in[list->first]->rank + 1u, &axis);
    return status ? status : npu__result_with_dim(d, d->op->in[list->first], t, axis, list->count);
}

static npu_status npu__split_piece(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t len)
{
    npu_spec y = *x;
    y.dims[axis] = len;
    return npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__split_by_sizes(npu_deduce *d, const npu_spec *x, const char *name, uint32_t axis)
{
    int64_t sum = 0;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < npu_op_list_len(d->op, name) && !status; i++) {
        int64_t size = npu_op_int_at(d->op, name, i);
        status = npu__check_attribute(d, name, size, 0);
        if (!status && !npu__dim_add(sum, size, &sum)) {
            status = npu__too_large(d, name);
        }
        status = status ? status : npu__split_piece(d, x, axis, size);
    }
    if (!status && !npu__dims_agree(sum, x->dims[axis])) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s sums to %lld, expected dim %u of self = %lld",
                                 name, (long long)sum, (unsigned)axis, (long long)x->dims[axis]);
    }
    return status;
}

/* Pieces of `size`, the last one smaller; at least one. */
static npu_status npu__split_by_size(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t size)
{
    int64_t rest = x->dims[axis];
    npu_status status = NPU_OK;
    if (size == 0 && rest != 0) {
        return npu__check_attribute(d, "split_size", size, 1);
    }
    do {
        int64_t len = rest < size ? rest : size;
        status = npu__split_piece(d, x, axis, len);
        rest -= len;
    } while (rest > 0 && !status);
    return status;
}

/* chunk makes pieces of ceil(dim / chunks); of an empty dim it makes all its chunks. */
static npu_status npu__split_by_count(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t count)
{
    int64_t dim = x->dims[axis];
    npu_status status = npu__check_attribute(d, "chunks", count, 1);
    if (status || dim > 0) {
        return status ? status : npu__split_by_size(d, x, axis, dim / count + (dim % count != 0));
    }
    for (int64_t i = 0; i < count && !status; i++) {
        status = npu__split_piece(d, x, axis, 0);
    }
    return status;
}

static npu_status npu__type_split(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const char *name = npu_op_arg(d->op, "split_sizes") ? "split_sizes" : "split_size";
    const npu_bound_arg *size = npu_op_arg(d->op, name);
    uint32_t axis;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    if (status || (size && size->form == NPU_ARG_INTS)) {
        return status ? status : npu__split_by_sizes(d, x, name, axis);
    }
    if (x->dims[axis] < 0) {
        return npu_deduce_fail(d, NPU_ERR_DYNAMIC_SHAPE, "self",
                               "self dim %u is not known, so the number of pieces is not", (unsigned)axis);
    }
    if (!size) {
        return npu__split_by_count(d, x, axis, npu_op_int(d->op, "chunks", 0));
    }
    status = npu__check_attribute(d, "split_size", size->i, 0);
    return status ? status : npu__split_by_size(d, x, axis, size->i);
}

/* The dims of x without those in mask, or with 1 in their place. */
static npu_status npu__result_reduced(npu_deduce *d, const npu_spec *x, uint32_t mask, npu_dtype dtype)
{
    bool is_kept = npu_op_int(d->op, "keepdim", 0) != 0;
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        bool is_reduced = mask >> i & 1u;
        if (!is_reduced || is_kept) {
            dims[rank++] = is_reduced ? 1 : x->dims[i];
        }
    }
    return npu__result(d, dtype, rank, dims);
}

static npu_status npu__type_select(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t index = npu_op_int(d->op, "index", 0);
    uint32_t axis;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    if (status) {
        return status;
    }
    if (x->dims[axis] >= 0 && index != INT64_MIN && (index < -x->dims[axis] || index >= x->dims[axis])) {
        return npu_deduce_fail(d, NPU_ERR_RANGE, "index",
                               "index is %lld, expected less than dim %u of self = %lld", (long long)index,
                               (unsigned)axis, (long long)x->dims[axis]);
    }
    return npu__result_reduced(d, x, 1u << axis, npu__dtype_of(x));
}

/* A bound of a slice: counted from the end when negative, then clamped. */
static int64_t npu__slice_bound(int64_t bound, int64_t dim)
{
    bound = bound < 0 ? bound + dim : bound;
    return bound < 0 ? 0 : bound > dim ? dim : bound;
}

static npu_status npu__type_slice(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t start = npu_op_int(d->op, "start", 0), end = npu_op_int(d->op, "end", INT64_MAX),
            step = npu_op_int(d->op, "step", 1);
    npu_spec y = *x;
    uint32_t axis;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_attribute(d, "step", step, 1);
    if (status) {
        return status;
    }
    if (x->dims[axis] < 0 || start == INT64_MIN || end == INT64_MIN) {
        y.dims[axis] = start == 0 && end == INT64_MAX && step == 1 ? x->dims[axis] : NPU_DYNAMIC_DIM;
    } else {
        int64_t from = npu__slice_bound(start, x->dims[axis]), to = npu__slice_bound(end, x->dims[axis]);
        y.dims[axis] = to > from ? (to - from - 1) / step + 1 : 0;
    }
    return npu__result_like(d, &y, npu__dtype_of(x));
}

/* ---- rules: more of shape ---- */

/* Number i of an argument that is one number or a list of them. */
static int64_t npu__int_item(const npu_deduce *d, const char *name, uint32_t i)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, name);
    return arg && arg->form == NPU_ARG_INTS ? npu_op_int_at(d->op, name, i) : npu_op_int(d->op, name, 0);
}

static uint32_t npu__int_count(const npu_deduce *d, const char *name)
{
    const npu_bound_arg *arg = npu_op_arg(d->op, name);
    return arg && arg->form == NPU_ARG_INTS ? arg->count : 1;
}

/* A number of which size is a multiple, where size is known. */
static npu_status npu__check_multiple(npu_deduce *d, const char *name, int64_t size, int64_t of)
{
    return size < 0 || size % of == 0
               ? NPU_OK
               : npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s is %lld, expected a multiple of %lld", name,
                                 (long long)size, (long long)of);
}

/* t swaps the dims of a matrix, mT and mH the last two; what has fewer dims stays as it is. */
static npu_status npu__type_matrix_transpose(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool is_batched = d->op->kind != (uint32_t)NPU_ATEN_T;
    npu_spec y = *x;
    if (x->rank == 1 && is_batched) {
        return npu__check_rank(d, "self", 2, NPU_MAX_RANK);
    }
    if (x->rank >= 2) {
        y.dims[x->rank - 1] = x->dims[x->rank - 2];
        y.dims[x->rank - 2] = x->dims[x->rank - 1];
    }
    return !is_batched && x->rank > 2 ? npu__check_rank(d, "self", 0, 2)
                                      : npu__result_like(d, &y, npu__dtype_of(x));
}

/* The dims that move take their places, the others fill the rest in order. */
static npu_status npu__type_movedim(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t from, to, from_mask, to_mask, count = npu__int_count(d, "source"), next = 0;
    int64_t dims[NPU_MAX_RANK] = { 0 };
    npu_status status = npu__axes(d, "source", x->rank, &from_mask);
    status = status ? status : npu__axes(d, "destination", x->rank, &to_mask);
    if (!status && count != npu__int_count(d, "destination")) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "destination",
                                 "destination has %u numbers, expected %u like source",
                                 (unsigned)npu__int_count(d, "destination"), (unsigned)count);
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        status = npu__axis(d, "source", npu__int_item(d, "source", i), x->rank, &from);
        status =
            status ? status : npu__axis(d, "destination", npu__int_item(d, "destination", i), x->rank, &to);
        dims[to] = x->dims[from];
    }
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        if (from_mask >> i & 1u) {
            continue;
        }
        while (to_mask >> next & 1u) {
            next++;
        }
        dims[next++] = x->dims[i];
    }
    return status ? status : npu__result(d, npu__dtype_of(x), x->rank, dims);
}

static npu_status npu__type_expand_as(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *other = npu_deduce_spec(d, "other");
    npu_status status = npu__check_rank(d, "self", 0, other->rank);
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        if (x->dims[i] != 1) {
            status = npu__check_dim(d, "self", i, other->dims[other->rank - x->rank + i], "dim of other");
        }
    }
    return status ? status : npu__result_like(d, other, npu__dtype_of(x));
}

static npu_status npu__type_view_as(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *other = npu_deduce_spec(d, "other");
    size_t have, wanted;
    if (!npu_spec_len(x, &have) && !npu_spec_len(other, &wanted) && have != wanted) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self has %lu elements, expected %lu like other",
                               (unsigned long)have, (unsigned long)wanted);
    }
    return npu__result_like(d, other, npu__dtype_of(x));
}

/* The sizes that stand for one dim; one of them may be -1. */
static npu_status npu__unflatten_sizes(npu_deduce *d, int64_t dim, int64_t *sizes, uint32_t count)
{
    int64_t known = 1;
    uint32_t inferred = count;
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = npu_op_int_at(d->op, "sizes", i);
        if (sizes[i] == -1 && inferred == count) {
            inferred = i;
        } else if (sizes[i] < 0) {
            return npu__check_attribute(d, "sizes", sizes[i], 0);
        } else if (!npu__dim_mul(known, sizes[i], &known)) {
            return npu__too_large(d, "sizes");
        }
    }
    if (dim >= 0 && (inferred == count ? known != dim : known == 0 || dim % known)) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "sizes", "sizes have %lld elements, expected the dim's %lld",
                               (long long)known, (long long)dim);
    }
    if (inferred < count) {
        sizes[inferred] = dim < 0 ? (known == 1 ? dim : NPU_DYNAMIC_DIM) : dim / known;
    }
    return NPU_OK;
}

static npu_status npu__type_unflatten(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t axis, count = npu_op_list_len(d->op, "sizes"), rank = x->rank + count - 1;
    int64_t sizes[NPU_MAX_RANK], dims[NPU_MAX_RANK];
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__check_attribute(d, "sizes", count, 1);
    status = status ? status : npu__check_result_rank(d, rank);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__unflatten_sizes(d, x->dims[axis], sizes, count);
    for (uint32_t i = 0; i < rank && !status; i++) {
        dims[i] = i < axis ? x->dims[i] : i < axis + count ? sizes[i - axis] : x->dims[i - count + 1];
    }
    return status ? status : npu__result(d, npu__dtype_of(x), rank, dims);
}

/* narrow takes start as a number or, where a tensor holds it, checks it when it runs. */
static npu_status npu__type_narrow(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *at = npu_deduce_spec(d, "start");
    int64_t start = npu_op_int(d->op, "start", 0), length = npu_op_int(d->op, "length", 0), dim;
    npu_spec y = *x;
    uint32_t axis;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_attribute(d, "length", length, 0);
    if (!status && at) {
        npu_dtype t = npu__dtype_of(at);
        status = npu__check_rank(d, "start", 0, 0);
        status =
            status ? status : npu__check_dtype(d, "start", t, t == NPU_I64 || t == NPU_I32, "i32 or i64");
    }
    if (status) {
        return status;
    }
    dim = x->dims[axis];
    start = start < 0 && dim >= 0 ? start + dim : start;
    if (dim >= 0 && (start < 0 || start > dim || length > dim - start)) {
        return npu_deduce_fail(d, NPU_ERR_RANGE, "start",
                               "start + length is %lld + %lld, expected within dim %u of self = %lld",
                               (long long)start, (long long)length, (unsigned)axis, (long long)dim);
    }
    y.dims[axis] = length;
    return npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__type_roll(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t axis, count = npu_op_list_len(d->op, "dims"), expected = count ? count : 1;
    npu_status status = NPU_OK;
    if (npu_op_list_len(d->op, "shifts") != expected) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "shifts", "shifts has %u numbers, expected %u",
                               (unsigned)npu_op_list_len(d->op, "shifts"), (unsigned)expected);
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        status = npu__axis(d, "dims", npu_op_int_at(d->op, "dims", i), x->rank, &axis);
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* flip, fliplr, flipud: the last two turn a dim that must be there. */
static npu_status npu__type_flip(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask, kind = d->op->kind;
    npu_status status = npu__check_rank(d, "self", kind == NPU_ATEN_FLIPLR ? 2 : kind == NPU_ATEN_FLIPUD,
                                        NPU_MAX_RANK);
    status = status ? status : npu__axes(d, "dims", x->rank, &mask);
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_rot90(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_spec y = *x;
    uint32_t mask, a, b;
    npu_status status = npu__check_rank(d, "self", 2, NPU_MAX_RANK);
    status = status ? status : npu__axes(d, "dims", x->rank, &mask);
    if (!status && npu_op_list_len(d->op, "dims") != 2) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "dims", "dims has %u numbers, expected 2",
                               (unsigned)npu_op_list_len(d->op, "dims"));
    }
    status = status ? status : npu__axis(d, "dims", npu_op_int_at(d->op, "dims", 0), x->rank, &a);
    status = status ? status : npu__axis(d, "dims", npu_op_int_at(d->op, "dims", 1), x->rank, &b);
    if (!status && npu_op_int(d->op, "k", 1) % 2) {
        y.dims[a] = x->dims[b];
        y.dims[b] = x->dims[a];
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

/* Elements of the diagonal of rows x columns that lies `offset` to the right. */
static int64_t npu__diagonal_len(int64_t rows, int64_t columns, int64_t offset)
{
    if (rows < 0 || columns < 0) {
        return NPU_DYNAMIC_DIM;
    }
    if (offset >= 0) {
        columns = offset < columns ? columns - offset : 0;
    } else {
        rows = offset > -rows ? rows + offset : 0;
    }
    return rows < columns ? rows : columns;
}

/* What diagonal gives: the dims but two, then the length of the diagonal. */
static npu_status npu__diagonal_of(npu_deduce *d, const npu_spec *x, npu_spec *y)
{
    uint32_t a, b, rank = 0;
    npu_status status = npu__check_rank(d, "self", 2, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim1", x->rank, &a);
    status = status ? status : npu__axis(d, "dim2", npu_op_int(d->op, "dim2", 1), x->rank, &b);
    if (status) {
        return status;
    }
    if (a == b) {
        return npu_deduce_fail(d, NPU_ERR_AXIS, "dim2", "dim1 and dim2 are both %u", (unsigned)a);
    }
    *y = *x;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i != a && i != b) {
            y->dims[rank++] = x->dims[i];
        }
    }
    y->dims[rank++] = npu__diagonal_len(x->dims[a], x->dims[b], npu_op_int(d->op, "offset", 0));
    y->rank = (uint8_t)rank;
    return NPU_OK;
}

static npu_status npu__type_diagonal(npu_deduce *d)
{
    npu_spec y = *npu_deduce_spec(d, "self");
    npu_status status = npu__diagonal_of(d, npu_deduce_spec(d, "self"), &y);
    return status ? status : npu__result_like(d, &y, npu__dtype_of(&y));
}

/* Rows and columns of a matrix with a diagonal of len at `offset`. */
static bool npu__diagonal_size(int64_t len, int64_t offset, int64_t *size)
{
    *size = NPU_DYNAMIC_DIM;
    return len < 0 || (offset != INT64_MIN && npu__dim_add(len, offset < 0 ? -offset : offset, size));
}

/* diag makes a matrix of a vector and takes the diagonal of a matrix; diagflat makes a matrix of everything.
   */
static npu_status npu__type_diag(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool is_flat = d->op->kind == (uint32_t)NPU_ATEN_DIAGFLAT;
    int64_t offset = npu_op_int(d->op, is_flat ? "offset" : "diagonal", 0), dims[2];
    npu__extent len = { 1, 0, 0 };
    npu_status status = is_flat ? NPU_OK : npu__check_rank(d, "self", 1, 2);
    if (!status && !is_flat && x->rank == 2) {
        dims[0] = npu__diagonal_len(x->dims[0], x->dims[1], offset);
        return npu__result(d, npu__dtype_of(x), 1, dims);
    }
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        status = npu__extent_add(&len, x->dims[i]) ? NPU_OK : npu__too_large(d, "self");
    }
    if (!status && !npu__diagonal_size(npu__extent_dim(&len), offset, &dims[0])) {
        status = npu__too_large(d, "offset");
    }
    dims[1] = dims[0];
    return status ? status : npu__result(d, npu__dtype_of(x), 2, dims);
}

/* The last dim becomes the diagonal of two. */
static npu_status npu__type_diag_embed(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t a, b, k = 0, rank = x->rank + 1u;
    int64_t size, dims[NPU_MAX_RANK + 1];
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK - 1);
    status = status ? status : npu__axis(d, "dim1", npu_op_int(d->op, "dim1", -2), rank, &a);
    status = status ? status : npu__axis(d, "dim2", npu_op_int(d->op, "dim2", -1), rank, &b);
    if (!status && a == b) {
        return npu_deduce_fail(d, NPU_ERR_AXIS, "dim2", "dim1 and dim2 are both %u", (unsigned)a);
    }
    if (!status && !npu__diagonal_size(x->dims[x->rank - 1], npu_op_int(d->op, "offset", 0), &size)) {
        return npu__too_large(d, "offset");
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        dims[i] = i == a || i == b ? size : x->dims[k++];
    }
    return status ? status : npu__result(d, npu__dtype_of(x), rank, dims);
}

/* Windows of `size` along a dim become a last dim. */
static npu_status npu__type_unfold(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t size = npu_op_int(d->op, "size", 0), step = npu_op_int(d->op, "step", 1), dim;
    npu_spec y = *x;
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dimension", x->rank, &axis);
    status = status ? status : npu__check_attribute(d, "size", size, 0);
    status = status ? status : npu__check_attribute(d, "step", step, 1);
    if (status) {
        return status;
    }
    dim = x->rank ? x->dims[axis] : 1;
    if (dim >= 0 && size > dim) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "size",
                               "size is %lld, expected at most dim %u of self = %lld", (long long)size,
                               (unsigned)axis, (long long)dim);
    }
    if (x->rank) {
        y.dims[axis] = dim < 0 ? NPU_DYNAMIC_DIM : (dim - size) / step + 1;
    }
    return npu__result_with_dim(d, &y, npu__dtype_of(x), x->rank, size);
}

/* The last element that size, stride and offset reach lies inside len elements. */
static npu_status npu__check_strided(npu_deduce *d, const npu_spec *x, uint32_t rank, const int64_t *dims)
{
    int64_t last = npu_op_int(d->op, "storage_offset", 0), reach;
    size_t len;
    bool fits = last >= 0, is_empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t stride = npu_op_int_at(d->op, "stride", i);
        is_empty = is_empty || dims[i] == 0;
        fits = fits && stride >= 0 &&
               (is_empty || (npu__dim_mul(dims[i] - 1, stride, &reach) && npu__dim_add(last, reach, &last)));
    }
    if (fits && (is_empty || npu_spec_len(x, &len) || (uint64_t)last < len)) {
        return NPU_OK;
    }
    return npu_deduce_fail(d, NPU_ERR_RANGE, "stride", "size, stride and storage_offset reach outside self");
}

/* The dims of as_strided, checked against self. */
static npu_status npu__strided_dims(npu_deduce *d, uint32_t *rank, int64_t *dims)
{
    npu_status status = npu__check_result_rank(d, *rank = npu_op_list_len(d->op, "size"));
    if (!status && *rank != npu_op_list_len(d->op, "stride")) {
        status =
            npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "stride", "stride has %u numbers, expected %u like size",
                            (unsigned)npu_op_list_len(d->op, "stride"), (unsigned)*rank);
    }
    for (uint32_t i = 0; i < *rank && !status; i++) {
        dims[i] = npu_op_int_at(d->op, "size", i);
        status = npu__check_attribute(d, "size", dims[i], 0);
    }
    return status ? status : npu__check_strided(d, npu_deduce_spec(d, "self"), *rank, dims);
}

static npu_status npu__type_as_strided(npu_deduce *d)
{
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__strided_dims(d, &rank, dims);
    return status ? status : npu__result(d, npu__dtype_of(npu_deduce_spec(d, "self")), rank, dims);
}

/* pixel_shuffle and back: channels to squares of factor x factor. */
static npu_status npu__type_pixel_shuffle(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool is_up = npu_op_arg(d->op, "upscale_factor") != NULL;
    const char *name = is_up ? "upscale_factor" : "downscale_factor";
    int64_t factor = npu_op_int(d->op, name, 1), square = 1;
    npu_spec y = *x;
    npu_status status = npu__check_rank(d, "self", 3, NPU_MAX_RANK);
    status = status ? status : npu__check_attribute(d, name, factor, 1);
    if (!status && !npu__dim_mul(factor, factor, &square)) {
        status = npu__too_large(d, name);
    }
    for (uint32_t i = 0; i < 3 && !status; i++) {
        uint32_t at = x->rank - 3u + i;
        int64_t dim = x->dims[at], by = i ? factor : square;
        bool shrinks = is_up == (i == 0);
        status = shrinks ? npu__check_multiple(d, "self", dim, by) : NPU_OK;
        if (dim < 0) {
            y.dims[at] = factor == 1 ? dim : NPU_DYNAMIC_DIM;
        } else if (shrinks) {
            y.dims[at] = dim / by;
        } else if (!npu__dim_mul(dim, by, &y.dims[at])) {
            status = npu__too_large(d, name);
        }
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__type_channel_shuffle(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t groups = npu_op_int(d->op, "groups", 1);
    npu_status status = npu__check_rank(d, "self", 3, NPU_MAX_RANK);
    status = status ? status : npu__check_attribute(d, "groups", groups, 1);
    status = status ? status : npu__check_multiple(d, "self", x->dims[1], groups);
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* Vectors (scalars count as such) that span a grid; 'xy' swaps the first two dims of it. */
static npu_status npu__type_meshgrid(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    bool is_swapped = npu_op_str_is(d->op, "indexing", "xy");
    int64_t dims[NPU_MAX_RANK];
    npu_dtype t;
    npu_status status = npu__list_dtype(d, list, &t);
    status = status ? status : npu__check_result_rank(d, list->count);
    if (!status && !is_swapped && !npu_op_str_is(d->op, "indexing", "ij")) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "indexing", "indexing is neither 'ij' nor 'xy'");
    }
    for (uint32_t i = 0; i < list->count && !status; i++) {
        const npu_spec *x = d->op->in[list->first + i];
        uint32_t at = is_swapped && i < 2 && list->count > 1 ? 1 - i : i;
        if (x->rank > 1 || npu__dtype_of(x) != t) {
            return npu_deduce_fail(d, x->rank > 1 ? NPU_ERR_RANK : NPU_ERR_DTYPE, "tensors",
                                   "tensors %u is no vector of the dtype of the others", (unsigned)i);
        }
        dims[at] = x->rank ? x->dims[0] : 1;
    }
    for (uint32_t i = 0; i < list->count && !status; i++) {
        status = npu__result(d, t, list->count, dims);
    }
    return status;
}

/* Every element repeated in place; without a dim of all elements in a row. */
static npu_status npu__type_repeat_interleave(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t repeats = npu_op_int(d->op, "repeats", 0);
    bool is_flat = !npu_op_has(d->op, "dim");
    npu__extent len = { 1, 0, 0 };
    npu_spec y = *x;
    uint32_t axis = 0;
    npu_status status = npu__check_attribute(d, "repeats", repeats, 0);
    status = status || is_flat ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    for (uint32_t i = 0; is_flat && i < x->rank && !status; i++) {
        status = npu__extent_add(&len, x->dims[i]) ? NPU_OK : npu__too_large(d, "self");
    }
    if (is_flat || x->rank == 0) {
        y.rank = 1;
        y.dims[0] = npu__extent_dim(&len);
    }
    if (!status && !npu__repeat_dim(y.dims[axis], repeats, &y.dims[axis])) {
        status = npu__too_large(d, "repeats");
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

/* One result per index of a dim, without it. */
static npu_status npu__type_unbind(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t axis;
    npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    if (!status && x->dims[axis] < 0) {
        return npu_deduce_fail(d, NPU_ERR_DYNAMIC_SHAPE, "self",
                               "self dim %u is not known, so the number of results is not", (unsigned)axis);
    }
    for (int64_t i = 0; !status && i < x->dims[axis]; i++) {
        status = npu__result_reduced(d, x, 1u << axis, npu__dtype_of(x));
    }
    return status;
}

/* The dim that tensor_split names; hsplit, vsplit and dsplit have theirs, which must be there. */
static npu_status npu__split_axis(npu_deduce *d, const npu_spec *x, uint32_t *axis)
{
    switch (d->op->kind) {
    case NPU_ATEN_HSPLIT: case NPU_ATEN_HSPLIT_ARRAY:
        *axis = x->rank > 1;
        return npu__check_rank(d, "self", 1, NPU_MAX_RANK);
    case NPU_ATEN_VSPLIT: case NPU_ATEN_VSPLIT_ARRAY:
        *axis = 0;
        return npu__check_rank(d, "self", 2, NPU_MAX_RANK);
    case NPU_ATEN_DSPLIT: case NPU_ATEN_DSPLIT_ARRAY:
        *axis = 2;
        return npu__check_rank(d, "self", 3, NPU_MAX_RANK);
    default: {
        npu_status status = npu__check_rank(d, "self", 1, NPU_MAX_RANK);
        return status ? status : npu__axis_arg(d, "dim", x->rank, axis);
    }
    }
}

/* `count` pieces, the first dim % count of them longer by one. */
static npu_status npu__split_sections(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t count)
{
    int64_t dim = x->dims[axis];
    npu_status status = npu__check_attribute(d, "sections", count, 1);
    if (!status && dim < 0) {
        status =
            npu_deduce_fail(d, NPU_ERR_DYNAMIC_SHAPE, "self", "self dim %u is not known", (unsigned)axis);
    }
    if (!status && !npu_op_arg(d->op, "dim")) {
        status = npu__check_multiple(d, "self", dim, count);
    }
    for (int64_t i = 0; i < count && !status; i++) {
        status = npu__split_piece(d, x, axis, dim / count + (i < dim % count));
    }
    return status;
}

/* Index i of the places where tensor_split cuts: an attribute, or an element of data. */
static int64_t npu__split_index(const npu_deduce *d, const int64_t *data, uint32_t i)
{
    return data ? data[i] : npu_op_int_at(d->op, npu_op_arg(d->op, "indices") ? "indices" : "sections", i);
}

static npu_status npu__split_indices(npu_deduce *d, const npu_spec *x, uint32_t axis, const int64_t *data,
                                     int64_t count)
{
    int64_t dim = x->dims[axis], from = 0;
    npu_status status = NPU_OK;
    for (int64_t i = 0; i <= count && !status; i++) {
        int64_t to = dim < 0 ? 0
            : i < count      ? npu__slice_bound(npu__split_index(d, data, (uint32_t)i), dim)
                             : dim;
        status = npu__split_piece(d, x, axis, dim < 0 ? NPU_DYNAMIC_DIM : to > from ? to - from : 0);
        from = to;
    }
    return status;
}

/* Pieces between indices that are not known: each may be the whole. */
static npu_status npu__split_unknown(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t count)
{
    npu_status status = NPU_OK;
    for (int64_t i = 0; i <= count && !status; i++) {
        status = npu__split_piece(d, x, axis, npu_deduce_unknown((uint32_t)i, x->dims[axis]));
    }
    return status;
}

static npu_status npu__type_tensor_split(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *at = npu_deduce_spec(d, "tensor_indices_or_sections");
    const npu_bound_arg *sections = npu_op_arg(d->op, "sections"), *indices = npu_op_arg(d->op, "indices");
    const int64_t *data = at && d->op->in_data ? (const int64_t *)d->op->in_data[1] : NULL;
    uint32_t axis;
    npu_status status = npu__split_axis(d, x, &axis);
    if (status || !at) {
        return status     ? status
               : indices  ? npu__split_indices(d, x, axis, NULL, indices->count)
                          : npu__split_sections(d, x, axis, sections->i);
    }
    status = npu__check_rank(d, "tensor_indices_or_sections", 0, 1);
    status = status
        ? status
        : npu__check_dtype(d, "tensor_indices_or_sections", npu__dtype_of(at), at->dtype == NPU_I64, "i64");
    if (!status && (at->rank ? at->dims[0] < 0 : !data)) {
        return npu_deduce_fail(d, NPU_ERR_DYNAMIC_SHAPE, "tensor_indices_or_sections",
                               "tensor_indices_or_sections is not constant, so the number of results is not "
                               "known");
    }
    return status     ? status
           : !data    ? npu__split_unknown(d, x, axis, at->dims[0])
           : at->rank ? npu__split_indices(d, x, axis, data, at->dims[0])
                      : npu__split_sections(d, x, axis, data[0]);
}

static uint32_t npu__at_least_rank(uint32_t kind)
{
    switch (kind) {
    case NPU_ATEN_ATLEAST_1D: case NPU_ATEN_ATLEAST_1D_SEQUENCE: return 1;
    case NPU_ATEN_ATLEAST_2D: case NPU_ATEN_ATLEAST_2D_SEQUENCE: return 2;
    default: return 3;
    }
}

static npu_status npu__type_atleast(npu_deduce *d)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < d->op->num_in && !status; i++) {
        npu_spec y = npu__at_least(d->op->in[i], npu__at_least_rank(d->op->kind));
        status = npu_deduce_result(d, &y);
    }
    return status;
}

static npu_status npu__type_broadcast_tensors(npu_deduce *d)
{
    npu__join j;
    npu_status status = NPU_OK;
    memset(&j, 0, sizeof j);
    for (uint32_t i = 0; i < d->op->num_in && !status; i++) {
        status = npu__join_dims(d, &j, "tensors", d->op->in[i]);
    }
    for (uint32_t i = 0; i < d->op->num_in && !status; i++) {
        status = npu__result(d, npu__dtype_of(d->op->in[i]), j.rank, j.dims);
    }
    return status;
}

/* No tensors at all make a row of nothing. */
static npu_status npu__type_block_diag(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    int64_t dims[2] = { list->count == 0, 0 };
    npu_dtype t = NPU_F32;
    npu_status status = list->count ? npu__list_dtype(d, list, &t) : NPU_OK;
    for (uint32_t i = 0; i < list->count && !status; i++) {
        npu_spec x = npu__at_least(d->op->in[list->first + i], 2);
        if (x.rank > 2) {
            return npu_deduce_fail(d, NPU_ERR_RANK, "tensors", "tensors %u has %u dims, expected at most 2",
                                   (unsigned)i, (unsigned)x.rank);
        }
        status = npu__sum_dim(d, "tensors", x.dims[0], &dims[0]);
        status = status ? status : npu__sum_dim(d, "tensors", x.dims[1], &dims[1]);
    }
    return status ? status : npu__result(d, t, 2, dims);
}

/* One vector alone is the result. */
static npu_status npu__type_cartesian_prod(npu_deduce *d)
{
    const npu_bound_arg *list = npu_op_arg(d->op, "tensors");
    npu__extent rows = { 1, 0, 0 };
    int64_t dims[2];
    npu_dtype t;
    npu_status status = npu__list_dtype(d, list, &t);
    for (uint32_t i = 0; i < list->count && !status; i++) {
        const npu_spec *x = d->op->in[list->first + i];
        if (x->rank != 1 || npu__dtype_of(x) != t) {
            return npu_deduce_fail(d, x->rank != 1 ? NPU_ERR_RANK : NPU_ERR_DTYPE, "tensors",
                                   "tensors %u is no vector of the dtype of the others", (unsigned)i);
        }
        status = npu__extent_add(&rows, x->dims[0]) ? NPU_OK : npu__too_large(d, "tensors");
    }
    dims[0] = npu__extent_dim(&rows);
    dims[1] = list->count;
    return status ? status : npu__result(d, t, list->count > 1 ? 2 : 1, dims);
}

/* n over r. False when it does not fit; no step is larger than the result times r. */
static bool npu__choose(int64_t n, int64_t r, int64_t *out)
{
    int64_t few = n - r < r ? n - r : r;
    *out = r <= n;
    for (int64_t i = 1; i <= few; i++) {
        if (!npu__dim_mul(*out, n - few + i, out)) {
            return false;
        }
        *out /= i;
    }
    return true;
}

/* With replacement there are as many choices as without it among r - 1 more elements. Choosing none gives a
   vector of nothing. */
static npu_status npu__type_combinations(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t r = npu_op_int(d->op, "r", 2), dims[2] = { 0, r }, n;
    npu_status status = npu__check_rank(d, "self", 1, 1);
    status = status ? status : npu__check_attribute(d, "r", r, 0);
    if (status || r == 0) {
        return status ? status : npu__result(d, npu__dtype_of(x), 1, dims);
    }
    n = x->dims[0];
    if (n > 0 && npu_op_int(d->op, "with_replacement", 0) && !npu__dim_add(n, r - 1, &n)) {
        return npu__too_large(d, "r");
    }
    if (n < 0) {
        dims[0] = NPU_DYNAMIC_DIM;
    } else if (!npu__choose(n, r, &dims[0])) {
        return npu__too_large(d, "r");
    }
    return npu__result(d, npu__dtype_of(x), 2, dims);
}

/* ---- rules: picking and placing elements ---- */

static npu_status npu__check_index(npu_deduce *d, const char *name)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, name));
    return npu__check_dtype(d, name, t, t == NPU_I64 || t == NPU_I32, "i32 or i64");
}

static const void *npu__known_data(const npu_deduce *d, const char *name)
{
    int i = npu_op_operand(d->op, name);
    return i < 0 || !d->op->in_data ? NULL : d->op->in_data[i];
}

/* Picks whole slices of a dim; a scalar counts as having one. */
static npu_status npu__type_index_select(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "index");
    npu_spec y = *x;
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_index(d, "index");
    status = status ? status : npu__check_rank(d, "index", 0, 1);
    if (!status && x->rank == 0 && index->rank) {
        status = npu__check_dim(d, "index", 0, 1, "the elements of a scalar");
    }
    y.dims[axis] = x->rank == 0 ? 0 : index->rank ? index->dims[0] : 1;
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__type_take(npu_deduce *d)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "index"));
    npu_status status = npu__check_dtype(d, "index", t, t == NPU_I64, "i64");
    return status
        ? status
        : npu__result_like(d, npu_deduce_spec(d, "index"), npu__dtype_of(npu_deduce_spec(d, "self")));
}

/* Off the dim self and indices broadcast; without a dim both are flat. */
static npu_status npu__type_take_along_dim(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "indices");
    npu__extent len = { 1, 0, 0 };
    npu_spec a = *x, b = *index;
    npu__join j;
    uint32_t axis;
    npu_status status = npu__check_dtype(d, "indices", npu__dtype_of(index), index->dtype == NPU_I64, "i64");
    memset(&j, 0, sizeof j);
    if (!status && !npu_op_has(d->op, "dim")) {
        for (uint32_t i = 0; i < index->rank && !status; i++) {
            status = npu__extent_add(&len, index->dims[i]) ? NPU_OK : npu__too_large(d, "indices");
        }
        j.dims[0] = npu__extent_dim(&len);
        return status ? status : npu__result(d, npu__dtype_of(x), 1, j.dims);
    }
    status = status ? status : npu__check_rank(d, "indices", x->rank, x->rank);
    status = status ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    if (!status && x->rank) {
        a.dims[axis] = b.dims[axis] = 1;
    }
    status = status ? status : npu__join_dims(d, &j, "self", &a);
    status = status ? status : npu__join_dims(d, &j, "indices", &b);
    if (!status && x->rank) {
        j.dims[axis] = index->dims[axis];
    }
    return status ? status : npu__result(d, npu__dtype_of(x), x->rank, j.dims);
}

/* What a list of index tensors with holes selects: dims of self that an index takes become the dims that all
   indices broadcast to, in the place of the first one, or in front where other dims lie between them. A mask
   takes as many dims as it has, and is one index of its true elements. */
typedef struct npu__indexing {
    npu__join common;
    npu_spec result;
    uint32_t taken;                   /* dims of self, counted so far */
    uint32_t rank, first, last, used; /* kept dims; where indices stand among them; how many there are */
    int64_t kept[NPU_MAX_RANK];
    bool is_split;
} npu__indexing;

static npu_status npu__indexing_mask(npu_deduce *d, npu__indexing *s, const npu_spec *x, const npu_spec *mask,
                                     uint32_t operand)
{
    npu_spec index;
    int64_t count = npu__count_true(mask, d->op->in_data ? d->op->in_data[operand] : NULL, operand);
    for (uint32_t i = 0; i < mask->rank; i++) {
        if (s->taken + i >= x->rank || !npu__dims_agree(mask->dims[i], x->dims[s->taken + i])) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "indices",
                                   "a mask's dim %u is %lld, unlike that of self", (unsigned)i,
                                   (long long)mask->dims[i]);
        }
    }
    s->taken += mask->rank;
    index = npu_spec_tensor(NPU_I64, 1, &count);
    return npu__join_dims(d, &s->common, "indices", &index);
}

static npu_status npu__indexing_add(npu_deduce *d, npu__indexing *s, const npu_spec *x, uint32_t operand)
{
    const npu_spec *index = d->op->in[operand];
    if (!index) {
        if (s->taken >= x->rank) {
            return npu_deduce_fail(d, NPU_ERR_RANK, "indices", "more indices than self has dims");
        }
        s->kept[s->rank++] = x->dims[s->taken++];
        return NPU_OK;
    }
    s->is_split = s->is_split || (s->used && s->last != s->rank);
    s->first = s->used ? s->first : s->rank;
    s->last = s->rank;
    s->used++;
    if (index->dtype == NPU_BOOL || index->dtype == NPU_U8) {
        return npu__indexing_mask(d, s, x, index, operand);
    }
    if (s->taken++ >= x->rank) {
        return npu_deduce_fail(d, NPU_ERR_RANK, "indices", "more indices than self has dims");
    }
    return index->dtype == NPU_I64 || index->dtype == NPU_I32
               ? npu__join_dims(d, &s->common, "indices", index)
               : npu__check_dtype(d, "indices", npu__dtype_of(index), false, "i64, i32, bool or u8");
}

static npu_status npu__indexing_read(npu_deduce *d, npu__indexing *s)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const npu_bound_arg *list = npu_op_arg(d->op, "indices");
    uint32_t at, rank = 0;
    int64_t dims[NPU_MAX_RANK];
    npu_status status = NPU_OK;
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < list->count && !status; i++) {
        status = npu__indexing_add(d, s, x, list->first + i);
    }
    while (!status && s->taken < x->rank) {
        s->kept[s->rank++] = x->dims[s->taken++];
    }
    status = status ? status : npu__check_result_rank(d, s->rank + s->common.rank);
    if (status) {
        return status;
    }
    at = s->is_split ? 0 : s->first;
    for (uint32_t i = 0; i <= s->rank; i++) {
        for (uint32_t k = 0; i == at && k < s->common.rank; k++) {
            dims[rank++] = s->common.dims[k];
        }
        if (i < s->rank) {
            dims[rank++] = s->kept[i];
        }
    }
    s->result = npu_spec_tensor(npu__dtype_of(x), rank, dims);
    return NPU_OK;
}

static npu_status npu__type_index(npu_deduce *d)
{
    npu__indexing s;
    npu_status status = npu__indexing_read(d, &s);
    return status ? status : npu__result_like(d, &s.result, npu__dtype_of(&s.result));
}

/* values broadcast to what the indices select. */
static npu_status npu__type_index_put(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *values = npu_deduce_spec(d, "values");
    npu__indexing s;
    npu_status status = npu__check_same_dtype(d, "values", "self");
    status = status ? status : npu__indexing_read(d, &s);
    status = status ? status : npu__check_rank(d, "values", 0, s.result.rank);
    for (uint32_t i = 0; !status && i < values->rank; i++) {
        if (values->dims[i] != 1) {
            status = npu__check_dim(d, "values", i, s.result.dims[s.result.rank - values->rank + i],
                                    "the dim that is selected");
        }
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* nonzero and argwhere: one row of indices per element that is not zero. */
static npu_status npu__type_nonzero(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t dims[2];
    dims[0] = npu__count_true(x, npu__known_data(d, "self"), 0);
    dims[1] = x->rank;
    return npu__result(d, NPU_I64, 2, dims);
}

static npu_status npu__type_masked_select(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *mask = npu_deduce_spec(d, "mask");
    int64_t count = npu__count_true(mask, npu__known_data(d, "mask"), 0), most = npu__dim_bound(count);
    npu__join j;
    npu_status status = npu__check_dtype(d, "mask", npu__dtype_of(mask), mask->dtype == NPU_BOOL, "bool");
    memset(&j, 0, sizeof j);
    status = status ? status : npu__join_dims(d, &j, "self", x);
    status = status ? status : npu__join_dims(d, &j, "mask", mask);
    for (uint32_t i = 0; i < j.rank && !status && most >= 0; i++) { /* the mask is spread to these places */
        bool is_there = i >= j.rank - mask->rank && mask->dims[i - (j.rank - mask->rank)] != 1;
        if (!is_there && j.dims[i] < 0) {
            most = NPU_DYNAMIC_DIM;
        } else if (!is_there && !npu__dim_mul(most, j.dims[i], &most)) {
            status = npu__too_large(d, "mask");
        }
    }
    count = npu__is_unknown(count) ? npu_deduce_unknown(0, most) : most;
    return status ? status : npu__result(d, npu__dtype_of(x), 1, &count);
}

static npu_status npu__type_masked_scatter(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *mask = npu_deduce_spec(d, "mask");
    npu__join j;
    npu_status status = npu__check_dtype(d, "mask", npu__dtype_of(mask), mask->dtype == NPU_BOOL, "bool");
    memset(&j, 0, sizeof j);
    status = status ? status : npu__check_same_dtype(d, "source", "self");
    status = status ? status : npu__join_dims(d, &j, "self", x);
    status = status ? status : npu__join_dims(d, &j, "mask", mask);
    return status ? status : npu__result(d, npu__dtype_of(x), j.rank, j.dims);
}

/* index has no more elements than `name` along any dim but `skip`. */
static npu_status npu__check_index_fits(npu_deduce *d, const char *name, uint32_t skip)
{
    const npu_spec *x = npu_deduce_spec(d, name), *index = npu_deduce_spec(d, "index");
    if ((x->rank ? x->rank : 1) != (index->rank ? index->rank : 1)) {
        return npu__check_rank(d, "index", x->rank, x->rank);
    }
    for (uint32_t i = 0; i < index->rank; i++) {
        int64_t most = x->rank ? x->dims[i] : 1;
        if (i != skip && most >= 0 && index->dims[i] > most) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "index",
                                   "index dim %u is %lld, expected at most %s's %lld", (unsigned)i,
                                   (long long)index->dims[i], name, (long long)most);
        }
    }
    return NPU_OK;
}

static npu_status npu__check_reduce(npu_deduce *d, const char *const *words)
{
    for (; *words; words++) {
        if (npu_op_str_is(d->op, "reduce", *words)) {
            return NPU_OK;
        }
    }
    return npu_op_arg(d->op, "reduce")
               ? npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "reduce", "reduce is no reduction of this op")
               : NPU_OK;
}

/* scatter writes src at an index along a dim; an empty index may be anything. */
static npu_status npu__type_scatter(npu_deduce *d)
{
    static const char *const words[] = { "sum", "prod", "mean", "amax", "amin", NULL };
    static const char *const short_words[] = { "add", "multiply", NULL };
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "index");
    bool has_src = npu_deduce_spec(d, "src") != NULL;
    size_t len;
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_reduce(d, npu_op_arg(d->op, "include_self") ? words : short_words);
    status = status || !has_src ? status : npu__check_same_dtype(d, "src", "self");
    if (!status && (npu_spec_len(index, &len) || len)) {
        status = npu__check_index(d, "index");
        status = status ? status : npu__check_index_fits(d, "self", axis);
        status = status || !has_src ? status : npu__check_index_fits(d, "src", NPU_MAX_RANK);
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* index_add, index_copy, index_reduce: slices of source go where a vector of indices says. */
static npu_status npu__type_index_slices(npu_deduce *d)
{
    static const char *const words[] = { "prod", "mean", "amax", "amin", NULL };
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "index"),
                   *source = npu_deduce_spec(d, "source");
    int64_t count = index->rank ? index->dims[0] : 1;
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_index(d, "index");
    status = status ? status : npu__check_rank(d, "index", 0, 1);
    status = status ? status : npu__check_same_dtype(d, "source", "self");
    status = status ? status : npu__check_reduce(d, words);
    status = status || !npu_op_arg(d->op, "alpha") ? status : npu__check_alpha(d, npu__dtype_of(x));
    if (!status && (x->rank == 0 || source->rank == 0)) {
        size_t len;
        return npu_spec_len(source, &len) || (int64_t)len == count
                   ? npu__result_like(d, x, npu__dtype_of(x))
                   : npu_deduce_fail(d, NPU_ERR_SHAPE, "source", "source has %lu elements, expected %lld",
                                     (unsigned long)len, (long long)count);
    }
    status = status ? status : npu__check_rank(d, "source", x->rank, x->rank);
    for (uint32_t i = 0; i < x->rank && !status; i++) {
        status = npu__check_dim(d, "source", i, i == axis ? count : x->dims[i], "that of self or index");
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_index_fill(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "index"));
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__check_rank(d, "index", 0, 1);
    status = status ? status : npu__check_dtype(d, "index", t, t == NPU_I64, "i64");
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_put(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *index = npu_deduce_spec(d, "index");
    size_t have, wanted;
    npu_status status = npu__check_dtype(d, "index", npu__dtype_of(index), index->dtype == NPU_I64, "i64");
    status = status ? status : npu__check_same_dtype(d, "source", "self");
    if (!status && !npu_spec_len(npu_deduce_spec(d, "source"), &have) && !npu_spec_len(index, &wanted) &&
        have != wanted) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "source", "source has %lu elements, expected %lu like index",
                               (unsigned long)have, (unsigned long)wanted);
    }
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* The rule of the part says what src must look like; its result becomes that of the whole. */
static npu_status npu__type_part_scatter(npu_deduce *d, npu_type_rule part)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *src = npu_deduce_spec(d, "src");
    npu_status status = part(d);
    if (status) {
        return status;
    }
    d->num_results = 0;
    for (uint32_t i = 0; i < src->rank || src->rank != d->results[0].rank; i++) {
        if (src->rank != d->results[0].rank || !npu__dims_agree(src->dims[i], d->results[0].dims[i])) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "src",
                                   "src is not like the part of self that it replaces");
        }
    }
    return npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_select_scatter(npu_deduce *d)
{
    return npu__type_part_scatter(d, npu__type_select);
}

static npu_status npu__type_slice_scatter(npu_deduce *d)
{
    return npu__type_part_scatter(d, npu__type_slice);
}

static npu_status npu__type_diagonal_scatter(npu_deduce *d)
{
    return npu__type_part_scatter(d, npu__type_diagonal);
}

static npu_status npu__type_as_strided_scatter(npu_deduce *d)
{
    return npu__type_part_scatter(d, npu__type_as_strided);
}

static npu_status npu__type_embedding_backward(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "grad_output"), *index = npu_deduce_spec(d, "indices");
    int64_t dims[2];
    npu_status status = npu__check_index(d, "indices");
    status = status ? status : npu__check_rank(d, "grad_output", index->rank + 1u, index->rank + 1u);
    for (uint32_t i = 0; i < index->rank && !status; i++) {
        status = npu__check_dim(d, "grad_output", i, index->dims[i], "dim of indices");
    }
    dims[0] = npu_op_int(d->op, "num_weights", 0);
    status = status ? status : npu__check_attribute(d, "num_weights", dims[0], 0);
    dims[1] = status ? 0 : x->dims[index->rank];
    return status ? status : npu__result(d, npu__dtype_of(x), 2, dims);
}

/* Largest element of a constant; -1 = empty, -2 = not known. */
static int64_t npu__largest_class(const npu_spec *x, const int64_t *data)
{
    int64_t largest = -1;
    size_t len;
    if (!data || npu_spec_len(x, &len)) {
        return -2;
    }
    for (size_t i = 0; i < len; i++) {
        largest = data[i] > largest ? data[i] : largest;
    }
    return largest;
}

static npu_status npu__type_one_hot(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t classes = npu_op_int(d->op, "num_classes", -1), largest;
    npu_status status = npu__check_dtype(d, "self", npu__dtype_of(x), x->dtype == NPU_I64, "i64");
    status = status ? status : npu__check_attribute(d, "num_classes", classes, -1);
    if (!status && classes == -1) {
        largest = npu__largest_class(x, (const int64_t *)npu__known_data(d, "self"));
        if (largest == -1) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self is empty, so num_classes must be given");
        }
        classes = largest < 0 ? npu_deduce_unknown(0, -1) : largest + 1;
    }
    return status ? status : npu__result_with_dim(d, x, NPU_I64, x->rank, classes);
}

/* Sum of constant repeats, i32 or i64, of which each counts `times`; else what output_size says, or nothing. */
static npu_status npu__sum_repeats(npu_deduce *d, int64_t times, int64_t *sum)
{
    const npu_spec *x = npu_deduce_spec(d, "repeats");
    const void *data = npu__known_data(d, "repeats");
    size_t len;
    *sum = npu_op_int(d->op, "output_size", data ? NPU_DYNAMIC_DIM : npu_deduce_unknown(0, -1));
    if (!data || npu_spec_len(x, &len) || times < 0) {
        return NPU_OK;
    }
    *sum = 0;
    for (size_t i = 0; i < len; i++) {
        int64_t count = x->dtype == NPU_I32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
        if (count < 0 || !npu__dim_mul(count, times, &count) || !npu__dim_add(*sum, count, sum)) {
            return npu_deduce_fail(d, NPU_ERR_RANGE, "repeats", "repeats are negative or too large");
        }
    }
    return NPU_OK;
}

static npu_status npu__type_repeat_indices(npu_deduce *d)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "repeats"));
    int64_t sum;
    npu_status status = npu__check_index(d, "repeats");
    status = status ? status : npu__check_rank(d, "repeats", 1, 1);
    status = status ? status : npu__sum_repeats(d, 1, &sum);
    return status ? status : npu__result(d, t, 1, &sum);
}

/* repeat_interleave with a count per index of the dim, or one for all. */
static npu_status npu__type_repeat_tensor(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *repeats = npu_deduce_spec(d, "repeats");
    bool is_flat = !npu_op_has(d->op, "dim");
    bool is_one = repeats->rank == 0 || repeats->dims[0] == 1;
    npu__extent len = { 1, 0, 0 };
    npu_spec y = *x;
    uint32_t axis = 0;
    int64_t sum;
    npu_status status = npu__check_index(d, "repeats");
    status = status ? status : npu__check_rank(d, "repeats", 0, 1);
    status = status || is_flat ? status : npu__axis_arg(d, "dim", x->rank, &axis);
    for (uint32_t i = 0; is_flat && i < x->rank && !status; i++) {
        status = npu__extent_add(&len, x->dims[i]) ? NPU_OK : npu__too_large(d, "self");
    }
    if (is_flat || x->rank == 0) {
        y.rank = 1;
        y.dims[0] = npu__extent_dim(&len);
    }
    status = status || is_one ? status : npu__check_dim(d, "repeats", 0, y.dims[axis], "that of self");
    status = status ? status : npu__sum_repeats(d, is_one ? y.dims[axis] : 1, &sum);
    if (status) {
        return status;
    }
    y.dims[axis] = sum;
    return npu__result_like(d, &y, npu__dtype_of(x));
}

/* ---- rules: borders, windows as columns, triangles ---- */

/* A dim with `before` and `after` added, or cut off where they are negative. */
static npu_status npu__pad_dim(npu_deduce *d, const char *name, const int64_t *by, int64_t min, int64_t *dim)
{
    int64_t limit = INT64_MAX / 4;
    if (by[0] < -limit || by[0] > limit || by[1] < -limit || by[1] > limit || *dim > limit) {
        return npu__too_large(d, name);
    }
    if (*dim < 0) {
        *dim = by[0] || by[1] ? NPU_DYNAMIC_DIM : *dim;
        return NPU_OK;
    }
    *dim += by[0] + by[1];
    return *dim >= min ? NPU_OK
                       : npu_deduce_fail(d, NPU_ERR_SHAPE, name, "%s leaves %lld elements of a dim", name,
                                         (long long)*dim);
}

/* Pairs of numbers, those of the last dim first. `reach` is how far a border may go beyond a dim: INT64_MAX =
   anywhere, 0 = the dim itself, -1 = not to its other end. */
static npu_status npu__pad_dims(npu_deduce *d, const char *name, int64_t reach, int64_t min)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t pairs = npu_op_list_len(d->op, name) / 2;
    npu_spec y = *x;
    npu_status status = NPU_OK;
    if (npu_op_list_len(d->op, name) % 2 || pairs > x->rank) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s has %u numbers, expected pairs for %u dims",
                               name, (unsigned)npu_op_list_len(d->op, name), (unsigned)x->rank);
    }
    for (uint32_t i = 0; i < pairs && !status; i++) {
        int64_t dim = x->dims[x->rank - 1 - i], by[2];
        by[0] = npu_op_int_at(d->op, name, 2 * i);
        by[1] = npu_op_int_at(d->op, name, 2 * i + 1);
        if (reach <= 0 && dim >= 0 && (by[0] > dim + reach || by[1] > dim + reach)) {
            return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, name, "%s goes beyond the dim's %lld elements", name,
                                   (long long)dim);
        }
        status = npu__pad_dim(d, name, by, min, &y.dims[x->rank - 1 - i]);
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__type_constant_pad(npu_deduce *d) { return npu__pad_dims(d, "pad", INT64_MAX, 0); }

/* A border made of self: `count` dims of it, besides channels and perhaps a batch, which alone may be empty.
   */
static npu_status npu__border_pad(npu_deduce *d, const char *name, uint32_t count, int64_t reach)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_rank(d, "self", count + 1, count + 2);
    for (uint32_t i = x->rank == count + 2; i < x->rank && !status; i++) {
        if (x->dims[i] == 0) {
            status = npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self dim %u is empty", (unsigned)i);
        }
    }
    return status ? status : npu__pad_dims(d, name, reach, reach != 0);
}

static npu_status npu__type_reflection_pad(npu_deduce *d)
{
    return npu__border_pad(d, "padding", npu_op_list_len(d->op, "padding") / 2, -1);
}

static npu_status npu__type_replication_pad(npu_deduce *d)
{
    return npu__border_pad(d, "padding", npu_op_list_len(d->op, "padding") / 2, INT64_MAX);
}

static npu_status npu__type_pad(npu_deduce *d)
{
    uint32_t count = npu_op_list_len(d->op, "pad") / 2;
    if (npu_op_str_is(d->op, "mode", "constant")) {
        return npu__type_constant_pad(d);
    }
    if (npu_op_has(d->op, "value") && npu_op_float(d->op, "value", 0) != 0) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "value",
                               "value is given, expected only in mode 'constant'");
    }
    if (count < 1 || count > 3) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "pad", "pad has %u pairs, expected 1 to 3",
                               (unsigned)count);
    }
    if (npu_op_str_is(d->op, "mode", "reflect")) {
        return npu__border_pad(d, "pad", count, -1);
    }
    if (npu_op_str_is(d->op, "mode", "circular")) {
        return npu__border_pad(d, "pad", count, 0);
    }
    return npu_op_str_is(d->op, "mode", "replicate")
               ? npu__border_pad(d, "pad", count, INT64_MAX)
               : npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "mode", "mode is no way of padding");
}

static npu_status npu__type_triangle(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_rank(d, "self", 2, NPU_MAX_RANK);
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* The windows that fit into rows x columns, as im2col and col2im count them. */
static npu_status npu__column_count(npu_deduce *d, const int64_t *size, int64_t *kernel, int64_t *count)
{
    npu__window w;
    npu_status status;
    memset(&w, 0, sizeof w);
    w.rank = 2;
    status = npu__window_arg(d, "kernel_size", 2, 1, w.kernel);
    status = status ? status : npu__window_arg(d, "stride", 2, 1, w.stride);
    status = status ? status : npu__window_arg(d, "padding", 2, 0, w.padding);
    status = status ? status : npu__window_arg(d, "dilation", 2, 1, w.dilation);
    *count = *kernel = 1;
    for (uint32_t i = 0; i < 2 && !status; i++) {
        int64_t steps = NPU_DYNAMIC_DIM;
        status = size[i] < 0 ? NPU_OK : npu__window_steps(d, &w, i, size[i], &steps);
        *count = *count < 0 || steps < 0 ? NPU_DYNAMIC_DIM : *count;
        if (!status && (!npu__dim_mul(*kernel, w.kernel[i], kernel) ||
                        (*count >= 0 && !npu__dim_mul(*count, steps, count)))) {
            status = npu__too_large(d, "kernel_size");
        }
    }
    return status;
}

/* Windows of an image become columns. */
static npu_status npu__type_im2col(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t c = x->rank - 3u;
    npu_spec y = *x;
    int64_t kernel, count;
    npu_status status = npu__check_rank(d, "self", 3, 4);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__column_count(d, x->dims + c + 1, &kernel, &count);
    if (status) {
        return status;
    }
    if (x->dims[c] == 0) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self has no channels");
    }
    if (!npu__repeat_dim(x->dims[c], kernel, &y.dims[c])) {
        return npu__too_large(d, "kernel_size");
    }
    y.dims[c + 1] = count;
    return npu__result(d, npu__dtype_of(x), x->rank - 1u, y.dims);
}

/* Columns are added up where they came from. */
static npu_status npu__type_col2im(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t c = x->rank - 2u;
    npu_spec y = *x;
    int64_t kernel, count, size[2];
    npu_status status = npu__check_rank(d, "self", 2, 3);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__window_arg(d, "output_size", 2, 1, size);
    status = status ? status : npu__column_count(d, size, &kernel, &count);
    status = status ? status : npu__check_multiple(d, "self", x->dims[c], kernel);
    status = status ? status : npu__check_dim(d, "self", c + 1, count, "windows of output_size");
    if (status) {
        return status;
    }
    y.dims[c] = x->dims[c] < 0 ? NPU_DYNAMIC_DIM : x->dims[c] / kernel;
    y.dims[c + 1] = size[0];
    y.dims[c + 2] = size[1];
    return npu__result(d, npu__dtype_of(x), x->rank + 1u, y.dims);
}

/* ---- rules: reduction ---- */

/* Axes that an op reduces: those of `dim`, all where it names none. */
static npu_status npu__reduced_axes(npu_deduce *d, const npu_spec *x, uint32_t *mask)
{
    npu_status status = npu__axes(d, "dim", x->rank, mask);
    *mask = *mask ? *mask : UINT32_MAX;
    return status;
}

/* What has no neutral element cannot reduce nothing. */
static npu_status npu__check_not_empty(npu_deduce *d, const npu_spec *x, uint32_t mask)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        if ((mask >> i & 1u) && x->dims[i] == 0) {
            return npu_deduce_fail(d, NPU_ERR_SHAPE, "self", "self dim %u is 0, expected elements to reduce",
                                   (unsigned)i);
        }
    }
    return NPU_OK;
}

static npu_status npu__type_mean(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__dtype_arg(d, t, &t);
    status = status ? status : npu__check_float(d, npu_op_has(d->op, "dtype") ? "dtype" : "self", t);
    return status ? status : npu__result_reduced(d, x, mask, t);
}

static npu_status npu__type_sum(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__dtype_arg(d, npu__is_integer(t) || t == NPU_BOOL ? NPU_I64 : t, &t);
    status = status ? status : npu__check_arithmetic(d, t);
    return status ? status : npu__result_reduced(d, x, mask, t);
}

/* Dim i of size is that of self or 1; leading dims may be missing. What is not summed keeps its dtype. */
static npu_status npu__type_sum_to_size(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t rank = npu_op_list_len(d->op, "size");
    bool sums = rank == 0 || rank < x->rank;
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__check_arithmetic(d, t);
    if (!status && rank > x->rank) {
        status = npu_deduce_fail(d, NPU_ERR_RANK, "size", "size has %u dims, expected at most %u", (unsigned)rank,
                                 (unsigned)x->rank);
    }
    for (uint32_t i = 0; i < rank && !status; i++) {
        int64_t have = x->dims[x->rank - rank + i];
        status = npu__size_arg(d, "size", npu_op_int_at(d->op, "size", i), &dims[i]);
        if (!status && dims[i] != 1 && !npu__dims_agree(dims[i], have)) {
            status = npu_deduce_fail(d, NPU_ERR_SHAPE, "size", "size dim %u is %lld, expected 1 or %lld",
                                     (unsigned)i, (long long)dims[i], (long long)have);
        }
        sums = sums || (dims[i] == 1 && have != 1);
    }
    t = sums && !npu__is_float(t) && !npu_dtype_is_complex(t) ? NPU_I64 : t;
    return status ? status : npu__result(d, t, rank, dims);
}

static npu_status npu__type_trace(npu_deduce *d)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "self"));
    npu_status status = npu__check_arithmetic(d, t);
    status = status ? status : npu__check_rank(d, "self", 2, 2);
    return status ? status : npu__result(d, npu__is_integer(t) || t == NPU_BOOL ? NPU_I64 : t, 0, NULL);
}

static npu_status npu__type_reduce_same(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_dtype(d, "self", t, npu__is_real(t), "a number or bool");
    status = status ? status : npu__check_not_empty(d, x, mask);
    return status ? status : npu__result_reduced(d, x, mask, t);
}

static npu_status npu__type_reduce_index(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask;
    npu_status status = npu__type_reduce_same(d);
    status = status ? status : npu__reduced_axes(d, x, &mask);
    return status ? status : npu__result_reduced(d, x, mask, NPU_I64);
}

static npu_status npu__type_arg_reduce(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_number(d, "self");
    status = status ? status : npu__check_not_empty(d, x, mask);
    return status ? status : npu__result_reduced(d, x, mask, NPU_I64);
}

static npu_status npu__type_softmax(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__dtype_arg(d, t, &t);
    status = status ? status : npu__check_float(d, npu_op_has(d->op, "dtype") ? "dtype" : "self", t);
    if (!status && npu_op_int(d->op, "half_to_float", 0)) {
        status = npu__check_dtype(d, "self", t, t == NPU_F16, "f16 for half_to_float");
        t = NPU_F32;
    }
    return status ? status : npu__result_like(d, x, t);
}

/* u8 stands for bool and stays u8. An empty list reduces nothing where the op says so by "dims". */
static npu_status npu__type_any(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = x->dtype == NPU_U8 ? NPU_U8 : NPU_BOOL;
    uint32_t mask;
    bool none = strcmp(d->def->schema->overload, "dims") == 0 && npu_op_has(d->op, "dim") &&
                npu_op_list_len(d->op, "dim") == 0;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_arithmetic(d, npu__dtype_of(x));
    return status ? status : npu__result_reduced(d, x, none ? 0 : mask, t);
}

/* var, std, and with a second result the mean. */
static npu_status npu__type_variance(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    for (uint32_t i = 0; i < d->def->schema->num_returns && !status; i++) {
        status = npu__result_reduced(d, x, mask, npu__dtype_of(x));
    }
    return status;
}

static npu_status npu__type_logsumexp(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_dtype(d, "self", npu__dtype_of(x), npu__is_real(npu__dtype_of(x)),
                                                "a number or bool");
    return status ? status : npu__result_reduced(d, x, mask, npu__float_of(npu__dtype_of(x)));
}

/* Norms of nothing are 0, but for those that are an extreme. */
static npu_status npu__type_norm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    const char *name = npu_op_arg(d->op, "ord") ? "ord" : "p";
    double p = npu_scalar_value(npu_op_scalar(d->op, name, npu_scalar_int(2)));
    npu_dtype t = npu__dtype_of(x);
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_float(d, "self", t);
    status = status ? status : npu__dtype_arg(d, t, &t);
    status = status ? status : npu__check_float(d, "dtype", t);
    if (!status && (p < 0.0 || isinf(p))) {
        status = npu__check_not_empty(d, x, mask);
    }
    return status ? status : npu__result_reduced(d, x, mask, t);
}

static npu_status npu__type_count(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t mask;
    npu_status status = npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_arithmetic(d, npu__dtype_of(x));
    return status ? status : npu__result_reduced(d, x, mask, NPU_I64);
}

/* A 0-d tensor that keeps its dim gets one, as in ATen. */
static npu_status npu__type_aminmax(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool grows = x->rank == 0 && npu_op_has(d->op, "dim") && npu_op_int(d->op, "keepdim", 0);
    uint32_t first = d->num_results;
    npu_status status = npu__type_reduce_same(d);
    status = status ? status : npu__type_reduce_same(d);
    for (uint32_t i = first; i < d->num_results && grows; i++) {
        d->results[i].rank = 1;
        d->results[i].dims[0] = 1;
    }
    return status;
}

/* ---- rules: order ---- */

/* Running sums and products: dims of self, integers in i64. */
static npu_status npu__type_scan(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_dtype t = npu__dtype_of(x);
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    status = status ? status : npu__dtype_arg(d, npu__is_integer(t) || t == NPU_BOOL ? NPU_I64 : t, &t);
    status = status ? status : npu__check_arithmetic(d, t);
    return status ? status : npu__result_like(d, x, t);
}

/* Values like self and their i64 indices, `dim` of them along the axis. */
static npu_status npu__result_ordered(npu_deduce *d, const npu_spec *x, uint32_t axis, int64_t dim)
{
    npu_spec y = *x;
    npu_status status = npu__check_dtype(d, "self", npu__dtype_of(x), npu__is_real(npu__dtype_of(x)),
                                         "a number or bool");
    if (x->rank) {
        y.dims[axis] = dim;
    }
    status = status ? status : npu__result_like(d, &y, npu__dtype_of(x));
    return status || d->def->schema->num_returns < 2 ? status : npu__result_like(d, &y, NPU_I64);
}

static npu_status npu__type_scan_index(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    uint32_t axis;
    npu_status status = npu__axis_arg(d, "dim", x->rank, &axis);
    return status ? status : npu__result_ordered(d, x, axis, x->dims[axis]);
}

/* msort has no dim, argsort gives the indices alone. */
static npu_status npu__type_sort(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    bool is_msort = npu_op_arg(d->op, "dim") == NULL;
    uint32_t axis = 0;
    npu_status status = is_msort ? npu__check_rank(d, "self", 1, NPU_MAX_RANK)
                                 : npu__axis(d, "dim", npu_op_int(d->op, "dim", -1), x->rank, &axis);
    if (!status && !is_msort && d->def->schema->num_returns == 1) {
        return npu__result_like(d, x, NPU_I64);
    }
    return status ? status : npu__result_ordered(d, x, axis, x->dims[axis]);
}

/* k is at least `min` and at most the length of the axis. */
static npu_status npu__order_k(npu_deduce *d, int64_t min, uint32_t *axis, int64_t *k)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t len;
    npu_status status = npu__axis(d, "dim", npu_op_int(d->op, "dim", -1), x->rank, axis);
    *k = npu_op_int(d->op, "k", 1);
    if (status) {
        return status;
    }
    len = x->rank ? x->dims[*axis] : 1;
    if (*k == INT64_MIN) { /* fed by a value */
        *k = NPU_DYNAMIC_DIM;
    } else if (*k < min || (len >= 0 && *k > len)) {
        return npu_deduce_fail(d, NPU_ERR_RANGE, "k",
                               "k is %lld, expected %lld to the length of dim %u = %lld", (long long)*k,
                               (long long)min, (unsigned)*axis, (long long)len);
    }
    return NPU_OK;
}

static npu_status npu__type_topk(npu_deduce *d)
{
    uint32_t axis;
    int64_t k;
    npu_status status = npu__order_k(d, 0, &axis, &k);
    status = status ? status : npu__check_number(d, "self");
    return status ? status : npu__result_ordered(d, npu_deduce_spec(d, "self"), axis, k);
}

static npu_status npu__type_kth(npu_deduce *d)
{
    uint32_t axis;
    int64_t k;
    npu_status status = npu__order_k(d, 1, &axis, &k);
    status = status ? status : npu__check_number(d, "self");
    return status ? status : npu__type_reduce_index(d);
}

/* The median of nothing at all is NaN. */
static npu_status npu__type_median(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_status status = npu__check_number(d, "self");
    if (!status && d->def->schema->num_returns < 2) {
        return npu__is_float(npu__dtype_of(x)) ? npu__result(d, npu__dtype_of(x), 0, NULL)
                                               : npu__type_reduce_same(d);
    }
    return status ? status : npu__type_reduce_index(d);
}

/* q is a number in 0..1, or a tensor of up to one dim, which becomes the first of the result. */
static npu_status npu__quantile_arguments(npu_deduce *d)
{
    static const char *const ways[] = { "linear", "lower", "higher", "midpoint", "nearest" };
    const npu_spec *x = npu_deduce_spec(d, "self"), *q = npu_deduce_spec(d, "q");
    double value = npu_op_float(d->op, "q", 0.0);
    bool known = false;
    npu_status status = npu__check_dtype(d, "self", npu__dtype_of(x),
                                         x->dtype == NPU_F32 || x->dtype == NPU_F64, "f32 or f64");
    status = status || !q ? status : npu__check_same_dtype(d, "q", "self");
    status = status || !q ? status : npu__check_rank(d, "q", 0, 1);
    if (!status && !(value >= 0.0 && value <= 1.0)) {
        status = npu_deduce_fail(d, NPU_ERR_RANGE, "q", "q is %g, expected 0 to 1", value);
    }
    for (uint32_t i = 0; i < NPU__COUNT(ways); i++) {
        known = known || npu_op_str_is(d->op, "interpolation", ways[i]);
    }
    return status || known ? status : npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "interpolation",
                                                      "interpolation is none of those known");
}

static npu_status npu__type_quantile(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *q = npu_deduce_spec(d, "q");
    uint32_t mask, first = d->num_results;
    npu_spec y;
    npu_status status = npu__quantile_arguments(d);
    status = status ? status : npu__reduced_axes(d, x, &mask);
    status = status ? status : npu__check_not_empty(d, x, mask);
    status = status ? status : npu__result_reduced(d, x, mask, npu__dtype_of(x));
    if (status || !q || q->rank == 0) {
        return status;
    }
    y = d->results[first];
    d->num_results = first;
    return npu__result_with_dim(d, &y, npu__dtype_of(x), 0, q->dims[0]);
}

/* ---- rules: resize, distance, bags ---- */

/* One dim of a resize: given, or a factor of the input's. */
static npu_status npu__resize_dim(npu_deduce *d, uint32_t i, int64_t in, int64_t *out)
{
    if (npu_op_list_len(d->op, "output_size")) {
        *out = npu_op_int_at(d->op, "output_size", i);
    } else {
        double size = (double)in * npu_op_float_at(d->op, "scale_factors", i);
        *out = in < 0 ? NPU_DYNAMIC_DIM : size < 9e15 ? (int64_t)size : -1;
        if (in < 0) {
            return NPU_OK;
        }
    }
    *out = *out == INT64_MIN ? NPU_DYNAMIC_DIM : *out;
    return *out == NPU_DYNAMIC_DIM && npu_op_list_len(d->op, "output_size")
               ? NPU_OK : npu__check_attribute(d, "output_size", *out, 1);
}

/* [N,C,in..] -> [N,C,out..]; the number of spatial dims is in the name: upsample_linear1d. */
static npu_status npu__type_resize(npu_deduce *d)
{
    const char *name = d->def->schema->name, *self = npu_op_arg(d->op, "self") ? "self" : "input";
    const npu_spec *x = npu_deduce_spec(d, self);
    uint32_t dims = (uint32_t)(name[strlen(name) - 2] - '0');
    uint32_t sizes = npu_op_list_len(d->op, "output_size"), scales = npu_op_list_len(d->op, "scale_factors");
    bool is_nearest = strstr(name, "nearest") != NULL;
    npu_dtype t = npu__dtype_of(x);
    npu_spec y = *x;
    npu_status status = npu__check_rank(d, self, dims + 2, dims + 2);
    status = status ? status : npu__check_dtype(d, self, t, npu__is_float(t) || (is_nearest && t == NPU_U8),
                                                is_nearest ? "floating point or u8" : "floating point");
    if (!status && (sizes ? sizes != dims || scales : scales != dims)) {
        status =
            npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "output_size",
                            "expected %u numbers in either output_size or scale_factors", (unsigned)dims);
    }
    for (uint32_t i = 0; i < dims && !status; i++) {
        status = npu__resize_dim(d, i, x->dims[2 + i], &y.dims[2 + i]);
    }
    for (uint32_t i = 1; i < dims + 2 && !status; i++) {
        status = x->dims[i] == 0
                     ? npu_deduce_fail(d, NPU_ERR_SHAPE, self, "%s dim %u is 0", self, (unsigned)i)
                     : NPU_OK;
    }
    return status ? status : npu__result_like(d, &y, t);
}

/* [N,C,in..] [N,out..,dims] -> [N,C,out..] */
static npu_status npu__type_grid(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "input"), *grid = npu_deduce_spec(d, "grid");
    const char *name = d->def->schema->name;
    uint32_t fixed = strcmp(name, "grid_sampler") == 0 ? 0 : strstr(name, "2d") ? 4 : 5;
    int64_t interpolation = npu_op_int(d->op, "interpolation_mode", 0),
            padding = npu_op_int(d->op, "padding_mode", 0);
    npu_spec y = *x;
    npu_status status = npu__check_rank(d, "input", fixed ? fixed : 4, fixed ? fixed : 5);
    status = status ? status : npu__check_rank(d, "grid", x->rank, x->rank);
    status = status ? status : npu__check_float(d, "input", npu__dtype_of(x));
    status = status ? status : npu__check_same_dtype(d, "grid", "input");
    status = status ? status : npu__check_dim(d, "grid", 0, x->dims[0], "batch of input");
    status = status ? status : npu__check_dim(d, "grid", x->rank - 1u, x->rank - 2, "spatial dims");
    if (!status &&
        (interpolation < 0 || interpolation > (x->rank == 4 ? 2 : 1) || padding < 0 || padding > 2)) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "interpolation_mode",
                                 "interpolation_mode %lld or padding_mode %lld is not known for %u dims",
                                 (long long)interpolation, (long long)padding, (unsigned)(x->rank - 2));
    }
    for (uint32_t i = 2; i < x->rank && !status; i++) {
        status = x->dims[i] == 0
                     ? npu_deduce_fail(d, NPU_ERR_SHAPE, "input", "input dim %u is 0", (unsigned)i)
                     : NPU_OK;
        y.dims[i] = grid->dims[i - 1];
    }
    return status ? status : npu__result_like(d, &y, npu__dtype_of(x));
}

static npu_status npu__check_distance_p(npu_deduce *d)
{
    double p = npu_op_float(d->op, "p", 2.0);
    return p >= 0.0 ? NPU_OK : npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "p", "p is %g, expected at least 0", p);
}

/* [b..,P,M] [b..,R,M] -> [b..,P,R] */
static npu_status npu__type_distances(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "x1"), *b = npu_deduce_spec(d, "x2");
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank;
    npu_status status = npu__check_rank(d, "x1", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_rank(d, "x2", 2, NPU_MAX_RANK);
    status = status ? status : npu__check_float(d, "x1", npu__dtype_of(a));
    status = status ? status : npu__check_same_dtype(d, "x2", "x1");
    status = status ? status : npu__check_dim(d, "x2", b->rank - 1u, a->dims[a->rank - 1], "last dim of x1");
    status = status ? status : npu__check_distance_p(d);
    if (!status && npu_broadcast(a->dims, a->rank - 2u, b->dims, b->rank - 2u, dims, &rank, NULL)) {
        status = npu_deduce_fail(d, NPU_ERR_SHAPE, "x2", "the batch dims of x1 and x2 do not broadcast");
    }
    if (status) {
        return status;
    }
    dims[rank] = a->dims[a->rank - 2];
    dims[rank + 1] = b->dims[b->rank - 2];
    return npu__result(d, npu__dtype_of(a), rank + 2, dims);
}

/* [N,M] -> [N (N - 1) / 2] */
static npu_status npu__type_pdist(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    int64_t n = x->dims[0], pairs = NPU_DYNAMIC_DIM;
    npu_status status = npu__check_rank(d, "self", 2, 2);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__check_distance_p(d);
    if (!status && n >= 0 && !npu__dim_mul(n, n ? n - 1 : 0, &pairs)) {
        return npu__too_large(d, "self");
    }
    pairs = pairs < 0 ? pairs : pairs / 2;
    return status ? status : npu__result(d, npu__dtype_of(x), 1, &pairs);
}

static npu_status npu__embedding_bag_operands(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "indices"), *offsets = npu_deduce_spec(d, "offsets");
    int64_t mode = npu_op_int(d->op, "mode", 0);
    npu_status status = npu__check_rank(d, "weight", 2, 2);
    status = status ? status : npu__check_float(d, "weight", npu__dtype_of(npu_deduce_spec(d, "weight")));
    status = status ? status : npu__check_rank(d, "indices", 1, 1);
    status = status ? status : npu__check_rank(d, "offsets", 1, 1);
    status = status ? status : npu__check_dtype(d, "indices", npu__dtype_of(x),
                                                x->dtype == NPU_I32 || x->dtype == NPU_I64, "i32 or i64");
    status = status ? status
                    : npu__check_dtype(d, "offsets", npu__dtype_of(offsets),
                                       offsets->dtype == NPU_I32 || offsets->dtype == NPU_I64, "i32 or i64");
    status = status ? status : npu__check_vector(d, "per_sample_weights", x->dims[0], "indices");
    status = status ? status : npu__check_same_dtype(d, "per_sample_weights", "weight");
    if (!status && (mode < 0 || mode > 2 || (mode && npu_op_has(d->op, "per_sample_weights")))) {
        status =
            npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "mode",
                            "mode is %lld, expected 0 to 2, and 0 with per_sample_weights", (long long)mode);
    }
    return status;
}

/* Bags [B,D], the bag of each index, the sizes of bags, and the indices of maxima. */
static npu_status npu__type_embedding_bag(npu_deduce *d)
{
    const npu_spec *w = npu_deduce_spec(d, "weight"), *x = npu_deduce_spec(d, "indices");
    bool has_last = npu_op_int(d->op, "include_last_offset", 0) != 0;
    int64_t dims[2];
    npu_status status = npu__embedding_bag_operands(d);
    if (status) {
        return status;
    }
    dims[0] = npu_deduce_spec(d, "offsets")->dims[0];
    if (has_last && dims[0] == 0) {
        return npu_deduce_fail(d, NPU_ERR_SHAPE, "offsets", "offsets is empty, expected the last offset");
    }
    dims[0] = dims[0] < 0 ? NPU_DYNAMIC_DIM : dims[0] - has_last;
    dims[1] = w->dims[1];
    status = npu__result(d, npu__dtype_of(w), 2, dims);
    status = status ? status : npu__result(d, npu__dtype_of(x), 1, x->dims);
    status = status ? status : npu__result(d, npu__dtype_of(x), 1, dims);
    return status ? status
                  : npu__result(d, npu__dtype_of(x), npu_op_int(d->op, "mode", 0) == 2 ? 2 : 1, dims);
}

/* ---- rules: losses ---- */

/* reduction: 0 none, 1 mean, 2 sum; the last two leave a 0-d result. */
static npu_status npu__result_loss(npu_deduce *d, npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    int64_t reduction = npu_op_int(d->op, "reduction", 1);
    if (reduction < 0 || reduction > 2) {
        return npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "reduction", "reduction is %lld, expected 0 to 2",
                               (long long)reduction);
    }
    return npu__result(d, dtype, reduction ? 0 : rank, dims);
}

/* All operands broadcast. binary_cross_entropy has a number for each element of self. */
static npu_status npu__type_loss(npu_deduce *d)
{
    const char *a = d->op->args[0].name, *b = d->op->args[1].name;
    const char *c = npu_op_arg(d->op, "input2") ? "target" : npu_op_arg(d->op, "weight") ? "weight" : NULL;
    const npu_spec *more = npu_deduce_spec(d, "pos_weight");
    bool any_number = d->op->kind == NPU_ATEN_POISSON_NLL_LOSS || d->op->kind == NPU_ATEN_MARGIN_RANKING_LOSS;
    npu__join j;
    npu_dtype t;
    npu_status status = npu__join_args(d, &j, a, b, c, &t);
    status = status || !more ? status : npu__join_dims(d, &j, "pos_weight", more);
    t = any_number ? npu__float_of(t) : t;
    status = status ? status : npu__check_float(d, a, t);
    if (!status && d->op->kind == NPU_ATEN_BINARY_CROSS_ENTROPY) {
        status = npu__check_equal(d, "target", "self");
    }
    if (!status && (npu_op_float(d->op, "beta", 0.0) < 0.0 || !(npu_op_float(d->op, "delta", 1.0) > 0.0))) {
        status = npu_deduce_fail(d, NPU_ERR_ATTRIBUTE, "beta", "beta is negative, or delta is not positive");
    }
    return status ? status : npu__result_loss(d, t, j.rank, j.dims);
}

/* Scores [C], [N,C] or [N,C,d..]; a class for each, or with cross_entropy_loss probabilities like self. */
static npu_status npu__type_nll(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self"), *target = npu_deduce_spec(d, "target");
    bool is_entropy = d->op->kind == NPU_ATEN_CROSS_ENTROPY_LOSS,
         is_2d = d->op->kind == NPU_ATEN_NLL_LOSS2D_FORWARD;
    bool is_free = is_entropy || d->op->kind == NPU_ATEN_NLL_LOSS_ND;
    bool has_classes = !is_entropy || !npu__is_float(npu__dtype_of(target));
    uint32_t axis = x->rank > 1;
    int64_t dims[NPU_MAX_RANK];
    npu_status status = npu__check_rank(d, "self", is_2d ? 4 : 1, is_2d ? 4 : is_free ? NPU_MAX_RANK : 2);
    status = status ? status : npu__check_float(d, "self", npu__dtype_of(x));
    status = status ? status : npu__check_vector(d, "weight", x->dims[axis], "classes");
    status = status ? status : npu__check_same_dtype(d, "weight", "self");
    if (status || !has_classes) {
        status = status ? status : npu__check_equal(d, "target", "self");
    } else {
        status = npu__check_dtype(d, "target", npu__dtype_of(target),
                                  target->dtype == NPU_I64 || target->dtype == NPU_U8, "i64 or u8");
        status = status ? status : npu__check_rank(d, "target", x->rank - 1u, x->rank - 1u);
    }
    for (uint32_t i = 0, k = 0; i < x->rank && !status; i++) {
        if (i != axis) {
            dims[k++] = x->dims[i];
            status = has_classes ? npu__check_dim(d, "target", k - 1, x->dims[i], "dim of self") : NPU_OK;
        }
    }
    status = status ? status : npu__result_loss(d, npu__dtype_of(x), x->rank - 1u, dims);
    return status || d->def->schema->num_returns < 2 ? status : npu__result(d, npu__dtype_of(x), 0, NULL);
}

static npu_status npu__type_cosine(npu_deduce *d)
{
    npu__join j;
    npu_dtype t;
    npu_spec y;
    uint32_t axis;
    npu_status status = npu__join_args(d, &j, "x1", "x2", NULL, &t);
    status = status ? status : npu__check_float(d, "x1", t);
    status = status ? status : npu__axis(d, "dim", npu_op_int(d->op, "dim", 1), j.rank, &axis);
    y = npu_spec_tensor(t, j.rank, j.dims);
    return status ? status : npu__result_reduced(d, &y, 1u << axis, t);
}

/* A gradient in f32 of an f16 input goes back to f16. */
static npu_status npu__type_softmax_backward(npu_deduce *d)
{
    const npu_spec *g = npu_deduce_spec(d, "grad_output");
    npu_dtype t = npu__dtype_of(g);
    uint32_t axis;
    npu_status status = npu__check_float(d, "grad_output", t);
    status = status ? status : npu__check_equal(d, "output", "grad_output");
    status = status ? status : npu__axis_arg(d, "dim", g->rank, &axis);
    t = t == NPU_F32 && npu_op_int(d->op, "input_dtype", NPU_F32) == NPU_F16 ? NPU_F16 : t;
    return status ? status : npu__result_like(d, g, t);
}

/* pairwise_distance takes the norm along the last dim and adds a float, dist that of all. */
static npu_status npu__type_difference(npu_deduce *d)
{
    bool is_pairwise = npu_op_arg(d->op, "x1") != NULL;
    const char *a = is_pairwise ? "x1" : "self";
    npu__join j;
    npu_dtype t;
    npu_spec y;
    npu_status status = npu__join_args(d, &j, a, is_pairwise ? "x2" : "other", NULL, &t);
    t = is_pairwise ? npu__float_of(t) : t;
    status = status ? status : npu__check_float(d, a, t);
    if (!status && is_pairwise && j.rank == 0) {
        status = npu_deduce_fail(d, NPU_ERR_RANK, a, "x1 and x2 have no dims");
    }
    y = npu_spec_tensor(t, j.rank, j.dims);
    return status ? status : npu__result_reduced(d, &y, is_pairwise ? 1u << (j.rank - 1) : UINT32_MAX, t);
}

/* ---- rules: aicf ---- */

static npu_status npu__check_device_float(npu_deduce *d, const char *name)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, name));
    return npu__check_dtype(d, name, t, t == NPU_F16 || t == NPU_BF16 || t == NPU_F32, "f16, bf16 or f32");
}

/* A 0-d operand of one dtype. */
static npu_status npu__check_scalar(npu_deduce *d, const char *name, npu_dtype dtype)
{
    const npu_spec *x = npu_deduce_spec(d, name);
    npu_status status = npu__check_dtype(d, name, npu__dtype_of(x), x->dtype == dtype, npu_dtype_name(dtype));
    return status ? status : npu__check_rank(d, name, 0, 0);
}

/* A parameter [len] of x's dtype or f32, or a hole. */
static npu_status npu__check_parameter(npu_deduce *d, const char *name, npu_dtype dtype, int64_t len)
{
    const npu_spec *p = npu_deduce_spec(d, name);
    npu_status status = npu__check_vector(d, name, len, "normalised dim or channels");
    if (status || !p) {
        return status;
    }
    return npu__check_dtype(d, name, npu__dtype_of(p), p->dtype == dtype || p->dtype == NPU_F32,
                            "the dtype of x or f32");
}

static npu_status npu__type_equal(npu_deduce *d)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 1; i < d->op->num_args && !status; i++) {
        if (d->op->args[i].form == NPU_ARG_TENSOR) {
            status = npu__check_equal(d, d->op->args[i].name, d->op->args[0].name);
        }
    }
    return status ? status : npu__type_same(d);
}

/* gemm and gemm_epilogue. Leading dims of a stand for more rows, which a transposed a does not have. */
static npu_status npu__type_aicf_gemm(npu_deduce *d)
{
    const npu_spec *a = npu_deduce_spec(d, "a"), *b = npu_deduce_spec(d, "b");
    uint32_t trans_a = npu_op_int(d->op, "transA", 0) != 0, trans_b = npu_op_int(d->op, "transB", 0) != 0;
    npu_status status = npu__check_rank(d, "a", 2, trans_a ? 2 : NPU_MAX_RANK);
    npu_spec y = *a;
    status = status ? status : npu__check_rank(d, "b", 2, 2);
    status = status ? status : npu__check_device_float(d, "a");
    status = status ? status : npu__check_same_dtype(d, "b", "a");
    status = status ? status : npu__check_same_dtype(d, "bias", "a");
    status = status ? status : npu__check_dim(d, "b", trans_b, a->dims[trans_a ? 0 : a->rank - 1u], "K of a");
    status = status ? status : npu__check_vector(d, "bias", b->dims[1 - trans_b], "N of b");
    if (status) {
        return status;
    }
    y.dims[0] = trans_a ? a->dims[1] : a->dims[0];
    y.dims[a->rank - 1] = b->dims[1 - trans_b];
    return npu__result_like(d, &y, npu__dtype_of(a));
}

static npu_status npu__type_aicf_bias_add(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    int64_t axis = npu_op_int(d->op, "axis", -1);
    npu_status status = npu__check_rank(d, "x", 2, NPU_MAX_RANK);
    if (!status && axis != -1 && axis != x->rank - 1) {
        return npu_deduce_fail(d, NPU_ERR_AXIS, "axis", "axis is %lld, expected -1 or %d", (long long)axis,
                               x->rank - 1);
    }
    status = status ? status : npu__check_same_dtype(d, "bias", "x");
    status = status ? status : npu__check_vector(d, "bias", x->dims[x->rank - 1], "last dim of x");
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_aicf_reduce_sum(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    uint32_t axis;
    npu_status status = npu__check_rank(d, "x", 1, NPU_MAX_RANK);
    status = status ? status : npu__check_device_float(d, "x");
    status = status ? status : npu__axis_arg(d, "axis", x->rank, &axis);
    return status ? status : npu__result_reduced(d, x, 1u << axis, npu__dtype_of(x));
}

/* Results p, m and v of a step. */
static npu_status npu__type_aicf_adam_step(npu_deduce *d)
{
    static const char *const names[] = { "p", "m", "v" };
    npu_status status = npu__check_equal(d, "g", "p");
    status = status ? status : npu__check_equal(d, "m", "p");
    status = status ? status : npu__check_equal(d, "v", "p");
    status = status ? status : npu__check_device_float(d, "p");
    status = status ? status : npu__check_scalar(d, "bc1", NPU_F32);
    status = status ? status : npu__check_scalar(d, "bc2", NPU_F32);
    for (uint32_t i = 0; i < NPU__COUNT(names) && !status; i++) {
        const npu_spec *x = npu_deduce_spec(d, names[i]);
        status = npu__result_like(d, x, npu__dtype_of(x));
    }
    return status;
}

static npu_status npu__type_aicf_step(npu_deduce *d)
{
    npu_status status = npu__check_scalar(d, "step", NPU_I32);
    return status ? status : npu__result(d, NPU_I32, 0, NULL);
}

static npu_status npu__type_aicf_bias_corr(npu_deduce *d)
{
    npu_status status = npu__check_scalar(d, "step", NPU_I32);
    status = status ? status : npu__result(d, NPU_F32, 0, NULL);
    return status ? status : npu__result(d, NPU_F32, 0, NULL);
}

/* What a normalisation returns: y like x, then the two statistics [len] in f32. */
static npu_status npu__result_statistics(npu_deduce *d, const npu_spec *x, int64_t len)
{
    npu_status status = npu__result_like(d, x, npu__dtype_of(x));
    status = status ? status : npu__result(d, NPU_F32, 1, &len);
    return status ? status : npu__result(d, NPU_F32, 1, &len);
}

/* What its gradient returns: dx like x, then those of gamma and beta [len] in the dtype of gamma. */
static npu_status npu__result_gradients(npu_deduce *d, const npu_spec *x, int64_t len)
{
    const npu_spec *gamma = npu_deduce_spec(d, "gamma");
    npu_dtype t = npu__dtype_of(gamma ? gamma : x);
    npu_status status = npu__result_like(d, x, npu__dtype_of(x));
    status = status ? status : npu__result(d, t, 1, &len);
    return status ? status : npu__result(d, t, 1, &len);
}

/* x of a normalisation and its gamma and beta [channels]. */
static npu_status npu__aicf_norm(npu_deduce *d, uint32_t rank, uint32_t axis)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_status status = npu__check_rank(d, "x", rank, rank);
    status = status ? status : npu__check_device_float(d, "x");
    status = status ? status : npu__check_parameter(d, "gamma", npu__dtype_of(x), x->dims[axis]);
    return status ? status : npu__check_parameter(d, "beta", npu__dtype_of(x), x->dims[axis]);
}

/* The operands that a gradient has besides: dy like x and the saved statistics [len] in f32. */
static npu_status npu__aicf_norm_saved(npu_deduce *d, const char *mean, const char *rstd, int64_t len)
{
    const char *const names[] = { mean, rstd };
    npu_status status = npu__check_equal(d, "dy", "x");
    for (uint32_t i = 0; i < 2 && !status; i++) {
        npu_dtype t = npu__dtype_of(npu_deduce_spec(d, names[i]));
        status = npu__check_dtype(d, names[i], t, t == NPU_F32, "f32");
        status = status ? status : npu__check_vector(d, names[i], len, "statistics");
    }
    return status;
}

static npu_status npu__type_aicf_layernorm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_status status = npu__aicf_norm(d, 2, 1);
    return status ? status : npu__result_statistics(d, x, x->dims[0]);
}

static npu_status npu__type_aicf_layernorm_bwd(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_status status = npu__aicf_norm(d, 2, 1);
    status = status ? status : npu__aicf_norm_saved(d, "mean", "rstd", x->dims[0]);
    return status ? status : npu__result_gradients(d, x, x->dims[1]);
}

static npu_status npu__type_aicf_batchnorm(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_status status = npu__aicf_norm(d, 4, 1);
    status = status ? status : npu__check_parameter(d, "running_mean", npu__dtype_of(x), x->dims[1]);
    status = status ? status : npu__check_parameter(d, "running_var", npu__dtype_of(x), x->dims[1]);
    if (!status && (npu_op_int(d->op, "flags", 0) & 1) &&
        (!npu_op_has(d->op, "running_mean") || !npu_op_has(d->op, "running_var"))) {
        return npu_deduce_fail(d, NPU_ERR_ARITY, "running_mean",
                               "running_mean and running_var are missing, flags asks for them");
    }
    return status ? status : npu__result_statistics(d, x, x->dims[1]);
}

static npu_status npu__type_aicf_batchnorm_bwd(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_status status = npu__aicf_norm(d, 4, 1);
    status = status ? status : npu__aicf_norm_saved(d, "save_mean", "save_rstd", x->dims[1]);
    return status ? status : npu__result_gradients(d, x, x->dims[1]);
}

static npu_status npu__type_aicf_loss(npu_deduce *d)
{
    npu_status status = npu__check_device_float(d, "pred");
    status = status ? status : npu__check_equal(d, "target", "pred");
    return status ? status : npu__result(d, npu__dtype_of(npu_deduce_spec(d, "pred")), 0, NULL);
}

/* Scores [M,N] and one class index per row. */
static npu_status npu__aicf_classes(npu_deduce *d, const char *name)
{
    npu_dtype t = npu__dtype_of(npu_deduce_spec(d, "target"));
    npu_status status = npu__check_rank(d, name, 2, 2);
    status = status ? status : npu__check_device_float(d, name);
    status = status ? status : npu__check_dtype(d, "target", t, t == NPU_I32 || t == NPU_I64, "i32 or i64");
    return status ? status : npu__check_vector(d, "target", npu_deduce_spec(d, name)->dims[0], "rows");
}

static npu_status npu__type_aicf_cross_entropy(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "logits");
    npu_status status = npu__aicf_classes(d, "logits");
    status = status ? status : npu__result(d, npu__dtype_of(x), 0, NULL);
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

static npu_status npu__type_aicf_cross_entropy_bwd(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "softmax");
    npu_status status = npu__aicf_classes(d, "softmax");
    return status ? status : npu__result_like(d, x, npu__dtype_of(x));
}

/* -------------------------------------------------------------------------------------------------------- */

/* Appends a value; the arrays have room and the name is set by the caller. */
static uint32_t npu__value_append(npu_graph *g, uint32_t spec, npu_role role, uint32_t producer,
                                  uint32_t result)
{
    npu__value *v = &g->values[g->num_values];
    memset(v, 0, sizeof *v);
    v->spec = spec;
    v->role = (uint32_t)role & 7u;
    v->producer = producer;
    v->result = result & 0x1fffffffu;
    return g->num_values++;
}

static npu_status npu__check_spec(npu_graph *g, const char *what, const char *name, const npu_spec *spec)
{
    if (!npu_dtype_is_valid(spec->dtype) || spec->cls == NPU_CLASS_NONE || spec->cls > NPU_CLASS_SCALAR ||
        spec->rank > NPU_MAX_RANK) {
        return npu__graph_fail(g, NPU_ERR_DTYPE,
                               "%s '%s': the spec has no valid dtype or class (rank over %d?)", what,
                               name ? name : "", NPU_MAX_RANK);
    }
    for (uint32_t i = 0; i < spec->rank; i++) {
        if (spec->dims[i] < -1 && (uint64_t)(-2 - spec->dims[i]) >= g->num_symbols) {
            return npu__graph_fail(g, NPU_ERR_SHAPE,
                                   "%s '%s': dim %u is %lld, which is no symbol of this graph", what,
                                   name ? name : "", (unsigned)i, (long long)spec->dims[i]);
        }
    }
    return NPU_OK;
}

/* A value without a producer. */
static npu_value npu__source(npu_graph *g, const char *what, const char *name, const npu_spec *spec,
                             npu_role role)
{
    uint32_t index, id;
    if (!g || npu__check_spec(g, what, name, spec)) {
        return npu__make_value(0);
    }
    index = npu__spec_intern(g, spec);
    if (index == NPU_NO_INDEX || !NPU__RESERVE(g, values, 1)) {
        npu__graph_no_memory(g);
        return npu__make_value(0);
    }
    id = npu__value_append(g, index, role, 0, 0);
    if (npu__value_name_set(g, id, name)) {
        g->num_values--;
        return npu__make_value(0);
    }
    return npu__make_value(id);
}

NPU_IR_API npu_value npu_input(npu_graph *g, const char *name, npu_spec spec)
{
    npu_value v;
    if (!g || !NPU__RESERVE(g, inputs, 1)) {
        npu__graph_no_memory(g);
        return npu__make_value(0);
    }
    v = npu__source(g, "input", name, &spec, NPU_ROLE_INPUT);
    if (v.id) {
        g->inputs[g->num_inputs++] = v.id;
    }
    return v;
}

NPU_IR_API npu_value npu_param(npu_graph *g, const char *name, npu_spec spec)
{
    npu_value old = npu_graph_find(g, name);
    if (!g || !name || !name[0]) {
        npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "param: a parameter needs a name");
        return npu__make_value(0);
    }
    if (old.id && g->values[old.id].role == NPU_ROLE_PARAM) {
        if (npu_spec_equal(npu_value_spec(g, old), &spec)) {
            return old;
        }
        npu__graph_fail(g, NPU_ERR_SHAPE, "param '%s': already exists with another spec", name);
        return npu__make_value(0);
    }
    return npu__source(g, "param", name, &spec, NPU_ROLE_PARAM);
}

static npu_status npu__data_set(npu_graph *g, uint32_t id, const void *data, size_t size)
{
    if (!NPU__RESERVE(g, data, 1)) {
        return npu__graph_no_memory(g);
    }
    if (!g->values[id].data) {
        g->values[id].data = g->num_data++;
    }
    g->data[g->values[id].data].data = data;
    g->data[g->values[id].data].size = size;
    return NPU_OK;
}

NPU_IR_API npu_status npu_param_bind(npu_graph *g, const char *name, const void *data, size_t size)
{
    npu_value v = npu_graph_find(g, name);
    size_t want = 0;
    npu_status status;
    if (!v.id) {
        return npu__graph_fail(g, NPU_ERR_NOT_FOUND, "param '%s': not found", name ? name : "");
    }
    if (g->values[v.id].role != NPU_ROLE_PARAM || !data) {
        return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "'%s': %s", name,
                               data ? "is not a parameter" : "data is NULL");
    }
    status = npu_spec_size(npu_value_spec(g, v), &want);
    if (status || want != size) {
        return npu__graph_fail(g, status ? status : NPU_ERR_SHAPE,
                               "param '%s': %zu bytes given, expected %zu", name, size, want);
    }
    return npu__data_set(g, v.id, data, size);
}

/* A constant whose data stays where it is. */
static npu_value npu__constant(npu_graph *g, const char *name, const npu_spec *spec, const void *data,
                               bool is_owned)
{
    size_t size = 0;
    npu_status status = npu_spec_size(spec, &size);
    npu_value v;
    if (!g || status || (!data && size)) {
        status = status ? status : NPU_ERR_CONVERSION;
        npu__graph_fail(g, status, "constant '%s': %s", name ? name : "", status == NPU_ERR_CONVERSION ?
                        "has no data; use npu_param for data that is bound later" : npu_status_text(status));
        return npu__make_value(0);
    }
    v = npu__source(g, "constant", name, spec, NPU_ROLE_CONSTANT);
    if (v.id && npu__data_set(g, v.id, data, size)) {
        return npu__make_value(0);
    }
    g->data[g->values[v.id].data].is_owned = v.id && is_owned;
    return v;
}

static npu_value npu__constant_copy(npu_graph *g, const char *name, const npu_spec *spec, const void *data)
{
    size_t size = 0;
    void *own = NULL;
    if (g && data && npu_spec_size(spec, &size) == NPU_OK) {
        own = npu__arena_alloc(&g->arena, size ? size : 1);
        if (!own) {
            npu__graph_no_memory(g);
            return npu__make_value(0);
        }
        memcpy(own, data, size);
    }
    return npu__constant(g, name, spec, own, true);
}

NPU_IR_API npu_value npu_constant(npu_graph *g, const char *name, npu_spec spec, const void *data)
{
    return npu__constant_copy(g, name, &spec, data);
}

NPU_IR_API npu_value npu_constant_ref(npu_graph *g, const char *name, npu_spec spec, const void *data)
{
    return npu__constant(g, name, &spec, data, false);
}

NPU_IR_API npu_value npu_number(npu_graph *g, npu_scalar x)
{
    npu_spec spec = npu_spec_tensor(x.is_bool ? NPU_BOOL : x.is_float ? NPU_F64 : NPU_I64, 0, NULL);
    uint8_t byte = (uint8_t)(x.i != 0);
    spec.wrapped = 1;
    return npu__constant_copy(g, NULL, &spec,
                              x.is_bool        ? (const void *)&byte
                                  : x.is_float ? (const void *)&x.f
                                               : (const void *)&x.i);
}

NPU_IR_API npu_value npu_state(npu_graph *g, const char *name, npu_spec spec)
{
    return npu__source(g, "state", name, &spec, NPU_ROLE_STATE);
}

NPU_IR_API npu_status npu_update(npu_graph *g, npu_value state, npu_value next)
{
    const npu__value *s = npu__value_at(g, state), *n = npu__value_at(g, next);
    if (!s || !n || s->role != NPU_ROLE_STATE) {
        return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT,
                               "update: value %u is no state, or value %u does not exist", (unsigned)state.id,
                               (unsigned)next.id);
    }
    if (s->spec != n->spec) {
        return npu__graph_fail(g, NPU_ERR_SHAPE, "update: the next value's spec is not the state's");
    }
    for (uint32_t i = 0; i < g->num_updates; i++) {
        if (g->updates[i].a == state.id) {
            return npu__graph_fail(g, NPU_ERR_DUPLICATE, "update: state '%s' has a next value already",
                                   g->names[s->name]);
        }
    }
    if (!NPU__RESERVE(g, updates, 1)) {
        return npu__graph_no_memory(g);
    }
    g->updates[g->num_updates].a = state.id;
    g->updates[g->num_updates++].b = next.id;
    return NPU_OK;
}

NPU_IR_API npu_status npu_output(npu_graph *g, const char *name, npu_value v)
{
    char label[16];
    uint32_t index = 0;
    npu_status status;
    if (!npu__value_at(g, v)) {
        return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "output '%s': there is no such value",
                               name ? name : "");
    }
    name = name && name[0] ? name : npu__value_label(g, v.id, label);
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        if (strcmp(g->names[g->outputs[i].b], name) == 0) {
            return npu__graph_fail(g, NPU_ERR_DUPLICATE, "output '%s': the name is already taken", name);
        }
    }
    if (!NPU__RESERVE(g, outputs, 1)) {
        return npu__graph_no_memory(g);
    }
    status = npu__name_add(g, name, &index);
    if (status == NPU_OK) {
        g->outputs[g->num_outputs].a = v.id;
        g->outputs[g->num_outputs++].b = index;
    }
    return status;
}

NPU_IR_API npu_status npu_value_set_name(npu_graph *g, npu_value v, const char *name)
{
    if (!npu__value_at(g, v) || g->values[v.id].name) {
        return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "value %u does not exist or has a name",
                               (unsigned)v.id);
    }
    return npu__value_name_set(g, v.id, name);
}

/* ---- emit ---- */

/* One op to append: what every way of emitting comes down to. */
typedef struct npu__emission {
    const npu_op_def *def;
    const npu_value *operands;
    uint32_t num_operands;
    const uint32_t *groups;     /* per tensor-list argument */
    const uint8_t *attrs;       /* NULL = def->defaults */
    uint32_t attrs_size;
    const npu_spec *given;      /* result specs to compare with; NULL = deduced ones are taken */
    uint32_t num_given;
    bool is_hint;               /* given tells the symbols of dims that are not known; the rest may differ */
} npu__emission;

/* Makes room for the operand specs and checks that every operand exists where it must. */
static npu_status npu__emit_operands(npu_graph *g, const npu__emission *e, const npu_bound_arg *args)
{
    const npu_schema *schema = e->def->schema;
    if (!NPU__RESERVE(g, in_specs, e->num_operands) || !NPU__RESERVE(g, in_data, e->num_operands)) {
        return npu__graph_no_memory(g);
    }
    for (uint32_t i = 0; i < e->num_operands; i++) {
        uint32_t id = e->operands[i].id;
        if (id >= g->num_values) {
            return npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT,
                                   "%s: operand %u is value %u, which does not exist", e->def->name,
                                   (unsigned)i, (unsigned)id);
        }
        g->in_specs[i] = id ? g->specs[g->values[id].spec] : NULL;
        g->in_data[i] = npu__constant_data(g, id);
    }
    for (uint32_t a = 0; a < schema->num_args; a++) {
        const npu_schema_type *type = &schema->args[a].type;
        bool hole_allowed = type->list ? type->element_optional : type->optional;
        uint32_t count = args[a].form == NPU_ARG_TENSORS ? args[a].count
            : args[a].form == NPU_ARG_TENSOR             ? 1
                                                         : 0;
        for (uint32_t i = 0; npu__is_operand(&schema->args[a]) && !hole_allowed && i < count; i++) {
            if (e->operands[args[a].first + i].id == 0) { /* a failed handle, unless the caller just forgot it */
                return g->diag.status ? g->diag.status
                                      : npu__graph_fail(g, NPU_ERR_ARITY, "%s: operand '%s' is missing",
                                                        e->def->name, schema->args[a].name);
            }
        }
    }
    return NPU_OK;
}

/* Finds the body of an op with a Graph argument. */
static npu_status npu__emit_body(npu_graph *g, npu_op_info *info)
{
    for (uint32_t a = 0; a < info->num_args; a++) {
        if (info->args[a].form == NPU_ARG_GRAPH) {
            info->body = npu__body(g, info);
            return info->body ? NPU_OK
                              : npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT,
                                                "%s: '%s' is graph %lld, but there are %u child graphs", info->name,
                                                info->args[a].name, (long long)info->args[a].i,
                                                (unsigned)g->num_children);
        }
    }
    return NPU_OK;
}

/* Symbols for the dims that a rule left open, where they come from. */
typedef struct npu__opening {
    const npu_deduce *at_most; /* the same results with every dim at its largest; NULL = they cannot be told */
    bool is_anonymous;         /* an operand has a dim that no symbol stands for: neither have the results */
    int64_t last, last_symbol; /* equal unknown dims follow one another */
} npu__opening;

/* True where a dim is -1 or a number is fed by a value: no symbol will ever tell. */
static bool npu__is_anonymous(const npu_op_info *info)
{
    for (uint32_t i = 0; i < info->num_in; i++) {
        for (uint32_t k = 0; info->in[i] && k < info->in[i]->rank; k++) {
            if (info->in[i]->dims[k] == NPU_DYNAMIC_DIM) {
                return true;
            }
        }
    }
    for (uint32_t a = 0; a < info->num_args; a++) {
        const npu_bound_arg *arg = &info->args[a];
        for (uint32_t k = 0; arg->form == NPU_ARG_INTS && k < arg->count; k++) {
            if (npu__get_le(arg->data + 8u * k, 8) == (uint64_t)INT64_MIN) {
                return true;
            }
        }
        if (arg->form == NPU_ARG_INT && arg->i == INT64_MIN) {
            return true;
        }
    }
    return false;
}

/* Replaces one open dim, which is dim i of result r. */
static npu_status npu__emit_symbol(npu_graph *g, npu__opening *o, uint32_t r, uint32_t i, int64_t *dim)
{
    const npu_spec *most = o->at_most && r < o->at_most->num_results ? &o->at_most->results[r] : NULL;
    int64_t bound = most && i < most->rank ? npu__dim_bound(most->dims[i]) : npu__dim_bound(*dim);
    if (*dim == o->last) {
        *dim = o->last_symbol;
    } else if (*dim != NPU_DYNAMIC_DIM || bound >= 0 || (most && !o->is_anonymous)) {
        o->last = npu__is_unknown(*dim) ? *dim : 0;
        bound = bound == 0 ? 1 : bound < 0 ? 0 : bound; /* to a symbol 0 means unbounded */
        *dim = o->last_symbol = npu__symbol_fresh(g, bound);
    }
    return *dim ? NPU_OK : NPU_ERR_NO_MEMORY;
}

/* Gives the open dims of g->results symbols. */
static npu_status npu__emit_symbols(npu_graph *g, const npu__emission *e, const npu_op_info *info)
{
    npu_op_info known = *info;
    npu_deduce d;
    npu__opening o;
    npu_status status = npu__info_at(g, e->def->schema, e->groups, NULL, &known, &g->bounds);
    memset(&d, 0, sizeof d);
    memset(&o, 0, sizeof o);
    d.op = &known;
    d.def = e->def;
    d.allocator = g->allocator;
    d.is_scalar = g->level == NPU_LEVEL_SCALAR;
    o.is_anonymous = npu__is_anonymous(info);
    if (status == NPU_OK && npu__deduce(&d) == NPU_OK) {
        o.at_most = &d;
    }
    for (uint32_t r = 0; r < g->num_results && status != NPU_ERR_NO_MEMORY; r++) {
        for (uint32_t i = 0; i < g->results[r].rank && status != NPU_ERR_NO_MEMORY; i++) {
            int64_t *dim = &g->results[r].dims[i];
            if (npu__is_open(g, *dim)) {
                status = npu__emit_symbol(g, &o, r, i, dim);
            }
        }
    }
    npu__free(&g->allocator, d.results, d.capacity * sizeof *d.results);
    return status == NPU_ERR_NO_MEMORY ? npu__graph_no_memory(g) : NPU_OK;
}

/* Compares the results with those given, and opens what is left open. */
static npu_status npu__emit_results(npu_graph *g, const npu__emission *e, const npu_op_info *info)
{
    bool same = !e->given || e->is_hint || e->num_given == g->num_results, is_open = false;
    for (uint32_t i = 0; i < g->num_results; i++) {
        npu_spec *y = &g->results[i];
        if (e->given && i < e->num_given) {
            npu__settle(g, y, &e->given[i]);
            same = same && (e->is_hint || npu_spec_equal(y, &e->given[i]));
        }
        for (uint32_t k = 0; k < y->rank; k++) {
            is_open = is_open || npu__is_open(g, y->dims[k]);
        }
    }
    if (!same) {
        return npu__graph_fail(g, NPU_ERR_SHAPE,
                               "%s: the given results differ from what its type rule gives", info->name);
    }
    return is_open ? npu__emit_symbols(g, e, info) : NPU_OK;
}

static npu_status npu__emit_deduce(npu_graph *g, const npu__emission *e, const npu_op_info *info)
{
    npu_deduce d;
    npu_diag diag;
    npu_status status = NPU_OK;
    memset(&d, 0, sizeof d);
    d.op = info;
    d.def = e->def;
    d.diag = &diag;
    diag.status = NPU_OK;
    d.results = g->results;
    d.capacity = g->cap_results;
    d.allocator = g->allocator;
    d.is_scalar = g->level == NPU_LEVEL_SCALAR;
    if (e->def->rule) {
        status = npu__deduce(&d);
    } else {
        for (uint32_t i = 0; status == NPU_OK && i < e->num_given; i++) {
            status = npu__check_spec(g, "result of", e->def->name, &e->given[i]);
            status = status ? status : npu_deduce_result(&d, &e->given[i]);
        }
    }
    g->results = d.results;
    g->cap_results = d.capacity;
    g->num_results = d.num_results;
    if (status) {
        if (diag.status == NPU_OK) {
            memset(&diag, 0, sizeof diag);
            npu__fail(&diag, status, "%s: %s", info->name, npu_status_text(status));
        }
        diag.op = 0;
        diag.value = 0;
        diag.line = 0;
        diag.file[0] = 0;
        return npu__graph_adopt(g, &diag);
    }
    return e->def->rule ? npu__emit_results(g, e, info) : NPU_OK;
}

static uint32_t npu__emit_location(npu_graph *g)
{
    const npu__location *last = &g->locations[g->num_locations - 1];
    if (!g->at_file) {
        return 0;
    }
    if (last->file != g->at_file || last->line != (uint32_t)g->at_line) {
        g->locations[g->num_locations].file = g->at_file;
        g->locations[g->num_locations++].line = (uint32_t)g->at_line;
    }
    return g->num_locations - 1;
}

/* Reserves everything first, so that running out of memory leaves the graph as it was. */
static npu_status npu__emit_reserve(npu_graph *g, const npu__emission *e, uint32_t num_lists)
{
    for (uint32_t i = 0; i < g->num_results; i++) {
        if (npu__spec_intern(g, &g->results[i]) == NPU_NO_INDEX) {
            return npu__graph_no_memory(g);
        }
    }
    if (!NPU__RESERVE(g, ops, 1) || !NPU__RESERVE(g, uses, e->num_operands) ||
        !NPU__RESERVE(g, values, g->num_results) || !NPU__RESERVE(g, groups, num_lists) ||
        !NPU__RESERVE(g, blobs, e->attrs_size) || !NPU__RESERVE(g, locations, 1)) {
        return npu__graph_no_memory(g);
    }
    return NPU_OK;
}

static void npu__emit_uses(npu_graph *g, const npu__emission *e, uint32_t op)
{
    for (uint32_t i = 0; i < e->num_operands; i++) {
        npu__use *use = &g->uses[g->num_uses++];
        npu__value *v = &g->values[e->operands[i].id];
        use->value = e->operands[i].id;
        use->op = op;
        use->next = 0;
        if (use->value) {
            if (v->last_use) {
                g->uses[v->last_use - 1].next = g->num_uses;
            } else {
                v->first_use = g->num_uses;
            }
            v->last_use = g->num_uses;
            v->num_uses++;
        }
    }
}

static npu_op npu__emit_append(npu_graph *g, const npu__emission *e, uint32_t num_lists)
{
    npu__op *o = &g->ops[g->num_ops];
    uint32_t id = g->num_ops++;
    memset(o, 0, sizeof *o);
    o->def = e->def;
    o->first_operand = g->num_uses;
    o->num_operands = e->num_operands;
    o->first_result = g->num_values;
    o->num_results = g->num_results;
    o->location = npu__emit_location(g);
    o->groups = g->num_groups;
    o->attrs = NPU_NO_INDEX;
    for (uint32_t i = 0; i < num_lists; i++) {
        g->groups[g->num_groups++] = e->groups[i];
    }
    if (e->attrs) {
        o->attrs = g->num_blobs;
        o->attrs_size = e->attrs_size;
        if (e->attrs_size) {
            memcpy(g->blobs + g->num_blobs, e->attrs, e->attrs_size);
        }
        g->num_blobs += e->attrs_size;
    }
    npu__emit_uses(g, e, id);
    for (uint32_t i = 0; i < g->num_results; i++) {
        npu__value_append(g, npu__spec_intern(g, &g->results[i]), NPU_ROLE_TEMPORARY, id, i);
    }
    return npu__make_op(id);
}

static npu_op npu__emit(npu_graph *g, const npu__emission *given)
{
    npu__emission e = *given;
    npu_bound_arg args[NPU_MAX_ARGS];
    npu_op_info info;
    npu_diag diag;
    uint32_t num_lists = npu__num_lists(e.def->schema), num_symbols = g->num_symbols;
    memset(&info, 0, sizeof info);
    memset(&diag, 0, sizeof diag);
    info.size = (uint32_t)sizeof info;
    info.kind = e.def->kind;
    info.traits = e.def->traits;
    info.name = e.def->name;
    info.attrs = e.attrs ? e.attrs : e.def->defaults;
    info.attrs_size = e.attrs ? e.attrs_size : e.def->defaults_size;
    info.num_args = e.def->schema->num_args;
    info.args = args;
    info.num_in = e.num_operands;
    if (npu_blob_bind(e.def->schema, info.attrs, info.attrs_size, e.groups, e.num_operands, args, &diag)) {
        npu__graph_adopt(g, &diag);
        return npu__make_op(0);
    }
    if (npu__emit_operands(g, &e, args)) {
        return npu__make_op(0);
    }
    info.in = g->in_specs;
    info.in_data = g->in_data;
    if (npu__emit_body(g, &info) || npu__emit_deduce(g, &e, &info) || npu__emit_reserve(g, &e, num_lists)) {
        g->num_symbols = num_symbols; /* its results' are gone with them */
        return npu__make_op(0);
    }
    return npu__emit_append(g, &e, num_lists);
}

/* ---- emit by name ---- */

static bool npu__push_operand(npu_graph *g, npu_value v)
{
    if (!NPU__RESERVE(g, operands, 1)) {
        return false;
    }
    g->operands[g->num_operands++] = v;
    return true;
}

/* A number where the schema has a tensor becomes a wrapped constant: x * 0.5. */
static npu_value npu__number_operand(npu_graph *g, const npu_arg *value)
{
    switch (value->form) {
    case NPU_ARG_INT: return npu_number(g, npu_scalar_int(value->as.i));
    case NPU_ARG_BOOL: return npu_number(g, npu_scalar_bool(value->as.i != 0));
    case NPU_ARG_FLOAT: return npu_number(g, npu_scalar_float(value->as.f));
    default: return npu__make_value(0);
    }
}

/* Pushes the operands of one tensor argument; value NULL = not given. */
static npu_status npu__collect_tensor(npu_graph *g, const npu_op_def *def, const npu_schema_arg *arg,
                                      const npu_arg *value)
{
    uint32_t count = value && value->form == NPU_ARG_TENSORS ? value->count : 1;
    npu_value one = npu__make_value(0);
    if (!value && arg->default_form == NPU_DEFAULT_REQUIRED && !arg->type.optional) {
        return npu__graph_fail(g, NPU_ERR_ARITY, "%s: operand '%s' is missing", def->name, arg->name);
    }
    if (value && value->form == NPU_ARG_TENSOR) {
        one = value->as.value;
    } else if (value && value->form >= NPU_ARG_INT && value->form <= NPU_ARG_BOOL && !arg->type.list) {
        one = npu__number_operand(g, value);
    } else if (value && value->form != NPU_ARG_NONE && (value->form != NPU_ARG_TENSORS || !arg->type.list)) {
        return npu__graph_fail(g, NPU_ERR_ATTRIBUTE, "%s: operand '%s' is not given as a %s", def->name,
                               arg->name, arg->type.list ? "list of tensors" : "tensor");
    }
    if (arg->type.list) {
        count = value && value->form == NPU_ARG_NONE ? 0 : value ? count : 0;
        if (!NPU__RESERVE(g, counts, 1)) {
            return npu__graph_no_memory(g);
        }
        g->counts[g->num_counts++] = count;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!npu__push_operand(g, value && value->form == NPU_ARG_TENSORS ? value->as.values[i] : one)) {
            return npu__graph_no_memory(g);
        }
    }
    return NPU_OK;
}

/* Operands in schema order: tensor arguments, and integers that are fed by a value. */
static npu_status npu__collect_operands(npu_graph *g, const npu_op_def *def, const npu_arg *values,
                                        uint32_t num_values)
{
    const npu_schema *schema = def->schema;
    npu_status status = NPU_OK;
    g->num_operands = g->num_counts = 0;
    for (uint32_t a = 0; status == NPU_OK && a < schema->num_args; a++) {
        const npu_arg *value = NULL;
        for (uint32_t i = 0; i < num_values; i++) {
            if (npu__arg_target(schema, values, i) == (int)a) {
                value = &values[i];
            }
        }
        if (npu__is_operand(&schema->args[a])) {
            status = npu__collect_tensor(g, def, &schema->args[a], value);
        } else if (value && value->form == NPU_ARG_TENSOR && !npu__push_operand(g, value->as.value)) {
            status = npu__graph_no_memory(g);
        }
    }
    return status;
}

static npu_status npu__pack_args(npu_graph *g, const npu_op_def *def, const npu_arg *values,
                                 uint32_t num_values, uint32_t *size)
{
    npu_diag diag;
    npu_status status;
    *size = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        memset(&diag, 0, sizeof diag);
        status = npu_blob_pack(def->schema, values, num_values, g->packed, g->cap_packed, size, &diag);
        if (status != NPU_ERR_OVERFLOW || *size <= g->cap_packed) {
            break;
        }
        if (!NPU__RESERVE(g, packed, *size)) {
            return npu__graph_no_memory(g);
        }
    }
    return status ? npu__graph_adopt(g, &diag) : NPU_OK;
}

static npu_op npu__emit_args(npu_graph *g, const npu_op_def *def, const npu_arg *args, uint32_t num_args,
                             const npu_spec *given, uint32_t num_given)
{
    npu__emission e;
    memset(&e, 0, sizeof e);
    if (npu__collect_operands(g, def, args, num_args) ||
        npu__pack_args(g, def, args, num_args, &e.attrs_size)) {
        return npu__make_op(0);
    }
    e.def = def;
    e.operands = g->operands;
    e.num_operands = g->num_operands;
    e.groups = g->counts;
    e.attrs = g->packed ? g->packed : (const uint8_t *)"";
    e.given = given;
    e.num_given = num_given;
    return npu__emit(g, &e);
}

NPU_IR_API npu_op npu_emit(npu_graph *g, npu_kind kind, const npu_arg *args, uint32_t num_args)
{
    const npu_op_def *def = g ? npu_registry_get(g->registry, kind) : NULL;
    if (!def) {
        npu__graph_fail(g, NPU_ERR_NOT_FOUND, "emit: kind 0x%08x is not registered", (unsigned)kind);
        return npu__make_op(0);
    }
    return npu__emit_args(g, def, args, num_args, NULL, 0);
}

NPU_IR_API npu_op npu_emit_name(npu_graph *g, const char *name, const npu_arg *args, uint32_t num_args)
{
    const npu_op_def *def = g ? npu_registry_find(g->registry, name) : NULL;
    if (!def) {
        npu__graph_fail(g, NPU_ERR_NOT_FOUND, "emit: op '%s' is not registered", name ? name : "");
        return npu__make_op(0);
    }
    return npu__emit_args(g, def, args, num_args, NULL, 0);
}

/* ---- unknown ops ---- */

static const char *npu__form_type(uint32_t form)
{
    switch (form) {
    case NPU_ARG_TENSOR: return "Tensor?";
    case NPU_ARG_TENSORS: return "Tensor?[]";
    case NPU_ARG_INT: return "int";
    case NPU_ARG_FLOAT: return "float";
    case NPU_ARG_BOOL: return "bool";
    case NPU_ARG_STR: return "str";
    case NPU_ARG_DTYPE: return "ScalarType";
    case NPU_ARG_INTS: return "int[]";
    case NPU_ARG_FLOATS: return "float[]";
    case NPU_ARG_BOOLS: return "bool[]";
    case NPU_ARG_SCALARS: return "Scalar[]";
    case NPU_ARG_GRAPH: return "Graph";
    default: return "int?";
    }
}

/* A schema line that fits the given arguments: "name(Tensor? a, *, int b) -> (Tensor, Tensor)". */
static void npu__synthesize_schema(npu_text *line, const char *base, const char *overload,
                                   const npu_arg *args, uint32_t num_args, uint32_t num_results)
{
    npu_text_printf(line, "%s%s%s(", base, overload[0] ? "." : "", overload);
    for (uint32_t i = 0; i < num_args; i++) {
        npu_text_printf(line, "%s%s ", i ? ", " : "", npu__form_type(args[i].form));
        if (args[i].name) {
            npu__text_str(line, args[i].name);
        } else {
            npu_text_printf(line, "arg%u", (unsigned)i);
        }
    }
    npu__text_str(line, ") -> (");
    for (uint32_t i = 0; i < num_results; i++) {
        npu__text_str(line, i ? ", Tensor" : "Tensor");
    }
    npu__text_str(line, ")");
}

/* A row of the graph's own, for an op that no registry knows. */
static const npu_op_def *npu__define_unknown(npu_graph *g, const char *name, const char *line)
{
    npu_schema *schema = NULL;
    npu_op_def *def = (npu_op_def *)npu__arena_alloc(&g->arena, sizeof *def);
    char *copy = npu__arena_str(&g->arena, name);
    npu_diag diag;
    npu_status status = NPU_ERR_NO_MEMORY;
    memset(&diag, 0, sizeof diag);
    if (def && copy && NPU__RESERVE(g, unknown, 1)) {
        status = npu_schema_parse(&schema, line, &g->allocator, &diag);
    }
    if (status) {
        npu__graph_fail(g, status, "%s: %s", name, diag.message[0] ? diag.message : npu_status_text(status));
        return NULL;
    }
    memset(def, 0, sizeof *def);
    def->kind = 0;
    def->space = "";
    def->category = "unknown";
    def->name = copy;
    def->doc = "not registered";
    def->schema = schema;
    def->is_custom = true;
    g->unknown[g->num_unknown++] = def;
    return def;
}

/* Every use of an unknown name gets a row of its own: two uses may have different arguments. */
static const npu_op_def *npu__synthesize(npu_graph *g, const char *name, const npu_arg *args,
                                         uint32_t num_args, uint32_t num_results)
{
    npu_text line = npu_text_make(&g->allocator);
    const npu_op_def *def = NULL;
    npu__synthesize_schema(&line, "unknown", "", args, num_args, num_results);
    if (line.status) {
        npu__graph_no_memory(g);
    } else {
        def = npu__define_unknown(g, name, line.data);
    }
    npu_text_free(&line);
    return def;
}

NPU_IR_API npu_op npu_emit_typed(npu_graph *g, const char *name, const npu_arg *args, uint32_t num_args,
                                 const npu_spec *results, uint32_t num_results)
{
    const npu_op_def *def;
    if (!g || !name || !name[0]) {
        npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "emit: an op needs a name");
        return npu__make_op(0);
    }
    def = npu_registry_find(g->registry, name);
    if (!def) {
        def = npu__synthesize(g, name, args, num_args, num_results);
    }
    return def ? npu__emit_args(g, def, args, num_args, results, num_results) : npu__make_op(0);
}

/* ---- typed builders ---- */

NPU_IR_API npu_op npu_emit_struct(npu_graph *g, npu_kind kind, const npu_value *operands,
                                  uint32_t num_operands, const uint32_t *groups, const void *attrs,
                                  size_t attrs_size)
{
    npu__emission e;
    npu_diag diag;
    npu_status status = NPU_OK;
    memset(&e, 0, sizeof e);
    e.def = g ? npu_registry_get(g->registry, kind) : NULL;
    if (!e.def) {
        npu__graph_fail(g, NPU_ERR_NOT_FOUND, "emit: kind 0x%08x is not registered", (unsigned)kind);
        return npu__make_op(0);
    }
    e.operands = operands;
    e.num_operands = num_operands;
    e.groups = groups;
    if (attrs || !e.def->defaults) {
        for (int attempt = 0; attempt < 2; attempt++) {
            memset(&diag, 0, sizeof diag);
            status = attrs
                ? npu_blob_pack_struct(e.def->schema, attrs, attrs_size, g->packed, g->cap_packed,
                                       &e.attrs_size, &diag)
                : npu_blob_pack(e.def->schema, NULL, 0, g->packed, g->cap_packed, &e.attrs_size, &diag);
            if (status != NPU_ERR_OVERFLOW || e.attrs_size <= g->cap_packed) {
                break;
            }
            if (!NPU__RESERVE(g, packed, e.attrs_size)) {
                npu__graph_no_memory(g);
                return npu__make_op(0);
            }
        }
        if (status) {
            npu__graph_adopt(g, &diag);
            return npu__make_op(0);
        }
        e.attrs = g->packed ? g->packed : (const uint8_t *)"";
    }
    return npu__emit(g, &e);
}

static npu_value npu__first(npu_graph *g, npu_op op) { return npu_op_result(g, op, 0); }

static npu_value npu__emit1(npu_graph *g, npu_kind kind, npu_value x, const void *attrs, size_t size)
{
    return npu__first(g, npu_emit_struct(g, kind, &x, 1, NULL, attrs, size));
}

static npu_value npu__emit2(npu_graph *g, npu_kind kind, npu_value x, npu_value y, const void *attrs,
                            size_t size)
{
    npu_value v[2];
    v[0] = x;
    v[1] = y;
    return npu__first(g, npu_emit_struct(g, kind, v, 2, NULL, attrs, size));
}

static npu_value npu__emit3(npu_graph *g, npu_kind kind, npu_value x, npu_value y, npu_value z,
                            const void *attrs, size_t size)
{
    npu_value v[3];
    v[0] = x;
    v[1] = y;
    v[2] = z;
    return npu__first(g, npu_emit_struct(g, kind, v, 3, NULL, attrs, size));
}

/* sizeof of an attrs pointer's struct, and 0 for NULL */
#define NPU__ATTRS(attrs) (attrs), (attrs) ? sizeof *(attrs) : 0

NPU_IR_API npu_value npu_conv1d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                const npu_conv1d_attrs *attrs)
{
    return npu__emit3(g, NPU_ATEN_CONV1D, x, w, b, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_conv2d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                const npu_conv2d_attrs *attrs)
{
    return npu__emit3(g, NPU_ATEN_CONV2D, x, w, b, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_conv_transpose2d(npu_graph *g, npu_value x, npu_value w, npu_value b,
                                          const npu_conv_transpose2d_attrs *attrs)
{
    return npu__emit3(g, NPU_ATEN_CONV_TRANSPOSE2D, x, w, b, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_linear(npu_graph *g, npu_value x, npu_value w, npu_value b)
{
    return npu__emit3(g, NPU_ATEN_LINEAR, x, w, b, NULL, 0);
}

NPU_IR_API npu_value npu_mm(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_MM, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_bmm(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_BMM, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_matmul(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_MATMUL, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_addmm(npu_graph *g, npu_value c, npu_value a, npu_value b,
                               const npu_addmm_attrs *attrs)
{
    return npu__emit3(g, NPU_ATEN_ADDMM, c, a, b, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_relu(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_RELU, x, NULL, 0); }
NPU_IR_API npu_value npu_silu(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_SILU, x, NULL, 0); }
NPU_IR_API npu_value npu_sigmoid(npu_graph *g, npu_value x)
{
    return npu__emit1(g, NPU_ATEN_SIGMOID, x, NULL, 0);
}

NPU_IR_API npu_value npu_tanh(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_TANH, x, NULL, 0); }
NPU_IR_API npu_value npu_hardswish(npu_graph *g, npu_value x)
{
    return npu__emit1(g, NPU_ATEN_HARDSWISH, x, NULL, 0);
}

NPU_IR_API npu_value npu_gelu(npu_graph *g, npu_value x, const npu_gelu_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_GELU, x, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_leaky_relu(npu_graph *g, npu_value x, const npu_leaky_relu_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_LEAKY_RELU, x, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_hardtanh(npu_graph *g, npu_value x, const npu_hardtanh_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_HARDTANH, x, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_elu(npu_graph *g, npu_value x, const npu_elu_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_ELU, x, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_batch_norm(npu_graph *g, npu_value x, npu_value weight, npu_value bias,
                                    npu_value mean, npu_value var, double eps)
{
    npu_arg a[9];
    a[0] = npu_arg_tensor("input", x);
    a[1] = npu_arg_tensor("weight", weight);
    a[2] = npu_arg_tensor("bias", bias);
    a[3] = npu_arg_tensor("running_mean", mean);
    a[4] = npu_arg_tensor("running_var", var);
    a[5] = npu_arg_bool("training", false);
    a[6] = npu_arg_float("momentum", 0.1);
    a[7] = npu_arg_float("eps", eps);
    a[8] = npu_arg_bool("cudnn_enabled", false);
    return npu__first(g, npu_emit(g, NPU_ATEN_BATCH_NORM, a, 9));
}

NPU_IR_API npu_value npu_layer_norm(npu_graph *g, npu_value x, npu_value weight, npu_value bias,
                                    uint32_t num_dims, double eps)
{
    const npu_spec *spec = npu_value_spec(g, x);
    npu_arg a[5];
    if (spec && (num_dims == 0 || num_dims > spec->rank)) {
        npu__graph_fail(g, NPU_ERR_RANK, "layer_norm: num_dims is %u, expected 1..%u", (unsigned)num_dims,
                        (unsigned)spec->rank);
        return npu__make_value(0);
    }
    a[0] = npu_arg_tensor("input", x);
    a[1] = npu_arg_ints("normalized_shape", spec ? spec->dims + spec->rank - num_dims : NULL,
                        spec ? num_dims : 0);
    a[2] = npu_arg_tensor("weight", weight);
    a[3] = npu_arg_tensor("bias", bias);
    a[4] = npu_arg_float("eps", eps);
    return npu__first(g, npu_emit(g, NPU_ATEN_LAYER_NORM, a, 5));
}

NPU_IR_API npu_value npu_group_norm(npu_graph *g, npu_value x, int64_t num_groups, npu_value weight,
                                    npu_value bias, double eps)
{
    npu_arg a[5];
    a[0] = npu_arg_tensor("input", x);
    a[1] = npu_arg_int("num_groups", num_groups);
    a[2] = npu_arg_tensor("weight", weight);
    a[3] = npu_arg_tensor("bias", bias);
    a[4] = npu_arg_float("eps", eps);
    return npu__first(g, npu_emit(g, NPU_ATEN_GROUP_NORM, a, 5));
}

NPU_IR_API npu_value npu_max_pool2d(npu_graph *g, npu_value x, const npu_max_pool2d_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_MAX_POOL2D, x, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_avg_pool2d(npu_graph *g, npu_value x, const npu_avg_pool2d_attrs *attrs)
{
    return npu__emit1(g, NPU_ATEN_AVG_POOL2D, x, NPU__ATTRS(attrs));
}

/* x and one or two arguments that are not tensors */
static npu_op npu__emit_with(npu_graph *g, npu_kind kind, npu_value x, npu_arg first, npu_arg second)
{
    npu_arg a[3];
    a[0] = npu_arg_tensor(NULL, x);
    a[1] = first;
    a[2] = second;
    return npu_emit(g, kind, a, second.name ? 3 : 2);
}

static npu_value npu__emit_ints(npu_graph *g, npu_kind kind, npu_value x, const char *name,
                                const int64_t *data, uint32_t len)
{
    return npu__first(g, npu__emit_with(g, kind, x, npu_arg_ints(name, data, len), npu_arg_none(NULL)));
}

NPU_IR_API npu_value npu_adaptive_avg_pool2d(npu_graph *g, npu_value x, int64_t rows, int64_t columns)
{
    int64_t size[2];
    size[0] = rows;
    size[1] = columns;
    return npu__emit_ints(g, NPU_ATEN_ADAPTIVE_AVG_POOL2D, x, "output_size", size, 2);
}

NPU_IR_API npu_value npu_add(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_ADD, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_sub(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_SUB, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_mul(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_MUL, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_div(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_DIV, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_pow(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_POW, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_maximum(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_MAXIMUM, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_minimum(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_MINIMUM, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_sqrt(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_SQRT, x, NULL, 0); }
NPU_IR_API npu_value npu_rsqrt(npu_graph *g, npu_value x)
{
    return npu__emit1(g, NPU_ATEN_RSQRT, x, NULL, 0);
}

NPU_IR_API npu_value npu_neg(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_NEG, x, NULL, 0); }
NPU_IR_API npu_value npu_abs(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_ABS, x, NULL, 0); }
NPU_IR_API npu_value npu_exp(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_EXP, x, NULL, 0); }
NPU_IR_API npu_value npu_log(npu_graph *g, npu_value x) { return npu__emit1(g, NPU_ATEN_LOG, x, NULL, 0); }
NPU_IR_API npu_value npu_eq(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_EQ, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_ne(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_NE, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_lt(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_LT, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_le(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_LE, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_gt(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_GT, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_ge(npu_graph *g, npu_value a, npu_value b)
{
    return npu__emit2(g, NPU_ATEN_GE, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_where(npu_graph *g, npu_value condition, npu_value a, npu_value b)
{
    return npu__emit3(g, NPU_ATEN_WHERE, condition, a, b, NULL, 0);
}

NPU_IR_API npu_value npu_clamp(npu_graph *g, npu_value x, double min, double max)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_CLAMP, x, npu_arg_float("min", min),
                                     npu_arg_float("max", max)));
}

NPU_IR_API npu_value npu_reshape(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank)
{
    return npu__emit_ints(g, NPU_ATEN_RESHAPE, x, "shape", dims, rank);
}

NPU_IR_API npu_value npu_permute(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank)
{
    return npu__emit_ints(g, NPU_ATEN_PERMUTE, x, "dims", dims, rank);
}

NPU_IR_API npu_value npu_expand(npu_graph *g, npu_value x, const int64_t *dims, uint32_t rank)
{
    return npu__emit_ints(g, NPU_ATEN_EXPAND, x, "size", dims, rank);
}

NPU_IR_API npu_value npu_repeat(npu_graph *g, npu_value x, const int64_t *repeats, uint32_t rank)
{
    return npu__emit_ints(g, NPU_ATEN_REPEAT, x, "repeats", repeats, rank);
}

NPU_IR_API npu_value npu_transpose(npu_graph *g, npu_value x, int64_t dim0, int64_t dim1)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_TRANSPOSE, x, npu_arg_int("dim0", dim0),
                                     npu_arg_int("dim1", dim1)));
}

NPU_IR_API npu_value npu_flatten(npu_graph *g, npu_value x, int64_t start_dim, int64_t end_dim)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_FLATTEN, x, npu_arg_int("start_dim", start_dim),
                                     npu_arg_int("end_dim", end_dim)));
}

static npu_value npu__emit_dim(npu_graph *g, npu_kind kind, npu_value x, int64_t dim)
{
    return npu__first(g, npu__emit_with(g, kind, x, npu_arg_int("dim", dim), npu_arg_none(NULL)));
}

NPU_IR_API npu_value npu_squeeze(npu_graph *g, npu_value x, int64_t dim)
{
    return npu__emit_dim(g, NPU_ATEN_SQUEEZE_DIM, x, dim);
}

NPU_IR_API npu_value npu_unsqueeze(npu_graph *g, npu_value x, int64_t dim)
{
    return npu__emit_dim(g, NPU_ATEN_UNSQUEEZE, x, dim);
}

NPU_IR_API npu_value npu_softmax(npu_graph *g, npu_value x, int64_t dim)
{
    return npu__emit_dim(g, NPU_ATEN_SOFTMAX, x, dim);
}

NPU_IR_API npu_value npu_log_softmax(npu_graph *g, npu_value x, int64_t dim)
{
    return npu__emit_dim(g, NPU_ATEN_LOG_SOFTMAX, x, dim);
}

static npu_value npu__emit_list(npu_graph *g, npu_kind kind, const npu_value *xs, uint32_t n, int64_t dim)
{
    npu_arg a[2];
    a[0] = npu_arg_tensors("tensors", xs, n);
    a[1] = npu_arg_int("dim", dim);
    return npu__first(g, npu_emit(g, kind, a, 2));
}

NPU_IR_API npu_value npu_cat(npu_graph *g, const npu_value *xs, uint32_t n, int64_t dim)
{
    return npu__emit_list(g, NPU_ATEN_CAT, xs, n, dim);
}

NPU_IR_API npu_value npu_stack(npu_graph *g, const npu_value *xs, uint32_t n, int64_t dim)
{
    return npu__emit_list(g, NPU_ATEN_STACK, xs, n, dim);
}

NPU_IR_API npu_op npu_split(npu_graph *g, npu_value x, int64_t size, int64_t dim)
{
    return npu__emit_with(g, NPU_ATEN_SPLIT, x, npu_arg_int("split_size", size), npu_arg_int("dim", dim));
}

NPU_IR_API npu_op npu_chunk(npu_graph *g, npu_value x, int64_t chunks, int64_t dim)
{
    return npu__emit_with(g, NPU_ATEN_CHUNK, x, npu_arg_int("chunks", chunks), npu_arg_int("dim", dim));
}

NPU_IR_API npu_value npu_select(npu_graph *g, npu_value x, int64_t dim, int64_t index)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_SELECT, x, npu_arg_int("dim", dim),
                                     npu_arg_int("index", index)));
}

NPU_IR_API npu_value npu_slice(npu_graph *g, npu_value x, int64_t dim, int64_t start, int64_t end,
                               int64_t step)
{
    npu_arg a[5];
    a[0] = npu_arg_tensor("self", x);
    a[1] = npu_arg_int("dim", dim);
    a[2] = npu_arg_int("start", start);
    a[3] = npu_arg_int("end", end);
    a[4] = npu_arg_int("step", step);
    return npu__first(g, npu_emit(g, NPU_ATEN_SLICE, a, 5));
}

static npu_value npu__emit_reduce(npu_graph *g, npu_kind kind, npu_value x, const int64_t *dims, uint32_t n,
                                  bool keepdim)
{
    return npu__first(g,
                      npu__emit_with(g, kind, x, npu_arg_ints("dim", dims, n),
                                     npu_arg_bool("keepdim", keepdim)));
}

NPU_IR_API npu_value npu_sum(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim)
{
    return npu__emit_reduce(g, NPU_ATEN_SUM_DIM, x, dims, n, keepdim);
}

NPU_IR_API npu_value npu_mean(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim)
{
    return npu__emit_reduce(g, NPU_ATEN_MEAN_DIM, x, dims, n, keepdim);
}

NPU_IR_API npu_value npu_amax(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim)
{
    return npu__emit_reduce(g, NPU_ATEN_AMAX, x, dims, n, keepdim);
}

NPU_IR_API npu_value npu_amin(npu_graph *g, npu_value x, const int64_t *dims, uint32_t n, bool keepdim)
{
    return npu__emit_reduce(g, NPU_ATEN_AMIN, x, dims, n, keepdim);
}

NPU_IR_API npu_op npu_max_dim(npu_graph *g, npu_value x, int64_t dim, bool keepdim)
{
    return npu__emit_with(g, NPU_ATEN_MAX_DIM, x, npu_arg_int("dim", dim), npu_arg_bool("keepdim", keepdim));
}

NPU_IR_API npu_value npu_argmax(npu_graph *g, npu_value x, int64_t dim, bool keepdim)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_ARGMAX, x, npu_arg_int("dim", dim),
                                     npu_arg_bool("keepdim", keepdim)));
}

NPU_IR_API npu_value npu_scaled_dot_product_attention(npu_graph *g, npu_value q, npu_value k, npu_value v,
                                                      npu_value mask, const npu_attention_attrs *attrs)
{
    npu_value x[4];
    x[0] = q;
    x[1] = k;
    x[2] = v;
    x[3] = mask;
    return npu__first(g,
                      npu_emit_struct(g, NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION, x, 4, NULL,
                                      NPU__ATTRS(attrs)));
}

NPU_IR_API npu_value npu_embedding(npu_graph *g, npu_value weight, npu_value indices)
{
    return npu__emit2(g, NPU_ATEN_EMBEDDING, weight, indices, NULL, 0);
}

NPU_IR_API npu_value npu_gather(npu_graph *g, npu_value x, int64_t dim, npu_value index)
{
    npu_arg a[3];
    a[0] = npu_arg_tensor("self", x);
    a[1] = npu_arg_int("dim", dim);
    a[2] = npu_arg_tensor("index", index);
    return npu__first(g, npu_emit(g, NPU_ATEN_GATHER, a, 3));
}

NPU_IR_API npu_value npu_to(npu_graph *g, npu_value x, npu_dtype dtype)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_TO_DTYPE, x, npu_arg_dtype("dtype", dtype),
                                     npu_arg_none(NULL)));
}

NPU_IR_API npu_value npu_clone(npu_graph *g, npu_value x)
{
    return npu__emit1(g, NPU_ATEN_CLONE, x, NULL, 0);
}

NPU_IR_API npu_value npu_dropout(npu_graph *g, npu_value x, double p)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_ATEN_DROPOUT, x, npu_arg_float("p", p),
                                     npu_arg_bool("train", false)));
}

NPU_IR_API npu_value npu_aicf_add(npu_graph *g, npu_value a, npu_value c)
{
    return npu__emit2(g, NPU_AICF_ADD, a, c, NULL, 0);
}

NPU_IR_API npu_value npu_aicf_relu(npu_graph *g, npu_value x)
{
    return npu__emit1(g, NPU_AICF_RELU, x, NULL, 0);
}

NPU_IR_API npu_value npu_aicf_gemm(npu_graph *g, npu_value a, npu_value b, const npu_aicf_gemm_attrs *attrs)
{
    return npu__emit2(g, NPU_AICF_GEMM, a, b, NPU__ATTRS(attrs));
}

NPU_IR_API npu_value npu_aicf_bias_add(npu_graph *g, npu_value x, npu_value bias)
{
    return npu__emit2(g, NPU_AICF_BIAS_ADD, x, bias, NULL, 0);
}

NPU_IR_API npu_value npu_aicf_reduce_sum(npu_graph *g, npu_value x, int64_t axis)
{
    return npu__first(g,
                      npu__emit_with(g, NPU_AICF_REDUCE_SUM, x, npu_arg_int("axis", axis),
                                     npu_arg_none(NULL)));
}

/* ---- layers ---- */

/* "<layer>.<what>" in buf; an unnamed layer gives "<what>". */
static const char *npu__layer_name(char *buf, size_t size, const npu_layer *layer, const char *what)
{
    snprintf(buf, size, "%s%s%s", layer->name ? layer->name : "", layer->name ? "." : "", what);
    return buf;
}

static npu_value npu__layer_param(npu_graph *g, const npu_layer *layer, const char *what, npu_dtype dtype,
                                  uint32_t rank, const int64_t *dims)
{
    char name[128];
    return npu_param(g, npu__layer_name(name, sizeof name, layer, what),
                     npu_spec_tensor(dtype ? dtype : NPU_F32, rank, dims));
}

static npu_value npu__layer_result(npu_graph *g, const npu_layer *layer, const char *what, npu_value v)
{
    char name[128];
    if (v.id && layer->name) {
        npu_value_set_name(g, v, npu__layer_name(name, sizeof name, layer, what));
    }
    return v;
}

static bool npu__layer_arity(npu_graph *g, const npu_layer *layer, uint32_t got, uint32_t want)
{
    if (got != want) {
        npu__graph_fail(g, NPU_ERR_ARITY, "layer %s: %u inputs, expected %u", layer->name ? layer->name : "",
                        (unsigned)got, (unsigned)want);
    }
    return got == want;
}

static npu_value npu__emit_layer_linear(const npu_layer *base, npu_graph *g, const npu_value *x,
                                        uint32_t num_x)
{
    const npu_layer_linear *l = (const npu_layer_linear *)(const void *)base;
    const npu_spec *spec = num_x == 1 ? npu_value_spec(g, x[0]) : NULL;
    npu_aicf_gemm_attrs attrs = { false, true };
    int64_t dims[2];
    npu_value w, b, y;
    if (!npu__layer_arity(g, base, num_x, 1) || !spec) {
        return npu__make_value(0);
    }
    if (spec->rank == 0 || spec->dims[spec->rank - 1] != l->in_features) {
        npu__graph_fail(g, NPU_ERR_SHAPE, "linear %s: x's last dim is %lld, expected in_features %lld",
                        base->name ? base->name : "",
                        (long long)(spec->rank ? spec->dims[spec->rank - 1] : 0), (long long)l->in_features);
        return npu__make_value(0);
    }
    dims[0] = l->out_features;
    dims[1] = l->in_features;
    w = npu__layer_param(g, base, "W", l->dtype, 2, dims);
    y = npu__layer_result(g, base, "out", npu_aicf_gemm(g, x[0], w, &attrs));
    if (y.id) {
        npu_op_set_constraints(g, npu_value_producer(g, y, NULL), NPU_HINT_PREFER_EPILOGUE);
    }
    if (l->no_bias) {
        return y;
    }
    b = npu__layer_param(g, base, "b", l->dtype, 1, dims);
    y = npu__layer_result(g, base, "out_bias", npu_aicf_bias_add(g, y, b));
    if (y.id) {
        npu_op_set_constraints(g, npu_value_producer(g, y, NULL), NPU_CONSTRAINT_INPLACE_OK);
    }
    return y;
}

static npu_value npu__emit_layer_relu(const npu_layer *base, npu_graph *g, const npu_value *x, uint32_t num_x)
{
    const npu_layer_relu *l = (const npu_layer_relu *)(const void *)base;
    npu_value y;
    if (!npu__layer_arity(g, base, num_x, 1)) {
        return npu__make_value(0);
    }
    y = npu__layer_result(g, base, "out", npu_aicf_relu(g, x[0]));
    if (y.id && l->save_for_backward) {
        npu_op_add_saved(g, npu_value_producer(g, y, NULL), y);
    }
    return y;
}

static npu_value npu__emit_layer_add(const npu_layer *base, npu_graph *g, const npu_value *x, uint32_t num_x)
{
    return npu__layer_arity(g, base, num_x, 2)
        ? npu__layer_result(g, base, "out", npu_aicf_add(g, x[0], x[1]))
        : npu__make_value(0);
}

static npu_value npu__emit_layer_conv2d(const npu_layer *base, npu_graph *g, const npu_value *x,
                                        uint32_t num_x)
{
    const npu_layer_conv2d *l = (const npu_layer_conv2d *)(const void *)base;
    int64_t groups = l->attrs.groups ? l->attrs.groups : 1, dims[4];
    npu_value w, b = { 0 };
    if (!npu__layer_arity(g, base, num_x, 1)) {
        return npu__make_value(0);
    }
    dims[0] = l->out_channels;
    dims[1] = groups > 0 ? l->in_channels / groups : 0;
    dims[2] = l->kernel_size[0];
    dims[3] = l->kernel_size[1];
    w = npu__layer_param(g, base, "weight", l->dtype, 4, dims);
    if (!l->no_bias) {
        b = npu__layer_param(g, base, "bias", l->dtype, 1, dims);
    }
    return npu__layer_result(g, base, "out", npu_conv2d(g, x[0], w, b, &l->attrs));
}

static npu_value npu__emit_layer_batch_norm(const npu_layer *base, npu_graph *g, const npu_value *x,
                                            uint32_t num_x)
{
    const npu_layer_batch_norm *l = (const npu_layer_batch_norm *)(const void *)base;
    npu_value p[4];
    static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
    if (!npu__layer_arity(g, base, num_x, 1)) {
        return npu__make_value(0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        p[i] = npu__layer_param(g, base, names[i], l->dtype, 1, &l->num_features);
    }
    return npu__layer_result(g, base, "out",
                             npu_batch_norm(g, x[0], p[0], p[1], p[2], p[3], l->eps > 0 ? l->eps : 1e-5));
}

static npu_value npu__emit_layer_layer_norm(const npu_layer *base, npu_graph *g, const npu_value *x,
                                            uint32_t num_x)
{
    const npu_layer_layer_norm *l = (const npu_layer_layer_norm *)(const void *)base;
    npu_value w, b;
    if (!npu__layer_arity(g, base, num_x, 1)) {
        return npu__make_value(0);
    }
    w = npu__layer_param(g, base, "weight", l->dtype, 1, &l->features);
    b = npu__layer_param(g, base, "bias", l->dtype, 1, &l->features);
    return npu__layer_result(g, base, "out", npu_layer_norm(g, x[0], w, b, 1, l->eps > 0 ? l->eps : 1e-5));
}

static npu_value npu__emit_layer_embedding(const npu_layer *base, npu_graph *g, const npu_value *x,
                                           uint32_t num_x)
{
    const npu_layer_embedding *l = (const npu_layer_embedding *)(const void *)base;
    int64_t dims[2];
    if (!npu__layer_arity(g, base, num_x, 1)) {
        return npu__make_value(0);
    }
    dims[0] = l->num_embeddings;
    dims[1] = l->features;
    return npu__layer_result(g, base, "out",
                             npu_embedding(g, npu__layer_param(g, base, "weight", l->dtype, 2, dims), x[0]));
}

/* One projection of attention, split into heads: [N,L,E] -> [N,heads,L,E/heads]. */
static npu_value npu__attention_heads(const npu_layer_attention *l, npu_graph *g, const char *what,
                                      npu_value x, const npu_spec *spec)
{
    static const int64_t order[4] = { 0, 2, 1, 3 };
    char name[128];
    npu_layer_linear projection;
    int64_t dims[4];
    npu__layer_name(name, sizeof name, &l->base, what);
    projection = npu_linear_layer(name, l->features, l->features);
    projection.dtype = l->dtype;
    dims[0] = spec->dims[0];
    dims[1] = spec->dims[1];
    dims[2] = l->num_heads;
    dims[3] = l->features / l->num_heads;
    x = projection.base.emit(&projection.base, g, &x, 1);
    return npu_permute(g, npu_reshape(g, x, dims, 4), order, 4);
}

static npu_value npu__emit_layer_attention(const npu_layer *base, npu_graph *g, const npu_value *x,
                                           uint32_t num_x)
{
    const npu_layer_attention *l = (const npu_layer_attention *)(const void *)base;
    const npu_spec *spec = num_x == 1 ? npu_value_spec(g, x[0]) : NULL;
    static const int64_t order[4] = { 0, 2, 1, 3 };
    npu_attention_attrs attrs;
    npu_layer_linear projection;
    npu_value q, k, v, y, none = { 0 };
    char name[128];
    if (!npu__layer_arity(g, base, num_x, 1) || !spec) {
        return none;
    }
    if (spec->rank != 3 || l->num_heads <= 0 || l->features % l->num_heads) {
        npu__graph_fail(g, NPU_ERR_SHAPE,
                        "attention %s: x has rank %u, expected 3; %lld heads must divide %lld features",
                        base->name ? base->name : "", (unsigned)spec->rank, (long long)l->num_heads,
                        (long long)l->features);
        return none;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.is_causal = l->is_causal;
    q = npu__attention_heads(l, g, "q_proj", x[0], spec);
    k = npu__attention_heads(l, g, "k_proj", x[0], spec);
    v = npu__attention_heads(l, g, "v_proj", x[0], spec);
    y = npu_permute(g, npu_scaled_dot_product_attention(g, q, k, v, none, &attrs), order, 4);
    y = npu_reshape(g, y, spec->dims, 3);
    npu__layer_name(name, sizeof name, base, "out_proj");
    projection = npu_linear_layer(name, l->features, l->features);
    projection.dtype = l->dtype;
    return projection.base.emit(&projection.base, g, &y, 1);
}

NPU_IR_API npu_layer_linear npu_linear_layer(const char *name, int64_t in_features, int64_t out_features)
{
    npu_layer_linear l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_linear;
    l.in_features = in_features;
    l.out_features = out_features;
    return l;
}

NPU_IR_API npu_layer_relu npu_relu_layer(const char *name)
{
    npu_layer_relu l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_relu;
    return l;
}

NPU_IR_API npu_layer_add npu_add_layer(const char *name)
{
    npu_layer_add l;
    l.base.name = name;
    l.base.emit = npu__emit_layer_add;
    return l;
}

NPU_IR_API npu_layer_conv2d npu_conv2d_layer(const char *name, int64_t in_channels, int64_t out_channels,
                                             int64_t kernel_size)
{
    npu_layer_conv2d l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_conv2d;
    l.in_channels = in_channels;
    l.out_channels = out_channels;
    l.kernel_size[0] = l.kernel_size[1] = kernel_size;
    return l;
}

NPU_IR_API npu_layer_batch_norm npu_batch_norm_layer(const char *name, int64_t num_features)
{
    npu_layer_batch_norm l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_batch_norm;
    l.num_features = num_features;
    return l;
}

NPU_IR_API npu_layer_layer_norm npu_layer_norm_layer(const char *name, int64_t features)
{
    npu_layer_layer_norm l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_layer_norm;
    l.features = features;
    return l;
}

NPU_IR_API npu_layer_embedding npu_embedding_layer(const char *name, int64_t num_embeddings, int64_t features)
{
    npu_layer_embedding l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_embedding;
    l.num_embeddings = num_embeddings;
    l.features = features;
    return l;
}

NPU_IR_API npu_layer_attention npu_attention_layer(const char *name, int64_t features, int64_t num_heads)
{
    npu_layer_attention l;
    memset(&l, 0, sizeof l);
    l.base.name = name;
    l.base.emit = npu__emit_layer_attention;
    l.features = features;
    l.num_heads = num_heads;
    return l;
}

/* ---- models ---- */

struct npu_model {
    npu_graph *graph;
};

NPU_IR_API npu_model *npu_model_create(const npu_graph_desc *desc)
{
    npu_graph *g = npu_graph_create(desc);
    npu_model *m = g ? (npu_model *)npu__alloc(&g->allocator, sizeof *m) : NULL;
    if (!m) {
        npu_graph_destroy(g);
        return NULL;
    }
    m->graph = g;
    return m;
}

NPU_IR_API void npu_model_destroy(npu_model *m)
{
    npu_graph *g = m ? m->graph : NULL;
    if (m) {
        npu__free(&g->allocator, m, sizeof *m);
        npu_graph_destroy(g);
    }
}

NPU_IR_API npu_graph *npu_model_graph(npu_model *m) { return m ? m->graph : NULL; }
NPU_IR_API npu_value npu_model_input(npu_model *m, const char *name, npu_spec spec)
{
    return npu_input(npu_model_graph(m), name, spec);
}

NPU_IR_API npu_status npu_model_output(npu_model *m, const char *name, npu_value v)
{
    return npu_output(npu_model_graph(m), name, v);
}

static npu_value npu__model_add(npu_model *m, const npu_layer *layer, const npu_value *x, uint32_t num_x)
{
    npu_graph *g = npu_model_graph(m);
    if (!g || !layer || !layer->emit) {
        npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "model: the layer has no emit function");
        return npu__make_value(0);
    }
    for (uint32_t i = 0; i < num_x; i++) {
        if (!npu__value_at(g, x[i])) { /* a failed handle: its failure is already kept */
            return g->diag.status
                ? npu__make_value(0)
                : (npu__graph_fail(g, NPU_ERR_INVALID_ARGUMENT, "layer %s: input %u does not exist",
                                   layer->name ? layer->name : "", (unsigned)i),
                   npu__make_value(0));
        }
    }
    return layer->emit(layer, g, x, num_x);
}

NPU_IR_API npu_value npu_model_add(npu_model *m, const npu_layer *layer, npu_value x)
{
    return npu__model_add(m, layer, &x, 1);
}

NPU_IR_API npu_value npu_model_add2(npu_model *m, const npu_layer *layer, npu_value x, npu_value y)
{
    npu_value both[2];
    both[0] = x;
    both[1] = y;
    return npu__model_add(m, layer, both, 2);
}

/* -------------------------------------------------------------------------------------------------------- */

/* The text form: a statement per line, in order of definition, so that reading it gives every value its id
   again.

     npu_ir 1
     graph NAME [tile | scalar]
     symbol NAME MIN MAX
     child NAME [tile | scalar]            its statements follow, up to a line `end`
     input | param | state VALUE : SPEC
     const VALUE : SPEC {1.0, 2.0}         or the bytes in hex, elements little-endian: 0x0000803f00000040
     VALUE, .. = OP(arg=X, ..) @"op name" !inplace_ok : SPEC, ..
     save VALUE = VALUE                    the op that makes the first keeps the second; op 3 where it has no result
     update STATE = VALUE
     output NAME = VALUE
     # a comment

   VALUE is a name, or % and a number where it has none; the numbers grow. A name that is no plain word, or is
   a word of the form itself, stands in "". X is none, true, 2, 2.0, f32, 'text', VALUE, graph 0, or a list
   [X, ..]; arguments at their default are left out. SPEC is f32[2,N,?], tile or scalar before it, and after
   it what applies of: wrapped space=ub offset=64 quant(scheme, axis, block, [scales], [zeros]). */

#define NPU__FORM_VERSION 1
#define NPU__FORM_MAX_DEPTH 32     /* of child graphs */
#define NPU__FORM_MAX_READABLE 256 /* elements of a constant: nobody reads longer lists, and hex is faster */

static const char *const npu__spaces[] = { "default", "ddr", "ub", "l1", "l0a", "l0b", "l0c" };

typedef struct npu__constraint_name {
    uint32_t bit;
    const char *name;
} npu__constraint_name;

static const npu__constraint_name npu__constraint_names[] = {
    { NPU_CONSTRAINT_INPLACE_OK, "inplace_ok" }, { NPU_HINT_PREFER_EPILOGUE, "prefer_epilogue" }
};

static bool npu__is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool npu__is_word(char c) { return npu__is_word_start(c) || npu__is_digit(c) || c == '.'; }

static npu_dtype npu__dtype_word(const char *s)
{
    for (size_t i = 1; i < NPU__COUNT(npu__dtypes); i++) {
        if (strcmp(npu__dtypes[i].name, s) == 0) {
            return (npu_dtype)npu__dtypes[i].code;
        }
    }
    return NPU_NONE;
}

/* A name that needs no quotes: a word that means nothing else where a name may stand. */
static bool npu__is_plain_name(const char *s)
{
    static const char *const words[] = { "npu_ir", "graph", "child", "end",    "symbol", "input", "param",
                                         "state",  "const", "save",  "update", "output", "op",    "none",
                                         "true",   "false", "inf",   "nan",    "tile",   "scalar" };
    if (!npu__is_word_start(s[0])) {
        return false;
    }
    for (const char *p = s; *p; p++) {
        if (!npu__is_word(*p)) {
            return false;
        }
    }
    for (size_t i = 0; i < NPU__COUNT(words); i++) {
        if (strcmp(words[i], s) == 0) {
            return false;
        }
    }
    return npu__dtype_word(s) == NPU_NONE;
}

/* ---- printing ---- */

static void npu__text_quoted(npu_text *text, const char *s, size_t len, char quote)
{
    npu_text_append(text, &quote, 1);
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)s[i];
        if (byte < 0x20 || byte == 0x7f) {
            npu_text_printf(text, "\\x%02x", (unsigned)byte);
        } else {
            if (s[i] == quote || s[i] == '\\') {
                npu_text_append(text, "\\", 1);
            }
            npu_text_append(text, s + i, 1);
        }
    }
    npu_text_append(text, &quote, 1);
}

static void npu__text_name(npu_text *text, const char *name)
{
    if (npu__is_plain_name(name)) {
        npu__text_str(text, name);
    } else {
        npu__text_quoted(text, name, strlen(name), '"');
    }
}

static void npu__text_value(npu_text *text, const npu_graph *g, uint32_t id)
{
    if (id == 0) {
        npu__text_str(text, "none");
    } else if (g->values[id].name) {
        npu__text_name(text, g->names[g->values[id].name]);
    } else {
        npu_text_printf(text, "%%%u", (unsigned)id);
    }
}

#define NPU__NAN_BITS 0x7ff8000000000000u /* what the word nan stands for */

static void npu__text_float(npu_text *text, double x)
{
    uint64_t bits = npu__double_bits(x);
    npu__text_double(text, x);
    if (x != x && bits != NPU__NAN_BITS) {
        npu_text_printf(text, "(0x%08lx%08lx)", (unsigned long)(bits >> 32),
                        (unsigned long)(bits & 0xffffffffu));
    }
}

static void npu__text_scalar(npu_text *text, npu_scalar s)
{
    if (s.is_float) {
        npu__text_float(text, s.f);
    } else if (s.is_bool) {
        npu__text_str(text, s.i ? "true" : "false");
    } else {
        npu_text_printf(text, "%lld", (long long)s.i);
    }
}

/* ---- elements of constants ---- */

/* Bits of one element in host memory. */
static uint64_t npu__element_load(const uint8_t *p, uint32_t bytes)
{
    uint16_t half;
    uint32_t word;
    uint64_t bits;
    switch (bytes) {
    case 1: return p[0];
    case 2: memcpy(&half, p, 2); return half;
    case 4: memcpy(&word, p, 4); return word;
    default: memcpy(&bits, p, 8); return bits;
    }
}

static void npu__element_store(uint8_t *p, uint64_t bits, uint32_t bytes)
{
    uint16_t half = (uint16_t)bits;
    uint32_t word = (uint32_t)bits;
    switch (bytes) {
    case 1: p[0] = (uint8_t)bits; break;
    case 2: memcpy(p, &half, 2); break;
    case 4: memcpy(p, &word, 4); break;
    default: memcpy(p, &bits, 8); break;
    }
}

/* Bytes that a host stores in its own order: an element, or half of a complex one. */
static uint32_t npu__element_bytes(npu_dtype dtype)
{
    uint32_t bits = npu_dtype_bits(dtype);
    return bits < 8 ? 1 : npu_dtype_is_complex(dtype) ? bits / 16 : bits / 8;
}

static double npu__float_value(npu_dtype dtype, uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float x;
    switch ((int)dtype) {
    case NPU_F16: return (double)npu_f16_to_f32((uint16_t)bits);
    case NPU_BF16: return (double)npu_bf16_to_f32((uint16_t)bits);
    case NPU_F32: memcpy(&x, &word, 4); return (double)x;
    default: return npu__bits_double(bits);
    }
}

static uint64_t npu__float_bits(npu_dtype dtype, double value)
{
    float x = (float)value;
    uint32_t word;
    switch ((int)dtype) {
    case NPU_F16: return npu_f32_to_f16(x);
    case NPU_BF16: return npu_f32_to_bf16(x);
    case NPU_F32: memcpy(&word, &x, 4); return word;
    default: return npu__double_bits(value);
    }
}

/* The number with the fewest digits that reads back to these bits, but whole numbers as they are; false =
   there is none. */
static bool npu__float_number(npu_dtype dtype, uint64_t bits, double *out)
{
    double x = npu__float_value(dtype, bits);
    char buf[40];
    if (x != x) {
        *out = npu__bits_double(NPU__NAN_BITS);
        return npu__float_bits(dtype, *out) == bits;
    }
    for (int digits = 1; digits <= 9 && dtype != NPU_F64 && (x > 1e6 || x < -1e6 || x != (double)(int32_t)x);
         digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        *out = strtod(buf, NULL); /* the locale that wrote it */
        if (npu__float_bits(dtype, *out) == bits) {
            return true;
        }
    }
    *out = x;
    return npu__float_bits(dtype, x) == bits;
}

/* Types whose elements can be written as numbers. */
static bool npu__is_readable_dtype(npu_dtype dtype)
{
    return dtype == NPU_BOOL || (npu_dtype_is_integer(dtype) && npu_dtype_bits(dtype) >= 8) ||
           dtype == NPU_F16 || dtype == NPU_BF16 || dtype == NPU_F32 || dtype == NPU_F64;
}

static bool npu__is_readable(npu_dtype dtype, const uint8_t *data, size_t len)
{
    uint32_t bytes = npu__element_bytes(dtype);
    double x;
    if (len > NPU__FORM_MAX_READABLE || !npu__is_readable_dtype(dtype)) {
        return len == 0;
    }
    for (size_t i = 0; i < len; i++) {
        uint64_t bits = npu__element_load(data + i * bytes, bytes);
        if ((dtype == NPU_BOOL && bits > 1) ||
            (npu_dtype_is_float(dtype) && !npu__float_number(dtype, bits, &x))) {
            return false;
        }
    }
    return true;
}

static int64_t npu__sign_extend(uint64_t bits, uint32_t bytes)
{
    uint32_t shift = 64 - 8 * bytes;
    return (int64_t)(bits << shift) / ((int64_t)1 << shift);
}

static void npu__text_element(npu_text *text, npu_dtype dtype, uint64_t bits)
{
    double x = 0;
    if (dtype == NPU_BOOL) {
        npu__text_str(text, bits ? "true" : "false");
    } else if (npu_dtype_is_float(dtype)) {
        npu__float_number(dtype, bits, &x);
        npu__text_double(text, x);
    } else if (npu_dtype_is_signed(dtype)) {
        npu_text_printf(text, "%lld", (long long)npu__sign_extend(bits, npu__element_bytes(dtype)));
    } else {
        npu_text_printf(text, "%llu", (unsigned long long)bits);
    }
}

static void npu__text_hex(npu_text *text, const uint8_t *data, size_t size, uint32_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t element[8];
    char pair[2];
    npu__text_str(text, "0x");
    for (size_t i = 0; i + bytes <= size; i += bytes) {
        npu__put_le(element, npu__element_load(data + i, bytes), bytes);
        for (uint32_t k = 0; k < bytes; k++) {
            pair[0] = digits[element[k] >> 4];
            pair[1] = digits[element[k] & 15];
            npu_text_append(text, pair, 2);
        }
    }
}

static void npu__text_data(npu_text *text, const npu_spec *spec, const npu__data *data)
{
    npu_dtype dtype = (npu_dtype)spec->dtype;
    const uint8_t *bytes = (const uint8_t *)data->data;
    uint32_t size = npu__element_bytes(dtype);
    size_t len = 0;
    npu_spec_len(spec, &len);
    if (!npu__is_readable(dtype, bytes, len)) {
        npu__text_hex(text, bytes, data->size, size);
        return;
    }
    npu__text_str(text, "{");
    for (size_t i = 0; i < len; i++) {
        npu__text_str(text, i ? ", " : "");
        npu__text_element(text, dtype, npu__element_load(bytes + i * size, size));
    }
    npu__text_str(text, "}");
}

/* ---- specs ---- */

static void npu__text_quant(npu_text *text, const npu_quant *q)
{
    npu_text_printf(text, " quant(%u, %d, %u, [", (unsigned)q->scheme, (int)q->axis, (unsigned)q->block);
    for (uint32_t i = 0; i < q->count; i++) {
        uint32_t bits;
        memcpy(&bits, &q->scales[i], 4);
        npu__text_str(text, i ? ", " : "");
        npu__text_element(text, NPU_F32, bits);
    }
    npu__text_str(text, q->zeros ? "], [" : "]");
    for (uint32_t i = 0; q->zeros && i < q->count; i++) {
        npu_text_printf(text, "%s%d", i ? ", " : "", (int)q->zeros[i]);
    }
    npu__text_str(text, q->zeros ? "])" : ")");
}

static void npu__text_dim(npu_text *text, const npu_graph *g, int64_t dim)
{
    if (dim >= 0) {
        npu_text_printf(text, "%lld", (long long)dim);
    } else if (dim == NPU_DYNAMIC_DIM) {
        npu__text_str(text, "?");
    } else {
        npu__text_name(text, npu_graph_symbol_name(g, dim));
    }
}

/* npu_spec_print without losses: symbols by name, memory, quantisation. */
static void npu__text_spec(npu_text *text, const npu_graph *g, const npu_spec *s)
{
    npu_text_printf(text, "%s%s[",
                    s->cls == NPU_CLASS_TILE     ? "tile "
                    : s->cls == NPU_CLASS_SCALAR ? "scalar "
                                                 : "",
                    npu_dtype_name((npu_dtype)s->dtype));
    for (uint32_t i = 0; i < s->rank; i++) {
        npu__text_str(text, i ? "," : "");
        npu__text_dim(text, g, s->dims[i]);
    }
    npu__text_str(text, s->wrapped ? "] wrapped" : "]");
    if (s->space < NPU__COUNT(npu__spaces)) {
        npu_text_printf(text, "%s%s", s->space ? " space=" : "", s->space ? npu__spaces[s->space] : "");
    } else {
        npu_text_printf(text, " space=%u", (unsigned)s->space);
    }
    if (s->offset) {
        npu_text_printf(text, " offset=%lld", (long long)s->offset);
    }
    if (s->quant) {
        npu__text_quant(text, s->quant);
    }
}

/* ---- arguments ---- */

static npu_scalar npu__bound_scalar(const npu_bound_arg *arg)
{
    return arg->form == NPU_ARG_FLOAT  ? npu_scalar_float(arg->f)
           : arg->form == NPU_ARG_BOOL ? npu_scalar_bool(arg->i != 0)
                                       : npu_scalar_int(arg->i);
}

/* Element i of a bound list of numbers. */
static npu_scalar npu__bound_element(const npu_bound_arg *arg, uint32_t i)
{
    const uint8_t *scalar = arg->data + (size_t)i * 9;
    switch (arg->form) {
    case NPU_ARG_FLOATS: return npu_scalar_float(npu__bits_double(npu__get_le(arg->data + (size_t)i * 8, 8)));
    case NPU_ARG_BOOLS: return npu_scalar_bool(arg->data[i] != 0);
    case NPU_ARG_SCALARS:
        return scalar[0] == 2 ? npu_scalar_float(npu__bits_double(npu__get_le(scalar + 1, 8)))
               : scalar[0]    ? npu_scalar_int((int64_t)npu__get_le(scalar + 1, 8))
                              : npu_scalar_bool(npu__get_le(scalar + 1, 8) != 0);
    default: return npu_scalar_int((int64_t)npu__get_le(arg->data + (size_t)i * 8, 8));
    }
}

/* Whether a list of int holds these; one of them stands for all. */
static bool npu__ints_are(const npu_bound_arg *arg, const int64_t *ints, uint32_t num_ints)
{
    for (uint32_t i = 0; i < arg->count; i++) {
        if (npu__bound_element(arg, i).i != ints[num_ints == 1 ? 0 : i]) {
            return false;
        }
    }
    return true;
}

static bool npu__is_default_int(const npu_schema_arg *schema, const npu_bound_arg *arg)
{
    switch (arg->form) {
    case NPU_ARG_INT: return arg->i == schema->default_int;
    case NPU_ARG_INTS:
        return arg->count == (uint32_t)schema->type.list_size && npu__ints_are(arg, &schema->default_int, 1);
    case NPU_ARG_FLOAT:
        return schema->type.base == NPU_T_FLOAT &&
               npu__double_bits(arg->f) == npu__double_bits((double)schema->default_int);
    default: return false;
    }
}

static bool npu__is_default_list(const npu_schema_arg *schema, const npu_bound_arg *arg)
{
    if (arg->form < NPU_ARG_INTS || arg->form > NPU_ARG_SCALARS || arg->count != schema->num_default_ints) {
        return false;
    }
    return arg->count == 0 ||
           (arg->form == NPU_ARG_INTS && npu__ints_are(arg, schema->default_ints, schema->num_default_ints));
}

/* Whether a bound argument is what its schema fills in. A doubtful case may say no: it is printed then. */
static bool npu__is_default(const npu_schema_arg *schema, const npu_bound_arg *arg)
{
    switch (schema->default_form) {
    case NPU_DEFAULT_NONE: return arg->form == NPU_ARG_NONE;
    case NPU_DEFAULT_STR:
        return arg->form == NPU_ARG_STR && arg->count == strlen(schema->default_str) &&
               memcmp(arg->data, schema->default_str, arg->count) == 0;
    case NPU_DEFAULT_FLOAT:
        return arg->form == NPU_ARG_FLOAT &&
            npu__double_bits(arg->f) == npu__double_bits(schema->default_float);
    case NPU_DEFAULT_BOOL: return arg->form == NPU_ARG_BOOL && arg->i == schema->default_int;
    case NPU_DEFAULT_INT: return npu__is_default_int(schema, arg);
    case NPU_DEFAULT_INTS: return npu__is_default_list(schema, arg);
    case NPU_DEFAULT_WORD:
        return (arg->form == NPU_ARG_INT || arg->form == NPU_ARG_DTYPE) && arg->i == schema->default_int;
    default: return false;
    }
}

static void npu__text_arg_list(npu_text *text, const npu_graph *g, const npu__op *o, const npu_bound_arg *arg)
{
    npu__text_str(text, "[");
    for (uint32_t i = 0; i < arg->count; i++) {
        npu__text_str(text, i ? ", " : "");
        if (arg->form == NPU_ARG_TENSORS) {
            npu__text_value(text, g, g->uses[o->first_operand + arg->first + i].value);
        } else {
            npu__text_scalar(text, npu__bound_element(arg, i));
        }
    }
    npu__text_str(text, "]");
}

static void npu__text_arg(npu_text *text, const npu_graph *g, const npu__op *o, const npu_bound_arg *arg)
{
    switch (arg->form) {
    case NPU_ARG_NONE: npu__text_str(text, "none"); break;
    case NPU_ARG_TENSOR: npu__text_value(text, g, g->uses[o->first_operand + arg->first].value); break;
    case NPU_ARG_STR: npu__text_quoted(text, (const char *)arg->data, arg->count, '\''); break;
    case NPU_ARG_DTYPE: npu__text_str(text, npu_dtype_name((npu_dtype)arg->i)); break;
    case NPU_ARG_GRAPH: npu_text_printf(text, "graph %lld", (long long)arg->i); break;
    case NPU_ARG_INT:
    case NPU_ARG_FLOAT:
    case NPU_ARG_BOOL: npu__text_scalar(text, npu__bound_scalar(arg)); break;
    default: npu__text_arg_list(text, g, o, arg); break;
    }
}

static bool npu__is_hole(const npu_graph *g, const npu__op *o, const npu_bound_arg *arg)
{
    return arg->form == NPU_ARG_TENSOR && g->uses[o->first_operand + arg->first].value == 0;
}

static npu_status npu__bind_args(const npu_graph *g, const npu__op *o, npu_bound_arg *args)
{
    npu_op op = npu__make_op((uint32_t)(o - g->ops));
    uint32_t size;
    const uint8_t *blob = npu_op_attrs(g, op, &size);
    return npu_blob_bind(o->def->schema, blob, size, g->groups ? g->groups + o->groups : NULL,
                         o->num_operands, args, NULL);
}

static npu_status npu__text_args(npu_text *text, const npu_graph *g, const npu__op *o)
{
    const npu_schema *schema = o->def->schema;
    npu_bound_arg args[NPU_MAX_ARGS];
    const char *separator = "";
    npu_status status = npu__bind_args(g, o, args);
    for (uint32_t i = 0; status == NPU_OK && i < schema->num_args; i++) {
        bool is_default = npu__is_hole(g, o, &args[i]) ? schema->args[i].default_form == NPU_DEFAULT_NONE
                                                       : npu__is_default(&schema->args[i], &args[i]);
        if (!is_default) {
            npu_text_printf(text, "%s%s=", separator, schema->args[i].name);
            npu__text_arg(text, g, o, &args[i]);
            separator = ", ";
        }
    }
    return status;
}

/* ---- statements ---- */

static void npu__text_constraints(npu_text *text, uint32_t bits, const char *before, const char *between)
{
    for (size_t i = 0; i < NPU__COUNT(npu__constraint_names); i++) {
        if (bits & npu__constraint_names[i].bit) {
            npu_text_printf(text, "%s%s", before, npu__constraint_names[i].name);
            bits &= ~npu__constraint_names[i].bit;
            before = between;
        }
    }
    if (bits) {
        npu_text_printf(text, "%s%u", before, (unsigned)bits);
    }
}

static npu_status npu__print_op(npu_text *text, const npu_graph *g, uint32_t id)
{
    const npu__op *o = &g->ops[id];
    npu_status status;
    for (uint32_t i = 0; i < o->num_results; i++) {
        npu__text_value(text, g, o->first_result + i);
        npu__text_str(text, i + 1 < o->num_results ? ", " : " = ");
    }
    npu__text_name(text, o->def->name);
    npu__text_str(text, "(");
    status = npu__text_args(text, g, o);
    npu__text_str(text, ")");
    if (o->name) {
        npu__text_str(text, " @");
        npu__text_quoted(text, g->names[o->name], strlen(g->names[o->name]), '"');
    }
    npu__text_constraints(text, o->constraints, " !", " !");
    for (uint32_t i = 0; i < o->num_results; i++) {
        npu__text_str(text, i ? ", " : " : ");
        npu__text_spec(text, g, g->specs[g->values[o->first_result + i].spec]);
    }
    npu__text_str(text, "\n");
    return status;
}

static void npu__print_source(npu_text *text, const npu_graph *g, uint32_t id)
{
    static const char *const words[] = { "none", "input ", "param ", "const ", "state ", "none" };
    const npu__value *v = &g->values[id];
    npu__text_str(text, words[v->role < NPU__COUNT(words) ? v->role : 0]);
    npu__text_value(text, g, id);
    npu__text_str(text, " : ");
    npu__text_spec(text, g, g->specs[v->spec]);
    if (v->role == NPU_ROLE_CONSTANT) {
        npu__text_str(text, " ");
        npu__text_data(text, g->specs[v->spec], &g->data[v->data]);
    }
    npu__text_str(text, "\n");
}

static void npu__print_head(npu_text *text, const npu_graph *g, const char *word, const char *indent)
{
    static const char *const levels[] = { "", " tile", " scalar" };
    npu_text_printf(text, "%s%s ", indent, word);
    npu__text_name(text, g->name);
    npu_text_printf(text, "%s\n", levels[g->level < NPU__COUNT(levels) ? g->level : 0]);
}

/* What refers to values that exist by now: saved values, updates, outputs. */
static void npu__print_tail(npu_text *text, const npu_graph *g, const char *indent)
{
    for (uint32_t i = 0; i < g->num_saved; i++) {
        const npu__op *o = &g->ops[g->saved[i].a];
        npu_text_printf(text, "%ssave ", indent);
        if (o->num_results) {
            npu__text_value(text, g, o->first_result);
        } else {
            npu_text_printf(text, "op %u", (unsigned)g->saved[i].a);
        }
        npu__text_str(text, " = ");
        npu__text_value(text, g, g->saved[i].b);
        npu__text_str(text, "\n");
    }
    for (uint32_t i = 0; i < g->num_updates; i++) {
        npu_text_printf(text, "%supdate ", indent);
        npu__text_value(text, g, g->updates[i].a);
        npu__text_str(text, " = ");
        npu__text_value(text, g, g->updates[i].b);
        npu__text_str(text, "\n");
    }
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        npu_text_printf(text, "%soutput ", indent);
        npu__text_name(text, g->names[g->outputs[i].b]);
        npu__text_str(text, " = ");
        npu__text_value(text, g, g->outputs[i].a);
        npu__text_str(text, "\n");
    }
}

/* Values and ops merged by id. */
static npu_status npu__print_body(npu_text *text, const npu_graph *g, const char *indent)
{
    uint32_t value = 1;
    npu_status status = NPU_OK;
    for (uint32_t op = 1; op <= g->num_ops && status == NPU_OK; op++) {
        uint32_t stop = op < g->num_ops ? g->ops[op].first_result : g->num_values;
        for (; value < stop; value++) {
            npu__text_str(text, indent);
            npu__print_source(text, g, value);
        }
        if (op < g->num_ops) {
            npu__text_str(text, indent);
            status = npu__print_op(text, g, op);
            value += g->ops[op].num_results;
        }
    }
    return status;
}

static npu_status npu__print_graph(npu_text *text, const npu_graph *g, uint32_t depth)
{
    char indent[2 * NPU__FORM_MAX_DEPTH + 1];
    npu_status status = NPU_OK;
    if (depth > NPU__FORM_MAX_DEPTH) {
        return NPU_ERR_OVERFLOW;
    }
    memset(indent, ' ', 2 * depth);
    indent[2 * depth] = 0;
    for (uint32_t i = 0; i < g->num_symbols; i++) {
        npu_text_printf(text, "%ssymbol ", indent);
        npu__text_name(text, g->symbols[i].name);
        npu_text_printf(text, " %lld %lld\n", (long long)g->symbols[i].min, (long long)g->symbols[i].max);
    }
    for (uint32_t i = 0; i < g->num_children && status == NPU_OK; i++) {
        npu__print_head(text, g->children[i], "child", indent);
        status = npu__print_graph(text, g->children[i], depth + 1);
        npu_text_printf(text, "%send\n", indent);
    }
    status = status ? status : npu__print_body(text, g, indent);
    npu__print_tail(text, g, indent);
    return status;
}

NPU_IR_API npu_status npu_graph_print(const npu_graph *g, npu_text *text)
{
    npu_status status;
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    npu_text_printf(text, "npu_ir %d\n", NPU__FORM_VERSION);
    npu__print_head(text, g, "graph", "");
    status = npu__print_graph(text, g, 0);
    return status ? status : text->status;
}

/* ---- the short dump ---- */

static void npu__dump_values(npu_text *text, const npu_graph *g, const char *before, uint32_t count,
                             uint32_t (*id_at)(const npu_graph *g, uint32_t i))
{
    char label[16];
    npu__text_str(text, before);
    for (uint32_t i = 0; i < count; i++) {
        npu_text_printf(text, "%s%s", i ? ", " : "", npu__value_label(g, id_at(g, i), label));
    }
    npu__text_str(text, "]");
}

static uint32_t npu__input_id(const npu_graph *g, uint32_t i) { return g->inputs[i]; }
static uint32_t npu__output_id(const npu_graph *g, uint32_t i) { return g->outputs[i].a; }

static npu_status npu__dump_attrs(npu_text *text, const npu_graph *g, const npu__op *o)
{
    npu_bound_arg args[NPU_MAX_ARGS];
    const char *before = "  attrs={";
    npu_status status = npu__bind_args(g, o, args);
    for (uint32_t i = 0; status == NPU_OK && i < o->def->schema->num_args; i++) {
        if (args[i].form != NPU_ARG_TENSOR && args[i].form != NPU_ARG_TENSORS &&
            !npu__is_operand(&o->def->schema->args[i])) {
            npu_text_printf(text, "%s%s=", before, o->def->schema->args[i].name);
            npu__text_arg(text, g, o, &args[i]);
            before = ", ";
        }
    }
    npu__text_str(text, before[0] == ',' ? "}" : "");
    return status;
}

static npu_status npu__dump_op(npu_text *text, const npu_graph *g, uint32_t id)
{
    const npu__op *o = &g->ops[id];
    const char *name = o->def->name;
    char label[16];
    npu_status status;
    uint32_t num_saved = npu_op_num_saved(g, npu__make_op(id));
    npu_text_printf(text, "  o%u: %s(", (unsigned)id,
                    NPU_KIND_NAMESPACE(o->def->kind) == NPU_NS_AICF ? o->def->schema->name : name);
    for (uint32_t i = 0; i < o->num_operands; i++) {
        uint32_t value = g->uses[o->first_operand + i].value;
        npu_text_printf(text, "%s%s", i ? ", " : "", value ? npu__value_label(g, value, label) : "none");
    }
    npu__text_str(text, ") ->");
    for (uint32_t i = 0; i < o->num_results; i++) {
        npu_text_printf(text, "%s%s", i ? ", " : " ", npu__value_label(g, o->first_result + i, label));
    }
    status = npu__dump_attrs(text, g, o);
    if (o->constraints) {
        npu__text_str(text, "  constraints={");
        npu__text_constraints(text, o->constraints, "", ", ");
        npu__text_str(text, "}");
    }
    for (uint32_t i = 0; i < num_saved; i++) {
        npu_text_printf(text, "%s%s", i ? ", " : "  saved=[",
                        npu__value_label(g, npu_op_saved(g, npu__make_op(id), i).id, label));
    }
    npu__text_str(text, num_saved ? "]\n" : "\n");
    return status;
}

NPU_IR_API npu_status npu_graph_dump(const npu_graph *g, npu_text *text)
{
    npu_status status = NPU_OK;
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__dump_values(text, g, "[Graph] inputs=[", g->num_inputs, npu__input_id);
    npu__dump_values(text, g, " outputs=[", g->num_outputs, npu__output_id);
    npu_text_printf(text, " ops=%u\n", (unsigned)npu_graph_num_ops(g));
    for (uint32_t i = 1; i < g->num_ops && status == NPU_OK; i++) {
        status = npu__dump_op(text, g, i);
    }
    return status ? status : text->status;
}

/* ---- Graphviz ---- */

/* Length of the UTF-8 sequence at s, 0 = it is none. */
static size_t npu__utf8_len(const char *s)
{
    const uint8_t *p = (const uint8_t *)s;
    size_t len = p[0] < 0x80                   ? 1
                 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                               : 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] >= 0x90)) {
        return 0; /* too long for what it says, a surrogate, or past the last character */
    }
    return len;
}

/* A string inside the quotes of DOT or JSON; bytes that are no UTF-8 count as Latin-1. */
static void npu__text_escaped(npu_text *text, const char *s)
{
    while (*s) {
        size_t len = npu__utf8_len(s);
        uint8_t byte = (uint8_t)*s;
        if (len == 0 || byte < 0x20 || byte == 0x7f) {
            npu_text_printf(text, "\\u%04x", (unsigned)byte);
        } else {
            npu_text_append(text, "\\", byte == '"' || byte == '\\');
            npu_text_append(text, s, len);
        }
        s += len ? len : 1;
    }
}

static void npu__text_spec_escaped(npu_text *text, const npu_graph *g, const npu_spec *spec)
{
    npu_text plain = npu_text_make(&text->allocator);
    npu__text_spec(&plain, g, spec);
    npu__text_escaped(text, plain.data ? plain.data : "");
    text->status = text->status ? text->status : plain.status;
    npu_text_free(&plain);
}

static void npu__dot_head(npu_text *text, const char *name)
{
    npu__text_str(text, "digraph \"");
    npu__text_escaped(text, name);
    npu__text_str(text,
                  "\" {\n    node [fontname=\"sans-serif\", fontsize=11, style=filled, fillcolor=white];\n"
                  "    edge [fontname=\"sans-serif\", fontsize=9, color=gray40];\n");
}

/* Values that no op makes; parameters and constants are drawn small, there are many. */
static void npu__dot_sources(npu_text *text, const npu_graph *g)
{
    static const char *const looks[] = {
        "", "shape=ellipse, fillcolor=lightyellow", "shape=note, fontsize=9, fillcolor=gray95",
        "shape=note, fontsize=9, fillcolor=gray95", "shape=cylinder, fillcolor=lavender", ""
    };
    char label[16];
    for (uint32_t i = 1; i < g->num_values; i++) {
        uint32_t role = g->values[i].role;
        if (role >= NPU_ROLE_INPUT && role <= NPU_ROLE_STATE) {
            npu_text_printf(text, "    v%u [%s, label=\"", (unsigned)i, looks[role]);
            npu__text_escaped(text, npu__value_label(g, i, label));
            npu__text_str(text, "\\n");
            npu__text_spec_escaped(text, g, g->specs[g->values[i].spec]);
            npu__text_str(text, "\"];\n");
        }
    }
}

/* "o3" for the result of an op, "v1" for a source. */
static void npu__dot_node(npu_text *text, const npu_graph *g, uint32_t value)
{
    uint32_t producer = g->values[value].producer;
    npu_text_printf(text, "    %c%u", producer ? 'o' : 'v', (unsigned)(producer ? producer : value));
}

static void npu__dot_edge(npu_text *text, const npu_graph *g, uint32_t value, const char *to, uint32_t to_id)
{
    npu__dot_node(text, g, value);
    npu_text_printf(text, " -> %s%u", to, (unsigned)to_id);
    if (g->values[value].producer) {
        npu__text_str(text, " [label=\"");
        npu__text_spec_escaped(text, g, g->specs[g->values[value].spec]);
        npu__text_str(text, "\"]");
    }
    npu__text_str(text, ";\n");
}

static void npu__dot_op(npu_text *text, const npu_graph *g, uint32_t id, const char *color)
{
    const npu__op *o = &g->ops[id];
    npu_text_printf(text, "    o%u [shape=box, style=\"filled,rounded\", fillcolor=%s, label=\"",
                    (unsigned)id, color);
    npu__text_escaped(text, o->def->name);
    if (o->name || (o->num_results && g->values[o->first_result].name)) {
        npu__text_str(text, "\\n");
        npu__text_escaped(text, o->name ? g->names[o->name] : g->names[g->values[o->first_result].name]);
    }
    npu__text_str(text, "\"];\n");
}

static void npu__dot_operands(npu_text *text, const npu_graph *g, uint32_t id)
{
    const npu__op *o = &g->ops[id];
    for (uint32_t i = 0; i < o->num_operands; i++) {
        uint32_t value = g->uses[o->first_operand + i].value;
        if (value) {
            npu__dot_edge(text, g, value, "o", id);
        }
    }
}

static void npu__dot_outputs(npu_text *text, const npu_graph *g)
{
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        npu_text_printf(text, "    out%u [shape=ellipse, fillcolor=lightyellow, label=\"", (unsigned)i);
        npu__text_escaped(text, g->names[g->outputs[i].b]);
        npu__text_str(text, "\"];\n");
        npu__dot_edge(text, g, g->outputs[i].a, "out", i);
    }
    for (uint32_t i = 0; i < g->num_updates; i++) {
        npu__dot_node(text, g, g->updates[i].b);
        npu_text_printf(text, " -> v%u [style=dashed, constraint=false];\n", (unsigned)g->updates[i].a);
    }
}

NPU_IR_API npu_status npu_graph_print_dot(const npu_graph *g, npu_text *text)
{
    if (!g) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__dot_head(text, g->name);
    npu__dot_sources(text, g);
    for (uint32_t i = 1; i < g->num_ops; i++) {
        npu__dot_op(text, g, i, "white");
        npu__dot_operands(text, g, i);
    }
    npu__dot_outputs(text, g);
    npu__text_str(text, "}\n");
    return text->status;
}

/* ---- reading: tokens ---- */

enum { /* or a character */
    NPU__TOKEN_END = 256, NPU__TOKEN_LINE, NPU__TOKEN_WORD, NPU__TOKEN_LABEL /* %3 */, NPU__TOKEN_INT,
    NPU__TOKEN_FLOAT, NPU__TOKEN_HEX, NPU__TOKEN_NAME /* "a" */, NPU__TOKEN_STRING /* 'a' */, NPU__TOKEN_BAD
};

typedef struct npu__token {
    int type;
    const char *at;
    size_t len;
} npu__token;

/* The left side of a statement: a name, or the number of an unnamed value. */
typedef struct npu__left {
    const char *name;
    uint32_t number;
} npu__left;

typedef struct npu__parser {
    npu_allocator allocator;
    const char *at, *end;
    int line;
    npu__token token;               /* the next one */
    npu_graph *g;                   /* stack[depth - 1], the graph whose statements are read */
    npu_graph *stack[NPU__FORM_MAX_DEPTH + 1];
    uint32_t first_label[NPU__FORM_MAX_DEPTH + 1];
    uint32_t depth;
    npu__arena scratch;             /* lives for one statement */
    NPU__ARRAY(npu__pair, labels);  /* number, value id; from first_label[depth - 1] on rising */
    NPU__ARRAY(npu__left, targets);
    NPU__ARRAY(npu_arg, items);     /* of the list that is read */
    NPU__ARRAY(npu_spec, specs);
    npu_diag diag;
} npu__parser;

static npu_status npu__parse_fail(npu__parser *p, npu_status status, const char *format, ...)
    NPU_IR_PRINTF(3, 4);
static npu_status npu__parse_fail(npu__parser *p, npu_status status, const char *format, ...)
{
    va_list args;
    if (p->diag.status == NPU_OK) {
        p->diag.status = status;
        p->diag.line = p->line;
        npu__copy_head(p->diag.file, sizeof p->diag.file, "text");
        va_start(args, format);
        vsnprintf(p->diag.message, sizeof p->diag.message, format, args);
        va_end(args);
    }
    return p->diag.status;
}

static npu_status npu__parse_no_memory(npu__parser *p)
{
    return npu__parse_fail(p, NPU_ERR_NO_MEMORY, "out of memory");
}

/* Takes over the failure of a call that built something. */
static npu_status npu__parse_built(npu__parser *p)
{
    const npu_diag *d = npu_graph_diag(p->g);
    if (d->status && p->diag.status == NPU_OK) {
        p->diag = *d;
    }
    return p->diag.status ? p->diag.status
                          : npu__parse_fail(p, NPU_ERR_PARSE, "the statement builds nothing");
}

/* The token after a sign or digit: 3, -2.5e-05, -inf, 0x00ff. */
static const char *npu__lex_number(npu__parser *p, const char *s)
{
    p->token.type = NPU__TOKEN_INT;
    if (p->end - s > 1 && s[0] == '0' && s[1] == 'x') {
        p->token.type = NPU__TOKEN_HEX;
        s += 2;
        while (s < p->end && (npu__is_digit(*s) || (*s >= 'a' && *s <= 'f') || (*s >= 'A' && *s <= 'F'))) {
            s++;
        }
        return s;
    }
    s += *s == '-';
    if (p->end - s >= 3 && memcmp(s, "inf", 3) == 0) {
        p->token.type = NPU__TOKEN_FLOAT;
        return s + 3;
    }
    while (s < p->end && (npu__is_digit(*s) || *s == '.' || *s == 'e' || *s == 'E' ||
                          ((*s == '-' || *s == '+') && (s[-1] == 'e' || s[-1] == 'E')))) {
        p->token.type = npu__is_digit(*s) ? p->token.type : NPU__TOKEN_FLOAT;
        s++;
    }
    return s;
}

/* Past the closing quote; a quoted text does not go on in the next line. */
static const char *npu__lex_quoted(npu__parser *p, const char *s)
{
    char quote = *s++;
    while (s < p->end && *s != quote && *s != '\n') {
        s += *s == '\\' && p->end - s > 1 && s[1] != '\n' ? 2 : 1;
    }
    p->token.type = s >= p->end || *s != quote ? NPU__TOKEN_BAD
                    : quote == '"'             ? NPU__TOKEN_NAME
                                               : NPU__TOKEN_STRING;
    return s < p->end && *s == quote ? s + 1 : s;
}

/* Past blanks and a comment. */
static const char *npu__lex_blank(const npu__parser *p)
{
    const char *s = p->at;
    while (s < p->end && (*s == ' ' || *s == '\t' || *s == '\r')) {
        s++;
    }
    if (s < p->end && *s == '#') {
        while (s < p->end && *s != '\n') {
            s++;
        }
    }
    return s;
}

/* Reads the next token into p->token. */
static void npu__lex(npu__parser *p)
{
    const char *s = npu__lex_blank(p);
    p->token.at = s;
    if (s >= p->end) {
        p->token.type = NPU__TOKEN_END;
    } else if (npu__is_word_start(*s)) {
        p->token.type = NPU__TOKEN_WORD;
        while (s < p->end && npu__is_word(*s)) {
            s++;
        }
    } else if (npu__is_digit(*s) || *s == '-') {
        s = npu__lex_number(p, s);
    } else if (*s == '"' || *s == '\'') {
        s = npu__lex_quoted(p, s);
    } else if (*s == '%') {
        p->token.type = NPU__TOKEN_LABEL;
        for (s++; s < p->end && npu__is_digit(*s);) {
            s++;
        }
    } else {
        p->token.type = *s == '\n'               ? (int)NPU__TOKEN_LINE
                        : (int)(uint8_t)*s < 128 ? (int)*s
                                                 : (int)NPU__TOKEN_BAD;
        s++;
    }
    p->token.len = (size_t)(s - p->token.at);
    p->at = s;
}

static npu_status npu__parse_unexpected(npu__parser *p, const char *expected)
{
    size_t len = p->token.len < 40 ? p->token.len : 40;
    if (p->token.type == NPU__TOKEN_END || p->token.type == NPU__TOKEN_LINE) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "the line ends, expected %s", expected);
    }
    return npu__parse_fail(p, NPU_ERR_PARSE, "'%.*s' stands here, expected %s", (int)len, p->token.at,
                           expected);
}

static bool npu__next_is_word(const npu__parser *p, const char *word)
{
    return p->token.type == NPU__TOKEN_WORD && p->token.len == strlen(word) &&
           memcmp(p->token.at, word, p->token.len) == 0;
}

/* Takes the next token if it is this character. */
static bool npu__take(npu__parser *p, int type)
{
    if (p->token.type != type) {
        return false;
    }
    npu__lex(p);
    return true;
}

static bool npu__take_word(npu__parser *p, const char *word)
{
    if (!npu__next_is_word(p, word)) {
        return false;
    }
    npu__lex(p);
    return true;
}

static npu_status npu__expect(npu__parser *p, int type, const char *what)
{
    return npu__take(p, type) ? NPU_OK : npu__parse_unexpected(p, what);
}

/* ---- reading: words and numbers ---- */

static int npu__hex_digit(char c)
{
    return npu__is_digit(c)       ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that an escape stands for, 0 = none; *s is past it. */
static char npu__unescape(const char **s, const char *end)
{
    const char *p = *s + 1;
    int high, low;
    if (p >= end) {
        return 0;
    }
    *s = p + 1;
    if (*p != 'x') {
        return *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
    }
    high = end - p > 2 ? npu__hex_digit(p[1]) : -1;
    low = end - p > 2 ? npu__hex_digit(p[2]) : -1;
    *s = p + 3;
    return high < 0 || low < 0 ? 0 : (char)(high * 16 + low);
}

/* Text of the next token without quotes and escapes, in the scratch arena; takes the token. */
static npu_status npu__take_text(npu__parser *p, const char **out)
{
    bool quoted = p->token.type == NPU__TOKEN_NAME || p->token.type == NPU__TOKEN_STRING;
    const char *s = p->token.at + quoted, *end = p->token.at + p->token.len - quoted;
    char *copy = (char *)npu__arena_alloc(&p->scratch, p->token.len + 1);
    size_t len = 0;
    if (!copy) {
        return npu__parse_no_memory(p);
    }
    while (s < end) {
        char c = *s;
        if (c == '\\') {
            c = npu__unescape(&s, end);
        } else {
            s++;
        }
        if (c == 0) {
            return npu__parse_fail(p, NPU_ERR_PARSE, "a zero byte or a bad escape in a text");
        }
        copy[len++] = c;
    }
    copy[len] = 0;
    *out = copy;
    npu__lex(p);
    return NPU_OK;
}

static npu_status npu__take_name(npu__parser *p, const char **out, const char *what)
{
    bool is_name = p->token.type == NPU__TOKEN_WORD || p->token.type == NPU__TOKEN_NAME;
    return is_name ? npu__take_text(p, out) : npu__parse_unexpected(p, what);
}

/* Digits of a token; false = more than 64 bits, or none. */
static bool npu__digits(const char *s, size_t len, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        uint64_t digit = (uint64_t)(s[i] - '0');
        if (*out > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *out = *out * 10 + digit;
    }
    return len > 0;
}

/* An integer as its bits, between min and max. */
static npu_status npu__take_integer(npu__parser *p, int64_t min, uint64_t max, uint64_t *out)
{
    bool minus = p->token.type == NPU__TOKEN_INT && p->token.at[0] == '-';
    uint64_t x, limit = minus ? (uint64_t)0 - (uint64_t)min : max;
    if (p->token.type != NPU__TOKEN_INT) {
        return npu__parse_unexpected(p, "an integer");
    }
    if (!npu__digits(p->token.at + minus, p->token.len - minus, &x) || x > limit) {
        return npu__parse_unexpected(p, "an integer in range");
    }
    *out = minus ? (uint64_t)0 - x : x;
    npu__lex(p);
    return NPU_OK;
}

static npu_status npu__take_int(npu__parser *p, int64_t min, int64_t max, int64_t *out)
{
    uint64_t bits = 0;
    npu_status status = npu__take_integer(p, min, (uint64_t)max, &bits);
    *out = (int64_t)bits;
    return status;
}

static npu_status npu__take_uint32(npu__parser *p, uint32_t *out)
{
    uint64_t bits = 0;
    npu_status status = npu__take_integer(p, 0, UINT32_MAX, &bits);
    *out = (uint32_t)bits;
    return status;
}

/* The bits of nan(0x7ff8000000000001), after nan. */
static npu_status npu__take_nan(npu__parser *p, double *out)
{
    uint64_t bits = 0;
    *out = npu__bits_double(NPU__NAN_BITS);
    if (!npu__take(p, '(')) {
        return NPU_OK;
    }
    if (p->token.type != NPU__TOKEN_HEX || p->token.len != 18) {
        return npu__parse_unexpected(p, "16 hex digits");
    }
    for (size_t i = 2; i < 18; i++) {
        bits = bits << 4 | (uint64_t)npu__hex_digit(p->token.at[i]);
    }
    *out = npu__bits_double(bits);
    npu__lex(p);
    return npu__expect(p, ')', "')'");
}

/* A number written with a point, an exponent, inf or nan; an integer counts, too. */
static npu_status npu__take_double(npu__parser *p, double *out)
{
    char buf[64];
    const char *end;
    if (npu__take_word(p, "nan")) {
        return npu__take_nan(p, out);
    }
    if (npu__next_is_word(p, "inf") || p->token.type == NPU__TOKEN_FLOAT || p->token.type == NPU__TOKEN_INT) {
        if (p->token.len < sizeof buf) {
            memcpy(buf, p->token.at, p->token.len);
            buf[p->token.len] = 0;
            *out = npu__parse_double(buf, &end);
            if (end == buf + p->token.len) {
                npu__lex(p);
                return NPU_OK;
            }
        }
    }
    return npu__parse_unexpected(p, "a number");
}

/* ---- reading: values ---- */

static npu_status npu__take_number(npu__parser *p, uint32_t *out)
{
    uint64_t x;
    if (!npu__digits(p->token.at + 1, p->token.len - 1, &x) || x == 0 || x > UINT32_MAX) {
        return npu__parse_unexpected(p, "a value");
    }
    *out = (uint32_t)x;
    npu__lex(p);
    return NPU_OK;
}

static uint32_t npu__find_label(const npu__parser *p, uint32_t number)
{
    uint32_t low = p->first_label[p->depth - 1], high = p->num_labels;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->labels[middle].a < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < p->num_labels && p->labels[low].a == number ? p->labels[low].b : 0;
}

static npu_status npu__parse_value(npu__parser *p, npu_value *out)
{
    const char *name = NULL;
    uint32_t number;
    npu_status status;
    if (p->token.type == NPU__TOKEN_LABEL) {
        status = npu__take_number(p, &number);
        if (status) {
            return status;
        }
        out->id = npu__find_label(p, number);
        return out->id ? NPU_OK
                       : npu__parse_fail(p, NPU_ERR_NOT_FOUND, "value %%%u is not defined before this line",
                                         (unsigned)number);
    }
    status = npu__take_name(p, &name, "a value");
    if (status) {
        return status;
    }
    *out = npu_graph_find(p->g, name);
    return out->id
               ? NPU_OK
               : npu__parse_fail(p, NPU_ERR_NOT_FOUND, "value '%.80s' is not defined before this line", name);
}

static npu_status npu__parse_target(npu__parser *p, npu__left *out)
{
    out->name = NULL;
    out->number = 0;
    return p->token.type == NPU__TOKEN_LABEL ? npu__take_number(p, &out->number)
                                             : npu__take_name(p, &out->name, "a value");
}

/* Lets the statements that follow refer to value id by its number. */
static npu_status npu__define_label(npu__parser *p, const npu__left *target, uint32_t id)
{
    if (target->name) {
        return NPU_OK;
    }
    if (p->num_labels > p->first_label[p->depth - 1] && p->labels[p->num_labels - 1].a >= target->number) {
        return npu__parse_fail(p, NPU_ERR_DUPLICATE, "%%%u comes after %%%u; numbers must grow",
                               (unsigned)target->number, (unsigned)p->labels[p->num_labels - 1].a);
    }
    if (!NPU__RESERVE(p, labels, 1)) {
        return npu__parse_no_memory(p);
    }
    p->labels[p->num_labels].a = target->number;
    p->labels[p->num_labels++].b = id;
    return NPU_OK;
}

/* ---- reading: arguments ---- */

static npu_status npu__parse_word_item(npu__parser *p, bool is_dtype, npu_arg *out)
{
    npu_dtype dtype;
    const char *word = p->token.at;
    npu_status status;
    if (npu__take_word(p, "none")) {
        return NPU_OK;
    }
    if (npu__next_is_word(p, "true") || npu__next_is_word(p, "false")) {
        *out = npu_arg_bool(out->name, word[0] == 't');
        npu__lex(p);
        return NPU_OK;
    }
    if (npu__next_is_word(p, "inf") || npu__next_is_word(p, "nan")) {
        *out = npu_arg_float(out->name, 0);
        return npu__take_double(p, &out->as.f);
    }
    if (npu__take_word(p, "graph")) {
        out->form = NPU_ARG_GRAPH;
        return npu__take_int(p, 0, UINT32_MAX - 1, &out->as.i);
    }
    status = npu__take_text(p, &word);
    if (status) {
        return status;
    }
    dtype = is_dtype ? npu_dtype_parse(word) : npu__dtype_word(word);
    if (dtype) {
        *out = npu_arg_dtype(out->name, dtype);
        return NPU_OK;
    }
    *out = npu_arg_tensor(out->name, npu_graph_find(p->g, word));
    return out->as.value.id
               ? NPU_OK
               : npu__parse_fail(p, NPU_ERR_NOT_FOUND, "value '%.80s' is not defined before this line", word);
}

/* One argument, or one element of a list; out->name stays. */
static npu_status npu__parse_item(npu__parser *p, bool is_dtype, npu_arg *out)
{
    const char *name = out->name;
    npu_status status;
    *out = npu_arg_none(name);
    switch (p->token.type) {
    case NPU__TOKEN_WORD: return npu__parse_word_item(p, is_dtype, out);
    case NPU__TOKEN_INT: out->form = NPU_ARG_INT; return npu__take_int(p, INT64_MIN, INT64_MAX, &out->as.i);
    case NPU__TOKEN_FLOAT: out->form = NPU_ARG_FLOAT; return npu__take_double(p, &out->as.f);
    case NPU__TOKEN_STRING: out->form = NPU_ARG_STR; return npu__take_text(p, &out->as.str);
    case NPU__TOKEN_LABEL:
    case NPU__TOKEN_NAME:
        *out = npu_arg_tensor(name, npu__make_value(0));
        status = npu__parse_value(p, &out->as.value);
        return status;
    default: return npu__parse_unexpected(p, "an argument");
    }
}

/* The kind of list that these elements make; NONE = they do not go together. */
static uint32_t npu__list_form(const npu__parser *p, uint32_t base)
{
    uint32_t seen = 0; /* a bit per form */
    for (uint32_t i = 0; i < p->num_items; i++) {
        seen |= 1u << p->items[i].form;
    }
    if ((seen == 0 && (base == NPU_T_TENSOR || base == NPU_T_TILE)) ||
        (seen && !(seen & ~(1u << NPU_ARG_TENSOR | 1u << NPU_ARG_NONE)))) {
        return NPU_ARG_TENSORS;
    }
    if (seen & ~(1u << NPU_ARG_INT | 1u << NPU_ARG_FLOAT | 1u << NPU_ARG_BOOL)) {
        return NPU_ARG_NONE;
    }
    if (base == NPU_T_SCALAR || (seen & (seen - 1))) {
        return NPU_ARG_SCALARS;
    }
    return seen == 1u << NPU_ARG_FLOAT || (!seen && base == NPU_T_FLOAT)  ? NPU_ARG_FLOATS
           : seen == 1u << NPU_ARG_BOOL || (!seen && base == NPU_T_BOOL) ? NPU_ARG_BOOLS
                                                                          : NPU_ARG_INTS;
}

static npu_scalar npu__item_scalar(const npu_arg *item)
{
    return item->form == NPU_ARG_FLOAT ? npu_scalar_float(item->as.f)
           : item->form == NPU_ARG_BOOL ? npu_scalar_bool(item->as.i != 0) : npu_scalar_int(item->as.i);
}

/* Moves the items into an array of what the list holds, in the scratch arena. */
static npu_status npu__collect_list(npu__parser *p, npu_arg *out)
{
    static const size_t sizes[] = { sizeof(int64_t), sizeof(double), sizeof(bool), sizeof(npu_scalar) };
    uint32_t n = p->num_items;
    size_t element = out->form == NPU_ARG_TENSORS ? sizeof(npu_value) : sizes[out->form - NPU_ARG_INTS];
    void *data = npu__arena_alloc(&p->scratch, (n ? n : 1) * element);
    if (!data) {
        return npu__parse_no_memory(p);
    }
    for (uint32_t i = 0; i < n; i++) {
        const npu_arg *item = &p->items[i];
        switch (out->form) {
        case NPU_ARG_TENSORS:
            ((npu_value *)data)[i] = item->form == NPU_ARG_TENSOR ? item->as.value : npu__make_value(0);
            break;
        case NPU_ARG_FLOATS: ((double *)data)[i] = item->as.f; break;
        case NPU_ARG_BOOLS: ((bool *)data)[i] = item->as.i != 0; break;
        case NPU_ARG_SCALARS: ((npu_scalar *)data)[i] = npu__item_scalar(item); break;
        default: ((int64_t *)data)[i] = item->as.i; break;
        }
    }
    out->count = n;
    switch (out->form) {
    case NPU_ARG_TENSORS: out->as.values = (const npu_value *)data; break;
    case NPU_ARG_FLOATS: out->as.floats = (const double *)data; break;
    case NPU_ARG_BOOLS: out->as.bools = (const bool *)data; break;
    case NPU_ARG_SCALARS: out->as.scalars = (const npu_scalar *)data; break;
    default: out->as.ints = (const int64_t *)data; break;
    }
    return NPU_OK;
}

static npu_status npu__parse_list(npu__parser *p, uint32_t base, npu_arg *out)
{
    npu_status status = npu__expect(p, '[', "'['");
    p->num_items = 0;
    while (status == NPU_OK && p->token.type != ']') {
        npu_arg item = npu_arg_none(NULL);
        status = p->num_items ? npu__expect(p, ',', "',' or ']'") : NPU_OK;
        status = status ? status : npu__parse_item(p, false, &item);
        if (status == NPU_OK && !NPU__RESERVE(p, items, 1)) {
            status = npu__parse_no_memory(p);
        }
        if (status == NPU_OK) {
            p->items[p->num_items++] = item;
        }
    }
    if (status) {
        return status;
    }
    npu__lex(p);
    out->form = npu__list_form(p, base);
    return out->form == NPU_ARG_NONE
               ? npu__parse_fail(p, NPU_ERR_PARSE, "the elements of this list do not go together")
               : npu__collect_list(p, out);
}

/* "name=" where it stands: looks one token further and comes back when there is none. */
static npu_status npu__parse_arg_name(npu__parser *p, npu_arg *out)
{
    npu__token token = p->token;
    const char *at = p->at, *name = NULL;
    npu_status status;
    *out = npu_arg_none(NULL);
    if (token.type != NPU__TOKEN_WORD) {
        return NPU_OK;
    }
    status = npu__take_text(p, &name);
    if (status == NPU_OK && npu__take(p, '=')) {
        out->name = name;
    } else {
        p->token = token;
        p->at = at;
    }
    return status;
}

static npu_status npu__parse_arg(npu__parser *p, const npu_op_def *def, npu_arg *args, uint32_t i)
{
    npu_status status = npu__parse_arg_name(p, &args[i]);
    int target = def ? npu__arg_target(def->schema, args, i) : -1;
    uint32_t base = target < 0 ? NPU_T_INVALID : def->schema->args[target].type.base;
    for (uint32_t k = 0; k < i && status == NPU_OK; k++) {
        if (args[k].name && args[i].name && strcmp(args[k].name, args[i].name) == 0) {
            status = npu__parse_fail(p, NPU_ERR_DUPLICATE, "argument '%.80s' is given twice", args[i].name);
        }
    }
    if (status) {
        return status;
    }
    status = p->token.type == '[' ? npu__parse_list(p, base, &args[i])
                                  : npu__parse_item(p, base == NPU_T_DTYPE, &args[i]);
    if (status == NPU_OK && !def && args[i].form == NPU_ARG_NONE) {
        args[i].form = NPU_ARG_TENSOR; /* an unknown op: more likely a hole than anything else */
        args[i].as.value.id = 0;
    }
    return status;
}

static npu_status npu__parse_args(npu__parser *p, const npu_op_def *def, npu_arg *args, uint32_t *num_args)
{
    npu_status status = npu__expect(p, '(', "'('");
    *num_args = 0;
    while (status == NPU_OK && p->token.type != ')') {
        if (*num_args == NPU_MAX_ARGS) {
            return npu__parse_fail(p, NPU_ERR_PARSE, "more than %d arguments", NPU_MAX_ARGS);
        }
        status = *num_args ? npu__expect(p, ',', "',' or ')'") : NPU_OK;
        status = status ? status : npu__parse_arg(p, def, args, *num_args);
        ++*num_args;
    }
    if (status == NPU_OK) {
        npu__lex(p);
    }
    return status;
}

/* ---- reading: specs ---- */

static npu_status npu__parse_dim(npu__parser *p, int64_t *out)
{
    const char *name = NULL;
    npu_status status;
    *out = NPU_DYNAMIC_DIM;
    if (npu__take(p, '?')) {
        return NPU_OK;
    }
    if (p->token.type == NPU__TOKEN_INT) {
        return npu__take_int(p, 0, INT64_MAX, out);
    }
    status = npu__take_name(p, &name, "a dim");
    if (status) {
        return status;
    }
    *out = npu__find_symbol(p->g, name);
    return *out
        ? NPU_OK
        : npu__parse_fail(p, NPU_ERR_NOT_FOUND, "symbol '%.80s' is not declared before this line", name);
}

static npu_status npu__parse_dims(npu__parser *p, npu_spec *out)
{
    npu_status status = npu__expect(p, '[', "'['");
    while (status == NPU_OK && p->token.type != ']') {
        if (out->rank == NPU_MAX_RANK) {
            return npu__parse_fail(p, NPU_ERR_RANK, "more than %d dims", NPU_MAX_RANK);
        }
        status = out->rank ? npu__expect(p, ',', "',' or ']'") : NPU_OK;
        status = status ? status : npu__parse_dim(p, &out->dims[out->rank]);
        out->rank = (uint8_t)(out->rank + 1);
    }
    if (status == NPU_OK) {
        npu__lex(p);
    }
    return status;
}

static npu_status npu__parse_space(npu__parser *p, npu_spec *out)
{
    int64_t number = 0;
    npu_status status = npu__expect(p, '=', "'='");
    if (status || p->token.type == NPU__TOKEN_INT) {
        status = status ? status : npu__take_int(p, 0, UINT8_MAX, &number);
        out->space = (uint8_t)number;
        return status;
    }
    for (uint32_t i = 0; i < NPU__COUNT(npu__spaces); i++) {
        if (npu__take_word(p, npu__spaces[i])) {
            out->space = (uint8_t)i;
            return NPU_OK;
        }
    }
    return npu__parse_unexpected(p, "a memory space");
}

/* A list of numbers as f32 or i32, in the scratch arena. */
static npu_status npu__parse_quant_list(npu__parser *p, bool is_float, const void **out, uint32_t *count)
{
    npu_arg list = npu_arg_none(NULL);
    npu_status status = npu__parse_list(p, is_float ? NPU_T_FLOAT : NPU_T_INT, &list);
    float *floats;
    int32_t *ints;
    if (status || (list.form != (is_float ? (uint32_t)NPU_ARG_FLOATS : (uint32_t)NPU_ARG_INTS))) {
        return status ? status
                      : npu__parse_fail(p, NPU_ERR_PARSE, "quant: scales are floats, zeros are integers");
    }
    floats = (float *)npu__arena_alloc(&p->scratch, (list.count + 1) * sizeof *floats);
    if (!floats) {
        return npu__parse_no_memory(p);
    }
    ints = (int32_t *)(void *)floats;
    for (uint32_t i = 0; i < list.count; i++) {
        if (is_float) {
            floats[i] = (float)list.as.floats[i];
        } else if (list.as.ints[i] < INT32_MIN || list.as.ints[i] > INT32_MAX) {
            return npu__parse_fail(p, NPU_ERR_PARSE, "quant: a zero does not fit 32 bits");
        } else {
            ints[i] = (int32_t)list.as.ints[i];
        }
    }
    *out = floats;
    *count = list.count;
    return NPU_OK;
}

static npu_status npu__parse_quant(npu__parser *p, npu_spec *out)
{
    npu_quant *q = (npu_quant *)npu__arena_alloc(&p->scratch, sizeof *q);
    const void *scales = NULL, *zeros = NULL;
    uint32_t num_zeros = 0;
    int64_t axis = 0;
    npu_status status = q ? npu__expect(p, '(', "'('") : npu__parse_no_memory(p);
    if (status) {
        return status;
    }
    memset(q, 0, sizeof *q);
    status = npu__take_uint32(p, &q->scheme);
    status = status ? status : npu__expect(p, ',', "','");
    status = status ? status : npu__take_int(p, INT32_MIN, INT32_MAX, &axis);
    status = status ? status : npu__expect(p, ',', "','");
    status = status ? status : npu__take_uint32(p, &q->block);
    status = status ? status : npu__expect(p, ',', "','");
    status = status ? status : npu__parse_quant_list(p, true, &scales, &q->count);
    if (status == NPU_OK && npu__take(p, ',')) {
        status = npu__parse_quant_list(p, false, &zeros, &num_zeros);
        if (status == NPU_OK && num_zeros != q->count) {
            status = npu__parse_fail(p, NPU_ERR_PARSE, "quant: %u zeros for %u scales", (unsigned)num_zeros,
                                     (unsigned)q->count);
        }
    }
    q->axis = (int32_t)axis;
    q->scales = (const float *)scales;
    q->zeros = (const int32_t *)zeros;
    out->quant = q;
    return status ? status : npu__expect(p, ')', "')'");
}

static npu_status npu__parse_spec_notes(npu__parser *p, npu_spec *out)
{
    npu_status status = NPU_OK;
    while (status == NPU_OK && p->token.type == NPU__TOKEN_WORD) {
        if (npu__take_word(p, "wrapped")) {
            out->wrapped = 1;
        } else if (npu__take_word(p, "space")) {
            status = npu__parse_space(p, out);
        } else if (npu__take_word(p, "offset")) {
            status = npu__expect(p, '=', "'='");
            status = status ? status : npu__take_int(p, INT64_MIN, INT64_MAX, &out->offset);
        } else if (npu__take_word(p, "quant")) {
            status = npu__parse_quant(p, out);
        } else {
            status = npu__parse_unexpected(p, "the end of the spec");
        }
    }
    return status;
}

static npu_status npu__parse_spec(npu__parser *p, npu_spec *out)
{
    const char *word = NULL;
    npu_status status;
    memset(out, 0, sizeof *out);
    out->cls = npu__take_word(p, "tile")     ? NPU_CLASS_TILE
               : npu__take_word(p, "scalar") ? NPU_CLASS_SCALAR
                                             : NPU_CLASS_TENSOR;
    if (p->token.type != NPU__TOKEN_WORD) {
        return npu__parse_unexpected(p, "a dtype");
    }
    status = npu__take_text(p, &word);
    if (status) {
        return status;
    }
    out->dtype = (uint8_t)npu_dtype_parse(word);
    if (!out->dtype) {
        return npu__parse_fail(p, NPU_ERR_DTYPE, "'%.80s' is no dtype", word);
    }
    status = npu__parse_dims(p, out);
    return status ? status : npu__parse_spec_notes(p, out);
}

/* ---- reading: constants ---- */

static npu_status npu__parse_element(npu__parser *p, npu_dtype dtype, uint64_t *bits)
{
    uint32_t width = npu_dtype_bits(dtype);
    double x;
    npu_status status;
    if (dtype == NPU_BOOL) {
        *bits = npu__next_is_word(p, "true");
        return npu__take_word(p, "true") || npu__take_word(p, "false")
                   ? NPU_OK
                   : npu__parse_unexpected(p, "true or false");
    }
    if (npu_dtype_is_float(dtype)) {
        status = npu__take_double(p, &x);
        *bits = status ? 0 : npu__float_bits(dtype, x);
        return status;
    }
    if (npu_dtype_is_signed(dtype)) {
        return npu__take_integer(p, -(int64_t)(((uint64_t)1 << (width - 1)) - 1) - 1,
                                 ((uint64_t)1 << (width - 1)) - 1, bits);
    }
    return npu__take_integer(p, 0, UINT64_MAX >> (64 - width), bits);
}

static npu_status npu__parse_elements(npu__parser *p, const npu_spec *spec, uint8_t *out, size_t len)
{
    npu_dtype dtype = (npu_dtype)spec->dtype;
    uint32_t bytes = npu__element_bytes(dtype);
    npu_status status = npu__expect(p, '{', "'{'");
    if (status == NPU_OK && len && !npu__is_readable_dtype(dtype)) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "constants of %s are written in hex", npu_dtype_name(dtype));
    }
    for (size_t i = 0; i < len && status == NPU_OK; i++) {
        uint64_t bits = 0;
        status = i ? npu__expect(p, ',', "',': there are more elements") : NPU_OK;
        status = status ? status : npu__parse_element(p, dtype, &bits);
        if (status == NPU_OK) {
            npu__element_store(out + i * bytes, bits, bytes);
        }
    }
    return status ? status : npu__expect(p, '}', "'}'");
}

static npu_status npu__parse_hex(npu__parser *p, const npu_spec *spec, uint8_t *out, size_t size)
{
    const char *digits = p->token.at + 2;
    uint32_t bytes = npu__element_bytes((npu_dtype)spec->dtype);
    uint8_t element[8];
    if ((p->token.len - 2) % 2 || (p->token.len - 2) / 2 != size) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "%zu hex digits, expected 2 times %zu", p->token.len - 2,
                               size);
    }
    for (size_t i = 0; i < size; i += bytes) {
        for (uint32_t k = 0; k < bytes; k++, digits += 2) {
            element[k] = (uint8_t)(npu__hex_digit(digits[0]) * 16 + npu__hex_digit(digits[1]));
        }
        npu__element_store(out + i, npu__get_le(element, bytes), bytes);
    }
    npu__lex(p);
    return NPU_OK;
}

/* Data of a constant, read into the graph's own memory. */
static npu_status npu__parse_data(npu__parser *p, const npu_spec *spec, const void **out)
{
    size_t len = 0, size = 0;
    uint8_t *data;
    npu_status status = npu_spec_len(spec, &len);
    status = status ? status : npu_spec_size(spec, &size);
    if (status) {
        return npu__parse_fail(p, status, "constant: %s", npu_status_text(status));
    }
    if (size / 8 > (size_t)(p->end - p->token.at)) { /* no text is that short: do not ask for the memory */
        return npu__parse_fail(p, NPU_ERR_PARSE, "constant: the line ends before %zu elements", len);
    }
    data = (uint8_t *)npu__arena_alloc(&p->g->arena, size ? size : 1);
    if (!data) {
        return npu__parse_no_memory(p);
    }
    *out = data;
    return p->token.type == NPU__TOKEN_HEX ? npu__parse_hex(p, spec, data, size)
                                           : npu__parse_elements(p, spec, data, len);
}

/* ---- reading: statements ---- */

/* VALUE : SPEC of a value that no op makes */
static npu_status npu__parse_source(npu__parser *p, npu_role role)
{
    npu__left target;
    npu_spec spec;
    npu_value v;
    const void *data = NULL;
    npu_status status = npu__parse_target(p, &target);
    status = status ? status : npu__expect(p, ':', "':'");
    status = status ? status : npu__parse_spec(p, &spec);
    status = status || role != NPU_ROLE_CONSTANT ? status : npu__parse_data(p, &spec, &data);
    if (status) {
        return status;
    }
    if (role == NPU_ROLE_PARAM && npu_graph_find(p->g, target.name).id) {
        return npu__parse_fail(p, NPU_ERR_DUPLICATE, "a value named '%.80s' already exists", target.name);
    }
    v = role == NPU_ROLE_INPUT      ? npu_input(p->g, target.name, spec)
        : role == NPU_ROLE_PARAM    ? npu_param(p->g, target.name, spec)
        : role == NPU_ROLE_CONSTANT ? npu__constant(p->g, target.name, &spec, data, true)
                                    : npu_state(p->g, target.name, spec);
    return v.id ? npu__define_label(p, &target, v.id) : npu__parse_built(p);
}

static npu_status npu__parse_input(npu__parser *p) { return npu__parse_source(p, NPU_ROLE_INPUT); }
static npu_status npu__parse_param(npu__parser *p) { return npu__parse_source(p, NPU_ROLE_PARAM); }
static npu_status npu__parse_const(npu__parser *p) { return npu__parse_source(p, NPU_ROLE_CONSTANT); }
static npu_status npu__parse_state(npu__parser *p) { return npu__parse_source(p, NPU_ROLE_STATE); }

static npu_status npu__parse_version(npu__parser *p)
{
    int64_t version = 0;
    npu_status status = npu__take_int(p, 0, INT32_MAX, &version);
    return status || version == NPU__FORM_VERSION
               ? status
               : npu__parse_fail(p, NPU_ERR_VERSION, "version %d, this reader knows %d", (int)version,
                                 NPU__FORM_VERSION);
}

static npu_status npu__parse_level(npu__parser *p, npu_graph *g)
{
    const char *name = NULL;
    npu_status status = npu__take_name(p, &name, "a name");
    if (status) {
        return status;
    }
    g->name = npu__arena_str(&g->arena, name);
    g->level = npu__take_word(p, "tile")     ? NPU_LEVEL_TILE
               : npu__take_word(p, "scalar") ? NPU_LEVEL_SCALAR
                                             : NPU_LEVEL_TENSOR;
    if (!g->name) {
        g->name = "";
        return npu__parse_no_memory(p);
    }
    return NPU_OK;
}

static void npu__parse_push(npu__parser *p, npu_graph *g)
{
    p->first_label[p->depth] = p->num_labels;
    p->stack[p->depth++] = p->g = g;
}

static npu_status npu__parse_graph(npu__parser *p)
{
    if (p->depth) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "a second graph; graphs inside a graph are its children");
    }
    npu__parse_push(p, p->stack[0]);
    return npu__parse_level(p, p->g);
}

static npu_status npu__parse_child(npu__parser *p)
{
    npu_graph *child;
    if (p->depth > NPU__FORM_MAX_DEPTH) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "child graphs are more than %d deep", NPU__FORM_MAX_DEPTH);
    }
    child = npu_graph_child(p->g, NULL, NPU_LEVEL_TENSOR, NULL);
    if (!child) {
        return npu__parse_built(p);
    }
    npu__parse_push(p, child);
    return npu__parse_level(p, child);
}

static npu_status npu__parse_end(npu__parser *p)
{
    if (p->depth < 2) {
        return npu__parse_fail(p, NPU_ERR_PARSE, "end without a child graph");
    }
    npu_graph_at(p->g, NULL, 0);
    p->num_labels = p->first_label[--p->depth];
    p->g = p->stack[p->depth - 1];
    return NPU_OK;
}

static npu_status npu__parse_symbol(npu__parser *p)
{
    const char *name = NULL;
    int64_t min = 0, max = 0;
    npu_status status = npu__take_name(p, &name, "a name");
    status = status ? status : npu__take_int(p, 0, INT64_MAX, &min);
    status = status ? status : npu__take_int(p, 0, INT64_MAX, &max);
    if (status == NPU_OK && npu__find_symbol(p->g, name)) {
        status = npu__parse_fail(p, NPU_ERR_DUPLICATE, "symbol '%.80s' already exists", name);
    }
    return status ? status : npu_graph_symbol(p->g, name, min, max) ? NPU_OK : npu__parse_built(p);
}

static npu_status npu__parse_save(npu__parser *p)
{
    npu_value maker = { 0 }, v = { 0 };
    uint32_t op = 0;
    npu_status status = npu__take_word(p, "op") ? npu__take_uint32(p, &op) : npu__parse_value(p, &maker);
    status = status ? status : npu__expect(p, '=', "'='");
    status = status ? status : npu__parse_value(p, &v);
    if (status) {
        return status;
    }
    op = op ? op : npu_value_producer(p->g, maker, NULL).id;
    return npu_op_add_saved(p->g, npu__make_op(op), v) ? npu__parse_built(p) : NPU_OK;
}

static npu_status npu__parse_update(npu__parser *p)
{
    npu_value state = { 0 }, next = { 0 };
    npu_status status = npu__parse_value(p, &state);
    status = status ? status : npu__expect(p, '=', "'='");
    status = status ? status : npu__parse_value(p, &next);
    return status ? status : npu_update(p->g, state, next) ? npu__parse_built(p) : NPU_OK;
}

static npu_status npu__parse_output(npu__parser *p)
{
    const char *name = NULL;
    npu_value v = { 0 };
    npu_status status = npu__take_name(p, &name, "a name");
    status = status ? status : npu__expect(p, '=', "'='");
    status = status ? status : npu__parse_value(p, &v);
    return status ? status : npu_output(p->g, name, v) ? npu__parse_built(p) : NPU_OK;
}

/* ---- reading: ops ---- */

static npu_status npu__parse_constraint(npu__parser *p, uint32_t *bits)
{
    uint32_t number = 0;
    npu_status status;
    for (size_t i = 0; i < NPU__COUNT(npu__constraint_names); i++) {
        if (npu__take_word(p, npu__constraint_names[i].name)) {
            *bits |= npu__constraint_names[i].bit;
            return NPU_OK;
        }
    }
    status = npu__take_uint32(p, &number);
    *bits |= number;
    return status;
}

/* @"op name" !constraint .. : SPEC, .. */
static npu_status npu__parse_op_notes(npu__parser *p, const char **name, uint32_t *constraints)
{
    npu_status status = NPU_OK;
    *name = NULL;
    *constraints = 0;
    p->num_specs = 0;
    if (npu__take(p, '@')) {
        status = npu__take_name(p, name, "the op's name");
    }
    while (status == NPU_OK && npu__take(p, '!')) {
        status = npu__parse_constraint(p, constraints);
    }
    if (status || !npu__take(p, ':')) {
        return status;
    }
    do {
        if (!NPU__RESERVE(p, specs, 1)) {
            return npu__parse_no_memory(p);
        }
        status = npu__parse_spec(p, &p->specs[p->num_specs++]);
    } while (status == NPU_OK && npu__take(p, ','));
    return status;
}

/* Names and numbers for the results of op. */
static npu_status npu__define_results(npu__parser *p, npu_op op)
{
    npu_status status = NPU_OK;
    if (npu_op_num_results(p->g, op) != p->num_targets) {
        return npu__parse_fail(p, NPU_ERR_ARITY, "%s: it has %u results, %u are named",
                               npu_op_definition(p->g, op)->name, (unsigned)npu_op_num_results(p->g, op),
                               (unsigned)p->num_targets);
    }
    for (uint32_t i = 0; i < p->num_targets && status == NPU_OK; i++) {
        uint32_t id = npu_op_result(p->g, op, i).id;
        if (npu__value_name_set(p->g, id, p->targets[i].name)) {
            return npu__parse_built(p);
        }
        status = npu__define_label(p, &p->targets[i], id);
    }
    return status;
}

/* OP(args) and what follows it */
static npu_status npu__parse_call(npu__parser *p, const char *name)
{
    const npu_op_def *def = npu_registry_find(p->g->registry, name);
    npu_arg args[NPU_MAX_ARGS];
    uint32_t num_args = 0, constraints = 0;
    const char *label = NULL;
    npu_op op;
    npu_status status = npu__parse_args(p, def, args, &num_args);
    status = status ? status : npu__parse_op_notes(p, &label, &constraints);
    if (status) {
        return status;
    }
    op = def ? npu__emit_args(p->g, def, args, num_args, p->num_specs ? p->specs : NULL, p->num_specs)
             : npu_emit_typed(p->g, name, args, num_args, p->specs, p->num_specs);
    if (!op.id || npu_op_set_name(p->g, op, label) || npu_op_set_constraints(p->g, op, constraints)) {
        return npu__parse_built(p);
    }
    return npu__define_results(p, op);
}

/* VALUE, .. = OP(..), or OP(..) without results */
static npu_status npu__parse_op(npu__parser *p)
{
    npu__left target;
    const char *name = NULL;
    npu_status status;
    p->num_targets = 0;
    do {
        status = npu__parse_target(p, &target);
        if (status == NPU_OK && target.name && p->num_targets == 0 && p->token.type == '(') {
            return npu__parse_call(p, target.name);
        }
        if (status == NPU_OK && !NPU__RESERVE(p, targets, 1)) {
            status = npu__parse_no_memory(p);
        }
        if (status == NPU_OK) {
            p->targets[p->num_targets++] = target;
        }
    } while (status == NPU_OK && npu__take(p, ','));
    status = status ? status : npu__expect(p, '=', "'='");
    status = status ? status : npu__take_name(p, &name, "an op");
    return status ? status : npu__parse_call(p, name);
}

static npu_status npu__parse_statement(npu__parser *p)
{
    static const struct { const char *word; npu_status (*parse)(npu__parser *p); } statements[] = {
        { "graph", npu__parse_graph }, { "symbol", npu__parse_symbol }, { "child", npu__parse_child },
        { "end", npu__parse_end }, { "input", npu__parse_input }, { "param", npu__parse_param },
        { "const", npu__parse_const }, { "state", npu__parse_state }, { "save", npu__parse_save },
        { "update", npu__parse_update }, { "output", npu__parse_output }
    };
    if (p->depth == 0 && !npu__next_is_word(p, "graph")) {
        return npu__take_word(p, "npu_ir") ? npu__parse_version(p) : npu__parse_unexpected(p, "graph");
    }
    npu_graph_at(p->g, "text", p->line);
    for (size_t i = 0; i < NPU__COUNT(statements); i++) {
        if (npu__take_word(p, statements[i].word)) {
            return statements[i].parse(p);
        }
    }
    return npu__parse_op(p);
}

/* Makes the scratch arena empty; its one block stays for the next statement. */
static void npu__arena_reset(npu__arena *arena)
{
    if (arena->blocks && !arena->blocks->next) {
        arena->blocks->used = 0;
    } else {
        npu__arena_free(arena);
    }
}

static npu_status npu__parse_lines(npu__parser *p)
{
    npu_status status = NPU_OK;
    npu__lex(p);
    while (status == NPU_OK && p->token.type != NPU__TOKEN_END) {
        if (p->token.type != NPU__TOKEN_LINE) {
            npu__arena_reset(&p->scratch);
            status = npu__parse_statement(p);
            if (status == NPU_OK && p->token.type != NPU__TOKEN_LINE && p->token.type != NPU__TOKEN_END) {
                status = npu__parse_unexpected(p, "the end of the line");
            }
        } else {
            p->line++;
            npu__lex(p);
        }
    }
    if (status == NPU_OK && p->depth != 1) {
        status =
            npu__parse_fail(p, NPU_ERR_PARSE, p->depth ? "a child graph has no end" : "there is no graph");
    }
    return status;
}

NPU_IR_API npu_status npu_graph_parse(npu_graph **out, const char *text, size_t len,
                                      const npu_graph_desc *desc, npu_diag *diag)
{
    npu__parser p;
    npu_status status;
    *out = NULL;
    memset(&p, 0, sizeof p);
    p.allocator = p.scratch.allocator = npu__allocator(desc ? desc->allocator : NULL);
    p.at = text ? text : "";
    p.end = p.at + (text ? len : 0);
    p.line = 1;
    p.stack[0] = npu_graph_create(desc);
    status = p.stack[0]
                 ? npu__parse_lines(&p)
                 : npu__parse_fail(&p, NPU_ERR_NO_MEMORY, "there is no graph: out of memory, or a bad desc");
    if (status) {
        if (diag) {
            *diag = p.diag;
        }
        npu_graph_destroy(p.stack[0]);
    } else {
        *out = npu_graph_at(p.stack[0], NULL, 0);
    }
    NPU__RELEASE(&p, labels);
    NPU__RELEASE(&p, targets);
    NPU__RELEASE(&p, items);
    NPU__RELEASE(&p, specs);
    npu__arena_free(&p.scratch);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- */

NPU_IR_API const char *npu_reason_text(uint32_t reason)
{
    switch (reason) {
#define NPU_X(number, symbol, text) case number: return text;
    NPU_IR_REASONS(NPU_X)
#undef NPU_X
    default: return "unknown reason";
    }
}

NPU_IR_API npu_status npu_backend_check(const npu_backend *b, npu_diag *diag)
{
    const char *name = b && b->name ? b->name : "backend", *missing = NULL;
    if (!b || b->size < sizeof *b || b->api_version != NPU_BACKEND_API) {
        return npu__fail(diag, NPU_ERR_VERSION, "%s: api version %u and size %u, expected %u and at least %u",
                         name, b ? (unsigned)b->api_version : 0, b ? (unsigned)b->size : 0, NPU_BACKEND_API,
                         (unsigned)sizeof *b);
    }
    missing = !b->name                   ? "name"
        : !b->supports                   ? "supports"
        : !b->alloc                      ? "alloc"
        : !b->free                       ? "free"
        : !b->upload                     ? "upload"
        : !b->download                   ? "download"
        : !b->compile                    ? "compile"
        : !b->submit                     ? "submit"
        : !b->release                    ? "release"
        : !b->num_regions || !b->regions ? "regions"
                                         : NULL;
    if (missing) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "%s: the slot '%s' is required", name, missing);
    }
    for (uint32_t i = 0; i < b->num_regions; i++) {
        uint32_t a = b->regions[i].alignment;
        if (a == 0 || (a & (a - 1)) || a > 4096) {
            return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT,
                             "%s: region %u has alignment %u, expected a power of two up to 4096", name,
                             (unsigned)i, (unsigned)a);
        }
    }
    return NPU_OK;
}

NPU_IR_API bool npu_is_op_supported(const npu_backend *backend, const npu_registry *registry,
                                    const char *name)
{
    const npu_op_def *def = registry ? npu_registry_find(registry, name) : NULL;
    npu_op_info info;
    npu_support answer;
    if (!def || npu_backend_check(backend, NULL)) {
        return false;
    }
    memset(&info, 0, sizeof info);
    memset(&answer, 0, sizeof answer);
    info.size = (uint32_t)sizeof info;
    info.kind = def->kind;
    info.traits = def->traits;
    info.name = def->name;
    answer.size = (uint32_t)sizeof answer;
    /* Without operands a backend can refuse for any reason but the op itself. */
    return backend->supports(backend->ctx, &info, &answer) == NPU_OK && answer.reason != NPU_REASON_OP;
}

NPU_IR_API npu_status npu_tensor_host(npu_tensor *tensor, npu_buffer *buffer, npu_dtype dtype, uint32_t rank,
                                      const int64_t *dims, const void *data)
{
    npu_spec spec = npu_spec_tensor(dtype, rank, dims);
    size_t size = 0;
    int64_t stride = 1;
    npu_status status = npu_spec_size(&spec, &size);
    if (status) {
        return status;
    }
    memset(buffer, 0, sizeof *buffer);
    buffer->size = (uint32_t)sizeof *buffer;
    buffer->handle = (void *)(uintptr_t)data;
    buffer->bytes = size;
    memset(tensor, 0, sizeof *tensor);
    tensor->size = (uint32_t)sizeof *tensor;
    tensor->dtype = (uint32_t)dtype;
    tensor->rank = rank;
    tensor->buffer = buffer;
    for (uint32_t i = rank; i-- > 0;) {
        tensor->dims[i] = dims[i];
        tensor->strides[i] = stride;
        stride *= dims[i] > 0 ? dims[i] : 1;
    }
    return NPU_OK;
}

/* ---- one op standalone ---- */

#ifdef NPU_IR_NOW_NS
static uint64_t npu__now(void) { return NPU_IR_NOW_NS(); }
#elif defined(CLOCK_MONOTONIC)
static uint64_t npu__now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#elif defined(TIME_UTC)
static uint64_t npu__now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#else
static uint64_t npu__now(void) { return (uint64_t)clock() * (1000000000u / CLOCKS_PER_SEC); }
#endif

/* A registry of the one row with that kind, so that a call does not parse every schema. */
static npu_status npu__registry_of_kind(npu_registry **out, npu_kind kind, npu_diag *diag)
{
    uint32_t num_tables;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    for (uint32_t t = 0; t < num_tables; t++) {
        for (uint32_t i = 0; i < tables[t].num_rows; i++) {
            if (tables[t].rows[i].kind == kind) {
                npu_op_table one = tables[t];
                npu_registry_desc desc;
                memset(&desc, 0, sizeof desc);
                one.rows = &tables[t].rows[i];
                one.num_rows = 1;
                desc.tables = &one;
                desc.num_tables = 1;
                return npu_registry_create(out, &desc, diag);
            }
        }
    }
    return npu__fail(diag, NPU_ERR_NOT_FOUND, "op_call: kind 0x%08x is not built in", (unsigned)kind);
}

static npu_spec npu__tensor_spec(const npu_tensor *t)
{
    return npu_spec_tensor((npu_dtype)t->dtype, t->rank, t->dims);
}

#define NPU__CALL_MAX 64 /* operands and results of a standalone call */

/* A group of one op and what it is bound to, for backends without op_call. */
typedef struct npu__single {
    npu_group_value values[NPU__CALL_MAX];
    npu_place places[NPU__CALL_MAX];
    npu_buffer *buffers[NPU__CALL_MAX + 1]; /* the last is the scratch */
    uint32_t index[NPU__CALL_MAX];
    uint32_t failed_op;
    npu_group_op op;
    npu_group group;
    npu_compiled compiled;
    npu_binding binding;
    npu_buffer scratch;
} npu__single;

static void npu__single_describe(npu__single *c, const npu_op_info *info, const npu_tensor *in,
                                 const npu_tensor *out)
{
    uint32_t n = info->num_in + info->num_out;
    for (uint32_t i = 0; i < n; i++) {
        const npu_tensor *t = i < info->num_in ? &in[i] : &out[i - info->num_in];
        bool hole = t->dtype == 0;
        c->values[i].size = (uint32_t)sizeof c->values[i];
        c->values[i].role = i < info->num_in ? NPU_GROUP_INPUT : NPU_GROUP_OUTPUT;
        c->values[i].spec = i < info->num_in ? info->in[i] : info->out[i - info->num_in];
        c->values[i].name = "";
        c->index[i] = hole ? NPU_NO_INDEX : i;
        c->places[i].buffer = hole ? NPU_NO_INDEX : i;
        c->places[i].offset = t->offset;
        c->buffers[i] = t->buffer;
    }
    c->op.info = *info;
    c->op.in = c->index;
    c->op.out = c->index + info->num_in;
    c->group.size = (uint32_t)sizeof c->group;
    c->group.num_ops = 1;
    c->group.num_values = n;
    c->group.ops = &c->op;
    c->group.values = c->values;
    c->compiled.size = (uint32_t)sizeof c->compiled;
}

static npu_status npu__single_run(npu__single *c, const npu_backend *b, uint64_t stream)
{
    uint32_t n = c->group.num_values, alignment = b->regions[0].alignment;
    npu_status status = NPU_OK;
    if (c->compiled.scratch) {
        alignment = c->compiled.scratch_alignment > alignment ? c->compiled.scratch_alignment : alignment;
        c->scratch.size = (uint32_t)sizeof c->scratch;
        status = b->alloc(b->ctx, 0, c->compiled.scratch + b->regions[0].slack, alignment, &c->scratch);
        c->buffers[n] = &c->scratch;
        c->binding.scratch.buffer = n;
        if (status) {
            c->scratch.size = 0;
            return status;
        }
    }
    c->binding.size = (uint32_t)sizeof c->binding;
    c->binding.num_buffers = c->compiled.scratch ? n + 1 : n;
    c->binding.buffers = c->buffers;
    c->binding.places = c->places;
    c->binding.stream = stream;
    c->binding.clock = npu__now;
    c->binding.failed_op = &c->failed_op;
    status = b->place ? b->place(b->ctx, c->compiled.program, c->places, n) : NPU_OK;
    return status ? status : b->submit(b->ctx, c->compiled.program, &c->binding, NULL);
}

static npu_status npu__call_by_group(const npu_backend *b, const npu_op_info *info, const npu_tensor *in,
                                     const npu_tensor *out, uint64_t stream, npu_diag *diag)
{
    npu_allocator a = npu__allocator(NULL);
    npu__single *c = (npu__single *)npu__alloc_zero(&a, sizeof *c);
    npu_status status;
    if (!c) {
        return NPU_ERR_NO_MEMORY;
    }
    npu__single_describe(c, info, in, out);
    status = b->compile(b->ctx, &c->group, &c->compiled);
    if (status) {
        c->compiled.text[sizeof c->compiled.text - 1] = 0;
        npu__fail(diag, status, "%s: %s cannot compile it: %s", info->name, b->name, c->compiled.text);
    } else {
        status = npu__single_run(c, b, stream);
    }
    if (c->scratch.size) {
        b->free(b->ctx, &c->scratch);
    }
    if (c->compiled.program) {
        b->release(b->ctx, c->compiled.program);
    }
    npu__free(&a, c, sizeof *c);
    return status;
}

/* The packed blob of a call: decoded from the device form where a table has the kind. */
static npu_status npu__call_blob(const npu_backend *b, const npu_op_def *def, uint32_t attr_schema,
                                 const void *blob, uint32_t size, uint8_t out[512], uint32_t *out_size,
                                 npu_diag *diag)
{
    uint32_t num_rows = b->num_abi;
    const npu_abi_row *rows = b->abi ? b->abi : npu_aicf_abi(&num_rows);
    npu_status status = NPU_KIND_NAMESPACE(def->kind) == NPU_NS_AICF || b->abi
        ? npu_abi_decode(rows, num_rows, def, attr_schema, (const uint8_t *)blob, size, out, 512, out_size)
        : NPU_ERR_NOT_FOUND;
    if (status != NPU_ERR_NOT_FOUND) {
        return status ? npu__fail(diag, status, "%s: schema 0x%08x with %u bytes: %s", def->name,
                                  (unsigned)attr_schema, (unsigned)size, npu_status_text(status))
                      : NPU_OK;
    }
    if (attr_schema != 0 || size > 512) {
        return npu__fail(diag, attr_schema ? NPU_ERR_BAD_SCHEMA : NPU_ERR_BAD_ATTR_SIZE,
                         "%s: schema 0x%08x with %u bytes, expected 0 and the packed blob", def->name,
                         (unsigned)attr_schema, (unsigned)size);
    }
    if (size == 0 && def->defaults) { /* no attributes given: the defaults */
        if (def->defaults_size > 512) {
            return npu__fail(diag, NPU_ERR_BAD_ATTR_SIZE, "%s: the defaults do not fit", def->name);
        }
        memcpy(out, def->defaults, def->defaults_size);
        *out_size = def->defaults_size;
        return NPU_OK;
    }
    if (size) {
        memcpy(out, blob, size);
    }
    *out_size = size;
    return NPU_OK;
}

typedef struct npu__call {
    npu_spec specs[NPU__CALL_MAX];
    const npu_spec *spec_pointers[NPU__CALL_MAX];
    const void *data[NPU__CALL_MAX];
    npu_bound_arg args[NPU_MAX_ARGS];
    uint8_t blob[512], device[256];
    npu_op_info info;
} npu__call;

/* All tensors of the call belong to its one list argument, or to none: the others take one slot each. */
static uint32_t npu__call_list_len(const npu_schema *schema, uint32_t num_in)
{
    uint32_t plain = 0;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        plain += npu__is_operand(&schema->args[i]) && !schema->args[i].type.list;
    }
    return num_in > plain ? num_in - plain : 0;
}

static npu_status npu__call_check_results(npu__call *c, const npu_op_def *def, npu_diag *diag)
{
    npu_deduce d;
    npu_status status;
    memset(&d, 0, sizeof d);
    d.op = &c->info;
    d.def = def;
    d.diag = diag;
    d.allocator = npu__allocator(NULL);
    status = def->rule ? def->rule(&d) : NPU_OK;
    if (status == NPU_OK && def->rule) {
        if (d.num_results != c->info.num_out) {
            status = npu__fail(diag, NPU_ERR_ARITY, "%s: %u results given, expected %u", def->name,
                               (unsigned)c->info.num_out, (unsigned)d.num_results);
        }
        for (uint32_t i = 0; status == NPU_OK && i < d.num_results; i++) {
            if (!npu_spec_equal(&d.results[i], c->info.out[i])) {
                status =
                    npu__fail(diag,
                              d.results[i].dtype != c->info.out[i]->dtype ? NPU_ERR_DTYPE : NPU_ERR_SHAPE,
                              "%s: result %u has another dtype or shape than the op gives", def->name,
                              (unsigned)i);
            }
        }
    }
    npu__free(&d.allocator, d.results, d.capacity * sizeof *d.results);
    return status;
}

static npu_status npu__call_bind(npu__call *c, const npu_backend *b, const npu_op_def *def,
                                 const npu_tensor *in, uint32_t num_in, const npu_tensor *out,
                                 uint32_t num_out, uint32_t attr_schema, const void *blob, uint32_t size,
                                 npu_diag *diag)
{
    npu_op_info *info = &c->info;
    uint32_t lists[4], list_len = npu__call_list_len(def->schema, num_in);
    npu_status status = npu__call_blob(b, def, attr_schema, blob, size, c->blob, &info->attrs_size, diag);
    if (status) {
        return status;
    }
    lists[0] = lists[1] = lists[2] = lists[3] = list_len;
    for (uint32_t i = 0; i < num_in + num_out; i++) {
        const npu_tensor *t = i < num_in ? &in[i] : &out[i - num_in];
        c->specs[i] = npu__tensor_spec(t);
        c->spec_pointers[i] = t->dtype ? &c->specs[i] : NULL;
        if (!t->dtype && i >= num_in) {
            return npu__fail(diag, NPU_ERR_DTYPE, "%s: result %u has no dtype", def->name,
                             (unsigned)(i - num_in));
        }
    }
    info->size = (uint32_t)sizeof *info;
    info->kind = def->kind;
    info->traits = def->traits;
    info->name = def->name;
    info->num_args = def->schema->num_args;
    info->num_in = num_in;
    info->num_out = num_out;
    info->args = c->args;
    info->in = c->spec_pointers;
    info->out = c->spec_pointers + num_in;
    info->in_data = c->data;
    info->attrs = c->blob;
    status = npu_blob_bind(def->schema, c->blob, info->attrs_size, lists, num_in, c->args, diag);
    for (uint32_t a = 0; status == NPU_OK && a < info->num_args; a++) {
        const npu_schema_type *type = &def->schema->args[a].type;
        if (npu__is_operand(&def->schema->args[a]) && !type->list && !type->optional &&
            !info->in[c->args[a].first]) {
            status = npu__fail(diag, NPU_ERR_ARITY, "%s: operand '%s' is missing", def->name,
                               def->schema->args[a].name);
        }
    }
    status = status ? status : npu__call_check_results(c, def, diag);
    if (status == NPU_OK && b->abi) {
        status = npu_abi_encode(b->abi, b->num_abi, info, &info->device_kind, &info->device_schema, c->device,
                                (uint32_t)sizeof c->device, &info->device_size);
        info->device_attrs = c->device;
        status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status;
    }
    return status;
}

static npu_status npu__call_run(npu__call *c, const npu_backend *b, const npu_tensor *in,
                                const npu_tensor *out, uint64_t stream, npu_diag *diag)
{
    npu_status status = b->op_call ? b->op_call(b->ctx, &c->info, in, out, stream)
                                   : npu__call_by_group(b, &c->info, in, out, stream, diag);
    return status ? npu__fail(diag, status, "%s on %s: %s", c->info.name, b->name, npu_status_text(status))
                  : NPU_OK;
}

NPU_IR_API npu_status npu_op_call(const npu_backend *b, npu_kind kind, const npu_tensor *in, uint32_t num_in,
                                  const npu_tensor *out, uint32_t num_out, uint32_t attr_schema,
                                  const void *blob, uint32_t blob_size, uint64_t stream, npu_diag *diag)
{
    npu_diag local;
    npu_registry *registry = NULL;
    npu_allocator a = npu__allocator(NULL);
    npu__call *c;
    npu_status status;
    memset(&local, 0, sizeof local);
    diag = diag ? diag : &local;
    memset(diag, 0, sizeof *diag);
    status = npu_backend_check(b, diag);
    if (status) {
        return status;
    }
    if (num_in > NPU__CALL_MAX || num_out > NPU__CALL_MAX - num_in) {
        return npu__fail(diag, NPU_ERR_ARITY, "op_call: %u operands and %u results, at most %d in all",
                         (unsigned)num_in, (unsigned)num_out, NPU__CALL_MAX);
    }
    c = (npu__call *)npu__alloc_zero(&a, sizeof *c);
    status = c ? npu__registry_of_kind(&registry, kind, diag)
               : npu__fail(diag, NPU_ERR_NO_MEMORY, "op_call: out of memory");
    if (status == NPU_OK) {
        status = npu__call_bind(c, b, npu_registry_get(registry, kind), in, num_in, out, num_out, attr_schema,
                                blob, blob_size, diag);
    }
    if (status == NPU_OK) {
        status = npu__call_run(c, b, in, out, stream, diag);
    }
    npu_registry_destroy(registry);
    npu__free(&a, c, sizeof *c);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- */

/* A rewrite goes through the old graph's statements in order and makes the new one's. What the callback
   leaves without a path to an effect, an update or an output is dropped by a second, plain pass: only then is
   it known what died. */

struct npu_rewrite {
    const npu_graph *from;
    npu_graph *to;
    uint32_t *values;       /* new id per old value, 0 = none yet */
    uint32_t *ops;          /* new id per old op that was copied, 0 = not */
    uint8_t *live;          /* per old op */
    const char *const *names; /* symbols that get a value */
    const int64_t *dims;
    uint32_t num_bound;
    int64_t *symbols;       /* new dim per old symbol */
    npu_diag *diag;
    npu_op_info info;       /* of the op last described */
    npu_op_storage storage;
    char reason[128];       /* why the last pattern did not match */
};

static npu_status npu__rewrite_fail(npu_rewrite *rw, npu_status status, const char *message)
{
    const npu_diag *d = npu_graph_diag(rw->to);
    if (rw->to && d->status) {
        if (rw->diag && rw->diag->status == NPU_OK) {
            *rw->diag = *d;
        }
        return d->status;
    }
    return npu__fail(rw->diag, status, "rewrite of %s: %s", rw->from->name, message);
}

/* ---- what is live ---- */

static void npu__mark(const npu_graph *g, uint8_t *live, uint32_t value)
{
    uint32_t producer = value < g->num_values ? g->values[value].producer : 0;
    live[producer] = 1; /* [0] is nobody's */
}

/* Sets live[op] for every op that an effect, an update or an output needs. */
static void npu__mark_live(const npu_graph *g, uint8_t *live)
{
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        npu__mark(g, live, g->outputs[i].a);
    }
    for (uint32_t i = 0; i < g->num_updates; i++) {
        npu__mark(g, live, g->updates[i].b);
    }
    for (uint32_t op = g->num_ops - 1; op > 0; op--) {
        const npu__op *o = &g->ops[op];
        live[op] = live[op] || (o->def->traits & NPU_EFFECT);
        for (uint32_t i = 0; live[op] && i < o->num_operands; i++) {
            npu__mark(g, live, g->uses[o->first_operand + i].value);
        }
    }
}

/* ---- specs and symbols ---- */

static npu_status npu__rewrite_symbol(npu_rewrite *rw, uint32_t i)
{
    const npu__symbol *s = &rw->from->symbols[i];
    for (uint32_t k = 0; k < rw->num_bound; k++) {
        if (strcmp(rw->names[k], s->name) == 0) {
            rw->symbols[i] = rw->dims[k];
            return rw->dims[k] >= s->min && rw->dims[k] >= 0 && (!s->max || rw->dims[k] <= s->max)
                       ? NPU_OK
                       : npu__fail(rw->diag, NPU_ERR_RANGE, "symbol %s: %lld is not in %lld..%lld", s->name,
                                   (long long)rw->dims[k], (long long)s->min, (long long)s->max);
        }
    }
    if (s->is_deduced) {
        rw->symbols[i] = NPU_DYNAMIC_DIM; /* until its op is emitted */
        return NPU_OK;
    }
    rw->symbols[i] = npu_graph_symbol(rw->to, s->name, s->min, s->max);
    return rw->symbols[i] ? NPU_OK : npu__rewrite_fail(rw, NPU_ERR_NO_MEMORY, "symbols");
}

static npu_spec npu__rewrite_spec(const npu_rewrite *rw, const npu_spec *spec)
{
    npu_spec s = *spec;
    for (uint32_t i = 0; i < s.rank; i++) {
        if (s.dims[i] < NPU_DYNAMIC_DIM && (uint64_t)(-2 - s.dims[i]) < rw->from->num_symbols) {
            s.dims[i] = rw->symbols[-2 - s.dims[i]];
        }
    }
    return s;
}

/* ---- values ---- */

static npu_status npu__rewrite_source(npu_rewrite *rw, uint32_t id)
{
    const npu_graph *from = rw->from;
    const npu__value *old = &from->values[id];
    const npu__data *data = &from->data[old->data];
    const char *name = old->name ? from->names[old->name] : NULL;
    npu_spec spec = npu__rewrite_spec(rw, from->specs[old->spec]);
    npu_value v = npu__make_value(0);
    switch (old->role) {
    case NPU_ROLE_INPUT: v = npu_input(rw->to, name, spec); break;
    case NPU_ROLE_STATE: v = npu_state(rw->to, name, spec); break;
    case NPU_ROLE_PARAM: v = npu_param(rw->to, name, spec); break;
    case NPU_ROLE_CONSTANT:
        v = data->is_owned ? npu_constant(rw->to, name, spec, data->data)
                           : npu_constant_ref(rw->to, name, spec, data->data);
        break;
    default: break;
    }
    if (v.id && old->role == NPU_ROLE_PARAM && data->data &&
        npu__data_set(rw->to, v.id, data->data, data->size)) {
        v.id = 0;
    }
    rw->values[id] = v.id;
    return v.id ? NPU_OK : npu__rewrite_fail(rw, NPU_ERR_GRAPH, "a value cannot be copied");
}

NPU_IR_API npu_graph *npu_rewrite_target(npu_rewrite *rw) { return rw->to; }

NPU_IR_API npu_value npu_rewrite_value(npu_rewrite *rw, npu_value old)
{
    return npu__make_value(old.id < rw->from->num_values ? rw->values[old.id] : 0);
}

/* Gives a new value the name of an old one where it has none and the name is free. */
static void npu__rewrite_name(npu_rewrite *rw, uint32_t old, uint32_t now)
{
    uint32_t name = rw->from->values[old].name;
    if (name && !rw->to->values[now].name && !npu_graph_find(rw->to, rw->from->names[name]).id) {
        npu__value_name_set(rw->to, now, rw->from->names[name]);
    }
}

NPU_IR_API void npu_rewrite_replace(npu_rewrite *rw, npu_value old, npu_value now)
{
    if (!npu__value_at(rw->from, old) || !npu__value_at(rw->to, now)) {
        npu__graph_fail(rw->to, NPU_ERR_INVALID_ARGUMENT,
                        "rewrite: there is no old value %u or no new value %u", (unsigned)old.id,
                        (unsigned)now.id);
        return;
    }
    rw->values[old.id] = now.id;
    npu__rewrite_name(rw, old.id, now.id);
}

/* ---- ops ---- */

/* The row that an op has in the new graph: the registry's, or a copy of a synthesised one. */
static const npu_op_def *npu__rewrite_def(npu_rewrite *rw, const npu_op_def *def)
{
    npu_text line = npu_text_make(&rw->to->allocator);
    const npu_op_def *copy;
    if (def->kind) {
        return npu_registry_get(rw->to->registry, def->kind);
    }
    npu_schema_print(&line, def->schema);
    if (line.status) {
        npu__graph_no_memory(rw->to);
    }
    copy = line.status ? NULL : npu__define_unknown(rw->to, def->name, line.data);
    npu_text_free(&line);
    return copy;
}

/* Operands and result specs of an op, in the new graph's scratch. */
static npu_status npu__rewrite_operands(npu_rewrite *rw, const npu__op *o)
{
    npu_graph *to = rw->to;
    to->num_operands = 0;
    for (uint32_t i = 0; i < o->num_operands; i++) {
        uint32_t old = rw->from->uses[o->first_operand + i].value;
        if (old && !rw->values[old]) {
            return npu__graph_fail(to, NPU_ERR_GRAPH,
                                   "rewrite: %s uses a value that was neither copied nor replaced",
                                   o->def->name);
        }
        if (!npu__push_operand(to, npu__make_value(rw->values[old]))) {
            return npu__graph_no_memory(to);
        }
    }
    return NPU_OK;
}

/* True when a result has a dim that is no number. */
static bool npu__op_has_symbols(const npu_graph *g, const npu__op *o)
{
    for (uint32_t i = 0; i < o->num_results; i++) {
        if (!npu_spec_is_static(g->specs[g->values[o->first_result + i].spec])) {
            return true;
        }
    }
    return false;
}

/* Old symbols of an op's results are what deduction gave now. */
static void npu__rewrite_settle(npu_rewrite *rw, const npu__op *o, npu_op now)
{
    for (uint32_t i = 0; i < o->num_results && i < npu_op_num_results(rw->to, now); i++) {
        const npu_spec *was = rw->from->specs[rw->from->values[o->first_result + i].spec];
        const npu_spec *is = npu_value_spec(rw->to, npu_op_result(rw->to, now, i));
        for (uint32_t k = 0; k < was->rank && k < is->rank; k++) {
            const npu__symbol *s = npu__symbol_of(rw->from, was->dims[k]);
            if (s && rw->symbols[s - rw->from->symbols] == NPU_DYNAMIC_DIM) {
                rw->symbols[s - rw->from->symbols] = is->dims[k];
            }
        }
    }
}

/* An op without a type rule keeps its specs: they are given. To others they tell the symbols of dims that are
   not known. */
static npu_spec *npu__rewrite_given(npu_rewrite *rw, const npu__op *o)
{
    npu_spec *given = (npu_spec *)npu__alloc(&rw->to->allocator, o->num_results * sizeof *given);
    for (uint32_t i = 0; given && i < o->num_results; i++) {
        given[i] = npu__rewrite_spec(rw, rw->from->specs[rw->from->values[o->first_result + i].spec]);
    }
    return given;
}

static npu_op npu__rewrite_emit(npu_rewrite *rw, const npu__op *o, const npu_op_def *def)
{
    npu_op none = { 0 }, op;
    npu_spec *given = NULL;
    npu__emission e;
    memset(&e, 0, sizeof e);
    e.def = def;
    e.operands = rw->to->operands;
    e.num_operands = o->num_operands;
    e.groups = rw->from->groups ? rw->from->groups + o->groups : NULL;
    if (o->attrs != NPU_NO_INDEX || !def->defaults) {
        e.attrs =
            rw->from->blobs && o->attrs != NPU_NO_INDEX ? rw->from->blobs + o->attrs : (const uint8_t *)"";
        e.attrs_size = o->attrs_size;
    }
    if (!def->rule || npu__op_has_symbols(rw->from, o)) {
        given = npu__rewrite_given(rw, o);
        if (!given) {
            npu__graph_no_memory(rw->to);
            return none;
        }
        e.given = given;
        e.num_given = o->num_results;
        e.is_hint = def->rule != NULL;
    }
    op = npu__emit(rw->to, &e);
    npu__rewrite_settle(rw, o, op);
    npu__free(&rw->to->allocator, given, o->num_results * sizeof *given);
    return op;
}

NPU_IR_API npu_op npu_rewrite_copy(npu_rewrite *rw, npu_op op)
{
    const npu__op *o = npu__op_at(rw->from, op);
    const npu_op_def *def = o ? npu__rewrite_def(rw, o->def) : NULL;
    npu_op now = { 0 };
    if (!def) {
        npu__graph_fail(rw->to, o ? NPU_ERR_NOT_FOUND : NPU_ERR_INVALID_ARGUMENT,
                        "rewrite: op %u cannot be copied", (unsigned)op.id);
        return now;
    }
    if (npu__rewrite_operands(rw, o)) {
        return now;
    }
    now = npu__rewrite_emit(rw, o, def);
    if (!now.id || npu_op_set_name(rw->to, now, rw->from->names[o->name])) {
        return npu__make_op(0);
    }
    rw->to->ops[now.id].constraints = o->constraints;
    rw->ops[op.id] = now.id;
    for (uint32_t i = 0; i < o->num_results && i < rw->to->ops[now.id].num_results; i++) {
        rw->values[o->first_result + i] = rw->to->ops[now.id].first_result + i;
        npu__rewrite_name(rw, o->first_result + i, rw->values[o->first_result + i]);
    }
    return now;
}

/* ---- the pass ---- */

static npu_status npu__rewrite_op(npu_rewrite *rw, uint32_t id, npu_rewrite_fn fn, void *ctx)
{
    const npu__location *where = &rw->from->locations[rw->from->ops[id].location];
    npu_status status = NPU_OK;
    npu_graph_at(rw->to, where->file, (int)where->line);
    if (fn) {
        status = fn(ctx, rw, rw->from, npu__make_op(id));
    } else {
        npu_rewrite_copy(rw, npu__make_op(id));
    }
    if (status || rw->to->diag.status) {
        return npu__rewrite_fail(rw, status, npu_status_text(status));
    }
    return NPU_OK;
}

/* Values and live ops merged by id, as they were made. */
static npu_status npu__rewrite_body(npu_rewrite *rw, npu_rewrite_fn fn, void *ctx)
{
    const npu_graph *from = rw->from;
    uint32_t value = 1;
    npu_status status = NPU_OK;
    for (uint32_t op = 1; op <= from->num_ops && status == NPU_OK; op++) {
        uint32_t stop = op < from->num_ops ? from->ops[op].first_result : from->num_values;
        for (; value < stop && status == NPU_OK; value++) {
            status = npu__rewrite_source(rw, value);
        }
        if (status == NPU_OK && op < from->num_ops) {
            status = rw->live[op] ? npu__rewrite_op(rw, op, fn, ctx) : NPU_OK;
            value += from->ops[op].num_results;
        }
    }
    npu_graph_at(rw->to, NULL, 0);
    return status;
}

static npu_status npu__rewrite_tail(npu_rewrite *rw)
{
    const npu_graph *from = rw->from;
    for (uint32_t i = 0; i < from->num_saved; i++) {
        npu_op op = npu__make_op(rw->ops[from->saved[i].a]);
        npu_value v = npu__make_value(rw->values[from->saved[i].b]);
        if (op.id && v.id && npu_op_add_saved(rw->to, op, v)) {
            return npu__rewrite_fail(rw, NPU_ERR_NO_MEMORY, "saved values");
        }
    }
    for (uint32_t i = 0; i < from->num_updates; i++) {
        if (npu_update(rw->to, npu__make_value(rw->values[from->updates[i].a]),
                       npu__make_value(rw->values[from->updates[i].b]))) {
            return npu__rewrite_fail(rw, NPU_ERR_GRAPH, "an update has no new value");
        }
    }
    for (uint32_t i = 0; i < from->num_outputs; i++) {
        if (npu_output(rw->to, from->names[from->outputs[i].b],
                       npu__make_value(rw->values[from->outputs[i].a]))) {
            return npu__rewrite_fail(rw, NPU_ERR_GRAPH, "an output has no new value");
        }
    }
    return NPU_OK;
}

/* An empty graph with the same registry, or with one of its own where the old graph has. */
static npu_graph *npu__rewrite_graph(const npu_graph *from)
{
    npu_graph_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = from->name;
    desc.registry = from->owns_registry ? NULL : from->registry;
    desc.allocator = &from->allocator;
    desc.logger = &from->logger;
    desc.level = from->level;
    return npu_graph_create(&desc);
}

static npu_status npu__rewrite_arrays(npu_rewrite *rw)
{
    const npu_allocator *a = &rw->from->allocator;
    rw->values = (uint32_t *)npu__alloc_zero(a, rw->from->num_values * sizeof *rw->values);
    rw->ops = (uint32_t *)npu__alloc_zero(a, rw->from->num_ops * sizeof *rw->ops);
    rw->live = (uint8_t *)npu__alloc_zero(a, rw->from->num_ops);
    rw->symbols = (int64_t *)npu__alloc_zero(a, rw->from->num_symbols * sizeof *rw->symbols);
    return rw->values && rw->ops && rw->live && rw->symbols
               ? NPU_OK
               : npu__fail(rw->diag, NPU_ERR_NO_MEMORY, "rewrite: out of memory");
}

static void npu__rewrite_release(npu_rewrite *rw)
{
    const npu_allocator *a = &rw->from->allocator;
    npu__free(a, rw->values, rw->from->num_values * sizeof *rw->values);
    npu__free(a, rw->ops, rw->from->num_ops * sizeof *rw->ops);
    npu__free(a, rw->live, rw->from->num_ops);
    npu__free(a, rw->symbols, rw->from->num_symbols * sizeof *rw->symbols);
    npu_op_storage_free(&rw->storage);
}

static npu_status npu__rewrite_into(npu_rewrite *rw, npu_rewrite_fn fn, void *ctx, uint32_t depth);

/* Children keep all their ops: they are as they were, symbols aside. */
static npu_status npu__rewrite_children(npu_rewrite *rw, uint32_t depth)
{
    npu_status status = depth < NPU__FORM_MAX_DEPTH
                            ? NPU_OK
                            : npu__rewrite_fail(rw, NPU_ERR_OVERFLOW, "child graphs are too deep");
    for (uint32_t i = 0; i < rw->from->num_children && status == NPU_OK; i++) {
        npu_rewrite child = *rw;
        child.from = rw->from->children[i];
        child.to = npu_graph_child(rw->to, child.from->name, (npu_level)child.from->level, NULL);
        status = child.to ? npu__rewrite_into(&child, NULL, NULL, depth + 1)
                          : npu__rewrite_fail(rw, NPU_ERR_NO_MEMORY, "children");
    }
    return status;
}

/* Fills rw->to, which is empty. */
static npu_status npu__rewrite_into(npu_rewrite *rw, npu_rewrite_fn fn, void *ctx, uint32_t depth)
{
    npu_status status;
    rw->values = rw->ops = NULL;
    rw->live = NULL;
    rw->symbols = NULL;
    status = npu__rewrite_arrays(rw);
    for (uint32_t i = 0; i < rw->from->num_symbols && status == NPU_OK; i++) {
        status = npu__rewrite_symbol(rw, i);
    }
    status = status ? status : npu__rewrite_children(rw, depth);
    if (status == NPU_OK) {
        if (depth) {
            memset(rw->live, 1, rw->from->num_ops);
        } else {
            npu__mark_live(rw->from, rw->live);
        }
        status = npu__rewrite_body(rw, fn, ctx);
    }
    status = status ? status : npu__rewrite_tail(rw);
    npu__rewrite_release(rw);
    return status;
}

static npu_status npu__rewrite_run(npu_rewrite *rw, npu_rewrite_fn fn, void *ctx, npu_graph **out)
{
    npu_status status;
    *out = NULL;
    rw->to = npu__rewrite_graph(rw->from);
    if (!rw->to) {
        return npu__fail(rw->diag, NPU_ERR_NO_MEMORY, "rewrite: out of memory");
    }
    status = npu__rewrite_into(rw, fn, ctx, 0);
    if (status) {
        npu_graph_destroy(rw->to);
    } else {
        *out = rw->to;
    }
    return status;
}

/* Replaces *g by a copy without its dead ops, if it has any. */
static npu_status npu__drop_dead(npu_graph **g, npu_diag *diag)
{
    npu_graph *old = *g;
    uint8_t *live = (uint8_t *)npu__alloc_zero(&old->allocator, old->num_ops);
    bool all = true;
    npu_rewrite rw;
    npu_status status = live ? NPU_OK : npu__fail(diag, NPU_ERR_NO_MEMORY, "rewrite: out of memory");
    if (live) {
        npu__mark_live(old, live);
        all = !memchr(live + 1, 0, old->num_ops - 1);
        npu__free(&old->allocator, live, old->num_ops);
    }
    if (status || !all) {
        memset(&rw, 0, sizeof rw);
        rw.from = old;
        rw.diag = diag;
        status = status ? status : npu__rewrite_run(&rw, NULL, NULL, g);
        *g = status ? NULL : *g;
        npu_graph_destroy(old);
    }
    return status;
}

NPU_IR_API npu_status npu_graph_rewrite(npu_graph **out, const npu_graph *from, npu_rewrite_fn fn, void *ctx,
                                        npu_diag *diag)
{
    npu_rewrite rw;
    npu_diag local;
    npu_status status;
    *out = NULL;
    memset(&rw, 0, sizeof rw);
    memset(&local, 0, sizeof local);
    rw.from = from;
    rw.diag = &local;
    if (!from || from->diag.status) {
        status = npu__fail(&local, NPU_ERR_GRAPH, "rewrite: the graph has failed");
    } else {
        status = npu__rewrite_run(&rw, fn, ctx, out);
        status = status || !fn ? status : npu__drop_dead(out, &local);
    }
    if (status && diag) {
        *diag = local;
    }
    return status;
}

/* ---- what patterns read ---- */

NPU_IR_API npu_value npu_rewrite_operand(npu_rewrite *rw, npu_op op, uint32_t i)
{
    return npu_rewrite_value(rw, npu_op_operand_value(rw->from, op, i));
}

NPU_IR_API const npu_op_info *npu_rewrite_info(npu_rewrite *rw, npu_op op)
{
    npu_status status = rw->info.op == op.id ? NPU_OK : npu_op_describe(rw->from, op, &rw->info, &rw->storage);
    if (status || !op.id) {
        rw->info.op = 0;
        npu__graph_fail(rw->to, status ? status : NPU_ERR_INVALID_ARGUMENT, "rewrite: op %u cannot be described",
                        (unsigned)op.id);
        return NULL;
    }
    return &rw->info;
}

NPU_IR_API npu_status npu_rewrite_no_match(npu_rewrite *rw, const char *format, ...)
{
#ifndef NPU_IR_NO_STRINGS
    va_list args;
    va_start(args, format);
    vsnprintf(rw->reason, sizeof rw->reason, format, args);
    va_end(args);
#else
    (void)format;
    rw->reason[0] = 0;
#endif
    return NPU_ERR_NO_MATCH;
}

/* ---- patterns ---- */

enum { NPU__DEFAULT_SWEEPS = 32 };

/* A pattern with its root looked up. */
typedef struct npu__rule {
    const npu_pattern *pattern;
    npu_kind kind;
    bool is_any;
} npu__rule;

/* The ctx of one sweep; a sweep is an npu_graph_rewrite. */
typedef struct npu__sweep {
    const npu_pattern *patterns;
    npu__rule *rules;                    /* by falling benefit */
    uint32_t num_rules, num_rewrites;
    const npu_conversion_target *target; /* NULL = patterns only */
    npu_pattern_stats *stats;
    const npu_pattern *last;             /* the last that matched, and on what */
    uint32_t last_op;
    uint32_t left;                       /* op that should have been converted, 0 = none */
} npu__sweep;

NPU_IR_API npu_legality npu_target_legality(const npu_conversion_target *target, const npu_graph *g, npu_op op)
{
    const npu_op_def *def = npu_op_definition(g, op);
    const npu_legality_rule *found = NULL;
    for (uint32_t i = 0; def && i < target->num_rules; i++) {
        const npu_legality_rule *rule = &target->rules[i];
        if (strcmp(rule->name, def->name) == 0 || (!found && strcmp(rule->name, def->space) == 0)) {
            found = rule;
        }
    }
    return !found ? NPU_LEGALITY_UNKNOWN : found->decide ? found->decide(found->ctx, g, op) : found->legality;
}

static bool npu__rule_fits(const npu__rule *rule, const npu_op_def *def)
{
    return rule->is_any || (rule->kind ? rule->kind == def->kind
                                       : rule->pattern->root_name && strcmp(rule->pattern->root_name, def->name) == 0);
}

/* The first pattern that matches rewrites the op: NO_MATCH = none does. */
static npu_status npu__sweep_match(npu__sweep *sweep, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    const npu_op_def *def = npu_op_definition(from, op);
    rw->reason[0] = 0;
    for (uint32_t i = 0; i < sweep->num_rules; i++) {
        const npu_pattern *pattern = sweep->rules[i].pattern;
        npu_status status = npu__rule_fits(&sweep->rules[i], def) ? pattern->rewrite(pattern->ctx, rw, from, op)
                                                                  : NPU_ERR_NO_MATCH;
        if (status == NPU_OK) {
            sweep->num_rewrites++;
            sweep->last = pattern;
            sweep->last_op = op.id;
            if (sweep->stats && sweep->stats->counts) {
                sweep->stats->counts[pattern - sweep->patterns]++;
            }
        }
        if (status != NPU_ERR_NO_MATCH || rw->to->diag.status) {
            return status;
        }
    }
    return NPU_ERR_NO_MATCH;
}

static npu_status npu__sweep_left(npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    const npu__op *o = &from->ops[op.id];
    char label[16];
    return npu__graph_fail(rw->to, NPU_ERR_NOT_LEGAL, "%s (%.60s) must be converted, but no pattern matches%s%s",
                           o->def->name, o->num_results ? npu__value_label(from, o->first_result, label) : "no result",
                           rw->reason[0] ? ": " : "", rw->reason);
}

static npu_status npu__sweep_op(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu__sweep *sweep = (npu__sweep *)ctx;
    npu_legality legality =
        sweep->target ? npu_target_legality(sweep->target, from, op) : NPU_LEGALITY_UNKNOWN;
    npu_status status =
        legality == NPU_LEGAL ? NPU_ERR_NO_MATCH : npu__sweep_match(sweep, rw, from, op);
    if (status != NPU_ERR_NO_MATCH) {
        return status;
    }
    if (legality == NPU_ILLEGAL || (legality == NPU_LEGALITY_UNKNOWN && sweep->target && sweep->target->is_full)) {
        sweep->left = op.id;
        return npu__sweep_left(rw, from, op);
    }
    npu_rewrite_copy(rw, op);
    return NPU_OK;
}

/* Rules by falling benefit: insertion keeps the order of equals. */
static void npu__sort_rules(npu__sweep *sweep, const npu_registry *registry)
{
    for (uint32_t i = 0; i < sweep->num_rules; i++) {
        const npu_pattern *p = &sweep->patterns[i];
        const npu_op_def *def = p->root_name && !p->root ? npu_registry_find(registry, p->root_name) : NULL;
        uint32_t at = i;
        for (; at > 0 && sweep->rules[at - 1].pattern->benefit < p->benefit; at--) {
            sweep->rules[at] = sweep->rules[at - 1];
        }
        sweep->rules[at].pattern = p;
        sweep->rules[at].kind = def ? def->kind : p->root;
        sweep->rules[at].is_any = !p->root && !p->root_name;
    }
}

/* Sweeps until nothing matches; the graph of the last sweep is the result. */
static npu_status npu__sweep_all(npu__sweep *sweep, npu_graph **out, const npu_graph *g, uint32_t max_sweeps,
                                 npu_diag *diag)
{
    npu_graph *now = NULL, *next = NULL;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < max_sweeps && status == NPU_OK; i++) {
        sweep->num_rewrites = 0;
        status = npu_graph_rewrite(&next, now ? now : g, npu__sweep_op, sweep, diag);
        npu_graph_destroy(now);
        now = next;
        if (sweep->stats) {
            sweep->stats->num_sweeps++;
            sweep->stats->num_rewrites += sweep->num_rewrites;
        }
        if (sweep->num_rewrites == 0) {
            break;
        }
    }
    if (status == NPU_OK && sweep->num_rewrites) {
        status = npu__fail(diag, NPU_ERR_NO_FIXED_POINT, "pattern %s still matches after %u sweeps",
                           sweep->last->name, (unsigned)max_sweeps);
        diag->op = sweep->last_op;
    } else if (status && sweep->left) {
        diag->op = sweep->left;
    }
    if (status) {
        npu_graph_destroy(now);
        now = NULL;
    }
    *out = now;
    return status;
}

static npu_status npu__sweep_run(npu_graph **out, const npu_graph *g, const npu_conversion_target *target,
                                 const npu_pattern *patterns, uint32_t num_patterns,
                                 const npu_pattern_options *options, npu_pattern_stats *stats, npu_diag *diag)
{
    npu__sweep sweep;
    npu_diag local;
    npu_status status = NPU_OK;
    *out = NULL;
    memset(&sweep, 0, sizeof sweep);
    memset(&local, 0, sizeof local);
    sweep.patterns = patterns;
    sweep.num_rules = num_patterns;
    sweep.target = target;
    sweep.stats = stats;
    if (!g || g->diag.status || (options && options->_canary)) {
        status = npu__fail(&local, g && !g->diag.status ? NPU_ERR_INVALID_ARGUMENT : NPU_ERR_GRAPH,
                           "patterns: the graph has failed, or the options are not zeroed");
    } else {
        sweep.rules = (npu__rule *)npu__alloc_zero(&g->allocator, num_patterns * sizeof *sweep.rules);
        status = sweep.rules ? NPU_OK : npu__fail(&local, NPU_ERR_NO_MEMORY, "patterns: out of memory");
    }
    if (status == NPU_OK) {
        npu__sort_rules(&sweep, g->registry);
        status = npu__sweep_all(&sweep, out, g,
                                options && options->max_sweeps ? options->max_sweeps : NPU__DEFAULT_SWEEPS, &local);
        npu__free(&g->allocator, sweep.rules, num_patterns * sizeof *sweep.rules);
    }
    if (status && diag) {
        *diag = local;
    }
    return status;
}

NPU_IR_API npu_status npu_graph_apply_patterns(npu_graph **out, const npu_graph *g, const npu_pattern *patterns,
                                               uint32_t num_patterns, const npu_pattern_options *options,
                                               npu_pattern_stats *stats, npu_diag *diag)
{
    return npu__sweep_run(out, g, NULL, patterns, num_patterns, options, stats, diag);
}

NPU_IR_API npu_status npu_graph_convert(npu_graph **out, const npu_graph *g, const npu_conversion_target *target,
                                        const npu_pattern *patterns, uint32_t num_patterns,
                                        const npu_pattern_options *options, npu_pattern_stats *stats,
                                        npu_diag *diag)
{
    return npu__sweep_run(out, g, target, patterns, num_patterns, options, stats, diag);
}

/* ---- passes ---- */

/* Namespaces found so far; a graph has a handful. */
typedef struct npu__space_set {
    const char *names[64];
    uint32_t count;
} npu__space_set;

static bool npu__space_set_has(const npu__space_set *spaces, const char *name)
{
    for (uint32_t i = 0; i < spaces->count; i++) {
        if (spaces->names[i] == name || strcmp(spaces->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the namespaces of a graph and its children; a full set stays as it is. */
static void npu__space_set_collect(npu__space_set *spaces, const npu_graph *g)
{
    for (uint32_t i = 1; i < g->num_ops; i++) {
        if (!npu__space_set_has(spaces, g->ops[i].def->space) && spaces->count < NPU__COUNT(spaces->names)) {
            spaces->names[spaces->count++] = g->ops[i].def->space;
        }
    }
    for (uint32_t i = 0; i < g->num_children; i++) {
        npu__space_set_collect(spaces, g->children[i]);
    }
}

/* Every namespace of the result is one of the graph's, or declared. */
static npu_status npu__pass_check_spaces(const npu_pass *pass, const npu_graph *from, const npu_graph *to,
                                         npu_diag *diag)
{
    npu__space_set allowed, got;
    allowed.count = got.count = 0;
    npu__space_set_collect(&allowed, from);
    npu__space_set_collect(&got, to);
    for (uint32_t i = 0; pass->namespaces && pass->namespaces[i] && allowed.count < NPU__COUNT(allowed.names); i++) {
        allowed.names[allowed.count++] = pass->namespaces[i];
    }
    for (uint32_t i = 0; i < got.count; i++) {
        if (!npu__space_set_has(&allowed, got.names[i])) {
            return npu__fail(diag, NPU_ERR_GRAPH, "it makes %s ops, which it does not declare", got.names[i]);
        }
    }
    return NPU_OK;
}

static void npu__pass_dump(const npu_pass_options *options, const npu_pass *pass, bool is_after, const npu_graph *g)
{
    if (options && options->dump) {
        options->dump(options->ctx, pass, is_after, g);
    }
}

/* Keeps the first violation in ctx. */
static void npu__keep_first(void *ctx, const npu_diag *diag)
{
    npu_diag *first = (npu_diag *)ctx;
    *first = first->status ? *first : *diag;
}

static npu_status npu__pass_run(const npu_pass *pass, npu_graph **out, const npu_graph *g,
                                const npu_pass_options *options, npu_diag *diag)
{
    npu_diag inner;
    npu_status status;
    memset(&inner, 0, sizeof inner);
    *out = NULL;
    npu__pass_dump(options, pass, false, g);
    status = pass->run(pass->ctx, out, g, &inner);
    if (status == NPU_OK) {
        status = npu__pass_check_spaces(pass, g, *out, &inner);
    }
    if (status == NPU_OK && options && options->validate) {
        status = npu_graph_validate(*out, npu__keep_first, &inner);
    }
    if (status) {
        npu_graph_destroy(*out);
        *out = NULL;
        *diag = inner; /* keeps op and location */
        diag->status = NPU_OK;
        return npu__fail(diag, status, "pass %s: %.180s", pass->name, inner.message);
    }
    npu__pass_dump(options, pass, true, *out);
    return NPU_OK;
}

NPU_IR_API npu_status npu_graph_run_passes(npu_graph **out, const npu_graph *g, const npu_pass *passes,
                                           uint32_t num_passes, const npu_pass_options *options, npu_diag *diag)
{
    npu_graph *now = NULL, *next = NULL;
    npu_diag local;
    npu_status status = NPU_OK;
    memset(&local, 0, sizeof local);
    if (!g || g->diag.status || (options && options->_canary)) {
        status = npu__fail(&local, g && !g->diag.status ? NPU_ERR_INVALID_ARGUMENT : NPU_ERR_GRAPH,
                           "passes: the graph has failed, or the options are not zeroed");
    } else if (num_passes == 0) {
        status = npu_graph_rewrite(&now, g, NULL, NULL, &local);
    }
    for (uint32_t i = 0; i < num_passes && status == NPU_OK; i++) {
        status = npu__pass_run(&passes[i], &next, now ? now : g, options, &local);
        npu_graph_destroy(now);
        now = next;
    }
    if (status && diag) {
        *diag = local;
    }
    *out = now;
    return status;
}

/* ---- specialisation ---- */

NPU_IR_API npu_status npu_graph_specialize(npu_graph **out, const npu_graph *g, const char *const *names,
                                           const int64_t *dims, uint32_t count, npu_diag *diag)
{
    npu_rewrite rw;
    npu_diag local;
    npu_status status = NPU_OK;
    *out = NULL;
    memset(&rw, 0, sizeof rw);
    memset(&local, 0, sizeof local);
    if (!g || g->diag.status) {
        status = npu__fail(&local, NPU_ERR_GRAPH, "specialize: the graph has failed");
    }
    for (uint32_t i = 0; i < count && status == NPU_OK; i++) {
        if (!npu__find_symbol(g, names[i])) {
            status =
                npu__fail(&local, NPU_ERR_NOT_FOUND, "specialize: the graph has no symbol '%.80s'", names[i]);
        }
    }
    rw.from = g;
    rw.diag = &local;
    rw.names = names;
    rw.dims = dims;
    rw.num_bound = count;
    status = status ? status : npu__rewrite_run(&rw, NULL, NULL, out);
    if (status && diag) {
        *diag = local;
    }
    return status;
}

/* -------------------------------------------------------------------------------------------------------- */

#define NPU__MAX_BACKENDS 32u
#define NPU__UNPLACED 0xffu

/* Where one op goes, and why not to the first choice. */
typedef struct npu__target {
    uint8_t backend; /* NPU__UNPLACED = nobody takes it */
    uint8_t reason;  /* npu_reason of the first refusal */
    uint16_t words;  /* index into plan->words, 0 = none */
} npu__target;

/* A value that a transfer step brought to a backend. */
typedef struct npu__moved {
    uint32_t step;
    uint32_t backend;
    uint32_t next; /* index + 1 of the next record of the same value */
} npu__moved;

/* Memory of one value on one backend: see the memory planner. */
typedef struct npu__storage npu__storage;

struct npu_plan {
    npu_allocator allocator;
    const npu_graph *graph;
    npu_plan_desc desc;                     /* its pointers to callbacks and lists are not kept */
    const npu_backend *backends[NPU__MAX_BACKENDS];
    npu__target *targets;                   /* per op id */
    NPU__ARRAY(char *, words);              /* distinct texts of refusals; [0] unused */
    NPU__ARRAY(npu_step, steps);
    NPU__ARRAY(npu_op, step_ops);           /* pools that steps point into once everything is known */
    NPU__ARRAY(npu_value, step_values);
    NPU__ARRAY(uint32_t, step_dependencies);
    uint32_t *op_step;                      /* per op id: its partition step */
    uint32_t *moved_head;                   /* per value id: index + 1 of its first npu__moved record */
    NPU__ARRAY(npu__moved, moved);
    /* memory planner */
    NPU__ARRAY(npu__storage, storage);
    uint32_t *value_storage;                /* per value id: index + 1 of its first storage record */
    npu_memory memory[NPU__MAX_BACKENDS];
    uint32_t alignment[NPU__MAX_BACKENDS];  /* of everything in the arena: the region's, or more where a scratch needs it */
    bool exact;
};

/* ---- tagging ---- */

/* Stores the index of a refusal's words, shared by all ops that were refused with the same ones; false = out
   of memory. */
static bool npu__plan_words(npu_plan *plan, const char *text, uint16_t *index)
{
    size_t size = strlen(text) + 1;
    *index = 0;
    for (uint32_t i = plan->num_words, tries = 64; i-- > 1 && tries--;) { /* refusals repeat soon or never */
        if (strcmp(plan->words[i], text) == 0) {
            *index = (uint16_t)i;
            return true;
        }
    }
    if (plan->num_words >= 0xffff) {
        return true; /* more than anyone reads: the reason codes remain */
    }
    if (!NPU__RESERVE(plan, words, 2)) {
        return false;
    }
    plan->num_words = plan->num_words ? plan->num_words : 1;
    plan->words[plan->num_words] = (char *)npu__alloc(&plan->allocator, size);
    if (!plan->words[plan->num_words]) {
        return false;
    }
    memcpy(plan->words[plan->num_words], text, size);
    *index = (uint16_t)plan->num_words++;
    return true;
}

static bool npu__info_is_static(const npu_op_info *info)
{
    for (uint32_t i = 0; i < info->num_in; i++) {
        if (info->in[i] && !npu_spec_is_static(info->in[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < info->num_out; i++) {
        if (!npu_spec_is_static(info->out[i])) {
            return false;
        }
    }
    return true;
}

/* Adds the device's form of the attributes where the backend's table has the kind; `blob` holds it. */
static void npu__info_device(npu_op_info *info, const npu_backend *b, uint8_t blob[256])
{
    info->device_kind = info->device_schema = info->device_size = 0;
    info->device_attrs = NULL;
    if (b->abi &&
        npu_abi_encode(b->abi, b->num_abi, info, &info->device_kind, &info->device_schema, blob, 256,
                       &info->device_size) == NPU_OK) {
        info->device_attrs = blob;
    }
}

/* Asks one backend. */
static uint32_t npu__ask(const npu_backend *b, npu_op_info *info, npu_support *answer)
{
    uint8_t blob[256];
    memset(answer, 0, sizeof *answer);
    answer->size = (uint32_t)sizeof *answer;
    npu__info_device(info, b, blob);
    if (b->supports(b->ctx, info, answer)) {
        answer->reason = answer->reason ? answer->reason : NPU_REASON_OP;
    }
    answer->text[sizeof answer->text - 1] = 0;
    return answer->reason;
}

/* The caller's choice: index of a backend, or -1. */
static int npu__forced(const npu_plan_desc *desc, const npu_op_info *info, const char *label)
{
    int choice = desc->override ? desc->override(desc->override_ctx, info, label) : -1;
    for (uint32_t i = 0; choice < 0 && i < desc->num_force_last; i++) {
        if (strcmp(desc->force_last[i], info->name) == 0 ||
            (label[0] && strcmp(desc->force_last[i], label) == 0)) {
            choice = (int)desc->num_backends - 1;
        }
    }
    return choice;
}

static npu_status npu__tag_op(npu_plan *plan, uint32_t id, npu_op_info *info, npu_diag *diag)
{
    npu__target *t = &plan->targets[id];
    npu_support answer;
    int forced = npu__forced(&plan->desc, info, npu_op_name(plan->graph, npu__make_op(id)));
    t->backend = NPU__UNPLACED;
    t->reason = NPU_REASON_CLAIMED;
    t->words = 0;
    if (forced >= (int)plan->desc.num_backends) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "%s: override gave backend %d of %u", info->name,
                         forced, (unsigned)plan->desc.num_backends);
    }
    for (uint32_t b = forced >= 0 ? (uint32_t)forced : 0; b < plan->desc.num_backends; b++) {
        if (npu__ask(plan->backends[b], info, &answer) == NPU_REASON_CLAIMED) {
            t->backend = (uint8_t)b;
            break;
        }
        t->reason = t->reason ? t->reason : (uint8_t)answer.reason;
        if (answer.text[0] && !npu__plan_words(plan, answer.text, &t->words)) {
            return npu__fail(diag, NPU_ERR_NO_MEMORY, "plan: out of memory");
        }
    }
    if (forced > 0 && t->backend == (uint8_t)forced) {
        t->reason = NPU_REASON_FORCED;
    }
    return NPU_OK;
}

static npu_status npu__tag(npu_plan *plan, npu_diag *diag)
{
    npu_op_storage storage;
    npu_status status = NPU_OK;
    memset(&storage, 0, sizeof storage);
    for (uint32_t id = 1; id < plan->graph->num_ops && status == NPU_OK; id++) {
        npu_op_info info;
        status = npu_op_describe(plan->graph, npu__make_op(id), &info, &storage);
        if (status) {
            npu__fail(diag, status, "op %u: cannot be described", (unsigned)id);
        } else if (!npu__info_is_static(&info)) {
            if (diag && diag->status == NPU_OK) {
                diag->op = id;
            }
            status = npu__fail(diag, NPU_ERR_DYNAMIC_SHAPE,
                               "%s (op %u): a dim is not known; bind symbols with npu_graph_specialize",
                               info.name, (unsigned)id);
        } else {
            status = npu__tag_op(plan, id, &info, diag);
        }
    }
    npu_op_storage_free(&storage);
    return status;
}

/* ---- grouping ---- */

typedef struct npu__run {
    uint32_t first, last; /* op ids */
    uint32_t weight;      /* ops that are no views */
} npu__run;

/* The run that begins at op `first`. */
static npu__run npu__run_at(const npu_plan *plan, uint32_t first)
{
    npu__run run = { 0, 0, 0 };
    run.first = first;
    for (run.last = first;
         run.last < plan->graph->num_ops && plan->targets[run.last].backend == plan->targets[first].backend;
         run.last++) {
        run.weight += !(plan->graph->ops[run.last].def->traits & NPU_VIEW);
    }
    run.last--;
    return run;
}

static npu_status npu__supported_by_last(const npu_plan *plan, const npu__run *run, bool *all)
{
    npu_op_storage storage;
    npu_status status = NPU_OK;
    *all = true;
    memset(&storage, 0, sizeof storage);
    for (uint32_t id = run->first; *all && status == NPU_OK && id <= run->last; id++) {
        npu_op_info info;
        npu_support answer;
        status = npu_op_describe(plan->graph, npu__make_op(id), &info, &storage);
        *all = status == NPU_OK &&
            npu__ask(plan->backends[plan->desc.num_backends - 1], &info, &answer) == NPU_REASON_CLAIMED;
    }
    npu_op_storage_free(&storage);
    return status;
}

/* Moves a run to the last backend, unless that cannot take it; *moved says which. */
static npu_status npu__give_up(npu_plan *plan, const npu__run *run, npu_reason reason, bool *moved)
{
    npu_status status = npu__supported_by_last(plan, run, moved);
    for (uint32_t id = run->first; *moved && id <= run->last; id++) {
        plan->targets[id].backend = (uint8_t)(plan->desc.num_backends - 1);
        plan->targets[id].reason = (uint8_t)reason;
        plan->targets[id].words = 0;
    }
    return status;
}

static npu_status npu__give_up_small(npu_plan *plan)
{
    npu_status status = NPU_OK;
    for (uint32_t id = 1; id < plan->graph->num_ops && status == NPU_OK;) {
        npu__run run = npu__run_at(plan, id);
        bool moved;
        if (plan->targets[id].backend + 1u < plan->desc.num_backends &&
            run.weight < plan->desc.min_group_ops) {
            status = npu__give_up(plan, &run, NPU_REASON_TOO_SMALL, &moved);
        }
        id = run.last + 1;
    }
    return status;
}

static int npu__run_compare(const void *a, const void *b)
{
    const npu__run *x = (const npu__run *)a, *y = (const npu__run *)b;
    return x->weight != y->weight ? (x->weight < y->weight ? -1 : 1) : x->first < y->first ? -1 : 1;
}

/* Keeps the max_groups largest groups; each one given up joins its neighbours on the last backend. */
static npu_status npu__give_up_surplus(npu_plan *plan)
{
    npu__run *runs = NULL;
    uint32_t num = 0, capacity = 0;
    npu_status status = NPU_OK;
    for (uint32_t id = 1; id < plan->graph->num_ops;) {
        npu__run run = npu__run_at(plan, id);
        if (plan->targets[id].backend + 1u < plan->desc.num_backends) {
            if (!npu__reserve(&plan->allocator, (void **)&runs, &capacity, (uint64_t)num + 1, sizeof *runs)) {
                npu__free(&plan->allocator, runs, capacity * sizeof *runs);
                return NPU_ERR_NO_MEMORY;
            }
            runs[num++] = run;
        }
        id = run.last + 1;
    }
    if (num > plan->desc.max_groups) {
        uint32_t surplus = num - plan->desc.max_groups;
        qsort(runs, num, sizeof *runs, npu__run_compare);
        for (uint32_t i = 0; i < num && surplus && status == NPU_OK; i++) {
            bool moved;
            status = npu__give_up(plan, &runs[i], NPU_REASON_BUDGET, &moved);
            surplus -= moved;
        }
    }
    npu__free(&plan->allocator, runs, capacity * sizeof *runs);
    return status;
}

/* ---- steps ---- */

/* While steps are built they hold offsets into the pools, since the pools move when they grow. */
static npu_step *npu__step_add(npu_plan *plan, npu_step_type type, uint32_t backend, uint32_t from)
{
    npu_step *s;
    if (!NPU__RESERVE(plan, steps, 1)) {
        return NULL;
    }
    s = &plan->steps[plan->num_steps++];
    memset(s, 0, sizeof *s);
    s->type = (uint32_t)type;
    s->backend = backend;
    s->from = from;
    return s;
}

static bool npu__push_value(npu_plan *plan, uint32_t id)
{
    if (!NPU__RESERVE(plan, step_values, 1)) {
        return false;
    }
    plan->step_values[plan->num_step_values++].id = id;
    return true;
}

static bool npu__push_dependency(npu_plan *plan, npu_step *s, uint32_t step)
{
    uint32_t first = plan->num_step_dependencies - s->num_dependencies;
    for (uint32_t i = first; i < plan->num_step_dependencies; i++) {
        if (plan->step_dependencies[i] == step) {
            return true;
        }
    }
    if (!NPU__RESERVE(plan, step_dependencies, 1)) {
        return false;
    }
    plan->step_dependencies[plan->num_step_dependencies++] = step;
    s->num_dependencies++;
    return true;
}

/* The step that made a value available on a backend; NPU_NO_INDEX = it is not there yet. Nothing is moved
   from or to ops that nobody takes. */
static uint32_t npu__available(const npu_plan *plan, uint32_t value, uint32_t backend)
{
    uint32_t producer = plan->graph->values[value].producer, home = plan->targets[producer].backend;
    if (home == backend || home == NPU__UNPLACED || backend == NPU__UNPLACED) {
        return plan->op_step[producer];
    }
    for (uint32_t i = plan->moved_head[value]; i; i = plan->moved[i - 1].next) {
        if (plan->moved[i - 1].backend == backend) {
            return plan->moved[i - 1].step;
        }
    }
    return NPU_NO_INDEX;
}

/* Collects the values that a run takes from outside into the value pool, each once. `seen` holds a stamp per
   value. */
static bool npu__collect_inputs(npu_plan *plan, const npu__run *run, uint32_t *seen, uint32_t *count)
{
    const npu_graph *g = plan->graph;
    *count = 0;
    for (uint32_t id = run->first; id <= run->last; id++) {
        const npu__op *o = &g->ops[id];
        for (uint32_t i = 0; i < o->num_operands; i++) {
            uint32_t v = g->uses[o->first_operand + i].value;
            if (v && seen[v] != run->first && g->values[v].producer < run->first) {
                seen[v] = run->first;
                if (!npu__push_value(plan, v)) {
                    return false;
                }
                ++*count;
            }
        }
    }
    return true;
}

/* Adds a transfer step from each backend that holds something the run needs on `to`. */
static npu_status npu__add_transfers(npu_plan *plan, uint32_t first_input, uint32_t num_inputs, uint32_t to)
{
    for (uint32_t from = 0; from < plan->desc.num_backends; from++) {
        npu_step *s = NULL;
        for (uint32_t i = 0; i < num_inputs; i++) {
            uint32_t v = plan->step_values[first_input + i].id, producer = plan->graph->values[v].producer;
            npu__moved *m;
            size_t bytes = 0;
            if (!producer || from == to || plan->targets[producer].backend != from ||
                npu__available(plan, v, to) != NPU_NO_INDEX) {
                continue;
            }
            if (!s) {
                s = npu__step_add(plan, NPU_STEP_TRANSFER, to, from);
            }
            if (!s || !NPU__RESERVE(plan, moved, 1) || !npu__push_value(plan, v) ||
                !npu__push_dependency(plan, s, plan->op_step[producer])) {
                return NPU_ERR_NO_MEMORY;
            }
            m = &plan->moved[plan->num_moved++];
            m->step = plan->num_steps - 1;
            m->backend = to;
            m->next = plan->moved_head[v];
            plan->moved_head[v] = plan->num_moved;
            npu_spec_size(plan->graph->specs[plan->graph->values[v].spec], &bytes);
            s->bytes += bytes;
            s->num_outputs++;
        }
    }
    return NPU_OK;
}

/* True for a value that something outside the run, or the graph itself, needs. */
static bool npu__escapes(const npu_graph *g, uint32_t value, const npu__run *run, const uint8_t *kept)
{
    const npu__value *v = &g->values[value];
    /* uses are listed in order of emission: the last one is the farthest */
    return kept[value] || (v->last_use && g->uses[v->last_use - 1].op > run->last);
}

static npu_status npu__add_partition(npu_plan *plan, const npu__run *run, uint32_t num_inputs,
                                     const uint8_t *kept)
{
    const npu_graph *g = plan->graph;
    npu_step *s = npu__step_add(plan, NPU_STEP_PARTITION, plan->targets[run->first].backend, 0);
    uint32_t first_input;
    if (!s || !NPU__RESERVE(plan, step_ops, run->last - run->first + 1)) {
        return NPU_ERR_NO_MEMORY;
    }
    s->num_inputs = num_inputs;
    first_input = plan->num_step_values - num_inputs;
    for (uint32_t i = 0; i < num_inputs; i++) {
        uint32_t v = plan->step_values[first_input + i].id;
        if (g->values[v].producer && !npu__push_dependency(plan, s, npu__available(plan, v, s->backend))) {
            return NPU_ERR_NO_MEMORY;
        }
    }
    for (uint32_t id = run->first; id <= run->last; id++) {
        plan->step_ops[plan->num_step_ops++].id = id;
        plan->op_step[id] = plan->num_steps - 1;
        s->num_ops++;
        for (uint32_t r = 0; r < g->ops[id].num_results; r++) {
            uint32_t v = g->ops[id].first_result + r;
            if (npu__escapes(g, v, run, kept)) {
                if (!npu__push_value(plan, v)) {
                    return NPU_ERR_NO_MEMORY;
                }
                s->num_outputs++;
            }
        }
    }
    return NPU_OK;
}

/* Turns counts into pointers now that the pools are complete: each step's parts follow the previous step's.
   */
static void npu__steps_point(npu_plan *plan)
{
    uint32_t op = 0, value = 0, dependency = 0;
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        npu_step *s = &plan->steps[i];
        s->ops = s->num_ops ? plan->step_ops + op : NULL;
        s->inputs = s->num_inputs ? plan->step_values + value : NULL;
        s->outputs = s->num_outputs ? plan->step_values + value + s->num_inputs : NULL;
        s->dependencies = s->num_dependencies ? plan->step_dependencies + dependency : NULL;
        op += s->num_ops;
        value += s->num_inputs + s->num_outputs;
        dependency += s->num_dependencies;
    }
}

/* One run: the transfers it needs, then the partition itself. */
static npu_status npu__add_run(npu_plan *plan, const npu__run *run, uint32_t *seen, const uint8_t *kept)
{
    uint32_t num_inputs, first = plan->num_step_values, before = plan->num_steps;
    npu_status status;
    if (!npu__collect_inputs(plan, run, seen, &num_inputs)) {
        return NPU_ERR_NO_MEMORY;
    }
    status = npu__add_transfers(plan, first, num_inputs, plan->targets[run->first].backend);
    if (status == NPU_OK && plan->num_steps > before) { /* the inputs belong behind the transfers' values */
        uint32_t moved = plan->num_step_values - first - num_inputs;
        if (!NPU__RESERVE(plan, step_values, num_inputs)) {
            return NPU_ERR_NO_MEMORY;
        }
        memmove(plan->step_values + first + num_inputs + moved, plan->step_values + first,
                num_inputs * sizeof *plan->step_values);
        memmove(plan->step_values + first, plan->step_values + first + num_inputs,
                (moved + num_inputs) * sizeof *plan->step_values);
    }
    return status ? status : npu__add_partition(plan, run, num_inputs, kept);
}

/* Per value: bit 0 for a graph output, bit 1 for the next content of a state. */
static void npu__mark_kept(const npu_graph *g, uint8_t *kept)
{
    for (uint32_t i = 0; i < g->num_outputs; i++) {
        kept[g->outputs[i].a] |= 1;
    }
    for (uint32_t i = 0; i < g->num_updates; i++) {
        kept[g->updates[i].b] |= 2;
    }
}

/* Builds all steps from the targets; what an earlier call built is replaced. */
static npu_status npu__build_steps(npu_plan *plan, npu_diag *diag)
{
    const npu_graph *g = plan->graph;
    uint32_t *seen = (uint32_t *)npu__alloc_zero(&plan->allocator, g->num_values * sizeof *seen);
    uint8_t *kept = (uint8_t *)npu__alloc_zero(&plan->allocator, g->num_values);
    npu_status status = seen && kept ? NPU_OK : NPU_ERR_NO_MEMORY;
    uint64_t bytes = 0;
    plan->num_steps = plan->num_step_ops = plan->num_step_values = plan->num_step_dependencies =
        plan->num_moved = 0;
    memset(plan->moved_head, 0, g->num_values * sizeof *plan->moved_head);
    if (status == NPU_OK) {
        npu__mark_kept(g, kept);
    }
    for (uint32_t id = 1; status == NPU_OK && id < g->num_ops;) {
        npu__run run = npu__run_at(plan, id);
        status = npu__add_run(plan, &run, seen, kept);
        id = run.last + 1;
    }
    npu__free(&plan->allocator, seen, g->num_values * sizeof *seen);
    npu__free(&plan->allocator, kept, g->num_values);
    npu__steps_point(plan);
    for (uint32_t i = 0; status == NPU_OK && i < plan->num_steps; i++) {
        bytes += plan->steps[i].bytes;
    }
    if (status) {
        return npu__fail(diag, status, "plan: out of memory");
    }
    if (plan->desc.max_transfer_bytes && bytes > plan->desc.max_transfer_bytes) {
        return npu__fail(diag, NPU_ERR_BUDGET, "plan: transfers move %llu bytes, at most %llu are allowed",
                         (unsigned long long)bytes, (unsigned long long)plan->desc.max_transfer_bytes);
    }
    return NPU_OK;
}

static npu_status npu__check_fallback(const npu_plan *plan, npu_diag *diag)
{
    for (uint32_t id = 1; plan->desc.no_fallback && plan->desc.num_backends > 1 && id < plan->graph->num_ops;
         id++) {
        if (plan->targets[id].backend + 1u == plan->desc.num_backends) {
            if (diag && diag->status == NPU_OK) {
                diag->op = id;
            }
            return npu__fail(diag, NPU_ERR_BUDGET, "%s (op %u) would run on %s: %s; no fallback is allowed",
                             plan->graph->ops[id].def->name, (unsigned)id,
                             plan->backends[plan->desc.num_backends - 1]->name,
                             npu_reason_text(plan->targets[id].reason));
        }
    }
    return NPU_OK;
}

/* ---- plans ---- */

static npu_status npu__plan_check(const npu_graph *g, const npu_plan_desc *desc, npu_diag *diag)
{
    if (!g || !desc || !desc->backends || desc->num_backends == 0 || desc->num_backends > NPU__MAX_BACKENDS ||
        desc->_canary) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "plan: needs a graph and 1 to %u backends",
                         NPU__MAX_BACKENDS);
    }
    if (g->diag.status) {
        return npu__fail(diag, NPU_ERR_GRAPH, "plan: the graph has failed: %s", g->diag.message);
    }
    for (uint32_t i = 0; i < desc->num_backends; i++) {
        npu_status status = npu_backend_check(desc->backends[i], diag);
        if (status) {
            return status;
        }
    }
    for (uint32_t i = 1; i < g->num_values; i++) {
        size_t size;
        npu_status status = npu_spec_size(g->specs[g->values[i].spec], &size);
        if (status && status != NPU_ERR_DYNAMIC_SHAPE) {
            char label[16];
            return npu__fail(diag, status, "plan: value %s: %s", npu__value_label(g, i, label),
                             npu_status_text(status));
        }
        if (status && g->values[i].producer == 0) {
            char label[16];
            return npu__fail(diag, status,
                             "plan: value %s: a dim is not known; bind symbols with npu_graph_specialize",
                             npu__value_label(g, i, label));
        }
    }
    return NPU_OK;
}

static npu_plan *npu__plan_new(const npu_graph *g, const npu_plan_desc *desc)
{
    npu_allocator a = npu__allocator(desc->allocator);
    npu_plan *plan = (npu_plan *)npu__alloc_zero(&a, sizeof *plan);
    if (!plan) {
        return NULL;
    }
    plan->allocator = a;
    plan->graph = g;
    plan->desc = *desc;
    memcpy(plan->backends, desc->backends, desc->num_backends * sizeof plan->backends[0]);
    plan->targets = (npu__target *)npu__alloc_zero(&a, g->num_ops * sizeof *plan->targets);
    plan->op_step = (uint32_t *)npu__alloc_zero(&a, g->num_ops * sizeof *plan->op_step);
    plan->moved_head = (uint32_t *)npu__alloc_zero(&a, g->num_values * sizeof *plan->moved_head);
    plan->value_storage = (uint32_t *)npu__alloc_zero(&a, g->num_values * sizeof *plan->value_storage);
    if (!plan->targets || !plan->op_step || !plan->moved_head || !plan->value_storage) {
        npu_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

static npu_status npu__plan_memory(npu_plan *plan, npu_diag *diag);
static void npu__plan_free_storage(npu_plan *plan);

NPU_IR_API void npu_plan_destroy(npu_plan *plan)
{
    npu_allocator a;
    if (!plan) {
        return;
    }
    a = plan->allocator;
    for (uint32_t i = 1; i < plan->num_words; i++) {
        npu__free(&a, plan->words[i], strlen(plan->words[i]) + 1);
    }
    NPU__RELEASE(plan, words);
    NPU__RELEASE(plan, steps);
    NPU__RELEASE(plan, step_ops);
    NPU__RELEASE(plan, step_values);
    NPU__RELEASE(plan, step_dependencies);
    NPU__RELEASE(plan, moved);
    npu__plan_free_storage(plan);
    npu__free(&a, plan->targets, plan->graph->num_ops * sizeof *plan->targets);
    npu__free(&a, plan->op_step, plan->graph->num_ops * sizeof *plan->op_step);
    npu__free(&a, plan->moved_head, plan->graph->num_values * sizeof *plan->moved_head);
    npu__free(&a, plan->value_storage, plan->graph->num_values * sizeof *plan->value_storage);
    npu__free(&a, plan, sizeof *plan);
}

NPU_IR_API npu_status npu_plan_create(npu_plan **out, const npu_graph *g, const npu_plan_desc *desc,
                                      npu_diag *diag)
{
    npu_diag local;
    npu_plan *plan;
    npu_status status;
    *out = NULL;
    diag = diag ? diag : &local;
    memset(diag, 0, sizeof *diag);
    status = npu__plan_check(g, desc, diag);
    if (status) {
        return status;
    }
    plan = npu__plan_new(g, desc);
    if (!plan) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "plan: out of memory");
    }
    status = npu__tag(plan, diag);
    if (status == NPU_OK && desc->min_group_ops) {
        status = npu__give_up_small(plan);
    }
    if (status == NPU_OK && desc->max_groups) {
        status = npu__give_up_surplus(plan);
    }
    status = status ? status : npu__check_fallback(plan, diag);
    status = status ? status : npu__build_steps(plan, diag);
    status = status ? status : npu__plan_memory(plan, diag);
    if (status) {
        npu_plan_destroy(plan);
        return npu__fail(diag, status, "plan: %s", npu_status_text(status));
    }
    /* The callback and the lists belong to the caller and are not needed again. */
    plan->desc.backends = NULL;
    plan->desc.override = NULL;
    plan->desc.force_last = NULL;
    plan->desc.num_force_last = 0;
    *out = plan;
    return NPU_OK;
}

/* A plan with the same targets, for a program to change. */
static npu_plan *npu__plan_clone(const npu_plan *from, npu_diag *diag)
{
    npu_plan_desc desc = from->desc;
    npu_plan *plan;
    uint16_t index;
    bool ok;
    desc.backends = from->backends;
    desc.allocator = &from->allocator;
    plan = npu__plan_new(from->graph, &desc);
    ok = plan != NULL;
    for (uint32_t i = 1; ok && i < from->num_words; i++) {
        ok = npu__plan_words(plan, from->words[i], &index);
    }
    if (ok) {
        memcpy(plan->targets, from->targets, from->graph->num_ops * sizeof *plan->targets);
        ok = npu__build_steps(plan, diag) == NPU_OK;
    }
    if (!ok) {
        npu_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

NPU_IR_API const npu_graph *npu_plan_graph(const npu_plan *plan) { return plan->graph; }
NPU_IR_API uint32_t npu_plan_num_steps(const npu_plan *plan) { return plan->num_steps; }
NPU_IR_API const npu_step *npu_plan_step(const npu_plan *plan, uint32_t i)
{
    return i < plan->num_steps ? &plan->steps[i] : NULL;
}

NPU_IR_API uint32_t npu_plan_num_backends(const npu_plan *plan) { return plan->desc.num_backends; }
NPU_IR_API const npu_backend *npu_plan_backend(const npu_plan *plan, uint32_t i)
{
    return i < plan->desc.num_backends ? plan->backends[i] : NULL;
}

NPU_IR_API int npu_plan_op_backend(const npu_plan *plan, npu_op op, uint32_t *reason, const char **words)
{
    const npu__target *t = op.id && op.id < plan->graph->num_ops ? &plan->targets[op.id] : NULL;
    if (reason) {
        *reason = t ? t->reason : NPU_REASON_CLAIMED;
    }
    if (words) {
        *words = t && t->words ? plan->words[t->words] : "";
    }
    return t && t->backend != NPU__UNPLACED ? (int)t->backend : -1;
}

/* -------------------------------------------------------------------------------------------------------- */

/* Time is counted in ticks: one per op and one per transfer, in plan order, from 1. 0 is when graph inputs
   are uploaded. */
enum {
    NPU__ARENA = 1,      /* planned, in the backend's arena */
    NPU__BOUND_INPUT,    /* the caller's or the exec's memory, used in place by a host backend */
    NPU__BOUND_OUTPUT,
    NPU__WEIGHT
};

/* Memory of one value on one backend. A view or an in-place result has a parent and lies `delta` bytes into
   it. */
struct npu__storage {
    uint32_t value;      /* 0 = scratch of a group */
    uint32_t next;       /* index + 1 of the same value's storage on another backend */
    uint32_t parent;     /* own index = a root */
    uint32_t first, last;/* ticks of the value itself */
    uint32_t until;      /* of a root: the last tick of all that lie in it */
    uint8_t backend, kind;
    uint8_t alias;       /* a view: nothing has to be done to make it */
    uint64_t delta, size, offset;
};

/* What compile said about each step of a plan; all zero in a dry run. */
typedef struct npu__step_memory {
    uint64_t scratch;
    uint32_t scratch_alignment;
    uint32_t plans_inner, num_inplace;
    const npu_inplace *inplace;
    uint32_t scratch_storage; /* out: index + 1 */
} npu__step_memory;

static void npu__plan_free_storage(npu_plan *plan) { NPU__RELEASE(plan, storage); }

static uint32_t npu__storage_find(const npu_plan *plan, uint32_t value, uint32_t backend)
{
    uint32_t i = plan->value_storage[value];
    while (i && plan->storage[i - 1].backend != backend) {
        i = plan->storage[i - 1].next;
    }
    return i ? i - 1 : NPU_NO_INDEX;
}

static uint64_t npu__round_up(uint64_t n, uint64_t alignment)
{
    return (n + alignment - 1) / alignment * alignment;
}

static uint32_t npu__storage_add(npu_plan *plan, uint32_t value, uint32_t backend, uint32_t kind,
                                 uint32_t first, uint64_t size)
{
    npu__storage *s;
    if (!NPU__RESERVE(plan, storage, 1)) {
        return NPU_NO_INDEX;
    }
    s = &plan->storage[plan->num_storage];
    memset(s, 0, sizeof *s);
    s->value = value;
    s->backend = (uint8_t)backend;
    s->kind = (uint8_t)kind;
    s->first = s->last = first;
    s->parent = plan->num_storage;
    s->size = size;
    if (value) {
        s->next = plan->value_storage[value];
        plan->value_storage[value] = plan->num_storage + 1;
    }
    return plan->num_storage++;
}

static uint64_t npu__value_size(const npu_graph *g, uint32_t value)
{
    size_t size = 0;
    npu_spec_size(g->specs[g->values[value].spec], &size);
    return size;
}

/* The storage of an operand; that of a value without a producer is made on first use. */
static uint32_t npu__storage_of_operand(npu_plan *plan, uint32_t value, uint32_t backend)
{
    const npu__value *v = &plan->graph->values[value];
    uint32_t kind, i = npu__storage_find(plan, value, backend);
    bool host = (plan->backends[backend]->traits & NPU_BACKEND_HOST) != 0;
    if (i != NPU_NO_INDEX || v->producer) {
        return i;
    }
    kind = v->role == NPU_ROLE_PARAM || v->role == NPU_ROLE_CONSTANT ? NPU__WEIGHT
        : host                                                       ? NPU__BOUND_INPUT
                                                                     : NPU__ARENA;
    return npu__storage_add(plan, value, backend, kind, 0, npu__value_size(plan->graph, value));
}

static void npu__use_until(npu_plan *plan, uint32_t storage, uint32_t tick)
{
    if (storage != NPU_NO_INDEX && plan->storage[storage].last < tick) {
        plan->storage[storage].last = tick;
    }
}

typedef struct npu__lifetimes {
    npu_plan *plan;
    const uint8_t *kept;    /* per value: 1 graph output, 2 next content of a state */
    uint32_t tick, end;     /* end: the last tick */
} npu__lifetimes;

static bool npu__lifetimes_result(npu__lifetimes *t, uint32_t value, const npu_step *s, bool inner)
{
    npu_plan *plan = t->plan;
    const npu__value *v = &plan->graph->values[value];
    bool host = (plan->backends[s->backend]->traits & NPU_BACKEND_HOST) != 0;
    uint32_t last_op = s->ops[s->num_ops - 1].id, i;
    bool escapes = t->kept[value] || (v->last_use && plan->graph->uses[v->last_use - 1].op > last_op);
    if (inner && !escapes) {
        return true;
    }
    i = npu__storage_add(plan, value, s->backend,
                         host && (t->kept[value] & 1) ? NPU__BOUND_OUTPUT : NPU__ARENA, t->tick,
                         npu__value_size(plan->graph, value));
    if (i != NPU_NO_INDEX && t->kept[value]) {
        plan->storage[i].last = t->end;
    }
    return i != NPU_NO_INDEX;
}

static bool npu__lifetimes_partition(npu__lifetimes *t, const npu_step *s, npu__step_memory *m)
{
    npu_plan *plan = t->plan;
    const npu_graph *g = plan->graph;
    uint32_t begin = t->tick, first_storage = plan->num_storage;
    for (uint32_t k = 0; k < s->num_ops; k++, t->tick++) {
        const npu__op *o = &g->ops[s->ops[k].id];
        for (uint32_t i = 0; i < o->num_operands; i++) {
            uint32_t v = g->uses[o->first_operand + i].value,
                     storage = v ? npu__storage_of_operand(plan, v, s->backend) : NPU_NO_INDEX;
            if (v && storage == NPU_NO_INDEX && g->values[v].producer == 0) {
                return false; /* out of memory: only inner values have none */
            }
            npu__use_until(plan, storage, m->plans_inner ? begin + s->num_ops - 1 : t->tick);
        }
        for (uint32_t r = 0; r < o->num_results; r++) {
            if (!npu__lifetimes_result(t, o->first_result + r, s, m->plans_inner != 0)) {
                return false;
            }
        }
    }
    for (uint32_t i = first_storage; m->plans_inner && i < plan->num_storage; i++) { /* the device works in an order of its own */
        plan->storage[i].first = plan->storage[i].first > begin ? begin : plan->storage[i].first;
        npu__use_until(plan, i, t->tick - 1);
    }
    if (m->scratch) {
        uint32_t i = npu__storage_add(plan, 0, s->backend, NPU__ARENA, begin, m->scratch);
        if (i == NPU_NO_INDEX) {
            return false;
        }
        npu__use_until(plan, i, t->tick - 1);
        m->scratch_storage = i + 1;
    }
    return true;
}

static bool npu__lifetimes_transfer(npu__lifetimes *t, const npu_step *s)
{
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        uint32_t v = s->outputs[i].id;
        npu__use_until(t->plan, npu__storage_find(t->plan, v, s->from), t->tick);
        if (npu__storage_add(t->plan, v, s->backend, NPU__ARENA, t->tick,
                             npu__value_size(t->plan->graph, v)) == NPU_NO_INDEX) {
            return false;
        }
    }
    t->tick++;
    return true;
}

/* ---- sharing: views and in-place results ---- */

/* Root of a storage, and where the storage begins in it. */
static uint32_t npu__storage_root(const npu_plan *plan, uint32_t i, uint64_t *delta)
{
    *delta = 0;
    while (plan->storage[i].parent != i) {
        *delta += plan->storage[i].delta;
        i = plan->storage[i].parent;
    }
    return i;
}

static void npu__storage_join(npu_plan *plan, uint32_t child, uint32_t root, uint64_t delta)
{
    uint32_t until = plan->storage[child].until;
    plan->storage[child].parent = root;
    plan->storage[child].delta = delta;
    plan->storage[root].until = until > plan->storage[root].until ? until : plan->storage[root].until;
}

/* Where result r begins inside operand 0, in bytes, when it is one dense piece of it; false when it is not.
   */
static bool npu__slice_offset(const npu_op_info *info, uint32_t r, uint64_t *bytes)
{
    const npu_spec *x = info->in[0];
    int64_t dim = npu_op_int(info, "dim", 0), start = 0, row = 1;
    uint32_t bits = npu_dtype_bits((npu_dtype)x->dtype);
    dim = dim < 0 ? dim + x->rank : dim;
    if (x->rank == 0 || dim < 0 || dim >= x->rank || bits < 8 || npu_op_int(info, "step", 1) != 1) {
        return false;
    }
    for (int64_t i = 0; i < x->rank; i++) {
        if (i < dim && x->dims[i] != 1) {
            return false;
        }
        row *= i > dim ? x->dims[i] : 1;
    }
    if (npu_op_arg(info, "index")) {
        start = npu_op_int(info, "index", 0);
    } else if (npu_op_arg(info, "start")) {
        start = npu_op_int(info, "start", 0);
    } else {
        for (uint32_t i = 0; i < r; i++) { /* pieces of split and chunk follow one another */
            start += info->out[i]->dims[dim];
        }
    }
    start = start < 0 ? start + x->dims[dim] : start;
    start = start < 0 ? 0 : start > x->dims[dim] ? x->dims[dim] : start;
    *bytes = (uint64_t)(start * row) * (bits / 8);
    return true;
}

/* Where result r of an op begins in the root of operand 0; false when it cannot lie there. */
static bool npu__view_offset(const npu_plan *plan, const npu_op_info *info, uint32_t result, uint32_t r,
                             uint32_t backend, uint32_t root, uint64_t *offset)
{
    uint32_t to = npu__storage_find(plan, result, backend);
    *offset = 0;
    return to != NPU_NO_INDEX && plan->storage[to].kind == NPU__ARENA &&
        (!(info->traits & NPU_SLICE) || npu__slice_offset(info, r, offset)) &&
        *offset <= plan->storage[root].size && plan->storage[to].size <= plan->storage[root].size - *offset;
}

/* All results of an op become views or none, since a kernel that runs writes all of them. */
static void npu__share_view(npu_plan *plan, const npu_op_info *info, uint32_t backend)
{
    const npu_graph *g = plan->graph;
    const npu__op *o = &g->ops[info->op];
    uint32_t x = o->num_operands == 1 ? g->uses[o->first_operand].value : 0;
    uint32_t from = x ? npu__storage_find(plan, x, backend) : NPU_NO_INDEX, root;
    uint64_t base, offset;
    if (from == NPU_NO_INDEX || plan->storage[from].size == 0) {
        return;
    }
    root = npu__storage_root(plan, from, &base);
    if (plan->storage[root].kind != NPU__ARENA && plan->storage[root].kind != NPU__BOUND_INPUT) {
        return;
    }
    for (uint32_t r = 0; r < o->num_results; r++) {
        if (!npu__view_offset(plan, info, o->first_result + r, r, backend, from, &offset)) {
            return;
        }
    }
    for (uint32_t r = 0; r < o->num_results; r++) {
        uint32_t to = npu__storage_find(plan, o->first_result + r, backend);
        npu__view_offset(plan, info, o->first_result + r, r, backend, from, &offset);
        /* A piece must begin at an address that its element type allows: bases are aligned, so is every
           multiple of the element. */
        npu__storage_join(plan, to, root, base + offset);
        plan->storage[to].alias = 1;
    }
}

static npu_status npu__share_views(npu_plan *plan, const npu__step_memory *steps)
{
    npu_op_storage described;
    npu_status status = NPU_OK;
    memset(&described, 0, sizeof described);
    for (uint32_t i = 0; i < plan->num_storage; i++) {
        plan->storage[i].until = plan->storage[i].last;
    }
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        const npu_step *s = &plan->steps[i];
        if (s->type != NPU_STEP_PARTITION || s->backend == NPU__UNPLACED || steps[i].plans_inner) {
            continue;
        }
        for (uint32_t k = 0; k < s->num_ops && status == NPU_OK; k++) {
            npu_op_info info;
            if (plan->graph->ops[s->ops[k].id].def->traits & (NPU_VIEW | NPU_SLICE)) {
                status = npu_op_describe(plan->graph, s->ops[k], &info, &described);
                if (status == NPU_OK) {
                    npu__share_view(plan, &info, s->backend);
                }
            }
        }
    }
    npu_op_storage_free(&described);
    return status;
}

/* True when no other operand of the op lies in the same root at another place: writing the result would
   change it too early. A piece of a value is no place for a result either unless it is aligned like one. */
static bool npu__inplace_is_safe(const npu_plan *plan, const npu__op *o, uint32_t backend, uint32_t root,
                                 uint64_t delta, uint64_t size)
{
    for (uint32_t i = 0; i < o->num_operands; i++) {
        uint32_t v = plan->graph->uses[o->first_operand + i].value,
                 other = v ? npu__storage_find(plan, v, backend) : NPU_NO_INDEX;
        uint64_t at;
        if (other != NPU_NO_INDEX && npu__storage_root(plan, other, &at) == root &&
            (at != delta || plan->storage[other].size != size)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < o->num_results; i++) { /* another result may have taken it: even a result without users is written */
        uint32_t other = npu__storage_find(plan, o->first_result + i, backend);
        uint64_t at;
        if (other != NPU_NO_INDEX && npu__storage_root(plan, other, &at) == root) {
            return false;
        }
    }
    return true;
}

static void npu__share_inplace(npu_plan *plan, const npu_step *s, const npu_inplace *pair)
{
    const npu_graph *g = plan->graph;
    const npu__op *o = pair->op < s->num_ops ? &g->ops[s->ops[pair->op].id] : NULL;
    uint32_t x = o && pair->operand < o->num_operands ? g->uses[o->first_operand + pair->operand].value : 0;
    uint32_t from = x ? npu__storage_find(plan, x, s->backend) : NPU_NO_INDEX, to, root;
    uint64_t delta;
    if (from == NPU_NO_INDEX || pair->result >= o->num_results) {
        return;
    }
    to = npu__storage_find(plan, o->first_result + pair->result, s->backend);
    root = npu__storage_root(plan, from, &delta);
    if (to == NPU_NO_INDEX || plan->storage[to].parent != to || plan->storage[to].kind != NPU__ARENA ||
        plan->storage[root].kind != NPU__ARENA || plan->storage[root].until != plan->storage[to].first ||
        plan->storage[from].size != plan->storage[to].size || delta % plan->alignment[s->backend] != 0) {
        return;
    }
    if (npu__inplace_is_safe(plan, o, s->backend, root, delta, plan->storage[from].size)) {
        npu__storage_join(plan, to, root, delta);
    }
}

/* ---- offsets ---- */

typedef struct npu__free_range {
    uint64_t begin, end;
} npu__free_range;

typedef struct npu__packer {
    npu_plan *plan;
    uint64_t alignment;
    uint32_t *order;          /* storage indices by first tick */
    uint32_t num;
    uint64_t *offsets;        /* per entry of order */
    uint32_t *ends;           /* per tick: 1 + entry of order that ends there; lists through chain */
    uint32_t *chain;
    npu__free_range *ranges;  /* sorted, never touching each other */
    uint32_t num_ranges, cap_ranges;
} npu__packer;

static bool npu__range_free(npu__packer *p, uint64_t begin, uint64_t end)
{
    uint32_t low = 0, high = p->num_ranges;
    bool joins_left, joins_right;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->ranges[middle].begin < begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    joins_left = low > 0 && p->ranges[low - 1].end == begin;
    joins_right = low < p->num_ranges && p->ranges[low].begin == end;
    if (joins_left && joins_right) {
        p->ranges[low - 1].end = p->ranges[low].end;
        memmove(p->ranges + low, p->ranges + low + 1, (--p->num_ranges - low) * sizeof *p->ranges);
    } else if (joins_left) {
        p->ranges[low - 1].end = end;
    } else if (joins_right) {
        p->ranges[low].begin = begin;
    } else {
        if (!npu__reserve(&p->plan->allocator, (void **)&p->ranges, &p->cap_ranges,
                          (uint64_t)p->num_ranges + 1, sizeof *p->ranges)) {
            return false;
        }
        memmove(p->ranges + low + 1, p->ranges + low, (p->num_ranges++ - low) * sizeof *p->ranges);
        p->ranges[low].begin = begin;
        p->ranges[low].end = end;
    }
    return true;
}

/* The smallest free range that is large enough, else the top; a free range at the top is used first. */
static uint64_t npu__range_take(npu__packer *p, uint64_t size, uint64_t *top)
{
    uint32_t best = NPU_NO_INDEX;
    uint64_t at = *top;
    for (uint32_t i = 0; i < p->num_ranges; i++) {
        uint64_t room = p->ranges[i].end - p->ranges[i].begin;
        if (room >= size && (best == NPU_NO_INDEX || room < p->ranges[best].end - p->ranges[best].begin)) {
            best = i;
        }
    }
    if (best != NPU_NO_INDEX) {
        at = p->ranges[best].begin;
        p->ranges[best].begin += size;
        if (p->ranges[best].begin == p->ranges[best].end) {
            memmove(p->ranges + best, p->ranges + best + 1, (--p->num_ranges - best) * sizeof *p->ranges);
        }
        return at;
    }
    if (p->num_ranges && p->ranges[p->num_ranges - 1].end == *top) {
        at = p->ranges[--p->num_ranges].begin;
    }
    *top = at + size;
    return at;
}

static uint64_t npu__packed_size(const npu__packer *p, uint32_t entry)
{
    return npu__round_up(p->plan->storage[p->order[entry]].size, p->alignment);
}

/* In order of time: best fit into what has been given back. Linear in ops for the usual few free ranges. */
static bool npu__pack_in_time(npu__packer *p, uint32_t num_ticks, uint64_t *total)
{
    uint32_t tick = 0;
    *total = 0;
    p->num_ranges = 0;
    memset(p->ends, 0, num_ticks * sizeof *p->ends);
    for (uint32_t i = 0; i < p->num; i++) {
        const npu__storage *s = &p->plan->storage[p->order[i]];
        for (; tick < s->first; tick++) {
            for (uint32_t e = p->ends[tick]; e; e = p->chain[e - 1]) {
                uint64_t size = npu__packed_size(p, e - 1);
                if (size && !npu__range_free(p, p->offsets[e - 1], p->offsets[e - 1] + size)) {
                    return false;
                }
            }
        }
        p->offsets[i] = npu__packed_size(p, i) ? npu__range_take(p, npu__packed_size(p, i), total) : 0;
        p->chain[i] = p->ends[s->until];
        p->ends[s->until] = i + 1;
    }
    return true;
}

typedef struct npu__sized {
    uint64_t size;
    uint32_t entry;
} npu__sized;

static int npu__sized_compare(const void *a, const void *b)
{
    const npu__sized *x = (const npu__sized *)a, *y = (const npu__sized *)b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x->entry < y->entry ? -1 : 1;
}

/* Largest first, each at the lowest gap among those alive at the same time. Quadratic, so for small plans
   only. */
static bool npu__pack_by_size(npu__packer *p, uint64_t *offsets, uint64_t *total)
{
    npu__sized *sized = (npu__sized *)npu__alloc(&p->plan->allocator, p->num * sizeof *sized);
    uint32_t *placed = (uint32_t *)npu__alloc(&p->plan->allocator, p->num * sizeof *placed), num_placed = 0; /* by offset */
    bool ok = sized && placed;
    *total = 0;
    for (uint32_t i = 0; ok && i < p->num; i++) {
        sized[i].size = npu__packed_size(p, i);
        sized[i].entry = i;
    }
    if (ok) {
        qsort(sized, p->num, sizeof *sized, npu__sized_compare);
    }
    for (uint32_t i = 0; ok && i < p->num; i++) {
        const npu__storage *s = &p->plan->storage[p->order[sized[i].entry]];
        uint64_t at = 0;
        uint32_t insert = num_placed;
        for (uint32_t k = 0; k < num_placed; k++) {
            const npu__storage *o = &p->plan->storage[p->order[placed[k]]];
            if (o->first <= s->until && s->first <= o->until) {
                if (offsets[placed[k]] >= at + sized[i].size) {
                    break;
                }
                at = offsets[placed[k]] + npu__packed_size(p, placed[k]) > at
                    ? offsets[placed[k]] + npu__packed_size(p, placed[k])
                    : at;
            }
        }
        offsets[sized[i].entry] = at;
        *total = at + sized[i].size > *total ? at + sized[i].size : *total;
        while (insert > 0 && offsets[placed[insert - 1]] > at) {
            placed[insert] = placed[insert - 1];
            insert--;
        }
        placed[insert] = sized[i].entry;
        num_placed++;
    }
    npu__free(&p->plan->allocator, sized, p->num * sizeof *sized);
    npu__free(&p->plan->allocator, placed, p->num * sizeof *placed);
    return ok;
}

#define NPU__PACK_BY_SIZE_MAX 1024u

/* Peak of live bytes: what no placement can be below. */
static uint64_t npu__peak(const npu__packer *p, uint64_t *live, uint32_t num_ticks)
{
    uint64_t now = 0, peak = 0;
    memset(live, 0, ((size_t)num_ticks + 1) * sizeof *live);
    for (uint32_t i = 0; i < p->num; i++) {
        const npu__storage *s = &p->plan->storage[p->order[i]];
        live[s->first] += npu__packed_size(p, i); /* differences wrap around and cancel */
        live[s->until + 1] -= npu__packed_size(p, i);
    }
    for (uint32_t t = 0; t < num_ticks; t++) {
        now += live[t];
        peak = now > peak ? now : peak;
    }
    return peak;
}

/* Entries of one backend's arena in order of first tick (counting sort). `count` has num_ticks + 1 zeroed
   entries. */
static void npu__pack_order(npu__packer *p, uint32_t backend, uint32_t num_ticks, uint32_t *count)
{
    const npu_plan *plan = p->plan;
    p->num = 0;
    memset(count, 0, ((size_t)num_ticks + 1) * sizeof *count);
    for (uint32_t i = 0; i < plan->num_storage; i++) {
        const npu__storage *s = &plan->storage[i];
        if (s->kind == NPU__ARENA && s->backend == backend && s->parent == i) {
            count[s->first + 1]++;
            p->num++;
        }
    }
    for (uint32_t t = 1; t <= num_ticks; t++) {
        count[t] += count[t - 1];
    }
    for (uint32_t i = 0; i < plan->num_storage; i++) {
        const npu__storage *s = &plan->storage[i];
        if (s->kind == NPU__ARENA && s->backend == backend && s->parent == i) {
            p->order[count[s->first]++] = i;
        }
    }
}

static bool npu__pack_backend(npu__packer *p, uint32_t backend, uint32_t num_ticks, uint64_t *live)
{
    npu_plan *plan = p->plan;
    npu_memory *m = &plan->memory[backend];
    uint64_t total, by_size;
    uint64_t *offsets;
    npu__pack_order(p, backend, num_ticks, p->ends);
    m->lower_bound = npu__peak(p, live, num_ticks);
    if (!npu__pack_in_time(p, num_ticks, &total)) {
        return false;
    }
    if (total > m->lower_bound && p->num <= NPU__PACK_BY_SIZE_MAX) {
        offsets = (uint64_t *)npu__alloc(&plan->allocator, p->num * sizeof *offsets);
        if (!offsets || !npu__pack_by_size(p, offsets, &by_size)) {
            npu__free(&plan->allocator, offsets, p->num * sizeof *offsets);
            return false;
        }
        if (by_size < total) {
            total = by_size;
            memcpy(p->offsets, offsets, p->num * sizeof *offsets);
        }
        npu__free(&plan->allocator, offsets, p->num * sizeof *offsets);
    }
    m->activations = total;
    for (uint32_t i = 0; i < p->num; i++) {
        plan->storage[p->order[i]].offset = p->offsets[i];
    }
    return true;
}

/* Bytes by kind, and the offsets of weights in their own buffer. False when a backend's sum does not fit:
   then no later sum can wrap. */
static bool npu__sum_memory(npu_plan *plan)
{
    uint64_t room[NPU__MAX_BACKENDS];
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        room[b] = INT64_MAX;
    }
    for (uint32_t i = 0; i < plan->num_storage; i++) {
        npu__storage *s = &plan->storage[i];
        npu_memory *m = &plan->memory[s->backend];
        uint32_t role = plan->graph->values[s->value].role;
        uint64_t rounded =
            s->size <= INT64_MAX ? npu__round_up(s->size, plan->alignment[s->backend]) : UINT64_MAX;
        if (rounded > room[s->backend]) {
            return false;
        }
        room[s->backend] -= rounded;
        if (s->kind == NPU__WEIGHT) {
            s->offset = m->weights;
            m->weights += rounded;
        } else if (s->kind == NPU__BOUND_OUTPUT) {
            m->outputs += s->size;
        } else {
            m->inputs += s->value && role == NPU_ROLE_INPUT ? s->size : 0;
            m->state += s->value && role == NPU_ROLE_STATE ? s->size : 0;
            m->no_reuse += s->kind == NPU__ARENA ? rounded : 0;
        }
        if (s->value == 0) {
            m->scratch = rounded > m->scratch ? rounded : m->scratch;
        }
    }
    return true;
}

static bool npu__pack_all(npu_plan *plan, uint32_t num_ticks)
{
    const npu_allocator *a = &plan->allocator;
    npu__packer p;
    uint64_t *live = (uint64_t *)npu__alloc(a, ((size_t)num_ticks + 1) * sizeof *live);
    bool ok;
    memset(&p, 0, sizeof p);
    p.plan = plan;
    p.order = (uint32_t *)npu__alloc(a, plan->num_storage * sizeof *p.order);
    p.offsets = (uint64_t *)npu__alloc(a, plan->num_storage * sizeof *p.offsets);
    p.chain = (uint32_t *)npu__alloc(a, plan->num_storage * sizeof *p.chain);
    p.ends = (uint32_t *)npu__alloc(a, ((size_t)num_ticks + 2) * sizeof *p.ends);
    ok = live && p.order && p.offsets && p.chain && p.ends;
    for (uint32_t b = 0; ok && b < plan->desc.num_backends; b++) {
        p.alignment = plan->alignment[b];
        ok = npu__pack_backend(&p, b, num_ticks, live);
    }
    npu__free(a, live, ((size_t)num_ticks + 1) * sizeof *live);
    npu__free(a, p.order, plan->num_storage * sizeof *p.order);
    npu__free(a, p.offsets, plan->num_storage * sizeof *p.offsets);
    npu__free(a, p.chain, plan->num_storage * sizeof *p.chain);
    npu__free(a, p.ends, ((size_t)num_ticks + 2) * sizeof *p.ends);
    npu__free(a, p.ranges, p.cap_ranges * sizeof *p.ranges);
    return ok;
}

/* ---- the whole plan ---- */

static bool npu__plan_lifetimes(npu_plan *plan, const uint8_t *kept, npu__step_memory *steps,
                                uint32_t *num_ticks)
{
    npu__lifetimes t;
    memset(&t, 0, sizeof t);
    t.plan = plan;
    t.kept = kept;
    t.tick = 1;
    t.end = 1;
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        t.end += plan->steps[i].type == NPU_STEP_PARTITION ? plan->steps[i].num_ops : 1;
    }
    *num_ticks = t.end + 1;
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        const npu_step *s = &plan->steps[i];
        if (s->backend == NPU__UNPLACED) {
            t.tick += s->type == NPU_STEP_PARTITION ? s->num_ops : 1;
        } else if (!(s->type == NPU_STEP_PARTITION ? npu__lifetimes_partition(&t, s, &steps[i])
                                                   : npu__lifetimes_transfer(&t, s))) {
            return false;
        }
    }
    return true;
}

/* Arenas are aligned for whatever lies in them. */
static bool npu__plan_alignment(npu_plan *plan, const npu__step_memory *steps)
{
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        plan->alignment[b] = plan->backends[b]->regions[0].alignment;
    }
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        uint32_t wanted = steps[i].scratch ? steps[i].scratch_alignment : 0, *alignment;
        if (wanted & (wanted - 1)) {
            return false;
        }
        if (wanted) {
            alignment = &plan->alignment[plan->steps[i].backend];
            *alignment = wanted > *alignment ? wanted : *alignment;
        }
    }
    return true;
}

/* Plans all memory anew. `steps` is what compile said, one entry per step. Errors: NO_MEMORY, OVERFLOW,
   BACKEND (an alignment). */
static npu_status npu__plan_memory_with(npu_plan *plan, npu__step_memory *steps)
{
    uint8_t *kept = (uint8_t *)npu__alloc_zero(&plan->allocator, plan->graph->num_values);
    uint32_t num_ticks = 0;
    npu_status status = !kept              ? NPU_ERR_NO_MEMORY
        : npu__plan_alignment(plan, steps) ? NPU_OK
                                           : NPU_ERR_BACKEND;
    plan->num_storage = 0;
    memset(plan->value_storage, 0, plan->graph->num_values * sizeof *plan->value_storage);
    memset(plan->memory, 0, sizeof plan->memory);
    if (status == NPU_OK) {
        npu__mark_kept(plan->graph, kept);
        status = npu__plan_lifetimes(plan, kept, steps, &num_ticks) ? npu__share_views(plan, steps)
                                                                    : NPU_ERR_NO_MEMORY;
    }
    if (status == NPU_OK) {
        for (uint32_t i = 0; i < plan->num_steps && !plan->desc.no_inplace; i++) {
            for (uint32_t k = 0; k < steps[i].num_inplace; k++) {
                npu__share_inplace(plan, &plan->steps[i], &steps[i].inplace[k]);
            }
        }
        status = !npu__sum_memory(plan)      ? NPU_ERR_OVERFLOW
            : npu__pack_all(plan, num_ticks) ? NPU_OK
                                             : NPU_ERR_NO_MEMORY;
    }
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        plan->memory[b].exact = plan->exact;
    }
    npu__free(&plan->allocator, kept, plan->graph->num_values);
    return status;
}

/* A dry run: nothing is compiled, so scratch is unknown and no result is in place. */
static npu_status npu__plan_memory(npu_plan *plan, npu_diag *diag)
{
    npu__step_memory *steps =
        (npu__step_memory *)npu__alloc_zero(&plan->allocator, plan->num_steps * sizeof *steps);
    npu_status status = steps ? npu__plan_memory_with(plan, steps) : NPU_ERR_NO_MEMORY;
    npu__free(&plan->allocator, steps, plan->num_steps * sizeof *steps);
    return status ? npu__fail(diag, status, "plan of memory: %s", npu_status_text(status)) : NPU_OK;
}

NPU_IR_API npu_status npu_plan_memory(const npu_plan *plan, uint32_t backend, npu_memory *out)
{
    memset(out, 0, sizeof *out);
    if (backend >= plan->desc.num_backends) {
        return NPU_ERR_RANGE;
    }
    *out = plan->memory[backend];
    return NPU_OK;
}

/* Where a storage is in its backend's arena. */
static uint64_t npu__storage_offset(const npu_plan *plan, uint32_t i)
{
    uint64_t delta;
    uint32_t root = npu__storage_root(plan, i, &delta);
    return plan->storage[root].offset + delta;
}

NPU_IR_API npu_status npu_plan_value_memory(const npu_plan *plan, npu_value v, uint32_t backend,
                                            uint64_t *offset, uint64_t *size, uint32_t *first, uint32_t *last)
{
    uint32_t i;
    uint64_t delta;
    *offset = *size = 0;
    *first = *last = 0;
    if (!npu__value_at(plan->graph, v) || backend >= plan->desc.num_backends) {
        return NPU_ERR_RANGE;
    }
    i = npu__storage_find(plan, v.id, backend);
    if (i != NPU_NO_INDEX && plan->storage[npu__storage_root(plan, i, &delta)].kind == NPU__ARENA) {
        *offset = npu__storage_offset(plan, i);
        *size = plan->storage[i].size;
        *first = plan->storage[i].first;
        *last = plan->storage[i].last;
    }
    return NPU_OK;
}

/* -------------------------------------------------------------------------------------------------------- */

/* A compiled partition. */
typedef struct npu__group {
    uint32_t backend, first_op, last_op; /* what it is made from: the same three give the same group */
    uint32_t num_values;
    npu_compiled compiled;
    uint32_t *values;                    /* graph value of each group value */
    npu_place *places;
    npu_place scratch;
} npu__group;

/* One value to move between memories; buffer NPU_NO_INDEX = host memory of the exec's slot `offset`. */
typedef struct npu__move {
    uint32_t value;
    uint32_t from, to;                   /* backends */
    npu_place source, target;
    uint64_t bytes;
} npu__move;

/* Caller's memory that a host backend uses in place. */
typedef struct npu__bound {
    uint32_t value, backend, index;      /* index: of the buffer in the backend's table */
} npu__bound;

struct npu_program {
    npu_allocator allocator;
    npu_plan *plan;
    NPU__ARRAY(npu__group, groups);
    uint32_t *step_group;                /* per step: index into groups */
    NPU__ARRAY(npu__bound, bound);
    NPU__ARRAY(npu__move, moves);        /* of all transfer steps, in order */
    NPU__ARRAY(npu__move, feeds);        /* graph inputs and states to devices */
    NPU__ARRAY(npu__move, results);      /* per graph output, then per state: where its value or next content is */
    NPU__ARRAY(uint32_t, states);        /* values */
    uint32_t num_buffers[NPU__MAX_BACKENDS];
    npu_buffer weights[NPU__MAX_BACKENDS];
};

/* ---- compiling ---- */

/* Everything compile reads, in one arena that is freed afterwards. */
typedef struct npu__group_build {
    npu__arena arena;
    const npu_plan *plan;
    const npu_step *step;
    uint32_t *local;          /* per graph value: index + 1 in the group, valid where stamped */
    npu_group_value *values;
    uint32_t *ids;
    uint32_t num_values, max_values;
    npu_group group;
} npu__group_build;

static uint32_t npu__group_value(npu__group_build *b, uint32_t value, uint32_t role)
{
    const npu_graph *g = b->plan->graph;
    const npu__value *v = &g->values[value];
    npu_group_value *gv;
    if (b->local[value]) {
        return b->local[value] - 1;
    }
    gv = &b->values[b->num_values];
    gv->size = (uint32_t)sizeof *gv;
    gv->value = value;
    gv->role = role;
    gv->spec = g->specs[v->spec];
    gv->name = g->names[v->name];
    gv->data = role == NPU_GROUP_WEIGHT ? g->data[v->data].data : NULL;
    b->ids[b->num_values] = value;
    b->local[value] = ++b->num_values;
    return b->num_values - 1;
}

static uint32_t npu__group_operand(npu__group_build *b, uint32_t value)
{
    uint32_t role = b->plan->graph->values[value].role;
    if (!value) {
        return NPU_NO_INDEX;
    }
    return npu__group_value(b, value,
                            role == NPU_ROLE_PARAM || role == NPU_ROLE_CONSTANT ? NPU_GROUP_WEIGHT
                                                                                : NPU_GROUP_INPUT);
}

/* Copies what describe gave into the arena, since the next op reuses its storage. */
static bool npu__group_op(npu__group_build *b, npu_group_op *op, uint32_t id, npu_op_storage *storage)
{
    const npu_graph *g = b->plan->graph;
    const npu__op *o = &g->ops[id];
    const npu_backend *backend = b->plan->backends[b->step->backend];
    size_t n = (size_t)o->num_operands + o->num_results;
    npu_bound_arg *args;
    const npu_spec **specs;
    const void **data;
    uint32_t *index;
    uint8_t blob[256], *device;
    if (npu_op_describe(g, npu__make_op(id), &op->info, storage)) {
        return false;
    }
    args = (npu_bound_arg *)npu__arena_alloc(&b->arena, op->info.num_args * sizeof *args + 1);
    specs = (const npu_spec **)npu__arena_alloc(&b->arena, n * sizeof *specs + 1);
    data = (const void **)npu__arena_alloc(&b->arena, o->num_operands * sizeof *data + 1);
    index = (uint32_t *)npu__arena_alloc(&b->arena, n * sizeof *index + 1);
    if (!args || !specs || !data || !index) {
        return false;
    }
    memcpy(args, op->info.args, op->info.num_args * sizeof *args);
    if (n) {
        memcpy(specs, op->info.in, n * sizeof *specs);
    }
    for (uint32_t i = 0; i < o->num_operands; i++) {
        data[i] = op->info.in_data[i];
        index[i] = npu__group_operand(b, g->uses[o->first_operand + i].value);
    }
    for (uint32_t r = 0; r < o->num_results; r++) {
        index[o->num_operands + r] = npu__group_value(b, o->first_result + r, NPU_GROUP_INNER);
    }
    op->info.args = args;
    op->info.in = specs;
    op->info.out = specs + o->num_operands;
    op->info.in_data = data;
    op->in = index;
    op->out = index + o->num_operands;
    npu__info_device(&op->info, backend, blob);
    if (op->info.device_attrs) {
        device = (uint8_t *)npu__arena_alloc(&b->arena, op->info.device_size + 1);
        if (!device) {
            return false;
        }
        memcpy(device, blob, op->info.device_size);
        op->info.device_attrs = device;
    }
    return true;
}

static bool npu__group_describe(npu__group_build *b)
{
    const npu_graph *g = b->plan->graph;
    npu_group_op *ops = (npu_group_op *)npu__arena_alloc(&b->arena, b->step->num_ops * sizeof *ops);
    npu_op_storage storage;
    bool ok = true;
    memset(&storage, 0, sizeof storage);
    for (uint32_t i = 0; i < b->step->num_ops; i++) {
        b->max_values += g->ops[b->step->ops[i].id].num_operands + g->ops[b->step->ops[i].id].num_results;
    }
    b->values = (npu_group_value *)npu__arena_alloc(&b->arena, b->max_values * sizeof *b->values + 1);
    b->ids = (uint32_t *)npu__arena_alloc(&b->arena, b->max_values * sizeof *b->ids + 1);
    ok = ops && b->values && b->ids;
    for (uint32_t i = 0; ok && i < b->step->num_ops; i++) {
        ok = npu__group_op(b, &ops[i], b->step->ops[i].id, &storage);
    }
    for (uint32_t i = 0; ok && i < b->step->num_outputs; i++) {
        b->values[b->local[b->step->outputs[i].id] - 1].role = NPU_GROUP_OUTPUT;
    }
    npu_op_storage_free(&storage);
    b->group.size = (uint32_t)sizeof b->group;
    b->group.num_ops = b->step->num_ops;
    b->group.num_values = b->num_values;
    b->group.ops = ops;
    b->group.values = b->values;
    return ok;
}

static void npu__group_release(npu_program *p, npu__group *group)
{
    const npu_backend *b = p->plan->backends[group->backend];
    if (group->compiled.program) {
        b->release(b->ctx, group->compiled.program);
    }
    npu__free(&p->allocator, group->values, group->num_values * sizeof *group->values);
    npu__free(&p->allocator, group->places, group->num_values * sizeof *group->places);
    memset(group, 0, sizeof *group);
}

/* Compiles one step into a new group. A status of the backend itself is told apart by *refused. */
static npu_status npu__compile_step(npu_program *p, const npu_step *s, uint32_t *local, npu__group *group,
                                    bool *refused)
{
    const npu_backend *backend = p->plan->backends[s->backend];
    npu__group_build b;
    npu_status status = NPU_ERR_NO_MEMORY;
    *refused = false;
    memset(&b, 0, sizeof b);
    memset(group, 0, sizeof *group);
    b.arena.allocator = p->allocator;
    b.plan = p->plan;
    b.step = s;
    b.local = local;
    group->backend = s->backend;
    group->first_op = s->ops[0].id;
    group->last_op = s->ops[s->num_ops - 1].id;
    if (npu__group_describe(&b)) {
        group->num_values = b.num_values;
        group->values = (uint32_t *)npu__alloc(&p->allocator, b.num_values * sizeof *group->values);
        group->places = (npu_place *)npu__alloc_zero(&p->allocator, b.num_values * sizeof *group->places);
    }
    if (group->values && group->places) {
        memcpy(group->values, b.ids, b.num_values * sizeof *group->values);
        group->compiled.size = (uint32_t)sizeof group->compiled;
        status = backend->compile(backend->ctx, &b.group, &group->compiled);
        group->compiled.text[sizeof group->compiled.text - 1] = 0;
        *refused = status != NPU_OK;
    }
    for (uint32_t i = 0; i < b.num_values; i++) {
        local[b.ids[i]] = 0;
    }
    npu__arena_free(&b.arena);
    return status;
}

/* Offers the ops of a refused group to the backends after it. */
static npu_status npu__reject(npu_program *p, const npu_step *s, const char *words)
{
    npu_plan *plan = p->plan;
    npu_op_storage storage;
    npu_status status = NPU_OK;
    uint16_t index;
    uint32_t backend = s->backend;
    if (!npu__plan_words(plan, words, &index)) {
        return NPU_ERR_NO_MEMORY;
    }
    memset(&storage, 0, sizeof storage);
    for (uint32_t i = 0; i < s->num_ops && status == NPU_OK; i++) {
        npu__target *t = &plan->targets[s->ops[i].id];
        npu_op_info info;
        npu_support answer;
        status = npu_op_describe(plan->graph, s->ops[i], &info, &storage);
        t->reason = NPU_REASON_REJECTED;
        t->words = index;
        t->backend = NPU__UNPLACED;
        for (uint32_t b = backend + 1;
             status == NPU_OK && b < plan->desc.num_backends && t->backend == NPU__UNPLACED; b++) {
            t->backend = npu__ask(plan->backends[b], &info, &answer) == NPU_REASON_CLAIMED ? (uint8_t)b
                                                                                           : NPU__UNPLACED;
        }
    }
    npu_op_storage_free(&storage);
    return status;
}

/* The group compiled for a step, or NULL. */
static npu__group *npu__group_of(npu_program *p, const npu_step *s)
{
    for (uint32_t i = 0; i < p->num_groups; i++) {
        npu__group *g = &p->groups[i];
        if (g->compiled.size && g->backend == s->backend && g->first_op == s->ops[0].id &&
            g->last_op == s->ops[s->num_ops - 1].id) {
            return g;
        }
    }
    return NULL;
}

static bool npu__kind_is_unplaced_before(const npu_plan *plan, uint32_t id)
{
    for (uint32_t i = 1; i < id; i++) {
        if (plan->targets[i].backend == NPU__UNPLACED &&
            strcmp(plan->graph->ops[i].def->name, plan->graph->ops[id].def->name) == 0) {
            return true;
        }
    }
    return false;
}

/* "no backend takes 3 ops: aten.foo.default, aten.bar.default": each kind once, as many as fit into the
   message. */
static npu_status npu__fail_unplaced(const npu_plan *plan, npu_diag *diag)
{
    char names[200] = "";
    size_t len = 0;
    uint32_t num = 0, first = 0;
    for (uint32_t id = 1; id < plan->graph->num_ops; id++) {
        const char *name = plan->graph->ops[id].def->name;
        if (plan->targets[id].backend != NPU__UNPLACED) {
            continue;
        }
        first = first ? first : id;
        num++;
        if (len < sizeof names && !npu__kind_is_unplaced_before(plan, id)) {
            int n = snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", name);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    if (!num) {
        return NPU_OK;
    }
    if (len >= sizeof names) {
        memcpy(names + sizeof names - 5, " ...", 5);
    }
    if (diag && diag->status == NPU_OK) {
        diag->op = first;
    }
    return npu__fail(diag, NPU_ERR_NOT_IMPLEMENTED, "no backend takes %u ops: %s", (unsigned)num, names);
}

/* Compiles every step; a refused group changes the plan, and the steps are walked again, keeping what is
   compiled. */
static npu_status npu__compile_all(npu_program *p, uint32_t *local, npu_diag *diag)
{
    npu_plan *plan = p->plan;
    npu_status status = npu__fail_unplaced(plan, diag);
    for (uint32_t i = 0; status == NPU_OK && i < plan->num_steps; i++) {
        const npu_step *s = &plan->steps[i];
        bool refused;
        npu__group group;
        if (s->type != NPU_STEP_PARTITION || npu__group_of(p, s)) {
            continue;
        }
        if (!NPU__RESERVE(p, groups, 1)) {
            return npu__fail(diag, NPU_ERR_NO_MEMORY, "program: out of memory");
        }
        status = npu__compile_step(p, s, local, &group, &refused);
        if (status == NPU_OK) {
            p->groups[p->num_groups++] = group;
            continue;
        }
        if (!refused || s->backend + 1u == plan->desc.num_backends) {
            npu__fail(diag, status, "step %u on %s: compile failed: %s", (unsigned)i,
                      plan->backends[s->backend]->name,
                      group.compiled.text[0] ? group.compiled.text : npu_status_text(status));
            npu__group_release(p, &group);
            return status;
        }
        status = npu__reject(p, s, group.compiled.text[0] ? group.compiled.text : npu_status_text(status));
        npu__group_release(p, &group);
        status = status ? npu__fail(diag, status, "program: out of memory") : npu__fail_unplaced(plan, diag);
        status = status ? status : npu__check_fallback(plan, diag);
        status = status ? status : npu__build_steps(plan, diag);
        i = NPU_NO_INDEX; /* the loop goes on with step 0 */
    }
    return status;
}

/* Frees groups that a changed plan no longer has, and notes the group of each step. */
static npu_status npu__match_groups(npu_program *p)
{
    npu_plan *plan = p->plan;
    uint32_t kept = 0, group = 0;
    npu__group *sorted;
    p->step_group = (uint32_t *)npu__alloc_zero(&p->allocator, plan->num_steps * sizeof *p->step_group);
    sorted = (npu__group *)npu__alloc_zero(&p->allocator, p->cap_groups * sizeof *sorted);
    if (!p->step_group || !sorted) {
        npu__free(&p->allocator, sorted, p->cap_groups * sizeof *sorted);
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        npu__group *g = NULL;
        if (plan->steps[i].type != NPU_STEP_PARTITION) {
            continue;
        }
        /* usually they are in step order already */
        if (group < p->num_groups && p->groups[group].first_op == plan->steps[i].ops[0].id) {
            g = &p->groups[group];
        }
        if (!g || g->last_op != plan->steps[i].ops[plan->steps[i].num_ops - 1].id ||
            g->backend != plan->steps[i].backend) {
            g = npu__group_of(p, &plan->steps[i]);
        }
        group = (uint32_t)(g - p->groups) + 1;
        p->step_group[i] = kept;
        sorted[kept++] = *g;
        memset(g, 0, sizeof *g);
    }
    for (uint32_t i = 0; i < p->num_groups; i++) {
        npu__group_release(p, &p->groups[i]);
    }
    npu__free(&p->allocator, p->groups, p->cap_groups * sizeof *p->groups);
    p->groups = sorted;
    p->num_groups = kept;
    return NPU_OK;
}

/* ---- placing ---- */

/* Where a value is on a backend. Weights of a host backend stay where the caller has them: buffer
   NPU_NO_INDEX. */
static npu_place npu__place_of(const npu_plan *plan, uint32_t value, uint32_t backend)
{
    npu_place place = { NPU_NO_INDEX, 0, 0 };
    uint32_t i = npu__storage_find(plan, value, backend), root;
    uint64_t delta;
    if (i == NPU_NO_INDEX) {
        return place;
    }
    root = npu__storage_root(plan, i, &delta);
    place.alias = plan->storage[i].alias;
    switch (plan->storage[root].kind) {
    case NPU__ARENA:
        place.buffer = 0;
        place.offset = plan->storage[root].offset + delta;
        break;
    case NPU__WEIGHT:
        place.buffer = plan->backends[backend]->traits & NPU_BACKEND_HOST ? NPU_NO_INDEX : 1;
        place.offset = plan->storage[root].offset;
        break;
    default: /* bound: the planner has no offset for it, so its buffer index is kept there */
        place.buffer = (uint32_t)plan->storage[root].offset;
        place.offset = delta;
    }
    return place;
}

static bool npu__number_bound(npu_program *p)
{
    npu_plan *plan = p->plan;
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        p->num_buffers[b] = 2;
    }
    for (uint32_t i = 0; i < plan->num_storage; i++) {
        npu__storage *s = &plan->storage[i];
        npu__bound *bound;
        if (s->kind != NPU__BOUND_INPUT && s->kind != NPU__BOUND_OUTPUT) {
            continue;
        }
        if (!NPU__RESERVE(p, bound, 1)) {
            return false;
        }
        bound = &p->bound[p->num_bound++];
        bound->value = s->value;
        bound->backend = s->backend;
        bound->index = p->num_buffers[s->backend]++;
        s->offset = bound->index;
    }
    return true;
}

static npu_status npu__place_groups(npu_program *p, const npu__step_memory *steps, npu_diag *diag)
{
    npu_plan *plan = p->plan;
    for (uint32_t i = 0; i < plan->num_steps; i++) {
        npu__group *g = &p->groups[p->step_group[i]];
        const npu_backend *b = plan->backends[plan->steps[i].backend];
        npu_status status;
        if (plan->steps[i].type != NPU_STEP_PARTITION) {
            continue;
        }
        for (uint32_t k = 0; k < g->num_values; k++) {
            g->places[k] = npu__place_of(plan, g->values[k], g->backend);
        }
        g->scratch.buffer = 0;
        g->scratch.offset =
            steps[i].scratch_storage ? npu__storage_offset(plan, steps[i].scratch_storage - 1) : 0;
        status = b->place ? b->place(b->ctx, g->compiled.program, g->places, g->num_values) : NPU_OK;
        if (status) {
            return npu__fail(diag, status, "step %u on %s: place failed: %s", (unsigned)i, b->name,
                             npu_status_text(status));
        }
    }
    return NPU_OK;
}

static npu_status npu__plan_program_memory(npu_program *p, npu_diag *diag)
{
    npu_plan *plan = p->plan;
    size_t bytes = plan->num_steps * sizeof(npu__step_memory);
    npu__step_memory *steps = (npu__step_memory *)npu__alloc_zero(&p->allocator, bytes);
    npu_status status = NPU_ERR_NO_MEMORY;
    if (steps) {
        for (uint32_t i = 0; i < plan->num_steps; i++) {
            if (plan->steps[i].type == NPU_STEP_PARTITION) {
                const npu_compiled *c = &p->groups[p->step_group[i]].compiled;
                steps[i].scratch = c->scratch;
                steps[i].scratch_alignment = c->scratch_alignment;
                steps[i].plans_inner = c->plans_inner;
                steps[i].num_inplace = c->num_inplace;
                steps[i].inplace = c->inplace;
            }
        }
        plan->exact = true;
        status = npu__plan_memory_with(plan, steps);
        status = status            ? status
            : npu__number_bound(p) ? npu__place_groups(p, steps, diag)
                                   : NPU_ERR_NO_MEMORY;
    }
    npu__free(&p->allocator, steps, bytes);
    return status ? npu__fail(diag, status, "program: %s", npu_status_text(status)) : NPU_OK;
}

static bool npu__add_move(npu_allocator *a, npu__move **moves, uint32_t *num, uint32_t *cap,
                          const npu_plan *plan, uint32_t value, uint32_t from, uint32_t to)
{
    npu__move *m;
    if (!npu__reserve(a, (void **)moves, cap, (uint64_t)*num + 1, sizeof **moves)) {
        return false;
    }
    m = &(*moves)[(*num)++];
    memset(m, 0, sizeof *m);
    m->value = value;
    m->from = from;
    m->to = to;
    m->bytes = npu__value_size(plan->graph, value);
    m->source.buffer = m->target.buffer = NPU_NO_INDEX;
    if (from != NPU_NO_INDEX) {
        m->source = npu__place_of(plan, value, from);
    }
    if (to != NPU_NO_INDEX) {
        m->target = npu__place_of(plan, value, to);
    }
    return true;
}
#define NPU__ADD_MOVE(p, array, value, from, to) \
    npu__add_move(&(p)->allocator, &(p)->array, &(p)->num_##array, &(p)->cap_##array, (p)->plan, (value), (from), (to))

/* The backend on which a value is made; NPU_NO_INDEX = it has no producer. */
static uint32_t npu__home(const npu_plan *plan, uint32_t value)
{
    uint32_t producer = plan->graph->values[value].producer;
    return producer ? plan->targets[producer].backend : NPU_NO_INDEX;
}

/* What a state holds in the next run: itself where no npu_update names another value. */
static uint32_t npu__state_next(const npu_graph *g, uint32_t state)
{
    for (uint32_t i = 0; i < g->num_updates; i++) {
        if (g->updates[i].a == state) {
            return g->updates[i].b;
        }
    }
    return state;
}

static bool npu__plan_states(npu_program *p)
{
    const npu_graph *g = p->plan->graph;
    for (uint32_t i = 1; i < g->num_values; i++) {
        uint32_t next = g->values[i].role == NPU_ROLE_STATE ? npu__state_next(g, i) : 0;
        if (next &&
            (!NPU__RESERVE(p, states, 1) ||
             !NPU__ADD_MOVE(p, results, next, npu__home(p->plan, next), NPU_NO_INDEX))) {
            return false;
        }
        if (next) {
            p->states[p->num_states++] = i;
        }
    }
    return true;
}

static bool npu__plan_moves(npu_program *p)
{
    const npu_plan *plan = p->plan;
    const npu_graph *g = plan->graph;
    bool ok = true;
    for (uint32_t i = 0; ok && i < plan->num_steps; i++) {
        const npu_step *s = &plan->steps[i];
        for (uint32_t k = 0; ok && s->type == NPU_STEP_TRANSFER && k < s->num_outputs; k++) {
            ok = NPU__ADD_MOVE(p, moves, s->outputs[k].id, s->from, s->backend);
        }
    }
    for (uint32_t i = 0; ok && i < plan->num_storage; i++) {
        const npu__storage *s = &plan->storage[i];
        if (s->value && g->values[s->value].producer == 0 && s->kind == NPU__ARENA) {
            ok = NPU__ADD_MOVE(p, feeds, s->value, NPU_NO_INDEX, s->backend);
        }
    }
    for (uint32_t i = 0; ok && i < g->num_outputs; i++) {
        ok = NPU__ADD_MOVE(p, results, g->outputs[i].a, npu__home(plan, g->outputs[i].a), NPU_NO_INDEX);
    }
    return ok && npu__plan_states(p);
}

/* ---- weights ---- */

static npu_status npu__check_weights(const npu_graph *g, npu_diag *diag)
{
    for (uint32_t i = 1; i < g->num_values; i++) {
        const npu__value *v = &g->values[i];
        if (v->role == NPU_ROLE_PARAM && v->num_uses && !g->data[v->data].data && npu__value_size(g, i)) {
            if (diag && diag->status == NPU_OK) {
                diag->value = i;
            }
            return npu__fail(diag, NPU_ERR_MISSING_WEIGHT,
                             "parameter '%s' has no data: npu_param_bind it first", g->names[v->name]);
        }
    }
    return NPU_OK;
}

static npu_status npu__load_weights(npu_program *p, npu_diag *diag)
{
    const npu_plan *plan = p->plan;
    npu_status status = NPU_OK;
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        const npu_backend *backend = plan->backends[b];
        if (plan->memory[b].weights == 0 || (backend->traits & NPU_BACKEND_HOST)) {
            continue;
        }
        p->weights[b].size = (uint32_t)sizeof p->weights[b];
        status = backend->alloc(backend->ctx, 0, plan->memory[b].weights + backend->regions[0].slack,
                                backend->regions[0].alignment, &p->weights[b]);
        if (status) {
            p->weights[b].size = 0;
            return npu__fail(diag, status, "%s: %llu bytes for weights: %s", backend->name,
                             (unsigned long long)plan->memory[b].weights, npu_status_text(status));
        }
    }
    for (uint32_t i = 0; i < plan->num_storage && status == NPU_OK; i++) {
        const npu__storage *s = &plan->storage[i];
        const npu_backend *backend = plan->backends[s->backend];
        if (s->kind == NPU__WEIGHT && s->size && !(backend->traits & NPU_BACKEND_HOST)) {
            const npu__value *v = &plan->graph->values[s->value];
            status = backend->upload(backend->ctx, &p->weights[s->backend], s->offset,
                                     plan->graph->data[v->data].data, s->size, NULL);
            if (status) {
                npu__fail(diag, status, "%s: upload of weight '%s': %s", backend->name,
                          plan->graph->names[v->name], npu_status_text(status));
            }
        }
    }
    return status;
}

NPU_IR_API npu_status npu_program_create(npu_program **out, const npu_plan *plan, npu_diag *diag)
{
    npu_diag local_diag;
    npu_program *p;
    uint32_t *local;
    npu_status status = NPU_ERR_NO_MEMORY;
    *out = NULL;
    diag = diag ? diag : &local_diag;
    memset(diag, 0, sizeof *diag);
    if (!plan) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "program: needs a plan");
    }
    p = (npu_program *)npu__alloc_zero(&plan->allocator, sizeof *p);
    local = (uint32_t *)npu__alloc_zero(&plan->allocator, plan->graph->num_values * sizeof *local);
    if (p && local) {
        p->allocator = plan->allocator;
        p->plan = npu__plan_clone(plan, diag);
        status = p->plan ? npu__check_weights(plan->graph, diag) : NPU_ERR_NO_MEMORY;
        status = status ? status : npu__compile_all(p, local, diag);
        status = status ? status : npu__match_groups(p);
        status = status ? status : npu__plan_program_memory(p, diag);
        status = status ? status : npu__plan_moves(p) ? NPU_OK : NPU_ERR_NO_MEMORY;
        status = status ? status : npu__load_weights(p, diag);
    }
    npu__free(&plan->allocator, local, plan->graph->num_values * sizeof *local);
    if (status) {
        if (p) {
            p->allocator = plan->allocator;
        }
        npu_program_destroy(p);
        return npu__fail(diag, status, "program: %s", npu_status_text(status));
    }
    *out = p;
    return NPU_OK;
}

NPU_IR_API void npu_program_destroy(npu_program *p)
{
    npu_allocator a;
    if (!p) {
        return;
    }
    a = p->allocator;
    for (uint32_t i = 0; i < p->num_groups; i++) {
        npu__group_release(p, &p->groups[i]);
    }
    for (uint32_t b = 0; p->plan && b < p->plan->desc.num_backends; b++) {
        if (p->weights[b].size) {
            p->plan->backends[b]->free(p->plan->backends[b]->ctx, &p->weights[b]);
        }
    }
    if (p->step_group) {
        npu__free(&a, p->step_group, p->plan->num_steps * sizeof *p->step_group);
    }
    NPU__RELEASE(p, groups);
    NPU__RELEASE(p, bound);
    NPU__RELEASE(p, moves);
    NPU__RELEASE(p, feeds);
    NPU__RELEASE(p, results);
    NPU__RELEASE(p, states);
    npu_plan_destroy(p->plan);
    npu__free(&a, p, sizeof *p);
}

NPU_IR_API const npu_plan *npu_program_plan(const npu_program *program) { return program->plan; }

/* ---- exec ---- */

/* Memory behind a graph input, output or state. */
typedef struct npu__slot {
    const void *given;   /* the caller's, NULL = not bound */
    void *own;           /* the exec's: outputs and states always, inputs when the caller's is not aligned */
    size_t size;
    uint32_t value;
    bool staged;         /* the backend uses own, and the caller's is copied to or from it */
} npu__slot;

struct npu_exec {
    npu_allocator allocator;
    npu_exec_desc desc;
    npu_program *program;
    npu_plan *owned_plan;
    bool owns_program;
    npu__slot *inputs, *outputs, *states;     /* per graph input, output, state */
    npu_buffer *buffers;                      /* all buffers of all backends, one after the other */
    npu_buffer **tables;                      /* the same as pointers: what bindings hold */
    uint32_t num_all_buffers;
    uint32_t first_buffer[NPU__MAX_BACKENDS];
    npu_binding *bindings;                    /* per group */
    void *staging;                            /* for moves between two devices */
    size_t staging_size;
    NPU__ARRAY(npu_profile_step, profile);
    uint32_t current_step;
    uint64_t origin_ns;
    uint32_t failed_op;
    bool ran;
    npu_diag diag;
};

static npu_status npu__exec_fail(npu_exec *e, npu_status status, const char *format, ...) NPU_IR_PRINTF(3, 4);
static npu_status npu__exec_fail(npu_exec *e, npu_status status, const char *format, ...)
{
    va_list args;
    memset(&e->diag, 0, sizeof e->diag);
    e->diag.status = status;
    va_start(args, format);
#ifndef NPU_IR_NO_STRINGS
    vsnprintf(e->diag.message, sizeof e->diag.message, format, args);
#else
    (void)format;
#endif
    va_end(args);
    return status;
}

static bool npu__slots_init(npu_exec *e, npu__slot **slots, uint32_t num)
{
    *slots = (npu__slot *)npu__alloc_zero(&e->allocator, num * sizeof **slots);
    return *slots != NULL;
}

static bool npu__slot_set(npu_exec *e, npu__slot *slot, uint32_t value, bool own)
{
    const npu_graph *g = e->program->plan->graph;
    slot->value = value;
    slot->size = (size_t)npu__value_size(g, value);
    if (own) {
        slot->own = npu__alloc_zero(&e->allocator, slot->size);
    }
    return !own || slot->own;
}

static npu_status npu__exec_slots(npu_exec *e)
{
    const npu_graph *g = e->program->plan->graph;
    bool ok = npu__slots_init(e, &e->inputs, g->num_inputs) &&
        npu__slots_init(e, &e->outputs, g->num_outputs) &&
        npu__slots_init(e, &e->states, e->program->num_states);
    for (uint32_t i = 0; ok && i < g->num_inputs; i++) {
        ok = npu__slot_set(e, &e->inputs[i], g->inputs[i], false);
    }
    for (uint32_t i = 0; ok && i < g->num_outputs; i++) {
        ok = npu__slot_set(e, &e->outputs[i], g->outputs[i].a, true);
    }
    for (uint32_t i = 0; ok && i < e->program->num_states; i++) {
        ok = npu__slot_set(e, &e->states[i], e->program->states[i], true);
    }
    return ok ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static npu_status npu__exec_buffers(npu_exec *e, npu_diag *diag)
{
    const npu_program *p = e->program;
    const npu_plan *plan = p->plan;
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        e->first_buffer[b] = e->num_all_buffers;
        e->num_all_buffers += p->num_buffers[b];
    }
    e->buffers = (npu_buffer *)npu__alloc_zero(&e->allocator, e->num_all_buffers * sizeof *e->buffers);
    e->tables = (npu_buffer **)npu__alloc_zero(&e->allocator, e->num_all_buffers * sizeof *e->tables);
    if (!e->buffers || !e->tables) {
        return NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < e->num_all_buffers; i++) {
        e->tables[i] = &e->buffers[i];
    }
    for (uint32_t b = 0; b < plan->desc.num_backends; b++) {
        const npu_backend *backend = plan->backends[b];
        npu_buffer *arena = &e->buffers[e->first_buffer[b]];
        npu_status status;
        arena[1] = p->weights[b];
        if (plan->memory[b].activations == 0 && plan->memory[b].no_reuse == 0 && p->num_buffers[b] == 2) {
            continue; /* the backend has nothing to do with this plan */
        }
        arena->size = (uint32_t)sizeof *arena;
        status = backend->alloc(backend->ctx, 0, plan->memory[b].activations + backend->regions[0].slack,
                                plan->alignment[b], arena);
        if (status) {
            arena->size = 0;
            return npu__fail(diag, status, "%s: %llu bytes for activations: %s", backend->name,
                             (unsigned long long)plan->memory[b].activations, npu_status_text(status));
        }
    }
    return NPU_OK;
}

static npu_buffer *npu__exec_buffer(const npu_exec *e, uint32_t backend, uint32_t index)
{
    return &e->buffers[e->first_buffer[backend] + index];
}

/* Points every host buffer of a bound value to memory. */
static void npu__exec_rebind(npu_exec *e, uint32_t value, void *memory, size_t size)
{
    const npu_program *p = e->program;
    for (uint32_t i = 0; i < p->num_bound; i++) {
        if (p->bound[i].value == value) {
            npu_buffer *b = npu__exec_buffer(e, p->bound[i].backend, p->bound[i].index);
            b->size = (uint32_t)sizeof *b;
            b->handle = memory;
            b->bytes = size;
        }
    }
}

static void npu__exec_op_done(void *ctx, uint32_t op, uint64_t begin_ns, uint64_t end_ns)
{
    npu_exec *e = (npu_exec *)ctx;
    if (e->num_profile < e->cap_profile) {
        npu_profile_step *s = &e->profile[e->num_profile++];
        s->step = e->current_step;
        s->op = op;
        s->begin_ns = begin_ns - e->origin_ns;
        s->end_ns = end_ns - e->origin_ns;
    }
}

static bool npu__exec_bindings(npu_exec *e)
{
    const npu_program *p = e->program;
    e->bindings = (npu_binding *)npu__alloc_zero(&e->allocator, p->num_groups * sizeof *e->bindings);
    for (uint32_t i = 0; e->bindings && i < p->num_groups; i++) {
        npu_binding *b = &e->bindings[i];
        const npu__group *g = &p->groups[i];
        b->size = (uint32_t)sizeof *b;
        b->num_buffers = p->num_buffers[g->backend];
        b->buffers = &e->tables[e->first_buffer[g->backend]];
        b->places = g->places;
        b->scratch = g->scratch;
        b->parallel = e->desc.parallel;
        b->failed_op = &e->failed_op;
        b->clock = e->desc.clock;
        b->op_done = e->desc.profile ? npu__exec_op_done : NULL;
        b->op_done_ctx = e;
    }
    return e->bindings != NULL;
}

static bool npu__exec_staging(npu_exec *e)
{
    const npu_program *p = e->program;
    for (uint32_t i = 0; i < p->num_moves; i++) {
        e->staging_size = p->moves[i].bytes > e->staging_size ? (size_t)p->moves[i].bytes : e->staging_size;
    }
    for (uint32_t i = 0; i < p->num_states; i++) {
        e->staging_size += e->states[i].size;
    }
    e->staging = e->staging_size ? npu__alloc(&e->allocator, e->staging_size) : NULL;
    return e->staging || e->staging_size == 0;
}

static npu_status npu__exec_init(npu_exec *e, npu_diag *diag)
{
    const npu_program *p = e->program;
    npu_status status = npu__exec_slots(e);
    status = status ? status : npu__exec_buffers(e, diag);
    if (status == NPU_OK && (!npu__exec_bindings(e) || !npu__exec_staging(e))) {
        status = NPU_ERR_NO_MEMORY;
    }
    if (status == NPU_OK && e->desc.profile &&
        !NPU__RESERVE(e, profile, p->plan->num_steps + p->plan->graph->num_ops + 2)) {
        status = NPU_ERR_NO_MEMORY;
    }
    for (uint32_t i = p->plan->graph->num_outputs; status == NPU_OK && i-- > 0;) { /* backwards: the first of equal outputs is bound */
        npu__exec_rebind(e, e->outputs[i].value, e->outputs[i].own, e->outputs[i].size);
    }
    for (uint32_t i = 0; status == NPU_OK && i < p->num_states; i++) {
        npu__exec_rebind(e, e->states[i].value, e->states[i].own, e->states[i].size);
    }
    return status;
}

NPU_IR_API npu_status npu_exec_create(npu_exec **out, npu_program *program, const npu_exec_desc *desc,
                                      npu_diag *diag)
{
    npu_diag local;
    npu_allocator a;
    npu_exec *e;
    npu_status status;
    *out = NULL;
    diag = diag ? diag : &local;
    memset(diag, 0, sizeof *diag);
    if (!program || (desc && desc->_canary)) {
        return npu__fail(diag, NPU_ERR_INVALID_ARGUMENT, "exec: needs a program and a zeroed desc");
    }
    a = desc && desc->allocator ? *desc->allocator : program->allocator;
    e = (npu_exec *)npu__alloc_zero(&a, sizeof *e);
    if (!e) {
        return npu__fail(diag, NPU_ERR_NO_MEMORY, "exec: out of memory");
    }
    e->allocator = a;
    e->program = program;
    if (desc) {
        e->desc = *desc;
    }
    e->desc.timeout_ns = e->desc.timeout_ns ? e->desc.timeout_ns : 10000000000u;
    e->desc.clock = e->desc.clock ? e->desc.clock : npu__now;
    status = npu__exec_init(e, diag);
    if (status) {
        npu_exec_destroy(e);
        return npu__fail(diag, status, "exec: %s", npu_status_text(status));
    }
    *out = e;
    return NPU_OK;
}

NPU_IR_API npu_status npu_exec_create_simple(npu_exec **out, const npu_graph *g,
                                             const npu_backend *const *backends, uint32_t num_backends,
                                             npu_diag *diag)
{
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_status status;
    *out = NULL;
    memset(&desc, 0, sizeof desc);
    desc.backends = backends;
    desc.num_backends = num_backends;
    desc.allocator = g ? &g->allocator : NULL;
    status = npu_plan_create(&plan, g, &desc, diag);
    status = status ? status : npu_program_create(&program, plan, diag);
    status = status ? status : npu_exec_create(out, program, NULL, diag);
    npu_plan_destroy(plan); /* the program has its own */
    if (status) {
        npu_program_destroy(program);
        return status;
    }
    (*out)->owns_program = true;
    return NPU_OK;
}

static void npu__slots_free(npu_exec *e, npu__slot *slots, uint32_t num)
{
    for (uint32_t i = 0; slots && i < num; i++) {
        npu__free(&e->allocator, slots[i].own, slots[i].size);
    }
    npu__free(&e->allocator, slots, num * sizeof *slots);
}

NPU_IR_API void npu_exec_destroy(npu_exec *e)
{
    const npu_graph *g;
    const npu_plan *plan;
    npu_allocator a;
    if (!e) {
        return;
    }
    plan = e->program->plan;
    g = plan->graph;
    a = e->allocator;
    for (uint32_t b = 0; e->buffers && b < plan->desc.num_backends; b++) {
        npu_buffer *arena = npu__exec_buffer(e, b, 0);
        if (arena->size) {
            plan->backends[b]->free(plan->backends[b]->ctx, arena);
        }
    }
    npu__slots_free(e, e->inputs, g->num_inputs);
    npu__slots_free(e, e->outputs, g->num_outputs);
    npu__slots_free(e, e->states, e->program->num_states);
    npu__free(&a, e->buffers, e->num_all_buffers * sizeof *e->buffers);
    npu__free(&a, e->tables, e->num_all_buffers * sizeof *e->tables);
    npu__free(&a, e->bindings, e->program->num_groups * sizeof *e->bindings);
    npu__free(&a, e->staging, e->staging_size);
    NPU__RELEASE(e, profile);
    if (e->owns_program) {
        npu_program_destroy(e->program);
    }
    npu__free(&a, e, sizeof *e);
}

NPU_IR_API const npu_program *npu_exec_program(const npu_exec *exec) { return exec->program; }
NPU_IR_API const npu_diag *npu_exec_diag(const npu_exec *exec) { return &exec->diag; }

/* ---- binding ---- */

static uint32_t npu__slot_alignment(const npu_exec *e, const npu__slot *slot)
{
    const npu_graph *g = e->program->plan->graph;
    uint32_t bytes = npu_dtype_bits((npu_dtype)g->specs[g->values[slot->value].spec]->dtype) / 8;
    return bytes ? (bytes > 8 ? 8 : bytes) : 1;
}

/* Checks size and alignment; memory that is not aligned is staged through the exec's own. */
static npu_status npu__slot_bind(npu_exec *e, npu__slot *slot, const char *what, uint32_t index,
                                 const void *data, size_t size)
{
    if (size != slot->size || (!data && size)) {
        return npu__exec_fail(e, data || !size ? NPU_ERR_SHAPE : NPU_ERR_INVALID_ARGUMENT,
                              "%s %u: %zu bytes given, expected %zu%s", what, (unsigned)index, size,
                              slot->size, data || !size ? "" : "; data is NULL");
    }
    slot->staged = (uintptr_t)data % npu__slot_alignment(e, slot) != 0;
    if (slot->staged && !slot->own && (slot->own = npu__alloc(&e->allocator, slot->size)) == NULL) {
        return npu__exec_fail(e, NPU_ERR_NO_MEMORY,
                              "%s %u: memory that is not aligned needs a copy: out of memory", what,
                              (unsigned)index);
    }
    slot->given = data;
    return NPU_OK;
}

static int npu__input_index(const npu_graph *g, const char *name)
{
    npu_value v = npu_graph_find(g, name);
    for (uint32_t i = 0; v.id && i < g->num_inputs; i++) {
        if (g->inputs[i] == v.id) {
            return (int)i;
        }
    }
    return -1;
}

static int npu__output_index(const npu_graph *g, const char *name)
{
    for (uint32_t i = 0; name && i < g->num_outputs; i++) {
        if (strcmp(g->names[g->outputs[i].b], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

NPU_IR_API npu_status npu_exec_set_input_at(npu_exec *e, uint32_t index, const void *data, size_t size)
{
    npu__slot *slot;
    npu_status status;
    if (index >= e->program->plan->graph->num_inputs) {
        return npu__exec_fail(e, NPU_ERR_NOT_FOUND, "input %u: the graph has %u inputs", (unsigned)index,
                              (unsigned)e->program->plan->graph->num_inputs);
    }
    slot = &e->inputs[index];
    status = npu__slot_bind(e, slot, "input", index, data, size);
    if (status == NPU_OK) {
        npu__exec_rebind(e, slot->value, slot->staged ? slot->own : (void *)(uintptr_t)data, size);
    }
    return status;
}

NPU_IR_API npu_status npu_exec_set_input(npu_exec *e, const char *name, const void *data, size_t size)
{
    int i = npu__input_index(e->program->plan->graph, name);
    return i < 0
        ? npu__exec_fail(e, NPU_ERR_NOT_FOUND, "input '%s': the graph has no such input", name ? name : "")
        : npu_exec_set_input_at(e, (uint32_t)i, data, size);
}

/* Only the first of several outputs that list one value is written by kernels; the others are copied from it.
   */
static bool npu__output_is_first(const npu_exec *e, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (e->outputs[i].value == e->outputs[index].value) {
            return false;
        }
    }
    return true;
}

NPU_IR_API npu_status npu_exec_set_output_at(npu_exec *e, uint32_t index, void *data, size_t size)
{
    const npu_graph *g = e->program->plan->graph;
    npu__slot *slot;
    npu_status status;
    if (index >= g->num_outputs) {
        return npu__exec_fail(e, NPU_ERR_NOT_FOUND, "output %u: the graph has %u outputs", (unsigned)index,
                              (unsigned)g->num_outputs);
    }
    slot = &e->outputs[index];
    status = npu__slot_bind(e, slot, "output", index, data, size);
    if (status == NPU_OK && npu__output_is_first(e, index) && g->values[slot->value].producer) {
        npu__exec_rebind(e, slot->value, slot->staged ? slot->own : data, size);
    }
    return status;
}

NPU_IR_API npu_status npu_exec_set_output(npu_exec *e, const char *name, void *data, size_t size)
{
    int i = npu__output_index(e->program->plan->graph, name);
    return i < 0
        ? npu__exec_fail(e, NPU_ERR_NOT_FOUND, "output '%s': the graph has no such output", name ? name : "")
        : npu_exec_set_output_at(e, (uint32_t)i, data, size);
}

NPU_IR_API const void *npu_exec_output(const npu_exec *e, uint32_t index, size_t *size)
{
    bool valid = index < e->program->plan->graph->num_outputs && e->ran;
    if (size) {
        *size = valid ? e->outputs[index].size : 0;
    }
    return !valid ? NULL : e->outputs[index].given ? e->outputs[index].given : e->outputs[index].own;
}

NPU_IR_API const void *npu_exec_output_by_name(const npu_exec *e, const char *name, size_t *size)
{
    int i = npu__output_index(e->program->plan->graph, name);
    return npu_exec_output(e, i < 0 ? NPU_NO_INDEX : (uint32_t)i, size);
}

/* ---- running ---- */

static bool npu__is_host(const npu_exec *e, uint32_t backend)
{
    return (e->program->plan->backends[backend]->traits & NPU_BACKEND_HOST) != 0;
}

/* The address of a place on a host backend; weights keep their own. */
static char *npu__host_address(const npu_exec *e, uint32_t backend, const npu_place *place, uint32_t value)
{
    const npu_graph *g = e->program->plan->graph;
    char *base;
    if (place->buffer == NPU_NO_INDEX) {
        return (char *)(uintptr_t)g->data[g->values[value].data].data;
    }
    base = (char *)npu__exec_buffer(e, backend, place->buffer)->handle;
    return base ? base + place->offset : NULL; /* what has no bytes may have no memory */
}

static npu_status npu__download(npu_exec *e, void *to, uint32_t from, const npu_place *place, uint32_t value,
                                uint64_t bytes)
{
    const npu_backend *b = e->program->plan->backends[from];
    npu_status status = NPU_OK;
    if (npu__is_host(e, from)) {
        const char *source = npu__host_address(e, from, place, value);
        if (bytes && source != (const char *)to) {
            memmove(to, source, (size_t)bytes);
        }
    } else if (bytes) {
        status =
            b->download(b->ctx, to, npu__exec_buffer(e, from, place->buffer), place->offset, bytes, NULL);
    }
    return status ? npu__exec_fail(e, status, "download of value %u from %s: %s", (unsigned)value, b->name,
                                   npu_status_text(status))
                  : NPU_OK;
}

static npu_status npu__upload(npu_exec *e, uint32_t to, const npu_place *place, const void *from,
                              uint32_t value, uint64_t bytes)
{
    const npu_backend *b = e->program->plan->backends[to];
    npu_status status = bytes
        ? b->upload(b->ctx, npu__exec_buffer(e, to, place->buffer), place->offset, from, bytes, NULL)
        : NPU_OK;
    return status ? npu__exec_fail(e, status, "upload of value %u to %s: %s", (unsigned)value, b->name,
                                   npu_status_text(status))
                  : NPU_OK;
}

static npu_status npu__run_move(npu_exec *e, const npu__move *m)
{
    if (npu__is_host(e, m->from)) {
        return npu__upload(e, m->to, &m->target, npu__host_address(e, m->from, &m->source, m->value),
                           m->value, m->bytes);
    }
    if (npu__is_host(e, m->to)) {
        return npu__download(e, npu__host_address(e, m->to, &m->target, m->value), m->from, &m->source,
                             m->value, m->bytes);
    }
    {
        npu_status status = npu__download(e, e->staging, m->from, &m->source, m->value, m->bytes);
        return status ? status : npu__upload(e, m->to, &m->target, e->staging, m->value, m->bytes);
    }
}

/* Host memory that holds a value without a producer during a run. */
static const void *npu__source_data(const npu_exec *e, uint32_t value)
{
    const npu_graph *g = e->program->plan->graph;
    for (uint32_t i = 0; i < g->num_inputs && g->values[value].role == NPU_ROLE_INPUT; i++) {
        if (e->inputs[i].value == value) {
            return e->inputs[i].staged ? e->inputs[i].own : e->inputs[i].given;
        }
    }
    for (uint32_t i = 0; i < e->program->num_states && g->values[value].role == NPU_ROLE_STATE; i++) {
        if (e->states[i].value == value) {
            return e->states[i].own;
        }
    }
    return g->data[g->values[value].data].data;
}

static npu_status npu__run_inputs(npu_exec *e)
{
    const npu_program *p = e->program;
    const npu_graph *g = p->plan->graph;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < g->num_inputs; i++) {
        npu__slot *slot = &e->inputs[i];
        if (!slot->given && slot->size) {
            char label[16];
            return npu__exec_fail(e, NPU_ERR_MISSING_FEED, "input '%s' (%u) is not bound",
                                  npu__value_label(g, slot->value, label), (unsigned)i);
        }
        if (slot->staged) {
            memcpy(slot->own, slot->given, slot->size);
        }
    }
    for (uint32_t i = 0; i < p->num_feeds && status == NPU_OK; i++) {
        const npu__move *m = &p->feeds[i];
        status = npu__upload(e, m->to, &m->target, npu__source_data(e, m->value), m->value, m->bytes);
    }
    return status;
}

/* Brings the value of a result to host memory. */
static npu_status npu__fetch(npu_exec *e, const npu__move *m, void *to)
{
    if (m->from != NPU_NO_INDEX) {
        return npu__download(e, to, m->from, &m->source, m->value, m->bytes);
    }
    if (m->bytes) {
        memmove(to, npu__source_data(e, m->value), (size_t)m->bytes);
    }
    return NPU_OK;
}

static npu_status npu__run_outputs(npu_exec *e)
{
    const npu_program *p = e->program;
    const npu_graph *g = p->plan->graph;
    npu_status status = NPU_OK;
    char *stage = (char *)e->staging;
    for (uint32_t i = 0; i < g->num_outputs && status == NPU_OK; i++) {
        npu__slot *slot = &e->outputs[i];
        status = npu__fetch(e, &p->results[i], slot->given ? (void *)(uintptr_t)slot->given : slot->own);
    }
    /* All next states are read before any state is written: one may be the old content of another. */
    for (uint32_t i = 0; i < p->num_states && status == NPU_OK; i++) {
        status = npu__fetch(e, &p->results[g->num_outputs + i], stage);
        stage += e->states[i].size;
    }
    stage = (char *)e->staging;
    for (uint32_t i = 0; i < p->num_states && status == NPU_OK; i++) {
        if (e->states[i].size) {
            memcpy(e->states[i].own, stage, e->states[i].size);
        }
        stage += e->states[i].size;
    }
    return status;
}

static npu_status npu__run_group(npu_exec *e, uint32_t step)
{
    const npu_program *p = e->program;
    uint32_t index = p->step_group[step];
    const npu_backend *b = p->plan->backends[p->groups[index].backend];
    npu_fence fence = 0;
    npu_status status;
    e->failed_op = 0;
    status =
        b->submit(b->ctx, p->groups[index].compiled.program, &e->bindings[index], b->wait ? &fence : NULL);
    if (status == NPU_OK && fence) {
        status = b->wait(b->ctx, fence, e->desc.timeout_ns);
    }
    if (status) {
        npu_op op = npu__make_op(e->failed_op);
        const npu_op_def *def = npu_op_definition(p->plan->graph, op);
        npu__exec_fail(e, status, "step %u on %s%s%s: %s", (unsigned)step, b->name, def ? ": " : "",
                       def ? def->name : "", npu_status_text(status));
        e->diag.op = e->failed_op;
    }
    return status;
}

static void npu__profile_add(npu_exec *e, uint32_t step, uint64_t begin)
{
    if (e->desc.profile && e->num_profile < e->cap_profile) {
        npu_profile_step *s = &e->profile[e->num_profile++];
        s->step = step;
        s->op = 0;
        s->begin_ns = begin - e->origin_ns;
        s->end_ns = e->desc.clock() - e->origin_ns;
    }
}

static npu_status npu__run_steps(npu_exec *e)
{
    const npu_program *p = e->program;
    const npu_plan *plan = p->plan;
    const npu__move *move = p->moves;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < plan->num_steps && status == NPU_OK; i++) {
        uint64_t begin = e->desc.profile ? e->desc.clock() : 0;
        if (e->desc.poll && !e->desc.poll(e->desc.poll_ctx, i)) {
            return npu__exec_fail(e, NPU_ERR_CANCELLED, "cancelled before step %u of %u", (unsigned)i,
                                  (unsigned)plan->num_steps);
        }
        e->current_step = i;
        if (plan->steps[i].type == NPU_STEP_PARTITION) {
            status = npu__run_group(e, i);
        } else {
            for (uint32_t k = 0; k < plan->steps[i].num_outputs && status == NPU_OK; k++) {
                status = npu__run_move(e, &move[k]);
            }
            move += plan->steps[i].num_outputs;
        }
        npu__profile_add(e, i, begin);
    }
    return status;
}

NPU_IR_API npu_status npu_exec_run(npu_exec *e)
{
    npu_status status;
    uint64_t begin;
    e->num_profile = 0;
    e->origin_ns = begin = e->desc.profile ? e->desc.clock() : 0;
    status = npu__run_inputs(e);
    npu__profile_add(e, NPU_NO_INDEX, begin);
    status = status ? status : npu__run_steps(e);
    if (status == NPU_OK) {
        begin = e->desc.profile ? e->desc.clock() : 0;
        status = npu__run_outputs(e);
        npu__profile_add(e, NPU_NO_INDEX, begin);
    }
    e->ran = e->ran || status == NPU_OK;
    return status;
}

NPU_IR_API npu_status npu_exec_reset_state(npu_exec *e)
{
    for (uint32_t i = 0; i < e->program->num_states; i++) {
        memset(e->states[i].own, 0, e->states[i].size);
    }
    return NPU_OK;
}

NPU_IR_API const npu_profile_step *npu_exec_profile(const npu_exec *e, uint32_t *count)
{
    *count = e->num_profile;
    return e->profile;
}

/* -------------------------------------------------------------------------------------------------------- */

/* Only the public API of plan and exec is used here. Numbers are printed from integers: the same in every
   locale. */

#define NPU__REPORT_MAX_LABELS 8 /* of one line */
#define NPU__REPORT_MAX_ROWS 32  /* of one summary */

/* "512 B", "4.0 KiB" */
static const char *npu__format_bytes(char buf[24], uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    uint32_t unit = 0;
    if (bytes < 1024) {
        snprintf(buf, 24, "%u B", (unsigned)bytes);
        return buf;
    }
    while (bytes >= 1024 * 1024 && unit + 1 < NPU__COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buf, 24, "%llu.%u %s", (unsigned long long)(bytes / 1024), (unsigned)(bytes % 1024 * 10 / 1024),
             units[unit]);
    return buf;
}

/* "1.234 ms" */
static const char *npu__format_time(char buf[32], uint64_t ns)
{
    snprintf(buf, 32, "%llu.%03u ms", (unsigned long long)(ns / 1000000), (unsigned)(ns / 1000 % 1000));
    return buf;
}

/* What people call an op: its name, else that of its kind. */
static const char *npu__op_label(const npu_graph *g, npu_op op)
{
    const char *name = npu_op_name(g, op);
    const npu_op_def *def = npu_op_definition(g, op);
    return name[0] || !def ? name : def->kind ? def->schema->name : def->name;
}

static const char *npu__backend_label(const npu_plan *plan, int backend)
{
    return backend < 0 ? "nowhere" : npu_plan_backend(plan, (uint32_t)backend)->name;
}

static void npu__text_more(npu_text *text, uint32_t shown, uint32_t count)
{
    if (shown < count) {
        npu_text_printf(text, " ... %u more", (unsigned)(count - shown));
    }
    npu__text_str(text, "\n");
}

/* ---- plan: steps ---- */

/* Where a step runs: "npu0", or "npu0 -> cpu". */
static const char *npu__step_where(char buf[64], const npu_plan *plan, const npu_step *step)
{
    if (step->type == NPU_STEP_TRANSFER) {
        snprintf(buf, 64, "%.28s -> %.28s", npu__backend_label(plan, (int)step->from),
                 npu__backend_label(plan, (int)step->backend));
    } else {
        snprintf(buf, 64, "%.60s", npu__backend_label(plan, (int)step->backend));
    }
    return buf;
}

static int npu__where_width(const npu_plan *plan)
{
    char buf[64];
    size_t width = 0;
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        size_t len = strlen(npu__step_where(buf, plan, npu_plan_step(plan, i)));
        width = len > width ? len : width;
    }
    return (int)width;
}

/* "step 0  partition  npu0" and blanks up to the next column */
static void npu__print_step_head(npu_text *text, const npu_plan *plan, uint32_t i, int width)
{
    const npu_step *step = npu_plan_step(plan, i);
    char where[64], number[16];
    int digits = snprintf(number, sizeof number, "%u", (unsigned)npu_plan_num_steps(plan) - 1);
    npu_text_printf(text, "  step %-*u  %-9s  %-*s", digits, (unsigned)i,
                    step->type == NPU_STEP_TRANSFER ? "transfer" : "partition", width,
                    npu__step_where(where, plan, step));
}

static void npu__print_step(npu_text *text, const npu_plan *plan, uint32_t i, int width)
{
    const npu_step *step = npu_plan_step(plan, i);
    const npu_graph *g = npu_plan_graph(plan);
    bool moves = step->type == NPU_STEP_TRANSFER;
    uint32_t count = moves ? step->num_outputs : step->num_ops,
             shown = count < NPU__REPORT_MAX_LABELS ? count : NPU__REPORT_MAX_LABELS;
    char size[24], label[16];
    npu__print_step_head(text, plan, i, width);
    if (moves) {
        npu_text_printf(text, "  %10s  ", npu__format_bytes(size, step->bytes));
    } else {
        npu_text_printf(text, "  %6u op%s  ", (unsigned)count, count == 1 ? " " : "s");
    }
    for (uint32_t k = 0; k < shown; k++) {
        npu_value v = npu__make_value(moves ? step->outputs[k].id : 0);
        npu_op maker = npu_value_producer(g, v, NULL);
        npu_text_printf(text, " %s",
                        moves ? npu__value_label(g, v.id, label) : npu__op_label(g, step->ops[k]));
        if (maker.id && !npu_value_has_name(g, v)) {
            npu_text_printf(text, " (%s)", npu__op_label(g, maker));
        }
    }
    npu__text_more(text, shown, count);
}

/* ---- plan: refused ops ---- */

/* Ops of one kind that went to one place for one reason. */
typedef struct npu__refusal {
    const npu_op_def *def;
    const char *words;
    uint32_t reason, count;
    int backend;
} npu__refusal;

static bool npu__same_refusal(const npu__refusal *a, const npu__refusal *b)
{
    return a->reason == b->reason && a->backend == b->backend && strcmp(a->def->name, b->def->name) == 0 &&
           strcmp(a->words, b->words) == 0;
}

static npu__refusal npu__refusal_of(const npu_plan *plan, uint32_t op)
{
    npu__refusal r;
    npu_op handle = npu__make_op(op);
    memset(&r, 0, sizeof r);
    r.backend = npu_plan_op_backend(plan, handle, &r.reason, &r.words);
    r.def = npu_op_definition(npu_plan_graph(plan), handle);
    r.words = r.words ? r.words : "";
    r.count = 1;
    return r;
}

/* Counts the ops that their first choice did not get; returns the number of rows, and in *rest the ops that
   found no row. */
static uint32_t npu__collect_refusals(const npu_plan *plan, npu__refusal rows[NPU__REPORT_MAX_ROWS],
                                      uint32_t *rest)
{
    uint32_t num_rows = 0, num_ops = npu_graph_num_ops(npu_plan_graph(plan));
    *rest = 0;
    for (uint32_t op = 1; op <= num_ops; op++) {
        npu__refusal r = npu__refusal_of(plan, op);
        uint32_t i = 0;
        if (r.reason == NPU_REASON_CLAIMED && r.backend >= 0) {
            continue;
        }
        while (i < num_rows && !npu__same_refusal(&rows[i], &r)) {
            i++;
        }
        if (i < num_rows) {
            rows[i].count++;
        } else if (num_rows < NPU__REPORT_MAX_ROWS) {
            rows[num_rows++] = r;
        } else {
            ++*rest;
        }
    }
    return num_rows;
}

static void npu__print_refusals(npu_text *text, const npu_plan *plan)
{
    npu__refusal rows[NPU__REPORT_MAX_ROWS];
    uint32_t rest, num_rows = npu__collect_refusals(plan, rows, &rest);
    size_t name_width = 0, where_width = 0;
    for (uint32_t i = 0; i < num_rows; i++) {
        size_t len = strlen(rows[i].def->name), where = strlen(npu__backend_label(plan, rows[i].backend));
        name_width = len > name_width ? len : name_width;
        where_width = where > where_width ? where : where_width;
    }
    if (num_rows) {
        npu_text_printf(text, "\nnot on %s\n", npu__backend_label(plan, 0));
    }
    for (uint32_t i = 0; i < num_rows; i++) {
        const npu__refusal *r = &rows[i];
        npu_text_printf(text, "  %4u x %-*s  -> %-*s  %s%s%s\n", (unsigned)r->count, (int)name_width,
                        r->def->name, (int)where_width, npu__backend_label(plan, r->backend),
                        npu_reason_text(r->reason), r->words[0] ? ": " : "", r->words);
    }
    if (rest) {
        npu_text_printf(text, "  %4u more ops\n", (unsigned)rest);
    }
}

NPU_IR_API void npu_plan_print(const npu_plan *plan, npu_text *text)
{
    const npu_graph *g = npu_plan_graph(plan);
    uint32_t num_steps = npu_plan_num_steps(plan);
    int width = npu__where_width(plan);
    npu_text_printf(text, "plan of %s: %u ops in %u step%s on", npu_graph_name(g),
                    (unsigned)npu_graph_num_ops(g), (unsigned)num_steps, num_steps == 1 ? "" : "s");
    for (uint32_t i = 0; i < npu_plan_num_backends(plan); i++) {
        npu_text_printf(text, "%s %s", i ? "," : "", npu__backend_label(plan, (int)i));
    }
    npu__text_str(text, "\n");
    for (uint32_t i = 0; i < num_steps; i++) {
        npu__print_step(text, plan, i, width);
    }
    npu__text_str(text, "\n");
    npu_plan_print_memory(plan, text);
    npu__print_refusals(text, plan);
}

NPU_IR_API void npu_plan_print_ops(const npu_plan *plan, npu_text *text)
{
    const npu_graph *g = npu_plan_graph(plan);
    for (uint32_t op = 1; op <= npu_graph_num_ops(g); op++) {
        npu__refusal r = npu__refusal_of(plan, op);
        npu_text_printf(text, "op %-4u %-10s  %-32s  %-20s  %s%s%s\n", (unsigned)op,
                        npu__backend_label(plan, r.backend), r.def->name, npu__op_label(g, npu__make_op(op)),
                        npu_reason_text(r.reason), r.words[0] ? ": " : "", r.words);
    }
}

NPU_IR_API void npu_plan_print_memory(const npu_plan *plan, npu_text *text)
{
    bool exact = true;
    npu_text_printf(text, "%-12s%12s%12s%12s%12s%12s%12s%14s%12s\n", "memory", "activations", "scratch",
                    "weights", "inputs", "outputs", "state", "lower bound", "no reuse");
    for (uint32_t i = 0; i < npu_plan_num_backends(plan); i++) {
        npu_memory m;
        char b[8][24];
        if (npu_plan_memory(plan, i, &m)) {
            continue;
        }
        exact = exact && m.exact;
        npu_text_printf(text, "  %-10s%12s%12s%12s%12s%12s%12s%14s%12s\n", npu__backend_label(plan, (int)i),
                        npu__format_bytes(b[0], m.activations), npu__format_bytes(b[1], m.scratch),
                        npu__format_bytes(b[2], m.weights), npu__format_bytes(b[3], m.inputs),
                        npu__format_bytes(b[4], m.outputs), npu__format_bytes(b[5], m.state),
                        npu__format_bytes(b[6], m.lower_bound), npu__format_bytes(b[7], m.no_reuse));
    }
    if (!exact) {
        npu__text_str(text, "  Scratch and results in place are known after compile only.\n");
    }
}

/* ---- plan: Graphviz ---- */

static const char *npu__backend_color(int backend)
{
    static const char *const colors[] = { "\"#a6dba0\"", "\"#92c5de\"", "\"#fdb863\"",
                                          "\"#c2a5cf\"", "\"#f4a582\"", "\"#80cdc1\"" };
    return backend < 0 ? "\"#ff6666\"" : colors[(uint32_t)backend % NPU__COUNT(colors)];
}

/* A box around the ops of one step. */
static void npu__dot_step(npu_text *text, const npu_plan *plan, uint32_t i)
{
    const npu_step *step = npu_plan_step(plan, i);
    npu_text_printf(
        text,
        "    subgraph cluster_%u {\n    style=\"rounded\"; color=gray60; fontname=\"sans-serif\"; label=\"%u  ",
        (unsigned)i, (unsigned)i);
    npu__text_escaped(text, npu__backend_label(plan, (int)step->backend));
    npu__text_str(text, "\";\n");
    for (uint32_t k = 0; k < step->num_ops; k++) {
        npu__dot_op(text, npu_plan_graph(plan), step->ops[k].id, npu__backend_color((int)step->backend));
    }
    npu__text_str(text, "    }\n");
}

NPU_IR_API void npu_plan_print_dot(const npu_plan *plan, npu_text *text)
{
    const npu_graph *g = npu_plan_graph(plan);
    npu__dot_head(text, npu_graph_name(g));
    npu__dot_sources(text, g);
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        if (npu_plan_step(plan, i)->type == NPU_STEP_PARTITION) {
            npu__dot_step(text, plan, i);
        }
    }
    for (uint32_t op = 1; op <= npu_graph_num_ops(g); op++) {
        if (npu_plan_op_backend(plan, npu__make_op(op), NULL, NULL) < 0) {
            npu__dot_op(text, g, op, npu__backend_color(-1));
        }
        npu__dot_operands(text, g, op);
    }
    npu__dot_outputs(text, g);
    npu__text_str(text, "}\n");
}

/* ---- profile ---- */

/* Time of all ops of one kind. */
typedef struct npu__kind_time {
    const char *name;
    uint64_t ns;
    uint32_t count;
} npu__kind_time;

static const npu_plan *npu__exec_plan(const npu_exec *exec)
{
    return npu_program_plan(npu_exec_program(exec));
}

static uint64_t npu__profile_total(const npu_profile_step *entries, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total = entries[i].end_ns > total ? entries[i].end_ns : total;
    }
    return total;
}

static uint32_t npu__per_mille(uint64_t part, uint64_t total)
{
    return total ? (uint32_t)(part * 1000 / total) : 0;
}

static void npu__print_profile_entry(npu_text *text, const npu_plan *plan, const npu_profile_step *entry,
                                     uint64_t total, int width)
{
    uint64_t ns = entry->end_ns - entry->begin_ns;
    uint32_t share = npu__per_mille(ns, total);
    char time[32];
    if (entry->step == NPU_NO_INDEX) {
        npu_text_printf(text, "  %-*s", width + 19, entry->begin_ns == 0 ? "inputs" : "outputs");
    } else {
        npu__print_step_head(text, plan, entry->step, width);
    }
    npu_text_printf(text, "  %14s  %3u.%u %%\n", npu__format_time(time, ns), (unsigned)(share / 10),
                    (unsigned)(share % 10));
}

/* Sums the ops by kind, the longest first; returns the number of rows. */
static uint32_t npu__collect_kinds(const npu_plan *plan, const npu_profile_step *entries, uint32_t count,
                                   npu__kind_time *rows)
{
    uint32_t num_rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        const npu_op_def *def = npu_op_definition(npu_plan_graph(plan), npu__make_op(entries[i].op));
        uint32_t k = 0;
        while (def && k < num_rows && strcmp(rows[k].name, def->name) != 0) {
            k++;
        }
        if (def && k < NPU__REPORT_MAX_ROWS) {
            npu__kind_time row = { "", 0, 0 };
            row = k < num_rows ? rows[k] : row;
            num_rows += k == num_rows;
            row.name = def->name;
            row.ns += entries[i].end_ns - entries[i].begin_ns;
            row.count++;
            for (; k > 0 && rows[k - 1].ns < row.ns; k--) {
                rows[k] = rows[k - 1];
            }
            rows[k] = row;
        }
    }
    return num_rows;
}

NPU_IR_API void npu_exec_print_profile(const npu_exec *exec, npu_text *text)
{
    const npu_plan *plan = npu__exec_plan(exec);
    uint32_t count = 0, num_kinds;
    const npu_profile_step *entries = npu_exec_profile(exec, &count);
    npu__kind_time kinds[NPU__REPORT_MAX_ROWS];
    uint64_t total = npu__profile_total(entries, count);
    int width = npu__where_width(plan);
    char time[32];
    if (count == 0) {
        npu__text_str(text, "no profile: set npu_exec_desc.profile and run\n");
        return;
    }
    npu_text_printf(text, "run of %s: %s\n", npu_graph_name(npu_plan_graph(plan)),
                    npu__format_time(time, total));
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].op == 0) {
            npu__print_profile_entry(text, plan, &entries[i], total, width);
        }
    }
    num_kinds = npu__collect_kinds(plan, entries, count, kinds);
    npu__text_str(text, num_kinds ? "\nops by kind\n" : "");
    for (uint32_t i = 0; i < num_kinds; i++) {
        uint32_t share = npu__per_mille(kinds[i].ns, total);
        npu_text_printf(text, "  %14s  %3u.%u %%  %5u x %s\n", npu__format_time(time, kinds[i].ns),
                        (unsigned)(share / 10), (unsigned)(share % 10), (unsigned)kinds[i].count,
                        kinds[i].name);
    }
}

/* ---- trace ---- */

static void npu__text_json(npu_text *text, const char *s)
{
    npu__text_str(text, "\"");
    npu__text_escaped(text, s);
    npu__text_str(text, "\"");
}

/* Nanoseconds as the microseconds of a trace. */
static void npu__text_micros(npu_text *text, const char *key, uint64_t ns)
{
    npu_text_printf(text, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void npu__trace_thread(npu_text *text, uint32_t id, const char *name)
{
    npu_text_printf(text,
                    "%s\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%u,\"args\":{\"name\":",
                    id ? "," : "", (unsigned)id);
    npu__text_json(text, name);
    npu__text_str(text, "}}");
}

static void npu__trace_name(npu_text *text, const npu_plan *plan, const npu_profile_step *entry)
{
    char where[64];
    if (entry->op) {
        npu__text_json(text, npu__op_label(npu_plan_graph(plan), npu__make_op(entry->op)));
        npu__text_str(text, ",\"cat\":");
        npu__text_json(text, npu_op_definition(npu_plan_graph(plan), npu__make_op(entry->op))->name);
    } else if (entry->step == NPU_NO_INDEX) {
        npu__text_str(text,
                      entry->begin_ns == 0 ? "\"inputs\",\"cat\":\"host\"" : "\"outputs\",\"cat\":\"host\"");
    } else {
        const npu_step *step = npu_plan_step(plan, entry->step);
        npu__text_json(text, npu__step_where(where, plan, step));
        npu__text_str(text,
                      step->type == NPU_STEP_TRANSFER ? ",\"cat\":\"transfer\"" : ",\"cat\":\"partition\"");
    }
}

NPU_IR_API void npu_exec_print_trace(const npu_exec *exec, npu_text *text)
{
    const npu_plan *plan = npu__exec_plan(exec);
    uint32_t count = 0, num_backends = npu_plan_num_backends(plan);
    const npu_profile_step *entries = npu_exec_profile(exec, &count);
    npu__text_str(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (uint32_t i = 0; i < num_backends; i++) {
        npu__trace_thread(text, i, npu__backend_label(plan, (int)i));
    }
    npu__trace_thread(text, num_backends, "inputs and outputs");
    for (uint32_t i = 0; i < count; i++) {
        const npu_profile_step *e = &entries[i];
        npu__text_str(text, ",\n{\"ph\":\"X\",\"name\":");
        npu__trace_name(text, plan, e);
        npu_text_printf(
            text, ",\"pid\":1,\"tid\":%u",
            (unsigned)(e->step == NPU_NO_INDEX ? num_backends : npu_plan_step(plan, e->step)->backend));
        npu__text_micros(text, "ts", e->begin_ns);
        npu__text_micros(text, "dur", e->end_ns - e->begin_ns);
        npu__text_str(text, "}");
    }
    npu__text_str(text, "\n]}\n");
}

#endif /* NPU_IR_IMPLEMENTATION */

/* -----------------------------------------------------------------------------------------------------------
   LICENCE - two alternatives, the choice is yours.

   ALTERNATIVE A - MIT License
   Copyright (c) 2026 the npu_ir authors
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions: The above copyright notice and this permission notice shall be included in all copies
   or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
   EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
   PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
   ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
   OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

   ALTERNATIVE B - Public Domain (www.unlicense.org)
   This is free and unencumbered software released into the public domain. Anyone is free to copy, modify,
   publish, use, compile, sell, or distribute this software, either in source code form or as a compiled
   binary, for any purpose, commercial or non-commercial, and by any means. In jurisdictions that recognize
   copyright laws, the author or authors of this software dedicate any and all copyright interest in the
   software to the public domain. We make this dedication for the benefit of the public at large and to the
   detriment of our heirs and successors. We intend this dedication to be an overt act of relinquishment in
   perpetuity of all present and future rights to this software under copyright law. THE SOFTWARE IS PROVIDED
   "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
   MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE
   LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
   ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
   -------------------------------------------------------------------------------------------------------- */
