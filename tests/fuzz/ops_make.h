/* ops_make.h - makes a random graph from a seed: calls of any op of the registry, put together from its schema or from a
   vector of the conformance tests, with operands, attributes, symbols, states, names and child graphs that are
   sane most of the time. */
#ifndef OPS_MAKE_H
#define OPS_MAKE_H

#include "../conformance/cases.h"
#include "ops_random.h"
#include <dirent.h>

#define OPS_WIDE UINT64_C(10000000000)
#define OPS_DEEP UINT64_C(1000000000000)
#define OPS_FAR UINT64_C(10000000000000000)
#define OPS_FIT UINT64_C(100000000000000000)
enum { OPS_MAX_POOL = 128, OPS_MAX_INPUTS = 40, OPS_MAX_SYMBOLS = 12, OPS_MAX_DEPTH = 3, OPS_MAX_LEN = 1 << 12 };

/* The arguments of one vector. */
typedef struct ops_vector { conf_arg *args; uint32_t num_args; conf_block *blocks; } ops_vector;

/* What all graphs share. Counts are by index of the registry. */
typedef struct ops_world {
    npu_registry *registry;
    uint32_t num_ops;
    uint64_t *tried, *accepted, *ran;
    ops_vector *vectors;    /* by op */
    uint32_t num_vectors, max_vectors, *first_vector; /* num_ops + 1 of them */
    void **files;           /* data of the vectors */
    uint32_t num_files;
    ops_memory memory;
    npu_allocator allocator;
    const char *only;       /* part of the name of the ops to call, NULL = all */
    bool verbose;
    npu_parallel *threads[3]; /* of width 2, 3, 4 */
    npu_backend *cpu, *plain;
} ops_world;

typedef struct ops_symbol { char name[24]; int64_t dim, value, other; } ops_symbol;

typedef struct ops_input {
    char name[24];
    npu_spec spec, now; /* as declared; with the dims that it has in the run */
    uint8_t *data;
    size_t size;
} ops_input;

/* A graph that is being built: the main one, or a child. */
typedef struct ops_scope {
    npu_graph *g;
    npu_level level;
    npu_value pool[OPS_MAX_POOL];
    uint32_t num, depth;
} ops_scope;

typedef struct ops_case {
    ops_world *w;
    ops_random r;
    ops_keep keep;
    npu_graph *g;
    ops_input inputs[OPS_MAX_INPUTS];
    uint32_t num_inputs;
    ops_symbol symbols[OPS_MAX_SYMBOLS];
    uint32_t num_symbols, num_params;
    int64_t base[NPU_MAX_RANK]; /* dims and dtype that most values have something to do with */
    uint32_t rank;
    npu_dtype dtype;
    bool hostile, symbolic, tame; /* tame: no infinite, huge or wrong numbers */
    bool wide; /* also views before ops, longer dims, numbers fed by one element: from seed OPS_WIDE on, so that the graphs
                  of the seeds before stay what they were */
    bool deep; /* from seed OPS_DEEP on: npu.if and npu.while, more complex numbers, and all of ops_deep.h */
    bool fits; /* from seed OPS_FIT on: calls of ops_fit.h */
    bool is_random, is_huge, has_state, no_data;
    bool not_typed; /* a call with its results said was refused */
    bool writes;    /* a JSON file reads as another graph: an op writes to an operand */
    uint32_t num_ops;
} ops_case;

/* ---- specs and values ---- */

static int64_t ops_dim(ops_case *c)
{
    uint32_t k = ops_below(&c->r, 100);
    if (c->wide && ops_chance(&c->r, 6)) {
        return ops_between(&c->r, 15, 70);
    }
    if (c->hostile && k < 6) {
        int64_t x = ops_hostile_int(&c->r);
        return ops_chance(&c->r, 70) && x < 0 ? 2 : x;
    }
    return k < 4 + 4u * c->hostile ? 0 : k < 22 ? 1 : k < 80 ? ops_between(&c->r, 2, 5) : ops_between(&c->r, 6, 17);
}

static void ops_base(ops_case *c)
{
    bool cubic = ops_chance(&c->r, 35);
    int64_t len = 1;
    c->rank = ops_chance(&c->r, 85) ? ops_below(&c->r, 5) : ops_below(&c->r, NPU_MAX_RANK + 1);
    c->dtype = ops_dtype(&c->r, c->hostile);
    for (uint32_t i = 0; i < c->rank; i++) {
        c->base[i] = cubic && i ? c->base[0] : ops_dim(c);
        c->base[i] = !c->hostile && len * c->base[i] > OPS_MAX_LEN / 4 ? 1 : c->base[i];
        len = c->hostile ? 1 : len * (c->base[i] ? c->base[i] : 1);
    }
}

static npu_dtype ops_operand_dtype(ops_case *c, const char *name)
{
    if (ops_chance(&c->r, 75) && strstr(name, "ind")) {
        return ops_chance(&c->r, 80) ? NPU_I64 : NPU_I32;
    }
    if (ops_chance(&c->r, 60) && (strstr(name, "mask") || strstr(name, "condition"))) {
        return NPU_BOOL;
    }
    return ops_chance(&c->r, 82) ? c->dtype : ops_dtype(&c->r, c->hostile);
}

/* Something like the base: its dims, some of them, one of them as 1, in another order ... */
static npu_spec ops_spec(ops_case *c, const char *name)
{
    int64_t d[NPU_MAX_RANK] = { 0 };
    uint32_t r = c->rank, k = ops_below(&c->r, 100), at = ops_below(&c->r, r), cut = ops_below(&c->r, r + 1);
    memcpy(d, c->base, r * sizeof *d);
    if (k < 45 || !r) {
        at = 0;
    } else if (k < 53) {
        memmove(d, d + cut, (r - cut) * sizeof *d);
        r -= cut;
    } else if (k < 60) {
        r = cut;
    } else if (k < 66) {
        d[at] = 1;
    } else if (k < 72) {
        d[0] = d[at];
        r = 1;
    } else if (k < 76) {
        int64_t t = d[at];
        d[at] = d[0];
        d[0] = t;
    } else if (k < 81) {
        d[at] = ops_dim(c);
    } else if (k < 86) {
        r = 0;
    } else if (k < 90) {
        d[r - 1] = 1;
    } else {
        r = ops_chance(&c->r, 90) ? ops_below(&c->r, 5) : ops_below(&c->r, NPU_MAX_RANK + 1);
        for (uint32_t i = 0; i < r; i++) {
            d[i] = ops_chance(&c->r, 50) && c->rank ? c->base[ops_below(&c->r, c->rank)] : ops_dim(c);
        }
    }
    if (c->hostile && ops_chance(&c->r, 1)) {
        r = NPU_MAX_RANK + 1;
    }
    return npu_spec_tensor(ops_operand_dtype(c, name), r, d);
}

static npu_value ops_add(ops_scope *s, npu_value v)
{
    if (v.id && s->num < OPS_MAX_POOL) {
        s->pool[s->num++] = v;
    }
    return v;
}

