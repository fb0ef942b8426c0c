/* ops_fit.h - calls whose operands must fit each other and the attributes, which are hardly ever drawn so by chance: a
   row of a table for each. A row gives the dims of each tensor of the schema by letter, and attributes by the same
   letters; block and arith ops are put into a body that is launched or fused. From seed OPS_FIT on. */
#ifndef OPS_FIT_H
#define OPS_FIT_H

#include "ops_make.h"

/* operands: for each, one letter for its dtype (ops_fit_dtype), its dims after ':', '?' where it may be left out, '*'
   where it is a list. attributes: name=value, or name=values; of a list of floats, how many. A value is a sum of
   products of numbers and letters: capitals are 1 to 4, small ones 0 or 1. What is not said is drawn at random. */
typedef struct ops_fit { npu_kind kind; const char *operands, *attributes; } ops_fit;

#define OPS_FIT_WINDOW "stride=S,T padding=p,r dilation=1,d+1 "
#define OPS_FIT_CONV OPS_FIT_WINDOW "output_padding=0,0 groups=G "

static const ops_fit ops_fits[] = {
    { NPU_NPU_QCONV, "q:N,GC,4H,4W w:GF,C,K,L b:GF?", OPS_FIT_CONV "transposed=0 w_scales=GF" },
    { NPU_NPU_QCONV, "q:N,GF,H,W w:GF,C,K,L b:GC?", OPS_FIT_CONV "transposed=1 w_scales=GC" },
    { NPU_NPU_QCONV, "q:N,GC,4H w:GF,C,K b:GF?",
      "stride=S padding=p dilation=1 transposed=0 output_padding=0 groups=G w_scales=1" },
    { NPU_NPU_QCONV, "q:C,4H,4W,H w:F,C,K,1,1 b:F?",
      "stride=S,T,1 padding=p,0,0 dilation=1,1,1 transposed=0 output_padding=0,0,0 groups=1 w_scales=F" },
    { NPU_NPU_QLINEAR, "q:M,N,9K w:P,9K b:P?", "w_scales=P" },
    { NPU_NPU_QLINEAR, "q:K w:8P,K b:8P?", "w_scales=1" },
    { NPU_NPU_QADD, "q:M,N q:M,N", "" },
    { NPU_NPU_QADD, "q:M,7N q:7N", "" },
    { NPU_NPU_QSUB, "q:M,1,N q:K,1", "" },
    { NPU_NPU_QMUL, "q:M,9N q:M,9N", "" },
    { NPU_NPU_QMUL, "q:M q:N,1", "" },
    { NPU_NPU_QMAX_POOL, "q:N,C,4H,8W", OPS_FIT_WINDOW "kernel_size=2,L+1 ceil_mode=c" },
    { NPU_NPU_QAVG_POOL, "q:N,C,4H,8W", "kernel_size=2,L+1 stride=S,T padding=p,r ceil_mode=c" },
    { NPU_NPU_QADAPTIVE_AVG_POOL, "q:N,C,HK,WL", "output_size=H,W" },
    { NPU_NPU_QMEAN, "q:M,9N,K", "dim=d keepdim=k" },
    { NPU_NPU_QCAT, "q:M,N*", "dim=d" },
    { NPU_NPU_QSOFTMAX, "q:M,5N", "dim=d" },
    { NPU_NPU_QLAYER_NORM, "q:M,9N F:9N? F:9N?", "normalized_shape=9N" },
    { NPU_NPU_QUPSAMPLE_NEAREST2D, "q:N,C,H,W", "output_size=2K,3L" },
    { NPU_NPU_QUPSAMPLE_BILINEAR2D, "q:N,C,H,W", "output_size=2K,3L align_corners=a" },
    { NPU_NPU_REQUANTISE, "q:M,9N", "dtype=w" },
    { NPU_NPU_REQUANTISE, "q:M,9N", "dtype=u" },
    { NPU_NPU_QSIGMOID, "q:M,9N", "" },
    { NPU_NPU_QTANH, "q:M,9N", "" },
    { NPU_NPU_QHARDSWISH, "q:M,9N", "" },
    { NPU_NPU_QHARDSIGMOID, "q:M,9N", "" },
    { NPU_NPU_QSILU, "q:M,9N", "" },
    { NPU_NPU_QGELU, "q:M,9N", "" },
    { NPU_NPU_QLEAKY_RELU, "q:M,9N", "" },
    { NPU_ATEN_CONV_DEPTHWISE2D, "f:N,C,4H,4W f:CM,1,K,L f:CM?", OPS_FIT_WINDOW "kernel_size=K,L" },
    { NPU_ATEN_CONVERT_WEIGHT_TO_INT4PACK_FOR_CPU, "b:16N,2K", "innerKTiles=2T" },
    { NPU_ATEN_WEIGHT_INT4PACK_MM_FOR_CPU, "f:M,32DG u:16N,16DG f:G,16N,2", "qGroupSize=32D" },
    { NPU_ATEN_DYN_QUANT_PACK_4BIT_WEIGHT, "u:N,16G F:N,G F:N?", "block_size=32 in_features=32G out_features=N" },
    { NPU_ATEN_DYN_QUANT_MATMUL_4BIT, "F:M,32G F:17GN+nN", "block_size=32 in_features=32G out_features=N" },
    { NPU_ATEN_DYN_QUANT_MATMUL_4BIT, "F:M,6K F:3KN+N+nN", "block_size=6K in_features=6K out_features=N" },
    { NPU_AICF_GEMM_EPILOGUE, "f:M,5K f:5K,9N f:9N", "transA=0 transB=0" },
    { NPU_AICF_ADAM_STEP, "f:M,9N f:M,9N f:M,9N f:M,9N F: F:", "" },
    { NPU_AICF_STEP_INC, "b:", "" },
    { NPU_AICF_BIAS_CORR, "b:", "" },
    { NPU_AICF_LAYERNORM_FWD, "f:M,9N f:9N? F:9N?", "" },
    { NPU_AICF_LAYERNORM_BWD, "f:M,9N f:M,9N F:9N? F:M F:M", "" },
    { NPU_AICF_BATCHNORM_FWD, "f:N,C,H,5W f:C? F:C? F:C F:C", "flags=a" },
    { NPU_AICF_BATCHNORM_FWD, "f:N,C,H,5W F:C? f:C? f:C? f:C?", "flags=0" },
    { NPU_AICF_BATCHNORM_BWD, "f:N,C,H,5W f:N,C,H,5W F:C? F:C F:C", "" },
    { NPU_AICF_CROSS_ENTROPY_FWD, "f:M,2N i:M", "" },
    { NPU_AICF_CROSS_ENTROPY_BWD, "f:M,2N i:M", "" },
    { NPU_BLOCK_MATMUL, "n:M,5K n:5K,9N", "" },
    { NPU_BLOCK_MATMUL_ACC, "a:M,N n:M,K n:K,N", "" },
    { NPU_BLOCK_BATCH_MATMUL, "n:B,1,M,K n:C,K,N", "" },
    { NPU_BLOCK_ROW_SUM, "n:M,9N n:M,9N", "" },
    { NPU_BLOCK_ROW_MAX, "n:M,9N n:M,9N", "" },
    { NPU_BLOCK_ROW_MIN, "n:M,9N n:M,9N", "" },
    { NPU_BLOCK_ROW_EXPAND, "n:M,9N n:M,1", "" },
    { NPU_BLOCK_ROW_EXPAND_ADD, "n:M,9N n:M,1", "" },
    { NPU_BLOCK_ROW_EXPAND_SUB, "n:M,9N f:M,1", "" },
    { NPU_BLOCK_ROW_EXPAND_MUL, "n:M,9N n:M,1", "" },
    { NPU_BLOCK_ROW_EXPAND_DIV, "n:M,9N n:M,1", "" },
    { NPU_BLOCK_COL_EXPAND, "n:M,9N n:1,9N", "" },
    { NPU_BLOCK_COL_EXPAND_ADD, "n:M,9N n:1,9N", "" },
    { NPU_BLOCK_COL_EXPAND_SUB, "n:M,9N f:1,9N", "" },
    { NPU_BLOCK_COL_EXPAND_MUL, "n:M,9N n:1,9N", "" },
    { NPU_BLOCK_COL_EXPAND_DIV, "n:M,9N n:1,9N", "" },
    { NPU_ARITH_TRUNCI, "l:M,9N", "dtype=w" },
    { NPU_ARITH_TRUNCI, "l:M", "dtype=b" }
};

