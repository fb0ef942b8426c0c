/* Schemas and attribute blobs: lines that parse and print back, lines that must not, blobs byte for byte. */
#include "npu_test.h"

/* ---- schemas ---- */

static const char *const lines[] = {
    "relu(Tensor self) -> Tensor",
    "f() -> ()",
    "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "f(Tensor?[] indices, Tensor[]? xs=None, int[]? a=None, int[1]? b=[-2,-1], bool[3] mask) -> Tensor output",
    "f(*, Scalar a=1, Scalar b=-0.5, Scalar c=True, float d=1e-05, float e=0.3333333333333333, float g=10.0) -> ()",
    "f(str a=\"\\\"'\\\\\", str b='\"\\'\\\\', str c='', str d='\\n\\t', str? e=None) -> (Tensor)",
    "f(int reduction=Mean, ScalarType dtype=long, MemoryFormat memory_format=contiguous_format) -> Scalar",
    "f(int a=-9223372036854775808, int b=9223372036854775807, int[] c=[], int[2] d=[0,-1], SymInt[2] e=1) -> int",
    "f(Tile a, Pipe p, AffineMap[] maps, Graph body, Generator? g=None, Dimname[]? names=None) -> Tile",
    "f(Layout l, Device d, Storage s, Stream t, DeviceIndex i, QScheme q, SymBool b, SymFloat x) -> SymBool",
    "__and__.Scalar(Tensor self, Scalar other) -> Tensor",
};

/* Where parsing must stop, and what it must say. The column counts from 1. */
typedef struct bad_line {
    const char *line;
    int column;
    const char *expected;
} bad_line;

static const bad_line bad_lines[] = {
    { "", 1, "an op name" },
    { "2f() -> ()", 1, "an op name" },
    { "f", 2, "'('" },
    { "f.(", 3, "an overload name" },
    { "f()", 4, "' -> '" },
    { "f()->()", 4, "' -> '" },
    { "f() -> ", 8, "a type" },
    { "f() -> (", 9, "a type" },
    { "f() -> (Tensor", 15, "', ' or ')'" },
    { "f() -> () ", 10, "the end" },
    { "f() -> Tensor x y", 16, "the end" },
    { "f() -> Tensor, Tensor", 14, "the end" },
    { "f() -> Tensor ", 15, "a result name" },
    { "f(Tenso x) -> ()", 3, "a type" },
    { "f(Tensors x) -> ()", 3, "a type" },
    { "f(Tensor) -> ()", 9, "' ' and an argument name" },
    { "f(Tensor  x) -> ()", 10, "an argument name" },
    { "f(Tensor 1) -> ()", 10, "an argument name" },
    { "f(Tensor x,Tensor y) -> ()", 11, "', ' or ')'" },
    { "f(Tensor x, ) -> ()", 13, "a type" },
    { "f(Tensor x, Tensor x) -> ()", 20, "a name that is not used yet" },
    { "f(Tensor x, *) -> ()", 14, "', ' and an argument" },
    { "f(Tensor x, *, *, int y) -> ()", 16, "a type" },
    { "f(Tensor() x) -> ()", 10, "an alias set" },
    { "f(Tensor(!a) x) -> ()", 10, "an alias set" },
    { "f(Tensor(a -> ) x) -> ()", 11, "')' after the alias set" },
    { "f(Tensor(a x) -> ()", 11, "')' after the alias set" },
    { "f(int[ x) -> ()", 7, "']'" },
    { "f(int[-1] x) -> ()", 7, "']'" },
    { "f(int[0] x) -> ()", 8, "a list of at least one element" },
    { "f(int[99999] x) -> ()", 11, "']'" },
    { "f(int?[] x) -> ()", 9, "a list without optional elements" },
    { "f(int x=) -> ()", 9, "a default" },
    { "f(int x=foo) -> ()", 9, "a default" },
    { "f(int x=1.5) -> ()", 9, "a default of the argument's type" },
    { "f(int x='a') -> ()", 9, "a default of the argument's type" },
    { "f(int x=None) -> ()", 9, "a default of the argument's type" },
    { "f(int x=True) -> ()", 9, "a default of the argument's type" },
    { "f(int x=[1]) -> ()", 9, "a default of the argument's type" },
    { "f(int[] x=1) -> ()", 11, "a default of the argument's type" },
    { "f(int[2] x=[1,2,3]) -> ()", 12, "a default of the argument's type" },
    { "f(bool x=1) -> ()", 10, "a default of the argument's type" },
    { "f(Tensor x=1) -> ()", 12, "a default of the argument's type" },
    { "f(Tensor[] x=[1]) -> ()", 14, "a default of the argument's type" },
    { "f(ScalarType x=Mean) -> ()", 16, "a default" },
    { "f(int x=9223372036854775808) -> ()", 28, "a number of 64 bits" },
    { "f(int x=-9223372036854775809) -> ()", 28, "a number of 64 bits" },
    { "f(int x=-) -> ()", 10, "a number" },
    { "f(float x=1e999) -> ()", 11, "a finite number" },
    { "f(float x=0x10) -> ()", 12, "', ' or ')'" },
    { "f(int[] x=[1) -> ()", 13, "',' or ']'" },
    { "f(int[] x=[1,]) -> ()", 14, "a number" },
    { "f(str x='a) -> ()", 18, "the end of the string" },
    { "f(str x='\\q') -> ()", 10, "a character or escape of a string" },
    { "f(str x='\\", 10, "a character or escape of a string" },
    { "f(str x='\n') -> ()", 10, "a character or escape of a string" },
};

static npu_schema *parse(const char *line)
{
    npu_schema *schema = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_schema_parse(&schema, line, NULL, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    return schema;
}

/* Parses a copy that is overwritten before printing: nothing of the line is kept. */
static int round_trips(const char *line)
{
    size_t len = strlen(line);
    char *copy = malloc(len + 1);
    npu_schema *schema = NULL;
    npu_text text = npu_text_init(NULL);
    int same = 0;
    memcpy(copy, line, len + 1);
    if (npu_schema_parse(&schema, copy, NULL, NULL) == NPU_OK) {
        memset(copy, '#', len);
        npu_schema_print(&text, schema);
        same = strcmp(text.data, line) == 0;
        if (!same) {
            fprintf(stderr, "  got      %s\n", text.data);
        }
    }
    if (!same) {
        fprintf(stderr, "  expected %s\n", line);
    }
    npu_text_free(&text);
    npu_schema_free(schema, NULL);
    free(copy);
    return same;
}

static void test_lines_print_back(void)
{
    NPU_ITEM("S0.6");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        NPU_CHECK(round_trips(lines[i]));
    }
}