/* Dims of an input may be symbols: equal numbers are equal symbols. */
static void ops_make_symbols(ops_case *c, npu_graph *g, npu_spec *spec)
{
    for (uint32_t i = 0; i < spec->rank; i++) {
        uint32_t k = 0;
        while (k < c->num_symbols && c->symbols[k].value != spec->dims[i]) {
            k++;
        }
        if (spec->dims[i] < 0 || k == OPS_MAX_SYMBOLS || ops_chance(&c->r, 50)) {
            continue;
        }
        ops_symbol *symbol = &c->symbols[k];
        if (k == c->num_symbols) {
            int64_t value = spec->dims[i], min = ops_chance(&c->r, 70) ? 0 : value, more = ops_between(&c->r, 0, 3);
            int64_t max = value < INT64_MAX - more ? value + more : value;
            snprintf(symbol->name, sizeof symbol->name, "s%u", (unsigned)k);
            symbol->value = value;
            symbol->other = ops_between(&c->r, max - min > 3 ? max - 3 : min, max);
            symbol->dim = npu_graph_add_symbol(g, symbol->name, min, ops_chance(&c->r, 90) ? max : 0);
            if (!symbol->dim) {
                npu_graph_clear_error(g);
                continue;
            }
            c->num_symbols++;
        }
        spec->dims[i] = symbol->dim;
    }
}

/* Another name than the default one, sometimes one that is hard to print. */
static const char *ops_name(ops_case *c, char *name)
{
    if (c->hostile && ops_chance(&c->r, 5)) {
        snprintf(name, 24, "%.23s", ops_word(&c->r, true));
    }
    return name;
}

static npu_value ops_new_input(ops_case *c, ops_scope *s, npu_spec spec, uint8_t *data, size_t size)
{
    npu_value none = { 0 };
    if (c->num_inputs == OPS_MAX_INPUTS) {
        return none;
    }
    ops_input *in = &c->inputs[c->num_inputs];
    snprintf(in->name, sizeof in->name, "i%u", (unsigned)c->num_inputs);
    ops_name(c, in->name);
    in->spec = in->now = spec;
    in->data = data;
    in->size = size;
    if (c->symbolic && data) {
        ops_make_symbols(c, s->g, &in->spec);
    }
    npu_value v = npu_input(s->g, in->name, in->spec);
    c->num_inputs += v.id != 0;
    return ops_add(s, v);
}

/* data NULL: random. What is too large, or no size at all, is declared all the same, and the graph is not run. */
static npu_value ops_new_value(ops_case *c, ops_scope *s, npu_spec spec, const void *data)
{
    size_t size = 0, len = 0;
    char name[24];
    uint32_t k = ops_below(&c->r, 100);
    bool fits = npu_spec_size(&spec, &size) == NPU_OK && npu_spec_len(&spec, &len) == NPU_OK && len <= OPS_MAX_LEN;
    snprintf(name, sizeof name, "p%u.w", (unsigned)c->num_params++);
    ops_name(c, name);
    if (!fits) {
        c->is_huge = true;
        return ops_add(s, ops_chance(&c->r, 50) ? npu_input(s->g, name, spec) : npu_param(s->g, name, spec));
    }
    uint8_t *bytes = (uint8_t *)ops_take(&c->keep, size);
    if (data && size) {
        memcpy(bytes, data, size);
    } else {
        ops_fill(&c->r, (npu_dtype)spec.dtype, bytes, size, c->tame);
    }
    if (s->level != NPU_LEVEL_TENSOR || s->depth || k < 15) {
        return ops_add(s, k & 1 ? npu_constant(s->g, NULL, spec, bytes) : npu_constant_ref(s->g, NULL, spec, bytes));
    }
    if (k < 28) {
        npu_value v = npu_param(s->g, name, spec);
        if (ops_chance(&c->r, c->hostile ? 90 : 99)) {
            npu_graph_bind_param(s->g, name, bytes, size);
        } else {
            c->no_data = true;
        }
        return ops_add(s, v);
    }
    if (k < 31) {
        c->has_state = true;
        return ops_add(s, npu_state(s->g, name, spec));
    }
    return ops_new_input(c, s, spec, bytes, size);
}

static const npu_spec *ops_spec_of(const ops_scope *s, npu_value v) { return npu_value_spec(s->g, v); }

/* A value of that class, id 0 = none: recent ones first. */
static npu_value ops_old_value(ops_case *c, ops_scope *s, npu_class cls, const npu_spec *like)
{
    npu_value none = { 0 };
    uint32_t start = ops_chance(&c->r, 50) ? 0 : ops_below(&c->r, s->num);
    for (uint32_t i = 0; i < s->num; i++) {
        npu_value v = s->pool[s->num - 1 - (i + start) % s->num];
        const npu_spec *spec = ops_spec_of(s, v);
        if (spec && spec->cls == cls && (!like || npu_spec_equal(spec, like))) {
            return v;
        }
    }
    return none;
}

/* like: the spec that it should have, NULL = any. */
static npu_value ops_operand(ops_case *c, ops_scope *s, npu_class cls, const char *name, const npu_spec *like)
{
    npu_value v = { 0 };
    if (cls == NPU_CLASS_TENSOR && s->level != NPU_LEVEL_TENSOR) {
        cls = s->level == NPU_LEVEL_TILE ? NPU_CLASS_TENSOR : NPU_CLASS_SCALAR;
    }
    if (s->num && (s->level != NPU_LEVEL_TENSOR || ops_chance(&c->r, 70))) {
        v = ops_old_value(c, s, cls, like);
    }
    if (v.id || s->level != NPU_LEVEL_TENSOR) {
        return v.id || !like ? v : ops_old_value(c, s, cls, NULL);
    }
    if (like && npu_spec_is_static(like)) {
        return ops_new_value(c, s, *like, NULL);
    }
    return ops_new_value(c, s, ops_spec(c, name), NULL);
}

/* v again, as a view of something else: kernels meet strides, steps and offsets. A hostile one also has other dims. */
static npu_value ops_view(ops_case *c, ops_scope *s, npu_value v)
{
    npu_graph *g = s->g;
    const npu_spec *spec = ops_spec_of(s, v);
    npu_value y = v, two[2];
    if (!c->wide || !spec || !spec->rank || s->level != NPU_LEVEL_TENSOR || ops_chance(&c->r, 75)) {
        return v;
    }
    int64_t at = ops_below(&c->r, spec->rank), other = ops_below(&c->r, spec->rank), len = spec->dims[at];
    switch (ops_below(&c->r, 6)) {
    case 0: y = npu_transpose(g, npu_clone(g, npu_transpose(g, v, at, other)), at, other); break;
    case 1: y = c->hostile ? npu_transpose(g, v, at, other) : v; break;
    case 2:
        two[0] = two[1] = v;
        y = npu_slice(g, npu_cat(g, two, 2, at), at, len > 0 ? len : 0, INT64_MAX, 1);
        break;
    case 3:
        two[0] = two[1] = npu_unsqueeze(g, v, -1);
        y = npu_select(g, npu_cat(g, two, 2, -1), -1, ops_below(&c->r, 2));
        break;
    case 4: y = npu_select(g, npu_unsqueeze(g, v, at), at, 0); break;
    default: y = npu_flip(g, npu_flip(g, v, &at, 1), &at, 1); break;
    }
    npu_graph_clear_error(g);
    return y.id ? ops_add(s, y) : v;
}

