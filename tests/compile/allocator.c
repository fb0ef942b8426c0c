/* Own allocation macros: all memory must come through them, and a call that has no allocator says when there is none. */
#include <stddef.h>
static long num_live, num_calls, fail_at; /* the call that gets no memory, from 1; 0 = none */
static void *own_malloc(size_t size);
static void *own_realloc(void *p, size_t size);
static void own_free(void *p);
#define NPU_IR_MALLOC(n) own_malloc(n)
#define NPU_IR_REALLOC(p, n) own_realloc((p), (n))
#define NPU_IR_FREE(p) own_free(p)
#define NPU_IR_IMPLEMENTATION
#include "use.h"
#include <stdio.h>
#include <stdlib.h>

static void *own_malloc(size_t size)
{
    if (++num_calls == fail_at) {
        return NULL;
    }
    num_live++;
    return malloc(size);
}

static void *own_realloc(void *p, size_t size)
{
    if (++num_calls == fail_at) {
        return NULL;
    }
    num_live += p == NULL;
    return realloc(p, size);
}

static void own_free(void *p)
{
    num_live -= p != NULL;
    free(p);
}

/* Rates are measured with graphs of the library's own. The first allocations fail in turn, then some of the others. */
static int use_calibration(void)
{
    long live, calls, n;
    npu_rates rates;
    npu_diag diag;
    npu_status status;
    memset(&diag, 0, sizeof diag);
    num_calls = 0;
    status = npu_rates_calibrate(&rates, npu_ref_backend(), NULL, NULL, NULL, &diag); /* what stays is made now */
    live = num_live;
    calls = num_calls;
    for (n = 1; status == NPU_OK && n < calls / 2; n += 1 + n / 4) {
        num_calls = 0, fail_at = n;
        if (npu_rates_calibrate(&rates, npu_ref_backend(), NULL, NULL, NULL, &diag) != NPU_ERR_NO_MEMORY ||
            diag.status != NPU_ERR_NO_MEMORY || num_live != live) {
            fprintf(stderr, "allocation %ld of %ld: \"%s\", %ld more are live\n", n, calls, diag.message, num_live - live);
            return 1;
        }
    }
    return status != NPU_OK || calls < 100;
}

int main(void)
{
    return use_declarations() || num_live != 0 || use_calibration();
}
