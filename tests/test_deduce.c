/* Type rules: one row per call, with the result specs or the status that it must give.

   An op without a namespace is aten's. Arguments are written name=value: f32[2,?,s] a tensor with an unknown dim
   and the symbol s, {f32[2],-} a list of tensors with a hole, [1,2] a list of int, 'text' a string, :f32 a dtype,
   true, 3, 0.5. A number for a Tensor is a wrapped number. */
#include "npu_test.h"

typedef struct row {
    const char *op, *args, *want; /* want: "f32[2,3] i64[2]", or "SHAPE" for NPU_ERR_SHAPE */
} row;

enum { MAX_ITEMS = 64 };

typedef struct call {
    npu_graph *graph;
    npu_arg args[16];
    char names[16][32];
    uint32_t num_args;
    int64_t ints[MAX_ITEMS];
    npu_value values[MAX_ITEMS];
    uint32_t num_ints, num_values;
    char text[32];
    int64_t symbol;
} call;

static int64_t read_int(call *c, const char **at)
{
    char *end;
    int64_t x;
    if (**at == '?' || **at == 's') {
        return *(*at)++ == '?' ? NPU_DYNAMIC_DIM : c->symbol;
    }
    x = (int64_t)strtoll(*at, &end, 0);
    *at = end;
    return x;
}

/* "[1,2]": appends to c->ints, returns how many. */
static uint32_t read_ints(call *c, const char **at)
{
    uint32_t first = c->num_ints;
    ++*at;
    while (**at != ']') {
        c->ints[c->num_ints++] = read_int(c, at);
        *at += **at == ',';
    }
    ++*at;
    return c->num_ints - first;
}

static npu_value read_tensor(call *c, const char **at)
{
    char dtype[16];
    size_t len = strcspn(*at, "[");
    uint32_t first = c->num_ints, rank;
    snprintf(dtype, sizeof dtype, "%.*s", (int)len, *at);
    *at += len;
    rank = read_ints(c, at);
    return npu_input(c->graph, NULL, npu_spec_tensor(npu_dtype_parse(dtype), rank, c->ints + first));
}

static npu_arg read_tensors(call *c, const char *name, const char **at)
{
    uint32_t first = c->num_values;
    ++*at;
    while (**at != '}') {
        npu_value hole = { 0 };
        bool is_hole = **at == '-';
        *at += is_hole;
        c->values[c->num_values++] = is_hole ? hole : read_tensor(c, at);
        *at += **at == ',';
    }
    ++*at;
    return npu_arg_tensors(name, c->values + first, c->num_values - first);
}

static npu_arg read_number(const char *name, const char **at)
{
    size_t len = strcspn(*at, " ");
    const char *text = *at;
    *at += len;
    if (text[0] == 't' || text[0] == 'f') {
        return npu_arg_bool(name, text[0] == 't');
    }
    if (strcspn(text, ".en") < len) {
        return npu_arg_float(name, strtod(text, NULL));
    }
    return npu_arg_int(name, (int64_t)strtoll(text, NULL, 0));
}

static npu_arg read_value(call *c, const char *name, const char **at)
{
    size_t len = strcspn(*at, " ");
    uint32_t first = c->num_ints;
    if (**at == '[') {
        uint32_t count = read_ints(c, at);
        return npu_arg_ints(name, c->ints + first, count);
    }
    if (**at == '{') {
        return read_tensors(c, name, at);
    }
    if (**at == '\'' || **at == ':') {
        bool is_text = **at == '\'';
        snprintf(c->text, sizeof c->text, "%.*s", (int)(is_text ? len - 2 : len - 1), *at + 1);
        *at += len;
        return is_text ? npu_arg_str(name, c->text) : npu_arg_dtype(name, npu_dtype_parse(c->text));
    }
    return strcspn(*at, "[") < len ? npu_arg_tensor(name, read_tensor(c, at)) : read_number(name, at);
}

static void read_args(call *c, const char *at)
{
    while (*at) {
        size_t len = strcspn(at, "=");
        char *name = c->names[c->num_args];
        snprintf(name, sizeof c->names[0], "%.*s", (int)len, at);
        at += len + 1;
        c->args[c->num_args++] = read_value(c, name, &at);
        at += *at == ' ';
    }
}

static void print_spec(const call *c, npu_text *text, const npu_spec *spec)
{
    npu_text_printf(text, "%s%s[", text->len ? " " : "", npu_dtype_name((npu_dtype)spec->dtype));
    for (uint32_t i = 0; i < spec->rank; i++) {
        npu_text_printf(text, i ? "," : "%s", "");
        if (spec->dims[i] >= 0) {
            npu_text_printf(text, "%lld", (long long)spec->dims[i]);
        } else {
            npu_text_printf(text, "%s", spec->dims[i] == c->symbol ? "s" : "?");
        }
    }
    npu_text_printf(text, "]");
}

static npu_registry *deduce_registry; /* NULL = one of the built-in ops alone, shared by all tests */

/* The results of a call as text, or the name of its status; *diag (may be NULL) is that of the graph. */
static npu_text deduce(const char *op, const char *args, npu_diag *diag)
{
    static call c;
    npu_text got = npu_text_init(NULL);
    char name[96];
    npu_op emitted;
    memset(&c, 0, sizeof c);
    c.graph = npu_graph_create(deduce_registry ? &(npu_graph_desc){ .registry = deduce_registry } : npu_test_graph_desc());
    c.symbol = npu_graph_add_symbol(c.graph, "s", 0, 0);
    read_args(&c, args);
    snprintf(name, sizeof name, "%s%s", strchr(op, '.') ? "" : "aten.", op);
    emitted = npu_emit_name(c.graph, name, c.args, c.num_args);
    if (!emitted.id) {
        npu_text_printf(&got, "%s", npu_status_name(npu_graph_status(c.graph)) + strlen("NPU_ERR_"));
    }
    for (uint32_t i = 0; i < npu_op_num_results(c.graph, emitted); i++) {
        print_spec(&c, &got, npu_value_spec(c.graph, npu_op_result(c.graph, emitted, i)));
    }
    if (diag) {
        *diag = *npu_graph_diag(c.graph);
    }
    npu_graph_destroy(c.graph);
    return got;
}

/* Rejections seen, by family. */
static struct { const char *family; int count; } rejections[64];

static void count_rejection(const char *op)
{
    const npu_op_def *def;
    char name[64];
    size_t i = 0;
    snprintf(name, sizeof name, "%s%s", strchr(op, '.') ? "" : "aten.", op);
    def = npu_registry_find(npu_test_graph_desc()->registry, name);
    while (def && rejections[i].family && strcmp(rejections[i].family, def->category) != 0) {
        i++;
    }
    if (def) {
        rejections[i].family = def->category;
        rejections[i].count++;
    }
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].want[0] >= 'A' && rows[i].want[0] <= 'Z') {
            count_rejection(rows[i].op);
        }
        npu_text got = deduce(rows[i].op, rows[i].args, NULL);
        char have[1024], want[1024];
        snprintf(have, sizeof have, "%s(%s) -> %s", rows[i].op, rows[i].args, got.data ? got.data : "");
        snprintf(want, sizeof want, "%s(%s) -> %s", rows[i].op, rows[i].args, rows[i].want);
        NPU_CHECK_STR(have, want);
        npu_text_free(&got);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_convolution(void)
{
    static const row rows[] = {
        { "conv2d", "input=f32[2,8,14,14] weight=f32[16,4,3,3] bias=f32[16] padding=[1,1] groups=2",
          "f32[2,16,14,14]" },
        { "conv2d", "input=f32[4,5,5] weight=f32[1,4,2,3] stride=[2,2]", "f32[1,2,2]" },
        { "conv2d", "input=f16[1,1,5,5] weight=f16[1,1,3,3] dilation=2", "f16[1,1,1,1]" },
        { "conv2d", "input=f32[1,4,5,5] weight=f32[8,1,2,2] groups=4", "f32[1,8,4,4]" },
        { "conv2d", "input=f32[0,3,8,8] weight=f32[4,3,3,3]", "f32[0,4,6,6]" },
        { "conv2d", "input=f32[s,3,8,8] weight=f32[4,3,3,3] padding=[1,0]", "f32[s,4,8,6]" },
        { "conv2d", "input=f32[1,3,s,?] weight=f32[4,3,3,3] padding=1", "f32[1,4,s,?]" },
        { "conv2d", "input=f32[1,3,s,s] weight=f32[4,3,3,3] stride=2 padding=1", "f32[1,4,?,?]" },
        { "conv2d", "input=f32[1,?,8,8] weight=f32[4,3,3,3]", "f32[1,4,6,6]" },
        { "conv2d", "input=f32[2,16,14,14] weight=f32[16,16,3,3] groups=2", "SHAPE" },
        { "_conv_depthwise2d", "self=f32[4,0,2,2] weight=f32[4,0,2,2] kernel_size=[2,2] bias=f32[4] stride=1 padding=1 dilation=1",
          "ATTRIBUTE" },
        { "conv2d", "input=f32[2,7,14,14] weight=f32[16,3,3,3] groups=2", "SHAPE" },
        { "conv2d", "input=f32[2,8,14,14] weight=f32[15,4,3,3] groups=2", "SHAPE" },
        { "conv2d", "input=f32[2,8,14,14] weight=f32[16,8,3,3] bias=f32[8]", "SHAPE" },
        { "conv2d", "input=f32[2,8,14,14] weight=f32[16,8,3,3] bias=f32[1,16]", "RANK" },
        { "conv2d", "input=f32[1,3,2,8] weight=f32[4,3,3,3]", "SHAPE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,0]", "SHAPE" },
        { "conv2d", "input=f32[3,8] weight=f32[4,3,3,3]", "RANK" },
        { "conv2d", "input=f32[1,3,8] weight=f32[4,3,3]", "RANK" },
        { "conv2d", "input=f16[1,3,8,8] weight=f32[4,3,3,3]", "DTYPE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] bias=f16[4]", "DTYPE" },
        { "conv2d", "input=i32[1,3,8,8] weight=i32[4,3,3,3]", "DTYPE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] stride=0", "ATTRIBUTE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] padding=-1", "ATTRIBUTE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] groups=0", "ATTRIBUTE" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] dilation=0x7fffffffffffffff", "OVERFLOW" },
        { "conv2d", "input=f32[1,3,8,8] weight=f32[4,3,3,3] padding=0x7fffffffffffffff", "OVERFLOW" },
        { "conv1d", "input=i64[2,3,10] weight=i64[4,3,3]", "i64[2,4,8]" },
        { "conv1d", "input=f32[3,10] weight=f32[4,3,3] padding=2", "f32[4,12]" },
        { "conv1d", "input=f32[1,3,8,8] weight=f32[4,3,3,3]", "RANK" },
        { "aten.conv2d.padding", "input=f32[1,4,9,9] weight=f32[8,1,4,3] padding='same' dilation=2 groups=4",
          "f32[1,8,9,9]" },
        { "aten.conv2d.padding", "input=f32[1,4,9,9] weight=f32[8,4,3,3] padding='valid' stride=2",
          "f32[1,8,4,4]" },
        { "aten.conv2d.padding", "input=f32[1,4,9,9] weight=f32[8,4,3,3] padding='same' stride=2",
          "ATTRIBUTE" },
        { "aten.conv2d.padding", "input=f32[1,4,9,9] weight=f32[8,4,3,3] padding='full'", "ATTRIBUTE" },
        { "aten.conv1d.padding", "input=f32[1,4,2] weight=f32[8,4,5] padding='same'", "f32[1,8,2]" },
    };
    CHECK_ROWS(rows);
}

/* grad_output[2,4,6,6] of a 3 x 3 window over [2,3,8,8] */
#define BACKWARD(x, w, mask) \
    "grad_output=f32[2,4,6,6] input=" x " weight=" w " bias_sizes=[4] stride=[1,1] padding=[0,0] dilation=[1,1] " \
    "transposed=false output_padding=[0,0] groups=1 output_mask=" mask