/* The number n as one element. */
static npu_value ops_number(ops_case *c, ops_scope *s, int64_t n)
{
    int64_t one = 1;
    return ops_new_value(c, s, npu_spec_tensor(NPU_I64, ops_chance(&c->r, 20), &one), &n);
}

/* ---- arguments ---- */

/* One call in the making. */
typedef struct ops_call {
    const npu_schema *schema;
    npu_spec first;          /* of the first operand */
    bool has_first, alike;   /* alike: all operands have that spec */
    npu_arg args[OPS_MAX_POOL];
    uint32_t num;
} ops_call;

static bool ops_has(const char *name, const char *words)
{
    char part[24];
    for (size_t n; *words; words += n + (words[n] != 0)) {
        n = strcspn(words, " ");
        snprintf(part, sizeof part, "%.*s", (int)n, words);
        if (strstr(name, part)) {
            return true;
        }
    }
    return false;
}

static int64_t ops_int(ops_case *c, const char *name, const npu_spec *ref)
{
    int64_t rank = ref ? ref->rank : c->rank;
    if (ops_chance(&c->r, c->hostile ? 20 : 2)) {
        return ops_hostile_int(&c->r);
    }
    if (ops_has(name, "dim axis axes perm")) {
        return rank ? ops_between(&c->r, -rank, rank - 1) : ops_between(&c->r, -1, 0);
    }
    if (ops_has(name, "kernel stride dilation step groups chunks sections split blocks num_heads")) {
        return ops_between(&c->r, 1, ops_chance(&c->r, 70) ? 2 : 4);
    }
    if (ops_has(name, "pad low high")) {
        return ops_between(&c->r, 0, 2);
    }
    if (ops_has(name, "size shape output repeat")) {
        return ops_chance(&c->r, 15) ? -1 : ops_between(&c->r, 0, 4);
    }
    if (ops_has(name, "memory pipe event mode cmp type")) {
        return ops_between(&c->r, 0, 6);
    }
    return ops_between(&c->r, ops_chance(&c->r, 20) ? -3 : 0, 4);
}

/* Length that a list should have. */
static uint32_t ops_list_len(ops_case *c, const npu_schema_arg *a, const npu_spec *ref)
{
    uint32_t rank = ref ? ref->rank : c->rank;
    if (ops_chance(&c->r, c->hostile ? 15 : 3)) {
        return ops_chance(&c->r, 95) ? ops_below(&c->r, 10) : 300;
    }
    if (a->type.list_size > 0) {
        return ops_chance(&c->r, 90) ? (uint32_t)a->type.list_size : 1;
    }
    if (ops_has(a->name, "shape size repeat offset perm low high start end step stride sizes")) {
        return rank;
    }
    return ops_has(a->name, "pads") ? 2 * rank : ops_has(a->name, "pad") ? 2 * ops_below(&c->r, rank + 1) : ops_below(&c->r, rank + 1);
}

static void ops_fill_ints(ops_case *c, const char *name, const npu_spec *ref, int64_t *x, uint32_t n)
{
    bool of_dims = ref && ops_has(name, "shape size"), offsets = ops_has(name, "offset start low high"), order = ops_has(name, "dim perm axes");
    uint32_t turn = ops_below(&c->r, n ? n : 1), sign = ops_below(&c->r, 4) == 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = ref && ref->rank ? (i + (n == ref->rank ? 0 : ref->rank - n % (ref->rank + 1))) % ref->rank : 0;
        x[i] = ops_int(c, name, ref);
        if (ops_chance(&c->r, c->hostile ? 40 : 5)) {
            continue;
        }
        if (of_dims && ref->rank && ops_chance(&c->r, 90)) {
            x[i] = ref->dims[at];
        } else if (offsets && ops_chance(&c->r, 75)) {
            x[i] = 0;
        } else if (order) {
            x[i] = (int64_t)((i + turn) % n) - (sign && ref ? (int64_t)ref->rank : 0);
        }
    }
    if (of_dims && n && ops_chance(&c->r, 25)) { /* a reshape */
        x[turn] = -1;
    }
}

static npu_arg ops_tensor_arg(ops_case *c, ops_scope *s, const npu_schema_arg *a, ops_call *call)
{
    const npu_spec *like = call->has_first && call->alike && ops_chance(&c->r, 95) ? &call->first : NULL;
    npu_class cls = a->type.base == NPU_T_TILE ? NPU_CLASS_TILE : NPU_CLASS_TENSOR;
    uint32_t n = ops_chance(&c->r, 95) ? ops_between(&c->r, 1, 3) : ops_below(&c->r, 9);
    if (!a->type.list) {
        if (ops_chance(&c->r, 2)) {
            return ops_chance(&c->r, 50) ? npu_arg_int(a->name, ops_hostile_int(&c->r)) : npu_arg_float(a->name, ops_hostile_float(&c->r));
        }
        npu_arg arg = npu_arg_tensor(a->name, ops_view(c, s, ops_operand(c, s, cls, a->name, like)));
        if (!call->has_first && ops_spec_of(s, arg.as.value)) {
            call->first = *ops_spec_of(s, arg.as.value);
            call->has_first = true;
        }
        return arg;
    }
    npu_value *values = (npu_value *)ops_take(&c->keep, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++) {
        if (!(a->type.element_optional && ops_chance(&c->r, 30))) {
            values[i] = ops_operand(c, s, cls, a->type.element_optional ? "indices" : a->name, like ? like : call->alike && i ? ops_spec_of(s, values[0]) : NULL);
        }
        if (!call->has_first && ops_spec_of(s, values[i])) {
            call->first = *ops_spec_of(s, values[i]);
            call->has_first = true;
        }
    }
    return npu_arg_tensors(a->name, values, n);
}

static npu_arg ops_int_arg(ops_case *c, ops_scope *s, const npu_schema_arg *a, const npu_spec *ref)
{
    bool fed = (a->type.base == NPU_T_SYMINT || a->type.base == NPU_T_INT) && ops_chance(&c->r, 2);
    if (c->wide && !a->type.list && s->level == NPU_LEVEL_TENSOR && ops_chance(&c->r, 5)) {
        return npu_arg_tensor(a->name, ops_number(c, s, ops_int(c, a->name, ref)));
    }
    if (!a->type.list) {
        return fed ? npu_arg_tensor(a->name, ops_operand(c, s, NPU_CLASS_TENSOR, "index", NULL)) : npu_arg_int(a->name, ops_int(c, a->name, ref));
    }
    uint32_t n = ops_list_len(c, a, ref);
    int64_t *x = (int64_t *)ops_take(&c->keep, n * sizeof *x);
    ops_fill_ints(c, a->name, ref, x, n);
    if (!fed) {
        return npu_arg_ints(a->name, x, n);
    }
    npu_arg *items = (npu_arg *)ops_take(&c->keep, n * sizeof *items);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = ops_chance(&c->r, 60) ? npu_arg_int(NULL, x[i]) : npu_arg_tensor(NULL, ops_operand(c, s, NPU_CLASS_TENSOR, "index", NULL));
    }
    return npu_arg_items(a->name, items, n);
}

