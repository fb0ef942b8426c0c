/* One program in one file, with whatever NPU_IR_ macros the command line gives; both headers included twice. */
#define NPU_IR_IMPLEMENTATION
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
#include "use.h"

int main(void)
{
    return use_declarations();
}
