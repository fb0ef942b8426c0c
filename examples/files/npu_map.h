/* npu_map.h - a file as memory: mapped where the platform can, so that only the pages that are read are loaded, else
   read whole, a pipe or device as far as what it is read for can need. For weights (npu_graph_bind_safetensors) and
   models. Functions are static: include it where it is used.

       npu_map weights;
       npu_map_open(&weights, "model.safetensors");
       npu_graph_bind_safetensors(g, &weights.bytes, 1, NULL, NULL);
       ...                                   // runs; then, when everything made from the graph is destroyed:
       npu_map_close(&weights); */
#ifndef NPU_MAP_H
#define NPU_MAP_H

#include "../../npu_ir.h"
#include <stdio.h>
#include <string.h>

#if defined(__unix__) || defined(__APPLE__)
#define NPU_MAP_POSIX
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

typedef struct npu_map {
    npu_bytes bytes;   /* the file's name, as given, and content */
    npu_text text;     /* where it was read */
    bool is_mapped;
} npu_map;

/* False = it must be read: no regular file, or one without bytes. */
static inline bool npu_map_try(npu_map *map, const char *path)
{
#ifdef NPU_MAP_POSIX
    int fd = open(path, O_RDONLY);
    struct stat st;
    bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                   (uint64_t)st.st_size <= SIZE_MAX;
    void *data = is_file ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (data != MAP_FAILED) {
        map->bytes.data = data;
        map->bytes.size = (size_t)st.st_size;
    }
    return data != MAP_FAILED;
#else
    (void)map;
    (void)path;
    return false;
#endif
}

enum { NPU_MAP_CHUNK = 4096 };

/* How many bytes there can be in all, by those that were read so far; SIZE_MAX = that is not known yet. */
typedef size_t (*npu_map_most)(const void *data, size_t size);

/* Stops behind the first chunk that holds more than there can be: its reader says what is wrong with that. */
static inline npu_status npu_map_read(npu_map *map, const char *path, npu_map_most most)
{
    char chunk[NPU_MAP_CHUNK];
    FILE *file = fopen(path, "rb");
    npu_status status = file ? NPU_OK : NPU_ERR_IO;
    size_t n = 1, limit = SIZE_MAX;
    while (status == NPU_OK && n && map->text.len <= limit) {
        n = fread(chunk, 1, sizeof chunk, file);
        npu_text_append(&map->text, chunk, n);
        status = ferror(file) ? NPU_ERR_IO : map->text.status;
        limit = status == NPU_OK && most && n && limit == SIZE_MAX ? most(map->text.data, map->text.len) : limit;
    }
    if (file) {
        fclose(file);
    }
    return status;
}

/* As npu_map_open, of a pipe or device no more than `most` says; NULL = all of it. */
static inline npu_status npu_map_open_most(npu_map *map, const char *path, npu_map_most most)
{
    npu_status status;
    map->text = npu_text_init(NULL);
    map->bytes.name = path;
    map->bytes.data = NULL;
    map->bytes.size = 0;
    map->is_mapped = npu_map_try(map, path);
    status = map->is_mapped ? NPU_OK : npu_map_read(map, path, most);
    if (!map->is_mapped && status == NPU_OK) {
        map->bytes.data = map->text.data ? map->text.data : "";
        map->bytes.size = map->text.len;
    }
    return status;
}

/* path is borrowed. Errors: IO, NO_MEMORY. */
static inline npu_status npu_map_open(npu_map *map, const char *path)
{
    return npu_map_open_most(map, path, NULL);
}

/* The largest number in the lists behind a key of JSON. */
static inline uint64_t npu_map_largest_behind(const char *at, const char *end, const char *key)
{
    size_t len = strlen(key);
    uint64_t largest = 0, x = 0;
    for (bool is_list = false; at < end; at++) {
        if ((size_t)(end - at) > len && memcmp(at, key, len) == 0) {
            is_list = true;
            at += len;
        }
        is_list = is_list && *at != ']';
        bool is_digit = is_list && *at >= '0' && *at <= '9';
        x = !is_digit ? 0 : x < UINT64_MAX / 16 ? x * 10 + (uint64_t)(*at - '0') : UINT64_MAX;
        largest = x > largest ? x : largest;
    }
    return largest;
}

/* Of safetensors: a length of 8 bytes, a header of that length, at most 100 MB, and the data up to the last offset. */
static inline size_t npu_map_most_of_safetensors(const void *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data;
    uint64_t len = 0, end;
    for (int i = 7; i >= 0 && size >= 8; i--) {
        len = len << 8 | at[i];
    }
    if (size < 8 || (len && len <= 100000000 && size - 8 < len)) {
        return SIZE_MAX;
    }
    if (!len || len > 100000000) {
        return 8;
    }
    end = npu_map_largest_behind((const char *)at + 8, (const char *)at + 8 + len, "\"data_offsets\"");
    return end < SIZE_MAX - 8 - len ? (size_t)(8 + len + end) : SIZE_MAX - 1;
}

static inline void npu_map_close(npu_map *map)
{
#ifdef NPU_MAP_POSIX
    if (map->is_mapped) {
        munmap((void *)(uintptr_t)map->bytes.data, map->bytes.size);
    }
#endif
    npu_text_free(&map->text);
    map->bytes.data = NULL;
    map->bytes.size = 0;
    map->is_mapped = false;
}

#endif
