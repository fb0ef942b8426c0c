/* npu_npy.h - NumPy's .npy files, versions 1 to 3, to and from npu_array. Functions are static: include it where it is used.

       npu_array x;
       void *own = NULL;
       npu_npy_read(&file, &x, &own, &diag);     // x.data lies in the file, or in own: free(own) at the end
       npu_npy_print(&x, &text);                 // npu_text_save writes it */
#ifndef NPU_NPY_H
#define NPU_NPY_H

#include "../../npu_ir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct npu_npy_dtype { char name[4]; npu_dtype dtype; } npu_npy_dtypes[] = {
    { "b1", NPU_BOOL }, { "i1", NPU_I8 }, { "i2", NPU_I16 }, { "i4", NPU_I32 }, { "i8", NPU_I64 }, { "u1", NPU_U8 },
    { "u2", NPU_U16 }, { "u4", NPU_U32 }, { "u8", NPU_U64 }, { "f2", NPU_F16 }, { "f4", NPU_F32 }, { "f8", NPU_F64 },
    { "c8", NPU_C64 }, { "c16", NPU_C128 }
};

typedef struct npu_npy_reader {
    const npu_bytes *file;
    const char *at, *end; /* of the header that is left */
    npu_diag *diag;
} npu_npy_reader;

static inline npu_status npu_npy_fail(npu_npy_reader *r, npu_status status, const char *words)
{
    if (r->diag) {
        memset(r->diag, 0, sizeof *r->diag);
        r->diag->status = status;
        const char *name = r->file->name ? r->file->name : "npy";
        snprintf(r->diag->message, sizeof r->diag->message, "%.80s%sbyte %llu: %s", name, name[0] ? ", " : "",
                 (unsigned long long)(r->file->data ? r->at - (const char *)r->file->data : 0), words);
    }
    return status;
}

/* Blanks, then the text; false = something else stands there. */
static inline bool npu_npy_accept(npu_npy_reader *r, const char *text)
{
    size_t len = strlen(text);
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n')) {
        r->at++;
    }
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

/* "(2, 3)", "(2,)", "()" */
static inline npu_status npu_npy_shape(npu_npy_reader *r, npu_spec *spec)
{
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank = 0;
    if (!npu_npy_accept(r, "(")) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "expected a shape in brackets");
    }
    while (!npu_npy_accept(r, ")")) {
        int64_t size = 0;
        const char *begin = r->at;
        if (rank == NPU_MAX_RANK) {
            return npu_npy_fail(r, NPU_ERR_RANK, "more dims than are possible");
        }
        for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
            if (size > (INT64_MAX - 9) / 10) {
                return npu_npy_fail(r, NPU_ERR_OVERFLOW, "a size does not fit");
            }
            size = size * 10 + (*r->at - '0');
        }
        if (r->at == begin || (!npu_npy_accept(r, ",") && r->at < r->end && *r->at != ')')) {
            return npu_npy_fail(r, NPU_ERR_PARSE, "expected a size");
        }
        dims[rank++] = size;
    }
    *spec = npu_spec_tensor((npu_dtype)spec->dtype, rank, dims);
    return NPU_OK;
}