/* One call in the making: what its letters are, and what scales and zeros of 8 bits were drawn. */
typedef struct ops_fitting {
    const ops_fit *row;
    int64_t letters[128];
    npu_dtype number, real, byte;
    uint32_t num_scales; /* operands of 8 bits */
    double scale;
    int64_t zero;
} ops_fitting;

/* f f16, bf16 or f32; n a number that tiles multiply; a what they sum it in; q i8 or u8: of one call, all the same.
   F f32, w i8, u u8, b i32, i an index, l an integer of more than 8 bits. */
static npu_dtype ops_fit_dtype(ops_case *c, const ops_fitting *f, char letter)
{
    static const npu_dtype wide[] = { NPU_I64, NPU_I64, NPU_U64, NPU_I32, NPU_I16, NPU_U16 };
    switch (letter) {
    case 'f': return f->real;
    case 'n': return f->number;
    case 'a': return npu_dtype_is_float(f->number) ? NPU_F32 : NPU_I32;
    case 'q': return f->byte;
    case 'l': return OPS_PICK(&c->r, wide);
    case 'w': return NPU_I8;
    case 'u': return NPU_U8;
    case 'b': return NPU_I32;
    case 'i': return ops_chance(&c->r, 50) ? NPU_I64 : NPU_I32;
    default: return NPU_F32;
    }
}

