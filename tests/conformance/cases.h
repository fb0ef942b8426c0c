/* cases.h - reads .cases and .bin files of ATen test vectors, and compares results with them. A file that is not as it should
   be gives an error that names the line, never a crash. */
#ifndef CONF_CASES_H
#define CONF_CASES_H

#include "../../npu_ir.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONF_MAX_ARGS 40
#define CONF_MAX_OUTS 256
#define CONF_MAX_LIST 4096

typedef struct conf_tensor {
    bool absent;
    npu_dtype dtype;
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK];
    const void *data; /* in the byte order of the host */
    size_t size;      /* bytes */
} conf_tensor;

typedef struct conf_arg {
    npu_arg arg; /* complete but for the values of tensors */
    conf_tensor *tensors;
    uint32_t num_tensors;
} conf_arg;

typedef enum conf_form { CONF_OUT_TENSOR, CONF_OUT_NONE, CONF_OUT_SKIP, CONF_OUT_META } conf_form;
typedef struct conf_out {
    conf_form form;
    conf_tensor tensor; /* a number is a tensor without dims */
} conf_out;

typedef struct conf_block {
    struct conf_block *next;
    union { long double alignment; void *pointer; int64_t integer; } data;
} conf_block;

typedef struct conf_case {
    char label[160];
    conf_arg args[CONF_MAX_ARGS];
    uint32_t num_args;
    conf_out outs[CONF_MAX_OUTS];
    uint32_t num_outs;
    double rtol, atol;
    conf_block *blocks; /* freed with the case */
} conf_case;

typedef struct conf_file {
    char *text, *line; /* line: the rest of the current line, cut at its end */
    char *next;        /* begin of the next line */
    char *bin;
    size_t bin_size;
    int line_number;
    char error[200];   /* empty = none */
} conf_file;

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* realloc that ends the program when memory is out. */
static inline void *conf_grow(void *p, size_t size)
{
    p = realloc(p, size ? size : 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return p;
}

static inline char *conf_copy(const char *text, size_t len)
{
    char *p = (char *)conf_grow(NULL, len + 1);
    memcpy(p, text, len);
    p[len] = 0;
    return p;
}

/* Zeroed memory that lives as long as the case. */
static inline void *conf_keep(conf_case *c, size_t size)
{
    conf_block *block = (conf_block *)conf_grow(NULL, sizeof *block + size);
    block->next = c->blocks;
    c->blocks = block;
    memset(&block->data, 0, sizeof block->data + size);
    return &block->data;
}

static inline void conf_free(conf_case *c)
{
    while (c->blocks) {
        conf_block *next = c->blocks->next;
        free(c->blocks);
        c->blocks = next;
    }
}

/* ---- lines and words --------------------------------------------------------------------------------------- */

/* Keeps the first error; always false. */
static inline bool conf_fail(conf_file *f, const char *what)
{
    if (!f->error[0]) {
        snprintf(f->error, sizeof f->error, "line %d: %s", f->line_number, what);
    }
    return false;
}

static inline bool conf_line(conf_file *f)
{
    if (!f->next || !*f->next) {
        return false;
    }
    char *end = strchr(f->next, '\n');
    f->line = f->next;
    f->next = end ? end + 1 : NULL;
    f->line_number++;
    if (end) {
        *end = 0;
    }
    return true;
}

/* The next word of the line, "" at its end. */
static inline char *conf_word(conf_file *f)
{
    char *word = f->line, *end = strchr(word, ' ');
    f->line = end ? end + 1 : word + strlen(word);
    if (end) {
        *end = 0;
    }
    return word;
}

static inline bool conf_int(conf_file *f, int64_t *out)
{
    char *word = conf_word(f), *end;
    errno = 0;
    *out = strtoll(word, &end, 10);
    return (*word && !*end && !errno) || conf_fail(f, "an integer was expected");
}

static inline bool conf_number(conf_file *f, double *out)
{
    char *word = conf_word(f), *end;
    *out = strtod(word, &end);
    return (*word && !*end) || conf_fail(f, "a number was expected");
}

static inline bool conf_count(conf_file *f, uint32_t *out, int64_t limit)
{
    int64_t n = 0;
    if (!conf_int(f, &n) || n < 0 || n > limit) {
        return conf_fail(f, "a count was expected");
    }
    *out = (uint32_t)n;
    return true;
}

/* ---- values ------------------------------------------------------------------------------------------------ */

static inline bool conf_is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 1;
}

