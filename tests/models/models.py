"""The models that record.py records, by category: those of the attack list first named for what they attack."""
import math
import torch, torch.nn as nn, torch.nn.functional as F

MODELS = []


class Function(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def model(category, name, net, *inputs, tol=1e-5, rename=None):
    """An input is the shape of a tensor of f32, or (shape, dtype, bound)."""
    specs = [i if i and isinstance(i[0], tuple) else (i, torch.float32) for i in inputs]
    MODELS.append((name, net if isinstance(net, nn.Module) else Function(net), specs, category, tol, rename or {}))


def I(shape, bound, dtype=torch.int64):
    return (shape, dtype, bound)


B = torch.bool
Seq = nn.Sequential
S = (2, 3)

# ---- convolution
c = "convolution"
model(c, "conv1d", nn.Conv1d(3, 4, 3, padding=1), (2, 3, 7))
model(c, "conv1d_stride_groups", nn.Conv1d(4, 4, 3, stride=2, groups=2, bias=False), (1, 4, 9))
model(c, "conv2d", nn.Conv2d(3, 4, 3), (1, 3, 6, 5))
model(c, "conv2d_first_layer", nn.Conv2d(3, 4, 7, stride=2, padding=3), (1, 3, 12, 12))
model(c, "conv2d_dilated_grouped", nn.Conv2d(4, 6, 3, dilation=2, groups=2, padding=2), (2, 4, 5, 6))
model(c, "conv2d_depthwise", nn.Conv2d(6, 6, 3, groups=6, padding=1, bias=False), (1, 6, 4, 4))
model(c, "conv2d_asymmetric", nn.Conv2d(2, 3, (1, 3), stride=(2, 1), padding=(0, 1)), (1, 2, 5, 4))
model(c, "conv3d", nn.Conv3d(2, 3, 2, padding=1), (1, 2, 3, 3, 3))
model(c, "conv3d_stride", nn.Conv3d(1, 2, (1, 2, 2), stride=(1, 2, 2)), (1, 1, 2, 4, 4))
model(c, "conv_transpose2d", nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1), (1, 3, 4, 4))
model(c, "conv_transpose2d_groups", nn.ConvTranspose2d(4, 4, 2, groups=2, dilation=2), (1, 4, 3, 3))
model(c, "conv_transpose1d", nn.ConvTranspose1d(2, 3, 3, stride=2), (1, 2, 5))
model(c, "convolution", nn.Conv2d(3, 4, 3, padding=1), (1, 3, 5, 5), rename={"convolution": 1})
model(c, "convolution_transposed", nn.ConvTranspose2d(3, 2, 2, stride=2), (1, 3, 3, 3), rename={"convolution": 1})
model(c, "conv_relu_stack", Seq(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3), nn.ReLU()), (2, 1, 7, 7))

# ---- matrix
c = "matrix"
model(c, "linear", nn.Linear(5, 4), (3, 5))
model(c, "linear_nd_no_bias", nn.Linear(4, 6, bias=False), (2, 3, 4))
model(c, "addmm", lambda b, x, w: torch.addmm(b, x, w, beta=0.5, alpha=2.0), (4,), (3, 5), (5, 4))
model(c, "mm", torch.mm, (3, 4), (4, 5))
model(c, "bmm", torch.bmm, (2, 3, 4), (2, 4, 5))
model(c, "matmul_vectors", torch.matmul, (6,), (6,))
model(c, "matmul_matrix_vector", torch.matmul, (3, 4), (4,))
model(c, "matmul_broadcast", torch.matmul, (2, 1, 3, 4), (5, 4, 2))
model(c, "einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 2))
model(c, "einsum_trace_like", lambda a, b: torch.einsum("ij,kj->ki", a, b), (3, 4), (2, 4))
model(c, "baddbmm", lambda c_, a, b: torch.baddbmm(c_, a, b), (2, 3, 3), (2, 3, 4), (2, 4, 3))
model(c, "linear_relu_20", Seq(*[m for _ in range(20) for m in (nn.Linear(64, 64), nn.ReLU())]), (2, 64), tol=1e-6)
model(c, "mlp", Seq(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)), (4, 6))

