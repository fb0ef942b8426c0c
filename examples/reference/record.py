#!/usr/bin/env python3
"""Record PyTorch outputs of two models whose weights come from a formula.

Writes next to this file:
    resnet18.expected      torchvision ResNet-18, input [1,3,224,224]
    transformer.expected   a 2-layer pre-norm transformer encoder, 16 tokens

Needs Debian 12 packages: python3-torch python3-torchvision python3-numpy
Run:  OMP_NUM_THREADS=1 /usr/bin/python3 record.py

File format (text): for each recorded tensor one header line
    name rank d0 d1 ...
then one "%.9g" float per line, row-major. The values are computed by torch
in float64 from the float32 weights, then rounded to float32 (%.9g keeps a
float32 exactly).

THE GENERATOR (the same formula is used in C)
---------------------------------------------
For a tensor named N with n elements (row-major order, i = 0 .. n-1):

    seed = FNV-1a 64 of the bytes of N
           h = 0xcbf29ce484222325; for each byte b: h ^= b; h *= 0x100000001b3
    z  = seed + (i+1) * 0x9E3779B97F4A7C15            (all mod 2^64)
    z  = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z  = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z  =  z ^ (z >> 31)
    u  = (float)(z >> 40) * 2^-23f - 1.0f             (exact, in [-1, 1))

z>>40 is below 2^24, so the conversion, the scaling by a power of two and the
subtraction are all exact in float32.

A value is then made from u in float32, one rounding per operation (a multiply,
then an add: never a fused multiply-add; in C compile with -ffp-contract=off
or store the product in a volatile float):

    conv / linear weight   u * s   s = (float)sqrt(3.0 / fan_in), the square
                                   root and the quotient in double, rounded to
                                   float32 once; fan_in = product of the
                                   tensor's dims after the first
    conv / linear bias     u * 0.1f
    batch-norm weight      1.0f + 0.2f * u
    batch-norm bias        0.1f * u
    batch-norm running_mean 0.1f * u
    batch-norm running_var 1.0f + 0.5f * u
    layer-norm weight      1.0f + 0.2f * u
    layer-norm bias        0.1f * u
    embedding tables ("embedding.weight", "position.weight")   u
    network input ("input")                                    u

0.1f, 0.2f are the float32 nearest to 0.1, 0.2.
"num_batches_tracked" is not a weight and is ignored.
"""

import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torchvision

HERE = os.path.dirname(os.path.abspath(__file__))
F32 = np.float32


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for b in name.encode("utf-8"):
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def uniform(name, shape):
    n = int(np.prod(shape, dtype=np.int64))
    i = np.arange(1, n + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a64(name)) + i * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(F32) * F32(2.0 ** -23) - F32(1.0)
    assert u.dtype == F32
    return u.reshape(shape)


def affine(name, shape, base, scale):
    """base + scale*u in float32, two roundings."""
    v = uniform(name, shape) * F32(scale)
    if base is not None:
        v = F32(base) + v
    assert v.dtype == F32
    return v


def weight(name, shape):
    fan_in = int(np.prod(shape[1:], dtype=np.int64))
    return affine(name, shape, None, F32(math.sqrt(3.0 / fan_in)))


def make(name, shape, kind):
    shape = tuple(shape)
    return {
        "weight": lambda: weight(name, shape),
        "bias": lambda: affine(name, shape, None, 0.1),
        "norm.weight": lambda: affine(name, shape, 1.0, 0.2),
        "norm.bias": lambda: affine(name, shape, None, 0.1),
        "running_mean": lambda: affine(name, shape, None, 0.1),
        "running_var": lambda: affine(name, shape, 1.0, 0.5),
        "table": lambda: uniform(name, shape),
        "input": lambda: uniform(name, shape),
    }[kind]()


def write_expected(path, tensors):
    with open(path, "w") as f:
        for name, t in tensors:
            a = t.detach().numpy().astype(F32)
            f.write("%s %d %s\n" % (name, a.ndim, " ".join(map(str, a.shape))))
            for v in a.ravel():
                f.write("%.9g\n" % v)
    print("wrote", path, os.path.getsize(path), "bytes")


def compare(a32, a64):
    """Largest |f32-f64| / max|f64| over the tensor, and worst per-element."""
    d = (a32.double() - a64).abs()
    return (d.max() / a64.abs().max()).item(), \
        (d / a64.abs().clamp_min(1e-30)).max().item()


# --------------------------------------------------------------- ResNet-18

def resnet18(dtype):
    model = torchvision.models.resnet18(weights=None)
    norms = {n for n, m in model.named_modules()
             if isinstance(m, torch.nn.BatchNorm2d)}
    state = {}
    for name, t in model.state_dict().items():
        owner, leaf = name.rsplit(".", 1)
        if leaf == "num_batches_tracked":
            state[name] = t
            continue
        if leaf in ("running_mean", "running_var"):
            kind = leaf
        elif owner in norms:
            kind = "norm." + leaf
        else:
            kind = leaf
        state[name] = torch.from_numpy(make(name, t.shape, kind))
    model.load_state_dict(state)
    model = model.to(dtype).eval()
    x = torch.from_numpy(make("input", (1, 3, 224, 224), "input")).to(dtype)
    with torch.no_grad():
        stem = model.maxpool(model.relu(model.bn1(model.conv1(x))))
        stages = []
        h = stem
        for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
            h = stage(h)
            stages.append(h)
        pooled = torch.flatten(model.avgpool(h), 1)
        out = model.fc(pooled)
        assert torch.equal(out, model(x))
    # Intermediate tensors are recorded as small summaries: the mean over
    # height and width of each stage's output, [1, channels].
    named = [("maxpool.mean", stem.mean((2, 3)))]
    named += [("layer%d.mean" % (k + 1), s.mean((2, 3)))
              for k, s in enumerate(stages)]
    named += [("output", out)]
    return model, named


