/* The implementation of npu_ir.h that tests, benchmarks and vectors are linked with. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
