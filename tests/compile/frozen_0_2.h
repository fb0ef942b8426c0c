/* frozen_0_2.h - what npu_ir.h of version 0.2 declares for backends, and no more: a copy without comments, in which
   npu_ is v02_ so that both can be included. A backend compiled with it must work with every later core; the test of
   that is tests/test_frozen.c. The names are those of 1.0, and the file stays as it is.

   V02_MORE, where it is defined before, adds members at the end of every struct: a backend of some later version. */
#ifndef FROZEN_0_2_H
#define FROZEN_0_2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef V02_MORE
#define V02_MORE
#endif

#define V02_BACKEND_API 2u
#define V02_NO_INDEX 0xffffffffu
#define V02_HAS(p, member) ((size_t)(p)->size >= (size_t)((const char *)(&(p)->member + 1) - (const char *)(p)))

typedef int v02_status; /* an enum of that size */
enum { V02_OK = 0, V02_ERR_NO_MEMORY = 6, V02_ERR_UNSUPPORTED = 27, V02_ERR_RANGE = 23 };
enum { V02_REASON_OP = 1, V02_REASON_DTYPE = 2 };
enum { V02_GROUP_INPUT = 1, V02_GROUP_OUTPUT = 2, V02_GROUP_INNER = 3, V02_GROUP_WEIGHT = 4 };
enum { V02_F32 = 51 };
#define V02_ABI(rows) \
    { (uint32_t)sizeof(v02_abi), (uint32_t)sizeof(v02_abi_row), (uint32_t)(sizeof(rows) / sizeof((rows)[0])), (rows) }