static double ops_float(ops_case *c) { return c->tame || ops_chance(&c->r, 70) ? ops_sane_float(&c->r) : ops_hostile_float(&c->r); }

static npu_arg ops_number_arg(ops_case *c, ops_scope *s, const npu_schema_arg *a, const npu_spec *ref)
{
    uint32_t n = a->type.list ? ops_list_len(c, a, ref) : 0;
    if (a->type.list) {
        double *x = (double *)ops_take(&c->keep, n * sizeof *x);
        for (uint32_t i = 0; i < n; i++) {
            x[i] = ops_float(c);
        }
        return npu_arg_floats(a->name, x, n);
    }
    if (a->type.base == NPU_T_SCALAR && ops_chance(&c->r, 55)) {
        if (ops_chance(&c->r, s->level == NPU_LEVEL_TILE ? 20 : 3)) {
            return npu_arg_tensor(a->name, s->level == NPU_LEVEL_TILE ? ops_old_value(c, s, NPU_CLASS_SCALAR, NULL) : ops_operand(c, s, NPU_CLASS_TENSOR, "index", NULL));
        }
        int64_t i = c->tame ? ops_between(&c->r, -2, 3) : ops_int(c, "", ref);
        return ops_chance(&c->r, 90) ? npu_arg_int(a->name, i) : npu_arg_bool(a->name, i & 1);
    }
    return npu_arg_float(a->name, ops_float(c));
}

static npu_arg ops_str_arg(ops_case *c, const npu_schema_arg *a, const npu_spec *ref)
{
    uint32_t n = a->type.list ? ops_list_len(c, a, ref) : 0;
    if (!a->type.list) {
        bool is_default = a->default_form == NPU_DEFAULT_STR && ops_chance(&c->r, 40);
        return npu_arg_str(a->name, is_default ? a->default_str : ops_word(&c->r, c->hostile));
    }
    const char **words = (const char **)ops_take(&c->keep, n * sizeof *words);
    for (uint32_t i = 0; i < n; i++) {
        words[i] = ops_word(&c->r, c->hostile);
    }
    return npu_arg_strs(a->name, words, n);
}

static npu_arg ops_bools_arg(ops_case *c, const npu_schema_arg *a, const npu_spec *ref)
{
    uint32_t n = a->type.list ? ops_list_len(c, a, ref) : 0;
    if (!a->type.list) {
        return npu_arg_bool(a->name, ops_chance(&c->r, 50));
    }
    bool *x = (bool *)ops_take(&c->keep, n);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = ops_chance(&c->r, 60);
    }
    return npu_arg_bools(a->name, x, n);
}

static npu_arg ops_arg(ops_case *c, ops_scope *s, const npu_schema_arg *a, ops_call *call)
{
    const npu_spec *ref = call->has_first ? &call->first : NULL;
    if (a->type.optional && ops_chance(&c->r, 45)) {
        return npu_arg_none(a->name);
    }
    switch (a->type.base) {
    case NPU_T_TENSOR: case NPU_T_TILE: return ops_tensor_arg(c, s, a, call);
    case NPU_T_FLOAT: case NPU_T_SYMFLOAT: case NPU_T_SCALAR: return ops_number_arg(c, s, a, ref);
    case NPU_T_BOOL: case NPU_T_SYMBOOL: return ops_bools_arg(c, a, ref);
    case NPU_T_DTYPE: return npu_arg_dtype(a->name, ops_chance(&c->r, c->hostile ? 90 : 99) ? ops_dtype(&c->r, c->hostile) : (npu_dtype)ops_below(&c->r, 256));
    case NPU_T_STR: case NPU_T_AFFINE_MAP: case NPU_T_DIMNAME: case NPU_T_QSCHEME: return ops_str_arg(c, a, ref);
    case NPU_T_GRAPH: return npu_arg_graph(a->name, ops_below(&c->r, npu_graph_num_children(s->g) + c->hostile));
    default: return ops_int_arg(c, s, a, ref);
    }
}

/* ---- calls ---- */

static uint32_t ops_index_of(const ops_world *w, const npu_op_def *def)
{
    uint32_t i = 0;
    while (i < w->num_ops && npu_registry_op(w->registry, i) != def) {
        i++;
    }
    return i;
}

/* Results join the pool. */
static void ops_took(ops_case *c, ops_scope *s, npu_op op)
{
    const npu_op_def *def = npu_op_definition(s->g, op);
    uint32_t at = ops_index_of(c->w, def), n = npu_op_num_results(s->g, op);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    c->is_huge |= def->kind == NPU_NPU_LAUNCH && npu_op_describe(s->g, op, &info, &storage) == NPU_OK && npu_op_int(&info, "blocks", 1) > 1000;
    npu_op_storage_free(&storage);
    c->num_ops++;
    c->writes |= strstr(def->name, "as_strided") != NULL; /* in a file it reads the memory that its operand is a view of */
    c->is_random |= (def->traits & NPU_RANDOM) != 0 || strstr(def->name, "empty") || strstr(def->name, "create_tile") || strstr(def->name, "resize");
    for (uint32_t i = 0; i < def->schema->num_args; i++) {
        const char *alias = def->schema->args[i].type.alias;
        c->writes |= alias && strchr(alias, '!');
    }
    if (at < c->w->num_ops) {
        c->w->accepted[at]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        npu_value v = npu_op_result(s->g, op, i);
        npu_status status = npu_spec_len(ops_spec_of(s, v), &len);
        c->is_huge |= status == NPU_ERR_OVERFLOW || len > 16 * OPS_MAX_LEN;
        if (ops_spec_of(s, v)->cls != NPU_CLASS_NONE) {
            ops_add(s, v);
        }
    }
    if (ops_chance(&c->r, 3)) {
        const char *name = ops_word(&c->r, c->hostile);
        npu_op_set_name(s->g, op, name);
        npu_op_set_constraints(s->g, op, ops_below(&c->r, 4));
        npu_op_add_saved(s->g, op, npu_op_result(s->g, op, 0));
        npu_graph_clear_error(s->g);
    }
}

/* The same call with its results said must be taken, too. */
static bool ops_emit_typed(ops_scope *s, npu_op op, const npu_arg *args, uint32_t n)
{
    npu_spec specs[32];
    uint32_t num = npu_op_num_results(s->g, op);
    bool is_static = num <= 32;
    for (uint32_t i = 0; i < num && is_static; i++) {
        specs[i] = *ops_spec_of(s, npu_op_result(s->g, op, i));
        is_static = npu_spec_is_static(&specs[i]);
    }
    return !is_static || npu_emit_typed(s->g, npu_op_definition(s->g, op)->name, args, n, specs, num).id != 0;
}

