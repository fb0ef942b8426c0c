/* buffers.h - the slots of a backend by hand, for tests: alloc, upload, download and copy with their usual arguments. */
#ifndef NPU_BUFFERS_H
#define NPU_BUFFERS_H

#include "npu_test.h"

static inline npu_status buffer_alloc(const npu_backend *b, uint32_t region, uint64_t bytes, npu_buffer *out)
{
    npu_allocation a = { .size = sizeof a, .region = region, .bytes = bytes, .alignment = 64 };
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    return b->alloc(b->ctx, &a, out);
}

static inline npu_status buffer_upload(const npu_backend *b, npu_buffer *to, uint64_t offset, const void *from,
                                       uint64_t bytes)
{
    npu_transfer t = { .size = sizeof t, .to = to, .to_offset = offset, .from_host = from, .bytes = bytes };
    return b->upload(b->ctx, &t, NULL);
}

static inline npu_status buffer_download(const npu_backend *b, void *to, npu_buffer *from, uint64_t offset,
                                         uint64_t bytes)
{
    npu_transfer t = { .size = sizeof t, .to_host = to, .from = from, .from_offset = offset, .bytes = bytes };
    return b->download(b->ctx, &t, NULL);
}

static inline npu_status buffer_copy(const npu_backend *b, npu_buffer *to, uint64_t to_offset, npu_buffer *from,
                                     uint64_t from_offset, uint64_t bytes)
{
    npu_transfer t = { .size = sizeof t, .to = to, .to_offset = to_offset, .from = from,
                       .from_offset = from_offset, .bytes = bytes };
    return b->copy(b->ctx, &t, NULL);
}

#endif
