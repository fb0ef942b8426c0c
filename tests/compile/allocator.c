/* Own allocation macros: all memory must come through them. */
#include <stddef.h>
static int num_live;
static void *own_malloc(size_t size);
static void *own_realloc(void *p, size_t size);
static void own_free(void *p);
#define NPU_IR_MALLOC(n) own_malloc(n)
#define NPU_IR_REALLOC(p, n) own_realloc((p), (n))
#define NPU_IR_FREE(p) own_free(p)
#define NPU_IR_IMPLEMENTATION
#include "use.h"
#include <stdlib.h>

static void *own_malloc(size_t size)
{
    num_live++;
    return malloc(size);
}

static void *own_realloc(void *p, size_t size)
{
    num_live += p == NULL;
    return realloc(p, size);
}

static void own_free(void *p)
{
    num_live -= p != NULL;
    free(p);
}

int main(void)
{
    return use_declarations() || num_live != 0;
}