static npu_op ops_emit(ops_case *c, ops_scope *s, const npu_op_def *def, const npu_arg *args, uint32_t n)
{
    npu_op op = ops_chance(&c->r, 80) ? npu_emit(NPU_AT(s->g), def->kind, args, n) : npu_emit_name(s->g, def->name, args, n);
    if (op.id) {
        ops_took(c, s, op);
        c->not_typed |= ops_chance(&c->r, 3) && !ops_emit_typed(s, op, args, n);
    } else if (c->w->verbose) {
        printf("    refused: %s: %s\n", def->name, npu_graph_diag(s->g)->message);
    }
    npu_graph_clear_error(s->g);
    return op;
}

static npu_op ops_call_schema(ops_case *c, ops_scope *s, const npu_op_def *def)
{
    ops_call call;
    memset(&call, 0, sizeof call);
    call.schema = def->schema;
    call.alike = ops_chance(&c->r, 60);
    for (uint32_t i = 0; i < def->schema->num_args && call.num < OPS_MAX_POOL - 1; i++) {
        const npu_schema_arg *a = &def->schema->args[i];
        bool skips = a->default_form != NPU_DEFAULT_REQUIRED && a->type.base != NPU_T_TENSOR && ops_chance(&c->r, 50);
        if (!skips && !(c->hostile && ops_chance(&c->r, 2))) {
            call.args[call.num++] = ops_arg(c, s, a, &call);
        }
    }
    if (c->hostile && ops_chance(&c->r, 2)) {
        call.args[call.num++] = npu_arg_int(ops_word(&c->r, true), 1);
    }
    return ops_emit(c, s, def, call.args, call.num);
}

/* ---- calls of vectors, as they are or changed in places ---- */

static npu_value ops_vector_value(ops_case *c, ops_scope *s, const conf_tensor *t, bool changed)
{
    npu_value none = { 0 };
    if (t->absent) {
        return none;
    }
    npu_spec spec = npu_spec_tensor(t->dtype, t->rank, t->dims);
    const void *data = t->data;
    if (changed && ops_chance(&c->r, 15)) {
        uint32_t at = ops_below(&c->r, spec.rank);
        data = NULL;
        switch (ops_below(&c->r, 6)) {
        case 0: spec.dtype = (uint8_t)ops_dtype(&c->r, true); break;
        case 1: spec.dims[at] = spec.rank ? 0 : 0; break;
        case 2: spec.dims[at] = spec.rank ? 1 : 0; break;
        case 3: spec.dims[at] = spec.rank ? ops_dim(c) : 0; break;
        case 4: spec.dims[at] += spec.rank ? 1 : 0; break;
        default:
            if (spec.rank) {
                spec.dims[--spec.rank] = 0;
            }
        }
    }
    npu_value old = ops_chance(&c->r, 35) ? ops_old_value(c, s, NPU_CLASS_TENSOR, &spec) : none;
    return ops_view(c, s, old.id ? old : ops_new_value(c, s, spec, changed && ops_chance(&c->r, 20) ? NULL : data));
}

static void ops_change_arg(ops_case *c, npu_arg *a)
{
    int64_t *x;
    uint32_t n = a->count;
    switch (a->form) {
    case NPU_ARG_INT: a->as.i = ops_chance(&c->r, 50) ? ops_hostile_int(&c->r) : a->as.i + ops_between(&c->r, -2, 2); break;
    case NPU_ARG_BOOL: a->as.i = !a->as.i; break;
    case NPU_ARG_FLOAT: a->as.f = c->tame ? ops_sane_float(&c->r) : ops_hostile_float(&c->r); break;
    case NPU_ARG_DTYPE: a->as.i = ops_dtype(&c->r, true); break;
    case NPU_ARG_STR: a->as.str = ops_word(&c->r, true); break;
    case NPU_ARG_INTS:
        x = (int64_t *)ops_take(&c->keep, (n + 1) * sizeof *x);
        memcpy(x, a->as.ints, n * sizeof *x);
        x[ops_below(&c->r, n)] = ops_chance(&c->r, 50) ? ops_hostile_int(&c->r) : ops_between(&c->r, -2, 4);
        a->as.ints = x;
        a->count = ops_chance(&c->r, 20) ? n + 1 : n && ops_chance(&c->r, 20) ? n - 1 : n;
        break;
    default: break;
    }
}

static npu_op ops_call_vector(ops_case *c, ops_scope *s, const npu_op_def *def, const ops_vector *call)
{
    npu_arg args[CONF_MAX_ARGS];
    bool changed = ops_chance(&c->r, c->hostile ? 80 : 35);
    for (uint32_t i = 0; i < call->num_args; i++) {
        const conf_arg *from = &call->args[i];
        args[i] = from->arg;
        if (args[i].form == NPU_ARG_TENSOR) {
            args[i].as.value = ops_vector_value(c, s, &from->tensors[0], changed);
        } else if (args[i].form == NPU_ARG_TENSORS) {
            npu_value *values = (npu_value *)ops_take(&c->keep, from->num_tensors * sizeof *values);
            for (uint32_t k = 0; k < from->num_tensors; k++) {
                values[k] = ops_vector_value(c, s, &from->tensors[k], changed);
            }
            args[i].as.values = values;
        } else if (changed && ops_chance(&c->r, 15)) {
            ops_change_arg(c, &args[i]);
        }
        if (c->wide && args[i].form == NPU_ARG_INT && ops_chance(&c->r, 4)) {
            args[i] = npu_arg_tensor(args[i].name, ops_number(c, s, args[i].as.i));
        }
    }
    return ops_emit(c, s, def, args, call->num_args);
}

/* ---- child graphs ---- */

static void ops_call_any(ops_case *c, ops_scope *s);

static npu_spec ops_child_spec(ops_case *c, npu_level level, const npu_spec *outer)
{
    npu_spec scalar = npu_spec_scalar((npu_dtype)outer->dtype);
    (void)c;
    return level == NPU_LEVEL_SCALAR ? scalar : *outer;
}

/* A child of s whose inputs fit the args, some calls, and its last values as outputs. Returns its index. */
static uint32_t ops_child(ops_case *c, ops_scope *s, npu_level level, const npu_value *args, uint32_t num_args, uint32_t num_outs)
{
    ops_scope child;
    char name[24];
    uint32_t index = 0;
    memset(&child, 0, sizeof child);
    snprintf(name, sizeof name, "c%u", (unsigned)npu_graph_num_children(s->g));
    child.g = npu_graph_add_child(s->g, name, level, &index);
    child.level = level;
    child.depth = s->depth + 1;
    for (uint32_t i = 0; i < num_args; i++) {
        const npu_spec *outer = ops_spec_of(s, args[i]);
        snprintf(name, sizeof name, "a%u", (unsigned)i);
        if (outer) {
            ops_add(&child, npu_input(child.g, name, ops_child_spec(c, level, outer)));
        }
    }
    for (uint32_t n = ops_between(&c->r, 1, 4); n && child.g; n--) {
        ops_call_any(c, &child);
    }
    for (uint32_t i = 0; i < num_outs && child.num && level != NPU_LEVEL_TILE; i++) {
        npu_output(child.g, NULL, child.pool[child.num - 1 - (i + ops_below(&c->r, 2)) % child.num]);
        npu_graph_clear_error(child.g);
    }
    return index;
}

