"""Volumes and video."""
import torch
import torch.nn.functional as F
from torch import nn
from . import Residual, model

Seq = nn.Sequential


def conv3(i, o, size, act=nn.ReLU, **options):
    size = (size,) * 3 if isinstance(size, int) else size
    return Seq(nn.Conv3d(i, o, size, padding=tuple(s // 2 for s in size), bias=False, **options), nn.BatchNorm3d(o),
               act())


@model("c3d", "1x3x8x16x16", half=True)
def c3d():
    return Seq(nn.Conv3d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1, 2, 2), (1, 2, 2)),
               nn.Conv3d(6, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(512, 16), nn.ReLU(),
               nn.Dropout(), nn.Linear(16, 4))


@model("r2plus1d", "1x3x4x12x12")
def r2plus1d():
    split = lambda i, o: [conv3(i, 6, (1, 3, 3)), nn.Conv3d(6, o, (3, 1, 1), padding=(1, 0, 0), bias=False),
                          nn.BatchNorm3d(o)]
    return Seq(conv3(3, 6, (1, 7, 7), stride=(1, 2, 2)), Residual(*split(6, 6), nn.ReLU(), *split(6, 6)), nn.ReLU(),
               nn.AdaptiveAvgPool3d(1), nn.Flatten(1), nn.Linear(6, 4))


@model("i3d", "1x3x8x16x16")
class I3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b = conv3(3, 8, 7, stride=2), conv3(8, 4, 1), Seq(conv3(8, 4, 1), conv3(4, 4, 3))
        self.c, self.d = Seq(nn.MaxPool3d(3, 1, 1), conv3(8, 4, 1)), nn.Conv3d(12, 5, 1)

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([m(x) for m in (self.a, self.b, self.c)], 1)
        return self.d(F.avg_pool3d(x, (2, 4, 4), stride=(1, 1, 1))).mean((2, 3, 4))


@model("slow_fast", "1x3x8x16x16")
class SlowFast(nn.Module):
    def __init__(self):
        super().__init__()
        self.slow, self.fast = conv3(3, 8, (1, 3, 3), stride=(1, 2, 2)), conv3(3, 4, (5, 3, 3), stride=(1, 2, 2))
        self.join, self.slow2 = nn.Conv3d(4, 8, (5, 1, 1), stride=(4, 1, 1), padding=(2, 0, 0)), conv3(16, 8, 3)
        self.fast2, self.out = conv3(4, 4, 3), nn.Linear(12, 5)

    def forward(self, x):
        slow, fast = self.slow(torch.index_select(x, 2, torch.linspace(0, 7, 2).long())), self.fast(x)
        slow = self.slow2(torch.cat([slow, self.join(fast)], 1))
        fast = self.fast2(fast)
        return self.out(torch.cat([F.adaptive_avg_pool3d(t, (1, 1, 1)).flatten(1) for t in (slow, fast)], 1))


@model("temporal_shift", "8x6x8x8")
class Tsm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(6, 6, 3, padding=1), nn.Linear(6, 3)

    def forward(self, x):
        y = x.view(2, 4, 6, 8, 8)
        out = torch.zeros_like(y)
        out[:, :-1, :2] = y[:, 1:, :2]
        out[:, 1:, 2:4] = y[:, :-1, 2:4]
        out[:, :, 4:] = y[:, :, 4:]
        x = x + self.conv(out.view(x.shape))
        return self.out(x.mean((-1, -2))).view(2, 4, -1).mean(1)


@model("time_sformer", "1x3x4x16x16")
class TimeSformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.time = nn.Conv3d(3, 12, (1, 8, 8), (1, 8, 8)), nn.MultiheadAttention(12, 2, batch_first=True)
        self.space, self.norm = nn.MultiheadAttention(12, 3, batch_first=True), nn.LayerNorm(12)
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        x = self.patch(x).flatten(3).permute(0, 3, 2, 1).squeeze(0)
        y = self.norm(x)
        x = (x + self.time(y, y, y, need_weights=False)[0]).transpose(0, 1)
        y = self.norm(x)
        return self.out((x + self.space(y, y, y)[0]).mean((0, 1)))


@model("v_net", "1x1x8x8x8")
class VNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.down = Seq(nn.Conv3d(1, 4, 5, padding=2), nn.PReLU(4)), nn.Conv3d(4, 8, 2, 2)
        self.b = Residual(nn.Conv3d(8, 8, 5, padding=2), nn.InstanceNorm3d(8), nn.ELU())
        self.up, self.out = nn.ConvTranspose3d(8, 4, 2, 2), nn.Conv3d(8, 2, 1)

    def forward(self, x):
        a = self.a(x) + x.repeat(1, 4, 1, 1, 1)
        return self.out(torch.cat([a, self.up(self.b(self.down(a)))], 1)).softmax(1)


@model("unet_3d", "1x1x8x8x8")
class UNet3d(nn.Module):
    def __init__(self):
        super().__init__()
        gn = lambda i, o: Seq(nn.GroupNorm(2 if i > 1 else 1, i), nn.Conv3d(i, o, 3, padding=1, bias=False), nn.ReLU())
        self.a, self.b, self.c, self.out = gn(1, 4), gn(4, 8), gn(12, 4), nn.Conv3d(4, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = F.interpolate(self.b(F.avg_pool3d(a, 2)), scale_factor=2, mode="trilinear", align_corners=True)
        return self.out(self.c(torch.cat([a, b], 1)))


@model("x3d", "1x3x4x12x12")
class X3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.time = nn.Conv3d(3, 6, (1, 3, 3), (1, 2, 2), (0, 1, 1)), conv3(6, 6, (3, 1, 1), groups=6)
        self.wide, self.depth = conv3(6, 12, 1), nn.Conv3d(12, 12, 3, padding=1, groups=12)
        self.gate = Seq(nn.AdaptiveAvgPool3d(1), nn.Conv3d(12, 4, 1), nn.ReLU(), nn.Conv3d(4, 12, 1), nn.Sigmoid())
        self.narrow, self.out = nn.Conv3d(12, 6, 1), nn.Linear(6, 3)

    def forward(self, x):
        x = self.time(self.stem(x))
        y = self.depth(self.wide(x))
        x = F.relu(x + self.narrow(F.silu(y * self.gate(y))))
        return self.out(F.adaptive_max_pool3d(x, (1, 1, 1))[:, :, 0, 0, 0])


@model("movinet_stream", "1x3x3x8x8", "1x3x2x8x8")
class MoViNet(nn.Module):
    """Convolutions over time look back only; a buffer holds the frames before."""
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv3d(3, 6, (3, 3, 3), padding=(0, 1, 1)), nn.Linear(6, 2)

    def forward(self, x, before):
        x = torch.cat([before, x], 2)
        y = F.hardswish(self.conv(x))
        total = torch.cumsum(y.mean((3, 4)), 2) / torch.arange(1, 4)
        return self.out(total.transpose(1, 2)), x[:, :, -2:].contiguous()


@model("voxel_pool", "1x4x6x6x6", "1x9x3")
class VoxelPool(nn.Module):
    """A volume read at points, by grid_sample in three dims."""
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv3d(4, 6, 3, padding=1, padding_mode="replicate"), nn.Linear(6, 2)

    def forward(self, x, points):
        theta = torch.tensor([[[0.8, 0.1, 0, 0], [-0.1, 0.8, 0, 0.1], [0, 0, 1, 0]]])
        x = F.grid_sample(self.conv(x), F.affine_grid(theta, (1, 6, 6, 6, 6), align_corners=True), align_corners=True)
        y = F.grid_sample(x, torch.tanh(points).view(1, 9, 1, 1, 3), mode="nearest", align_corners=False)
        return self.out(y.flatten(2).transpose(1, 2)), F.max_pool3d(x, 2, return_indices=True)[1]


@model("nonlocal_video", "1x6x4x6x6")
class NonLocal(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.theta, self.phi = nn.Conv3d(6, 3, 1), nn.Conv3d(6, 3, 1), nn.Conv3d(6, 3, 1)
        self.w = Seq(nn.Conv3d(3, 6, 1), nn.BatchNorm3d(6))

    def forward(self, x):
        low = lambda t: F.max_pool3d(t, (1, 2, 2)).view(1, 3, -1)
        g, theta, phi = low(self.g(x)).permute(0, 2, 1), self.theta(x).view(1, 3, -1).permute(0, 2, 1), low(self.phi(x))
        f = torch.matmul(theta, phi)
        y = torch.matmul(f / f.size(-1), g).permute(0, 2, 1).contiguous().view(1, 3, 4, 6, 6)
        return self.w(y) + x


@model("unpooled_volume", "1x2x4x6x6")
class Unpooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv3d(2, 4, (1, 3, 3), padding=(0, 1, 1), bias=False), nn.InstanceNorm3d(4)

    def forward(self, x):
        y = F.leaky_relu(self.norm(self.conv(x)), 0.01)
        z, index = F.max_pool3d(y, 2, return_indices=True)
        flow = torch.stack([y[:, 0], y[:, 1], y[:, 2]], -1).tanh()
        seen = F.grid_sample(y, flow, mode="nearest", padding_mode="reflection", align_corners=False)
        return F.max_unpool3d(z * 2, index, 2), F.adaptive_max_pool3d(y, (2, 3, 1)), seen
