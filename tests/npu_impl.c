/* The one object with the implementation of both headers that the tests, benchmarks and examples are linked with. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