static npu_value ops_zero_offsets_store(ops_scope *child, npu_value tile, npu_value to)
{
    npu_tile_index at[NPU_MAX_RANK];
    const npu_spec *spec = npu_value_spec(child->g, to);
    memset(at, 0, sizeof at);
    return npu_block_store(child->g, tile, at, spec->dims, spec->rank, to);
}

/* A tile program: loads whole tensors, computes, stores into the last one. */
static uint32_t ops_tile_child(ops_case *c, ops_scope *s, const npu_value *args, uint32_t num_args)
{
    uint32_t index = ops_child(c, s, NPU_LEVEL_TILE, NULL, 0, 0);
    ops_scope child;
    npu_tile_index at[NPU_MAX_RANK];
    npu_value in = { 0 };
    memset(&child, 0, sizeof child);
    memset(at, 0, sizeof at);
    child.g = npu_graph_child(s->g, index);
    child.level = NPU_LEVEL_TILE;
    child.depth = s->depth + 1;
    for (uint32_t i = 0; i < num_args; i++) {
        char name[24];
        const npu_spec *spec = ops_spec_of(s, args[i]);
        snprintf(name, sizeof name, "a%u", (unsigned)i);
        npu_value none = { 0 };
        in = spec ? npu_input(child.g, name, *spec) : none;
        if (in.id) {
            ops_add(&child, npu_block_load(child.g, in, at, spec->dims, spec->rank, ops_chance(&c->r, 90) ? NPU_SPACE_UB : NPU_SPACE_L1));
        }
        npu_graph_clear_error(child.g);
    }
    for (uint32_t n = ops_between(&c->r, 0, 5); n && child.g; n--) {
        ops_call_any(c, &child);
    }
    if (in.id) {
        npu_spec tile = *npu_value_spec(child.g, in);
        tile.cls = NPU_CLASS_TILE;
        npu_value last = ops_old_value(c, &child, NPU_CLASS_TILE, &tile);
        last = last.id ? last : ops_old_value(c, &child, NPU_CLASS_TILE, NULL);
        npu_output(child.g, "y", ops_zero_offsets_store(&child, last, in));
        npu_graph_clear_error(child.g);
    }
    return index;
}

/* Maps and iterators of a loop nest over operands of the base's dims, the last `outs` of them results. */
static void ops_generic_args(ops_case *c, ops_call *call, uint32_t rank, uint32_t n)
{
    static const char *const identity[] = { "() -> ()", "(a) -> (a)", "(a, b) -> (a, b)", "(a, b, c) -> (a, b, c)", "(a, b, c, d) -> (a, b, c, d)" };
    static const char *const iterator[] = { "parallel", "reduction" };
    const char **maps = (const char **)ops_take(&c->keep, n * sizeof *maps), **iterators = (const char **)ops_take(&c->keep, rank * sizeof *iterators);
    for (uint32_t i = 0; i < n; i++) {
        maps[i] = rank < 5 && ops_chance(&c->r, 93) ? identity[rank] : ops_word(&c->r, c->hostile);
    }
    for (uint32_t i = 0; i < rank; i++) {
        iterators[i] = iterator[ops_chance(&c->r, 5)];
    }
    call->args[call->num++] = npu_arg_strs("maps", maps, n);
    call->args[call->num++] = npu_arg_strs("iterators", iterators, rank);
}

/* npu.call, npu.fused, npu.launch, linalg.generic with a body made for it. */
static void ops_call_body(ops_case *c, ops_scope *s, const npu_op_def *def)
{
    ops_call call;
    npu_spec like = npu_spec_tensor(c->dtype, c->rank, c->base);
    npu_value *args = (npu_value *)ops_take(&c->keep, 4 * sizeof *args);
    uint32_t n = ops_between(&c->r, 1, 3), outs = def->kind == NPU_LINALG_GENERIC ? 1 : 0;
    memset(&call, 0, sizeof call);
    for (uint32_t i = 0; i < n + outs; i++) {
        args[i] = ops_operand(c, s, NPU_CLASS_TENSOR, "x", ops_chance(&c->r, 85) ? &like : NULL);
    }
    uint32_t body = def->kind == NPU_NPU_LAUNCH ? ops_tile_child(c, s, args, n)
                  : ops_child(c, s, def->kind == NPU_NPU_CALL ? NPU_LEVEL_TENSOR : NPU_LEVEL_SCALAR, args, n + outs, outs ? 1 : ops_between(&c->r, 1, 2));
    call.args[call.num++] = npu_arg_tensors(def->schema->args[0].name, args, n);
    if (outs) {
        call.args[call.num++] = npu_arg_tensors("outs", args + n, outs);
        ops_generic_args(c, &call, c->rank, n + outs);
    } else if (def->kind == NPU_NPU_LAUNCH) {
        call.args[call.num++] = npu_arg_int("blocks", ops_chance(&c->r, 90) ? ops_between(&c->r, 1, 3) : ops_int(c, "blocks", NULL));
    }
    call.args[call.num++] = npu_arg_graph("body", ops_chance(&c->r, 97) ? body : ops_below(&c->r, 4));
    ops_emit(c, s, def, call.args, call.num);
}

/* Values of a body that the other one gives, too: of the same specs, else any. */
static void ops_same_outputs(ops_case *c, ops_scope *child, const npu_spec *specs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        npu_value v = ops_old_value(c, child, NPU_CLASS_TENSOR, &specs[i]);
        npu_output(child->g, NULL, v.id || !child->num ? v : child->pool[child->num - 1]);
        npu_graph_clear_error(child->g);
    }
}

/* A body with some calls whose outputs are like `specs`. */
static uint32_t ops_body_like(ops_case *c, ops_scope *s, const npu_value *args, uint32_t num_args,
                              const npu_spec *specs, uint32_t n)
{
    uint32_t index = ops_child(c, s, NPU_LEVEL_TENSOR, args, num_args, 0);
    ops_scope child;
    memset(&child, 0, sizeof child);
    child.g = npu_graph_child(s->g, index);
    for (uint32_t i = 1; child.g && i <= npu_graph_num_values(child.g); i++) {
        npu_value v = { i };
        if (ops_spec_of(&child, v)->cls == NPU_CLASS_TENSOR) {
            ops_add(&child, v);
        }
    }
    if (child.g) {
        ops_same_outputs(c, &child, specs, n);
    }
    return index;
}

/* The condition of a loop: the first value is below a number. */
static uint32_t ops_condition(ops_case *c, ops_scope *s, const npu_value *args, uint32_t num_args)
{
    uint32_t index = 0;
    int64_t most = ops_between(&c->r, 0, 4), one = 1;
    npu_graph *g = npu_graph_add_child(s->g, "while", NPU_LEVEL_TENSOR, &index);
    npu_value first = { 0 };
    for (uint32_t i = 0; i < num_args && g; i++) {
        char name[24];
        snprintf(name, sizeof name, "a%u", (unsigned)i);
        npu_value v = ops_spec_of(s, args[i]) ? npu_input(g, name, *ops_spec_of(s, args[i])) : first;
        first = i ? first : v;
    }
    if (g) {
        npu_spec number = npu_spec_tensor(NPU_I64, ops_chance(&c->r, 10), &one);
        npu_output(g, "go", npu_lt(g, first, npu_constant(g, NULL, number, &most)));
        npu_graph_clear_error(g);
    }
    return index;
}

