/* variants.h - calls of ops as models make them, a row per variant: each attribute at another value than its default,
   dims that are negative or odd, broadcasting, batches; and the numbers for them at which devices go wrong. */
#ifndef NPU_BT_VARIANTS_H
#define NPU_BT_VARIANTS_H

#include "../../npu_ir.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* values: what it runs with besides numbers of both signs:
     -  numbers below 0    l  up to 2,000    n  some are NaN    i  some are infinite
     e  indices that count from the end      x  one past the end of its dim             b  one before its begin
   Products and averages of windows get neither NaN nor infinities: a device may add what it multiplies by 0, or
   subtract what has left a window.
   call: as in the text form of graphs, but an operand is written as its spec. Behind # it is a weight, behind + all its
   numbers are above 0. */
typedef struct npu_bt_variant {
    const char *values;
    uint32_t num_results;
    const char *call;
} npu_bt_variant;

static const npu_bt_variant npu_bt_variants[] = {
    /* convolutions: what differs from dim to dim */
    { "",     1, "aten.conv2d.default(input=f32[2,3,9,7], weight=#f32[5,3,3,2])" },
    { "",     1, "aten.conv2d.default(input=f32[2,3,9,7], weight=#f32[5,3,3,2], bias=#f32[5], stride=[2,1], "
                 "padding=[1,0])" },
    { "",     1, "aten.conv2d.default(input=f32[2,4,9,7], weight=#f32[6,4,3,2], stride=[1,3], padding=[0,2], "
                 "dilation=[2,1])" },
    { "",     1, "aten.conv2d.default(input=f32[2,4,9,7], weight=#f32[6,2,3,2], bias=#f32[6], padding=[1,1], "
                 "dilation=[1,2], groups=2)" },
    { "",     1, "aten.conv2d.default(input=f32[2,6,9,7], weight=#f32[6,1,3,2], padding=[2,1], groups=6)" },
    { "",     1, "aten.conv2d.default(input=f32[2,4,9,7], weight=#f32[8,1,3,2], bias=#f32[8], stride=[2,2], "
                 "padding=[1,1], groups=4)" },
    { "",     1, "aten.conv2d.default(input=f32[3,9,7], weight=#f32[5,3,1,1])" },
    { "",     1, "aten.conv2d.padding(input=f32[2,3,8,7], weight=#f32[5,3,2,3], padding='same', dilation=[1,2])" },
    { "",     1, "aten.conv1d.default(input=f32[2,4,11], weight=#f32[6,2,3], bias=#f32[6], stride=[2], padding=[2], "
                 "groups=2)" },
    { "",     1, "aten.conv_transpose2d.input(input=f32[2,4,5,4], weight=#f32[4,3,3,2], bias=#f32[3], stride=[2,3], "
                 "padding=[1,0], output_padding=[1,2])" },
    { "",     1, "aten.conv_transpose2d.input(input=f32[1,4,5,4], weight=#f32[4,3,3,2], groups=2, dilation=[2,1])" },
    { "",     1, "aten.convolution.default(input=f32[2,4,9,7], weight=#f32[6,2,3,2], bias=none, stride=[1,2], "
                 "padding=[1,0], dilation=[2,1], transposed=false, output_padding=[0,0], groups=2)" },
    /* pools */
    { "-ni",  1, "aten.max_pool2d.default(self=f32[1,3,7,7], kernel_size=[3,3])" },
    { "-ni",  1, "aten.max_pool2d.default(self=f32[2,3,8,7], kernel_size=[3,2], stride=[2,1], padding=[1,0])" },
    { "-ni",  1, "aten.max_pool2d.default(self=f32[1,3,7,7], kernel_size=[3,3], stride=[2,2], padding=[1,1], "
                 "dilation=[2,1])" },
    { "-ni",  1, "aten.max_pool2d.default(self=f32[1,3,8,8], kernel_size=[3,3], stride=[2,2], ceil_mode=true)" },
    { "-ni",  1, "aten.max_pool2d.default(self=f32[3,8,7], kernel_size=[2,2], padding=[1,1], ceil_mode=true)" },
    { "-ni",  2, "aten.max_pool2d_with_indices.default(self=f32[2,3,8,7], kernel_size=[3,2], stride=[2,2], "
                 "padding=[1,1])" },
    { "-ni",  1, "aten.max_pool1d.default(self=f32[2,3,11], kernel_size=[3], stride=[2], padding=[1], "
                 "ceil_mode=true)" },
    { "-ni",  1, "aten.max_pool3d.default(self=f32[1,2,5,6,7], kernel_size=[2,3,2], stride=[1,2,2], padding=[1,1,0])" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[1,3,7,7], kernel_size=[3,2])" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[2,3,8,7], kernel_size=[3,3], stride=[2,1], padding=[1,1])" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[2,3,8,7], kernel_size=[3,3], stride=[2,1], padding=[1,1], "
                 "count_include_pad=false)" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[1,3,8,8], kernel_size=[3,3], stride=[2,2], ceil_mode=true)" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[1,3,8,8], kernel_size=[3,3], stride=[2,2], padding=[1,1], "
                 "ceil_mode=true)" },
    { "-",    1, "aten.avg_pool2d.default(self=f32[3,7,7], kernel_size=[2,2], padding=[1,1], divisor_override=3)" },
    { "-",    1, "aten.avg_pool1d.default(self=f32[2,3,11], kernel_size=[3], stride=[2], padding=[1], "
                 "count_include_pad=false)" },
    { "-",    1, "aten.adaptive_avg_pool2d.default(self=f32[2,3,7,5], output_size=[3,2])" },
    { "-",    1, "aten.adaptive_avg_pool2d.default(self=f32[3,7,5], output_size=[1,1])" },
    { "-ni",  2, "aten.adaptive_max_pool2d.default(self=f32[2,3,7,5], output_size=[3,2])" },
    { "ni",   1, "aten.upsample_nearest2d.default(self=f32[1,2,3,5], output_size=[7,8])" },
    { "",     1, "aten.upsample_bilinear2d.default(self=f32[1,2,3,5], output_size=[7,8], align_corners=false)" },
    { "",     1, "aten.upsample_bilinear2d.default(self=f32[1,2,3,5], output_size=[7,8], align_corners=true)" },
    /* elementwise: every number that has a default, and broadcasting */
    { "ni",   1, "aten.add.Tensor(self=f32[3,5], other=f32[3,5])" },
    { "ni",   1, "aten.add.Tensor(self=f32[3,5], other=f32[3,5], alpha=2)" },
    { "ni",   1, "aten.add.Tensor(self=f32[2,1,5], other=f32[4,1], alpha=-0.5)" },
    { "ni",   1, "aten.add.Scalar(self=f32[3,5], other=1.5, alpha=2)" },
    { "ni",   1, "aten.sub.Tensor(self=f32[3,5], other=f32[5])" },
    { "ni",   1, "aten.sub.Tensor(self=f32[3,5], other=f32[3,5], alpha=2)" },
    { "ni",   1, "aten.sub.Scalar(self=f32[3,5], other=1.5, alpha=-3)" },
    { "ni",   1, "aten.rsub.Scalar(self=f32[3,5], other=1.5, alpha=2)" },
    { "ni",   1, "aten.rsub.Tensor(self=f32[3,5], other=f32[3,1], alpha=2)" },
    { "ni",   1, "aten.mul.Tensor(self=f32[2,1,5], other=f32[4,1])" },
    { "ni",   1, "aten.mul.Scalar(self=f32[3,5], other=-1.5)" },
    { "ni",   1, "aten.div.Tensor(self=f32[3,5], other=f32[5])" },
    { "",     1, "aten.div.Tensor_mode(self=f32[3,5], other=f32[3,5], rounding_mode='trunc')" },
    { "",     1, "aten.div.Tensor_mode(self=f32[3,5], other=f32[3,5], rounding_mode='floor')" },
    { "",     1, "aten.remainder.Scalar(self=f32[3,5], other=0.75)" },
    { "",     1, "aten.fmod.Scalar(self=f32[3,5], other=0.75)" },
    { "ni",   1, "aten.pow.Tensor_Scalar(self=f32[3,5], exponent=2)" },
    { "ni",   1, "aten.pow.Tensor_Scalar(self=f32[3,5], exponent=3)" },
    { "n",    1, "aten.pow.Tensor_Scalar(self=f32[3,5], exponent=0.5)" },
    { "",     1, "aten.pow.Tensor_Tensor(self=+f32[3,5], exponent=f32[5])" },
    { "-ni",  1, "aten.maximum.default(self=f32[3,5], other=f32[5])" },
    { "-ni",  1, "aten.minimum.default(self=f32[3,5], other=f32[3,1])" },
    { "-ni",  1, "aten.clamp.default(self=f32[3,5], min=-1, max=0.5)" },
    { "-ni",  1, "aten.clamp.default(self=f32[3,5], min=-0.5)" },
    { "-ni",  1, "aten.clamp.default(self=f32[3,5], max=-0.5)" },
    { "-n",   1, "aten.clamp.default(self=f32[3,5], min=1, max=-1)" },
    { "-ni",  1, "aten.clamp_min.default(self=f32[3,5], min=-0.5)" },
    { "-lni", 1, "aten.relu.default(self=f32[3,5])" },
    { "-lni", 1, "aten.relu6.default(self=f32[3,5])" },
    { "-lni", 1, "aten.leaky_relu.default(self=f32[3,5], negative_slope=0.3)" },
    { "-n",   1, "aten.leaky_relu.default(self=f32[3,5], negative_slope=-0.3)" },
    { "-n",   1, "aten.prelu.default(self=f32[2,3,4], weight=#f32[3])" },
    { "-ln",  1, "aten.elu.default(self=f32[3,5], alpha=0.5, scale=2, input_scale=0.75)" },
    { "-lni", 1, "aten.hardtanh.default(self=f32[3,5], min_val=-0.5, max_val=1.5)" },
    { "ln",   1, "aten.hardswish.default(self=f32[3,5])" },
    { "lni",  1, "aten.hardsigmoid.default(self=f32[3,5])" },
    { "ln",   1, "aten.gelu.default(self=f32[3,5])" },
    { "ln",   1, "aten.gelu.default(self=f32[3,5], approximate='tanh')" },
    { "ln",   1, "aten.silu.default(self=f32[3,5])" },
    { "ln",   1, "aten.mish.default(self=f32[3,5])" },
    { "lni",  1, "aten.sigmoid.default(self=f32[3,5])" },
    { "lni",  1, "aten.tanh.default(self=f32[3,5])" },
    { "ln",   1, "aten.softplus.default(self=f32[3,5], beta=2, threshold=1)" },
    { "ni",   1, "aten.threshold.default(self=f32[3,5], threshold=0.5, value=-3)" },
    { "-ni",  1, "aten.abs.default(self=f32[3,5])" },
    { "ni",   1, "aten.neg.default(self=f32[3,5])" },
    { "lni",  1, "aten.exp.default(self=f32[3,5])" },
    { "ni",   1, "aten.log.default(self=f32[3,5])" },
    { "ni",   1, "aten.sqrt.default(self=f32[3,5])" },
    { "ni",   1, "aten.rsqrt.default(self=f32[3,5])" },
    { "ni",   1, "aten.reciprocal.default(self=f32[3,5])" },
    { "ni",   1, "aten.floor.default(self=f32[3,5])" },
    { "ni",   1, "aten.ceil.default(self=f32[3,5])" },
    { "ni",   1, "aten.round.default(self=f32[3,5])" },
    { "i",    1, "aten.sign.default(self=f32[3,5])" },
    { "ni",   1, "aten.where.self(condition=bool[3,1], self=f32[3,5], other=f32[5])" },
    { "ni",   1, "aten.masked_fill.Scalar(self=f32[3,5], mask=bool[5], value=-1.5)" },
    { "n",    1, "aten.addcmul.default(self=f32[3,5], tensor1=f32[3,1], tensor2=f32[5], value=-2)" },
    { "n",    1, "aten.lerp.Scalar(self=f32[3,5], end=f32[5], weight=0.25)" },
    { "ni",   1, "aten.eq.Tensor(self=f32[3,5], other=f32[3,5])" },
    { "ni",   1, "aten.gt.Tensor(self=f32[3,5], other=f32[5])" },
    { "ni",   1, "aten.le.Scalar(self=f32[3,5], other=0.5)" },
    { "ni",   1, "aten.isnan.default(self=f32[3,5])" },
    { "",     1, "aten.glu.default(self=f32[3,4,5], dim=-2)" },
    /* softmax and reductions: dims from either end, keepdim, more than one */
    { "-lni", 1, "aten.softmax.int(self=f32[3,4,5], dim=-1)" },
    { "-lni", 1, "aten.softmax.int(self=f32[3,4,5], dim=0)" },
    { "-lni", 1, "aten.softmax.int(self=f32[3,4,5], dim=-2)" },
    { "-lni", 1, "aten._softmax.default(self=f32[3,4,5], dim=1, half_to_float=false)" },
    { "-ln",  1, "aten.log_softmax.int(self=f32[3,4,5], dim=-1)" },
    { "-ln",  1, "aten.log_softmax.int(self=f32[3,4,5], dim=1)" },
    { "-ln",  1, "aten.logsumexp.default(self=f32[3,4,5], dim=[-2], keepdim=true)" },
    { "n",    1, "aten.sum.default(self=f32[3,4,5])" },
    { "n",    1, "aten.sum.dim_IntList(self=f32[3,4,5], dim=[-1])" },
    { "n",    1, "aten.sum.dim_IntList(self=f32[3,4,5], dim=[0,2], keepdim=true)" },
    { "n",    1, "aten.sum.dim_IntList(self=f32[3,4,5], dim=none, keepdim=true)" },
    { "n",    1, "aten.mean.dim(self=f32[3,4,5], dim=[1])" },
    { "n",    1, "aten.mean.dim(self=f32[2,3,4,5], dim=[-1,-2], keepdim=true)" },
    { "-ni",  1, "aten.amax.default(self=f32[3,4,5], dim=[1])" },
    { "-ni",  1, "aten.amax.default(self=f32[3,4,5], dim=[0,-1], keepdim=true)" },
    { "-ni",  1, "aten.amin.default(self=f32[3,4,5], dim=[-2])" },
    { "-n",   1, "aten.max.default(self=f32[3,4,5])" },
    { "-n",   2, "aten.max.dim(self=f32[3,4,5], dim=-2)" },
    { "-n",   2, "aten.min.dim(self=f32[3,4,5], dim=0, keepdim=true)" },
    { "-n",   1, "aten.argmax.default(self=f32[3,4,5])" },
    { "-n",   1, "aten.argmax.default(self=f32[3,4,5], dim=-1)" },
    { "-n",   1, "aten.argmin.default(self=f32[3,4,5], dim=1, keepdim=true)" },
    { "-",    2, "aten.topk.default(self=f32[3,4,5], k=2, dim=1, largest=false)" },
    { "n",    1, "aten.prod.dim_int(self=f32[3,4,5], dim=1, keepdim=true)" },
    { "n",    1, "aten.var.correction(self=f32[3,4,5], dim=[1])" },
    { "n",    1, "aten.var.correction(self=f32[3,4,5], dim=[0,2], correction=0, keepdim=true)" },
    { "n",    1, "aten.std.correction(self=f32[3,4,5], dim=[-1], correction=2)" },
    { "n",    1, "aten.linalg_vector_norm.default(self=f32[3,4,5], ord=1, dim=[-1])" },
    { "",     1, "aten.cumsum.default(self=f32[3,4,5], dim=-2)" },
    /* products: batches that broadcast, vectors, a transposed weight, scales */
    { "",     1, "aten.mm.default(self=f32[3,5], mat2=f32[5,7])" },
    { "",     1, "aten.bmm.default(self=f32[2,3,5], mat2=f32[2,5,7])" },
    { "",     1, "aten.matmul.default(self=f32[2,3,4,5], other=f32[5,6])" },
    { "",     1, "aten.matmul.default(self=f32[2,1,3,4], other=f32[3,4,5])" },
    { "",     1, "aten.matmul.default(self=f32[3,5], other=f32[2,5,4])" },
    { "",     1, "aten.matmul.default(self=f32[4], other=f32[2,4,3])" },
    { "",     1, "aten.matmul.default(self=f32[2,3,4], other=f32[4])" },
    { "",     1, "aten.linear.default(input=f32[3,5], weight=#f32[7,5], bias=#f32[7])" },
    { "",     1, "aten.linear.default(input=f32[2,3,5], weight=#f32[7,5])" },
    { "",     1, "aten.linear.default(input=f32[5], weight=f32[7,5], bias=f32[7])" },
    { "",     1, "aten.addmm.default(self=f32[7], mat1=f32[3,5], mat2=f32[5,7])" },
    { "",     1, "aten.addmm.default(self=f32[3,1], mat1=f32[3,5], mat2=f32[5,7], beta=0.5, alpha=-2)" },
    { "",     1, "aten.baddbmm.default(self=f32[3,7], batch1=f32[2,3,5], batch2=f32[2,5,7], beta=0.5, alpha=-2)" },
    { "",     1, "aten.scaled_dot_product_attention.default(query=f32[2,2,3,4], key=f32[2,2,5,4], "
                 "value=f32[2,2,5,4])" },
    { "",     1, "aten.scaled_dot_product_attention.default(query=f32[1,2,4,4], key=f32[1,2,4,4], value=f32[1,2,4,3], "
                 "is_causal=true, scale=0.3)" },
    { "",     1, "aten.scaled_dot_product_attention.default(query=f32[1,2,3,4], key=f32[1,2,5,4], value=f32[1,2,5,4], "
                 "attn_mask=f32[3,5])" },
    /* normalisations: eps beside which the variance counts, with and without scales */
    { "n",    1, "aten.batch_norm.default(input=f32[2,3,4,5], weight=#f32[3], bias=#f32[3], running_mean=#f32[3], "
                 "running_var=#+f32[3], training=false, momentum=0.1, eps=0.5, cudnn_enabled=false)" },
    { "n",    1, "aten.batch_norm.default(input=f32[5,3], weight=none, bias=none, running_mean=#f32[3], "
                 "running_var=#+f32[3], training=false, momentum=0.1, eps=0.5, cudnn_enabled=false)" },
    { "n",    3, "aten._native_batch_norm_legit_no_training.default(input=f32[2,3,4,5], weight=#f32[3], bias=none, "
                 "running_mean=#f32[3], running_var=#+f32[3], momentum=0.1, eps=0.5)" },
    { "n",    1, "aten.layer_norm.default(input=f32[3,4,5], normalized_shape=[5], weight=#f32[5], bias=#f32[5], "
                 "eps=0.5)" },
    { "n",    1, "aten.layer_norm.default(input=f32[3,4,5], normalized_shape=[4,5], weight=#f32[4,5])" },
    { "n",    1, "aten.layer_norm.default(input=f32[3,4,5], normalized_shape=[5], eps=0.5)" },
    { "n",    3, "aten.native_layer_norm.default(input=f32[3,4,5], normalized_shape=[5], weight=#f32[5], bias=none, "
                 "eps=0.5)" },
    { "n",    1, "aten.group_norm.default(input=f32[2,6,4], num_groups=2, weight=#f32[6], bias=#f32[6], eps=0.5)" },
    { "n",    1, "aten.group_norm.default(input=f32[2,6,3,3], num_groups=3)" },
    { "n",    1, "aten.instance_norm.default(input=f32[2,3,4,5], weight=#f32[3], bias=none, running_mean=none, "
                 "running_var=none, use_input_stats=true, momentum=0.1, eps=0.5, cudnn_enabled=false)" },
    { "n",    1, "aten.rms_norm.default(input=f32[3,4,5], normalized_shape=[5], weight=#f32[5], eps=0.5)" },
    { "n",    1, "aten.rms_norm.default(input=f32[3,4,5], normalized_shape=[4,5])" },
    /* parts, joins and orders: from either end, past it, in steps; what is moved is moved as it is */
    { "ni",   1, "aten.cat.default(tensors=[f32[2,3,4], f32[2,3,1], f32[2,3,2]], dim=-1)" },
    { "ni",   1, "aten.cat.default(tensors=[f32[1,3], f32[4,3]])" },
    { "ni",   1, "aten.stack.default(tensors=[f32[3,4], f32[3,4]], dim=-1)" },
    { "ni",   1, "aten.slice.Tensor(self=f32[3,7,5], dim=1, start=-5, end=-1)" },
    { "ni",   1, "aten.slice.Tensor(self=f32[3,7,5], dim=-2, start=1, end=100, step=2)" },
    { "ni",   1, "aten.slice.Tensor(self=f32[3,7], dim=-1, start=-100, step=3)" },
    { "ni",   1, "aten.select.int(self=f32[3,4,5], dim=-2, index=-1)" },
    { "ni",   1, "aten.narrow.default(self=f32[3,7,5], dim=1, start=-4, length=3)" },
    { "ni",   3, "aten.split.Tensor(self=f32[3,7], split_size=3, dim=-1)" },
    { "ni",   3, "aten.split_with_sizes.default(self=f32[7,3], split_sizes=[1,4,2])" },
    { "ni",   3, "aten.chunk.default(self=f32[3,7], chunks=3, dim=1)" },
    { "ni",   2, "aten.unbind.int(self=f32[3,2,4], dim=-2)" },
    { "ni",   1, "aten.permute.default(self=f32[2,3,4,5], dims=[0,-1,1,2])" },
    { "ni",   1, "aten.transpose.int(self=f32[3,4,5], dim0=-1, dim1=0)" },
    { "ni",   1, "aten.expand.default(self=f32[3,1,5], size=[2,-1,4,5])" },
    { "ni",   1, "aten.repeat.default(self=f32[3,2], repeats=[2,1,3])" },
    { "ni",   1, "aten.flip.default(self=f32[3,4,5], dims=[0,-1])" },
    { "ni",   1, "aten.roll.default(self=f32[3,5], shifts=[-1,2], dims=[0,1])" },
    { "ni",   1, "aten.tril.default(self=f32[4,5], diagonal=-1)" },
    { "ni",   1, "aten.triu.default(self=f32[2,4,5], diagonal=2)" },
    { "ni",   1, "aten.constant_pad_nd.default(self=f32[2,3,4], pad=[1,2,0,3], value=-1.5)" },
    { "ni",   1, "aten.constant_pad_nd.default(self=f32[2,3,4], pad=[-1,2])" },
    { "ni",   1, "aten.reflection_pad2d.default(self=f32[2,4,5], padding=[2,1,0,3])" },
    { "ni",   1, "aten.pixel_shuffle.default(self=f32[1,8,2,3], upscale_factor=2)" },
    /* lookups: what an index names that is none is no result */
    { "xb",   1, "aten.embedding.default(weight=#f32[4,5], indices=i64[2,3])" },
    { "nxb",  1, "aten.embedding.default(weight=f32[4,5], indices=i64[3], padding_idx=1)" },
    { "nxb",  1, "aten.index_select.default(self=f32[3,4,5], dim=-2, index=i64[6])" },
    { "nxb",  1, "aten.gather.default(self=f32[3,4,5], dim=1, index=i64[2,6,5])" },
    { "nexb", 1, "aten.index.Tensor(self=f32[4,5,3], indices=[none, i64[2,3]])" },
    /* as many results as the numbers say */
    { "",     1, "aten.nonzero.default(self=bool[3,5])" },
    { "n",    1, "aten.masked_select.default(self=f32[3,5], mask=bool[5])" },
    { "",     3, "aten.unique_consecutive.default(self=i64[7], return_counts=true)" },
    /* device kinds */
    { "ni",   1, "aicf.add(a=f32[3,5], c=f32[3,5])" },
    { "-lni", 1, "aicf.relu(x=f32[3,5])" },
    { "",     1, "aicf.gemm(a=f32[3,5], b=f32[5,7])" },
    { "",     1, "aicf.gemm(a=f32[5,3], b=f32[5,7], transA=true)" },
    { "",     1, "aicf.gemm(a=f32[3,5], b=#f32[7,5], transB=true)" },
    { "",     1, "aicf.gemm(a=f32[5,3], b=f32[7,5], transA=true, transB=true)" },
    { "",     1, "aicf.gemm_epilogue(a=f32[3,5], b=#f32[7,5], bias=#f32[7], transB=true)" },
    { "",     1, "aicf.gemm_epilogue(a=f32[3,5], b=#f32[5,7], bias=#f32[7], relu=false)" },
    { "n",    1, "aicf.bias_add(x=f32[3,5], bias=#f32[5])" },
    { "n",    1, "aicf.reduce_sum(x=f32[3,5], axis=0)" },
    { "-lni", 1, "aicf.softmax(x=f32[3,5])" },
    { "n",    3, "aicf.layernorm_fwd(x=f32[3,5], gamma=#f32[5], beta=#f32[5], eps=0.5)" },
    { "n",    3, "aicf.batchnorm_fwd(x=f32[2,3,4,5], gamma=#f32[3], beta=#f32[3], running_mean=#f32[3], "
                 "running_var=#+f32[3], eps=0.5, flags=1)" },
};
#define NPU_BT_NUM_VARIANTS (uint32_t)(sizeof npu_bt_variants / sizeof npu_bt_variants[0])

