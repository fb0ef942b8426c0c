/* npu_map.h - a file as memory: mapped where the platform can, so that only the pages that are read are loaded, else read
   whole. For weights (npu_graph_bind_safetensors) and models. Functions are static: include it where it is used.

       npu_map weights;
       npu_map_open(&weights, "model.safetensors");
       npu_graph_bind_safetensors(g, &weights.bytes, 1, NULL, NULL);
       ...                                   // runs; then, when everything made from the graph is destroyed:
       npu_map_close(&weights); */
#ifndef NPU_MAP_H
#define NPU_MAP_H

#include "../../npu_ir.h"

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

/* path is borrowed. Errors: IO, NO_MEMORY. */
static inline npu_status npu_map_open(npu_map *map, const char *path)
{
    npu_status status;
    map->text = npu_text_init(NULL);
    map->bytes.name = path;
    map->bytes.data = NULL;
    map->bytes.size = 0;
    map->is_mapped = npu_map_try(map, path);
    status = map->is_mapped ? NPU_OK : npu_text_load(&map->text, path);
    if (!map->is_mapped && status == NPU_OK) {
        map->bytes.data = map->text.data ? map->text.data : "";
        map->bytes.size = map->text.len;
    }
    return status;
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
