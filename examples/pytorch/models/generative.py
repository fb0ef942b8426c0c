"""Diffusion, autoencoders, adversaries, flows, energies, fields."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, RMSNorm, Residual, conv_norm, heads_of, join_heads, model

Seq = nn.Sequential


def time_words(t, size):
    freq = torch.exp(-math.log(10000) * torch.arange(size // 2, dtype=torch.float32) / (size // 2))
    angle = t[:, None].float() * freq[None]
    return torch.cat([torch.cos(angle), torch.sin(angle)], -1)


class TimeBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a = Seq(nn.GroupNorm(4, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
        self.b, self.t = Seq(nn.GroupNorm(4, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1)), nn.Linear(16, o)
        self.short = nn.Conv2d(i, o, 1)

    def forward(self, x, t):
        return self.short(x) + self.b(self.a(x) + self.t(F.silu(t))[:, :, None, None])


@model("diffusion_unet", "2x3x16x16", "2:int64<1000", half=True)
class DiffusionUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.first = Seq(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16)), nn.Conv2d(3, 8, 3, padding=1)
        self.a, self.down, self.b = TimeBlock(8, 8), nn.Conv2d(8, 8, 3, 2, 1), TimeBlock(8, 16)
        self.norm, self.qkv, self.o = nn.GroupNorm(4, 16), nn.Conv1d(16, 48, 1), nn.Conv1d(16, 16, 1)
        self.up, self.c = nn.Conv2d(16, 8, 3, padding=1), TimeBlock(16, 8)
        self.out = Seq(nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, x, t):
        t = self.time(time_words(t, 8))
        a = self.a(self.first(x), t)
        y = self.b(self.down(a), t)
        n, c, h, w = y.shape
        q, k, v = self.qkv(self.norm(y).reshape(n, c, -1)).reshape(n * 2, 24, -1).split(8, 1)
        s = torch.einsum("bct,bcs->bts", q * 8 ** -0.25, k * 8 ** -0.25).softmax(-1)
        y = y + self.o(torch.einsum("bts,bcs->bct", s, v).reshape(n, c, -1)).reshape(n, c, h, w)
        y = self.up(F.interpolate(y, scale_factor=2, mode="nearest"))
        return self.out(self.c(torch.cat([y, a], 1), t))


@model("ddim_steps", "2x8")
class Ddim(nn.Module):
    """Three steps of sampling, with guidance."""
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(17, 16), nn.SiLU(), nn.Linear(16, 8))
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0))

    def forward(self, x):
        for t, last in ((99, 66), (66, 33), (33, 0)):
            both = torch.cat([x, x])
            mark = torch.cat([torch.zeros(2, 8), torch.ones(2, 8)])
            eps, guided = self.net(torch.cat([both, mark, torch.full((4, 1), t / 100)], 1)).chunk(2)
            eps = eps + 2.0 * (guided - eps)
            a, b = self.alphas[t], self.alphas[last]
            start = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = b.sqrt() * start + torch.sqrt(1 - b) * eps
        return x


@model("dit", "2x4x8x8", "2:int64<100", "2:int64<10")
class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.place = nn.Conv2d(4, 16, 2, 2), nn.Parameter(torch.randn(1, 16, 16) * 0.1)
        self.time, self.label = Seq(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16)), nn.Embedding(11, 16)
        self.norm, self.change = nn.LayerNorm(16, elementwise_affine=False, eps=1e-6), Seq(nn.SiLU(), nn.Linear(16, 96))
        self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = Seq(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
        self.last, self.out = Seq(nn.SiLU(), nn.Linear(16, 32)), nn.Linear(16, 16)

    def forward(self, x, t, label):
        turn = lambda y, shift, scale: y * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)
        x = self.patch(x).flatten(2).transpose(1, 2) + self.place
        c = self.time(time_words(t, 8)) + self.label(label)
        s1, g1, a1, s2, g2, a2 = self.change(c).chunk(6, dim=1)
        q, k, v = self.qkv(turn(self.norm(x), s1, g1)).reshape(2, 16, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + a1.unsqueeze(1) * self.o(join_heads(((q * 8 ** -0.5) @ k.transpose(-2, -1)).softmax(-1) @ v))
        x = x + a2.unsqueeze(1) * self.mlp(turn(self.norm(x), s2, g2))
        x = self.out(turn(self.norm(x), *self.last(c).chunk(2, 1))).reshape(2, 4, 4, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(2, 4, 8, 8)


@model("cross_attention_unet", "1x4x8x8", "1x5x12")
class Stable(nn.Module):
    """A block of latent diffusion: own attention, that to the words, a gated gelu."""
    def __init__(self):
        super().__init__()
        self.norm, self.inp, self.out = nn.GroupNorm(2, 16, eps=1e-6), nn.Conv2d(16, 16, 1), nn.Conv2d(16, 4, 1)
        self.first, self.norms = nn.Conv2d(4, 16, 3, padding=1), nn.ModuleList([nn.LayerNorm(16) for _ in range(3)])
        self.q, self.k, self.v, self.o = (nn.ModuleList([nn.Linear(i, 16,
                                                                   bias=False) for i in sizes]) for sizes in ((16, 16),
                                                               (16, 12), (16, 12), (16, 16)))
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(32, 16)

    def attention(self, i, x, y):
        q, k, v = (t.reshape(1, -1, 2, 8).permute(0, 2, 1, 3).reshape(2, -1, 8) for t in (self.q[i](x), self.k[i](y),
                self.v[i](y)))
        s = torch.baddbmm(torch.empty(2, q.shape[1], k.shape[1]), q, k.transpose(-1, -2), beta=0, alpha=8 ** -0.5)
        return self.o[i](torch.bmm(s.softmax(dim=-1), v).reshape(1, 2, -1, 8).permute(0, 2, 1, 3).reshape(1, -1, 16))

    def forward(self, x, words):
        x = self.first(x)
        y = self.inp(self.norm(x)).permute(0, 2, 3, 1).reshape(1, 64, 16)
        n = self.norms[0](y)
        y = self.attention(0, n, n) + y
        y = self.attention(1, self.norms[1](y), words) + y
        a, gate = self.wide(self.norms[2](y)).chunk(2, -1)
        y = self.narrow(a * F.gelu(gate)) + y
        return self.out(y.reshape(1, 8, 8, 16).permute(0, 3, 1, 2).contiguous() + x)


@model("flow_matching_step", "3x4", "3")
class FlowMatching(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(5, 16), nn.SELU(), nn.Linear(16, 4))

    def forward(self, x, t):
        t = torch.sigmoid(t)[:, None]
        y = x.roll(1, 0)
        at = torch.lerp(x, y, t)
        v = self.net(torch.cat([at, t], -1))
        return F.mse_loss(v, y - x, reduction="none").mean(1), at + v * (1 - t), F.huber_loss(v, y - x, delta=0.5)


@model("vae", "2x1x16x16", "2x6", half=True)
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = Seq(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 4, 2, 1), nn.ReLU(), nn.Flatten())
        self.mu, self.log = nn.Linear(128, 6), nn.Linear(128, 6)
        self.decode = Seq(nn.Linear(6, 128), nn.ReLU(), nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 8, 4, 2, 1),
                          nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x, noise):
        h = self.encode(x)
        mu, log = self.mu(h), self.log(h)
        y = self.decode(mu + noise * torch.exp(0.5 * log))
        loss = F.binary_cross_entropy(y, torch.sigmoid(x), reduction="sum") - 0.5 * torch.sum(1 + log - mu.pow(2) -
                log.exp())
        return y, loss


@model("vq_vae", "1x3x16x16")
class VqVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = Seq(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(),
                          Residual(nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 1)))
        self.book, self.decode = nn.Embedding(12, 8), Seq(nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2), nn.Tanh())

    def forward(self, x):
        z = self.encode(x).permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, 8)
        code = torch.argmin(torch.cdist(flat, self.book.weight), 1).unsqueeze(1)
        one = torch.zeros(code.shape[0], 12)
        one.scatter_(1, code, 1)
        q = torch.matmul(one, self.book.weight).view(z.shape)
        used = one.mean(0)
        q = z + (q - z).detach()
        return self.decode(q.permute(0, 3, 1, 2)), torch.exp(-torch.sum(used * torch.log(used + 1e-10)))


@model("finite_scalar_quantiser", "2x6x4")
class Fsq(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("levels", torch.tensor([8, 5, 5, 3], dtype=torch.int32))
        self.register_buffer("basis", torch.cumprod(torch.tensor([1, 8, 5, 5]), 0).to(torch.int32))

    def forward(self, z):
        half = (self.levels - 1) * (1 + 1e-3) / 2
        offset = torch.where(self.levels % 2 == 0, 0.5, 0.0)
        bounded = (z + (offset / half).atanh()).tanh() * half - offset
        width = self.levels // 2
        q = bounded.round() / width
        return q, ((q * width + width) * self.basis).sum(-1).to(torch.int32)


@model("masked_autoregressive_picture", "1x1x10x10")
class PixelCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(8, 4, 1)
        mask = torch.ones(1, 1, 5, 5)
        mask[:, :, 2, 2:] = 0
        mask[:, :, 3:] = 0
        self.register_buffer("mask_a", mask)
        self.register_buffer("mask_b", torch.tensor([[1.0, 1, 1], [1, 1, 0], [0, 0, 0]]))

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.a.weight * self.mask_a, self.a.bias, 1, 2))
        a, b = F.conv2d(x, self.b.weight * self.mask_b, self.b.bias, padding=1).chunk(2, 1)
        return self.out(torch.tanh(a) * torch.sigmoid(b) + x)


@model("dcgan", "2x8x1x1", half=True)
def dcgan():
    up = lambda i, o, s, p: [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
    return Seq(*up(8, 16, 1, 0), *up(16, 8, 2, 1), nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh())


@model("dcgan_discriminator", "2x3x32x32")
def dcgan_discriminator():
    return Seq(nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), nn.Conv2d(8, 16, 4, 2, 1, bias=False),
               nn.BatchNorm2d(16), nn.LeakyReLU(0.2, True), nn.Conv2d(16, 1, 8, bias=False), nn.Sigmoid(),
               Lambda(lambda x: x.view(-1, 1).squeeze(1)))


@model("style_gan", "2x8")
class StyleGan(nn.Module):
    """A mapped code changes the kernels themselves, picture by picture."""
    def __init__(self):
        super().__init__()
        self.mapping = Seq(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8), nn.LeakyReLU(0.2))
        self.start, self.style = nn.Parameter(torch.randn(1, 8, 4, 4)), nn.Linear(8, 8)
        self.weight, self.noise = nn.Parameter(torch.randn(1, 6, 8, 3, 3)), nn.Parameter(torch.randn(1, 1, 8, 8))
        self.register_buffer("blur", torch.tensor([1.0, 3, 3, 1])[:, None] * torch.tensor([1.0, 3, 3, 1]) / 64)
        self.rgb = nn.Conv2d(6, 3, 1)

    def forward(self, z):
        z = z * torch.rsqrt(torch.mean(z ** 2, dim=1, keepdim=True) + 1e-8)
        s = self.style(self.mapping(z)).view(2, 1, 8, 1, 1)
        w = self.weight * s * (1 / math.sqrt(72))
        w = w * torch.rsqrt(w.pow(2).sum([2, 3, 4]) + 1e-8).view(2, 6, 1, 1, 1)
        x = self.start.repeat(2, 1, 1, 1).view(1, 16, 4, 4)
        w = w.transpose(1, 2).reshape(16, 6, 3, 3)
        y = F.conv_transpose2d(x, w, padding=0, stride=2, groups=2).view(2, 6, 9, 9)
        y = F.conv2d(F.pad(y, [1, 1, 1, 1]).reshape(-1, 1, 11, 11),
                     torch.flip(self.blur, [0, 1]).view(1, 1, 4, 4)).view(2, 6, 8, 8)
        return self.rgb(F.leaky_relu(y + 0.1 * self.noise, 0.2) * 2 ** 0.5)


@model("cycle_gan", "1x3x20x20")
def cycle_gan():
    norm = lambda c: [nn.InstanceNorm2d(c), nn.ReLU(True)]
    block = Residual(nn.ReflectionPad2d(1), nn.Conv2d(12, 12, 3), *norm(12), nn.ReflectionPad2d(1),
                     nn.Conv2d(12, 12, 3), nn.InstanceNorm2d(12))
    return Seq(nn.ReflectionPad2d(3), nn.Conv2d(3, 6, 7), *norm(6), nn.Conv2d(6, 12, 3, 2, 1), *norm(12), block,
               nn.ConvTranspose2d(12, 6, 3, 2, 1, output_padding=1), *norm(6), nn.ReflectionPad2d(3),
               nn.Conv2d(6, 3, 7), nn.Tanh())


@model("pix2pix", "1x3x16x16")
class Pix2Pix(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(3, 8, 4, 2, 1), Seq(nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4, 2, 1), nn.BatchNorm2d(8))
        self.d3 = Seq(nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4, 2, 1))
        self.u3 = Seq(nn.ReLU(), nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.Dropout(0.5))
        self.u2 = Seq(nn.ReLU(), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8))
        self.u1 = Seq(nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        return self.u1(torch.cat([a, self.u2(torch.cat([b, self.u3(self.d3(b))], 1))], 1))


@model("big_gan", "2x8", "2:int64<5")
class BigGan(nn.Module):
    """Norms whose scales come from the class; non-local attention."""
    def __init__(self):
        super().__init__()
        self.label, self.first, self.gain = nn.Embedding(5, 6), nn.Linear(8, 8 * 16), nn.Linear(14, 8, bias=False)
        self.bias, self.norm = nn.Linear(14, 8, bias=False), nn.BatchNorm2d(8, affine=False)
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.theta, self.phi = nn.Conv2d(8, 2, 1, bias=False), nn.Conv2d(8, 2, 1, bias=False)
        self.g, self.o = nn.Conv2d(8, 4, 1, bias=False), nn.Conv2d(4, 8, 1, bias=False)
        self.gamma, self.out = nn.Parameter(torch.tensor(0.5)), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, z, label):
        c = torch.cat([z, self.label(label)], 1)
        x = self.first(z).view(-1, 8, 4, 4)
        x = self.norm(x) * (1 + self.gain(c).view(-1, 8, 1, 1)) + self.bias(c).view(-1, 8, 1, 1)
        x = self.conv(F.interpolate(F.relu(x), scale_factor=2))
        theta, phi, g = self.theta(x).view(-1, 2, 64), F.max_pool2d(self.phi(x), [2, 2]).view(-1, 2,
                16), F.max_pool2d(self.g(x), [2, 2]).view(-1, 4, 16)
        beta = F.softmax(torch.bmm(theta.transpose(1, 2), phi), -1)
        x = self.gamma * self.o(torch.bmm(g, beta.transpose(1, 2)).view(-1, 4, 8, 8)) + x
        return torch.tanh(self.out(x))


@model("minibatch_discrimination", "4x6")
class Minibatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.out = nn.Parameter(torch.randn(6, 5, 3)), nn.Linear(11, 1)

    def forward(self, x):
        m = x.mm(self.t.view(6, -1)).view(-1, 5, 3)
        o = torch.exp(-(m.unsqueeze(0) - m.unsqueeze(1)).abs().sum(3)).sum(0) - 1
        return F.logsigmoid(self.out(torch.cat([x, o], 1))), F.pairwise_distance(x, x.roll(1, 0)), torch.pdist(x)


# ---- flows

@model("real_nvp", "3x6")
class RealNvp(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.ModuleList([Seq(nn.Linear(6, 12), nn.LeakyReLU(), nn.Linear(12, 6), nn.Tanh()) for _ in range(2)])
        self.t = nn.ModuleList([Seq(nn.Linear(6, 12), nn.LeakyReLU(), nn.Linear(12, 6)) for _ in range(2)])
        self.register_buffer("masks", torch.tensor([[0.0, 1] * 3, [1.0, 0] * 3]))

    def forward(self, x):
        log, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(2)):
            kept = self.masks[i] * z
            s, t = self.s[i](kept) * (1 - self.masks[i]), self.t[i](kept) * (1 - self.masks[i])
            z = (1 - self.masks[i]) * (z - t) * torch.exp(-s) + kept
            log -= s.sum(dim=1)
        return z, -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(1) + log


@model("glow", "2x4x8x8")
class Glow(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias, self.logs = nn.Parameter(torch.randn(1, 16, 1, 1)), nn.Parameter(torch.randn(1, 16, 1, 1) * 0.1)
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(16, 16))[0] + 0.1 * torch.randn(16, 16))
        self.net = Seq(nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 16, 3, padding=1))

    def forward(self, x):
        n, c, h, w = x.shape
        x = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(n, c * 4, h // 2, w // 2)
        x = (x + self.bias) * self.logs.exp()
        log = self.logs.sum() * 16 + torch.slogdet(self.weight)[1] * 16
        x = F.conv2d(x, self.weight.view(16, 16, 1, 1))
        a, b = x.chunk(2, 1)
        y = self.net(a)
        shift, scale = y[:, 0::2], torch.sigmoid(y[:, 1::2] + 2.0)
        z = torch.cat([a, (b + shift) * scale], 1)
        back = F.conv2d(z, torch.inverse(self.weight).view(16, 16, 1, 1))
        return z, log + torch.log(scale).flatten(1).sum(-1), back


@model("masked_autoregressive_flow", "3x5")
class Maf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 12), nn.Linear(12, 10)
        deg = torch.arange(12) % 4
        self.register_buffer("mask_a", (deg[:, None] >= torch.arange(5)[None]).float())
        self.register_buffer("mask_b", (torch.arange(5)[:, None] > deg[None]).float().repeat(2, 1))

    def forward(self, x):
        mu, alpha = F.linear(torch.relu(F.linear(x, self.a.weight * self.mask_a, self.a.bias)),
                             self.mask_b * self.b.weight, self.b.bias).chunk(2, 1)
        return (x - mu) * torch.exp(-alpha), -alpha.sum(1)


@model("spline_flow", "3x4")
class SplineFlow(nn.Module):
    """Rational quadratic splines: the bin is searched, its numbers gathered."""
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2 * 14))

    def forward(self, x):
        kept, x = torch.sigmoid(x).split([2, 2], 1)
        w, h, d = self.net(kept).view(3, 2, 14).split([5, 5, 4], -1)
        w, h = 1e-3 + (1 - 5e-3) * F.softmax(w, -1), 1e-3 + (1 - 5e-3) * F.softmax(h, -1)
        cw, ch = F.pad(torch.cumsum(w, -1), (1, 0)), F.pad(torch.cumsum(h, -1), (1, 0))
        d = F.pad(1e-3 + F.softplus(d), (1, 1), value=1.0)
        edges = cw.clone()
        edges[..., -1] += 1e-6
        i = torch.sum(x[..., None] >= edges, -1)[..., None] - 1
        take = lambda t: t.gather(-1, i)[..., 0]
        wi, hi, xi, yi, d0, d1 = take(w), take(h), take(cw), take(ch), take(d), take(d[..., 1:])
        s, t = hi / wi, (x - xi) / wi
        u = t * (1 - t)
        bottom = s + (d0 + d1 - 2 * s) * u
        y = yi + hi * (s * t.pow(2) + d0 * u) / bottom
        log = torch.log(s.pow(2) * (d1 * t.pow(2) + 2 * s * u + d0 * (1 - t).pow(2))) - 2 * torch.log(bottom)
        return torch.cat([kept, y], 1), log.sum(-1)


@model("planar_flow", "4x3")
class Planar(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.w = nn.Parameter(torch.randn(1, 3)), nn.Parameter(torch.randn(1, 3))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, z):
        wu = self.w @ self.u.t()
        u = self.u + (F.softplus(wu) - 1 - wu) * self.w / self.w.norm(p=2) ** 2
        a = F.linear(z, self.w, self.b)
        psi = (1 - torch.tanh(a).square()) * self.w
        return z + u * torch.tanh(a), torch.log((1 + psi @ u.t()).abs() + 1e-4)


@model("energy_langevin", "3x4")
class Langevin(nn.Module):
    """Two steps downhill: the gradient of an energy by its input."""
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))

    @torch.enable_grad()
    def forward(self, x):
        for _ in range(2):
            x = x.detach().requires_grad_()
            g, = torch.autograd.grad(self.net(x).sum(), x)
            x = x - 0.1 * g
        return x


@model("score_matching", "3x4")
class ScoreMatching(nn.Module):
    """The trace of a Jacobian, column by column."""
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))

    @torch.enable_grad()
    def forward(self, x):
        x = x.detach().requires_grad_()
        s, trace = self.net(x), 0
        for i in range(4):
            trace = trace + torch.autograd.grad(s[:, i].sum(), x, create_graph=True)[0][:, i]
        return (0.5 * s.pow(2).sum(1) + trace).detach()


# ---- fields

@model("nerf", "2x5x3", "2x3")
class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Seq(nn.Linear(27, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.b, self.sigma = Seq(nn.Linear(43, 16), nn.ReLU()), nn.Linear(16, 1)
        self.colour = Seq(nn.Linear(16 + 3, 8), nn.ReLU(), nn.Linear(8, 3), nn.Sigmoid())

    def waves(self, x):
        out = [x]
        for f in 2.0 ** torch.arange(4):
            out += [torch.sin(x * f), torch.cos(x * f)]
        return torch.cat(out, -1)

    def forward(self, points, way):
        e = self.waves(points)
        h = self.b(torch.cat([e, self.a(e)], -1))
        way = F.normalize(way, dim=-1)[:, None].expand(-1, 5, -1)
        rgb, sigma = self.colour(torch.cat([h, way], -1)), F.relu(self.sigma(h)[..., 0])
        z = torch.linspace(2, 6, 5).expand(2, 5)
        dist = torch.cat([z[..., 1:] - z[..., :-1], torch.full((2, 1), 1e10)], -1)
        alpha = 1.0 - torch.exp(-sigma * dist)
        w = alpha * torch.cumprod(torch.cat([torch.ones(2, 1), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        colour = (w[..., None] * rgb).sum(-2)
        cdf = torch.cat([torch.zeros(2, 1), torch.cumsum((w + 1e-5) / (w + 1e-5).sum(-1, keepdim=True), -1)], -1)
        u = torch.linspace(0.1, 0.9, 4).expand(2, 4).contiguous()
        i = torch.searchsorted(cdf, u, right=True)
        return colour, (w * z).sum(-1), cdf.gather(1, torch.min(torch.full_like(i, 5), i))


@model("siren", "10x2")
class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 12), nn.Linear(12, 12), nn.Linear(12, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(30 * layer(x) * 0.1)
        return self.layers[-1](x)


@model("hash_grid", "12x3")
class HashGrid(nn.Module):
    """Corners hashed by xor, their features mixed by place."""
    def __init__(self):
        super().__init__()
        self.table, self.mlp = nn.Parameter(torch.randn(2, 32, 2)), Seq(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        x, out = torch.sigmoid(x), []
        for level, size in enumerate((4, 9)):
            at = x * size
            low = torch.floor(at).long()
            t = at - low
            total = 0
            for corner in range(8):
                bits = torch.tensor([corner & 1, corner >> 1 & 1, corner >> 2])
                c = low + bits
                h = (c[:, 0] ^ (c[:, 1] * 2654435761) ^ (c[:, 2] * 805459861)) & 31
                w = torch.where(bits.bool(), t, 1 - t).prod(-1, keepdim=True)
                total = total + w * self.table[level][h]
            out.append(total)
        return self.mlp(torch.cat(out, -1))


@model("gaussian_splats", "6x2", "6x3")
class Splats(nn.Module):
    """Ellipses sorted by depth and blended, front to back."""
    def __init__(self):
        super().__init__()
        self.colour, self.alpha = nn.Parameter(torch.rand(6, 3)), nn.Parameter(torch.rand(6))
        self.depth = nn.Parameter(torch.rand(6))

    def forward(self, mean, shape):
        l = torch.zeros(6, 2, 2)
        l[:, 0, 0], l[:, 1, 0], l[:, 1, 1] = shape[:, 0].abs() + 0.3, shape[:, 1], shape[:, 2].abs() + 0.3
        inv = torch.cholesky_inverse(l)
        p = torch.stack(torch.meshgrid(torch.linspace(-2, 2, 8), torch.linspace(-2, 2, 8), indexing="xy"), -1).view(-1,
                1, 2)
        d = p - mean
        w = self.alpha.clamp(0, 0.99) * torch.exp(-0.5 * torch.einsum("pni,nij,pnj->pn", d, inv, d))
        order = torch.argsort(self.depth)
        w = w[:, order]
        t = torch.cumprod(1 - w, 1).roll(1, 1)
        t[:, 0] = 1
        return torch.einsum("pn,nc->pc", w * t, self.colour[order]).view(8, 8, 3)


@model("signed_distance", "20x3")
class Sdf(nn.Module):
    """A field with its gradient and the loss that makes it a distance."""
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(3, 16), nn.Softplus(beta=10), nn.Linear(16, 16), nn.Softplus(10), nn.Linear(16, 1))

    @torch.enable_grad()
    def forward(self, x):
        x = x.detach().requires_grad_()
        y = self.net(x)
        g = torch.autograd.grad(y, x, torch.ones_like(y))[0]
        sphere = torch.maximum(x.norm(dim=-1) - 0.5, -(torch.linalg.vector_norm(x[:, :2], dim=-1) - 0.2))
        return y.detach(), (g.norm(2, dim=-1) - 1) ** 2, torch.minimum(sphere, x.detach().abs().amax(-1))
