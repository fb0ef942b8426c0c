/* The implementation of npu_ir_backend_ref.h, compiled apart from the other: it uses nothing of it but declarations. */
#define NPU_IR_BACKEND_REF_IMPLEMENTATION
#include "../npu_ir_backend_ref.h"