/* The value at *text, which moves on behind it. */
static int64_t ops_fit_value(ops_case *c, const ops_fitting *f, const char **text)
{
    int64_t sum = 0, product = 1;
    for (; **text && !strchr(", ?*", **text); ++*text) {
        if (**text == '+') {
            sum += product;
            product = 1;
        } else if (**text >= '0' && **text <= '9') {
            product *= strtol(*text, (char **)(uintptr_t)text, 10);
            --*text;
        } else {
            product *= f->letters[(unsigned char)**text];
        }
    }
    if (ops_chance(&c->r, c->hostile ? 4 : 0)) {
        return ops_chance(&c->r, 50) ? ops_hostile_int(&c->r) : sum + product + ops_between(&c->r, -1, 1);
    }
    return sum + product;
}

static uint32_t ops_fit_values(ops_case *c, const ops_fitting *f, const char **text, int64_t *x)
{
    uint32_t n = 0;
    while (**text && **text != ' ' && n < NPU_MAX_RANK) {
        x[n++] = ops_fit_value(c, f, text);
        *text += **text == ',';
        if (**text == '?' || **text == '*') {
            break;
        }
    }
    return n;
}

/* Indices are 0 or 1, and bytes any. */
static npu_value ops_fit_tensor(ops_case *c, ops_scope *s, const ops_fitting *f, const char **text)
{
    npu_dtype t = ops_chance(&c->r, c->hostile ? 3 : 0) ? NPU_I16 : ops_fit_dtype(c, f, **text);
    int64_t dims[NPU_MAX_RANK] = { 0 };
    size_t size = 0, width = npu_dtype_bits(t) / 8;
    uint8_t *data = NULL;
    npu_value none = { 0 };
    bool is_index = **text == 'i';
    *text += 2;
    uint32_t rank = ops_fit_values(c, f, text, dims);
    npu_spec spec = npu_spec_tensor(t, rank, dims);
    if ((is_index || width == 1) && npu_spec_size(&spec, &size) == NPU_OK && size <= 8 * OPS_MAX_LEN) {
        data = (uint8_t *)ops_take(&c->keep, size);
        for (size_t at = 0; at < size; at += width) {
            ops_store(t, data + at, 0, ops_below(&c->r, is_index ? 2 : 256));
        }
    }
    return **text == '?' && ops_chance(&c->r, 30) ? none : ops_view(c, s, ops_new_value(c, s, spec, data));
}

static npu_arg ops_fit_operand(ops_case *c, ops_scope *s, ops_fitting *f, const npu_schema_arg *a, const char **text)
{
    uint32_t n = a->type.list ? ops_between(&c->r, 1, 4) : 1;
    npu_value *values = (npu_value *)ops_take(&c->keep, n * sizeof *values);
    const char *from = *text;
    f->num_scales += *from == 'q' ? n : 0;
    for (uint32_t i = 0; i < n; i++) {
        *text = from;
        values[i] = ops_fit_tensor(c, s, f, text);
    }
    *text += strcspn(*text, " ");
    *text += **text == ' ';
    return a->type.list ? npu_arg_tensors(a->name, values, n) : npu_arg_tensor(a->name, values[0]);
}

/* ---- scales ---- */

static double ops_fit_scale(ops_case *c)
{
    static const double usual[] = { 1.0 / 256, 0.003, 0.05, 0.1, 0.5, 1, 1, 3, 100, 1e-6 };
    return c->tame || ops_chance(&c->r, 95) ? OPS_PICK(&c->r, usual) : ops_hostile_float(&c->r);
}

static int64_t ops_fit_zero(ops_case *c, const ops_fitting *f)
{
    int64_t least = f->byte == NPU_I8 ? -128 : 0;
    return ops_chance(&c->r, c->hostile ? 5 : 0) ? ops_hostile_int(&c->r) : least + (int64_t)ops_below(&c->r, 256);
}

