"""Detection, segmentation, super-resolution, matching of pictures."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, Residual, conv_norm, model
from .vision import Squeeze, separable

Seq = nn.Sequential


def iou(a, b):
    area = lambda x: (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1])
    low, high = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    return both / (area(a)[:, None] + area(b)[None] - both + 1e-9)


@model("ssd", "1x3x40x40", half=True)
class Ssd(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((12,), 20.0))
        self.levels = nn.ModuleList([conv_norm(3, 12, 3, stride=2), conv_norm(12, 16, 3, stride=2),
                                     conv_norm(16, 16, 3, stride=2)])
        self.boxes = nn.ModuleList([nn.Conv2d(c, 8, 3, padding=1) for c in (12, 16, 16)])
        self.classes = nn.ModuleList([nn.Conv2d(c, 6, 3, padding=1) for c in (12, 16, 16)])

    def forward(self, x):
        boxes, classes = [], []
        for level, box, cls in zip(self.levels, self.boxes, self.classes):
            x = level(x)
            y = F.normalize(x, p=2, dim=1) * self.scale.view(1, -1, 1, 1) if not boxes else x
            boxes.append(box(y).permute(0, 2, 3, 1).contiguous().view(1, -1, 4))
            classes.append(cls(y).permute(0, 2, 3, 1).contiguous().view(1, -1, 3))
        return torch.cat(boxes, 1), torch.cat(classes, 1).softmax(-1)


@model("yolo_v3", "1x3x32x32")
class YoloV3(nn.Module):
    def __init__(self):
        super().__init__()
        act = lambda: nn.LeakyReLU(0.1)
        self.a = Seq(conv_norm(3, 8, 3, act, stride=2), conv_norm(8, 16, 3, act, stride=2))
        self.b = conv_norm(16, 32, 3, act, stride=2)
        self.low, self.up, self.high = nn.Conv2d(32, 21, 1), conv_norm(32, 16, 1, act), nn.Conv2d(32, 21, 1)
        self.register_buffer("anchors", torch.tensor([[4.0, 5], [8, 7], [12, 14]]))

    def decode(self, p, stride):
        n, _, h, w = p.shape
        p = p.view(n, 3, 7, h, w).permute(0, 1, 3, 4, 2)
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        p = p.sigmoid().clone()
        p[..., 0] = (p[..., 0] + gx) * stride
        p[..., 1] = (p[..., 1] + gy) * stride
        p[..., 2:4] = torch.exp(p[..., 2:4]) * self.anchors.view(1, 3, 1, 1, 2)
        return p.reshape(n, -1, 7)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        up = F.interpolate(self.up(b), scale_factor=2, mode="nearest")
        return torch.cat([self.decode(self.low(b), 8), self.decode(self.high(torch.cat([up, a], 1)), 4)], 1)


@model("yolo_v8", "1x3x32x32")
class YoloV8(nn.Module):
    """Blocks that keep every step, pooling of pools, boxes as distributions of distances."""
    def __init__(self):
        super().__init__()
        self.stem, self.step = conv_norm(3, 16, 3, nn.SiLU, stride=4), conv_norm(16, 16, 1, nn.SiLU)
        self.steps = nn.ModuleList([conv_norm(8, 8, 3, nn.SiLU) for _ in range(2)])
        self.join = conv_norm(32, 16, 1, nn.SiLU)
        self.pool_in, self.pool_out = conv_norm(16, 8, 1, nn.SiLU), conv_norm(32, 16, 1, nn.SiLU)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.box, self.cls = nn.Conv2d(16, 32, 1), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        y = list(self.step(self.stem(x)).chunk(2, 1))
        for step in self.steps:
            y.append(y[-1] + step(y[-1]))
        x = self.pool_in(self.join(torch.cat(y, 1)))
        y = [x]
        y.extend(self.pool(y[-1]) for _ in range(3))
        x = self.pool_out(torch.cat(y, 1))
        dist = self.box(x).flatten(2).view(1, 4, 8, 64).transpose(2, 1).softmax(1)
        dist = F.conv2d(dist, torch.arange(8.0).view(1, 8, 1, 1)).view(1, 4, 64)
        sx = torch.arange(8) + 0.5
        at = torch.stack(torch.meshgrid(sx, sx, indexing="xy"), -1).view(-1, 2).transpose(0, 1).unsqueeze(0)
        lt, rb = dist.chunk(2, 1)
        low, high = at - lt, at + rb
        return torch.cat([(low + high) / 2, high - low], 1) * 4, self.cls(x).flatten(2).sigmoid()


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([conv_norm(3, 8, 3, stride=2), conv_norm(8, 12, 3, stride=2),
                                   conv_norm(12, 16, 3, stride=2)])
        self.side = nn.ModuleList([nn.Conv2d(c, 8, 1) for c in (8, 12, 16)])
        self.smooth = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)])

    def forward(self, x):
        levels = []
        for down in self.down:
            x = down(x)
            levels.append(x)
        y, out = self.side[2](levels[2]), []
        out.append(self.smooth[2](y))
        for i in (1, 0):
            y = self.side[i](levels[i]) + F.interpolate(y, size=levels[i].shape[-2:], mode="nearest")
            out.insert(0, self.smooth[i](y))
        return out


@model("feature_pyramid", "1x3x36x36")
class FeaturePyramid(Pyramid):
    def forward(self, x):
        out = super().forward(x)
        return out + [F.max_pool2d(out[-1], 1, 2, 0)]


@model("retinanet", "1x3x32x32")
class RetinaNet(Pyramid):
    def __init__(self):
        super().__init__()
        self.cls = Seq(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 6, 3, padding=1))
        self.box = Seq(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))

    def anchors(self, h, w, stride):
        ratio = torch.sqrt(torch.tensor([0.5, 2.0]))
        ws, hs = stride * 4 / ratio, stride * 4 * ratio
        base = (torch.stack([-ws, -hs, ws, hs], 1) / 2).round()
        y, x = torch.meshgrid(torch.arange(h) * stride, torch.arange(w) * stride, indexing="ij")
        shift = torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1), y.reshape(-1)), 1)
        return (shift.view(-1, 1, 4) + base.view(1, -1, 4)).reshape(-1, 4)

    def forward(self, x):
        scores, boxes = [], []
        for i, level in enumerate(super().forward(x)):
            h, w = level.shape[-2:]
            a, d = self.anchors(h, w, 2 ** (i + 1)), self.box(level).view(1, 2, 4, h, w).permute(0, 3, 4, 1,
                    2).reshape(-1, 4)
            size, mid = a[:, 2:] - a[:, :2], (a[:, 2:] + a[:, :2]) * 0.5
            mid, size = mid + d[:, :2] * size, size * torch.exp(d[:, 2:].clamp(max=math.log(1000.0 / 16)))
            boxes.append(torch.cat([mid - 0.5 * size, mid + 0.5 * size], 1).clamp(0, 32))
            scores.append(torch.sigmoid(self.cls(level)).view(1, 2, 3, h, w).permute(0, 3, 4, 1, 2).flatten())
        scores, boxes = torch.cat(scores), torch.cat(boxes)
        top, which = scores.topk(12)
        return boxes[torch.div(which, 3, rounding_mode="floor")], top, which % 3


@model("fcos", "1x3x32x32")
class Fcos(Pyramid):
    def __init__(self):
        super().__init__()
        self.tower, self.cls = Seq(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU()), nn.Conv2d(8, 3, 1)
        self.box, self.centre = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1)
        self.scales = nn.ParameterList([nn.Parameter(torch.tensor([1.0 + i])) for i in range(3)])

    def forward(self, x):
        out = []
        for level, scale in zip(super().forward(x), self.scales):
            y = self.tower(level)
            score = torch.sqrt(self.cls(y).sigmoid() * self.centre(y).sigmoid())
            out.append(torch.cat([score, F.relu(self.box(y) * scale)], 1).flatten(2))
        return torch.cat(out, -1).transpose(1, 2)


@model("centernet", "1x3x32x32")
class CenterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(conv_norm(3, 8, 3, stride=2), conv_norm(8, 16, 3, stride=2),
                        nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU())
        self.heat, self.size, self.offset = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1)

    def take(self, x, where):
        x = x.permute(0, 2, 3, 1).contiguous().view(1, -1, x.size(1))
        return x.gather(1, where.unsqueeze(2).expand(where.size(0), where.size(1), x.size(2)))

    def forward(self, x):
        y = self.body(x)
        heat = self.heat(y).sigmoid_()
        heat = heat * (F.max_pool2d(heat, (3, 3), stride=1, padding=1) == heat).float()
        scores, which = torch.topk(heat.view(1, 3, -1), 5)
        score, order = torch.topk(scores.view(1, -1), 5)
        where = which.view(1, -1).gather(1, order)
        off, size = self.take(self.offset(y), where), self.take(self.size(y), where)
        ys, xs = (where / 16).int().float(), (where % 16).int().float()
        mid = torch.stack([xs, ys], 2) + off
        return torch.cat([mid - size / 2, mid + size / 2, score.unsqueeze(2), (order / 5).int().float().unsqueeze(2)],
                         2)


@model("roi_heads", "1x3x32x32", "4x4")
class RoiHeads(nn.Module):
    """Boxes pooled by sampling a grid in each, then classes and deltas."""
    def __init__(self):
        super().__init__()
        self.body, self.fc, self.cls = conv_norm(3, 8, 3, stride=2), nn.Linear(128, 16), nn.Linear(16, 4)
        self.box = nn.Linear(16, 16)

    def forward(self, x, boxes):
        low, size = torch.sigmoid(boxes[:, :2]), torch.sigmoid(boxes[:, 2:])
        t = (torch.arange(4) + 0.5) / 4
        gx, gy = (low[:, i, None] + size[:, i, None] * t - 0.5 for i in (0, 1))
        grid = torch.stack([gx[:, None, :].expand(-1, 4, -1), gy[:, :, None].expand(-1, -1, 4)], -1)
        y = F.grid_sample(self.body(x).expand(4, -1, -1, -1), grid, padding_mode="border", align_corners=False)
        y = torch.relu(self.fc(y.flatten(1)))
        cls = self.cls(y)
        best = cls.softmax(-1)[:, 1:].argmax(-1)
        return cls, self.box(y).view(4, 4, 4)[torch.arange(4), best + 1]


@model("matrix_nms", "12x4", "12")
class MatrixNms(nn.Module):
    """Scores fall with overlap: no loop and no size that data decides."""
    def forward(self, boxes, scores):
        scores, order = scores.sigmoid().sort(descending=True)
        low = boxes[order, :2]
        boxes = torch.cat([low, low + boxes[order, 2:].abs() + 0.1], 1)
        overlap = iou(boxes, boxes).triu(diagonal=1)
        most = overlap.max(0).values.expand(12, 12).transpose(0, 1)
        decay = ((1 - overlap) / (1 - most)).min(0)[0]
        keep = torch.ones(12, dtype=torch.bool)
        for i in range(11):
            keep = keep & ~((overlap[i] > 0.5) & keep[i])
        return boxes, scores * decay, keep


@model("detr", "1x3x32x32")
class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.project = Seq(conv_norm(3, 8, 3, stride=4), conv_norm(8, 16, 3, stride=2)), nn.Conv2d(16, 16, 1)
        self.transformer = nn.Transformer(16, 2, 1, 1, 24, batch_first=True)
        self.queries = nn.Parameter(torch.rand(5, 16))
        self.rows, self.columns = nn.Parameter(torch.rand(8, 8)), nn.Parameter(torch.rand(8, 8))
        self.cls, self.box = nn.Linear(16, 4), Seq(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        h = self.project(self.body(x))
        hh, ww = h.shape[-2:]
        place = torch.cat([self.columns[:ww].unsqueeze(0).repeat(hh, 1, 1),
                           self.rows[:hh].unsqueeze(1).repeat(1, ww, 1)], -1).flatten(0, 1)
        y = self.transformer(place.unsqueeze(0) + 0.1 * h.flatten(2).permute(0, 2, 1), self.queries.unsqueeze(0))
        return self.cls(y), self.box(y).sigmoid()


@model("deformable_detr", "1x80x12", "1x4x12")
class DeformableDetr(nn.Module):
    """Attention to a few sampled points of two levels."""
    def __init__(self):
        super().__init__()
        self.value, self.offset, self.weight = nn.Linear(12, 12), nn.Linear(12, 2 * 2 * 3 * 2), nn.Linear(12, 2 * 2 * 3)
        self.place, self.out = nn.Linear(12, 2), nn.Linear(12, 12)

    def forward(self, memory, query):
        shapes = [(8, 8), (4, 4)]
        values = self.value(memory).view(1, 80, 2, 6).split([h * w for h, w in shapes], dim=1)
        offsets, weights = self.offset(query).view(1, 4, 2, 2, 3, 2), self.weight(query).view(1, 4, 2, 6).softmax(-1)
        norm = torch.tensor([[w, h] for h, w in shapes])
        at = 2 * (self.place(query).sigmoid()[:, :, None, None, None, :] + offsets /
                  norm[None, None, None, :, None, :]) - 1
        samples = []
        for i, (h, w) in enumerate(shapes):
            v = values[i].flatten(2).transpose(1, 2).reshape(2, 6, h, w)
            samples.append(F.grid_sample(v, at[:, :, :, i].transpose(1, 2).flatten(0, 1), mode="bilinear",
                                         padding_mode="zeros", align_corners=False))
        y = (torch.stack(samples, -2).flatten(-2) * weights.transpose(1, 2).reshape(2, 1, 4, 6)).sum(-1).view(1, 12, 4)
        return self.out(y.transpose(1, 2).contiguous())


@model("bifpn", "1x8x16x16", "1x8x8x8", "1x8x4x4")
class BiFpn(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Parameter(torch.rand(2)), nn.Parameter(torch.rand(3))
        self.w3 = nn.Parameter(torch.rand(2))
        self.a, self.b, self.c = separable(8, 8, nn.SiLU), separable(8, 8, nn.SiLU), separable(8, 8, nn.SiLU)

    def mix(self, w, *xs):
        w = F.relu(w)
        w = w / (torch.sum(w, dim=0) + 1e-4)
        return F.silu(sum(w[i] * x for i, x in enumerate(xs)))

    def forward(self, p3, p4, p5):
        m4 = self.a(self.mix(self.w1, p4, F.interpolate(p5, scale_factor=2.0, mode="nearest")))
        o3 = self.b(self.mix(self.w3, p3, nn.Upsample(scale_factor=2)(m4)))
        return o3, self.c(self.mix(self.w2, p4, m4, F.max_pool2d(F.pad(o3, (0, 1, 0, 1)), 3, 2)))


# ---- segmentation

def double(i, o):
    return Seq(conv_norm(i, o, 3), conv_norm(o, o, 3))


@model("unet", "1x3x32x32", half=True)
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.pool = double(3, 8), double(8, 16), double(16, 32), nn.MaxPool2d(2)
        self.up1, self.d1, self.up2 = nn.ConvTranspose2d(32, 16, 2, 2), double(32, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.d2, self.out = double(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(self.pool(a))
        y = self.d1(torch.cat([b, self.up1(self.c(self.pool(b)))], 1))
        return self.out(self.d2(torch.cat([a, self.up2(y)], 1)))


@model("unet_bilinear", "1x1x30x34")
class UNetBilinear(nn.Module):
    """Odd sizes, which are padded to meet."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = double(1, 8), double(8, 8), double(8, 8), double(16, 8)
        self.out = nn.Conv2d(16, 1, 1)

    def up(self, x, like):
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        dy, dx = like.size(2) - x.size(2), like.size(3) - x.size(3)
        return torch.cat([like, F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.d(self.up(self.c(F.max_pool2d(b, 2)), b))
        return torch.sigmoid(self.out(self.up(y, a)))


@model("attention_unet", "1x3x24x24")
class AttentionUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.g = double(3, 8), double(8, 16), conv_norm(16, 8, 1, None)
        self.x, self.psi, self.out = conv_norm(8, 8, 1, None), conv_norm(8, 1, 1, nn.Sigmoid), nn.Conv2d(24, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = F.interpolate(self.b(F.avg_pool2d(a, 2)), scale_factor=2.0, mode="bicubic", align_corners=False)
        return self.out(torch.cat([a * self.psi(F.relu(self.g(b) + self.x(a))), b], 1))


@model("unet_plus", "1x3x16x16")
class UNetPlus(nn.Module):
    def __init__(self):
        super().__init__()
        self.x00, self.x10, self.x20, self.x01 = double(3, 6), double(6, 6), double(6, 6), double(12, 6)
        self.x11, self.x02 = double(12, 6), double(18, 6)
        self.up, self.pool, self.out1 = nn.UpsamplingBilinear2d(scale_factor=2), nn.MaxPool2d(2, 2), nn.Conv2d(6, 2, 1)
        self.out2 = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        a = self.x00(x)
        b = self.x10(self.pool(a))
        a1 = self.x01(torch.cat([a, self.up(b)], 1))
        b1 = self.x11(torch.cat([b, self.up(self.x20(self.pool(b)))], 1))
        return self.out1(a1), self.out2(self.x02(torch.cat([a, a1, self.up(b1)], 1)))


@model("deeplab", "1x3x33x33")
class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.body = conv_norm(3, 8, 3, stride=2), conv_norm(8, 16, 3, stride=2)
        self.branches = nn.ModuleList([conv_norm(16, 8, 1)] +
                                      [conv_norm(16, 8, 3, dilation=d, padding=d) for d in (2, 4, 6)])
        self.pool, self.join = Seq(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 8, 1), nn.ReLU()), conv_norm(40, 16, 1)
        self.side, self.out = conv_norm(8, 6, 1), nn.Conv2d(22, 5, 1)

    def forward(self, x):
        low = self.low(x)
        y = self.body(low)
        parts = [b(y) for b in self.branches] + [F.interpolate(self.pool(y), size=y.shape[-2:], mode="bilinear",
                                                               align_corners=False)]
        y = F.interpolate(self.join(torch.cat(parts, 1)), size=low.shape[-2:], mode="bilinear", align_corners=False)
        y = self.out(torch.cat([y, self.side(low)], 1))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False).argmax(1), y


@model("fcn", "1x3x32x32")
class Fcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Seq(nn.Conv2d(3, 8, 3, padding=10), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True))
        self.b = Seq(nn.Conv2d(8, 12, 3), nn.ReLU(), nn.Dropout2d(), nn.MaxPool2d(2, ceil_mode=True))
        self.sa, self.sb = nn.Conv2d(8, 4, 1), nn.Conv2d(12, 4, 1)
        self.up = nn.ConvTranspose2d(4, 4, 4, 2, bias=False)
        self.last = nn.ConvTranspose2d(4, 4, 4, 2, bias=False, groups=4)

    def forward(self, x):
        a = self.a(x)
        y = self.up(self.sb(self.b(a)))
        a = self.sa(a)
        y = y[:, :, 1:1 + a.size(2), 1:1 + a.size(3)] + a[:, :, :y.size(2) - 1, :y.size(3) - 1]
        return self.last(y)[:, :, 4:4 + x.size(2), 4:4 + x.size(3)].contiguous()