static inline const void *conf_to_host(conf_case *c, const void *data, size_t size, uint32_t width)
{
    if (conf_is_little_endian() || width == 1) {
        return data;
    }
    uint8_t *swapped = (uint8_t *)conf_keep(c, size);
    for (size_t i = 0; i < size; i++) {
        swapped[i] = ((const uint8_t *)data)[i / width * width + (width - 1 - i % width)];
    }
    return swapped;
}

/* "f32 2 3 4" */
static inline bool conf_spec(conf_file *f, conf_tensor *t)
{
    npu_spec spec;
    t->dtype = npu_dtype_parse(conf_word(f));
    if (t->dtype == NPU_NONE || !conf_count(f, &t->rank, NPU_MAX_RANK)) {
        return conf_fail(f, "a dtype and a rank up to 8 were expected");
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!conf_int(f, &t->dims[i]) || t->dims[i] < 0) {
            return conf_fail(f, "a dim was expected");
        }
    }
    spec = npu_spec_tensor(t->dtype, t->rank, t->dims);
    return npu_spec_size(&spec, &t->size) == NPU_OK || conf_fail(f, "the tensor is too large");
}

/* "f32 2 3 4 @128" */
static inline bool conf_tensor_at(conf_file *f, conf_case *c, conf_tensor *t)
{
    int64_t offset = 0;
    if (!conf_spec(f, t)) {
        return false;
    }
    if (*f->line++ != '@') {
        f->line--;
        return conf_fail(f, "@ and an offset were expected");
    }
    if (!conf_int(f, &offset) || offset < 0 || (uint64_t)offset > f->bin_size || t->size > f->bin_size - (size_t)offset) {
        return conf_fail(f, "the tensor lies outside the .bin file");
    }
    t->data = conf_to_host(c, f->bin + offset, t->size, npu_dtype_bits(t->dtype) / 8 / (npu_dtype_is_complex(t->dtype) ? 2 : 1));
    return true;
}

/* N lines "item tensor ..." or "item none". */
static inline bool conf_items(conf_file *f, conf_case *c, conf_tensor *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!conf_line(f) || strcmp(conf_word(f), "item") != 0) {
            return conf_fail(f, "an item was expected");
        }
        const char *form = conf_word(f);
        items[i].absent = strcmp(form, "none") == 0;
        if (!items[i].absent && (strcmp(form, "tensor") != 0 || !conf_tensor_at(f, c, &items[i]))) {
            return conf_fail(f, "a tensor was expected");
        }
    }
    return true;
}

static inline bool conf_string(conf_file *f, conf_case *c, npu_arg *arg, const char *name)
{
    char *text = (char *)conf_keep(c, strlen(f->line) + 1), *to = text, *last = strrchr(f->line, '"');
    if (f->line[0] != '"' || last == f->line) {
        return conf_fail(f, "a string was expected");
    }
    for (const char *from = f->line + 1; from < last; from++) {
        from += *from == '\\' && from + 1 < last;
        *to++ = *from;
    }
    *arg = npu_arg_str(name, text);
    return true;
}

/* "ints", "floats" or "bools": N numbers. */
static inline bool conf_list(conf_file *f, conf_case *c, npu_arg *arg, const char *name, const char *form)
{
    uint32_t n = 0;
    if (!conf_count(f, &n, CONF_MAX_LIST)) {
        return false;
    }
    int64_t *ints = (int64_t *)conf_keep(c, n * sizeof *ints);
    double *floats = (double *)conf_keep(c, n * sizeof *floats);
    bool *bools = (bool *)conf_keep(c, n * sizeof *bools);
    for (uint32_t i = 0; i < n; i++) {
        if (form[0] == 'f' ? !conf_number(f, &floats[i]) : !conf_int(f, &ints[i])) {
            return false;
        }
        bools[i] = ints[i] != 0;
    }
    *arg = form[0] == 'f' ? npu_arg_floats(name, floats, n)
         : form[0] == 'i' ? npu_arg_ints(name, ints, n) : npu_arg_bools(name, bools, n);
    return true;
}