enum { NPU_BT_MAX_OPERANDS = 6, NPU_BT_OPERAND_BYTES = 4096 };

typedef struct npu_bt_operand {
    bool is_weight, is_positive;
    npu_spec spec;
    int64_t data[NPU_BT_OPERAND_BYTES / 8];
} npu_bt_operand;

/* "#f32[2,3]": what follows it; NULL = no operand. */
static inline const char *npu_bt_read_operand(const char *p, npu_bt_operand *o)
{
    char dtype[8], *end;
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank = 0;
    size_t marks = strspn(p, "#+"), len = strcspn(p + marks, "[=,() ");
    if (len >= sizeof dtype || p[marks + len] != '[') {
        return NULL;
    }
    snprintf(dtype, sizeof dtype, "%.*s", (int)len, p + marks);
    if (npu_dtype_parse(dtype) == NPU_NONE) {
        return NULL;
    }
    o->is_weight = memchr(p, '#', marks) != NULL;
    o->is_positive = memchr(p, '+', marks) != NULL;
    for (p += marks + len + 1; *p != ']'; p = end + (*end == ',')) {
        dims[rank++] = strtol(p, &end, 10);
    }
    o->spec = npu_spec_tensor(npu_dtype_parse(dtype), rank, dims);
    return p + 1;
}

