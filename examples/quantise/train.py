#!/usr/bin/env python3
"""Train the depthwise-separable digit classifier of this folder and write depthwise.weights.

The 2500 images of ../digits/test_set.bin are split: the first 1500 are trained on, in a new affine
warp, contrast and noise every time; the last 1000 measure the net and are never trained on. Both hold
images of the same fonts, so the accuracy is not to be compared with that of ../digits.

The channels of every batch norm begin with scales from 1 down to 1/128, log-uniform. In MobileNets, which
are trained for days, ranges of channels come to lie that far apart by themselves, and one scale for all
weights of a convolution then leaves some channels a few levels; a small net trained for minutes would not
show what a scale per channel is for.

One thread, fixed seeds; three minutes. Debian 12: python3-torch, python3-numpy.
    OMP_NUM_THREADS=1 /usr/bin/python3 train.py [--epochs N]
"""

import math
import os
import struct
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
NUM_TRAINED = 1500
BATCH = 50
STRIDES = (2, 1, 2, 1, 1)           # of the depthwise convolutions
CHANNELS = (16, 32, 48, 64, 80, 96)  # before the first block, and after each
SPREAD = 7                          # powers of two between scales of batch norms, at first


class Depthwise(nn.Module):
    """[N,1,28,28], 0..1, to 10 logits."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, CHANNELS[0], 3, padding=1, bias=False)
        self.stem_bn = nn.BatchNorm2d(CHANNELS[0])
        for i, stride in enumerate(STRIDES):
            a, b = CHANNELS[i], CHANNELS[i + 1]
            setattr(self, "dw%d" % i, nn.Conv2d(a, a, 3, stride, 1, groups=a, bias=False))
            setattr(self, "dw%d_bn" % i, nn.BatchNorm2d(a))
            setattr(self, "pw%d" % i, nn.Conv2d(a, b, 1, bias=False))
            setattr(self, "pw%d_bn" % i, nn.BatchNorm2d(b))
        self.fc = nn.Linear(CHANNELS[-1], 10)
        for layer in self.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight.data = 2 ** (-SPREAD * torch.rand(layer.weight.shape))

    def forward(self, x):
        x = F.relu6(self.stem_bn(self.stem(x)))
        for i in range(len(STRIDES)):
            for name in ("dw%d" % i, "pw%d" % i):
                x = F.relu6(getattr(self, name + "_bn")(getattr(self, name)(x)))
        return self.fc(x.mean((2, 3)))


def read_images(path):
    with open(path, "rb") as f:
        data = f.read()
    count, height, width = struct.unpack("<III", data[4:16])
    labels = np.frombuffer(data, np.uint8, count, 16)
    pixels = np.frombuffer(data, np.uint8, count * height * width, 16 + count)
    x = torch.from_numpy(pixels.reshape(count, 1, height, width).astype(np.float32) / 255)
    return x, torch.from_numpy(labels.astype(np.int64))


def warp(x):
    """Each image rotated, stretched, slanted and shifted by its own random numbers."""
    n = len(x)
    turn, slant = (torch.rand(n) - 0.5) * 0.5, (torch.rand(n) - 0.5) * 0.5
    wide, high = 0.82 + 0.36 * torch.rand(n), 0.82 + 0.36 * torch.rand(n)
    a = torch.zeros(n, 2, 3)
    a[:, 0, 0], a[:, 0, 1] = wide * turn.cos(), -high * (turn.sin() + slant)
    a[:, 1, 0], a[:, 1, 1] = wide * turn.sin(), high * turn.cos()
    a[:, :, 2] = (torch.rand(n, 2) - 0.5) * 0.3
    y = F.grid_sample(x, F.affine_grid(a, x.shape, align_corners=False), align_corners=False,
                      padding_mode="border")
    gain = 0.7 + 0.4 * torch.rand(n, 1, 1, 1)
    return (y * gain + torch.randn_like(y) * 0.08 * torch.rand(n, 1, 1, 1)).clamp(0, 1)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return 100 * (torch.cat([model(b) for b in x.split(250)]).argmax(1) == y).float().mean().item()


def train(epochs):
    torch.manual_seed(3)
    x, y = read_images(os.path.join(HERE, "..", "digits", "test_set.bin"))
    model = Depthwise()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    steps = epochs * NUM_TRAINED // BATCH
    step = 0
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for part in torch.randperm(NUM_TRAINED).split(BATCH):
            for group in opt.param_groups:
                group["lr"] = 4e-3 * min(1, (step + 1) / 100) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
            loss = F.cross_entropy(model(warp(x[part])), y[part], label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            step += 1
        if epoch % 10 == 9 or epoch + 1 == epochs:
            print("epoch %3d  loss %.4f  unseen images %.2f %%"
                  % (epoch + 1, total * BATCH / NUM_TRAINED, accuracy(model, x[NUM_TRAINED:], y[NUM_TRAINED:])), flush=True)
    return model.eval()


def write_weights(model, path):
    """The format of ../digits/digits.weights."""
    tensors = [(n, t) for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")]
    with open(path, "wb") as f:
        f.write(b"NPUW" + struct.pack("<II", 1, len(tensors)))
        for name, t in tensors:
            f.write(struct.pack("<I", len(name)) + name.encode())
            f.write(struct.pack("<I", t.dim()) + struct.pack("<%dq" % t.dim(), *t.shape))
            f.write(t.detach().numpy().astype("<f4").tobytes())


def main():
    epochs = int(sys.argv[sys.argv.index("--epochs") + 1]) if "--epochs" in sys.argv else 80
    torch.set_num_threads(1)
    write_weights(train(epochs), os.path.join(HERE, "depthwise.weights"))


if __name__ == "__main__":
    main()