@model("segnet", "1x3x16x16")
class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv_norm(3, 8, 3), conv_norm(8, 8, 3), conv_norm(8, 8, 3)
        self.out = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        x, i = F.max_pool2d(self.a(x), 2, return_indices=True)
        y, j = F.max_pool2d(self.b(x), 2, 2, return_indices=True)
        y = self.c(F.max_unpool2d(y, j, 2, 2, output_size=x.shape))
        return self.out(F.max_unpool2d(y, i, 2))


@model("pspnet", "1x3x24x24")
class PspNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = conv_norm(3, 12, 3, nn.PReLU, stride=2)
        self.stages = nn.ModuleList([Seq(nn.AdaptiveAvgPool2d(s), nn.Conv2d(12, 3, 1, bias=False)) for s in (1, 2, 3,
                5)])
        self.out = nn.Conv2d(24, 3, 1)

    def forward(self, x):
        y = self.body(x)
        y = torch.cat([F.upsample(s(y), size=y.shape[2:], mode="bilinear") for s in self.stages] + [y], 1)
        return F.log_softmax(F.upsample(self.out(y), size=x.shape[2:], mode="bilinear"), 1)


@model("segformer", "1x3x32x32")
class SegFormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.p1, self.p2, self.q = nn.Conv2d(3, 8, 7, 4, 3), nn.Conv2d(8, 16, 3, 2, 1), nn.Linear(8, 8)
        self.kv, self.o, self.depth = nn.Linear(8, 16), nn.Linear(8, 8), nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.reduce, self.norm, self.l1 = nn.Conv2d(8, 8, 4, 4), nn.LayerNorm(8), nn.Linear(8, 12)
        self.l2, self.out = nn.Linear(16, 12), Seq(conv_norm(24, 12, 1), nn.Dropout2d(0.1), nn.Conv2d(12, 4, 1))

    def forward(self, x):
        a = self.p1(x)
        n, c, h, w = a.shape
        t = self.norm(a.flatten(2).transpose(1, 2))
        k, v = self.kv(self.reduce(t.permute(0, 2, 1).reshape(n, c, h, w)).flatten(2).transpose(1, 2)).chunk(2, -1)
        t = t + self.o((self.q(t) @ k.transpose(-2, -1) * c ** -0.5).softmax(dim=-1) @ v)
        a = F.gelu(self.depth(t.transpose(1, 2).view(n, c, h, w)))
        b = self.p2(a)
        y = self.l2(b.flatten(2).transpose(1, 2)).permute(0, 2, 1).reshape(n, 12, h // 2, w // 2)
        y = F.interpolate(y, size=(h, w), mode="bilinear", align_corners=False)
        return self.out(torch.cat([y, self.l1(a.flatten(2).transpose(1, 2)).permute(0, 2, 1).reshape(n, 12, h, w)], 1))


@model("mask_former", "1x8x12x12", "1x5x8")
class MaskFormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pixel, self.mask = nn.Conv2d(8, 8, 1), Seq(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.cls, self.cross = nn.Linear(8, 4), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, queries):
        pixels = self.pixel(x)
        masks = torch.einsum("bqc,bchw->bqhw", self.mask(queries), pixels)
        small = F.interpolate(masks, size=(6, 6), mode="bilinear", align_corners=False)
        hidden = (small.sigmoid().flatten(2).unsqueeze(1).repeat(1, 2, 1, 1).flatten(0, 1) < 0.5).bool().detach()
        hidden[torch.where(hidden.sum(-1) == hidden.shape[-1])] = False
        keys = F.avg_pool2d(x, 2).flatten(2).transpose(1, 2)
        queries = queries + self.cross(queries, keys, keys, attn_mask=hidden)[0]
        return torch.einsum("bqc,bqhw->bchw", self.cls(queries).softmax(-1)[..., :-1], masks.sigmoid())


@model("enet", "1x3x32x32")
class ENet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.pool, self.narrow = nn.Conv2d(3, 13, 3, 2, 1), nn.MaxPool2d(2), conv_norm(16, 4, 1, nn.PReLU)
        self.asym = Seq(nn.Conv2d(4, 4, (5, 1), padding=(2, 0)), nn.Conv2d(4, 4, (1, 5), padding=(0, 2)))
        self.wide = conv_norm(4, 16, 1, None)
        self.act, self.out = nn.PReLU(16), nn.ConvTranspose2d(16, 3, 3, 2, 1, output_padding=1)

    def forward(self, x):
        x = torch.cat([self.first(x), self.pool(x)], 1)
        return self.out(self.act(x + self.wide(self.asym(self.narrow(x)))))


@model("dual_attention", "1x3x16x16")
class DualAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.q, self.k = conv_norm(3, 16, 3, stride=2), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 4, 1)
        self.v, self.gamma, self.out = nn.Conv2d(16, 16, 1), nn.Parameter(torch.tensor([0.5])), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        x = self.body(x)
        n, c, h, w = x.size()
        e = torch.bmm(self.q(x).view(n, -1, h * w).permute(0, 2, 1), self.k(x).view(n, -1, h * w))
        place = self.gamma * torch.bmm(self.v(x).view(n, -1, h * w), F.softmax(e, -1).permute(0, 2, 1)).view(n, c, h,
                w) + x
        flat = x.view(n, c, -1)
        e = torch.bmm(flat, flat.permute(0, 2, 1))
        e = torch.max(e, -1, keepdim=True)[0].expand_as(e) - e
        return self.out(place + torch.bmm(F.softmax(e, -1), flat).view(n, c, h, w))