static inline bool conf_scalar(conf_file *f, npu_arg *arg, const char *name, const char *form)
{
    int64_t i = 0;
    double x = 0;
    if (strcmp(form, "float") == 0) {
        *arg = npu_arg_float(name, 0);
        if (!conf_number(f, &x)) {
            return false;
        }
        arg->as.f = x;
        return true;
    }
    *arg = form[0] == 'b' ? npu_arg_bool(name, false) : npu_arg_int(name, 0);
    if (!conf_int(f, &i)) {
        return false;
    }
    arg->as.i = i;
    return true;
}

static inline bool conf_tensors(conf_file *f, conf_case *c, conf_arg *a, const char *name, bool is_list)
{
    a->num_tensors = 1;
    if (is_list && !conf_count(f, &a->num_tensors, CONF_MAX_LIST)) {
        return false;
    }
    a->arg = npu_arg_none(name);
    a->arg.form = is_list ? NPU_ARG_TENSORS : NPU_ARG_TENSOR;
    a->arg.count = is_list ? a->num_tensors : 0;
    a->tensors = (conf_tensor *)conf_keep(c, a->num_tensors * sizeof *a->tensors);
    return is_list ? conf_items(f, c, a->tensors, a->num_tensors) : conf_tensor_at(f, c, a->tensors);
}

static inline bool conf_is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static inline bool conf_read_arg(conf_file *f, conf_case *c)
{
    if (c->num_args == CONF_MAX_ARGS) {
        return conf_fail(f, "too many arguments");
    }
    conf_arg *a = &c->args[c->num_args++];
    const char *word = conf_word(f);
    char *name = (char *)conf_keep(c, strlen(word) + 1);
    strcpy(name, word);
    const char *form = conf_word(f);
    if (conf_is_one_of(form, "tensor", "tensors", "tensors")) {
        return conf_tensors(f, c, a, name, form[6] == 's');
    }
    if (conf_is_one_of(form, "ints", "floats", "bools")) {
        return conf_list(f, c, &a->arg, name, form);
    }
    if (conf_is_one_of(form, "int", "float", "bool")) {
        return conf_scalar(f, &a->arg, name, form);
    }
    if (strcmp(form, "str") == 0) {
        return conf_string(f, c, &a->arg, name);
    }
    if (strcmp(form, "dtype") == 0) {
        a->arg = npu_arg_dtype(name, npu_dtype_parse(conf_word(f)));
        return a->arg.as.i != NPU_NONE || conf_fail(f, "a dtype was expected");
    }
    a->arg = npu_arg_none(name);
    return strcmp(form, "none") == 0 || conf_fail(f, "unknown form of argument");
}

/* A number as a result: a tensor of one element without dims. */
static inline bool conf_read_number(conf_file *f, conf_case *c, conf_tensor *t, const char *form)
{
    int64_t i = 0;
    double x = 0;
    uint8_t *data = (uint8_t *)conf_keep(c, 8);
    bool is_float = strcmp(form, "float") == 0, is_bool = strcmp(form, "bool") == 0;
    if (is_float ? !conf_number(f, &x) : !conf_int(f, &i)) {
        return false;
    }
    t->dtype = is_float ? NPU_F64 : is_bool ? NPU_BOOL : NPU_I64;
    t->size = is_bool ? 1 : 8;
    t->data = data;
    if (is_float) {
        memcpy(data, &x, 8);
    } else if (is_bool) {
        data[0] = i != 0;
    } else {
        memcpy(data, &i, 8);
    }
    return true;
}

