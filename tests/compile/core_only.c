/* npu_ir.h without the CPU kernels. */
#define NPU_IR_IMPLEMENTATION
#include "../../npu_ir.h"