/* What NPU_IR_SCALES says; false where a is no part of it. Some results are scaled as the first operand is, some as
   softmax is. */
static bool ops_fit_scales(ops_case *c, ops_fitting *f, const npu_schema_arg *a, npu_arg *arg)
{
    bool keeps = f->row->kind == NPU_NPU_QMAX_POOL && ops_chance(&c->r, 80);
    uint32_t n = f->num_scales, way = keeps ? 1 : ops_below(&c->r, 3);
    double *scales = (double *)ops_take(&c->keep, n * sizeof *scales);
    int64_t *zeros = (int64_t *)ops_take(&c->keep, n * sizeof *zeros), least = f->byte == NPU_I8 ? -128 : 0;
    for (uint32_t i = 0; i < n; i++) {
        scales[i] = ops_fit_scale(c);
        zeros[i] = ops_fit_zero(c, f);
    }
    if (n && strcmp(a->name, "in_scales") == 0) {
        *arg = npu_arg_floats(a->name, scales, n);
        f->scale = way == 0 ? 1.0 / 256 : way == 1 ? scales[0] : ops_fit_scale(c);
        f->zero = way == 0 ? least : way == 1 ? INT64_MIN : ops_fit_zero(c, f);
    } else if (n && strcmp(a->name, "in_zeros") == 0) {
        *arg = npu_arg_ints(a->name, zeros, n);
        f->zero = f->zero == INT64_MIN ? zeros[0] : f->zero;
    } else if (n && strcmp(a->name, "scale") == 0) {
        *arg = npu_arg_float(a->name, f->scale);
    } else if (n && strcmp(a->name, "zero") == 0) {
        *arg = npu_arg_int(a->name, f->zero);
    } else if (n && (strcmp(a->name, "low") == 0 || strcmp(a->name, "high") == 0)) {
        int64_t bound = least + (int64_t)ops_below(&c->r, 128) + (a->name[0] == 'h' ? 128 : 0);
        *arg = ops_chance(&c->r, 60) ? npu_arg_none(a->name) : npu_arg_int(a->name, bound);
    } else if (n && strcmp(a->name, "rounding") == 0) {
        *arg = npu_arg_str(a->name, way ? way == 1 || !c->hostile ? "double" : "triple" : "single");
    } else {
        return false;
    }
    return true;
}

/* ---- attributes ---- */

/* What the row says behind "name=", NULL = nothing. */
static const char *ops_fit_attribute(const ops_fit *row, const char *name)
{
    size_t len = strlen(name);
    const char *at = row->attributes;
    while (*at && (strncmp(at, name, len) != 0 || at[len] != '=')) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return *at ? at + len + 1 : NULL;
}

static npu_arg ops_fit_arg(ops_case *c, const ops_fitting *f, const npu_schema_arg *a, const char *text)
{
    int64_t *x = (int64_t *)ops_take(&c->keep, NPU_MAX_RANK * sizeof *x);
    if (a->type.base == NPU_T_DTYPE) {
        return npu_arg_dtype(a->name, ops_fit_dtype(c, f, *text));
    }
    uint32_t n = ops_fit_values(c, f, &text, x);
    if (a->type.base == NPU_T_FLOAT) {
        n = x[0] >= 0 && x[0] < 300 && ops_chance(&c->r, 70) ? (uint32_t)x[0] : 1;
        double *scales = (double *)ops_take(&c->keep, n * sizeof *scales);
        for (uint32_t i = 0; i < n; i++) {
            scales[i] = ops_fit_scale(c);
        }
        return npu_arg_floats(a->name, scales, n);
    }
    return a->type.list ? npu_arg_ints(a->name, x, n)
           : a->type.base == NPU_T_BOOL ? npu_arg_bool(a->name, x[0] != 0) : npu_arg_int(a->name, x[0]);
}

/* ---- calls ---- */

