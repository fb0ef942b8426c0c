#!/usr/bin/env python3
"""ONNX Runtime's own ops (com.microsoft), one model each with random weights, and what ONNX Runtime makes of them (or
NumPy, where it has no kernel for the CPU); and forms of ONNX's ops that its node tests leave out:

    npm install onnxruntime-node --ignore-scripts          # in a folder MODULES/..
    python3 tests/onnx_runtime.py MODULES/node_modules FOLDER && make onnx NODES=FOLDER

FOLDER then has a model, inputs and outputs for each case, as the ONNX project's node tests have. Needs python3-onnx
and node. With one more argument, tests/vectors/onnx_runtime.pb, the small ones go into that file, which test_onnx
reads: protobuf, field 1 a case: 1 its name, 2 the model, 3 inputs, 4 outputs. Products of bytes need a processor with
VNNI: ONNX Runtime cuts their sums to 16 bits on others."""
import base64
import json
import math
import os
import shutil
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F16, I64, I32, I8, U8 = np.float32, np.float16, np.int64, np.int32, np.int8, np.uint8
random = np.random.RandomState(7)
cases = []


class Known:
    """An operand that is an initializer."""

    def __init__(self, data, code=None, dims=None):
        self.data, self.code, self.dims = np.asarray(data), code, dims


def floats(*dims, dtype=F32):
    return random.randn(*dims).astype(dtype)


def weights(*dims, dtype=F32):
    return Known((random.randn(*dims) * 0.2).astype(dtype))


def integers(low, high, *dims, dtype=I64):
    return random.randint(low, high, dims).astype(dtype)


def case(name, op, operands, outputs=1, domain="com.microsoft", expected=None, version=21, **attributes):
    """op: its name, or nodes of x0, x1 .. that make y0. outputs: how many, or how many and which is not asked for;
    expected: what they are, where ONNX Runtime is not
    asked."""
    cases.append((name, op, operands, outputs, domain, expected, version, attributes))


