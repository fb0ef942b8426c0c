"""What make check exports with examples/pytorch/export.py and runs: in-place ops, views that are written to, shared weights,
constants of forward(), several outputs, attention; and one that fails."""
import torch
from torch import nn


def conv():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def encoder():
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.out = nn.Embedding(10, 8), nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), nn.Linear(12, 10)

    def forward(self, x, mask):
        y, (h, c) = self.layers(self.words(x))
        return self.out(y) * mask.unsqueeze(-1), h


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("places", torch.arange(4.0))

    def forward(self, x):
        y = self.out(self.words(x))
        y[:, 0] += 1
        a, b = y.chunk(2, -1)
        return torch.cat([a, b * torch.tensor([1.0, 2, 3, 4, 5])], 1) + self.places.sum()


class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x)