# ------------------------------------------------------ transformer encoder

TOKENS, VOCAB, DIM, HEADS, FF, LAYERS, CLASSES = 16, 100, 64, 4, 256, 2, 10
EPS = 1e-5


def transformer_shapes():
    """Every weight: (name, shape, kind), in the order of use."""
    yield "embedding.weight", (VOCAB, DIM), "table"
    yield "position.weight", (TOKENS, DIM), "table"
    for l in range(LAYERS):
        p = "layers.%d." % l
        yield p + "norm1.weight", (DIM,), "norm.weight"
        yield p + "norm1.bias", (DIM,), "norm.bias"
        for q in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield p + q + ".weight", (DIM, DIM), "weight"
            yield p + q + ".bias", (DIM,), "bias"
        yield p + "norm2.weight", (DIM,), "norm.weight"
        yield p + "norm2.bias", (DIM,), "norm.bias"
        yield p + "linear1.weight", (FF, DIM), "weight"
        yield p + "linear1.bias", (FF,), "bias"
        yield p + "linear2.weight", (DIM, FF), "weight"
        yield p + "linear2.bias", (DIM,), "bias"
    yield "norm.weight", (DIM,), "norm.weight"
    yield "norm.bias", (DIM,), "norm.bias"
    yield "head.weight", (CLASSES, DIM), "weight"
    yield "head.bias", (CLASSES,), "bias"


def transformer(dtype):
    w = {n: torch.from_numpy(make(n, s, k)).to(dtype)
         for n, s, k in transformer_shapes()}

    def linear(x, name):                       # x @ W^T + b
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def layer_norm(x, name):                   # over the last dim, biased var
        return F.layer_norm(x, (DIM,), w[name + ".weight"],
                            w[name + ".bias"], EPS)

    def heads(x):                              # [1,T,D] -> [1,H,T,D/H]
        return x.reshape(1, TOKENS, HEADS, DIM // HEADS).permute(0, 2, 1, 3)

    named = []
    with torch.no_grad():
        ids = torch.tensor([[(i * 37 + 11) % 100 for i in range(TOKENS)]])
        x = F.embedding(ids, w["embedding.weight"]) + w["position.weight"]
        named.append(("embedded", x))
        for l in range(LAYERS):
            p = "layers.%d." % l
            h = layer_norm(x, p + "norm1")
            q = heads(linear(h, p + "q_proj"))
            k = heads(linear(h, p + "k_proj"))
            v = heads(linear(h, p + "v_proj"))
            scores = torch.matmul(q, k.transpose(2, 3)) \
                / math.sqrt(DIM // HEADS)      # sqrt(16) = 4, exact
            attn = torch.softmax(scores, dim=-1)
            ctx = torch.matmul(attn, v)        # [1,H,T,D/H]
            ctx = ctx.permute(0, 2, 1, 3).reshape(1, TOKENS, DIM)
            x = x + linear(ctx, p + "out_proj")
            h = layer_norm(x, p + "norm2")
            h = F.gelu(linear(h, p + "linear1"))   # exact: 0.5x(1+erf(x/sqrt2))
            x = x + linear(h, p + "linear2")
            named.append(("layers.%d" % l, x))
        x = layer_norm(x, "norm")
        named.append(("norm", x))
        named.append(("output", linear(x, "head")))
    return w, named


def main():
    torch.set_num_threads(1)
    print("torch", torch.__version__, "torchvision", torchvision.__version__)
    print('fnv1a64("input") = 0x%016x' % fnv1a64("input"))
    print('uniform("input")[:4] =', ["%.9g" % v for v in uniform("input", (4,))])
    for name, fn in (("resnet18", resnet18), ("transformer", transformer)):
        _, n32 = fn(torch.float32)
        _, n64 = fn(torch.float64)
        for (t, a), (_, b) in zip(n32, n64):
            rel, worst = compare(a, b)
            print("%-12s %-13s shape %-16s max|v| %-9.4g f32-f64: %.3g of max|v|,"
                  " worst element %.3g relative"
                  % (name, t, tuple(b.shape), b.abs().max().item(), rel, worst))
        write_expected(os.path.join(HERE, name + ".expected"), n64)
    if "--list" in sys.argv:
        model, _ = resnet18(torch.float32)
        for n, t in model.state_dict().items():
            if not n.endswith("num_batches_tracked"):
                print(n, list(t.shape))
        for n, s, _ in transformer_shapes():
            print(n, list(s))


if __name__ == "__main__":
    main()