# ---- activation
c = "activation"
for name in ("relu", "silu", "hardswish", "leaky_relu", "gelu", "hardtanh", "elu", "softplus", "hardsigmoid", "relu6",
             "selu", "mish", "logsigmoid"):
    model(c, name, getattr(F, name), (3, 7))
model(c, "sigmoid", torch.sigmoid, (3, 7))
model(c, "tanh", torch.tanh, (3, 7))
model(c, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), (3, 7))
model(c, "leaky_relu_slope", lambda x: F.leaky_relu(x, 0.3), (3, 7))
model(c, "prelu", nn.PReLU(3), (2, 3, 4))
model(c, "glu", lambda x: F.glu(x, 1), (2, 6))
model(c, "relu_in_place", Seq(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)), (3, 4))
model(c, "hardswish_in_place", Seq(nn.Conv2d(2, 3, 1), nn.Hardswish(inplace=True)), (1, 2, 3, 3))

# ---- normalisation
c = "normalisation"
model(c, "batch_norm2d", nn.BatchNorm2d(3), (2, 3, 4, 4))
model(c, "batch_norm1d", nn.BatchNorm1d(5), (4, 5))
model(c, "batch_norm_not_affine", nn.BatchNorm2d(3, affine=False), (2, 3, 2, 2), rename={"search": 1})
model(c, "batch_norm_of_the_batch", nn.BatchNorm1d(4, track_running_stats=False), (5, 4))
model(c, "layer_norm", nn.LayerNorm(6), (2, 3, 6))
model(c, "layer_norm_two_dims", nn.LayerNorm((3, 4)), (2, 3, 4))
model(c, "layer_norm_not_affine", nn.LayerNorm(5, elementwise_affine=False), (4, 5))
model(c, "layer_norm_no_bias", lambda x, w: F.layer_norm(x, (4,), w, None), (3, 4), (4,))
model(c, "layer_norm_no_weight", lambda x, b: F.layer_norm(x, (4,), None, b), (3, 4), (4,))
model(c, "group_norm", nn.GroupNorm(2, 4), (2, 4, 3, 3))
model(c, "instance_norm", nn.InstanceNorm2d(3), (2, 3, 4, 4))
model(c, "instance_norm_affine", nn.InstanceNorm2d(3, affine=True), (2, 3, 3, 3))
model(c, "instance_norm_after_conv", Seq(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4), nn.ReLU()), (1, 2, 6, 6))
model(c, "layer_norm_linear_10", Seq(*[m for _ in range(10) for m in (nn.LayerNorm(64), nn.Linear(64, 64))]), (2, 64),
      tol=1e-6)
model(c, "conv_bn_relu", Seq(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)), (1, 3, 6, 6))

