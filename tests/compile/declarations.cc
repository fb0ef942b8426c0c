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

/* Macros, too, are free of what C++ calls old-style casts. */
static bool by_macro()
{
    npu_region region = npu_region();
    region.size = sizeof region;
    return NPU_HAS(&region, size) && NPU_PLANNED_JUMP != NPU_OK;
}

int main()
{
    return use_declarations() + static_cast<int>(by_reference()) + !by_macro();
}
