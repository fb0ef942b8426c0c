/* npu_onnx.h - reads ONNX files, opset 7 to 28 (and what older ones say the same way), through the public functions of
   npu_ir.h alone: protobuf by hand, one row for each ONNX op, and what ONNX computes of shapes folded to numbers.

       #define NPU_ONNX_IMPLEMENTATION      // in one C file
       #include "examples/onnx/npu_onnx.h"

       npu_onnx_desc desc = { .backend = npu_ref_backend(), .dims = (npu_onnx_dim[]){ { "batch", 1 } }, .num_dims = 1 };
       npu_graph *g;
       if (npu_onnx_read(&g, data, size, &desc, &diag)) { puts(diag.message); }

   Ops are read into ops of the registry; an op whose operands are all known is computed at once, and the graph has its
   result: shapes that an exporter computes become numbers, an If whose condition is then known one of its branches, and a
   Loop with a known number of turns its turns one after the other. What data decides becomes npu.if and npu.while, where all
   dims are known and a loop gives out its last turn, or at most a known number of turns; a branch beside one that gives
   nothing may take any. A dim with a name is what the desc says (dims, shapes), else a symbol. One that data decides
   (NonZero, NonMaxSuppression), where all inputs have sizes, is counted in the run: Shape and Size give it, and it may
   be where a slice begins or ends or a range from 0 ends, how many TopK takes, and sizes of a new shape (Expand,
   ConstantOfShape; in Reshape one, and those of the operand).
   Floats of 8 and 4 bits are f16 in the graph, integers of 4 and 2 bits u8 and i8, of the same numbers: inputs and
   outputs, too.
   Numbers of u64 beyond 2^63 - 1 are compared, divided and shifted as those of i64 with the same bits.
   Quantised models, with QuantizeLinear and DequantizeLinear or QLinear ops, become ops of quantized_decomposed, as PyTorch
   exports them: the pass integer-ops makes integers of them. Sums of products are exact: on x86 without VNNI, ONNX Runtime
   cuts sums of two u8 x i8 products to 16 bits, which shows with weights beyond -64..64. f16 is rounded after each op, as
   the model says it; ONNX Runtime's CPU keeps f32 between ops of f16: whole networks differ by 1e-3 or 2e-3, unless the desc
   says f16_as_f32.

   CONTENTS  reading bytes - names - messages - tensors - emitting - folding - nodes - ops by family - the table - the model
*/
#ifndef NPU_ONNX_H
#define NPU_ONNX_H

#include "../../npu_ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct npu_onnx_dim {
    const char *name;
    int64_t size;
} npu_onnx_dim;

/* All zero = defaults. Everything is borrowed during the call. */
typedef struct npu_onnx_desc {
    const npu_graph_desc *graph;   /* registry, allocator ...; NULL = all defaults */
    const npu_backend *backend;    /* computes what is known while the file is read; NULL: only what needs no computing is */
    const npu_onnx_dim *dims;      /* sizes of dims with names; a dim without one is "<input>.<index>" */
    uint32_t num_dims;
    const npu_array *inputs;       /* inputs that are known: they become constants, their data is copied */
    uint32_t num_inputs;
    const npu_array *shapes;       /* inputs whose sizes are known, by name, or in order where that is NULL: of dims that the model
                                      leaves open; no data is read */
    uint32_t num_shapes;
    bool f16_as_f32;               /* f16 is computed in f32: weights are widened, twice as large; inputs and outputs stay f16 */
    /* The content of a file beside the model, which weights lie in; it must live as long as the graph. Locations are
       relative and do not leave the folder: others are refused before. NULL = files beside the model are refused. */
    npu_status (*external)(void *ctx, const char *location, npu_bytes *out);
    void *external_ctx;
    void (*report)(void *ctx, const npu_diag *diag); /* each op that cannot be read, before anything is built */
    void *report_ctx;
    uint32_t _canary;              /* must be 0 */
} npu_onnx_desc;

/* Reads a model. Constants may stay where they lie in data, which must outlive the graph. On failure *out is NULL, and diag
   says node, op and byte. Errors: PARSE (malformed: a length, a varint, a wire type, nesting), NOT_FOUND (ops that cannot be
   read, a tensor that no node makes first: a cycle, too), DUPLICATE (two of one name), ATTRIBUTE (one that no reader of the
   op looks for, or a word that it may not be), UNSUPPORTED (an attribute, a form or dtype that cannot be read, a file beside
   the model without desc->external), VERSION (opset), CONVERSION (something must be known and is not), SHAPE (data that is
   not of the size of its tensor), BUDGET (loops that never end), those of npu_emit. */
npu_status npu_onnx_read(npu_graph **out, const void *data, size_t size, const npu_onnx_desc *desc, npu_diag *diag);

#ifdef __cplusplus
}
#endif
#endif /* NPU_ONNX_H */

#ifdef NPU_ONNX_IMPLEMENTATION
#ifndef NPU_ONNX_IMPLEMENTED
#define NPU_ONNX_IMPLEMENTED

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading bytes ----------------------------------------------------------------------------------------------- */

enum {
    ONNX_MAX_DEPTH = 16,         /* of graphs in graphs */
    ONNX_MAX_NODES = 100000,     /* that are built, turns of loops counted */
    ONNX_MAX_LIST = 4096,        /* numbers that an op needs to know */
    ONNX_MAX_LISTED = 1 << 22,   /* values of all sequences, each of which is a copy */
    ONNX_MAX_FOLDED = 1 << 24    /* elements of a result that is computed while reading */
};

static const uint32_t ONNX_SEQUENCE = 0x80000000u; /* a bit in the id of a value */

/* Bytes of the file: a message, a text, data. at NULL = there is none. */
typedef struct onnx_span { const uint8_t *at, *end; } onnx_span;

/* Tensors of one dtype: a sequence whose length is known. The graph knows nothing of it; where a value may be one, it has
   the bit ONNX_SEQUENCE in its id, and the rest of that is its place in the reader's lists. */
typedef struct onnx_list {
    npu_value *values;
    uint32_t count;
    npu_dtype dtype;
} onnx_list;

typedef struct onnx_name {
    onnx_span name;
    npu_value value;
    uint32_t scope, level;        /* level: of the graph that it is a value of */
    bool is_output;               /* of the main graph */
} onnx_name;

/* Values of a graph, and what stands for them in a child of it. */
typedef struct onnx_stand_ins {
    npu_value *outer, *inner;
    uint32_t count, room;
} onnx_stand_ins;

/* A graph that is built: the main one, or a child of the one before. What it takes from graphs around it are inputs, and
   constants of its own. */
typedef struct onnx_level {
    npu_graph *g;
    onnx_stand_ins captured, constants;
} onnx_level;

typedef struct onnx_block { struct onnx_block *next; size_t size; } onnx_block;

typedef struct onnx_reader {
    npu_graph *g;
    const npu_onnx_desc *desc;
    npu_allocator allocator;
    npu_diag *diag;
    npu_status status;
    const uint8_t *file;
    size_t file_size;
    const uint8_t *at;            /* the message that is read, for messages */
    int64_t opset;
    onnx_span functions[64];      /* of the model: FunctionProto */
    uint32_t num_functions;
    onnx_span files[16];          /* beside the model, which data lies in; of more than these, data is copied where needed */
    uint32_t num_files;
    onnx_name *names;             /* open addressing, at most half full */
    uint32_t num_names, size_names;
    uint32_t scopes[ONNX_MAX_DEPTH + 1], depth; /* of the graph that is built, and those around it */
    uint32_t num_scopes, num_nodes;
    onnx_list *lists;             /* sequences */
    uint32_t num_lists, room_lists;
    uint64_t num_listed;          /* values of them */
    onnx_level levels[ONNX_MAX_DEPTH + 1];
    struct onnx_mark *marks;      /* see onnx_narrow */
    uint32_t level;               /* of g */
    int64_t first_symbol, last_symbol; /* falling; 0 = none */
    onnx_block *blocks;           /* memory until the end */
    const struct onnx_node *node; /* the one that is read; NULL = none */
    bool has_refused;
} onnx_reader;

typedef struct onnx_field {
    uint32_t number, wire;
    uint64_t value;
    onnx_span bytes;
} onnx_field;

typedef struct onnx_node onnx_node;
typedef npu_value (*onnx_fn)(onnx_reader *r, onnx_node *n);

typedef struct onnx_row {
    const char *op;
    onnx_fn fn;          /* NULL: text is the op that it is, see onnx_emit; without one it is refused */
    const char *text;    /* for the function to read, or why it is refused */
} onnx_row;

/* A node; x are its operands, id 0 = not given. */
typedef struct onnx_asked {
    uint64_t found;              /* a bit for each of the first 64 */
    const char *missing[32];     /* names that it has not */
    uint32_t num_missing;
} onnx_asked;

struct onnx_node {
    onnx_span message, op, name, domain;
    const onnx_row *row;
    uint32_t num_x, num_y;
    npu_value *x;
    onnx_span *y;                /* names of its results */
    const onnx_node *caller;     /* of the function that it is a node of */
    onnx_asked *asked;           /* which of its attributes somebody has looked for */
};

static size_t onnx_len(onnx_span s) { return (size_t)(s.end - s.at); }

static bool onnx_is(onnx_span s, const char *text)
{
    return s.at && onnx_len(s) == strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

#define ONNX_TEXT(span) ((span).at ? (int)(onnx_len(span) < 80 ? onnx_len(span) : 80) : 0), (span).at ? (const char *)(span).at : ""

static npu_status onnx_fail(onnx_reader *r, npu_status status, const char *format, ...) NPU_IR_PRINTF(3, 4);
/* Keeps the first failure, with the node and the byte of the file where it stands. */
static npu_status onnx_fail(onnx_reader *r, npu_status status, const char *format, ...)
{
    char message[200];
    va_list args;
    if (r->status) {
        return r->status;
    }
    r->status = status;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!r->diag) {
        return status;
    }
    memset(r->diag, 0, sizeof *r->diag);
    r->diag->status = status;
    if (r->node) {
        snprintf(r->diag->message, sizeof r->diag->message, "byte %llu: %.*s '%.*s': %s",
                 (unsigned long long)(r->node->message.at - r->file), ONNX_TEXT(r->node->op), ONNX_TEXT(r->node->name), message);
    } else {
        snprintf(r->diag->message, sizeof r->diag->message, "byte %llu: %s", (unsigned long long)(r->at - r->file), message);
    }
    return status;
}

static npu_value onnx_none(void)
{
    npu_value v = { 0 };
    return v;
}

static npu_value onnx_refuse(onnx_reader *r, const char *what)
{
    onnx_fail(r, NPU_ERR_UNSUPPORTED, "%s", what);
    return onnx_none();
}

static void *onnx_resize_block(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

/* Memory until the end of reading; NULL = there is none. */
static void *onnx_alloc(onnx_reader *r, size_t size)
{
    size_t whole = sizeof(onnx_block) + 16 + size;
    onnx_block *block = whole < size ? NULL : (onnx_block *)r->allocator.resize(r->allocator.ctx, NULL, 0, whole);
    if (!block) {
        onnx_fail(r, NPU_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    block->next = r->blocks;
    block->size = whole;
    r->blocks = block;
    memset(block + 1, 0, whole - sizeof *block);
    return (uint8_t *)block + (sizeof *block + 15) / 16 * 16;
}

/* The same for as many elements as sizes from a file multiply to. */
static void *onnx_alloc_rows(onnx_reader *r, int64_t rows, int64_t len, size_t each)
{
    size_t most = (size_t)-1 / 2 / each;
    if (rows < 0 || len < 0 || (uint64_t)rows > most || (rows && (uint64_t)len > most / (size_t)rows)) {
        onnx_fail(r, NPU_ERR_NO_MEMORY, "%lld rows of %lld elements are more than there is memory for", (long long)rows,
                  (long long)len);
        return NULL;
    }
    return onnx_alloc(r, (size_t)rows * (size_t)len * each);
}

static void onnx_free_blocks(onnx_reader *r)
{
    while (r->blocks) {
        onnx_block *next = r->blocks->next;
        r->allocator.resize(r->allocator.ctx, r->blocks, r->blocks->size, 0);
        r->blocks = next;
    }
}

static char *onnx_str(onnx_reader *r, onnx_span s)
{
    char *text = (char *)onnx_alloc(r, (s.at ? onnx_len(s) : 0) + 1);
    if (text && s.at) {
        memcpy(text, s.at, onnx_len(s));
    }
    return text;
}

/* False = it ends too early or has more than 64 bits. */
static bool onnx_varint(onnx_span *s, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; s->at < s->end && shift < 64; shift += 7) {
        uint8_t byte = *s->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return shift < 63 || byte < 2;
        }
    }
    return false;
}

static uint64_t onnx_little(const uint8_t *p, uint32_t bytes)
{
    uint64_t x = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        x |= (uint64_t)p[i] << (8 * i);
    }
    return x;
}

/* What follows a key. */
static bool onnx_payload(onnx_span *s, onnx_field *f)
{
    uint32_t bytes = f->wire == 1 ? 8 : 4;
    f->bytes.at = f->bytes.end = NULL;
    switch (f->wire) {
    case 0: return onnx_varint(s, &f->value);
    case 1:
    case 5:
        if (onnx_len(*s) < bytes) {
            return false;
        }
        f->value = onnx_little(s->at, bytes);
        s->at += bytes;
        return true;
    case 2:
        if (!onnx_varint(s, &f->value) || f->value > onnx_len(*s)) {
            return false;
        }
        f->bytes.at = s->at;
        f->bytes.end = s->at += (size_t)f->value;
        return true;
    default: return false; /* groups: nothing writes them */
    }
}

/* The next field of a message; false = it ends, or is malformed, which the reader then knows. */
static bool onnx_next(onnx_reader *r, onnx_span *s, onnx_field *f)
{
    uint64_t key;
    if (r->status || !s->at || s->at == s->end) {
        return false;
    }
    r->at = s->at;
    if (!onnx_varint(s, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        onnx_fail(r, NPU_ERR_PARSE, "no field of a message begins here");
        return false;
    }
    f->number = (uint32_t)(key >> 3);
    f->wire = (uint32_t)(key & 7);
    if (!onnx_payload(s, f)) {
        onnx_fail(r, NPU_ERR_PARSE, "field %u is longer than what it stands in, or malformed", (unsigned)f->number);
        return false;
    }
    return true;
}

/* A text, message or bytes; an int. Another wire type is malformed. */
static onnx_span onnx_bytes(onnx_reader *r, const onnx_field *f)
{
    if (f->wire != 2) {
        onnx_fail(r, NPU_ERR_PARSE, "field %u is a number, expected a text or a message", (unsigned)f->number);
    }
    return f->bytes;
}

static int64_t onnx_number(onnx_reader *r, const onnx_field *f)
{
    if (f->wire != 0) {
        onnx_fail(r, NPU_ERR_PARSE, "field %u is no number", (unsigned)f->number);
    }
    return (int64_t)f->value;
}

static onnx_span onnx_member(onnx_reader *r, onnx_span message, uint32_t number)
{
    onnx_field f;
    onnx_span found = { NULL, NULL };
    while (onnx_next(r, &message, &f)) {
        if (f.number == number) {
            found = onnx_bytes(r, &f);
        }
    }
    return found;
}

static int64_t onnx_member_int(onnx_reader *r, onnx_span message, uint32_t number, int64_t otherwise)
{
    onnx_field f;
    while (onnx_next(r, &message, &f)) {
        if (f.number == number) {
            otherwise = onnx_number(r, &f);
        }
    }
    return otherwise;
}

static uint32_t onnx_count(onnx_reader *r, onnx_span message, uint32_t number)
{
    onnx_field f;
    uint32_t count = 0;
    while (onnx_next(r, &message, &f)) {
        count += f.number == number;
    }
    return count;
}

/* Numbers of a repeated field, packed or one by one, of `wire` where they are one by one; more than capacity fail. */
static uint32_t onnx_repeated(onnx_reader *r, onnx_span message, uint32_t number, uint32_t wire, uint64_t *out, uint32_t capacity)
{
    onnx_field f, item;
    uint32_t count = 0;
    while (onnx_next(r, &message, &f)) {
        onnx_span packed = f.bytes;
        bool is_one = f.wire == wire;
        if (f.number != number || (!is_one && f.wire != 2)) {
            continue;
        }
        for (item.wire = wire, item.value = f.value; is_one || packed.at < packed.end; is_one = false) {
            if ((!is_one && !onnx_payload(&packed, &item)) || count == capacity) {
                onnx_fail(r, NPU_ERR_PARSE, count == capacity ? "field %u: too many numbers" : "field %u: malformed",
                          (unsigned)number);
                return 0;
            }
            out[count++] = item.value;
            if (is_one) {
                break;
            }
        }
    }
    return count;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static onnx_name *onnx_slot(const onnx_reader *r, onnx_span name)
{
    uint32_t hash = 2166136261u;
    for (const uint8_t *p = name.at; p < name.end; p++) {
        hash = (hash ^ *p) * 16777619u;
    }
    for (;; hash++) {
        onnx_name *slot = &r->names[hash & (r->size_names - 1)];
        if (!slot->name.at || (onnx_len(slot->name) == onnx_len(name) && memcmp(slot->name.at, name.at, onnx_len(name)) == 0)) {
            return slot;
        }
    }
}

static bool onnx_names_grow(onnx_reader *r)
{
    onnx_name *old = r->names;
    uint32_t old_size = r->size_names, size = old_size ? old_size * 2 : 256;
    onnx_name *names = (onnx_name *)onnx_alloc(r, size * sizeof *names);
    if (!names) {
        return false;
    }
    r->names = names;
    r->size_names = size;
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i].name.at) {
            *onnx_slot(r, old[i].name) = old[i];
        }
    }
    return true;
}

static npu_value *onnx_values(onnx_reader *r, size_t count) { return (npu_value *)onnx_alloc(r, (count + 1) * sizeof(npu_value)); }

static bool onnx_inputs_have_sizes(const onnx_reader *r)
{
    const npu_graph *g = r->levels[0].g;
    bool have = true;
    for (uint32_t i = 0; have && i < npu_graph_num_inputs(g); i++) {
        have = npu_spec_is_static(npu_value_spec(g, npu_graph_input(g, i)));
    }
    return have;
}

static npu_value onnx_paired(const onnx_stand_ins *p, npu_value outer)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->outer[i].id == outer.id) {
            return p->inner[i];
        }
    }
    return onnx_none();
}

static npu_value onnx_pair(onnx_reader *r, onnx_stand_ins *p, npu_value outer, npu_value inner)
{
    if (p->count == p->room) {
        uint32_t room = p->room * 2 + 16;
        npu_value *outers = onnx_values(r, room), *inners = onnx_values(r, room);
        if (!outers || !inners) {
            return onnx_none();
        }
        if (p->room) {
            memcpy(outers, p->outer, p->room * sizeof *outers);
            memcpy(inners, p->inner, p->room * sizeof *inners);
        }
        p->outer = outers;
        p->inner = inners;
        p->room = room;
    }
    p->outer[p->count] = outer;
    p->inner[p->count] = inner;
    return p->inner[p->count++];
}

/* Does data lie in a file, which outlives the graph? */
static bool onnx_is_borrowed(const onnx_reader *r, const void *data)
{
    const uint8_t *at = (const uint8_t *)data;
    bool is_borrowed = at >= r->file && at < r->file + r->file_size;
    for (uint32_t i = 0; i < r->num_files; i++) {
        is_borrowed = is_borrowed || (at >= r->files[i].at && at < r->files[i].end);
    }
    return is_borrowed;
}

/* A constant of the graph before, in that of a level: its data may go with that graph, which is not the one given out. */
static npu_value onnx_constant_again(onnx_reader *r, uint32_t level, npu_value v)
{
    const npu_graph *from = r->levels[level - 1].g;
    const void *data = npu_value_data(from, v, NULL);
    npu_spec spec = *npu_value_spec(from, v);
    return onnx_is_borrowed(r, data) ? npu_constant_ref(r->levels[level].g, NULL, spec, data)
                                     : npu_constant(r->levels[level].g, NULL, spec, data);
}

/* What a value of the graph before is in that of a level: an input, or for a known value a constant. */
static npu_value onnx_capture(onnx_reader *r, uint32_t level, npu_value v)
{
    onnx_level *to = &r->levels[level];
    const npu_graph *from = r->levels[level - 1].g;
    bool is_constant = npu_value_role(from, v) == NPU_ROLE_CONSTANT;
    onnx_stand_ins *pairs = is_constant ? &to->constants : &to->captured;
    npu_value found = onnx_paired(pairs, v);
    if (found.id) {
        return found;
    }
    if (is_constant) {
        return onnx_pair(r, pairs, v, onnx_constant_again(r, level, v));
    }
    if (!npu_spec_is_static(npu_value_spec(from, v))) {
        onnx_fail(r, NPU_ERR_DYNAMIC_SHAPE,
                  "a branch or loop that data decides takes a value with a dim that is not known: %s",
                  onnx_inputs_have_sizes(r) ? "it is as long as data says" : "give it a size in dims of the desc");
        return onnx_none();
    }
    return onnx_pair(r, pairs, v, npu_input(to->g, NULL, *npu_value_spec(from, v)));
}

static bool onnx_is_sequence(npu_value v) { return (v.id & ONNX_SEQUENCE) != 0; }

/* The tensors of a value that is a sequence, until the next one is made. */
static const onnx_list *onnx_list_of(const onnx_reader *r, npu_value v) { return &r->lists[v.id & ~ONNX_SEQUENCE]; }

static bool onnx_lists_grow(onnx_reader *r)
{
    uint32_t room = r->room_lists * 2 + 16;
    onnx_list *lists = (onnx_list *)onnx_alloc(r, room * sizeof *lists);
    if (!lists) {
        return false;
    }
    if (r->num_lists) {
        memcpy(lists, r->lists, r->num_lists * sizeof *lists);
    }
    r->lists = lists;
    r->room_lists = room;
    return true;
}

/* A sequence, whose tensors are written into *values; id 0 = there is no memory, or too many of them. */
static npu_value onnx_new_list(onnx_reader *r, npu_dtype dtype, uint32_t count, npu_value **values)
{
    npu_value v = { 0 };
    *values = onnx_values(r, count);
    r->num_listed += count;
    if (r->num_listed > ONNX_MAX_LISTED) {
        onnx_fail(r, NPU_ERR_BUDGET, "more than %d values in sequences", (int)ONNX_MAX_LISTED);
    }
    if (!r->status && (r->num_lists < r->room_lists || onnx_lists_grow(r))) {
        r->lists[r->num_lists].values = *values;
        r->lists[r->num_lists].count = count;
        r->lists[r->num_lists].dtype = dtype;
        v.id = r->num_lists++ | ONNX_SEQUENCE;
    }
    return v;
}

/* What a value of a graph around the one that is built, or of that, is in that; of a sequence each of its tensors. */
static npu_value onnx_here(onnx_reader *r, uint32_t level, npu_value v)
{
    if (onnx_is_sequence(v) && level < r->level) {
        onnx_list list = *onnx_list_of(r, v);
        npu_value *values;
        v = onnx_new_list(r, list.dtype, list.count, &values);
        for (uint32_t i = 0; v.id && i < list.count; i++) {
            values[i] = onnx_here(r, level, list.values[i]);
        }
        return v;
    }
    for (; level < r->level && v.id; level++) {
        v = onnx_capture(r, level + 1, v);
    }
    return v;
}

/* The value of a name, in the graph that is built. */
static npu_value onnx_find(onnx_reader *r, onnx_span name)
{
    const onnx_name *slot = r->size_names ? onnx_slot(r, name) : NULL;
    return slot ? onnx_here(r, slot->level, slot->value) : onnx_none();
}

/* Is this the scope of the graph that is built, or of one around it? */
static bool onnx_is_open(const onnx_reader *r, uint32_t scope)
{
    bool is_open = false;
    for (uint32_t i = 0; i <= r->depth; i++) {
        is_open = is_open || r->scopes[i] == scope;
    }
    return is_open;
}

/* A name stands for one value, in the graphs around the one that is built, too. */
static void onnx_set(onnx_reader *r, onnx_span name, npu_value v)
{
    onnx_name *slot;
    if (r->status || !name.at || name.at == name.end || (r->num_names * 2 >= r->size_names && !onnx_names_grow(r))) {
        return;
    }
    slot = onnx_slot(r, name);
    if (slot->name.at && onnx_is_open(r, slot->scope)) {
        onnx_fail(r, NPU_ERR_DUPLICATE, "'%.*s' is there twice", ONNX_TEXT(name));
        return;
    }
    r->num_names += !slot->name.at;
    slot->name = name;
    slot->value = v;
    slot->scope = r->scopes[r->depth];
    slot->level = r->level;
    if (v.id && !onnx_is_sequence(v) && !npu_value_has_name(r->g, v) && npu_value_role(r->g, v) != NPU_ROLE_CONSTANT) {
        char *text = onnx_str(r, name);
        if (text && strlen(text) == onnx_len(name) && !npu_graph_find(r->g, text).id) {
            npu_value_set_name(r->g, v, text);
        }
    }
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

enum { /* TensorProto */
    ONNX_DIMS = 1, ONNX_DTYPE = 2, ONNX_FLOATS = 4, ONNX_INT32S = 5, ONNX_INT64S = 7, ONNX_TENSOR_NAME = 8, ONNX_RAW = 9,
    ONNX_DOUBLES = 10, ONNX_UINT64S = 11, ONNX_EXTERNAL = 13, ONNX_LOCATION = 14
};

static npu_dtype onnx_dtype_of(int64_t code)
{
    static const uint8_t dtypes[] = { NPU_NONE, NPU_F32, NPU_U8, NPU_I8, NPU_U16, NPU_I16, NPU_I32, NPU_I64, NPU_NONE, NPU_BOOL,
                                      NPU_F16, NPU_F64, NPU_U32, NPU_U64, NPU_C64, NPU_C128, NPU_BF16, NPU_F8, NPU_NONE, NPU_NONE,
                                      NPU_NONE, NPU_U4, NPU_I4 };
    return code < 0 || code >= (int64_t)sizeof dtypes ? NPU_NONE : (npu_dtype)dtypes[code];
}

static npu_dtype onnx_dtype(onnx_reader *r, int64_t code)
{
    npu_dtype dtype = onnx_dtype_of(code);
    if (!dtype) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, code == 8 ? "tensors of strings are not supported" : "dtype %lld is not supported",
                  (long long)code);
    }
    return dtype == NPU_F16 && r->desc->f16_as_f32 ? NPU_F32 : dtype;
}

/* The same as files and callers have it. */
static npu_dtype onnx_stored_dtype(onnx_reader *r, int64_t code)
{
    return onnx_dtype_of(code) == NPU_F16 ? NPU_F16 : onnx_dtype(r, code);
}

/* Dtypes of few bits that values do not have in the graph: it holds their numbers in the next wider one. Known values
   are marked with what they are, so that a zero point says what it is quantised to (known integers of 4 bits are kept
   as they are, see onnx_widened). mantissa, least: of floats, bits behind the point and the smallest exponent. */
typedef struct onnx_narrow {
    uint8_t code, bits, mantissa;
    int8_t least;
    uint8_t dtype;                /* that holds it */
    bool is_signed, has_infinity, has_zero; /* has_zero: of both signs; else -0 is NaN, the only one */
    double most;
} onnx_narrow;

static const onnx_narrow onnx_narrows[] = {
    { 17, 8, 3, -6, NPU_F16, true, false, true, 448 }, { 18, 8, 3, -7, NPU_F16, true, false, false, 240 },
    { 19, 8, 2, -14, NPU_F16, true, true, true, 57344 }, { 20, 8, 2, -15, NPU_F16, true, false, false, 57344 },
    { 21, 4, 0, 0, NPU_U8, false, false, false, 15 }, { 22, 4, 0, 0, NPU_I8, true, false, false, 7 },
    { 23, 4, 1, 0, NPU_F16, true, false, true, 6 }, { 25, 2, 0, 0, NPU_U8, false, false, false, 3 },
    { 26, 2, 0, 0, NPU_I8, true, false, false, 1 }
};

typedef struct onnx_mark {
    struct onnx_mark *next;
    const npu_graph *g;
    uint32_t id;
    const onnx_narrow *dtype;
} onnx_mark;

/* Of a dtype's number in ONNX; NULL = it is none of these. */
static const onnx_narrow *onnx_narrow_of(int64_t code)
{
    for (size_t i = 0; i < sizeof onnx_narrows / sizeof onnx_narrows[0]; i++) {
        if (onnx_narrows[i].code == code) {
            return &onnx_narrows[i];
        }
    }
    return NULL;
}

/* What a value was marked as; NULL = it is what its dtype says. */
static const onnx_narrow *onnx_marked(const onnx_reader *r, npu_value v)
{
    npu_dtype dtype = v.id ? (npu_dtype)npu_value_spec(r->g, v)->dtype : NPU_NONE;
    for (const onnx_mark *m = r->marks; m; m = m->next) {
        if (m->g == r->g && m->id == v.id) {
            return m->dtype;
        }
    }
    return onnx_narrow_of(dtype == NPU_U4 ? 21 : dtype == NPU_I4 ? 22 : 0);
}

static npu_value onnx_mark_as(onnx_reader *r, npu_value v, const onnx_narrow *t)
{
    onnx_mark *mark = v.id && t ? (onnx_mark *)onnx_alloc(r, sizeof *mark) : NULL;
    if (mark) {
        mark->next = r->marks;
        mark->g = r->g;
        mark->id = v.id;
        mark->dtype = t;
        r->marks = mark;
    }
    return v;
}

/* The number that some bits are. */
static double onnx_narrow_value(const onnx_narrow *t, unsigned bits)
{
    unsigned sign = t->is_signed ? bits >> (t->bits - 1) : 0, rest = bits & ((1u << (t->bits - t->is_signed)) - 1);
    unsigned fraction = rest & ((1u << t->mantissa) - 1), exponent = rest >> t->mantissa;
    double x = ldexp((double)fraction + (exponent ? 1 << t->mantissa : 0),
                     t->least + (exponent ? (int)exponent - 1 : 0) - t->mantissa);
    if (t->mantissa == 0) {
        return (double)rest - (sign ? 1 << (t->bits - 1) : 0);
    }
    if (x > t->most || (!t->has_zero && sign && !rest)) {
        x = t->has_infinity && !fraction ? HUGE_VAL : (double)NAN;
    }
    return sign ? -x : x;
}

static bool onnx_tensor_spec(onnx_reader *r, onnx_span message, npu_spec *spec)
{
    uint64_t dims[NPU_MAX_RANK];
    int64_t code = onnx_member_int(r, message, ONNX_DTYPE, 0);
    const onnx_narrow *narrow = code == 21 || code == 22 ? NULL : onnx_narrow_of(code);
    npu_dtype dtype = narrow ? (npu_dtype)narrow->dtype : onnx_stored_dtype(r, code);
    uint32_t rank = onnx_repeated(r, message, ONNX_DIMS, 0, dims, NPU_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] > INT64_MAX) {
            onnx_fail(r, NPU_ERR_SHAPE, "dim %u of a tensor is below 0", (unsigned)i);
        }
    }
    *spec = npu_spec_tensor(dtype, rank, (const int64_t *)dims);
    return r->status == NPU_OK;
}

/* A value of external_data: entries of key 1 and value 2. */
static onnx_span onnx_entry(onnx_reader *r, onnx_span message, const char *key)
{
    onnx_field f;
    onnx_span found = { NULL, NULL };
    while (onnx_next(r, &message, &f)) {
        if (f.number == ONNX_EXTERNAL && onnx_is(onnx_member(r, onnx_bytes(r, &f), 1), key)) {
            found = onnx_member(r, f.bytes, 2);
        }
    }
    return found;
}

static bool onnx_entry_number(onnx_reader *r, onnx_span message, const char *key, uint64_t *out)
{
    onnx_span text = onnx_entry(r, message, key);
    uint64_t x = 0;
    for (const uint8_t *p = text.at; text.at && p < text.end; p++) {
        if (*p < '0' || *p > '9' || x > (UINT64_MAX - 9) / 10) {
            onnx_fail(r, NPU_ERR_PARSE, "%s of data beside the model is '%.*s', which is no number", key, ONNX_TEXT(text));
            return false;
        }
        x = x * 10 + (uint64_t)(*p - '0');
    }
    *out = text.at ? x : *out;
    return true;
}

/* Relative, and no step upwards. */
static bool onnx_is_inside(const char *location)
{
    if (!location[0] || location[0] == '/' || location[0] == '\\' || strchr(location, ':')) {
        return false;
    }
    for (const char *p = location; *p; p += strcspn(p, "/\\"), p += *p != 0) {
        if (strncmp(p, "..", 2) == 0 && strcspn(p, "/\\") == 2) {
            return false;
        }
    }
    return true;
}

static void onnx_keep_file(onnx_reader *r, const npu_bytes *file)
{
    if (!onnx_is_borrowed(r, file->data) && r->num_files < sizeof r->files / sizeof r->files[0]) {
        r->files[r->num_files].at = (const uint8_t *)file->data;
        r->files[r->num_files++].end = (const uint8_t *)file->data + file->size;
    }
}

static onnx_span onnx_external(onnx_reader *r, onnx_span message, size_t size)
{
    onnx_span data = { NULL, NULL }, location = onnx_entry(r, message, "location");
    uint64_t offset = 0, len = size;
    npu_bytes file = { NULL, NULL, 0 };
    char *path = onnx_str(r, location);
    if (!path || !onnx_entry_number(r, message, "offset", &offset) || !onnx_entry_number(r, message, "length", &len)) {
        return data;
    }
    if (strlen(path) != (location.at ? onnx_len(location) : 0) || !onnx_is_inside(path)) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "data lies in '%.80s', which is outside the model's folder", path);
    } else if (!r->desc->external) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "data lies in the file '%.80s'; set external of the desc", path);
    } else {
        npu_status status = r->desc->external(r->desc->external_ctx, path, &file);
        if (status) {
            onnx_fail(r, status, "'%.80s' cannot be read", path);
        } else if (len != size || offset > file.size || size > file.size - offset) {
            onnx_fail(r, NPU_ERR_SHAPE, "%llu bytes from %llu of '%.80s', which has %llu, for a tensor of %llu",
                      (unsigned long long)len, (unsigned long long)offset, path, (unsigned long long)file.size,
                      (unsigned long long)size);
        } else {
            data.at = (const uint8_t *)file.data + offset;
            data.end = data.at + size;
            onnx_keep_file(r, &file);
        }
    }
    return data;
}

static void onnx_store(uint8_t *p, uint64_t bits, uint32_t bytes)
{
    uint16_t half = (uint16_t)bits;
    uint32_t word = (uint32_t)bits;
    uint8_t byte = (uint8_t)bits;
    memcpy(p, bytes == 1 ? (const void *)&byte : bytes == 2 ? (const void *)&half : bytes == 4 ? (const void *)&word : &bits, bytes);
}

/* Bytes that the host has in its own order: an element, or half of a complex one. */
static uint32_t onnx_element(const npu_spec *spec)
{
    uint32_t bits = npu_dtype_bits((npu_dtype)spec->dtype);
    return bits < 8 ? 1 : npu_dtype_is_complex((npu_dtype)spec->dtype) ? bits / 16 : bits / 8;
}

static npu_value onnx_raw_constant(onnx_reader *r, const npu_spec *spec, onnx_span data)
{
    const uint16_t one = 1;
    uint32_t bytes = onnx_element(spec);
    bool is_little = *(const uint8_t *)&one == 1;
    uint8_t *own;
    if (is_little && (uintptr_t)data.at % bytes == 0) {
        return npu_constant_ref(r->g, NULL, *spec, data.at);
    }
    own = (uint8_t *)onnx_alloc(r, onnx_len(data));
    for (size_t i = 0; own && i + bytes <= onnx_len(data); i += bytes) {
        onnx_store(own + i, onnx_little(data.at + i, bytes), bytes);
    }
    return own ? npu_constant(r->g, NULL, *spec, own) : onnx_none();
}

/* The field that elements of a dtype stand in where there is no raw data, and its wire type. */
static uint32_t onnx_typed_field(npu_dtype dtype, uint32_t *wire)
{
    *wire = dtype == NPU_F32 || dtype == NPU_C64 ? 5 : dtype == NPU_F64 || dtype == NPU_C128 ? 1 : 0;
    return *wire == 5 ? ONNX_FLOATS : *wire == 1 ? ONNX_DOUBLES : dtype == NPU_I64 ? ONNX_INT64S
           : dtype == NPU_U32 || dtype == NPU_U64 ? ONNX_UINT64S : ONNX_INT32S;
}

/* What a tensor without raw data has, as it lies in memory; NULL = not all of it is there. */
static uint8_t *onnx_typed_data(onnx_reader *r, const npu_spec *spec, onnx_span message, size_t size)
{
    uint32_t wire, field = onnx_typed_field((npu_dtype)spec->dtype, &wire), bytes = onnx_element(spec);
    size_t count = size / bytes;
    uint64_t *bits;
    uint8_t *own;
    if (count > onnx_len(message)) { /* a number takes a byte at least */
        onnx_fail(r, NPU_ERR_SHAPE, "a tensor of %llu bytes has less data", (unsigned long long)size);
        return NULL;
    }
    bits = (uint64_t *)onnx_alloc(r, count * 8);
    own = (uint8_t *)onnx_alloc(r, size);
    if (bits && own && onnx_repeated(r, message, field, wire, bits, (uint32_t)count) != count) {
        onnx_fail(r, NPU_ERR_SHAPE, "a tensor of %llu bytes has less data", (unsigned long long)size);
    }
    for (size_t i = 0; i < count && r->status == NPU_OK; i++) {
        onnx_store(own + i * bytes, bits[i], bytes);
    }
    return r->status ? NULL : own;
}

/* Elements of 4 bits follow each other, and in memory each row begins with a byte. */
static npu_value onnx_nibbles(onnx_reader *r, const npu_spec *spec, const uint8_t *from, size_t size)
{
    uint8_t *own = (uint8_t *)onnx_alloc(r, size);
    int64_t len = spec->dims[spec->rank - 1];
    size_t row = (size_t)((len + 1) / 2);
    for (size_t i = 0; own && i < size / row * (size_t)len; i++) {
        size_t at = i / (size_t)len * row + i % (size_t)len / 2;
        own[at] |= (uint8_t)((from[i / 2] >> (i % 2 * 4) & 15) << (i % (size_t)len % 2 * 4));
    }
    return own ? npu_constant(r->g, NULL, *spec, own) : onnx_none();
}

static uint8_t *onnx_typed_data(onnx_reader *r, const npu_spec *spec, onnx_span message, size_t size);

/* Few bits as they lie in a file, those of the first number lowest. */
static const uint8_t *onnx_narrow_bytes(onnx_reader *r, onnx_span message, size_t size)
{
    int64_t dim = (int64_t)size;
    npu_spec bytes = npu_spec_tensor(NPU_U8, 1, &dim);
    onnx_span raw = onnx_member_int(r, message, ONNX_LOCATION, 0) == 1 ? onnx_external(r, message, size)
                                                                       : onnx_member(r, message, ONNX_RAW);
    if (r->status || (raw.at && onnx_len(raw) != size)) {
        onnx_fail(r, NPU_ERR_SHAPE, "a tensor of %llu bytes has %llu bytes of data", (unsigned long long)size,
                  (unsigned long long)onnx_len(raw));
        return NULL;
    }
    return raw.at ? raw.at : onnx_typed_data(r, &bytes, message, size);
}

static npu_value onnx_narrow_tensor(onnx_reader *r, onnx_span message, npu_spec spec, const onnx_narrow *t)
{
    size_t len = 0;
    npu_status status = npu_spec_len(&spec, &len) || len > (size_t)-1 / 16 ? NPU_ERR_SHAPE : NPU_OK;
    const uint8_t *bytes = status ? NULL : onnx_narrow_bytes(r, message, (len * t->bits + 7) / 8);
    uint32_t each = npu_dtype_bits((npu_dtype)t->dtype) / 8;
    uint8_t *own = bytes ? (uint8_t *)onnx_alloc(r, len * each) : NULL;
    for (size_t i = 0; own && i < len; i++) {
        unsigned few = (unsigned)(bytes[i * t->bits / 8] >> (i * t->bits % 8)) & ((1u << t->bits) - 1);
        double x = onnx_narrow_value(t, few);
        uint16_t half = npu_f32_to_f16((float)x);
        int8_t small = (int8_t)(int)(t->mantissa ? 0 : x);
        memcpy(own + i * each, each == 2 ? (const void *)&half : &small, each);
    }
    if (status) {
        onnx_fail(r, status, "a tensor: %s", npu_status_text(status));
    }
    return own ? onnx_mark_as(r, npu_constant(r->g, NULL, spec, own), t) : onnx_none();
}

/* The value of a TensorProto as it is stored. */
static npu_value onnx_stored_tensor(onnx_reader *r, onnx_span message)
{
    const onnx_narrow *narrow = onnx_narrow_of(onnx_member_int(r, message, ONNX_DTYPE, 0));
    npu_spec spec;
    size_t size = 0, stored = 0;
    onnx_span raw = { NULL, NULL };
    const uint8_t *data;
    npu_status status;
    if (!onnx_tensor_spec(r, message, &spec)) {
        return onnx_none();
    }
    if (narrow && spec.dtype == narrow->dtype) {
        return onnx_narrow_tensor(r, message, spec, narrow);
    }
    status = npu_spec_size(&spec, &size);
    status = status ? status : npu_spec_len(&spec, &stored);
    if (status) {
        onnx_fail(r, status, "a tensor: %s", npu_status_text(status));
        return onnx_none();
    }
    stored = npu_dtype_bits((npu_dtype)spec.dtype) == 4 ? (stored + 1) / 2 : size;
    raw = onnx_member_int(r, message, ONNX_LOCATION, 0) == 1 ? onnx_external(r, message, stored)
                                                             : onnx_member(r, message, ONNX_RAW);
    if (r->status || (raw.at && onnx_len(raw) != stored)) {
        onnx_fail(r, NPU_ERR_SHAPE, "a tensor of %llu bytes has %llu bytes of data", (unsigned long long)stored,
                  (unsigned long long)onnx_len(raw));
        return onnx_none();
    }
    if (raw.at && stored == size) {
        return onnx_raw_constant(r, &spec, raw);
    }
    data = raw.at ? raw.at : onnx_typed_data(r, &spec, message, stored);
    if (data && stored != size) {
        return onnx_nibbles(r, &spec, data, size);
    }
    return data ? npu_constant(r->g, NULL, spec, data) : onnx_none();
}

/* Known f16 as f32, where the desc wants that. */
static npu_value onnx_halves(onnx_reader *r, npu_value v)
{
    npu_spec spec = v.id ? *npu_value_spec(r->g, v) : npu_spec_tensor(NPU_NONE, 0, NULL);
    const uint16_t *halves = v.id ? (const uint16_t *)npu_value_data(r->g, v, NULL) : NULL;
    size_t len = 0;
    float *own;
    if (!r->desc->f16_as_f32 || spec.dtype != NPU_F16 || !halves || onnx_marked(r, v) || npu_spec_len(&spec, &len)) {
        return v;
    }
    own = (float *)onnx_alloc_rows(r, (int64_t)len, 1, sizeof *own);
    for (size_t i = 0; own && i < len; i++) {
        own[i] = npu_f16_to_f32(halves[i]);
    }
    spec.dtype = NPU_F32;
    return own ? npu_constant(r->g, NULL, spec, own) : onnx_none();
}

/* The value of a TensorProto. */
static npu_value onnx_tensor(onnx_reader *r, onnx_span message) { return onnx_halves(r, onnx_stored_tensor(r, message)); }

/* ---- attributes -------------------------------------------------------------------------------------------------- */

enum { ONNX_N_INPUT = 1, ONNX_N_OUTPUT = 2, ONNX_N_NAME = 3, ONNX_N_OP = 4, ONNX_N_ATTRIBUTE = 5, ONNX_N_DOMAIN = 7 };

enum { ONNX_A_F = 2, ONNX_A_I = 3, ONNX_A_S = 4, ONNX_A_T = 5, ONNX_A_G = 6, ONNX_A_FLOATS = 7, ONNX_A_INTS = 8,
       ONNX_A_STRINGS = 9, ONNX_A_REF = 21 };

/* The AttributeProto of that name; of a node in a function, what its caller says for it. at NULL = not given. */
static onnx_span onnx_attr(onnx_reader *r, const onnx_node *n, const char *name)
{
    onnx_span message = n->message, found = { NULL, NULL }, ref;
    uint64_t bit = 1;
    onnx_field f;
    while (onnx_next(r, &message, &f)) {
        if (f.number == ONNX_N_ATTRIBUTE && onnx_is(onnx_member(r, onnx_bytes(r, &f), 1), name)) {
            found = f.bytes;
            *(n->asked ? &n->asked->found : &bit) |= bit;
        }
        bit <<= f.number == ONNX_N_ATTRIBUTE;
    }
    if (n->asked && !found.at && n->asked->num_missing < sizeof n->asked->missing / sizeof n->asked->missing[0]) {
        n->asked->missing[n->asked->num_missing++] = name;
    }
    ref = onnx_member(r, found, ONNX_A_REF);
    if (ref.at && n->caller) {
        char *other = onnx_str(r, ref);
        found = other ? onnx_attr(r, n->caller, other) : ref;
    }
    return found;
}

static bool onnx_has(onnx_reader *r, const onnx_node *n, const char *name) { return onnx_attr(r, n, name).at != NULL; }

static int64_t onnx_i(onnx_reader *r, const onnx_node *n, const char *name, int64_t otherwise)
{
    return onnx_member_int(r, onnx_attr(r, n, name), ONNX_A_I, otherwise);
}

static double onnx_f(onnx_reader *r, const onnx_node *n, const char *name, double otherwise)
{
    onnx_span message = onnx_attr(r, n, name);
    onnx_field f;
    while (onnx_next(r, &message, &f)) {
        if (f.number == ONNX_A_F && f.wire == 5) {
            uint32_t word = (uint32_t)f.value;
            float x;
            memcpy(&x, &word, 4);
            otherwise = (double)x;
        }
    }
    return otherwise;
}

static onnx_span onnx_s(onnx_reader *r, const onnx_node *n, const char *name, const char *otherwise)
{
    onnx_span message = onnx_attr(r, n, name), s = onnx_member(r, message, ONNX_A_S);
    if (!s.at) {
        s.at = (const uint8_t *)otherwise;
        s.end = s.at + strlen(otherwise);
    }
    return s;
}

static bool onnx_s_is(onnx_reader *r, const onnx_node *n, const char *name, const char *otherwise, const char *text)
{
    return onnx_is(onnx_s(r, n, name, otherwise), text);
}

static uint32_t onnx_ints(onnx_reader *r, const onnx_node *n, const char *name, int64_t *out, uint32_t capacity)
{
    return onnx_repeated(r, onnx_attr(r, n, name), ONNX_A_INTS, 0, (uint64_t *)out, capacity);
}

/* Up to capacity of them, which is at most 16. */
static uint32_t onnx_floats(onnx_reader *r, const onnx_node *n, const char *name, double *out, uint32_t capacity)
{
    uint64_t words[16];
    uint32_t count = onnx_repeated(r, onnx_attr(r, n, name), ONNX_A_FLOATS, 5, words, capacity);
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        uint32_t word = (uint32_t)words[i];
        float f;
        memcpy(&f, &word, 4);
        out[i] = (double)f;
    }
    return count;
}

/* With `otherwise` where they are not given; else there must be `count`. */
static void onnx_ints_or(onnx_reader *r, const onnx_node *n, const char *name, int64_t *out, uint32_t count, int64_t otherwise)
{
    uint32_t given = onnx_ints(r, n, name, out, count);
    if (given && given != count) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "%s has %u numbers, expected %u", name, (unsigned)given, (unsigned)count);
    }
    for (uint32_t i = given; i < count; i++) {
        out[i] = otherwise;
    }
}

/* ---- what values are --------------------------------------------------------------------------------------------- */

static npu_value onnx_x(const onnx_node *n, uint32_t i) { return i < n->num_x ? n->x[i] : onnx_none(); }
static uint32_t onnx_rank(const onnx_reader *r, npu_value v) { return v.id ? npu_value_spec(r->g, v)->rank : 0; }
static npu_dtype onnx_type(const onnx_reader *r, npu_value v) { return v.id ? (npu_dtype)npu_value_spec(r->g, v)->dtype : NPU_NONE; }

/* A dim as the graph has it; -1 where there is none, which is refused where an op is made of it. */
static int64_t onnx_dim_if_any(const onnx_reader *r, npu_value v, int64_t i)
{
    return i >= 0 && i < onnx_rank(r, v) ? npu_value_spec(r->g, v)->dims[i] : NPU_DYNAMIC_DIM;
}

/* Elements; 0 where they are not known, or there is no such value. */
static size_t onnx_num_elements(const onnx_reader *r, npu_value v)
{
    size_t len = 0;
    return v.id && npu_spec_len(npu_value_spec(r->g, v), &len) == NPU_OK ? len : 0;
}

/* Does data alone decide one of these dims? */
static bool onnx_is_counted(const onnx_reader *r, npu_value x, int64_t begin, int64_t end)
{
    bool is_open = false;
    for (int64_t i = begin; i < end; i++) {
        is_open = is_open || onnx_dim_if_any(r, x, i) < 0;
    }
    return is_open && onnx_inputs_have_sizes(r);
}

/* A dim that is computed is named after those of the inputs; where these have sizes, data decides it (NonZero). */
static void onnx_unknown_dim(onnx_reader *r, uint32_t i, int64_t symbol)
{
    char names[160] = "";
    size_t len = 0;
    bool is_given = symbol <= r->first_symbol && symbol >= r->last_symbol;
    for (int64_t at = is_given ? symbol : r->first_symbol; at < 0 && at >= (is_given ? symbol : r->last_symbol) && len < 100; at--) {
        len += (size_t)snprintf(names + len, sizeof names - len, "%s'%.40s'", len ? ", " : "", npu_graph_symbol_name(r->g, at));
    }
    if (len == 0 && onnx_inputs_have_sizes(r)) {
        onnx_fail(r, NPU_ERR_CONVERSION, "dim %u must be known when the model is read; it is as long as data says", (unsigned)i);
        return;
    }
    onnx_fail(r, NPU_ERR_DYNAMIC_SHAPE, "dim %u must be known: give %s a size (dims or shapes of the desc)", (unsigned)i,
              len ? names : "the inputs");
}

/* A dim that must be a number. */
static int64_t onnx_dim(onnx_reader *r, npu_value v, uint32_t i)
{
    const npu_spec *spec = v.id ? npu_value_spec(r->g, v) : NULL;
    if (!spec || i >= spec->rank) {
        onnx_fail(r, NPU_ERR_RANK, "an operand has no dim %u", (unsigned)i);
        return 1;
    }
    if (spec->dims[i] < 0) {
        onnx_unknown_dim(r, i, spec->dims[i]);
        return 1;
    }
    return spec->dims[i];
}

/* Two for each element of a dim. */
static int64_t onnx_twice(onnx_reader *r, npu_value v, uint32_t i)
{
    int64_t size = onnx_dim(r, v, i);
    if (size > INT32_MAX) {
        onnx_fail(r, NPU_ERR_SHAPE, "dim %u is %lld, expected at most %d", (unsigned)i, (long long)size,
                  (int)INT32_MAX);
        return 2;
    }
    return 2 * size;
}

static int64_t onnx_axis(onnx_reader *r, int64_t axis, uint32_t rank)
{
    int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    if (at < 0 || at >= (int64_t)(rank ? rank : 1)) {
        onnx_fail(r, NPU_ERR_AXIS, "axis %lld of %u dims", (long long)axis, (unsigned)rank);
        return 0;
    }
    return at;
}

/* Elements of a known value, from f to the host's numbers; NULL = it is not known, which the reader then says. */
static const void *onnx_data(onnx_reader *r, npu_value v, const char *what, size_t *len)
{
    const void *data = v.id ? npu_value_data(r->g, v, NULL) : NULL;
    *len = onnx_num_elements(r, v);
    if (!v.id) {
        onnx_fail(r, NPU_ERR_ARITY, "%s is missing", what);
    } else if (!data || (npu_value_role(r->g, v) != NPU_ROLE_CONSTANT)) {
        onnx_fail(r, NPU_ERR_CONVERSION, "%s must be known when the model is read; give what it comes from in inputs", what);
        return NULL;
    }
    return data;
}

static bool onnx_is_known(const onnx_reader *r, npu_value v)
{
    return v.id && npu_value_role(r->g, v) == NPU_ROLE_CONSTANT && npu_value_data(r->g, v, NULL);
}

static double onnx_element_at(npu_dtype dtype, const void *data, size_t i)
{
    switch ((int)dtype) {
    case NPU_F32: return (double)((const float *)data)[i];
    case NPU_F64: return ((const double *)data)[i];
    case NPU_F16: return (double)npu_f16_to_f32(((const uint16_t *)data)[i]);
    case NPU_BF16: return (double)npu_bf16_to_f32(((const uint16_t *)data)[i]);
    case NPU_I64: return (double)((const int64_t *)data)[i];
    case NPU_U64: return (double)((const uint64_t *)data)[i];
    case NPU_I32: return (double)((const int32_t *)data)[i];
    case NPU_U32: return (double)((const uint32_t *)data)[i];
    case NPU_I16: return (double)((const int16_t *)data)[i];
    case NPU_U16: return (double)((const uint16_t *)data)[i];
    case NPU_I8: return (double)((const int8_t *)data)[i];
    default: return (double)((const uint8_t *)data)[i];
    }
}

/* The same of integers, whose last bits a double has no room for; those of u64 beyond i64 wrap. */
static int64_t onnx_integer_at(npu_dtype dtype, const void *data, size_t i)
{
    return dtype == NPU_I64 || dtype == NPU_U64 ? ((const int64_t *)data)[i] : (int64_t)onnx_element_at(dtype, data, i);
}

/* Integers of a known value; more than capacity fail. */
static uint32_t onnx_known(onnx_reader *r, npu_value v, const char *what, int64_t *out, uint32_t capacity)
{
    size_t len;
    const void *data = onnx_data(r, v, what, &len);
    npu_dtype dtype = onnx_type(r, v);
    if (!data || len > capacity || (!npu_dtype_is_integer(dtype) && dtype != NPU_BOOL) || npu_dtype_bits(dtype) < 8) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "%s: %llu numbers of %s, expected at most %u integers", what, (unsigned long long)len,
                  npu_dtype_name(dtype), (unsigned)capacity);
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = onnx_integer_at(dtype, data, i);
    }
    return (uint32_t)len;
}

static int64_t onnx_known_int(onnx_reader *r, npu_value v, const char *what)
{
    int64_t x = 0;
    onnx_known(r, v, what, &x, 1);
    return x;
}

static uint32_t onnx_known_floats(onnx_reader *r, npu_value v, const char *what, double *out, uint32_t capacity)
{
    size_t len;
    const void *data = onnx_data(r, v, what, &len);
    if (data && len > capacity) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "%s: %llu numbers, expected at most %u", what, (unsigned long long)len, (unsigned)capacity);
    }
    for (size_t i = 0; data && i < len && len <= capacity; i++) {
        out[i] = onnx_element_at(onnx_type(r, v), data, i);
    }
    return r->status ? 0 : (uint32_t)len;
}

/* Are the elements of a value known to be this integer? */
static bool onnx_are_all(const onnx_reader *r, npu_value v, int64_t x)
{
    bool are = onnx_is_known(r, v) && npu_dtype_is_integer(onnx_type(r, v));
    for (size_t i = 0; are && i < onnx_num_elements(r, v); i++) {
        are = onnx_integer_at(onnx_type(r, v), npu_value_data(r->g, v, NULL), i) == x;
    }
    return are;
}

/* Axes of an operand or attribute, from 0 on, none twice; the operand wins (both forms were in use). */
static uint32_t onnx_axes(onnx_reader *r, const onnx_node *n, uint32_t operand, uint32_t rank, int64_t *out)
{
    uint32_t count = onnx_x(n, operand).id ? onnx_known(r, onnx_x(n, operand), "axes", out, NPU_MAX_RANK)
                                           : onnx_ints(r, n, "axes", out, NPU_MAX_RANK);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = onnx_axis(r, out[i], rank);
        if (seen >> out[i] & 1) {
            onnx_fail(r, NPU_ERR_AXIS, "axis %lld is there twice", (long long)out[i]);
        }
        seen |= 1u << out[i];
    }
    return count;
}

/* ---- folding ----------------------------------------------------------------------------------------------------- */

/* Weights of a quantised model stay dequantised where they are needed: passes find the integers. */
static bool onnx_is_weight(const onnx_reader *r, npu_op op)
{
    const npu_spec *spec = npu_value_spec(r->g, npu_op_operand_value(r->g, op, 0));
    npu_kind kind = npu_op_kind(r->g, op);
    return (kind == NPU_QUANTIZED_DEQUANTIZE_PER_TENSOR || kind == NPU_QUANTIZED_DEQUANTIZE_PER_CHANNEL) && spec->rank > 1 &&
           npu_dtype_bits((npu_dtype)spec->dtype) == 8;
}

static bool onnx_may_fold(const onnx_reader *r, npu_op op)
{
    for (uint32_t i = 0; i < npu_op_num_operands(r->g, op); i++) {
        npu_value v = npu_op_operand_value(r->g, op, i);
        if (v.id && !onnx_is_known(r, v)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < npu_op_num_results(r->g, op); i++) {
        const npu_spec *spec = npu_value_spec(r->g, npu_op_result(r->g, op, i));
        size_t len = 0;
        if ((npu_spec_is_static(spec) && npu_spec_len(spec, &len)) || len > ONNX_MAX_FOLDED || spec->cls != NPU_CLASS_TENSOR) {
            return false;
        }
    }
    return r->desc->backend != NULL && !onnx_is_weight(r, op);
}

/* Runs one op alone and makes constants of what it gives; what cannot be run stays in the graph. */
static void onnx_fold(onnx_reader *r, npu_op op, npu_value *results, uint32_t count)
{
    npu_graph *alone = NULL;
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    if (npu_graph_extract(&alone, r->g, &op, 1, &diag) == NPU_OK &&
        npu_exec_create_simple(&exec, alone, &r->desc->backend, 1, &diag) == NPU_OK && npu_exec_run(exec) == NPU_OK &&
        npu_graph_num_outputs(alone) == count) {
        for (uint32_t i = 0; i < count; i++) {
            results[i] = npu_constant(r->g, NULL, *npu_exec_output_spec(exec, i), npu_exec_output(exec, i, NULL));
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(alone);
}

/* ---- emitting ---------------------------------------------------------------------------------------------------- */

/* Takes over what the graph says is wrong. */
static bool onnx_check(onnx_reader *r)
{
    const npu_diag *d = npu_graph_diag(r->g);
    if (d->status) {
        onnx_fail(r, d->status, "%s", d->message);
    }
    return r->status == NPU_OK;
}

/* The results of an op that was made. */
static void onnx_results(onnx_reader *r, npu_op op, npu_value *out, uint32_t count)
{
    uint32_t num = op.id ? npu_op_num_results(r->g, op) : 0;
    npu_value all[16];
    for (uint32_t i = 0; i < num && i < 16; i++) {
        all[i] = npu_op_result(r->g, op, i);
    }
    if (num && num <= 16 && onnx_may_fold(r, op)) {
        onnx_fold(r, op, all, num);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = !num ? onnx_none() : i < num && i < 16 ? all[i] : npu_op_result(r->g, op, i);
    }
    onnx_check(r);
}

/* An argument of a text: "name=", then what it is. */
typedef struct onnx_spell { const char *at; char name[32], word[64]; } onnx_spell;

static void onnx_word(const char **at, char *out, size_t size, const char *stop)
{
    size_t len = strcspn(*at, stop);
    snprintf(out, size, "%.*s", (int)len, *at);
    *at += len;
}

/* A default: an integer, "0.5" or "1/100", in any locale. */
static double onnx_decimal(const char *s)
{
    double x = 0, unit = 1;
    bool is_minus = *s == '-', is_behind = false;
    for (s += is_minus; *s && *s != '/'; s++) {
        unit *= is_behind ? 10 : 1;
        x = *s == '.' ? x : x * 10 + (*s - '0');
        is_behind = is_behind || *s == '.';
    }
    x /= *s == '/' ? onnx_decimal(s + 1) : unit;
    return is_minus ? -x : x;
}

/* The least integer stands for what a value says, and is as far out as its neighbour. */
static int64_t onnx_near_int(int64_t x) { return x + (x == INT64_MIN); }

/* A number, an attribute of the node (axis:1, alpha:0.5, mode:'none') or an operand (0, 1 ...). */
static npu_arg onnx_spelled(onnx_reader *r, const onnx_node *n, const char *name, char *word)
{
    char *colon = strchr(word, ':');
    double otherwise;
    if (!colon) {
        return npu_arg_tensor(name, onnx_x(n, (uint32_t)atoi(word)));
    }
    *colon++ = 0;
    if (*colon == '\'') {
        colon[strlen(colon) - 1] = 0;
        return npu_arg_str(name, onnx_str(r, onnx_s(r, n, word, colon + 1)));
    }
    otherwise = onnx_decimal(colon);
    return strpbrk(colon, "./") ? npu_arg_float(name, onnx_f(r, n, word, otherwise))
                                : npu_arg_int(name, onnx_near_int(onnx_i(r, n, word, (int64_t)otherwise)));
}

static npu_arg onnx_near_ints(onnx_reader *r, const char *name, const int64_t *x, uint32_t count)
{
    int64_t *near = NULL;
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        if (x[i] == INT64_MIN && !near && (near = (int64_t *)onnx_alloc(r, count * sizeof *near)) != NULL) {
            memcpy(near, x, count * sizeof *near);
        }
        if (near) {
            near[i] = onnx_near_int(near[i]);
        }
    }
    return npu_arg_ints(name, near ? near : x, count);
}

/* What stands in the list of a C call for one letter. */
static npu_arg onnx_listed(onnx_reader *r, char letter, const char *name, va_list *list)
{
    npu_arg arg = npu_arg_none(name);
    switch (letter) {
    case 'v': arg = npu_arg_tensor(name, va_arg(*list, npu_value)); break;
    case 'i': arg = npu_arg_int(name, onnx_near_int(va_arg(*list, int64_t))); break;
    case 'f': arg = npu_arg_float(name, va_arg(*list, double)); break;
    case 'b': arg = npu_arg_bool(name, va_arg(*list, int) != 0); break;
    case 't': arg = npu_arg_dtype(name, (npu_dtype)va_arg(*list, int)); break;
    case 's': arg = npu_arg_str(name, va_arg(*list, const char *)); break;
    case 'I': {
        const int64_t *ints = va_arg(*list, const int64_t *);
        arg = onnx_near_ints(r, name, ints, va_arg(*list, uint32_t));
        break;
    }
    case 'V': {
        const npu_value *values = va_arg(*list, const npu_value *);
        arg = npu_arg_tensors(name, values, va_arg(*list, uint32_t));
        break;
    }
    default: break; /* '_': none */
    }
    return arg;
}

/* Emits the op of a text: its name, and in brackets its arguments, "name=" before those given by name. Each is
     v i f b t s _   a value, int64_t, double, bool, dtype, text, nothing, from the list
     V I             npu_value or int64_t pointer, and uint32_t count, from the list
     0 1 ..          an operand of the node
     axis:1          an attribute of the node and its default: an integer, or with '.' or '/' a float, or 'text' */
static npu_op onnx_emit_list(onnx_reader *r, const onnx_node *n, const char *text, va_list *list)
{
    npu_arg args[12];
    char names[12][32], op[64], word[64];
    uint32_t count = 0;
    npu_op none = { 0 };
    onnx_word(&text, op, sizeof op, "(");
    for (text++; *text && *text != ')' && count < 12; text += *text == ',' ? 1 + (text[1] == ' ') : 0) {
        char *equals;
        onnx_word(&text, word, sizeof word, ",)");
        equals = strchr(word, '=');
        snprintf(names[count], sizeof names[count], "%.*s", (int)(equals ? equals - word : 0), word);
        equals = equals ? equals + 1 : word;
        args[count] = strlen(equals) == 1 && (equals[0] < '0' || equals[0] > '9') ? onnx_listed(r, equals[0], NULL, list)
                                                                                  : onnx_spelled(r, n, NULL, equals);
        args[count].name = names[count][0] ? names[count] : NULL;
        count++;
    }
    return r->status || ++r->num_nodes > ONNX_MAX_NODES ? none : npu_emit_name(r->g, op, args, count);
}

static npu_value onnx_emit(onnx_reader *r, const onnx_node *n, const char *text, ...)
{
    npu_value v = { 0 };
    va_list list;
    va_start(list, text);
    onnx_results(r, onnx_emit_list(r, n, text, &list), &v, 1);
    va_end(list);
    return v;
}

/* The first results of an op with several. */
static void onnx_emit_many(onnx_reader *r, const onnx_node *n, npu_value *out, uint32_t count, const char *text, ...)
{
    va_list list;
    va_start(list, text);
    onnx_results(r, onnx_emit_list(r, n, text, &list), out, count);
    va_end(list);
}

static npu_value onnx_result(onnx_reader *r, onnx_node *n, uint32_t i, npu_value v)
{
    if (i < n->num_y) {
        onnx_set(r, n->y[i], v);
    }
    return v;
}

static npu_value onnx_int_constant(onnx_reader *r, const int64_t *data, uint32_t count)
{
    int64_t dims = count;
    return npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 1, &dims), data);
}

/* A number of the dtype that a value has, as a 0-d tensor. */
static npu_value onnx_like(onnx_reader *r, npu_value v, double x)
{
    return onnx_emit(r, NULL, "aten.scalar_tensor.default(f, dtype=t)", x, (int)onnx_type(r, v));
}

/* NPU_NONE is the dtype of an operand that the node leaves out. */
static npu_value onnx_cast(onnx_reader *r, npu_value v, npu_dtype dtype)
{
    if (onnx_type(r, v) == dtype) {
        return v;
    }
    if (!v.id || !dtype) {
        onnx_fail(r, NPU_ERR_ARITY, "an operand is missing");
        return onnx_none();
    }
    return onnx_emit(r, NULL, "aten._to_copy.default(v, dtype=t)", v, (int)dtype);
}

static npu_value onnx_reshape(onnx_reader *r, npu_value v, const int64_t *dims, uint32_t rank)
{
    return onnx_emit(r, NULL, "aten.reshape.default(v, I)", v, dims, rank);
}

/* What a value is a permutation of, and its order; id 0 = it is none. */
static npu_value onnx_permuted(onnx_reader *r, npu_value v, int64_t *order)
{
    npu_op op = npu_value_producer(r->g, v, NULL);
    npu_value from = onnx_none();
    npu_op_info info = { 0 };
    npu_op_storage storage;
    memset(&storage, 0, sizeof storage);
    if (v.id && npu_op_kind(r->g, op) == NPU_ATEN_PERMUTE && npu_op_describe(r->g, op, &info, &storage) == NPU_OK &&
        npu_op_ints(&info, "dims", order, NPU_MAX_RANK) == onnx_rank(r, v)) {
        from = npu_op_operand_value(r->g, op, 0);
    }
    npu_op_storage_free(&storage);
    return from;
}

/* Of what is a permutation already one of both, or nothing: files with channels in front and behind turn them to and fro. */
static npu_value onnx_permute(onnx_reader *r, npu_value v, const int64_t *order, uint32_t rank)
{
    int64_t first[NPU_MAX_RANK], both[NPU_MAX_RANK];
    npu_value from = onnx_permuted(r, v, first);
    bool changes = false;
    for (uint32_t i = 0; from.id && i < rank; i++) {
        bool is_dim = order[i] >= 0 && order[i] < rank && rank == onnx_rank(r, v);
        both[i] = is_dim ? first[order[i]] : 0;
        changes = changes || both[i] != i;
        from = is_dim ? from : onnx_none(); /* the op says what is wrong with it */
    }
    if (from.id && !changes) {
        return from;
    }
    return onnx_emit(r, NULL, "aten.permute.default(v, I)", from.id ? from : v, from.id ? both : order, rank);
}

/* From begin on `len` elements along a dim. */
static npu_value onnx_slice(onnx_reader *r, npu_value v, int64_t dim, int64_t begin, int64_t end)
{
    return onnx_emit(r, NULL, "aten.slice.Tensor(v, i, i, i)", v, dim, begin, end);
}

static npu_value onnx_select(onnx_reader *r, npu_value v, int64_t dim, const int64_t *index, uint32_t count)
{
    return onnx_emit(r, NULL, "aten.index_select.default(v, i, v)", v, dim, onnx_int_constant(r, index, count));
}

static npu_value onnx_binary(onnx_reader *r, const char *op, npu_value a, npu_value b)
{
    char text[64];
    snprintf(text, sizeof text, "aten.%s.Tensor(v, v)", op);
    return onnx_emit(r, NULL, text, a, b);
}

static npu_value onnx_unary(onnx_reader *r, const char *op, npu_value a)
{
    char text[64];
    snprintf(text, sizeof text, "aten.%s.default(v)", op);
    return onnx_emit(r, NULL, text, a);
}

/* ---- ops: elementwise -------------------------------------------------------------------------------------------- */

/* Sum, Max, Min: any number of operands, two at a time. */
static npu_value onnx_variadic(onnx_reader *r, onnx_node *n)
{
    npu_value v = onnx_x(n, 0);
    for (uint32_t i = 1; i < n->num_x; i++) {
        v = onnx_emit(r, n, n->row->text, v, n->x[i]);
    }
    return v;
}

static npu_value onnx_mean(onnx_reader *r, onnx_node *n)
{
    return onnx_binary(r, "div", onnx_variadic(r, n), onnx_like(r, onnx_x(n, 0), n->num_x));
}

static bool onnx_is_float(const onnx_reader *r, npu_value v) { return npu_dtype_is_float(onnx_type(r, v)); }

/* Integers divide towards zero. */
static npu_value onnx_div(onnx_reader *r, onnx_node *n)
{
    return onnx_is_float(r, onnx_x(n, 0)) ? onnx_emit(r, n, "aten.div.Tensor(0, 1)")
                                          : onnx_emit(r, n, "aten.div.Tensor_mode(0, 1, rounding_mode=s)", "trunc");
}

static void onnx_check_dtypes(onnx_reader *r, const onnx_node *n);

/* x times its own sigmoid or hard sigmoid has a name of its own, which files do without. */
static npu_value onnx_mul(onnx_reader *r, onnx_node *n)
{
    onnx_check_dtypes(r, n);
    for (uint32_t i = 0; i < 2 && r->status == NPU_OK; i++) {
        npu_op op = npu_value_producer(r->g, onnx_x(n, i), NULL);
        npu_kind kind = npu_op_kind(r->g, op);
        if ((kind == NPU_ATEN_SIGMOID || kind == NPU_ATEN_HARDSIGMOID) && onnx_type(r, onnx_x(n, i)) == NPU_F32 &&
            npu_op_operand_value(r->g, op, 0).id == onnx_x(n, 1 - i).id) {
            return onnx_unary(r, kind == NPU_ATEN_SIGMOID ? "silu" : "hardswish", onnx_x(n, 1 - i));
        }
    }
    return onnx_emit(r, n, "aten.mul.Tensor(0, 1)");
}

static npu_value onnx_mod(onnx_reader *r, onnx_node *n)
{
    return onnx_emit(r, n, onnx_i(r, n, "fmod", 0) ? "aten.fmod.Tensor(0, 1)" : "aten.remainder.Tensor(0, 1)");
}

/* The result is of the base's dtype; the exponent may be of another. By one number that is known, the squares of every norm, it
   is an op that knows it, too. */
static npu_value onnx_pow(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), by = onnx_x(n, 1);
    size_t len = 0;
    double exponent = 0;
    if (onnx_is_float(r, x) && onnx_rank(r, by) <= onnx_rank(r, x) && onnx_is_known(r, by)) {
        len = onnx_num_elements(r, by);
    }
    if (len == 1) {
        onnx_known_floats(r, by, "the exponent", &exponent, 1);
        return onnx_emit(r, n, "aten.pow.Tensor_Scalar(0, f)", exponent);
    }
    if (onnx_is_float(r, by) && !onnx_is_float(r, x)) { /* f32 has no room for the integers */
        return onnx_cast(r, onnx_emit(r, n, "aten.pow.Tensor_Tensor(0, v)", onnx_cast(r, by, NPU_F64)), onnx_type(r, x));
    }
    return onnx_cast(r, onnx_emit(r, n, "aten.pow.Tensor_Tensor(0, 1)"), onnx_type(r, x));
}

static npu_value onnx_shift(onnx_reader *r, onnx_node *n)
{
    return onnx_emit(r, n, onnx_s_is(r, n, "direction", "", "LEFT") ? "aten.bitwise_left_shift.Tensor(0, 1)"
                                                                     : "aten.bitwise_right_shift.Tensor(0, 1)");
}

/* Is a bound a number that is known, or none? NaN is no bound. */
static bool onnx_bound(onnx_reader *r, npu_value bound, double *out)
{
    bool is_number = !bound.id || (onnx_is_known(r, bound) && onnx_rank(r, bound) == 0);
    if (is_number && bound.id) {
        onnx_known_floats(r, bound, "a bound", out, 1);
    }
    return is_number && *out == *out;
}

/* The bounds are attributes before opset 11. As numbers they can be folded into the op that makes x. */
static npu_value onnx_clip(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), low = onnx_x(n, 1), high = onnx_x(n, 2);
    double min = r->opset < 11 ? onnx_f(r, n, "min", -HUGE_VAL) : -HUGE_VAL;
    double max = r->opset < 11 ? onnx_f(r, n, "max", HUGE_VAL) : HUGE_VAL;
    if (r->opset >= 11 && !low.id && !high.id) {
        return x;
    }
    if (r->opset >= 11 && !(onnx_is_float(r, x) && onnx_bound(r, low, &min) && onnx_bound(r, high, &max))) {
        return onnx_emit(r, n, "aten.clamp.Tensor(0, 1, 2)");
    }
    return onnx_emit(r, n, "aten.clamp.default(v, f, f)", x, min, max);
}

static npu_value onnx_is_inf(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), is = onnx_unary(r, "isinf", x), zero = onnx_like(r, x, 0);
    if (!onnx_i(r, n, "detect_negative", 1)) {
        is = onnx_emit(r, n, "aten.logical_and.default(v, v)", is, onnx_binary(r, "gt", x, zero));
    }
    if (!onnx_i(r, n, "detect_positive", 1)) {
        is = onnx_emit(r, n, "aten.logical_and.default(v, v)", is, onnx_binary(r, "lt", x, zero));
    }
    return is;
}

static npu_value onnx_where(onnx_reader *r, npu_value condition, npu_value a, npu_value b)
{
    return onnx_emit(r, NULL, "aten.where.self(v, v, v)", condition, a, b);
}

/* x where it is above alpha, else 0, which NaN becomes, too. */
static npu_value onnx_thresholded(onnx_reader *r, onnx_node *n)
{
    npu_value is_above = onnx_emit(r, n, "aten.gt.Scalar(0, alpha:1.0)");
    return onnx_where(r, is_above, onnx_x(n, 0), onnx_like(r, onnx_x(n, 0), 0));
}

/* Of NaN it is NaN. */
static npu_value onnx_sign(onnx_reader *r, onnx_node *n)
{
    npu_value y = onnx_emit(r, n, "aten.sign.default(0)");
    return onnx_is_float(r, y) ? onnx_where(r, onnx_unary(r, "isnan", onnx_x(n, 0)), onnx_x(n, 0), y) : y;
}

/* Integers, too, by bounds that are none. */
static npu_value onnx_shrink(onnx_reader *r, onnx_node *n)
{
    npu_dtype dtype = onnx_type(r, onnx_x(n, 0));
    npu_value x = npu_dtype_is_float(dtype) ? onnx_x(n, 0) : onnx_cast(r, onnx_x(n, 0), NPU_F64), bias = onnx_like(r, x, onnx_f(r, n, "bias", 0));
    double lambd = onnx_f(r, n, "lambd", 0.5);
    npu_value low = onnx_where(r, onnx_binary(r, "lt", x, onnx_like(r, x, -lambd)), onnx_binary(r, "add", x, bias), onnx_like(r, x, 0));
    x = onnx_where(r, onnx_binary(r, "gt", x, onnx_like(r, x, lambd)), onnx_binary(r, "sub", x, bias), low);
    return onnx_cast(r, x, dtype);
}

/* v with its dims from `axis` of x on, as ops broadcast before opset 7. */
static npu_value onnx_from_axis(onnx_reader *r, npu_value v, npu_value x, int64_t axis)
{
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank = onnx_rank(r, v), count = onnx_rank(r, x) - (uint32_t)axis;
    for (uint32_t i = 0; i < count; i++) {
        dims[i] = i < rank ? onnx_dim(r, v, i) : 1;
    }
    return count > rank ? onnx_reshape(r, v, dims, count) : v;
}

static bool onnx_is_one(const onnx_reader *r, npu_value v) { return onnx_num_elements(r, v) == 1; }

static npu_value onnx_prelu(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), slope = onnx_x(n, 1);
    double one;
    if (onnx_is_float(r, x) && onnx_is_known(r, slope) && onnx_is_one(r, slope) && onnx_rank(r, slope) <= onnx_rank(r, x)) {
        onnx_known_floats(r, slope, "the slope", &one, 1);
        return onnx_emit(r, n, "aten.leaky_relu.default(0, f)", one);
    }
    slope = r->opset < 7 && onnx_rank(r, slope) == 1 && onnx_rank(r, x) > 1 ? onnx_from_axis(r, slope, x, 1) : slope;
    return onnx_where(r, onnx_binary(r, "lt", x, onnx_like(r, x, 0)), onnx_binary(r, "mul", x, slope), x);
}

static npu_value onnx_softsign(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    return onnx_binary(r, "div", x, onnx_emit(r, n, "aten.add.Scalar(v, f)", onnx_unary(r, "abs", x), 1.0));
}

static npu_value onnx_hard_sigmoid(onnx_reader *r, onnx_node *n)
{
    npu_value v;
    if (fabs(onnx_f(r, n, "alpha", 0.2) * 6 - 1) < 1e-6 && onnx_f(r, n, "beta", 0.5) == 0.5) {
        return onnx_unary(r, "hardsigmoid", onnx_x(n, 0)); /* as exporters write it */
    }
    v = onnx_emit(r, n, "aten.mul.Scalar(0, alpha:0.2)");
    return onnx_emit(r, n, "aten.clamp.default(v, f, f)", onnx_emit(r, n, "aten.add.Scalar(v, beta:0.5)", v), 0.0, 1.0);
}

static npu_value onnx_widened(onnx_reader *r, npu_value v);

/* Floats rounded to those of few bits: what is beyond them is the largest, or no number. */
static npu_value onnx_narrow_floats(onnx_reader *r, npu_value x, const onnx_narrow *t, bool saturates)
{
    npu_value parts[2], unit, back, y = onnx_cast(r, x, NPU_F32);
    y = saturates ? onnx_emit(r, NULL, "aten.clamp.default(v, f, f)", y, -t->most, t->most) : y;
    onnx_emit_many(r, NULL, parts, 2, "aten.frexp.Tensor(v)", y);
    unit = onnx_emit(r, NULL, "aten.clamp_min.default(v, i)", parts[1], (int64_t)t->least + 1);
    unit = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", unit, (int64_t)t->mantissa + 1);
    back = onnx_unary(r, "round", onnx_binary(r, "ldexp", y, onnx_unary(r, "neg", unit)));
    y = onnx_binary(r, "ldexp", back, unit);
    if (!saturates) {
        npu_value over = onnx_emit(r, NULL, "aten.gt.Scalar(v, f)", onnx_unary(r, "abs", y), t->most);
        npu_value beyond = onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", y, t->has_infinity ? HUGE_VAL : (double)NAN);
        y = onnx_where(r, over, beyond, y);
    }
    if (t->bits == 4) { /* which have no NaN */
        y = onnx_where(r, onnx_unary(r, "isnan", y), onnx_like(r, y, -0.0), y);
    }
    return onnx_cast(r, y, NPU_F16);
}

/* Integers of few bits, of floats or others; what is beyond them is the next, or counts in a circle. */
static npu_value onnx_narrow_integers(onnx_reader *r, npu_value x, const onnx_narrow *t, bool saturates)
{
    int64_t low = t->is_signed ? (int64_t)-t->most - 1 : 0;
    x = onnx_is_float(r, x) ? onnx_unary(r, "round", x) : onnx_cast(r, onnx_widened(r, x), NPU_I32);
    if (saturates) {
        x = onnx_emit(r, NULL, "aten.clamp.default(v, f, f)", x, (double)low, t->most);
    } else {
        x = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", onnx_cast(r, x, NPU_I32), low);
        x = onnx_emit(r, NULL, "aten.bitwise_and.Scalar(v, i)", x, ((int64_t)1 << t->bits) - 1);
        x = onnx_emit(r, NULL, "aten.add.Scalar(v, i)", x, low);
    }
    return onnx_cast(r, x, (npu_dtype)t->dtype);
}

/* Numbers as a dtype of few bits has them, in the one that holds it. */
static npu_value onnx_narrowed(onnx_reader *r, npu_value x, const onnx_narrow *t, bool saturates)
{
    x = t->mantissa ? onnx_narrow_floats(r, x, t, saturates || t->bits == 4) : onnx_narrow_integers(r, x, t, saturates);
    return onnx_mark_as(r, x, t);
}

/* As a cast does it. */
static npu_value onnx_narrow_cast(onnx_reader *r, const onnx_node *n, const onnx_narrow *t)
{
    return onnx_narrowed(r, onnx_x(n, 0), t, t->mantissa && onnx_i(r, n, "saturate", 1) != 0);
}

static npu_value onnx_cast_op(onnx_reader *r, onnx_node *n)
{
    int64_t to = onnx_i(r, n, "to", 0);
    const onnx_narrow *narrow = onnx_narrow_of(to);
    return narrow ? onnx_narrow_cast(r, n, narrow) : onnx_cast(r, onnx_widened(r, onnx_x(n, 0)), onnx_dtype(r, to));
}

static npu_value onnx_cast_like(onnx_reader *r, onnx_node *n)
{
    const onnx_narrow *narrow = onnx_marked(r, onnx_x(n, 1));
    return narrow ? onnx_narrow_cast(r, n, narrow)
                  : onnx_cast(r, onnx_widened(r, onnx_x(n, 0)), onnx_type(r, onnx_x(n, 1)));
}

static npu_value onnx_bit_cast(onnx_reader *r, onnx_node *n)
{
    npu_dtype to = onnx_dtype(r, onnx_i(r, n, "to", 0));
    if (r->status == NPU_OK && npu_dtype_bits(to) != npu_dtype_bits(onnx_type(r, onnx_x(n, 0)))) {
        return onnx_refuse(r, "a dtype of another size is not supported");
    }
    return onnx_emit(r, n, "aten.view.dtype(0, t)", (int)to);
}

static npu_value onnx_identity(onnx_reader *r, onnx_node *n)
{
    (void)r;
    return onnx_x(n, 0);
}

/* ---- ops: softmax, reduction ------------------------------------------------------------------------------------- */

static npu_value onnx_hardmax(onnx_reader *r, npu_value x, int64_t axis)
{
    int64_t dims[NPU_MAX_RANK];
    if (onnx_dim_if_any(r, x, axis) == 0) {
        return x;
    }
    npu_value best = onnx_emit(r, NULL, "aten.argmax.default(v, i, b)", x, axis, true);
    npu_value all = onnx_emit(r, NULL, "aten.arange.default(i)", onnx_dim(r, x, (uint32_t)axis));
    for (uint32_t i = 0; i < NPU_MAX_RANK; i++) {
        dims[i] = i == axis ? -1 : 1;
    }
    return onnx_cast(r, onnx_binary(r, "eq", best, onnx_reshape(r, all, dims, onnx_rank(r, x))), onnx_type(r, x));
}

static npu_value onnx_softmax_along(onnx_reader *r, const onnx_node *n, npu_value x, int64_t axis)
{
    return n->row->text ? onnx_emit(r, n, n->row->text, x, axis) : onnx_hardmax(r, x, axis);
}

/* All dims from the axis on are one; those before it may have names. */
static npu_value onnx_softmax_over(onnx_reader *r, const onnx_node *n, npu_value x, int64_t axis)
{
    uint32_t rank = onnx_rank(r, x);
    int64_t dims[NPU_MAX_RANK], flat[NPU_MAX_RANK];
    if (axis + 1 == (int64_t)rank) {
        return onnx_softmax_along(r, n, x, axis);
    }
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < axis ? onnx_dim_if_any(r, x, i) : onnx_dim(r, x, i);
        flat[i <= axis ? i : axis] = i <= axis ? dims[i] : flat[axis] * dims[i];
    }
    return onnx_reshape(r, onnx_softmax_along(r, n, onnx_reshape(r, x, flat, (uint32_t)axis + 1), axis), dims, rank);
}

/* Before opset 13 over all dims from the axis on. */
static npu_value onnx_softmax(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", r->opset < 13 ? 1 : -1), onnx_rank(r, x));
    return r->opset < 13 ? onnx_softmax_over(r, n, x, axis) : onnx_softmax_along(r, n, x, axis);
}

/* Halves as f32: squares of more than 255 are beyond them. */
static npu_value onnx_wide(onnx_reader *r, npu_value x)
{
    return onnx_is_float(r, x) && npu_dtype_bits(onnx_type(r, x)) < 32 ? onnx_cast(r, x, NPU_F32) : x;
}

static npu_value onnx_product(onnx_reader *r, npu_value x, const int64_t *axes, uint32_t count, bool keep)
{
    npu_value v = x;
    for (uint32_t i = 0; i < count; i++) {
        v = onnx_emit(r, NULL, "aten.prod.dim_int(v, i, b, dtype=t)", v, axes[i], true, (int)onnx_type(r, x));
    }
    return keep || !count ? v : onnx_emit(r, NULL, "aten.squeeze.dims(v, I)", v, axes, count);
}

static npu_value onnx_sum(onnx_reader *r, npu_value x, const int64_t *axes, uint32_t count, bool keep)
{
    return onnx_emit(r, NULL, "aten.sum.dim_IntList(v, I, b, dtype=t)", x, axes, count, keep, (int)onnx_type(r, x));
}

/* The largest or smallest of none, which ATen refuses: the least number of the dtype, or the most, in a sum's shape. */
static npu_value onnx_limit(onnx_reader *r, npu_value sum, npu_dtype dtype, bool is_least)
{
    uint32_t bits = npu_dtype_bits(dtype);
    int64_t most = npu_dtype_is_signed(dtype) ? (int64_t)(UINT64_MAX >> (65 - bits)) : 0;
    double infinity = is_least ? -HUGE_VAL : HUGE_VAL;
    npu_value v;
    if (npu_dtype_is_float(dtype)) {
        return onnx_emit(r, NULL, "aten.full_like.default(v, f, dtype=t)", sum, infinity, (int)dtype);
    }
    v = onnx_emit(r, NULL, "aten.full_like.default(v, i, dtype=t)", sum, most, (int)dtype);
    return npu_dtype_is_signed(dtype) == is_least ? onnx_unary(r, "bitwise_not", v) : v;
}

static bool onnx_is_none_of(const onnx_reader *r, npu_value x, const int64_t *axes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (onnx_dim_if_any(r, x, axes[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The mean of integers is one, rounded towards zero. */
static npu_value onnx_integer_mean(onnx_reader *r, npu_value x, const int64_t *axes, uint32_t count, bool keep)
{
    int64_t num = 1;
    for (uint32_t i = 0; i < count; i++) {
        num *= onnx_dim(r, x, (uint32_t)axes[i]);
    }
    x = onnx_sum(r, x, axes, count, keep);
    return num ? onnx_emit(r, NULL, "aten.div.Tensor_mode(v, v, rounding_mode=s)", x, onnx_like(r, x, (double)num), "trunc") : x;
}

/* x and behind it, along dims that data may leave empty, what is never the largest, or the smallest. */
static npu_value onnx_never_empty(onnx_reader *r, npu_value x, const int64_t *axes, uint32_t count, bool is_largest)
{
    for (uint32_t i = 0; i < count; i++) {
        if (onnx_is_counted(r, x, axes[i], axes[i] + 1)) {
            const npu_value parts[2] = { x, onnx_limit(r, onnx_sum(r, x, axes + i, 1, true), onnx_type(r, x),
                                                       is_largest) };
            x = onnx_emit(r, NULL, "aten.cat.default(V, i)", parts, (uint32_t)2, axes[i]);
        }
    }
    return x;
}

static npu_value onnx_reduce_by(onnx_reader *r, const char *how, npu_value x, const int64_t *axes, uint32_t count, bool keep)
{
    if (strncmp(how, "aten.am", 7) == 0 && onnx_is_none_of(r, x, axes, count)) {
        return onnx_limit(r, onnx_sum(r, x, axes, count, keep), onnx_type(r, x), how[7] == 'a');
    }
    if (strncmp(how, "aten.am", 7) == 0) {
        x = onnx_never_empty(r, x, axes, count, how[7] == 'a');
    }
    if (strncmp(how, "aten.mean", 9) == 0 && !onnx_is_float(r, x)) {
        return onnx_integer_mean(r, x, axes, count, keep);
    }
    if (strcmp(how, "prod") == 0) {
        return onnx_product(r, x, axes, count, keep);
    }
    if (strcmp(how, "l1") == 0) {
        return onnx_sum(r, onnx_unary(r, "abs", x), axes, count, keep);
    }
    if (strcmp(how, "squares") == 0 || strcmp(how, "l2") == 0) {
        x = onnx_wide(r, x);
        npu_value v = onnx_sum(r, onnx_binary(r, "mul", x, x), axes, count, keep);
        return how[0] == 'l' ? onnx_unary(r, "sqrt", v) : v;
    }
    if (strcmp(how, "sum") == 0 || strcmp(how, "log") == 0) {
        npu_value v = onnx_sum(r, x, axes, count, keep);
        return how[0] == 'l' ? onnx_unary(r, "log", v) : v;
    }
    return onnx_emit(r, NULL, how, x, axes, count, keep);
}

/* text is how: a word of onnx_reduce_by, or the op. */
static npu_value onnx_reduce(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    uint32_t rank = onnx_rank(r, x);
    int64_t axes[NPU_MAX_RANK];
    uint32_t count = onnx_axes(r, n, 1, rank, axes);
    bool keep = onnx_i(r, n, "keepdims", 1) != 0;
    if (!count && onnx_i(r, n, "noop_with_empty_axes", 0)) { /* of one element each: roots and squares are taken all the same */
        x = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", x, (int64_t)rank);
        axes[count++] = rank;
        keep = false;
    }
    for (uint32_t i = 0; !count && i < rank; i++) {
        axes[i] = i;
    }
    return onnx_cast(r, onnx_reduce_by(r, n->row->text, x, axes, count ? count : rank, keep), onnx_type(r, x));
}

/* The last of the largest is the first one from behind. */
static npu_value onnx_argmax(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), v;
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x));
    bool is_last = onnx_i(r, n, "select_last_index", 0) != 0;
    x = is_last ? onnx_emit(r, n, "aten.flip.default(v, I)", x, &axis, (uint32_t)1) : x;
    v = onnx_emit(r, n, n->row->text, x, axis, onnx_i(r, n, "keepdims", 1) != 0);
    return is_last ? onnx_emit(r, n, "aten.rsub.Scalar(v, i)", v, onnx_dim(r, x, (uint32_t)axis) - 1) : v;
}

/* text: the op. What is exclusive begins with what changes nothing, and leaves the last element out. */
static npu_value onnx_cumulate(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_type(r, onnx_x(n, 0)) == NPU_BOOL ? onnx_cast(r, onnx_x(n, 0), NPU_I64) : onnx_x(n, 0); /* as PyTorch does */
    int64_t axis = onnx_axis(r, onnx_known_int(r, onnx_x(n, 1), "the axis"), onnx_rank(r, x));
    int64_t pads[2 * NPU_MAX_RANK] = { 0 };
    bool is_reverse = onnx_i(r, n, "reverse", 0) != 0;
    x = is_reverse ? onnx_emit(r, n, "aten.flip.default(v, I)", x, &axis, (uint32_t)1) : x;
    if (onnx_i(r, n, "exclusive", 0)) {
        uint32_t count = onnx_rank(r, x) - (uint32_t)axis;
        pads[2 * count - 2] = onnx_dim_if_any(r, x, axis) != 0;
        x = onnx_slice(r, x, axis, 0, -1);
        x = onnx_emit(r, n, "aten.constant_pad_nd.default(v, I, f)", x, pads, 2 * count,
                      strstr(n->row->text, "prod") ? 1.0 : 0.0);
    }
    x = onnx_emit(r, n, n->row->text, x, axis, (int)onnx_type(r, x));
    return is_reverse ? onnx_emit(r, n, "aten.flip.default(v, I)", x, &axis, (uint32_t)1) : x;
}

/* ---- ops: windows ------------------------------------------------------------------------------------------------ */

/* Of convolutions and pools: up to three dims behind batch and channels. */
typedef struct onnx_window {
    uint32_t rank;
    int64_t kernel[3], stride[3], dilation[3], begin[3], end[3]; /* the last two: what is added before and behind */
} onnx_window;

static bool onnx_is_symmetric(const onnx_window *w)
{
    return memcmp(w->begin, w->end, w->rank * sizeof w->begin[0]) == 0;
}

static void onnx_auto_pad(onnx_reader *r, const onnx_node *n, npu_value x, onnx_window *w)
{
    onnx_span mode = onnx_s(r, n, "auto_pad", "NOTSET");
    bool is_upper = onnx_is(mode, "SAME_UPPER");
    for (uint32_t i = 0; i < w->rank && (is_upper || onnx_is(mode, "SAME_LOWER")); i++) {
        int64_t size = onnx_dim(r, x, i + 2), out = (size + w->stride[i] - 1) / w->stride[i];
        int64_t total = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - size;
        total = total < 0 ? 0 : total;
        w->begin[i] = is_upper ? total / 2 : total - total / 2;
        w->end[i] = total - w->begin[i];
    }
}

/* The kernel's sizes are an attribute, or the last dims of weights. */
static bool onnx_window_of(onnx_reader *r, const onnx_node *n, npu_value x, npu_value weights, onnx_window *w)
{
    int64_t pads[6];
    uint32_t rank = onnx_rank(r, x);
    memset(w, 0, sizeof *w);
    if (rank < 3 || rank > 5) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "a window needs 3 to 5 dims of its input, which has %u", (unsigned)rank);
        return false;
    }
    w->rank = rank - 2;
    onnx_ints_or(r, n, "kernel_shape", w->kernel, w->rank, 0);
    onnx_ints_or(r, n, "strides", w->stride, w->rank, 1);
    onnx_ints_or(r, n, "dilations", w->dilation, w->rank, 1);
    onnx_ints_or(r, n, "pads", pads, 2 * w->rank, 0);
    for (uint32_t i = 0; i < w->rank && r->status == NPU_OK; i++) {
        if (weights.id && w->kernel[i] != 0 && w->kernel[i] != onnx_dim(r, weights, i + 2)) {
            onnx_fail(r, NPU_ERR_ATTRIBUTE, "kernel_shape has %lld, the weight's dim %u is %lld", (long long)w->kernel[i],
                      (unsigned)i + 2, (long long)onnx_dim(r, weights, i + 2));
        }
        w->kernel[i] = weights.id ? onnx_dim(r, weights, i + 2) : w->kernel[i];
        w->begin[i] = pads[i];
        w->end[i] = pads[i + w->rank];
        if (w->begin[i] != (int32_t)w->begin[i] || w->end[i] != (int32_t)w->end[i]) {
            onnx_fail(r, NPU_ERR_ATTRIBUTE, "padding of %lld and %lld", (long long)w->begin[i], (long long)w->end[i]);
        }
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] > INT32_MAX || w->stride[i] > INT32_MAX ||
            w->dilation[i] > INT32_MAX) {
            onnx_fail(r, NPU_ERR_ATTRIBUTE, "a window of size %lld, stride %lld, dilation %lld", (long long)w->kernel[i],
                      (long long)w->stride[i], (long long)w->dilation[i]);
        }
    }
    if (r->status == NPU_OK) {
        onnx_auto_pad(r, n, x, w);
    }
    return r->status == NPU_OK;
}

/* x with what the window adds; it adds nothing then. */
static npu_value onnx_padded(onnx_reader *r, npu_value x, onnx_window *w, double value)
{
    int64_t pads[6];
    bool is_any = false;
    for (uint32_t i = 0; i < w->rank; i++) {
        uint32_t at = 2 * (w->rank - 1 - i);
        pads[at] = w->begin[i];
        pads[at + 1] = w->end[i];
        is_any = is_any || pads[at] || pads[at + 1];
        w->begin[i] = w->end[i] = 0;
    }
    if (!is_any) {
        return x;
    }
    return onnx_is_float(r, x) ? onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, f)", x, pads, 2 * w->rank, value)
                               : onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, i)", x, pads, 2 * w->rank, (int64_t)value);
}

static npu_value onnx_convolve(onnx_reader *r, const onnx_node *n, npu_value x, npu_value weight, npu_value bias)
{
    static const int64_t zeros[3];
    onnx_window w;
    if (!onnx_window_of(r, n, x, weight, &w)) {
        return onnx_none();
    }
    x = onnx_is_symmetric(&w) ? x : onnx_padded(r, x, &w, 0);
    return onnx_emit(r, n, "aten.convolution.default(v, v, v, I, I, I, b, I, group:1)", x, weight, bias, w.stride, w.rank, w.begin,
                     w.rank, w.dilation, w.rank, false, zeros, w.rank);
}

static npu_value onnx_conv(onnx_reader *r, onnx_node *n) { return onnx_convolve(r, n, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2)); }

/* Sizes that the result must have, and with them what is cut off. */
static void onnx_transposed_size(onnx_reader *r, const onnx_node *n, npu_value x, onnx_window *w, int64_t *extra)
{
    int64_t shape[3], given = onnx_ints(r, n, "output_shape", shape, 3);
    bool is_upper = onnx_s_is(r, n, "auto_pad", "NOTSET", "SAME_UPPER"), is_lower = onnx_s_is(r, n, "auto_pad", "", "SAME_LOWER");
    for (uint32_t i = 0; i < w->rank && (given || is_upper || is_lower); i++) {
        int64_t size = onnx_dim(r, x, i + 2), want = given ? shape[i] : size * w->stride[i];
        int64_t cut = (size - 1) * w->stride[i] + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - want;
        extra[i] += cut < 0 ? -cut : 0;
        cut = cut < 0 ? 0 : cut;
        w->begin[i] = is_upper ? cut / 2 : cut - cut / 2;
        w->end[i] = cut - w->begin[i];
    }
}

/* As the op has it where it can: as much is cut off on both sides, and what is added behind is less than a step. Else
   whole, with what is added behind as zeros, and then cut to size. */
static npu_value onnx_conv_transpose(onnx_reader *r, onnx_node *n)
{
    static const int64_t zeros[3];
    npu_value x = onnx_x(n, 0), v;
    onnx_window w;
    int64_t extra[3] = { 0, 0, 0 }, behind[3] = { 0, 0, 0 }, pads[6];
    bool is_plain = true;
    if (!onnx_window_of(r, n, x, onnx_x(n, 1), &w)) {
        return onnx_none();
    }
    onnx_ints_or(r, n, "output_padding", extra, w.rank, 0);
    onnx_transposed_size(r, n, x, &w, extra);
    for (uint32_t i = 0; i < w.rank; i++) {
        pads[2 * (w.rank - 1 - i)] = -w.begin[i];
        pads[2 * (w.rank - 1 - i) + 1] = extra[i] - w.end[i];
        behind[i] = w.begin[i] - w.end[i] + extra[i];
        is_plain = is_plain && w.begin[i] >= 0 && behind[i] >= 0 && (behind[i] < w.stride[i] || behind[i] < w.dilation[i]);
    }
    if (is_plain) {
        return onnx_emit(r, n, "aten.convolution.default(0, 1, 2, I, I, I, b, I, group:1)", w.stride, w.rank, w.begin, w.rank,
                         w.dilation, w.rank, true, behind, w.rank);
    }
    v = onnx_emit(r, n, "aten.convolution.default(0, 1, _, I, I, I, b, I, group:1)", w.stride, w.rank, zeros, w.rank, w.dilation,
                  w.rank, true, zeros, w.rank);
    v = onnx_emit(r, n, "aten.constant_pad_nd.default(v, I)", v, pads, 2 * w.rank);
    if (onnx_x(n, 2).id) {
        int64_t dims[4] = { -1, 1, 1, 1 };
        v = onnx_binary(r, "add", v, onnx_reshape(r, onnx_x(n, 2), dims, w.rank + 1));
    }
    return v;
}

/* Indices of a plane of x with what is added become those of the tensor; column by column where the node says so. */
static npu_value onnx_pool_indices(onnx_reader *r, const onnx_node *n, const onnx_window *w, npu_value at)
{
    npu_value x = onnx_x(n, 0), sum;
    uint32_t rank = onnx_rank(r, x);
    bool is_column_first = onnx_i(r, n, "storage_order", 0) != 0;
    int64_t plane = 1, column, dims[NPU_MAX_RANK] = { 0 }, planes = onnx_dim(r, x, 0) * onnx_dim(r, x, 1);
    for (uint32_t i = 2; i < rank; i++) {
        plane *= onnx_dim(r, x, i);
        dims[i] = 1;
    }
    dims[0] = onnx_dim(r, x, 0);
    dims[1] = onnx_dim(r, x, 1);
    sum = onnx_reshape(r, onnx_emit(r, NULL, "aten.arange.start_step(i, i, i)", (int64_t)0, planes * plane, plane), dims, rank);
    column = plane;
    plane = 1;
    for (uint32_t i = w->rank; i-- > 0;) {
        int64_t size = onnx_dim(r, x, i + 2), whole = size + w->begin[i] + w->end[i];
        npu_value place = i ? onnx_emit(r, NULL, "aten.remainder.Scalar(v, i)", at, whole) : at;
        at = i ? onnx_emit(r, NULL, "aten.floor_divide.Scalar(v, i)", at, whole) : at;
        column /= size;
        place = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", place, w->begin[i]);
        place = onnx_emit(r, NULL, "aten.mul.Scalar(v, i)", place, is_column_first ? column : plane);
        sum = onnx_binary(r, "add", place, sum);
        plane *= size;
    }
    return sum;
}

/* What is added behind, so that ceil_mode's windows, and nothing else, fit: the last begins in x, or in what is added before. */
static void onnx_ceil(onnx_reader *r, npu_value x, onnx_window *w)
{
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t size = onnx_dim(r, x, i + 2), reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t last = size + w->begin[i] + w->end[i] - reach, steps = (last + w->stride[i] - 1) / w->stride[i];
        if (last <= -w->stride[i]) {
            onnx_fail(r, NPU_ERR_SHAPE, "a window of %lld elements does not fit into dim %u of %lld", (long long)reach, (unsigned)i + 2,
                      (long long)size);
        }
        steps -= steps * w->stride[i] >= size + w->begin[i];
        w->end[i] = steps * w->stride[i] + reach - size - w->begin[i];
    }
}

static npu_value onnx_quantised_by(onnx_reader *r, npu_value x, double scale, int64_t zero, npu_dtype dtype);
static npu_value onnx_dequantised_by(onnx_reader *r, npu_value x, double scale, int64_t zero, npu_dtype to);

/* What is added is less than all: integers are as floats meanwhile; bytes in steps of 1, which integer-ops makes bytes of. */
static npu_value onnx_max_pool(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), both[2];
    npu_dtype dtype = onnx_type(r, x);
    onnx_window w, added;
    char text[80];
    bool is_plain, has_indices = n->num_y > 1 && n->y[1].at < n->y[1].end, is_ceil = onnx_i(r, n, "ceil_mode", 0) != 0;
    bool is_bytes;
    if (!onnx_window_of(r, n, x, onnx_none(), &w)) {
        return onnx_none();
    }
    is_plain = onnx_is_symmetric(&w);
    for (uint32_t i = 0; i < w.rank; i++) {
        is_plain = is_plain && w.begin[i] * 2 <= w.kernel[i];
    }
    is_bytes = npu_dtype_is_integer(dtype) && npu_dtype_bits(dtype) == 8;
    x = npu_dtype_is_float(dtype) ? x : is_bytes ? onnx_dequantised_by(r, x, 1, 0, NPU_F32) : onnx_cast(r, x, NPU_F32);
    if (!is_plain && is_ceil) {
        onnx_ceil(r, x, &w);
    }
    added = w;
    x = is_plain ? x : onnx_padded(r, x, &w, -HUGE_VAL);
    snprintf(text, sizeof text, "aten.max_pool%ud%s.default(v, I, I, I, I, b)", (unsigned)w.rank,
             has_indices ? "_with_indices" : "");
    onnx_emit_many(r, n, both, has_indices ? 2 : 1, text, x, w.kernel, w.rank, w.stride, w.rank, w.begin, w.rank, w.dilation,
                   w.rank, is_ceil && is_plain);
    if (has_indices) {
        if (is_plain) { /* the op's own indices leave it out */
            memset(added.begin, 0, sizeof added.begin);
            memset(added.end, 0, sizeof added.end);
        }
        onnx_result(r, n, 1, onnx_pool_indices(r, n, &added, both[1]));
    }
    return is_bytes ? onnx_quantised_by(r, both[0], 1, 0, dtype) : onnx_cast(r, both[0], dtype);
}

/* The sum of each window: a convolution of each channel with ones. */
static npu_value onnx_window_sum(onnx_reader *r, const onnx_node *n, npu_value x, onnx_window w)
{
    static const int64_t zeros[3];
    npu_value ones;
    int64_t kernel[5] = { 1, 1, 1, 1, 1 }, channels = onnx_dim(r, x, 1);
    if (onnx_i(r, n, "ceil_mode", 0)) {
        onnx_ceil(r, x, &w);
    }
    kernel[0] = channels;
    memcpy(kernel + 2, w.kernel, w.rank * sizeof *kernel);
    ones = onnx_emit(r, n, "aten.full.default(I, f, dtype=t)", kernel, w.rank + 2, 1.0, (int)onnx_type(r, x));
    return onnx_emit(r, n, "aten.convolution.default(v, v, _, I, I, I, b, I, i)", onnx_padded(r, x, &w, 0), ones, w.stride, w.rank, zeros,
                     w.rank, w.dilation, w.rank, false, zeros, w.rank, channels);
}

/* Averages with dilations, or of windows that ceil_mode adds behind what is added there: no op has them. What is added counts, or
   does not; what ceil_mode adds never does. */
static npu_value onnx_summed_average(onnx_reader *r, const onnx_node *n, npu_value x, onnx_window w, bool counts_added)
{
    npu_value ones = onnx_emit(r, n, "aten.ones_like.default(v)", x);
    onnx_window whole = w;
    if (onnx_i(r, n, "ceil_mode", 0)) {
        onnx_ceil(r, x, &whole);
    }
    for (uint32_t i = 0; i < w.rank && counts_added; i++) {
        w.end[i] = w.end[i] < whole.end[i] ? w.end[i] : whole.end[i];
    }
    if (counts_added) {
        ones = onnx_padded(r, ones, &w, 1);
    }
    return onnx_binary(r, "div", onnx_window_sum(r, n, x, whole), onnx_window_sum(r, n, ones, w));
}

static npu_value onnx_average(onnx_reader *r, const onnx_node *n, npu_value x, const onnx_window *w, bool counts_added)
{
    char text[80];
    snprintf(text, sizeof text, "aten.avg_pool%ud.default(v, I, I, I, b, b)", (unsigned)w->rank);
    return onnx_emit(r, n, text, x, w->kernel, w->rank, w->stride, w->rank, w->begin, w->rank, onnx_i(r, n, "ceil_mode", 0) != 0,
                     counts_added);
}

/* What is added counts as elements or not; where it differs before and behind, ones say how many there are. */
static npu_value onnx_avg_pool(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), ones;
    bool counts_added = onnx_i(r, n, "count_include_pad", 0) != 0, is_plain, is_dilated = false;
    onnx_window w, again;
    if (!onnx_window_of(r, n, x, onnx_none(), &w)) {
        return onnx_none();
    }
    is_plain = onnx_is_symmetric(&w);
    for (uint32_t i = 0; i < w.rank; i++) {
        is_plain = is_plain && w.begin[i] * 2 <= w.kernel[i];
        is_dilated = is_dilated || w.dilation[i] != 1;
    }
    if (is_dilated || (!is_plain && onnx_i(r, n, "ceil_mode", 0))) {
        return onnx_summed_average(r, n, x, w, counts_added);
    }
    if (is_plain || counts_added) {
        return onnx_average(r, n, is_plain ? x : onnx_padded(r, x, &w, 0), &w, counts_added);
    }
    again = w;
    ones = onnx_padded(r, onnx_emit(r, n, "aten.ones_like.default(v)", x), &again, 0);
    x = onnx_average(r, n, onnx_padded(r, x, &w, 0), &w, true);
    return onnx_binary(r, "div", x, onnx_average(r, n, ones, &again, true));
}

static npu_value onnx_power(onnx_reader *r, npu_value x, double exponent)
{
    return onnx_emit(r, NULL, "aten.pow.Tensor_Scalar(v, f)", x, exponent);
}

static npu_value onnx_lp_pool(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    double p = (double)onnx_i(r, n, "p", 2);
    onnx_window w;
    if (!onnx_window_of(r, n, x, onnx_none(), &w)) {
        return onnx_none();
    }
    x = onnx_window_sum(r, n, onnx_power(r, onnx_unary(r, "abs", onnx_wide(r, x)), p), w);
    return onnx_cast(r, onnx_power(r, x, 1 / p), onnx_type(r, onnx_x(n, 0)));
}

/* Over all dims behind the channels. */
static npu_value onnx_global_pool(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t dims[NPU_MAX_RANK];
    uint32_t count = 0;
    double p = (double)onnx_i(r, n, "p", 2);
    for (uint32_t i = 2; i < onnx_rank(r, x); i++) {
        dims[count++] = i;
    }
    if (n->row->text) {
        return onnx_emit(r, n, n->row->text, x, dims, count, true);
    }
    x = onnx_sum(r, onnx_power(r, onnx_unary(r, "abs", onnx_wide(r, x)), p), dims, count, true);
    return onnx_cast(r, onnx_power(r, x, 1 / p), onnx_type(r, onnx_x(n, 0)));
}

/* Each element goes back to where its index says; sizes are those of the pool's operand, or more. */
static npu_value onnx_max_unpool(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), v;
    uint32_t rank = onnx_rank(r, x);
    int64_t dims[NPU_MAX_RANK], want[NPU_MAX_RANK], pads[2 * NPU_MAX_RANK], all = 1, flat = -1;
    onnx_window w;
    if (!onnx_window_of(r, n, x, onnx_none(), &w)) {
        return onnx_none();
    }
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = onnx_dim(r, x, i);
        dims[i] = i < 2 ? dims[i] : (dims[i] - 1) * w.stride[i - 2] + w.kernel[i - 2] - w.begin[i - 2] - w.end[i - 2];
        want[i] = dims[i];
        all *= dims[i];
    }
    if (onnx_x(n, 2).id && onnx_known(r, onnx_x(n, 2), "output_shape", want, rank) != rank) {
        return onnx_refuse(r, "output_shape has another rank");
    }
    for (uint32_t i = 0; i < rank; i++) {
        pads[2 * (rank - 1 - i)] = 0;
        pads[2 * (rank - 1 - i) + 1] = want[i] - dims[i];
    }
    v = onnx_emit(r, n, "aten.full.default(I, f, dtype=t)", &all, (uint32_t)1, 0.0, (int)onnx_type(r, x));
    v = onnx_emit(r, n, "aten.scatter.src(v, i, v, v)", v, (int64_t)0, onnx_reshape(r, onnx_x(n, 1), &flat, 1),
                  onnx_reshape(r, x, &flat, 1));
    return onnx_emit(r, n, "aten.constant_pad_nd.default(v, I)", onnx_reshape(r, v, dims, rank), pads, 2 * rank);
}

/* ---- ops: normalisation ------------------------------------------------------------------------------------------ */

/* The new running statistics, of the population, too; before opset 14 behind them those of the batch, as ONNX Runtime gives
   them: the mean and 1 / the standard deviation. */
static void onnx_batch_statistics(onnx_reader *r, onnx_node *n, npu_value x)
{
    static const char *const ops[] = { "aten.mean.dim(v, I, b)", "aten.var.correction(v, I, correction=i)" };
    int64_t dims[NPU_MAX_RANK], zero = 0;
    uint32_t count = 0;
    double momentum = onnx_f(r, n, "momentum", 0.9);
    for (uint32_t i = 0; i < onnx_rank(r, x); i++) {
        dims[count] = i;
        count += i != 1;
    }
    for (uint32_t i = 1; i < n->num_y && i < 3; i++) {
        npu_value now = i == 1 ? onnx_emit(r, n, ops[0], x, dims, count, false) : onnx_emit(r, n, ops[1], x, dims, count, zero);
        npu_value old = onnx_emit(r, n, "aten.mul.Scalar(v, f)", onnx_x(n, i + 2), momentum);
        onnx_result(r, n, i, onnx_binary(r, "add", old, onnx_emit(r, n, "aten.mul.Scalar(v, f)", now, 1 - momentum)));
        if (i + 2 < n->num_y) {
            double epsilon = onnx_f(r, n, "epsilon", 1e-5);
            onnx_result(r, n, i + 2, i == 1 ? now : onnx_unary(r, "rsqrt",
                                                               onnx_emit(r, n, "aten.add.Scalar(v, f)", now, epsilon)));
        }
    }
}

/* Before opset 14, to ask for more than one result is to train. */
static npu_value onnx_batch_norm(onnx_reader *r, onnx_node *n)
{
    bool asks_more = r->opset < 14 && n->num_y > 1 && onnx_len(n->y[1]) && !onnx_i(r, n, "is_test", 0);
    bool is_training = onnx_i(r, n, "training_mode", 0) != 0 || asks_more;
    if (onnx_i(r, n, "spatial", 1) != 1) {
        return onnx_refuse(r, "spatial = 0 is not supported");
    }
    if (is_training) {
        onnx_batch_statistics(r, n, onnx_x(n, 0));
        return onnx_emit(r, n, "aten.batch_norm.default(0, 1, 2, _, _, b, f, epsilon:1/100000, b)", true, 0.0, false);
    }
    return onnx_emit(r, n, "aten.batch_norm.default(0, 1, 2, 3, 4, b, f, epsilon:1/100000, b)", false, 0.0, false);
}

static npu_value onnx_instance_norm(onnx_reader *r, onnx_node *n)
{
    return onnx_emit(r, n, "aten.instance_norm.default(0, 1, 2, _, _, b, f, epsilon:1/100000, b)", true, 0.0, false);
}

/* A scale or a bias, which ONNX lets be smaller than what is normalised, as large as that. */
static npu_value onnx_norm_factor(onnx_reader *r, npu_value x, const int64_t *dims, uint32_t rank)
{
    const npu_spec *spec = x.id ? npu_value_spec(r->g, x) : NULL;
    bool is_whole = !spec || spec->rank > rank ||
                    (spec->rank == rank && !memcmp(spec->dims, dims, rank * sizeof *dims));
    return is_whole ? x : onnx_emit(r, NULL, "aten.expand.default(v, I)", x, dims, rank);
}

static npu_value onnx_layer_norm(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), by[2], all[3];
    uint32_t rank = onnx_rank(r, x);
    int64_t dims[NPU_MAX_RANK], axis = onnx_axis(r, onnx_i(r, n, "axis", -1), rank);
    uint32_t count = 0;
    for (uint32_t i = (uint32_t)axis; i < rank; i++) {
        dims[count++] = onnx_dim(r, x, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        by[i] = onnx_norm_factor(r, onnx_x(n, i + 1), dims, count);
    }
    onnx_emit_many(r, n, all, 3, "aten.native_layer_norm.default(0, I, v, v, epsilon:1/100000)", dims, count, by[0],
                   by[1]);
    for (uint32_t i = 1; i < n->num_y && i < 3; i++) {
        onnx_result(r, n, i, onnx_cast(r, all[i], NPU_F32)); /* stash_type is no other in what is to be had */
    }
    return all[0];
}

static npu_value onnx_rms_norm(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), scale = onnx_x(n, 1), both[2];
    uint32_t rank = onnx_rank(r, x), count = 0;
    int64_t dims[NPU_MAX_RANK];
    for (uint32_t i = (uint32_t)onnx_axis(r, onnx_i(r, n, "axis", -1), rank); i < rank; i++) {
        dims[count++] = onnx_dim(r, x, i);
    }
    onnx_emit_many(r, n, both, 2, "aten._fused_rms_norm.default(v, I, _, epsilon:1/100000)", x, dims, count);
    onnx_result(r, n, 1, both[1]);
    return onnx_cast(r, onnx_binary(r, "mul", onnx_cast(r, both[0], onnx_type(r, scale)), scale), onnx_type(r, scale));
}

static npu_value onnx_swish(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    double alpha = onnx_f(r, n, "alpha", 1);
    if (alpha == 1) {
        return onnx_unary(r, "silu", x);
    }
    return onnx_binary(r, "mul", x, onnx_unary(r, "sigmoid", onnx_emit(r, n, "aten.mul.Scalar(v, f)", x, alpha)));
}

/* Scale and bias are of groups before opset 21. */
static npu_value onnx_group_norm(onnx_reader *r, onnx_node *n)
{
    npu_value scale = onnx_x(n, 1), bias = onnx_x(n, 2);
    int64_t groups = onnx_i(r, n, "num_groups", 1), each = groups > 0 ? onnx_dim(r, onnx_x(n, 0), 1) / groups : 1;
    if (r->opset < 21) {
        scale = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i)", scale, each);
        bias = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i)", bias, each);
    }
    return onnx_emit(r, n, "aten.group_norm.default(0, i, v, v, epsilon:1/100000)", groups, scale, bias);
}

static npu_value onnx_lp_norm(onnx_reader *r, onnx_node *n)
{
    int64_t axis = onnx_i(r, n, "axis", -1);
    npu_value norm = onnx_emit(r, n, "aten.linalg_vector_norm.default(0, p:2, I, b)", &axis, (uint32_t)1, true);
    npu_value is_none = onnx_emit(r, n, "aten.eq.Scalar(v, f)", norm, 0.0); /* zeros stay */
    return onnx_binary(r, "div", onnx_x(n, 0), onnx_where(r, is_none, onnx_like(r, norm, 1), norm));
}

static npu_value onnx_mvn(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_wide(r, onnx_x(n, 0)), mean, var;
    int64_t axes[NPU_MAX_RANK] = { 0, 2, 3 };
    uint32_t count = onnx_has(r, n, "axes") ? onnx_axes(r, n, 9, onnx_rank(r, x), axes) : 3;
    mean = onnx_emit(r, n, "aten.mean.dim(v, I, b)", x, axes, count, true);
    var = onnx_emit(r, n, "aten.var.correction(v, I, correction=i, keepdim=b)", x, axes, count, (int64_t)0, true);
    var = onnx_emit(r, n, "aten.add.Scalar(v, f)", onnx_unary(r, "sqrt", var), 1e-9);
    return onnx_cast(r, onnx_binary(r, "div", onnx_binary(r, "sub", x, mean), var), onnx_type(r, onnx_x(n, 0)));
}

/* Squares of neighbouring channels, added up one shift after the other. */
static npu_value onnx_lrn(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_wide(r, onnx_x(n, 0)), squares, sum = { 0 };
    int64_t size = onnx_i(r, n, "size", 1), channels = onnx_dim(r, x, 1), pads[2 * NPU_MAX_RANK] = { 0 };
    uint32_t rank = onnx_rank(r, x);
    if (rank < 2 || size < 1 || size > ONNX_MAX_LIST) {
        return onnx_refuse(r, "a size or rank that is not supported");
    }
    pads[2 * (rank - 2)] = (size - 1) / 2;
    pads[2 * (rank - 2) + 1] = size - 1 - (size - 1) / 2;
    squares = onnx_emit(r, n, "aten.constant_pad_nd.default(v, I)", onnx_binary(r, "mul", x, x), pads, 2 * (rank - 1));
    for (int64_t i = 0; i < size && r->status == NPU_OK; i++) {
        npu_value part = onnx_slice(r, squares, 1, i, i + channels);
        sum = i ? onnx_binary(r, "add", sum, part) : part;
    }
    sum = onnx_emit(r, n, "aten.mul.Scalar(v, f)", sum, onnx_f(r, n, "alpha", 0.0001) / (double)size);
    sum = onnx_emit(r, n, "aten.pow.Tensor_Scalar(v, beta:0.75)", onnx_emit(r, n, "aten.add.Scalar(v, bias:1.0)", sum));
    return onnx_cast(r, onnx_binary(r, "div", x, sum), onnx_type(r, onnx_x(n, 0)));
}

/* Only what is not random. The mask meant nothing before opset 12: ONNX Runtime's is all false there. */
static npu_value onnx_dropout(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    double ratio = 0.5;
    int64_t is_training = onnx_x(n, 2).id ? onnx_known_int(r, onnx_x(n, 2), "training_mode") : 0;
    if (onnx_x(n, 1).id && is_training) {
        onnx_known_floats(r, onnx_x(n, 1), "the ratio", &ratio, 1);
    }
    if (is_training && ratio != 0) {
        return onnx_refuse(r, "training: random numbers are not supported");
    }
    if (n->num_y > 1) {
        const char *mask = r->opset < 12 ? "aten.zeros_like.default(v, dtype=t)" : "aten.ones_like.default(v, dtype=t)";
        onnx_result(r, n, 1, onnx_emit(r, n, mask, x, (int)(r->opset < 10 ? onnx_type(r, x) : NPU_BOOL)));
    }
    return x;
}

/* ---- ops: quantised tensors -------------------------------------------------------------------------------------- */

/* A scale or zero point of rows, columns or channels along a dim of a tensor of that rank. */
static npu_value onnx_along(onnx_reader *r, npu_value v, uint32_t rank, int64_t axis)
{
    int64_t dims[NPU_MAX_RANK];
    for (uint32_t i = 0; i < NPU_MAX_RANK; i++) {
        dims[i] = i == axis ? -1 : 1;
    }
    return onnx_rank(r, v) == 1 && rank ? onnx_reshape(r, v, dims, rank) : v;
}

/* The least and the most that an integer dtype has and an int64_t holds. */
static int64_t onnx_high(npu_dtype dtype)
{
    uint32_t digits = npu_dtype_bits(dtype) - npu_dtype_is_signed(dtype);
    return INT64_MAX >> (63 - (digits < 63 ? digits : 63)); /* 0 of no dtype */
}
static int64_t onnx_low(npu_dtype dtype) { return npu_dtype_is_signed(dtype) ? -onnx_high(dtype) - 1 : 0; }

/* May quantized_decomposed say it, as PyTorch's exporters do? Scales and zero points must be known, and positive; not 4 bits,
   nor floats. What is only known at run time stays composed, as ONNX rounds it: x / scale, where the others round x (1 / scale). */
static bool onnx_is_decomposed(const onnx_reader *r, npu_dtype dtype, npu_value scale, npu_value zero)
{
    size_t len = onnx_num_elements(r, scale);
    bool fits = npu_dtype_is_integer(dtype) && npu_dtype_bits(dtype) >= 8 && npu_dtype_bits(dtype) <= 32 && dtype != NPU_U32;
    fits = fits && onnx_type(r, scale) == NPU_F32 && onnx_is_known(r, scale) && (!zero.id || onnx_is_known(r, zero));
    for (size_t i = 0; fits && i < len; i++) {
        double x = onnx_element_at(NPU_F32, npu_value_data(r->g, scale, NULL), i);
        fits = x > 0 && x < HUGE_VAL;
    }
    return fits && len > 0;
}

/* The first number of a known zero point; none is 0. */
static int64_t onnx_zero_point(onnx_reader *r, npu_value zero)
{
    size_t len;
    const void *data = zero.id ? onnx_data(r, zero, "the zero point", &len) : NULL;
    return data && len ? (int64_t)onnx_element_at(onnx_type(r, zero), data, 0) : 0;
}

/* Known zero points, or none, as many as scales, and shift, in integers that do not wrap. */
static npu_value onnx_zeros(onnx_reader *r, npu_value scale, npu_value zero, int64_t shift)
{
    size_t len = onnx_num_elements(r, scale), count;
    const void *data = zero.id ? onnx_data(r, zero, "the zero point", &count) : NULL;
    int64_t *zeros, dim;
    zeros = (int64_t *)onnx_alloc(r, len * sizeof *zeros);
    for (size_t i = 0; zeros && i < len; i++) {
        zeros[i] = shift + (data && i < count ? (int64_t)onnx_element_at(onnx_type(r, zero), data, i) : 0);
    }
    dim = (int64_t)len;
    return zeros ? npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 1, &dim), zeros) : onnx_none();
}

/* x / scale rounded, moved to the zero point and held within dtype, of aten's ops. */
static npu_value onnx_saturated(onnx_reader *r, npu_value x, npu_value scale, npu_value zero, npu_dtype dtype, int64_t axis)
{
    npu_value v = onnx_binary(r, "div", onnx_cast(r, x, onnx_type(r, scale)), onnx_along(r, scale, onnx_rank(r, x), axis));
    v = onnx_cast(r, onnx_unary(r, "round", v), NPU_F32);
    if (zero.id) {
        v = onnx_binary(r, "add", v, onnx_along(r, onnx_cast(r, zero, NPU_F32), onnx_rank(r, v), axis));
    }
    v = onnx_emit(r, NULL, "aten.clamp.default(v, f, f)", v, (double)onnx_low(dtype), (double)onnx_high(dtype));
    return onnx_cast(r, v, dtype);
}

static npu_value onnx_quantised_by(onnx_reader *r, npu_value x, double scale, int64_t zero, npu_dtype dtype)
{
    return onnx_emit(r, NULL, "quantized_decomposed.quantize_per_tensor.default(v, f, i, i, i, t)", x, scale, zero,
                     onnx_low(dtype), onnx_high(dtype), (int)dtype);
}

/* An input by one scale. ONNX divides by it, PyTorch's op multiplies by one over it, which is another number next to a
   half: of a pixel, whose values are few, a step in a whole plane. What an op makes is not divided first: an op on
   integers is to find the scale there. */
static npu_value onnx_quantised_input(onnx_reader *r, npu_value x, double scale, int64_t zero, npu_dtype dtype)
{
    int exponent;
    if (onnx_type(r, x) == NPU_F32 && frexp(scale, &exponent) != 0.5) { /* by a power of two both are exact */
        x = onnx_emit(r, NULL, "aten.div.Scalar(v, f)", x, scale);
        scale = 1;
    }
    return onnx_quantised_by(r, x, scale, zero, dtype);
}

/* Quantised by one scale, or one for each index of axis. */
static npu_value onnx_quantised(onnx_reader *r, npu_value x, npu_value scale, npu_value zero, npu_dtype dtype, int64_t axis)
{
    int64_t low = onnx_low(dtype), high = onnx_high(dtype);
    bool is_input = npu_value_role(r->g, x) == NPU_ROLE_INPUT;
    if (!onnx_is_decomposed(r, dtype, scale, zero) || onnx_type(r, x) == NPU_F64) {
        return onnx_saturated(r, x, scale, zero, dtype, axis);
    }
    x = npu_dtype_is_float(onnx_type(r, x)) ? x : onnx_cast(r, x, NPU_F32);
    if (onnx_is_one(r, scale)) {
        return (is_input ? onnx_quantised_input : onnx_quantised_by)(
            r, x, onnx_element_at(NPU_F32, npu_value_data(r->g, scale, NULL), 0), onnx_zero_point(r, zero), dtype);
    }
    return onnx_emit(r, NULL, "quantized_decomposed.quantize_per_channel.default(v, v, v, i, i, i, t)", x, scale,
                     onnx_zeros(r, scale, zero, 0), axis, low, high, (int)dtype);
}

static npu_value onnx_dequantised_by(onnx_reader *r, npu_value x, double scale, int64_t zero, npu_dtype to)
{
    npu_dtype dtype = onnx_type(r, x);
    return onnx_emit(r, NULL, "quantized_decomposed.dequantize_per_tensor.default(v, f, i, i, i, t, out_dtype=t)", x, scale, zero,
                     onnx_low(dtype), onnx_high(dtype), (int)dtype, (int)to);
}

static npu_value onnx_dequantised_along(onnx_reader *r, npu_value x, npu_value scales, npu_value zeros, int64_t axis, npu_dtype to)
{
    npu_dtype dtype = onnx_type(r, x);
    return onnx_emit(r, NULL, "quantized_decomposed.dequantize_per_channel.default(v, v, v, i, i, i, t, out_dtype=t)", x, scales, zeros,
                     axis, onnx_low(dtype), onnx_high(dtype), (int)dtype, (int)to);
}

/* Integers of 4 bits that are known, as weights are, in 8: few ops take fewer. */
static npu_value onnx_widened(onnx_reader *r, npu_value v)
{
    npu_spec spec = v.id ? *npu_value_spec(r->g, v) : npu_spec_tensor(NPU_NONE, 0, NULL);
    const uint8_t *data = (const uint8_t *)npu_value_data(r->g, v, NULL);
    size_t count = 0, len = spec.rank ? (size_t)spec.dims[spec.rank - 1] : 1;
    uint8_t *own;
    if (npu_dtype_bits((npu_dtype)spec.dtype) != 4 || !data || npu_spec_len(&spec, &count)) {
        return v;
    }
    own = (uint8_t *)onnx_alloc(r, count);
    for (size_t i = 0; own && i < count; i++) {
        uint8_t x = (uint8_t)(data[i / len * ((len + 1) / 2) + i % len / 2] >> (i % len % 2 * 4) & 15);
        own[i] = (uint8_t)(x & 8 && spec.dtype == NPU_I4 ? x | 0xf0 : x);
    }
    spec.dtype = spec.dtype == NPU_I4 ? NPU_I8 : NPU_U8;
    return own ? npu_constant(r->g, NULL, spec, own) : onnx_none();
}

/* (x - zero) scale, of aten's ops. */
static npu_value onnx_rescaled(onnx_reader *r, npu_value x, npu_value scale, npu_value zero, int64_t axis)
{
    npu_value v = x = onnx_widened(r, x);
    if (zero.id && !onnx_is_float(r, x)) { /* that of floats is 0 */
        zero = onnx_cast(r, onnx_widened(r, zero), NPU_I32);
        v = onnx_binary(r, "sub", onnx_cast(r, x, NPU_I32), onnx_along(r, zero, onnx_rank(r, x), axis));
    }
    return onnx_binary(r, "mul", onnx_cast(r, v, onnx_type(r, scale)), onnx_along(r, scale, onnx_rank(r, x), axis));
}

static npu_value onnx_signed_bytes(onnx_reader *r, npu_value x);

/* The reals that integers stand for. Weights of u8 become i8, which ops on integers take, with a zero point less 128. */
static npu_value onnx_dequantised(onnx_reader *r, npu_value x, npu_value scale, npu_value zero, int64_t axis)
{
    int64_t shift = 0;
    zero = onnx_widened(r, zero); /* x may be in 8 bits already */
    if (!onnx_is_decomposed(r, onnx_type(r, x), scale, zero)) {
        return onnx_rescaled(r, x, scale, zero, axis);
    }
    if (onnx_type(r, x) == NPU_U8 && onnx_rank(r, x) > 1 && onnx_is_known(r, x) && onnx_num_elements(r, x) <= ONNX_MAX_FOLDED &&
        r->desc->backend) {
        x = onnx_signed_bytes(r, x);
        shift = -128;
    }
    if (onnx_is_one(r, scale)) {
        return onnx_dequantised_by(r, x, onnx_element_at(NPU_F32, npu_value_data(r->g, scale, NULL), 0),
                                   onnx_zero_point(r, zero) + shift, NPU_F32);
    }
    return onnx_dequantised_along(r, x, scale, onnx_zeros(r, scale, zero, shift), axis, NPU_F32);
}

/* The axis of the scales of a QuantizeLinear or DequantizeLinear; one scale needs none. */
static int64_t onnx_scale_axis(onnx_reader *r, const onnx_node *n)
{
    return onnx_rank(r, onnx_x(n, 1)) && !onnx_is_one(r, onnx_x(n, 1)) ? onnx_axis(r, onnx_i(r, n, "axis", 1), onnx_rank(r, onnx_x(n, 0))) : 0;
}

/* Scales or zero points of blocks along an axis of x: one for each element. */
static npu_value onnx_of_blocks(onnx_reader *r, npu_value x, npu_value v, int64_t block, int64_t axis)
{
    if (!block || !v.id) {
        return v;
    }
    v = onnx_emit(r, NULL, "aten.repeat_interleave.self_int(v, i, i)", onnx_widened(r, v), block, axis);
    return onnx_slice(r, v, axis, 0, onnx_dim(r, x, (uint32_t)axis));
}

/* To few bits: x / scale and, of integers, the zero point, rounded. */
static npu_value onnx_quantised_narrow(onnx_reader *r, const onnx_node *n, const onnx_narrow *t, int64_t axis)
{
    int64_t block = onnx_i(r, n, "block_size", 0);
    npu_value x = onnx_x(n, 0), zero = onnx_of_blocks(r, x, onnx_x(n, 2), block, axis);
    npu_value scale = onnx_of_blocks(r, x, onnx_x(n, 1), block, axis);
    if (!t) {
        return onnx_refuse(r, "a zero point of floats is not supported");
    }
    x = onnx_binary(r, "div", onnx_cast(r, x, onnx_type(r, scale)), onnx_along(r, scale, onnx_rank(r, x), axis));
    if (zero.id && !t->mantissa) {
        zero = onnx_cast(r, onnx_widened(r, zero), NPU_F32);
        x = onnx_binary(r, "add", onnx_unary(r, "round", x), onnx_along(r, zero, onnx_rank(r, x), axis));
    }
    return onnx_narrowed(r, x, t, onnx_i(r, n, "saturate", 1) != 0);
}

static npu_value onnx_quantize(onnx_reader *r, onnx_node *n)
{
    npu_value zero = onnx_x(n, 2);
    int64_t axis = onnx_scale_axis(r, n), block = onnx_i(r, n, "block_size", 0), to = onnx_i(r, n, "output_dtype", 0);
    const onnx_narrow *narrow = zero.id ? onnx_marked(r, zero) : onnx_narrow_of(to);
    npu_dtype dtype = zero.id ? onnx_type(r, zero) : narrow ? (npu_dtype)narrow->dtype : to ? onnx_dtype(r, to)
        : NPU_U8;
    if (narrow || npu_dtype_is_float(dtype)) {
        return onnx_quantised_narrow(r, n, narrow, axis);
    }
    if (r->status == NPU_OK && block) {
        return onnx_saturated(r, onnx_x(n, 0), onnx_of_blocks(r, onnx_x(n, 0), onnx_x(n, 1), block, axis),
                              onnx_of_blocks(r, onnx_x(n, 0), zero, block, axis), dtype, axis);
    }
    return r->status ? onnx_none() : onnx_quantised(r, onnx_x(n, 0), onnx_x(n, 1), zero, dtype, axis);
}

static npu_value onnx_dequantize(onnx_reader *r, onnx_node *n)
{
    int64_t axis = onnx_scale_axis(r, n), block = onnx_i(r, n, "block_size", 0), to = onnx_i(r, n, "output_dtype", 0);
    npu_value x = onnx_x(n, 0), y = { 0 };
    if (r->status == NPU_OK && block) {
        y = onnx_rescaled(r, x, onnx_of_blocks(r, x, onnx_x(n, 1), block, axis), onnx_of_blocks(r, x, onnx_x(n, 2), block, axis),
                          axis);
    } else if (r->status == NPU_OK) {
        y = onnx_dequantised(r, x, onnx_x(n, 1), onnx_x(n, 2), axis);
    }
    return to ? onnx_cast(r, y, onnx_dtype(r, to)) : y; /* 0: the scale's */
}

/* ---- ops: products ----------------------------------------------------------------------------------------------- */

/* Is this the weight of a quantised model, [K, N] or [N, K] of integers that are dequantised? */
static bool onnx_is_dequantised(const onnx_reader *r, npu_value v)
{
    npu_kind kind = npu_op_kind(r->g, npu_value_producer(r->g, v, NULL));
    return onnx_rank(r, v) == 2 && (kind == NPU_QUANTIZED_DEQUANTIZE_PER_TENSOR || kind == NPU_QUANTIZED_DEQUANTIZE_PER_CHANNEL);
}

static npu_value onnx_transposed(onnx_reader *r, npu_value v)
{
    static const int64_t swap[2] = { 1, 0 };
    return onnx_permute(r, v, swap, 2);
}

/* The transpose of a weight, whose integers are transposed: an op on integers then finds them. */
static npu_value onnx_transposed_weight(onnx_reader *r, npu_value v)
{
    npu_op op = npu_value_producer(r->g, v, NULL);
    npu_op_info info = { 0 };
    npu_op_storage storage;
    npu_value scales = npu_op_operand_value(r->g, op, 1), zeros = npu_op_operand_value(r->g, op, 2), x;
    if (!onnx_is_dequantised(r, v)) {
        return onnx_transposed(r, v);
    }
    x = onnx_transposed(r, npu_op_operand_value(r->g, op, 0));
    memset(&storage, 0, sizeof storage);
    if (npu_op_describe(r->g, op, &info, &storage)) {
        onnx_fail(r, NPU_ERR_NO_MEMORY, "out of memory");
        v = onnx_none();
    } else if (scales.id) {
        v = onnx_dequantised_along(r, x, scales, zeros, 1 - npu_op_int(&info, "axis", 0), (npu_dtype)info.out[0]->dtype);
    } else {
        v = onnx_dequantised_by(r, x, npu_op_float(&info, "scale", 1), npu_op_int(&info, "zero_point", 0), (npu_dtype)info.out[0]->dtype);
    }
    npu_op_storage_free(&storage);
    return v;
}

/* What PyTorch's linear layers become is one again. */
static npu_value onnx_gemm(onnx_reader *r, onnx_node *n)
{
    npu_value a = onnx_x(n, 0), b = onnx_x(n, 1), c = onnx_x(n, 2);
    double alpha = onnx_f(r, n, "alpha", 1), beta = onnx_f(r, n, "beta", 1);
    bool is_transposed = onnx_i(r, n, "transB", 0) != 0;
    bool is_plain = alpha == 1 && (beta == 1 || !c.id) && (is_transposed || onnx_is_dequantised(r, b)) && onnx_rank(r, c) <= 1;
    a = onnx_i(r, n, "transA", 0) ? onnx_transposed(r, a) : a;
    if (is_plain && (!c.id || (onnx_rank(r, c) == 1 && onnx_dim_if_any(r, c, 0) == onnx_dim(r, b, is_transposed ? 0 : 1)))) {
        return onnx_emit(r, n, "aten.linear.default(v, v, v)", a, is_transposed ? b : onnx_transposed_weight(r, b), c);
    }
    b = is_transposed ? onnx_transposed(r, b) : b;
    if (!c.id) {
        return onnx_binary(r, "mul", onnx_emit(r, n, "aten.mm.default(v, v)", a, b), onnx_like(r, a, alpha));
    }
    return onnx_emit(r, n, "aten.addmm.default(v, v, v, beta=f, alpha=f)", c, a, b, beta, alpha);
}

/* By a weight of a quantised model it is a linear layer, which integers can stand for. */
static npu_value onnx_matmul_of(onnx_reader *r, const onnx_node *n, npu_value a, npu_value b)
{
    return onnx_is_dequantised(r, b) ? onnx_emit(r, n, "aten.linear.default(v, v)", a, onnx_transposed_weight(r, b))
                                     : onnx_emit(r, n, "aten.matmul.default(v, v)", a, b);
}

static npu_value onnx_matmul(onnx_reader *r, onnx_node *n) { return onnx_matmul_of(r, n, onnx_x(n, 0), onnx_x(n, 1)); }

/* ATen sums integers in i64. */
static npu_value onnx_einsum(onnx_reader *r, onnx_node *n)
{
    return onnx_cast(r, onnx_emit(r, n, "aten.einsum.default(equation:'', V)", n->x, n->num_x), onnx_type(r, onnx_x(n, 0)));
}

/* f32 holds every sum of so many products of bytes without their zeros, and is many times as fast as wide integers.
   Longer sums are cut, and the parts added as integers; in f64 where that would be too many, or the length is not known. */
enum { ONNX_EXACT = (1 << 24) / (255 * 255), ONNX_MAX_CUTS = 32 };

static npu_dtype onnx_exact(int64_t len, int64_t each)
{
    return len >= 0 && each >= 1 && len <= each * ONNX_MAX_CUTS ? NPU_F32 : NPU_F64;
}

/* Stored minus zero. */
static npu_value onnx_centred(onnx_reader *r, npu_value x, npu_value zero, int64_t axis, npu_dtype dtype)
{
    x = onnx_cast(r, x, dtype);
    zero = zero.id ? onnx_along(r, onnx_cast(r, zero, dtype), onnx_rank(r, x), axis) : zero;
    return zero.id ? onnx_binary(r, "sub", x, zero) : x;
}

/* Bytes as i8: where they have no sign, all are 128 less. */
static npu_value onnx_signed_bytes(onnx_reader *r, npu_value x)
{
    if (onnx_type(r, x) == NPU_I8) {
        return x;
    }
    x = onnx_emit(r, NULL, "aten.bitwise_xor.Scalar(v, i)", x, (int64_t)128);
    return onnx_emit(r, NULL, "aten.view.dtype(v, t)", x, (int)NPU_I8);
}

/* What has to be added to such bytes of x, i32; nothing where it is 0. */
static npu_value onnx_byte_offset(onnx_reader *r, npu_value x, npu_value zero)
{
    double at = 0, none = onnx_type(r, x) == NPU_I8 ? 0 : 128;
    size_t len = zero.id ? onnx_num_elements(r, zero) : 1;
    if (len == 1 && onnx_is_known(r, zero)) {
        onnx_known_floats(r, zero, "the zero point", &at, 1);
    }
    if ((!zero.id || (len == 1 && onnx_is_known(r, zero))) && at == none) {
        return onnx_none();
    }
    zero = zero.id ? onnx_cast(r, zero, NPU_I32)
                   : onnx_emit(r, NULL, "aten.scalar_tensor.default(f, dtype=t)", 0.0, (int)NPU_I32);
    return onnx_emit(r, NULL, "aten.rsub.Scalar(v, i)", zero, (int64_t)none);
}

static npu_value onnx_row_sums(onnx_reader *r, npu_value x, int64_t axis)
{
    return onnx_emit(r, NULL, "aten.sum.dim_IntList(v, I, b, dtype=t)", x, &axis, (uint32_t)1, axis < 0, (int)NPU_I32);
}

/* (a + p) (b + q) = a b + p (sums of b's columns + K q) + q sums of a's rows, by bytes with signs; b [K,N] is a
   weight. */
static npu_value onnx_byte_product(onnx_reader *r, const onnx_node *n)
{
    npu_value a = onnx_signed_bytes(r, onnx_x(n, 0)), b = onnx_signed_bytes(r, onnx_x(n, 1)), y, sums;
    npu_value p = onnx_byte_offset(r, onnx_x(n, 0), onnx_x(n, 2)), q = onnx_byte_offset(r, onnx_x(n, 1), onnx_x(n, 3));
    uint32_t rank = onnx_rank(r, onnx_x(n, 0)); /* a may have failed, and have none */
    int64_t dims[NPU_MAX_RANK] = { -1, 1 }, len = onnx_dim(r, b, 0);
    dims[1] = len;
    y = rank == 2 ? a : onnx_reshape(r, a, dims, 2);
    y = onnx_emit(r, NULL, "aten._int_mm.default(v, v)", y, b);
    for (uint32_t i = 0; rank > 2 && i + 1 < rank; i++) {
        int64_t dim = onnx_dim_if_any(r, a, i);
        dims[i] = dim < 0 ? -1 : dim;
    }
    dims[rank - 1] = onnx_dim(r, b, 1);
    y = rank == 2 ? y : onnx_reshape(r, y, dims, rank);
    if (p.id) {
        sums = onnx_row_sums(r, b, 0);
        if (q.id) {
            sums = onnx_binary(r, "add", sums, onnx_emit(r, NULL, "aten.mul.Scalar(v, i)", q, len));
        }
        y = onnx_binary(r, "add", y, onnx_binary(r, "mul", onnx_along(r, p, rank, (int64_t)rank - 2), sums));
    }
    return q.id ? onnx_binary(r, "add", y, onnx_binary(r, "mul", onnx_row_sums(r, a, -1), q)) : y;
}

/* Two dims, or all but one of those before the last are known: the product's are then given back. */
static bool onnx_is_byte_product(const onnx_reader *r, npu_value a, npu_value b)
{
    uint32_t rank = onnx_rank(r, a), num_open = 0;
    for (uint32_t i = 0; i + 1 < rank; i++) {
        num_open += onnx_dim_if_any(r, a, i) < 0;
    }
    return rank > 1 && (rank == 2 || num_open < 2) && onnx_rank(r, b) == 2 && onnx_is_known(r, b);
}

/* The sum of both, as integers; sum may be nothing. */
static npu_value onnx_add_part(onnx_reader *r, npu_value sum, npu_value x)
{
    x = onnx_cast(r, x, NPU_I32);
    return sum.id ? onnx_binary(r, "add", sum, x) : x;
}

static npu_value onnx_matmul_integer(onnx_reader *r, onnx_node *n)
{
    npu_value a = onnx_x(n, 0), b = onnx_x(n, 1), sum = onnx_none();
    int64_t rank_a = onnx_rank(r, a), rank_b = onnx_rank(r, b), row = rank_b > 1 ? rank_b - 2 : 0;
    int64_t len = onnx_dim_if_any(r, b, (uint32_t)row);
    npu_dtype wide = onnx_exact(rank_a && onnx_dim_if_any(r, a, (uint32_t)rank_a - 1) == len ? len : -1, ONNX_EXACT);
    if (onnx_is_byte_product(r, a, b)) {
        return onnx_byte_product(r, n);
    }
    a = onnx_centred(r, a, onnx_x(n, 2), rank_a - 2, wide);
    b = onnx_centred(r, b, onnx_x(n, 3), rank_b - 1, wide);
    for (int64_t at = 0; wide == NPU_F32 && len > ONNX_EXACT && at < len && r->status == NPU_OK; at += ONNX_EXACT) {
        npu_value some = onnx_slice(r, a, rank_a - 1, at, at + ONNX_EXACT), of = onnx_slice(r, b, row, at, at + ONNX_EXACT);
        sum = onnx_add_part(r, sum, onnx_emit(r, n, "aten.matmul.default(v, v)", some, of));
    }
    return sum.id ? sum : onnx_cast(r, onnx_emit(r, n, "aten.matmul.default(v, v)", a, b), NPU_I32);
}

/* Parts with 3 x 3 taps have at most 28 channels, too few for Winograd's products, whose fractions need more bits. */
static npu_value onnx_conv_integer(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), w = onnx_x(n, 1), sum = onnx_none();
    int64_t window = 1, channels = onnx_dim_if_any(r, w, 1), each;
    npu_dtype wide;
    onnx_window of;
    if (!onnx_window_of(r, n, x, w, &of)) {
        return sum;
    }
    for (uint32_t i = 0; i < of.rank; i++) {
        window = window <= ONNX_EXACT && of.kernel[i] <= ONNX_EXACT ? window * of.kernel[i] : ONNX_EXACT + 1;
    }
    each = ONNX_EXACT / window;
    wide = onnx_exact(channels, onnx_dim_if_any(r, x, 1) == channels || channels <= each ? each : 0); /* one group */
    x = onnx_centred(r, x, onnx_x(n, 2), 1, wide);
    w = onnx_centred(r, w, onnx_x(n, 3), 0, wide);
    for (int64_t at = 0; wide == NPU_F32 && channels > each && at < channels && r->status == NPU_OK; at += each) {
        npu_value some = onnx_slice(r, x, 1, at, at + each), with = onnx_slice(r, w, 1, at, at + each);
        sum = onnx_add_part(r, sum, onnx_convolve(r, n, some, with, onnx_none()));
    }
    return sum.id ? sum : onnx_cast(r, onnx_convolve(r, n, x, w, onnx_none()), NPU_I32);
}

/* ---- ops: attention ---------------------------------------------------------------------------------------------- */

static npu_value onnx_swapped(onnx_reader *r, npu_value x, int64_t a, int64_t b)
{
    return onnx_emit(r, NULL, "aten.transpose.int(v, i, i)", x, a, b);
}

/* [N,L,heads*D] -> [N,heads,L,D]; with four dims it is that already. */
static npu_value onnx_by_heads(onnx_reader *r, npu_value x, int64_t heads)
{
    int64_t dims[2] = { heads, -1 };
    if (onnx_rank(r, x) == 4) {
        return x;
    }
    if (onnx_rank(r, x) != 3 || heads < 1) {
        return onnx_refuse(r, "three dims, and no number of heads, are not supported");
    }
    x = onnx_emit(r, NULL, "aten.unflatten.int(v, i, I)", x, (int64_t)2, dims, (uint32_t)2);
    return onnx_swapped(r, x, 1, 2);
}

static npu_value onnx_heads(onnx_reader *r, const onnx_node *n, npu_value x, const char *heads)
{
    return onnx_by_heads(r, x, onnx_i(r, n, heads, 0));
}

/* [N,heads,L,D] -> [N,L,heads*D] */
static npu_value onnx_joined_heads(onnx_reader *r, npu_value x)
{
    return onnx_emit(r, NULL, "aten.flatten.using_ints(v, i)", onnx_swapped(r, x, 1, 2), (int64_t)2);
}

static npu_value onnx_cat(onnx_reader *r, npu_value a, npu_value b, int64_t axis)
{
    npu_value both[2];
    both[0] = a;
    both[1] = b;
    return onnx_emit(r, NULL, "aten.cat.default(V, i)", both, (uint32_t)2, axis);
}

/* from, from + 1 ..: the places along dim 2 of x, as a column where it is of queries. */
static npu_value onnx_places(onnx_reader *r, npu_value x, int64_t from, bool is_column)
{
    npu_value at = onnx_emit(r, NULL, "aten.arange.start(i, i)", from, from + onnx_dim(r, x, 2));
    return is_column ? onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", at, (int64_t)-1) : at;
}

/* 0 where it holds, low elsewhere; sum is what it adds to, or nothing. */
static npu_value onnx_masked(onnx_reader *r, npu_value q, npu_value sum, npu_value holds, double low)
{
    npu_value bias = onnx_where(r, holds, onnx_like(r, q, 0), onnx_like(r, q, low));
    return sum.id ? onnx_binary(r, "add", sum, bias) : bias;
}

static npu_value onnx_bias(onnx_reader *r, npu_value q, npu_value sum, npu_value holds)
{
    return onnx_masked(r, q, sum, holds, -HUGE_VAL);
}

/* Operand 6 as [N,1,1,1]: how many keys of each batch are none of padding. */
static npu_value onnx_num_keys(onnx_reader *r, const onnx_node *n)
{
    int64_t dims[4] = { -1, 1, 1, 1 };
    return onnx_x(n, 6).id ? onnx_reshape(r, onnx_x(n, 6), dims, 4) : onnx_none();
}

/* Which keys a query does not see because of where it is: after it, or outside of its window. Behind a cache it is as
   many places later as that has keys. */
static npu_value onnx_causal(onnx_reader *r, const onnx_node *n, npu_value q, npu_value k, npu_value bias)
{
    int64_t left = onnx_i(r, n, "left_window_size", -1), right = onnx_i(r, n, "right_window_size", -1), past = 0;
    npu_value rows, columns, num = onnx_num_keys(r, n);
    bool is_causal = onnx_i(r, n, "is_causal", 0) != 0;
    if (!is_causal && left < 0 && right < 0) {
        return bias;
    }
    right = is_causal && (right < 0 || right > 0) ? 0 : right;
    past = num.id ? -onnx_dim(r, q, 2) : onnx_x(n, 4).id ? onnx_dim(r, onnx_x(n, 4), 2) : 0;
    rows = onnx_places(r, q, past, true);
    rows = num.id ? onnx_binary(r, "add", rows, num) : rows;
    columns = onnx_places(r, k, 0, false);
    if (right >= 0) {
        npu_value last = right ? onnx_emit(r, NULL, "aten.add.Scalar(v, i)", rows, right) : rows;
        bias = onnx_bias(r, q, bias, onnx_emit(r, NULL, "aten.le.Tensor(v, v)", columns, last));
    }
    if (left >= 0) {
        npu_value first = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", rows, left);
        bias = onnx_bias(r, q, bias, onnx_emit(r, NULL, "aten.ge.Tensor(v, v)", columns, first));
    }
    return bias;
}

/* What is added to the scores: the mask, whose last keys may be missing, and what places say; or nothing. */
static npu_value onnx_attention_bias(onnx_reader *r, const onnx_node *n, npu_value q, npu_value k)
{
    npu_value bias = onnx_x(n, 3), num = onnx_num_keys(r, n);
    if (bias.id && (r->status || onnx_rank(r, bias) == 0)) {
        return onnx_refuse(r, "a mask without dims is not supported");
    }
    if (bias.id) {
        int64_t len = onnx_dim_if_any(r, bias, onnx_rank(r, bias) - 1), pads[2] = { 0, 0 };
        bias = onnx_type(r, bias) == NPU_BOOL ? onnx_bias(r, q, onnx_none(), bias) : bias;
        pads[1] = len > 0 && onnx_dim_if_any(r, k, 2) > 0 ? onnx_dim(r, k, 2) - len : 0;
        if (pads[1] > 0) {
            bias = onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, f)", bias, pads, (uint32_t)2, -HUGE_VAL);
        }
    }
    bias = onnx_causal(r, n, q, k, bias);
    if (num.id) {
        num = onnx_emit(r, NULL, "aten.lt.Tensor(v, v)", onnx_places(r, k, 0, false), num);
        bias = onnx_bias(r, q, bias, num);
    }
    return bias;
}

/* Of scores, and one more that has no key: a number for each head, or nothing. */
static npu_value onnx_score_softmax(onnx_reader *r, npu_value x, npu_value sink)
{
    npu_value one = sink.id ? onnx_slice(r, x, -1, 0, 1) : x;
    if (!sink.id) {
        return onnx_emit(r, NULL, "aten._safe_softmax.default(v, i)", x, (int64_t)-1);
    }
    one = onnx_binary(r, "add", onnx_emit(r, NULL, "aten.zeros_like.default(v)", one), sink);
    one = onnx_emit(r, NULL, "aten._safe_softmax.default(v, i)", onnx_cat(r, x, one, -1), (int64_t)-1);
    return onnx_slice(r, one, -1, 0, -1);
}

/* The steps one by one, as result 3, softcap or a sink want to see them. */
static npu_value onnx_attention_steps(onnx_reader *r, onnx_node *n, const npu_value *qkv, npu_value bias, double scale,
                                      npu_value sink)
{
    int64_t mode = onnx_i(r, n, "qk_matmul_output_mode", 0), each = onnx_dim(r, qkv[1], 1);
    double cap = onnx_f(r, n, "softcap", 0);
    npu_value k = qkv[1], v = qkv[2], shown, x;
    each = each > 0 ? onnx_dim(r, qkv[0], 1) / each : 1;
    if (each > 1) {
        k = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i, i)", k, each, (int64_t)1);
        v = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i, i)", v, each, (int64_t)1);
    }
    x = onnx_emit(r, n, "aten.matmul.default(v, v)", qkv[0], onnx_swapped(r, k, 2, 3));
    x = onnx_emit(r, n, "aten.mul.Scalar(v, f)", x, scale);
    shown = x;
    if (cap > 0) {
        x = onnx_unary(r, "tanh", onnx_emit(r, n, "aten.div.Scalar(v, f)", x, cap));
        x = onnx_emit(r, n, "aten.mul.Scalar(v, f)", x, cap);
    }
    shown = mode > 0 ? x : shown;
    x = bias.id ? onnx_binary(r, "add", x, bias) : x;
    shown = mode > 1 ? x : shown;
    x = onnx_score_softmax(r, x, sink);
    onnx_result(r, n, 3, mode > 2 ? x : shown);
    return onnx_emit(r, n, "aten.matmul.default(v, v)", x, v);
}

/* [N,heads,L,D] of queries [N,heads,L,D], and keys and values of as many heads, or of groups of them. */
static npu_value onnx_attended(onnx_reader *r, onnx_node *n, const npu_value *qkv, npu_value bias, double scale,
                               npu_value sink)
{
    static const char op[] = "aten.scaled_dot_product_attention.default(v, v, v, v, f, b, scale=f, enable_gqa=b)";
    if (onnx_f(r, n, "softcap", 0) > 0 || n->num_y > 3 || sink.id) {
        return onnx_attention_steps(r, n, qkv, bias, scale, sink);
    }
    return onnx_emit(r, n, op, qkv[0], qkv[1], qkv[2], bias, 0.0, false, scale,
                     onnx_dim(r, qkv[0], 1) != onnx_dim(r, qkv[1], 1));
}

/* Q, K, V, mask, the keys and values before, how many keys there are. */
static npu_value onnx_attention(onnx_reader *r, onnx_node *n)
{
    static const char *const heads[3] = { "q_num_heads", "kv_num_heads", "kv_num_heads" };
    npu_value x[3], bias;
    uint32_t rank = onnx_rank(r, onnx_x(n, 0));
    double scale;
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = onnx_heads(r, n, onnx_x(n, i), heads[i]);
        if (i > 0 && onnx_x(n, 3 + i).id) {
            x[i] = onnx_cat(r, onnx_x(n, 3 + i), x[i], 2);
        }
        if (i > 0) {
            onnx_result(r, n, i, x[i]);
        }
    }
    scale = onnx_f(r, n, "scale", 1 / sqrt((double)onnx_dim(r, x[0], 3)));
    bias = onnx_attention_bias(r, n, x[0], x[1]);
    x[0] = onnx_attended(r, n, x, bias, scale, onnx_none());
    return rank == 3 ? onnx_joined_heads(r, x[0]) : x[0];
}

/* Pairs of the first `len` elements of x turned by an angle; its cosines and sines are [N,L,D/2], or rows of tables
   that `at` numbers. */
static npu_value onnx_turned(onnx_reader *r, npu_value x, npu_value cosines, npu_value sines, npu_value at,
                             int64_t len, bool is_between)
{
    int64_t all = onnx_dim(r, x, 3);
    npu_value c[2], half[2], y[2];
    len = len > 0 ? len : all;
    if (len > all) {
        return onnx_refuse(r, "rotary_embedding_dim of more than a head's is not supported");
    }
    c[0] = cosines;
    c[1] = sines;
    for (int64_t i = 0; i < 2; i++) {
        half[i] = is_between ? onnx_emit(r, NULL, "aten.slice.Tensor(v, i, i, i, i)", x, (int64_t)3, i, len, (int64_t)2)
                             : onnx_slice(r, x, 3, i * len / 2, (i + 1) * len / 2);
        c[i] = at.id ? onnx_emit(r, NULL, "aten.embedding.default(v, v)", c[i], at) : c[i];
        c[i] = onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", onnx_slice(r, c[i], -1, 0, len / 2), (int64_t)1);
    }
    y[0] = onnx_binary(r, "sub", onnx_binary(r, "mul", half[0], c[0]), onnx_binary(r, "mul", half[1], c[1]));
    y[1] = onnx_binary(r, "add", onnx_binary(r, "mul", half[0], c[1]), onnx_binary(r, "mul", half[1], c[0]));
    if (is_between) {
        y[0] = onnx_emit(r, NULL, "aten.stack.default(V, i)", y, (uint32_t)2, (int64_t)-1);
        y[0] = onnx_emit(r, NULL, "aten.flatten.using_ints(v, i)", y[0], (int64_t)3);
    } else {
        y[0] = onnx_cat(r, y[0], y[1], 3);
    }
    return len < all ? onnx_cat(r, y[0], onnx_slice(r, x, 3, len, all), 3) : y[0];
}

static npu_value onnx_rotary(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_heads(r, n, onnx_x(n, 0), "num_heads");
    x = onnx_turned(r, x, onnx_x(n, 1), onnx_x(n, 2), onnx_x(n, 3), onnx_i(r, n, "rotary_embedding_dim", 0),
                    onnx_i(r, n, "interleaved", 0) != 0);
    return onnx_rank(r, onnx_x(n, 0)) == 3 ? onnx_joined_heads(r, x) : x;
}

/* A cache, what is written into it, and from where on in each batch; in a circle, or up to its end. */
static npu_value onnx_tensor_scatter(onnx_reader *r, onnx_node *n)
{
    npu_value cache = onnx_x(n, 0), part = onnx_x(n, 1), at = onnx_x(n, 2);
    uint32_t rank = onnx_rank(r, cache);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", -2), rank), len = onnx_dim(r, part, (uint32_t)axis);
    int64_t rows[NPU_MAX_RANK], steps[NPU_MAX_RANK];
    for (uint32_t i = 0; i < NPU_MAX_RANK; i++) {
        rows[i] = i == 0 ? -1 : 1;
        steps[i] = i == axis ? len : 1;
    }
    if (!at.id) {
        return onnx_emit(r, n, "aten.slice_scatter.default(v, v, i, i, i)", cache, part, axis, (int64_t)0, len);
    }
    if (axis == 0) {
        return onnx_refuse(r, "axis 0 is not supported");
    }
    at = onnx_binary(r, "add", onnx_reshape(r, at, rows, rank),
                     onnx_reshape(r, onnx_emit(r, n, "aten.arange.default(i)", len), steps, rank));
    if (onnx_s_is(r, n, "mode", "linear", "circular")) {
        at = onnx_emit(r, n, "aten.remainder.Scalar(v, i)", at, onnx_dim(r, cache, (uint32_t)axis));
    }
    at = onnx_emit(r, n, "aten.expand_as.default(v, v)", at, part);
    return onnx_emit(r, n, "aten.scatter.src(v, i, v, v)", cache, axis, at, part);
}

/* ---- ops: quantised ops ------------------------------------------------------------------------------------------ */

/* The range with zero in it, over 255 steps. */
static npu_value onnx_byte_range(onnx_reader *r, npu_value x, npu_value *scale_out, npu_value *point_out)
{
    static const float one = 1;
    npu_value zero = onnx_like(r, x, 0), low, high, scale, point, unit;
    low = onnx_emit(r, NULL, "aten.minimum.default(v, v)", onnx_emit(r, NULL, "aten.min.default(v)", x), zero);
    high = onnx_emit(r, NULL, "aten.maximum.default(v, v)", onnx_emit(r, NULL, "aten.max.default(v)", x), zero);
    scale = onnx_emit(r, NULL, "aten.div.Scalar(v, f)", onnx_binary(r, "sub", high, low), 255.0);
    point = onnx_unary(r, "neg", onnx_binary(r, "div", low, scale));
    unit = npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 0, NULL), &one);
    point = onnx_saturated(r, point, unit, onnx_none(), NPU_U8, 0);
    *scale_out = scale;
    *point_out = point;
    return onnx_saturated(r, x, scale, point, NPU_U8, 0);
}

static npu_value onnx_dynamic_quantize(onnx_reader *r, onnx_node *n)
{
    npu_value scale, point, x = onnx_byte_range(r, onnx_x(n, 0), &scale, &point);
    onnx_result(r, n, 1, scale);
    onnx_result(r, n, 2, point);
    return x;
}

/* As what it stands for: operands dequantised, and the result quantised. */
static npu_value onnx_qlinear_matmul(onnx_reader *r, onnx_node *n)
{
    npu_value a = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), (int64_t)onnx_rank(r, onnx_x(n, 0)) - 2);
    npu_value b = onnx_dequantised(r, onnx_x(n, 3), onnx_x(n, 4), onnx_x(n, 5), (int64_t)onnx_rank(r, onnx_x(n, 3)) - 1);
    npu_value y = onnx_matmul_of(r, n, a, b), zero = onnx_x(n, 7);
    return onnx_quantised(r, y, onnx_x(n, 6), zero, onnx_type(r, zero), (int64_t)onnx_rank(r, y) - 2);
}

/* The bias is in units of a sum. */
static npu_value onnx_qlinear_conv(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), 1), bias = onnx_x(n, 8), zero = onnx_x(n, 7);
    npu_value w = onnx_dequantised(r, onnx_x(n, 3), onnx_x(n, 4), onnx_x(n, 5), 0);
    if (bias.id) {
        bias = onnx_binary(r, "mul", onnx_cast(r, bias, onnx_type(r, x)), onnx_binary(r, "mul", onnx_x(n, 1), onnx_x(n, 4)));
    }
    return onnx_quantised(r, onnx_convolve(r, n, x, w, bias), onnx_x(n, 6), zero, onnx_type(r, zero), 1);
}

/* ---- ops: shapes ------------------------------------------------------------------------------------------------- */

/* A 1 for each element along a dim. */
static npu_value onnx_ones_along(onnx_reader *r, npu_value x, uint32_t axis)
{
    for (uint32_t i = onnx_rank(r, x); i-- > 0;) {
        x = i == axis ? x : onnx_emit(r, NULL, "aten.select.int(v, i, i)", x, (int64_t)i, (int64_t)0);
    }
    return onnx_emit(r, NULL, "aten.ones_like.default(v, dtype=t)", x, (int)NPU_I64);
}

/* A dim that data decides is counted in the run. */
static npu_value onnx_counted_shape(onnx_reader *r, npu_value x, uint32_t begin, uint32_t end)
{
    static const int64_t first = 0;
    npu_value sizes[NPU_MAX_RANK];
    for (uint32_t i = begin; i < end; i++) {
        int64_t size = onnx_dim_if_any(r, x, i);
        sizes[i - begin] = size >= 0 ? onnx_int_constant(r, &size, 1)
                                     : onnx_emit(r, NULL, "aten.sum.dim_IntList(v, I, b, dtype=t)", onnx_ones_along(r, x, i),
                                                 &first, (uint32_t)1, true, (int)NPU_I64);
    }
    return onnx_emit(r, NULL, "aten.cat.default(V, i)", sizes, end - begin, (int64_t)0);
}

static npu_value onnx_shape(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t rank = onnx_rank(r, x), dims[NPU_MAX_RANK], begin = onnx_i(r, n, "start", 0), end = onnx_i(r, n, "end", rank);
    uint32_t count = 0;
    begin = begin < 0 ? begin + rank : begin;
    begin = begin < 0 ? 0 : begin;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    if (onnx_is_counted(r, x, begin, end)) {
        return onnx_counted_shape(r, x, (uint32_t)begin, (uint32_t)end);
    }
    for (int64_t i = begin; i < end; i++) {
        dims[count++] = onnx_dim(r, x, (uint32_t)i);
    }
    return onnx_int_constant(r, dims, count);
}

static npu_value onnx_size(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t len = 1;
    if (onnx_is_counted(r, x, 0, onnx_rank(r, x))) {
        return onnx_emit(r, n, "aten.prod.default(v)", onnx_counted_shape(r, x, 0, onnx_rank(r, x)));
    }
    for (uint32_t i = 0; i < onnx_rank(r, x); i++) {
        len *= onnx_dim(r, x, i);
    }
    return npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &len);
}

/* The 1s whose sum a size is, through other shapes and integers; none = it is no such sum. */
static npu_value onnx_ones_of(const onnx_reader *r, npu_value size)
{
    npu_op op = npu_value_producer(r->g, size, NULL);
    const npu_op_def *def = npu_op_definition(r->g, op);
    while (def && onnx_num_elements(r, size) == 1 && (def->traits & NPU_VIEW || def->kind == NPU_ATEN_TO_COPY) &&
           (onnx_type(r, size) == NPU_I64 || onnx_type(r, size) == NPU_I32)) {
        size = npu_op_operand_value(r->g, op, 0);
        op = npu_value_producer(r->g, size, NULL);
        def = npu_op_definition(r->g, op);
    }
    npu_value ones = def && def->kind == NPU_ATEN_SUM_DIM ? npu_op_operand_value(r->g, op, 0) : onnx_none();
    npu_kind kind = npu_op_kind(r->g, npu_value_producer(r->g, ones, NULL));
    return kind == NPU_ATEN_ONES_LIKE && onnx_rank(r, ones) == 1 ? ones : onnx_none();
}

/* The list that a shape is but for its -1, of which PyTorch makes 1 as it writes expand: where(list == -1, 1, list). */
static npu_value onnx_asked_shape(const onnx_reader *r, npu_value v)
{
    npu_op where = v.id ? npu_value_producer(r->g, v, NULL) : (npu_op){ 0 };
    npu_value list = npu_op_kind(r->g, where) == NPU_ATEN_WHERE ? npu_op_operand_value(r->g, where, 2) : v;
    npu_value condition = list.id != v.id ? npu_op_operand_value(r->g, where, 0) : onnx_none();
    npu_op equal = npu_value_producer(r->g, condition, NULL);
    bool is_compared = npu_op_kind(r->g, equal) == NPU_ATEN_EQ && npu_op_operand_value(r->g, equal, 0).id == list.id;
    bool is_asked = is_compared && onnx_are_all(r, npu_op_operand_value(r->g, equal, 1), -1) &&
                    onnx_are_all(r, npu_op_operand_value(r->g, where, 1), 1);
    return is_asked ? list : v;
}

/* Element i of a list of integers, as a 1-d tensor: known where it stands among others that only the run knows, too. */
static npu_value onnx_number_in(onnx_reader *r, npu_value list, int64_t i)
{
    npu_op op = list.id ? npu_value_producer(r->g, list, NULL) : (npu_op){ 0 };
    bool is_joined = npu_op_kind(r->g, op) == NPU_ATEN_CAT && !onnx_is_known(r, list);
    int64_t begin = 0;
    for (uint32_t k = 0; is_joined && k < npu_op_num_operands(r->g, op); k++) {
        npu_value part = npu_op_operand_value(r->g, op, k);
        int64_t len = (int64_t)onnx_num_elements(r, part);
        if (i < begin + len) {
            return len == 1 ? part : onnx_number_in(r, part, i - begin);
        }
        begin += len;
    }
    return onnx_num_elements(r, list) == 1 ? list : onnx_slice(r, list, 0, i, i + 1);
}

/* The sizes of a new shape. Those that only the run knows are -1; counted has a tensor of each, or nothing. */
static uint32_t onnx_new_shape(onnx_reader *r, npu_value v, int64_t *dims, npu_value *counted)
{
    npu_value list = onnx_asked_shape(r, v);
    size_t count = onnx_num_elements(r, v);
    memset(counted, 0, NPU_MAX_RANK * sizeof *counted);
    if (onnx_is_known(r, v) || count == 0 || count > NPU_MAX_RANK) {
        return onnx_known(r, v, "the shape", dims, NPU_MAX_RANK);
    }
    for (size_t i = 0; i < count && r->status == NPU_OK; i++) {
        npu_value size = onnx_number_in(r, list, (int64_t)i);
        dims[i] = -1;
        if (onnx_is_known(r, size)) {
            dims[i] = onnx_known_int(r, size, "a size");
            dims[i] = list.id != v.id && dims[i] == -1 ? 1 : dims[i];
        } else { /* a count is not -1 */
            counted[i] = list.id == v.id || onnx_ones_of(r, size).id ? size : onnx_number_in(r, v, (int64_t)i);
        }
    }
    return (uint32_t)count;
}

/* Of sizes that only the run knows, those that an operand's dim is counted to are the dim; one more follows from the rest. */
static void onnx_reshape_counted(onnx_reader *r, npu_value x, int64_t *dims, const npu_value *counted, uint32_t count)
{
    uint32_t num_open = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t own = counted[i].id ? onnx_dim_if_any(r, onnx_ones_of(r, counted[i]), 0) : NPU_DYNAMIC_DIM;
        for (uint32_t k = 0; k < onnx_rank(r, x) && own < NPU_DYNAMIC_DIM; k++) {
            dims[i] = onnx_dim_if_any(r, x, k) == own ? own : dims[i];
        }
        num_open += dims[i] == -1;
    }
    if (num_open > 1) {
        onnx_fail(r, NPU_ERR_CONVERSION,
                  "the shape must be known when the model is read, but for one size, and those of the operand");
    }
}

static npu_value onnx_reshape_op(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), counted[NPU_MAX_RANK] = { { 0 } };
    int64_t dims[NPU_MAX_RANK];
    uint32_t count = onnx_x(n, 1).id || r->opset >= 5 ? onnx_new_shape(r, onnx_x(n, 1), dims, counted)
                                                      : onnx_ints(r, n, "shape", dims, NPU_MAX_RANK);
    bool keeps_zero = onnx_i(r, n, "allowzero", 0) != 0;
    for (uint32_t i = 0; i < count; i++) {
        if (dims[i] == 0 && !keeps_zero && i < onnx_rank(r, x)) {
            dims[i] = onnx_dim_if_any(r, x, i);
        } else if (dims[i] < -1) {
            return onnx_refuse(r, "a shape has a size below -1");
        }
    }
    onnx_reshape_counted(r, x, dims, counted, count);
    bool is_same = count == 1 && onnx_rank(r, x) == 1 && dims[0] == -1; /* a list stays one whose parts are known */
    return is_same ? x : onnx_reshape(r, x, dims, count);
}

static npu_value onnx_flatten(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    uint32_t rank = onnx_rank(r, x);
    int64_t axis = onnx_i(r, n, "axis", 1), dims[2] = { 1, 1 }, first = onnx_dim_if_any(r, x, 0);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis > (int64_t)rank) {
        return onnx_refuse(r, "the axis is none of the operand");
    }
    bool keeps = axis == 1 && first < NPU_DYNAMIC_DIM;
    for (uint32_t i = 0; i < rank; i++) { /* what is not known on one side follows from the other */
        int64_t *side = &dims[i >= axis], other = dims[i < axis];
        bool follows = onnx_dim_if_any(r, x, i) < 0 && (keeps || (other >= 0 && onnx_is_counted(r, x, i, i + 1)));
        *side = *side < 0 || follows ? -1 : *side * onnx_dim(r, x, i);
    }
    dims[0] = keeps ? first : dims[0];
    return onnx_reshape(r, x, dims, 2);
}

static npu_value onnx_squeeze(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t axes[NPU_MAX_RANK];
    uint32_t count = onnx_axes(r, n, 1, onnx_rank(r, x), axes);
    for (uint32_t i = 0; i < count; i++) {
        if (onnx_dim(r, x, (uint32_t)axes[i]) != 1) {
            return onnx_refuse(r, "an axis to be squeezed is not 1");
        }
    }
    return count ? onnx_emit(r, n, "aten.squeeze.dims(0, I)", axes, count) : onnx_emit(r, n, "aten.squeeze.default(0)");
}

static npu_value onnx_unsqueeze(onnx_reader *r, onnx_node *n)
{
    npu_value v = onnx_x(n, 0);
    int64_t axes[NPU_MAX_RANK];
    uint32_t added = onnx_x(n, 1).id ? onnx_known(r, onnx_x(n, 1), "axes", axes, NPU_MAX_RANK) : onnx_ints(r, n, "axes", axes, NPU_MAX_RANK);
    uint32_t rank = onnx_rank(r, v) + added, is_new = 0;
    if (rank > NPU_MAX_RANK) {
        return onnx_refuse(r, "more dims than are possible");
    }
    for (uint32_t i = 0; i < added; i++) {
        int64_t axis = onnx_axis(r, axes[i], rank);
        if (is_new >> axis & 1) {
            onnx_fail(r, NPU_ERR_AXIS, "axis %lld is there twice", (long long)axis);
        }
        is_new |= 1u << axis;
    }
    for (uint32_t i = 0; i < rank && r->status == NPU_OK; i++) {
        v = is_new >> i & 1 ? onnx_emit(r, n, "aten.unsqueeze.default(v, i)", v, (int64_t)i) : v;
    }
    return v;
}

static npu_value onnx_expand_to(onnx_reader *r, npu_value x, const int64_t *dims, uint32_t rank)
{
    return onnx_emit(r, NULL, "aten.expand.default(v, I)", x, dims, rank);
}

/* A 0 for each of so many elements; of a dim that was counted they are as many for sure. */
static npu_value onnx_counted_zeros(onnx_reader *r, npu_value counted)
{
    npu_value ones = onnx_ones_of(r, counted);
    return ones.id ? onnx_emit(r, NULL, "aten.zeros_like.default(v)", ones)
                   : onnx_emit(r, NULL, "aten.repeat_interleave.Tensor(v)", onnx_cast(r, counted, NPU_I64));
}

/* The same where sizes, -1 in the shape, are only known in the run: each is the operand's own, or that of a 1. */
static npu_value onnx_expand_counted(onnx_reader *r, npu_value x, int64_t *shape, uint32_t count,
                                     const npu_value *counted)
{
    for (uint32_t rank = onnx_rank(r, x); rank < count; rank++) {
        x = onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", x, (int64_t)0);
    }
    if (r->status) {
        return onnx_none();
    }
    uint32_t more = onnx_rank(r, x) - count; /* dims in front of the shape */
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        int64_t own = onnx_dim_if_any(r, x, more + i);
        if (counted[i].id && own == 1) {
            x = onnx_emit(r, NULL, "aten.index_select.default(v, i, v)", x, (int64_t)(more + i),
                          onnx_counted_zeros(r, counted[i]));
        } else if (counted[i].id && (own >= NPU_DYNAMIC_DIM ||
                                     own != onnx_dim_if_any(r, onnx_ones_of(r, counted[i]), 0))) {
            return onnx_refuse(r, "a size that data decides meets a dim of another");
        }
        shape[i] = shape[i] == 1 ? -1 : shape[i];
    }
    memmove(shape + more, shape, count * sizeof *shape);
    for (uint32_t i = 0; i < more; i++) {
        shape[i] = -1;
    }
    return onnx_expand_to(r, x, shape, more + count);
}

static bool onnx_has_counted(const npu_value *counted, uint32_t count)
{
    bool has = false;
    for (uint32_t i = 0; i < count; i++) {
        has = has || counted[i].id;
    }
    return has;
}

/* Sizes of 1 in the shape are the operand's. */
static npu_value onnx_expand(onnx_reader *r, onnx_node *n)
{
    int64_t shape[NPU_MAX_RANK], dims[NPU_MAX_RANK];
    npu_value counted[NPU_MAX_RANK];
    uint32_t rank = 0, count = onnx_new_shape(r, onnx_x(n, 1), shape, counted);
    const npu_spec *spec = npu_value_spec(r->g, onnx_x(n, 0));
    if (onnx_has_counted(counted, count) && r->status == NPU_OK) {
        return onnx_expand_counted(r, onnx_x(n, 0), shape, count, counted);
    }
    for (uint32_t i = 0; spec && i < spec->rank && i < count; i++) { /* from behind */
        if (shape[count - 1 - i] != 1) {
            onnx_dim(r, onnx_x(n, 0), spec->rank - 1 - i);
        }
    }
    if (!spec || npu_dims_broadcast(spec->dims, spec->rank, shape, count, dims, &rank, NULL)) {
        return onnx_refuse(r, "the shape does not fit the operand");
    }
    return onnx_expand_to(r, onnx_x(n, 0), dims, rank);
}

static npu_value onnx_tile(onnx_reader *r, onnx_node *n)
{
    int64_t repeats[NPU_MAX_RANK];
    uint32_t count = onnx_known(r, onnx_x(n, 1), "repeats", repeats, NPU_MAX_RANK);
    return onnx_emit(r, n, "aten.tile.default(0, I)", repeats, count);
}

static npu_value onnx_transpose(onnx_reader *r, onnx_node *n)
{
    int64_t order[NPU_MAX_RANK];
    uint32_t rank = onnx_rank(r, onnx_x(n, 0));
    if (onnx_ints(r, n, "perm", order, NPU_MAX_RANK) == 0) {
        for (uint32_t i = 0; i < rank; i++) {
            order[i] = rank - 1 - i;
        }
    } else if (onnx_ints(r, n, "perm", order, NPU_MAX_RANK) != rank) {
        return onnx_refuse(r, "perm has another rank");
    }
    return onnx_permute(r, onnx_x(n, 0), order, rank);
}

static npu_value onnx_concat(onnx_reader *r, onnx_node *n)
{
    return onnx_emit(r, n, "aten.cat.default(V, axis:1)", n->x, n->num_x);
}

/* Parts of those sizes. */
static void onnx_split_at(onnx_reader *r, onnx_node *n, npu_value x, int64_t axis, const int64_t *sizes, npu_value *parts, uint32_t count)
{
    int64_t begin = 0;
    onnx_emit_many(r, n, parts, count, "aten.split_with_sizes.default(v, I, i)", x, sizes, count, axis);
    if (r->status == NPU_OK && npu_op_kind(r->g, npu_value_producer(r->g, x, NULL)) == NPU_QUANTIZED_DEQUANTIZE_PER_TENSOR) {
        for (uint32_t i = 0; i < count; begin += sizes[i++]) { /* the op has checked them; ops on bytes give one result */
            parts[i] = onnx_slice(r, x, axis, begin, begin + sizes[i]);
        }
    }
}

/* Sizes given, or equal ones of which the last may be smaller. */
static npu_value onnx_split(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), *parts = (npu_value *)onnx_alloc(r, (n->num_y + 1) * sizeof *parts);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x)), *sizes = (int64_t *)onnx_alloc(r, (n->num_y + 1) * 8);
    uint32_t count = !sizes ? 0 : onnx_x(n, 1).id ? onnx_known(r, onnx_x(n, 1), "split", sizes, n->num_y)
                                                  : onnx_ints(r, n, "split", sizes, n->num_y);
    if (!parts || !sizes || r->status) {
        return onnx_none();
    }
    if (!count) {
        int64_t whole = onnx_dim(r, x, (uint32_t)axis), each = (whole + n->num_y - 1) / n->num_y;
        for (; count < n->num_y; count++) {
            sizes[count] = each < whole ? each : whole;
            whole -= sizes[count];
        }
    }
    onnx_split_at(r, n, x, axis, sizes, parts, n->num_y);
    for (uint32_t i = 1; i < n->num_y; i++) {
        onnx_result(r, n, i, parts[i]);
    }
    return parts[0];
}

/* Operands 1 to 4, or attributes before opset 10. */
static uint32_t onnx_slice_list(onnx_reader *r, const onnx_node *n, uint32_t operand, const char *name, int64_t *out)
{
    return onnx_x(n, operand).id ? onnx_known(r, onnx_x(n, operand), name, out, NPU_MAX_RANK)
                                 : onnx_ints(r, n, name, out, NPU_MAX_RANK);
}

/* Backwards: forwards through the reverse, in which element i from the front is -1 - i, and the other way round. */
static npu_value onnx_slice_back(onnx_reader *r, npu_value x, int64_t axis, int64_t begin, int64_t end, int64_t step)
{
    int64_t size = onnx_dim_if_any(r, x, axis);
    begin = size > 0 && begin < -size ? 0 : begin; /* held within, as ONNX has it */
    x = onnx_emit(r, NULL, "aten.flip.default(v, I)", x, &axis, (uint32_t)1);
    return onnx_emit(r, NULL, "aten.slice.Tensor(v, i, i, i, i)", x, axis, -1 - begin, -1 - end, -onnx_near_int(step));
}

/* A bound of a slice as the run knows it, from the front; in front of all is `least`. */
static npu_value onnx_slice_bound(onnx_reader *r, npu_value x, int64_t axis, npu_value v, int64_t least)
{
    npu_value size;
    v = onnx_cast(r, v, NPU_I64);
    if (onnx_ones_of(r, v).id || (onnx_is_known(r, v) && onnx_known_int(r, v, "a bound") >= 0)) {
        return v;
    }
    size = onnx_counted_shape(r, x, (uint32_t)axis, (uint32_t)axis + 1);
    v = onnx_where(r, onnx_binary(r, "lt", v, onnx_like(r, v, 0)), onnx_binary(r, "add", v, size), v);
    return onnx_emit(r, NULL, "aten.maximum.default(v, v)", v, onnx_like(r, v, (double)least));
}

/* The elements between bounds of which the run knows one: those whose places are there. */
static npu_value onnx_slice_between(onnx_reader *r, npu_value x, int64_t axis, npu_value begin, npu_value end,
                                    int64_t step)
{
    npu_value index[NPU_MAX_RANK] = { { 0 } }, is_in, place, last;
    bool is_back = step < 0, begins_at_0 = !is_back && onnx_are_all(r, begin, 0);
    place = onnx_emit(r, NULL, "aten.cumsum.default(v, i)", onnx_ones_along(r, x, (uint32_t)axis), (int64_t)0);
    place = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", place, (int64_t)1);
    begin = onnx_slice_bound(r, x, axis, begin, 0);
    end = onnx_slice_bound(r, x, axis, end, -1);
    if (is_back) {
        last = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", onnx_counted_shape(r, x, (uint32_t)axis, (uint32_t)axis + 1),
                         (int64_t)1);
        begin = onnx_emit(r, NULL, "aten.minimum.default(v, v)", begin, last);
    }
    is_in = onnx_binary(r, is_back ? "gt" : "lt", place, end);
    if (!begins_at_0) {
        is_in = onnx_emit(r, NULL, "aten.logical_and.default(v, v)", is_in,
                          onnx_binary(r, is_back ? "le" : "ge", place, begin));
    }
    if (step != 1 && step != -1) {
        npu_value rest = onnx_emit(r, NULL, "aten.fmod.Scalar(v, i)", onnx_binary(r, "sub", place, begin), step);
        is_in = onnx_emit(r, NULL, "aten.logical_and.default(v, v)", is_in,
                          onnx_emit(r, NULL, "aten.eq.Scalar(v, i)", rest, (int64_t)0));
    }
    index[axis] = is_in;
    x = onnx_emit(r, NULL, "aten.index.Tensor(v, V)", x, index, (uint32_t)axis + 1);
    return is_back ? onnx_emit(r, NULL, "aten.flip.default(v, I)", x, &axis, (uint32_t)1) : x;
}

/* Starts or ends: operands, or attributes before opset 10. */
static npu_value onnx_bounds(onnx_reader *r, const onnx_node *n, uint32_t operand, const char *name)
{
    int64_t bounds[NPU_MAX_RANK];
    npu_value v = onnx_x(n, operand);
    if (v.id && !onnx_is_known(r, v) && onnx_rank(r, v) == 1 && onnx_num_elements(r, v) &&
        npu_dtype_is_integer(onnx_type(r, v))) {
        return v;
    }
    uint32_t count = onnx_slice_list(r, n, operand, name, bounds);
    return onnx_int_constant(r, bounds, count);
}

static npu_value onnx_slice_along(onnx_reader *r, npu_value x, int64_t axis, npu_value begin, npu_value end,
                                  int64_t step)
{
    if (!onnx_is_known(r, begin) || !onnx_is_known(r, end)) {
        return onnx_slice_between(r, x, axis, begin, end, step);
    }
    int64_t from = onnx_known_int(r, begin, "starts"), to = onnx_known_int(r, end, "ends");
    return step < 0 ? onnx_slice_back(r, x, axis, from, to, step)
                    : onnx_emit(r, NULL, "aten.slice.Tensor(v, i, i, i, i)", x, axis, from, to, step);
}

static npu_value onnx_slice_op(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), begins = onnx_bounds(r, n, 1, "starts"), ends = onnx_bounds(r, n, 2, "ends");
    int64_t axes[NPU_MAX_RANK], steps[NPU_MAX_RANK];
    uint32_t num_axes = onnx_slice_list(r, n, 3, "axes", axes), num_steps = onnx_slice_list(r, n, 4, "steps", steps);
    uint32_t seen = 0;
    size_t count = onnx_num_elements(r, begins);
    if (onnx_num_elements(r, ends) != count || (num_axes && num_axes != count) || (num_steps && num_steps != count)) {
        return onnx_refuse(r, "starts, ends, axes and steps have other lengths");
    }
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        int64_t axis = onnx_axis(r, num_axes ? axes[i] : i, onnx_rank(r, x)), step = num_steps ? steps[i] : 1;
        if (step == 0) {
            return onnx_refuse(r, "a step is 0");
        }
        if (seen >> axis & 1) {
            onnx_fail(r, NPU_ERR_AXIS, "axis %lld is there twice", (long long)axis);
        }
        seen |= 1u << axis;
        x = onnx_slice_along(r, x, axis, onnx_number_in(r, begins, i), onnx_number_in(r, ends, i), step);
    }
    return x;
}

/* The first k of all, sorted, where only the run knows k. */
static void onnx_topk_counted(onnx_reader *r, onnx_node *n, bool is_largest, npu_value *both)
{
    npu_value x = onnx_x(n, 0), zero = onnx_int_constant(r, (const int64_t[]){ 0 }, 1), k = onnx_x(n, 1);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", -1), onnx_rank(r, x));
    if (onnx_num_elements(r, k) != 1) {
        onnx_known_int(r, k, "k");
        return;
    }
    onnx_emit_many(r, n, both, 2, "aten.sort.stable(v, stable=b, dim=i, descending=b)", x, true, axis, is_largest);
    both[1] = onnx_slice_between(r, both[1], axis, zero, k, 1); /* values are as many for sure */
    both[0] = onnx_emit(r, n, "aten.gather.default(0, i, v)", axis, both[1]);
}

static npu_value onnx_topk(onnx_reader *r, onnx_node *n)
{
    npu_value both[2] = { { 0 } }, operand = onnx_x(n, 1);
    bool is_largest = onnx_i(r, n, "largest", 1) != 0, is_sorted = onnx_i(r, n, "sorted", 1) != 0;
    if (operand.id && !onnx_is_known(r, operand)) {
        onnx_topk_counted(r, n, is_largest, both);
    } else {
        int64_t k = operand.id ? onnx_known_int(r, operand, "k") : onnx_i(r, n, "k", 0);
        onnx_emit_many(r, n, both, 2, "aten.topk.default(0, i, axis:-1, b, b)", k, is_largest, is_sorted);
    }
    onnx_result(r, n, 1, both[1]);
    return both[0];
}

/* Where an element beyond the border comes from: the border, the mirror, or the other side. */
static int64_t onnx_source(onnx_span mode, int64_t i, int64_t size)
{
    if (onnx_is(mode, "edge")) {
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    }
    if (onnx_is(mode, "wrap")) {
        return ((i % size) + size) % size;
    }
    int64_t period = size > 1 ? 2 * size - 2 : 1, at = ((i % period) + period) % period;
    return at < size ? at : period - at;
}

static npu_value onnx_pad_by_index(onnx_reader *r, npu_value x, int64_t axis, int64_t begin, int64_t end, onnx_span mode)
{
    int64_t size = onnx_dim(r, x, (uint32_t)axis), first, len, *at;
    if (begin < -size || end < -size || begin > ONNX_MAX_FOLDED || end > ONNX_MAX_FOLDED) {
        return onnx_refuse(r, "a border of that size is not supported");
    }
    first = begin < 0 ? -begin : 0; /* what is cut off is not mirrored */
    size += (end < 0 ? end : 0) - first;
    begin += first;
    len = size + begin + (end > 0 ? end : 0);
    if (size < (len > 0) || len > ONNX_MAX_FOLDED) {
        return onnx_refuse(r, "a border of that size is not supported");
    }
    at = (int64_t *)onnx_alloc(r, (size_t)len * 8 + 8);
    for (int64_t i = 0; at && i < len; i++) {
        at[i] = first + onnx_source(mode, i - begin, size);
    }
    return at ? onnx_select(r, x, axis, at, (uint32_t)len) : onnx_none();
}

/* Borders of all dims, before and behind, in pads; the axes that they are given for. */
static bool onnx_pads(onnx_reader *r, const onnx_node *n, uint32_t rank, int64_t *begin, int64_t *end)
{
    int64_t pads[2 * NPU_MAX_RANK], axes[NPU_MAX_RANK];
    uint32_t count = onnx_x(n, 1).id ? onnx_known(r, onnx_x(n, 1), "pads", pads, 2 * NPU_MAX_RANK)
                     : onnx_has(r, n, "pads") ? onnx_ints(r, n, "pads", pads, 2 * NPU_MAX_RANK)
                                              : onnx_ints(r, n, "paddings", pads, 2 * NPU_MAX_RANK);
    uint32_t num_axes = onnx_x(n, 3).id ? onnx_axes(r, n, 3, rank, axes) : rank;
    memset(begin, 0, NPU_MAX_RANK * sizeof *begin);
    memset(end, 0, NPU_MAX_RANK * sizeof *end);
    if (count != 2 * num_axes) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "pads has %u numbers, expected %u", (unsigned)count, (unsigned)(2 * num_axes));
        return false;
    }
    for (uint32_t i = 0; i < num_axes; i++) {
        uint32_t at = onnx_x(n, 3).id ? (uint32_t)axes[i] : i;
        begin[at] = pads[i];
        end[at] = pads[i + num_axes];
    }
    return r->status == NPU_OK;
}

static npu_value onnx_pad(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t begin[NPU_MAX_RANK], end[NPU_MAX_RANK], pads[2 * NPU_MAX_RANK];
    onnx_span mode = onnx_s(r, n, "mode", "constant");
    double value = onnx_f(r, n, "value", 0);
    int64_t whole = 0; /* of integers, which have it as an operand alone */
    uint32_t rank = onnx_rank(r, x);
    bool pads_any = false, is_float = onnx_is_float(r, x);
    if (!onnx_pads(r, n, rank, begin, end)) {
        return onnx_none();
    }
    for (uint32_t i = 0; i < rank && !onnx_is(mode, "constant") && r->status == NPU_OK; i++) {
        x = begin[i] || end[i] ? onnx_pad_by_index(r, x, i, begin[i], end[i], mode) : x;
    }
    for (uint32_t i = 0; i < rank; i++) {
        pads[2 * (rank - 1 - i)] = begin[i];
        pads[2 * (rank - 1 - i) + 1] = end[i];
        pads_any = pads_any || begin[i] || end[i];
    }
    if (!onnx_is(mode, "constant") || !pads_any) { /* exporters pad by nothing before each pool */
        return x;
    }
    if (onnx_x(n, 2).id && is_float) {
        onnx_known_floats(r, onnx_x(n, 2), "the value of the border", &value, 1);
    } else if (onnx_x(n, 2).id) {
        whole = onnx_known_int(r, onnx_x(n, 2), "the value of the border");
    }
    return is_float ? onnx_emit(r, n, "aten.constant_pad_nd.default(v, I, f)", x, pads, 2 * rank, value)
                    : onnx_emit(r, n, "aten.constant_pad_nd.default(v, I, i)", x, pads, 2 * rank, whole);
}

static npu_value onnx_constant_of_shape(onnx_reader *r, onnx_node *n)
{
    onnx_span tensor = onnx_member(r, onnx_attr(r, n, "value"), ONNX_A_T);
    int64_t dims[NPU_MAX_RANK];
    npu_value counted[NPU_MAX_RANK];
    uint32_t rank = onnx_new_shape(r, onnx_x(n, 0), dims, counted);
    npu_value v = tensor.at ? onnx_reshape(r, onnx_tensor(r, tensor), NULL, 0) : onnx_none();
    v = v.id ? v : onnx_emit(r, n, "aten.scalar_tensor.default(f, dtype=t)", 0.0, NPU_F32);
    return onnx_has_counted(counted, rank) ? onnx_expand_counted(r, v, dims, rank, counted)
                                           : onnx_expand_to(r, v, dims, rank);
}

/* A tensor, or a number or list in one of the other attributes. */
static npu_value onnx_constant(onnx_reader *r, onnx_node *n)
{
    onnx_span tensor = onnx_member(r, onnx_attr(r, n, "value"), ONNX_A_T), list;
    int64_t ints[ONNX_MAX_LIST], i;
    uint64_t words[ONNX_MAX_LIST];
    float floats[ONNX_MAX_LIST];
    uint32_t count;
    if (tensor.at) {
        return onnx_tensor(r, tensor);
    }
    if (onnx_has(r, n, "value_int")) {
        i = onnx_i(r, n, "value_int", 0);
        return npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &i);
    }
    if (onnx_has(r, n, "value_float")) {
        floats[0] = (float)onnx_f(r, n, "value_float", 0);
        return npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 0, NULL), floats);
    }
    list = onnx_attr(r, n, "value_floats");
    if (list.at) {
        count = onnx_repeated(r, list, ONNX_A_FLOATS, 5, words, ONNX_MAX_LIST);
        for (uint32_t k = 0; k < count; k++) {
            onnx_store((uint8_t *)&floats[k], words[k], 4);
        }
        i = count;
        return npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 1, &i), floats);
    }
    if (onnx_has(r, n, "value_ints")) {
        count = onnx_ints(r, n, "value_ints", ints, ONNX_MAX_LIST);
        return onnx_int_constant(r, ints, count);
    }
    return onnx_refuse(r, "constants of strings and sparse ones are not supported");
}

/* 0, 1, 2 ... up to a limit that only the run knows. */
static npu_value onnx_range_counted(onnx_reader *r, onnx_node *n, npu_value limit)
{
    static const int64_t one = 1;
    npu_value ones = onnx_emit(r, n, "aten.add.Scalar(v, i)", onnx_counted_zeros(r, onnx_reshape(r, limit, &one, 1)), (int64_t)1);
    npu_value places = onnx_emit(r, n, "aten.cumsum.default(v, i)", ones, (int64_t)0);
    return onnx_cast(r, onnx_emit(r, n, "aten.sub.Scalar(v, i)", places, (int64_t)1), onnx_type(r, limit));
}

static npu_value onnx_range(onnx_reader *r, onnx_node *n)
{
    npu_dtype dtype = onnx_type(r, onnx_x(n, 0));
    npu_value limit = onnx_x(n, 1);
    double f[3] = { 0, 0, 1 };
    bool is_beyond = false;
    if (limit.id && !onnx_is_known(r, limit) && npu_dtype_is_integer(dtype) && onnx_is_known(r, onnx_x(n, 0)) &&
        onnx_is_known(r, onnx_x(n, 2)) && onnx_known_int(r, onnx_x(n, 0), "start") == 0 &&
        onnx_known_int(r, onnx_x(n, 2), "delta") == 1) {
        return onnx_range_counted(r, n, limit);
    }
    for (uint32_t i = 0; i < 3; i++) {
        onnx_known_floats(r, onnx_x(n, i), "start, limit and delta", &f[i], 1);
        is_beyond = is_beyond || !(fabs(f[i]) <= 9007199254740992.0); /* 2^53: all integers up to there are in f64 */
    }
    if (is_beyond || f[2] == 0 || (f[1] - f[0]) / f[2] > ONNX_MAX_FOLDED) {
        return onnx_refuse(r, "a range of that length is not supported");
    }
    if ((f[1] - f[0]) / f[2] <= 0) {
        int64_t none = 0;
        return npu_constant(r->g, NULL, npu_spec_tensor(dtype, 1, &none), "");
    }
    return npu_dtype_is_float(dtype)
               ? onnx_emit(r, n, "aten.arange.start_step(f, f, f, dtype=t)", f[0], f[1], f[2], (int)dtype)
               : onnx_emit(r, n, "aten.arange.start_step(i, i, i, dtype=t)", (int64_t)f[0], (int64_t)f[1], (int64_t)f[2], (int)dtype);
}

static npu_value onnx_eye_like(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), v;
    int64_t k = onnx_i(r, n, "k", 0), rows = onnx_dim(r, x, 0), columns = onnx_dim(r, x, 1);
    npu_dtype dtype = onnx_has(r, n, "dtype") ? onnx_dtype(r, onnx_i(r, n, "dtype", 0)) : onnx_type(r, x);
    npu_value row = onnx_emit(r, n, "aten.arange.default(i)", rows), column = onnx_emit(r, n, "aten.arange.default(i)", columns);
    v = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", onnx_emit(r, n, "aten.add.Scalar(v, i)", row, k), (int64_t)1);
    return onnx_cast(r, onnx_binary(r, "eq", v, column), dtype);
}

static npu_value onnx_trilu(onnx_reader *r, onnx_node *n)
{
    int64_t k = onnx_x(n, 1).id ? onnx_known_int(r, onnx_x(n, 1), "k") : 0;
    return onnx_emit(r, n, onnx_i(r, n, "upper", 1) ? "aten.triu.default(0, i)" : "aten.tril.default(0, i)", k);
}

static npu_value onnx_depth_to_space(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t b = onnx_i(r, n, "blocksize", 1), c = onnx_dim(r, x, 1), h = onnx_dim(r, x, 2), w = onnx_dim(r, x, 3), batch = onnx_dim_if_any(r, x, 0);
    static const int64_t order[6] = { 0, 3, 4, 1, 5, 2 };
    if (b < 1 || b > 4096 || c % (b * b)) {
        return onnx_refuse(r, "the channels are no multiple of the block");
    }
    if (onnx_s_is(r, n, "mode", "DCR", "CRD")) {
        return onnx_emit(r, n, "aten.pixel_shuffle.default(0, i)", b);
    }
    const int64_t apart[6] = { batch, b, b, c / (b * b), h, w }, joined[4] = { batch, c / (b * b), h * b, w * b };
    return onnx_reshape(r, onnx_permute(r, onnx_reshape(r, x, apart, 6), order, 6), joined, 4);
}

static npu_value onnx_space_to_depth(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t b = onnx_i(r, n, "blocksize", 1), c = onnx_dim(r, x, 1), h = onnx_dim(r, x, 2), w = onnx_dim(r, x, 3), batch = onnx_dim_if_any(r, x, 0);
    static const int64_t order[6] = { 0, 3, 5, 1, 2, 4 };
    if (b < 1 || b > 4096 || h % b || w % b) {
        return onnx_refuse(r, "a size is no multiple of the block");
    }
    const int64_t apart[6] = { batch, c, h / b, b, w / b, b }, joined[4] = { batch, c * b * b, h / b, w / b };
    return onnx_reshape(r, onnx_permute(r, onnx_reshape(r, x, apart, 6), order, 6), joined, 4);
}

/* ---- ops: sequences ----------------------------------------------------------------------------------------------

   Lists of values that are known while the model is read: exporters write what a program does with its lists. Those that the
   model would take or give are refused, and those that a branch or loop would that only the run knows. */

/* Of values of which none may be a sequence. */
static bool onnx_are_tensors(onnx_reader *r, const npu_value *v, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (onnx_is_sequence(v[i])) {
            onnx_fail(r, NPU_ERR_UNSUPPORTED,
                      "value %u that a graph takes or gives is a sequence, expected a tensor: what data decides, "
                      "or a turn gives out, can be none", (unsigned)i);
        }
    }
    return r->status == NPU_OK;
}

/* The sequence that a node takes; one of nothing where it takes a tensor, which is said. */
static onnx_list onnx_sequence(onnx_reader *r, const onnx_node *n)
{
    onnx_list none = { NULL, 0, NPU_NONE };
    if (!onnx_is_sequence(onnx_x(n, 0))) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "operand 0 is a tensor, expected a sequence");
        return none;
    }
    return *onnx_list_of(r, onnx_x(n, 0));
}

/* A place of `count`, which may count from the end; `otherwise` where none is given. */
static uint32_t onnx_sequence_position(onnx_reader *r, npu_value v, int64_t count, int64_t otherwise)
{
    int64_t at = v.id ? onnx_known_int(r, v, "the position") : otherwise;
    if (at < -count || at > count) {
        onnx_fail(r, NPU_ERR_RANGE, "position %lld of a sequence of %lld", (long long)at, (long long)count);
        return 0;
    }
    return (uint32_t)(at < 0 ? at + count : at);
}

/* The same of one that is there. */
static uint32_t onnx_sequence_place(onnx_reader *r, npu_value v, const onnx_list *list, int64_t otherwise)
{
    uint32_t at = onnx_sequence_position(r, v, list->count, otherwise);
    if (at >= list->count) {
        onnx_fail(r, NPU_ERR_RANGE, "position %u of a sequence of %u", (unsigned)at, (unsigned)list->count);
        return 0;
    }
    return at;
}

static bool onnx_may_hold(onnx_reader *r, npu_dtype dtype, npu_value v)
{
    if (onnx_type(r, v) != dtype) {
        onnx_fail(r, NPU_ERR_DTYPE, "a tensor of %s in a sequence of %s", npu_dtype_name(onnx_type(r, v)), npu_dtype_name(dtype));
    }
    return r->status == NPU_OK;
}

static npu_value onnx_sequence_construct(onnx_reader *r, onnx_node *n)
{
    npu_value *values, made = onnx_new_list(r, onnx_type(r, onnx_x(n, 0)), n->num_x, &values);
    for (uint32_t i = 0; made.id && i < n->num_x && onnx_may_hold(r, onnx_type(r, n->x[0]), n->x[i]); i++) {
        values[i] = n->x[i];
    }
    return made;
}

static npu_value onnx_sequence_empty(onnx_reader *r, onnx_node *n)
{
    npu_value *values;
    return onnx_new_list(r, onnx_dtype(r, onnx_i(r, n, "dtype", 1)), 0, &values);
}

static npu_value onnx_sequence_at(onnx_reader *r, onnx_node *n)
{
    onnx_list list = onnx_sequence(r, n);
    uint32_t at = r->status == NPU_OK ? onnx_sequence_place(r, onnx_x(n, 1), &list, 0) : 0;
    return r->status ? onnx_none() : list.values[at];
}

static npu_value onnx_sequence_insert(onnx_reader *r, onnx_node *n)
{
    onnx_list list = onnx_sequence(r, n);
    uint32_t at = r->status == NPU_OK ? onnx_sequence_position(r, onnx_x(n, 2), list.count, list.count) : 0;
    npu_value *values, more = onnx_none();
    if (r->status == NPU_OK && onnx_may_hold(r, list.dtype, onnx_x(n, 1))) {
        more = onnx_new_list(r, list.dtype, list.count + 1, &values);
    }
    for (uint32_t i = 0; more.id && i <= list.count; i++) {
        values[i] = i == at ? onnx_x(n, 1) : list.values[i - (i > at)];
    }
    return more;
}

static npu_value onnx_sequence_erase(onnx_reader *r, onnx_node *n)
{
    onnx_list list = onnx_sequence(r, n);
    int64_t last = list.count ? list.count - 1 : 0;
    uint32_t at = r->status == NPU_OK ? onnx_sequence_place(r, onnx_x(n, 1), &list, last) : 0;
    npu_value *values, fewer = r->status ? onnx_none() : onnx_new_list(r, list.dtype, list.count - 1, &values);
    for (uint32_t i = 0; fewer.id && i + 1 < list.count; i++) {
        values[i] = list.values[i + (i >= at)];
    }
    return fewer;
}

static npu_value onnx_sequence_length(onnx_reader *r, onnx_node *n)
{
    int64_t count = onnx_sequence(r, n).count;
    return npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &count);
}

static npu_value onnx_concat_from_sequence(onnx_reader *r, onnx_node *n)
{
    onnx_list list = onnx_sequence(r, n);
    bool is_new = onnx_i(r, n, "new_axis", 0) != 0;
    int64_t axis = onnx_i(r, n, "axis", 0);
    if (!list.count) {
        return onnx_refuse(r, "an empty sequence, of which nothing is known to join, is not supported");
    }
    axis = onnx_axis(r, axis, onnx_rank(r, list.values[0]) + is_new);
    return onnx_emit(r, n, is_new ? "aten.stack.default(V, i)" : "aten.cat.default(V, i)", list.values, list.count,
                     axis);
}

/* Of an axis, those given, or as many as there are of one size, the last of which may be smaller: *size; 0 = they are
   given. */
static int64_t *onnx_split_sizes(onnx_reader *r, npu_value split, int64_t whole, uint32_t *count, int64_t *size)
{
    bool is_listed = split.id && onnx_rank(r, split) == 1;
    int64_t *sizes, each = is_listed ? 0 : split.id ? onnx_known_int(r, split, "split") : 1;
    int64_t most = is_listed ? (int64_t)onnx_num_elements(r, split) : each > 0 ? whole / each : INT64_MAX; /* parts, or one fewer */
    *count = 0;
    *size = each;
    if (most > ONNX_MAX_LIST - 1) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "a dim of %lld split by %lld, expected at least 1, and less than %d parts", (long long)whole,
                  (long long)each, (int)ONNX_MAX_LIST);
        return NULL;
    }
    sizes = (int64_t *)onnx_alloc(r, (size_t)(most + 1) * sizeof *sizes);
    if (sizes && is_listed) {
        *count = onnx_known(r, split, "split", sizes, (uint32_t)most);
    }
    for (; sizes && !is_listed && r->status == NPU_OK && whole > 0; whole -= each) {
        sizes[(*count)++] = each < whole ? each : whole;
    }
    return sizes;
}

/* Of parts of 1, keepdims = 0 drops the dim, where they are asked for by a number, too, as PyTorch's unbind and ONNX Runtime
   have it; where sizes are listed it says nothing. */
static npu_value onnx_split_to_sequence(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x)), each;
    bool keeps = onnx_i(r, n, "keepdims", 1) != 0;
    uint32_t count;
    int64_t *sizes = onnx_split_sizes(r, onnx_x(n, 1), onnx_dim(r, x, (uint32_t)axis), &count, &each);
    npu_value *values, made = r->status ? onnx_none() : onnx_new_list(r, onnx_type(r, x), count, &values);
    if (made.id && count) {
        onnx_split_at(r, n, x, axis, sizes, values, count);
    }
    for (uint32_t i = 0; made.id && !keeps && each == 1 && i < count; i++) {
        values[i] = onnx_emit(r, n, "aten.squeeze.dim(v, i)", values[i], axis);
    }
    return made;
}

/* ---- ops: picking and placing ------------------------------------------------------------------------------------ */

static npu_value onnx_index_put(onnx_reader *r, npu_value x, const npu_value *index, uint32_t count, npu_value values, bool adds)
{
    return onnx_emit(r, NULL, "aten.index_put.default(v, V, v, b)", x, index, count, values, adds);
}

/* The size that is taken out of a list of sizes; none = it is no list, or more is taken. */
static npu_value onnx_listed_size(onnx_reader *r, npu_value list, npu_value at)
{
    npu_op op = list.id ? npu_value_producer(r->g, list, NULL) : (npu_op){ 0 };
    int64_t count = npu_op_num_operands(r->g, op), i;
    if (npu_op_kind(r->g, op) != NPU_ATEN_CAT || onnx_rank(r, list) != 1 || count != (int64_t)onnx_num_elements(r, list) ||
        !onnx_is_known(r, at) || onnx_rank(r, at) > 1 || onnx_num_elements(r, at) != 1) {
        return onnx_none();
    }
    i = onnx_known_int(r, at, "the index");
    i = i < 0 ? i + count : i;
    return i >= 0 && i < count ? npu_op_operand_value(r->g, op, (uint32_t)i) : onnx_none();
}

static npu_value onnx_gather(onnx_reader *r, onnx_node *n)
{
    npu_value index[NPU_MAX_RANK] = { { 0 } }, at = onnx_x(n, 1), size = onnx_listed_size(r, onnx_x(n, 0), at);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, onnx_x(n, 0))), one = 1;
    if (size.id) {
        return onnx_reshape(r, size, &one, onnx_rank(r, at));
    }
    if (onnx_rank(r, at) == 0 && onnx_is_known(r, at)) {
        return onnx_emit(r, n, "aten.select.int(0, i, i)", axis, onnx_known_int(r, at, "the index"));
    }
    index[axis] = onnx_cast(r, at, NPU_I64);
    return onnx_emit(r, n, "aten.index.Tensor(0, V)", index, (uint32_t)axis + 1);
}

/* Indices from the end on are counted from the front, along an axis. */
static npu_value onnx_from_front(onnx_reader *r, npu_value index, npu_value x, int64_t axis)
{
    npu_value wide = onnx_cast(r, index, NPU_I64);
    npu_value moved = onnx_is_counted(r, x, axis, axis + 1)
                          ? onnx_binary(r, "add", wide, onnx_counted_shape(r, x, (uint32_t)axis, (uint32_t)axis + 1))
                          : onnx_emit(r, NULL, "aten.add.Scalar(v, i)", wide, onnx_dim(r, x, (uint32_t)axis));
    return onnx_where(r, onnx_emit(r, NULL, "aten.lt.Scalar(v, i)", wide, (int64_t)0), moved, wide);
}

static npu_value onnx_gather_elements(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x));
    return onnx_emit(r, n, "aten.gather.default(0, i, v)", axis, onnx_from_front(r, onnx_x(n, 1), x, axis));
}

static npu_value onnx_scatter_elements(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), index;
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x));
    onnx_span how = onnx_s(r, n, "reduction", "none");
    index = onnx_from_front(r, onnx_x(n, 1), x, axis);
    return onnx_is(how, "none") ? onnx_emit(r, n, "aten.scatter.src(0, i, v, 2)", axis, index)
                                : onnx_emit(r, n, "aten.scatter_reduce.two(0, i, v, 2, s)", axis, index,
                                            onnx_is(how, "add") ? "sum" : onnx_is(how, "mul") ? "prod" : onnx_is(how, "max") ? "amax" : "amin");
}

/* The last dim of the indices says where, one number for each of the first dims (behind `batch` that are one by one). */
static uint32_t onnx_index_lists(onnx_reader *r, npu_value indices, uint32_t batch, npu_value *out)
{
    uint32_t rank = onnx_rank(r, indices), count = rank ? (uint32_t)onnx_dim(r, indices, rank - 1) : 0;
    int64_t dims[NPU_MAX_RANK];
    if (!rank || count + batch > NPU_MAX_RANK) {
        onnx_fail(r, NPU_ERR_RANK, "indices of that shape are not supported");
        return 0;
    }
    indices = onnx_cast(r, indices, NPU_I64);
    for (uint32_t i = 0; i < batch; i++) {
        for (uint32_t k = 0; k < NPU_MAX_RANK; k++) {
            dims[k] = k == i ? -1 : 1;
        }
        out[i] = onnx_reshape(r, onnx_emit(r, NULL, "aten.arange.default(i)", onnx_dim(r, indices, i)), dims, rank - 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[batch + i] = onnx_emit(r, NULL, "aten.select.int(v, i, i)", indices, (int64_t)rank - 1, (int64_t)i);
    }
    return batch + count;
}

static npu_value onnx_gather_nd(onnx_reader *r, onnx_node *n)
{
    npu_value lists[NPU_MAX_RANK];
    int64_t batch = onnx_i(r, n, "batch_dims", 0);
    uint32_t count;
    if (batch < 0 || batch >= (int64_t)onnx_rank(r, onnx_x(n, 1))) {
        return onnx_refuse(r, "batch_dims is no number of dims");
    }
    count = onnx_index_lists(r, onnx_x(n, 1), (uint32_t)batch, lists);
    return onnx_emit(r, n, "aten.index.Tensor(0, V)", lists, count);
}

/* What is placed is multiplied with, or compared with, what is there: along rows of all that the indices do not say. */
static npu_value onnx_scatter_rows(onnx_reader *r, npu_value x, const npu_value *lists, uint32_t count, npu_value values, const char *how)
{
    int64_t dims[NPU_MAX_RANK], flat[2] = { 1, 1 }, all[2];
    uint32_t rank = onnx_rank(r, x);
    npu_value at = { 0 };
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = onnx_dim(r, x, i);
        flat[i >= count] *= dims[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        npu_value next = onnx_from_front(r, lists[i], x, i);
        at = i ? onnx_binary(r, "add", onnx_emit(r, NULL, "aten.mul.Scalar(v, i)", at, dims[i]), next) : next;
    }
    all[0] = -1;
    all[1] = flat[1];
    values = onnx_reshape(r, values, all, 2);
    all[1] = 1;
    all[0] = onnx_dim(r, values, 0);
    at = onnx_reshape(r, at, all, 2);
    all[1] = flat[1];
    at = onnx_expand_to(r, at, all, 2);
    x = onnx_emit(r, NULL, "aten.scatter_reduce.two(v, i, v, v, s)", onnx_reshape(r, x, flat, 2), (int64_t)0, at, values, how);
    return onnx_reshape(r, x, dims, rank);
}

static npu_value onnx_scatter_nd(onnx_reader *r, onnx_node *n)
{
    npu_value lists[NPU_MAX_RANK];
    uint32_t count = onnx_index_lists(r, onnx_x(n, 1), 0, lists);
    onnx_span how = onnx_s(r, n, "reduction", "none");
    if (r->status || onnx_is(how, "none") || onnx_is(how, "add")) {
        return onnx_index_put(r, onnx_x(n, 0), lists, count, onnx_x(n, 2), onnx_is(how, "add"));
    }
    return onnx_scatter_rows(r, onnx_x(n, 0), lists, count, onnx_x(n, 2),
                             onnx_is(how, "mul") ? "prod" : onnx_is(how, "max") ? "amax" : "amin");
}

static npu_value onnx_nonzero(onnx_reader *r, onnx_node *n) { return onnx_transposed(r, onnx_emit(r, n, "aten.nonzero.default(0)")); }

/* As many ones as classes, at the index; an index may count from the end. */
static npu_value onnx_one_hot(onnx_reader *r, onnx_node *n)
{
    npu_value index = onnx_x(n, 0), values = onnx_x(n, 2), classes, depth_value = onnx_x(n, 1);
    double depth = 0;
    uint32_t rank = onnx_rank(r, index) + 1;
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", -1), rank), dims[NPU_MAX_RANK];
    onnx_known_floats(r, depth_value, "depth", &depth, 1);
    if (depth < 1 || depth > ONNX_MAX_FOLDED || rank > NPU_MAX_RANK || onnx_num_elements(r, values) != 2) {
        return onnx_refuse(r, "a depth, or values, that are not supported");
    }
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i == axis ? -1 : 1;
    }
    classes = onnx_reshape(r, onnx_emit(r, n, "aten.arange.default(i)", (int64_t)depth), dims, rank);
    index = onnx_cast(r, index, NPU_I64); /* one that is out of range is no class */
    index = onnx_where(r, onnx_emit(r, n, "aten.lt.Scalar(v, i)", index, (int64_t)0),
                       onnx_emit(r, n, "aten.add.Scalar(v, i)", index, (int64_t)depth), index);
    index = onnx_binary(r, "eq", onnx_emit(r, n, "aten.unsqueeze.default(v, i)", index, axis), classes);
    return onnx_where(r, index, onnx_emit(r, n, "aten.select.int(v, i, i)", values, (int64_t)0, (int64_t)1),
                      onnx_emit(r, n, "aten.select.int(v, i, i)", values, (int64_t)0, (int64_t)0));
}

static npu_value onnx_compress(onnx_reader *r, onnx_node *n)
{
    static const int64_t flat = -1;
    npu_value x = onnx_x(n, 0), at = onnx_emit(r, n, "aten.nonzero.default(1)");
    bool has_axis = onnx_has(r, n, "axis");
    x = has_axis ? x : onnx_reshape(r, x, &flat, 1);
    at = onnx_emit(r, n, "aten.select.int(v, i, i)", at, (int64_t)1, (int64_t)0);
    return onnx_emit(r, n, "aten.index_select.default(v, axis:0, v)", x, at);
}

/* Values, where each is in them, and how many there are, ordered as said or by the first place of each, which is
   given out. */
static npu_value onnx_unique_of(onnx_reader *r, const onnx_node *n, bool is_sorted, npu_value *all)
{
    static const int64_t flat = -1;
    bool has_axis = onnx_has(r, n, "axis");
    npu_value x = onnx_x(n, 0), first, order, places;
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 0), onnx_rank(r, x));
    x = has_axis ? x : onnx_reshape(r, x, &flat, 1);
    if (has_axis) {
        onnx_emit_many(r, n, all, 3, "aten.unique_dim.default(v, i, b, b, b)", x, axis, true, true, true);
    } else {
        onnx_emit_many(r, n, all, 3, "aten._unique2.default(v, b, b, b)", x, true, true, true);
    }
    places = onnx_emit(r, n, "aten.arange.default(i)", onnx_dim(r, x, (uint32_t)(has_axis ? axis : 0)));
    first = onnx_emit(r, n, "aten.scatter_reduce.two(v, i, v, v, s, include_self=b)", onnx_emit(r, n, "aten.zeros_like.default(v)", all[2]),
                      (int64_t)0, all[1], places, "amin", false);
    if (!is_sorted) {
        order = onnx_emit(r, n, "aten.argsort.default(v)", first);
        all[0] = onnx_emit(r, n, "aten.index_select.default(v, i, v)", all[0], has_axis ? axis : 0, order);
        all[2] = onnx_emit(r, n, "aten.index_select.default(v, i, v)", all[2], (int64_t)0, order);
        first = onnx_emit(r, n, "aten.index_select.default(v, i, v)", first, (int64_t)0, order);
        order = onnx_emit(r, n, "aten.argsort.default(v)", order);
        all[1] = onnx_emit(r, n, "aten.index_select.default(v, i, v)", order, (int64_t)0, all[1]);
    }
    return first;
}

static npu_value onnx_unique(onnx_reader *r, onnx_node *n)
{
    npu_value all[3];
    onnx_result(r, n, 1, onnx_unique_of(r, n, onnx_i(r, n, "sorted", 1) != 0, all));
    onnx_result(r, n, 2, all[1]);
    onnx_result(r, n, 3, all[2]);
    return all[0];
}

/* Steps along the first dim, of each in a batch those before its length turned round. */
static npu_value onnx_reversed(onnx_reader *r, npu_value x, npu_value lens)
{
    uint32_t rank = onnx_rank(r, x);
    int64_t steps = onnx_dim(r, x, 0), down[2] = { -1, 1 }, dims[NPU_MAX_RANK], whole[NPU_MAX_RANK];
    npu_value t = onnx_reshape(r, onnx_emit(r, NULL, "aten.arange.default(i)", steps), down, 2), back;
    lens = onnx_cast(r, lens, NPU_I64);
    back = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", onnx_binary(r, "sub", lens, t), (int64_t)1);
    back = onnx_where(r, onnx_binary(r, "lt", t, lens), back, t);
    for (uint32_t i = 0; i < rank; i++) {
        whole[i] = onnx_dim(r, x, i);
        dims[i] = i < 2 ? whole[i] : 1;
    }
    back = onnx_expand_to(r, onnx_reshape(r, back, dims, rank), whole, rank);
    return onnx_emit(r, NULL, "aten.gather.default(v, i, v)", x, (int64_t)0, back);
}

static npu_value onnx_reverse_sequence(onnx_reader *r, onnx_node *n)
{
    static const int64_t swap[NPU_MAX_RANK] = { 1, 0, 2, 3, 4, 5, 6, 7 };
    npu_value x = onnx_x(n, 0);
    bool is_swapped = onnx_i(r, n, "time_axis", 0) == 1;
    x = is_swapped ? onnx_permute(r, x, swap, onnx_rank(r, x)) : x;
    x = onnx_reversed(r, x, onnx_x(n, 1));
    return is_swapped ? onnx_permute(r, x, swap, onnx_rank(r, x)) : x;
}

/* ---- ops: resize ------------------------------------------------------------------------------------------------- */

typedef struct onnx_resize {
    onnx_span transform, nearest, mode;
    double cubic, extrapolated;
    bool excludes, antialiases, is_old; /* is_old: opset 10, which takes the next element where it makes smaller */
} onnx_resize;

/* Where the middle of element i lies, as runtimes count in f32: 1.5 / 0.6 is 2.5 there, where an element ends and the next
   begins. */
static double onnx_middle(double i, double scale) { return (double)(float)((i + 0.5) / (double)(float)scale) - 0.5; }

/* Where element i of the result lies in the operand. */
static double onnx_position(const onnx_resize *z, double i, double size, double out, double scale, const double *roi)
{
    if (onnx_is(z->transform, "asymmetric")) {
        return i / scale;
    }
    if (onnx_is(z->transform, "align_corners")) {
        return out > 1 ? i * (size - 1) / (out - 1) : 0;
    }
    if (onnx_is(z->transform, "pytorch_half_pixel")) {
        return out > 1 ? onnx_middle(i, scale) : 0;
    }
    if (onnx_is(z->transform, "tf_half_pixel_for_nn")) {
        return (i + 0.5) / scale;
    }
    if (onnx_is(z->transform, "tf_crop_and_resize")) {
        return out > 1 ? roi[0] * (size - 1) + i * (roi[1] - roi[0]) * (size - 1) / (out - 1) : 0.5 * (roi[0] + roi[1]) * (size - 1);
    }
    if (onnx_is(z->transform, "half_pixel_symmetric")) {
        return size / 2 * (1 - out / (scale * size)) + onnx_middle(i, scale);
    }
    return onnx_middle(i, scale);
}

static double onnx_nearest(const onnx_resize *z, double x)
{
    return onnx_is(z->nearest, "floor") ? floor(x) : onnx_is(z->nearest, "ceil") ? ceil(x)
           : onnx_is(z->nearest, "round_prefer_ceil") ? floor(x + 0.5) : ceil(x - 0.5);
}

static double onnx_kernel(const onnx_resize *z, double d)
{
    double a = z->cubic;
    d = fabs(d);
    if (onnx_is(z->mode, "linear")) {
        return d < 1 ? 1 - d : 0;
    }
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* What each element of the operand gives to one at x; elements beyond the border are those at it, however far x is. */
static void onnx_weights(const onnx_resize *z, double x, int64_t size, double scale, double *row)
{
    double wide = z->antialiases && scale < 1 ? scale : 1, reach = (onnx_is(z->mode, "linear") ? 1 : 2) / wide, sum = 0;
    x = fmax(fmin(x, (double)size + reach), -1 - reach);
    for (double at = floor(x - reach); at <= ceil(x + reach); at++) {
        double w = onnx_kernel(z, (at - x) * wide);
        bool is_beyond = at < 0 || at > (double)size - 1;
        if (!(is_beyond && z->excludes)) {
            row[at < 0 ? 0 : is_beyond ? size - 1 : (int64_t)at] += w;
            sum += w;
        }
    }
    for (int64_t k = 0; k < size && (z->excludes || wide < 1); k++) {
        row[k] /= sum;
    }
}

/* What lies outside of a region that is cut out is a number of its own. */
static npu_value onnx_extrapolated(onnx_reader *r, const onnx_resize *z, npu_value v, int64_t axis, const bool *is_outside, int64_t out)
{
    if (!onnx_is(z->transform, "tf_crop_and_resize")) {
        return v;
    }
    npu_value outside = npu_constant(r->g, NULL, npu_spec_tensor(NPU_BOOL, 1, &out), is_outside);
    return onnx_where(r, onnx_along(r, outside, onnx_rank(r, v), axis), onnx_like(r, v, z->extrapolated), v);
}

/* The border itself is said of f32, too: a region that ends at 1 ends there. */
static bool onnx_is_outside(const onnx_resize *z, double at, int64_t size)
{
    return onnx_is(z->transform, "tf_crop_and_resize") && (at < 0 || (float)at > (float)(size - 1));
}

/* Nearest elements are picked; where two are as near is said of f32, as runtimes count. */
static npu_value onnx_resize_pick(onnx_reader *r, const onnx_resize *z, npu_value x, int64_t axis, int64_t out, double scale, const double *roi)
{
    int64_t size = onnx_dim(r, x, (uint32_t)axis), *at = (int64_t *)onnx_alloc(r, (size_t)out * 8 + 8);
    bool *is_outside = (bool *)onnx_alloc(r, (size_t)out + 1);
    for (int64_t i = 0; at && is_outside && i < out; i++) {
        float where = (float)onnx_position(z, (double)i, (double)size, (double)out, scale, roi);
        double from = z->is_old && scale < 1 ? ceil((double)where) : onnx_nearest(z, (double)where);
        is_outside[i] = onnx_is_outside(z, (double)where, size);
        at[i] = from < 0 ? 0 : from > (double)(size - 1) ? size - 1 : (int64_t)from;
    }
    return at && is_outside ? onnx_extrapolated(r, z, onnx_select(r, x, axis, at, (uint32_t)out), axis, is_outside, out) : onnx_none();
}

/* Others are sums with weights: a product with a matrix along the axis, after which what lies outside is set. */
static npu_value onnx_resize_mix(onnx_reader *r, const onnx_resize *z, npu_value x, int64_t axis, int64_t out, double scale, const double *roi)
{
    int64_t size = onnx_dim(r, x, (uint32_t)axis), dims[2], order[NPU_MAX_RANK], rank = onnx_rank(r, x);
    double *matrix = out * size > ONNX_MAX_FOLDED ? NULL : (double *)onnx_alloc(r, (size_t)(out * size) * 8 + 8);
    bool *is_outside = (bool *)onnx_alloc(r, (size_t)out + 1);
    npu_value w, v;
    if (!matrix || !is_outside) {
        return onnx_refuse(r, "a resize of that size is not supported");
    }
    for (int64_t i = 0; i < out; i++) {
        double at = onnx_position(z, (double)i, (double)size, (double)out, scale, roi);
        is_outside[i] = onnx_is_outside(z, at, size);
        onnx_weights(z, at, size, scale, matrix + i * size);
    }
    dims[0] = out;
    dims[1] = size;
    w = onnx_cast(r, npu_constant(r->g, NULL, npu_spec_tensor(NPU_F64, 2, dims), matrix), onnx_type(r, x));
    for (int64_t i = 0; i < rank; i++) {
        order[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    }
    v = onnx_emit(r, NULL, "aten.linear.default(v, v)", onnx_permute(r, x, order, (uint32_t)rank), w);
    v = onnx_extrapolated(r, z, v, rank - 1, is_outside, out);
    return onnx_permute(r, v, order, (uint32_t)rank);
}

/* A dim with a name, as a batch has, may stay as it is; any number stands for its size then. */
static bool onnx_is_kept(const onnx_reader *r, npu_value x, int64_t axis, double scale)
{
    return scale == 1 && onnx_dim_if_any(r, x, axis) < 0;
}

/* One axis, where anything changes. */
static npu_value onnx_resize_axis(onnx_reader *r, const onnx_resize *z, npu_value x, int64_t axis, int64_t out, double scale, const double *roi)
{
    int64_t size;
    if (onnx_is_kept(r, x, axis, scale) && !onnx_is(z->transform, "tf_crop_and_resize")) {
        return x;
    }
    size = onnx_dim(r, x, (uint32_t)axis);
    if (out < 1 || size < 1 || out > ONNX_MAX_FOLDED) {
        return onnx_refuse(r, "a resize to that size is not supported");
    }
    if (out == size && scale == 1 && !onnx_is(z->transform, "tf_crop_and_resize")) {
        return x;
    }
    return onnx_is(z->mode, "nearest") ? onnx_resize_pick(r, z, x, axis, out, scale, roi) : onnx_resize_mix(r, z, x, axis, out, scale, roi);
}

/* A size that is computed; -1 = it is none, or too large. */
static int64_t onnx_whole_size(double x) { return x >= 0 && x <= ONNX_MAX_FOLDED ? (int64_t)x : -1; }

/* Sizes, or scales, of the axes that are given; sizes may keep the ratio. */
static void onnx_resize_sizes(onnx_reader *r, const onnx_node *n, npu_value x, npu_value scales, npu_value sizes, const int64_t *axes,
                              uint32_t count, int64_t *out, double *scale)
{
    int64_t given[NPU_MAX_RANK];
    double ratio = 0;
    bool larger = onnx_s_is(r, n, "keep_aspect_ratio_policy", "stretch", "not_larger");
    bool keeps = larger || onnx_s_is(r, n, "keep_aspect_ratio_policy", "stretch", "not_smaller");
    uint32_t num = sizes.id ? onnx_known(r, sizes, "sizes", given, NPU_MAX_RANK) : onnx_known_floats(r, scales, "scales", scale, NPU_MAX_RANK);
    if (num != count) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "scales or sizes: %u numbers, expected %u", (unsigned)num, (unsigned)count);
    }
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        int64_t size = onnx_is_kept(r, x, axes[i], sizes.id ? 0 : scale[i]) ? 1 : onnx_dim(r, x, (uint32_t)axes[i]);
        scale[i] = sizes.id ? (double)given[i] / (double)size : scale[i];
        out[i] = sizes.id ? given[i] : onnx_whole_size((double)((float)size * (float)scale[i])); /* 5 times 2.6 is 13 in f32 */
        ratio = i == 0 || (larger ? scale[i] < ratio : scale[i] > ratio) ? scale[i] : ratio;
    }
    for (uint32_t i = 0; i < count && sizes.id && keeps && r->status == NPU_OK; i++) {
        out[i] = onnx_whole_size((double)onnx_dim(r, x, (uint32_t)axes[i]) * ratio + 0.5);
        scale[i] = ratio;
    }
}

/* Does each element stand as often side by side? Up to 8 times ops in f32 do not miscount. */
static bool onnx_repeats(const onnx_resize *z, double scale)
{
    bool is_middle = onnx_is(z->transform, "half_pixel") || onnx_is(z->transform, "pytorch_half_pixel");
    return onnx_is(z->mode, "nearest") && scale >= 1 && scale <= 8 && scale == floor(scale) &&
           (is_middle ? z->nearest.at[0] == 'r' : onnx_is(z->transform, "asymmetric") && onnx_is(z->nearest, "floor"));
}

/* Of pictures doubled, or made otherwise larger or smaller, what the registry has an op for. */
static bool onnx_resize_image(onnx_reader *r, const onnx_resize *z, npu_value *x, const int64_t *axes, uint32_t count, const int64_t *out,
                              const double *scale)
{
    bool is_spatial = onnx_rank(r, *x) == 4, is_corners = onnx_is(z->transform, "align_corners");
    bool is_half = onnx_is(z->transform, "half_pixel") || (onnx_is(z->transform, "pytorch_half_pixel"));
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = onnx_is_kept(r, *x, axes[i], scale[i]) ? 1 : onnx_dim(r, *x, (uint32_t)axes[i]);
        is_spatial = is_spatial && (axes[i] >= 2 || out[i] == size) && (axes[i] < 2 || out[i] > 1) &&
                     (is_corners || (double)out[i] == (double)size * scale[i]);
    }
    if (!is_spatial || count < 2 || axes[count - 1] != 3 || axes[count - 2] != 2) {
        return false;
    }
    if (onnx_is_float(r, *x) && onnx_repeats(z, scale[count - 1]) && onnx_repeats(z, scale[count - 2])) {
        *x = onnx_emit(r, NULL, "aten.upsample_nearest2d.default(v, I)", *x, out + count - 2, (uint32_t)2);
        return true;
    }
    if (!onnx_is(z->mode, "linear") || z->antialiases || (!is_half && !is_corners)) {
        return false;
    }
    *x = onnx_emit(r, NULL, "aten.upsample_bilinear2d.vec(v, I, b, _)", *x, out + count - 2, (uint32_t)2, is_corners);
    return true;
}

static npu_value onnx_resize_with(onnx_reader *r, const onnx_node *n, const onnx_resize *z, npu_value scales, npu_value sizes, npu_value roi_value)
{
    npu_value x = onnx_x(n, 0);
    bool is_whole = !onnx_is_float(r, x) && !onnx_is(z->mode, "nearest");
    uint32_t rank = onnx_rank(r, x);
    int64_t axes[NPU_MAX_RANK], out[NPU_MAX_RANK];
    double scale[NPU_MAX_RANK], roi[2 * NPU_MAX_RANK] = { 0 };
    uint32_t count = onnx_has(r, n, "axes") ? onnx_axes(r, n, 9, rank, axes) : 0;
    for (uint32_t i = 0; !onnx_has(r, n, "axes") && i < rank; i++) {
        axes[count++] = i;
    }
    onnx_resize_sizes(r, n, x, scales, sizes, axes, count, out, scale);
    if (onnx_is(z->transform, "tf_crop_and_resize") && z->antialiases && !onnx_is(z->mode, "nearest")) {
        return onnx_refuse(r, "antialias with tf_crop_and_resize is not supported"); /* runtimes do not agree on it */
    }
    if (onnx_is(z->transform, "tf_crop_and_resize") && onnx_known_floats(r, roi_value, "roi", roi, 2 * NPU_MAX_RANK) != 2 * count) {
        return onnx_refuse(r, "roi has another length");
    }
    x = is_whole ? onnx_cast(r, x, NPU_F32) : x; /* and rounded at the end, towards zero where nothing smooths */
    if (r->status == NPU_OK && onnx_resize_image(r, z, &x, axes, count, out, scale)) {
        count = 0;
    }
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        double part[2];
        part[0] = roi[i];
        part[1] = roi[i + count];
        x = onnx_resize_axis(r, z, x, axes[i], out[i], scale[i], part);
    }
    x = is_whole && z->antialiases ? onnx_unary(r, "floor", onnx_emit(r, NULL, "aten.add.Scalar(v, f)", x, 0.5)) : x;
    return onnx_cast(r, x, onnx_type(r, onnx_x(n, 0)));
}

static onnx_span onnx_literal(const char *text)
{
    onnx_span s;
    s.at = (const uint8_t *)text;
    s.end = s.at + strlen(text);
    return s;
}

static npu_value onnx_resize_op(onnx_reader *r, onnx_node *n)
{
    onnx_resize z;
    npu_value scales = onnx_x(n, r->opset < 11 ? 1 : 2), sizes = onnx_x(n, 3);
    z.transform = onnx_s(r, n, "coordinate_transformation_mode", r->opset < 11 ? "asymmetric" : "half_pixel");
    z.nearest = onnx_s(r, n, "nearest_mode", r->opset < 11 ? "floor" : "round_prefer_floor");
    z.mode = onnx_s(r, n, "mode", "nearest");
    z.cubic = onnx_f(r, n, "cubic_coeff_a", -0.75);
    z.extrapolated = onnx_f(r, n, "extrapolation_value", 0);
    z.excludes = onnx_i(r, n, "exclude_outside", 0) != 0;
    z.antialiases = onnx_i(r, n, "antialias", 0) != 0;
    z.is_old = r->opset < 11;
    return onnx_resize_with(r, n, &z, scales, sizes, onnx_x(n, 1));
}

static npu_value onnx_upsample(onnx_reader *r, onnx_node *n)
{
    onnx_resize z = { { NULL, NULL }, { NULL, NULL }, { NULL, NULL }, -0.75, 0, false, false, false };
    npu_value scales = onnx_x(n, 1);
    z.transform = onnx_literal("asymmetric");
    z.nearest = onnx_literal("floor");
    z.mode = onnx_s(r, n, "mode", "nearest");
    if (!scales.id) {
        uint64_t words[NPU_MAX_RANK];
        float floats[NPU_MAX_RANK];
        int64_t count = onnx_repeated(r, onnx_attr(r, n, "scales"), ONNX_A_FLOATS, 5, words, NPU_MAX_RANK);
        for (int64_t i = 0; i < count; i++) {
            onnx_store((uint8_t *)&floats[i], words[i], 4);
        }
        scales = npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 1, &count), floats);
    }
    return onnx_resize_with(r, n, &z, scales, onnx_none(), onnx_none());
}

static npu_value onnx_grid_sample(onnx_reader *r, onnx_node *n)
{
    onnx_span mode = onnx_s(r, n, "mode", "bilinear"), padding = onnx_s(r, n, "padding_mode", "zeros");
    int64_t how = onnx_is(mode, "nearest") ? 1 : onnx_is(mode, "bicubic") || onnx_is(mode, "cubic") ? 2 : 0;
    int64_t border = onnx_is(padding, "border") ? 1 : onnx_is(padding, "reflection") ? 2 : 0;
    return onnx_emit(r, n, "aten.grid_sampler.default(0, 1, i, i, b)", how, border, onnx_i(r, n, "align_corners", 0) != 0);
}

static npu_value onnx_affine_grid(onnx_reader *r, onnx_node *n)
{
    int64_t size[NPU_MAX_RANK];
    uint32_t rank = onnx_known(r, onnx_x(n, 1), "the size", size, NPU_MAX_RANK);
    bool is_aligned = onnx_i(r, n, "align_corners", 0) != 0;
    return onnx_emit(r, n, "aten.affine_grid_generator.default(0, I, b)", size, rank, is_aligned);
}

/* The middle of each axis, or zeros around it. */
static npu_value onnx_center_crop_pad(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t axes[NPU_MAX_RANK], size[NPU_MAX_RANK], pads[2 * NPU_MAX_RANK] = { 0 };
    uint32_t rank = onnx_rank(r, x), count = onnx_axes(r, n, UINT32_MAX, rank, axes);
    uint32_t given = onnx_known(r, onnx_x(n, 1), "the shape", size, NPU_MAX_RANK);
    if (r->status == NPU_OK && given != (count ? count : rank)) {
        return onnx_refuse(r, "the shape has another size for each axis than there are");
    }
    for (uint32_t i = 0; i < given && r->status == NPU_OK; i++) {
        uint32_t axis = count ? (uint32_t)axes[i] : i;
        if (size[i] < 0) {
            return onnx_refuse(r, "a size below 0");
        }
        int64_t more = size[i] - onnx_dim(r, x, axis), begin = more < 0 ? -more / 2 : more / 2;
        x = more < 0 ? onnx_slice(r, x, axis, begin, begin + size[i]) : x;
        pads[2 * (rank - 1 - axis)] = more > 0 ? begin : 0;
        pads[2 * (rank - 1 - axis) + 1] = more > 0 ? more - begin : 0;
    }
    return onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, i)", x, pads, 2 * rank, (int64_t)0);
}

static npu_value onnx_padded_behind(onnx_reader *r, npu_value x, uint32_t dim, int64_t count)
{
    int64_t pads[2 * NPU_MAX_RANK] = { 0 };
    uint32_t rank = onnx_rank(r, x);
    if (count == 0 || rank <= dim) {
        return x;
    }
    pads[2 * (rank - 1 - dim) + 1] = count;
    return onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, i)", x, pads, 2 * rank, (int64_t)0);
}

/* Adds each column's window to a picture: a transposed convolution whose weights put each row in a place of its own. */
static npu_value onnx_col2im(onnx_reader *r, onnx_node *n)
{
    static const int64_t zeros[3];
    npu_value x = onnx_x(n, 0), unit;
    int64_t image[3], dims[5], weight[5] = { 0, 1, 1, 1, 1 }, repeats[5] = { 0, 1, 1, 1, 1 }, pads[6], places = 1;
    onnx_window w;
    memset(&w, 0, sizeof w);
    w.rank = onnx_known(r, onnx_x(n, 2), "the block", w.kernel, 3);
    onnx_ints_or(r, n, "strides", w.stride, w.rank, 1);
    onnx_ints_or(r, n, "dilations", w.dilation, w.rank, 1);
    onnx_ints_or(r, n, "pads", pads, 2 * w.rank, 0);
    if (r->status || onnx_known(r, onnx_x(n, 1), "the image", image, 3) != w.rank) {
        return onnx_refuse(r, "an image and its block have a size for each of up to three dims");
    }
    for (uint32_t i = 0; i < w.rank; i++) {
        int64_t room, all[6] = { image[i], w.kernel[i], w.stride[i], w.dilation[i], pads[i], pads[i + w.rank] };
        for (int k = 0; k < 6; k++) {
            if (all[k] < (k == 0 || k > 3 ? 0 : 1) || all[k] > INT32_MAX) {
                return onnx_refuse(r, "a size, stride, dilation or padding is out of range");
            }
        }
        room = image[i] + pads[i] + pads[i + w.rank] - w.dilation[i] * (w.kernel[i] - 1) - 1;
        weight[i + 2] = w.kernel[i];
        places *= w.kernel[i];
        if (places > ONNX_MAX_LIST / 4 || room < 0) {
            return onnx_refuse(r, "no block of this size fits the image");
        }
        dims[i + 2] = room / w.stride[i] + 1;
        w.end[i] = room % w.stride[i];
    }
    dims[0] = onnx_dim(r, x, 0);
    dims[1] = onnx_dim(r, x, 1);
    weight[0] = places;
    unit = onnx_emit(r, NULL, "aten.eye.default(i, dtype=t)", places, (int)onnx_type(r, x));
    unit = onnx_reshape(r, unit, weight, w.rank + 2);
    repeats[0] = dims[1] / places;
    unit = onnx_emit(r, NULL, "aten.repeat.default(v, I)", unit, repeats, w.rank + 2);
    x = onnx_reshape(r, x, dims, w.rank + 2);
    x = onnx_emit(r, n, "aten.convolution.default(v, v, _, I, I, I, b, I, i)", x, unit, w.stride, w.rank, zeros,
                  w.rank, w.dilation, w.rank, true, zeros, w.rank, repeats[0]);
    for (uint32_t i = 0; i < w.rank; i++) {
        x = onnx_padded_behind(r, x, i + 2, w.end[i]);
        x = onnx_slice(r, x, i + 2, pads[i], pads[i] + image[i]);
    }
    return x;
}

/* Where the window's places lie in a picture, in y and x: f32[1,places,2,rows,columns]. */
static npu_value onnx_deformed_places(onnx_reader *r, const onnx_window *w, int64_t rows, int64_t columns)
{
    const int64_t dims[5] = { 1, w->kernel[0] * w->kernel[1], 2, rows, columns };
    float *at = (float *)onnx_alloc(r, (size_t)(dims[1] * 2 * rows * columns) * sizeof *at);
    for (int64_t i = 0, k = 0; at && k < dims[1] * 2; k++) {
        int64_t d = k % 2, place = d ? k / 2 % w->kernel[1] : k / 2 / w->kernel[1];
        for (int64_t j = 0; j < rows * columns; j++) {
            at[i++] = (float)((d ? j % columns : j / columns) * w->stride[d] - w->begin[d] + place * w->dilation[d]);
        }
    }
    return at ? npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 5, dims), at) : onnx_none();
}

/* What lies at the places that are moved by offsets, between pixels: [batch,channels,places,rows,columns]. */
static npu_value onnx_deformed_columns(onnx_reader *r, onnx_node *n, const onnx_window *w)
{
    npu_value x = onnx_x(n, 0), offset = onnx_x(n, 2), mask = onnx_x(n, 4), both[2];
    int64_t places = w->kernel[0] * w->kernel[1], groups = onnx_i(r, n, "offset_group", 1);
    int64_t batch = onnx_dim(r, x, 0) * groups;
    int64_t rows = onnx_dim(r, offset, 2), columns = onnx_dim(r, offset, 3);
    int64_t picture[4] = { batch, onnx_dim(r, x, 1) / groups, onnx_dim(r, x, 2), onnx_dim(r, x, 3) };
    int64_t moved[5] = { batch, places, 2, rows, columns }, flat[4] = { batch, places * rows, columns, 2 };
    offset = onnx_cast(r, onnx_reshape(r, offset, moved, 5), NPU_F32);
    offset = onnx_binary(r, "add", offset, onnx_deformed_places(r, w, rows, columns));
    for (int64_t d = 0; d < 2; d++) { /* x, then y, as -1 to 1 of the picture with the outer half of its pixels */
        npu_value v = onnx_emit(r, NULL, "aten.select.int(v, i, i)", offset, (int64_t)2, 1 - d);
        double size = (double)picture[3 - d];
        v = onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", onnx_emit(r, NULL, "aten.add.Scalar(v, f)", v, 0.5), 2 / size);
        both[d] = onnx_emit(r, NULL, "aten.sub.Scalar(v, f)", v, 1.0);
    }
    offset = onnx_reshape(r, onnx_emit(r, NULL, "aten.stack.default(V, i)", both, (uint32_t)2, (int64_t)-1), flat, 4);
    x = onnx_emit(r, n, "aten.grid_sampler.default(v, v, i, i, b)", onnx_reshape(r, x, picture, 4),
                  onnx_cast(r, offset, onnx_type(r, x)), (int64_t)0, (int64_t)0, false);
    moved[2] = places;
    moved[1] = picture[1];
    x = onnx_reshape(r, x, moved, 5);
    moved[1] = 1;
    x = mask.id ? onnx_binary(r, "mul", x, onnx_reshape(r, mask, moved, 5)) : x;
    moved[0] = batch / groups;
    moved[1] = picture[1] * groups;
    return onnx_reshape(r, x, moved, 5);
}

static npu_value onnx_deform_conv(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), weight = onnx_x(n, 1), bias = onnx_x(n, 3);
    int64_t groups = onnx_i(r, n, "group", 1), parts = onnx_i(r, n, "offset_group", 1), wide[4], flat[3], dims[4];
    onnx_window w;
    bool is_picture = onnx_window_of(r, n, x, weight, &w) && w.rank == 2 && onnx_rank(r, onnx_x(n, 2)) == 4;
    if (!is_picture || groups < 1 || parts < 1) {
        return onnx_refuse(r, "only pictures are supported");
    }
    dims[0] = onnx_dim(r, onnx_x(n, 2), 1);
    if (dims[0] % parts || dims[0] / parts % 2 || dims[0] / parts / 2 != w.kernel[0] * w.kernel[1]) {
        return onnx_refuse(r, "offsets are two for each place of the window, in each of offset_group");
    }
    x = onnx_deformed_columns(r, n, &w);
    dims[0] = wide[0] = onnx_dim(r, x, 0);
    dims[1] = onnx_dim(r, weight, 0);
    dims[2] = onnx_dim(r, x, 3);
    dims[3] = onnx_dim(r, x, 4);
    wide[1] = flat[0] = groups;
    wide[2] = flat[2] = onnx_dim(r, x, 1) / groups * onnx_dim(r, x, 2);
    wide[3] = dims[2] * dims[3];
    flat[1] = dims[1] / groups;
    x = onnx_emit(r, n, "aten.matmul.default(v, v)", onnx_reshape(r, weight, flat, 3), onnx_reshape(r, x, wide, 4));
    x = onnx_reshape(r, x, dims, 4);
    flat[0] = dims[1];
    flat[1] = flat[2] = 1;
    return bias.id ? onnx_binary(r, "add", x, onnx_reshape(r, bias, flat, 3)) : x;
}

/* ---- ops: recurrent ---------------------------------------------------------------------------------------------- */

/* How a gate ends: an op, with numbers where it takes some. */
typedef struct onnx_activation { const char *text; double alpha, beta; } onnx_activation;

/* One direction of a layer; operands as ONNX has them: gates of W and R one behind the other, B both biases. */
typedef struct onnx_cell {
    npu_value w, r, bias, recurrent_bias, peepholes, lens;
    npu_value h, c, steps;       /* steps: x W + bias of all, [T,N,G H] */
    int64_t size;                /* H */
    onnx_activation acts[3];     /* of the gates */
    double clip;                 /* 0 = none */
    bool before_reset, couples;
} onnx_cell;

static npu_value onnx_act_of(onnx_reader *r, const onnx_activation *a, npu_value v)
{
    if (strncmp(a->text, "aten.", 5) == 0) { /* those that take no number leave the last two */
        return onnx_emit(r, NULL, a->text, v, a->alpha, a->beta);
    }
    if (strcmp(a->text, "softsign") == 0) {
        return onnx_binary(r, "div", v, onnx_emit(r, NULL, "aten.add.Scalar(v, f)", onnx_unary(r, "abs", v), 1.0));
    }
    v = onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", v, strcmp(a->text, "scaled tanh") == 0 ? a->beta : a->alpha);
    if (strcmp(a->text, "scaled tanh") == 0) {
        return onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", onnx_unary(r, "tanh", v), a->alpha);
    }
    v = onnx_emit(r, NULL, "aten.add.Scalar(v, f)", v, a->beta);
    return strcmp(a->text, "affine") == 0 ? v : onnx_emit(r, NULL, "aten.clamp.default(v, f, f)", v, 0.0, 1.0);
}

static npu_value onnx_act(onnx_reader *r, const onnx_cell *c, uint32_t i, npu_value v)
{
    v = c->clip > 0 ? onnx_emit(r, NULL, "aten.clamp.default(v, f, f)", v, -c->clip, c->clip) : v;
    return onnx_act_of(r, &c->acts[i], v);
}

/* Gate i of [..,G H]. */
static npu_value onnx_gate(onnx_reader *r, const onnx_cell *c, npu_value v, int64_t i)
{
    return v.id ? onnx_slice(r, v, -1, i * c->size, (i + 1) * c->size) : v;
}

static npu_value onnx_add(onnx_reader *r, npu_value a, npu_value b) { return !a.id ? b : !b.id ? a : onnx_binary(r, "add", a, b); }

static npu_value onnx_peep(onnx_reader *r, const onnx_cell *c, int64_t gate, npu_value v, npu_value state)
{
    return c->peepholes.id ? onnx_binary(r, "add", v, onnx_binary(r, "mul", onnx_gate(r, c, c->peepholes, gate), state)) : v;
}

/* i, o, f, c */
static void onnx_lstm_step(onnx_reader *r, onnx_cell *c, npu_value x)
{
    npu_value all = onnx_add(r, onnx_binary(r, "add", x, onnx_emit(r, NULL, "aten.linear.default(v, v)", c->h, c->r)), c->recurrent_bias);
    npu_value i = onnx_act(r, c, 0, onnx_peep(r, c, 0, onnx_gate(r, c, all, 0), c->c)), f, fresh, o;
    f = c->couples ? onnx_emit(r, NULL, "aten.rsub.Scalar(v, f)", i, 1.0) : onnx_act(r, c, 0, onnx_peep(r, c, 2, onnx_gate(r, c, all, 2), c->c));
    fresh = onnx_act(r, c, 1, onnx_gate(r, c, all, 3));
    c->c = onnx_binary(r, "add", onnx_binary(r, "mul", f, c->c), onnx_binary(r, "mul", i, fresh));
    o = onnx_act(r, c, 0, onnx_peep(r, c, 1, onnx_gate(r, c, all, 1), c->c));
    c->h = onnx_binary(r, "mul", o, onnx_act_of(r, &c->acts[2], c->c));
}

/* z, r, h */
static void onnx_gru_step(onnx_reader *r, onnx_cell *c, npu_value x)
{
    npu_value weights = onnx_slice(r, c->r, 0, 0, 2 * c->size), own = onnx_slice(r, c->r, 0, 2 * c->size, 3 * c->size);
    npu_value bias = c->recurrent_bias, rest = onnx_gate(r, c, bias, 2), both, z, reset, fresh;
    both = onnx_add(r, onnx_emit(r, NULL, "aten.linear.default(v, v)", c->h, weights), bias.id ? onnx_slice(r, bias, -1, 0, 2 * c->size) : bias);
    z = onnx_act(r, c, 0, onnx_binary(r, "add", onnx_gate(r, c, x, 0), onnx_gate(r, c, both, 0)));
    reset = onnx_act(r, c, 0, onnx_binary(r, "add", onnx_gate(r, c, x, 1), onnx_gate(r, c, both, 1)));
    if (c->before_reset) {
        fresh = onnx_binary(r, "mul", reset, onnx_emit(r, NULL, "aten.linear.default(v, v, v)", c->h, own, rest));
    } else {
        fresh = onnx_emit(r, NULL, "aten.linear.default(v, v, v)", onnx_binary(r, "mul", reset, c->h), own, rest);
    }
    fresh = onnx_act(r, c, 1, onnx_binary(r, "add", onnx_gate(r, c, x, 2), fresh));
    c->h = onnx_binary(r, "add", fresh, onnx_binary(r, "mul", z, onnx_binary(r, "sub", c->h, fresh)));
}

static void onnx_rnn_step(onnx_reader *r, onnx_cell *c, npu_value x)
{
    npu_value all = onnx_binary(r, "add", x, onnx_emit(r, NULL, "aten.linear.default(v, v, v)", c->h, c->r, c->recurrent_bias));
    c->h = onnx_act(r, c, 0, all);
}

/* All steps of one direction: [T,N,H]. States beyond the length of a row stay, what is given out there is 0. */
static npu_value onnx_run_cell(onnx_reader *r, onnx_cell *c, void (*step)(onnx_reader *, onnx_cell *, npu_value), bool is_reverse)
{
    int64_t count = onnx_dim(r, c->steps, 0), down[2] = { -1, 1 };
    npu_value *out = count > ONNX_MAX_LIST ? NULL : (npu_value *)onnx_alloc(r, (size_t)(count + 1) * sizeof *out);
    if (!out) {
        return onnx_refuse(r, "a sequence of that length is not supported here");
    }
    for (int64_t k = 0; k < count && r->status == NPU_OK; k++) {
        int64_t t = is_reverse ? count - 1 - k : k;
        npu_value h = c->h, state = c->c;
        step(r, c, onnx_emit(r, NULL, "aten.select.int(v, i, i)", c->steps, (int64_t)0, t));
        out[t] = c->h;
        if (c->lens.id) {
            npu_value is_in = onnx_reshape(r, onnx_emit(r, NULL, "aten.gt.Scalar(v, i)", c->lens, t), down, 2);
            out[t] = onnx_where(r, is_in, c->h, onnx_like(r, h, 0));
            c->h = onnx_where(r, is_in, c->h, h);
            c->c = state.id ? onnx_where(r, is_in, c->c, state) : state;
        }
    }
    return onnx_emit(r, NULL, "aten.stack.default(V)", out, (uint32_t)count);
}

/* Names as ONNX and older files write them, in any case; lists: how many numbers of activation_alpha and _beta each takes. */
static const struct onnx_act_row { const char *name, *text; uint32_t lists; double alpha, beta; } onnx_act_rows[] = {
    { "sigmoid", "aten.sigmoid.default(v)", 0, 0, 0 }, { "tanh", "aten.tanh.default(v)", 0, 0, 0 },
    { "relu", "aten.relu.default(v)", 0, 0, 0 }, { "softplus", "aten.softplus.default(v)", 0, 0, 0 },
    { "softsign", "softsign", 0, 0, 0 }, { "leakyrelu", "aten.leaky_relu.default(v, f)", 1, 0.01, 0 },
    { "elu", "aten.elu.default(v, f)", 1, 1, 0 }, { "thresholdedrelu", "aten.threshold.default(v, f, f)", 1, 1, 0 },
    { "affine", "affine", 2, 1, 0 }, { "hardsigmoid", "hard sigmoid", 2, 0.2, 0.5 }, { "scaledtanh", "scaled tanh", 2, 1, 1 }
};

static const struct onnx_act_row *onnx_act_row_of(onnx_reader *r, onnx_span name)
{
    for (size_t i = 0; i < sizeof onnx_act_rows / sizeof onnx_act_rows[0]; i++) {
        const char *want = onnx_act_rows[i].name;
        size_t k = 0, len = onnx_len(name);
        while (k < len && want[k] && (name.at[k] | 32) == want[k]) {
            k++;
        }
        if (k == len && !want[k]) {
            return &onnx_act_rows[i];
        }
    }
    onnx_fail(r, NPU_ERR_UNSUPPORTED, "the activation '%.*s' is not supported", ONNX_TEXT(name));
    return &onnx_act_rows[0];
}

/* Those of one direction, from the list of all, or as they are by default. Numbers stand in lists, one behind the other for
   those that take some. */
static void onnx_acts(onnx_reader *r, const onnx_node *n, onnx_cell *c, uint32_t first, uint32_t count)
{
    onnx_span message = onnx_attr(r, n, "activations");
    onnx_field f;
    double alphas[16], betas[16];
    uint32_t num_alphas = onnx_floats(r, n, "activation_alpha", alphas, 16), num_betas = onnx_floats(r, n, "activation_beta", betas, 16);
    uint32_t i = 0, alpha = 0, beta = 0;
    c->acts[0].text = onnx_act_rows[count == 1].text;
    c->acts[1].text = c->acts[2].text = onnx_act_rows[1].text;
    while (onnx_next(r, &message, &f)) {
        if (f.number == ONNX_A_STRINGS) {
            const struct onnx_act_row *row = onnx_act_row_of(r, onnx_bytes(r, &f));
            const onnx_activation act = { row->text, row->lists && alpha < num_alphas ? alphas[alpha] : row->alpha,
                                          row->lists > 1 && beta < num_betas ? betas[beta] : row->beta };
            alpha += row->lists > 0;
            beta += row->lists > 1;
            if (i >= first && i < first + count) {
                c->acts[i - first] = act;
            }
            i++;
        }
    }
}

static npu_value onnx_direction(onnx_reader *r, npu_value v, int64_t d)
{
    return v.id ? onnx_emit(r, NULL, "aten.select.int(v, i, i)", v, (int64_t)0, d) : v;
}

/* A state that is given, or zeros. */
static npu_value onnx_first_state(onnx_reader *r, npu_value given, int64_t d, npu_value x, int64_t size)
{
    int64_t dims[2];
    if (given.id) {
        return onnx_direction(r, given, d);
    }
    dims[0] = onnx_dim_if_any(r, x, 1);
    dims[1] = size;
    return onnx_emit(r, NULL, "aten.full.default(I, f, dtype=t)", dims, (uint32_t)2, 0.0, (int)onnx_type(r, x));
}

typedef struct onnx_layer {
    npu_value x, h0, c0, y[2], h[2], c[2];
    int64_t gates, size;
    void (*step)(onnx_reader *r, onnx_cell *c, npu_value x);
} onnx_layer;

static void onnx_run_direction(onnx_reader *r, const onnx_node *n, onnx_layer *l, uint32_t d, bool is_reverse)
{
    onnx_cell c;
    npu_value biases = onnx_direction(r, onnx_x(n, 3), d);
    int64_t half = l->gates * l->size;
    memset(&c, 0, sizeof c);
    onnx_acts(r, n, &c, d * (uint32_t)(l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1), l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1);
    c.size = l->size;
    c.w = onnx_direction(r, onnx_x(n, 1), d);
    c.r = onnx_direction(r, onnx_x(n, 2), d);
    c.bias = biases.id ? onnx_slice(r, biases, 0, 0, half) : biases;
    c.recurrent_bias = biases.id ? onnx_slice(r, biases, 0, half, 2 * half) : biases;
    c.lens = onnx_x(n, 4);
    c.peepholes = onnx_direction(r, onnx_x(n, 7), d);
    c.clip = onnx_f(r, n, "clip", 0);
    c.before_reset = onnx_i(r, n, "linear_before_reset", 0) != 0;
    c.couples = onnx_i(r, n, "input_forget", 0) != 0;
    c.steps = onnx_emit(r, n, "aten.linear.default(v, v, v)", l->x, c.w, c.bias);
    c.h = onnx_first_state(r, l->h0, d, l->x, l->size);
    c.c = l->gates == 4 ? onnx_first_state(r, l->c0, d, l->x, l->size) : onnx_none();
    l->y[d] = onnx_run_cell(r, &c, l->step, is_reverse);
    l->h[d] = c.h;
    l->c[d] = c.c;
}

/* Gates in the order of the registry's op. */
static npu_value onnx_reorder(onnx_reader *r, npu_value v, const onnx_layer *l)
{
    static const int64_t lstm[4] = { 0, 2, 3, 1 }, gru[3] = { 1, 0, 2 };
    const int64_t *order = l->gates == 4 ? lstm : gru;
    npu_value parts[4];
    for (int64_t i = 0; i < l->gates; i++) {
        parts[i] = onnx_slice(r, v, 0, order[i] * l->size, (order[i] + 1) * l->size);
    }
    return onnx_emit(r, NULL, "aten.cat.default(V)", parts, (uint32_t)l->gates);
}

/* What PyTorch's layers become: whole sequences, default activations. */
static bool onnx_is_plain_layer(onnx_reader *r, const onnx_node *n, const onnx_layer *l)
{
    return l->gates > 1 && !onnx_x(n, 4).id && !onnx_x(n, 7).id && !onnx_has(r, n, "activations") && !onnx_has(r, n, "clip") &&
           !onnx_i(r, n, "input_forget", 0) && (l->gates == 4 || onnx_i(r, n, "linear_before_reset", 0)) &&
           !onnx_s_is(r, n, "direction", "forward", "reverse");
}

static npu_value onnx_states(onnx_reader *r, npu_value given, npu_value x, int64_t dirs, int64_t size)
{
    int64_t dims[3];
    if (given.id) {
        return given;
    }
    dims[0] = dirs;
    dims[1] = onnx_dim_if_any(r, x, 1);
    dims[2] = size;
    return onnx_emit(r, NULL, "aten.full.default(I, f, dtype=t)", dims, (uint32_t)3, 0.0, (int)onnx_type(r, x));
}

/* One op for the layer: y [T,N,dirs H] is taken apart by direction. */
static void onnx_plain_layer(onnx_reader *r, const onnx_node *n, onnx_layer *l, uint32_t dirs, npu_value *y, npu_value *h, npu_value *c)
{
    npu_value params[8], all[3], hx[2];
    int64_t half = l->gates * l->size;
    uint32_t count = 0;
    for (uint32_t d = 0; d < dirs; d++) {
        npu_value biases = onnx_direction(r, onnx_x(n, 3), d);
        params[count++] = onnx_reorder(r, onnx_direction(r, onnx_x(n, 1), d), l);
        params[count++] = onnx_reorder(r, onnx_direction(r, onnx_x(n, 2), d), l);
        for (int64_t k = 0; k < 2 && biases.id; k++) {
            params[count++] = onnx_reorder(r, onnx_slice(r, biases, 0, k * half, (k + 1) * half), l);
        }
    }
    hx[0] = onnx_states(r, l->h0, l->x, dirs, l->size);
    if (l->gates == 4) {
        hx[1] = onnx_states(r, l->c0, l->x, dirs, l->size);
        onnx_emit_many(r, n, all, 3, "aten.lstm.input(v, V, V, b, i, f, b, b, b)", l->x, hx, (uint32_t)2, params, count, count > 2 * dirs,
                       (int64_t)1, 0.0, false, dirs == 2, false);
        *c = all[2];
    } else {
        onnx_emit_many(r, n, all, 2, "aten.gru.input(v, v, V, b, i, f, b, b, b)", l->x, hx[0], params, count, count > 2 * dirs, (int64_t)1,
                       0.0, false, dirs == 2, false);
    }
    if (r->status == NPU_OK) {
        static const int64_t order[4] = { 0, 2, 1, 3 };
        const int64_t dims[4] = { onnx_dim_if_any(r, all[0], 0), onnx_dim_if_any(r, all[0], 1), dirs, l->size };
        *y = onnx_permute(r, onnx_reshape(r, all[0], dims, 4), order, 4);
    }
    *h = all[1];
}

/* One length for each row; those that are known end within the sequence. */
static void onnx_check_lens(onnx_reader *r, npu_value lens, npu_value x)
{
    int64_t each[ONNX_MAX_LIST], most = onnx_dim_if_any(r, x, 0), rows = onnx_dim_if_any(r, x, 1);
    uint32_t count = onnx_is_known(r, lens) && most >= 0 ? onnx_known(r, lens, "sequence_lens", each, ONNX_MAX_LIST) : 0;
    if (onnx_rank(r, lens) != 1 || (rows >= 0 && onnx_dim_if_any(r, lens, 0) >= 0 && onnx_dim_if_any(r, lens, 0) != rows)) {
        onnx_fail(r, NPU_ERR_SHAPE, "sequence_lens: expected one for each of %lld rows", (long long)rows);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (each[i] < 0 || each[i] > most) {
            onnx_fail(r, NPU_ERR_ATTRIBUTE, "sequence_lens: number %u is %lld, expected 0 to %lld", (unsigned)i, (long long)each[i],
                      (long long)most);
        }
    }
}

static npu_value onnx_recurrent(onnx_reader *r, onnx_node *n)
{
    static const int64_t first[3] = { 1, 0, 2 }, last[4] = { 2, 0, 1, 3 };
    static const struct { char letter; int64_t gates; void (*step)(onnx_reader *, onnx_cell *, npu_value); } kinds[] = {
        { 'L', 4, onnx_lstm_step }, { 'G', 3, onnx_gru_step }, { 'R', 1, onnx_rnn_step }
    };
    onnx_layer l;
    bool is_both = onnx_s_is(r, n, "direction", "forward", "bidirectional"), is_batch_first = onnx_i(r, n, "layout", 0) != 0;
    npu_value y = { 0 }, h = { 0 }, c = { 0 };
    uint32_t dirs = is_both ? 2 : 1, kind = n->row->op[0] == 'L' ? 0 : n->row->op[0] == 'G' ? 1 : 2;
    memset(&l, 0, sizeof l);
    l.gates = kinds[kind].gates;
    l.step = kinds[kind].step;
    l.size = onnx_dim(r, onnx_x(n, 2), 2);
    l.x = is_batch_first ? onnx_permute(r, onnx_x(n, 0), first, 3) : onnx_x(n, 0);
    l.h0 = is_batch_first && onnx_x(n, 5).id ? onnx_permute(r, onnx_x(n, 5), first, 3) : onnx_x(n, 5);
    l.c0 = is_batch_first && onnx_x(n, 6).id ? onnx_permute(r, onnx_x(n, 6), first, 3) : onnx_x(n, 6);
    if (r->status || onnx_rank(r, l.x) != 3 || onnx_rank(r, onnx_x(n, 1)) != 3 || onnx_rank(r, onnx_x(n, 2)) != 3 ||
        onnx_dim(r, onnx_x(n, 1), 0) != dirs) {
        onnx_fail(r, NPU_ERR_RANK, "operands of another rank, or another number of directions");
        return onnx_none();
    }
    if (onnx_x(n, 4).id) {
        onnx_check_lens(r, onnx_x(n, 4), l.x);
    }
    if (onnx_i(r, n, "hidden_size", l.size) != l.size) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "hidden_size is %lld, the weights have %lld", (long long)onnx_i(r, n, "hidden_size", 0),
                  (long long)l.size);
        return onnx_none();
    }
    if (onnx_is_plain_layer(r, n, &l)) {
        onnx_plain_layer(r, n, &l, dirs, &y, &h, &c);
    } else {
        for (uint32_t d = 0; d < dirs; d++) {
            onnx_run_direction(r, n, &l, d, d == 1 || onnx_s_is(r, n, "direction", "forward", "reverse"));
        }
        y = onnx_emit(r, n, "aten.stack.default(V, i)", l.y, dirs, (int64_t)1);
        h = onnx_emit(r, n, "aten.stack.default(V)", l.h, dirs);
        c = l.gates == 4 ? onnx_emit(r, n, "aten.stack.default(V)", l.c, dirs) : c;
    }
    onnx_result(r, n, 1, is_batch_first ? onnx_permute(r, h, first, 3) : h);
    onnx_result(r, n, 2, is_batch_first && c.id ? onnx_permute(r, c, first, 3) : c);
    return is_batch_first ? onnx_permute(r, y, last, 4) : y;
}

/* ---- ops: losses, spectra ---------------------------------------------------------------------------------------- */

static npu_value onnx_nll_of(onnx_reader *r, onnx_node *n, npu_value logs)
{
    onnx_span how = onnx_s(r, n, "reduction", "mean");
    return onnx_emit(r, n, "aten.nll_loss_nd.default(v, v, 2, i, ignore_index:-100)", logs, onnx_cast(r, onnx_x(n, 1), NPU_I64),
                     (int64_t)(onnx_is(how, "none") ? 0 : onnx_is(how, "sum") ? 2 : 1));
}

static npu_value onnx_nll(onnx_reader *r, onnx_node *n) { return onnx_nll_of(r, n, onnx_x(n, 0)); }

static npu_value onnx_cross_entropy(onnx_reader *r, onnx_node *n)
{
    npu_value logs = onnx_emit(r, n, "aten.log_softmax.int(0, i)", (int64_t)1);
    onnx_result(r, n, 1, logs);
    return onnx_nll_of(r, n, logs);
}

/* [..,1] numbers or [..,2] pairs, as pairs. */
static npu_value onnx_pairs(onnx_reader *r, npu_value x)
{
    npu_value both[2];
    int64_t size = onnx_dim(r, x, onnx_rank(r, x) - 1);
    if (size != 1) {
        if (size != 2) {
            onnx_fail(r, NPU_ERR_SHAPE, "the signal's last dim is %lld, expected 1 (numbers) or 2 (pairs)", (long long)size);
        }
        return x;
    }
    both[0] = x;
    both[1] = onnx_emit(r, NULL, "aten.zeros_like.default(v)", x);
    return onnx_emit(r, NULL, "aten.cat.default(V, i)", both, (uint32_t)2, (int64_t)-1);
}

/* Along an axis cut, or filled up with zeros. */
static npu_value onnx_of_length(onnx_reader *r, npu_value x, int64_t axis, int64_t len)
{
    int64_t pads[2 * NPU_MAX_RANK] = { 0 }, size = onnx_dim(r, x, (uint32_t)axis);
    uint32_t rank = onnx_rank(r, x);
    if (len == size || r->status) {
        return x;
    }
    pads[2 * (rank - 1 - (uint32_t)axis) + 1] = len - size;
    return onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I)", x, pads, 2 * rank);
}

/* Numbers of a spectrum of which half is there; as a last dim of one. */
static npu_value onnx_from_half(onnx_reader *r, npu_value x, int64_t axis, int64_t len)
{
    len = len > 0 ? len : onnx_twice(r, x, (uint32_t)axis) - 2;
    x = onnx_unary(r, "view_as_complex", onnx_of_length(r, x, axis, len / 2 + 1));
    x = onnx_emit(r, NULL, "aten._fft_c2r.default(v, I, i, i)", x, &axis, (uint32_t)1, (int64_t)2, len);
    return onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", x, (int64_t)-1);
}

/* Along an axis of pairs, of a length (0 = as it is). */
static npu_value onnx_transform(onnx_reader *r, npu_value x, int64_t axis, int64_t len, bool is_inverse,
                                bool is_onesided)
{
    len = len > 0 ? len : onnx_dim(r, x, (uint32_t)axis);
    x = onnx_unary(r, "view_as_complex", onnx_of_length(r, x, axis, len));
    x = onnx_emit(r, NULL, "aten._fft_c2c.default(v, I, i, b)", x, &axis, (uint32_t)1, (int64_t)(is_inverse ? 2 : 0), !is_inverse);
    x = onnx_unary(r, "view_as_real", x);
    return is_onesided ? onnx_slice(r, x, axis, 0, len / 2 + 1) : x;
}

static npu_value onnx_dft(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_pairs(r, onnx_x(n, 0));
    int64_t len = onnx_x(n, 1).id ? onnx_known_int(r, onnx_x(n, 1), "dft_length") : 0;
    int64_t axis = onnx_x(n, 2).id ? onnx_known_int(r, onnx_x(n, 2), "the axis") : onnx_i(r, n, "axis", r->opset < 20 ? 1 : -2);
    bool is_inverse = onnx_i(r, n, "inverse", 0) != 0, is_onesided = onnx_i(r, n, "onesided", 0) != 0;
    axis = onnx_axis(r, axis, onnx_rank(r, x));
    return is_inverse && is_onesided ? onnx_from_half(r, x, axis, len)
                                     : onnx_transform(r, x, axis, len, is_inverse, is_onesided);
}

/* Frames [N,F,len,2] of a signal [N,L,1 or 2], or of numbers [N,L], as PyTorch exports them, times the window. */
static npu_value onnx_stft(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), window = onnx_x(n, 2), index[2] = { { 0 }, { 0 } };
    x = onnx_pairs(r, onnx_rank(r, x) == 2 ? onnx_emit(r, n, "aten.unsqueeze.default(0, i)", (int64_t)-1) : x);
    int64_t step = onnx_known_int(r, onnx_x(n, 1), "frame_step"), size = onnx_dim(r, x, 1), down[2] = { -1, 1 };
    int64_t len = onnx_x(n, 3).id ? onnx_known_int(r, onnx_x(n, 3), "frame_length") : window.id ? onnx_dim(r, window, 0) : size, frames;
    if (step < 1 || len < 1 || len > size) {
        return onnx_refuse(r, "frames of that length or step are not supported");
    }
    frames = (size - len) / step + 1;
    index[1] = onnx_reshape(r, onnx_emit(r, n, "aten.arange.start_step(i, i, i)", (int64_t)0, frames * step, step), down, 2);
    index[1] = onnx_binary(r, "add", index[1], onnx_emit(r, n, "aten.arange.default(i)", len));
    x = onnx_emit(r, n, "aten.index.Tensor(v, V)", x, index, (uint32_t)2);
    x = window.id ? onnx_binary(r, "mul", x, onnx_reshape(r, window, down, 2)) : x;
    return onnx_transform(r, x, 2, 0, false, onnx_i(r, n, "onesided", 1) != 0);
}

/* text: three coefficients of cosines. */
static npu_value onnx_window_op(onnx_reader *r, onnx_node *n)
{
    int64_t size = onnx_known_int(r, onnx_x(n, 0), "the size");
    double a[3] = { 0, 0, 0 }, *w = (double *)(size < 0 || size > ONNX_MAX_FOLDED ? NULL : onnx_alloc(r, (size_t)size * 8 + 8));
    double steps = onnx_i(r, n, "periodic", 1) ? (double)size : (double)(size - 1), turn;
    const char *at = n->row->text;
    if (!w) {
        return onnx_refuse(r, "a window of that size is not supported");
    }
    for (int i = 0; i < 3; i++) { /* hundredths, or fractions of whole numbers */
        char *end;
        a[i] = (double)strtol(at, &end, 10);
        a[i] /= (double)strtol(end + 1, &end, 10);
        at = end;
    }
    for (int64_t i = 0; i < size; i++) {
        turn = 2 * 3.14159265358979323846 * (double)i / steps;
        w[i] = a[0] - a[1] * cos(turn) + a[2] * cos(2 * turn);
    }
    return onnx_cast(r, npu_constant(r->g, NULL, npu_spec_tensor(NPU_F64, 1, &size), w), onnx_dtype(r, onnx_i(r, n, "output_datatype", 1)));
}

static double onnx_to_mel(double hertz) { return 2595 * log10(1 + hertz / 700); }

/* Triangles between edges that are equally far apart in mel. */
static npu_value onnx_mel_weights(onnx_reader *r, onnx_node *n)
{
    int64_t bins = onnx_known_int(r, onnx_x(n, 0), "num_mel_bins"), len = onnx_known_int(r, onnx_x(n, 1), "dft_length");
    int64_t rate = onnx_known_int(r, onnx_x(n, 2), "sample_rate"), dims[2];
    double edge[2] = { 0, 0 }, *w, *at;
    onnx_known_floats(r, onnx_x(n, 3), "lower_edge_hertz", &edge[0], 1);
    onnx_known_floats(r, onnx_x(n, 4), "upper_edge_hertz", &edge[1], 1);
    if (bins < 1 || bins > ONNX_MAX_LIST || len < 1 || len > ONNX_MAX_FOLDED / bins || rate < 1) {
        return onnx_refuse(r, "sizes that are not supported");
    }
    dims[0] = len / 2 + 1;
    dims[1] = bins;
    w = (double *)onnx_alloc(r, (size_t)(dims[0] * bins) * 8);
    at = (double *)onnx_alloc(r, (size_t)(bins + 2) * 8);
    for (int64_t i = 0; w && at && i < bins + 2; i++) {
        double low = onnx_to_mel(edge[0]), mel = low + (double)i * (onnx_to_mel(edge[1]) - low) / (double)(bins + 2);
        at[i] = floor((double)(len + 1) * 700 * (pow(10, mel / 2595) - 1) / (double)rate);
    }
    for (int64_t i = 0; w && at && i < bins; i++) {
        double low = at[i], mid = at[i + 1], high = at[i + 2];
        for (int64_t k = 0; k < dims[0]; k++) {
            double x = (double)k;
            w[k * bins + i] = low == mid && x == mid ? 1 : x >= low && x <= mid && low != mid ? (x - low) / (mid - low)
                              : x >= mid && x < high ? (high - x) / (high - mid) : 0;
        }
    }
    return w && at ? onnx_cast(r, npu_constant(r->g, NULL, npu_spec_tensor(NPU_F64, 2, dims), w), onnx_dtype(r, onnx_i(r, n, "output_datatype", 1)))
                   : onnx_none();
}

/* ---- ops: branches and loops ------------------------------------------------------------------------------------- */

/* A graph that is an attribute, or a function: fields of its nodes, inputs, outputs. */
typedef struct onnx_body {
    onnx_span message;
    uint32_t node, input, output, initializer;
    onnx_span *nodes;            /* sorted, when it has been built once */
    uint32_t num_nodes;
} onnx_body;

static bool onnx_build(onnx_reader *r, onnx_body *body, const onnx_node *caller, const npu_value *in, uint32_t num_in,
                       npu_value *out, uint32_t num_out);

/* The same of a graph whose outputs are tensors. */
static bool onnx_build_tensors(onnx_reader *r, onnx_body *body, const onnx_node *caller, const npu_value *in,
                               uint32_t num_in, npu_value *out, uint32_t num_out)
{
    return onnx_build(r, body, caller, in, num_in, out, num_out) && onnx_are_tensors(r, out, num_out);
}

static onnx_body onnx_graph_attr(onnx_reader *r, const onnx_node *n, const char *name)
{
    onnx_body body = { { NULL, NULL }, 1, 11, 12, 5, NULL, 0 };
    body.message = onnx_member(r, onnx_attr(r, n, name), ONNX_A_G);
    if (!body.message.at) {
        onnx_fail(r, NPU_ERR_ATTRIBUTE, "the graph '%s' is missing", name);
    }
    return body;
}

/* Begins a child graph, with inputs for what `like` has taken from around it; its number is an argument of an op. */
static uint32_t onnx_open_child(onnx_reader *r, const char *name, const onnx_level *like)
{
    uint32_t index = 0;
    if (r->level == ONNX_MAX_DEPTH) {
        onnx_fail(r, NPU_ERR_PARSE, "more than %d graphs in graphs", (int)ONNX_MAX_DEPTH);
        return 0;
    }
    r->g = npu_graph_add_child(r->g, name, NPU_LEVEL_TENSOR, &index);
    memset(&r->levels[++r->level], 0, sizeof r->levels[0]);
    r->levels[r->level].g = r->g;
    for (uint32_t i = 0; like && i < like->captured.count; i++) {
        onnx_capture(r, r->level, like->captured.outer[i]);
    }
    return index;
}

/* Ends it with its outputs. Returns what it has taken. */
static onnx_level onnx_close_child(onnx_reader *r, const npu_value *out, uint32_t count)
{
    onnx_level level = r->levels[r->level];
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "out%u", (unsigned)i);
        npu_output(level.g, name, out[i]);
    }
    if (npu_graph_status(level.g)) {
        onnx_fail(r, npu_graph_status(level.g), "%s", npu_graph_diag(level.g)->message);
    }
    r->g = r->levels[--r->level].g;
    return level;
}

/* The results of an op of control flow: of a loop what is carried, behind two of its own, and, cut to the turns that there
   were, what each turn gave out. */
static npu_value onnx_flow_results(onnx_reader *r, onnx_node *n, npu_op op, uint32_t skip, uint32_t carried)
{
    npu_value first = onnx_none();
    onnx_check(r);
    for (uint32_t i = 0; i < n->num_y && op.id; i++) {
        npu_value v = npu_op_result(r->g, op, skip + i);
        v = i < carried ? v : onnx_emit(r, n, "aten.slice.Tensor(v, i, i, v)", v, (int64_t)0, (int64_t)0, npu_op_result(r->g, op, 0));
        first = i ? first : v;
        onnx_result(r, n, i ? i : UINT32_MAX, v);
    }
    return first;
}

/* Is this no fault of the model, but a branch that cannot be a child graph: for inputs of another length, or of values as
   long as data says? */
static bool onnx_is_misfit(const onnx_reader *r)
{
    return r->status == NPU_ERR_SHAPE || r->status == NPU_ERR_RANK || r->status == NPU_ERR_AXIS ||
           (r->status == NPU_ERR_DYNAMIC_SHAPE && onnx_inputs_have_sizes(r));
}

/* A branch as a child graph. False: nothing in it fits the sizes that are known, and *misfit says why; or what it is cannot
   be read, which the reader then says. */
static bool onnx_build_branch(onnx_reader *r, onnx_node *n, const char *name, const onnx_level *like, npu_value *out,
                              uint32_t *index, onnx_level *taken, npu_diag *misfit)
{
    onnx_body body = onnx_graph_attr(r, n, name);
    uint32_t level = r->level, depth = r->depth;
    bool is_built;
    *index = onnx_open_child(r, name, like);
    is_built = r->status == NPU_OK && onnx_build_tensors(r, &body, n->caller, NULL, 0, out, n->num_y);
    if (is_built) {
        *taken = onnx_close_child(r, out, n->num_y);
    } else if (onnx_is_misfit(r)) {
        memset(misfit, 0, sizeof *misfit);
        if (r->diag) {
            *misfit = *r->diag;
            memset(r->diag, 0, sizeof *r->diag);
        }
        misfit->status = r->status;
        r->status = NPU_OK;
        r->level = level;
        r->depth = depth;
        r->node = n;
        r->g = r->levels[level].g;
    }
    return is_built;
}

/* The branch that a condition takes, in the graph that is built. */
static npu_value onnx_take_branch(onnx_reader *r, onnx_node *n, bool is_then)
{
    onnx_body body = onnx_graph_attr(r, n, is_then ? "then_branch" : "else_branch");
    npu_value *out = onnx_values(r, n->num_y);
    if (!out || !onnx_build(r, &body, n->caller, NULL, 0, out, n->num_y)) {
        return onnx_none();
    }
    for (uint32_t i = 1; i < n->num_y; i++) {
        onnx_result(r, n, i, out[i]);
    }
    return out[0];
}

/* The only branch that fits; a run whose condition takes the other one fails. */
static npu_value onnx_only_branch(onnx_reader *r, onnx_node *n, bool is_then, const npu_diag *misfit)
{
    npu_value condition = is_then ? onnx_x(n, 0) : onnx_unary(r, "logical_not", onnx_x(n, 0));
    npu_arg list[2];
    list[0] = npu_arg_tensor(NULL, condition);
    list[1] = npu_arg_str(NULL, misfit->message[0] ? misfit->message : "the other branch does not fit");
    npu_emit_name(r->g, "aten._assert_async.msg", list, 2);
    return onnx_check(r) ? onnx_take_branch(r, n, is_then) : onnx_none();
}

/* Does a branch give out nothing but tensors without an element along dim 0, of what data is? */
static bool onnx_gives_nothing(const onnx_level *branch, uint32_t num_out)
{
    bool gives_nothing = branch->captured.count == 0;
    for (uint32_t i = 0; i < num_out; i++) {
        const npu_spec *spec = npu_value_spec(branch->g, npu_graph_output(branch->g, i));
        gives_nothing = gives_nothing && spec && spec->rank && spec->dims[0] == 0;
    }
    return gives_nothing;
}

/* v, or, where a condition is not as wanted, nothing of it along dim 0. */
static npu_value onnx_or_nothing(onnx_reader *r, npu_value v, npu_value condition, bool wanted)
{
    static const int64_t one = 1;
    npu_value ones = onnx_ones_along(r, v, 0), rows;
    condition = onnx_reshape(r, wanted ? condition : onnx_unary(r, "logical_not", condition), &one, 1);
    rows = onnx_emit(r, NULL, "aten.logical_and.default(v, v)", ones, condition);
    return onnx_emit(r, NULL, "aten.index.Tensor(v, V)", v, &rows, (uint32_t)1);
}

/* A branch that takes values as long as data says, beside one that gives nothing, as detectors do where there are no boxes. */
static npu_value onnx_open_branch(onnx_reader *r, onnx_node *n, bool is_then)
{
    onnx_body body = onnx_graph_attr(r, n, is_then ? "then_branch" : "else_branch");
    npu_value *out = onnx_values(r, n->num_y);
    if (!out || !onnx_build_tensors(r, &body, n->caller, NULL, 0, out, n->num_y)) {
        return onnx_none();
    }
    for (uint32_t i = 0; i < n->num_y; i++) {
        if (onnx_rank(r, out[i]) == 0) {
            return onnx_refuse(r, "the branches give tensors of other ranks");
        }
        out[i] = onnx_or_nothing(r, out[i], onnx_x(n, 0), is_then);
        onnx_result(r, n, i ? i : UINT32_MAX, out[i]);
    }
    return out[0];
}

/* Where one branch cannot be a child graph, the graph has the one that can do. */
static npu_value onnx_one_branch(onnx_reader *r, onnx_node *n, bool then_fits, const npu_diag *misfit,
                                 const onnx_level *fitting)
{
    if (misfit->status != NPU_ERR_DYNAMIC_SHAPE) {
        return onnx_only_branch(r, n, then_fits, misfit);
    }
    if (onnx_gives_nothing(fitting, n->num_y)) {
        return onnx_open_branch(r, n, !then_fits);
    }
    r->status = misfit->status;
    if (r->diag) {
        *r->diag = *misfit;
    }
    return onnx_none();
}

/* Both branches, of which a run takes one. The inputs of the first are followed by those that only the second has. */
static npu_value onnx_run_if(onnx_reader *r, onnx_node *n)
{
    onnx_level taken[2];
    uint32_t index[2];
    npu_value *out = onnx_values(r, n->num_y);
    npu_diag misfit[2];
    npu_arg list[4];
    bool fits[2];
    memset(taken, 0, sizeof taken);
    fits[0] = out && onnx_build_branch(r, n, "then_branch", NULL, out, &index[0], &taken[0], &misfit[0]);
    fits[1] = out && r->status == NPU_OK &&
              onnx_build_branch(r, n, "else_branch", &taken[0], out, &index[1], &taken[1], &misfit[1]);
    if (r->status == NPU_OK && !fits[0] && !fits[1]) {
        onnx_fail(r, misfit[0].status, "neither branch fits: %.120s", misfit[0].message);
    }
    if (r->status || !fits[0] || !fits[1]) {
        return r->status ? onnx_none() : onnx_one_branch(r, n, fits[0], &misfit[fits[0]], &taken[!fits[0]]);
    }
    for (uint32_t i = taken[0].captured.count; i < taken[1].captured.count; i++) {
        npu_input(taken[0].g, NULL, *npu_value_spec(r->g, taken[1].captured.outer[i]));
    }
    list[0] = npu_arg_tensor(NULL, onnx_x(n, 0));
    list[1] = npu_arg_tensors(NULL, taken[1].captured.outer, taken[1].captured.count);
    list[2] = npu_arg_graph("then_body", index[0]);
    list[3] = npu_arg_graph("else_body", index[1]);
    return onnx_flow_results(r, n, npu_emit_name(r->g, "npu.if", list, 4), 0, n->num_y);
}

/* Only the branch that is taken is built, where that is known. */
static npu_value onnx_if(onnx_reader *r, onnx_node *n)
{
    npu_value condition = onnx_x(n, 0);
    bool is_known = !condition.id || onnx_is_known(r, condition);
    if (!is_known) {
        return onnx_run_if(r, n);
    }
    return onnx_take_branch(r, n, onnx_known_int(r, condition, "the condition of an If") != 0);
}

/* What all turns gave out, one behind the other. */
static npu_value onnx_stacked(onnx_reader *r, const npu_value *parts, uint32_t count, int64_t axis, bool is_reverse)
{
    npu_value v;
    if (!count) {
        return onnx_refuse(r, "what a loop without a turn gives out has no shape");
    }
    v = onnx_emit(r, NULL, "aten.stack.default(V, i)", parts, count, axis);
    return is_reverse ? onnx_emit(r, NULL, "aten.flip.default(v, I)", v, &axis, (uint32_t)1) : v;
}

/* Outputs given out in each turn: as many lists as there are, each with room for `turns`; `like`, where there was none, has
   what a turn would give out. */
typedef struct onnx_scans { npu_value *parts; const npu_value *like; uint32_t count, turns, room; } onnx_scans;

static bool onnx_scans_add(onnx_reader *r, onnx_scans *s, const npu_value *out)
{
    if (!onnx_are_tensors(r, out, s->count)) {
        return false;
    }
    if (s->turns == s->room) {
        uint32_t room = s->room * 2 + 16;
        npu_value *parts = onnx_values(r, (size_t)room * (s->count + 1));
        for (uint32_t i = 0; parts && i < s->count; i++) {
            if (s->turns) {
                memcpy(parts + (size_t)i * room, s->parts + (size_t)i * s->room, s->turns * sizeof *parts);
            }
        }
        s->parts = parts;
        s->room = parts ? room : 0;
    }
    for (uint32_t i = 0; s->parts && i < s->count; i++) {
        s->parts[(size_t)i * s->room + s->turns] = out[i];
    }
    s->turns++;
    return s->parts != NULL;
}

/* None of what would be like v, one behind the other along dim 0. */
static npu_value onnx_stacked_none(onnx_reader *r, npu_value v)
{
    int64_t dims[NPU_MAX_RANK] = { 0 };
    uint32_t rank = onnx_rank(r, v);
    for (uint32_t i = 0; i < rank && i + 1 < NPU_MAX_RANK; i++) {
        dims[i + 1] = onnx_dim(r, v, i);
    }
    return r->status || rank == NPU_MAX_RANK
               ? onnx_refuse(r, "what a loop without a turn gives out has no shape")
               : npu_constant(r->g, NULL, npu_spec_tensor(onnx_type(r, v), rank + 1, dims), "");
}

static npu_value onnx_scanned(onnx_reader *r, const onnx_scans *s, uint32_t i, int64_t axis, bool is_reverse)
{
    if (s->like) {
        return onnx_stacked_none(r, s->like[i]);
    }
    return onnx_stacked(r, s->parts ? s->parts + (size_t)i * s->room : NULL, s->turns, axis, is_reverse);
}

/* The inputs of a child graph of a loop: what is carried, the number of turns, and what the body has taken from around it. */
static void onnx_loop_inputs(onnx_reader *r, const npu_value *args, uint32_t count, npu_value *out)
{
    const npu_graph *outer = r->levels[r->level - 1].g;
    onnx_are_tensors(r, args, count);
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        const npu_spec *spec = npu_value_spec(outer, args[i]);
        if (!npu_spec_is_static(spec)) {
            onnx_fail(r, NPU_ERR_DYNAMIC_SHAPE, "a loop that data ends carries a value with a dim that is not known");
            return;
        }
        out[i] = npu_input(r->g, NULL, *spec);
    }
}

/* A 0-d tensor of what may be [1]. */
static npu_value onnx_flat(onnx_reader *r, npu_value v)
{
    int64_t none = 0;
    return onnx_rank(r, v) ? onnx_reshape(r, v, &none, 0) : v;
}

/* The graph that makes the next turn of this one: its number, the condition, and what is carried, of which the last are what
   all turns give out: a turn writes its row. */
static uint32_t onnx_loop_body(onnx_reader *r, onnx_node *n, const npu_value *args, uint32_t carried, uint32_t num_scans,
                               onnx_level *taken)
{
    onnx_body body = onnx_graph_attr(r, n, "body");
    npu_value *in = onnx_values(r, (size_t)carried + 3), *out = onnx_values(r, (size_t)carried + 2);
    uint32_t index = onnx_open_child(r, "body", NULL);
    int64_t one = 1;
    if (r->status || !in || !out) {
        return 0;
    }
    onnx_loop_inputs(r, args, carried + 3, in);
    if (onnx_build_tensors(r, &body, n->caller, in, carried - num_scans + 2, out + 1, carried + 1)) {
        out[0] = onnx_emit(r, n, "aten.add.Scalar(v, i)", in[0], (int64_t)1);
        out[1] = onnx_flat(r, out[1]);
        for (uint32_t i = carried - num_scans + 2; i < carried + 2; i++) {
            out[i] = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", out[i], (int64_t)0);
            out[i] = onnx_emit(r, n, "aten.index_copy.default(v, i, v, v)", in[i], (int64_t)0, onnx_reshape(r, in[0], &one, 1), out[i]);
        }
        *taken = onnx_close_child(r, out, carried + 2);
    }
    return index;
}

/* The graph that says whether there is another turn. */
static uint32_t onnx_loop_condition(onnx_reader *r, onnx_node *n, const npu_value *args, uint32_t carried, const onnx_level *taken)
{
    npu_value *in = onnx_values(r, (size_t)carried + 3 + taken->captured.count), more;
    uint32_t index = onnx_open_child(r, "condition", NULL);
    if (r->status || !in) {
        return 0;
    }
    onnx_loop_inputs(r, args, carried + 3, in);
    onnx_loop_inputs(r, taken->captured.outer, taken->captured.count, in + carried + 3);
    more = onnx_binary(r, "lt", in[0], in[carried + 2]);
    more = onnx_emit(r, n, "aten.logical_and.default(v, v)", more, in[1]);
    onnx_close_child(r, &more, 1);
    return index;
}

/* What a turn that no run may take would give out: a child graph that nothing calls makes it. */
static bool onnx_try_turn(onnx_reader *r, onnx_node *n, const npu_value *args, uint32_t carried, onnx_scans *scans)
{
    onnx_body body = onnx_graph_attr(r, n, "body");
    npu_value *in = onnx_values(r, (size_t)carried + 2), *out = onnx_values(r, (size_t)n->num_y + 1);
    onnx_open_child(r, "turn", NULL);
    if (r->status || !in || !out) {
        return false;
    }
    onnx_loop_inputs(r, args, carried + 2, in);
    onnx_build_tensors(r, &body, n->caller, in, carried + 2, out, n->num_y + 1);
    for (uint32_t i = carried + 1; i <= n->num_y && r->status == NPU_OK; i++) { /* like it, in the graph of the loop */
        npu_graph *child = r->g;
        npu_spec zero = npu_spec_tensor(onnx_type(r, out[i]), 0, NULL);
        const npu_spec *spec = npu_value_spec(child, out[i]);
        static const uint8_t nothing[16] = { 0 };
        r->g = r->levels[r->level - 1].g;
        if (npu_spec_is_static(spec)) {
            out[i] = onnx_expand_to(r, npu_constant(r->g, NULL, zero, nothing), spec->dims, spec->rank);
        } else {
            onnx_fail(r, NPU_ERR_DYNAMIC_SHAPE, "a loop that data ends gives out a value with a dim that is not known");
        }
        r->g = child;
    }
    onnx_close_child(r, NULL, 0);
    scans->like = out + 1 + carried;
    return r->status == NPU_OK;
}

/* Room for what `most` turns give out, with what the first ones did. */
static npu_value onnx_scan_room(onnx_reader *r, const onnx_scans *scans, uint32_t i, int64_t most)
{
    npu_value rows[2], row;
    int64_t dims[NPU_MAX_RANK], turns = scans->turns, first = 0;
    uint32_t rank;
    rows[0] = scans->like ? onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", scans->like[i], first) : onnx_scanned(r, scans, i, 0, false);
    row = scans->like ? rows[0] : onnx_slice(r, rows[0], 0, 0, 1);
    rank = onnx_rank(r, rows[0]);
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = k ? onnx_dim(r, rows[0], k) : most - turns;
    }
    rows[1] = onnx_expand_to(r, row, dims, rank);
    return scans->like ? rows[1] : onnx_emit(r, NULL, "aten.cat.default(V)", rows, (uint32_t)2);
}

/* A loop that data ends, from turn `turn` on, with at most `most`; in[1] is the condition, behind it what is carried. */
static npu_value onnx_run_loop(onnx_reader *r, onnx_node *n, const npu_value *in, onnx_scans *scans, int64_t turn, int64_t most)
{
    static const int64_t endless = INT64_MAX;
    npu_spec number = npu_spec_tensor(NPU_I64, 0, NULL);
    npu_value *args = onnx_values(r, (size_t)n->num_y + 3), *extra;
    uint32_t carried = n->num_y - scans->count, body, condition;
    onnx_level taken;
    npu_arg list[5];
    memset(&taken, 0, sizeof taken);
    if (!args || (scans->count && most > ONNX_MAX_LIST)) {
        return onnx_refuse(r, "a loop that data ends, and that gives out something in each turn, must have a number of turns "
                              "that is known");
    }
    args[0] = npu_constant(r->g, NULL, number, &turn);
    args[1] = onnx_flat(r, in[1]);
    memcpy(args + 2, in + 2, carried * sizeof *args);
    if (scans->count && !turn && !onnx_try_turn(r, n, args, carried, scans)) {
        return onnx_none();
    }
    for (uint32_t i = 0; i < scans->count; i++) {
        args[2 + carried + i] = onnx_scan_room(r, scans, i, most);
    }
    args[n->num_y + 2] = onnx_x(n, 0).id ? onnx_flat(r, onnx_x(n, 0)) : npu_constant(r->g, NULL, number, &endless);
    body = onnx_loop_body(r, n, args, n->num_y, scans->count, &taken);
    condition = r->status ? 0 : onnx_loop_condition(r, n, args, n->num_y, &taken);
    extra = onnx_values(r, (size_t)taken.captured.count + 1);
    if (r->status || !extra) {
        return onnx_none();
    }
    extra[0] = args[n->num_y + 2];
    for (uint32_t i = 0; i < taken.captured.count; i++) {
        extra[i + 1] = taken.captured.outer[i];
    }
    list[0] = npu_arg_tensors(NULL, args, n->num_y + 2);
    list[1] = npu_arg_tensors(NULL, extra, taken.captured.count + 1);
    list[2] = npu_arg_graph("condition", condition);
    list[3] = npu_arg_graph("body", body);
    list[4] = npu_arg_int("max_iterations", most <= UINT32_MAX ? most - turn : 0); /* without which no model is planned */
    return onnx_flow_results(r, n, npu_emit_name(r->g, "npu.while", list, 5), 2, carried);
}

/* Turn by turn, while the condition is known to hold; from there on as a loop. */
static npu_value onnx_loop(onnx_reader *r, onnx_node *n)
{
    static const bool is_true = true;
    onnx_body body = onnx_graph_attr(r, n, "body");
    bool is_known = !onnx_x(n, 0).id || onnx_is_known(r, onnx_x(n, 0));
    int64_t most = onnx_x(n, 0).id && is_known ? onnx_known_int(r, onnx_x(n, 0), "the number of turns") : INT64_MAX, turn = 0;
    uint32_t carried = n->num_x > 2 ? n->num_x - 2 : 0;
    npu_value *in = onnx_values(r, (size_t)carried + 2), *out = onnx_values(r, (size_t)n->num_y + 1);
    onnx_scans scans = { NULL, NULL, 0, 0, 0 };
    if (!in || !out || n->num_y < carried) {
        return onnx_refuse(r, "a loop gives out less than it carries");
    }
    scans.count = n->num_y - carried;
    in[1] = onnx_x(n, 1).id ? onnx_x(n, 1) : npu_constant(r->g, NULL, npu_spec_tensor(NPU_BOOL, 0, NULL), &is_true);
    memcpy(in + 2, n->x + 2, carried * sizeof *in);
    for (; is_known && turn < most && r->status == NPU_OK; turn++) {
        is_known = onnx_is_known(r, in[1]);
        if (!is_known || !onnx_known_int(r, in[1], "the condition of a Loop")) {
            break;
        }
        in[0] = npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &turn);
        if (turn >= ONNX_MAX_LIST && most > ONNX_MAX_NODES) { /* as good as none was said */
            onnx_fail(r, NPU_ERR_BUDGET, "a loop without an end: its condition still holds after %d turns", (int)ONNX_MAX_LIST);
        }
        if (!onnx_build(r, &body, n->caller, in, carried + 2, out, n->num_y + 1) || !onnx_are_tensors(r, out, 1) ||
            !onnx_scans_add(r, &scans, out + 1 + carried)) {
            return onnx_none();
        }
        memcpy(in + 1, out, (carried + 1) * sizeof *in);
    }
    if (!is_known && r->status == NPU_OK) {
        return onnx_run_loop(r, n, in, &scans, turn, most);
    }
    if (!turn && scans.count) { /* a turn says what none would have given out; nothing reads what it makes */
        in[0] = npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &turn);
        onnx_build(r, &body, n->caller, in, carried + 2, out, n->num_y + 1);
        onnx_are_tensors(r, out + 1 + carried, scans.count);
        scans.like = out + 1 + carried;
    }
    for (uint32_t i = 0; i < n->num_y && r->status == NPU_OK; i++) {
        out[i] = i < carried ? in[2 + i] : n->y[i].at == n->y[i].end ? onnx_none()
                 : onnx_scanned(r, &scans, i - carried, 0, false);
        onnx_result(r, n, i ? i : UINT32_MAX, out[i]);
    }
    return r->status ? onnx_none() : out[0];
}

/* Each turn takes one slice of the last operands. */
static npu_value onnx_scan(onnx_reader *r, onnx_node *n)
{
    onnx_body body = onnx_graph_attr(r, n, "body");
    uint32_t num_scans = (uint32_t)onnx_i(r, n, "num_scan_inputs", 1), carried = n->num_x - num_scans;
    int64_t axes[64], ways[64], out_axes[64], out_ways[64], turns;
    npu_value *in = onnx_values(r, n->num_x), *out = onnx_values(r, n->num_y);
    onnx_scans scans = { NULL, NULL, 0, 0, 0 };
    if (r->opset < 9 || num_scans < 1 || num_scans > n->num_x || n->num_x > 64 || n->num_y > 64 || carried > n->num_y || !in || !out) {
        return onnx_refuse(r, "a Scan of this form is not supported");
    }
    scans.count = n->num_y - carried;
    onnx_ints_or(r, n, "scan_input_axes", axes, num_scans, 0);
    onnx_ints_or(r, n, "scan_input_directions", ways, num_scans, 0);
    onnx_ints_or(r, n, "scan_output_axes", out_axes, scans.count, 0);
    onnx_ints_or(r, n, "scan_output_directions", out_ways, scans.count, 0);
    memcpy(in, n->x, carried * sizeof *in);
    axes[0] = onnx_axis(r, axes[0], onnx_rank(r, n->x[carried]));
    turns = onnx_dim(r, n->x[carried], (uint32_t)axes[0]);
    for (int64_t t = 0; t < turns && r->status == NPU_OK; t++) {
        for (uint32_t i = 0; i < num_scans; i++) {
            in[carried + i] = onnx_emit(r, n, "aten.select.int(v, i, i)", n->x[carried + i], axes[i], ways[i] ? turns - 1 - t : t);
        }
        if (!onnx_build_tensors(r, &body, n->caller, in, n->num_x, out, n->num_y) ||
            !onnx_scans_add(r, &scans, out + carried)) {
            return onnx_none();
        }
        memcpy(in, out, carried * sizeof *in);
    }
    for (uint32_t i = 0; i < n->num_y && r->status == NPU_OK; i++) {
        out[i] = i < carried ? in[i] : onnx_scanned(r, &scans, i - carried, out_axes[i - carried], out_ways[i - carried] != 0);
        onnx_result(r, n, i ? i : UINT32_MAX, out[i]);
    }
    return r->status ? onnx_none() : out[0];
}

/* A call of the body for each tensor of operand 0, with the one in its place of each other sequence. */
static npu_value onnx_sequence_map(onnx_reader *r, onnx_node *n)
{
    onnx_body body = onnx_graph_attr(r, n, "body");
    onnx_list first = onnx_sequence(r, n);
    npu_value *in = onnx_values(r, n->num_x), *out = onnx_values(r, n->num_y), **made;
    npu_value *lists = onnx_values(r, n->num_y);
    made = (npu_value **)onnx_alloc(r, (n->num_y + 1) * sizeof *made);
    for (uint32_t i = 0; i < first.count && r->status == NPU_OK; i++) {
        for (uint32_t k = 0; k < n->num_x; k++) {
            const onnx_list *list = onnx_is_sequence(n->x[k]) ? onnx_list_of(r, n->x[k]) : NULL;
            if (list && list->count != first.count) {
                onnx_fail(r, NPU_ERR_SHAPE, "operand %u has %u tensors, expected %u", (unsigned)k,
                          (unsigned)list->count, (unsigned)first.count);
                return onnx_none();
            }
            in[k] = list ? list->values[i] : n->x[k];
        }
        onnx_build_tensors(r, &body, n->caller, in, n->num_x, out, n->num_y);
        for (uint32_t k = 0; k < n->num_y && r->status == NPU_OK; k++) {
            lists[k] = i ? lists[k] : onnx_new_list(r, onnx_type(r, out[k]), first.count, &made[k]);
            if (lists[k].id && onnx_may_hold(r, onnx_list_of(r, lists[k])->dtype, out[k])) {
                made[k][i] = out[k];
            }
        }
    }
    if (!first.count) {
        return onnx_refuse(r, "a map of an empty sequence is not supported");
    }
    for (uint32_t k = 1; k < n->num_y && r->status == NPU_OK; k++) {
        onnx_result(r, n, k, lists[k]);
    }
    return r->status || !n->num_y ? onnx_none() : lists[0];
}

/* ---- ops: boxes --------------------------------------------------------------------------------------------------

   The best of many boxes are picked in a loop that data ends: a turn takes the best of those that are left, of each
   picture and class at once, and drops what lies over it. Values of a region are looked up between the elements of a
   picture. */

/* Sides of all boxes from low to high, along both axes, and areas: [B,1,N]; how much of two may be common. */
typedef struct onnx_boxes { npu_value low[2], high[2], area, most; } onnx_boxes;

/* v, of which the last dim may be one that data decides, as large as that can be, behind its elements `fill`. */
static npu_value onnx_widest(onnx_reader *r, npu_value v, double fill)
{
    uint32_t last = onnx_rank(r, v) - 1;
    int64_t dims[NPU_MAX_RANK], size = onnx_dim_if_any(r, v, last), most = 0;
    npu_value index[NPU_MAX_RANK] = { { 0 } }, room;
    if (size >= 0 || !onnx_inputs_have_sizes(r) || !npu_graph_dim_bounds(r->g, size, NULL, &most)) {
        onnx_dim(r, v, last);
        return v;
    }
    for (uint32_t i = 0; i < last; i++) {
        dims[i] = onnx_dim(r, v, i);
    }
    dims[last] = most;
    index[last] = onnx_emit(r, NULL, "aten.cumsum.default(v, i)", onnx_ones_along(r, v, last), (int64_t)0);
    index[last] = onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", index[last], (int64_t)1);
    room = onnx_emit(r, NULL, "aten.full.default(I, f, dtype=t)", dims, last + 1, fill, (int)onnx_type(r, v));
    return onnx_index_put(r, room, index, last + 1, v, false);
}

/* Corners in any order, or middles and sizes; first along y, or of middles along x, which is all the same here. */
static onnx_boxes onnx_sides(onnx_reader *r, const onnx_node *n)
{
    static const int64_t order[3] = { 0, 2, 1 };
    npu_value x = onnx_emit(r, n, "aten.permute.default(v, I)", onnx_x(n, 0), order, (uint32_t)3), at[4];
    bool has_middles = onnx_i(r, n, "center_point_box", 0) != 0;
    onnx_boxes b;
    x = onnx_widest(r, x, 0);
    for (int64_t i = 0; i < 4; i++) {
        at[i] = onnx_slice(r, x, 1, i, i + 1);
    }
    for (uint32_t k = 0; k < 2; k++) {
        npu_value half = onnx_emit(r, n, "aten.mul.Scalar(v, f)", at[k + 2], 0.5);
        b.low[k] = has_middles ? onnx_binary(r, "sub", at[k], half)
                               : onnx_emit(r, n, "aten.minimum.default(v, v)", at[k], at[k + 2]);
        b.high[k] = has_middles ? onnx_binary(r, "add", at[k], half)
                                : onnx_emit(r, n, "aten.maximum.default(v, v)", at[k], at[k + 2]);
    }
    b.area = onnx_binary(r, "mul", onnx_binary(r, "sub", b.high[0], b.low[0]),
                         onnx_binary(r, "sub", b.high[1], b.low[1]));
    b.most = onnx_x(n, 3).id ? onnx_flat(r, onnx_x(n, 3)) : onnx_like(r, b.area, 0);
    return b;
}

/* Of the best boxes [B,C,1], which of all lie over them by more than may be: [B,C,N]. */
static npu_value onnx_overlaps(onnx_reader *r, const onnx_boxes *b, npu_value best, const int64_t *dims)
{
    npu_value common = onnx_none(), of_best[5];
    const npu_value all[5] = { b->low[0], b->low[1], b->high[0], b->high[1], b->area };
    for (uint32_t i = 0; i < 5; i++) {
        of_best[i] = onnx_emit(r, NULL, "aten.gather.default(v, i, v)", onnx_expand_to(r, all[i], dims, 3), (int64_t)2,
                               best);
    }
    for (uint32_t k = 0; k < 2; k++) {
        npu_value low = onnx_emit(r, NULL, "aten.maximum.default(v, v)", all[k], of_best[k]);
        npu_value side = onnx_binary(r, "sub", onnx_emit(r, NULL, "aten.minimum.default(v, v)", all[k + 2],
                                                         of_best[k + 2]), low);
        side = onnx_emit(r, NULL, "aten.clamp_min.default(v, i)", side, (int64_t)0);
        common = k ? onnx_binary(r, "mul", common, side) : side;
    }
    npu_value either = onnx_binary(r, "sub", onnx_binary(r, "add", all[4], of_best[4]), common);
    return onnx_binary(r, "gt", onnx_binary(r, "div", common, either), b->most);
}

/* A turn: its number, whether it found any, scores of which those that are out are -infinity, and what each has picked. */
static uint32_t onnx_pick_body(onnx_reader *r, onnx_node *n, const npu_value *args, const onnx_boxes *boxes,
                               onnx_level *taken)
{
    npu_value in[5], out[4], best[2], found, gone, place;
    uint32_t index = onnx_open_child(r, "body", NULL);
    int64_t dims[NPU_MAX_RANK], one = 1;
    onnx_boxes b = *boxes;
    if (r->status) {
        return 0;
    }
    onnx_loop_inputs(r, args, 5, in);
    for (uint32_t k = 0; k < 2; k++) {
        b.low[k] = onnx_capture(r, r->level, b.low[k]);
        b.high[k] = onnx_capture(r, r->level, b.high[k]);
    }
    b.area = onnx_capture(r, r->level, b.area);
    b.most = onnx_capture(r, r->level, b.most);
    for (uint32_t i = 0; i < 3; i++) {
        dims[i] = onnx_dim(r, in[2], i);
    }
    onnx_emit_many(r, n, best, 2, "aten.max.dim(v, i, b)", in[2], (int64_t)2, true);
    found = onnx_emit(r, n, "aten.gt.Scalar(v, f)", best[0], (double)-INFINITY);
    gone = onnx_emit(r, n, "aten.arange.default(i)", dims[2]);
    gone = onnx_emit(r, n, "aten.logical_or.default(v, v)", onnx_overlaps(r, &b, best[1], dims),
                     onnx_binary(r, "eq", gone, best[1]));
    place = onnx_where(r, found, best[1], onnx_like(r, best[1], -1));
    out[0] = onnx_emit(r, n, "aten.add.Scalar(v, i)", in[0], one);
    out[1] = onnx_emit(r, n, "aten.any.default(v)", found);
    out[2] = onnx_where(r, gone, onnx_like(r, in[2], (double)-INFINITY), in[2]);
    out[3] = onnx_emit(r, n, "aten.index_copy.default(v, i, v, v)", in[3], (int64_t)2, onnx_reshape(r, in[0], &one, 1),
                       place);
    *taken = onnx_close_child(r, out, 4);
    return index;
}

/* Picture, class and box of what was picked: [num,3], in this order. */
static npu_value onnx_picked(onnx_reader *r, onnx_node *n, npu_value picked)
{
    npu_value where = onnx_emit(r, n, "aten.nonzero.default(v)",
                                onnx_emit(r, n, "aten.ge.Scalar(v, i)", picked, (int64_t)0)), at[3], rows[2];
    for (int64_t k = 0; k < 3; k++) {
        at[k] = onnx_emit(r, n, "aten.select.int(v, i, i)", where, (int64_t)1, k);
    }
    rows[0] = onnx_slice(r, where, 1, 0, 2);
    rows[1] = onnx_emit(r, n, "aten.unsqueeze.default(v, i)",
                        onnx_emit(r, n, "aten.index.Tensor(v, V)", picked, at, (uint32_t)3), (int64_t)1);
    return onnx_emit(r, n, "aten.cat.default(V, i)", rows, (uint32_t)2, (int64_t)1);
}

/* The most boxes of a class: what the loop may take, and *most as a number, at most as many as there are. */
static npu_value onnx_most_picked(onnx_reader *r, const onnx_node *n, int64_t count, int64_t *most)
{
    npu_value v = onnx_x(n, 2);
    bool is_open = v.id && !onnx_is_known(r, v);
    int64_t known = is_open ? count : v.id ? onnx_known_int(r, v, "max_output_boxes_per_class") : 0;
    *most = known < 0 ? 0 : known > count ? count : known;
    return is_open ? onnx_cast(r, onnx_flat(r, v), NPU_I64)
                   : npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), most);
}

static npu_value onnx_pick_boxes(onnx_reader *r, onnx_node *n)
{
    static const bool is_true = true;
    static const int64_t zero = 0;
    npu_value scores = onnx_widest(r, onnx_x(n, 1), (double)-INFINITY), args[5], extra[8];
    int64_t dims[NPU_MAX_RANK] = { 0 }, most = 0;
    onnx_level taken;
    onnx_boxes boxes = onnx_sides(r, n);
    npu_arg list[5];
    memset(&taken, 0, sizeof taken);
    for (uint32_t i = 0; i < 3; i++) {
        dims[i] = onnx_dim(r, scores, i);
    }
    args[4] = extra[0] = onnx_most_picked(r, n, dims[2], &most);
    if (r->status || !most || !dims[0] || !dims[1]) {
        const int64_t none[2] = { 0, 3 };
        return r->status ? onnx_none() : npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 2, none), "");
    }
    if (onnx_x(n, 4).id) {
        npu_value enough = onnx_binary(r, "gt", scores, onnx_flat(r, onnx_x(n, 4)));
        scores = onnx_where(r, enough, scores, onnx_like(r, scores, (double)-INFINITY));
    }
    dims[2] = most;
    args[0] = npu_constant(r->g, NULL, npu_spec_tensor(NPU_I64, 0, NULL), &zero);
    args[1] = npu_constant(r->g, NULL, npu_spec_tensor(NPU_BOOL, 0, NULL), &is_true);
    args[2] = scores;
    args[3] = onnx_emit(r, n, "aten.full.default(I, i, dtype=t)", dims, (uint32_t)3, (int64_t)-1, (int)NPU_I64);
    list[3] = npu_arg_graph("body", onnx_pick_body(r, n, args, &boxes, &taken));
    list[2] = npu_arg_graph("condition", r->status ? 0 : onnx_loop_condition(r, n, args, 2, &taken));
    for (uint32_t i = 0; i < taken.captured.count && i < 7 && r->status == NPU_OK; i++) {
        extra[i + 1] = taken.captured.outer[i];
    }
    list[0] = npu_arg_tensors(NULL, args, 4);
    list[1] = npu_arg_tensors(NULL, extra, taken.captured.count + 1);
    list[4] = npu_arg_int("max_iterations", most <= UINT32_MAX ? most : 0);
    npu_op loop = r->status ? (npu_op){ 0 } : npu_emit_name(r->g, "npu.while", list, 5);
    return onnx_check(r) ? onnx_picked(r, n, npu_op_result(r->g, loop, 3)) : onnx_none();
}

/* Regions along an axis: where they begin, and how long they are. */
typedef struct onnx_range_of { npu_value begin, len; } onnx_range_of;

/* Side k, 0 = x and 1 = y, of regions [R,4] as [R,1], in elements of a picture. */
static onnx_range_of onnx_region_side(onnx_reader *r, onnx_node *n, int64_t k)
{
    bool is_half = onnx_s_is(r, n, "coordinate_transformation_mode", r->opset < 16 ? "output_half_pixel" : "half_pixel",
                             "half_pixel");
    npu_value ends[2];
    onnx_range_of side;
    for (int64_t i = 0; i < 2; i++) {
        ends[i] = onnx_slice(r, onnx_x(n, 1), 1, k + 2 * i, k + 2 * i + 1);
        ends[i] = onnx_emit(r, n, "aten.mul.Scalar(v, spatial_scale:1.0)", ends[i]);
        ends[i] = is_half ? onnx_emit(r, n, "aten.sub.Scalar(v, f)", ends[i], 0.5) : ends[i];
    }
    side.begin = ends[0];
    side.len = onnx_binary(r, "sub", ends[1], ends[0]);
    side.len = is_half ? side.len : onnx_emit(r, n, "aten.clamp_min.default(v, i)", side.len, (int64_t)1);
    return side;
}

/* Where the samples of each region lie along an axis of `size`, [R,count], held within the picture; *is_in: as 1 or 0. */
static npu_value onnx_samples(onnx_reader *r, onnx_node *n, onnx_range_of side, int64_t count, int64_t size,
                              npu_value *is_in)
{
    npu_value at = onnx_emit(r, n, "aten.arange.default(i)", count);
    at = onnx_emit(r, n, "aten.add.Scalar(v, f)", onnx_cast(r, at, onnx_type(r, side.begin)), 0.5);
    at = onnx_binary(r, "mul", side.len, onnx_emit(r, n, "aten.mul.Scalar(v, f)", at, 1.0 / (double)count));
    at = onnx_binary(r, "add", side.begin, at);
    *is_in = onnx_emit(r, n, "aten.logical_and.default(v, v)", onnx_emit(r, n, "aten.ge.Scalar(v, i)", at, (int64_t)-1),
                       onnx_emit(r, n, "aten.le.Scalar(v, i)", at, size));
    *is_in = onnx_cast(r, *is_in, onnx_type(r, at));
    return onnx_emit(r, n, "aten.clamp.default(v, i, i)", at, (int64_t)0, size - 1);
}

/* -1 to 1 for the middles of the first and the last element of `size`. */
static npu_value onnx_grid_at(onnx_reader *r, npu_value at, int64_t size)
{
    at = onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", at, size > 1 ? 2 / (double)(size - 1) : 0.0);
    return onnx_emit(r, NULL, "aten.sub.Scalar(v, i)", at, (int64_t)1);
}

/* Pictures stand one below the other; the samples of all regions are one grid [1,R*ys,xs,2], of which each bin is a mean. */
static npu_value onnx_roi_align(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), in[2], at[2], v;
    int64_t batch = onnx_dim(r, x, 0), channels = onnx_dim(r, x, 1), high = onnx_dim(r, x, 2), wide = onnx_dim(r, x, 3);
    int64_t rows = onnx_i(r, n, "output_height", 1), columns = onnx_i(r, n, "output_width", 1);
    int64_t each = onnx_i(r, n, "sampling_ratio", 0), below[4] = { 1, channels, 0, wide };
    const int64_t parts[4] = { channels, -1, rows, columns }, bins[5] = { channels, -1, each, columns, each };
    static const int64_t across[4] = { 1, 0, 2, 3 }, samples[2] = { 2, 4 };
    if (!onnx_s_is(r, n, "mode", "avg", "avg") || each < 1) {
        return onnx_refuse(r, "mode max, and sampling_ratio 0, which leaves it to data how many samples there are, are not "
                              "supported");
    }
    if (rows < 1 || columns < 1 || rows > 4096 || columns > 4096 || each > 256 || batch < 1 || high < 1 || wide < 1 ||
        batch > INT32_MAX || high > INT32_MAX) {
        return onnx_refuse(r, "regions or a picture of that size are not supported");
    }
    below[2] = batch * high;
    at[0] = onnx_samples(r, n, onnx_region_side(r, n, 0), columns * each, wide, &in[0]);
    at[1] = onnx_samples(r, n, onnx_region_side(r, n, 1), rows * each, high, &in[1]);
    v = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", onnx_cast(r, onnx_x(n, 2), onnx_type(r, at[1])), (int64_t)1);
    at[1] = batch > 1 ? onnx_binary(r, "add", at[1], onnx_emit(r, n, "aten.mul.Scalar(v, i)", v, high)) : at[1];
    at[0] = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", onnx_grid_at(r, at[0], wide), (int64_t)1);
    at[1] = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", onnx_grid_at(r, at[1], below[2]), (int64_t)2);
    at[0] = onnx_binary(r, "add", at[0], onnx_emit(r, n, "aten.mul.Scalar(v, i)", at[1], (int64_t)0)); /* each x beside each y */
    at[1] = onnx_binary(r, "add", at[1], onnx_emit(r, n, "aten.mul.Scalar(v, i)", at[0], (int64_t)0));
    v = onnx_emit(r, n, "aten.stack.default(V, i)", at, (uint32_t)2, (int64_t)-1);
    v = onnx_reshape(r, v, (const int64_t[]){ 1, -1, columns * each, 2 }, 4);
    x = onnx_reshape(r, onnx_permute(r, x, across, 4), below, 4);
    v = onnx_emit(r, n, "aten.grid_sampler.default(v, v, i, i, b)", x, v, (int64_t)0, (int64_t)1, true);
    in[0] = onnx_binary(r, "mul", onnx_emit(r, n, "aten.unsqueeze.default(v, i)", in[1], (int64_t)2),
                        onnx_emit(r, n, "aten.unsqueeze.default(v, i)", in[0], (int64_t)1));
    v = onnx_binary(r, "mul", v, onnx_reshape(r, in[0], (const int64_t[]){ 1, 1, -1, columns * each }, 4));
    v = onnx_emit(r, n, "aten.mean.dim(v, I)", onnx_reshape(r, v, bins, 5), samples, (uint32_t)2); /* of no region, too */
    return onnx_permute(r, onnx_reshape(r, v, parts, 4), across, 4);
}

/* ---- ops: experiments of old (in files of other converters) ------------------------------------------------------ */

/* alpha x + beta; x times scale, and a bias for each channel. */
static npu_value onnx_affine(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_emit(r, n, "aten.mul.Scalar(0, f)", onnx_f(r, n, n->row->text, 1));
    double bias[16] = { 0 };
    uint32_t count = onnx_floats(r, n, "bias", bias, 16);
    float values[16];
    int64_t dims = count;
    for (uint32_t i = 0; i < count && i < 16; i++) {
        values[i] = (float)bias[i];
    }
    if (count == 0 || r->status) {
        return onnx_emit(r, n, "aten.add.Scalar(v, beta:0.0)", x);
    }
    return onnx_binary(r, "add", x, onnx_along(r, npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 1, &dims), values),
                                               onnx_rank(r, x), 1));
}

/* What is left of a picture without its borders: left, top, right, bottom; or of the size in scale. */
static npu_value onnx_crop(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    int64_t border[4] = { 0 }, scale[2] = { 0 }, begin, end;
    bool is_sized = onnx_ints(r, n, "scale", scale, 2) == 2;
    onnx_ints(r, n, "border", border, 4);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t size = onnx_dim(r, x, 2 + i);
        begin = border[1 - i];
        end = is_sized ? scale[i] : border[3 - i];
        if (begin < 0 || begin > size || end < 0 || end > size - begin) {
            return onnx_refuse(r, "a border outside of the picture is not supported");
        }
        end = is_sized ? begin + end : size - end;
        x = onnx_slice(r, x, 2 + i, begin, end);
    }
    return x;
}

/* alpha tanh(beta x), alpha log(1 + exp(beta x)) */
static npu_value onnx_scaled(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_emit(r, n, "aten.mul.Scalar(0, f)", onnx_f(r, n, "beta", 1));
    return onnx_emit(r, n, "aten.mul.Scalar(v, f)", onnx_unary(r, n->row->text, x), onnx_f(r, n, "alpha", 1));
}

/* One number, in the shape that an operand has, or says (PyTorch before opset 9, for the first state of an LSTM), or none. */
static npu_value onnx_constant_fill(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    bool is_shape = onnx_i(r, n, "input_as_shape", 0) != 0;
    int64_t dims[2 * NPU_MAX_RANK] = { 0 };
    uint32_t count = !x.id ? onnx_ints(r, n, "shape", dims, NPU_MAX_RANK)
                     : is_shape ? onnx_known(r, x, "the shape", dims, NPU_MAX_RANK) : onnx_rank(r, x);
    for (uint32_t i = 0; x.id && !is_shape && i < count; i++) {
        dims[i] = onnx_dim(r, x, i);
    }
    count += onnx_ints(r, n, "extra_shape", dims + count, NPU_MAX_RANK);
    if (count > NPU_MAX_RANK) {
        return onnx_refuse(r, "more dims than are possible");
    }
    return onnx_emit(r, n, "aten.full.default(I, f, dtype=t)", dims, count, onnx_f(r, n, "value", 0),
                     (int)onnx_dtype(r, onnx_i(r, n, "dtype", 1)));
}

/* ---- ops: what ONNX Runtime fuses (com.microsoft) ---------------------------------------------------------------- */

/* The op behind a convolution or product, by its name in ONNX; its numbers are activation_params, or two attributes. */
static npu_value onnx_activated(onnx_reader *r, const onnx_node *n, npu_value x)
{
    onnx_span how = onnx_s(r, n, "activation", "");
    double p[2] = { 0, 0 };
    uint32_t count = onnx_floats(r, n, "activation_params", p, 2);
    const struct onnx_act_row *row;
    onnx_activation act;
    if (onnx_is(how, "")) {
        return x;
    }
    if (onnx_is(how, "Clip") && count == 2) {
        return onnx_emit(r, n, "aten.clamp.default(v, f, f)", x, p[0], p[1]);
    }
    row = onnx_act_row_of(r, how);
    act.text = row->text;
    act.alpha = count ? p[0] : onnx_f(r, n, "activation_alpha", row->alpha);
    act.beta = count > 1 ? p[1] : onnx_f(r, n, "activation_beta", row->beta);
    return onnx_act_of(r, &act, x);
}

static npu_value onnx_fused_conv(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_conv(r, n);
    return onnx_activated(r, n, onnx_x(n, 3).id ? onnx_binary(r, "add", x, onnx_x(n, 3)) : x);
}

static npu_value onnx_fused_gemm(onnx_reader *r, onnx_node *n) { return onnx_activated(r, n, onnx_gemm(r, n)); }

static npu_value onnx_fused_matmul(onnx_reader *r, onnx_node *n)
{
    npu_value a = onnx_x(n, 0), b = onnx_x(n, 1);
    double alpha = onnx_f(r, n, "alpha", 1);
    a = onnx_i(r, n, "transBatchA", 0) ? onnx_emit(r, n, "aten.movedim.int(v, i, i)", a, (int64_t)0, (int64_t)-2) : a;
    b = onnx_i(r, n, "transBatchB", 0) ? onnx_emit(r, n, "aten.movedim.int(v, i, i)", b, (int64_t)0, (int64_t)-2) : b;
    a = onnx_i(r, n, "transA", 0) ? onnx_swapped(r, a, -2, -1) : a;
    b = onnx_i(r, n, "transB", 0) ? onnx_swapped(r, b, -2, -1) : b;
    a = onnx_matmul_of(r, n, a, b);
    return alpha == 1 ? a : onnx_emit(r, n, "aten.mul.Scalar(v, f)", a, alpha);
}

static npu_value onnx_activated_matmul(onnx_reader *r, onnx_node *n)
{
    return onnx_activated(r, n, onnx_fused_matmul(r, n));
}

/* text: the op, of x and a bias that may be there. */
static npu_value onnx_biased(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0);
    return onnx_emit(r, n, n->row->text, onnx_x(n, 1).id ? onnx_binary(r, "add", x, onnx_x(n, 1)) : x);
}

static npu_value onnx_quick_gelu(onnx_reader *r, onnx_node *n)
{
    npu_value gate = onnx_emit(r, n, "aten.mul.Scalar(0, f)", onnx_f(r, n, "alpha", 1.702));
    return onnx_binary(r, "mul", onnx_x(n, 0), onnx_unary(r, "sigmoid", gate));
}

/* Of x + skip + bias, which is result 3. */
static npu_value onnx_skip_norm(onnx_reader *r, onnx_node *n)
{
    bool is_rms = strchr(n->row->text, 'r') != NULL;
    npu_value x = onnx_binary(r, "add", onnx_x(n, 0), onnx_x(n, 1)), bias = onnx_x(n, is_rms ? 3 : 4), all[3];
    int64_t len = onnx_dim(r, onnx_x(n, 2), 0);
    x = bias.id ? onnx_binary(r, "add", x, bias) : x;
    onnx_result(r, n, 3, x);
    if (is_rms) {
        return onnx_emit(r, n, "aten.rms_norm.default(v, I, 2, epsilon:1/1000000000000)", x, &len, (uint32_t)1);
    }
    onnx_emit_many(r, n, all, 3, "aten.native_layer_norm.default(v, I, 2, 3, epsilon:1/1000000000000)", x, &len,
                   (uint32_t)1);
    return all[0];
}

/* Ops on elements go in front of a permutation that is the same of all their operands, every third from `first` to `end`:
   one behind them may take it back. False = there is none. */
static bool onnx_take_order(onnx_reader *r, onnx_node *n, uint32_t first, uint32_t end, int64_t *order)
{
    int64_t other[NPU_MAX_RANK];
    for (uint32_t i = first; i < end; i += 3) {
        npu_value from = onnx_permuted(r, onnx_x(n, i), i == first ? order : other);
        if (!from.id || (i > first && (onnx_rank(r, from) != onnx_rank(r, n->x[first]) ||
                                       memcmp(order, other, onnx_rank(r, from) * sizeof *order)))) {
            return false;
        }
    }
    for (uint32_t i = first; i < end; i += 3) {
        n->x[i] = onnx_permuted(r, n->x[i], other);
    }
    return true;
}

/* QLinearAdd, QLinearMul: a, its scale and zero point, b, its, those of the result. */
static npu_value onnx_qlinear_binary(onnx_reader *r, onnx_node *n)
{
    npu_value a, b;
    int64_t order[NPU_MAX_RANK];
    bool is_permuted = onnx_take_order(r, n, 0, 6, order);
    a = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), 0);
    b = onnx_dequantised(r, onnx_x(n, 3), onnx_x(n, 4), onnx_x(n, 5), 0);
    a = onnx_quantised(r, onnx_emit(r, n, n->row->text, a, b), onnx_x(n, 6), onnx_x(n, 7), onnx_type(r, onnx_x(n, 0)), 0);
    return is_permuted ? onnx_permute(r, a, order, onnx_rank(r, a)) : a;
}

/* x, its scale and zero point, those of the result. */
static npu_value onnx_qlinear_unary(onnx_reader *r, onnx_node *n)
{
    int64_t order[NPU_MAX_RANK];
    bool is_permuted = onnx_take_order(r, n, 0, 1, order);
    npu_value x = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), 0);
    x = onnx_quantised(r, onnx_emit(r, n, n->row->text, x), onnx_x(n, 3), onnx_x(n, 4), onnx_type(r, onnx_x(n, 0)), 0);
    return is_permuted ? onnx_permute(r, x, order, onnx_rank(r, x)) : x;
}

/* ---- ops: weights of few bits (com.microsoft) -------------------------------------------------------------------- */

/* A weight [rows,cols] of 2, 4 or 8 bits in blocks along its rows, each block with a scale and a zero point. */
typedef struct onnx_blocks {
    int64_t rows, cols, bits, block, groups;
    const uint8_t *bytes;
    npu_value scales, zeros;      /* [rows,groups]; zeros: integers or floats, id 0 = the middle */
    npu_value order;              /* the group of each column; id 0 = one after the other */
} onnx_blocks;

/* Number i of those that follow each other in a row, the lowest bits first. */
static unsigned onnx_bits_at(const uint8_t *row, int64_t i, int64_t bits)
{
    return (unsigned)(row[i * bits / 8] >> (i * bits % 8)) & ((1u << bits) - 1);
}

/* Bytes that are known, as many as said. */
static const uint8_t *onnx_packed_bytes(onnx_reader *r, npu_value v, const char *what, int64_t size)
{
    size_t len;
    const void *data = onnx_data(r, v, what, &len);
    if (data && (onnx_type(r, v) != NPU_U8 || (uint64_t)len != (uint64_t)size)) {
        onnx_fail(r, NPU_ERR_SHAPE, "%s: %llu of %s, expected %lld bytes of u8", what, (unsigned long long)len,
                  npu_dtype_name(onnx_type(r, v)), (long long)size);
        return NULL;
    }
    return (const uint8_t *)data;
}

/* Rows of numbers of few bits, one in each byte. */
static npu_value onnx_unpacked(onnx_reader *r, const uint8_t *bytes, int64_t rows, int64_t len, int64_t bits)
{
    int64_t dims[2] = { rows, len }, stride = (len * bits + 7) / 8;
    uint8_t *own = bytes ? (uint8_t *)onnx_alloc_rows(r, rows, len, 1) : NULL;
    for (int64_t i = 0; own && i < rows * len; i++) {
        own[i] = (uint8_t)onnx_bits_at(bytes + i / len * stride, i % len, bits);
    }
    return own ? npu_constant(r->g, NULL, npu_spec_tensor(NPU_U8, 2, dims), own) : onnx_none();
}

static bool onnx_blocks_of(onnx_reader *r, const onnx_node *n, onnx_blocks *w)
{
    int64_t least = 16, most = (int64_t)1 << 30;
    memset(w, 0, sizeof *w);
    w->rows = onnx_i(r, n, "N", 0);
    w->cols = onnx_i(r, n, "K", 0);
    w->bits = onnx_i(r, n, "bits", 4);
    w->block = onnx_i(r, n, "block_size", 0);
    if (w->rows < 1 || w->cols < 1 || w->rows > most || w->cols > most ||
        (w->bits != 2 && w->bits != 4 && w->bits != 8) ||
        w->block < least || w->block > most || (w->block & (w->block - 1)) || onnx_i(r, n, "weight_prepacked", 0)) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "a weight of %lld x %lld, %lld bits in blocks of %lld, is not supported",
                  (long long)w->rows, (long long)w->cols, (long long)w->bits, (long long)w->block);
        return false;
    }
    w->groups = (w->cols + w->block - 1) / w->block;
    w->bytes = onnx_packed_bytes(r, onnx_x(n, 1), "the weight", w->rows * w->groups * (w->block * w->bits / 8));
    w->scales = onnx_x(n, 2);
    w->zeros = onnx_x(n, 3);
    if (w->zeros.id && onnx_type(r, w->zeros) == NPU_U8) {
        int64_t size = w->rows * ((w->groups * w->bits + 7) / 8);
        w->zeros = onnx_unpacked(r, onnx_packed_bytes(r, w->zeros, "zero points", size), w->rows, w->groups, w->bits);
    }
    return r->status == NPU_OK;
}

/* Scales, or what they are times the distance of the zero points from `from`, as [rows,groups,1]. */
static npu_value onnx_block_factors(onnx_reader *r, const onnx_blocks *w, bool is_value, double from)
{
    int64_t dims[3] = { w->rows, w->groups, 1 };
    npu_value scales = onnx_reshape(r, w->scales, dims, 3), zeros;
    double middle = (double)(1 << (w->bits - 1));
    if (!is_value) {
        return scales;
    }
    if (!w->zeros.id) {
        return onnx_emit(r, NULL, "aten.mul.Scalar(v, f)", scales, from - middle);
    }
    zeros = onnx_cast(r, onnx_reshape(r, w->zeros, dims, 3), onnx_type(r, scales));
    zeros = onnx_emit(r, NULL, "aten.rsub.Scalar(v, f)", zeros, from);
    return onnx_binary(r, "mul", zeros, scales);
}

/* Which group each column is of, [cols]; id 0 = one after the other. More may be given, as the last group is padded. */
static npu_value onnx_block_order(onnx_reader *r, const onnx_blocks *w, npu_value order)
{
    int64_t len = order.id ? onnx_dim(r, order, 0) : 0;
    if (order.id && (onnx_rank(r, order) != 1 || len < w->cols)) {
        onnx_fail(r, NPU_ERR_SHAPE, "g_idx has %lld elements, expected K = %lld", (long long)len, (long long)w->cols);
    }
    return len > w->cols ? onnx_slice(r, order, 0, 0, w->cols) : order;
}

/* The weight in the floats of its scales where columns of a group lie apart. */
static npu_value onnx_ordered_floats(onnx_reader *r, const onnx_blocks *w)
{
    int64_t dims[2] = { w->rows, w->groups };
    npu_value x = onnx_unpacked(r, w->bytes, w->rows, w->groups * w->block, w->bits), by[2];
    for (uint32_t i = 0; i < 2; i++) {
        by[i] = onnx_reshape(r, onnx_block_factors(r, w, i == 1, 0), dims, 2);
        by[i] = onnx_emit(r, NULL, "aten.index_select.default(v, i, v)", by[i], (int64_t)1, w->order);
    }
    x = onnx_cast(r, onnx_slice(r, x, 1, 0, w->cols), onnx_type(r, by[0]));
    return onnx_binary(r, "add", onnx_binary(r, "mul", x, by[0]), by[1]);
}

/* The weight in the floats of its scales: (bits - zero) scale. */
static npu_value onnx_block_floats(onnx_reader *r, const onnx_blocks *w)
{
    int64_t dims[3] = { w->rows, w->groups, w->block }, whole[2] = { w->rows, w->groups * w->block };
    npu_value scales, x;
    if (w->order.id) {
        return onnx_ordered_floats(r, w);
    }
    scales = onnx_block_factors(r, w, false, 0);
    x = onnx_unpacked(r, w->bytes, whole[0], whole[1], w->bits);
    x = onnx_reshape(r, onnx_cast(r, x, onnx_type(r, scales)), dims, 3);
    x = onnx_binary(r, "mul", x, scales);
    x = onnx_reshape(r, onnx_binary(r, "add", x, onnx_block_factors(r, w, true, 0)), whole, 2);
    return w->cols == whole[1] ? x : onnx_slice(r, x, 1, 0, w->cols);
}

/* The bytes that _weight_int4pack_mm_for_cpu reads: of 64 rows, row i beside row i + 32; those beyond in pairs. */
static npu_value onnx_int4_rows(onnx_reader *r, const onnx_blocks *w, int64_t rows)
{
    int64_t dims[2] = { rows, w->cols / 2 };
    uint8_t *own = (uint8_t *)onnx_alloc_rows(r, rows, dims[1], 1);
    for (int64_t i = 0; own && i < w->rows; i++) {
        int64_t first = i / 64 * 64, at = i - first, some = rows - first < 64 ? rows - first : 64;
        int64_t column = some == 64 ? at % 32 : at / 2, shift = 4 * (some == 64 ? at / 32 : at % 2);
        for (int64_t k = 0; k < w->cols; k++) {
            unsigned bits = onnx_bits_at(w->bytes + i * dims[1], k, 4);
            own[first * dims[1] + k * some / 2 + column] |= (uint8_t)(bits << shift);
        }
    }
    return own ? npu_constant(r->g, NULL, npu_spec_tensor(NPU_U8, 2, dims), own) : onnx_none();
}

/* x [M,cols] times such a weight turned around. */
static npu_value onnx_int4_product(onnx_reader *r, const onnx_blocks *w, npu_value x)
{
    int64_t rows = (w->rows + 15) / 16 * 16, pads[6] = { 0 };
    npu_value pairs = onnx_cat(r, onnx_block_factors(r, w, false, 0), onnx_block_factors(r, w, true, 8), 2);
    pads[5] = rows - w->rows;
    if (pads[5]) {
        pairs = onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, f)", pairs, pads, (uint32_t)6, 0.0);
    }
    pairs = onnx_unary(r, "contiguous", onnx_swapped(r, pairs, 0, 1));
    x = onnx_emit(r, NULL, "aten._weight_int4pack_mm_for_cpu.default(v, v, i, v)", x, onnx_int4_rows(r, w, rows),
                  w->block, pairs);
    return pads[5] ? onnx_slice(r, x, 1, 0, w->rows) : x;
}

/* x, B [N,groups,bytes], scales, zero points, the group of each column (GPTQ's order), bias. Blocks of 4 bits that an
   op of the registry takes stay as they are; others, and ordered ones, become floats. */
static npu_value onnx_matmul_nbits(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), y, bias = onnx_x(n, 5);
    uint32_t rank = onnx_rank(r, x);
    int64_t rows[2] = { -1, 0 }, dims[NPU_MAX_RANK];
    onnx_blocks w;
    if (rank < 1) {
        return onnx_refuse(r, "an operand without dims is not supported");
    }
    if (!onnx_blocks_of(r, n, &w)) {
        return onnx_none();
    }
    w.order = onnx_block_order(r, &w, onnx_x(n, 4));
    if (w.order.id || w.bits != 4 || w.block < 32 || w.block > 256 || w.cols % w.block) {
        return onnx_emit(r, n, "aten.linear.default(v, v, v)", x, onnx_block_floats(r, &w), bias);
    }
    rows[1] = w.cols;
    memcpy(dims, npu_value_spec(r->g, x)->dims, rank * sizeof *dims);
    if (dims[rank - 1] >= 0 && dims[rank - 1] != w.cols) {
        onnx_fail(r, NPU_ERR_SHAPE, "rows of %lld elements, expected K = %lld", (long long)dims[rank - 1],
                  (long long)w.cols);
    }
    dims[rank - 1] = w.rows;
    y = onnx_int4_product(r, &w, rank == 2 ? x : onnx_reshape(r, x, rows, 2));
    y = rank == 2 ? y : onnx_reshape(r, y, dims, rank);
    return bias.id ? onnx_binary(r, "add", y, bias) : y;
}

/* The table [V,K] of a GatherBlockQuantized, its scales and zero points [V,K/block], one number in each element: bytes
   may hold two. False = it is of another form. */
static bool onnx_block_table(onnx_reader *r, const onnx_node *n, int64_t block, npu_value *part)
{
    int64_t bits = onnx_i(r, n, "bits", 4), rows, len;
    bool is_bytes = onnx_type(r, onnx_x(n, 0)) == NPU_U8, is_packed = is_bytes && bits == 4;
    for (uint32_t i = 0; i < 3; i++) {
        part[i] = onnx_widened(r, onnx_x(n, i ? i + 1 : 0));
    }
    if (onnx_rank(r, part[0]) != 2 || onnx_i(r, n, "gather_axis", 0) || block < 16 || block > 1 << 30 ||
        (bits != 4 && bits != 8) ||
        onnx_axis(r, onnx_i(r, n, "quantize_axis", 1), 2) != 1) {
        return false;
    }
    rows = onnx_dim(r, part[0], 0);
    len = onnx_dim(r, part[0], 1);
    if (rows < 1 || rows > INT32_MAX || len < 1 || len > INT32_MAX) {
        return false;
    }
    len *= is_packed ? 2 : 1;
    if (is_packed) {
        int64_t groups = (len + block - 1) / block;
        part[0] = onnx_unpacked(r, onnx_packed_bytes(r, part[0], "the table", rows * len / 2), rows, len, 4);
        if (part[2].id) {
            const uint8_t *bytes = onnx_packed_bytes(r, part[2], "zero points", rows * ((groups + 1) / 2));
            part[2] = onnx_unpacked(r, bytes, rows, groups, 4);
        }
    }
    if (is_bytes && !part[2].id) {
        part[2] = onnx_emit(r, n, "aten.full_like.default(v, f)", part[1], bits == 4 ? 8.0 : 128.0);
    }
    return r->status == NPU_OK;
}

/* Rows of a table of few bits, which operand 1 numbers, as floats. */
static npu_value onnx_gather_blocks(onnx_reader *r, onnx_node *n)
{
    npu_value part[3], index = onnx_cast(r, onnx_x(n, 1), NPU_I64);
    int64_t block = onnx_i(r, n, "block_size", 128), len;
    if (!onnx_block_table(r, n, block, part)) {
        return onnx_refuse(r, "a table of this form is not supported");
    }
    len = onnx_dim(r, part[0], 1);
    for (uint32_t i = 0; i < 3 && part[i].id; i++) {
        part[i] = onnx_emit(r, n, "aten.index.Tensor(v, V)", part[i], &index, (uint32_t)1);
        part[i] = onnx_cast(r, part[i], onnx_type(r, onnx_x(n, 2)));
        if (i) {
            part[i] = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i, i)", part[i], block, (int64_t)-1);
            part[i] = onnx_slice(r, part[i], -1, 0, len);
        }
    }
    part[0] = part[2].id ? onnx_binary(r, "sub", part[0], part[2]) : part[0];
    return onnx_binary(r, "mul", part[0], part[1]);
}

/* ---- ops: attention as ONNX Runtime fuses it (com.microsoft) ----------------------------------------------------- */

/* What keys that a mask leaves out take off their scores; the mask is how many keys each row has (or, twice as long,
   these and where they begin; or, 3 N + 2 long, these and where rows begin in packed operands), or 1 for each key,
   [N,T] or [N,L,T]. */
static npu_value onnx_key_mask(onnx_reader *r, const onnx_node *n, npu_value q, npu_value k, npu_value mask)
{
    double low = onnx_f(r, n, "mask_filter_value", -10000);
    uint32_t rank = onnx_rank(r, mask);
    int64_t dims[4] = { -1, 1, 1, 1 }, num = onnx_dim(r, q, 0), len = rank == 1 ? onnx_dim(r, mask, 0) : 0;
    npu_value at = onnx_places(r, k, 0, false), holds;
    bool has_begins = len % 2 == 0 && len / 2 == num, is_packed = len % 3 == 2 && len / 3 == num;
    if (rank == 1 && (len == num || has_begins || is_packed)) {
        holds = onnx_emit(r, n, "aten.lt.Tensor(v, v)", at, onnx_reshape(r, onnx_slice(r, mask, 0, 0, num), dims, 4));
        if (has_begins) {
            mask = onnx_reshape(r, onnx_slice(r, mask, 0, num, len), dims, 4);
            holds = onnx_emit(r, n, "aten.logical_and.default(v, v)", holds,
                              onnx_emit(r, n, "aten.ge.Tensor(v, v)", at, mask));
        }
    } else if (rank == 2 || rank == 3) {
        holds = onnx_emit(r, n, "aten.ne.Scalar(v, i)", mask, (int64_t)0);
        holds = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", holds, (int64_t)1);
        holds = rank == 2 ? onnx_emit(r, n, "aten.unsqueeze.default(v, i)", holds, (int64_t)1) : holds;
    } else {
        return onnx_refuse(r, "a mask of this form is not supported");
    }
    return onnx_masked(r, q, onnx_none(), holds, low);
}

/* Which keys each query sees: those up to its own place; the last query all, however many keys there are. */
static npu_value onnx_causal_keys(onnx_reader *r, const onnx_node *n, const npu_value *qkv, int64_t before)
{
    npu_value rows = onnx_places(r, qkv[0], before, true), holds;
    int64_t last = before + onnx_dim(r, qkv[0], 2) - 1;
    holds = onnx_emit(r, n, "aten.le.Tensor(v, v)", onnx_places(r, qkv[1], 0, false), rows);
    if (onnx_dim(r, qkv[1], 2) <= last + 1) {
        return holds;
    }
    return onnx_emit(r, n, "aten.logical_or.default(v, v)", holds, onnx_emit(r, n, "aten.ge.Scalar(v, i)", rows, last));
}

/* Heads [N,heads,L,D] of three operands, of which keys and values stand behind those of past; result [N,L,heads*D]. The
   first query is at the place behind past. */
static npu_value onnx_masked_attention(onnx_reader *r, onnx_node *n, npu_value *qkv, const npu_value *past,
                                       npu_value mask, npu_value bias)
{
    double scale = onnx_f(r, n, "scale", 0);
    int64_t before = past[0].id ? onnx_dim(r, past[0], 2) : 0;
    for (uint32_t i = 1; i < 3; i++) {
        qkv[i] = past[i - 1].id ? onnx_cat(r, past[i - 1], qkv[i], 2) : qkv[i];
    }
    if (mask.id) {
        mask = onnx_key_mask(r, n, qkv[0], qkv[1], mask);
        bias = bias.id ? onnx_binary(r, "add", bias, mask) : mask;
    }
    if (onnx_i(r, n, "unidirectional", 0)) {
        bias = onnx_bias(r, qkv[0], bias, onnx_causal_keys(r, n, qkv, before));
    }
    scale = scale > 0 ? scale : 1 / sqrt((double)onnx_dim(r, qkv[0], 3));
    return onnx_joined_heads(r, onnx_attended(r, n, qkv, bias, scale, onnx_none()));
}

/* Part i of what lies in a row: three parts of the same size, or of those of qkv_hidden_sizes. */
static npu_value onnx_qkv_part(onnx_reader *r, const onnx_node *n, npu_value x, uint32_t i)
{
    int64_t sizes[3], len = onnx_dim(r, x, onnx_rank(r, x) - 1), begin = 0;
    onnx_ints_or(r, n, "qkv_hidden_sizes", sizes, 3, len / 3);
    for (uint32_t j = 0; j < i; j++) {
        begin += sizes[j];
    }
    if (sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] > len || sizes[1] > len || sizes[2] > len ||
        sizes[0] + sizes[1] + sizes[2] != len) {
        onnx_fail(r, NPU_ERR_SHAPE, "rows of %lld elements are not queries, keys and values", (long long)len);
        return onnx_none();
    }
    return onnx_slice(r, x, -1, begin, begin + sizes[i]);
}

/* Of queries, keys and values side by side; past, and result 1, are keys and values [2,N,heads,T,D]. */
static npu_value onnx_joint_attention(onnx_reader *r, onnx_node *n, npu_value x, npu_value mask, npu_value past,
                                      npu_value bias)
{
    npu_value qkv[3], before[2] = { { 0 }, { 0 } };
    if (onnx_i(r, n, "do_rotary", 0) || onnx_i(r, n, "past_present_share_buffer", 0)) {
        return onnx_refuse(r, "rotary embedding, and a cache that is written in place, are not supported");
    }
    for (uint32_t i = 0; i < 3 && r->status == NPU_OK; i++) {
        qkv[i] = onnx_heads(r, n, onnx_qkv_part(r, n, x, i), "num_heads");
        if (i && past.id) {
            before[i - 1] = onnx_emit(r, n, "aten.select.int(v, i, i)", past, (int64_t)0, (int64_t)i - 1);
        }
    }
    if (r->status) {
        return onnx_none();
    }
    x = onnx_masked_attention(r, n, qkv, before, mask, bias);
    if (n->num_y > 1) {
        onnx_result(r, n, 1, onnx_emit(r, n, "aten.stack.default(V)", qkv + 1, (uint32_t)2));
    }
    return x;
}

/* x, weight [K,heads*D*3], bias, mask, past, what is added to the scores. */
static npu_value onnx_runtime_attention(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_matmul_of(r, n, onnx_x(n, 0), onnx_x(n, 1));
    x = onnx_x(n, 2).id ? onnx_binary(r, "add", x, onnx_x(n, 2)) : x;
    return onnx_joint_attention(r, n, x, onnx_x(n, 3), onnx_x(n, 4), onnx_x(n, 5));
}

/* x, weight, bias, scales of both, mask, zero points of both, past. */
static npu_value onnx_quantised_attention(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 3), onnx_x(n, 6), 0);
    x = onnx_matmul_of(r, n, x, onnx_dequantised(r, onnx_x(n, 1), onnx_x(n, 4), onnx_x(n, 7), 1));
    x = onnx_binary(r, "add", x, onnx_x(n, 2));
    return onnx_joint_attention(r, n, x, onnx_x(n, 5), onnx_x(n, 8), onnx_none());
}

/* Operand i of a MultiHeadAttention as heads: by itself, or packed [N,L,heads,2 or 3,D] in one before it. */
static npu_value onnx_head_operand(onnx_reader *r, const onnx_node *n, uint32_t i)
{
    npu_value x = onnx_x(n, i), bias = onnx_x(n, 3);
    uint32_t from = onnx_rank(r, onnx_x(n, 0)) == 5 ? 0 : 1;
    if (onnx_rank(r, onnx_x(n, from)) == 5 && i >= from) {
        x = onnx_emit(r, n, "aten.select.int(v, i, i)", onnx_x(n, from), (int64_t)3, (int64_t)i - from);
        x = onnx_emit(r, n, "aten.flatten.using_ints(v, i)", x, (int64_t)2);
    }
    if (bias.id && onnx_rank(r, x) == 3) {
        int64_t size = onnx_dim(r, x, 2), begin = i < 2 ? i * size : onnx_dim(r, bias, 0) - size;
        x = onnx_binary(r, "add", x, onnx_slice(r, bias, 0, begin, begin + size));
    }
    return onnx_heads(r, n, x, "num_heads");
}

/* Q, K, V, bias of all three, mask of keys, what is added to the scores, the keys and values before. */
static npu_value onnx_multi_head(onnx_reader *r, onnx_node *n)
{
    npu_value qkv[3], past[2], y;
    if (onnx_x(n, 8).id || onnx_x(n, 9).id || n->num_y > 3) {
        return onnx_refuse(r, "a cache that is written in place, and scores as a result, are not supported");
    }
    for (uint32_t i = 0; i < 3; i++) {
        qkv[i] = onnx_head_operand(r, n, i);
    }
    past[0] = onnx_x(n, 6);
    past[1] = onnx_x(n, 7);
    y = onnx_masked_attention(r, n, qkv, past, onnx_x(n, 4), onnx_x(n, 5));
    onnx_result(r, n, 1, qkv[1]);
    onnx_result(r, n, 2, qkv[2]);
    return y;
}

/* x, places, cosines, sines: places are [N,L], or one for the first column. */
static npu_value onnx_runtime_rotary(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_x(n, 0), at = onnx_x(n, 1);
    int64_t heads = onnx_i(r, n, "num_heads", 0), turned = onnx_i(r, n, "rotary_embedding_dim", 0);
    if (onnx_f(r, n, "scale", 1) != 1 || onnx_i(r, n, "is_packed_batching", 0)) {
        return onnx_refuse(r, "a scale, and packed batches, are not supported");
    }
    if (onnx_rank(r, x) == 3 && heads < 1) {
        heads = onnx_twice(r, onnx_x(n, 2), 1);
        heads = heads ? onnx_dim(r, x, 2) / heads : 0;
    }
    x = onnx_by_heads(r, x, heads);
    if (onnx_rank(r, at) == 1 && r->status == NPU_OK) {
        at = onnx_binary(r, "add", onnx_places(r, x, 0, false), at);
        at = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", at, (int64_t)0);
    }
    x = onnx_turned(r, x, onnx_x(n, 2), onnx_x(n, 3), at, turned, onnx_i(r, n, "interleaved", 0) != 0);
    return onnx_rank(r, onnx_x(n, 0)) == 3 ? onnx_joined_heads(r, x) : x;
}

/* A GroupQueryAttention while it is read: at [N,L] are the places of the queries among the keys, which are `total`. */
typedef struct onnx_grouped { npu_value qkv[3], at; int64_t total; } onnx_grouped;

/* Heads of three operands, or of one that has all, with biases, turned to their places. */
static bool onnx_grouped_heads(onnx_reader *r, const onnx_node *n, onnx_grouped *a)
{
    int64_t num[3], each, begin = 0;
    bool is_packed = !onnx_x(n, 1).id;
    num[0] = onnx_i(r, n, "num_heads", 0);
    num[1] = num[2] = onnx_i(r, n, "kv_num_heads", 0);
    if (num[0] < 1 || num[1] < 1 || num[0] > 65536 || num[1] > num[0] || num[0] % num[1] ||
        onnx_rank(r, onnx_x(n, 0)) != 3) {
        onnx_refuse(r, "heads that do not go into each other, or operands of not three dims, are not supported");
        return false;
    }
    each = onnx_dim(r, onnx_x(n, 0), 2) / (is_packed ? num[0] + 2 * num[1] : num[0]);
    for (uint32_t i = 0; i < 3; i++) {
        npu_value x = onnx_x(n, is_packed ? 0 : i);
        x = is_packed ? onnx_slice(r, x, 2, begin, begin + num[i] * each) : x;
        begin += num[i] * each;
        x = onnx_by_heads(r, x, num[i]);
        if (i < 2 && onnx_i(r, n, "do_rotary", 0)) {
            npu_value at = onnx_x(n, 9).id ? onnx_x(n, 9) : a->at;
            x = onnx_turned(r, x, onnx_x(n, 7), onnx_x(n, 8), at, onnx_twice(r, onnx_x(n, 7), 1),
                            onnx_i(r, n, "rotary_interleaved", 0) != 0);
        }
        a->qkv[i] = x;
    }
    return r->status == NPU_OK;
}

/* Keys or values before, as long as they must be, with the new ones at their places. */
static npu_value onnx_grouped_cache(onnx_reader *r, const onnx_grouped *a, npu_value past, npu_value x)
{
    int64_t len = past.id ? onnx_dim(r, past, 2) : 0, pads[4] = { 0 }, some = onnx_dim(r, x, 2);
    npu_value at;
    if (len == 0 && a->total == some) {
        return x;
    }
    if (!past.id) {
        onnx_fail(r, NPU_ERR_SHAPE, "%lld keys, and none before the %lld that are given", (long long)a->total,
                  (long long)some);
        return onnx_none();
    }
    pads[3] = a->total > len ? a->total - len : 0;
    past = pads[3] ? onnx_emit(r, NULL, "aten.constant_pad_nd.default(v, I, f)", past, pads, (uint32_t)4, 0.0) : past;
    at = onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", a->at, (int64_t)1);
    at = onnx_emit(r, NULL, "aten.unsqueeze.default(v, i)", at, (int64_t)-1);
    at = onnx_emit(r, NULL, "aten.expand_as.default(v, v)", at, x);
    return onnx_emit(r, NULL, "aten.scatter.src(v, i, v, v)", past, (int64_t)2, at, x);
}

/* Which keys a query sees: those up to its own, of the last ones in a window. */
static npu_value onnx_grouped_bias(onnx_reader *r, const onnx_node *n, const onnx_grouped *a, npu_value keys)
{
    npu_value bias = onnx_x(n, 10), columns = onnx_places(r, keys, 0, false), rows;
    int64_t window = onnx_i(r, n, "local_window_size", -1);
    rows = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", a->at, (int64_t)1);
    rows = onnx_emit(r, n, "aten.unsqueeze.default(v, i)", rows, (int64_t)-1);
    bias = onnx_bias(r, keys, bias, onnx_emit(r, n, "aten.le.Tensor(v, v)", columns, rows));
    if (window > 0) {
        rows = onnx_emit(r, n, "aten.sub.Scalar(v, i)", rows, window);
        bias = onnx_bias(r, keys, bias, onnx_emit(r, n, "aten.gt.Tensor(v, v)", columns, rows));
    }
    return bias;
}

/* The place of each query, [N,L]: a prompt begins at 0, others end with operand 5. */
static npu_value onnx_grouped_places(onnx_reader *r, const onnx_node *n, int64_t total)
{
    int64_t len = onnx_dim(r, onnx_x(n, 0), 1), dims[2] = { -1, 1 };
    npu_value at = onnx_emit(r, n, "aten.arange.start(i, i)", (int64_t)0, len);
    if (len == total) {
        int64_t whole[2] = { 0, len };
        whole[0] = onnx_dim(r, onnx_x(n, 0), 0);
        return onnx_expand_to(r, at, whole, 2);
    }
    at = onnx_binary(r, "add", onnx_reshape(r, onnx_cast(r, onnx_x(n, 5), NPU_I64), dims, 2), at);
    return onnx_emit(r, n, "aten.add.Scalar(v, i)", at, 1 - len);
}

/* Q, K, V (or all in the first), the caches, the last place of each batch, how many keys there are, cosines, sines,
   places, what is added to the scores, a score for each head that has no key. */
static npu_value onnx_group_query(onnx_reader *r, onnx_node *n)
{
    double scale = onnx_f(r, n, "scale", 0);
    int64_t dims[4] = { 1, -1, 1, 1 };
    npu_value sink = onnx_x(n, 11);
    onnx_grouped a;
    if (onnx_x(n, 12).id || onnx_x(n, 13).id || onnx_x(n, 14).id || onnx_x(n, 15).id || n->num_y > 3 ||
        onnx_i(r, n, "sliding_window_cache", 0) || !onnx_i(r, n, "causal", 1)) {
        return onnx_refuse(r, "caches of few bits or of a window, norms of queries, scores as a result, and queries "
                           "that see all keys, are not supported");
    }
    memset(&a, 0, sizeof a);
    a.total = onnx_known_int(r, onnx_x(n, 6), "total_sequence_length");
    a.at = onnx_grouped_places(r, n, a.total);
    if (!onnx_grouped_heads(r, n, &a)) {
        return onnx_none();
    }
    for (uint32_t i = 1; i < 3; i++) {
        a.qkv[i] = onnx_grouped_cache(r, &a, onnx_x(n, 2 + i), a.qkv[i]);
        onnx_result(r, n, i, a.qkv[i]);
        if (r->status == NPU_OK && onnx_dim(r, a.qkv[i], 2) > a.total) {
            a.qkv[i] = onnx_slice(r, a.qkv[i], 2, 0, a.total);
        }
    }
    if (onnx_i(r, n, "smooth_softmax", 0) > 0 && !sink.id) {
        sink = onnx_like(r, a.qkv[0], 0);
    } else if (sink.id) {
        sink = onnx_reshape(r, sink, dims, 4);
    }
    scale = scale > 0 ? scale : 1 / sqrt((double)onnx_dim(r, a.qkv[0], 3));
    return onnx_joined_heads(r, onnx_attended(r, n, a.qkv, onnx_grouped_bias(r, n, &a, a.qkv[1]), scale, sink));
}

/* ---- ops: states of linear attention (com.microsoft) -------------------------------------------------------------- */

/* x [N,C,L] behind the state before, whose last positions are the state after; each channel has a kernel of its own. */
static npu_value onnx_causal_conv(onnx_reader *r, onnx_node *n)
{
    static const int64_t one = 1, zero = 0;
    npu_value x = onnx_x(n, 0), past = onnx_x(n, 3), y;
    int64_t apart = onnx_i(r, n, "dilation", 1), pads[2] = { 0, 0 }, len, channels = onnx_dim(r, x, 1);
    onnx_span how = onnx_s(r, n, "activation", "none");
    bool has_silu = onnx_is(how, "silu") || onnx_is(how, "swish");
    if (onnx_rank(r, x) != 3 || onnx_i(r, n, "ndim", 1) != 1 || onnx_i(r, n, "channels_last", 0) ||
        onnx_i(r, n, "state_window", 0) || apart < 1 || apart > INT32_MAX || (!has_silu && !onnx_is(how, "none"))) {
        return onnx_refuse(r, "other than one dim behind channels, windows of states, and other activations, are not supported");
    }
    len = onnx_dim(r, x, 2);
    pads[0] = (onnx_dim(r, onnx_x(n, 1), 2) - 1) * apart;
    x = past.id ? onnx_cat(r, past, x, 2) : onnx_emit(r, n, "aten.constant_pad_nd.default(v, I, f)", x, pads, (uint32_t)2, 0.0);
    y = onnx_emit(r, n, "aten.convolution.default(v, 1, 2, I, I, I, b, I, i)", x, &one, (uint32_t)1, &zero, (uint32_t)1,
                  &apart, (uint32_t)1, false, &zero, (uint32_t)1, channels);
    onnx_result(r, n, 1, onnx_slice(r, x, 2, len, len + pads[0]));
    return has_silu ? onnx_unary(r, "silu", y) : y;
}

/* A LinearAttention while it is read. Heads of q [N,heads,T,D], of k, v, decay and rate those of the state [N,heads,D,E]. */
typedef struct onnx_linear {
    npu_value q, k, v, decay, rate, state;
    bool has_decay, has_rate;
} onnx_linear;

/* Column t of heads, as [N,heads,1,D]. */
static npu_value onnx_token(onnx_reader *r, npu_value x, int64_t t) { return onnx_slice(r, x, 2, t, t + 1); }

/* The state after token t: decayed, and moved by what the key finds in it (a rate of the difference) or by the value. */
static void onnx_linear_step(onnx_reader *r, onnx_linear *a, int64_t t)
{
    npu_value k = onnx_token(r, a->k, t), v = onnx_token(r, a->v, t);
    if (a->has_decay) {
        npu_value by = onnx_swapped(r, onnx_unary(r, "exp", onnx_token(r, a->decay, t)), 2, 3);
        a->state = onnx_binary(r, "mul", a->state, by);
    }
    if (a->has_rate) {
        v = onnx_binary(r, "sub", v, onnx_emit(r, NULL, "aten.matmul.default(v, v)", k, a->state));
        v = onnx_binary(r, "mul", v, onnx_token(r, a->rate, t));
    }
    a->state = onnx_binary(r, "add", a->state, onnx_binary(r, "mul", onnx_swapped(r, k, 2, 3), v));
}

/* What the queries of token t find in the state: several may share a head of it, or heads of it a query. */
static npu_value onnx_linear_found(onnx_reader *r, const onnx_linear *a, int64_t t, int64_t heads, int64_t kv_heads)
{
    npu_value q = onnx_token(r, a->q, t), y;
    int64_t shared[4] = { 0, 0, 1, -1 };
    shared[0] = onnx_dim(r, q, 0);
    shared[1] = heads > kv_heads ? heads : kv_heads;
    if (kv_heads > heads) {
        q = onnx_emit(r, NULL, "aten.repeat_interleave.self_int(v, i, i)", q, kv_heads / heads, (int64_t)1);
    } else {
        int64_t grouped[4] = { 0, 0, 0, -1 };
        grouped[0] = shared[0];
        grouped[1] = kv_heads;
        grouped[2] = heads / kv_heads;
        q = onnx_reshape(r, q, grouped, 4);
    }
    y = onnx_emit(r, NULL, "aten.matmul.default(v, v)", q, a->state);
    return heads > kv_heads ? onnx_reshape(r, y, shared, 4) : y;
}

/* The state before, or zeros; and which operands the rule needs. */
static bool onnx_linear_begin(onnx_reader *r, const onnx_node *n, onnx_linear *a, int64_t heads, int64_t kv_heads)
{
    static const char *const rules[4] = { "linear", "gated", "delta", "gated_delta" };
    onnx_span rule = onnx_s(r, n, "update_rule", "gated_delta");
    int64_t dims[4], rates = onnx_dim(r, onnx_x(n, 5).id ? onnx_x(n, 5) : onnx_x(n, 0), 2) == 1 ? 1 : kv_heads;
    uint32_t i = 0;
    while (i < 4 && !onnx_is(rule, rules[i])) {
        i++;
    }
    a->has_decay = i & 1;
    a->has_rate = i & 2;
    if (i == 4 || heads < 1 || kv_heads < 1 || (heads % kv_heads && kv_heads % heads) || onnx_i(r, n, "state_window", 0) ||
        (a->has_decay && !onnx_x(n, 4).id) || (a->has_rate && !onnx_x(n, 5).id)) {
        onnx_refuse(r, "heads that do not go into each other, windows of states, and rules without their operands, are not "
                    "supported");
        return false;
    }
    a->q = onnx_by_heads(r, onnx_x(n, 0), heads);
    a->k = onnx_by_heads(r, onnx_x(n, 1), kv_heads);
    a->v = onnx_by_heads(r, onnx_x(n, 2), kv_heads);
    a->decay = a->has_decay ? onnx_by_heads(r, onnx_x(n, 4), kv_heads) : onnx_none();
    a->rate = a->has_rate ? onnx_by_heads(r, onnx_x(n, 5), rates) : onnx_none();
    dims[0] = onnx_dim(r, a->k, 0);
    dims[1] = kv_heads;
    dims[2] = onnx_dim(r, a->k, 3);
    dims[3] = onnx_dim(r, a->v, 3);
    a->state = onnx_x(n, 3).id ? onnx_x(n, 3) : onnx_emit(r, n, "aten.zeros.default(I, dtype=t)", dims, (uint32_t)4, (int)onnx_type(r, a->k));
    return r->status == NPU_OK;
}

/* q, k, v [N,T,heads*D], the state before, the logarithm of its decay, the rate of change. One token after the other. */
static npu_value onnx_linear_attention(onnx_reader *r, onnx_node *n)
{
    int64_t heads = onnx_i(r, n, "q_num_heads", 0), kv_heads = onnx_i(r, n, "kv_num_heads", 0), len = onnx_dim(r, onnx_x(n, 0), 1);
    double scale = onnx_f(r, n, "scale", 0);
    npu_value *found = len > ONNX_MAX_LIST ? NULL : onnx_values(r, (size_t)len), y;
    onnx_linear a;
    if (!found || len < 1 || !onnx_linear_begin(r, n, &a, heads, kv_heads)) {
        return onnx_refuse(r, "no token, or more than 4,096 at once, are not supported");
    }
    for (int64_t t = 0; t < len && r->status == NPU_OK; t++) {
        onnx_linear_step(r, &a, t);
        found[t] = onnx_linear_found(r, &a, t, heads, kv_heads);
    }
    if (r->status) {
        return onnx_none();
    }
    onnx_result(r, n, 1, a.state);
    y = len == 1 ? found[0] : onnx_emit(r, n, "aten.cat.default(V, i)", found, (uint32_t)len, (int64_t)2);
    scale = scale != 0 ? scale : 1 / sqrt((double)onnx_dim(r, a.q, 3));
    return onnx_joined_heads(r, onnx_emit(r, n, "aten.mul.Scalar(v, f)", y, scale));
}

/* The decay and the rate of the above: a, its bias and factor of each head, b. */
static npu_value onnx_linear_gate(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_cast(r, onnx_x(n, 0), NPU_F32);
    x = onnx_unary(r, "softplus", onnx_binary(r, "add", x, onnx_x(n, 1)));
    if (onnx_x(n, 3).id) {
        onnx_result(r, n, 1, onnx_unary(r, "sigmoid", onnx_x(n, 3)));
    }
    return onnx_cast(r, onnx_binary(r, "mul", x, onnx_x(n, 2)), onnx_type(r, onnx_x(n, 0)));
}

/* ---- ops: embeddings and halves (com.microsoft) ------------------------------------------------------------------ */

/* Rows of a table, which may be of bytes with a scale and a zero point. */
static npu_value onnx_embedded(onnx_reader *r, npu_value table, npu_value index, npu_value scale, npu_value zero)
{
    npu_value rows;
    if (!index.id || !table.id) {
        return onnx_refuse(r, "an embedding without rows or a table is not supported");
    }
    index = onnx_cast(r, index, NPU_I64);
    rows = onnx_emit(r, NULL, "aten.index.Tensor(v, V)", table, &index, (uint32_t)1);
    return scale.id ? onnx_dequantised(r, rows, scale, zero, 0) : rows;
}

/* Rows of words, places and segments (or none), whose sum is normalised by a scale and a bias. */
static npu_value onnx_embed_norm(onnx_reader *r, onnx_node *n, const npu_value *tables, const npu_value *norm,
                                 npu_value mask)
{
    npu_value ids = onnx_x(n, 0), x = tables[0], all[3];
    int64_t last = 1, len = onnx_dim(r, norm[0], 0);
    x = onnx_binary(r, "add", x, tables[1]);
    x = tables[2].id ? onnx_binary(r, "add", x, tables[2]) : x;
    onnx_emit_many(r, n, all, 3, "aten.native_layer_norm.default(v, I, v, v, epsilon:1/1000000000000)", x, &len,
                   (uint32_t)1, norm[0], norm[1]);
    if (n->num_y > 1 && onnx_len(n->y[1])) {
        mask = mask.id ? mask : onnx_emit(r, n, "aten.zeros_like.default(v)", ids);
        mask = onnx_emit(r, n, "aten.sum.dim_IntList(v, I, b, dtype=t)", mask, &last, (uint32_t)1, false, (int)NPU_I32);
        onnx_result(r, n, 1, mask);
    }
    onnx_result(r, n, 2, x);
    return all[0];
}

/* The place of each word: as given, or its column. */
static npu_value onnx_word_places(onnx_reader *r, npu_value ids, npu_value given)
{
    return given.id ? given : onnx_emit(r, NULL, "aten.arange.default(i)", onnx_dim(r, ids, 1));
}

/* Words, segments, their tables and that of places, scale, bias, mask, places. */
static npu_value onnx_embed_layer_norm(onnx_reader *r, onnx_node *n)
{
    npu_value none = onnx_none(), tables[3], norm[2];
    tables[0] = onnx_embedded(r, onnx_x(n, 2), onnx_x(n, 0), none, none);
    tables[1] = onnx_embedded(r, onnx_x(n, 3), onnx_word_places(r, onnx_x(n, 0), onnx_x(n, 8)), none, none);
    tables[2] = onnx_x(n, 1).id && onnx_x(n, 4).id ? onnx_embedded(r, onnx_x(n, 4), onnx_x(n, 1), none, none) : none;
    norm[0] = onnx_x(n, 5);
    norm[1] = onnx_x(n, 6);
    return r->status ? none : onnx_embed_norm(r, n, tables, norm, onnx_x(n, 7));
}

/* The same of bytes: behind the mask, scales of three tables and of the norm's two, then their zero points. */
static npu_value onnx_embed_quantised(onnx_reader *r, onnx_node *n)
{
    npu_value none = onnx_none(), tables[3], norm[2];
    tables[0] = onnx_embedded(r, onnx_x(n, 2), onnx_x(n, 0), onnx_x(n, 8), onnx_x(n, 13));
    tables[1] = onnx_embedded(r, onnx_x(n, 3), onnx_word_places(r, onnx_x(n, 0), none), onnx_x(n, 9), onnx_x(n, 14));
    tables[2] = onnx_x(n, 1).id && onnx_x(n, 4).id
        ? onnx_embedded(r, onnx_x(n, 4), onnx_x(n, 1), onnx_x(n, 10), onnx_x(n, 15)) : none;
    for (uint32_t i = 0; i < 2; i++) {
        norm[i] = onnx_dequantised(r, onnx_x(n, 5 + i), onnx_x(n, 11 + i), onnx_x(n, 16 + i), 0);
    }
    return r->status ? none : onnx_embed_norm(r, n, tables, norm, onnx_x(n, 7));
}

/* x + bias: its first half times gelu of the second. */
static npu_value onnx_split_gelu(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_binary(r, "add", onnx_x(n, 0), onnx_x(n, 1));
    int64_t half = r->status ? 0 : onnx_dim(r, x, onnx_rank(r, x) - 1) / 2;
    return onnx_binary(r, "mul", onnx_slice(r, x, -1, 0, half),
                       onnx_unary(r, "gelu", onnx_slice(r, x, -1, half, 2 * half)));
}

/* Of channels in front or behind; silu may follow. */
static npu_value onnx_runtime_group_norm(onnx_reader *r, onnx_node *n)
{
    static const int64_t to[4] = { 0, 3, 1, 2 }, back[4] = { 0, 2, 3, 1 };
    bool is_last = onnx_i(r, n, "channels_last", 1) != 0;
    npu_value x = onnx_x(n, 0);
    if (onnx_rank(r, x) != 4) {
        return onnx_refuse(r, "a tensor that has not four dims is not supported");
    }
    x = is_last ? onnx_permute(r, x, to, 4) : x;
    x = onnx_emit(r, n, "aten.group_norm.default(v, i, 1, 2, epsilon:1/100000)", x, onnx_i(r, n, "groups", 1));
    x = onnx_i(r, n, "activation", 0) ? onnx_unary(r, "silu", x) : x;
    return is_last ? onnx_permute(r, x, back, 4) : x;
}

/* Distances of rows. */
static npu_value onnx_cdist(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_emit(r, n, "aten.cdist.default(0, 1, f, i)", 2.0, (int64_t)2);
    return onnx_s_is(r, n, "metric", "sqeuclidean", "sqeuclidean") ? onnx_binary(r, "mul", x, x) : x;
}

/* Of one dim, in the order in which they come. */
static npu_value onnx_runtime_unique(onnx_reader *r, onnx_node *n)
{
    npu_value all[3];
    onnx_unique_of(r, n, false, all);
    onnx_result(r, n, 1, all[1]);
    onnx_result(r, n, 2, all[2]);
    return all[0];
}

static npu_value onnx_expand_dims(onnx_reader *r, onnx_node *n)
{
    return onnx_emit(r, n, "aten.unsqueeze.default(0, i)", onnx_known_int(r, onnx_x(n, 1), "the axis"));
}

/* The first half of the spectrum of rows, as pairs, and rows of it. */
static npu_value onnx_rfft(onnx_reader *r, onnx_node *n)
{
    static const int64_t last = -1;
    bool is_inverse = n->row->text != NULL;
    npu_value x = onnx_x(n, 0);
    if (onnx_i(r, n, "signal_ndim", 1) != 1 || onnx_i(r, n, "normalized", 0) || !onnx_i(r, n, "onesided", 1)) {
        return onnx_refuse(r, "more than one dim, other units and both halves of the spectrum are not supported");
    }
    if (!is_inverse) {
        x = onnx_emit(r, n, "aten._fft_r2c.default(v, I, i, b)", x, &last, (uint32_t)1, (int64_t)0, true);
        return onnx_unary(r, "view_as_real", x);
    }
    x = onnx_rank(r, x) > 1 ? onnx_from_half(r, x, (int64_t)onnx_rank(r, x) - 2, 0)
                            : onnx_refuse(r, "a spectrum without pairs is not supported");
    return onnx_emit(r, n, "aten.squeeze.dim(v, i)", x, last);
}

/* ---- ops: quantised ops of ONNX Runtime (com.microsoft) ---------------------------------------------------------- */

/* Channels from behind to dim 1, or back. */
static npu_value onnx_channels(onnx_reader *r, npu_value x, bool is_back)
{
    int64_t order[NPU_MAX_RANK];
    uint32_t rank = onnx_rank(r, x);
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = i == 0 ? 0 : is_back ? (i + 1 == rank ? 1 : i + 1) : i == 1 ? (int64_t)rank - 1 : i - 1;
    }
    return onnx_permute(r, x, order, rank);
}

/* What the function makes of a node whose only operand is x. */
static npu_value onnx_with(onnx_reader *r, const onnx_node *n, npu_value x, onnx_fn fn, const char *row)
{
    onnx_node m = *n;
    onnx_row as = *n->row;
    as.text = row;
    m.row = &as;
    m.x = &x;
    m.num_x = 1;
    m.num_y = 0;
    return r->status ? onnx_none() : fn(r, &m);
}

/* Unlike AveragePool, it counts what ceil_mode adds where it counts what is added. */
static npu_value onnx_qlinear_average(onnx_reader *r, onnx_node *n)
{
    double count = 1;
    onnx_window w;
    if (!onnx_i(r, n, "ceil_mode", 0) || !onnx_i(r, n, "count_include_pad", 0) ||
        !onnx_window_of(r, n, onnx_x(n, 0), onnx_none(), &w)) {
        return onnx_avg_pool(r, n);
    }
    for (uint32_t i = 0; i < w.rank; i++) {
        count *= (double)w.kernel[i];
    }
    return onnx_emit(r, n, "aten.div.Scalar(v, f)", onnx_window_sum(r, n, onnx_x(n, 0), w), count);
}

/* x, its scale and zero point, those of the result; text: all that is left of a picture is one number. */
static npu_value onnx_qlinear_pool(onnx_reader *r, onnx_node *n)
{
    bool is_last = onnx_i(r, n, "channels_last", 0) != 0;
    npu_value x = is_last ? onnx_channels(r, onnx_x(n, 0), false) : onnx_x(n, 0);
    x = onnx_dequantised(r, x, onnx_x(n, 1), onnx_x(n, 2), 0);
    x = onnx_with(r, n, x, n->row->text ? onnx_global_pool : onnx_qlinear_average, n->row->text);
    x = onnx_quantised(r, x, onnx_x(n, 3), onnx_x(n, 4), onnx_type(r, onnx_x(n, 0)), 0);
    return is_last ? onnx_channels(r, x, true) : x;
}

static npu_value onnx_nhwc_max_pool(onnx_reader *r, onnx_node *n)
{
    return onnx_channels(r, onnx_with(r, n, onnx_channels(r, onnx_x(n, 0), false), onnx_max_pool, NULL), true);
}

static npu_value onnx_runtime_qlinear_conv(onnx_reader *r, onnx_node *n)
{
    bool is_last = onnx_i(r, n, "channels_last", 0) != 0;
    npu_value y;
    n->x[0] = is_last ? onnx_channels(r, onnx_x(n, 0), false) : onnx_x(n, 0);
    y = onnx_qlinear_conv(r, n);
    return is_last ? onnx_channels(r, y, true) : y;
}

/* Scale and zero point of the result, then three for each part. */
static npu_value onnx_qlinear_concat(onnx_reader *r, onnx_node *n)
{
    uint32_t count = n->num_x > 2 ? (n->num_x - 2) / 3 : 0;
    npu_value *parts = onnx_values(r, count), y;
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", 1), onnx_rank(r, onnx_x(n, 2))), order[NPU_MAX_RANK];
    bool is_permuted = r->status == NPU_OK && count && onnx_take_order(r, n, 2, 2 + 3 * count, order);
    axis = is_permuted ? order[axis] : axis;
    for (uint32_t i = 0; parts && i < count; i++) {
        parts[i] = onnx_dequantised(r, onnx_x(n, 2 + 3 * i), onnx_x(n, 3 + 3 * i), onnx_x(n, 4 + 3 * i), 0);
    }
    y = onnx_emit(r, n, "aten.cat.default(V, i)", parts, count, axis);
    y = onnx_quantised(r, y, onnx_x(n, 0), onnx_x(n, 1), onnx_type(r, onnx_x(n, 2)), 0);
    return is_permuted ? onnx_permute(r, y, order, onnx_rank(r, y)) : y;
}

static npu_value onnx_qlinear_softmax(onnx_reader *r, onnx_node *n)
{
    npu_value x = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), 0);
    int64_t axis = onnx_axis(r, onnx_i(r, n, "axis", -1), onnx_rank(r, x));
    x = onnx_i(r, n, "opset", 13) < 13 ? onnx_softmax_over(r, n, x, axis) : onnx_softmax_along(r, n, x, axis);
    return onnx_quantised(r, x, onnx_x(n, 3), onnx_x(n, 4), onnx_type(r, onnx_x(n, 0)), 0);
}

/* A condition, two operands with scale and zero point each, those of the result. */
static npu_value onnx_qlinear_where(onnx_reader *r, onnx_node *n)
{
    npu_value a = onnx_dequantised(r, onnx_x(n, 1), onnx_x(n, 2), onnx_x(n, 3), 0);
    npu_value b = onnx_dequantised(r, onnx_x(n, 4), onnx_x(n, 5), onnx_x(n, 6), 0);
    a = onnx_where(r, onnx_x(n, 0), a, b);
    return onnx_quantised(r, a, onnx_x(n, 7), onnx_x(n, 8), onnx_type(r, onnx_x(n, 1)), 0);
}

/* (a - its zero) (b - its zero) times both scales, plus a bias; scales and zeros of b may be of its columns. */
static npu_value onnx_scaled_product(onnx_reader *r, const onnx_node *n, const npu_value *operands, npu_value a_scale,
                                     npu_value b_scale, npu_value bias)
{
    npu_value x[4], y;
    onnx_node m = *n;
    memcpy(x, operands, sizeof x);
    m.x = x;
    m.num_x = 4;
    y = onnx_cast(r, onnx_matmul_integer(r, &m), onnx_type(r, a_scale));
    y = onnx_binary(r, "mul", y, onnx_binary(r, "mul", a_scale, b_scale));
    return bias.id ? onnx_binary(r, "add", y, bias) : y;
}

/* a, b, scales, zero points, bias. */
static npu_value onnx_matmul_to_float(onnx_reader *r, onnx_node *n)
{
    npu_value x[4];
    x[0] = onnx_x(n, 0);
    x[1] = onnx_x(n, 1);
    x[2] = onnx_x(n, 4);
    x[3] = onnx_x(n, 5);
    return onnx_scaled_product(r, n, x, onnx_x(n, 2), onnx_x(n, 3), onnx_x(n, 6));
}

/* a in floats, which its range makes bytes; b, its scale and zero point, bias. */
static npu_value onnx_dynamic_matmul(onnx_reader *r, onnx_node *n)
{
    npu_value x[4], scale;
    x[0] = onnx_byte_range(r, onnx_x(n, 0), &scale, &x[2]);
    x[1] = onnx_x(n, 1);
    x[3] = onnx_x(n, 3);
    return onnx_scaled_product(r, n, x, scale, onnx_x(n, 2), onnx_x(n, 4));
}

/* a and b with scale and zero point each, a bias in units of a sum, scale and zero point of the result, or floats. */
static npu_value onnx_qgemm(onnx_reader *r, onnx_node *n)
{
    double alpha = onnx_f(r, n, "alpha", 1);
    bool is_b_turned = onnx_i(r, n, "transB", 0) != 0, is_bias;
    const int64_t rows = -1;
    npu_value a = onnx_dequantised(r, onnx_x(n, 0), onnx_x(n, 1), onnx_x(n, 2), 0), c = onnx_x(n, 6), y;
    npu_value b = onnx_dequantised(r, onnx_x(n, 3), onnx_x(n, 4), onnx_x(n, 5), is_b_turned ? 0 : 1);
    a = onnx_i(r, n, "transA", 0) ? onnx_transposed(r, a) : a;
    if (c.id) {
        c = onnx_binary(r, "mul", onnx_cast(r, c, onnx_type(r, a)), onnx_binary(r, "mul", onnx_x(n, 1), onnx_x(n, 4)));
        c = onnx_rank(r, c) == 2 && onnx_dim_if_any(r, c, 0) == 1 ? onnx_reshape(r, c, &rows, 1) : c;
    }
    is_bias = is_b_turned && onnx_rank(r, c) == 1 && onnx_dim_if_any(r, c, 0) == onnx_dim_if_any(r, b, 0);
    y = is_b_turned ? onnx_emit(r, n, "aten.linear.default(v, v, v)", a, b, is_bias ? c : onnx_none()) : onnx_matmul_of(r, n, a, b);
    y = c.id && !is_bias ? onnx_binary(r, "add", y, c) : y;
    y = alpha == 1 ? y : onnx_emit(r, n, "aten.mul.Scalar(v, f)", y, alpha);
    return onnx_x(n, 7).id ? onnx_quantised(r, y, onnx_x(n, 7), onnx_x(n, 8), onnx_type(r, onnx_x(n, 0)), 0) : y;
}

/* Weights [directions,K,4H] of bytes, as an LSTM has them: [directions,4H,K] of floats. */
static npu_value onnx_lstm_weight(onnx_reader *r, npu_value w, npu_value scale, npu_value zero)
{
    int64_t dims[3] = { 0, 1, -1 };
    dims[0] = onnx_dim(r, w, 0);
    scale = onnx_reshape(r, scale, dims, 3);
    zero = zero.id ? onnx_reshape(r, zero, dims, 3) : zero;
    return onnx_swapped(r, onnx_rescaled(r, w, scale, zero, 0), 1, 2);
}

/* Its weights are of bytes, and it is computed in floats, which is nearer to the layer that was quantised. */
static npu_value onnx_dynamic_lstm(onnx_reader *r, onnx_node *n)
{
    static const onnx_row as = { "LSTM", onnx_recurrent, NULL };
    onnx_node m = *n;
    npu_value x[8];
    for (uint32_t i = 0; i < 8; i++) {
        x[i] = onnx_x(n, i);
    }
    x[1] = onnx_lstm_weight(r, x[1], onnx_x(n, 8), onnx_x(n, 9));
    x[2] = onnx_lstm_weight(r, x[2], onnx_x(n, 10), onnx_x(n, 11));
    m.row = &as;
    m.x = x;
    m.num_x = 8;
    return r->status ? onnx_none() : onnx_recurrent(r, &m);
}

/* A table of 16 numbers for each of four bits, the high half of a byte first, times a number for each block of a weight
   that lies flat. */
static const float *onnx_bnb_table(int64_t type)
{
    static const float four[16] = { 0, 0.005208333333f, 0.66666667f, 1, 0.33333333f, 0.5f, 0.16666667f, 0.25f,
                                    0, -0.005208333333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f };
    static const float normal[16] = {
        -1, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
        -0.18477343022823334f, -0.09105003625154495f, 0, 0.07958029955625534f, 0.16093020141124725f,
        0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1
    };
    return type == 0 ? four : type == 1 ? normal : NULL;
}

/* x, the weight, its numbers: [N,K] in row order. */
static npu_value onnx_matmul_bnb(onnx_reader *r, onnx_node *n)
{
    int64_t dims[2] = { 0, 0 }, block = onnx_i(r, n, "block_size", 0), len, flat = -1;
    const float *table = onnx_bnb_table(onnx_i(r, n, "quant_type", -1));
    const uint8_t *bytes;
    float *own;
    npu_value w, scales = onnx_x(n, 2);
    dims[0] = onnx_i(r, n, "N", 0);
    dims[1] = onnx_i(r, n, "K", 0);
    if (!table || dims[0] < 1 || dims[1] < 1 || dims[0] > 1 << 30 || dims[1] > 1 << 30 || block < 1 ||
        !onnx_i(r, n, "transB", 1)) {
        return onnx_refuse(r, "a weight of this form is not supported");
    }
    len = dims[0] * dims[1];
    bytes = onnx_packed_bytes(r, onnx_x(n, 1), "the weight", (len + 1) / 2);
    own = bytes ? (float *)onnx_alloc_rows(r, dims[0], dims[1], sizeof *own) : NULL;
    for (int64_t i = 0; own && i < len; i++) {
        own[i] = table[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
    }
    if (!own) {
        return onnx_none();
    }
    w = npu_constant(r->g, NULL, npu_spec_tensor(NPU_F32, 1, &len), own);
    scales = onnx_emit(r, n, "aten.repeat_interleave.self_int(v, i)", onnx_reshape(r, scales, &flat, 1), block);
    w = onnx_binary(r, "mul", onnx_cast(r, w, onnx_type(r, scales)), onnx_slice(r, scales, 0, 0, len));
    return onnx_emit(r, n, "aten.linear.default(0, v)", onnx_reshape(r, w, dims, 2));
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static const onnx_row onnx_runtime_rows[] = {
    { "Attention", onnx_runtime_attention, NULL },
    { "BeamSearch", NULL, "searches for words" },
    { "BiasAdd", onnx_variadic, "aten.add.Tensor(v, v)" },
    { "BiasGelu", onnx_biased, "aten.gelu.default(v)" },
    { "BiasSplitGelu", onnx_split_gelu, NULL },
    { "CDist", onnx_cdist, NULL },
    { "CausalConvWithState", onnx_causal_conv, NULL },
    { "DequantizeLinear", onnx_dequantize, NULL },
    { "DynamicQuantizeLSTM", onnx_dynamic_lstm, NULL },
    { "DynamicQuantizeMatMul", onnx_dynamic_matmul, NULL },
    { "EPContext", NULL, "programs of other runtimes" },
    { "EmbedLayerNormalization", onnx_embed_layer_norm, NULL },
    { "ExpandDims", onnx_expand_dims, NULL },
    { "FastGelu", onnx_biased, "aten.gelu.default(v, approximate=approximate:'tanh')" },
    { "FusedConv", onnx_fused_conv, NULL },
    { "FusedGemm", onnx_fused_gemm, NULL },
    { "FusedMatMul", onnx_fused_matmul, NULL },
    { "FusedMatMulActivation", onnx_activated_matmul, NULL },
    { "GatherBlockQuantized", onnx_gather_blocks, NULL },
    { "GatherND", onnx_gather_nd, NULL },
    { "Gelu", NULL, "aten.gelu.default(0)" },
    { "GreedySearch", NULL, "searches for words" },
    { "GridSample", onnx_grid_sample, NULL },
    { "GroupNorm", onnx_runtime_group_norm, NULL },
    { "GroupQueryAttention", onnx_group_query, NULL },
    { "Inverse", NULL, "aten.linalg_inv.default(0)" },
    { "Irfft", onnx_rfft, "" },
    { "LinearAttention", onnx_linear_attention, NULL },
    { "LinearAttentionGate", onnx_linear_gate, NULL },
    { "MatMulBnb4", onnx_matmul_bnb, NULL },
    { "MatMulIntegerToFloat", onnx_matmul_to_float, NULL },
    { "MatMulNBits", onnx_matmul_nbits, NULL },
    { "MultiHeadAttention", onnx_multi_head, NULL },
    { "NhwcMaxPool", onnx_nhwc_max_pool, NULL },
    { "Pad", onnx_pad, NULL },
    { "QAttention", onnx_quantised_attention, NULL },
    { "QEmbedLayerNormalization", onnx_embed_quantised, NULL },
    { "QGemm", onnx_qgemm, NULL },
    { "QLinearAdd", onnx_qlinear_binary, "aten.add.Tensor(v, v)" },
    { "QLinearAveragePool", onnx_qlinear_pool, NULL },
    { "QLinearConcat", onnx_qlinear_concat, NULL },
    { "QLinearConv", onnx_runtime_qlinear_conv, NULL },
    { "QLinearGlobalAveragePool", onnx_qlinear_pool, "aten.mean.dim(v, I, b)" },
    { "QLinearLeakyRelu", onnx_qlinear_unary, "aten.leaky_relu.default(v, alpha:1/100)" },
    { "QLinearMul", onnx_qlinear_binary, "aten.mul.Tensor(v, v)" },
    { "QLinearSigmoid", onnx_qlinear_unary, "aten.sigmoid.default(v)" },
    { "QLinearSoftmax", onnx_qlinear_softmax, "aten.softmax.int(v, i)" },
    { "QLinearWhere", onnx_qlinear_where, NULL },
    { "QuantizeLinear", onnx_quantize, NULL },
    { "QuickGelu", onnx_quick_gelu, NULL },
    { "Range", onnx_range, NULL },
    { "Rfft", onnx_rfft, NULL },
    { "RotaryEmbedding", onnx_runtime_rotary, NULL },
    { "Sampling", NULL, "searches for words" },
    { "SkipLayerNormalization", onnx_skip_norm, "" },
    { "SkipSimplifiedLayerNormalization", onnx_skip_norm, "r" },
    { "Tokenizer", NULL, "strings" },
    { "TransposeMatMul", onnx_fused_matmul, NULL },
    { "Trilu", onnx_trilu, NULL },
    { "Unique", onnx_runtime_unique, NULL },
    { "WhisperBeamSearch", NULL, "searches for words" },
};

/* In the order of the alphabet: it is searched by halves. */
static const onnx_row onnx_rows[] = {
    { "Abs", NULL, "aten.abs.default(0)" },
    { "Acos", NULL, "aten.acos.default(0)" },
    { "Acosh", NULL, "aten.acosh.default(0)" },
    { "Add", NULL, "aten.add.Tensor(0, 1)" },
    { "Affine", onnx_affine, "alpha" },
    { "AffineGrid", onnx_affine_grid, NULL },
    { "And", NULL, "aten.logical_and.default(0, 1)" },
    { "ArgMax", onnx_argmax, "aten.argmax.default(v, i, b)" },
    { "ArgMin", onnx_argmax, "aten.argmin.default(v, i, b)" },
    { "Asin", NULL, "aten.asin.default(0)" },
    { "Asinh", NULL, "aten.asinh.default(0)" },
    { "Atan", NULL, "aten.atan.default(0)" },
    { "Atanh", NULL, "aten.atanh.default(0)" },
    { "Attention", onnx_attention, NULL },
    { "AveragePool", onnx_avg_pool, NULL },
    { "BatchNormalization", onnx_batch_norm, NULL },
    { "Bernoulli", NULL, "random numbers, which an input may hold instead," },
    { "BitCast", onnx_bit_cast, NULL },
    { "BitShift", onnx_shift, NULL },
    { "BitwiseAnd", NULL, "aten.bitwise_and.Tensor(0, 1)" },
    { "BitwiseNot", NULL, "aten.bitwise_not.default(0)" },
    { "BitwiseOr", NULL, "aten.bitwise_or.Tensor(0, 1)" },
    { "BitwiseXor", NULL, "aten.bitwise_xor.Tensor(0, 1)" },
    { "BlackmanWindow", onnx_window_op, "42/100 50/100 8/100" },
    { "Cast", onnx_cast_op, NULL },
    { "CastLike", onnx_cast_like, NULL },
    { "Ceil", NULL, "aten.ceil.default(0)" },
    { "Celu", NULL, "aten.celu.default(0, alpha:1.0)" },
    { "CenterCropPad", onnx_center_crop_pad, NULL },
    { "Clip", onnx_clip, NULL },
    { "Col2Im", onnx_col2im, NULL },
    { "Compress", onnx_compress, NULL },
    { "Concat", onnx_concat, NULL },
    { "ConcatFromSequence", onnx_concat_from_sequence, NULL },
    { "Constant", onnx_constant, NULL },
    { "ConstantFill", onnx_constant_fill, NULL },
    { "ConstantOfShape", onnx_constant_of_shape, NULL },
    { "Conv", onnx_conv, NULL },
    { "ConvInteger", onnx_conv_integer, NULL },
    { "ConvTranspose", onnx_conv_transpose, NULL },
    { "Cos", NULL, "aten.cos.default(0)" },
    { "Cosh", NULL, "aten.cosh.default(0)" },
    { "Crop", onnx_crop, NULL },
    { "CumProd", onnx_cumulate, "aten.cumprod.default(v, i, dtype=t)" },
    { "CumSum", onnx_cumulate, "aten.cumsum.default(v, i, dtype=t)" },
    { "DFT", onnx_dft, NULL },
    { "DeformConv", onnx_deform_conv, NULL },
    { "DepthToSpace", onnx_depth_to_space, NULL },
    { "DequantizeLinear", onnx_dequantize, NULL },
    { "Det", NULL, "aten.linalg_det.default(0)" },
    { "Div", onnx_div, NULL },
    { "Dropout", onnx_dropout, NULL },
    { "DynamicQuantizeLinear", onnx_dynamic_quantize, NULL },
    { "Einsum", onnx_einsum, NULL },
    { "Elu", NULL, "aten.elu.default(0, alpha:1.0)" },
    { "Equal", NULL, "aten.eq.Tensor(0, 1)" },
    { "Erf", NULL, "aten.erf.default(0)" },
    { "Exp", NULL, "aten.exp.default(0)" },
    { "Expand", onnx_expand, NULL },
    { "EyeLike", onnx_eye_like, NULL },
    { "Flatten", onnx_flatten, NULL },
    { "Floor", NULL, "aten.floor.default(0)" },
    { "GRU", onnx_recurrent, NULL },
    { "Gather", onnx_gather, NULL },
    { "GatherElements", onnx_gather_elements, NULL },
    { "GatherND", onnx_gather_nd, NULL },
    { "Gelu", NULL, "aten.gelu.default(0, approximate=approximate:'none')" },
    { "Gemm", onnx_gemm, NULL },
    { "GlobalAveragePool", onnx_global_pool, "aten.mean.dim(v, I, b)" },
    { "GlobalLpPool", onnx_global_pool, NULL },
    { "GlobalMaxPool", onnx_global_pool, "aten.amax.default(v, I, b)" },
    { "Greater", NULL, "aten.gt.Tensor(0, 1)" },
    { "GreaterOrEqual", NULL, "aten.ge.Tensor(0, 1)" },
    { "GridSample", onnx_grid_sample, NULL },
    { "GroupNormalization", onnx_group_norm, NULL },
    { "HammingWindow", onnx_window_op, "25/46 21/46 0/1" },
    { "HannWindow", onnx_window_op, "1/2 1/2 0/1" },
    { "HardSigmoid", onnx_hard_sigmoid, NULL },
    { "HardSwish", NULL, "aten.hardswish.default(0)" },
    { "Hardmax", onnx_softmax, NULL },
    { "Identity", onnx_identity, NULL },
    { "If", onnx_if, NULL },
    { "ImageDecoder", NULL, "files of pictures" },
    { "ImageScaler", onnx_affine, "scale" },
    { "InstanceNormalization", onnx_instance_norm, NULL },
    { "IsInf", onnx_is_inf, NULL },
    { "IsNaN", NULL, "aten.isnan.default(0)" },
    { "LRN", onnx_lrn, NULL },
    { "LSTM", onnx_recurrent, NULL },
    { "LayerNormalization", onnx_layer_norm, NULL },
    { "LeakyRelu", NULL, "aten.leaky_relu.default(0, alpha:1/100)" },
    { "Less", NULL, "aten.lt.Tensor(0, 1)" },
    { "LessOrEqual", NULL, "aten.le.Tensor(0, 1)" },
    { "Log", NULL, "aten.log.default(0)" },
    { "LogSoftmax", onnx_softmax, "aten.log_softmax.int(v, i)" },
    { "Loop", onnx_loop, NULL },
    { "LpNormalization", onnx_lp_norm, NULL },
    { "LpPool", onnx_lp_pool, NULL },
    { "MatMul", onnx_matmul, NULL },
    { "MatMulInteger", onnx_matmul_integer, NULL },
    { "Max", onnx_variadic, "aten.maximum.default(v, v)" },
    { "MaxPool", onnx_max_pool, NULL },
    { "MaxRoiPool", NULL, "pools of regions whose sizes data decides" },
    { "MaxUnpool", onnx_max_unpool, NULL },
    { "Mean", onnx_mean, "aten.add.Tensor(v, v)" },
    { "MeanVarianceNormalization", onnx_mvn, NULL },
    { "MelWeightMatrix", onnx_mel_weights, NULL },
    { "Min", onnx_variadic, "aten.minimum.default(v, v)" },
    { "Mish", NULL, "aten.mish.default(0)" },
    { "Mod", onnx_mod, NULL },
    { "Mul", onnx_mul, NULL },
    { "Multinomial", NULL, "random numbers, which an input may hold instead," },
    { "Neg", NULL, "aten.neg.default(0)" },
    { "NegativeLogLikelihoodLoss", onnx_nll, NULL },
    { "NonMaxSuppression", onnx_pick_boxes, NULL },
    { "NonZero", onnx_nonzero, NULL },
    { "Not", NULL, "aten.logical_not.default(0)" },
    { "OneHot", onnx_one_hot, NULL },
    { "Optional", NULL, "optionals" },
    { "OptionalGetElement", NULL, "optionals" },
    { "OptionalHasElement", NULL, "optionals" },
    { "Or", NULL, "aten.logical_or.default(0, 1)" },
    { "PRelu", onnx_prelu, NULL },
    { "Pad", onnx_pad, NULL },
    { "ParametricSoftplus", onnx_scaled, "softplus" },
    { "Pow", onnx_pow, NULL },
    { "QLinearConv", onnx_qlinear_conv, NULL },
    { "QLinearMatMul", onnx_qlinear_matmul, NULL },
    { "QuantizeLinear", onnx_quantize, NULL },
    { "RMSNormalization", onnx_rms_norm, NULL },
    { "RNN", onnx_recurrent, NULL },
    { "RandomNormal", NULL, "random numbers, which an input may hold instead," },
    { "RandomNormalLike", NULL, "random numbers, which an input may hold instead," },
    { "RandomUniform", NULL, "random numbers, which an input may hold instead," },
    { "RandomUniformLike", NULL, "random numbers, which an input may hold instead," },
    { "Range", onnx_range, NULL },
    { "Reciprocal", NULL, "aten.reciprocal.default(0)" },
    { "ReduceL1", onnx_reduce, "l1" },
    { "ReduceL2", onnx_reduce, "l2" },
    { "ReduceLogSum", onnx_reduce, "log" },
    { "ReduceLogSumExp", onnx_reduce, "aten.logsumexp.default(v, I, b)" },
    { "ReduceMax", onnx_reduce, "aten.amax.default(v, I, b)" },
    { "ReduceMean", onnx_reduce, "aten.mean.dim(v, I, b)" },
    { "ReduceMin", onnx_reduce, "aten.amin.default(v, I, b)" },
    { "ReduceProd", onnx_reduce, "prod" },
    { "ReduceSum", onnx_reduce, "sum" },
    { "ReduceSumSquare", onnx_reduce, "squares" },
    { "RegexFullMatch", NULL, "strings" },
    { "Relu", NULL, "aten.relu.default(0)" },
    { "Reshape", onnx_reshape_op, NULL },
    { "Resize", onnx_resize_op, NULL },
    { "ReverseSequence", onnx_reverse_sequence, NULL },
    { "RoiAlign", onnx_roi_align, NULL },
    { "RotaryEmbedding", onnx_rotary, NULL },
    { "Round", NULL, "aten.round.default(0)" },
    { "STFT", onnx_stft, NULL },
    { "ScaledTanh", onnx_scaled, "tanh" },
    { "Scan", onnx_scan, NULL },
    { "Scatter", onnx_scatter_elements, NULL },
    { "ScatterElements", onnx_scatter_elements, NULL },
    { "ScatterND", onnx_scatter_nd, NULL },
    { "Selu", NULL, "aten.elu.default(0, alpha:1.67326319217681884765625, gamma:1.05070102214813232421875)" },
    { "SequenceAt", onnx_sequence_at, NULL },
    { "SequenceConstruct", onnx_sequence_construct, NULL },
    { "SequenceEmpty", onnx_sequence_empty, NULL },
    { "SequenceErase", onnx_sequence_erase, NULL },
    { "SequenceInsert", onnx_sequence_insert, NULL },
    { "SequenceLength", onnx_sequence_length, NULL },
    { "SequenceMap", onnx_sequence_map, NULL },
    { "Shape", onnx_shape, NULL },
    { "Shrink", onnx_shrink, NULL },
    { "Sigmoid", NULL, "aten.sigmoid.default(0)" },
    { "Sign", onnx_sign, NULL },
    { "SimplifiedLayerNormalization", onnx_rms_norm, NULL },
    { "Sin", NULL, "aten.sin.default(0)" },
    { "Sinh", NULL, "aten.sinh.default(0)" },
    { "Size", onnx_size, NULL },
    { "Slice", onnx_slice_op, NULL },
    { "Softmax", onnx_softmax, "aten.softmax.int(v, i)" },
    { "SoftmaxCrossEntropyLoss", onnx_cross_entropy, NULL },
    { "Softplus", NULL, "aten.softplus.default(0)" },
    { "Softsign", onnx_softsign, NULL },
    { "SpaceToDepth", onnx_space_to_depth, NULL },
    { "Split", onnx_split, NULL },
    { "SplitToSequence", onnx_split_to_sequence, NULL },
    { "Sqrt", NULL, "aten.sqrt.default(0)" },
    { "Squeeze", onnx_squeeze, NULL },
    { "StringConcat", NULL, "strings" },
    { "StringNormalizer", NULL, "strings" },
    { "StringSplit", NULL, "strings" },
    { "Sub", NULL, "aten.sub.Tensor(0, 1)" },
    { "Sum", onnx_variadic, "aten.add.Tensor(v, v)" },
    { "Swish", onnx_swish, NULL },
    { "Tan", NULL, "aten.tan.default(0)" },
    { "Tanh", NULL, "aten.tanh.default(0)" },
    { "TensorScatter", onnx_tensor_scatter, NULL },
    { "TfIdfVectorizer", NULL, "words" },
    { "ThresholdedRelu", onnx_thresholded, NULL },
    { "Tile", onnx_tile, NULL },
    { "TopK", onnx_topk, NULL },
    { "Transpose", onnx_transpose, NULL },
    { "Trilu", onnx_trilu, NULL },
    { "Unique", onnx_unique, NULL },
    { "Unsqueeze", onnx_unsqueeze, NULL },
    { "Upsample", onnx_upsample, NULL },
    { "Where", NULL, "aten.where.self(0, 1, 2)" },
    { "Xor", NULL, "aten.logical_xor.default(0, 1)" },
};

/* Operands that a node must have, from an opset on; of others the first, and those that its row names. */
static const struct { const char *op; uint32_t count; int64_t since; } onnx_required[] = {
    { "BatchNormalization", 5, 1 }, { "Constant", 0, 1 }, { "ConvTranspose", 2, 1 }, { "GRU", 3, 1 }, { "GatherND", 2, 1 },
    { "GroupNormalization", 3, 1 }, { "InstanceNormalization", 3, 1 }, { "LSTM", 3, 1 }, { "LayerNormalization", 2, 1 },
    { "Loop", 0, 1 }, { "MaxUnpool", 2, 1 }, { "MelWeightMatrix", 5, 1 }, { "OneHot", 3, 1 }, { "Pad", 2, 11 },
    { "QLinearConv", 8, 1 }, { "QLinearMatMul", 8, 1 }, { "RMSNormalization", 2, 1 }, { "RNN", 3, 1 }, { "Range", 3, 1 }, { "Scan", 0, 1 },
    { "ScatterND", 3, 1 }, { "SequenceAt", 2, 1 }, { "SequenceEmpty", 0, 1 }, { "SequenceInsert", 2, 1 },
    { "Slice", 3, 10 }, { "TopK", 2, 10 }, { "Unsqueeze", 2, 13 }, { "Upsample", 2, 9 },
};

static void onnx_check_required(onnx_reader *r, const onnx_node *n)
{
    uint32_t count = 1;
    for (size_t i = 0; i < sizeof onnx_required / sizeof onnx_required[0]; i++) {
        if (r->opset >= onnx_required[i].since && onnx_is(n->op, onnx_required[i].op)) {
            count = onnx_required[i].count;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!onnx_x(n, i).id) {
            onnx_fail(r, NPU_ERR_ARITY, "operand %u of %u is missing", (unsigned)i, (unsigned)count);
        }
    }
}

/* Words that attributes of some ops, or of all that have them, may be: none is taken for the default. */
static const struct { const char *ops, *name, *words; } onnx_words[] = {
    { NULL, "auto_pad", "NOTSET SAME_UPPER SAME_LOWER VALID" },
    { "Resize", "coordinate_transformation_mode", "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
                                                  "asymmetric tf_half_pixel_for_nn tf_crop_and_resize" },
    { "RoiAlign", "coordinate_transformation_mode", "half_pixel output_half_pixel" },
    { "RoiAlign", "mode", "avg max" },
    { NULL, "nearest_mode", "round_prefer_floor round_prefer_ceil floor ceil" },
    { NULL, "keep_aspect_ratio_policy", "stretch not_larger not_smaller" },
    { NULL, "padding_mode", "zeros border reflection" },
    { "BitShift", "direction", "LEFT RIGHT" },
    { "LSTM GRU RNN DynamicQuantizeLSTM", "direction", "forward reverse bidirectional" },
    { "Resize", "mode", "nearest linear cubic" },
    { "Upsample", "mode", "nearest linear" },
    { "Pad", "mode", "constant reflect edge wrap" },
    { "DepthToSpace", "mode", "DCR CRD" },
    { "GridSample", "mode", "bilinear nearest bicubic linear cubic" },
    { "TensorScatter", "mode", "linear circular" },
    { "CDist", "metric", "euclidean sqeuclidean" },
    { "GroupQueryAttention", "k_quant_type", "NONE" },
    { "GroupQueryAttention", "v_quant_type", "NONE" },
    { "Scatter ScatterElements ScatterND", "reduction", "none add mul max min" },
    { "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "reduction", "none mean sum" },
};

static bool onnx_is_listed(onnx_span s, const char *words)
{
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (len == onnx_len(s) && memcmp(s.at, words, len) == 0) {
            return true;
        }
    }
    return false;
}

static void onnx_check_words(onnx_reader *r, const onnx_node *n)
{
    for (size_t i = 0; i < sizeof onnx_words / sizeof onnx_words[0]; i++) {
        if (!onnx_words[i].ops || onnx_is_listed(n->op, onnx_words[i].ops)) {
            onnx_span word = onnx_s(r, n, onnx_words[i].name, "");
            if (onnx_len(word) && !onnx_is_listed(word, onnx_words[i].words)) {
                onnx_fail(r, NPU_ERR_ATTRIBUTE, "%s is '%.*s', expected one of: %s", onnx_words[i].name, ONNX_TEXT(word),
                          onnx_words[i].words);
            }
        }
    }
}

/* Attributes of some ops, or of all that have them, that are 0 or 1: runtimes take another number for either. */
static const struct { const char *ops, *names; } onnx_flags[] = {
    { NULL, "align_corners antialias ceil_mode channels_last count_include_pad do_rotary exclude_outside exclusive fmod "
            "input_forget interleaved is_causal keepdims largest linear_before_reset new_axis onesided reverse rotary_interleaved "
            "select_last_index sorted transA transB transBatchA transBatchB unidirectional upper" },
    { "GroupNorm", "activation" },
};

static void onnx_check_flags(onnx_reader *r, const onnx_node *n)
{
    onnx_span message = n->message;
    onnx_field f;
    while (onnx_next(r, &message, &f)) {
        onnx_span name = f.number == ONNX_N_ATTRIBUTE ? onnx_member(r, onnx_bytes(r, &f), 1) : onnx_literal("");
        int64_t value = f.number == ONNX_N_ATTRIBUTE ? onnx_member_int(r, f.bytes, ONNX_A_I, 0) : 0;
        for (size_t i = 0; i < sizeof onnx_flags / sizeof onnx_flags[0] && (value < 0 || value > 1); i++) {
            if ((!onnx_flags[i].ops || onnx_is_listed(n->op, onnx_flags[i].ops)) && onnx_is_listed(name, onnx_flags[i].names)) {
                onnx_fail(r, NPU_ERR_ATTRIBUTE, "%.*s is %lld, expected 0 or 1", ONNX_TEXT(name), (long long)value);
            }
        }
    }
}

static bool onnx_is_plain_domain(onnx_span domain)
{
    return !domain.at || domain.at == domain.end || onnx_is(domain, "ai.onnx");
}

/* Attributes of some ops, or of all, that nobody need look for: they change nothing here, or only beside others. */
static const struct { const char *ops, *names; } onnx_idle[] = {
    { NULL, "broadcast consumed_inputs is_test noop_with_empty_axes" },
    { "Attention RotaryEmbedding", "num_heads q_num_heads kv_num_heads rotary_embedding_dim softmax_precision" },
    { "Attention", "qk_matmul_output_mode mask_filter_value" }, /* of a result that is not asked for, and of masks */
    { "BatchNormalization", "momentum" },
    { "Cast CastLike QuantizeLinear", "round_mode saturate" },
    { "ConvTranspose", "output_padding pads" },
    { "Dropout", "ratio seed" },
    { "EmbedLayerNormalization", "mask_index_type" },
    { "FusedGemm FusedMatMulActivation", "activation_alpha activation_beta activation_gamma activation_axis" },
    { "GroupQueryAttention", "k_quant_type kv_cache_bit_width qk_output rotary_interleaved v_quant_type" },
    { "GroupNormalization LayerNormalization RMSNormalization SimplifiedLayerNormalization", "stash_type" },
    { "If", "else_branch then_branch" },
    { "LSTM GRU RNN", "activation_alpha activation_beta output_sequence" },
    { "MatMulBnb4", "training_mode" },
    { "MatMulNBits", "accuracy_level" },
    { "MaxPool NhwcMaxPool", "storage_order" },
    { "MultiHeadAttention QAttention", "mask_filter_value" },
    { "QuantizeLinear DequantizeLinear", "axis precision" },
    { "ReverseSequence", "batch_axis" },
    { "Split", "num_outputs" }, /* as many as it has */
};

static bool onnx_is_idle(const onnx_node *n, onnx_span name)
{
    bool is_idle = onnx_len(name) > 2 && memcmp(name.at, "__", 2) == 0; /* of tools */
    for (size_t i = 0; i < sizeof onnx_idle / sizeof onnx_idle[0]; i++) {
        is_idle = is_idle || (onnx_is_listed(name, onnx_idle[i].names) && (!onnx_idle[i].ops || onnx_is_listed(n->op, onnx_idle[i].ops)));
    }
    return is_idle;
}

static void onnx_unknown(onnx_reader *r, const onnx_node *n, onnx_span name)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", ONNX_TEXT(name));
    const char *nearest = npu_name_nearest(word, n->asked->missing, n->asked->num_missing);
    onnx_fail(r, NPU_ERR_ATTRIBUTE, "attribute '%.*s' is unknown, and could change the result%s%s%s", ONNX_TEXT(name),
              nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* What nobody has looked for could have changed the result. Ops of domains that no row is of are functions of the model. */
static void onnx_check_unknown(onnx_reader *r, const onnx_node *n)
{
    onnx_span message = n->message;
    uint64_t bit = 1;
    onnx_field f;
    while (n->row && onnx_next(r, &message, &f)) {
        if (f.number == ONNX_N_ATTRIBUTE) {
            onnx_span name = onnx_member(r, onnx_bytes(r, &f), 1);
            if (bit && !(n->asked->found & bit) && !onnx_is_idle(n, name)) {
                onnx_unknown(r, n, name);
            }
            bit <<= 1;
        }
    }
}

static bool onnx_row_is_read(const onnx_row *row) { return row->fn || strchr(row->text, '('); }

static const onnx_row *onnx_row_of(onnx_span op, onnx_span domain)
{
    bool is_plain = onnx_is_plain_domain(domain), is_runtime = onnx_is(domain, "com.microsoft");
    const onnx_row *rows = is_plain ? onnx_rows : onnx_runtime_rows;
    size_t low = 0, high = is_plain ? sizeof onnx_rows / sizeof *rows : sizeof onnx_runtime_rows / sizeof *rows;
    while (low < high && op.at && (is_plain || is_runtime)) {
        size_t mid = (low + high) / 2, len = strlen(rows[mid].op), shorter = len < onnx_len(op) ? len : onnx_len(op);
        int order = memcmp(rows[mid].op, op.at, shorter);
        order = order ? order : len < onnx_len(op) ? -1 : len > onnx_len(op);
        if (order == 0) {
            return &rows[mid];
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return NULL;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static bool onnx_same(onnx_span a, onnx_span b)
{
    size_t len = a.at ? onnx_len(a) : 0;
    return len == (b.at ? onnx_len(b) : 0) && (!len || memcmp(a.at, b.at, len) == 0);
}

/* The model's function of that name; at NULL = none. */
static onnx_span onnx_function(onnx_reader *r, onnx_span op, onnx_span domain)
{
    onnx_span none = { NULL, NULL };
    for (uint32_t i = 0; i < r->num_functions; i++) {
        if (onnx_same(onnx_member(r, r->functions[i], 1), op) && onnx_same(onnx_member(r, r->functions[i], 10), domain)) {
            return r->functions[i];
        }
    }
    return none;
}

/* An operand as its op takes it: integers of 4 bits that are known only these ops see as they are. */
static npu_value onnx_operand(onnx_reader *r, const onnx_node *n, onnx_span name)
{
    npu_value v = onnx_len(name) ? onnx_find(r, name) : onnx_none();
    bool sees_them = onnx_is_listed(n->op, "Cast CastLike DequantizeLinear GatherBlockQuantized QuantizeLinear");
    return sees_them || onnx_is_sequence(v) ? v : onnx_widened(r, v);
}

/* May operand i of a node be a sequence? Of a function of the model, whose own nodes are asked, all may. */
static bool onnx_takes_sequence(onnx_reader *r, const onnx_node *n, uint32_t i)
{
    static const char first[] = "ConcatFromSequence Identity SequenceAt SequenceErase SequenceInsert SequenceLength "
                                "SequenceMap";
    bool takes = i ? onnx_is(n->op, "SequenceMap") || (i > 1 && onnx_is(n->op, "Loop")) : onnx_is_listed(n->op, first);
    return (n->row && takes) || onnx_function(r, n->op, n->domain).at;
}

/* What a name stands for, as operand i. */
static void onnx_take_operand(onnx_reader *r, onnx_node *n, uint32_t i, onnx_span name)
{
    n->x[i] = onnx_operand(r, n, name);
    if (onnx_is_sequence(n->x[i]) && !onnx_takes_sequence(r, n, i)) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "operand %u, '%.*s', is a sequence, expected a tensor", (unsigned)i, ONNX_TEXT(name));
    } else if (onnx_len(name) && !n->x[i].id) {
        onnx_fail(r, NPU_ERR_NOT_FOUND, "nothing before it makes '%.*s'", ONNX_TEXT(name));
    }
}

static bool onnx_node_read(onnx_reader *r, onnx_span message, const onnx_node *caller, onnx_node *n)
{
    onnx_field f;
    uint32_t x = 0, y = 0;
    memset(n, 0, sizeof *n);
    n->message = message;
    n->caller = caller;
    n->op = onnx_member(r, message, ONNX_N_OP);
    n->name = onnx_member(r, message, ONNX_N_NAME);
    n->domain = onnx_member(r, message, ONNX_N_DOMAIN);
    n->num_x = onnx_count(r, message, ONNX_N_INPUT);
    n->num_y = onnx_count(r, message, ONNX_N_OUTPUT);
    n->row = onnx_row_of(n->op, n->domain);
    n->x = onnx_values(r, n->num_x);
    n->y = (onnx_span *)onnx_alloc(r, (n->num_y + 1) * sizeof *n->y);
    r->node = n;
    while (n->x && n->y && onnx_next(r, &message, &f)) {
        if (f.number == ONNX_N_INPUT) {
            onnx_take_operand(r, n, x++, onnx_bytes(r, &f));
        } else if (f.number == ONNX_N_OUTPUT) {
            n->y[y++] = onnx_bytes(r, &f);
        }
    }
    return r->status == NPU_OK;
}

static void onnx_call_function(onnx_reader *r, onnx_node *n, onnx_span function)
{
    onnx_body body = { { NULL, NULL }, 7, 4, 5, 0, NULL, 0 };
    npu_value *out = onnx_values(r, n->num_y);
    onnx_name *names = r->names;
    uint32_t num_names = r->num_names, size_names = r->size_names;
    bool is_built;
    body.message = function;
    r->names = NULL; /* it sees its own names alone */
    r->num_names = r->size_names = 0;
    is_built = out && onnx_build(r, &body, n, n->x, n->num_x, out, n->num_y);
    r->names = names;
    r->num_names = num_names;
    r->size_names = size_names;
    for (uint32_t i = 0; i < n->num_y && is_built; i++) {
        onnx_result(r, n, i, out[i]);
    }
}

/* The last two operands of ops that a text alone makes are of one dtype; aten would promote. */
static void onnx_check_dtypes(onnx_reader *r, const onnx_node *n)
{
    npu_dtype a = n->num_x > 1 ? onnx_type(r, n->x[n->num_x - 2]) : NPU_NONE, b = n->num_x > 1 ? onnx_type(r, n->x[n->num_x - 1]) : NPU_NONE;
    if (a != b && a && b) {
        onnx_fail(r, NPU_ERR_DTYPE, "operands of %s and %s, expected one dtype", npu_dtype_name(a), npu_dtype_name(b));
    }
}

static void onnx_node_build(onnx_reader *r, onnx_span message, const onnx_node *caller)
{
    onnx_node n;
    const onnx_node *outer = r->node;
    onnx_span function;
    onnx_asked asked;
    if (!onnx_node_read(r, message, caller, &n)) {
        return;
    }
    memset(&asked, 0, sizeof asked);
    function = onnx_function(r, n.op, n.domain);
    if (function.at) {
        onnx_call_function(r, &n, function);
    } else if (!n.row || !onnx_row_is_read(n.row)) {
        onnx_fail(r, NPU_ERR_NOT_FOUND, "this op cannot be read");
    } else {
        npu_value v;
        onnx_check_required(r, &n);
        onnx_check_words(r, &n);
        onnx_check_flags(r, &n);
        n.asked = &asked;
        if (r->opset < 7 && n.num_x == 2 && onnx_i(r, &n, "broadcast", 0) && onnx_has(r, &n, "axis")) {
            n.x[1] = onnx_from_axis(r, n.x[1], n.x[0], onnx_axis(r, onnx_i(r, &n, "axis", 0), onnx_rank(r, n.x[0])));
        }
        if (!n.row->fn) {
            onnx_check_dtypes(r, &n);
        }
        v = r->status ? onnx_none() : n.row->fn ? n.row->fn(r, &n) : onnx_emit(r, &n, n.row->text);
        onnx_check_unknown(r, &n);
        if (onnx_check(r)) {
            onnx_result(r, &n, 0, v);
            if (!v.id && n.num_y && onnx_len(n.y[0])) {
                onnx_fail(r, NPU_ERR_ARITY, "an operand is missing");
            }
        }
    }
    r->node = r->status ? r->node : outer;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static void onnx_initializers(onnx_reader *r, const onnx_body *body)
{
    onnx_span message = body->message;
    onnx_field f;
    while (body->initializer && onnx_next(r, &message, &f)) {
        if (f.number == body->initializer) {
            onnx_span tensor = onnx_bytes(r, &f), name = onnx_member(r, tensor, ONNX_TENSOR_NAME);
            npu_value v = onnx_tensor(r, tensor);
            if (onnx_check(r)) {
                onnx_set(r, name, v);
            }
        } else if (f.number == 15 && body->initializer == 5) {
            onnx_fail(r, NPU_ERR_UNSUPPORTED, "sparse tensors are not supported");
        }
    }
}

/* Nodes in an order that can be built. */
typedef struct onnx_order {
    onnx_span *nodes;
    uint8_t *states;             /* 0: not seen; 1: what it takes lies above it on the stack; 2: its place is known */
    uint32_t *stack, height, room;
} onnx_order;

static void onnx_push(onnx_reader *r, onnx_order *o, uint32_t node)
{
    if (o->height == o->room) {
        uint32_t room = o->room * 2 + 64, *stack = (uint32_t *)onnx_alloc(r, room * sizeof *stack);
        if (!stack) {
            return;
        }
        if (o->height) {
            memcpy(stack, o->stack, o->height * sizeof *stack);
        }
        o->stack = stack;
        o->room = room;
    }
    o->stack[o->height++] = node;
}

/* The node that makes a name, if it has no place yet. */
static void onnx_push_maker(onnx_reader *r, onnx_order *o, onnx_span name)
{
    uint32_t maker = r->size_names && name.at && onnx_len(name) ? onnx_slot(r, name)->value.id : 0;
    if (maker && o->states[maker - 1] == 0) {
        onnx_push(r, o, maker - 1);
    }
}

/* Those of all that a node takes, in graphs that are its attributes, too. */
static void onnx_push_makers(onnx_reader *r, onnx_order *o, onnx_span node)
{
    onnx_field f, in;
    while (onnx_next(r, &node, &f)) {
        onnx_span graph = { NULL, NULL };
        if (f.number == ONNX_N_INPUT) {
            onnx_push_maker(r, o, onnx_bytes(r, &f));
        } else if (f.number == 5) {
            graph = onnx_member(r, onnx_bytes(r, &f), ONNX_A_G);
        }
        while (onnx_next(r, &graph, &in)) {
            if (in.number == 1) {
                onnx_push_makers(r, o, onnx_bytes(r, &in));
            } else if (in.number == 12) {
                onnx_push_maker(r, o, onnx_member(r, onnx_bytes(r, &in), 1));
            }
        }
    }
}

/* Fills o->nodes as the file has them, and names with who makes them. */
static void onnx_list_nodes(onnx_reader *r, const onnx_body *body, onnx_order *o)
{
    onnx_span message = body->message;
    onnx_field f, out;
    for (uint32_t i = 0; onnx_next(r, &message, &f);) {
        if (f.number == body->node) {
            onnx_span node = o->nodes[i++] = onnx_bytes(r, &f);
            while (onnx_next(r, &node, &out)) {
                if (out.number == ONNX_N_OUTPUT && (r->num_names * 2 < r->size_names || onnx_names_grow(r))) {
                    onnx_name *slot = onnx_slot(r, onnx_bytes(r, &out));
                    r->num_names += !slot->name.at;
                    slot->name = out.bytes;
                    slot->value.id = i;
                }
            }
        }
    }
}

/* Sorts the nodes: some converters append casts, and runtimes sort. What is in order stays in it. What takes itself comes
   where it is, and is refused there. */
static void onnx_sort(onnx_reader *r, onnx_body *body)
{
    onnx_name *names = r->names;
    uint32_t num_names = r->num_names, size_names = r->size_names, count = onnx_count(r, body->message, body->node);
    onnx_order o = { (onnx_span *)onnx_alloc(r, count * sizeof *o.nodes), (uint8_t *)onnx_alloc(r, count), NULL, 0, 0 };
    body->nodes = (onnx_span *)onnx_alloc(r, count * sizeof *o.nodes);
    r->names = NULL; /* of makers, meanwhile */
    r->num_names = r->size_names = 0;
    if (r->status == NPU_OK) {
        onnx_list_nodes(r, body, &o);
    }
    for (uint32_t i = 0; i < count && r->status == NPU_OK; i++) {
        onnx_push(r, &o, i);
        while (o.height && r->status == NPU_OK) {
            uint32_t node = o.stack[o.height - 1];
            if (o.states[node]++ == 0) {
                onnx_push_makers(r, &o, o.nodes[node]);
            } else {
                o.height--;
                if (o.states[node] == 2) {
                    body->nodes[body->num_nodes++] = o.nodes[node];
                }
                o.states[node] = 2;
            }
        }
    }
    r->names = names;
    r->num_names = num_names;
    r->size_names = size_names;
}

static void onnx_nodes(onnx_reader *r, onnx_body *body, const onnx_node *caller)
{
    if (!body->nodes) {
        onnx_sort(r, body);
    }
    for (uint32_t i = 0; i < body->num_nodes && r->status == NPU_OK; i++) {
        onnx_node_build(r, body->nodes[i], caller);
    }
}

/* The name in a ValueInfoProto; functions list names alone. */
static onnx_span onnx_value_name(onnx_reader *r, const onnx_body *body, const onnx_field *f)
{
    onnx_span bytes = onnx_bytes(r, f);
    return body->initializer ? onnx_member(r, bytes, 1) : bytes;
}

/* Gives inputs their values; functions may be called with fewer, or with holes. */
static void onnx_bind_inputs(onnx_reader *r, const onnx_body *body, const npu_value *in, uint32_t num_in)
{
    onnx_span message = body->message;
    onnx_field f;
    uint32_t i = 0;
    while (onnx_next(r, &message, &f)) {
        if (f.number == body->input) {
            onnx_set(r, onnx_value_name(r, body, &f), i < num_in ? in[i] : onnx_none());
            i++;
        }
    }
    if (i < num_in) {
        onnx_fail(r, NPU_ERR_ARITY, "%u values for a graph of %u inputs", (unsigned)num_in, (unsigned)i);
    }
}

/* What a graph gives out by that name. */
static npu_value onnx_output(onnx_reader *r, onnx_span name)
{
    npu_value v = name.at ? onnx_find(r, name) : onnx_none();
    if (!v.id) {
        onnx_fail(r, NPU_ERR_NOT_FOUND, "nothing makes the output '%.*s'", ONNX_TEXT(name));
    }
    return v;
}

static void onnx_take_outputs(onnx_reader *r, const onnx_body *body, npu_value *out, uint32_t num_out)
{
    onnx_span message = body->message;
    onnx_field f;
    uint32_t i = 0;
    while (onnx_next(r, &message, &f)) {
        if (f.number == body->output && i < num_out) {
            out[i++] = onnx_output(r, onnx_value_name(r, body, &f));
        }
    }
    if (i < num_out) {
        onnx_fail(r, NPU_ERR_ARITY, "a graph of %u outputs, expected %u", (unsigned)i, (unsigned)num_out);
    }
}

/* A branch, a turn of a loop, a call of a function: names of its own. */
static bool onnx_build(onnx_reader *r, onnx_body *body, const onnx_node *caller, const npu_value *in, uint32_t num_in,
                       npu_value *out, uint32_t num_out)
{
    const onnx_node *node = r->node;
    if (r->status || r->depth == ONNX_MAX_DEPTH) {
        onnx_fail(r, NPU_ERR_PARSE, "more than %d graphs in graphs", (int)ONNX_MAX_DEPTH);
        return false;
    }
    if (++r->num_nodes > ONNX_MAX_NODES) {
        onnx_fail(r, NPU_ERR_BUDGET, "more than %d ops", (int)ONNX_MAX_NODES);
    }
    r->scopes[++r->depth] = ++r->num_scopes;
    onnx_bind_inputs(r, body, in, num_in);
    onnx_initializers(r, body);
    onnx_nodes(r, body, caller);
    onnx_take_outputs(r, body, out, num_out);
    r->node = r->status ? r->node : node;
    r->depth--;
    return r->status == NPU_OK;
}

/* ---- which ops cannot be read ------------------------------------------------------------------------------------ */

/* Why no op of a domain can be read; NULL = some can. */
static const char *onnx_domain_refused(onnx_span domain)
{
    static const char *const why[][2] = {
        { "ai.onnx.ml", "trees and other classic models are not supported" },
        { "ai.onnx.preview.training", "training ops are not supported" },
        { "com.microsoft.nchwc", "weights lie as one processor wants them; let ONNX Runtime save the model at the level extended" }
    };
    for (size_t i = 0; i < sizeof why / sizeof why[0]; i++) {
        if (onnx_is(domain, why[i][0])) {
            return why[i][1];
        }
    }
    return NULL;
}

static void onnx_report(onnx_reader *r, const onnx_node *n)
{
    npu_diag d;
    const char *why = n->row ? n->row->text : onnx_domain_refused(n->domain);
    memset(&d, 0, sizeof d);
    d.status = NPU_ERR_NOT_FOUND;
    snprintf(d.message, sizeof d.message, "byte %llu: %.*s%s%.*s '%.*s': %s%s", (unsigned long long)(n->message.at - r->file),
             ONNX_TEXT(n->domain), n->domain.at < n->domain.end ? "." : "", ONNX_TEXT(n->op), ONNX_TEXT(n->name), why ? why : "no op of that name is known", n->row ? " are not supported" : "");
    if (r->desc->report) {
        r->desc->report(r->desc->report_ctx, &d);
    }
    if (!r->has_refused && r->diag) {
        *r->diag = d;
    }
    r->has_refused = true;
}

static void onnx_check_graph(onnx_reader *r, onnx_span graph, uint32_t node_field, uint32_t depth);

static void onnx_check_node(onnx_reader *r, onnx_span message, uint32_t depth)
{
    onnx_node n;
    onnx_field f;
    memset(&n, 0, sizeof n);
    n.message = message;
    n.op = onnx_member(r, message, ONNX_N_OP);
    n.name = onnx_member(r, message, ONNX_N_NAME);
    n.domain = onnx_member(r, message, ONNX_N_DOMAIN);
    n.row = onnx_row_of(n.op, n.domain);
    if (r->status == NPU_OK && (!n.row || !onnx_row_is_read(n.row)) && !onnx_function(r, n.op, n.domain).at) {
        onnx_report(r, &n);
    }
    while (onnx_next(r, &message, &f)) {
        onnx_span graph = f.number == 5 ? onnx_member(r, onnx_bytes(r, &f), ONNX_A_G) : f.bytes;
        if (f.number == 5 && graph.at) {
            onnx_check_graph(r, graph, 1, depth + 1);
        }
    }
}

static void onnx_check_graph(onnx_reader *r, onnx_span graph, uint32_t node_field, uint32_t depth)
{
    onnx_field f;
    if (depth > ONNX_MAX_DEPTH) {
        onnx_fail(r, NPU_ERR_PARSE, "more than %d graphs in graphs", (int)ONNX_MAX_DEPTH);
    }
    while (onnx_next(r, &graph, &f)) {
        if (f.number == node_field) {
            onnx_check_node(r, onnx_bytes(r, &f), depth);
        }
    }
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static int64_t onnx_named_dim(onnx_reader *r, const char *name)
{
    int64_t symbol;
    for (uint32_t i = 0; i < r->desc->num_dims; i++) {
        if (strcmp(r->desc->dims[i].name, name) == 0) {
            return r->desc->dims[i].size;
        }
    }
    for (int64_t at = r->first_symbol; at < 0 && at >= r->last_symbol; at--) {
        if (strcmp(npu_graph_symbol_name(r->g, at), name) == 0) {
            return at;
        }
    }
    symbol = npu_graph_add_symbol(r->g, name, 0, 0);
    r->first_symbol = r->first_symbol ? r->first_symbol : symbol;
    r->last_symbol = symbol;
    onnx_check(r);
    return symbol;
}

/* What is known of an input, by its name or its place; NULL = nothing. */
static const npu_spec *onnx_shape_of(const onnx_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->desc->num_shapes; i++) {
        const npu_array *a = &r->desc->shapes[i];
        if (a->name ? strcmp(a->name, name) == 0 : i == npu_graph_num_inputs(r->g)) {
            return &a->spec;
        }
    }
    return NULL;
}

/* A number, what is known, a name, or nothing, which is named after the input; below 0, as some converters write, is nothing,
   too. */
static int64_t onnx_dim_of(onnx_reader *r, onnx_span dim, const char *input, uint32_t i, const npu_spec *known)
{
    onnx_span param = onnx_member(r, dim, 2);
    int64_t size = onnx_member_int(r, dim, 1, -1);
    char name[80];
    if (size >= 0 || (known && i < known->rank)) {
        return size >= 0 ? size : known->dims[i];
    }
    if (param.at && onnx_len(param) && onnx_len(param) < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)onnx_len(param), (const char *)param.at);
    } else {
        snprintf(name, sizeof name, "%.60s.%u", input, (unsigned)i);
    }
    return onnx_named_dim(r, name);
}

static npu_spec onnx_input_spec(onnx_reader *r, onnx_span info, const char *name)
{
    onnx_span type = onnx_member(r, onnx_member(r, info, 2), 1), shape = onnx_member(r, type, 2);
    npu_dtype dtype;
    const npu_spec *known = onnx_shape_of(r, name);
    int64_t dims[NPU_MAX_RANK], code;
    uint32_t rank = 0;
    onnx_field f;
    if (!type.at) {
        onnx_fail(r, NPU_ERR_UNSUPPORTED, "input '%.60s' is no tensor: sequences, maps and optionals are not supported", name);
    }
    code = onnx_member_int(r, type, 1, 0);
    dtype = r->status ? NPU_NONE : onnx_narrow_of(code) ? (npu_dtype)onnx_narrow_of(code)->dtype : onnx_stored_dtype(r, code);
    while (onnx_next(r, &shape, &f)) {
        if (f.number == 1 && rank == NPU_MAX_RANK) {
            onnx_fail(r, NPU_ERR_RANK, "input '%.60s' has more than %d dims", name, NPU_MAX_RANK);
        } else if (f.number == 1) {
            dims[rank] = onnx_dim_of(r, onnx_bytes(r, &f), name, rank, known);
            rank++;
        }
    }
    return !shape.at && known ? npu_spec_tensor(dtype, known->rank, known->dims) : npu_spec_tensor(dtype, rank, dims);
}

/* The data that is given for an input; NULL = it is one. */
static const npu_array *onnx_given(onnx_reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->desc->num_inputs; i++) {
        if (r->desc->inputs[i].name && strcmp(r->desc->inputs[i].name, name) == 0) {
            return &r->desc->inputs[i];
        }
    }
    return NULL;
}

static void onnx_input(onnx_reader *r, onnx_span info)
{
    onnx_span name = onnx_member(r, info, 1);
    char *text = onnx_str(r, name);
    const npu_array *given = text ? onnx_given(r, text) : NULL;
    onnx_span type = onnx_member(r, onnx_member(r, info, 2), 1);
    const onnx_narrow *narrow = onnx_narrow_of(onnx_member_int(r, type, 1, 0));
    npu_spec spec;
    npu_value v;
    if (!text || onnx_find(r, name).id) { /* an initializer is its default */
        return;
    }
    spec = onnx_input_spec(r, info, text);
    if (given && given->spec.dtype != spec.dtype) {
        onnx_fail(r, NPU_ERR_DTYPE, "input '%.60s' is %s, given as %s", text, npu_dtype_name((npu_dtype)spec.dtype),
                  npu_dtype_name((npu_dtype)given->spec.dtype));
    }
    if (r->status == NPU_OK) {
        v = given ? npu_constant(r->g, NULL, given->spec, given->data) : npu_input(r->g, text, spec);
        if (onnx_check(r)) {
            onnx_mark_as(r, v, narrow);
            onnx_set(r, name, spec.dtype == NPU_F16 && r->desc->f16_as_f32 && !narrow ? onnx_cast(r, v, NPU_F32) : v);
        }
    }
}

/* A model that gives a tensor back twice lists its name twice; it is one output, as in ONNX Runtime. */
static bool onnx_is_new_output(onnx_reader *r, onnx_span name)
{
    onnx_name *slot = onnx_slot(r, name);
    bool is_new = !slot->is_output;
    slot->is_output = true;
    return is_new;
}

static void onnx_graph(onnx_reader *r, onnx_span graph)
{
    onnx_body body = { { NULL, NULL }, 1, 11, 12, 5, NULL, 0 };
    onnx_span message = graph;
    onnx_field f;
    body.message = graph;
    onnx_initializers(r, &body);
    while (onnx_next(r, &message, &f)) {
        if (f.number == body.input) {
            onnx_input(r, onnx_bytes(r, &f));
        }
    }
    onnx_nodes(r, &body, NULL);
    r->node = r->status ? r->node : NULL;
    for (message = graph; onnx_next(r, &message, &f);) {
        if (f.number == body.output) {
            onnx_span name = onnx_member(r, onnx_bytes(r, &f), 1);
            char *text = onnx_str(r, name);
            npu_value v = onnx_output(r, name);
            if (onnx_is_sequence(v)) {
                onnx_fail(r, NPU_ERR_UNSUPPORTED,
                          "the output '%.*s' is a sequence, expected a tensor: join it, or give out its tensors",
                          ONNX_TEXT(name));
            } else if (v.id && text && onnx_is_new_output(r, name)) {
                bool is_half = onnx_member_int(r, onnx_member(r, onnx_member(r, f.bytes, 2), 1), 1, 0) == 10;
                npu_output(r->g, text, is_half && onnx_type(r, v) == NPU_F32 && r->desc->f16_as_f32 ? onnx_cast(r, v, NPU_F16) : v);
                onnx_check(r);
            }
        }
    }
}

static void onnx_model(onnx_reader *r, onnx_span model)
{
    onnx_span message = model, graph = { NULL, NULL };
    onnx_field f;
    r->opset = 0;
    while (onnx_next(r, &message, &f)) {
        if (f.number == 7) {
            graph = onnx_bytes(r, &f);
        } else if (f.number == 8 && onnx_is_plain_domain(onnx_member(r, onnx_bytes(r, &f), 1))) {
            r->opset = onnx_member_int(r, f.bytes, 2, 0);
        } else if (f.number == 25 && r->num_functions < sizeof r->functions / sizeof r->functions[0]) {
            r->functions[r->num_functions++] = onnx_bytes(r, &f);
        }
    }
    r->at = model.at;
    if (r->status == NPU_OK && !graph.at) {
        onnx_fail(r, NPU_ERR_PARSE, "this is no ONNX model: it has no graph");
    }
    for (uint32_t i = 0; i < r->num_functions; i++) {
        onnx_check_graph(r, r->functions[i], 7, 1);
    }
    onnx_check_graph(r, graph, 1, 0);
    if (r->status == NPU_OK && r->has_refused) {
        r->status = NPU_ERR_NOT_FOUND;
    }
    if (r->status == NPU_OK && (r->opset < 1 || r->opset > 28)) {
        onnx_fail(r, NPU_ERR_VERSION, "opset %lld, expected 1 to 28", (long long)r->opset);
    }
    if (r->status == NPU_OK) {
        onnx_graph(r, graph);
    }
}

npu_status npu_onnx_read(npu_graph **out, const void *data, size_t size, const npu_onnx_desc *desc, npu_diag *diag)
{
    static const npu_onnx_desc defaults;
    static const npu_allocator plain = { NULL, onnx_resize_block };
    onnx_reader r;
    onnx_span model;
    if (!out) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    *out = NULL;
    memset(&r, 0, sizeof r);
    r.desc = desc ? desc : &defaults;
    r.diag = diag;
    r.g = r.levels[0].g = npu_graph_create(r.desc->graph);
    r.allocator = r.desc->graph && r.desc->graph->allocator ? *r.desc->graph->allocator : plain;
    r.file = r.at = model.at = (const uint8_t *)data;
    r.file_size = size;
    model.end = data ? model.at + size : model.at;
    if (!r.g || !data || r.desc->_canary) {
        onnx_fail(&r, data ? NPU_ERR_NO_MEMORY : NPU_ERR_INVALID_ARGUMENT, "no data, or a bad desc");
    } else {
        onnx_model(&r, model);
    }
    onnx_free_blocks(&r);
    if (r.status == NPU_OK) { /* without what was only there to be computed */
        r.status = npu_graph_rewrite(out, r.g, NULL, NULL, diag);
    }
    npu_graph_destroy(r.levels[0].g);
    return r.status;
}

#endif
#endif /* NPU_ONNX_IMPLEMENTATION */