/* '<f4': the order, '|' where there is none, and the type. */
static inline npu_status npu_npy_descr(npu_npy_reader *r, npu_spec *spec, bool *is_big)
{
    if (!npu_npy_accept(r, "'") || r->at == r->end || !strchr("<>|=", *r->at)) {
        return npu_npy_fail(r, NPU_ERR_UNSUPPORTED, "expected a plain dtype, such as '<f4'");
    }
    *is_big = *r->at++ == '>';
    for (size_t i = 0; i < sizeof npu_npy_dtypes / sizeof npu_npy_dtypes[0]; i++) {
        if (npu_npy_accept(r, npu_npy_dtypes[i].name)) {
            *spec = npu_spec_tensor(npu_npy_dtypes[i].dtype, 0, NULL);
            return npu_npy_accept(r, "'") ? NPU_OK : npu_npy_fail(r, NPU_ERR_UNSUPPORTED, "no dtype of this library");
        }
    }
    return npu_npy_fail(r, NPU_ERR_UNSUPPORTED, "no dtype of this library");
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: NumPy writes the keys in this order. */
static inline npu_status npu_npy_header(npu_npy_reader *r, npu_spec *spec, bool *is_big)
{
    npu_status status;
    if (!npu_npy_accept(r, "{") || !npu_npy_accept(r, "'descr':")) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "expected {'descr':");
    }
    status = npu_npy_descr(r, spec, is_big);
    if (status) {
        return status;
    }
    if (!npu_npy_accept(r, ",") || !npu_npy_accept(r, "'fortran_order':")) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "expected 'fortran_order':");
    }
    if (npu_npy_accept(r, "True")) {
        return npu_npy_fail(r, NPU_ERR_UNSUPPORTED, "the elements lie column by column; save numpy.ascontiguousarray(x)");
    }
    if (!npu_npy_accept(r, "False") || !npu_npy_accept(r, ",") || !npu_npy_accept(r, "'shape':")) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "expected False and 'shape':");
    }
    status = npu_npy_shape(r, spec);
    npu_npy_accept(r, ",");
    return status || npu_npy_accept(r, "}") ? status : npu_npy_fail(r, NPU_ERR_PARSE, "expected }");
}

/* Turns elements of so many bytes round. */
static inline void npu_npy_swap(uint8_t *out, const uint8_t *in, size_t size, uint32_t bytes)
{
    for (size_t i = 0; i + bytes <= size; i += bytes) {
        for (uint32_t k = 0; k < bytes; k++) {
            out[i + k] = in[i + bytes - 1 - k];
        }
    }
}

/* Bytes that have an order: those of an element, or half of a complex one. */
static inline uint32_t npu_npy_element(const npu_spec *spec)
{
    uint32_t bytes = npu_dtype_bits((npu_dtype)spec->dtype) / 8;
    return npu_dtype_is_complex((npu_dtype)spec->dtype) ? bytes / 2 : bytes;
}

static inline bool npu_npy_host_is_big(void)
{
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 0;
}

/* What stands in front of the data, *head bytes, and how many bytes of data there should be. *head is more than the file
   where that ends before them, and 0 where it is none. */
static inline npu_status npu_npy_open(npu_npy_reader *r, npu_spec *spec, bool *is_big, size_t *head, size_t *size)
{
    const uint8_t *data = (const uint8_t *)r->file->data;
    size_t start, len;
    npu_status status;
    *head = *size = 0;
    r->at = r->end = (const char *)data;
    if (!data || r->file->size < 10 || memcmp(data, "\x93NUMPY", 6) != 0) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "this is no .npy file");
    }
    if (data[6] < 1 || data[6] > 3) {
        return npu_npy_fail(r, NPU_ERR_VERSION, "a version that is not known: 1 to 3 are");
    }
    start = data[6] == 1 ? 10 : 12;
    len = data[8] + 256u * (size_t)data[9];
    if (start == 12 && r->file->size >= 12) {
        len += 65536u * (size_t)data[10] + ((size_t)data[11] << 24);
    }
    *head = len < SIZE_MAX - start ? start + len : SIZE_MAX;
    if (r->file->size < *head) {
        return npu_npy_fail(r, NPU_ERR_PARSE, "the file ends within its header");
    }
    r->at = (const char *)data + start;
    r->end = r->at + len;
    status = npu_npy_header(r, spec, is_big);
    status = status ? status : npu_spec_size(spec, size);
    return status == NPU_ERR_OVERFLOW ? npu_npy_fail(r, status, "a size does not fit") : status;
}

