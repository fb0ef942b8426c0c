/* The one file with the implementation: of planned models alone. Leave the first line out for all of the library. */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