# ---- pooling
c = "pooling"
model(c, "max_pool2d", lambda x: F.max_pool2d(x, 2), (1, 3, 6, 6))
model(c, "max_pool2d_padded", lambda x: F.max_pool2d(x, 3, stride=2, padding=1), (1, 2, 7, 7))
model(c, "max_pool2d_ceil_dilated", lambda x: F.max_pool2d(x, 2, stride=2, dilation=2, ceil_mode=True), (1, 1, 7, 7))
model(c, "avg_pool2d", lambda x: F.avg_pool2d(x, 2), (1, 3, 6, 6))
model(c, "avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 2, ceil_mode=True), (1, 1, 5, 5))
model(c, "avg_pool2d_no_pad_count", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (1, 2, 6, 6))
model(c, "adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (1, 2, 5, 7))
model(c, "adaptive_avg_pool2d_one", lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 5, 4))
model(c, "adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (1, 1)), (1, 3, 4, 5))
model(c, "max_pool1d", lambda x: F.max_pool1d(x, 3, 2), (1, 2, 8))
model(c, "avg_pool1d", lambda x: F.avg_pool1d(x, 3, 1, 1), (1, 2, 6))
model(c, "pool_flatten_linear", Seq(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3)), (2, 3, 4, 4))

# ---- elementwise
c = "elementwise"
model(c, "add_broadcast", torch.add, (2, 4, 6), (1, 1, 6))
model(c, "add_alpha", lambda a, b: torch.add(a, b, alpha=3), S, S)
model(c, "sub", lambda a, b: a - b, S, (3,))
model(c, "mul", lambda a, b: a * b, (3, 1), (1, 4))
model(c, "div", lambda a, b: a / (b + 3.0), S, S)
model(c, "div_floor", lambda a, b: torch.div(a, b + 3.0, rounding_mode="floor"), S, S)
model(c, "pow_scalar", lambda a: a ** 2, S)
model(c, "pow_tensor", lambda a, b: torch.pow(a.abs(), b), S, S)
model(c, "scalar_pow", lambda a: 2.0 ** a, S)
model(c, "sqrt", lambda a: torch.sqrt(a.abs()), S)
model(c, "rsqrt", lambda a: torch.rsqrt(a.abs() + 0.5), S)
model(c, "neg_abs", lambda a: -a.abs(), S)
model(c, "exp_log", lambda a: torch.log(torch.exp(a) + 1), S)
model(c, "clamp", lambda a: torch.clamp(a, -0.5, 0.5), S)
model(c, "clamp_min_only", lambda a: torch.clamp(a, min=0.1), S)
model(c, "clamp_max_tensor", lambda a, b: torch.clamp(a, max=b), S, (3,))
model(c, "times_half", lambda a: a * 0.5, S)
model(c, "minus_three", lambda a: a - 3.0, S)
model(c, "over_two", lambda a: a / 2.0, S)
model(c, "one_minus", lambda a: 1 - a, S)
model(c, "int_times_half", lambda a: a * 0.5, I(S, 9))
model(c, "int_over_int", lambda a, b: a / (b + 1), I(S, 9), I(S, 5))
model(c, "sin_cos", lambda a: torch.sin(a) * torch.cos(a), S)
model(c, "maximum_minimum", lambda a, b: torch.maximum(a, b) - torch.minimum(a, b), S, S)

# ---- shape
c = "shape"
model(c, "view", lambda a: a.view(3, -1) * 1.5, (2, 6))
model(c, "reshape_of_transposed", lambda a: a.transpose(0, 1).reshape(2, 6), (3, 4))
model(c, "permute", lambda a: a.permute(2, 0, 1) + 0.0, (2, 3, 4))
model(c, "transpose_3d", lambda a: a.transpose(-2, -1).contiguous(), (2, 3, 4))
model(c, "transpose_4d", lambda a: a.transpose(2, 3) * 2.0, (1, 2, 3, 4))
model(c, "flatten", lambda a: torch.flatten(a, 1) + 1, (2, 3, 4))
model(c, "squeeze_unsqueeze", lambda a: a.squeeze(1).unsqueeze(-1).squeeze() + 1, (2, 1, 3))
model(c, "expand", lambda a: a.expand(4, -1, 3) * 2.0, (2, 1))
model(c, "repeat", lambda a: a.repeat(1, 2, 1, 1), (1, 2, 3, 2))
model(c, "flip_roll", lambda a: torch.roll(torch.flip(a, (1,)), 1, 0), (3, 4))
model(c, "pad", lambda a: F.pad(a, (1, 2, 0, 1), value=0.5), (2, 3))
model(c, "pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), (1, 4, 2, 3))
model(c, "upsample_nearest", lambda a: F.interpolate(a, scale_factor=2.0), (1, 2, 3, 3))
model(c, "upsample_bilinear", lambda a: F.interpolate(a, size=(5, 6), mode="bilinear", align_corners=False),
      (1, 2, 3, 3))
model(c, "tril_triu", lambda a: torch.tril(a) - torch.triu(a, 1), (4, 4))

# ---- joining and splitting
c = "joining"
model(c, "cat", lambda a, b: torch.cat([a, b, a], 1), (2, 3), (2, 1))
model(c, "stack", lambda a, b: torch.stack([a, b], -1), S, S)
model(c, "split_first", lambda a: a.split([1, 3], dim=1)[0] * 2.0, (2, 4))
model(c, "split_all", lambda a: a.split(2, 1), (1, 5))
model(c, "chunk_first", lambda a: a.chunk(2, dim=1)[0] + 1, (2, 6))
model(c, "chunk_uneven", lambda a: a.chunk(3, 1), (2, 7))
model(c, "unbind_sum", lambda a: sum(a.unbind(0)), (3, 4))
model(c, "split_cat_swap", lambda a: torch.cat(a.split(2, 1)[::-1], 1), (2, 4))

# ---- reduction
c = "reduction"
model(c, "mean_all", lambda a: a.mean(), (3, 4))
model(c, "mean_dims_kept", lambda a: a.mean((1, 2), keepdim=True), (2, 3, 4))
model(c, "sum_last", lambda a: a.sum(dim=-1), (2, 3, 4))
model(c, "sum_ints", lambda a: a.sum(), I((3, 4), 50))
model(c, "max_all", lambda a: a.max(), (3, 4))
model(c, "max_dim", lambda a: a.max(dim=1), (3, 4))
model(c, "min_all", lambda a: a.min(), (3, 4))
model(c, "min_dim", lambda a: a.min(dim=0, keepdim=True), (3, 4))
model(c, "max_dim_indices", lambda a: a.max(dim=1)[1] + 1, (3, 4))
model(c, "amax_amin", lambda a: torch.amax(a, (0, 2)) - torch.amin(a, (0, 2)), (2, 3, 4))
model(c, "argmax", lambda a: a.argmax(1), (3, 5))
model(c, "std_var", lambda a: a.std(1) + a.var(1, unbiased=False), (3, 5))
model(c, "prod_cumsum", lambda a: torch.cumsum(a, 1) * a.prod(1, keepdim=True), (2, 4))

# ---- softmax and attention
c = "attention"
model(c, "softmax", lambda a: F.softmax(a, dim=-1), (3, 5))
model(c, "softmax_first_dim_dtype", lambda a: F.softmax(a, dim=0, dtype=torch.float64), (3, 5))
model(c, "log_softmax", lambda a: F.log_softmax(a, 1), (3, 5))
model(c, "linear_softmax_3", Seq(*[m for _ in range(3) for m in (nn.Linear(32, 32), nn.Softmax(-1))]), (2, 32), tol=1e-6)


def attention(q, k, v, causal=False):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=B).triu(1), float("-inf"))
    return F.softmax(s, -1) @ v


