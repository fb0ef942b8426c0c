// C++11 and later: declarations only; linked with the common object.
#include "use.h"
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"

/* Options by reference; a NULL graph fails and returns no value. */
static unsigned by_reference()
{
    npu_conv2d_attrs attrs = npu_conv2d_attrs();
    npu_value none = npu_value();
    attrs.stride[0] = attrs.stride[1] = 2;
    return npu_conv2d(nullptr, none, none, none, attrs).id;
}

int main()
{
    return use_declarations() + static_cast<int>(by_reference());
}