/* npu.if on a bool, npu.while that counts. */
static void ops_call_control(ops_case *c, ops_scope *s)
{
    bool loops = ops_chance(&c->r, 50);
    npu_spec like = npu_spec_tensor(c->dtype, c->rank, c->base), specs[4];
    npu_value args[5];
    uint32_t n = ops_between(&c->r, 1, 3), bodies[2];
    npu_arg call[5];
    uint8_t yes = ops_chance(&c->r, 50);
    args[0] = loops ? ops_number(c, s, 0) : ops_new_value(c, s, npu_spec_tensor(NPU_BOOL, 0, NULL), &yes);
    for (uint32_t i = 1; i <= n; i++) {
        args[i] = ops_operand(c, s, NPU_CLASS_TENSOR, "x", ops_chance(&c->r, 85) ? &like : NULL);
    }
    for (uint32_t i = 0; i <= n; i++) {
        if (!ops_spec_of(s, args[i])) {
            npu_graph_clear_error(s->g);
            return;
        }
        specs[i] = *ops_spec_of(s, args[i]);
        specs[i].quant = NULL;
    }
    if (loops) {
        uint32_t carried = ops_between(&c->r, 1, n + 1);
        bodies[0] = ops_condition(c, s, args, n + 1);
        bodies[1] = ops_body_like(c, s, args, n + 1, specs, 0);
        ops_scope child;
        memset(&child, 0, sizeof child);
        child.g = npu_graph_child(s->g, bodies[1]);
        npu_value in = child.g ? npu_graph_input(child.g, 0) : args[0];
        npu_output(child.g, NULL, npu_add(child.g, in, npu_number(child.g, npu_scalar_int(1))));
        npu_graph_clear_error(child.g);
        for (uint32_t i = 1; child.g && i <= npu_graph_num_values(child.g); i++) {
            npu_value v = { i };
            ops_add(&child, v);
        }
        ops_same_outputs(c, &child, specs + 1, carried - 1);
        call[0] = npu_arg_tensors("carried", args, carried);
        call[1] = npu_arg_tensors("args", args + carried, n + 1 - carried);
        call[2] = npu_arg_graph("condition", bodies[0]);
        call[3] = npu_arg_graph("body", bodies[1]);
        call[4] = npu_arg_int("max_iterations", ops_chance(&c->r, 70) ? 6 : ops_between(&c->r, 1, 3));
        ops_emit(c, s, npu_registry_find_kind(c->w->registry, NPU_NPU_WHILE), call, 5);
    } else {
        bodies[0] = ops_body_like(c, s, args + 1, n, specs + 1, n);
        bodies[1] = ops_body_like(c, s, args + 1, n, specs + 1, n);
        call[0] = npu_arg_tensor("condition", args[0]);
        call[1] = npu_arg_tensors("args", args + 1, n);
        call[2] = npu_arg_graph("then_body", bodies[0]);
        call[3] = npu_arg_graph("else_body", bodies[1]);
        ops_emit(c, s, npu_registry_find_kind(c->w->registry, NPU_NPU_IF), call, 4);
    }
}

/* linalg convolutions and pools, whose destinations have the dims that the window leaves. */
static void ops_call_window(ops_case *c, ops_scope *s, const npu_op_def *def)
{
    bool is_pool = strstr(def->name, "pooling") != NULL, has_groups = strstr(def->name, "ngchw") != NULL;
    uint32_t r = strstr(def->name, "ncdhw") ? 3 : strstr(def->name, "ncw") ? 1 : 2, at = 2 + has_groups, n = 0;
    int64_t x[NPU_MAX_RANK] = { 0 }, w[NPU_MAX_RANK] = { 0 }, y[NPU_MAX_RANK] = { 0 }, window[3], stride[3], dilation[3];
    npu_arg args[6];
    for (uint32_t i = 0; i < at; i++) {
        x[i] = y[i] = w[i] = ops_between(&c->r, 1, 3);
    }
    if (has_groups) { /* x [n,g,c,..], w [g,f,c,..], y [n,g,f,..] */
        w[0] = y[1] = x[1], w[2] = x[2], y[2] = w[1];
    } else if (!is_pool) { /* x [n,c,..], w [f,c,..], y [n,f,..] */
        y[1] = w[0];
    }
    for (uint32_t i = 0; i < r; i++) {
        window[i] = ops_between(&c->r, 1, 3), stride[i] = ops_between(&c->r, 1, 2), dilation[i] = ops_between(&c->r, 1, 2);
        y[at + i] = ops_between(&c->r, ops_chance(&c->r, 95), 4);
        x[at + i] = (y[at + i] - 1) * stride[i] + (window[i] - 1) * dilation[i] + ops_between(&c->r, 1, stride[i]);
        w[at + i] = window[i];
    }
    args[n++] = npu_arg_tensor("input", ops_new_value(c, s, npu_spec_tensor(c->dtype, at + r, x), NULL));
    if (!is_pool) {
        args[n++] = npu_arg_tensor("filter", ops_new_value(c, s, npu_spec_tensor(c->dtype, at + r, w), NULL));
    }
    args[n++] = npu_arg_tensor("outs", ops_new_value(c, s, npu_spec_tensor(c->dtype, at + r, y), NULL));
    if (is_pool) {
        args[n++] = npu_arg_ints("kernel_size", window, r);
    }
    args[n++] = npu_arg_ints("strides", stride, r);
    args[n++] = npu_arg_ints("dilations", dilation, r);
    ops_emit(c, s, def, args, n);
}

/* ---- which op ---- */

static bool ops_fits_level(ops_case *c, const npu_op_def *def, npu_level level)
{
    uint32_t space = NPU_KIND_NAMESPACE(def->kind);
    if (c->hostile && ops_chance(&c->r, 2)) {
        return true;
    }
    if (level == NPU_LEVEL_TILE) {
        return space == NPU_NS_BLOCK || space == NPU_NS_SYSTEM || (space == NPU_NS_ARITH && strcmp(def->category, "integer") == 0);
    }
    return level == NPU_LEVEL_SCALAR ? space == NPU_NS_ARITH || (def->traits & NPU_ELEMENTWISE && space == NPU_NS_ATEN && ops_chance(&c->r, 15))
                                     : space != NPU_NS_BLOCK && space != NPU_NS_SYSTEM && space != NPU_NS_ARITH;
}

static const npu_op_def *ops_any_def(ops_case *c, npu_level level)
{
    static const npu_kind with_body[] = { NPU_NPU_CALL, NPU_NPU_FUSED, NPU_NPU_LAUNCH, NPU_LINALG_GENERIC };
    if (level == NPU_LEVEL_TENSOR && !c->w->only && ops_chance(&c->r, 5)) { /* many ops are in bodies only */
        return npu_registry_find_kind(c->w->registry, OPS_PICK(&c->r, with_body));
    }
    for (;;) {
        const npu_op_def *def = npu_registry_op(c->w->registry, ops_below(&c->r, c->w->num_ops));
        bool wanted = !c->w->only || level != NPU_LEVEL_TENSOR || strstr(def->name, c->w->only) || ops_chance(&c->r, 1);
        if (wanted && ops_fits_level(c, def, level)) {
            return def;
        }
    }
}