model(c, "attention", attention, (2, 3, 4), (2, 5, 4), (2, 5, 4))
model(c, "attention_causal", lambda q, k, v: attention(q, k, v, True), (1, 2, 4, 3), (1, 2, 4, 3), (1, 2, 4, 3))


# torch 1.13 does not have the op yet: its definition, under its schema
library = torch.library.Library("later", "DEF")
library.define("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
               "float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> Tensor")


def sdpa(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    s = q @ k.transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=B).triu(1), float("-inf"))
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == B else s + attn_mask
    return F.softmax(s, -1) @ v


library.impl("scaled_dot_product_attention", sdpa, "CPU")
SDPA = torch.ops.later.scaled_dot_product_attention
model(c, "sdpa", lambda q, k, v: SDPA(q, k, v), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
model(c, "sdpa_causal_scaled", lambda q, k, v: SDPA(q, k, v, is_causal=True, scale=0.25),
      (2, 4, 3), (2, 4, 3), (2, 4, 3))
model(c, "sdpa_float_mask", lambda q, k, v, m: SDPA(q, k, v, m), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), (3, 5))


class SelfAttention(nn.Module):
    def __init__(self, n=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(n, 3 * n), nn.Linear(n, n)

    def forward(self, x):
        b, l, n = 2, 4, 8
        q, k, v = self.qkv(x).view(b, l, 3, self.heads, n // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(attention(q, k, v).transpose(1, 2).reshape(b, l, n))


class TransformerBlock(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.attention, self.norm1, self.norm2 = SelfAttention(n), nn.LayerNorm(n), nn.LayerNorm(n)
        self.mlp = Seq(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, y):
        return attention(self.q(x), self.k(y), self.v(y))


model(c, "self_attention", SelfAttention(), (2, 4, 8))
model(c, "transformer_block", TransformerBlock(), (2, 4, 8))
model(c, "cross_attention", CrossAttention(), (1, 3, 6), (1, 5, 6))

# ---- lookup
c = "lookup"
model(c, "embedding", nn.Embedding(10, 4), I((2, 3), 10))
model(c, "embedding_i32_padding", nn.Embedding(7, 3, padding_idx=0), I((5,), 7, torch.int32))
model(c, "embedding_mean_linear", Seq(nn.Embedding(9, 4), Function(lambda x: x.mean(1)), nn.Linear(4, 2)), I((3, 5), 9))
model(c, "select", lambda a: a.select(1, -1) + 1, (2, 3, 4))
model(c, "slice", lambda a: a[:, 1:, ::2] * 2.0, (2, 3, 5))
model(c, "index_list", lambda a: a[:, torch.tensor([0, 2, 4])], (2, 5, 3))
model(c, "index_tensor", lambda a, i: a[i], (5, 3), I((4,), 5))
model(c, "index_two", lambda a, i: a[i, :, i], (3, 2, 4), I((3,), 3))
model(c, "index_mask_where", lambda a: torch.where(a > 0, a, torch.zeros_like(a)), (3, 4))
model(c, "gather", lambda a, i: a.gather(1, i), (3, 4), I((3, 2), 4))
model(c, "scatter_add", lambda a, i: torch.zeros(3, 5).scatter_add(1, i, a), (3, 4), I((3, 4), 5))
model(c, "index_select", lambda a, i: a.index_select(1, i), (3, 4), I((2,), 4))
model(c, "masked_fill", lambda a, m: a.masked_fill(m, -1.0), (3, 4), ((3, 4), B))

# ---- comparison
c = "comparison"
model(c, "eq_ne", lambda a, b: torch.logical_or(a == b, a != 3), I((4, 5), 4), I((4, 5), 4))
model(c, "lt_gt", lambda a, b: (a < b).to(torch.int32) - (a > 0).to(torch.int32), S, S)
model(c, "where_broadcast", lambda m, a, b: torch.where(m, a, b), ((3, 1), B), (1, 4), (3, 4))
model(c, "logical", lambda a, b: torch.logical_and(a > 0, torch.logical_not(b > 0)), S, S)

# ---- memory
c = "memory"
model(c, "to_dtype", lambda a: a.to(torch.float64), S)
model(c, "to_int", lambda a: (a * 3).to(torch.int32), S)
model(c, "to_copy", lambda a: a.to(torch.float64), S, rename={"to.dtype": "_to_copy.default"})
model(c, "contiguous", lambda a: a.t().contiguous(), S)
model(c, "clone", lambda a: a.clone() + a, S)
model(c, "half_round_trip", lambda a: a.to(torch.float16).to(torch.float32) * 3.0, (3, 7))
model(c, "bfloat_round_trip", lambda a: a.to(torch.bfloat16).to(torch.float32), (3, 7))
model(c, "zeros_like_full", lambda a: a + torch.full((3,), 2.0) + torch.ones_like(a), S)
model(c, "arange_positions", lambda a: a + torch.arange(3, dtype=torch.float32), S)

# ---- recurrent
c = "recurrent"


class Net(nn.Module):
    """One output of a module with several."""

    def __init__(self, net, pick=0):
        super().__init__()
        self.net, self.pick = net, pick

    def forward(self, *x):
        y = self.net(*x)
        return y if self.pick is None else y[self.pick]


model(c, "gru", Net(nn.GRU(3, 4)), (5, 2, 3))
model(c, "gru_batch_first_bidirectional", Net(nn.GRU(3, 2, bidirectional=True, batch_first=True)), (2, 4, 3))
model(c, "lstm", Net(nn.LSTM(3, 4)), (4, 2, 3))
model(c, "lstm_two_layers_no_bias", Net(nn.LSTM(3, 2, num_layers=2, bias=False, batch_first=True)), (2, 4, 3))
model(c, "lstm_state", Net(Net(nn.LSTM(2, 3), 1), 0), (3, 1, 2))


class Unroll(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.h = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.zeros(2, 4)
        for t in range(4):
            h = torch.tanh(self.i(x[:, t]) + self.h(h))
        return h


model(c, "unrolled_rnn", Unroll(), (2, 4, 3))

# ---- other
c = "other"
model(c, "dropout", Seq(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2)), (2, 4))
model(c, "sort", lambda a: torch.sort(a, 1, descending=True), (3, 6))
model(c, "argsort_gather", lambda a: a.gather(1, a.argsort(1)), (3, 6))
model(c, "topk", lambda a: torch.topk(a, 2, 1), (3, 6))
model(c, "topk_smallest", lambda a: torch.topk(a, 3, 0, largest=False)[0], (6, 2))
model(c, "lerp_scalar", lambda a, b: torch.lerp(a, b, 0.3), S, S)
model(c, "lerp_tensor", lambda a, b, w: torch.lerp(a, b, w), S, S, S)
model(c, "addcmul", lambda a, b, d: torch.addcmul(a, b, d, value=0.5), S, S, S)
model(c, "addcdiv", lambda a, b, d: torch.addcdiv(a, b, d + 3.0, value=2.0), S, S, S)
model(c, "one_hot_like", lambda i: (i.unsqueeze(-1) == torch.arange(5)).to(torch.float32), I((4,), 5))
model(c, "norm", lambda a: a / a.norm(dim=1, keepdim=True), (3, 4))
model(c, "cosine", lambda a, b: F.cosine_similarity(a, b), (3, 4), (3, 4))

# ---- writes
c = "writes"


class Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(3))

    def forward(self, x):
        self.buf.add_(x.sum(0))
        return x * self.buf


def paint(x):
    y = x.clone()
    y[:, 0] = 5.0
    y[1:, 1:].mul_(2.0)
    return y + x


def accumulate(x):
    total = torch.zeros(2, 3)
    for i in range(3):
        total += x[i]
        total[0].clamp_(min=0.0)
    return total


def put(x, i):
    y = x.clone()
    y[:, i] = 0.25
    return y * 2.0


def cache(x, k):
    kept = torch.zeros(4, 3)
    kept[1:3].copy_(x)
    kept.index_copy_(0, k, x * 2.0)
    return kept.sum(0)


model(c, "add_to_buffer", Buffer(), (2, 3))
model(c, "assign_to_slices", paint, (3, 4))
model(c, "accumulate", accumulate, (3, 2, 3))
model(c, "index_put", put, (2, 4), I((2,), 4))
model(c, "cache", cache, (2, 3), I((2,), 1))
model(c, "fill_and_zero", lambda x: (x.clone().fill_(2.0) + x.clone().zero_() + x).sub_(1.0), S)
model(c, "masked_write", lambda x: x.clone().masked_fill_(x > 0, 9.0).div_(3.0), S)
model(c, "residual_in_place", lambda x: F.relu_(x * 2.0).add_(x), S)

# ---- structures
c = "structures"


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

    def forward(self, x):
        return F.relu(x + self.n(self.b(F.relu(self.a(x)))))


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4 + 2 * i, 2) for i in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], 1)
        return x


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Seq(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))

    def forward(self, a, b):
        return (self.encoder(a) - self.encoder(b)).abs()


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 3)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.one(h), F.softmax(self.two(h), -1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)

    def forward(self, i):
        return F.linear(self.table(i), self.table.weight)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        w, i = torch.topk(F.softmax(self.gate(x), -1), 2)
        all_ = torch.stack([e(x) for e in self.experts], 1)
        return (all_.gather(1, i.unsqueeze(-1).expand(-1, -1, 4)) * w.unsqueeze(-1)).sum(1)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 6)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        n = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