static void test_native_functions_print_back(void)
{
    FILE *file = fopen("../shared/ops/native_schemas.txt", "r");
    char line[4096];
    int count = 0;
    NPU_ITEM("S0.6");
    NPU_ITEM("S0.47");
    if (!file) {
        NPU_SKIP("no ../shared/ops/native_schemas.txt");
        return;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        NPU_CHECK(round_trips(line));
        count++;
    }
    fclose(file);
    NPU_CHECK_EQ(count, 2585);
}

static void test_parsed_members(void)
{
    npu_schema *s = parse("f.o(Tensor(a!)? x, int[2]? k=None, *, float p=0.5, int reduction=Mean, str "
                          "t='a\\'b') -> (Tensor y)");
    NPU_ITEM("S0.6");
    NPU_ITEM("S0.19");
    if (!s) {
        return;
    }
    NPU_CHECK_STR(s->name, "f");
    NPU_CHECK_STR(s->overload, "o");
    NPU_CHECK_EQ(s->num_args, 5);
    NPU_CHECK_EQ(s->num_returns, 1);
    NPU_CHECK_STR(s->args[0].type.alias, "a!");
    NPU_CHECK_EQ(s->args[0].type.optional, 1);
    NPU_CHECK_EQ(s->args[0].default_form, NPU_DEFAULT_REQUIRED);
    NPU_CHECK_EQ(s->args[1].type.list_size, 2);
    NPU_CHECK_EQ(s->args[1].type.base, NPU_T_INT);
    NPU_CHECK_EQ(s->args[1].keyword_only, 0);
    NPU_CHECK_EQ(s->args[2].keyword_only, 1);
    NPU_CHECK(s->args[2].default_float == 0.5);
    NPU_CHECK_EQ(s->args[3].default_int, 1);
    NPU_CHECK_STR(s->args[3].default_str, "Mean");
    NPU_CHECK_STR(s->args[4].default_str, "a'b");
    NPU_CHECK_STR(s->returns[0].name, "y");
    NPU_CHECK_EQ(npu_schema_find_arg(s, "p"), 2);
    NPU_CHECK_EQ(npu_schema_find_arg(s, "q"), -1);
    npu_schema_free(s, NULL);
}

static void test_bad_lines_name_their_column(void)
{
    for (size_t i = 0; i < sizeof bad_lines / sizeof bad_lines[0]; i++) {
        npu_schema *schema = NULL;
        npu_diag diag = { 0 };
        char want[128];
        NPU_CHECK_STATUS(npu_schema_parse(&schema, bad_lines[i].line, NULL, &diag), NPU_ERR_PARSE);
        NPU_CHECK(schema == NULL);
        snprintf(want, sizeof want, "schema column %d: expected %s in", bad_lines[i].column,
                 bad_lines[i].expected);
        diag.message[strlen(diag.message) < strlen(want) ? strlen(diag.message) : strlen(want)] = 0;
        NPU_CHECK_STR(diag.message, want);
        npu_schema_free(schema, NULL);
    }
}