/* A graph of that op alone, with operands a, b, c .. and results y0, y1 .. */
static inline npu_status npu_bt_variant_graph(npu_graph **out, const npu_bt_variant *v, npu_bt_operand *operands,
                                              uint32_t *num, const npu_graph_desc *desc, npu_diag *diag)
{
    npu_text text = npu_text_init(NULL), call = npu_text_init(NULL);
    *num = 0;
    npu_text_printf(&text, "npu_ir 1\ngraph main\n");
    for (const char *p = v->call, *end; *p && *num < NPU_BT_MAX_OPERANDS; p = end) {
        end = p > v->call && strchr("=[ ", p[-1]) ? npu_bt_read_operand(p, &operands[*num]) : NULL;
        if (end) {
            size_t marks = strspn(p, "#+");
            const char *what = operands[*num].is_weight ? "param" : "input";
            int len = (int)(end - p) - (int)marks;
            npu_text_printf(&text, "%s %c : %.*s\n", what, (int)('a' + *num), len, p + marks);
            npu_text_printf(&call, "%c", (int)('a' + (*num)++));
        } else {
            npu_text_printf(&call, "%c", *p);
            end = p + 1;
        }
    }
    for (uint32_t i = 0; i < v->num_results; i++) {
        npu_text_printf(&text, "%sy%u", i ? ", " : "", (unsigned)i);
    }
    npu_text_printf(&text, " = %s\n", call.data);
    for (uint32_t i = 0; i < v->num_results; i++) {
        npu_text_printf(&text, "output y%u = y%u\n", (unsigned)i, (unsigned)i);
    }
    npu_status status = npu_graph_parse(out, text.data, text.len, desc, diag);
    npu_text_free(&call);
    npu_text_free(&text);
    return status;
}

