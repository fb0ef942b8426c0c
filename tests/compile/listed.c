/* An implementation that lists its kernels: the CPU backend has these and no others. With -DLISTED_CHOICES it lists the
   ops whose attributes choose among several loops, to show that all of them are there, in the smallest strips. */
#ifdef LISTED_CHOICES
#define NPU_IR_STRIP 32
#define NPU_IR_HAS_KERNEL(kind)                                                                                        \
    ((kind) == NPU_ATEN_ADD || (kind) == NPU_ATEN_SUB || (kind) == NPU_ATEN_RSUB_TENSOR || (kind) == NPU_ATEN_GELU ||  \
     (kind) == NPU_ATEN_GELU_BACKWARD || (kind) == NPU_ATEN_POLYGAMMA || (kind) == NPU_ATEN_ISCLOSE ||                 \
     (kind) == NPU_ATEN_ROUND_DECIMALS || (kind) == NPU_ATEN_BITWISE_NOT || (kind) == NPU_ATEN_CLAMP ||                \
     (kind) == NPU_ATEN_DIV || (kind) == NPU_ATEN_DIV_MODE || (kind) == NPU_ATEN_POW_TENSOR_SCALAR ||                  \
     (kind) == NPU_ATEN_GLU || (kind) == NPU_ATEN_CUMSUM || (kind) == NPU_ATEN_AMAX ||                                 \
     (kind) == NPU_ATEN_SOFTMAX_RAW || (kind) == NPU_ATEN_AVG_POOL2D || (kind) == NPU_ATEN_CLONE)
#else
#define NPU_IR_HAS_KERNEL(kind) ((kind) == NPU_ATEN_LINEAR || (kind) == NPU_ATEN_RELU || (kind) == NPU_ATEN_SOFTMAX)
#endif
#define NPU_IR_IMPLEMENTATION
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