/* Bytes of a file that begins so, for npu_map_open_most; SIZE_MAX = not known yet, 0 = it is none. */
static inline size_t npu_npy_most(const void *data, size_t size)
{
    enum { MOST_OF_HEAD = 1 << 20 };
    const npu_bytes file = { NULL, data, size };
    npu_npy_reader r;
    npu_spec spec;
    bool is_big = false;
    size_t head, bytes;
    r.file = &file;
    r.diag = NULL;
    if (npu_npy_open(&r, &spec, &is_big, &head, &bytes) == NPU_OK) {
        return bytes < SIZE_MAX - head ? head + bytes : SIZE_MAX - 1;
    }
    return size < 12 || (head > size && head <= MOST_OF_HEAD) ? SIZE_MAX : 0;
}

/* out->data lies in the file where that has the host's order and place; else in *own, which is for free(). Errors: PARSE
   (no .npy, truncated), VERSION, UNSUPPORTED (dtype, order of the elements), RANK, OVERFLOW, SHAPE (data of another size),
   NO_MEMORY. diag says the byte. */
static inline npu_status npu_npy_read(const npu_bytes *file, npu_array *out, void **own, npu_diag *diag)
{
    npu_npy_reader r;
    const uint8_t *data;
    size_t head, size;
    bool is_big = false;
    npu_status status;
    r.file = file;
    r.diag = diag;
    *own = NULL;
    status = npu_npy_open(&r, &out->spec, &is_big, &head, &size);
    if (status) {
        return status;
    }
    data = (const uint8_t *)file->data + head;
    if (size != file->size - head) {
        return npu_npy_fail(&r, NPU_ERR_SHAPE, "the data is not of the size that shape and dtype say");
    }
    out->data = data;
    if ((is_big != npu_npy_host_is_big() && npu_npy_element(&out->spec) > 1) || (uintptr_t)data % npu_npy_element(&out->spec)) {
        *own = malloc(size ? size : 1);
        if (!*own) {
            return npu_npy_fail(&r, NPU_ERR_NO_MEMORY, "out of memory");
        }
        if (is_big != npu_npy_host_is_big()) {
            npu_npy_swap((uint8_t *)*own, data, size, npu_npy_element(&out->spec));
        } else {
            memcpy(*own, data, size);
        }
        out->data = *own;
    }
    return NPU_OK;
}

/* Appends the file, in the host's order. Errors: DTYPE (NumPy has none like it), DYNAMIC_SHAPE, OVERFLOW, NO_MEMORY. */
static inline npu_status npu_npy_print(const npu_array *x, npu_text *text)
{
    const char *name = NULL;
    char header[256];
    size_t size = 0, len;
    npu_status status = npu_spec_size(&x->spec, &size);
    for (size_t i = 0; i < sizeof npu_npy_dtypes / sizeof npu_npy_dtypes[0]; i++) {
        name = npu_npy_dtypes[i].dtype == x->spec.dtype ? npu_npy_dtypes[i].name : name;
    }
    if (status || !name) {
        return status ? status : NPU_ERR_DTYPE;
    }
    len = (size_t)snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                           npu_npy_element(&x->spec) == 1 ? '|' : npu_npy_host_is_big() ? '>' : '<', name);
    for (uint32_t i = 0; i < x->spec.rank; i++) {
        len += (size_t)snprintf(header + len, sizeof header - len, "%lld,%s", (long long)x->spec.dims[i],
                                i + 1 < x->spec.rank ? " " : "");
    }
    len += (size_t)snprintf(header + len, sizeof header - len, "), }");
    for (; (len + 11) % 64; len++) {
        header[len] = ' ';
    }
    header[len++] = '\n';
    npu_text_append(text, "\x93NUMPY\1\0", 8);
    npu_text_printf(text, "%c%c", (int)(len % 256), (int)(len / 256));
    npu_text_append(text, header, len);
    npu_text_append(text, (const char *)x->data, size);
    return text->status;
}

#endif