/* A graph of the op alone, run with the tensors of the args: for each element, or with tiles of all of each. */
static void ops_fit_body(ops_case *c, ops_scope *s, const npu_op_def *def, npu_arg *args, uint32_t n)
{
    bool tiles = NPU_KIND_NAMESPACE(def->kind) == NPU_NS_BLOCK;
    npu_value operands[8];
    npu_arg call[3];
    uint32_t num = 0, index = 0;
    npu_tile_index at[NPU_MAX_RANK];
    ops_scope child;
    memset(&child, 0, sizeof child);
    memset(at, 0, sizeof at);
    child.g = npu_graph_add_child(s->g, "fit", tiles ? NPU_LEVEL_TILE : NPU_LEVEL_SCALAR, &index);
    child.level = tiles ? NPU_LEVEL_TILE : NPU_LEVEL_SCALAR;
    child.depth = 1;
    for (uint32_t i = 0; i < n && child.g; i++) {
        const npu_spec *outer = args[i].form == NPU_ARG_TENSOR ? ops_spec_of(s, args[i].as.value) : NULL;
        char name[24];
        snprintf(name, sizeof name, "a%u", (unsigned)i);
        if (outer) {
            npu_value v = npu_input(child.g, name, ops_child_spec(c, child.level, outer));
            operands[num++] = args[i].as.value;
            v = tiles ? npu_block_load(child.g, v, at, outer->dims, outer->rank, NPU_SPACE_UB) : v;
            bool moves = tiles && ops_chance(&c->r, 50);
            args[i].as.value = moves ? npu_block_move(child.g, v, i ? NPU_SPACE_L0B : NPU_SPACE_L0A, false) : v;
        }
    }
    npu_op op = ops_emit(c, &child, def, args, n);
    npu_value y = npu_op_result(child.g, op, 0);
    const npu_spec *result = op.id ? ops_spec_of(&child, y) : NULL;
    if (result && tiles) {
        npu_spec whole = npu_spec_tensor((npu_dtype)result->dtype, result->rank, result->dims);
        operands[num++] = ops_new_value(c, s, whole, NULL);
        y = ops_zero_offsets_store(&child, y, npu_input(child.g, "y", whole));
    }
    npu_output(child.g, "y", y);
    npu_graph_clear_error(child.g);
    call[0] = npu_arg_tensors(tiles ? "args" : "inputs", operands, num);
    call[1] = npu_arg_graph("body", index);
    call[2] = npu_arg_int("blocks", 1);
    ops_emit(c, s, npu_registry_find_kind(c->w->registry, tiles ? NPU_NPU_LAUNCH : NPU_NPU_FUSED), call, 2 + tiles);
}

static void ops_fit_draw(ops_case *c, ops_fitting *f)
{
    static const npu_dtype reals[] = { NPU_F32, NPU_F32, NPU_F16, NPU_BF16 };
    static const npu_dtype numbers[] = { NPU_F32, NPU_F32, NPU_F16, NPU_BF16, NPU_I8, NPU_U8, NPU_I16, NPU_I32 };
    memset(f, 0, sizeof *f);
    f->row = &OPS_PICK(&c->r, ops_fits);
    f->real = OPS_PICK(&c->r, reals);
    f->number = OPS_PICK(&c->r, numbers);
    f->byte = ops_chance(&c->r, 50) ? NPU_I8 : NPU_U8;
    for (int letter = 'A'; letter <= 'z'; letter++) {
        f->letters[letter] = letter >= 'a' ? ops_below(&c->r, 2) : ops_chance(&c->r, 1) ? 0 : ops_between(&c->r, 1, 4);
    }
}

static void ops_call_fit(ops_case *c, ops_scope *s)
{
    ops_fitting f;
    npu_arg args[24];
    uint32_t n = 0;
    ops_fit_draw(c, &f);
    const npu_op_def *def = npu_registry_find_kind(c->w->registry, f.row->kind);
    const char *operands = f.row->operands;
    c->w->tried[ops_index_of(c->w, def)]++;
    for (uint32_t i = 0; i < def->schema->num_args; i++) {
        const npu_schema_arg *a = &def->schema->args[i];
        const char *said = ops_fit_attribute(f.row, a->name);
        ops_call none;
        if (a->type.base == NPU_T_TENSOR || a->type.base == NPU_T_TILE) {
            args[n++] = ops_fit_operand(c, s, &f, a, &operands);
        } else if (said) {
            args[n++] = ops_fit_arg(c, &f, a, said);
        } else if (ops_fit_scales(c, &f, a, &args[n])) {
            n++;
        } else if (a->default_form == NPU_DEFAULT_REQUIRED || ops_chance(&c->r, 40)) {
            memset(&none, 0, sizeof none);
            args[n++] = ops_arg(c, s, a, &none);
        }
    }
    uint32_t space = NPU_KIND_NAMESPACE(def->kind);
    if (space == NPU_NS_BLOCK || space == NPU_NS_ARITH) {
        ops_fit_body(c, s, def, args, n);
    } else {
        ops_emit(c, s, def, args, n);
    }
    npu_graph_clear_error(s->g);
}

#endif