static void test_convolution_backward(void)
{
    static const row rows[] = {
        { "convolution_backward", BACKWARD("f32[2,3,8,8]", "f32[4,3,3,3]", "[1,1,1]"),
          "f32[2,3,8,8] f32[4,3,3,3] f32[4]" },
        { "convolution_backward", BACKWARD("f32[2,3,8,8]", "f32[4,3,3,3]", "[0,1,0]"),
          "f32[0] f32[4,3,3,3] f32[0]" },
        { "convolution_backward", BACKWARD("f32[2,3,9,8]", "f32[4,3,3,3]", "[1,1,1]"), "SHAPE" },
        { "convolution_backward", BACKWARD("f32[2,3,8,8]", "f32[4,2,3,3]", "[1,1,1]"), "SHAPE" },
        { "convolution_backward", BACKWARD("f32[3,8,8]", "f32[4,3,3,3]", "[1,1,1]"), "RANK" },
        { "convolution_backward", BACKWARD("f16[2,3,8,8]", "f16[4,3,3,3]", "[1,1,1]"), "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_transposed_convolution(void)
{
    static const row rows[] = {
        { "conv_transpose2d",
          "input=f32[1,1,4,5] weight=f32[1,1,4,3] stride=2 padding=1 output_padding=1 dilation=[2,3]",
          "f32[1,1,12,14]" },
        { "conv_transpose2d", "input=f32[2,4,6,6] weight=f32[4,4,2,2] bias=f32[8] stride=2 groups=2",
          "f32[2,8,12,12]" },
        { "conv_transpose2d", "input=f32[s,4,6,?] weight=f32[4,4,2,2]", "f32[s,4,7,?]" },
        { "conv_transpose2d", "input=f32[2,6,6,6] weight=f32[4,4,2,2]", "SHAPE" },
        { "conv_transpose2d", "input=f32[2,4,6,6] weight=f32[4,4,2,2] output_padding=1", "ATTRIBUTE" },
        { "conv_transpose2d", "input=f32[2,4,1,1] weight=f32[4,4,1,1] padding=1", "SHAPE" },
        { "conv_transpose2d", "input=f32[2,4,3] weight=f32[4,4,2]", "RANK" },
        { "convolution",
          "input=f32[2,2,4] weight=f32[2,2,4] bias=f32[4] stride=[3] padding=[1] dilation=[4] transposed=true "
          "output_padding=[2] groups=2",
          "f32[2,4,22]" },
        { "convolution",
          "input=f32[1,8,6,12,12] weight=f32[8,1,3,3,3] stride=[2] padding=[1] dilation=[1] transposed=false "
          "output_padding=[0] groups=8",
          "f32[1,8,3,6,6]" },
        { "convolution",
          "input=f32[1,3,8,8] weight=f32[4,3,3,3] stride=[1,1,1] padding=[0] dilation=[1] transposed=false "
          "output_padding=[0] groups=1",
          "ATTRIBUTE" },
        { "convolution",
          "input=f32[1,3] weight=f32[4,3] stride=[1] padding=[0] dilation=[1] transposed=false "
          "output_padding=[0] groups=1",
          "RANK" },
    };
    CHECK_ROWS(rows);
}

static void test_matrix(void)
{
    static const row rows[] = {
        { "linear", "input=f32[2,60,64] weight=f32[10,64] bias=f32[10]", "f32[2,60,10]" },
        { "linear", "input=f32[5] weight=f32[5]", "f32[]" },
        { "linear", "input=f32[4,0] weight=f32[3,0] bias=f32[3]", "f32[4,3]" },
        { "linear", "input=f32[s,8] weight=f32[3,8]", "f32[s,3]" },
        { "linear", "input=f32[2,7] weight=f32[3,8]", "SHAPE" },
        { "linear", "input=f32[2,8] weight=f32[3,8] bias=f32[8]", "SHAPE" },
        { "linear", "input=f32[2,8] weight=f32[3,8,1]", "RANK" },
        { "linear", "input=f32[] weight=f32[3,8]", "RANK" },
        { "linear", "input=f16[2,8] weight=f32[3,8]", "DTYPE" },
        { "linear", "input=f32[2,8] weight=f32[3,8] bias=f16[3]", "DTYPE" },
        { "mm", "self=i32[2,3] mat2=i32[3,4]", "i32[2,4]" },
        { "mm", "self=f32[?,3] mat2=f32[s,4]", "f32[?,4]" },
        { "mm", "self=f16[2,3] mat2=f32[3,4]", "DTYPE" },
        { "mm", "self=bool[2,3] mat2=bool[3,4]", "DTYPE" },
        { "mm", "self=f32[2,3] mat2=f32[4,3]", "SHAPE" },
        { "mm", "self=f32[1,2,3] mat2=f32[3,4]", "RANK" },
        { "bmm", "self=f32[5,2,3] mat2=f32[5,3,4]", "f32[5,2,4]" },
        { "bmm", "self=f32[5,2,3] mat2=f32[1,3,4]", "SHAPE" },
        { "bmm", "self=f32[5,2,3] mat2=f32[3,4]", "RANK" },
        { "bmm", "self=f32[s,2,3] mat2=f32[?,3,4]", "f32[s,2,4]" }, /* equal by the op's own rule, as the inner dim */
        { "bmm", "self=f32[s,2,3] mat2=f32[5,3,4]", "f32[5,2,4]" },
        { "baddbmm", "self=f32[2,4] batch1=f32[s,2,3] batch2=f32[?,3,4]", "f32[s,2,4]" },
        { "bmm", "self=f32[5,2,3] mat2=f16[5,3,4]", "DTYPE" },
        { "matmul", "self=f32[10] other=f32[10]", "f32[]" },
        { "matmul", "self=f32[5,1,10,10] other=f32[4,10,5]", "f32[5,4,10,5]" },
        { "matmul", "self=f32[10] other=f32[5,5,10,5]", "f32[5,5,5]" },
        { "matmul", "self=f32[5,5,10] other=f32[10]", "f32[5,5]" },
        { "matmul", "self=f32[s,5,10] other=f32[10,3]", "f32[s,5,3]" },
        { "matmul", "self=f32[2,5,10] other=f32[3,10,5]", "SHAPE" },
        { "matmul", "self=f32[s,5,10] other=f32[?,10,5]", "DYNAMIC_SHAPE" }, /* as add */
        { "matmul", "self=f32[s,5,10] other=f32[3,10,5]", "DYNAMIC_SHAPE" },
        { "matmul", "self=f32[s,5,10] other=f32[1,10,5]", "f32[s,5,5]" },
        { "matmul", "self=f32[s,5,10] other=f32[s,10,5]", "f32[s,5,5]" },
        { "matmul", "self=f32[5,10] other=f32[5,10]", "SHAPE" },
        { "matmul", "self=f32[] other=f32[5]", "RANK" },
        { "addmm", "self=f32[4] mat1=f32[2,3] mat2=f32[3,4]", "f32[2,4]" },
        { "addmm", "self=f32[2,1] mat1=f32[2,3] mat2=f32[3,4] beta=0.5 alpha=2", "f32[2,4]" },
        { "addmm", "self=f32[] mat1=f32[2,3] mat2=f32[3,4]", "f32[2,4]" },
        { "addmm", "self=f32[2] mat1=f32[2,3] mat2=f32[3,4]", "SHAPE" },
        { "addmm", "self=f32[1,2,4] mat1=f32[2,3] mat2=f32[3,4]", "RANK" },
        { "addmm", "self=f16[4] mat1=f32[2,3] mat2=f32[3,4]", "DTYPE" },
        { "addmm", "self=i64[4] mat1=i64[2,3] mat2=i64[3,4] alpha=1e30", "OVERFLOW" },
        { "addmm", "self=i8[4] mat1=i8[2,3] mat2=i8[3,4] beta=300", "OVERFLOW" },
        { "addmm", "self=i8[4] mat1=i8[2,3] mat2=i8[3,4] alpha=-3", "i8[2,4]" },
        { "addr", "self=i32[2,4] vec1=i32[2] vec2=i32[4] beta=3e9", "OVERFLOW" },
        { "baddbmm", "self=f32[4] batch1=f32[5,2,3] batch2=f32[5,3,4]", "f32[5,2,4]" },
        { "baddbmm", "self=f32[4] batch1=f32[5,2,3] batch2=f32[1,3,4]", "SHAPE" },
        { "baddbmm", "self=f32[6,2,4] batch1=f32[5,2,3] batch2=f32[5,3,4]", "SHAPE" },
        { "mv", "self=f32[s,3] vec=f32[3]", "f32[s]" },
        { "mv", "self=f32[2,3] vec=f32[2]", "SHAPE" },
        { "addmv", "self=f32[1] mat=f32[2,3] vec=f32[3]", "f32[2]" },
        { "addmv", "self=f32[3] mat=f32[2,3] vec=f32[3]", "SHAPE" },
        { "dot", "self=i64[3] tensor=i64[3]", "i64[]" },
        { "dot", "self=f32[3] tensor=f64[3]", "DTYPE" },
        { "vdot", "self=f32[3,1] other=f32[3]", "RANK" },
    };
    NPU_ITEM("S0.51");
    CHECK_ROWS(rows);
}

static void test_contraction(void)
{
    static const row rows[] = {
        { "einsum", "equation='bik,bkj->bij' tensors={f32[5,2,3],f32[5,3,4]}", "f32[5,2,4]" },
        { "einsum", "equation='...ij,jk' tensors={f32[5,2,3],f32[3,4]}", "f32[5,2,4]" },
        { "einsum", "equation='ba' tensors={f32[5,s]}", "f32[s,5]" },
        { "einsum", "equation='ii->' tensors={i32[3,3]}", "i64[]" },
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,3],i32[3,4]}", "i32[2,4]" },
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,1],i32[3,4]}", "i64[2,4]" },
        { "einsum", "equation='ik,j->ij' tensors={i8[2,3],i8[4]}", "i64[2,4]" },
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,s],i32[3,4]}", "DYNAMIC_SHAPE" }, /* i64 where s is 1 */
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,3],i32[s,4]}", "DYNAMIC_SHAPE" },
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,s],i32[1,4]}", "DYNAMIC_SHAPE" },
        { "einsum", "equation='ij,k->ik' tensors={i32[2,s],i32[4]}", "DYNAMIC_SHAPE" },
        { "einsum", "equation='ij,jk->ik' tensors={i32[2,s],i32[s,4]}", "i32[2,4]" },
        { "einsum", "equation='ij,jk->ijk' tensors={i32[2,s],i32[3,4]}", "i32[2,3,4]" },
        { "einsum", "equation='ij,jk->ik' tensors={i64[2,s],i64[3,4]}", "i64[2,4]" },
        { "einsum", "equation='ij,ij->ij' tensors={f32[s,4],f32[s,4]}", "f32[s,4]" },
        { "einsum", "equation='ij,ij->ij' tensors={f32[s,4],f32[1,4]}", "f32[s,4]" },
        { "einsum", "equation='ij,ij->ij' tensors={f32[s,4],f32[?,4]}", "DYNAMIC_SHAPE" }, /* as add */
        { "einsum", "equation='...j,...j->...' tensors={f32[s,4],f32[?,4]}", "DYNAMIC_SHAPE" },
        { "einsum", "equation='ij,ij,ij->i' tensors={f32[s,4],f32[?,4],f32[s,4]}", "DYNAMIC_SHAPE" },
        { "einsum", "equation='ij,ij,ij->i' tensors={f32[s,4],f32[?,4],f32[3,4]}", "f32[3]" },
        { "einsum", "equation='ij,ij->j' tensors={f32[s,4],f32[?,4]}", "f32[4]" }, /* the sum of whichever it is */
        { "einsum", "equation='ij,ij->ij' tensors={f32[s,4],f32[0,4]}", "f32[0,4]" },
        { "einsum", "equation='ii->i' tensors={f32[s,?]}", "f32[s]" }, /* never 1 and longer */
        { "einsum", "equation='ij,jk' tensors={f32[2,3],f32[4,5]}", "SHAPE" },
        { "einsum", "equation='ij,jk' tensors={f32[2,3]}", "ARITY" },
        { "einsum", "equation='ij' tensors={f32[2,3],f32[3,4]}", "RANK" },
        { "einsum", "equation='ij->ik' tensors={f32[2,3]}", "ATTRIBUTE" },
        { "einsum", "equation='ij->ii' tensors={f32[2,3]}", "ATTRIBUTE" },
        { "einsum", "equation='i.j' tensors={f32[2,3]}", "ATTRIBUTE" },
        { "einsum", "equation='ij,jk' tensors={f32[2,3],f16[3,4]}", "DTYPE" },
        { "outer", "self=i8[2] vec2=f16[s]", "f16[2,s]" },
        { "outer", "self=f32[2,1] vec2=f32[3]", "RANK" },
        { "inner", "self=f32[2,3] other=f32[4,5,3]", "f32[2,4,5]" },
        { "inner", "self=f32[2,3] other=f32[]", "f32[2,3]" },
        { "inner", "self=f32[2,3] other=f32[2]", "SHAPE" },
        { "tensordot", "self=f32[2,3,4] other=f32[4,3,5] dims_self=[1,2] dims_other=[1,0]", "f32[2,5]" },
        { "tensordot", "self=f32[2,3] other=f32[4,5] dims_self=[1] dims_other=[0]", "SHAPE" },
        { "tensordot", "self=f32[2,3] other=f32[3,5] dims_self=[1] dims_other=[]", "ATTRIBUTE" },
        { "kron", "self=f32[2,3] other=f64[4]", "f64[2,12]" },
        { "kron", "self=f64[] other=f32[2]", "f64[2]" },
        { "bilinear", "input1=f32[7,3] input2=f32[7,4] weight=f32[5,3,4] bias=f32[5]", "f32[7,5]" },
        { "bilinear", "input1=f32[7,3] input2=f32[6,4] weight=f32[5,3,4]", "SHAPE" },
        { "addbmm", "self=f32[4] batch1=f32[5,2,3] batch2=f32[5,3,4]", "f32[2,4]" },
        { "addbmm", "self=f32[5,2,4] batch1=f32[5,2,3] batch2=f32[5,3,4]", "RANK" },
        { "addr", "self=f32[] vec1=f32[2] vec2=f32[3]", "f32[2,3]" },
        { "addr", "self=f32[2] vec1=f32[2] vec2=f32[3]", "SHAPE" },
        { "linalg_vecdot", "x=f32[2,1,3] y=f32[4,3]", "f32[2,4]" },
        { "linalg_vecdot", "x=i64[3] y=i64[3]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_linalg(void)
{
    static const row rows[] = {
        { "det", "self=f64[s,3,3]", "f64[s]" },
        { "slogdet", "self=f32[3,3]", "f32[] f32[]" },
        { "linalg_det", "A=f32[3,4]", "SHAPE" },
        { "logdet", "self=f32[3]", "RANK" },
        { "linalg_inv", "A=f16[3,3]", "DTYPE" },
        { "linalg_cholesky_ex", "self=f32[5,3,3]", "f32[5,3,3] i32[5]" },
        { "linalg_solve", "A=f32[5,3,3] B=f32[3]", "f32[5,3]" },
        { "linalg_solve", "A=f32[5,3,3] B=f32[5,3]", "f32[5,3]" },
        { "linalg_solve", "A=f32[5,1,3,3] B=f32[2,3,4]", "f32[5,2,3,4]" },
        { "linalg_solve", "A=f32[3,3] B=f32[4,3]", "SHAPE" },
        { "linalg_solve", "A=f32[3,3] B=f32[3] left=0", "ATTRIBUTE" },
        { "cholesky_solve", "self=f32[5,1,3,2] input2=f32[4,3,3]", "f32[5,4,3,2]" },
        { "cholesky_solve", "self=f32[3,s] input2=f32[3,3]", "f32[3,s]" },
        { "cholesky_solve", "self=f32[4,2] input2=f32[3,3]", "SHAPE" },
        { "cholesky_solve", "self=f32[3,2] input2=f32[3,4]", "SHAPE" },
        { "cholesky_solve", "self=f32[3] input2=f32[3,3]", "RANK" },
        { "cholesky_solve", "self=f64[3,2] input2=f32[3,3]", "DTYPE" },
        { "cholesky_solve", "self=f16[3,2] input2=f16[3,3]", "DTYPE" },
        { "linalg_solve_triangular", "self=f32[3,3] B=f32[5,3,2] upper=true", "f32[5,3,2]" },
        { "linalg_solve_triangular", "self=f32[3,3] B=f32[2,3] upper=true left=false", "f32[2,3]" },
        { "linalg_solve_triangular", "self=f32[3,3] B=f32[2,3] upper=true", "SHAPE" },
        { "linalg_solve_triangular", "self=f32[2,3,3] B=f32[4,3,3] upper=true", "SHAPE" },
        { "linalg_solve_triangular", "self=i64[3,3] B=i64[3,3] upper=true", "DTYPE" },
        { "linalg_solve_triangular", "self=f32[3,3] B=f32[3,3]", "ATTRIBUTE" },
        { "linalg_tensorinv", "self=f32[4,3,6,2]", "f32[6,2,4,3]" },
        { "linalg_tensorinv", "self=f64[12,4,3] ind=1", "f64[4,3,12]" },
        { "linalg_tensorinv", "self=f32[4,s,6,2]", "f32[6,2,4,s]" },
        { "linalg_tensorinv", "self=f32[4,3,6,3]", "SHAPE" },
        { "linalg_tensorinv", "self=f32[4,4] ind=0", "ATTRIBUTE" },
        { "linalg_tensorinv", "self=f32[4,4] ind=3", "ATTRIBUTE" },
        { "linalg_tensorinv", "self=bf16[4,4] ind=1", "DTYPE" },
        { "linalg_tensorsolve", "self=f32[2,3,6] other=f32[2,3]", "f32[6]" },
        { "linalg_tensorsolve", "self=f32[3,4,4,3] other=f32[3,4] dims=[0,2]", "f32[3,4]" },
        { "linalg_tensorsolve", "self=f32[2,3,6] other=f32[6]", "SHAPE" },
        { "linalg_tensorsolve", "self=f32[2,3,5] other=f32[2,3]", "SHAPE" },
        { "linalg_tensorsolve", "self=f32[2,3,6] other=f32[2,4]", "SHAPE" },
        { "linalg_tensorsolve", "self=f32[2,3,6] other=f32[2,3] dims=[1,1]", "AXIS" },
        { "linalg_tensorsolve", "self=f32[2,2] other=f32[1,1,2]", "RANK" },
        { "linalg_tensorsolve", "self=f32[2,2] other=f64[2]", "DTYPE" },
        { "linalg_matrix_power", "self=f16[s,3,3] n=5", "f16[s,3,3]" },
        { "linalg_matrix_power", "self=i32[3,3] n=2", "i32[3,3]" },
        { "linalg_matrix_power", "self=f16[3,3] n=-1", "DTYPE" },
        { "matrix_power", "self=bool[3,3] n=2", "DTYPE" },
        { "matrix_power", "self=f32[3,4] n=2", "SHAPE" },
        { "matrix_power", "self=f32[3] n=2", "RANK" },
        { "linalg_multi_dot", "tensors={f32[2,3],f32[3,s],f32[s,5]}", "f32[2,5]" },
        { "linalg_multi_dot", "tensors={f32[3],f32[3,4],f32[4]}", "f32[]" },
        { "linalg_multi_dot", "tensors={u8[3],u8[3,4]}", "u8[4]" },
        { "linalg_multi_dot", "tensors={f32[2,3]}", "ARITY" },
        { "linalg_multi_dot", "tensors={f32[2,3],f32[3],f32[3,2]}", "RANK" },
        { "linalg_multi_dot", "tensors={f32[2,3],f32[4,2]}", "SHAPE" },
        { "linalg_multi_dot", "tensors={f32[2,3],f64[3,2]}", "DTYPE" },
        { "linalg_multi_dot", "tensors={bool[2,3],bool[3,2]}", "DTYPE" },
        { "cross", "self=i8[4,3,3] other=i8[1,3,3]", "i8[4,3,3]" },
        { "cross", "self=f32[s,3] other=f32[1,3] dim=-1", "f32[s,3]" },
        { "cross", "self=f32[4,2] other=f32[4,2]", "SHAPE" },
        { "cross", "self=f32[3,3] other=f32[1,3] dim=0", "SHAPE" },
        { "linalg_cross", "self=f32[3,4] other=f32[3,4]", "SHAPE" },
        { "linalg_cross", "self=f32[3] other=f32[4,3]", "RANK" },
        { "linalg_cross", "self=f32[4,3] other=f64[4,3]", "DTYPE" },
        { "linalg_cross", "self=bool[4,3] other=bool[4,3]", "DTYPE" },
        { "linalg_cross", "self=f32[4,3] other=f32[4,3] dim=2", "AXIS" },
    };
    CHECK_ROWS(rows);
}

#define GRU "has_biases=0 num_layers=1 dropout=0.0 train=0 bidirectional=0 batch_first=0"

static void test_recurrent(void)
{
    NPU_ITEM("F60");
    static const row rows[] = {
        { "aten.gru.input", "input=f32[5,2,3] hx=f32[1,2,4] params={f32[12,3],f32[12,4]} " GRU,
          "f32[5,2,4] f32[1,2,4]" },
        { "aten.gru.input", "input=f32[5,2,3] hx=f32[1,2,4] params={f32[12,3],f32[12,4],f32[12]} " GRU, "ARITY" },
        { "aten.gru.input", "input=f32[5,2,3] hx=f32[1,2,4] params={f32[12,4],f32[12,4]} " GRU, "SHAPE" },
        { "aten.gru.input", "input=f32[5,3] hx=f32[1,2,4] params={f32[12,3],f32[12,4]} " GRU, "RANK" },
        { "aten.gru.input", "input=f32[5,2,3] hx=f32[1,2,4] params={f32[12,3],f16[12,4]} " GRU, "DTYPE" },
        { "aten.lstm.input",
          "input=f32[2,s,3] hx={f32[1,2,4],f32[1,2,5]} params={f32[20,3],f32[20,4],f32[4,5]} has_biases=0 "
          "num_layers=1 dropout=0.0 train=0 bidirectional=0 batch_first=1",
          "f32[2,s,4] f32[1,2,4] f32[1,2,5]" },
        { "lstm_cell", "input=f32[2,3] hx={f32[2,4],f32[2,4]} w_ih=f32[16,3] w_hh=f32[16,4]", "f32[2,4] f32[2,4]" },
        { "lstm_cell", "input=f32[2,3] hx={f32[2,4]} w_ih=f32[16,3] w_hh=f32[16,4]", "ARITY" },
        { "lstm_cell", "input=f32[2,3] hx={f32[2,4],f32[2,s]} w_ih=f32[16,3] w_hh=f32[16,4]", "f32[2,4] f32[2,s]" },
        { "rnn_tanh_cell", "input=f32[2,3] hx=f32[2,4] w_ih=f32[4,3] w_hh=f32[4,4] b_ih=f32[3]", "SHAPE" },
        { "aten.rnn_tanh.input", "input=f32[5,3] hx=f32[1,4] params={f32[4,3],f32[4,4]} " GRU, "f32[5,4] f32[1,4]" },
        { "aten.rnn_tanh.input", "input=f32[5,3] hx=f32[1,2,4] params={f32[4,3],f32[4,4]} " GRU, "RANK" },
        { "aten.rnn_tanh.input", "input=f32[0,3] hx=f32[1,4] params={f32[4,3],f32[4,4]} " GRU, "SHAPE" },
        { "cdist", "x1=f32[5,1,2,3] x2=f32[4,6,3]", "f32[5,4,2,6]" },
        { "cdist", "x1=f32[2,3] x2=f32[6,4]", "SHAPE" },
        { "cdist", "x1=f32[2,3] x2=f32[6,3] p=-1.0", "ATTRIBUTE" },
        { "cdist", "x1=i64[2,3] x2=i64[6,3]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_activation(void)
{
    static const row rows[] = {
        { "relu", "self=i32[3]", "i32[3]" },
        { "relu", "self=bf16[2,?,s]", "bf16[2,?,s]" },
        { "relu", "self=bool[3]", "DTYPE" },
        { "neg", "self=u8[3]", "u8[3]" },
        { "neg", "self=bool[3]", "DTYPE" },
        { "abs", "self=bool[3]", "DTYPE" },
        { "abs", "self=i64[]", "i64[]" },
        { "hardtanh", "self=i32[3]", "i32[3]" },
        { "hardtanh", "self=i64[3] min_val=0.5 max_val=2.5", "i64[3]" },
        { "hardtanh", "self=u8[3]", "ATTRIBUTE" },
        { "hardtanh", "self=u8[3] min_val=0 max_val=6", "u8[3]" },
        { "gelu", "self=f16[3] approximate='tanh'", "f16[3]" },
        { "gelu", "self=i32[3]", "DTYPE" },
        { "gelu", "self=f32[3] approximate='fast'", "ATTRIBUTE" },
        { "aten.softshrink", "self=f32[3] lambd=-0.5", "ATTRIBUTE" },
        { "aten.mvlgamma", "self=bool[3] p=1", "DTYPE" },
        { "leaky_relu", "self=i32[3]", "DTYPE" },
        { "silu", "self=i32[3]", "DTYPE" },
        { "hardswish", "self=i64[3]", "DTYPE" },
        { "elu", "self=i32[3]", "DTYPE" },
        { "elu", "self=f64[0,3]", "f64[0,3]" },
        { "sigmoid", "self=i32[3]", "f32[3]" },
        { "tanh", "self=bool[3]", "f32[3]" },
        { "sqrt", "self=i8[3]", "f32[3]" },
        { "rsqrt", "self=u8[s]", "f32[s]" },
        { "exp", "self=bool[3]", "f32[3]" },
        { "exp", "self=f8[3]", "DTYPE" },
        { "log", "self=f16[3]", "f16[3]" },
        { "log", "self=i4[4]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_normalization(void)
{
    static const row rows[] = {
        { "batch_norm",
          "input=f32[2,4,5,5] weight=f32[4] bias=f32[4] running_mean=f32[4] running_var=f32[4] training=false "
          "momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "f32[2,4,5,5]" },
        { "batch_norm",
          "input=bf16[2,4] weight=f32[4] running_mean=f32[4] running_var=f32[4] training=false momentum=0.1 "
          "eps=0.00001 cudnn_enabled=false",
          "bf16[2,4]" },
        { "batch_norm", "input=f32[s,4,?] training=true momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "f32[s,4,?]" },
        { "batch_norm", "input=f32[2,4] training=false momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "ARITY" },
        { "batch_norm",
          "input=f32[2,4] weight=f32[5] training=true momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "SHAPE" },
        { "batch_norm", "input=f32[4] training=true momentum=0.1 eps=0.00001 cudnn_enabled=false", "RANK" },
        { "batch_norm", "input=i32[2,4] training=true momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "DTYPE" },
        { "batch_norm",
          "input=f32[2,4] weight=f16[4] training=true momentum=0.1 eps=0.00001 cudnn_enabled=false",
          "DTYPE" },
        { "batch_norm",
          "input=bf16[2,4] weight=f32[4] bias=bf16[4] training=true momentum=0.1 eps=0.00001 "
          "cudnn_enabled=false",
          "DTYPE" },
        { "layer_norm", "input=f32[2,3,4] normalized_shape=[3,4] weight=f32[3,4]", "f32[2,3,4]" },
        { "layer_norm", "input=f32[s,?,4] normalized_shape=[4] weight=f32[4] bias=f32[4]", "f32[s,?,4]" },
        { "layer_norm", "input=f32[2,3,4] normalized_shape=[2,4]", "SHAPE" },
        { "layer_norm", "input=f32[2,3,4] normalized_shape=[4] weight=f32[3]", "SHAPE" },
        { "layer_norm", "input=f32[4] normalized_shape=[3,4]", "RANK" },
        { "layer_norm", "input=f32[2,4] normalized_shape=[]", "ATTRIBUTE" },
        { "layer_norm", "input=bf16[2,4] normalized_shape=[4] weight=f32[4]", "bf16[2,4]" },
        { "layer_norm", "input=f32[2,4] normalized_shape=[-4]", "ATTRIBUTE" },
        { "layer_norm", "input=i32[2,4] normalized_shape=[4]", "DTYPE" },
        { "native_layer_norm", "input=bf16[2,3,4] normalized_shape=[3,4] weight=bf16[3,4] eps=0.00001",
          "bf16[2,3,4] bf16[2,1,1] bf16[2,1,1]" },
        { "native_layer_norm", "input=bf16[2,4] normalized_shape=[4] weight=f32[4] eps=0.00001",
          "bf16[2,4] f32[2,1] f32[2,1]" },
        { "native_layer_norm", "input=bf16[2,4] normalized_shape=[4] weight=f32[4] bias=bf16[4] eps=0.00001",
          "DTYPE" },
        { "native_layer_norm", "input=f32[2,4] normalized_shape=[4] weight=bf16[4] eps=0.00001", "DTYPE" },
        { "rms_norm", "input=bf16[2,4] normalized_shape=[4] weight=f32[4]", "DTYPE" },
        { "group_norm", "input=f16[2,6,5] num_groups=3 weight=f32[6] bias=f32[6]", "f16[2,6,5]" },
        { "group_norm", "input=f16[2,6,5] num_groups=3 weight=f32[6] bias=f16[6]", "DTYPE" },
        { "native_group_norm", "input=f16[2,6,5] weight=f32[6] bias=f32[6] N=2 C=6 HxW=5 group=3 eps=0.1",
          "f16[2,6,5] f32[2,3] f32[2,3]" },
        { "native_layer_norm_backward", "grad_out=f16[2,4] input=f16[2,4] normalized_shape=[4] mean=f32[2,1] "
          "rstd=f32[2,1] weight=f32[4] bias=f32[4] output_mask=[1,1,1]", "f16[2,4] f32[4] f32[4]" },
        { "group_norm", "input=f32[2,6,5] num_groups=3 weight=f32[6] bias=f32[6]", "f32[2,6,5]" },
        { "group_norm", "input=f32[2,6,5] num_groups=4", "SHAPE" },
        { "group_norm", "input=f32[2,6,5] num_groups=0", "ATTRIBUTE" },
        { "group_norm", "input=f32[6] num_groups=3", "RANK" },
        { "group_norm", "input=f32[2,6,5] num_groups=3 weight=f32[3]", "SHAPE" },
        { "group_norm", "input=i64[2,6,5] num_groups=3", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_pooling(void)
{
    static const row rows[] = {
        { "max_pool2d", "self=f32[2,3,8,8] kernel_size=[2,2]", "f32[2,3,4,4]" },
        { "max_pool2d", "self=f32[3,7,8] kernel_size=3 stride=[2] padding=1", "f32[3,4,4]" },
        { "max_pool2d", "self=f32[1,1,6,6] kernel_size=3 stride=2 ceil_mode=true", "f32[1,1,3,3]" },
        { "max_pool2d", "self=f32[1,1,4,4] kernel_size=1 stride=3 ceil_mode=true", "f32[1,1,2,2]" },
        { "max_pool2d", "self=f32[1,1,5,5] kernel_size=1 stride=3 ceil_mode=true", "f32[1,1,2,2]" },
        { "max_pool2d", "self=f32[1,1,2,2] kernel_size=3 stride=2 ceil_mode=true", "f32[1,1,1,1]" },
        { "max_pool2d", "self=f32[0,3,8,8] kernel_size=2", "f32[0,3,4,4]" },
        { "max_pool2d", "self=f32[s,3,?,s] kernel_size=3 stride=1 padding=1", "f32[s,3,?,s]" },
        { "max_pool2d", "self=f32[1,1,2,2] kernel_size=3", "SHAPE" },
        { "max_pool2d", "self=f32[1,0,8,8] kernel_size=2", "SHAPE" },
        { "max_pool2d", "self=f32[1,1,8,0] kernel_size=1", "SHAPE" },
        { "max_pool2d", "self=f32[1,1,8,8] kernel_size=2 padding=2", "ATTRIBUTE" },
        { "max_pool2d", "self=f32[1,1,8,8] kernel_size=0", "ATTRIBUTE" },
        { "max_pool2d", "self=f32[1,1,8,8] kernel_size=2 stride=[1,1,1]", "ATTRIBUTE" },
        { "max_pool2d", "self=u8[1,1,8,8] kernel_size=2", "u8[1,1,4,4]" },
        { "max_pool2d", "self=bool[1,1,8,8] kernel_size=2", "DTYPE" },
        { "avg_pool2d", "self=f32[1,1,2,8] kernel_size=3 padding=1", "f32[1,1,1,3]" },
        { "avg_pool3d", "self=f32[1,2,8,8] kernel_size=3 padding=1", "SHAPE" },
        { "max_pool3d_with_indices", "self=i64[1,2,8,8] kernel_size=2", "i64[1,1,4,4] i64[1,1,4,4]" },
        { "max_pool2d", "self=f32[8,8] kernel_size=2", "RANK" },
        { "avg_pool2d", "self=i64[1,1,8,8] kernel_size=2", "i64[1,1,4,4]" },
        { "avg_pool2d", "self=i32[1,1,8,8] kernel_size=2", "DTYPE" },
        { "avg_pool2d", "self=f32[1,1,8,8] kernel_size=2 divisor_override=0", "ATTRIBUTE" },
        { "adaptive_avg_pool2d", "self=f32[2,3,7,9] output_size=[1,4]", "f32[2,3,1,4]" },
        { "adaptive_avg_pool2d", "self=f32[3,s,?] output_size=2", "f32[3,2,2]" },
        { "adaptive_avg_pool2d", "self=f32[2,3,0,9] output_size=1", "SHAPE" },
        { "adaptive_avg_pool2d", "self=f32[2,3,7,9] output_size=-1", "ATTRIBUTE" },
        { "adaptive_avg_pool2d", "self=i64[2,3,7,9] output_size=1", "DTYPE" },
        { "adaptive_avg_pool2d", "self=f32[7,9] output_size=1", "RANK" },
    };
    CHECK_ROWS(rows);
}

/* What PyTorch printed for these calls. */
static void test_promotion_recorded(void)
{
    static const row rows[] = {
        { "aten.mul.Scalar", "self=i32[3] other=0.5", "f32[3]" },
        { "aten.mul.Scalar", "self=f16[3] other=0.5", "f16[3]" },
        { "aten.mul.Scalar", "self=bf16[3] other=2", "bf16[3]" },
        { "aten.add.Scalar", "self=bool[3] other=1", "i64[3]" },
        { "aten.add.Scalar", "self=u8[3] other=300", "u8[3]" },
        { "add", "self=i8[3] other=u8[3]", "i16[3]" },
        { "add", "self=i32[3] other=i64[3]", "i64[3]" },
        { "add", "self=f16[3] other=bf16[3]", "f32[3]" },
        { "add", "self=f16[3] other=f32[3]", "f32[3]" },
        { "add", "self=i64[3] other=f16[3]", "f16[3]" },
        { "add", "self=f16[3] other=f32[]", "f16[3]" },
        { "add", "self=f16[3] other=f64[]", "f16[3]" },
        { "add", "self=i32[3] other=i64[]", "i32[3]" },
        { "add", "self=i32[3] other=f32[]", "f32[3]" },
        { "add", "self=i32[3] other=f64[]", "f64[3]" },
        { "add", "self=bool[3] other=bool[3]", "bool[3]" },
        { "sub", "self=bool[3] other=bool[3]", "DTYPE" },
        { "neg", "self=bool[3]", "DTYPE" },
        { "div", "self=i32[3] other=i32[3]", "f32[3]" },
        { "aten.div.Tensor_mode", "self=i32[3] other=i32[3] rounding_mode='floor'", "i32[3]" },
        { "aten.pow.Tensor_Scalar", "self=i32[3] exponent=-1", "ATTRIBUTE" },
        { "aten.pow.Tensor_Scalar", "self=i32[3] exponent=0.5", "f32[3]" },
        { "clamp", "self=i32[3] min=0.5", "f32[3]" },
        { "sum", "self=i32[3]", "i64[]" },
        { "sum", "self=bool[3]", "i64[]" },
        { "sum", "self=f16[3]", "f16[]" },
        { "mean", "self=i64[3]", "DTYPE" },
        { "amax", "self=i32[3]", "i32[]" },
        { "aten.max.dim", "self=i32[2,3] dim=0", "i32[3] i64[3]" },
        { "argmax", "self=f32[3]", "i64[]" },
        { "cat", "tensors={i32[2],f32[3]}", "f32[5]" },
        { "stack", "tensors={i32[3],f32[3]}", "f32[2,3]" },
        { "aten.where.self", "condition=bool[3] self=i32[3] other=f32[3]", "f32[3]" },
        { "aten.where.Scalar", "condition=bool[3] self=1.0 other=2", "f32[3]" },
        { "eq", "self=i32[3] other=f32[3]", "bool[3]" },
        { "mm", "self=i32[2,2] mat2=i32[2,2]", "i32[2,2]" },
        { "conv2d", "input=i64[1,1,3,3] weight=i64[1,1,2,2]", "i64[1,1,2,2]" },
        { "softmax", "self=i32[3] dim=0", "DTYPE" },
        { "softmax", "self=i32[3] dim=0 dtype=:f32", "f32[3]" },
        { "embedding", "weight=f32[5,4] indices=i32[3]", "f32[3,4]" },
        { "gather", "self=f32[3] dim=0 index=i32[3]", "DTYPE" },
        { "maximum", "self=i32[3] other=f32[3]", "f32[3]" },
        { "repeat", "self=i32[3] repeats=[2]", "i32[6]" },
    };
    NPU_ITEM("S0.21");
    CHECK_ROWS(rows);
}

static void test_promotion_edges(void)
{
    static const row rows[] = {
        { "mul", "self=f16[3] other=0.5", "f16[3]" },
        { "mul", "self=i8[3] other=0.5", "f32[3]" },
        { "mul", "self=i8[3] other=1000", "i8[3]" },
        { "add", "self=f32[] other=f64[]", "f64[]" },
        { "add", "self=bool[3] other=i8[]", "i8[3]" },
        { "add", "self=u32[3] other=i32[3]", "DTYPE" },
        { "add", "self=f8[3] other=f8[3]", "DTYPE" },
        { "add", "self=i32[3] other=i32[3] alpha=0.5", "ATTRIBUTE" },
        { "add", "self=bool[3] other=bool[3] alpha=1", "bool[3]" },
        { "add", "self=bool[3] other=true", "bool[3]" },
        { "aten.add.Scalar", "self=bool[3] other=true", "i64[3]" },
        { "sub", "self=i32[3] other=bool[3]", "DTYPE" },
        { "aten.sub.Scalar", "self=bool[3] other=1", "DTYPE" },
        { "aten.sub.Scalar", "self=i32[3] other=1.0", "f32[3]" },
        { "div", "self=bool[3] other=i64[3]", "f32[3]" },
        { "aten.div.Scalar", "self=f16[3] other=2", "f16[3]" },
        { "aten.div.Tensor_mode", "self=i32[3] other=f32[3] rounding_mode='trunc'", "f32[3]" },
        { "aten.div.Tensor_mode", "self=i32[3] other=i32[3] rounding_mode='up'", "ATTRIBUTE" },
        { "aten.div.Tensor_mode", "self=bool[3] other=bool[3] rounding_mode='trunc'", "DTYPE" },
        { "pow", "self=i64[] exponent=i32[3]", "i32[3]" },
        { "pow", "self=bool[3] exponent=bool[3]", "DTYPE" },
        { "aten.pow.Tensor_Scalar", "self=bool[3] exponent=2", "i64[3]" },
        { "aten.pow.Tensor_Scalar", "self=f32[3] exponent=-1", "f32[3]" },
        { "aten.pow.Scalar", "self=2.0 exponent=bool[3]", "f32[3]" },
        { "clamp", "self=f32[3]", "ATTRIBUTE" },
        { "clamp", "self=bool[3] min=true", "i64[3]" },
        { "aten.clamp.Tensor", "self=f32[2,3] min=f32[3] max=f64[]", "f32[2,3]" },
        { "aten.clamp.Tensor", "self=f32[3]", "ATTRIBUTE" },
        { "aten.clamp.Tensor", "self=bool[3] min=bool[3]", "bool[3]" },
        { "aten.clamp.Tensor", "self=bool[3] min=bool[3] max=bool[3]", "DTYPE" },
        { "aten.where.self", "condition=u8[2,1] self=f32[3] other=f64[]", "f32[2,3]" },
        { "aten.where.self", "condition=f32[3] self=f32[3] other=f32[3]", "DTYPE" },
        { "aten.where.self", "condition=bool[2] self=f32[3] other=f32[3]", "SHAPE" },
        { "aten.where.ScalarOther", "condition=bool[3] self=i32[3] other=0.5", "f32[3]" },
        { "aten.where.ScalarSelf", "condition=bool[3] self=2 other=f16[3]", "f16[3]" },
        { "aten.where.Scalar", "condition=bool[3] self=true other=false", "i64[3]" },
        { "aten.lt.Scalar", "self=f32[2,s] other=1", "bool[2,s]" },
        { "ge", "self=f32[3] other=f32[2]", "SHAPE" },
        { "ne", "self=u64[3] other=i64[3]", "DTYPE" },
        { "sub", "self=f32[3] other=c128[]", "c64[3]" },
        { "sub", "self=f64[3] other=c64[]", "c128[3]" },
        { "sub", "self=i32[3] other=c128[]", "c128[3]" },
        { "sub", "self=c64[3] other=c128[]", "c64[3]" },
        { "angle", "self=c64[3]", "f32[3]" },
        { "angle", "self=c128[3]", "f64[3]" },
        { "angle", "self=i32[3]", "f32[3]" },
    };
    NPU_ITEM("F61");
    CHECK_ROWS(rows);
}

static void test_broadcasting(void)
{
    static const row rows[] = {
        { "tensor.add", "lhs=f32[4,8] rhs=f32[4,8]", "f32[4,8]" },
        { "tensor.add", "lhs=f32[4,8] rhs=f32[8]", "f32[4,8]" },
        { "tensor.add", "lhs=f32[4,1] rhs=f32[8]", "f32[4,8]" },
        { "tensor.add", "lhs=f32[1,8] rhs=f32[4,8]", "f32[4,8]" },
        { "tensor.add", "lhs=f32[4,8] rhs=f32[5]", "SHAPE" },
        { "add", "self=f32[4,8] other=f32[4,8]", "f32[4,8]" },
        { "add", "self=f32[4,8] other=f32[8]", "f32[4,8]" },
        { "add", "self=f32[4,1] other=f32[8]", "f32[4,8]" },
        { "add", "self=f32[1,8] other=f32[4,8]", "f32[4,8]" },
        { "add", "self=f32[4,8] other=f32[5]", "SHAPE" },
        { "add", "self=f32[0,1] other=f32[1,3]", "f32[0,3]" },
        { "add", "self=f32[] other=f32[2,2]", "f32[2,2]" },
    };
    NPU_ITEM("S3.38");
    NPU_ITEM("S3.39");
    NPU_ITEM("S3.40");
    CHECK_ROWS(rows);
}

static void test_broadcasting_dynamic(void)
{
    static const row rows[] = {
        { "tensor.add", "lhs=f32[1,8] rhs=f32[4,8]", "f32[4,8]" },
        { "tensor.add", "lhs=f32[4,8] rhs=f32[5]", "SHAPE" },
        { "tensor.add", "lhs=f32[?,8] rhs=f32[?,1]", "f32[?,8]" },
        { "tensor.add", "lhs=f32[?,8] rhs=f32[1]", "f32[?,8]" },
        { "tensor.add", "lhs=f32[?] rhs=f32[8]", "DYNAMIC_SHAPE" },
        { "add", "self=f32[s,8] other=f32[s,1]", "f32[s,8]" },
        { "add", "self=f32[s,8] other=f32[1,8]", "f32[s,8]" },
        { "add", "self=f32[s] other=f32[?]", "DYNAMIC_SHAPE" },
    };
    NPU_ITEM("S3.41");
    NPU_ITEM("S3.42");
    NPU_ITEM("R3.5");
    CHECK_ROWS(rows);
}

static void test_tensor_promotion(void)
{
    static const row rows[] = {
        { "tensor.add", "lhs=i32[2] rhs=i32[2]", "i32[2]" },
        { "tensor.add", "lhs=i32[2] rhs=f32[2]", "f32[2]" },
        { "tensor.add", "lhs=i32[2] rhs=i64[2]", "i64[2]" },
        { "tensor.sub", "lhs=f32[2] rhs=i64[2]", "f32[2]" },
        { "tensor.mul", "lhs=f16[2] rhs=f32[]", "f32[2]" },
    };
    NPU_ITEM("S3.43");
    NPU_ITEM("S3.44");
    NPU_ITEM("S3.45");
    CHECK_ROWS(rows);
}

static void test_tensor_promotion_signs(void)
{
    static const row rows[] = {
        { "tensor.add", "lhs=i32[2] rhs=i64[2]", "i64[2]" },
        { "tensor.add", "lhs=u32[2] rhs=i32[2]", "i32[2]" },
        { "tensor.add", "lhs=i32[2] rhs=u32[2]", "i32[2]" },
        { "tensor.div", "lhs=i64[2] rhs=f16[2]", "f16[2]" },
    };
    NPU_ITEM("S3.46");
    NPU_ITEM("S3.47");
    NPU_ITEM("S3.48");
    CHECK_ROWS(rows);
}

static void test_tensor_promotion_ties(void)
{
    static const row rows[] = {
        { "tensor.add", "lhs=u64[2] rhs=i32[2]", "u64[2]" },
        { "tensor.add", "lhs=f16[2] rhs=bf16[2]", "f16[2]" },
        { "tensor.add", "lhs=bf16[2] rhs=f16[2]", "bf16[2]" },
        { "tensor.add", "lhs=bool[2] rhs=i8[2]", "i8[2]" },
    };
    NPU_ITEM("S3.49");
    NPU_ITEM("R3.4");
    NPU_ITEM("S3.26");
    CHECK_ROWS(rows);
}

static void test_reshape(void)
{
    static const row rows[] = {
        { "view", "self=f32[25,5] size=[5,-1,5]", "f32[5,5,5]" },
        { "reshape", "self=f32[2,3] shape=[]", "SHAPE" },
        { "reshape", "self=f32[1,1] shape=[]", "f32[]" },
        { "reshape", "self=f32[2,0,3] shape=[0,7]", "f32[0,7]" },
        { "reshape", "self=f32[2,0] shape=[-1,2]", "f32[0,2]" },
        { "reshape", "self=f32[2,0] shape=[-1,0]", "SHAPE" },
        { "reshape", "self=f32[2,3] shape=[4,2]", "SHAPE" },
        { "reshape", "self=f32[2,3] shape=[-1,4]", "SHAPE" },
        { "reshape", "self=f32[2,3] shape=[-1,-1]", "ATTRIBUTE" },
        { "reshape", "self=f32[2,3] shape=[-3,3]", "ATTRIBUTE" },
        { "reshape", "self=f32[2,3] shape=[-2,3]", "f32[s,3]" }, /* -2 is the symbol s */
        { "reshape", "self=f32[2,3] shape=[1,1,1,1,1,1,1,2,3]", "RANK" },
        { "reshape", "self=f32[2,3] shape=[0x7fffffffffffffff,0x7fffffffffffffff]", "OVERFLOW" },
        { "reshape", "self=f32[s,4,8] shape=[s,-1]", "f32[s,32]" },
        { "reshape", "self=f32[s,4,8] shape=[-1,32]", "f32[s,32]" },
        { "reshape", "self=f32[?,4,8] shape=[-1,32]", "f32[?,32]" },
        { "reshape", "self=f32[?,4,8] shape=[-1,16]", "f32[?,16]" },
        { "reshape", "self=f32[s,4] shape=[-1]", "f32[?]" },
        { "reshape", "self=f32[?,4] shape=[2,2]", "f32[2,2]" },
        { "flatten", "self=f32[2,3,4]", "f32[24]" },
        { "flatten", "self=f32[2,3,4] start_dim=1", "f32[2,12]" },
        { "flatten", "self=f32[2,3,4] start_dim=-3 end_dim=-2", "f32[6,4]" },
        { "flatten", "self=f32[]", "f32[1]" },
        { "flatten", "self=f32[s,3,4] start_dim=1", "f32[s,12]" },
        { "flatten", "self=f32[s,1,4] end_dim=1", "f32[s,4]" },
        { "flatten", "self=f32[s,3] ", "f32[?]" },
        { "flatten", "self=f32[2,3,4] start_dim=2 end_dim=1", "AXIS" },
        { "flatten", "self=f32[2,3,4] start_dim=3", "AXIS" },
        { "squeeze", "self=f32[1,5,1,s]", "f32[5,s]" },
        { "aten.squeeze.dim", "self=f32[1,5,1] dim=-1", "f32[1,5]" },
        { "aten.squeeze.dim", "self=f32[1,5,1] dim=1", "f32[1,5,1]" },
        { "aten.squeeze.dim", "self=f32[] dim=-1", "f32[]" },
        { "aten.squeeze.dim", "self=f32[1] dim=1", "AXIS" },
        { "aten.squeeze.dims", "self=f32[1,5,1] dim=[0,2]", "f32[5]" },
        { "aten.squeeze.dims", "self=f32[1,5,1] dim=[]", "f32[1,5,1]" },
        { "aten.squeeze.dims", "self=f32[1,5,1] dim=[0,-3]", "AXIS" },
        { "unsqueeze", "self=f32[2,3] dim=-1", "f32[2,3,1]" },
        { "unsqueeze", "self=f32[] dim=0", "f32[1]" },
        { "unsqueeze", "self=f32[2,3] dim=3", "AXIS" },
        { "unsqueeze", "self=f32[1,1,1,1,1,1,1,1] dim=0", "RANK" },
    };
    CHECK_ROWS(rows);
}

static void test_layout(void)
{
    static const row rows[] = {
        { "permute", "self=f32[2,3,s] dims=[2,0,-2]", "f32[s,2,3]" },
        { "permute", "self=f32[] dims=[]", "f32[]" },
        { "permute", "self=f32[2,3] dims=[0]", "RANK" },
        { "permute", "self=f32[2,3] dims=[0,0]", "AXIS" },
        { "permute", "self=f32[2,3] dims=[0,2]", "AXIS" },
        { "transpose", "self=f32[2,3,4] dim0=0 dim1=-1", "f32[4,3,2]" },
        { "transpose", "self=f32[] dim0=0 dim1=-1", "f32[]" },
        { "transpose", "self=f32[2,3] dim0=0 dim1=2", "AXIS" },
        { "transpose", "self=f32[2,3] dim0=-3 dim1=0", "AXIS" },
        { "expand", "self=f32[3,1] size=[2,-1,5]", "f32[2,3,5]" },
        { "expand", "self=f32[] size=[3]", "f32[3]" },
        { "expand", "self=f32[1] size=[0]", "f32[0]" },
        { "expand", "self=f32[s,1] size=[s,4]", "f32[s,4]" },
        { "expand", "self=f32[s,1] size=[-1,4]", "f32[s,4]" },
        { "expand", "self=f32[3] size=[4]", "SHAPE" },
        { "expand", "self=f32[3] size=[-1,3]", "ATTRIBUTE" },
        { "expand", "self=f32[2,3] size=[3]", "RANK" },
        { "repeat", "self=f32[2,3] repeats=[4,2,1]", "f32[4,4,3]" },
        { "repeat", "self=f32[s,3] repeats=[1,2]", "f32[s,6]" },
        { "repeat", "self=f32[s,3] repeats=[2,2]", "f32[?,6]" },
        { "repeat", "self=f32[2,3] repeats=[2]", "RANK" },
        { "repeat", "self=f32[2,3] repeats=[2,-1]", "ATTRIBUTE" },
        { "repeat", "self=f32[2,3] repeats=[0x7fffffffffffffff,1]", "OVERFLOW" },
    };
    CHECK_ROWS(rows);
}

static void test_join(void)
{
    static const row rows[] = {
        { "cat", "tensors={f32[2,3],f32[4,3]}", "f32[6,3]" },
        { "cat", "tensors={f32[2,3,4],f32[2,5,4]} dim=-2", "f32[2,8,4]" },
        { "cat", "tensors={i64[0],i64[2,3]}", "i64[2,3]" },
        { "cat", "tensors={i8[0],i8[0]}", "i8[0]" },
        { "cat", "tensors={f32[s,3],f32[s,4]} dim=1", "f32[s,7]" },
        { "cat", "tensors={f32[s,3],f32[2,3]}", "f32[?,3]" },
        { "cat", "tensors={f32[?,3],f32[2,4]} dim=1", "f32[2,7]" },
        { "cat", "tensors={f32[s,3]}", "f32[s,3]" },
        { "cat", "tensors={}", "ARITY" },
        { "cat", "tensors={f32[2,3],f32[2,4]}", "SHAPE" },
        { "cat", "tensors={f32[2,3],f32[3]}", "RANK" },
        { "cat", "tensors={f32[],f32[]}", "RANK" },
        { "cat", "tensors={f32[2],f32[2]} dim=1", "AXIS" },
        { "cat", "tensors={f32[0x7fffffffffffffff,0],f32[2,0]}", "OVERFLOW" },
        { "stack", "tensors={f32[2,s],f32[2,s]} dim=-1", "f32[2,s,2]" },
        { "stack", "tensors={f32[],f32[]}", "f32[2]" },
        { "stack", "tensors={f32[2],f32[3]}", "SHAPE" },
        { "stack", "tensors={f32[2],f32[2]} dim=2", "AXIS" },
        { "stack", "tensors={}", "ARITY" },
        { "hstack", "tensors={f32[2],i8[],f32[3]}", "f32[6]" },
        { "hstack", "tensors={f32[2,3,4],f32[2,s,4]}", "f32[2,?,4]" },
        { "hstack", "tensors={f32[2,3],f32[3]}", "RANK" },
        { "vstack", "tensors={u8[3],i32[2,3]}", "i32[3,3]" },
        { "vstack", "tensors={u8[],i32[1,1]}", "i32[2,1]" },
        { "vstack", "tensors={f32[3],f32[2]}", "SHAPE" },
        { "vstack", "tensors={}", "ARITY" },
        { "dstack", "tensors={f32[3],f32[1,3]}", "f32[1,3,2]" },
        { "dstack", "tensors={f32[3],f32[3,1]}", "SHAPE" },
        { "column_stack", "tensors={f32[3],f32[3,4]}", "f32[3,5]" },
        { "column_stack", "tensors={f32[s],f32[s]}", "f32[s,2]" },
        { "column_stack", "tensors={f32[3],f32[4]}", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_parts(void)
{
    static const row rows[] = {
        { "split", "self=f32[5,2] split_size=2", "f32[2,2] f32[2,2] f32[1,2]" },
        { "split", "self=f32[0,2] split_size=0", "f32[0,2]" },
        { "split", "self=f32[2,s] split_size=2", "f32[2,s]" },
        { "split", "self=f32[5] split_size=0", "ATTRIBUTE" },
        { "split", "self=f32[5] split_size=-1", "ATTRIBUTE" },
        { "split", "self=f32[s] split_size=1", "DYNAMIC_SHAPE" },
        { "split", "self=f32[] split_size=1", "RANK" },
        { "split", "self=f32[0x10000000000] split_size=1", "OVERFLOW" },
        { "aten.split.sizes", "self=f32[5,2] split_size=[1,0,4]", "f32[1,2] f32[0,2] f32[4,2]" },
        { "aten.split.sizes", "self=f32[2,s] split_size=[1,4] dim=1", "f32[2,1] f32[2,4]" },
        { "aten.split.sizes", "self=f32[5] split_size=[1,3]", "SHAPE" },
        { "aten.split.sizes", "self=f32[5] split_size=[6,-1]", "ATTRIBUTE" },
        { "chunk", "self=f32[7] chunks=3", "f32[3] f32[3] f32[1]" },
        { "chunk", "self=f32[4] chunks=3", "f32[2] f32[2]" },
        { "chunk", "self=f32[0] chunks=2", "f32[0] f32[0]" },
        { "chunk", "self=f32[4] chunks=0", "ATTRIBUTE" },
        { "chunk", "self=f32[4] chunks=2 dim=1", "AXIS" },
        { "select", "self=f32[2,3] dim=1 index=-3", "f32[2]" },
        { "select", "self=f32[s,3] dim=0 index=7", "f32[3]" },
        { "select", "self=f32[2,3] dim=1 index=3", "RANGE" },
        { "select", "self=f32[2,3] dim=2 index=0", "AXIS" },
        { "select", "self=f32[] dim=0 index=0", "RANK" },
        { "slice", "self=f32[10] start=2 end=-1 step=3", "f32[3]" },
        { "slice", "self=f32[10] start=8 end=4", "f32[0]" },
        { "slice", "self=f32[10] start=-100 end=9223372036854775807", "f32[10]" },
        { "slice", "self=f32[10] step=9223372036854775807", "f32[1]" },
        { "slice", "self=f32[s,4] start=0", "f32[s,4]" },
        { "slice", "self=f32[s,4] start=1", "f32[?,4]" },
        { "slice", "self=f32[10] step=0", "ATTRIBUTE" },
        { "slice", "self=f32[10] dim=1", "AXIS" },
        { "slice", "self=f32[]", "RANK" },
    };
    CHECK_ROWS(rows);
}

static void test_reduction(void)
{
    static const row rows[] = {
        { "aten.mean.dim", "self=f32[2,3,4] dim=[-1]", "f32[2,3]" },
        { "aten.mean.dim", "self=f32[2,3,4] dim=[0,2] keepdim=true", "f32[1,3,1]" },
        { "aten.mean.dim", "self=f32[2,3,4] dim=[]", "f32[]" },
        { "aten.mean.dim", "self=i64[2,3] dim=[0] dtype=:f32", "f32[3]" },
        { "aten.mean.dim", "self=f32[s,?] dim=[1]", "f32[s]" },
        { "mean", "self=f32[2] dtype=:i64", "DTYPE" },
        { "aten.mean.dim", "self=f32[2,3] dim=[0,-2]", "AXIS" },
        { "aten.mean.dim", "self=f32[2,3] dim=[2]", "AXIS" },
        { "aten.sum.dim_IntList", "self=bool[2,3] dim=[0]", "i64[3]" },
        { "aten.sum.dim_IntList", "self=i32[2,3] dim=[0] dtype=:i32", "i32[3]" },
        { "aten.sum.dim_IntList", "self=f32[] dim=[0]", "f32[]" },
        { "aten.sum.dim_IntList", "self=f32[0,3] dim=[0]", "f32[3]" },
        { "sum", "self=f8[3]", "DTYPE" },
        { "aten.sum.dim_IntList", "self=f32[2,3] dim=[-3]", "AXIS" },
        { "amax", "self=bool[2,3] dim=[1] keepdim=true", "bool[2,1]" },
        { "amin", "self=f32[0,3] dim=[1]", "f32[0]" },
        { "amin", "self=f32[0,3] dim=[0]", "SHAPE" },
        { "max", "self=f32[0]", "SHAPE" },
        { "max", "self=c64[3]", "DTYPE" },
        { "aten.max.dim", "self=f32[2,0] dim=0", "f32[0] i64[0]" },
        { "aten.max.dim", "self=f32[2,0] dim=1", "SHAPE" },
        { "aten.max.dim", "self=f32[2,s] dim=1 keepdim=true", "f32[2,1] i64[2,1]" },
        { "aten.max.dim", "self=f32[2,3] dim=2", "AXIS" },
        { "argmax", "self=f32[2,3] dim=1", "i64[2]" },
        { "argmax", "self=f32[2,3] keepdim=true", "i64[1,1]" },
        { "argmax", "self=bool[3]", "DTYPE" },
        { "argmax", "self=f32[0]", "SHAPE" },
        { "softmax", "self=f16[2,s] dim=-1", "f16[2,s]" },
        { "softmax", "self=f32[] dim=0 dtype=:f64", "f64[]" },
        { "softmax", "self=f32[2] dim=0 dtype=:i64", "DTYPE" },
        { "softmax", "self=f32[2] dim=1", "AXIS" },
        { "log_softmax", "self=bool[2] dim=0 dtype=:f64", "f64[2]" },
        { "log_softmax", "self=i64[2] dim=0", "DTYPE" },
        { "sum_to_size", "self=i32[4,2,3] size=[2,1]", "i64[2,1]" },
        { "sum_to_size", "self=i32[2,3] size=[2,3]", "i32[2,3]" },
        { "sum_to_size", "self=f16[2,s] size=[2,1]", "f16[2,1]" },
        { "sum_to_size", "self=f32[2,3] size=[2]", "SHAPE" },
        { "sum_to_size", "self=f32[3] size=[1,3]", "RANK" },
        { "sum_to_size", "self=f32[3] size=[-1]", "ATTRIBUTE" },
        { "trace", "self=bool[2,s]", "DTYPE" },
        { "trace", "self=i8[2,s]", "i64[]" },
        { "trace", "self=f32[2]", "RANK" },
        { "renorm", "self=f16[2,s] p=2 dim=-1 maxnorm=0.5", "f16[2,s]" },
        { "renorm", "self=f32[2] p=2 dim=0 maxnorm=1", "RANK" },
        { "renorm", "self=f32[2,3] p=0 dim=0 maxnorm=1", "ATTRIBUTE" },
        { "renorm", "self=f32[2,3] p=1 dim=0 maxnorm=-1", "ATTRIBUTE" },
        { "renorm", "self=f32[2,3] p=1 dim=2 maxnorm=1", "AXIS" },
        { "renorm", "self=i32[2,3] p=1 dim=0 maxnorm=1", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_native_norms(void)
{
    static const row rows[] = {
        { "aten.native_batch_norm.default",
          "input=f32[2,3,4] weight=f32[3] bias=f32[3] training=true momentum=0.1 eps=0.1",
          "f32[2,3,4] f32[3] f32[3]" },
        { "aten._native_batch_norm_legit_functional.default",
          "input=f32[2,s] running_mean=f32[3] running_var=f32[s] training=true momentum=0.1 eps=0.00001",
          "f32[2,s] f32[s] f32[s] f32[3] f32[s]" }, /* new statistics are what they take the place of */
        { "aten._native_batch_norm_legit.no_stats",
          "input=f32[2,3,4] weight=f32[2] bias=f32[3] training=true momentum=0.1 eps=0.1", "SHAPE" },
        { "instance_norm", "input=f32[2,3,4] use_input_stats=false momentum=0.1 eps=0.1 cudnn_enabled=false",
          "ARITY" },
        { "rms_norm", "input=f32[2,3] normalized_shape=[4]", "SHAPE" },
        { "native_group_norm", "input=f32[2,6,5] N=2 C=6 HxW=5 group=3 eps=0.1",
          "f32[2,6,5] f32[2,3] f32[2,3]" },
        { "native_group_norm", "input=f32[2,6,5] N=2 C=6 HxW=4 group=3 eps=0.1", "SHAPE" },
        { "native_group_norm", "input=f32[2,6,5] N=2 C=6 HxW=5 group=4 eps=0.1", "SHAPE" },
        { "native_layer_norm_backward",
          "grad_out=f32[2,3] input=f32[2,3] normalized_shape=[3] mean=f32[2,1] rstd=f32[2,1] "
          "output_mask=[1,0,1]",
          "f32[2,3] f32[0] f32[3]" },
        { "native_layer_norm_backward",
          "grad_out=f32[2,3] input=f32[2,3] normalized_shape=[3] mean=f32[2,3] rstd=f32[2,3] "
          "output_mask=[1,1,1]",
          "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_pooling_more(void)
{
    static const row rows[] = {
        { "avg_pool1d", "self=f32[2,3,8] kernel_size=2", "f32[2,3,4]" },
        { "max_pool3d", "self=f32[2,8,8] kernel_size=2", "RANK" },
        { "max_pool2d_with_indices", "self=f32[3,8,8] kernel_size=2", "f32[3,4,4] i64[3,4,4]" },
        { "adaptive_max_pool2d", "self=i64[3,8,8] output_size=2", "DTYPE" },
        { "fractional_max_pool2d", "self=f32[s,3,9,9] kernel_size=3 output_size=4 random_samples=f32[s,3,2]",
          "f32[s,3,4,4] i64[s,3,4,4]" },
        { "fractional_max_pool2d", "self=f32[3,9,9] kernel_size=3 output_size=7 random_samples=f32[1,3,2]",
          "f32[3,7,7] i64[3,7,7]" },
        { "fractional_max_pool2d", "self=f32[3,9,9] kernel_size=3 output_size=8 random_samples=f32[1,3,2]",
          "ATTRIBUTE" },
        { "fractional_max_pool2d", "self=f32[3,9,9] kernel_size=0 output_size=8 random_samples=f32[1,3,2]",
          "ATTRIBUTE" },
        { "fractional_max_pool2d", "self=f32[2,3,9,9] kernel_size=3 output_size=4 random_samples=f32[1,3,2]",
          "SHAPE" },
        { "fractional_max_pool2d", "self=f32[3,9,9] kernel_size=3 output_size=4 random_samples=f32[1,3,3]",
          "SHAPE" },
        { "fractional_max_pool2d", "self=f32[3,9,9] kernel_size=3 output_size=4 random_samples=f64[1,3,2]",
          "DTYPE" },
        { "fractional_max_pool2d", "self=i64[3,9,9] kernel_size=3 output_size=4 random_samples=i64[1,3,2]",
          "DTYPE" },
        { "fractional_max_pool2d", "self=f32[9,9] kernel_size=3 output_size=4 random_samples=f32[1,3,2]",
          "RANK" },
        { "fractional_max_pool3d",
          "self=f64[0,3,6,5,4] kernel_size=2 output_size=[3,2,2] random_samples=f64[0,3,3]",
          "f64[0,3,3,2,2] i64[0,3,3,2,2]" },
        { "fractional_max_pool3d",
          "self=f64[3,6,5,4] kernel_size=2 output_size=3 random_samples=f64[1,3,3]", "ATTRIBUTE" },
        { "avg_pool2d_backward",
          "grad_output=f32[3,4,4] self=f32[3,8,8] kernel_size=2 stride=2 padding=0 ceil_mode=false "
          "count_include_pad=false", "f32[3,8,8]" },
        { "avg_pool2d_backward",
          "grad_output=f32[3,5,4] self=f32[3,8,8] kernel_size=2 stride=2 padding=0 ceil_mode=false "
          "count_include_pad=false", "SHAPE" },
        { "aten._adaptive_avg_pool2d_backward.default", "grad_output=f64[3,2,2] self=f32[3,8,8]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_resize(void)
{
    static const row rows[] = {
        { "upsample_nearest1d", "self=u8[2,3,4] output_size=[7]", "u8[2,3,7]" },
        { "upsample_linear1d", "self=u8[2,3,4] output_size=[7] align_corners=false", "DTYPE" },
        { "upsample_linear1d", "self=f32[2,3,4] output_size=[0] align_corners=false", "ATTRIBUTE" },
        { "upsample_bicubic2d", "self=f32[2,4,4] output_size=[3,3] align_corners=false", "RANK" },
        { "aten.upsample_nearest2d.vec", "input=f32[1,2,4,5] output_size=[8,-1]", "ATTRIBUTE" },
        { "aten.upsample_nearest2d.vec", "input=f32[1,2,4,5]", "ATTRIBUTE" },
        { "grid_sampler_2d",
          "input=f32[1,2,4,5] grid=f32[1,6,7,2] interpolation_mode=0 padding_mode=0 align_corners=false",
          "f32[1,2,6,7]" },
        { "grid_sampler_2d",
          "input=f32[1,2,4,5] grid=f32[1,6,7,3] interpolation_mode=0 padding_mode=0 align_corners=false",
          "SHAPE" },
        { "grid_sampler_3d",
          "input=f32[1,2,4,5,6] grid=f32[1,6,7,8,3] interpolation_mode=2 padding_mode=0 align_corners=false",
          "ATTRIBUTE" },
    };
    CHECK_ROWS(rows);
}

static void test_distance(void)
{
    static const row rows[] = {
        { "_cdist_forward", "x1=f32[4,1,2,3] x2=f32[5,6,3] p=2.0", "f32[4,5,2,6]" },
        { "_cdist_forward", "x1=f32[2,3] x2=f32[2,4] p=2.0", "SHAPE" },
        { "_cdist_forward", "x1=f32[2,3] x2=f32[2,3] p=-1.0", "ATTRIBUTE" },
        { "_cdist_forward", "x1=f32[2,3] x2=f32[2,3] p=2.0 compute_mode=-1", "ATTRIBUTE" },
        { "_cdist_forward", "x1=f32[2,3] x2=f32[2,3] p=2.0 compute_mode=3", "ATTRIBUTE" },
        { "_pdist_forward", "self=f32[4,3]", "f32[6]" },
        { "pdist", "self=i32[4,3]", "DTYPE" },
        { "aten.embedding_bag.default", "weight=f32[9,4] indices=i64[5] offsets=i64[2]",
          "f32[2,4] i64[5] i64[2] i64[2]" },
        { "aten.embedding_bag.default", "weight=f32[9,4] indices=i64[5] offsets=i64[2] mode=3", "ATTRIBUTE" },
        { "aten.embedding_bag.default", "weight=f32[9,4] indices=f32[5] offsets=i64[2]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_samples(void)
{
    static const row rows[] = {
        { "cov", "self=f32[3,s]", "f32[3,3]" },
        { "cov", "self=u8[4]", "f32[]" },
        { "cov", "self=f16[1,4]", "f16[]" },
        { "cov", "self=i64[3,4] aweights=f64[4]", "f64[3,3]" },
        { "cov", "self=i64[3,1] aweights=f64[1]", "f32[3,3]" },
        { "cov", "self=bf16[3,4] fweights=i32[4] aweights=f32[4]", "f32[3,3]" },
        { "cov", "self=f32[3,1] fweights=i32[1] aweights=f64[]", "f64[3,3]" },
        { "cov", "self=f32[3,4] fweights=i32[3]", "SHAPE" },
        { "cov", "self=f32[3,4] aweights=f32[4,1]", "RANK" },
        { "cov", "self=f32[3,4] fweights=f32[4]", "DTYPE" },
        { "cov", "self=f32[3,4] aweights=i32[4]", "DTYPE" },
        { "cov", "self=bool[3,4]", "DTYPE" },
        { "corrcoef", "self=i32[3,4]", "f32[3,3]" },
        { "corrcoef", "self=f32[2,3,4]", "RANK" },
        { "aten.trapezoid.x", "y=i8[2,3] x=f64[3]", "f64[2]" },
        { "aten.trapezoid.x", "y=f32[2,s] x=f32[s]", "f32[2]" },
        { "aten.trapezoid.x", "y=f32[4] x=f32[4,3] dim=0", "f32[3]" },
        { "aten.trapezoid.x", "y=i64[2,0] x=f32[5]", "i64[2]" },
        { "aten.trapezoid.x", "y=f32[2,3] x=f32[2]", "SHAPE" },
        { "aten.trapezoid.x", "y=f32[2,4] x=f32[2,3]", "SHAPE" },
        { "aten.trapezoid.x", "y=f32[2,3] x=bool[3]", "DTYPE" },
        { "aten.trapezoid.dx", "y=u8[2,3] dim=0 dx=0.5", "f32[3]" },
        { "aten.trapezoid.dx", "y=bool[2,3]", "DTYPE" },
        { "aten.trapezoid.dx", "y=f32[]", "RANK" },
        { "aten.trapezoid.dx", "y=f32[3] dim=1", "AXIS" },
        { "aten.trapz.x", "y=f16[2,3] x=f16[2,3] dim=0", "f16[3]" },
        { "aten.trapz.dx", "y=i32[2,3]", "f32[2]" },
        { "aten.cumulative_trapezoid.x", "y=f32[2,3] x=f32[3]", "f32[2,2]" },
        { "aten.cumulative_trapezoid.x", "y=f32[0] x=f32[0]", "f32[0]" },
        { "aten.cumulative_trapezoid.x", "y=f32[2,3] x=f32[4]", "SHAPE" },
        { "aten.cumulative_trapezoid.dx", "y=i64[2,s]", "f32[2,?]" },
        { "aten.cumulative_trapezoid.dx", "y=f32[3] dim=-2", "AXIS" },
    };
    CHECK_ROWS(rows);
}

static void test_losses(void)
{
    static const row rows[] = {
        { "mse_loss", "self=f32[2,3] target=f64[3] reduction=0", "f64[2,3]" },
        { "mse_loss", "self=f32[2,3] target=f32[3]", "f32[]" },
        { "mse_loss", "self=i32[2,3] target=i32[3]", "DTYPE" },
        { "l1_loss", "self=f32[2,3] target=f32[3] reduction=3", "ATTRIBUTE" },
        { "smooth_l1_loss", "self=f32[3] target=f32[3] beta=-1.0", "ATTRIBUTE" },
        { "binary_cross_entropy", "self=f32[2,3] target=f32[3]", "SHAPE" },
        { "kl_div", "self=f32[2,3] target=f32[2,4]", "SHAPE" },
        { "nll_loss", "self=f32[4,5] target=i64[4] reduction=0", "f32[4]" },
        { "nll_loss", "self=f32[4,5] target=i64[3]", "SHAPE" },
        { "nll_loss", "self=f32[4,5] target=i64[4] weight=f32[4]", "SHAPE" },
        { "nll_loss_forward", "self=f32[4,5] target=i64[4] reduction=1 ignore_index=0", "f32[] f32[]" },
        { "cross_entropy_loss", "self=f32[4,5,6] target=f32[4,5,6] reduction=0", "f32[4,6]" },
        { "cross_entropy_loss", "self=f32[4,5] target=i32[4]", "DTYPE" },
        { "cosine_similarity", "x1=f32[2,3] x2=f32[4,1,3] dim=-1", "f32[4,2]" },
        { "cosine_similarity", "x1=f32[2,3] x2=f32[2,3] dim=2", "AXIS" },
        { "pairwise_distance", "x1=i32[2,3] x2=i32[3] keepdim=true", "f32[2,1]" },
        { "pairwise_distance", "x1=f32[] x2=f32[] keepdim=true", "f32[]" },
        { "pairwise_distance", "x1=f32[2,0] x2=f32[2,1]", "f32[2]" },
        { "pairwise_distance", "x1=f32[2,0] x2=f32[2,1] p=-1.0", "SHAPE" },
        { "dist", "self=f32[2,3] other=f32[2]", "SHAPE" },
        { "dist", "self=i32[2] other=i32[2]", "DTYPE" },
        { "_softmax_backward_data", "grad_output=f32[2,3] output=f32[2,3] dim=1 input_dtype=:f16",
          "f16[2,3]" },
        { "_softmax_backward_data", "grad_output=f32[2,3] output=f32[2,4] dim=1 input_dtype=:f32", "SHAPE" },
        { "cosine_embedding_loss", "input1=f32[s,5] input2=f64[1,5] target=i64[1] reduction=0", "f64[s]" },
        { "cosine_embedding_loss", "input1=u8[5] input2=u8[5] target=f64[]", "f32[]" },
        { "cosine_embedding_loss", "input1=f32[3,5] input2=f32[3,4] target=i64[3]", "SHAPE" },
        { "cosine_embedding_loss", "input1=f32[3,5] input2=f32[3,5] target=i64[4]", "SHAPE" },
        { "cosine_embedding_loss", "input1=f32[3,5] input2=f32[3,5] target=i64[]", "RANK" },
        { "cosine_embedding_loss", "input1=f32[3,5] input2=f32[5] target=i64[3]", "RANK" },
        { "cosine_embedding_loss", "input1=f32[5] input2=f32[5] target=i64[] reduction=3", "ATTRIBUTE" },
        { "multi_margin_loss", "self=f32[s,5] target=i64[s] reduction=0", "f32[s]" },
        { "multi_margin_loss", "self=f64[5] target=i64[1] weight=f64[5] reduction=0", "f64[1]" },
        { "multi_margin_loss", "self=f32[5] target=i64[] reduction=0", "f32[]" },
        { "multi_margin_loss", "self=f32[3,5] target=i64[4]", "SHAPE" },
        { "multi_margin_loss", "self=f32[3,5] target=i64[]", "SHAPE" },
        { "multi_margin_loss", "self=f32[3,0] target=i64[3]", "SHAPE" },
        { "multi_margin_loss", "self=f32[3,5] target=i64[3] weight=f32[3]", "SHAPE" },
        { "multi_margin_loss", "self=f32[3,5] target=i64[3] weight=f64[5]", "DTYPE" },
        { "multi_margin_loss", "self=f32[3,5] target=i32[3]", "DTYPE" },
        { "multi_margin_loss", "self=i64[3,5] target=i64[3]", "DTYPE" },
        { "multi_margin_loss", "self=f32[3,5] target=i64[3] p=3", "ATTRIBUTE" },
        { "multi_margin_loss", "self=f32[2,3,5] target=i64[2]", "RANK" },
        { "multilabel_margin_loss", "self=f32[3,5] target=i64[3,5] reduction=0", "f32[3]" },
        { "multilabel_margin_loss", "self=f32[] target=i64[1] reduction=0", "f32[]" },
        { "multilabel_margin_loss", "self=f32[3,5] target=i64[5]", "SHAPE" },
        { "multilabel_margin_loss", "self=f32[3,5] target=i64[3,4]", "SHAPE" },
        { "multilabel_margin_loss", "self=f32[5] target=f32[5]", "DTYPE" },
        { "multilabel_margin_loss_forward", "self=f64[3,5] target=i64[3,5] reduction=2", "f64[] f64[3,5]" },
        { "multilabel_margin_loss_forward", "self=f32[5] target=i64[4] reduction=0", "SHAPE" },
        { "triplet_margin_loss", "anchor=f32[3,5] positive=f32[3,1] negative=f16[1,5] reduction=0",
          "f32[3]" },
        { "triplet_margin_loss", "anchor=i64[5] positive=i64[5] negative=bf16[5]", "f32[]" },
        { "triplet_margin_loss", "anchor=f32[3,5] positive=f32[3,5] negative=f32[3,4]", "SHAPE" },
        { "triplet_margin_loss", "anchor=f32[3,5] positive=f32[5] negative=f32[3,5]", "RANK" },
        { "triplet_margin_loss", "anchor=u64[3,5] positive=i64[3,5] negative=i64[3,5]", "DTYPE" },
        { "triplet_margin_loss", "anchor=f32[5] positive=f32[5] negative=bool[5]", "DTYPE" },
        { "triplet_margin_loss", "anchor=f32[] positive=f32[] negative=f32[] reduction=0", "f32[]" },
        { "triplet_margin_loss", "anchor=f32[] positive=f32[1] negative=f32[]", "RANK" },
        { "triplet_margin_loss", "anchor=f32[2,0] positive=f32[2,0] negative=f32[2,1] p=-1.0", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_statistics(void)
{
    static const row rows[] = {
        { "any", "self=f32[2,3]", "bool[]" },
        { "aten.any.dim", "self=u8[2,3] dim=1", "u8[2]" },
        { "aten.any.dims", "self=f32[2,3] dim=[]", "bool[2,3]" },
        { "aten.all.dims", "self=f32[2,3] dim=[0,2]", "AXIS" },
        { "aten.any.dims", "self=f32[2,3] dim=[0,0]", "AXIS" },
        { "aten.prod.dim_int", "self=i8[2,0] dim=1", "i64[2]" },
        { "min", "self=f32[0]", "SHAPE" },
        { "aten.min.dim", "self=f32[2,3] dim=1 keepdim=true", "f32[2,1] i64[2,1]" },
        { "argmin", "self=bool[3]", "DTYPE" },
        { "aten.var_mean.dim", "self=f16[2,3] dim=[1]", "f16[2] f16[2]" },
        { "var", "self=i32[3]", "DTYPE" },
        { "aten.logsumexp.default", "self=i32[2,3] dim=[0]", "f32[3]" },
        { "linalg_vector_norm", "self=f32[2,s] dim=[0] dtype=:f64", "f64[s]" },
        { "linalg_vector_norm", "self=f32[2,0] ord=-1 dim=[1]", "SHAPE" },
        { "linalg_vector_norm", "self=i32[2]", "DTYPE" },
        { "linalg_vector_norm", "self=f32[2] dtype=:f16", "DTYPE" },
        { "linalg_matrix_norm", "self=f32[2,s,4] ord=2", "f32[2]" },
        { "linalg_matrix_norm", "self=f16[2,3,4] ord=1 dim=[2,0] keepdim=true dtype=:f32", "f32[1,3,1]" },
        { "linalg_matrix_norm", "self=f32[0,3] ord=1", "f32[]" },
        { "linalg_matrix_norm", "self=f32[0,3] ord=-inf", "SHAPE" },
        { "linalg_matrix_norm", "self=f32[0,3] ord=-2", "SHAPE" },
        { "linalg_matrix_norm", "self=f32[2,3] ord=3", "ATTRIBUTE" },
        { "linalg_matrix_norm", "self=f32[2,3,4] ord=1 dim=[0]", "ATTRIBUTE" },
        { "linalg_matrix_norm", "self=f32[2,3,4] ord=1 dim=[0,-3]", "AXIS" },
        { "linalg_matrix_norm", "self=f32[3] ord=1", "RANK" },
        { "linalg_matrix_norm", "self=f16[2,3] ord=2", "DTYPE" },
        { "linalg_matrix_norm", "self=f64[2,3] ord=1 dtype=:f32", "DTYPE" },
        { "aten.linalg_matrix_norm.str_ord", "self=f32[2,3,4]", "f32[2]" },
        { "aten.linalg_matrix_norm.str_ord", "self=f32[0,3] ord='nuc'", "f32[]" },
        { "aten.linalg_matrix_norm.str_ord", "self=bf16[2,3] ord='fro'", "bf16[]" },
        { "aten.linalg_matrix_norm.str_ord", "self=bf16[2,3] ord='nuc'", "DTYPE" },
        { "aten.linalg_matrix_norm.str_ord", "self=f32[2,3] ord='max'", "ATTRIBUTE" },
        { "linalg_norm", "self=f32[2,3,4]", "f32[]" },
        { "linalg_norm", "self=f32[2,3,4] dim=[0,1]", "f32[4]" },
        { "linalg_norm", "self=f32[2,3,4] ord=3 dim=[0]", "f32[3,4]" },
        { "linalg_norm", "self=f32[2,3] ord=-inf keepdim=true", "f32[1,1]" },
        { "linalg_norm", "self=f32[2,3] ord=3", "ATTRIBUTE" },
        { "linalg_norm", "self=f32[2,3,4] ord=2", "RANK" },
        { "linalg_norm", "self=f32[2,3,4] dim=[0,1,2]", "ATTRIBUTE" },
        { "linalg_norm", "self=i64[2]", "DTYPE" },
        { "aten.linalg_norm.ord_str", "self=f32[2,3] ord='nuc'", "f32[]" },
        { "aten.linalg_norm.ord_str", "self=f32[2,3] ord='nuc' dim=[0]", "ATTRIBUTE" },
        { "aten.linalg_norm.ord_str", "self=f32[3] ord='fro'", "RANK" },
        { "aten._softmax.default", "self=f16[2,3] dim=1 half_to_float=true", "f32[2,3]" },
        { "aten._softmax.default", "self=f32[2,3] dim=1 half_to_float=true", "DTYPE" },
        { "aten.count_nonzero.dim_IntList", "self=bool[2,3] dim=[0]", "i64[3]" },
        { "aminmax", "self=f32[] dim=0 keepdim=true", "f32[1] f32[1]" },
    };
    CHECK_ROWS(rows);
}

static void test_order(void)
{
    static const row rows[] = {
        { "cumsum", "self=bool[2,3] dim=-1", "i64[2,3]" },
        { "cumsum", "self=f32[2,3] dim=2", "AXIS" },
        { "cummax", "self=i8[2,3] dim=0", "i8[2,3] i64[2,3]" },
        { "logcumsumexp", "self=i32[3] dim=0", "DTYPE" },
        { "sort", "self=f32[2,s]", "f32[2,s] i64[2,s]" },
        { "argsort", "self=f32[2,3]", "i64[2,3]" },
        { "msort", "self=f32[]", "f32[]" },
        { "topk", "self=f32[2,3] k=2", "f32[2,2] i64[2,2]" },
        { "topk", "self=f32[2,3] k=4", "RANGE" },
        { "topk", "self=bool[3] k=1", "DTYPE" },
        { "kthvalue", "self=f32[2,3] k=0", "RANGE" },
        { "kthvalue", "self=f32[2,3] k=3 dim=1", "f32[2] i64[2]" },
        { "median", "self=f32[0]", "f32[]" },
        { "median", "self=i32[0]", "SHAPE" },
        { "aten.median.dim", "self=bool[3] dim=0", "DTYPE" },
        { "quantile", "self=f32[2,3] q=f32[5] dim=1", "f32[5,2]" },
        { "quantile", "self=f32[2,3] q=f64[5]", "DTYPE" },
        { "aten.quantile.scalar", "self=f64[2,3] q=0.5", "f64[]" },
        { "aten.quantile.scalar", "self=f64[2,3] q=1.5", "RANGE" },
        { "aten.quantile.scalar", "self=f32[3] q=0.5 interpolation='cubic'", "ATTRIBUTE" },
        { "diff", "self=f32[2,5]", "f32[2,4]" },
        { "diff", "self=f32[2,5] n=9", "f32[2,0]" },
        { "diff", "self=i8[2,5] n=2 dim=0 prepend=i16[1,5] append=f16[3,5]", "f16[4,5]" },
        { "diff", "self=f32[2,5] n=0 append=f64[2,1]", "f32[2,5]" },
        { "diff", "self=f32[2,s] append=f32[2,0]", "f32[2,?]" },
        { "diff", "self=f32[]", "RANK" },
        { "diff", "self=f32[2,5] append=f32[5]", "RANK" },
        { "diff", "self=f32[2,5] append=f32[3,5]", "SHAPE" },
        { "diff", "self=f32[2,5] n=-1", "ATTRIBUTE" },
        { "diff", "self=f32[2,5] dim=2", "AXIS" },
        { "vander", "x=u8[3]", "i64[3,3]" },
        { "vander", "x=bf16[3] N=0", "bf16[3,0]" },
        { "vander", "x=f32[]", "RANK" },
        { "vander", "x=f32[3] N=-1", "ATTRIBUTE" },
        { "linalg_vander", "x=f32[2,s] N=4", "f32[2,s,4]" },
        { "linalg_vander", "x=i8[] N=2", "i64[1,2]" },
        { "linalg_vander", "x=f32[2,1]", "ATTRIBUTE" },
        { "linalg_vander", "x=bool[2]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_search(void)
{
    static const row rows[] = {
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f16[2,s]", "i64[2,s]" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f32[] out_int32=true", "i32[]" },
        { "aten.searchsorted.Tensor", "sorted_sequence=i8[2,9] self=i8[2,3] sorter=i64[2,9] side='right'", "i64[2,3]" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[2,9] self=f32[3,3]", "SHAPE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[2,9] self=f32[2]", "RANK" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[] self=f32[2]", "RANK" },
        { "aten.searchsorted.Tensor", "sorted_sequence=bool[2] self=f32[2]", "i64[2]" },
        { "aten.searchsorted.Tensor", "sorted_sequence=bool[2] self=bool[2]", "DTYPE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f32[2] sorter=i64[8]", "SHAPE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f32[2] sorter=i32[9]", "DTYPE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f32[2] side='middle'", "ATTRIBUTE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[9] self=f32[2] side='left' right=true", "ATTRIBUTE" },
        { "aten.bucketize.Tensor", "self=f32[2,3] boundaries=f64[s]", "i64[2,3]" },
        { "aten.bucketize.Tensor", "self=f32[2,3] boundaries=f32[2,9]", "RANK" },
        { "aten.isin.Tensor_Tensor", "elements=f32[2,s] test_elements=i8[4,5]", "bool[2,s]" },
        { "aten.isin.Tensor_Tensor", "elements=bool[2] test_elements=bool[2]", "DTYPE" },
        { "bincount", "self=u8[3]", "i64[?]" },
        { "bincount", "self=u8[3] weights=f16[3]", "f64[?]" },
        { "bincount", "self=u8[3,1]", "RANK" },
        { "bincount", "self=bool[3]", "DTYPE" },
        { "bincount", "self=i64[3] weights=f32[4]", "SHAPE" },
        { "bincount", "self=i64[3] minlength=-1", "ATTRIBUTE" },
        { "histc", "self=bf16[2,3] bins=4", "bf16[4]" },
        { "histc", "self=i32[2,3] bins=4", "DTYPE" },
        { "histc", "self=f32[2,3] bins=0", "ATTRIBUTE" },
        { "histc", "self=f32[2,3] min=2 max=1", "ATTRIBUTE" },
        { "histc", "self=f32[2,3] min=0 max=inf", "ATTRIBUTE" },
        { "aten.histogram.bin_ct", "self=f32[2,3] bins=4 weight=f32[6]", "f32[4] f32[5]" },
        { "aten.histogram.bin_ct", "self=f32[2,3] bins=4 weight=f32[5]", "SHAPE" },
        { "aten.histogram.bin_ct", "self=f32[2,3] bins=4 weight=f64[6]", "DTYPE" },
        { "aten.histogram.bin_ct", "self=f32[2,3] bins=0x7fffffffffffffff", "OVERFLOW" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f32[s]", "f32[?] f32[s]" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f32[4]", "f32[3] f32[4]" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f32[1]", "ATTRIBUTE" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f32[0]", "ATTRIBUTE" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f64[4]", "DTYPE" },
        { "aten.histogram.bins_tensor", "self=f32[2,3] bins=f32[2,2]", "RANK" },
        { "_unique2", "self=f32[2,3]", "f32[?] i64[0] i64[0]" },
        { "_unique2", "self=bool[] return_inverse=true return_counts=true", "bool[?] i64[] i64[?]" },
        { "unique_consecutive", "self=f32[2,3] dim=-1 return_inverse=true", "f32[2,?] i64[3] i64[0]" },
        { "unique_consecutive", "self=f32[] dim=0", "RANK" },
        { "unique_dim", "self=i8[2,s] dim=0 return_counts=true", "i8[?,s] i64[0] i64[?]" },
        { "unique_dim", "self=i8[2,0] dim=0", "SHAPE" },
        { "unique_dim", "self=i8[2,3] dim=2", "AXIS" },
    };
    CHECK_ROWS(rows);
}

static void test_lookup(void)
{
    static const row rows[] = {
        { "scaled_dot_product_attention", "query=f32[2,4,17,16] key=f32[2,4,40,16] value=f32[2,4,40,8]",
          "f32[2,4,17,8]" },
        { "scaled_dot_product_attention",
          "query=f32[2,4,8,16] key=f32[2,1,8,16] value=f32[2,1,8,16] is_causal=true "
          "enable_gqa=true",
          "f32[2,4,8,16]" },
        { "scaled_dot_product_attention",
          "query=f32[2,1,7,4] key=f32[2,1,3,4] value=f32[2,1,3,6] attn_mask=bool[7,3]", "f32[2,1,7,6]" },
        { "scaled_dot_product_attention", "query=f32[s,4,?,16] key=f32[s,4,?,16] value=f32[s,4,?,16]",
          "f32[s,4,?,16]" },
        { "scaled_dot_product_attention", "query=f32[2,7,4] key=f32[2,3,5] value=f32[2,3,6]", "SHAPE" },
        { "scaled_dot_product_attention", "query=f32[2,7,4] key=f32[2,3,4] value=f32[2,5,6]", "SHAPE" },
        { "scaled_dot_product_attention",
          "query=f32[2,7,4] key=f32[2,3,4] value=f32[2,3,6] attn_mask=f32[2,2,7,3]", "SHAPE" },
        { "scaled_dot_product_attention",
          "query=f32[2,4,7,4] key=f32[2,3,7,4] value=f32[2,3,7,4] enable_gqa=true", "SHAPE" },
        { "scaled_dot_product_attention", "query=f32[2,4,7,4] key=f32[2,3,7,4] value=f32[2,3,7,4]", "SHAPE" },
        { "scaled_dot_product_attention", "query=f32[7,4] key=f32[3] value=f32[3,6]", "RANK" },
        { "scaled_dot_product_attention", "query=f16[7,4] key=f32[3,4] value=f32[3,6]", "DTYPE" },
        { "scaled_dot_product_attention", "query=i64[7,4] key=i64[3,4] value=i64[3,6]", "DTYPE" },
        { "scaled_dot_product_attention", "query=f32[7,4] key=f32[3,4] value=f32[3,6] attn_mask=f16[7,3]",
          "DTYPE" },
        { "scaled_dot_product_attention",
          "query=f32[7,4] key=f32[3,4] value=f32[3,6] attn_mask=f32[7,3] is_causal=true", "ATTRIBUTE" },
        { "scaled_dot_product_attention", "query=f32[7,4] key=f32[3,4] value=f32[3,6] dropout_p=0.5",
          "UNSUPPORTED" },
        { "scaled_dot_product_attention", "query=f32[2,1,8] key=f32[2,5,8] value=f32[2,5,8] attn_mask=f32[4,5]", "SHAPE" },
        { "scaled_dot_product_attention", "query=f32[2,1,8] key=f32[2,5,8] value=f32[2,5,8] attn_mask=f32[s,5]",
          "DYNAMIC_SHAPE" }, /* it may be 1 */
        { "embedding", "weight=f16[10,5] indices=i64[2,s]", "f16[2,s,5]" },
        { "embedding", "weight=f32[10,5] indices=i64[]", "f32[5]" },
        { "embedding", "weight=f32[10] indices=i64[3]", "RANK" },
        { "embedding", "weight=f32[10,5] indices=f32[3]", "DTYPE" },
        { "embedding", "weight=f32[10,5] indices=i64[1,1,1,1,1,1,1,1]", "RANK" },
        { "gather", "self=f32[4,5] dim=-1 index=i64[3,9]", "f32[3,9]" },
        { "gather", "self=i32[5] dim=0 index=u8[0]", "i32[0]" },
        { "gather", "self=f32[] dim=0 index=i64[3]", "f32[3]" },
        { "gather", "self=f32[4,5] dim=1 index=i64[5,1]", "SHAPE" },
        { "gather", "self=f32[4,5] dim=1 index=i64[3]", "RANK" },
        { "gather", "self=f32[4,5] dim=2 index=i64[3,1]", "AXIS" },
    };
    CHECK_ROWS(rows);
}

static void test_moved_dims(void)
{
    static const row rows[] = {
        { "t", "self=f32[2,s]", "f32[s,2]" },
        { "t", "self=f32[2,3,4]", "RANK" },
        { "mT", "self=f32[2,3,4]", "f32[2,4,3]" },
        { "mT", "self=f32[3]", "RANK" },
        { "aten.movedim.intlist", "self=f32[2,3,4] source=[0,1] destination=[-1,0]", "f32[3,4,2]" },
        { "aten.movedim.intlist", "self=f32[2,3,4] source=[0,1] destination=[1]", "ATTRIBUTE" },
        { "aten.movedim.intlist", "self=f32[2,3,4] source=[0,0] destination=[1,0]", "AXIS" },
        { "expand_as", "self=f32[3,1] other=i64[2,3,4]", "f32[2,3,4]" },
        { "expand_as", "self=f32[3,2] other=f32[2,3,4]", "SHAPE" },
        { "view_as", "self=f32[6] other=i8[2,3]", "f32[2,3]" },
        { "view_as", "self=f32[6] other=f32[2,2]", "SHAPE" },
        { "unflatten", "self=f32[2,6] dim=1 sizes=[-1,2]", "f32[2,3,2]" },
        { "unflatten", "self=f32[2,6] dim=1 sizes=[-1,4]", "SHAPE" },
        { "narrow", "self=f32[5,3] dim=0 start=-2 length=2", "f32[2,3]" },
        { "narrow", "self=f32[5,3] dim=0 start=4 length=2", "RANGE" },
        { "aten.narrow.Tensor", "self=f32[5,3] dim=0 start=u8[] length=2", "f32[2,3]" },
        { "aten.narrow.Tensor", "self=f32[5,3] dim=0 start=bool[] length=2", "DTYPE" },
        { "tile", "self=f32[2,3] dims=[2]", "f32[2,6]" },
        { "roll", "self=f32[2,3] shifts=[1,2] dims=[0]", "ATTRIBUTE" },
        { "roll", "self=f32[] shifts=[1] dims=[0]", "AXIS" },
        { "roll", "self=f32[] shifts=[1]", "f32[]" },
        { "flip", "self=f32[2,3] dims=[0,0]", "AXIS" },
        { "rot90", "self=f32[2,3]", "f32[3,2]" },
        { "rot90", "self=f32[2]", "RANK" },
        { "diagonal", "self=f32[2,3,4] offset=1 dim1=1 dim2=2", "f32[2,3]" },
        { "diagonal", "self=f32[2,3] dim1=1 dim2=-1", "AXIS" },
        { "unfold", "self=f32[2,7] dimension=1 size=3 step=2", "f32[2,3,3]" },
        { "unfold", "self=f32[2,7] dimension=1 size=8 step=2", "SHAPE" },
        { "as_strided", "self=f32[6] size=[2,2] stride=[3,1] storage_offset=1", "f32[2,2]" },
        { "as_strided", "self=f32[6] size=[2,2] stride=[3,1] storage_offset=2", "RANGE" },
        { "as_strided", "self=f32[6] size=[2,2] stride=[-3,1]", "RANGE" },
        { "pixel_shuffle", "self=f32[1,8,2,3] upscale_factor=2", "f32[1,2,4,6]" },
        { "pixel_shuffle", "self=f32[1,6,2,3] upscale_factor=2", "SHAPE" },
        { "channel_shuffle", "self=f32[1,6,2] groups=4", "SHAPE" },
        { "meshgrid", "tensors={f32[2],f32[3]} indexing='xy'", "f32[3,2] f32[3,2]" },
        { "meshgrid", "tensors={f32[2],f32[3]} indexing='ji'", "ATTRIBUTE" },
        { "aten.repeat_interleave.self_int", "self=f32[2,3] repeats=2", "f32[12]" },
        { "aten.repeat_interleave.self_int", "self=f32[2,3] repeats=-1", "ATTRIBUTE" },
        { "unbind", "self=f32[2,3] dim=1", "f32[2] f32[2] f32[2]" },
        { "unbind", "self=f32[2,?] dim=1", "DYNAMIC_SHAPE" },
        { "split_with_sizes", "self=f32[5] split_sizes=[2,2]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_arrangement(void)
{
    static const row rows[] = {
        { "tensor_split", "self=f32[5] sections=2", "f32[3] f32[2]" },
        { "tensor_split", "self=f32[5] sections=0", "ATTRIBUTE" },
        { "aten.tensor_split.indices", "self=f32[5] indices=[3,1]", "f32[3] f32[0] f32[4]" },
        { "aten.tensor_split.tensor_indices_or_sections", "self=f32[5] tensor_indices_or_sections=i64[2]",
          "f32[?] f32[?] f32[?]" },
        { "aten.tensor_split.tensor_indices_or_sections", "self=f32[5] tensor_indices_or_sections=i64[]",
          "DYNAMIC_SHAPE" },
        { "hsplit", "self=f32[2,4] sections=2", "f32[2,2] f32[2,2]" },
        { "hsplit", "self=f32[2,5] sections=2", "SHAPE" },
        { "dsplit", "self=f32[2,4] sections=2", "RANK" },
        { "atleast_3d", "self=f32[4]", "f32[1,4,1]" },
        { "broadcast_tensors", "tensors={f32[2,1],i8[3]}", "f32[2,3] i8[2,3]" },
        { "broadcast_tensors", "tensors={f32[2],i8[3]}", "SHAPE" },
        { "diag", "self=f32[3] diagonal=-1", "f32[4,4]" },
        { "diag", "self=f32[2,2,2]", "RANK" },
        { "diag_embed", "self=f32[2,3] offset=1", "f32[2,4,4]" },
        { "diag_embed", "self=f32[2,3] dim1=0 dim2=0", "AXIS" },
        { "block_diag", "tensors={f32[2,s],i8[3],i8[]}", "f32[4,?]" },
        { "block_diag", "tensors={i8[0,2],i64[]}", "i8[1,3]" },
        { "block_diag", "tensors={}", "f32[1,0]" },
        { "block_diag", "tensors={f32[2,2,2]}", "RANK" },
        { "cartesian_prod", "tensors={f32[2],f32[3],f32[4]}", "f32[24,3]" },
        { "cartesian_prod", "tensors={f32[2]}", "f32[2]" },
        { "cartesian_prod", "tensors={f32[2],f32[]}", "RANK" },
        { "cartesian_prod", "tensors={f32[2],i8[2]}", "DTYPE" },
        { "cartesian_prod", "tensors={f32[0x7fffffff],f32[0x7fffffff],f32[0x7fffffff]}", "OVERFLOW" },
        { "combinations", "self=f32[5]", "f32[10,2]" },
        { "combinations", "self=f32[5] r=3 with_replacement=true", "f32[35,3]" },
        { "combinations", "self=f32[2] r=3", "f32[0,3]" },
        { "combinations", "self=f32[2] r=0", "f32[0]" },
        { "combinations", "self=f32[60] r=59", "f32[60,59]" },
        { "combinations", "self=f32[s] r=1", "f32[s,1]" },
        { "combinations", "self=f32[2,2]", "RANK" },
        { "combinations", "self=f32[2] r=-1", "ATTRIBUTE" },
        { "combinations", "self=f32[1000] r=500", "OVERFLOW" },
    };
    CHECK_ROWS(rows);
}

/* A word that is none of those an op knows is never taken for one of them. */
static void test_words(void)
{
    static const row rows[] = {
        { "aten.conv2d.padding", "input=f32[1,1,4,4] weight=f32[1,1,3,3] padding='full'", "ATTRIBUTE" },
        { "aten.linalg_matrix_norm.str_ord", "self=f32[3,3] ord='max'", "ATTRIBUTE" },
        { "aten.linalg_norm.ord_str", "self=f32[3,3] ord='max'", "ATTRIBUTE" },
        { "gelu", "self=f32[3] approximate=''", "ATTRIBUTE" },
        { "gelu", "self=f32[3] approximate='tan'", "ATTRIBUTE" },
        { "gelu", "self=f32[3] approximate='tanhs'", "ATTRIBUTE" },
        { "gelu_backward", "grad_output=f32[3] self=f32[3] approximate='fast'", "ATTRIBUTE" },
        { "aten.div.Tensor_mode", "self=f32[3] other=f32[3] rounding_mode='ceil'", "ATTRIBUTE" },
        { "aten.div.Scalar_mode", "self=f32[3] other=2 rounding_mode='ceil'", "ATTRIBUTE" },
        { "aten.meshgrid.indexing", "tensors={f32[3]} indexing='yx'", "ATTRIBUTE" },
        { "aten.scatter.reduce", "self=f32[3] dim=0 index=i64[2] src=f32[2] reduce='sum'", "ATTRIBUTE" },
        { "aten.scatter.value_reduce", "self=f32[3] dim=0 index=i64[2] value=1 reduce='sum'", "ATTRIBUTE" },
        { "aten.scatter_reduce.two", "self=f32[3] dim=0 index=i64[2] src=f32[2] reduce='add'", "ATTRIBUTE" },
        { "index_reduce", "self=f32[3] dim=0 index=i64[2] source=f32[2] reduce='sum'", "ATTRIBUTE" },
        { "pad", "self=f32[1,3,3] pad=[1,1] mode='wrap'", "ATTRIBUTE" },
        { "quantile", "self=f32[3] q=f32[] interpolation='cubic'", "ATTRIBUTE" },
        { "aten.quantile.scalar", "self=f32[3] q=0.5 interpolation='cubic'", "ATTRIBUTE" },
        { "nanquantile", "self=f32[3] q=f32[] interpolation='cubic'", "ATTRIBUTE" },
        { "aten.nanquantile.scalar", "self=f32[3] q=0.5 interpolation='cubic'", "ATTRIBUTE" },
        { "aten.searchsorted.Tensor", "sorted_sequence=f32[3] self=f32[2] side='middle'", "ATTRIBUTE" },
    };
    CHECK_ROWS(rows);
}

static void test_indexing(void)
{
    static const row rows[] = {
        { "index", "self=f32[4,5,6] indices={-,i64[2,3]}", "f32[4,2,3,6]" },
        { "index", "self=f32[4,5,6] indices={i64[2],-,i32[3,1]}", "f32[3,2,5]" },
        { "index", "self=f32[4,5,6] indices={-,i64[2],i64[1]}", "f32[4,2]" },
        { "index", "self=f32[4,5,6] indices={bool[4,5]}", "f32[?,6]" },
        { "index", "self=f32[4,5,6] indices={bool[4],-,bool[6]}", "f32[?,5]" },
        { "index", "self=f32[4,5] indices={i64[2,3],bool[5]}", "f32[2,3]" },
        { "index", "self=f32[4,5] indices={bool[5]}", "SHAPE" },
        { "index", "self=f32[4,5] indices={i64[2],i64[3]}", "SHAPE" },
        { "index", "self=f32[4] indices={i64[2],i64[2]}", "RANK" },
        { "index", "self=f32[4] indices={f32[2]}", "DTYPE" },
        { "index_put", "self=f32[4,5] indices={-,i64[2]} values=f32[4,1]", "f32[4,5]" },
        { "index_put", "self=f32[4,5] indices={bool[4],bool[5]} values=f32[7]", "f32[4,5]" },
        { "index_put", "self=f32[4,5] indices={i64[2]} values=f32[3,5]", "SHAPE" },
        { "index_put", "self=f32[4,5] indices={i64[2]} values=f16[5]", "DTYPE" },
        { "index_select", "self=f32[4,5] dim=1 index=i64[3]", "f32[4,3]" },
        { "index_select", "self=f32[4,5] dim=1 index=i64[3,1]", "RANK" },
        { "take_along_dim", "self=f32[4,5] indices=i64[1,7] dim=1", "f32[4,7]" },
        { "take_along_dim", "self=f32[4,5] indices=i32[4,5] dim=1", "DTYPE" },
        { "scatter", "self=f32[3,5] dim=0 index=i64[7,4] src=f32[7,5]", "f32[3,5]" },
        { "scatter", "self=f32[3,5] dim=0 index=i64[2,6] src=f32[2,6]", "SHAPE" },
        { "scatter", "self=f32[3,5] dim=0 index=i64[2,2] src=f16[2,2]", "DTYPE" },
        { "scatter_reduce", "self=f32[3] dim=0 index=i64[2] src=f32[2] reduce='max'", "ATTRIBUTE" },
        { "index_add", "self=f32[3,5] dim=1 index=i64[2] source=f32[3,2]", "f32[3,5]" },
        { "index_add", "self=i32[3] dim=0 index=i64[2] source=i32[2] alpha=0.5", "ATTRIBUTE" },
        { "index_copy", "self=f32[3,5] dim=1 index=i64[2] source=f32[3,3]", "SHAPE" },
        { "index_reduce", "self=f32[3] dim=0 index=i64[2] source=f32[2] reduce='sum'", "ATTRIBUTE" },
        { "put", "self=f32[3] index=i64[2] source=f32[3]", "SHAPE" },
        { "select_scatter", "self=f32[3,5] src=f32[3] dim=1 index=4", "f32[3,5]" },
        { "select_scatter", "self=f32[3,5] src=f32[3] dim=1 index=5", "RANGE" },
        { "slice_scatter", "self=f32[3,5] src=f32[3,3] dim=1 end=2", "SHAPE" },
        { "masked_select", "self=f32[3,5] mask=bool[5]", "f32[?]" },
        { "masked_scatter", "self=f32[3] mask=u8[3] source=f32[3]", "DTYPE" },
        { "nonzero", "self=f32[3,5]", "i64[?,2]" },
        { "one_hot", "self=i64[3] num_classes=4", "i64[3,4]" },
        { "one_hot", "self=i32[3]", "DTYPE" },
        { "aten.repeat_interleave.self_Tensor", "self=f32[3,5] repeats=i64[4] dim=1", "SHAPE" },
        { "embedding_dense_backward",
          "grad_output=f32[2,3,8] indices=i64[2,3] num_weights=10 padding_idx=-1 scale_grad_by_freq=false",
          "f32[10,8]" },
        { "embedding_dense_backward",
          "grad_output=f32[2,4,8] indices=i64[2,3] num_weights=10 padding_idx=-1 scale_grad_by_freq=false",
          "SHAPE" },
    };
    NPU_ITEM("S0.23");
    CHECK_ROWS(rows);
}

static void test_borders(void)
{
    static const row rows[] = {
        { "constant_pad_nd", "self=f32[2,3] pad=[1,-2]", "f32[2,2]" },
        { "constant_pad_nd", "self=f32[2,3] pad=[1,-5]", "SHAPE" },
        { "constant_pad_nd", "self=f32[3] pad=[1,1,1,1]", "ATTRIBUTE" },
        { "constant_pad_nd", "self=f32[3] pad=[0x7fffffffffffffff,1]", "OVERFLOW" },
        { "reflection_pad1d", "self=f32[2,3] padding=[2,1]", "f32[2,6]" },
        { "reflection_pad1d", "self=f32[2,3] padding=[3,1]", "ATTRIBUTE" },
        { "reflection_pad2d", "self=f32[2,3] padding=[1,1,1,1]", "RANK" },
        { "replication_pad2d", "self=f32[s,1,2,3] padding=[4,4,0,9]", "f32[s,1,11,11]" },
        { "replication_pad2d", "self=f32[1,0,3] padding=[1,1,1,1]", "SHAPE" },
        { "pad", "self=f32[1,2,3] pad=[3,3] mode='circular'", "f32[1,2,9]" },
        { "pad", "self=f32[1,2,3] pad=[4,3] mode='circular'", "ATTRIBUTE" },
        { "pad", "self=f32[1,2,3] pad=[1,1] mode='other'", "ATTRIBUTE" },
        { "tril", "self=f32[3]", "RANK" },
        { "im2col", "self=f32[1,2,4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "f32[1,8,12]" },
        { "im2col", "self=f32[1,2,4,5] kernel_size=[5,2] dilation=[1,1] padding=[0,0] stride=[1,1]", "SHAPE" },
        { "im2col", "self=bool[2,4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]", "bool[8,12]" },
        { "im2col", "self=i64[2,4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]", "DTYPE" },
        { "col2im",
          "self=bool[8,12] output_size=[4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "bool[2,4,5]" },
        { "col2im",
          "self=f32[1,8,12] output_size=[4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "f32[1,2,4,5]" },
        { "col2im",
          "self=f32[1,8,11] output_size=[4,5] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_memory(void)
{
    static const row rows[] = {
        { "aten.to.dtype", "self=f32[2,s] dtype=:i8", "i8[2,s]" },
        { "_to_copy", "self=f32[2]", "f32[2]" },
        { "_to_copy", "self=f32[2] dtype=:bf16", "bf16[2]" },
        { "clone", "self=c64[2]", "c64[2]" },
        { "contiguous", "self=u4[2]", "u4[2]" },
        { "dropout", "input=f32[2] p=0.5 train=false", "f32[2]" },
        { "dropout", "input=f32[2] p=0.0 train=true", "f32[2]" },
        { "dropout", "input=f32[2] p=0.5 train=true", "UNSUPPORTED" },
        { "dropout", "input=f32[2] p=1.5 train=false", "ATTRIBUTE" },
        { "npu.getitem", "results={f32[2],i64[3]} index=1", "i64[3]" },
        { "npu.getitem", "results={f32[2],i64[3]} index=2", "RANGE" },
        { "npu.getitem", "results={f32[2],i64[3]} index=-1", "RANGE" },
        { "npu.transfer", "x=f32[2]", "f32[2]" },
    };
    CHECK_ROWS(rows);
}

static void test_arithmetic(void)
{
    static const row rows[] = {
        { "sin", "self=i32[2,s]", "f32[2,s]" },
        { "atan2", "self=i32[2,1] other=bool[3]", "f32[2,3]" },
        { "floor", "self=bool[2]", "DTYPE" },
        { "sign", "self=bool[2]", "bool[2]" },
        { "square", "self=bool[2]", "i64[2]" },
        { "aten.fmod.Tensor", "self=i8[2] other=u8[2]", "i16[2]" },
        { "aten.fmod.Tensor", "self=bool[2] other=bool[2]", "DTYPE" },
        { "aten.remainder.Scalar", "self=f16[2] other=2.5", "f16[2]" },
        { "aten.remainder.Tensor", "self=f32[2,3] other=f32[2]", "SHAPE" },
        { "floor_divide", "self=bool[2] other=bool[2]", "DTYPE" },
        { "aten.rsub.Scalar", "self=i32[2] other=1.5", "f32[2]" },
        { "aten.rsub.Scalar", "self=bool[2] other=1", "DTYPE" },
        { "aten.clamp_min.Tensor", "self=f16[2] min=f32[3,1]", "f32[3,2]" },
        { "softplus", "self=i64[2]", "DTYPE" },
        { "celu", "self=f32[2] alpha=0", "ATTRIBUTE" },
        { "aten.masked_fill.Scalar", "self=i8[2] mask=bool[3,1] value=1.5", "i8[3,2]" },
        { "aten.masked_fill.Scalar", "self=i8[2] mask=u8[2] value=1", "DTYPE" },
        { "aten.masked_fill.Tensor", "self=i8[2] mask=bool[2] value=i8[2]", "RANK" },
        { "prelu", "self=f32[2,3,4] weight=f32[3]", "f32[2,3,4]" },
        { "prelu", "self=f32[2,3,4] weight=f32[4]", "SHAPE" },
        { "prelu", "self=f32[2,3] weight=f16[3]", "DTYPE" },
        { "glu", "self=f32[s,4] dim=-1", "f32[s,2]" },
        { "glu", "self=f32[2,3] dim=-1", "SHAPE" },
        { "glu", "self=f32[] dim=-1", "RANK" },
    };
    CHECK_ROWS(rows);
}

static void test_logic(void)
{
    static const row rows[] = {
        { "aten.bitwise_and.Scalar", "self=bool[2] other=3", "i64[2]" },
        { "aten.bitwise_or.Tensor", "self=i8[2,1] other=u8[3]", "i16[2,3]" },
        { "aten.bitwise_xor.Tensor", "self=i8[2] other=f32[2]", "DTYPE" },
        { "bitwise_not", "self=f32[2]", "DTYPE" },
        { "logical_and", "self=f32[2,1] other=i8[3]", "bool[2,3]" },
        { "logical_xor", "self=f32[2] other=i8[3]", "SHAPE" },
        { "isnan", "self=i8[s]", "bool[s]" },
        { "equal", "self=f32[2] other=f32[3,s]", "bool[]" },
        { "equal", "self=f32[2] other=i8[2]", "bool[]" },
        { "allclose", "self=f32[2,1] other=f32[3]", "bool[]" },
        { "allclose", "self=f32[2] other=f32[3]", "SHAPE" },
        { "allclose", "self=f32[2] other=f16[2]", "DTYPE" },
        { "allclose", "self=f32[2] other=f32[2] rtol=-1.0", "ATTRIBUTE" },
    };
    CHECK_ROWS(rows);
}

static void test_creation(void)
{
    static const row rows[] = {
        { "full", "size=[2,3] fill_value=true", "i64[2,3]" },
        { "full", "size=[2,-1] fill_value=1", "ATTRIBUTE" },
        { "full", "size=[2] fill_value=256 dtype=:u8", "OVERFLOW" },
        { "full", "size=[2] fill_value=-255 dtype=:u8", "u8[2]" },
        { "full", "size=[2] fill_value=-129 dtype=:i8", "OVERFLOW" },
        { "full", "size=[2] fill_value=70000.0 dtype=:f16", "OVERFLOW" },
        { "full", "size=[2] fill_value=inf dtype=:f16", "f16[2]" },
        { "full", "size=[2] fill_value=nan dtype=:i8", "OVERFLOW" },
        { "ones", "size=[1,1,1,1,1,1,1,1,1]", "RANK" },
        { "full_like", "self=f16[2,s] fill_value=1 dtype=:i8", "i8[2,s]" },
        { "new_zeros", "self=u8[5] size=[]", "u8[]" },
        { "scalar_tensor", "s=1", "f32[]" },
        { "empty_strided", "size=[2,3] stride=[3]", "ATTRIBUTE" },
        { "arange", "end=5", "i64[5]" },
        { "aten.arange.start_step", "start=1 end=0 step=-0.25", "f32[4]" },
        { "aten.arange.start_step", "start=0 end=5 step=0", "ATTRIBUTE" },
        { "aten.arange.start", "start=3 end=2", "ATTRIBUTE" },
        { "aten.arange.start_step", "start=-9223372036854775807 end=9223372036854775807 step=4611686018427387904",
          "i64[4]" },
        { "aten.arange.start_step", "start=-0.9 end=2.1 step=3.5e38 dtype=:i64", "i64[1]" },
        { "aten.arange.start_step", "start=1e300 end=1e300 step=1.0 dtype=:i64", "i64[0]" },
        { "linspace", "start=0 end=1 steps=3", "f32[3]" },
        { "linspace", "start=0 end=1 steps=-1", "ATTRIBUTE" },
        { "eye", "n=3", "f32[3,3]" },
        { "aten.eye.m", "n=3 m=-1", "ATTRIBUTE" },
        { "rand", "size=[2] dtype=:i32", "DTYPE" },
        { "randperm", "n=-1", "ATTRIBUTE" },
        { "native_dropout", "input=f32[2] p=0.5 train=true", "f32[2] bool[2]" },
        { "native_dropout", "input=f32[2] p=1.5 train=true", "ATTRIBUTE" },
        { "native_dropout", "input=i8[2] p=0.5 train=true", "DTYPE" },
        { "alpha_dropout", "input=f16[2] p=0.5 train=true", "f16[2]" },
        { "alpha_dropout", "input=f16[2] p=-0.5 train=true", "ATTRIBUTE" },
        { "feature_dropout", "input=f32[2] p=0.5 train=true", "RANK" },
        { "tril_indices", "row=4 col=3", "i64[2,9]" },
        { "tril_indices", "row=4 col=3 offset=-2 dtype=:i32", "i32[2,3]" },
        { "triu_indices", "row=4 col=3 offset=-1", "i64[2,9]" },
        { "triu_indices", "row=2 col=3 offset=-9223372036854775807", "i64[2,6]" },
        { "triu_indices", "row=2 col=0", "i64[2,0]" },
        { "tril_indices", "row=-1 col=3", "ATTRIBUTE" },
        { "triu_indices", "row=2 col=3 dtype=:bool", "DTYPE" },
        { "tril_indices", "row=0x7fffffffffff col=0x7fffffffffff", "OVERFLOW" },
    };
    CHECK_ROWS(rows);
}

static void test_numbers(void)
{
    static const row rows[] = {
        { "aten.copy", "self=f16[2,3] src=f64[3]", "f16[2,3]" },
        { "aten.copy", "self=f16[3] src=f64[2,3]", "SHAPE" },
        { "aten.copy", "self=f16[2,3] src=f64[2]", "SHAPE" },
        { "type_as", "self=f16[2] other=i8[]", "i8[2]" },
        { "aten.sym_size.int", "self=f32[2,s] dim=1", "i64[]" },
        { "aten.sym_size.int", "self=f32[2,s] dim=2", "AXIS" },
        { "aten.sym_stride.int", "self=f32[] dim=0", "RANK" },
        { "sym_is_contiguous", "self=f32[2]", "bool[]" },
        { "_local_scalar_dense", "self=f16[1,1]", "f64[]" },
        { "_local_scalar_dense", "self=f16[2]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_special(void)
{
    static const row rows[] = {
        { "aten.__and__.Tensor", "self=f32[2] other=i8[2]", "DTYPE" },
        { "isclose", "self=f32[2,1] other=f32[3]", "bool[2,3]" },
        { "isclose", "self=f32[2] other=f64[2]", "DTYPE" },
        { "isclose", "self=f32[2] other=f32[2] rtol=-1.0", "ATTRIBUTE" },
        { "addcdiv", "self=f32[2,1] tensor1=f32[3] tensor2=f32[2,3]", "f32[2,3]" },
        { "addcdiv", "self=f32[2] tensor1=i32[2] tensor2=i32[2]", "DTYPE" },
        { "addcmul", "self=i8[2] tensor1=i8[2] tensor2=i8[3]", "SHAPE" },
        { "aten.lerp.Scalar", "self=f32[2] end=f64[2] weight=0.5", "DTYPE" },
        { "aten.lerp.Tensor", "self=i32[2] end=i32[2] weight=i32[2]", "DTYPE" },
        { "hypot", "self=i32[2] other=i32[2]", "DTYPE" },
        { "nextafter", "self=f16[2] other=f16[2]", "f16[2]" },
        { "nextafter", "self=f32[2] other=i32[1]", "f32[2]" },
        { "gcd", "self=i8[2] other=u8[2]", "i16[2]" },
        { "gcd", "self=f32[2] other=f32[2]", "DTYPE" },
        { "heaviside", "self=f32[2] values=f64[2]", "DTYPE" },
        { "aten.float_power.Tensor_Tensor", "self=i8[2] exponent=f16[2]", "f64[2]" },
        { "aten.ldexp.Tensor", "self=f16[2] other=i32[2]", "f16[2]" },
        { "aten.ldexp.Tensor", "self=f16[2] other=i32[]", "f16[2]" },
        { "polygamma", "n=-1 self=f32[2]", "ATTRIBUTE" },
        { "mvlgamma", "self=f32[2] p=0", "ATTRIBUTE" },
        { "aten.frexp.Tensor", "self=f16[s]", "f16[s] i32[s]" },
        { "aten.frexp.Tensor", "self=i32[2]", "DTYPE" },
        { "log_sigmoid_forward", "self=f16[s]", "f16[s] f16[s]" },
        { "log_sigmoid_forward", "self=i32[2]", "DTYPE" },
        { "bernoulli", "self=i32[2]", "DTYPE" },
        { "aten.bernoulli.p", "self=i32[2] p=1.5", "ATTRIBUTE" },
        { "aten.fill.Tensor", "self=f32[2] value=i8[1]", "RANK" },
        { "positive", "self=bool[2]", "DTYPE" },
    };
    CHECK_ROWS(rows);
}

static void test_device(void)
{
    static const row rows[] = {
        { "aicf.add", "a=f32[2,3] c=f32[2,3]", "f32[2,3]" },
        { "aicf.add", "a=f32[2,3] c=f32[3]", "SHAPE" },
        { "aicf.add", "a=f32[2,3] c=f16[2,3]", "DTYPE" },
        { "aicf.relu", "x=f16[2]", "f16[2]" },
        { "aicf.gemm", "a=f32[64,8,128] b=f32[256,128] transB=true", "f32[64,8,256]" },
        { "aicf.gemm", "a=f16[3,2] b=f16[3,4] transA=true", "f16[2,4]" },
        { "aicf.gemm", "a=f32[5,3,2] b=f32[3,4] transA=true", "RANK" },
        { "aicf.gemm", "a=f32[2,3] b=f32[4,5]", "SHAPE" },
        { "aicf.gemm", "a=f64[2,3] b=f64[3,5]", "DTYPE" },
        { "aicf.gemm_epilogue", "a=f32[2,3] b=f32[3,4] bias=f32[4]", "f32[2,4]" },
        { "aicf.gemm_epilogue", "a=f32[2,3] b=f32[3,4] bias=f32[2]", "SHAPE" },
        { "aicf.bias_add", "x=f32[2,3] bias=f32[3] axis=1", "f32[2,3]" },
        { "aicf.bias_add", "x=f32[2,3] bias=f32[2] axis=0", "AXIS" },
        { "aicf.bias_add", "x=f32[2,3] bias=f32[2]", "SHAPE" },
        { "aicf.bias_add", "x=f32[3] bias=f32[3]", "RANK" },
        { "aicf.reduce_sum", "x=f32[2,3] axis=0", "f32[3]" },
        { "aicf.reduce_sum", "x=f32[2,3] axis=2", "AXIS" },
        { "aicf.sgd_step", "p=f32[2] g=f32[3] lr=0.1", "SHAPE" },
        { "aicf.softmax_bwd", "y=f32[2,3] dy=f32[2,3]", "f32[2,3]" },
        { "aicf.mse_loss", "pred=f32[2,3] target=f32[2,3]", "f32[]" },
        { "aicf.mse_loss", "pred=f32[2,3] target=f32[2,4]", "SHAPE" },
    };
    NPU_ITEM("R2.11");
    CHECK_ROWS(rows);
}

static void test_device_training(void)
{
    static const row rows[] = {
        { "aicf.adam_step", "p=f32[2,3] g=f32[2,3] m=f32[2,3] v=f32[2,3] bc1=f32[] bc2=f32[]",
          "f32[2,3] f32[2,3] f32[2,3]" },
        { "aicf.adam_step", "p=f32[2,3] g=f32[2,3] m=f32[3] v=f32[2,3] bc1=f32[] bc2=f32[]", "SHAPE" },
        { "aicf.adam_step", "p=f32[2] g=f32[2] m=f32[2] v=f32[2] bc1=f32[1] bc2=f32[]", "RANK" },
        { "aicf.step_inc", "step=i32[]", "i32[]" },
        { "aicf.step_inc", "step=i64[]", "DTYPE" },
        { "aicf.bias_corr", "step=i32[]", "f32[] f32[]" },
        { "aicf.bias_corr", "step=i32[1]", "RANK" },
        { "aicf.layernorm_fwd", "x=f16[4,8] gamma=f16[8] beta=f16[8]", "f16[4,8] f32[4] f32[4]" },
        { "aicf.layernorm_fwd", "x=f16[2,4,8]", "RANK" },
        { "aicf.layernorm_fwd", "x=f32[4,8] gamma=f32[4]", "SHAPE" },
        { "aicf.layernorm_bwd", "x=f32[4,8] dy=f32[4,8] gamma=f32[8] mean=f32[4] rstd=f32[4]",
          "f32[4,8] f32[8] f32[8]" },
        { "aicf.layernorm_bwd", "x=f32[4,8] dy=f32[4,8] mean=f32[8] rstd=f32[4]", "SHAPE" },
        { "aicf.batchnorm_fwd", "x=f32[2,3,4,4] gamma=f32[3] beta=f32[3]", "f32[2,3,4,4] f32[3] f32[3]" },
        { "aicf.batchnorm_fwd", "x=f32[2,3,4,4] flags=1", "ARITY" },
        { "aicf.batchnorm_fwd", "x=f32[2,3,4]", "RANK" },
        { "aicf.batchnorm_bwd", "x=f32[2,3,4,4] dy=f32[2,3,4,4] save_mean=f32[3] save_rstd=f32[3]",
          "f32[2,3,4,4] f32[3] f32[3]" },
        { "aicf.batchnorm_bwd", "x=f32[2,3,4,4] dy=f16[2,3,4,4] save_mean=f32[3] save_rstd=f32[3]", "DTYPE" },
        { "aicf.cross_entropy_fwd", "logits=f32[4,10] target=i32[4]", "f32[] f32[4,10]" },
        { "aicf.cross_entropy_fwd", "logits=f32[4,10] target=f32[4]", "DTYPE" },
        { "aicf.cross_entropy_bwd", "softmax=f32[4,10] target=i64[4]", "f32[4,10]" },
        { "aicf.cross_entropy_bwd", "softmax=f32[4,10] target=i64[10]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

/* where(condition) counts the true elements of a constant: -0.0 is false, NaN is true. */
static void test_where_indices(void)
{
    static const float data[6] = { 0.0f, -0.0f, 1.0f, -2.0f, 0.0f, 1e-40f };
    int64_t dims[2] = { 2, 3 };
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_arg known =
        npu_arg_tensor("condition", npu_constant(g, NULL, npu_spec_tensor(NPU_F32, 2, dims), data));
    npu_arg unknown = npu_arg_tensor("condition", npu_input(g, NULL, npu_spec_tensor(NPU_BOOL, 0, NULL)));
    npu_op op = npu_emit(g, NPU_ATEN_WHERE_INDICES, &known, 1);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 2);
    if (op.id) {
        NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, op, 1))->dims[0], 3);
    }
    op = npu_emit(g, NPU_ATEN_WHERE_INDICES, &unknown, 1);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 1);
    if (op.id) {
        NPU_CHECK(npu_value_spec(g, npu_op_result(g, op, 0))->dims[0] < NPU_DYNAMIC_DIM);
    }
    npu_graph_destroy(g);
}

static void check_message(const char *op, const char *args, const char *operand, const char *message)
{
    npu_diag diag;
    npu_text got = deduce(op, args, &diag);
    NPU_CHECK_STR(diag.operand, operand);
    NPU_CHECK_STR(diag.message, message);
    npu_text_free(&got);
}

static void test_messages(void)
{
    check_message("conv2d", "input=f32[2,16,14,14] weight=f32[16,16,3,3] groups=2", "weight",
                  "conv2d: weight dim 1 is 16, expected channels / groups = 8 (input %1 f32[2,16,14,14], weight %2 f32[16,16,3,3])");
    check_message("add", "self=f32[4,8] other=f32[5]", "other",
                  "add: other dim 0 is 5, expected 8 or 1 (self %1 f32[4,8], other %2 f32[5])");
    check_message("linear", "input=f32[2,8] weight=f16[3,8]", "weight",
                  "linear: weight is f16, expected f32 like input (input %1 f32[2,8], weight %2 f16[3,8])");
    check_message("softmax", "self=f32[2,3] dim=2", "dim", "softmax: dim is 2, expected -2 to 1 (self %1 f32[2,3])");
    check_message("select", "self=f32[2,3] dim=1 index=3", "index",
                  "select: index is 3, expected less than dim 1 of self = 3 (self %1 f32[2,3])");
    check_message("relu", "self=bool[2]", "self", "relu: self is bool, expected a number, not bool (self %1 bool[2])");
}

/* Fails twice, adds a result in between, and returns no status, or one of its own. */
static npu_status type_fails_twice(npu_deduce *d)
{
    int64_t n = npu_op_int(d->op, "n", 0);
    if (n > 1) {
        return NPU_ERR_UNSUPPORTED;
    }
    npu_deduce_fail(d, NPU_ERR_RANGE, "n", "n is %lld, expected another", (long long)n);
    NPU_CHECK_STATUS(npu_deduce_add_result(d, npu_deduce_spec(d, "x")), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_deduce_fail(d, NPU_ERR_DTYPE, "x", "x too"), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(d->status, NPU_ERR_RANGE);
    NPU_CHECK_EQ(d->num_results, 0);
    return n ? d->status : NPU_OK;
}

/* A rule that goes on after a failed check fails with it; one that only returns a status fails, too. */
static void test_first_failure(void)
{
    static const npu_op_row mine = { NPU_NS_USER << 16 | 1, 0, type_fails_twice, "twice(Tensor x, int n) -> Tensor", "", NULL };
    int64_t dims[1] = { 2 };
    npu_registry *registry = NULL;
    npu_graph_desc desc = { 0 };
    npu_arg args[2];
    NPU_ITEM("F52");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &mine, NULL), NPU_OK);
    desc.registry = registry;
    for (int n = 0; n < 3; n++) {
        npu_graph *g = npu_graph_create(&desc);
        args[0] = npu_arg_tensor("x", npu_input(g, NULL, npu_spec_tensor(NPU_F32, 1, dims)));
        args[1] = npu_arg_int("n", n);
        NPU_CHECK_EQ(npu_emit_name(g, "mine.twice", args, 2).id, 0);
        NPU_CHECK_STATUS(npu_graph_status(g), n < 2 ? NPU_ERR_RANGE : NPU_ERR_UNSUPPORTED);
        NPU_CHECK_STR(npu_graph_diag(g)->operand, n < 2 ? "n" : "");
        NPU_CHECK(n == 2 || strstr(npu_graph_diag(g)->message, "expected another"));
        npu_graph_destroy(g);
    }
    npu_registry_destroy(registry);
}

/* ---- patterns ---- */

/* Rows of ops whose type rule is a pattern alone; want as in other rows, or the status that the registry gives. */
static const struct pattern {
    const char *schema, *shapes, *args, *want, *message;
} patterns[] = {
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[2,3,4] w=f32[5,4] b=f32[5]", "f32[2,3,5]", NULL },
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[4] w=f32[5,4]", "f32[5]", NULL },
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[2,s] w=f32[?,4]", "f32[2,?]", NULL },
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[2,3] w=f32[5,4]", "SHAPE", "w dim 1 is 4, expected K = 3" },
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[2,4] w=f16[5,4]", "DTYPE", "w is f16, expected f32 like x" },
    { "f(Tensor x, Tensor w, Tensor? b=None) -> Tensor", "number[..,K] =[N,K] =[N]? -> =[..,N]",
      "x=f32[] w=f32[5,4]", "RANK", "x has 0 dims, expected 1 to 8" },
    { "f(Tensor x, Tensor y) -> Tensor", "[..,M] [..,N] -> [..,M,N]", "x=f32[2,3] y=i8[2,4]", "f32[2,3,4]", NULL },
    { "f(Tensor x, Tensor y) -> Tensor", "[..,M] [..,N] -> [..,M,N]", "x=f32[2,3] y=i8[3,4]", "SHAPE", "y dim 0 is 3, expected x = 2" },
    { "f(Tensor x, Tensor y) -> Tensor", "[..,M] [..,N] -> [..,M,N]", "x=f32[2,3] y=i8[4]", "SHAPE", "y has 1 dims, expected 2 like x" },
    { "f(Tensor x, Tensor y) -> Tensor", "[*,M,K] [*,K,N] -> number[*,M,N]", "x=f16[5,1,2,3] y=f32[4,3,6]", "f32[5,4,2,6]", NULL },
    { "f(Tensor x, Tensor y) -> Tensor", "[*] [*] -> bool(real)[*]", "x=f32[2,1] y=i32[3]", "bool[2,3]", NULL },
    { "f(Tensor x, Scalar y) -> Tensor", "[*] [*] -> real[*]", "x=i32[2] y=0.5", "f32[2]", NULL },
    { "f(Tensor x) -> (Tensor, Tensor, Tensor)", "bits[N,3] -> float(=)[N] i64[] ", "x=i8[7,3]", "f32[7] i64[] i64[]", NULL },
    { "f(Tensor x) -> Tensor", "bits[N,3] -> =[N]", "x=i8[7,4]", "SHAPE", "x dim 1 is 4, expected size = 3" },
    { "f(Tensor x, Tensor y) -> Tensor", "type f16|=|i64 -> =2", "x=f32[2] y=i64[3,4]", "i64[3,4]", NULL },
    { "f(Tensor x, Tensor y) -> Tensor", "type f16|=|i64 -> =2", "x=f32[2] y=i32[3]", "DTYPE", "y is i32, expected f16, that of x or i64" },
    { "f(Tensor x) -> Tensor", "[..,1,2,3,4,5,6,7] -> [..,2,2,1]", "x=f32[8,1,2,3,4,5,6,7]", "f32[8,2,2,1]", NULL },
    { "f(Tensor x) -> Tensor", "[..] -> [..,2]", "x=f32[1,1,1,1,1,1,1,1]", "RANK", "result has 9 dims" },
};

static void test_patterns(void)
{
    NPU_ITEM("F52");
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const struct pattern *p = &patterns[i];
        const npu_op_facts facts = { .shapes = p->shapes };
        const npu_op_row mine = { NPU_NS_USER << 16 | 1, 0, NULL, p->schema, "", &facts };
        npu_diag diag = { 0 };
        npu_text got;
        NPU_CHECK_STATUS(npu_registry_create(&deduce_registry, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add(deduce_registry, "mine", &mine, &diag), NPU_OK);
        NPU_CHECK_STR(diag.message, "");
        got = deduce("mine.f", p->args, &diag);
        NPU_CHECK_STR(got.data, p->want);
        NPU_CHECK_THAT(!p->message || strstr(diag.message, p->message), "message: %s", diag.message);
        npu_text_free(&got);
        npu_registry_destroy(deduce_registry);
        deduce_registry = NULL;
    }
}

/* Patterns that a registry refuses, with the words that say why. */
static void test_malformed_patterns(void)
{
    static const struct { const char *schema, *shapes, *message; } rows[] = {
        { "f(Tensor x) -> Tensor", "[..]", "malformed at ''" },
        { "f(Tensor x) -> Tensor", "[N -> [N]", "malformed at '[N -> [N]'" },
        { "f(Tensor x) -> Tensor", "[n] -> [n]", "malformed at '[n] -> [n]'" },
        { "f(Tensor x) -> Tensor", "[N,..] -> [N]", "malformed at" },
        { "f(Tensor x) -> Tensor", "[N] -> -> [N]", "malformed at '-> [N]'" },
        { "f(Tensor x) -> Tensor", "[A,B,C,D,E,F,G,H,I] -> [A]", "malformed at" },
        { "f(Tensor x) -> Tensor", "[N] [N] -> [N]", "term 1: unknown dtype, dim or operand" },
        { "f(Tensor x) -> Tensor", "[N] -> [M]", "term 1: unknown dtype, dim or operand" },
        { "f(Tensor x) -> Tensor", "[N]? -> [N]", "term 1: unknown dtype, dim or operand" },
        { "f(Tensor x) -> Tensor", "f33[N] -> [N]", "term 0: unknown dtype, dim or operand" },
        { "f(Tensor x) -> Tensor", "float(=)[N] -> [N]", "term 0: unknown dtype, dim or operand" },
        { "f(Tensor x) -> Tensor", "[N] -> float()[N]", "term 1: unknown dtype, dim or operand" },
        { "f(Tensor x, Tensor y) -> Tensor", "[N] -> [N]", "no term for y" },
        { "f(Tensor[] x) -> Tensor", "[N] -> [N]", "no term for x" },
        { "f(Tensor x) -> Tensor", "[N] ->", "neither shapes nor a rule" },
    };
    NPU_ITEM("F52");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const npu_op_facts facts = { .shapes = rows[i].shapes };
        const npu_op_row mine = { NPU_NS_USER << 16 | 1, 0, NULL, rows[i].schema, "", &facts };
        npu_registry *registry = NULL;
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &mine, &diag), NPU_ERR_INVALID_ARGUMENT);
        NPU_CHECK_THAT(strstr(diag.message, rows[i].message), "%s: %s", rows[i].shapes, diag.message);
        npu_registry_destroy(registry);
    }
}

static npu_status type_checks_n(npu_deduce *d)
{
    return npu_op_int(d->op, "n", 0) < 0 ? npu_deduce_fail(d, NPU_ERR_RANGE, "n", "n is negative") : d->status;
}

/* A rule beside a pattern checks what that cannot say; the patterns of built-in rows fit their schemas. */
static void test_pattern_and_rule(void)
{
    static const npu_op_facts facts = { .shapes = "[N,N] -> [N]" };
    static const npu_op_row mine = { NPU_NS_USER << 16 | 1, 0, type_checks_n, "f(Tensor x, int n) -> Tensor", "", &facts };
    static const char *const args[] = { "x=f32[3,3] n=1", "x=f32[3,3] n=-1", "x=f32[3,4] n=-1" };
    static const char *const want[] = { "f32[3]", "RANGE", "SHAPE" };
    uint32_t num = 0;
    NPU_ITEM("F52");
    NPU_CHECK_STATUS(npu_registry_create(&deduce_registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(deduce_registry, "mine", &mine, NULL), NPU_OK);
    for (size_t i = 0; i < 3; i++) {
        npu_text got = deduce("mine.f", args[i], NULL);
        NPU_CHECK_STR(got.data, want[i]);
        npu_text_free(&got);
    }
    for (uint32_t i = 0; i < npu_registry_num_ops(deduce_registry); i++) {
        const npu_op_def *def = npu_registry_op(deduce_registry, i);
        const npu_op_facts same = { .shapes = def->shapes };
        npu_op_row again = { 0, 0, NULL, NULL, "", &same };
        npu_text schema = npu_text_init(NULL);
        npu_diag diag = { 0 };
        npu_registry *registry = NULL;
        npu_schema_print(&schema, def->schema);
        again.schema = schema.data;
        if (def->shapes && npu_registry_create(&registry, NULL, NULL) == NPU_OK) {
            NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &again, &diag), NPU_OK);
            NPU_CHECK_STR(diag.message, "");
            npu_registry_destroy(registry);
            num++;
        }
        npu_text_free(&schema);
    }
    NPU_CHECK(num > 100);
    npu_registry_destroy(deduce_registry);
    deduce_registry = NULL;
}

/* Operands of another class than the schema's. */
static void test_classes(void)
{
    int64_t dims[1] = { 2 };
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_arg tile = npu_arg_tensor("self", npu_input(g, NULL, npu_spec_tile(NPU_F32, 1, dims)));
    npu_arg scalar = npu_arg_tensor("self", npu_input(g, NULL, npu_spec_scalar(NPU_F32)));
    NPU_CHECK_EQ(npu_emit(g, NPU_ATEN_RELU, &tile, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_CLASS);
    npu_graph_clear_error(g);
    NPU_CHECK_EQ(npu_emit(g, NPU_ATEN_RELU, &scalar, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_CLASS);
    npu_graph_destroy(g);
}

/* ---- every op, with operands of every rank ---- */

/* A call of an op whose required operands have the ranks given, last one again; other arguments are ones. */
static npu_op call_of_ranks(npu_graph *g, const npu_op_def *def, npu_dtype dtype, int64_t dim, const uint32_t *ranks)
{
    static const int64_t ones[NPU_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    int64_t dims[NPU_MAX_RANK];
    npu_arg args[NPU_MAX_ARGS];
    npu_value list[2];
    uint32_t num = 0, tensors = 0;
    for (uint32_t i = 0; i < NPU_MAX_RANK; i++) {
        dims[i] = dim;
    }
    for (uint32_t i = 0; i < def->schema->num_args; i++) {
        const npu_schema_arg *a = &def->schema->args[i];
        bool is_list = a->type.list != 0;
        if (a->type.optional || a->default_form != NPU_DEFAULT_REQUIRED) {
            continue;
        }
        if (a->type.base == NPU_T_TENSOR) {
            list[0] = npu_input(g, NULL, npu_spec_tensor(dtype, ranks[tensors], dims));
            list[1] = list[0];
            tensors += tensors < 2;
            args[num++] = is_list ? npu_arg_tensors(a->name, list, 2) : npu_arg_tensor(a->name, list[0]);
        } else if (a->type.base == NPU_T_INT || a->type.base == NPU_T_SYMINT) {
            args[num++] = is_list ? npu_arg_ints(a->name, ones, ranks[0] ? ranks[0] : 1) : npu_arg_int(a->name, 0);
        } else if (a->type.base == NPU_T_FLOAT || a->type.base == NPU_T_SCALAR) {
            args[num++] = npu_arg_float(a->name, 1);
        } else if (a->type.base == NPU_T_BOOL && !is_list) {
            args[num++] = npu_arg_bool(a->name, true);
        } else if (a->type.base == NPU_T_DTYPE) {
            args[num++] = npu_arg_dtype(a->name, NPU_F32);
        }
    }
    return npu_emit(g, def->kind, args, num);
}

/* An elementwise row promises that all operands broadcast to the result: fusion and lowering index them so. */
static void check_broadcasts(const npu_graph *g, npu_op op, const npu_op_def *def)
{
    const npu_spec *y = npu_value_spec(g, npu_op_result(g, op, 0));
    for (uint32_t i = 0; i < npu_op_num_operands(g, op); i++) {
        const npu_spec *x = npu_value_spec(g, npu_op_operand_value(g, op, i));
        if (x && y && x->rank > y->rank) {
            NPU_CHECK_STR(def->name, "an op whose operands broadcast to its result");
        }
    }
}

/* Refused with a status and a message, or accepted: the rules look at ranks before they look at dims. */
static void test_every_rank(void)
{
    static const uint32_t ranks[] = { 0, 1, 2, 3, NPU_MAX_RANK };
    static const npu_dtype dtypes[] = { NPU_F32, NPU_I64 };
    npu_registry *registry = NULL;
    uint32_t num_tables, refused = 0, accepted = 0;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    NPU_ITEM("F8");
    npu_registry_create(&registry, NULL, NULL);
    for (uint32_t at = 0; at < 2 * 5 * 5 * 5; at++) {
        npu_graph_desc desc = { 0 };
        npu_graph *g;
        uint32_t three[3] = { ranks[at % 5], ranks[at / 5 % 5], ranks[at / 25 % 5] };
        desc.registry = registry;
        g = npu_graph_create(&desc);
        for (uint32_t t = 0; t < num_tables; t++) {
            for (uint32_t i = 0; i < tables[t].num_rows; i++) {
                const npu_op_def *def = npu_registry_find_kind(registry, tables[t].rows[i].kind);
                npu_op op = call_of_ranks(g, def, dtypes[at / 125], at / 125 + 1, three);
                accepted += op.id != 0;
                refused += op.id == 0;
                if (!op.id && (!npu_graph_status(g) || !npu_graph_diag(g)->message[0])) {
                    NPU_CHECK_STR(def->name, "refused with a message");
                }
                if (op.id && (def->traits & NPU_ELEMENTWISE)) {
                    check_broadcasts(g, op, def);
                }
                npu_graph_clear_error(g);
            }
        }
        npu_graph_destroy(g);
    }
    NPU_CHECK(refused > 50000 && accepted > 50000);
    npu_registry_destroy(registry);
}

static void test_spectral(void)
{
    static const row rows[] = {
        { "_fft_r2c", "self=f32[4,6] dim=[0,1] normalization=0 onesided=true", "c64[4,4]" },
        { "_fft_r2c", "self=f64[4,6] dim=[1,0] normalization=2 onesided=true", "c128[3,6]" },
        { "_fft_r2c", "self=f32[4,7] dim=[1] normalization=1 onesided=false", "c64[4,7]" },
        { "_fft_r2c", "self=f32[s,?] dim=[1] normalization=1 onesided=true", "c64[s,?]" },
        { "_fft_r2c", "self=f16[4] dim=[0] normalization=0 onesided=true", "DTYPE" },
        { "_fft_r2c", "self=f32[] dim=[0] normalization=0 onesided=true", "RANK" },
        { "_fft_r2c", "self=f32[0] dim=[0] normalization=0 onesided=true", "SHAPE" },
        { "_fft_c2r", "self=c64[4,4] dim=[0,1] normalization=0 last_dim_size=6", "f32[4,6]" },
        { "_fft_c2r", "self=c128[4,4] dim=[1] normalization=0 last_dim_size=7", "f64[4,7]" },
        { "_fft_c2r", "self=c64[4,4] dim=[1] normalization=0 last_dim_size=8", "SHAPE" },
        { "_fft_c2r", "self=c64[4,1] dim=[1] normalization=0 last_dim_size=0", "ATTRIBUTE" },
        { "_fft_c2c", "self=c64[3,0] dim=[0] normalization=0 forward=true", "c64[3,0]" },
        { "_fft_c2c", "self=c128[3] dim=[] normalization=0 forward=true", "c128[3]" },
        { "_fft_c2c", "self=c64[3] dim=[0] normalization=-1 forward=true", "ATTRIBUTE" },
        { "view_as_real", "self=c64[s,3]", "f32[s,3,2]" },
        { "view_as_real", "self=c128[]", "f64[2]" },
        { "view_as_real", "self=c64[1,1,1,1,1,1,1,1]", "RANK" },
        { "view_as_complex", "self=f64[3,2]", "c128[3]" },
        { "view_as_complex", "self=f32[]", "RANK" },
        { "view_as_complex", "self=f32[2,3]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

/* Ops that stand for others: dims and dtypes are those of what they stand for, and so are the refusals. */
static void test_composites(void)
{
    NPU_ITEM("F61");
    static const row rows[] = {
        { "swapaxes", "self=f32[s,3,2] axis0=0 axis1=-1", "f32[2,3,s]" },
        { "swapaxes", "self=f32[2,3] axis0=0 axis1=2", "AXIS" },
        { "aten.moveaxis.int", "self=i8[2,3,4] source=0 destination=2", "i8[3,4,2]" },
        { "aten.view.dtype", "self=f32[3,4] dtype=:i16", "i16[3,8]" },
        { "aten.view.dtype", "self=u8[3,s] dtype=:i16", "i16[3,?]" },
        { "aten.view.dtype", "self=u8[3,5] dtype=:i16", "SHAPE" },
        { "aten.view.dtype", "self=u8[] dtype=:i16", "RANK" },
        { "hann_window", "window_length=5", "f32[5]" },
        { "hann_window", "window_length=-1", "ATTRIBUTE" },
        { "aten.kaiser_window.beta", "window_length=5 periodic=true beta=2.0 dtype=:i32", "DTYPE" },
        { "fft_rfftfreq", "n=7 dtype=:f64", "f64[4]" },
        { "rrelu", "self=f16[s]", "f16[s]" },
        { "rrelu", "self=f32[2] training=true", "UNSUPPORTED" },
        { "max_unpool2d", "self=f32[2,3,3] indices=i64[2,3,3] output_size=[6,6]", "f32[2,6,6]" },
        { "max_unpool2d", "self=f32[3,3] indices=i64[3,3] output_size=[6,6]", "SHAPE" },
        { "max_unpool3d", "self=f32[2,3,2,3] indices=i64[2,3,2,3] output_size=[6,4,6] stride=[2,2,2] padding=[0,0,0]",
          "f32[2,6,4,6]" },
        { "max_unpool3d", "self=f32[3,2,3] indices=i64[3,2,3] output_size=[6,4,6] stride=[2,2,2] padding=[0,0,0]",
          "SHAPE" },
        { "max_unpool3d", "self=f32[1,3,2,3] indices=i64[1,3,2,3] output_size=[6,4,-6] stride=[2,2,2] padding=[0,0,0]",
          "SHAPE" },
        { "aten.index_fill.int_Tensor", "self=i32[s,3] dim=-1 index=i64[2] value=f32[]", "i32[s,3]" },
        { "aten.index_fill.int_Tensor", "self=f32[2,3] dim=1 index=i64[2] value=f32[1]", "RANK" },
        { "_weight_norm", "v=bf16[3,4] g=bf16[3,1]", "bf16[3,4]" },
        { "_weight_norm", "v=f32[3,4] g=f32[3,1] dim=2", "AXIS" },
        { "affine_grid_generator", "theta=f32[2,2,3] size=[2,1,4,5] align_corners=true", "f32[2,4,5,2]" },
        { "affine_grid_generator", "theta=f32[2,3,3] size=[2,1,4,5] align_corners=true", "SHAPE" },
        { "affine_grid_generator", "theta=f32[2,2,3] size=[2,1,4] align_corners=true", "ATTRIBUTE" },
        { "_convolution_mode", "input=f32[1,3,s] weight=f32[4,3,3] stride=[1] padding='same' dilation=[1] groups=1",
          "f32[1,4,s]" },
        { "_convolution_mode", "input=f32[3,5] weight=f32[4,3] stride=[1] padding='same' dilation=[1] groups=1",
          "RANK" },
        { "is_nonzero", "self=f32[2]", "SHAPE" },
        { "abs", "self=c128[s]", "f64[s]" },
        { "abs", "self=bool[2]", "DTYPE" },
        { "neg", "self=c64[2,s]", "c64[2,s]" },
        { "sgn", "self=c64[2]", "c64[2]" },
        { "polar", "abs=f64[3,1] angle=f64[4]", "c128[3,4]" },
        { "polar", "abs=f32[3] angle=f64[3]", "DTYPE" },
        { "complex", "real=f16[3] imag=f16[3]", "DTYPE" },
        { "real", "self=i64[3]", "i64[3]" },
        { "imag", "self=c64[3]", "f32[3]" },
        { "imag", "self=f32[3]", "DTYPE" },
        { "mm", "self=c64[2,s] mat2=c64[s,3]", "c64[2,3]" },
        { "mm", "self=c64[2,3] mat2=f32[3,3]", "DTYPE" },
        { "mean", "self=c64[3,4]", "c64[]" },
        { "linalg_vector_norm", "self=c128[3,4] dim=[0]", "f64[4]" },
        { "fft_fft", "self=i64[5] n=8", "c64[8]" },
        { "fft_fft", "self=f64[5] n=0", "ATTRIBUTE" },
        { "fft_fft", "self=f64[5] dim=1", "AXIS" },
        { "fft_fft", "self=f64[5] norm='none'", "ATTRIBUTE" },
        { "fft_fft", "self=f32[3,s]", "DYNAMIC_SHAPE" },
        { "fft_fft", "self=f16[4]", "DTYPE" },
        { "fft_rfft", "self=c64[4]", "DTYPE" },
        { "fft_irfftn", "self=c128[3,4]", "f64[3,6]" },
        { "fft_ihfft", "self=f32[9]", "c64[5]" },
        { "fft_fftshift", "self=f32[3,4] dim=[2]", "AXIS" },
        { "stft", "self=f32[2,16] n_fft=8 return_complex=true", "c64[2,5,5]" },
        { "stft", "self=f32[2,16] n_fft=8 win_length=9", "ATTRIBUTE" },
        { "stft", "self=f32[2,3,16] n_fft=8", "SHAPE" },
        { "istft", "self=c64[2,5,5] n_fft=8", "f32[2,8]" },
        { "istft", "self=c64[2,5,5] n_fft=12", "SHAPE" },
        { "istft", "self=f32[2,5,5] n_fft=8", "SHAPE" },
        { "linalg_lu_factor_ex", "A=f32[s,3,4]", "f32[s,3,4] i32[s,3] i32[s]" },
        { "linalg_lu_factor_ex", "A=f16[3,4]", "DTYPE" },
        { "lu_unpack", "LU_data=f64[2,4,3] LU_pivots=i32[2,3]", "f64[2,4,4] f64[2,4,3] f64[2,3,3]" },
        { "lu_unpack", "LU_data=f64[4,3] LU_pivots=i32[3] unpack_data=false", "f64[4,4] f64[0] f64[0]" },
        { "lu_unpack", "LU_data=f64[4,3] LU_pivots=i32[4]", "SHAPE" },
        { "lu_unpack", "LU_data=f64[4,3] LU_pivots=i64[3]", "DTYPE" },
        { "linalg_inv_ex", "A=f32[2,3,3]", "f32[2,3,3] i32[2]" },
        { "linalg_qr", "A=f32[s,4,3] mode='complete'", "f32[s,4,4] f32[s,4,3]" },
        { "nonzero_static", "self=f32[s,3] size=5", "i64[5,2]" },
        { "new_empty", "self=f32[2] size=[s,3]", "f32[s,3]" },
        { "new_empty_strided", "self=i64[2] size=[2,3] stride=[3,1]", "i64[2,3]" },
        { "_assert_async", "self=bool[2]", "SHAPE" },
        { "_assert_scalar", "self=0 assert_msg='no'", "RANGE" },
        { "_assert_scalar", "self=2 assert_msg='no'", "" },
        { "sym_constrain_range", "size=3 min=4", "RANGE" },
        { "sym_constrain_range", "size=3 min=1 max=3", "" },
        { "sym_constrain_range_for_size", "size=-1 min=0", "RANGE" },
        { "cudnn_batch_norm", "input=f32[s,3,4] weight=f32[3] bias=f32[3] running_mean=f32[3] running_var=f32[3] "
          "training=false exponential_average_factor=0.1 epsilon=0.1", "f32[s,3,4] f32[0] f32[0] u8[0]" },
        { "_thnn_fused_lstm_cell", "input_gates=f16[s,8] hidden_gates=f16[s,8] cx=f16[s,2]", "f16[s,2] f16[s,2] f16[s,8]" },
        { "_thnn_fused_lstm_cell", "input_gates=f16[3,8] hidden_gates=f16[3,6] cx=f16[3,2]", "SHAPE" },
        { "_thnn_fused_lstm_cell", "input_gates=f16[3,8] hidden_gates=f32[3,8] cx=f16[3,2]", "SHAPE" },
        { "_thnn_fused_gru_cell", "input_gates=f32[3,s] hidden_gates=f32[3,s] hx=f32[3,2]", "DYNAMIC_SHAPE" },
        { "_thnn_fused_gru_cell", "input_gates=i32[3,6] hidden_gates=i32[3,6] hx=i32[3,2]", "DTYPE" },
        { "embedding_renorm", "self=f32[5,3] indices=i32[2,2] max_norm=1.0 norm_type=2.0", "f32[5,3]" },
        { "embedding_renorm", "self=f32[5] indices=i32[2,2] max_norm=1.0 norm_type=2.0", "RANK" },
        { "embedding_renorm", "self=i32[5,3] indices=i32[2] max_norm=1.0 norm_type=2.0", "DTYPE" },
        { "nonzero_static", "self=f32[] size=5", "i64[5,0]" },
        { "nonzero_static", "self=f32[3] size=-1", "ATTRIBUTE" },
        { "segment_reduce", "data=f32[s,3] reduce='sum' lengths=i32[4]", "f32[4,3]" },
        { "segment_reduce", "data=f16[2,s,3] reduce='max' offsets=i64[2,4] axis=1", "f16[2,3,3]" },
        { "segment_reduce", "data=f32[6] reduce='sum'", "ARITY" },
        { "segment_reduce", "data=f32[6] reduce='sum' lengths=i64[2] indices=i64[6]", "UNSUPPORTED" },
        { "segment_reduce", "data=f32[6] reduce='any' lengths=i64[2]", "ATTRIBUTE" },
        { "segment_reduce", "data=i64[6] reduce='sum' lengths=i64[2]", "DTYPE" },
        { "segment_reduce", "data=f32[2,6] reduce='sum' lengths=i64[3,2] axis=1", "SHAPE" },
        { "segment_reduce", "data=f32[6] reduce='sum' lengths=i64[2] axis=1", "AXIS" },
        { "segment_reduce", "data=f32[6] reduce='sum' offsets=i64[0]", "SHAPE" },
        { "histogramdd", "self=f32[s,2] bins=[3,2]", "f32[3,2] f32[4] f32[3]" },
        { "histogramdd", "self=f32[5,2] bins=[3]", "ATTRIBUTE" },
        { "aten.histogramdd.TensorList_bins", "self=f32[5,2] bins={f32[s],f32[4]}", "f32[?,3] f32[s] f32[4]" },
        { "aten.histogramdd.TensorList_bins", "self=f32[5,2] bins={f32[0],f32[4]}", "ATTRIBUTE" },
        { "histogramdd", "self=f32[5,2] bins=[3,0]", "ATTRIBUTE" },
        { "histogramdd", "self=f32[5,1] bins=[3] range=[1,2,3,4]", "ATTRIBUTE" },
        { "histogramdd", "self=f32[5,1] bins=[3] range=[2,1]", "ATTRIBUTE" },
        { "histogramdd", "self=f32[5,1] bins=[3] weight=f32[4]", "SHAPE" },
        { "histogramdd", "self=f32[5] bins=[3]", "RANK" },
        { "histogramdd", "self=i64[5,1] bins=[3]", "DTYPE" },
        { "histogramdd", "self=f32[5,s] bins=[3]", "DYNAMIC_SHAPE" },
        { "histogramdd", "self=f32[5,1] bins=[9223372036854775807]", "OVERFLOW" },
        { "_upsample_bilinear2d_aa", "self=f32[s,3,9,7] output_size=[5,3] align_corners=false", "f32[s,3,5,3]" },
        { "_upsample_bicubic2d_aa", "self=u8[1,3,9,7] output_size=[5,3] align_corners=false", "u8[1,3,5,3]" },
        { "_upsample_bicubic2d_aa", "self=f32[3,9,7] output_size=[5,3] align_corners=false", "RANK" },
        { "_upsample_bicubic2d_aa", "self=f32[1,3,9,7] output_size=[5,0] align_corners=false", "ATTRIBUTE" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=i64[2,3] input_lengths=[6,5] target_lengths=[1,3]",
          "f32[2] f32[2,6,7]" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=i64[2,3] input_lengths=[6,5] target_lengths=[1,4]", "RANGE" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=i64[2,3] input_lengths=[6] target_lengths=[1,3]", "ARITY" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=i64[2,3] input_lengths=[6,5] target_lengths=[1,3] blank=4",
          "ATTRIBUTE" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=i64[3,3] input_lengths=[6,5] target_lengths=[1,3]", "SHAPE" },
        { "_ctc_loss", "log_probs=f32[6,4] targets=i64[3] input_lengths=[6] target_lengths=[3]", "RANK" },
        { "_ctc_loss", "log_probs=f32[6,2,4] targets=f32[2,3] input_lengths=[6,5] target_lengths=[1,3]", "DTYPE" },
        { "_pack_padded_sequence", "input=f32[5,3,2] lengths=i32[3] batch_first=false", "DTYPE" },
        { "_pack_padded_sequence", "input=f32[5,3,2] lengths=i64[5] batch_first=false", "SHAPE" },
        { "_pack_padded_sequence", "input=f32[5,3,0] lengths=i64[3] batch_first=false", "SHAPE" },
        { "_pad_packed_sequence", "data=f32[9,2] batch_sizes=i64[5] batch_first=true padding_value=0 total_length=4",
          "ATTRIBUTE" },
        { "_pad_packed_sequence", "data=f32[9,2] batch_sizes=i64[0] batch_first=true padding_value=0 total_length=4",
          "SHAPE" },
        { "linalg_qr", "A=f64[3,s]", "f64[3,?] f64[?,s]" },
        { "linalg_qr", "A=f64[4,3] mode='r'", "f64[0] f64[3,3]" },
        { "linalg_qr", "A=f64[4,3] mode='full'", "ATTRIBUTE" },
        { "linalg_qr", "A=i32[4,3]", "DTYPE" },
        { "_linalg_eigh", "A=f32[s,3,3]", "f32[s,3] f32[s,3,3]" },
        { "_linalg_eigh", "A=f64[3,3] compute_v=false", "f64[3] f64[0]" },
        { "_linalg_eigh", "A=f64[3,4]", "SHAPE" },
        { "_linalg_eigh", "A=f64[3,3] UPLO='B'", "ATTRIBUTE" },
        { "_linalg_eigh", "A=f16[3,3]", "DTYPE" },
        { "linalg_eigvalsh", "self=f64[3]", "RANK" },
        { "_linalg_svd", "A=f32[s,4,3] full_matrices=true", "f32[s,4,4] f32[s,3] f32[s,3,3]" },
        { "_linalg_svd", "A=f32[2,4] compute_uv=false", "f32[0] f32[2] f32[0]" },
        { "linalg_svd", "A=f32[3]", "RANK" },
        { "svd", "self=f32[2,4] compute_uv=false", "f32[2,2] f32[2] f32[4,4]" },
        { "linalg_pinv", "self=f32[s,4,3] rcond=0.1", "f32[s,3,4]" },
        { "linalg_pinv", "self=f32[4] rcond=0.1", "RANK" },
        { "linalg_pinv", "self=f16[4,4] rcond=0.1", "DTYPE" },
        { "linalg_pinv", "self=f32[4,3] rcond=0.1 hermitian=true", "SHAPE" },
        { "linalg_lstsq", "self=f32[4,3] b=f32[4]", "f32[3] f32[0] i64[] f32[0]" },
        { "linalg_lstsq", "self=f64[2,4,3] b=f64[2,4,1] driver='gelsd'", "f64[2,3,1] f64[2,1] i64[2] f64[2,3]" },
        { "linalg_lstsq", "self=f64[4,3] b=f32[4,1]", "DTYPE" },
        { "linalg_lstsq", "self=f64[4,3] b=f64[3,1]", "SHAPE" },
        { "linalg_lstsq", "self=f64[4,3] b=f64[2,4,1]", "RANK" },
        { "linalg_lstsq", "self=f64[4,3] b=f64[4,1] driver='qr'", "ATTRIBUTE" },
        { "matrix_exp", "self=f32[2,3,3]", "f32[2,3,3]" },
        { "matrix_exp", "self=f32[2,3]", "SHAPE" },
        { "matrix_exp", "self=i32[3,3]", "DTYPE" },
        { "_native_multi_head_attention", "query=f32[2,5,4] key=f32[2,5,4] value=f32[2,5,4] embed_dim=4 num_head=2 "
          "qkv_weight=f32[12,4] qkv_bias=f32[12] proj_weight=f32[4,4] proj_bias=f32[4] mask=bool[2,5] mask_type=1 "
          "average_attn_weights=false", "f32[2,5,4] f32[2,2,5,5]" },
        { "_native_multi_head_attention", "query=f32[2,5,4] key=f32[2,5,4] value=f32[2,5,4] embed_dim=4 num_head=3 "
          "qkv_weight=f32[12,4] qkv_bias=f32[12] proj_weight=f32[4,4] proj_bias=f32[4]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

#define QD "quantized_decomposed."
static const row quantisation_rows[] = {
    { QD "quantize_per_tensor.default", "input=f16[2,s] scale=0.5 zero_point=3 quant_min=-128 quant_max=127 dtype=:i8", "i8[2,s]" },
    { QD "quantize_per_tensor.default", "input=f32[] scale=0.5 zero_point=0 quant_min=0 quant_max=65535 dtype=:u16", "u16[]" },
    { QD "quantize_per_tensor.default", "input=f64[2] scale=0.5 zero_point=0 quant_min=0 quant_max=1 dtype=:u8", "DTYPE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=0.5 zero_point=0 quant_min=0 quant_max=1 dtype=:i64", "DTYPE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=0.0 zero_point=0 quant_min=0 quant_max=1 dtype=:u8", "ATTRIBUTE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=-1.0 zero_point=0 quant_min=0 quant_max=1 dtype=:u8", "ATTRIBUTE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=1.0 zero_point=256 quant_min=0 quant_max=1 dtype=:u8", "RANGE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=1.0 zero_point=-1 quant_min=0 quant_max=1 dtype=:u8", "RANGE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=1.0 zero_point=0 quant_min=-129 quant_max=1 dtype=:i8", "RANGE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=1.0 zero_point=0 quant_min=0 quant_max=128 dtype=:i8", "RANGE" },
    { QD "quantize_per_tensor.default", "input=f32[2] scale=1.0 zero_point=0 quant_min=1 quant_max=0 dtype=:i8", "RANGE" },
    { QD "quantize_per_tensor.tensor", "input=f32[2] scale=f64[1,1] zero_point=i32[] quant_min=0 quant_max=9 dtype=:i8", "i8[2]" },
    { QD "quantize_per_tensor.tensor", "input=f32[2] scale=f64[2] zero_point=i32[] quant_min=0 quant_max=9 dtype=:i8", "SHAPE" },
    { QD "quantize_per_tensor.tensor", "input=f32[2] scale=i64[] zero_point=i32[] quant_min=0 quant_max=9 dtype=:i8", "DTYPE" },
    { QD "quantize_per_tensor.tensor", "input=f32[2] scale=f32[] zero_point=bool[] quant_min=0 quant_max=9 dtype=:i8", "DTYPE" },
    { QD "quantize_per_tensor.tensor2", "input=f32[2] scale=f32[] zero_point=i64[] quant_min=i64[] quant_max=i32[1] dtype=:i32", "i32[2]" },
    { QD "quantize_per_tensor.tensor2", "input=f32[2] scale=f32[] zero_point=i64[] quant_min=f32[] quant_max=i32[1] dtype=:i32", "DTYPE" },
    { QD "quantize_per_tensor.tensor2", "input=f32[2] scale=f32[] zero_point=i64[] quant_min=i64[] quant_max=i32[2] dtype=:i32", "SHAPE" },
    { QD "quantize_per_channel.default", "input=f32[2,3] scales=f32[3] zero_points=i32[1] axis=-1 quant_min=0 quant_max=9 dtype=:u8", "u8[2,3]" },
    { QD "quantize_per_channel.default", "input=f32[2,3] scales=f32[3] zero_points=i32[3] axis=2 quant_min=0 quant_max=9 dtype=:u8", "AXIS" },
    { QD "quantize_per_channel.default", "input=f32[] scales=f32[1] zero_points=i32[1] axis=0 quant_min=0 quant_max=9 dtype=:u8", "AXIS" },
    { QD "quantize_per_channel.default", "input=f32[2,3] scales=f32[2] zero_points=i32[3] axis=1 quant_min=0 quant_max=9 dtype=:u8", "SHAPE" },
    { QD "quantize_per_channel.default", "input=f32[2,3] scales=f32[3,1] zero_points=i32[3] axis=1 quant_min=0 quant_max=9 dtype=:u8", "RANK" },
    { QD "quantize_per_token.default", "input=f64[2,s,4] scales=f32[2,s,1] zero_points=f32[1,1] quant_min=0 quant_max=9 dtype=:u8", "u8[2,s,4]" },
    { QD "quantize_per_token.default", "input=f32[2,3,4] scales=f32[2,1,1] zero_points=f32[2,3,1] quant_min=0 quant_max=9 dtype=:u8", "SHAPE" },
    { QD "quantize_per_token.default", "input=f32[2,3,4] scales=f32[3,1] zero_points=f32[2,3,1] quant_min=0 quant_max=9 dtype=:u8", "SHAPE" },
    { QD "quantize_per_token.default", "input=f32[4] scales=f32[1,1] zero_points=f32[1] quant_min=0 quant_max=9 dtype=:u8", "RANK" },
    { QD "quantize_per_channel_group.default", "input=f32[2,8] scales=f32[2,2] zero_points=i32[4] quant_min=0 quant_max=9 dtype=:u8 group_size=4", "u8[2,8]" },
    { QD "quantize_per_channel_group.default", "input=f32[2,3] scales=f32[2,1] zero_points=i32[2,1] quant_min=0 quant_max=9 dtype=:u8 group_size=128", "u8[2,3]" },
    { QD "quantize_per_channel_group.default", "input=f32[2,8] scales=f32[2,2] zero_points=i32[4] quant_min=0 quant_max=9 dtype=:u8 group_size=3", "SHAPE" },
    { QD "quantize_per_channel_group.default", "input=f32[2,8] scales=f32[2,3] zero_points=i32[4] quant_min=0 quant_max=9 dtype=:u8 group_size=4", "SHAPE" },
    { QD "quantize_per_channel_group.default", "input=f32[2,8] scales=f32[2,3] zero_points=i32[4] quant_min=0 quant_max=9 dtype=:u8 group_size=1", "ATTRIBUTE" },
    { QD "quantize_per_channel_group.default", "input=f32[8] scales=f32[2] zero_points=i32[2] quant_min=0 quant_max=9 dtype=:u8 group_size=4", "RANK" },
    { QD "dequantize_per_tensor.default", "input=i16[2] scale=0.5 zero_point=3 quant_min=-9 quant_max=9 dtype=:i16", "f32[2]" },
    { QD "dequantize_per_tensor.default", "input=i16[2] scale=0.5 zero_point=3 quant_min=-9 quant_max=9 dtype=:i16 out_dtype=:bf16", "bf16[2]" },
    { QD "dequantize_per_tensor.default", "input=i16[2] scale=0.5 zero_point=3 quant_min=-9 quant_max=9 dtype=:i16 out_dtype=:i32", "DTYPE" },
    { QD "dequantize_per_tensor.default", "input=i8[2] scale=0.5 zero_point=3 quant_min=-9 quant_max=9 dtype=:i16", "DTYPE" },
    { QD "dequantize_per_channel.default", "input=i8[2,3] scales=f64[2] axis=0 quant_min=-9 quant_max=9 dtype=:i8", "f32[2,3]" },
    { QD "dequantize_per_channel.default", "input=i8[2,3] scales=f64[2] axis=-3 quant_min=-9 quant_max=9 dtype=:i8", "AXIS" },
    { QD "dequantize_per_token.default", "input=i8[2,3] scales=f64[2,1] zero_points=i64[2,1] quant_min=-9 quant_max=9 dtype=:i8 output_dtype=:f16", "f16[2,3]" },
    { QD "choose_qparams.tensor", "input=bf16[2,3] quant_min=-128 quant_max=127 eps=0.0 dtype=:i8", "f64[1] i64[1]" },
    { QD "choose_qparams.tensor", "input=f32[2,0] quant_min=-128 quant_max=127 eps=0.1 dtype=:i8", "SHAPE" },
    { QD "choose_qparams.tensor", "input=f32[2] quant_min=1 quant_max=127 eps=0.1 dtype=:i8", "RANGE" },
    { QD "choose_qparams.tensor", "input=f32[2] quant_min=0 quant_max=127 eps=-0.1 dtype=:i8", "ATTRIBUTE" },
    { QD "choose_qparams_per_token.default", "input=f16[2,3] dtype=:i8", "f32[2,1] f32[2,1]" },
    { QD "choose_qparams_per_token.default", "input=bf16[] dtype=:i8", "bf16[] bf16[]" },
    { QD "choose_qparams_per_token.default", "input=f32[2,3] dtype=:u8", "DTYPE" },
    { QD "choose_qparams_per_token_asymmetric.default", "input=f16[s,3] dtype=:u8", "f64[s,1] i64[s,1]" },
    { QD "choose_qparams_per_token_asymmetric.default", "input=f32[2,0] dtype=:i8", "SHAPE" },
    { QD "convert_element_type.no_fuse", "input=f32[2,s] dtype=:u8", "u8[2,s]" },
    { QD "fake_quant_per_channel.default", "input=f64[2] scales=f32[2] zero_points=i32[2] axis=0 quant_min=0 quant_max=9", "DTYPE" },
    { "fake_quantize_per_tensor_affine", "self=f64[2] scale=0.5 zero_point=3 quant_min=0 quant_max=9", "f64[2]" },
    { "fake_quantize_per_tensor_affine", "self=f32[2] scale=0.5 zero_point=10 quant_min=0 quant_max=9", "RANGE" },
    { "fake_quantize_per_tensor_affine", "self=f32[2] scale=0.5 zero_point=0 quant_min=1 quant_max=0", "RANGE" },
    { "fake_quantize_per_tensor_affine", "self=i32[2] scale=0.5 zero_point=3 quant_min=0 quant_max=9", "DTYPE" },
    { "fake_quantize_per_tensor_affine_cachemask", "self=bf16[2] scale=0.5 zero_point=3 quant_min=0 quant_max=9", "bf16[2] bool[2]" },
    { "fake_quantize_per_channel_affine", "self=f32[2,3] scale=f32[1] zero_point=f16[1] axis=1 quant_min=0 quant_max=9", "SHAPE" },
    { "fake_quantize_per_channel_affine", "self=f32[2,3] scale=f32[3] zero_point=f16[3] axis=1 quant_min=0 quant_max=9", "f32[2,3]" },
    { "_int_mm", "self=i8[2,s] mat2=i8[s,3]", "i32[2,3]" },
    { "_int_mm", "self=u8[2,4] mat2=i8[4,3]", "DTYPE" },
    { "_int_mm", "self=i8[2,4] mat2=i8[5,3]", "SHAPE" },
    { "_weight_int8pack_mm", "self=bf16[s,4] mat2=i8[5,4] scales=bf16[5]", "bf16[s,5]" },
    { "_weight_int8pack_mm", "self=f32[2,4] mat2=i8[5,4] scales=bf16[5]", "DTYPE" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[32,8] innerKTiles=2", "u8[32,4]" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[s,8] innerKTiles=4", "u8[s,4]" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[32,s] innerKTiles=8", "u8[32,?]" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[32,7] innerKTiles=2", "SHAPE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[2,s] mat2=u8[16,32] qGroupSize=32 qScaleAndZeros=f32[2,16,2]",
      "f32[2,16]" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[2,64] mat2=u8[s,32] qGroupSize=32 qScaleAndZeros=f32[2,s,2]",
      "f32[2,s]" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[8,8] innerKTiles=2", "SHAPE" },
    { "_convert_weight_to_int4pack_for_cpu", "self=i32[32,8] innerKTiles=3", "ATTRIBUTE" },
    { "_convert_weight_to_int4pack_for_cpu", "self=u8[32,8] innerKTiles=2", "DTYPE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,64] mat2=u8[16,32] qGroupSize=32 qScaleAndZeros=f32[2,16,2]", "f32[s,16]" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,64] mat2=u8[16,32] qGroupSize=48 qScaleAndZeros=f32[2,16,2]", "ATTRIBUTE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,96] mat2=u8[16,48] qGroupSize=64 qScaleAndZeros=f32[2,16,2]", "SHAPE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,64] mat2=u8[16,64] qGroupSize=32 qScaleAndZeros=f32[2,16,2]", "SHAPE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,64] mat2=u8[8,32] qGroupSize=32 qScaleAndZeros=f32[2,8,2]", "SHAPE" },
    { "_weight_int4pack_mm_for_cpu", "self=f32[s,64] mat2=u8[16,32] qGroupSize=32 qScaleAndZeros=f32[1,16,2]", "SHAPE" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,32] scales_zeros=bf16[3,2] bias=f32[3] block_size=32 in_features=64 out_features=3", "f32[105]" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,32] scales_zeros=f32[3,1] block_size=64 in_features=64 out_features=3", "f32[99]" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,32] scales_zeros=f32[3,4] block_size=16 in_features=64 out_features=3", "ATTRIBUTE" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,30] scales_zeros=f32[3,2] block_size=32 in_features=64 out_features=3", "SHAPE" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,32] scales_zeros=f32[3] block_size=32 in_features=64 out_features=3", "SHAPE" },
    { "_dyn_quant_pack_4bit_weight", "weights=u8[3,32] scales_zeros=f32[6] block_size=32 in_features=0 out_features=3", "ATTRIBUTE" },
    { "_dyn_quant_matmul_4bit", "inp=f32[s,64] packed_weights=f32[105] block_size=32 in_features=64 out_features=3", "f32[s,3]" },
    { "_dyn_quant_matmul_4bit", "inp=f32[s,64] packed_weights=f32[102] block_size=32 in_features=64 out_features=3", "f32[s,3]" },
    { "_dyn_quant_matmul_4bit", "inp=f32[s,64] packed_weights=f32[104] block_size=32 in_features=64 out_features=3", "SHAPE" },
    { "_dyn_quant_matmul_4bit", "inp=f32[s,32] packed_weights=f32[102] block_size=32 in_features=64 out_features=3", "SHAPE" },
    { "_dyn_quant_matmul_4bit", "inp=f32[2,64] packed_weights=f32[102] block_size=32 in_features=64 out_features=9223372036854775807", "OVERFLOW" },
};

/* Sizes at both ends of what can be, and sizes that are not known. */
static void test_far_sizes(void)
{
    static const row rows[] = {
        { "full", "size=[2] fill_value=1 dtype=999", "ATTRIBUTE" },
        { "conv1d", "input=f32[1,1,4] weight=f32[1,1,1] padding=[0x7fffffffffffffff]", "OVERFLOW" },
        { "conv1d", "input=f32[1,1,4] weight=f32[1,1,1] stride=[0x7fffffffffffffff]", "OVERFLOW" },
        { "conv1d", "input=f32[1,1,s] weight=f32[1,1,2]", "f32[1,1,?]" },
        { "conv1d", "input=f32[1,1,s] weight=f32[1,1,3] padding=[1]", "f32[1,1,s]" },
        { "conv_transpose1d", "input=f32[1,1,s] weight=f32[1,1,3]", "f32[1,1,?]" },
        { "conv_transpose1d", "input=f32[1,1,2] weight=f32[1,1,3] stride=[0x7fffffffffffffff]", "OVERFLOW" },
        { "conv_transpose1d", "input=f32[1,1,2] weight=f32[1,1,3] padding=[0x7fffffffffffffff]", "OVERFLOW" },
        { "aten.slice.Tensor", "self=f32[s,3] dim=0 start=0 end=0x7fffffffffffffff step=2", "f32[?,3]" },
        { "narrow", "self=f32[s] dim=0 start=-1 length=1", "f32[1]" },
        { "unfold", "self=f32[s] dimension=0 size=2 step=1", "f32[?,2]" },
        { "col2im", "self=f32[1,s,9] output_size=[4,4] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "f32[1,?,4,4]" },
        { "aten.take_along_dim.default", "self=f32[3] indices=i64[0,0x7fffffffffffffff,2]", "f32[0]" },
        { "gather", "self=f32[s,3] dim=1 index=i64[4,3]", "f32[4,3]" },
        { "avg_pool3d", "self=f32[1,1,1,4,4] kernel_size=[2,2,2] padding=[1,1,1]", "SHAPE" },
        { "adaptive_avg_pool2d", "self=f32[1,1,4,4] output_size=[]", "ATTRIBUTE" },
        { "linalg_norm", "self=f32[2,3,4] dim=[0,1,2]", "ATTRIBUTE" },
        { "histc", "self=f32[3] bins=2 min=0 max=inf", "ATTRIBUTE" },
        { "aten.view.dtype", "self=f32[0,0x7fffffffffffffff] dtype=:u8", "SHAPE" },
        { "aten.view.dtype", "self=f32[2,3] dtype=:i4", "DTYPE" },
        { "aten.repeat_interleave.self_int", "self=f32[0,0x7fffffffffffffff,2] repeats=2", "f32[0]" },
        { "aten.repeat_interleave.self_int", "self=f32[] repeats=2 dim=0", "AXIS" },
        { "combinations", "self=f32[0] r=2 with_replacement=true", "f32[0,2]" },
        { "topk", "self=f32[s] k=5", "f32[5] i64[5]" },
        { "bincount", "self=i64[0] weights=f32[0]", "i64[?]" },
        { "constant_pad_nd", "self=f32[4] pad=[0,0x7fffffffffffffff]", "OVERFLOW" },
        { "fractional_max_pool2d", "self=f32[1,1,s,4] kernel_size=[2,2] output_size=[2,2] random_samples=f32[1,1,2]",
          "f32[1,1,2,2] i64[1,1,2,2]" },
        { "instance_norm",
          "input=f32[1,2,3] running_mean=f32[2] use_input_stats=false momentum=0.1 eps=0.0 cudnn_enabled=false",
          "ARITY" },
        { "put", "self=f32[3] index=i64[s] source=f32[s]", "f32[3]" },
        { "put", "self=f32[3] index=i64[2] source=f32[s]", "f32[3]" },
        { "cov", "self=f32[2,3] fweights=i64[3] aweights=f64[3]", "f64[2,2]" },
        { "cov", "self=f32[2,3] fweights=i64[s]", "f32[2,2]" },
        { "pixel_unshuffle", "self=f32[1,4,s,4] downscale_factor=2", "f32[1,16,?,2]" },
        { "type_as", "self=f32[s] other=i64[2]", "i64[s]" },
        { "conv1d", "input=f32[0,1,0x7fffffffffffffff] weight=f32[1,1,1] padding=[1]", "OVERFLOW" },
        { "conv_transpose1d", "input=f32[0,1,0x7fffffffffffffff] weight=f32[1,1,3]", "OVERFLOW" },
        { "conv_transpose1d", "input=f32[0,2,4] weight=f32[0,0x7fffffffffffffff,1] groups=2", "OVERFLOW" },
        { "conv_transpose1d", "input=f32[1,0,4] weight=f32[0,0x7fffffffffffffff,1] groups=2", "OVERFLOW" },
        { "flatten", "self=f32[0,0x7fffffffffffffff,2] start_dim=1", "OVERFLOW" },
        { "flatten", "self=f32[s,3,2] start_dim=0 end_dim=1", "f32[?,2]" },
        { "diagonal", "self=f32[?,3]", "f32[?]" },
        { "diagonal", "self=f32[2,s] offset=1", "f32[?]" },
        { "diag", "self=f32[s]", "f32[s,s]" },
        { "diag", "self=f32[s] diagonal=1", "f32[?,?]" },
        { "pixel_shuffle", "self=f32[0,4,0x7fffffffffffffff,1] upscale_factor=2", "OVERFLOW" },
        { "pixel_shuffle", "self=f32[1,4,s,1] upscale_factor=2", "f32[1,1,?,2]" },
        { "aten.repeat_interleave.self_int", "self=f32[0,0x7fffffffffffffff] repeats=2 dim=1", "OVERFLOW" },
        { "aten.repeat_interleave.self_int", "self=f32[s,2] repeats=2 dim=0", "f32[?,2]" },
        { "im2col", "self=f32[1,0,4,4] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]", "SHAPE" },
        { "im2col",
          "self=f32[0,0x7fffffffffffffff,4,4] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1]",
          "OVERFLOW" },
        { "aten.histogram.bin_ct", "self=f32[3] bins=2 range=[0,1,2]", "ATTRIBUTE" },
        { "aten.histogram.bin_ct", "self=f32[3] bins=2 range=[3,1]", "ATTRIBUTE" },
        { "aten.histogram.bin_ct", "self=f32[3] bins=2 range=[1,3]", "f32[2] f32[3]" },
        { "linear", "input=f32[2,3] weight=f32[3] bias=f32[]", "RANK" },
        { "linear", "input=f32[2,2,3] weight=f32[3] bias=f32[]", "RANK" },
        { "linear", "input=f32[2,3] weight=f32[3] bias=f32[2]", "RANK" },
        { "linear", "input=f32[2,2,2,3] weight=f32[3] bias=f32[2]", "RANK" },
        { "linear", "input=f32[3] weight=f32[3] bias=f32[]", "f32[]" },
        { "kron", "self=f32[?] other=f32[3]", "f32[?]" },
        { "kron", "self=f32[3] other=f32[s]", "f32[?]" },
        { "kron", "self=f32[0,0x7fffffffffffffff] other=f32[0,2]", "OVERFLOW" },
        { "adaptive_avg_pool2d", "self=f32[1,2,4,4] output_size=[]", "ATTRIBUTE" },
        { "upsample_nearest2d", "self=f32[1,1,0,4] output_size=[2,2]", "SHAPE" },
        { "grid_sampler_2d",
          "input=f32[1,1,0,4] grid=f32[1,2,2,2] interpolation_mode=0 padding_mode=0 align_corners=false", "SHAPE" },
        { "cdist", "x1=f32[2,3,4] x2=f32[5,3,4]", "SHAPE" },
        { "cdist", "x1=f32[s,3,4] x2=f32[5,3,4]", "DYNAMIC_SHAPE" },
        { "aten._pdist_forward", "self=f32[0x7fffffffffffffff,0]", "OVERFLOW" },
        { "aten._pdist_forward", "self=f32[s,4]", "f32[?]" },
        { "aten.arange.start_step", "start=0 end=5 step=0.5 dtype=:i64", "ATTRIBUTE" },
        { "masked_select", "self=f32[?] mask=bool[?]", "f32[?]" },
        { "masked_select", "self=f32[0,0x7fffffffffffffff] mask=bool[1,2]", "SHAPE" },
        { "reshape", "self=f32[?,3] shape=[-1,3]", "f32[?,3]" },
        { "reshape", "self=f32[s,3] shape=[3,-1]", "f32[3,s]" },
        { "reshape", "self=f32[0,3] shape=[0,-1]", "SHAPE" },
        { "reshape", "self=f32[2,3] shape=[4,-1]", "SHAPE" },
        { "aten.repeat_interleave.Tensor", "repeats=i64[?]", "i64[?]" },
        { "aten.scaled_dot_product_attention",
          "query=f32[1,4,3,8] key=f32[1,0,3,8] value=f32[1,0,3,8] enable_gqa=true", "SHAPE" },
        { "aten.scaled_dot_product_attention",
          "query=f32[1,4,3,8] key=f32[1,3,3,8] value=f32[1,3,3,8] enable_gqa=true", "SHAPE" },
        { "aten.linalg_qr", "A=f32[s,3]", "f32[s,?] f32[?,3]" },
        { "aten.linalg_svd", "A=f32[2,?] full_matrices=false", "f32[2,?] f32[?] f32[?,?]" },
        { "aten.index.Tensor", "self=f32[5,6] indices={bool[?],bool[6]}", "f32[?]" },
        { "aten.index.Tensor", "self=f32[5,6] indices={i64[2],i64[3]}", "SHAPE" },
        { "aten.put", "self=f32[5] index=i64[2] source=f32[3]", "SHAPE" },
        { "aten.put", "self=f32[5] index=i64[s] source=f32[3]", "f32[5]" },
        { "take_along_dim", "self=f32[5,2] indices=i64[5,?] dim=1", "f32[5,?]" },
        { "take_along_dim", "self=f32[3] indices=i64[0,0x7fffffffffffffff]", "f32[0]" },
        { "aten.bincount", "self=i64[3] weights=f32[2]", "SHAPE" },
        { "aten.tensor_split.sections", "self=f32[7] sections=0", "ATTRIBUTE" },
        { "aten.tensor_split.indices", "self=f32[7,2] indices=[2,5]", "f32[2,2] f32[3,2] f32[2,2]" },
        { "aten.segment_reduce", "data=f32[6,2] reduce='sum' lengths=i64[3]", "f32[3,2]" },
        { "aten.segment_reduce", "data=f32[6,2] reduce='sum' offsets=i64[4]", "f32[3,2]" },
        { "aten.segment_reduce", "data=f32[6,2] reduce='sum' offsets=i64[0]", "SHAPE" },
        { "aten.segment_reduce", "data=f32[6,2] reduce='sum' offsets=i64[?]", "f32[?,2]" },
        { "aten.unflatten.int", "self=f32[6] dim=0 sizes=[0,-1]", "SHAPE" },
        { "aten.unflatten.int", "self=f32[0] dim=0 sizes=[0,-1]", "SHAPE" },
        { "aten.unflatten.int", "self=f32[s] dim=0 sizes=[2,-1]", "f32[2,?]" },
        { "aten.unflatten.int", "self=f32[s] dim=0 sizes=[1,-1]", "f32[1,s]" },
        { "aten.unflatten.int", "self=f32[6] dim=0 sizes=[-1,-1]", "ATTRIBUTE" },
        { "aten.unflatten.int", "self=f32[6] dim=0 sizes=[4,-1]", "SHAPE" },
        { "aten.unflatten.int", "self=f32[6] dim=0 sizes=[2,4]", "SHAPE" },
    };
    CHECK_ROWS(rows);
}

static void test_quantisation(void)
{
    CHECK_ROWS(quantisation_rows);
}

/* The last test: each family of tensor ops has had at least two calls refused. */
static void test_every_family_rejects(void)
{
    uint32_t num_tables;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    for (uint32_t t = 0; t < num_tables; t++) {
        int count = 0;
        bool is_tensor_op = strcmp(tables[t].space, "aten") == 0 || strcmp(tables[t].space, "aicf") == 0 ||
                            strcmp(tables[t].space, "quantized_decomposed") == 0;
        for (size_t i = 0; rejections[i].family; i++) {
            count += strcmp(rejections[i].family, tables[t].category) == 0 ? rejections[i].count : 0;
        }
        NPU_CHECK_THAT(!is_tensor_op || count >= 2, "family '%s' has %d rejections, expected two", tables[t].category, count);
    }
}

int main(void)
{
    NPU_RUN(test_convolution);
    NPU_RUN(test_convolution_backward);
    NPU_RUN(test_transposed_convolution);
    NPU_RUN(test_matrix);
    NPU_RUN(test_contraction);
    NPU_RUN(test_linalg);
    NPU_RUN(test_recurrent);
    NPU_RUN(test_activation);
    NPU_RUN(test_normalization);
    NPU_RUN(test_pooling);
    NPU_RUN(test_promotion_recorded);
    NPU_RUN(test_promotion_edges);
    NPU_RUN(test_broadcasting);
    NPU_RUN(test_broadcasting_dynamic);
    NPU_RUN(test_tensor_promotion);
    NPU_RUN(test_tensor_promotion_signs);
    NPU_RUN(test_tensor_promotion_ties);
    NPU_RUN(test_reshape);
    NPU_RUN(test_layout);
    NPU_RUN(test_join);
    NPU_RUN(test_parts);
    NPU_RUN(test_reduction);
    NPU_RUN(test_native_norms);
    NPU_RUN(test_pooling_more);
    NPU_RUN(test_resize);
    NPU_RUN(test_distance);
    NPU_RUN(test_samples);
    NPU_RUN(test_losses);
    NPU_RUN(test_statistics);
    NPU_RUN(test_order);
    NPU_RUN(test_search);
    NPU_RUN(test_lookup);
    NPU_RUN(test_moved_dims);
    NPU_RUN(test_arrangement);
    NPU_RUN(test_words);
    NPU_RUN(test_indexing);
    NPU_RUN(test_borders);
    NPU_RUN(test_memory);
    NPU_RUN(test_arithmetic);
    NPU_RUN(test_logic);
    NPU_RUN(test_creation);
    NPU_RUN(test_numbers);
    NPU_RUN(test_special);
    NPU_RUN(test_device);
    NPU_RUN(test_device_training);
    NPU_RUN(test_where_indices);
    NPU_RUN(test_spectral);
    NPU_RUN(test_far_sizes);
    NPU_RUN(test_quantisation);
    NPU_RUN(test_composites);
    NPU_RUN(test_every_rank);
    NPU_RUN(test_messages);
    NPU_RUN(test_first_failure);
    NPU_RUN(test_patterns);
    NPU_RUN(test_malformed_patterns);
    NPU_RUN(test_pattern_and_rule);
    NPU_RUN(test_classes);
    NPU_RUN(test_every_family_rejects);
    return npu_test_done();
}