# ---- super-resolution and restoration

@model("espcn", "1x1x12x12", half=True)
def espcn():
    return Seq(nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 8, 3, padding=1), nn.Tanh(),
               nn.Conv2d(8, 9, 3, padding=1), nn.PixelShuffle(3), nn.Sigmoid())


@model("edsr", "1x3x12x12")
class Edsr(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1))
        self.head = nn.Conv2d(3, 12, 3, padding=1)
        self.body = Seq(*[Residual(nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(True), nn.Conv2d(12, 12, 3, padding=1),
                                   Lambda(lambda x: x.mul(0.1))) for _ in range(2)])
        self.tail = Seq(nn.Conv2d(12, 48, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(12, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x - self.mean)
        return (self.tail(x + self.body(x)) + self.mean).clamp_(0, 1)


@model("srgan", "1x3x10x10")
class SrGan(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Seq(nn.Conv2d(3, 8, 9, padding=4), nn.PReLU())
        self.body = Residual(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.PReLU(),
                             nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.norm = nn.BatchNorm2d(8)
        self.up = Seq(nn.Conv2d(8, 32, 3, padding=1), nn.PixelShuffle(2), nn.PReLU())
        self.out = nn.Conv2d(8, 3, 9, padding=4)

    def forward(self, x):
        x = self.first(x)
        return (torch.tanh(self.out(self.up(x + self.norm(self.body(x))))) + 1) / 2


@model("rcan", "1x3x10x10")
def rcan():
    block = lambda: Residual(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1),
                             Squeeze(8, nn.ReLU))
    return Seq(nn.PixelUnshuffle(2), nn.Conv2d(12, 8, 3, padding=1),
               Residual(block(), block(), nn.Conv2d(8, 8, 3, padding=1)), nn.Conv2d(8, 48, 3, padding=1),
               nn.PixelShuffle(4))


@model("srcnn", "1x1x9x9")
def srcnn():
    return Seq(nn.Upsample(scale_factor=3, mode="bicubic", align_corners=True), nn.Conv2d(1, 8, 9, padding=4),
               nn.ReLU6(), nn.Conv2d(8, 4, 1), nn.RReLU(), nn.Conv2d(4, 1, 5, padding=2))


@model("laplacian_sr", "1x1x8x8")
class LaplacianSr(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(nn.Conv2d(1, 8, 3, padding=1), nn.LeakyReLU(0.2, True))
        self.up, self.image = nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.ConvTranspose2d(1, 1, 4, 2, 1, bias=False)
        self.detail = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        y, out = self.body(x), []
        for _ in range(2):
            y = F.leaky_relu(self.up(y), 0.2)
            x = self.image(x) + self.detail(y)
            out.append(x)
        return out


@model("implicit_image", "1x3x8x8", "1x20x2")
class Liif(nn.Module):
    """Colours at any place: the nearest feature and the way to it."""
    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(3, 8, 3, padding=1)
        self.mlp = Seq(nn.Linear(8 * 9 + 2, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x, at):
        at = torch.tanh(at).clamp(-1 + 1e-6, 1 - 1e-6)
        feat = self.encode(x)
        feat = F.unfold(feat, 3, padding=1).view(1, -1, 8, 8)
        seq = -1 + 1 / 8 + (2 / 8) * torch.arange(8).float()
        grid = torch.stack(torch.meshgrid(seq, seq, indexing="ij"), -1).permute(2, 0, 1).unsqueeze(0)
        take = lambda t: F.grid_sample(t, at.flip(-1).unsqueeze(1), mode="nearest", align_corners=False)[:, :,
                0].permute(0, 2, 1)
        return self.mlp(torch.cat([take(feat), (at - take(grid)) * 8], -1))


@model("nafnet", "1x3x16x16")
class NafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.wide = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 1)
        self.depth, self.scale = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(8, 8, 1)
        self.narrow, self.last = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 3, 3, padding=1)
        self.weight, self.bias = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))
        self.beta = nn.Parameter(torch.full((1, 8, 1, 1), 0.5))

    def norm(self, x):
        mu = x.mean(1, keepdim=True)
        var = (x - mu).pow(2).mean(1, keepdim=True)
        return self.weight.view(1, -1, 1, 1) * ((x - mu) / (var + 1e-6).sqrt()) + self.bias.view(1, -1, 1, 1)

    def forward(self, image):
        x = self.first(image)
        a, b = self.depth(self.wide(self.norm(x))).chunk(2, dim=1)
        y = a * b
        x = x + self.narrow(y * self.scale(F.adaptive_avg_pool2d(y, 1))) * self.beta
        return self.last(x) + image


@model("style_loss", "2x3x16x16")
class StyleLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = conv_norm(3, 8, 3), conv_norm(8, 8, 3, stride=2)

    def gram(self, x):
        n, c, h, w = x.size()
        y = x.view(n, c, h * w)
        return y.bmm(y.transpose(1, 2)).div(c * h * w)

    def forward(self, x):
        a = self.a(x)
        ga, gb = self.gram(a), self.gram(self.b(a))
        tv = (x[:, :, 1:] - x[:, :, :-1]).abs().mean() + torch.diff(x, dim=3).abs().mean()
        return F.mse_loss(ga[0], ga[1]) + F.l1_loss(gb[0], gb[1]) + 0.1 * tv, F.instance_norm(x)


@model("adaptive_instance_norm", "1x3x16x16", "1x3x16x16")
class AdaIn(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = Seq(nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.ReLU())
        self.decode = Seq(nn.ReflectionPad2d((1, 1, 1, 1)), nn.Conv2d(8, 3, 3))

    def forward(self, content, style):
        a, b = self.encode(content), self.encode(style)
        stats = lambda x: (x.flatten(2).mean(2)[..., None, None], (x.flatten(2).var(2) + 1e-5).sqrt()[..., None, None])
        (ma, sa), (mb, sb) = stats(a), stats(b)
        return self.decode((a - ma.expand_as(a)) / sa * sb + mb)


# ---- matching, flow, geometry

@model("raft", "1x3x32x32", "1x3x32x32")
class Raft(nn.Module):
    """All pairs correlated, a pyramid of them, looked up around the flow, two updates."""
    def __init__(self):
        super().__init__()
        self.features = Seq(nn.Conv2d(3, 8, 7, 4, 3), nn.InstanceNorm2d(8), nn.ReLU())
        self.update, self.head = nn.Conv2d(18 + 2 + 6, 18, 3, padding=1), nn.Conv2d(6, 2, 3, padding=1)

    def sample(self, image, at):
        h, w = image.shape[-2:]
        x, y = at.split([1, 1], dim=-1)
        return F.grid_sample(image, torch.cat([2 * x / (w - 1) - 1, 2 * y / (h - 1) - 1], -1), align_corners=True)

    def forward(self, a, b):
        fa, fb = torch.split(self.features(torch.cat([a, b])), [1, 1], dim=0)
        n, c, h, w = fa.shape
        corr = torch.matmul(fa.view(n, c, -1).transpose(1, 2), fb.view(n, c, -1)).view(h * w, 1, h,
                w) / torch.sqrt(torch.tensor(c).float())
        pyramid = [corr, F.avg_pool2d(corr, 2, stride=2)]
        start = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], 0).float()[None]
        at, state = start.clone(), torch.zeros(n, 6, h, w)
        d = torch.linspace(-1, 1, 3)
        delta = torch.stack(torch.meshgrid(d, d, indexing="ij"), -1).view(1, 3, 3, 2)
        for _ in range(2):
            at = at.detach()
            mid = at.permute(0, 2, 3, 1).reshape(h * w, 1, 1, 2)
            looked = torch.cat([self.sample(p, mid / 2 ** i + delta).view(n, h, w, -1) for i, p in enumerate(pyramid)],
                               -1)
            z, r, q = self.update(torch.cat([looked.permute(0, 3, 1, 2), at - start, state], 1)).chunk(3, 1)
            state = (1 - z.sigmoid()) * state + z.sigmoid() * torch.tanh(r.sigmoid() * q)
            at = at + self.head(state)
        return F.interpolate(at - start, scale_factor=4, mode="bilinear", align_corners=True) * 4


