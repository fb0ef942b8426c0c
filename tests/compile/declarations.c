/* C99 and later: declarations only; linked with the common object. */
#include "use.h"
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"

int main(void)
{
    return use_declarations();
}