static inline bool conf_read_out(conf_file *f, conf_case *c)
{
    int64_t index = -1;
    if (!conf_int(f, &index) || index != (int64_t)c->num_outs || index >= CONF_MAX_OUTS) {
        return conf_fail(f, "results must be numbered from 0");
    }
    conf_out *out = &c->outs[c->num_outs++];
    const char *form = conf_word(f);
    if (strcmp(form, "tensor") == 0) {
        return conf_tensor_at(f, c, &out->tensor);
    }
    if (conf_is_one_of(form, "int", "float", "bool")) {
        return conf_read_number(f, c, &out->tensor, form);
    }
    if (strcmp(form, "meta") == 0) {
        out->form = CONF_OUT_META;
        return conf_spec(f, &out->tensor);
    }
    out->form = strcmp(form, "none") == 0 ? CONF_OUT_NONE : CONF_OUT_SKIP;
    return conf_is_one_of(form, "none", "skip", "skip") || conf_fail(f, "unknown form of result");
}

/* A list of results, which may follow single ones. */
static inline bool conf_read_outs(conf_file *f, conf_case *c)
{
    uint32_t n = 0;
    if (!conf_count(f, &n, CONF_MAX_OUTS - c->num_outs)) {
        return false;
    }
    conf_tensor *items = (conf_tensor *)conf_keep(c, n * sizeof *items);
    if (!conf_items(f, c, items, n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        conf_out *out = &c->outs[c->num_outs++];
        out->form = items[i].absent ? CONF_OUT_NONE : CONF_OUT_TENSOR;
        out->tensor = items[i];
    }
    return true;
}

/* ---- cases ------------------------------------------------------------------------------------------------- */

static inline bool conf_read_case(conf_file *f, conf_case *c)
{
    while (conf_line(f)) {
        const char *keyword = conf_word(f);
        bool ok = strcmp(keyword, "arg") == 0    ? conf_read_arg(f, c)
                  : strcmp(keyword, "out") == 0  ? conf_read_out(f, c)
                  : strcmp(keyword, "outs") == 0 ? conf_read_outs(f, c)
                  : strcmp(keyword, "tol") == 0  ? conf_number(f, &c->rtol) && conf_number(f, &c->atol)
                  : strcmp(keyword, "end") == 0  ? true : conf_fail(f, "unknown keyword");
        if (!ok || strcmp(keyword, "end") == 0) {
            return ok;
        }
    }
    return conf_fail(f, "the last case has no end");
}

/* False at the end of the file and at an error. The case must be freed with conf_free. */
static inline bool conf_next(conf_file *f, conf_case *c)
{
    memset(c, 0, sizeof *c);
    if (f->error[0] || !conf_line(f)) {
        return false;
    }
    if (strcmp(conf_word(f), "case") != 0) {
        return conf_fail(f, "a case was expected");
    }
    snprintf(c->label, sizeof c->label, "case %s", f->line);
    if (!conf_read_case(f, c)) {
        conf_free(c);
        return false;
    }
    return true;
}

static inline char *conf_slurp(const char *directory, const char *op, const char *end, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.%s", directory, op, end);
    FILE *file = fopen(path, "rb");
    char *data = (char *)conf_grow(NULL, 65537);
    size_t n = 0, capacity = 65536, got;
    *size = 0;
    if (!file) {
        free(data);
        return NULL;
    }
    while ((got = fread(data + n, 1, capacity - n, file)) > 0) {
        n += got;
        if (n == capacity) {
            capacity *= 2;
            data = (char *)conf_grow(data, capacity + 1);
        }
    }
    fclose(file);
    data[n] = 0;
    *size = n;
    return data;
}

static inline bool conf_header(conf_file *f, const char *op)
{
    if (!conf_line(f) || strcmp(f->line, "npu-cases 1") != 0) {
        return conf_fail(f, "\"npu-cases 1\" was expected");
    }
    if (!conf_line(f) || strcmp(conf_word(f), "op") != 0 || strcmp(f->line, op) != 0) {
        return conf_fail(f, "the op of the file's name was expected");
    }
    if (!conf_line(f) || strcmp(conf_word(f), "schema") != 0) {
        return conf_fail(f, "a schema was expected");
    }
    return true;
}

static inline bool conf_open(conf_file *f, const char *directory, const char *op)
{
    size_t size = 0;
    memset(f, 0, sizeof *f);
    f->text = f->next = conf_slurp(directory, op, "cases", &size);
    f->bin = conf_slurp(directory, op, "bin", &f->bin_size);
    if (!f->text || !f->bin) {
        return conf_fail(f, "the .cases or the .bin file cannot be read");
    }
    return conf_header(f, op);
}

static inline void conf_close(conf_file *f)
{
    free(f->text);
    free(f->bin);
}

/* ---- comparing --------------------------------------------------------------------------------------------- */

static inline double conf_float(npu_dtype dtype, const void *data, size_t i)
{
    const uint8_t *p = (const uint8_t *)data + i * (npu_dtype_bits(dtype) / 8);
    uint16_t half;
    float single;
    double x;
    switch (dtype) {
    case NPU_F64: memcpy(&x, p, 8); return x;
    case NPU_F32: memcpy(&single, p, 4); return (double)single;
    case NPU_F16: memcpy(&half, p, 2); return (double)npu_f16_to_f32(half);
    case NPU_BF16: memcpy(&half, p, 2); return (double)npu_bf16_to_f32(half);
    default: return (double)NAN;
    }
}

static inline bool conf_is_near(double got, double expected, double rtol, double atol)
{
    if (isnan(got) || isnan(expected)) {
        return isnan(got) && isnan(expected);
    }
    if (isinf(got) || isinf(expected)) {
        return got == expected;
    }
    return fabs(got - expected) <= atol + rtol * fabs(expected);
}

/* What one number is: that of a part of a complex one. */
static inline npu_dtype conf_number_dtype(npu_dtype dtype)
{
    return dtype == NPU_C64 ? NPU_F32 : dtype == NPU_C128 ? NPU_F64 : dtype;
}

/* Of complex numbers the modulus of the difference counts, beside that of the expected one; parts that are not finite are
   compared alone. i is the index of the real part. */
static inline bool conf_is_near_complex(npu_dtype part, const void *got, const void *expected, size_t i, double rtol, double atol)
{
    double a = conf_float(part, got, i), b = conf_float(part, got, i + 1), x = conf_float(part, expected, i),
           y = conf_float(part, expected, i + 1);
    if (isfinite(x) && isfinite(y)) {
        return hypot(a - x, b - y) <= atol + rtol * hypot(x, y);
    }
    return conf_is_near(a, x, rtol, atol) && conf_is_near(b, y, rtol, atol);
}

/* Index of the first wrong number, SIZE_MAX when all are right. */
static inline size_t conf_compare(const conf_tensor *expected, const void *got, double rtol, double atol)
{
    npu_dtype dtype = conf_number_dtype(expected->dtype);
    bool is_complex = dtype != expected->dtype;
    size_t width = npu_dtype_bits(dtype) / 8, n = expected->size / width;
    for (size_t i = 0; i < n; i += is_complex ? 2 : 1) {
        bool same = is_complex ? conf_is_near_complex(dtype, got, expected->data, i, rtol, atol)
                    : npu_dtype_is_float(dtype)
                        ? conf_is_near(conf_float(dtype, got, i), conf_float(dtype, expected->data, i), rtol, atol)
                        : memcmp((const uint8_t *)got + i * width, (const uint8_t *)expected->data + i * width, width) == 0;
        if (!same) {
            return i;
        }
    }
    return SIZE_MAX;
}

static inline void conf_element_text(npu_dtype dtype, const void *data, size_t i, char *text, size_t size)
{
    dtype = conf_number_dtype(dtype);
    const uint8_t *p = (const uint8_t *)data + i * (npu_dtype_bits(dtype) / 8);
    int16_t i16;
    int32_t i32;
    int64_t i64;
    if (npu_dtype_is_float(dtype)) {
        double x = conf_float(dtype, data, i);
        snprintf(text, size, "%.9g", isnan(x) ? (double)NAN : x); /* the sign of NaN says nothing */
        return;
    }
    switch (npu_dtype_bits(dtype)) {
    case 16: memcpy(&i16, p, 2); i64 = i16; break;
    case 32: memcpy(&i32, p, 4); i64 = i32; break;
    case 64: memcpy(&i64, p, 8); break;
    default: i64 = dtype == NPU_I8 ? (int8_t)*p : *p; break;
    }
    snprintf(text, size, "%lld", (long long)i64);
}

#endif