@model("flow_warp", "1x3x16x16", "1x3x16x16")
class FlowWarp(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = Seq(nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))

    def forward(self, a, b):
        flow = self.flow(torch.cat([a, b], 1))
        base = F.affine_grid(torch.eye(2, 3).unsqueeze(0), (1, 3, 16, 16), align_corners=True)
        grid = base + flow.permute(0, 2, 3, 1) / 8
        seen = (grid.abs() <= 1).all(-1)
        return F.grid_sample(b, grid, mode="bicubic", padding_mode="reflection",
                             align_corners=True), seen, flow.flip(1).rot90(1, (2, 3))


@model("stereo_volume", "1x3x12x24", "1x3x12x24")
class Stereo(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = conv_norm(3, 8, 3, stride=2)
        self.cost = Seq(nn.Conv3d(16, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.Conv3d(8, 1, 3, padding=1))
        self.up = nn.Upsample(scale_factor=(1, 2, 2), mode="trilinear", align_corners=False)

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        volume = a.new_zeros(1, 16, 4, a.size(2), a.size(3))
        volume[:, :8, 0], volume[:, 8:, 0] = a, b
        for i in range(1, 4):
            volume[:, :8, i, :, i:] = a[:, :, :, i:]
            volume[:, 8:, i, :, i:] = b[:, :, :, :-i]
        cost = self.up(self.cost(volume)).squeeze(1)
        return torch.sum(F.softmax(-cost, dim=1) * torch.arange(4.0).view(1, -1, 1, 1), 1)


@model("superpoint", "1x1x32x32")
class SuperPoint(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(*[Seq(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2)) for i,
                          o in ((1, 8), (8, 16), (16, 16))])
        self.point, self.describe = nn.Conv2d(16, 65, 1), nn.Conv2d(16, 12, 1)

    def forward(self, x):
        y = self.body(x)
        scores = F.softmax(self.point(y), 1)[:, :-1]
        n, _, h, w = scores.shape
        scores = scores.permute(0, 2, 3, 1).reshape(n, h, w, 8, 8).permute(0, 1, 3, 2, 4).reshape(n, h * 8, w * 8)
        zeros, top = torch.zeros_like(scores), scores == F.max_pool2d(scores, 9, 1, 4)
        return torch.where(top, scores, zeros), F.normalize(self.describe(y), p=2, dim=1)


@model("dual_softmax_matcher", "1x10x8", "1x12x8")
class Matcher(nn.Module):
    """Linear attention within and across, then mutual nearest neighbours."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.merge = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)

    def meet(self, x, y):
        q, k = F.elu(self.q(x)).add_(1), F.elu(self.k(y)).add_(1)
        m = torch.einsum("nld,nd->nl", q, k.sum(dim=1)).add(1e-6).reciprocal()
        z = torch.einsum("nld,ndv,nl->nlv", q, torch.einsum("nsd,nsv->ndv", k, self.v(y)), m)
        return x + self.norm(self.merge(torch.cat([x, z], 2)))

    def forward(self, a, b):
        a, b = self.meet(a, a), self.meet(b, b)
        a, b = self.meet(a, b), self.meet(b, a)
        s = torch.einsum("nlc,nsc->nls", a, b) / 0.8
        p = F.softmax(s, 1) * F.softmax(s, 2)
        mutual = (p == p.max(dim=2, keepdim=True)[0]) * (p == p.max(dim=1, keepdim=True)[0])
        return p, mutual, mutual.any(-1)


@model("homography", "4x2", "4x2")
class Homography(nn.Module):
    """Four points to four: a linear system of eight."""
    def forward(self, a, b):
        b, a = a * 0.1 + torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]), b * 0.1 + torch.tensor([[0.0, 0], [1, 0],
                [1, 1], [0, 1]])
        x, y, u, v, o, z = a[:, 0], a[:, 1], b[:, 0], b[:, 1], torch.ones(4), torch.zeros(4)
        m = torch.cat([torch.stack([x, y, o, z, z, z, -u * x, -u * y], 1),
                       torch.stack([z, z, z, x, y, o, -v * x, -v * y], 1)])
        h = torch.cat([torch.linalg.solve(m, torch.cat([u, v])), torch.ones(1)]).view(3, 3)
        p = F.pad(a, (0, 1), value=1.0) @ h.T
        return h, p[:, :2] / p[:, 2:], torch.linalg.det(h)


@model("camera_pose", "2x6", "5x3")
class CameraPose(nn.Module):
    """Turns of six numbers, quaternions, a projection."""
    def forward(self, six, points):
        a = F.normalize(six[:, :3], dim=-1)
        b = F.normalize(six[:, 3:] - (a * six[:, 3:]).sum(-1, keepdim=True) * a, dim=-1)
        r = torch.stack([a, b, torch.cross(a, b, dim=-1)], -2)
        w = torch.sqrt(torch.clamp(1 + r[:, 0, 0] + r[:, 1, 1] + r[:, 2, 2], min=1e-6)) / 2
        q = torch.stack([w, (r[:, 2, 1] - r[:, 1, 2]) / (4 * w), (r[:, 0, 2] - r[:, 2, 0]) / (4 * w),
                         (r[:, 1, 0] - r[:, 0, 1]) / (4 * w)], -1)
        p = torch.matmul(points, r.transpose(-1, -2)) + torch.tensor([0.0, 0, 5])
        return p[..., :2] / p[..., 2:].clamp(min=0.1), q, torch.atan2(r[:, 1, 0],
                r[:, 0, 0]), torch.acos(r.diagonal(dim1=-2, dim2=-1).sum(-1).sub(1).div(2).clamp(-0.999, 0.999))


@model("image_filters", "1x3x16x16")
class ImageFilters(nn.Module):
    """Grey and hue, edges, corners, a histogram, equalised levels."""
    def forward(self, x):
        x = torch.sigmoid(x)
        grey = (x * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
        g = F.conv2d(grey, torch.stack([sobel, sobel.t()]).unsqueeze(1), padding=1)
        gx, gy = g[:, 0], g[:, 1]
        angle = torch.remainder(torch.rad2deg(torch.atan2(gy, gx)), 180)
        sxx, syy, sxy = (F.avg_pool2d(t, 3, 1, 1) for t in (gx * gx, gy * gy, gx * gy))
        corners = sxx * syy - sxy ** 2 - 0.05 * (sxx + syy) ** 2
        hist = torch.histc(grey, 8, 0.0, 1.0)
        high, which = x.max(1)
        low = x.min(1)[0]
        hue = torch.where(which == 0, (x[:, 1] - x[:, 2]) / (high - low),
                          torch.where(which == 1, 2 + (x[:, 2] - x[:, 0]) / (high - low),
                                      4 + (x[:, 0] - x[:, 1]) / (high - low)))
        level = torch.bucketize(grey, torch.linspace(0.1, 0.9, 9))
        return torch.hypot(gx, gy), angle, corners, hist.cumsum(0), hue / 6 % 1, level


@model("bilateral_filter", "1x2x10x10")
class Bilateral(nn.Module):
    def forward(self, x):
        patches = F.pad(x, (2, 2, 2, 2), mode="reflect").unfold(2, 5, 1).unfold(3, 5, 1)
        near = torch.exp(-(torch.arange(-2.0, 3)[:, None] ** 2 + torch.arange(-2.0, 3) ** 2) / 4)
        w = near * torch.exp(-torch.square(patches - x[..., None, None]))
        return (w * patches).sum((-2, -1)) / w.sum((-2, -1)), patches.flatten(-2).median(-1).values
