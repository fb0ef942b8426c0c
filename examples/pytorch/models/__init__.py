"""The models of the zoo, by family. Each is small, and built as it was published: the widths are not."""
import torch
from torch import nn

MODELS = {}  # name: (what makes a module, its inputs, whether it also runs in half precision)


def model(name, *inputs, half=False):
    """Registers what makes a module. An input is 2x3x8x8, or 2x7:int64<10 of integers below 10."""
    def register(make):
        assert name not in MODELS, name
        MODELS[name] = (make, inputs, half)
        return make
    return register


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.body(x)


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def conv_norm(inputs, outputs, size, act=nn.ReLU, **options):
    options.setdefault("padding", size // 2 if isinstance(size, int) else 0)
    layers = [nn.Conv2d(inputs, outputs, size, bias=False, **options), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


def heads_of(x, heads):
    """[N, L, E] to [N, heads, L, E / heads]"""
    n, l, e = x.shape
    return x.view(n, l, heads, e // heads).transpose(1, 2)


def join_heads(x):
    n, h, l, d = x.shape
    return x.transpose(1, 2).reshape(n, l, h * d)


def load_all():
    from . import audio, detection, generative, graphs, language  # noqa: F401
    from . import other, recurrent, training, vision, volumes  # noqa: F401
    return MODELS
