/* A CPU backend for every instruction set of this machine. */
#ifndef NPU_TEST_ISA_H
#define NPU_TEST_ISA_H

#include "../npu_ir_backend_ref.h"

enum { ISA_MAX = 8 };
static npu_backend *isa_cpus[ISA_MAX];

/* The backend of set number i, in the order of npu_ref_isa; NULL past the last one. */
static inline const npu_backend *isa_cpu(uint32_t i)
{
    npu_ref_desc desc = { 0 };
    desc.isa = npu_ref_isa(i);
    if (!desc.isa || i >= ISA_MAX) {
        return NULL;
    }
    if (!isa_cpus[i]) {
        npu_ref_create(&isa_cpus[i], &desc);
    }
    return isa_cpus[i];
}

static inline void isa_free(void)
{
    for (uint32_t i = 0; i < ISA_MAX; i++) {
        npu_ref_destroy(isa_cpus[i]);
        isa_cpus[i] = NULL;
    }
}

#endif