def rotary(x):
    position = torch.arange(4, dtype=torch.float32).unsqueeze(1)
    angle = position * torch.exp(torch.arange(3, dtype=torch.float32) * -1.5)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


model(c, "residual", Residual(), (1, 3, 4, 4))
model(c, "deep_residual", Seq(Residual(), Residual(), Residual()), (1, 3, 3, 3))
model(c, "dense", Dense(), (2, 4))
model(c, "siamese", Siamese(), (2, 5), (2, 5))
model(c, "heads", Heads(), (3, 4))
model(c, "tied_weights", Tied(), I((2, 3), 6))
model(c, "experts", Experts(), (5, 4))
model(c, "gated_mlp", Gated(), (2, 6))
model(c, "rotary", rotary, (2, 4, 6))
model(c, "odd_batch_conv_net", Seq(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4),
                                   nn.LogSoftmax(1)), (7, 1, 6, 6))
model(c, "upsample_conv", Seq(nn.Upsample(scale_factor=2), nn.Conv2d(2, 2, 3, padding=1),
                              nn.ConvTranspose2d(2, 1, 2, stride=2)), (1, 2, 2, 2))
model(c, "where_einsum", lambda a, b: torch.where(a > 0, torch.einsum("ij,jk->ik", a, b), a), (3, 3), (3, 3))