/* Each prefix lies in memory of just its size, so that a sanitizer sees a read past its end. */
static void test_truncated_lines(void)
{
    static const char *const whole[] = {
        "max.dim(Tensor(a -> *) self, int[2]? dim=[0,-1], *, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "f(str a=\"\\\"'\\\\\", float e=1e-05, int n=-1, int r=Mean, Tensor?[] x) -> (Tensor(a!), int)",
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        for (size_t len = 0; len < strlen(whole[i]); len++) {
            char *prefix = malloc(len + 1);
            npu_schema *schema = NULL;
            memcpy(prefix, whole[i], len);
            prefix[len] = 0;
            NPU_CHECK_STATUS(npu_schema_parse(&schema, prefix, NULL, NULL), NPU_ERR_PARSE);
            npu_schema_free(schema, NULL);
            free(prefix);
        }
        NPU_CHECK(round_trips(whole[i]));
    }
}

/* Any bytes: a line that parses prints to a line that prints back. */
static void test_mutated_lines(void)
{
    uint64_t seed = npu_test_seed();
    for (int round = 0; round < 20000; round++) {
        char line[256];
        npu_schema *schema = NULL;
        npu_text text = npu_text_init(NULL);
        snprintf(line, sizeof line, "%s", lines[npu_test_random(&seed) % (sizeof lines / sizeof lines[0])]);
        for (uint64_t n = 1 + npu_test_random(&seed) % 3; n > 0; n--) {
            static const char bytes[] = "(),*-> =[]?!.'\"\\0123456789aTNe\x01\xff";
            line[npu_test_random(&seed) % strlen(line)] = bytes[npu_test_random(&seed) % (sizeof bytes - 1)];
        }
        if (npu_schema_parse(&schema, line, NULL, NULL) == NPU_OK) {
            npu_schema_print(&text, schema);
            NPU_CHECK(round_trips(text.data));
        }
        npu_text_free(&text);
        npu_schema_free(schema, NULL);
    }
}

static void test_number_of_arguments_is_bounded(void)
{
    npu_text text = npu_text_init(NULL);
    npu_schema *schema = NULL;
    npu_text_printf(&text, "f(");
    for (int i = 0; i < NPU_MAX_ARGS; i++) {
        npu_text_printf(&text, "int a%d, ", i);
    }
    npu_text_printf(&text, "int last) -> ()");
    NPU_CHECK_STATUS(npu_schema_parse(&schema, text.data, NULL, NULL), NPU_ERR_PARSE);
    memcpy(strstr(text.data, ", int last"), ") -> ()", 8);
    NPU_CHECK(round_trips(text.data));
    npu_text_free(&text);
}

static void test_one_block_per_schema(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        npu_schema *schema = NULL;
        counter.num_calls = counter.fail_at = 0;
        NPU_CHECK_STATUS(npu_schema_parse(&schema, lines[i], &allocator, NULL), NPU_OK);
        NPU_CHECK_EQ(counter.num_calls, 1);
        npu_schema_free(schema, &allocator);
        counter.fail_at = 2;
        NPU_CHECK_STATUS(npu_schema_parse(&schema, lines[i], &allocator, NULL), NPU_ERR_NO_MEMORY);
    }
    NPU_CHECK_STATUS(npu_schema_parse(&(npu_schema *){ NULL }, bad_lines[9].line, &allocator, NULL),
                     NPU_ERR_PARSE);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* ---- blobs ---- */

/* Values as text: "stride=[2,2] padding='same' dtype=:f32 x=true y=0.5 z=none i=@ xs=@@" (a tensor, tensors),
   without "name=" by position. A list is of floats or bools where its first element is. */
typedef struct values {
    npu_arg args[16];
    uint32_t count;
    char text[256];
    int64_t ints[32];
    double floats[32];
    bool bools[32];
    uint32_t num_elements; /* of all lists */
} values;

static void read_list(values *v, npu_arg *arg, char *at)
{
    uint32_t first = v->num_elements, n = first;
    arg->form = strchr(at, '.') ? NPU_ARG_FLOATS : strchr(at, 'e') ? NPU_ARG_BOOLS : NPU_ARG_INTS;
    for (at++; *at != ']'; at += *at == ',', n++) {
        v->bools[n] = *at == 't';
        v->floats[n] = strtod(at, NULL);
        v->ints[n] = strtoll(at, NULL, 10);
        at += strcspn(at, ",]");
    }
    arg->count = n - first;
    v->num_elements = n;
    arg->as.ints = v->ints + first;
    if (arg->form == NPU_ARG_FLOATS) {
        arg->as.floats = v->floats + first;
    } else if (arg->form == NPU_ARG_BOOLS) {
        arg->as.bools = v->bools + first;
    }
}

static void read_value(values *v, npu_arg *arg, char *at)
{
    const char *name = arg->name;
    if (*at == '[') {
        read_list(v, arg, at);
    } else if (*at == '\'') {
        at[strlen(at) - 1] = 0;
        *arg = npu_arg_str(name, at + 1);
    } else if (*at == ':') {
        *arg = npu_arg_dtype(name, npu_dtype_parse(at + 1));
    } else if (*at == '@') {
        *arg = at[1] ? npu_arg_tensors(name, NULL, 0) : npu_arg_tensor(name, (npu_value){ 7 });
    } else if (strcmp(at, "true") == 0 || strcmp(at, "false") == 0) {
        *arg = npu_arg_bool(name, *at == 't');
    } else if (strcmp(at, "none") != 0) {
        *arg = strchr(at, '.') ? npu_arg_float(name, strtod(at, NULL))
                               : npu_arg_int(name, strtoll(at, NULL, 10));
    }
}

static void read_values(values *v, const char *text)
{
    char *at = v->text, *equals;
    memset(v, 0, sizeof *v);
    snprintf(v->text, sizeof v->text, "%s", text);
    while (*at) {
        npu_arg *arg = &v->args[v->count++];
        size_t len = strcspn(at, " ");
        char *next = at + len + (at[len] != 0);
        at[len] = 0;
        equals = strchr(at, '=');
        *arg = npu_arg_none(equals ? at : NULL);
        if (equals) {
            *equals = 0;
        }
        read_value(v, arg, equals ? equals + 1 : at);
        at = next;
    }
}

static void print_hex(char *out, const uint8_t *bytes, uint32_t size)
{
    *out = 0;
    for (uint32_t i = 0; i < size; i++) {
        sprintf(out + 2 * i, "%02x", bytes[i]);
    }
}

static void print_element(npu_text *text, const npu_op_info *op, const npu_bound_arg *arg, uint32_t i)
{
    if (arg->form == NPU_ARG_FLOATS || arg->form == NPU_ARG_SCALARS) {
        npu_text_printf(text, "%g", npu_op_float_at(op, arg->name, i));
    } else {
        npu_text_printf(text, "%lld", (long long)npu_op_int_at(op, arg->name, i));
    }
}

static void print_bound(npu_text *text, const npu_op_info *op, const npu_bound_arg *arg)
{
    npu_text_printf(text, "%s%s=", text->len ? " " : "", arg->name);
    if (arg->form == NPU_ARG_TENSOR || arg->form == NPU_ARG_TENSORS) {
        npu_text_printf(text, arg->form == NPU_ARG_TENSOR ? "@%u" : "@%u+%u", (unsigned)arg->first,
                        (unsigned)arg->count);
    } else if (arg->form == NPU_ARG_NONE) {
        npu_text_printf(text, "none");
    } else if (arg->form == NPU_ARG_STR) {
        npu_text_printf(text, "'%.*s'", (int)arg->count, (const char *)arg->data);
    } else if (arg->data) {
        npu_text_printf(text, "[");
        for (uint32_t i = 0; i < npu_op_list_len(op, arg->name); i++) {
            npu_text_printf(text, "%s", i ? "," : "");
            print_element(text, op, arg, i);
        }
        npu_text_printf(text, "]");
    } else if (arg->form == NPU_ARG_DTYPE) {
        npu_text_printf(text, ":%s", npu_dtype_name((npu_dtype)arg->i));
    } else if (arg->form == NPU_ARG_FLOAT) {
        npu_text_printf(text, "%#.3g", arg->f);
    } else if (arg->i == INT64_MIN) {
        npu_text_printf(text, "@%u", (unsigned)arg->first);
    } else {
        npu_text_printf(text, arg->form == NPU_ARG_BOOL ? "b%lld" : "%lld", (long long)arg->i);
    }
}

typedef struct blob_row {
    const char *schema, *values, *hex, *bound;
    uint32_t num_operands, lists[2];
} blob_row;

static const blob_row blob_rows[] = {
    { "f() -> ()", "", "", "", 0, { 0 } },
    { "f(Tensor a, Tensor? b, Tensor c) -> ()", "@ b=none", "", "a=@0 b=@1 c=@2", 3, { 0 } },
    { "f(Tensor[] a, Tensor b, Tensor?[] c) -> ()", "@@", "", "a=@0+2 b=@2 c=@3+3", 6, { 2, 3 } },
    { "f(int a, SymInt b=-1, Device c) -> ()", "a=258", "0201000000000000ffffffffffffffff0000000000000000",
      "a=258 b=-1 c=0", 0, { 0 } },
    { "f(int a, bool b, float c) -> ()", "a=true b=1 c=2", "0100000000000000010000000000000040",
      "a=1 b=b1 c=2.00", 0, { 0 } },
    { "f(float a=0.5, float b=1) -> ()", "a=-1.5", "000000000000f8bf000000000000f03f", "a=-1.50 b=1.00", 0,
      { 0 } },
    { "f(Scalar a, Scalar b, Scalar c=2.0) -> ()", "true -1",
      "00010000000000000001ffffffffffffffff020000000000000040", "a=b1 b=-1 c=2.00", 0, { 0 } },
    { "f(ScalarType a, ScalarType b=long, ScalarType? c=None, ScalarType? d=None, ScalarType? e=None) -> ()",
      "a=:f32 c=51 d='torch.float16'", "33140133013200", "a=:f32 b=:i64 c=:f32 d=:f16 e=none", 0, { 0 } },
    { "f(str a='x', str b='', str? c=None) -> ()", "b='hello'", "01000000780500000068656c6c6f00",
      "a='x' b='hello' c=none", 0, { 0 } },
    { "f(int[2] a, int[2] b=1) -> ()", "a=[3,-4]",
      "0300000000000000fcffffffffffffff01000000000000000100000000000000", "a=[3,-4] b=[1,1]", 0, { 0 } },
    { "f(int[2] a, bool[3] b) -> ()", "a=5 b=[true,false,true]", "05000000000000000500000000000000010001",
      "a=[5,5] b=[1,0,1]", 0, { 0 } },
    { "f(int[2] a) -> ()", "a=[5]", "05000000000000000500000000000000", "a=[5,5]", 0, { 0 } },
    { "f(int[2] a=[], int[1] b, int[] c, int[2] d=[0,1]) -> ()", "b=7 c=[1,2]",
      "00000000010000000700000000000000020000000100000000000000020000000000000000000000000000000100000000000000",
      "a=[] b=[7] c=[1,2] d=[0,1]", 0, { 0 } },
    { "f(float[]? a, float[]? b, bool[] c, Scalar[] d) -> ()", "a=[1,0.5] c=[] d=[2]",
      "0102000000000000000000f03f000000000000e03f000000000001000000010200000000000000",
      "a=[1,0.5] b=none c=[] d=[2]", 0, { 0 } },
    { "f(int? a=None, int? b=3, bool? c=None, float? d=None) -> ()", "a=0 b=none d=0.0",
      "0100000000000000000000010000000000000000", "a=0 b=none c=none d=0.00", 0, { 0 } },
    { "f(Tensor x, SymInt? a, int b, Tensor y, SymInt c) -> ()", "@ a=@ b=@ c=-2",
      "0100000000000000800000000000000080feffffffffffffff", "x=@0 a=@1 b=@2 y=@3 c=-2", 4, { 0 } },
    { "f(SymInt[] a, int b, SymInt[2] c, Tensor x) -> ()",
      "a=[-9223372036854775808,3] b=-9223372036854775808 c=-9223372036854775808",
      "020000000000000000000080" "0300000000000000" "0000000000000080" "00000000000000800000000000000080",
      "a=[-9223372036854775808,3] b=@1 c=[-9223372036854775808,-9223372036854775808] x=@4", 5, { 0 } },
    { "f(*, Device? d=None, Layout l, MemoryFormat m=contiguous_format, int r=Mean) -> ()",
      "d='cuda:1' l='torch.strided' m='torch.channels_last' r='Sum'",
      "010101000000000000" "0000000000000000" "0200000000000000" "0200000000000000",
      "d=257 l=0 m=2 r=2", 0, { 0 } },
    { "f(*, Device d, Device e, Device? g) -> ()", "d='meta' e='cpu'", "0e00000000000000000000000000000000",
      "d=14 e=0 g=none",
      0, { 0 } },
    { "f(Graph body) -> ()", "body=258", "02010000", "body=258", 0, { 0 } },
};

/* Binds a blob and compares it with the text; then shorter ones and a longer one must fail. */
static void check_bind(const npu_schema *schema, const blob_row *row, const uint8_t *blob, uint32_t size)
{
    npu_bound_arg args[NPU_MAX_ARGS];
    npu_op_info op = { 0 };
    npu_text text = npu_text_init(NULL);
    npu_diag diag = { 0 };
    uint8_t *copy;
    npu_text_append(&text, "", 0);
    NPU_CHECK_STATUS(npu_blob_bind(schema, blob, size, row->lists, row->num_operands, args, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    op.args = args;
    op.num_args = schema->num_args;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        print_bound(&text, &op, &args[i]);
    }
    NPU_CHECK_STR(text.data, row->bound);
    npu_text_free(&text);
    for (uint32_t len = 0; len < size; len++) {
        copy = malloc(len + 1);
        memcpy(copy + 1, blob, len); /* ends where the allocation does */
        NPU_CHECK_STATUS(npu_blob_bind(schema, copy + 1, len, row->lists, row->num_operands, args, NULL),
                         NPU_ERR_BAD_ATTR_SIZE);
        free(copy);
    }
    copy = calloc(1, size + 1);
    memcpy(copy, blob, size);
    NPU_CHECK_STATUS(npu_blob_bind(schema, copy, size + 1, row->lists, row->num_operands, args, NULL),
                     NPU_ERR_BAD_ATTR_SIZE);
    free(copy);
    NPU_CHECK_STATUS(npu_blob_bind(schema, blob, size, row->lists, row->num_operands + 1, args, NULL),
                     NPU_ERR_ARITY);
    if (row->num_operands) {
        NPU_CHECK_STATUS(npu_blob_bind(schema, blob, size, row->lists, row->num_operands - 1, args, NULL),
                         NPU_ERR_ARITY);
    }
}

static void test_blobs_byte_for_byte(void)
{
    NPU_ITEM("S0.9");
    NPU_ITEM("S0.18");
    NPU_ITEM("S2.20");
    for (size_t i = 0; i < sizeof blob_rows / sizeof blob_rows[0]; i++) {
        const blob_row *row = &blob_rows[i];
        npu_schema *schema = parse(row->schema);
        values v;
        uint8_t blob[128];
        char hex[2 * sizeof blob + 1];
        uint32_t size = 0, needed = 0;
        npu_diag diag = { 0 };
        read_values(&v, row->values);
        NPU_CHECK_STATUS(npu_blob_pack(schema, v.args, v.count, blob, sizeof blob, &size, &diag), NPU_OK);
        NPU_CHECK_STR(diag.message, "");
        print_hex(hex, blob, size);
        NPU_CHECK_STR(hex, row->hex);
        if (size) {
            NPU_CHECK_STATUS(npu_blob_pack(schema, v.args, v.count, blob, size - 1, &needed, NULL),
                             NPU_ERR_OVERFLOW);
            NPU_CHECK_EQ(needed, size);
            NPU_CHECK_STATUS(npu_blob_pack(schema, v.args, v.count, NULL, 0, &needed, NULL),
                             NPU_ERR_OVERFLOW);
            NPU_CHECK_EQ(needed, size);
            npu_blob_pack(schema, v.args, v.count, blob, sizeof blob, &size, NULL);
        }
        check_bind(schema, row, blob, size);
        npu_schema_free(schema, NULL);
    }
}

typedef struct bad_values {
    const char *schema, *values;
    npu_status status;
    const char *message;
} bad_values;

static const bad_values bad_value_rows[] = {
    { "f(*, int axis) -> ()", "", NPU_ERR_ATTRIBUTE, "f requires 'axis', which is int" },
    { "f(str s) -> ()", "", NPU_ERR_ATTRIBUTE, "f requires 's', which is str" },
    { "f(int a=0) -> ()", "b=1", NPU_ERR_ATTRIBUTE, "f has no 'b'" },
    { "f(int a=0) -> ()", "1 a=1", NPU_ERR_ATTRIBUTE, "f is given 'a' twice" },
    { "f(int a=0) -> ()", "1 2", NPU_ERR_ARITY, "f takes fewer than 2 arguments by position" },
    { "f(Tensor x, *, int a=0) -> ()", "@ 2", NPU_ERR_ARITY, "f takes fewer than 2 arguments by position" },
    { "f(int a=0) -> ()", "a=1.0", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int, float 1 is given" },
    { "f(int a=0) -> ()", "a=none", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int, none is given" },
    { "f(int a=0) -> ()", "a=[1]", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int, a list of 1 is given" },
    { "f(int a=0) -> ()", "a='x'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int, 'x' is given" },
    { "f(bool a=True) -> ()", "a=2", NPU_ERR_ATTRIBUTE, "f takes 'a' only as bool, 2 is given" },
    { "f(float a=1) -> ()", "a='x'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as float, 'x' is given" },
    { "f(float a=1) -> ()", "a=@", NPU_ERR_ATTRIBUTE, "f takes 'a' only as float, a tensor is given" },
    { "f(Scalar? a=None) -> ()", "a='x'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as Scalar or none, 'x' is given" },
    { "f(str a='') -> ()", "a=1", NPU_ERR_ATTRIBUTE, "f takes 'a' only as str, 1 is given" },
    { "f(ScalarType a) -> ()", "a=2", NPU_ERR_ATTRIBUTE, "f takes 'a' only as ScalarType, 2 is given" },
    { "f(ScalarType a) -> ()", "a='f33'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as ScalarType, 'f33' is given" },
    { "f(Device a) -> ()", "a='cuda:'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as Device, 'cuda:' is given" },
    { "f(Device a) -> ()", "a='cudax'", NPU_ERR_ATTRIBUTE, "f takes 'a' only as Device, 'cudax' is given" },
    { "f(Graph a) -> ()", "a=-1", NPU_ERR_ATTRIBUTE, "f takes 'a' only as Graph, -1 is given" },
    { "f(int[] a) -> ()", "a=1", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int list, 1 is given" },
    { "f(int[]? a) -> ()", "a=[1.5]", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int list or none, a list of 1 is given" },
    { "f(int[3] a) -> ()", "a=[1,2]", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int list of 3, a list of 2 is given" },
    { "f(int[3] a) -> ()", "a=[]", NPU_ERR_ATTRIBUTE, "f takes 'a' only as int list of 3, a list of 0 is given" },
};

static void test_bad_values_are_named(void)
{
    NPU_ITEM("S2.25");
    for (size_t i = 0; i < sizeof bad_value_rows / sizeof bad_value_rows[0]; i++) {
        const bad_values *row = &bad_value_rows[i];
        npu_schema *schema = parse(row->schema);
        values v;
        uint8_t blob[128];
        uint32_t size = 0;
        npu_diag diag = { 0 };
        read_values(&v, row->values);
        NPU_CHECK_STATUS(npu_blob_pack(schema, v.args, v.count, blob, sizeof blob, &size, &diag),
                         row->status);
        NPU_CHECK_STR(diag.message, row->message);
        npu_schema_free(schema, NULL);
    }
}

/* Bytes of the right number that cannot be. */
static void test_bad_blobs(void)
{
    static const struct { const char *schema; uint8_t blob[16]; uint32_t size; } rows[] = {
        { "f(bool a) -> ()", { 2 }, 1 },
        { "f(ScalarType a) -> ()", { 0 }, 1 },
        { "f(ScalarType a) -> ()", { 0x35 }, 1 },
        { "f(Scalar a) -> ()", { 4 }, 9 },
        { "f(Scalar a) -> ()", { 0, 2 }, 9 },
        { "f(Scalar[] a) -> ()", { 1, 0, 0, 0, 3 }, 13 },
        { "f(int? a) -> ()", { 2 }, 9 },
        { "f(bool[2] a) -> ()", { 1, 2 }, 2 },
        { "f(str a) -> ()", { 255, 255, 255, 255 }, 4 },
        { "f(int[] a) -> ()", { 255, 255, 255, 255 }, 4 },
        { "f(int[] a) -> ()", { 1, 0, 0, 32 }, 12 },
        { "f(Dimname[] a) -> ()", { 1, 0, 0, 0, 9 }, 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_schema *schema = parse(rows[i].schema);
        npu_bound_arg args[NPU_MAX_ARGS];
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_blob_bind(schema, rows[i].blob, rows[i].size, NULL, 0, args, &diag),
                         NPU_ERR_BAD_ATTR_SIZE);
        NPU_CHECK_STR(diag.message, "f: 'a' cannot be read from the attribute blob");
        npu_schema_free(schema, NULL);
    }
}

static void test_operand_counts(void)
{
    npu_schema *schema = parse("f(Tensor[] a, Tensor b) -> ()");
    npu_bound_arg args[2];
    uint32_t huge = UINT32_MAX, two = 2;
    NPU_ITEM("S0.11");
    NPU_ITEM("S0.12");
    NPU_CHECK_STATUS(npu_blob_bind(schema, NULL, 0, &two, 3, args, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_blob_bind(schema, NULL, 0, NULL, 3, args, NULL), NPU_ERR_ARITY);
    NPU_CHECK_STATUS(npu_blob_bind(schema, NULL, 0, &huge, 3, args, NULL), NPU_ERR_ARITY);
    npu_schema_free(schema, NULL);
}

/* ---- reading bound arguments ---- */

static void test_reading_bound_arguments(void)
{
    npu_schema *s =
        parse("f(Tensor x, Tensor? y, int i=7, float f=2.5, bool b=True, Scalar s=0.5, int[2] k=3, "
              "int[2] e=[], str t='none', int? n=None, float[] g, ScalarType d=float) -> ()");
    double floats[] = { 0.5, -2 };
    npu_arg given = npu_arg_floats("g", floats, 2);
    npu_spec spec = npu_spec_tensor(NPU_F32, 0, NULL);
    const npu_spec *in[2] = { NULL, NULL };
    npu_bound_arg args[NPU_MAX_ARGS];
    npu_op_info op = { 0 };
    uint8_t blob[128];
    uint32_t size;
    int64_t ints[3] = { 0, 0, 0 };
    in[0] = &spec;
    NPU_CHECK_STATUS(npu_blob_pack(s, &given, 1, blob, sizeof blob, &size, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_blob_bind(s, blob, size, NULL, 2, args, NULL), NPU_OK);
    op.args = args;
    op.num_args = s->num_args;
    op.in = in;
    op.num_in = 2;
    NPU_CHECK(npu_op_arg(&op, "i") == &args[2]);
    NPU_CHECK(npu_op_arg(&op, "j") == NULL);
    NPU_CHECK(npu_op_has(&op, "x") && npu_op_has(&op, "i") && !npu_op_has(&op, "y") &&
              !npu_op_has(&op, "n") && !npu_op_has(&op, "j"));
    NPU_CHECK_EQ(npu_op_operand(&op, "x"), 0);
    NPU_CHECK_EQ(npu_op_operand(&op, "y"), -1);
    NPU_CHECK_EQ(npu_op_operand(&op, "i"), -1);
    NPU_CHECK_EQ(npu_op_int(&op, "i", 1), 7);
    NPU_CHECK_EQ(npu_op_int(&op, "f", 1), 2);
    NPU_CHECK_EQ(npu_op_int(&op, "b", 0), 1);
    NPU_CHECK_EQ(npu_op_int(&op, "n", 9), 9);
    NPU_CHECK_EQ(npu_op_int(&op, "x", 9), 9);
    NPU_CHECK_EQ(npu_op_int(&op, "k", 9), 9);
    NPU_CHECK_EQ(npu_op_int(&op, "d", 0), NPU_F32);
    NPU_CHECK(npu_op_float(&op, "f", 0) == 2.5 && npu_op_float(&op, "i", 0) == 7 &&
              npu_op_float(&op, "j", 4) == 4);
    NPU_CHECK(npu_op_scalar(&op, "s", npu_scalar_int(1)).is_float &&
              npu_op_scalar(&op, "b", npu_scalar_int(0)).is_bool);
    NPU_CHECK(npu_scalar_value(npu_op_scalar(&op, "s", npu_scalar_int(1))) == 0.5);
    NPU_CHECK(npu_scalar_value(npu_op_scalar(&op, "j", npu_scalar_bool(true))) == 1);
    NPU_CHECK(npu_op_str_is(&op, "t", "none") && !npu_op_str_is(&op, "t", "non") &&
              !npu_op_str_is(&op, "i", "none"));
    NPU_CHECK_EQ(npu_op_list_len(&op, "k"), 2);
    NPU_CHECK_EQ(npu_op_list_len(&op, "t"), 0);
    NPU_CHECK_EQ(npu_op_int_at(&op, "k", 1), 3);
    NPU_CHECK_EQ(npu_op_int_at(&op, "k", 2), 0);
    NPU_CHECK(npu_op_float_at(&op, "g", 1) == -2 && npu_op_float_at(&op, "k", 0) == 3 &&
              npu_op_float_at(&op, "g", 2) == 0);
    NPU_CHECK_EQ(npu_op_ints(&op, "k", ints, 3), 2);
    NPU_CHECK(ints[0] == 3 && ints[1] == 3 && ints[2] == 0);
    NPU_CHECK_EQ(npu_op_ints(&op, "i", ints, 2), 1);
    NPU_CHECK(ints[0] == 7 && ints[1] == 7 && ints[2] == 0);
    NPU_CHECK_EQ(npu_op_ints(&op, "e", ints, 3), 0);
    NPU_CHECK_EQ(ints[0], 7);
    npu_schema_free(s, NULL);
}

/* Axes of the terms of einsum equations, as "28 29": letters, then what an ellipsis stands for. */
static void test_einsum_terms(void)
{
    NPU_ITEM("F55");
    enum { RESULT = 9 };
    static const struct { const char *equation; uint32_t term; int ellipsis, n; const char *axes; } rows[] = {
        { "ij,jk->ik", 0, 0, 2, "34 35 " },
        { "ij,jk->ik", 1, 0, 2, "35 36 " },
        { "ij,jk->ik", 2, 0, -2, "" },
        { "ij,jk->ik", RESULT, 0, 2, "34 36 " },
        { "ij,jk", RESULT, 0, -2, "" },
        { "A...z, ...", 0, 2, 4, "0 57 58 51 " },
        { "A...z, ...", 1, 3, 3, "56 57 58 " },
        { "A...z, ...", 1, 0, 0, "" },
        { "i->", RESULT, 0, 0, "" },
        { "", 0, 0, 0, "" },
        { "", 1, 0, -2, "" },
        { "abcdefgh", 0, 0, 8, "26 27 28 29 30 31 32 33 " },
        { "abcdefghi", 0, 0, -1, "" },
        { "abcdefghi", 1, 0, -2, "" },
        { "a...", 0, 8, -1, "" },
        { "a", 0, -1, -1, "" },
        { "a", 0, 9, -1, "" },
        { "a..b", 0, 0, -1, "" },
        { "a-b", 0, 0, -1, "" },
        { "a->b->c", RESULT, 0, -1, "" },
        { "a->b,c", RESULT, 0, -1, "" },
        { "a1", 0, 0, -1, "" },
    };
    uint8_t axes[NPU_MAX_RANK];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npu_bound_arg arg;
        char got[64] = "";
        memset(&arg, 0, sizeof arg);
        arg.form = NPU_ARG_STR;
        arg.data = (const uint8_t *)rows[i].equation;
        arg.count = (uint32_t)strlen(rows[i].equation);
        int n = npu_einsum_term(&arg, rows[i].term, rows[i].term == RESULT, rows[i].ellipsis, axes);
        for (int k = 0; k < n; k++) {
            snprintf(got + strlen(got), sizeof got - strlen(got), "%u ", (unsigned)axes[k]);
        }
        NPU_CHECK_EQ(n, rows[i].n);
        NPU_CHECK_STR(got, rows[i].axes);
    }
    NPU_CHECK_EQ(npu_einsum_term(NULL, 0, false, 0, axes), -1);
}

static void test_numbers_out_of_range_truncate(void)
{
    static const struct { double f; int64_t i; } rows[] = {
        { 1e300, INT64_MAX }, { -1e300, INT64_MIN }, { (double)INFINITY, INT64_MAX }, { (double)NAN, 0 }, { -2.9, -2 },
        { 9223372036854774784.0, 9223372036854774784 }
    };
    npu_schema *s = parse("f(float a) -> ()");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_arg given = npu_arg_float("a", rows[i].f);
        npu_bound_arg bound;
        uint8_t blob[8];
        uint32_t size;
        NPU_CHECK_STATUS(npu_blob_pack(s, &given, 1, blob, sizeof blob, &size, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_blob_bind(s, blob, size, NULL, 0, &bound, NULL), NPU_OK);
        NPU_CHECK_EQ(bound.i, rows[i].i);
    }
    npu_schema_free(s, NULL);
}

/* ---- attrs structs ---- */

typedef struct layout_row {
    npu_kind kind;
    size_t size;
    uint32_t count;
    uint32_t at[8], has[8];
} layout_row;

#define AT(type, member) (uint32_t)offsetof(npu_##type##_attrs, member)
#define ROW(kind, type, count) kind, sizeof(npu_##type##_attrs), count

static const layout_row layout_rows[] = {
    { ROW(NPU_ATEN_CONV1D, conv1d, 4),
      { AT(conv1d, stride), AT(conv1d, padding), AT(conv1d, dilation), AT(conv1d, groups) }, { 0 } },
    { ROW(NPU_ATEN_CONV2D, conv2d, 4),
      { AT(conv2d, stride), AT(conv2d, padding), AT(conv2d, dilation), AT(conv2d, groups) }, { 0 } },
    { ROW(NPU_ATEN_CONV_TRANSPOSE2D, conv_transpose2d, 5),
      { AT(conv_transpose2d, stride), AT(conv_transpose2d, padding), AT(conv_transpose2d, output_padding),
        AT(conv_transpose2d, groups), AT(conv_transpose2d, dilation) }, { 0 } },
    { ROW(NPU_ATEN_ADDMM, addmm, 2), { AT(addmm, beta), AT(addmm, alpha) },
      { AT(addmm, has_beta), AT(addmm, has_alpha) } },
    { ROW(NPU_ATEN_GELU, gelu, 1), { AT(gelu, approximate) }, { 0 } },
    { ROW(NPU_ATEN_LEAKY_RELU, leaky_relu, 1), { AT(leaky_relu, negative_slope) },
      { AT(leaky_relu, has_negative_slope) } },
    { ROW(NPU_ATEN_HARDTANH, hardtanh, 2), { AT(hardtanh, min_val), AT(hardtanh, max_val) },
      { AT(hardtanh, has_min_val), AT(hardtanh, has_max_val) } },
    { ROW(NPU_ATEN_ELU, elu, 3), { AT(elu, alpha), AT(elu, scale), AT(elu, input_scale) },
      { AT(elu, has_alpha), AT(elu, has_scale), AT(elu, has_input_scale) } },
    { ROW(NPU_ATEN_MAX_POOL2D, max_pool2d, 5),
      { AT(max_pool2d, kernel_size), AT(max_pool2d, stride), AT(max_pool2d, padding), AT(max_pool2d,
        dilation),
        AT(max_pool2d, ceil_mode) }, { 0 } },
    { ROW(NPU_ATEN_AVG_POOL2D, avg_pool2d, 6),
      { AT(avg_pool2d, kernel_size), AT(avg_pool2d, stride), AT(avg_pool2d, padding), AT(avg_pool2d,
        ceil_mode),
        AT(avg_pool2d, count_include_pad), AT(avg_pool2d, divisor_override) },
      { 0, 0, 0, 0, AT(avg_pool2d, has_count_include_pad), AT(avg_pool2d, has_divisor_override) } },
    { ROW(NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION, attention, 4),
      { AT(attention, dropout_p), AT(attention, is_causal), AT(attention, scale), AT(attention, enable_gqa) },
      { 0, 0, AT(attention, has_scale), 0 } },
    { ROW(NPU_AICF_GEMM, aicf_gemm, 2), { AT(aicf_gemm, transA), AT(aicf_gemm, transB) }, { 0 } },
};

static npu_registry *built_in(void)
{
    npu_registry *registry = NULL;
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    return registry;
}

static void test_struct_layouts(void)
{
    npu_registry *registry = built_in();
    for (size_t i = 0; i < sizeof layout_rows / sizeof layout_rows[0]; i++) {
        const layout_row *row = &layout_rows[i];
        npu_attr_slot slots[8];
        size_t size = 0;
        NPU_CHECK_EQ(npu_schema_attrs_layout(npu_registry_find_kind(registry, row->kind)->schema, slots, 8, &size),
                     row->count);
        NPU_CHECK_EQ(size, row->size);
        for (uint32_t m = 0; m < row->count; m++) {
            NPU_CHECK_EQ(slots[m].offset, row->at[m]);
            NPU_CHECK_EQ(slots[m].has_offset, row->has[m]);
        }
    }
    npu_registry_destroy(registry);
}

/* A struct must pack to what the same values by name pack to. */
static void check_struct(npu_registry *registry, npu_kind kind, const void *attrs, size_t struct_size,
                         const char *same_as)
{
    const npu_schema *schema = npu_registry_find_kind(registry, kind)->schema;
    uint8_t got[128], want[128];
    char got_hex[257], want_hex[257];
    uint32_t got_size = 0, want_size = 0;
    npu_diag diag = { 0 };
    values v;
    read_values(&v, same_as);
    NPU_CHECK_STATUS(npu_blob_pack(schema, v.args, v.count, want, sizeof want, &want_size, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_blob_pack_struct(schema, attrs, struct_size, got, sizeof got, &got_size, &diag),
                     NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    print_hex(got_hex, got, got_size);
    print_hex(want_hex, want, want_size);
    NPU_CHECK_STR(got_hex, want_hex);
    NPU_CHECK_STATUS(npu_blob_pack_struct(schema, attrs, struct_size + 1, got, sizeof got, &got_size, NULL),
                     NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_blob_pack_struct(schema, attrs, struct_size, NULL, 0, &got_size, NULL),
                     NPU_ERR_OVERFLOW);
    NPU_CHECK_EQ(got_size, want_size);
}

#define CHECK_STRUCT(kind, type, same_as, ...) \
    check_struct(registry, kind, &(npu_##type##_attrs){ __VA_ARGS__ }, sizeof(npu_##type##_attrs), same_as)

static void test_structs_pack_as_names_do(void)
{
    npu_registry *registry = built_in();
    int64_t two[] = { 4, 5 };
    CHECK_STRUCT(NPU_ATEN_CONV2D, conv2d, "", .groups = 0);
    CHECK_STRUCT(NPU_ATEN_CONV2D, conv2d, "stride=[2,2] padding=[1,0] groups=4", .stride = { 2, 2 },
                 .padding = { 1, 0 }, .groups = 4);
    CHECK_STRUCT(NPU_ATEN_GELU, gelu, "", .approximate = NULL);
    CHECK_STRUCT(NPU_ATEN_GELU, gelu, "approximate='tanh'", .approximate = "tanh");
    CHECK_STRUCT(NPU_ATEN_LEAKY_RELU, leaky_relu, "", .has_negative_slope = false);
    CHECK_STRUCT(NPU_ATEN_LEAKY_RELU, leaky_relu, "negative_slope=0", .has_negative_slope = true);
    CHECK_STRUCT(NPU_ATEN_LEAKY_RELU, leaky_relu, "negative_slope=0.5", .negative_slope = npu_scalar_float(0.5));
    CHECK_STRUCT(NPU_ATEN_LEAKY_RELU, leaky_relu, "negative_slope=0.0", .negative_slope = npu_scalar_float(0));
    CHECK_STRUCT(NPU_ATEN_MAX_POOL2D, max_pool2d, "kernel_size=[3,2]", .kernel_size = { 3, 2 });
    CHECK_STRUCT(NPU_ATEN_MAX_POOL2D, max_pool2d, "kernel_size=[3,2] stride=[4,5] ceil_mode=true",
                 .kernel_size = { 3, 2 }, .stride = { two, 2 }, .ceil_mode = true);
    CHECK_STRUCT(NPU_ATEN_AVG_POOL2D, avg_pool2d, "kernel_size=2 count_include_pad=true divisor_override=none",
                 .kernel_size = { 2, 2 });
    CHECK_STRUCT(NPU_ATEN_AVG_POOL2D, avg_pool2d, "kernel_size=2 count_include_pad=false divisor_override=3",
                 .kernel_size = { 2, 2 }, .has_count_include_pad = true, .divisor_override = 3);
    CHECK_STRUCT(NPU_ATEN_AVG_POOL2D, avg_pool2d, "kernel_size=2 divisor_override=0", .kernel_size = { 2, 2 },
                 .has_divisor_override = true);
    CHECK_STRUCT(NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION, attention, "is_causal=true scale=0.25",
                 .is_causal = true, .scale = 0.25);
    CHECK_STRUCT(NPU_AICF_GEMM, aicf_gemm, "transB=true", .transB = true);
    npu_registry_destroy(registry);
}

/* Members that no built-in struct has: other lists, dtype, device, required numbers. */
static void test_struct_of_every_type(void)
{
    struct attrs {
        int64_t required;
        npu_dtype dtype;
        npu_dtype maybe; bool has_maybe;
        npu_floats floats;
        npu_bools bools;
        bool mask[2];
        int64_t device;
        double eps; bool has_eps;
        int64_t layout; bool has_layout;
    } a;
    npu_schema *s = parse(
        "f(int required, ScalarType dtype, ScalarType? maybe, float[] floats, bool[] bools, bool[2] mask, "
        "Device device, float eps=0.5, Layout? layout=None) -> ()");
    static const double floats[] = { 1 };
    uint8_t blob[128];
    char hex[257];
    npu_diag diag = { 0 };
    uint32_t size = 0;
    memset(&a, 0, sizeof a);
    a.dtype = NPU_F16;
    a.floats.data = floats;
    a.floats.len = 1;
    a.bools.data = a.mask;
    a.mask[1] = true;
    a.has_eps = true;
    NPU_CHECK_STATUS(npu_blob_pack_struct(s, &a, sizeof a, blob, sizeof blob, &size, &diag), NPU_OK);
    print_hex(hex, blob, size);
    NPU_CHECK_STR(hex, "0000000000000000"
                       "32"
                       "00"
                       "01000000000000000000f03f"
                       "00000000"
                       "0001"
                       "0000000000000000"
                       "0000000000000000"
                       "00");
    a.dtype = NPU_NONE;
    NPU_CHECK_STATUS(npu_blob_pack_struct(s, &a, sizeof a, blob, sizeof blob, &size, &diag),
                     NPU_ERR_ATTRIBUTE);
    NPU_CHECK_STR(diag.message, "f requires 'dtype', which is ScalarType");
    npu_schema_free(s, NULL);
}

int main(void)
{
    NPU_RUN(test_lines_print_back);
    NPU_RUN(test_native_functions_print_back);
    NPU_RUN(test_parsed_members);
    NPU_RUN(test_bad_lines_name_their_column);
    NPU_RUN(test_truncated_lines);
    NPU_RUN(test_mutated_lines);
    NPU_RUN(test_number_of_arguments_is_bounded);
    NPU_RUN(test_one_block_per_schema);
    NPU_RUN(test_blobs_byte_for_byte);
    NPU_RUN(test_bad_values_are_named);
    NPU_RUN(test_bad_blobs);
    NPU_RUN(test_operand_counts);
    NPU_RUN(test_reading_bound_arguments);
    NPU_RUN(test_einsum_terms);
    NPU_RUN(test_numbers_out_of_range_truncate);
    NPU_RUN(test_struct_layouts);
    NPU_RUN(test_structs_pack_as_names_do);
    NPU_RUN(test_struct_of_every_type);
    return npu_test_done();
}