typedef struct v02_quant {
    uint32_t scheme;
    int32_t axis;
    uint32_t block, count;
    const float *scales;
    const int32_t *zeros;
    V02_MORE
} v02_quant;
typedef struct v02_spec {
    uint8_t cls;
    uint8_t dtype;
    uint8_t rank;
    uint8_t wrapped;
    uint8_t space;
    uint8_t _reserved[3];
    int64_t dims[8];
    int64_t offset;
    const v02_quant *quant;
    V02_MORE
} v02_spec;
typedef struct v02_bound_arg {
    const char *name;
    uint32_t form;
    uint32_t first;
    uint32_t count;
    int64_t i;
    double f;
    const uint8_t *data;
    V02_MORE
} v02_bound_arg;
typedef struct v02_op_info {
    uint32_t size;
    uint32_t kind;
    uint32_t op;
    uint32_t traits;
    uint32_t num_args, num_in, num_out, num_bodies;
    uint32_t arg_size;
    uint32_t spec_size;
    uint32_t attrs_size;
    uint32_t dynamic;
    const char *name;
    const v02_bound_arg *args;
    const v02_spec *const *in;
    const v02_spec *const *out;
    const void *const *in_data;
    const uint8_t *attrs;
    const struct npu_graph *const *bodies;
    uint32_t device_kind;
    uint32_t device_schema;
    uint32_t device_size;
    uint32_t _reserved;
    const uint8_t *device_attrs;
    V02_MORE
} v02_op_info;
typedef struct v02_abi_row {
    uint32_t kind;
    uint32_t device_kind;
    uint32_t attr_schema;
    const char *layout;
    V02_MORE
} v02_abi_row;
typedef struct v02_abi {
    uint32_t size;
    uint32_t row_size;
    uint32_t num_rows;
    const v02_abi_row *rows;
    V02_MORE
} v02_abi;
typedef void (*v02_task)(void *arg, uint32_t part, uint32_t parts, uint32_t worker);
typedef struct v02_parallel {
    uint32_t size;
    uint32_t width;
    void *ctx;
    void (*run)(void *ctx, v02_task task, void *arg, uint32_t parts);
    V02_MORE
} v02_parallel;
typedef struct v02_support {
    uint32_t size;
    uint32_t reason;
    char text[96];
    V02_MORE
} v02_support;
typedef struct v02_region {
    uint32_t size;
    uint32_t id;
    const char *name;
    uint64_t capacity;
    uint32_t alignment;
    uint32_t slack;
    uint32_t shared_with_host;
    uint32_t priority;
    V02_MORE
} v02_region;
typedef struct v02_buffer {
    uint32_t size;
    uint32_t region;
    void *handle;
    uint64_t bytes;
    V02_MORE
} v02_buffer;
typedef struct v02_allocation {
    uint32_t size;
    uint32_t region;
    uint64_t bytes, alignment;
    uint64_t stream;
    V02_MORE
} v02_allocation;
typedef struct v02_transfer {
    uint32_t size;
    uint32_t form;
    v02_buffer *to;
    v02_buffer *from;
    void *to_host;
    const void *from_host;
    uint64_t to_offset, from_offset;
    uint64_t bytes;
    uint64_t stream;
    V02_MORE
} v02_transfer;
typedef struct v02_tensor {
    uint32_t size;
    uint32_t dtype;
    uint32_t rank;
    uint32_t _reserved;
    v02_buffer *buffer;
    uint64_t offset;
    int64_t dims[8];
    int64_t strides[8];
    V02_MORE
} v02_tensor;
typedef struct v02_call {
    uint32_t size;
    uint32_t _reserved;
    const v02_op_info *op;
    const v02_tensor *const *in;
    const v02_tensor *const *out;
    uint64_t stream;
    V02_MORE
} v02_call;
typedef struct v02_group_value {
    uint32_t size;
    uint32_t value;
    uint32_t role;
    uint32_t form;
    const v02_spec *spec;
    const char *name;
    const void *data;
    V02_MORE
} v02_group_value;
typedef struct v02_group_op {
    uint32_t size;
    uint32_t _reserved;
    const v02_op_info *info;
    const uint32_t *in;
    const uint32_t *out;
    V02_MORE
} v02_group_op;
typedef struct v02_group {
    uint32_t size;
    uint32_t num_ops, num_values;
    uint32_t _reserved;
    const v02_group_op *const *ops;
    const v02_group_value *const *values;
    V02_MORE
} v02_group;
typedef struct v02_inplace {
    uint32_t size;
    uint32_t op;
    uint32_t operand, result;
    V02_MORE
} v02_inplace;
typedef struct v02_scratch {
    uint32_t size;
    uint32_t op;
    uint32_t alignment;
    uint32_t _reserved;
    uint64_t bytes;
    uint64_t worker_bytes;
    V02_MORE
} v02_scratch;
typedef struct v02_form {
    uint32_t size;
    uint32_t value;
    uint32_t id;
    uint32_t conversion;
    uint64_t bytes;
    V02_MORE
} v02_form;
typedef struct v02_compiled {
    uint32_t size;
    uint32_t scratch_alignment;
    void *program;
    uint64_t scratch;
    uint64_t prepared;
    uint32_t plans_inner;
    uint32_t failed_op;
    char text[96];
    uint32_t num_inplace, num_views, num_own_weights;
    uint32_t num_scratches, num_forms;
    uint32_t _reserved;
    const v02_inplace *inplace;
    const v02_inplace *views;
    const uint32_t *own_weights;
    const char *const *variants;
    const v02_scratch *scratches;
    const v02_form *forms;
    V02_MORE
} v02_compiled;
typedef struct v02_place {
    uint32_t buffer;
    uint32_t alias;
    uint64_t offset;
    V02_MORE
} v02_place;
typedef struct v02_places {
    uint32_t size;
    uint32_t num_values;
    uint32_t place_size;
    uint32_t num_scratches;
    const v02_place *values;
    const v02_place *scratch;
    const v02_place *scratches;
    V02_MORE
} v02_places;
typedef struct v02_dynamic {
    uint32_t size;
    void *ctx;
    v02_status (*describe)(void *ctx, uint32_t op, const void *const *data, const v02_op_info **info);
    v02_status (*set_result_dims)(void *ctx, uint32_t op, const int64_t (*dims)[8]);
    V02_MORE
} v02_dynamic;
typedef uint64_t v02_fence;
typedef struct v02_binding {
    uint32_t size;
    uint32_t num_buffers;
    v02_buffer *const *buffers;
    const v02_places *places;
    const v02_parallel *parallel;
    uint64_t stream;
    void (*op_done)(void *ctx, uint32_t op, uint64_t begin_ns, uint64_t end_ns);
    void *op_done_ctx;
    uint64_t (*clock)(void);
    uint32_t *failed_op;
    const v02_dynamic *dynamic;
    V02_MORE
} v02_binding;
typedef struct v02_cost {
    uint32_t size;
    uint32_t _reserved;
    uint64_t ns;
    V02_MORE
} v02_cost;
typedef struct v02_backend {
    uint32_t size;
    uint32_t api_version;
    const char *name;
    void *ctx;
    uint32_t traits;
    uint32_t num_regions;
    const v02_region *regions;
    const v02_abi *abi;
    v02_status (*supports)(void *ctx, const v02_op_info *op, v02_support *answer);
    v02_status (*cost)(void *ctx, const v02_op_info *op, v02_cost *answer);
    uint64_t (*stream)(void *ctx);
    v02_status (*alloc)(void *ctx, const v02_allocation *a, v02_buffer *out);
    void (*free)(void *ctx, v02_buffer *buffer);
    v02_status (*upload)(void *ctx, const v02_transfer *t, v02_fence *fence);
    v02_status (*download)(void *ctx, const v02_transfer *t, v02_fence *fence);
    v02_status (*copy)(void *ctx, const v02_transfer *t, v02_fence *fence);
    void *(*map)(void *ctx, v02_buffer *buffer);
    void (*unmap)(void *ctx, v02_buffer *buffer);
    v02_status (*compile)(void *ctx, const v02_group *group, v02_compiled *out);
    v02_status (*place)(void *ctx, void *program, const v02_places *places);
    v02_status (*submit)(void *ctx, void *program, const v02_binding *binding, v02_fence *fence);
    void (*release)(void *ctx, void *program);
    v02_status (*save)(void *ctx, void *program, void *bytes, uint64_t *size);
    v02_status (*load)(void *ctx, const v02_group *group, const void *bytes, uint64_t size, v02_compiled *out);
    v02_status (*wait)(void *ctx, v02_fence fence, uint64_t timeout_ns);
    v02_status (*poll)(void *ctx, v02_fence fence, uint32_t *done);
    v02_status (*capture_begin)(void *ctx, uint64_t stream);
    v02_status (*capture_end)(void *ctx, void **capture);
    v02_status (*replay)(void *ctx, void *capture, uint64_t stream, v02_fence *fence);
    void (*release_capture)(void *ctx, void *capture);
    v02_status (*op_call)(void *ctx, const v02_call *call);
    V02_MORE
} v02_backend;

static inline const v02_bound_arg *v02_op_arg_at(const v02_op_info *op, uint32_t i)
{
    return (const v02_bound_arg *)(const void *)((const char *)op->args + (size_t)i * op->arg_size);
}

static inline const v02_place *v02_place_at(const v02_places *places, uint32_t value)
{
    return (const v02_place *)(const void *)((const char *)places->values + (size_t)value * places->place_size);
}

#endif
