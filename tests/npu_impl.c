/* The one object with the implementation of both headers that the tests, benchmarks and examples are linked with. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
int npu_test_widest = 2; /* instruction set of the CPU backend: tests go down to 0 */
#define NPU__REF_WIDEST npu_test_widest
#include "../npu_ir_backend_ref.h"
