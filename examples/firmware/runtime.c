/* The runtime of planned models with all kernels: the linker leaves those out that no list names. */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