def write(folder, name, op, operands, outputs, domain, expected, version, attributes):
    at = os.path.join(folder, name)
    os.makedirs(os.path.join(at, "test_data_set_0"))
    names, inputs, initializers, feeds = [], [], [], []
    for i, x in enumerate(operands):
        if x is None:
            names.append("")
            continue
        names.append(f"x{i}")
        if isinstance(x, Known):
            t = numpy_helper.from_array(x.data, names[-1])
            if x.code:
                t.data_type = x.code
                del t.dims[:]
                t.dims.extend(x.dims)
            initializers.append(t)
            continue
        x = np.asarray(x)
        t = numpy_helper.from_array(x, names[-1])
        inputs.append(helper.make_tensor_value_info(names[-1], t.data_type, x.shape))
        with open(os.path.join(at, "test_data_set_0", f"input_{len(feeds)}.pb"), "wb") as f:
            f.write(t.SerializeToString())
        feeds.append({"name": names[-1], "type": str(x.dtype), "dims": x.shape,
                       "data": base64.b64encode(x.tobytes()).decode()})
    results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs.split(",")
    nodes = op if isinstance(op, list) else [helper.make_node(op, names, results, domain=domain, **attributes)]
    outputs = [helper.make_empty_tensor_value_info(y) for y in results if y]
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 25 if name in ("weight_25", "weight_26") else version),
              helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    model.producer_name = ""
    with open(os.path.join(at, "model.onnx"), "wb") as f:
        f.write(model.SerializeToString())
    if expected is None:
        with open(os.path.join(at, "inputs.json"), "w") as f:
            json.dump(feeds, f)
    for i, y in enumerate(expected or []):
        with open(os.path.join(at, "test_data_set_0", f"output_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(y if y.dtype == F16 else y.astype(F32)).SerializeToString())


# ---- weights of few bits

def nbits(name, bits, block, cols, rows, zeros=None, x=(2, 3), dtype=F32, bias=False, **more):
    groups = (cols + block - 1) // block
    operands = [floats(*x, cols, dtype=dtype), Known(integers(0, 256, rows, groups, block * bits // 8, dtype=U8)),
                Known((random.rand(rows, groups) * 0.1 + 0.01).astype(dtype))]
    if zeros == "packed":
        operands.append(Known(integers(0, 256, rows, (groups * bits + 7) // 8, dtype=U8)))
    elif zeros == "floats":
        operands.append(Known((random.rand(rows, groups) * 2 ** bits).astype(dtype)))
    if bias:
        operands += [None] * (5 - len(operands)) + [weights(rows, dtype=dtype)]
    case("nbits_" + name, "MatMulNBits", operands, K=cols, N=rows, bits=bits, block_size=block, **more)


nbits("4", 4, 32, 64, 16)
nbits("4_zeros", 4, 32, 96, 80, "packed")
nbits("4_float_zeros", 4, 64, 128, 70, "floats")
nbits("4_bias", 4, 32, 64, 5, bias=True)
nbits("4_block_16", 4, 16, 64, 33, "packed")
nbits("4_odd_row", 4, 32, 50, 7, "packed", x=(4,))
nbits("4_level_4", 4, 128, 256, 48, accuracy_level=1)
nbits("8", 8, 32, 64, 16)
nbits("8_zeros", 8, 64, 128, 20, "packed", bias=True)
nbits("2", 2, 32, 64, 16, "packed")
nbits("4_f16", 4, 32, 64, 32, dtype=F16)


def gather_blocks(name, table, zeros=None, **more):
    case("gather_blocks_" + name, "GatherBlockQuantized", [table, integers(0, 10, 2, 3), Known(floats(10, 2)), zeros],
         block_size=32, gather_axis=0, quantize_axis=1, **more)


def nibbles(code, columns):
    return Known(integers(0, 256, 10, columns // 2, dtype=U8), code, (10, columns))


gather_blocks("4", Known(integers(0, 256, 10, 32, dtype=U8)), Known(integers(0, 256, 10, 1, dtype=U8)), bits=4)
gather_blocks("4_middle", Known(integers(0, 256, 10, 32, dtype=U8)), bits=4)
gather_blocks("8", Known(integers(0, 256, 10, 64, dtype=U8)), Known(integers(0, 256, 10, 2, dtype=U8)), bits=8)
gather_blocks("u4", nibbles(21, 64), nibbles(21, 2))
gather_blocks("i4", nibbles(22, 64))

# ---- attention

HEADS, SIZE = 2, 16
WIDTH = HEADS * SIZE
lengths, places = np.array([3, 5], I32), np.array([5, 4, 1, 0], I32)
keys = (np.arange(5) < lengths[:, None]).astype(I32)


def attention(name, mask=None, past=None, bias=None, outputs=1, **more):
    operands = [floats(2, 5, 6), weights(6, 3 * WIDTH), weights(3 * WIDTH), mask, past, bias]
    case("attention_" + name, "Attention", operands, outputs, num_heads=HEADS, **more)


attention("plain")
attention("lengths", lengths)
attention("places", places)
attention("keys", keys)
attention("rows", integers(0, 2, 2, 5, 5, dtype=I32))
attention("causal", unidirectional=1)
attention("past", None, floats(2, 2, HEADS, 4, SIZE), None, 2, unidirectional=1)
attention("past_keys", integers(0, 2, 2, 9, dtype=I32), floats(2, 2, HEADS, 4, SIZE), None, 2)
attention("bias", None, None, floats(1, HEADS, 5, 5), scale=0.3)
case("attention_sizes", "Attention", [floats(2, 5, 6), weights(6, 2 * WIDTH + 4), weights(2 * WIDTH + 4)],
     num_heads=HEADS, qkv_hidden_sizes=[WIDTH, WIDTH, 4])
for kind, low, high, dtype in (("u8", 0, 256, U8), ("i8", -127, 128, I8)):
    weight = Known(integers(low, high, 12, 3 * WIDTH, dtype=dtype))
    case("qattention_" + kind, "QAttention", [integers(0, 256, 2, 5, 12, dtype=U8), weight, weights(3 * WIDTH),
         Known(F32(0.01)), Known(F32(0.02)), lengths, Known(U8(120)), Known(dtype(3))], num_heads=HEADS)


def multi_head(name, operands, outputs=1, **more):
    case("multi_head_" + name, "MultiHeadAttention", operands, outputs, num_heads=HEADS, **more)


qkv = [floats(2, 5, WIDTH), floats(2, 6, WIDTH), floats(2, 6, WIDTH)]
past = [floats(2, HEADS, 4, SIZE), floats(2, HEADS, 4, SIZE)]
multi_head("plain", qkv)
multi_head("bias", qkv + [weights(3 * WIDTH)], scale=0.4)
multi_head("lengths", qkv + [None, np.array([4, 6], I32)])
multi_head("keys", qkv + [None, integers(0, 2, 2, 6, dtype=I32)], mask_filter_value=-1e9)
multi_head("added", qkv + [None, None, floats(1, 1, 5, 6)])
multi_head("causal", [qkv[0], floats(2, 5, WIDTH), floats(2, 5, WIDTH)], unidirectional=1)
multi_head("past", [qkv[0], floats(2, 5, WIDTH), floats(2, 5, WIDTH), None, None, None] + past, 3)
multi_head("past_bias", [qkv[0], floats(2, 5, WIDTH), floats(2, 5, WIDTH), weights(3 * WIDTH), None] +
           [floats(2, HEADS, 5, 9)] + past, 3)
multi_head("cross", [qkv[0], floats(2, HEADS, 6, SIZE), floats(2, HEADS, 6, SIZE)])
multi_head("value_size", [qkv[0], qkv[1], floats(2, 6, 2 * WIDTH)])

GROUPS, TABLE = 2, 12
angles = random.rand(TABLE, SIZE // 2)
cosines, sines = Known(np.cos(angles).astype(F32)), Known(np.sin(angles).astype(F32))


def group_query(name, num, before, buffer, heads=4, packed=False, last=None, turned=False, more_operands=(), batch=2,
                **more):
    total = before + num
    operands = [floats(batch, num, (heads + 2 * GROUPS) * SIZE), None, None] if packed else \
        [floats(batch, num, heads * SIZE), floats(batch, num, GROUPS * SIZE), floats(batch, num, GROUPS * SIZE)]
    last = np.full(batch, total - 1, I32) if last is None else np.array(last, I32)
    behind = (np.arange(buffer) < (last + 1 - num)[:, None])[:, None, :, None]  # what is not yet written is 0
    operands += [floats(batch, GROUPS, buffer, SIZE) * behind, floats(batch, GROUPS, buffer, SIZE) * behind]
    operands += [last, Known(np.array(total, I32))]
    operands += [cosines, sines] if turned or more_operands else []
    case("group_query_" + name, "GroupQueryAttention", operands + list(more_operands), 3, num_heads=heads,
         kv_num_heads=GROUPS, do_rotary=int(turned), **more)


group_query("prompt", 5, 0, 0)
group_query("prompt_turned", 5, 0, 0, turned=True)
group_query("step", 1, 4, 4, turned=True)
group_query("step_packed", 1, 4, 4, packed=True, turned=True, rotary_interleaved=1)
group_query("step_in_buffer", 1, 4, 8, turned=True)
group_query("steps", 3, 4, 4, batch=1)
group_query("lengths", 1, 4, 6, last=[2, 4], turned=True)
group_query("window", 1, 6, 6, local_window_size=3)
group_query("window_prompt", 6, 0, 0, local_window_size=3)
group_query("softcap", 4, 0, 0, softcap=1.5)
group_query("smooth", 4, 0, 0, smooth_softmax=1)
group_query("sink", 4, 0, 0, more_operands=(None, None, weights(4)))
group_query("places", 4, 0, 0, turned=True, more_operands=(np.array([[0, 1, 2, 3]] * 2, I64), floats(2, 1, 4, 4)))
case("rotary_offset", "RotaryEmbedding", [floats(2, 5, WIDTH), np.array([3], I64), cosines, sines])
case("rotary_heads", "RotaryEmbedding", [floats(2, HEADS, 5, SIZE), integers(0, TABLE, 2, 5), cosines, sines])
case("rotary_pairs", "RotaryEmbedding", [floats(2, 5, WIDTH), integers(0, TABLE, 2, 5), cosines, sines], interleaved=1)
case("rotary_part", "RotaryEmbedding", [floats(2, HEADS, 5, 2 * SIZE), integers(0, TABLE, 2, 5), cosines, sines],
     num_heads=HEADS, rotary_embedding_dim=SIZE)



# ---- embeddings, norms, elementwise ops

ids, segments = integers(0, 9, 2, 5, dtype=I32), integers(0, 2, 2, 5, dtype=I32)
words, columns, parts, scale, shift = weights(9, 12), weights(8, 12), weights(2, 12), weights(12), weights(12)
prefix = (np.arange(5) < np.array([[3], [5]])).astype(I32)
case("embed", "EmbedLayerNormalization", [ids, segments, words, columns, parts, scale, shift, prefix], 2)
case("embed_no_mask", "EmbedLayerNormalization", [ids, None, words, columns, None, scale, shift], 2)
case("embed_places", "EmbedLayerNormalization", [ids, segments, words, columns, parts, scale, shift, None] +
     [integers(0, 8, 2, 5, dtype=I32)], 3, epsilon=0.01)
tables = [Known(integers(0, 256, n, 12, dtype=U8)) for n in (9, 8, 2)]
norm = [Known(integers(0, 256, 12, dtype=U8)) for _ in range(2)]
scales, zeros = [Known(F32(0.01 * i)) for i in range(1, 6)], [Known(U8(100 + i)) for i in range(5)]
case("embed_u8", "QEmbedLayerNormalization", [ids, segments] + tables + norm + [prefix] + scales + zeros, 2)
x = floats(2, 3, 8)
case("skip_norm", "SkipLayerNormalization", [x, floats(2, 3, 8), weights(8), weights(8), weights(8)])
case("skip_norm_sum", "SkipLayerNormalization", [x, floats(2, 3, 8), weights(8), weights(8)], "y0,,,y3")
case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, floats(2, 3, 8), weights(8)], epsilon=1e-5)
case("rms_norm", "SimplifiedLayerNormalization", [x, weights(8)], domain="", axis=-1, epsilon=1e-5)
case("bias_gelu", "BiasGelu", [x, weights(8)])
case("fast_gelu", "FastGelu", [x, weights(8)])
case("gelu", "Gelu", [x])
case("quick_gelu", "QuickGelu", [x], alpha=1.5)
case("cdist", "CDist", [floats(4, 3), floats(5, 3)], metric="euclidean")
case("cdist_squares", "CDist", [floats(4, 3), floats(5, 3)])
case("inverse", "Inverse", [floats(2, 3, 3)])
case("trilu", "Trilu", [floats(2, 3, 3), Known(np.array(1, I64))], upper=0)
case("range", "Range", [Known(F32(1)), Known(F32(4)), Known(F32(0.5))])
case("gather_nd", "GatherND", [x, integers(0, 2, 4, 2)])
case("grid_sample", "GridSample", [floats(1, 2, 4, 5), floats(1, 3, 3, 2) * F32(0.6)], mode="bilinear",
     padding_mode="border")
case("unique", "Unique", [np.array([3, 1, 3, 2, 1, 3], F32)], 3)
case("expand_dims", "ExpandDims", [x, Known(np.array(1, I32))])
case("pad", "Pad", [x, Known(np.array([0, 1, 0, 0, 0, 2], I64)), Known(np.array([0.5], F32))])
half = np.fft.rfft(x)
pairs = np.stack([half.real, half.imag], -1).astype(F32)
case("rfft", "Rfft", [x], expected=[pairs], normalized=0, onesided=1, signal_ndim=1)
case("irfft", "Irfft", [pairs], expected=[x], normalized=0, onesided=1, signal_ndim=1)
case("matmul_scaled", "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], transA=1, transB=1, alpha=0.5)
case("matmul_batches", "FusedMatMul", [floats(3, 2, 4), floats(4, 2, 5)], transBatchA=1, transBatchB=1)
a, b = floats(3, 4), floats(4, 5)
case("matmul_activation", "FusedMatMulActivation", [a, b], expected=[np.where(a @ b > 0, 1, 0.2) * (a @ b)],
     activation="LeakyRelu", activation_alpha=0.2)


def erf_gelu(v):
    return v * 0.5 * (1 + np.vectorize(math.erf)(v / math.sqrt(2)))


def group_norm(v, groups):
    rows = v.reshape(v.shape[0], groups, -1).astype(np.float64)
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    return rows.reshape(v.shape) * scale.data[:4, None, None] + shift.data[:4, None, None]


case("split_gelu", "BiasSplitGelu", [x, weights(8)], expected=[x[..., :4] * erf_gelu(x[..., 4:])])
cases[-1][2][1] = Known(np.zeros(8, F32))
picture = floats(2, 4, 3, 5)
normal = group_norm(picture, 2)
case("group_norm", "GroupNorm", [picture, Known(scale.data[:4]), Known(shift.data[:4])], expected=[normal],
     activation=0, groups=2, channels_last=0)
case("group_norm_silu", "GroupNorm", [picture.transpose(0, 2, 3, 1), Known(scale.data[:4]), Known(shift.data[:4])],
     expected=[(normal / (1 + np.exp(-normal))).transpose(0, 2, 3, 1)], activation=1, groups=2)
case("gemm_relu", "FusedGemm", [floats(3, 4), weights(5, 4), weights(5)], transB=1, activation="Relu")
case("conv_add", "FusedConv", [floats(1, 3, 6, 6), weights(4, 3, 3, 3), weights(4), floats(1, 4, 4, 4)],
     activation="Clip", activation_params=[-0.5, 0.5])
for kind, name in enumerate(("float", "normal")):
    case("bnb_" + name, "MatMulBnb4", [floats(2, 3, 40), Known(integers(0, 256, 20 * 7, dtype=U8)),
         Known(np.abs(floats(18)))], K=40, N=7, block_size=16, quant_type=kind)

# ---- quantised ops

BYTES = {"u8": (U8, 0, 256), "i8": (I8, -128, 128)}


def quantised(kind, *dims, known=False):
    """Bytes, and numbers that let both round a half the same way: they do so before and after the zero point is
    added."""
    dtype, low, high = BYTES[kind]
    x = integers(low, high, *dims, dtype=dtype)
    return [Known(x) if known else x, Known(F32(1 / 64)), Known(dtype((low + high) // 2 + 4))]


for kind in BYTES:
    to = [Known(F32(1 / 32)), quantised(kind, 1)[2]]
    to_small = [Known(F32(1 / 256)), Known(BYTES[kind][0](BYTES[kind][1]))]
    case("qadd_" + kind, "QLinearAdd", quantised(kind, 2, 3, 4) + quantised(kind, 3, 1) + to)
    case("qmul_" + kind, "QLinearMul", quantised(kind, 2, 3, 4) + quantised(kind, 4, known=True) + to)
    case("qsigmoid_" + kind, "QLinearSigmoid", quantised(kind, 2, 12) + to_small)
    case("qleaky_" + kind, "QLinearLeakyRelu", quantised(kind, 2, 12) + to, alpha=0.1)
    case("qaverage_" + kind, "QLinearAveragePool", quantised(kind, 1, 2, 6, 6) + to, kernel_shape=[2, 2],
         strides=[2, 2])
    case("qaverage_last_" + kind, "QLinearAveragePool", quantised(kind, 1, 6, 6, 3) + to, kernel_shape=[3, 3],
         pads=[1, 1, 1, 1], channels_last=1)
    case("qglobal_" + kind, "QLinearGlobalAveragePool", quantised(kind, 1, 3, 5, 5) + to)
    case("qglobal_last_" + kind, "QLinearGlobalAveragePool", quantised(kind, 1, 5, 5, 3) + to, channels_last=1)
    case("qconcat_" + kind, "QLinearConcat", to + quantised(kind, 2, 3) + quantised(kind, 2, 4), axis=1)
    case("qsoftmax_" + kind, "QLinearSoftmax", quantised(kind, 2, 3, 6) + to_small, axis=-1, opset=13)
    condition = integers(0, 2, 2, 3, dtype=bool)
    case("qwhere_" + kind, "QLinearWhere", [condition] + quantised(kind, 2, 3) + quantised(kind, 2, 3) + to)
    weight, bias = quantised("i8", 4, 3, 3, 3, known=True)[:2] + [Known(I8(0))], Known(integers(-99, 99, 4, dtype=I32))
    case("qconv_last_" + kind, "QLinearConv", quantised(kind, 1, 6, 6, 3) + weight + to + [bias], channels_last=1)
    case("qmaxpool_last_" + kind, "NhwcMaxPool", quantised(kind, 1, 6, 6, 3)[:1], kernel_shape=[2, 2], strides=[2, 2])
    weight = quantised("i8", 4, 5, known=True)
    case("qgemm_" + kind, "QGemm", quantised(kind, 3, 5) + weight + [bias] + to, transB=1)
    case("qgemm_floats_" + kind, "QGemm", quantised(kind, 3, 5) + quantised("i8", 5, 4, known=True) + [None], alpha=0.5)
    low, high, dtype = BYTES[kind][1], BYTES[kind][2], BYTES[kind][0]
    columns = [Known(integers(low, high, 6, 4, dtype=dtype)), Known((random.rand(4) * 0.1 + 0.01).astype(F32))]
    case("to_float_" + kind, "MatMulIntegerToFloat", [integers(0, 256, 2, 3, 6, dtype=U8), columns[0], Known(F32(0.1)),
         columns[1], Known(U8(120)), Known(integers(low, high, 4, dtype=dtype)), weights(4)])
    case("dynamic_" + kind, "DynamicQuantizeMatMul",
         [floats(2, 3, 6), columns[0], Known(F32(0.05)), Known(dtype(3)), weights(4)])
    case("dynamic_columns_" + kind, "DynamicQuantizeMatMul", [floats(2, 3, 6)] + columns)
case("quantize_u16", "QuantizeLinear", [floats(2, 9), Known(F32(0.001)), Known(np.uint16(30000))])
scales = Known((random.rand(9) * 0.001 + 0.0001).astype(F32))
case("quantize_i16", "QuantizeLinear", [floats(2, 9), scales, Known(np.zeros(9, np.int16))], axis=1)
words = integers(0, 65536, 2, 9, dtype=np.uint16)
case("dequantize_u16", "DequantizeLinear", [words, Known(F32(0.001)), Known(np.uint16(30000))])
case("dequantize_i32", "DequantizeLinear", [integers(-65536, 65536, 2, 9, dtype=I32), Known(F32(0.001))])


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def lstm(sequence, w, r, bias, size):
    """The layer in floats: ONNX Runtime rounds its states to bytes in each step."""
    h = c = np.zeros((sequence.shape[1], size))
    ys = []
    for step in sequence:
        i, o, f, g = np.split(step @ w + h @ r + bias[:4 * size] + bias[4 * size:], 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return [np.stack(ys)[:, None], h[None], c[None]]


sequence, bias = floats(3, 2, 5), weights(1, 48)
w, r = integers(-127, 128, 1, 5, 24, dtype=I8), integers(-127, 128, 1, 6, 24, dtype=I8)
numbers = [Known(np.array([0.003], F32)), Known(np.array([2], I8)), Known(np.array([0.004], F32)),
           Known(np.array([0], I8))]
case("dynamic_lstm", "DynamicQuantizeLSTM", [sequence, Known(w), Known(r), bias, None, None, None, None] + numbers, 3,
     expected=lstm(sequence, (w[0] - 2.0) * 0.003, r[0] * 0.004, bias.data[0], 6), hidden_size=6)


# ---- dtypes of few bits

node = helper.make_node
edges = np.array([0, 1, -1, 0.3, 2.7, 300, 448, 464, 465, 1e5, -1e5, 1e-3, 2 ** -10, 240, 57344, 61439, 1e-8, np.inf,
                  -np.inf, np.nan], F32)
for code in (17, 18, 19, 20):
    for saturate in (1, 0):
        case(f"cast_{code}_{saturate}", [node("Cast", ["x0"], ["a"], to=code, saturate=saturate),
                                         node("Cast", ["a"], ["y0"], to=1)], [edges])
for code in (17, 18, 19, 20, 21, 22, 25, 26):
    size = 40 * {21: 4, 22: 4, 25: 2, 26: 2}.get(code, 8) // 8
    weight = Known(integers(0, 110, size, dtype=U8), code, (8, 5))
    zero = Known(np.zeros(1 if code < 23 else 0, U8), code, ())
    case(f"weight_{code}", [node("DequantizeLinear", ["x1", "x2"], ["a"], axis=1), node("MatMul", ["x0", "a"], ["y0"])],
         [floats(2, 8), weight, Known(np.abs(floats(5)))])
    if code < 23:
        case(f"round_{code}", [node("QuantizeLinear", ["x0", "x1", "x2"], ["a"]),
                               node("DequantizeLinear", ["a", "x1", "x2"], ["y0"])],
             [edges[:-3], Known(F32(0.5)), zero])
for code in (21, 22):
    case(f"blocks_{code}", [node("DequantizeLinear", ["x1", "x2"], ["a"], axis=0, block_size=16),
                            node("MatMul", ["x0", "a"], ["y0"])],
         [floats(2, 32), Known(integers(0, 256, 80, dtype=U8), code, (32, 5)), Known(np.abs(floats(2, 5)))])


# ---- ONNX's own, in forms that its node tests leave out

def form(name, op, operands, outputs=1, **more):
    case("form_" + name, op, operands, outputs, domain="", **more)


def whole(low, high, *dims, dtype=I64):
    return Known(integers(low, high, *dims, dtype=dtype))


form("transposed_shape", "ConvTranspose", [floats(1, 2, 3, 4), weights(2, 3, 2, 3)], output_shape=[3, 5])
form("transposed_shape_stride", "ConvTranspose", [floats(1, 2, 5), weights(2, 1, 4)], output_shape=[9], strides=[2],
     output_padding=[1])
form("nearest_down", "Resize", [floats(1, 1, 5, 7), Known(F32([1, 1, 0.7, 0.34]))], mode="nearest", version=10)
form("nearest_ties", "Resize", [floats(1, 1, 6, 6), None, Known(F32([1, 1, 0.5, 2.3]))], mode="nearest",
     coordinate_transformation_mode="pytorch_half_pixel", version=13)
form("nearest_outside", "Resize", [floats(1, 1, 4), Known(F32([0, 0, 0.25, 1, 1, 1.3])), None, Known(I64([1, 1, 5]))],
     mode="nearest", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
for dtype in (U8, np.int32):
    form(f"linear_{dtype.__name__}", "Resize", [integers(0, 100, 1, 1, 3, 4, dtype=dtype), None, Known(F32([1, 1, 2, 2]))],
         mode="linear", coordinate_transformation_mode="asymmetric")
    form(f"linear_half_{dtype.__name__}", "Resize",
         [integers(0, 100, 1, 1, 3, 4, dtype=dtype), None, Known(F32([1, 1, 2, 2]))], mode="linear")
for op in ("exclusive", "reverse"):
    form(f"sum_of_none_{op}", "CumSum", [floats(2, 0), Known(I64(1))], **{op: 1})
form("back_from_before", "Slice", [floats(4, 3), Known(I64([-8, 5])), Known(I64([-99, -99])), Known(I64([0, 1])),
                                   Known(I64([-2, -1]))])
for version in (12, 18):
    form(f"mean_of_integers_{version}", "ReduceMean", [integers(-9, 9, 3, 4, dtype=np.int32)],
         keepdims=0, version=version)
form("mean_of_some_integers", "ReduceMean", [integers(-9, 9, 3, 4), Known(I64([-1]))])
for op, x in (("QuantizeLinear", floats(4)), ("DequantizeLinear", integers(0, 256, 4, dtype=U8))):
    form(f"one_scale_{op}", op, [x, Known(F32([0.1])), Known(U8([7]))], version=12)
for dtype in (U8, np.int32):
    form(f"shrink_{dtype.__name__}", "Shrink", [integers(0, 6, 8, dtype=dtype)], lambd=1.5, bias=0.9)


pool = {"kernel_shape": [3, 2], "strides": [2, 2]}
for name, op, dtype, outputs, more in (
        ("ceil_behind", "MaxPool", F32, 1, {"kernel_shape": [3], "strides": [3], "pads": [1, 2], "ceil_mode": 1}),
        ("mean_ceil_behind", "AveragePool", F32, 1, {"kernel_shape": [3], "strides": [3], "pads": [1, 2], "ceil_mode": 1}),
        ("counted_ceil_behind", "AveragePool", F32, 1, {"kernel_shape": [3], "strides": [3], "pads": [1, 2], "ceil_mode": 1,
                                                        "count_include_pad": 1}),
        ("uneven_indices", "MaxPool", F32, 2, dict(pool, pads=[1, 0, 2, 1])),
        ("uneven_columns", "MaxPool", F32, 2, dict(pool, pads=[1, 0, 2, 1], storage_order=1)),
        ("uneven_bytes", "MaxPool", U8, 2, dict(pool, auto_pad="SAME_LOWER")),
        ("columns_of_3", "MaxPool", F32, 2, {"kernel_shape": [1, 2, 2], "storage_order": 1, "pads": [0, 1, 1, 0, 1, 1]})):
    sizes = [1, 2] + {1: [7], 2: [5, 6], 3: [2, 4, 3]}[len(more["kernel_shape"])]
    form("pool_" + name, op, [floats(*sizes) if dtype == F32 else integers(0, 3, *sizes, dtype=dtype)], outputs, **more)
form("hardmax_of_none", "Hardmax", [floats(2, 0)])
form("smoothed_integers", "Resize", [integers(0, 100, 1, 1, 6, 4, dtype=np.int32), None, Known(F32([1, 1, 1, 0.5]))],
     mode="linear", antialias=1)


def recurrent(name, op, gates, activations, **more):
    alphas = [a for a in activations if a in ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu")]
    betas = [a for a in alphas if a in ("Affine", "HardSigmoid", "ScaledTanh")]
    both = len(activations) // {4: 3, 3: 2, 1: 1}[gates]
    form(name, op, [floats(3, 2, 2), weights(both, gates * 3, 2), weights(both, gates * 3, 3), weights(both, gates * 6)],
         2, activations=activations, hidden_size=3, direction="bidirectional" if both == 2 else "forward",
         activation_alpha=[0.3 + 0.1 * i for i in range(len(alphas))] or None,
         activation_beta=[0.9 - 0.1 * i for i in range(len(betas))] or None, **more)


recurrent("lstm_acts", "LSTM", 4, ["HardSigmoid", "Softsign", "ScaledTanh", "LeakyRelu", "Affine", "Elu"])
recurrent("gru_acts", "GRU", 3, ["ThresholdedRelu", "Softplus", "sigmoid", "HardSigmoid"])
recurrent("rnn_acts", "RNN", 1, ["Elu", "ScaledTanh"], clip=0.4)


# ---- found in files

for code in (21, 22):
    case(f"round_zero_{code}", [node("QuantizeLinear", ["x0", "x1", "x2"], ["a"]),
                                node("DequantizeLinear", ["a", "x1", "x2"], ["y0"])],
         [floats(4, 3), Known(np.abs(floats(3))), Known(np.array([0x5b, 0x0d], U8), code, (3,))])


def last(op, x, **more):
    names = x.split()
    return node(op, names[:-1], names[-1:], domain="com.microsoft", **more)


# a net as ONNX Runtime saves it at its highest level: channels behind everywhere but at the ends
case("qnet_last", [node("Transpose", ["x0"], ["a"], perm=[0, 2, 3, 1]),
                   last("QLinearConv", "a x1 x2 x3 x4 x5 x1 x2 b", channels_last=1, pads=[1, 1, 1, 1]),
                   last("QLinearConv", "b x1 x2 x6 x4 x5 x1 x2 c", channels_last=1),
                   last("QLinearAdd", "b x1 x2 c x1 x2 x1 x2 d"), last("QLinearLeakyRelu", "d x1 x2 x1 x2 e", alpha=0.1),
                   last("QLinearConcat", "x1 x2 e x1 x2 b x1 x2 f", axis=3),
                   last("NhwcMaxPool", "f g", kernel_shape=[2, 2], strides=[2, 2]),
                   last("QLinearGlobalAveragePool", "g x1 x2 x1 x2 h", channels_last=1),
                   node("Transpose", ["h"], ["y0"], perm=[0, 3, 1, 2])],
     [integers(0, 256, 1, 3, 6, 6, dtype=U8), Known(F32(1 / 64)), Known(U8(120)),
      Known(integers(-40, 41, 4, 3, 3, 3, dtype=I8)), Known(F32(1 / 128)), Known(I8(0)),
      Known(integers(-40, 41, 4, 4, 1, 1, dtype=I8))])


def rounded(nodes):
    """Each result rounded to bytes behind its node, as quantisers write it: y is called y_f before."""
    done = [node("DequantizeLinear", ["x0", "x1", "x2"], ["a"])]
    for n in nodes:
        outputs = list(n.output)
        n.output[:] = [y + "_f" for y in outputs]
        done.append(n)
        for y in outputs:
            done.append(node("QuantizeLinear", [y + "_f", "x1", "x2"], [y if y == "y0" else y + "_q"]))
            if y != "y0":
                done.append(node("DequantizeLinear", [y + "_q", "x1", "x2"], [y]))
    return done


# spellings that have ops on bytes: weights of u8, one slope, a hard sigmoid, two parts, a picture twice as large
case("qnet_spelled", [node("DequantizeLinear", ["x3", "x4", "x5"], ["w"])] + rounded([
        node("Conv", ["a", "w"], ["b"]), node("PRelu", ["b", "x6"], ["c"]), node("Split", ["c"], ["d", "e"], axis=1, num_outputs=2),
        node("HardSigmoid", ["d"], ["f"], alpha=1 / 6), node("Mul", ["e", "f"], ["g"]),
        node("Resize", ["g", "", "x7"], ["y0"], mode="nearest", coordinate_transformation_mode="asymmetric",
             nearest_mode="floor")]),
     [integers(0, 256, 1, 2, 5, 5, dtype=U8), Known(F32(1 / 32)), Known(U8(120)), Known(integers(90, 170, 4, 2, 3, 3, dtype=U8)),
      Known(F32(1 / 64)), Known(U8(128)), Known(F32([0.2])), Known(F32([1, 1, 2, 2]))], version=18)
case("weights_u8", [node("DequantizeLinear", ["x1", "x2", "x3"], ["w"], axis=1), node("MatMul", ["x0", "w"], ["y0"])],
     [floats(2, 3), Known(integers(0, 256, 3, 4, dtype=U8)), Known(np.abs(floats(4))), Known(integers(0, 256, 4, dtype=U8))])
for kind, more in (("2", {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}), ("3", {}),
                   ("2_ceil", {"nearest_mode": "ceil"})):
    form("nearest_" + kind, "Resize", [floats(1, 2, 3, 4), None, Known(F32([1, 1, int(kind[0]), 2]))], mode="nearest", **more)

# ---- linear attention

for kind, columns, state, more in (("1", 1, True, {"activation": "silu"}), ("4", 4, True, {}), ("first", 4, False, {"dilation": 2})):
    long = 2 * more.get("dilation", 1)
    case("causal_conv_" + kind, "CausalConvWithState", [floats(2, 4, columns), weights(4, 1, 3), weights(4),
         floats(2, 4, long) if state else None], 2, **more)
for rule in ("linear", "gated", "delta", "gated_delta"):
    for tokens in (1, 3):
        case(f"linear_attention_{rule}_{tokens}", "LinearAttention",
             [floats(2, tokens, 4 * 4), floats(2, tokens, 2 * 4) * F32(0.3), floats(2, tokens, 2 * 3),
              floats(2, 2, 4, 3) if tokens == 1 else None,
              -np.abs(floats(2, tokens, 2 if tokens == 1 else 8)) if "gated" in rule else None,
              random.rand(2, tokens, 1 if tokens == 1 else 2).astype(F32) if "delta" in rule else None], 2,
             q_num_heads=4, kv_num_heads=2, update_rule=rule)
case("linear_gate", "LinearAttentionGate", [floats(2, 3, 4), weights(4), weights(4), floats(2, 3, 4)], 2)


# ---- what ONNX Runtime does where ONNX's words leave room

for kind in BYTES:
    case("qaverage_ceil_" + kind, "QLinearAveragePool", quantised(kind, 1, 2, 5, 6) + [Known(F32(1 / 32)), quantised(kind, 1)[2]],
         kernel_shape=[4, 2], strides=[3, 1], pads=[1, 0, 0, 0], ceil_mode=1, count_include_pad=1)
for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare", "ReduceMean", "ReduceMax"):
    form("noop_" + op, op, [floats(3, 4) - F32(1 if "Log" not in op else -9), Known(np.zeros(0, I64))], version=18,
         noop_with_empty_axes=1)
form("layer_norm_f64", "LayerNormalization", [floats(2, 3, 4, dtype=np.float64), Known(random.randn(4))], 3, version=17)
form("dropout_mask", "Dropout", [floats(2, 3)], 2, version=10)


# ---- forms of attention, weights and norms that exporters of other years write

few = [floats(2, 2, 4), floats(2, 3, 4), floats(2, 3, 4)]
multi_head("causal_cross", few, unidirectional=1)
multi_head("causal_longer", few + [None, None, None, floats(2, HEADS, 1, 2), floats(2, HEADS, 1, 2)], 3,
           unidirectional=1)
multi_head("packed_lengths", few + [None, I32([2, 3, 0, 2, 4, 0, 3, 6])])
for kind, zero in (("", None), ("_zeros", Known(floats(9)))):
    case("nbits_ordered" + kind, "MatMulNBits",
         [floats(2, 48), Known(integers(0, 256, 3, 3, 8, dtype=U8)), Known(np.abs(floats(9))), zero,
          Known(random.permutation(np.arange(48) // 16).astype(I32))], K=48, N=3, bits=4, block_size=16)
for kind in BYTES:
    case("qsoftmax_over_" + kind, "QLinearSoftmax",
         quantised(kind, 2, 3, 6) + [Known(F32(1 / 64)), quantised(kind, 1)[2]], axis=1, opset=11)
form("layer_norm_row", "LayerNormalization", [floats(2, 3, 4), weights(4), weights(3, 1)], version=17, axis=1)


# ---- found by random models

def these(*numbers, dtype=I64):
    return Known(np.array(numbers, dtype))


form("einsum_of_integers", "Einsum", [integers(-9, 9, 3, 3, dtype=I32), integers(-9, 9, 1, 4, dtype=I32)],
     equation="ce,ab->cab", version=12)
form("pad_u32", "Pad", [integers(0, 9, 2, 3, dtype=np.uint32), these(1, 0, 0, 2), Known(np.array(2 ** 32 - 2, np.uint32))])
form("pad_most", "Pad", [integers(0, 9, 2, 3), these(1, 0, 0, 2), Known(np.array(2 ** 63 - 1))])
form("back_from_none", "Slice", [floats(0, 3), these(-5), these(-7), these(0), these(-1)])
form("pad_wrap_cut", "Pad", [floats(4, 5), these(-1, 2, 2, -1)], mode="wrap")
form("pad_reflect_none", "Pad", [floats(2, 2, 0, 2), these(0, -1, 0, 1, 0, -1, 0, -1)], mode="reflect")
form("l2_of_halves", "ReduceL2", [floats(2, 8, dtype=F16) * F16(300)], version=13, axes=[1])
halves = floats(1, 6, 2, 3, dtype=F16) * F16(300)
sums = sum(np.pad(halves.astype(F32) ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))[:, i:i + 6] for i in range(3))
form("lrn_of_halves", "LRN", [halves], version=13, size=3, expected=[(halves / (1 + 1e-4 / 3 * sums) ** 0.75).astype(F16)])
deviation = np.std(halves.astype(F32), axis=(0, 2, 3), keepdims=True)
form("mvn_of_halves", "MeanVarianceNormalization", [halves], version=13,
     expected=[((halves - np.mean(halves.astype(F32), axis=(0, 2, 3), keepdims=True)) / deviation).astype(F16)])
form("pow_of_integers", "Pow", [np.array([7, -3, 5], I32), np.array([9, 3, 11], F32)], version=15)
form("crop_to_end", "Resize", [floats(1, 2, 5, 4), these(0, 0, 0, 0.2, 1, 1, 1.2, 1, dtype=F32),
                               these(1, 1, 1.5, 0.7, dtype=F32)], mode="linear",
     coordinate_transformation_mode="tf_crop_and_resize")
form("stft_of_rows", "STFT", [floats(2, 20), Known(np.array(4)), None, Known(np.array(8))], version=17)

form("attention_defaults", "Attention", [floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)], version=23,
     is_causal=0, qk_matmul_output_mode=0, softcap=0.0)
octets = integers(0, 256, 2, 3, dtype=U8)
form("dequantize_as_scale", "DequantizeLinear", [octets, Known(F32(0.1)), Known(U8(3))], version=23, output_dtype=0)
form("dequantize_wider", "DequantizeLinear", [octets, Known(F16(0.5)), Known(U8(3))], version=23, output_dtype=1,
     expected=[(octets - F32(3)) * F32(0.5)])

specials = np.array([np.nan, -1, 0.5, 1, 2, np.inf, -np.inf], F32)
form("thresholded_nan", "ThresholdedRelu", [specials], alpha=-0.5)
form("sign_nan", "Sign", [specials])


def loop(name, turns, condition, count):
    """count outputs of each turn, of a loop that may have none: v, its sizes, v twice."""
    node, info, rows = helper.make_node, helper.make_tensor_value_info, ["Neg", "Shape", "Concat"][:count]
    nodes = [node("Identity", ["c"], ["more"]), node("Add", ["v", "v"], ["next"])]
    nodes += [node(op, ["v"] * (1 + (op == "Concat")), [f"s{i}"], **({"axis": 0} if op == "Concat" else {}))
              for i, op in enumerate(rows)]
    body = helper.make_graph(nodes, "body", [info("i", 7, []), info("c", 9, []), info("v", 1, [2, 3])],
                             [info("more", 9, []), info("next", 1, [2, 3])] +
                             [info(f"s{i}", 7 if op == "Shape" else 1, None) for i, op in enumerate(rows)])
    outer = [node("Loop", ["x0", "x1", "x2"], [f"y{i}" for i in range(count + 1)], body=body)]
    form(name, outer, [Known(np.array(turns)), Known(np.array(condition)), floats(2, 3)], count + 1)


loop("loop_none", 0, True, 3)
loop("loop_stopped", 5, False, 2)
loop("loop_two", 2, True, 3)


# ---- floats of 8 bits, integers of 4, which ONNX's own tests have from version 1.14 on

edges = np.array([0, 1, 448, 463, 464, 465, 57344, 60000, 1e6, np.inf, -np.inf, np.nan, 2**-6, 2**-9, 2**-10, 1.5 * 2**-10,
                  2**-16, 2**-17, 2**-18, 240, 247, 248, 249, 0.1, -3.1, 17.5, 18.5], F32)


def back(name, first, second, operands, **more):
    """What an op makes of x0 .., and of that another f32; both have these attributes."""
    form(name, [helper.make_node(*first, **more), helper.make_node(*second, **more)], operands)


quantize, dequantize = ("QuantizeLinear", ["x0", "x1", "x2"], ["a"]), ("DequantizeLinear", ["a", "x1", "x2"], ["y0"])
for code in (17, 18, 19, 20):
    form(f"f8_{code}", [helper.make_node("Cast", ["x0"], ["a"], to=code), helper.make_node("Cast", ["a"], ["y0"], to=1)], [edges])
    back(f"f8_quantised_{code}", quantize, dequantize,
         [edges[np.isfinite(edges)], Known(F32(0.25)), Known(U8([0]), code, ())])
for code in (21, 22):
    back(f"nibbles_{code}", quantize, dequantize,
         [np.array([-9, -8, -7, -1, 0, 1, 7, 8, 15, 16, 3.5, -2.5, 2.5], F32), Known(F32(0.5)), Known(U8([2]), code, ())])
    back(f"nibbles_of_rows_{code}", quantize, dequantize,
         [floats(3, 5) * F32(5), Known(F32([0.5, 1, 0.2])), Known(U8([0x21, 3]), code, (3,))], axis=0)
    back(f"nibbles_of_blocks_{code}", quantize, dequantize,
         [floats(3, 4) * F32(5), Known(F32([[0.5, 1], [0.2, 1], [2, 0.1]])), Known(U8([0x21, 3, 0x11]), code, (3, 2))],
         axis=1, block_size=2)
    form(f"nibbles_turned_{code}",
         [helper.make_node("Transpose", ["x1"], ["t"]), helper.make_node("DequantizeLinear", ["t", "x2"], ["a"]),
          helper.make_node("Add", ["x0", "a"], ["y0"])],
         [floats(5, 3), Known(integers(0, 256, 8, dtype=U8), code, (3, 5)), Known(F32(0.5))])


def field(number, data):
    size, head = len(data), [number << 3 | 2]
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes(head + [size]) + data


def pack(folder, path):
    """The first of each family (what stands before _), and all that take less than 3,000 bytes."""
    seen = set()
    with open(path, "wb") as f:
        for name in sorted(os.listdir(folder)):
            at, family = os.path.join(folder, name), name.split("_")[0]
            parts = [field(1, name.encode()), field(2, open(os.path.join(at, "model.onnx"), "rb").read())]
            for number, kind in ((3, "input"), (4, "output")):
                for i in range(32):
                    tensor = os.path.join(at, "test_data_set_0", f"{kind}_{i}.pb")
                    if os.path.exists(tensor):
                        parts.append(field(number, open(tensor, "rb").read()))
            whole = field(1, b"".join(parts))
            if len(whole) < 3000 or family not in seen:
                f.write(whole)
            seen.add(family)


def main():
    modules, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    for c in cases:
        write(folder, *c)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_runtime.js")
    subprocess.run(["node", script, modules, folder], check=True)
    print(f"{len(os.listdir(folder))} of {len(cases)} cases run by ONNX Runtime")
    if len(sys.argv) > 3:
        pack(folder, sys.argv[3])


main()
