"""Image classification: convolutional families, transformers over patches, mixers."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, Residual, conv_norm, heads_of, join_heads, model

Seq = nn.Sequential


def head(channels, classes=10):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


@model("lenet", "2x1x28x28", half=True)
def lenet():
    return Seq(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
               nn.AvgPool2d(2),
               nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


@model("alexnet", "1x3x63x63", half=True)
def alexnet():
    return Seq(nn.Conv2d(3, 16, 11, 4, 2), nn.ReLU(True), nn.LocalResponseNorm(5, 1e-4, 0.75, 2), nn.MaxPool2d(3, 2),
               nn.Conv2d(16, 24, 5, padding=2, groups=2), nn.ReLU(True), nn.MaxPool2d(3,
                       2), nn.AdaptiveAvgPool2d((2, 3)),
               nn.Flatten(), nn.Dropout(), nn.Linear(144, 32), nn.ReLU(True), nn.Linear(32, 10))


@model("vgg", "1x3x32x32", half=True)
def vgg():
    layers, last = [], 3
    for width in (8, "M", 16, "M", 32, 32, "M"):
        layers += [nn.MaxPool2d(2)] if width == "M" else [conv_norm(last, width, 3)]
        last = last if width == "M" else width
    return Seq(*layers, nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1, act=nn.ReLU):
        super().__init__()
        self.a = conv_norm(inputs, outputs, 3, act, stride=stride)
        self.b = conv_norm(outputs, outputs, 3, None)
        self.short = conv_norm(inputs, outputs, 1, None, stride=stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.short(x))


@model("resnet18", "1x3x64x64", half=True)
def resnet18():
    return Seq(conv_norm(3, 8, 7, stride=2), nn.MaxPool2d(3, 2, 1), BasicBlock(8, 8), BasicBlock(8, 16, 2),
               BasicBlock(16, 32, 2),
               *head(32))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, groups=1, stride=1, attention=nn.Identity):
        super().__init__()
        self.body = Seq(conv_norm(inputs, width, 1), conv_norm(width, width, 3, groups=groups, stride=stride),
                        conv_norm(width, 4 * width, 1, None), attention())
        self.short = conv_norm(inputs, 4 * width, 1, None, stride=stride)

    def forward(self, x):
        return F.relu_(self.body(x) + self.short(x))


@model("resnet50", "1x3x48x48")
def resnet50():
    return Seq(conv_norm(3, 8, 7, stride=2), nn.MaxPool2d(3, 2, 1), Bottleneck(8, 8), Bottleneck(32, 16, stride=2),
               *head(64))


@model("resnext", "1x3x32x32")
def resnext():
    return Seq(conv_norm(3, 16, 3), Bottleneck(16, 16, groups=4), Bottleneck(64, 32, groups=4, stride=2), *head(128))


@model("preact_resnet", "1x3x32x32")
def preact_resnet():
    block = lambda c: Residual(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c),
                               nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
    return Seq(nn.Conv2d(3, 16, 3, padding=1), block(16), nn.Conv2d(16, 24, 1, 2), block(24), nn.BatchNorm2d(24),
               nn.ReLU(), *head(24))


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth=6):
        super().__init__()
        self.body = Seq(nn.BatchNorm2d(inputs), nn.ReLU(True), nn.Conv2d(inputs, 2 * growth, 1, bias=False),
                        nn.BatchNorm2d(2 * growth),
                        nn.ReLU(True), nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


@model("densenet", "1x3x32x32", half=True)
def densenet():
    return Seq(nn.Conv2d(3, 12, 3, padding=1), DenseLayer(12), DenseLayer(18), DenseLayer(24), nn.Conv2d(30, 15, 1),
               nn.AvgPool2d(2),
               DenseLayer(15), DenseLayer(21), *head(27))


class Inception(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.paths = nn.ModuleList([conv_norm(inputs, 8, 1), Seq(conv_norm(inputs, 6, 1), conv_norm(6, 8, 3)),
                                    Seq(conv_norm(inputs, 4, 1), conv_norm(4, 8, 5)),
                                    Seq(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv_norm(inputs, 8, 1))])

    def forward(self, x):
        return torch.cat([path(x) for path in self.paths], 1)


@model("googlenet", "1x3x64x64")
class GoogLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Seq(conv_norm(3, 16, 7, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True))
        self.a, self.b, self.out = Inception(16), Inception(32), Seq(*head(32))
        self.side = Seq(nn.AdaptiveAvgPool2d(4), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))

    def forward(self, x):
        x = self.a(self.stem(x))
        return self.out(self.b(x)), self.side(x)


@model("inception_v3", "1x3x40x40")
class InceptionV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_norm(3, 12, 3, stride=2, padding=0)
        self.a = Seq(conv_norm(12, 8, (1, 7), padding=(0, 3)), conv_norm(8, 8, (7, 1), padding=(3, 0)))
        self.b, self.c = conv_norm(12, 8, 1), conv_norm(12, 8, 3)
        self.low, self.out = conv_norm(24, 16, 3, stride=2, padding=0), nn.Linear(40, 10)

    def forward(self, x):
        x = torch.stack([x[:, 0] * 0.458 - 0.03, x[:, 1] * 0.448 - 0.088, x[:, 2] * 0.45 - 0.188], 1)
        x = self.stem(x)
        x = torch.cat([self.a(x), self.b(F.avg_pool2d(x, 3, 1, 1)), self.c(x)], 1)
        x = torch.cat([self.low(x), F.max_pool2d(x, 3, 2)], 1)
        return self.out(F.dropout(x.mean((2, 3)), 0.5, self.training))


def separable(inputs, outputs, act=nn.ReLU, stride=1):
    return Seq(conv_norm(inputs, inputs, 3, act, groups=inputs, stride=stride), conv_norm(inputs, outputs, 1, act))


@model("xception", "1x3x32x32")
def xception():
    sep = lambda i, o: Seq(nn.ReLU(), nn.Conv2d(i, i, 3, padding=1, groups=i, bias=False),
                           nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o))
    return Seq(conv_norm(3, 16, 3, stride=2), Residual(sep(16, 16), sep(16, 16), sep(16, 16)), sep(16, 32),
               nn.MaxPool2d(3, 2, 1), *head(32))


@model("mobilenet_v1", "1x3x32x32", half=True)
def mobilenet_v1():
    return Seq(conv_norm(3, 8, 3, nn.ReLU6, stride=2), separable(8, 16, nn.ReLU6), separable(16, 32, nn.ReLU6, 2),
               *head(32))


def inverted(inputs, outputs, size=3, act=nn.ReLU6, stride=1, gate=None):
    wide = inputs * 4
    layers = [conv_norm(inputs, wide, 1, act), conv_norm(wide, wide, size, act, groups=wide, stride=stride)]
    layers += [gate(wide)] if gate else []
    layers += [conv_norm(wide, outputs, 1, None)]
    return Residual(*layers) if inputs == outputs and stride == 1 else Seq(*layers)


@model("mobilenet_v2", "1x3x32x32")
def mobilenet_v2():
    return Seq(conv_norm(3, 8, 3, nn.ReLU6, stride=2), inverted(8, 8), inverted(8, 12, stride=2), inverted(12, 12),
               conv_norm(12, 48, 1, nn.ReLU6),
               *head(48))


class Squeeze(nn.Module):
    def __init__(self, channels, act=nn.SiLU, gate=nn.Sigmoid):
        super().__init__()
        self.body = Seq(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), act(),
                        nn.Conv2d(channels // 4, channels, 1), gate())

    def forward(self, x):
        return x * self.body(x)


@model("mobilenet_v3", "1x3x32x32")
def mobilenet_v3():
    gate = lambda c: Squeeze(c, nn.ReLU, nn.Hardsigmoid)
    return Seq(conv_norm(3, 8, 3, nn.Hardswish, stride=2), inverted(8, 8, 3, nn.ReLU, gate=gate),
               inverted(8, 12, 5, nn.Hardswish, 2, gate),
               *head(12)[:2], nn.Linear(12, 32), nn.Hardswish(True), nn.Linear(32, 10))


@model("efficientnet", "1x3x32x32")
def efficientnet():
    return Seq(conv_norm(3, 8, 3, nn.SiLU, stride=2), inverted(8, 8, 3, nn.SiLU, gate=Squeeze),
               inverted(8, 12, 5, nn.SiLU, 2, Squeeze),
               conv_norm(12, 32, 1, nn.SiLU), *head(32))


@model("shufflenet_v2", "1x3x32x32")
class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.out = conv_norm(3, 16, 3, stride=2), Seq(*head(16))
        self.body = nn.ModuleList([Seq(conv_norm(8, 8, 1), conv_norm(8, 8, 3, None, groups=8),
                                       conv_norm(8, 8, 1)) for _ in range(3)])

    def forward(self, x):
        x = self.stem(x)
        for block in self.body:
            a, b = x.chunk(2, 1)
            x = torch.cat([a, block(b)], 1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        return self.out(x)


@model("shufflenet_v1", "1x3x32x32")
def shufflenet_v1():
    unit = Residual(conv_norm(24, 12, 1, groups=3), nn.ChannelShuffle(3), conv_norm(12, 12, 3, None, groups=12),
                    conv_norm(12, 24, 1, None, groups=3))
    return Seq(conv_norm(3, 24, 3, stride=2), unit, nn.ReLU(), *head(24))


@model("squeezenet", "1x3x40x40")
class SqueezeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Seq(nn.Conv2d(3, 16, 3, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True))
        self.squeeze, self.one, self.three = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 8, 1), nn.Conv2d(4, 8, 3, padding=1)
        self.out = Seq(nn.Dropout(0.5), nn.Conv2d(16, 10, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x):
        x = F.relu(self.squeeze(self.stem(x)), True)
        return torch.flatten(self.out(torch.cat([F.relu(self.one(x), True), F.relu(self.three(x), True)], 1)), 1)


@model("regnet", "1x3x32x32")
def regnet():
    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.body = Seq(conv_norm(i, o, 1), conv_norm(o, o, 3, groups=o // 8, stride=stride), Squeeze(o, nn.ReLU),
                            conv_norm(o, o, 1, None))
            self.short = conv_norm(i, o, 1, None, stride=stride)

        def forward(self, x):
            return F.relu(self.short(x) + self.body(x))
    return Seq(conv_norm(3, 16, 3, stride=2), Block(16, 16, 1), Block(16, 32, 2), *head(32))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, 1e-6)
        self.wide, self.narrow = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.full((c,), 0.1))

    def forward(self, x):
        y = self.narrow(F.gelu(self.wide(self.norm(self.depth(x).permute(0, 2, 3, 1)))))
        return x + (self.scale * y).permute(0, 3, 1, 2)


@model("convnext", "1x3x32x32", half=True)
def convnext():
    return Seq(nn.Conv2d(3, 12, 4, 4), LayerNorm2d(12), ConvNeXtBlock(12), LayerNorm2d(12), nn.Conv2d(12, 24, 2, 2),
               ConvNeXtBlock(24),
               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(24), nn.Linear(24, 10))


@model("convnext_v2", "1x3x32x32")
def convnext_v2():
    class Response(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.gamma, self.beta = nn.Parameter(torch.ones(1, 1, 1, c)), nn.Parameter(torch.zeros(1, 1, 1, c))

        def forward(self, x):
            g = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
            return self.gamma * (x * (g / (g.mean(dim=-1, keepdim=True) + 1e-6))) + self.beta + x
    last = Lambda(lambda x: x.permute(0, 2, 3, 1))
    first = Lambda(lambda x: x.permute(0, 3, 1, 2))
    block = Residual(nn.Conv2d(12, 12, 7, padding=3, groups=12), last, nn.LayerNorm(12), nn.Linear(12, 48), nn.GELU(),
                     Response(48), nn.Linear(48, 12), first)
    return Seq(nn.Conv2d(3, 12, 4, 4), block, *head(12))


@model("ghostnet", "1x3x32x32")
class GhostNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.main = conv_norm(3, 16, 3, stride=2), conv_norm(16, 12, 1)
        self.cheap, self.out = conv_norm(12, 12, 3, groups=12), Seq(*head(20))

    def forward(self, x):
        y = self.main(self.stem(x))
        return self.out(torch.cat([y, self.cheap(y)], 1)[:, :20])


@model("res2net", "1x3x24x24")
class Res2Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.convs = conv_norm(3, 16, 3), nn.ModuleList([conv_norm(4, 4, 3) for _ in range(3)])
        self.last = Seq(conv_norm(16, 16, 1, None), *head(16))

    def forward(self, x):
        parts, kept = torch.split(self.stem(x), 4, 1), []
        for i, conv in enumerate(self.convs):
            kept.append(conv(parts[i] if i == 0 else kept[-1] + parts[i]))
        return self.last(torch.cat(kept + [parts[3]], 1))


@model("cbam", "1x3x24x24")
class CBAM(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.mlp = conv_norm(3, 16, 3), Seq(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 16))
        self.where, self.out = nn.Conv2d(2, 1, 7, padding=3), Seq(*head(16))

    def forward(self, x):
        x = self.stem(x)
        gate = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * gate[:, :, None, None]
        maps = torch.cat([x.max(1, keepdim=True).values, x.mean(1, keepdim=True)], 1)
        return self.out(x * self.where(maps).sigmoid())


@model("eca_net", "2x3x24x24")
class EcaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv, self.out = conv_norm(3, 16, 3), nn.Conv1d(1, 1, 3, padding=1, bias=False), Seq(*head(16))

    def forward(self, x):
        x = self.stem(x)
        y = self.conv(F.adaptive_avg_pool2d(x, 1).squeeze(-1).transpose(-1, -2)).transpose(-1, -2).unsqueeze(-1)
        return self.out(x * torch.sigmoid(y).expand_as(x))


class StandardConv(nn.Conv2d):
    def forward(self, x):
        w = self.weight
        var, mean = torch.var_mean(w, dim=(1, 2, 3), keepdim=True, unbiased=False)
        return F.conv2d(x, (w - mean) / torch.sqrt(var + 1e-5), self.bias, self.stride, self.padding, self.dilation,
                        self.groups)


@model("nfnet", "1x3x32x32")
class NFNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a = StandardConv(3, 16, 3, 2, 1), StandardConv(16, 16, 3, padding=1)
        self.b, self.gate = StandardConv(16, 16, 3, padding=1), Squeeze(16)
        self.gain, self.out = nn.Parameter(torch.tensor(0.5)), nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.gate(self.b(F.gelu(self.a(F.gelu(x) * 1.7015)) * 1.7015)) * 2
        return self.out((x + 0.2 * self.gain * y).mean([2, 3]))


@model("big_transfer", "1x3x32x32")
def big_transfer():
    return Seq(StandardConv(3, 16, 7, 2, 3), nn.ConstantPad2d(1, 0.0), nn.MaxPool2d(3, 2),
               Residual(nn.GroupNorm(4, 16), nn.ReLU(), StandardConv(16, 16, 3, padding=1)),
               nn.GroupNorm(4, 16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 10, 1), nn.Flatten())


@model("repvgg", "1x3x24x24")
class RepVGG(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.three, self.one = conv_norm(3, 12, 3), conv_norm(12, 12, 3, None), conv_norm(12, 12, 1, None)
        self.same = nn.BatchNorm2d(12)
        self.out = Seq(*head(12))

    def forward(self, x):
        x = self.stem(x)
        return self.out(F.relu(self.three(x) + self.one(x) + self.same(x)))


@model("highway", "3x20", half=True)
class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([nn.Linear(20, 20) for _ in range(3)])
        self.t = nn.ModuleList([nn.Linear(20, 20) for _ in range(3)])

    def forward(self, x):
        for h, t in zip(self.h, self.t):
            gate = torch.sigmoid(t(x))
            x = gate * F.relu(h(x)) + (1 - gate) * x
        return F.log_softmax(x, 1)


@model("maxout", "3x1x12x12")
def maxout():
    piece = Lambda(lambda x: x.view(x.shape[0], x.shape[1] // 4, 4, *x.shape[2:]).max(2)[0])
    return Seq(nn.Conv2d(1, 16, 3), piece, nn.FractionalMaxPool2d(2, 5, _random_samples=torch.full((3, 4, 2), 0.3)),
               nn.Flatten(), nn.Linear(100, 40),
               Lambda(lambda x: x.view(-1, 10, 4).amax(-1)))


@model("network_in_network", "1x3x32x32")
def network_in_network():
    mlp = lambda i, o, k: [nn.Conv2d(i, o, k, padding=k // 2), nn.ReLU(), nn.Conv2d(o, o, 1), nn.ReLU()]
    return Seq(*mlp(3, 12, 5), nn.MaxPool2d(3, 2, 1), *mlp(12, 12, 3), nn.AvgPool2d(3, 2, 1), *mlp(12, 10, 3),
               nn.AvgPool2d(8), nn.Flatten())


@model("hrnet", "1x3x32x32")
class HRNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.down, self.a = conv_norm(3, 8, 3, stride=2), conv_norm(8, 16, 3, stride=2), BasicBlock(8, 8)
        self.b = BasicBlock(16, 16)
        self.up, self.low = conv_norm(16, 8, 1, None), conv_norm(8, 16, 3, None, stride=2)
        self.out = nn.Conv2d(24, 5, 1)

    def forward(self, x):
        a = self.stem(x)
        b = self.b(self.down(a))
        a = self.a(a)
        high = F.relu(a + F.interpolate(self.up(b), size=a.shape[2:], mode="nearest"))
        low = F.relu(b + self.low(a))
        return self.out(torch.cat([high, F.interpolate(low, size=a.shape[2:], mode="bilinear", align_corners=True)], 1))


@model("coordconv", "2x3x20x20")
class CoordConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(6, 12, 3), nn.Linear(12, 2)

    def forward(self, x):
        n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        places = torch.stack([ys, xs, torch.hypot(ys, xs)]).expand(n, -1, -1, -1)
        y = F.leaky_relu(self.conv(torch.cat([x, places], 1)), 0.1)
        weights = F.softmax(y.flatten(2), -1).view_as(y)
        return self.out((weights * y).sum((2, 3)))


@model("blur_pool", "1x3x32x32")
class BlurPool(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([1.0, 3, 3, 1])
        self.register_buffer("kernel", ((k[:, None] * k) / 64).repeat(12, 1, 1, 1))
        self.conv, self.out = conv_norm(3, 12, 3), Seq(*head(12))

    def forward(self, x):
        x = F.max_pool2d(self.conv(x), 2, 1)
        return self.out(F.conv2d(F.pad(x, (1, 2, 1, 2), mode="reflect"), self.kernel, stride=2, groups=12))


@model("involution", "1x3x16x16")
class Involution(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.reduce, self.span = conv_norm(3, 16, 3), nn.Conv2d(16, 4, 1), nn.Conv2d(4, 9 * 2, 1)
        self.out = Seq(*head(16))

    def forward(self, x):
        x = self.stem(x)
        n, c, h, w = x.shape
        kernel = self.span(self.reduce(x)).view(n, 2, 9, h, w).unsqueeze(2)
        patches = F.unfold(x, 3, padding=1).view(n, 2, c // 2, 9, h, w)
        return self.out((kernel * patches).sum(3).view(n, c, h, w))


@model("cond_conv", "3x4x12x12")
class CondConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts, self.route = nn.Parameter(torch.randn(4, 8, 4, 3, 3) * 0.2), nn.Linear(4, 4)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        n, c, h, w = x.shape
        mix = torch.sigmoid(self.route(x.mean((-2, -1))))
        kernels = torch.einsum("ne,eoihw->noihw", mix, self.experts).reshape(n * 8, c, 3, 3)
        y = F.conv2d(x.reshape(1, n * c, h, w), kernels, padding=1, groups=n).view(n, 8, h, w)
        return self.out(F.adaptive_max_pool2d(y, 1).flatten(1))


@model("selective_kernel", "2x3x20x20")
class SelectiveKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a = conv_norm(3, 12, 3), conv_norm(12, 12, 3)
        self.b = conv_norm(12, 12, 3, dilation=2, padding=2)
        self.fuse, self.select = Seq(nn.Linear(12, 6), nn.BatchNorm1d(6), nn.ReLU()), nn.Linear(6, 24)
        self.out = Seq(*head(12))

    def forward(self, x):
        x = self.stem(x)
        branches = torch.stack([self.a(x), self.b(x)], 1)
        scores = self.select(self.fuse(branches.sum(1).mean(-1).mean(-1))).view(-1, 2, 12)
        return self.out((branches * scores.softmax(1).unsqueeze(-1).unsqueeze(-1)).sum(dim=1))


@model("octave_conv", "1x3x32x32")
class OctaveConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.high, self.low, self.hh, self.hl, self.lh, self.ll = (nn.Conv2d(i, 8, 3, padding=1) for i in (3, 3, 8, 8,
                8, 8))
        self.out = Seq(*head(16))

    def forward(self, x):
        high, low = F.selu(self.high(x)), F.selu(self.low(F.avg_pool2d(x, 2)))
        a = self.hh(high) + F.interpolate(self.lh(low), scale_factor=2)
        b = self.ll(low) + self.hl(F.avg_pool2d(high, 2, 2))
        return self.out(torch.cat([F.avg_pool2d(a, kernel_size=2), b], 1))


@model("convmixer", "1x3x32x32")
def convmixer():
    block = lambda: Seq(Residual(nn.Conv2d(16, 16, 5, groups=16, padding="same"), nn.GELU(), nn.BatchNorm2d(16)),
                        nn.Conv2d(16, 16, 1), nn.GELU(), nn.BatchNorm2d(16))
    return Seq(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.BatchNorm2d(16), block(), block(), *head(16))


@model("binary_net", "2x3x16x16")
class BinaryNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv = conv_norm(3, 8, 3, nn.Hardtanh), nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm, self.out = nn.BatchNorm2d(8), Seq(*head(8))

    def forward(self, x):
        x = self.stem(x)
        w = self.conv.weight
        y = F.conv2d(torch.sign(x), torch.sign(w) * w.abs().mean((1, 2, 3), keepdim=True), padding=1)
        return self.out(self.norm(y) + x)


@model("resnest", "2x3x20x20")
class ResNeSt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv = conv_norm(3, 16, 3), conv_norm(16, 32, 3, groups=2)
        self.fc1, self.fc2, self.out = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 32, 1), Seq(*head(16))

    def forward(self, x):
        y = self.conv(self.stem(x))
        a, b = torch.tensor_split(y, 2, 1)
        gap = F.adaptive_avg_pool2d(a + b, 1)
        w = self.fc2(F.relu(self.fc1(gap))).view(-1, 1, 2, 16).transpose(1, 2)
        wa, wb = F.softmax(w, 1).reshape(-1, 32, 1, 1).split(16, 1)
        return self.out(a * wa + b * wb)


@model("spectral_net", "2x3x16x16")
def spectral_net():
    from torch.nn.utils import spectral_norm, weight_norm
    return Seq(spectral_norm(nn.Conv2d(3, 8, 3)), nn.LeakyReLU(0.2), weight_norm(nn.Conv2d(8, 12, 3)), nn.CELU(0.7),
               nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               weight_norm(nn.Linear(12, 5)), nn.Softsign())


@model("normalizers", "2x8x12x12")
def normalizers():
    return Seq(nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular"), nn.InstanceNorm2d(8, affine=True),
               nn.Softplus(2.0), nn.GroupNorm(2, 8), nn.Hardshrink(0.1), nn.Softshrink(0.1),
               nn.Conv2d(8, 8, 3, padding=1, padding_mode="replicate"), nn.Threshold(-0.2, 0.05), nn.LPPool2d(2, 3,
                       2), nn.Tanhshrink(), nn.Flatten(), nn.Linear(200, 4), nn.Softmin(1))


# ---- transformers over patches

class Attention(nn.Module):
    def __init__(self, size, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x, bias=None):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores if bias is None else scores + bias
        return self.out(join_heads(scores.softmax(-1) @ v))


def mlp(size, act=nn.GELU):
    return Seq(nn.Linear(size, 2 * size), act(), nn.Linear(2 * size, size))


class Block(nn.Module):
    def __init__(self, size, heads=2):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(size), nn.LayerNorm(size), Attention(size, heads)
        self.mlp = mlp(size)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@model("vit", "2x3x32x32", half=True)
class ViT(nn.Module):
    def __init__(self, tokens=1):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(1, tokens, 16))
        self.place = nn.Parameter(torch.randn(1, 16 + tokens, 16))
        self.blocks, self.norm, self.out = Seq(Block(16), Block(16)), nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.out(self.norm(self.blocks(x))[:, 0])


@model("deit", "2x3x32x32")
class DeiT(ViT):
    def __init__(self):
        super().__init__(2)
        self.teacher = nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = self.norm(self.blocks(torch.cat([self.first.repeat(x.shape[0], 1, 1), x], 1) + self.place))
        return (self.out(x.select(1, 0)) + self.teacher(x.select(1, 1))) / 2


@model("swin", "1x3x32x32")
class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norms = nn.Conv2d(3, 16, 4, 4), nn.ModuleList([nn.LayerNorm(16) for _ in range(4)])
        self.attentions = nn.ModuleList([Attention(16), Attention(16)])
        self.mlps, self.table = nn.ModuleList([mlp(16), mlp(16)]), nn.Parameter(torch.randn(49, 2) * 0.1)
        ys, xs = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
        p = torch.stack([ys, xs]).flatten(1)
        d = (p[:, :, None] - p[:, None, :]).permute(1, 2, 0) + 3
        self.register_buffer("places", d[:, :, 0] * 7 + d[:, :, 1])
        self.merge, self.last, self.out = nn.Linear(64, 32, bias=False), nn.LayerNorm(64), nn.Linear(32, 10)

    def windows(self, x):
        n, h, w, c = x.shape
        return x.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)

    def mask(self, h, w):
        image = torch.zeros(1, h, w, 1)
        count = 0
        for a in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for b in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                image[:, a, b, :] = count
                count += 1
        m = self.windows(image).squeeze(-1)
        m = m.unsqueeze(1) - m.unsqueeze(2)
        return m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0).unsqueeze(1)

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        bias = self.table[self.places.view(-1)].view(16, 16, 2).permute(2, 0, 1).unsqueeze(0)
        for i in range(2):
            y = self.norms[2 * i](x)
            y = torch.roll(y, (-2, -2), (1, 2)) if i else y
            y = self.attentions[i](self.windows(y), bias + self.mask(h, w) if i else bias)
            y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            x = x + (torch.roll(y, (2, 2), (1, 2)) if i else y)
            x = x + self.mlps[i](self.norms[2 * i + 1](x))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.out(self.merge(self.last(x)).mean((1, 2)))


@model("swin_v2", "1x3x16x16")
class SwinV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.qkv, self.out = nn.Conv2d(3, 16, 4, 4), nn.Linear(16, 48), nn.Linear(16, 10)
        self.norm = nn.LayerNorm(16)
        self.scale = nn.Parameter(torch.log(10 * torch.ones(2, 1, 1)))
        self.places = Seq(nn.Linear(2, 12), nn.ReLU(True), nn.Linear(12, 2, bias=False))

    def forward(self, x):
        x = self.patch(x).flatten(2).mT
        q, k, v = (heads_of(t, 2) for t in self.qkv(x).split(16, -1))
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2,
                -1) * self.scale.clamp(max=math.log(100.0)).exp()
        p = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
        d = p[:, None] - p[None]
        d = torch.sign(d) * torch.log2(d.abs() * 8 / 3 + 1.0) / 3.0
        bias = 16 * torch.sigmoid(self.places(d).permute(2, 0, 1))
        return self.out((x + self.norm(join_heads((scores + bias).softmax(-1) @ v))).mean(1))


@model("mlp_mixer", "2x3x32x32", half=True)
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norms = nn.Conv2d(3, 12, 8, 8), nn.ModuleList([nn.LayerNorm(12) for _ in range(5)])
        self.tokens, self.channels = nn.ModuleList([mlp(16), mlp(16)]), nn.ModuleList([mlp(12), mlp(12)])
        self.out = nn.Linear(12, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for i in range(2):
            x = x + self.tokens[i](self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.channels[i](self.norms[2 * i + 1](x))
        return self.out(self.norms[4](x).mean(1))


@model("resmlp", "2x3x32x32")
class ResMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.alpha = nn.Conv2d(3, 12, 8, 8), nn.Parameter(torch.ones(3, 12))
        self.beta = nn.Parameter(torch.zeros(3, 12))
        self.tokens, self.gamma, self.wide = nn.Conv1d(16, 16, 1), nn.Parameter(torch.full((2, 12), 0.1)), mlp(12)
        self.out = nn.Linear(12, 10)

    def affine(self, x, i):
        return torch.addcmul(self.beta[i], self.alpha[i], x)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.gamma[0] * self.tokens(self.affine(x, 0))
        x = x + self.gamma[1] * self.wide(self.affine(x, 1))
        return self.out(self.affine(x, 2).mean(dim=1))


@model("gmlp", "2x16x12")
class GMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.gate_norm = nn.LayerNorm(12), nn.Linear(12, 24), nn.LayerNorm(12)
        self.spatial, self.narrow = nn.Conv1d(16, 16, 1), nn.Linear(12, 12)

    def forward(self, x):
        u, v = F.gelu(self.wide(self.norm(x)), approximate="tanh").chunk(2, dim=-1)
        return x + self.narrow(u * (self.spatial(self.gate_norm(v)) + 1.0))


@model("poolformer", "1x3x32x32")
class PoolFormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm1, self.norm2 = nn.Conv2d(3, 16, 7, 4, 2), nn.GroupNorm(1, 16), nn.GroupNorm(1, 16)
        self.mlp = Seq(nn.Conv2d(16, 32, 1), nn.GELU(), nn.Conv2d(32, 16, 1))
        self.scale, self.out = nn.Parameter(torch.full((2, 16, 1, 1), 0.5)), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x)
        y = self.norm1(x)
        x = x + self.scale[0] * (F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y)
        x = x + self.scale[1] * self.mlp(self.norm2(x))
        return self.out(x.mean([-2, -1]))


@model("pyramid_vit", "1x3x32x32")
class PyramidViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm, self.q = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16), nn.Linear(16, 16)
        self.kv = nn.Linear(16, 32)
        self.reduce, self.norm2, self.out = nn.Conv2d(16, 16, 2, 2), nn.LayerNorm(16), nn.Linear(16, 16)
        self.depth, self.last = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x)
        n, c, h, w = x.shape
        x = self.norm(x.flatten(2).transpose(1, 2))
        small = self.norm2(self.reduce(x.transpose(1, 2).reshape(n, c, h, w)).reshape(n, c, -1).permute(0, 2, 1))
        k, v = self.kv(small).reshape(n, -1, 2, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = join_heads(((heads_of(self.q(x), 2) @ k.transpose(-2, -1)) * 8 ** -0.5).softmax(-1) @ v)
        x = x + self.out(y)
        x = F.gelu(self.depth(x.transpose(1, 2).view(n, c, h, w)))
        return self.last(x.flatten(2).mean(2))


@model("conv_vit", "1x3x24x24")
class ConvViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 7, 4, 3)
        self.project = nn.ModuleList([conv_norm(16, 16, 3, None, groups=16, stride=s) for s in (1, 2, 2)])
        self.out = nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x)
        q, k, v = (heads_of(p(x).flatten(2).transpose(1, 2), 4) for p in self.project)
        y = torch.einsum("bhlk,bhtk->bhlt", q, k).mul(0.25).softmax(dim=-1)
        return self.out(torch.einsum("bhlt,bhtv->bhlv", y, v).permute(0, 2, 1, 3).flatten(2).mean(1))


@model("mobilevit", "1x3x32x32")
class MobileViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.local = conv_norm(3, 12, 3, nn.SiLU, stride=2), nn.Conv2d(12, 16, 1, bias=False)
        self.block = Block(16)
        self.back, self.fuse, self.out = conv_norm(16, 12, 1, nn.SiLU), conv_norm(24, 12, 3, nn.SiLU), Seq(*head(12))

    def forward(self, x):
        x = self.stem(x)
        y = self.local(x)
        n, c, h, w = y.shape
        y = F.unfold(y, 2, stride=2).reshape(n, c, 4, -1).permute(0, 2, 3, 1).reshape(n * 4, -1, c)
        y = self.block(y).reshape(n, 4, -1, c).permute(0, 3, 1, 2).reshape(n, c * 4, -1)
        y = F.fold(y, (h, w), 2, stride=2)
        return self.out(self.fuse(torch.cat([x, self.back(y)], 1)))


@model("levit", "1x3x32x32")
class LeViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.qkv = conv_norm(3, 16, 3, nn.Hardswish, stride=4), nn.Linear(16, 64, bias=False)
        self.norm, self.out = nn.BatchNorm1d(64), nn.Linear(32, 10)
        self.biases = nn.Parameter(torch.randn(2, 64))
        p = torch.arange(64)
        d = (p[:, None] // 8 - p[None] // 8).abs() * 8 + (p[:, None] % 8 - p[None] % 8).abs()
        self.register_buffer("index", d)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        n, l, _ = x.shape
        y = self.norm(self.qkv(x).flatten(0, 1)).reshape(n, l, 64)
        q, k, v = y.view(n, l, 2, -1).split([8, 8, 16], dim=3)
        q, k, v = q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1), v.permute(0, 2, 1, 3)
        scores = torch.matmul(q, k) * 0.35 + self.biases[:, self.index]
        y = torch.matmul(scores.softmax(dim=-1), v).transpose(1, 2).reshape(n, l, -1)
        return self.out(F.hardswish(y).mean(1))


@model("xcit", "1x3x32x32")
class XCiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.qkv = nn.Conv2d(3, 16, 8, 8), nn.Linear(16, 48)
        self.temperature, self.out = nn.Parameter(torch.ones(2, 1, 1)), nn.Linear(16, 10)
        self.local = Seq(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.GELU(), nn.BatchNorm2d(16),
                         nn.Conv2d(16, 16, 3, padding=1, groups=16))

    def forward(self, x):
        x = self.patch(x).flatten(2).permute(0, 2, 1)
        n, l, c = x.shape
        q, k, v = self.qkv(x).reshape(n, l, 3, 2, 8).permute(2, 0, 3, 4, 1)
        scores = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)) * self.temperature
        x = x + (scores.softmax(-1) @ v).permute(0, 3, 1, 2).reshape(n, l, c)
        x = x + self.local(x.transpose(1, 2).reshape(n, c, 4, 4)).reshape(n, c, l).transpose(1, 2)
        return self.out(x.mean(1))


@model("gfnet", "1x3x32x32")
class GFNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm = nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12)
        self.filter = nn.Parameter(torch.randn(8, 5, 12, 2) * 0.2)
        self.mlp, self.out = mlp(12), nn.Linear(12, 10)

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        y = torch.fft.rfft2(self.norm(x), dim=(1, 2), norm="ortho") * torch.view_as_complex(self.filter)
        y = torch.fft.irfft2(y, s=(8, 8), dim=(1, 2), norm="ortho")
        return self.out((x + self.mlp(y)).mean((1, 2)))


@model("maxvit", "1x3x32x32")
class MaxViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv, self.block = nn.Conv2d(3, 16, 4, 4), inverted(16, 16, 3, nn.GELU, gate=Squeeze), Block(16)
        self.grid, self.out = Block(16), Seq(*head(16))

    def forward(self, x):
        x = self.conv(self.stem(x))
        n, c, h, w = x.shape
        y = x.reshape(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        x = self.block(y).reshape(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)
        y = x.reshape(n, c, 4, h // 4, 4, w // 4).permute(0, 3, 5, 2, 4, 1).reshape(-1, 16, c)
        x = self.grid(y).reshape(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 3, 1, 4, 2).reshape(n, c, h, w)
        return self.out(x)


@model("cait", "1x3x32x32")
class CaiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.qkv, self.before = nn.Conv2d(3, 16, 8, 8), nn.Linear(16, 48), nn.Linear(4, 4)
        self.after = nn.Linear(4, 4)
        self.scale, self.first = nn.Parameter(torch.full((16,), 0.1)), nn.Parameter(torch.randn(1, 1, 16))
        self.q, self.kv, self.out = nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 4)).movedim(2, 0).transpose(2, 3)
        scores = self.before((q @ k.mT).permute(0, 2, 3, 1) / 2).permute(0, 3, 1, 2)
        scores = self.after(scores.softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + self.scale * (scores @ v).transpose(1, 2).flatten(2)
        first = self.first.expand(x.shape[0], -1, -1)
        k, v = self.kv(torch.cat([first, x], 1)).tensor_split(2, -1)
        weights = torch.softmax(torch.bmm(self.q(first), k.transpose(1, 2)), -1)
        return self.out(torch.baddbmm(first, weights, v)[:, 0])


@model("perceiver", "2x3x12x12")
class Perceiver(nn.Module):
    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(6, 16))
        self.read = nn.MultiheadAttention(16, 1, kdim=11, vdim=11, batch_first=True)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True, norm_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        n, c, h, w = x.shape
        place = torch.stack(torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij"), -1)
        waves = place.unsqueeze(-1) * torch.logspace(0, 1, 2, base=2.0) * math.pi
        place = torch.cat([waves.sin(), waves.cos()], -1).flatten(2)
        x = torch.cat([x.permute(0, 2, 3, 1), place.expand(n, -1, -1, -1)], -1).flatten(1, 2)
        y = self.read(self.latents.expand(n, -1, -1), x, x, need_weights=False)[0]
        return self.out(self.block(y).mean(1))


@model("masked_autoencoder", "2x16x12", "2x16")
class MaskedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.decoder = nn.Linear(12, 16), Block(16), Block(16)
        self.mask, self.out = nn.Parameter(torch.randn(1, 1, 16)), nn.Linear(16, 12)

    def forward(self, patches, noise):
        order = torch.argsort(noise, 1)
        back = torch.argsort(order, 1)
        kept = torch.gather(self.words(patches), 1, order[:, :4].unsqueeze(-1).repeat(1, 1, 16))
        x = self.encoder(kept)
        x = torch.cat([x, self.mask.repeat(2, 12, 1)], 1)
        x = self.out(self.decoder(torch.gather(x, 1, back.unsqueeze(-1).expand(-1, -1, 16))))
        hidden = torch.ones(2, 16)
        hidden[:, :4] = 0
        hidden = torch.gather(hidden, 1, back)
        return (((x - patches) ** 2).mean(-1) * hidden).sum() / hidden.sum(), x


@model("spatial_transformer", "2x1x28x28")
class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate = Seq(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2, 2), nn.ReLU(True), nn.Conv2d(8, 10, 5),
                          nn.MaxPool2d(2, 2), nn.ReLU(True))
        self.theta = Seq(nn.Linear(90, 16), nn.ReLU(True), nn.Linear(16, 6))
        self.out = Seq(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), *head(8))

    def forward(self, x):
        theta = self.theta(self.locate(x).view(-1, 90)).view(-1, 2, 3) * 0.3 + torch.eye(2, 3)
        return self.out(F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False))


@model("deformable_conv", "1x4x12x12")
class DeformableConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset, self.gate = nn.Conv2d(4, 18, 3, padding=1), nn.Conv2d(4, 9, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(6, 4, 9) * 0.3)

    def forward(self, x):
        n, c, h, w = x.shape
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        offset, gate = self.offset(x).view(n, 9, 2, h, w), self.gate(x).sigmoid()
        taps = []
        for k in range(9):
            y = ys + k // 3 - 1 + offset[:, k, 0]
            z = xs + k % 3 - 1 + offset[:, k, 1]
            grid = torch.stack([z * 2 / (w - 1) - 1, y * 2 / (h - 1) - 1], -1)
            taps.append(F.grid_sample(x, grid, "bilinear", "zeros", True) * gate[:, k:k + 1])
        return torch.einsum("ock,nckhw->nohw", self.weight, torch.stack(taps, 2))


@model("capsules", "2x1x20x20")
class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.first = nn.Conv2d(1, 8, 5, 2), nn.Conv2d(8, 16, 3, 2)
        self.weight = nn.Parameter(torch.randn(1, 36, 3, 8, 4) * 0.3)

    def squash(self, x):
        n = (x ** 2).sum(-1, keepdim=True)
        return n / (1 + n) * x / torch.sqrt(n + 1e-8)

    def forward(self, x):
        x = self.first(F.relu(self.conv(x)))
        x = self.squash(x.view(x.shape[0], 4, 4, -1).permute(0, 1, 3, 2).reshape(x.shape[0], -1, 4))
        votes = (self.weight @ x[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(3):
            v = self.squash((logits.softmax(2).unsqueeze(-1) * votes).sum(1, keepdim=True))
            logits = logits + (votes * v).sum(-1)
        return v.squeeze(1).norm(dim=-1)


@model("neighbourhood_attention", "2x6x5x7")
class Neighbourhood(nn.Module):
    """Windows of keys and values are views with strides of padded maps."""
    def __init__(self):
        super().__init__()
        self.qkv, self.bias = nn.Conv2d(6, 18, 1), nn.Parameter(torch.randn(9))

    def windows(self, x):
        n, c, h, w = x.shape
        x = F.pad(x, (1, 1, 1, 1), mode="replicate").contiguous()
        a, b, d, e = x.stride()
        return x.as_strided((n, c, h, w, 3, 3), (a, b, d, e, d, e)).flatten(4)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, 1)
        scores = (q[..., None] * self.windows(k)).sum(1, keepdim=True) + self.bias
        return (scores.softmax(-1) * self.windows(v)).sum(-1)