static inline const char *npu_bt_values_text(char values)
{
    return values == '-' ? "numbers below 0" : values == 'n' ? "with NaN" : values == 'i' ? "with infinities"
         : values == 'l' ? "numbers up to 2000" : values == 'e' ? "indices from the end"
         : values == 'x' ? "an index past the end" : values == 'b' ? "an index before the begin" : "numbers";
}

static inline float npu_bt_number(uint32_t i, uint32_t operand, bool is_positive, char values)
{
    float x = (float)((i * 2654435761u + operand * 1640531527u) % 4001u) / 1000.0f - 2.0f;
    uint32_t at = (i + 2 * operand) % 11;
    return is_positive ? fabsf(x) + 0.25f
         : values == '-' ? -fabsf(x) - 0.25f
         : values == 'l' ? x * 1000.0f
         : values == 'n' && at == 3 ? NAN
         : values == 'i' && (at == 3 || at == 8) ? (at == 3 ? INFINITY : -INFINITY) : x;
}

/* Indices are 0 to 3 or -4 to -1, and where one is wrong 9 or -9. */
static inline int64_t npu_bt_index(uint32_t i, char values)
{
    int64_t x = (int64_t)(i * 7 % 4);
    bool is_wrong = i == 1 && (values == 'x' || values == 'b');
    return is_wrong ? (values == 'x' ? 9 : -9) : values == 'e' ? x - 4 : x;
}

static inline void npu_bt_fill(npu_bt_operand *o, uint32_t operand, char values)
{
    float *floats = (float *)(void *)o->data;
    bool *bools = (bool *)(void *)o->data;
    for (uint32_t i = 0; i < NPU_BT_OPERAND_BYTES / 8; i++) {
        switch (o->spec.dtype) {
        case NPU_F32:
            floats[2 * i] = npu_bt_number(2 * i, operand, o->is_positive, values);
            floats[2 * i + 1] = npu_bt_number(2 * i + 1, operand, o->is_positive, values);
            break;
        case NPU_BOOL: bools[i] = i % 3 == 0; break;
        default: o->data[i] = npu_bt_index(i, values); break;
        }
    }
}

#endif