static bool ops_has_body(const npu_op_def *def)
{
    return def->kind == NPU_NPU_CALL || def->kind == NPU_NPU_FUSED || def->kind == NPU_NPU_LAUNCH || def->kind == NPU_LINALG_GENERIC;
}

/* Tries a few times, until the op is taken. */
static void ops_call_any(ops_case *c, ops_scope *s)
{
    const npu_op_def *def = ops_any_def(c, s->level);
    uint32_t at = ops_index_of(c->w, def), first = c->w->first_vector[at], n = c->w->first_vector[at + 1] - first;
    uint32_t before = c->num_ops, rank = c->rank;
    npu_dtype dtype = c->dtype;
    int64_t base[NPU_MAX_RANK];
    memcpy(base, c->base, sizeof base);
    for (int tries = c->hostile ? 2 : 8; tries && c->num_ops == before && s->num + 16 < OPS_MAX_POOL; tries--) {
        c->w->tried[at]++;
        if (s->level == NPU_LEVEL_TENSOR && ops_chance(&c->r, 25)) { /* another rank may suit the op better */
            ops_base(c);
        }
        if (ops_has_body(def) && s->level == NPU_LEVEL_TENSOR && s->depth < OPS_MAX_DEPTH && ops_chance(&c->r, 90)) {
            ops_call_body(c, s, def);
            break;
        }
        if (ops_chance(&c->r, 70) && (strstr(def->name, "linalg.conv_") || strstr(def->name, "linalg.pooling_"))) {
            ops_call_window(c, s, def);
        } else if (n && s->level == NPU_LEVEL_TENSOR && !s->depth && ops_chance(&c->r, 65)) {
            ops_call_vector(c, s, def, &c->w->vectors[first + ops_below(&c->r, n)]);
        } else {
            ops_call_schema(c, s, def);
        }
    }
    c->rank = rank;
    c->dtype = dtype;
    memcpy(c->base, base, sizeof base);
}

/* Shapes that passes look for: chains and diamonds of one value. */
static void ops_call_chain(ops_case *c, ops_scope *s)
{
    npu_value none = { 0 }, x = ops_operand(c, s, NPU_CLASS_TENSOR, "x", NULL), y = none, two[2];
    int64_t rest = -1;
    npu_graph *g = s->g;
    two[0] = two[1] = x;
    switch (ops_below(&c->r, 11)) {
    case 0: y = npu_relu(g, x); break;
    case 1: y = npu_add(g, x, ops_operand(c, s, NPU_CLASS_TENSOR, "x", ops_spec_of(s, x))); break;
    case 2: y = npu_mul(g, npu_silu(g, x), x); break;
    case 3: y = npu_softmax(g, x, -1); break;
    case 4: y = npu_reshape(g, x, &rest, 1); break;
    case 5: y = npu_matmul(g, x, npu_transpose(g, x, -1, -2)); break;
    case 6: y = npu_cat(g, two, 2, 0); break;
    case 7: y = npu_to(g, npu_to(g, x, ops_dtype(&c->r, c->hostile)), ops_dtype(&c->r, c->hostile)); break;
    case 8: y = npu_clone(g, npu_transpose(g, x, 0, -1)); break;
    case 9: y = npu_aicf_relu(g, npu_aicf_bias_add(g, npu_aicf_gemm(g, x, x, NULL), ops_operand(c, s, NPU_CLASS_TENSOR, "b", NULL))); break;
    default: y = npu_sub(g, npu_exp(g, x), npu_mean(g, x, NULL, 0, false)); break;
    }
    npu_graph_clear_error(g);
    if (npu_value_producer(g, y, NULL).id) {
        ops_took(c, s, npu_value_producer(g, y, NULL));
    }
}

/* ---- the whole graph ---- */

static void ops_make_outputs(ops_case *c, ops_scope *s)
{
    uint32_t outs = 0;
    for (uint32_t i = s->num; i-- > 0 && outs < 32;) {
        npu_value v = s->pool[i];
        bool is_made = npu_value_producer(s->g, v, NULL).id != 0, unused = npu_value_num_users(s->g, v) == 0;
        char name[24];
        snprintf(name, sizeof name, "o%u", (unsigned)outs);
        if ((is_made && (unused || ops_chance(&c->r, 15))) || ops_chance(&c->r, 1)) {
            outs += npu_output(s->g, ops_name(c, name), v) == NPU_OK;
            npu_graph_clear_error(s->g);
        }
    }
}

static void ops_make_updates(ops_case *c, ops_scope *s)
{
    uint32_t n = s->num;
    for (uint32_t i = 0; i < n; i++) {
        npu_value v = s->pool[i];
        if (npu_value_role(s->g, v) == NPU_ROLE_STATE && ops_chance(&c->r, 80)) {
            npu_update(s->g, v, ops_chance(&c->r, 90) ? ops_old_value(c, s, NPU_CLASS_TENSOR, ops_spec_of(s, v)) : s->pool[ops_below(&c->r, n)]);
            npu_graph_clear_error(s->g);
        }
    }
}

static void ops_call_fit(ops_case *c, ops_scope *s);

/* Builds c->g from the seed; false where memory ran out. */
static bool ops_make(ops_case *c, ops_world *w, uint64_t seed)
{
    npu_graph_desc desc;
    ops_scope s;
    memset(c, 0, sizeof *c);
    memset(&desc, 0, sizeof desc);
    memset(&s, 0, sizeof s);
    c->w = w;
    c->r.state = seed * 0x2545f4914f6cdd1du + 99;
    c->wide = seed >= OPS_WIDE;
    c->deep = seed >= OPS_DEEP;
    c->fits = seed >= OPS_FIT;
    c->hostile = ops_chance(&c->r, 25);
    c->tame = !c->hostile && ops_chance(&c->r, 60);
    c->symbolic = ops_chance(&c->r, 15);
    ops_base(c);
    c->dtype = c->deep && ops_chance(&c->r, 6) ? NPU_C64 : c->dtype;
    desc.registry = w->registry;
    desc.allocator = &w->allocator;
    s.g = c->g = npu_graph_create(&desc);
    uint32_t n = ops_chance(&c->r, 40) ? 1 : ops_between(&c->r, 2, ops_chance(&c->r, 80) ? 5 : 12);
    for (uint32_t i = 0; i < n && c->g; i++) {
        if (c->fits && ops_chance(&c->r, 30)) {
            ops_call_fit(c, &s);
        } else if (c->deep && ops_chance(&c->r, 8)) {
            ops_call_control(c, &s);
        } else if (ops_chance(&c->r, n > 1 && !w->only ? 20 : 0)) {
            ops_call_chain(c, &s);
        } else {
            ops_call_any(c, &s);
        }
    }
    ops_make_updates(c, &s);
    ops_make_outputs(c, &s);
    return c->g != NULL;
}

#endif
