"""Transformers and what stands in their place: encoders, decoders, both, experts, state spaces, linear attention."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, Residual, RMSNorm, heads_of, join_heads, model

Seq = nn.Sequential
INF = float("inf")


def causal(l):
    return torch.full((l, l), -INF).triu(1)


def attend(q, k, v, bias=None):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return torch.matmul(F.softmax(scores if bias is None else scores + bias, dim=-1), v)


@model("bert", "2x9:int64<50", "2x9:int64<2", "2x9:int64<2", half=True)
class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16, padding_idx=0), nn.Embedding(12, 16)
        self.types, self.norm = nn.Embedding(2, 16), nn.LayerNorm(16, 1e-12)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.norm1, self.norm2, self.wide = nn.LayerNorm(16, 1e-12), nn.LayerNorm(16, 1e-12), nn.Linear(16, 32)
        self.narrow = nn.Linear(32, 16)
        self.pool, self.relation = nn.Linear(16, 16), nn.Linear(16, 2)

    def forward(self, words, types, mask):
        x = self.norm(self.words(words) + self.places(torch.arange(9).unsqueeze(0)) + self.types(types))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        y = join_heads(attend(heads_of(self.q(x), 2), heads_of(self.k(x), 2), heads_of(self.v(x), 2), bias))
        x = self.norm1(self.o(y) + x)
        x = self.norm2(self.narrow(F.gelu(self.wide(x))) + x)
        return self.relation(torch.tanh(self.pool(x[:, 0]))), F.linear(x, self.words.weight)


class GptBlock(nn.Module):
    def __init__(self, size, heads=2):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.o = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = Seq(nn.Linear(size, 4 * size), nn.GELU("tanh"), nn.Linear(4 * size, size))

    def forward(self, x, bias):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(self.norm1(x)).split(x.shape[-1], 2))
        x = x + self.o(join_heads(attend(q, k, v, bias)))
        return x + self.mlp(self.norm2(x))


@model("gpt2", "2x8:int64<40", half=True)
class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(40, 16), nn.Embedding(8, 16)
        self.blocks, self.norm = nn.ModuleList([GptBlock(16), GptBlock(16)]), nn.LayerNorm(16)
        self.out = nn.Linear(16, 40, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, words):
        l = words.size(1)
        x = self.words(words) + self.places.weight[:l]
        bias = torch.zeros(l, l).masked_fill(self.mask[0, 0, :l, :l] == 0, -INF)
        for block in self.blocks:
            x = block(x, bias)
        return self.out(self.norm(x))


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class LlamaBlock(nn.Module):
    def __init__(self, size=16, heads=4, kv_heads=2):
        super().__init__()
        self.heads, self.kv_heads, d = heads, kv_heads, size // heads
        self.q, self.k = nn.Linear(size, size, bias=False), nn.Linear(size, kv_heads * d, bias=False)
        self.v, self.o = nn.Linear(size, kv_heads * d, bias=False), nn.Linear(size, size, bias=False)
        self.gate, self.up = nn.Linear(size, 24, bias=False), nn.Linear(size, 24, bias=False)
        self.down = nn.Linear(24, size, bias=False)
        self.norm1, self.norm2 = RMSNorm(size), RMSNorm(size)

    def turn(self, q, k):
        l, d = q.shape[2], q.shape[3]
        freq = 1.0 / (10000.0 ** (torch.arange(0, d, 2).float() / d))
        angle = torch.outer(torch.arange(l).float(), freq)
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    def shared(self, x):
        n, h, l, d = x.shape
        return x[:, :, None].expand(n, h, self.heads // h, l, d).reshape(n, self.heads, l, d)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = heads_of(self.q(y), self.heads), heads_of(self.k(y), self.kv_heads), heads_of(self.v(y),
                self.kv_heads)
        q, k = self.turn(q, k)
        x = x + self.o(join_heads(attend(q, self.shared(k), self.shared(v), causal(x.shape[1]))))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model("llama", "2x7:int64<30", half=True)
def llama():
    return Seq(nn.Embedding(30, 16), LlamaBlock(), LlamaBlock(), RMSNorm(16), nn.Linear(16, 30, bias=False))


@model("llama_complex", "2x7:int64<30")
def llama_complex():
    class Block(LlamaBlock):
        def turn(self, q, k):
            l, d = q.shape[2], q.shape[3]
            freq = 1.0 / (10000.0 ** (torch.arange(0, d, 2)[: d // 2].float() / d))
            angle = torch.outer(torch.arange(l), freq).float()
            turns = torch.polar(torch.ones_like(angle), angle)
            pair = lambda x: torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return [torch.view_as_real(pair(x) * turns).flatten(3).type_as(x) for x in (q, k)]

        def shared(self, x):
            return torch.repeat_interleave(x, self.heads // self.kv_heads, dim=1)
    return Seq(nn.Embedding(30, 16), Block(), RMSNorm(16), nn.Linear(16, 30, bias=False))


@model("gemma", "1x6:int64<30")
class Gemma(nn.Module):
    """Scaled words, norms before and after, capped scores, gated gelu."""
    def __init__(self):
        super().__init__()
        self.words, self.qkv = nn.Embedding(30, 16), nn.Linear(16, 48, bias=False)
        self.o, self.norms = nn.Linear(16, 16, bias=False), nn.Parameter(torch.zeros(5, 16))
        self.gate, self.up = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
        self.down = nn.Linear(32, 16, bias=False)

    def norm(self, x, i):
        y = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        return (y * (1.0 + self.norms[i])).type_as(x)

    def forward(self, words):
        x = self.words(words) * torch.tensor(16 ** 0.5)
        q, k, v = (heads_of(t, 2) for t in torch.split(self.qkv(self.norm(x, 0)), [16, 16, 16], -1))
        scores = q.mul(8 ** -0.5) @ k.transpose(2, 3)
        scores = torch.tanh(scores / 50.0) * 50.0
        keep = torch.ones(6, 6, dtype=torch.bool).tril()
        keep = keep & ~torch.ones(6, 6, dtype=torch.bool).tril(-4)
        scores = torch.where(keep, scores, torch.finfo(scores.dtype).min)
        x = x + self.norm(self.o(join_heads(scores.softmax(-1) @ v)), 1)
        y = self.norm(x, 2)
        x = x + self.norm(self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y)), 3)
        y = F.linear(self.norm(x, 4), self.words.weight)
        return torch.tanh(y / 30.0) * 30.0


@model("palm", "1x6x16")
class Palm(nn.Module):
    """Attention and feed-forward beside each other, one key head, angles of pairs."""
    def __init__(self):
        super().__init__()
        self.norm, self.fused = nn.LayerNorm(16, elementwise_affine=False), nn.Linear(16, 16 + 8 + 64, bias=False)
        self.o, self.down = nn.Linear(16, 16, bias=False), nn.Linear(32, 16, bias=False)

    def forward(self, x):
        q, kv, up = self.fused(self.norm(x)).split((16, 8, 64), -1)
        q = q.unflatten(-1, (4, 4)).transpose(1, 2)
        k, v = kv.chunk(2, -1)
        scores = torch.einsum("bhid,bjd->bhij", q, k) * 0.5
        scores = scores.masked_fill(torch.ones(6, 6, dtype=torch.bool).triu_(1), -torch.finfo(x.dtype).max)
        scores = scores - scores.amax(dim=-1, keepdim=True).detach()
        y = torch.einsum("bhij,bjd->bhid", scores.softmax(-1), v)
        a, gate = up.chunk(2, dim=-1)
        return x + self.o(join_heads(y)) + self.down(F.silu(gate) * a)


@model("gpt_neox", "1x6x16")
class NeoX(nn.Module):
    """Only some of each head turns; the turned parts are interleaved."""
    def __init__(self):
        super().__init__()
        self.qkv, self.o, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def turn(self, x):
        part, rest = x[..., :4], x[..., 4:]
        angle = torch.einsum("i,j->ij", torch.arange(6.0), torch.tensor([1.0, 0.01]))
        sin, cos = (torch.repeat_interleave(f(angle), 2, -1) for f in (torch.sin, torch.cos))
        turned = torch.stack((-part[..., 1::2], part[..., ::2]), -1).flatten(-2)
        return torch.cat([part * cos + turned * sin, rest], -1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).view(1, 6, 2, 24).permute(0, 2, 1, 3).split(8, -1)
        return x + self.o(join_heads(attend(self.turn(q), self.turn(k), v, causal(6))))


@model("t5", "2x7:int64<30", "2x5:int64<30")
class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.table, self.table2 = nn.Embedding(30, 16), nn.Embedding(8, 2), nn.Embedding(8, 2)
        lin = lambda: nn.Linear(16, 16, bias=False)
        self.enc, self.own, self.cross = (nn.ModuleList([lin() for _ in range(4)]) for _ in range(3))
        self.norms = nn.ModuleList([RMSNorm(16) for _ in range(7)])
        self.ff = nn.ModuleList([Seq(nn.Linear(16, 32, bias=False), nn.ReLU(), nn.Dropout(0.1),
                                     nn.Linear(32, 16, bias=False)) for _ in range(2)])

    def bucket(self, l, both):
        d = torch.arange(l)[None, :] - torch.arange(l)[:, None]
        n, out = (4, (d > 0).long() * 4) if both else (8, torch.zeros_like(d))
        d = d.abs() if both else -torch.min(d, torch.zeros_like(d))
        large = n // 2 + (torch.log(d.float() / (n // 2)) / math.log(16 / (n // 2)) * (n - n // 2)).to(torch.long)
        large = torch.min(large, torch.full_like(large, n - 1))
        return out + torch.where(d < n // 2, d, large)

    def layer(self, w, x, y, bias=0.0):
        q, k, v = heads_of(w[0](x), 2), heads_of(w[1](y), 2), heads_of(w[2](y), 2)
        return w[3](join_heads(torch.softmax((q @ k.transpose(3, 2)).float() + bias, -1).type_as(x) @ v))

    def forward(self, source, target):
        n, x, y = self.norms, self.words(source), self.words(target)
        x = x + self.layer(self.enc, n[0](x), n[0](x), self.table(self.bucket(7, True)).permute(2, 0, 1)[None])
        x = n[2](x + self.ff[0](n[1](x)))
        mask = (1.0 - torch.tril(torch.ones(5, 5))) * -1e9
        y = y + self.layer(self.own, n[3](y), n[3](y),
                           self.table2(self.bucket(5, False)).permute([2, 0, 1]).unsqueeze(0) + mask)
        y = y + self.layer(self.cross, n[4](y), x)
        return F.linear(n[6](y + self.ff[1](n[5](y))) * 16 ** -0.5, self.words.weight)


@model("switch_transformer", "2x6x12")
class Switch(nn.Module):
    def __init__(self):
        super().__init__()
        self.route, self.up = nn.Linear(12, 4), nn.Parameter(torch.randn(4, 12, 24) * 0.3)
        self.down = nn.Parameter(torch.randn(4, 24, 12) * 0.3)

    def forward(self, x):
        flat = x.reshape(-1, 12)
        chances = F.softmax(self.route(flat), -1)
        best, which = chances.max(-1)
        chosen = F.one_hot(which, 4)
        place = (torch.cumsum(chosen, 0) - 1) * chosen
        chosen = chosen * (place < 4)
        send = chosen.unsqueeze(-1) * F.one_hot(place.clamp(0, 3), 4)
        sent = torch.einsum("tec,td->ecd", send.float(), flat)
        y = torch.bmm(F.relu(torch.bmm(sent, self.up)), self.down)
        y = torch.einsum("tec,ecd->td", send * best[:, None, None], y)
        loss = 4 * (chances.mean(0) * chosen.float().mean(0)).sum()
        return x + y.view_as(x), loss


@model("mixtral", "2x5x12")
class Mixtral(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(12, 4, bias=False)
        self.experts = nn.ModuleList([Seq(nn.Linear(12, 20), nn.SiLU(), nn.Linear(20, 12)) for _ in range(4)])

    def forward(self, x):
        flat = x.view(-1, 12)
        weights, chosen = torch.topk(F.softmax(self.route(flat), dim=1, dtype=torch.float), 2, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        y = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            share = torch.where(chosen == i, weights, torch.zeros_like(weights)).sum(-1, keepdim=True)
            y += share * expert(flat)
        return y.reshape(x.shape)


@model("soft_experts", "2x6x12")
class SoftExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.slots, self.scale = nn.Parameter(torch.randn(12, 3, 2)), nn.Parameter(torch.ones(1))
        self.up, self.down = nn.Parameter(torch.randn(3, 12, 16) * 0.3), nn.Parameter(torch.randn(3, 16, 12) * 0.3)

    def forward(self, x):
        scores = torch.einsum("bmd,dnp->bmnp", F.normalize(x, dim=2), self.scale * F.normalize(self.slots, dim=0))
        send, back = scores.softmax(1), scores.flatten(2).softmax(-1).view_as(scores)
        y = torch.einsum("bmd,bmnp->bnpd", x, send)
        y = torch.einsum("bnpe,ned->bnpd", F.gelu(torch.einsum("bnpd,nde->bnpe", y, self.up)), self.down)
        return torch.einsum("bnpd,bmnp->bmd", y, back)


@model("mamba", "2x6x8")
class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.conv = nn.Linear(8, 32, bias=False), nn.Conv1d(16, 16, 4, groups=16, padding=3)
        self.x, self.dt, self.out = nn.Linear(16, 10, bias=False), nn.Linear(2, 16), nn.Linear(16, 8, bias=False)
        self.a, self.d = nn.Parameter(torch.log(torch.arange(1.0, 5).repeat(16, 1))), nn.Parameter(torch.ones(16))

    def forward(self, u):
        l = u.shape[1]
        x, z = self.inp(u).chunk(2, dim=-1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :l].transpose(1, 2))
        dt, b, c = torch.split(self.x(x), [2, 4, 4], dim=-1)
        dt = F.softplus(self.dt(dt))
        da = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.a))
        dbx = dt.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
        h, ys = torch.zeros(u.shape[0], 16, 4), []
        for t in range(l):
            h = da[:, t] * h + dbx[:, t]
            ys.append((h @ c[:, t].unsqueeze(-1)).squeeze(-1))
        return self.out((torch.stack(ys, 1) + self.d * x) * F.silu(z))


@model("mamba2", "1x8x8")
class Mamba2(nn.Module):
    """The chunked form: products under a mask of decays."""
    def __init__(self):
        super().__init__()
        self.inp, self.out, self.a = nn.Linear(8, 16 + 8 + 2), nn.Linear(16, 8), nn.Parameter(torch.zeros(2))
        self.norm = RMSNorm(16)

    def decays(self, x):
        l = x.shape[-1]
        y = x.unsqueeze(-1).expand(*x.shape, l).masked_fill(~torch.tril(torch.ones(l, l, dtype=torch.bool), -1), 0)
        return torch.cumsum(y, -2).masked_fill(~torch.tril(torch.ones(l, l, dtype=torch.bool)), -INF)

    def forward(self, u):
        x, bc, dt = torch.split(self.inp(u), [16, 8, 2], -1)
        b, c = bc.chunk(2, -1)
        dt = F.softplus(dt)
        x = x.unflatten(-1, (2, 8)) * dt.unsqueeze(-1)
        a = (-torch.exp(self.a) * dt).transpose(1, 2)
        y = torch.einsum("bln,bsn,bhls,bshp->blhp", c, b, torch.exp(self.decays(a)), x)
        return self.out(self.norm(y.flatten(2)))


@model("s4d", "2x6x16")
class S4D(nn.Module):
    def __init__(self):
        super().__init__()
        self.dt, self.c = nn.Parameter(torch.rand(6) - 3), nn.Parameter(torch.randn(6, 4, 2))
        self.re = nn.Parameter(torch.log(0.5 * torch.ones(6, 4)))
        self.im = nn.Parameter(math.pi * torch.arange(4.0).repeat(6, 1))
        self.d, self.out = nn.Parameter(torch.randn(6)), Seq(nn.Conv1d(6, 12, 1), nn.GLU(-2))

    def forward(self, u):
        l = u.shape[-1]
        a = torch.complex(-torch.exp(self.re), self.im)
        da = a * torch.exp(self.dt).unsqueeze(-1)
        c = torch.view_as_complex(self.c) * (torch.exp(da) - 1.0) / a
        k = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(da.unsqueeze(-1) * torch.arange(l))).real
        y = torch.fft.irfft(torch.fft.rfft(u, n=2 * l) * torch.fft.rfft(k, n=2 * l), n=2 * l)[..., :l]
        return self.out(F.gelu(y + u * self.d.unsqueeze(-1)))


@model("hyena", "2x8x6")
class Hyena(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.short = nn.Linear(6, 18), nn.Conv1d(18, 18, 3, padding=2, groups=18)
        self.filter, self.out = Seq(nn.Linear(5, 8), Lambda(torch.sin), nn.Linear(8, 6)), nn.Linear(6, 6)

    def forward(self, x):
        l = x.shape[1]
        v, a, b = self.short(self.inp(x).transpose(1, 2))[..., :l].split(6, dim=1)
        t = torch.linspace(0, 1, l)[:, None]
        z = torch.exp(1j * torch.linspace(1e-4, 1, 2) * 2 * math.pi * t)
        k = self.filter(torch.cat([t, z.real, z.imag], -1)).t() * torch.exp(-t.t() * torch.linspace(1, 3, 6)[:, None])
        v = torch.fft.ifft(torch.fft.fft(v * a, 2 * l) * torch.fft.fft(k, 2 * l)).real[..., :l]
        return self.out((v * b).transpose(1, 2))


@model("alibi", "2x7x16", half=True)
class Alibi(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("slopes", torch.tensor([2.0 ** -(i + 1) for i in range(4)]))

    def forward(self, x):
        l = x.shape[1]
        q, k, v = (heads_of(t, 4) for t in self.qkv(x).chunk(3, -1))
        bias = self.slopes[:, None, None] * (torch.arange(l)[None] - torch.arange(l)[:, None])
        return self.o(join_heads(attend(q, k, v, bias + causal(l))))


@model("longformer", "1x12x8")
class Longformer(nn.Module):
    """Keys of a window gathered by unfold, beside one global token."""
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        near = lambda t, fill: F.pad(t, (0, 0, 2, 2), value=fill).unfold(1, 5, 1)
        scores = torch.einsum("bld,bldw->blw", q, near(k, 0.0))
        valid = near(torch.ones(1, 12, 1), 0.0).squeeze(2)
        scores = scores.masked_fill(valid == 0, -1e9)
        first = torch.einsum("bld,bd->bl", q, k[:, 0]).unsqueeze(-1)
        weights = torch.cat([first, scores], -1).softmax(-1)
        y = weights[..., :1] * v[:, :1] + torch.einsum("blw,bldw->bld", weights[..., 1:], near(v, 0.0))
        return self.o(y.index_fill(1, torch.tensor([0]), 0.5))


@model("sliding_window", "1x12x8")
class SlidingWindow(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (heads_of(t, 2) for t in self.qkv(x).chunk(3, -1))
        i = torch.arange(12)
        near = (i[:, None] - i[None]).ge(0).logical_and((i[:, None] - i[None]).lt(4))
        scores = torch.full((1, 2, 12, 12), -INF)
        scores[near.expand_as(scores)] = (q @ k.transpose(-1, -2))[near.expand_as(scores)]
        return self.o(join_heads(scores.softmax(-1) @ v))


@model("linformer", "2x10x16")
class Linformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.e = nn.Linear(16, 16), nn.Linear(16, 32), nn.Parameter(torch.randn(10, 4) * 0.3)
        self.f, self.o = nn.Parameter(torch.randn(10, 4) * 0.3), nn.Linear(16, 16)

    def forward(self, x):
        k, v = self.kv(x).chunk(2, dim=-1)
        k, v = torch.einsum("nld,lk->nkd", k, self.e), torch.einsum("nld,lk->nkd", v, self.f)
        return self.o(join_heads(attend(heads_of(self.q(x), 2), heads_of(k, 2), heads_of(v, 2))))


@model("performer", "2x8x16")
class Performer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("random", torch.linalg.qr(torch.randn(8, 8))[0] * math.sqrt(8))

    def feature(self, x, is_query):
        x = x * x.shape[-1] ** -0.25
        y = torch.einsum("bhld,md->bhlm", x, self.random)
        norm = x.pow(2).sum(-1, keepdim=True) / 2
        top = y.amax(-1, keepdim=True) if is_query else torch.amax(y, dim=(-1, -2), keepdim=True)
        return (torch.exp(y - norm - top) + 1e-4) / math.sqrt(8)

    def forward(self, x):
        q, k, v = (heads_of(t, 2) for t in self.qkv(x).chunk(3, -1))
        q, k = self.feature(q, True), self.feature(k, False)
        scale = 1.0 / torch.einsum("bhlm,bhm->bhl", q, k.sum(2))
        return self.o(join_heads(torch.einsum("bhlm,bhmd,bhl->bhld", q, torch.einsum("bhlm,bhld->bhmd", k, v), scale)))


@model("linear_transformer", "2x8x16")
class LinearTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (heads_of(t, 2) for t in self.qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 2)
        y = (q.unsqueeze(-2) @ kv).squeeze(-2) / ((q * k.cumsum(2)).sum(-1, keepdim=True) + 1e-6)
        return self.o(join_heads(y))


@model("rwkv", "2x6x8")
class Rwkv(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.decay = nn.Parameter(torch.rand(5, 8)), nn.Parameter(torch.randn(8))
        self.first = nn.Parameter(torch.randn(8))
        self.r, self.k, self.v, self.o, self.ck, self.cv, self.cr = (nn.Linear(8, 8, bias=False) for _ in range(7))
        self.norm1, self.norm2, self.shift = nn.LayerNorm(8), nn.LayerNorm(8), nn.ZeroPad2d((0, 0, 1, -1))

    def time(self, x):
        last = self.shift(x)
        r, k, v = (m(torch.lerp(last, x, w)) for m, w in zip((self.r, self.k, self.v), self.mix))
        a, b, p, ys = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38), []
        w = -torch.exp(self.decay)
        for t in range(x.shape[1]):
            q = torch.maximum(p, self.first + k[:, t])
            e1, e2 = torch.exp(p - q), torch.exp(self.first + k[:, t] - q)
            ys.append((e1 * a + e2 * v[:, t]) / (e1 * b + e2))
            q = torch.maximum(p + w, k[:, t])
            e1, e2 = torch.exp(p + w - q), torch.exp(k[:, t] - q)
            a, b, p = e1 * a + e2 * v[:, t], e1 * b + e2, q
        return self.o(torch.sigmoid(r) * torch.stack(ys, 1))

    def forward(self, x):
        x = x + self.time(self.norm1(x))
        y = self.norm2(x)
        last = self.shift(y)
        k = torch.square(torch.relu(self.ck(y * self.mix[3] + last * (1 - self.mix[3]))))
        return x + torch.sigmoid(self.cr(y * self.mix[4] + last * (1 - self.mix[4]))) * self.cv(k)


@model("retnet", "2x6x16")
class RetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.gate, self.o = nn.Linear(16, 48, bias=False), nn.Linear(16, 16), nn.Linear(16, 16)
        self.norm = nn.GroupNorm(2, 16)

    def forward(self, x):
        n, l, c = x.shape
        q, k, v = (heads_of(t, 2) for t in self.qkv(x).chunk(3, -1))
        gamma = 1 - torch.exp2(-5.0 - torch.arange(2.0))
        d = torch.arange(l).unsqueeze(1) - torch.arange(l).unsqueeze(0)
        decay = torch.pow(gamma.view(2, 1, 1), d) * (d >= 0)
        decay = torch.nan_to_num(decay)
        y = (q @ k.transpose(-1, -2) * decay) @ v
        y = self.norm(join_heads(y).reshape(n * l, c)).view(n, l, c)
        return self.o(F.silu(self.gate(x)) * y)


@model("delta_net", "1x6x8")
class DeltaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.beta, self.o = nn.Linear(8, 24), nn.Linear(8, 1), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).unbind(0)[0].split(8, 1)
        q, k, beta = F.normalize(F.silu(q), p=2.0, dim=-1), F.normalize(F.silu(k), dim=-1), self.beta(x[0]).sigmoid()
        s, ys = torch.zeros(8, 8), []
        for t in range(6):
            s = s - beta[t] * torch.outer(s.mv(k[t]) - v[t], k[t])
            ys.append(torch.mv(s, q[t]))
        return self.o(torch.vstack(ys))


@model("transformer_xl", "2x5x16", "2x4x16")
class TransformerXL(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16, bias=False), nn.Linear(16, 32, bias=False)
        self.r, self.o = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.u, self.w, self.norm = nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(2, 8)), nn.LayerNorm(16)

    def shift(self, x):
        y = torch.cat([torch.zeros(*x.shape[:3], 1), x], -1)
        return y.view(*x.shape[:2], x.shape[3] + 1, x.shape[2])[:, :, 1:].reshape(x.shape)

    def forward(self, x, memory):
        both = torch.cat([memory, x], 1)
        angle = torch.ger(torch.arange(8, -1, -1.0), 1 / (10000 ** (torch.arange(0.0, 16, 2) / 16)))
        r = self.r(torch.cat([angle.sin(), angle.cos()], -1)).view(9, 2, 8)
        q, (k, v) = self.q(x).view(2, 5, 2, 8), (t.view(2, 9, 2, 8) for t in self.kv(both).chunk(2, -1))
        scores = torch.einsum("bind,bjnd->bnij", q + self.u,
                              k) + self.shift(torch.einsum("bind,jnd->bnij", q + self.w, r))
        scores = scores.mul_(8 ** -0.5).masked_fill_(torch.triu(torch.ones(5, 9), 5).bool()[None, None], -INF)
        y = torch.einsum("bnij,bjnd->bind", scores.softmax(3), v).contiguous().view(2, 5, 16)
        return self.norm(x + self.o(y)), both[:, -4:].detach()


@model("reformer", "1x12x8")
class Reformer(nn.Module):
    """Words meet those of their bucket: a hash by random turns, a stable order, chunks."""
    def __init__(self):
        super().__init__()
        self.qk, self.v, self.o = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("turns", torch.randn(8, 2))

    def forward(self, x):
        qk, v = self.qk(x), self.v(x)
        turned = qk @ self.turns
        buckets = torch.argmax(torch.cat([turned, -turned], -1), -1)
        order = (buckets * 12 + torch.arange(12)).argsort(-1)
        back = torch.empty_like(order).scatter_(-1, order, torch.arange(12).expand_as(order))
        take = lambda t: torch.take_along_dim(t, order.unsqueeze(-1), 1).view(1, 3, 4, 8)
        q, v = take(qk), take(v)
        k = F.normalize(q, dim=-1)
        look = lambda t: torch.cat([t, torch.roll(t, 1, 1)], 2)
        scores = q @ look(k).transpose(-1, -2) / 8 ** 0.5
        places = order.view(1, 3, 4)
        same = places.unsqueeze(-1) == look(places.unsqueeze(-1)).squeeze(-1).unsqueeze(-2)
        scores = torch.where(same, torch.tensor(-5e4), scores)
        y = (torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)) @ look(v)).view(1, 12, 8)
        return self.o(y.gather(1, back.unsqueeze(-1).expand(-1, -1, 8)))


@model("transformer", "5x2x16", "4x2x16")
class Whole(nn.Module):
    """torch.nn's own, sequence first."""
    def __init__(self):
        super().__init__()
        self.body = nn.Transformer(16, 2, 1, 1, 32)

    def forward(self, source, target):
        return self.body(source, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))


@model("encoder_with_padding", "2x6x16", "2x6:bool")
class PaddedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation=F.gelu, batch_first=True),
                                          2, nn.LayerNorm(16), enable_nested_tensor=False)

    def forward(self, x, pad):
        first = torch.zeros_like(pad)
        first[:, 0] = True
        return self.body(x, src_key_padding_mask=pad & ~first)


@model("memory_decoder", "2x4x16", "2x6x16")
class MemoryDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True, add_zero_attn=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, x, memory):
        y, weights = self.attention(x, memory, memory, average_attn_weights=False)
        return self.norm(x + y), weights


@model("deberta", "1x6x16")
class Deberta(nn.Module):
    """Scores of content to content, content to place, place to content."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.places = nn.Embedding(8, 16)

    def forward(self, x):
        d = torch.arange(6).unsqueeze(1) - torch.arange(6).unsqueeze(0)
        d = torch.clamp(d + 4, 0, 7)
        split = lambda t: t.view(*t.shape[:-1], 2, 8).transpose(-3, -2)
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        pq, pk = split(self.q(self.places.weight)), split(self.k(self.places.weight))
        c2p = torch.gather(q @ pk.transpose(-1, -2), -1, d.expand(1, 2, 6, 6))
        p2c = torch.gather(k @ pq.transpose(-1, -2), -1, d.expand(1, 2, 6, 6)).transpose(-1, -2)
        scores = (q @ k.transpose(-1, -2) + c2p + p2c) / math.sqrt(24)
        return join_heads(scores.softmax(-1) @ v)


@model("albert", "2x5:int64<20")
class Albert(nn.Module):
    """One layer, used three times; words of a small table."""
    def __init__(self):
        super().__init__()
        self.words, self.wide = nn.Embedding(20, 6), nn.Linear(6, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=True)

    def forward(self, words):
        x = self.wide(self.words(words))
        for _ in range(3):
            x = self.layer(x)
        return F.log_softmax(F.linear(F.linear(x, self.wide.weight.t()), self.words.weight), -1)


@model("fnet", "2x8x16")
def fnet():
    mix = Lambda(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
    return Seq(Residual(mix), nn.LayerNorm(16), Residual(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
               nn.LayerNorm(16))


@model("fnet_2d", "2x8x12")
def fnet_2d():
    return Seq(Lambda(lambda x: x + torch.fft.fftn(x, dim=(-2, -1), norm="ortho").real), nn.LayerNorm(12),
               nn.Linear(12, 12))


@model("synthesizer", "2x6x12")
class Synthesizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores, self.fixed = Seq(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 6)), nn.Parameter(torch.randn(6, 6))
        self.v = nn.Linear(12, 12)

    def forward(self, x):
        return torch.bmm(F.softmax(self.scores(x) + self.fixed, -1), self.v(x))


@model("adaptive_computation", "2x5x8")
class Adaptive(nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.halt = Seq(nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 1)

    def forward(self, x):
        done, total, updates = torch.zeros(2, 5), torch.zeros_like(x), torch.zeros(2, 5)
        for _ in range(4):
            p = torch.sigmoid(self.halt(x)).squeeze(-1)
            running = (done < 1.0).float()
            new = (done + p * running > 0.9).float() * running
            running = (done + p * running <= 0.9).float() * running
            p = torch.where(new.bool(), 1 - done, p * running)
            done, updates = done + p, updates + running + new
            x = self.step(x)
            total = total + x * p[..., None]
        return total, updates


@model("funnel", "2x8x16")
class Funnel(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(16, 2, batch_first=True, bias=False), nn.LayerNorm(16)

    def forward(self, x):
        small = F.avg_pool1d(x.transpose(1, 2), 2, 2, ceil_mode=True).transpose(1, 2)
        y = self.norm(small + self.attention(small, x, x, need_weights=False)[0])
        return x + torch.repeat_interleave(y, repeats=2, dim=1)


@model("big_bird", "1x16x8")
class BigBird(nn.Module):
    """Blocks meet their neighbours, the first block, and one chosen at random."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("chosen", torch.tensor([2, 3, 0, 1]))

    def forward(self, x):
        q, k, v = (t.unflatten(1, (4, 4)) for t in self.qkv(x).chunk(3, -1))
        near = lambda t: torch.cat([t.roll(1, 1), t, t.roll(-1, 1), t[:, :1].expand_as(t),
                                    t.index_select(1, self.chosen)], 2)
        return torch.einsum("bnqk,bnkd->bnqd", torch.einsum("bnqd,bnkd->bnqk", q, near(k)).softmax(-1),
                            near(v)).flatten(1, 2)


@model("nystromformer", "1x16x8")
class Nystrom(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.conv = nn.Linear(8, 24), nn.Conv2d(1, 1, (3, 1), padding=(1, 0), bias=False)

    def inverse(self, a):
        z = a.transpose(-1, -2) / (a.abs().sum(-2).max() * a.abs().sum(-1).max())
        eye = torch.eye(a.shape[-1])
        for _ in range(4):
            az = a @ z
            z = 0.25 * z @ (13 * eye - az @ (15 * eye - az @ (7 * eye - az)))
        return z

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        ql, kl = (t.reshape(1, 4, 4, 8).mean(-2) for t in (q, k))
        a, b, c = (torch.softmax(m, -1) for m in (q @ kl.mT, ql @ kl.mT, ql @ k.mT))
        return a @ self.inverse(b) @ (c @ v) + self.conv(v.unsqueeze(1)).squeeze(1)


@model("kv_cache_decoder", "2x1:int64<20", "2x2x6x4", "2x2x6x4", "1:int64<6")
class CachedDecoder(nn.Module):
    """One step: writes its key and value at a place, meets what is up to it."""
    def __init__(self):
        super().__init__()
        self.words, self.qkv, self.out = nn.Embedding(20, 8), nn.Linear(8, 24), nn.Linear(8, 20)

    def forward(self, word, keys, values, place):
        q, k, v = (heads_of(t, 2) for t in self.qkv(self.words(word)).chunk(3, -1))
        keys, values = keys.clone(), values.clone()
        keys[:, :, place] = k
        values.index_copy_(2, place, v)
        seen = torch.arange(6)[None, :] <= place[:, None]
        scores = (q @ keys.transpose(-1, -2) / 2).masked_fill(seen.logical_not(), -INF)
        y = self.out(join_heads(scores.softmax(-1) @ values))
        return y[:, -1].argmax(-1), keys, values


@model("whisper", "1x8x20", "1x4:int64<20")
class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(8, 16, 3, padding=1), nn.Conv1d(16, 16, 3, 2, 1)
        self.words, self.places = nn.Embedding(20, 16), nn.Parameter(torch.randn(4, 16))
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16, bias=False), nn.Linear(16, 16)
        self.o, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)

    def layer(self, x, y, mask=None):
        q, k, v = heads_of(self.q(x), 2) * 8 ** -0.25, heads_of(self.k(y), 2).transpose(2,
                3) * 8 ** -0.25, heads_of(self.v(y), 2)
        qk = q @ k
        qk = qk + mask if mask is not None else qk
        return self.o(join_heads(F.softmax(qk.float(), -1).to(q.dtype) @ v)), qk.detach()

    def forward(self, mel, words):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
        scale = torch.exp(-math.log(10000) / 7 * torch.arange(8))
        t = torch.arange(10)[:, None] * scale[None]
        x = x + torch.cat([t.sin(), t.cos()], 1)
        x = self.norm(x + self.layer(self.norm(x), self.norm(x))[0])
        y = self.words(words) + self.places
        y = y + self.layer(self.norm(y), self.norm(y), torch.empty(4, 4).fill_(-INF).triu_(1))[0]
        z, scores = self.layer(self.norm(y), x)
        return (y + z) @ self.words.weight.transpose(0, 1), scores


@model("clip", "2x3x16x16", "3x6:int64<30")
class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.words = nn.Conv2d(3, 16, 8, 8, bias=False), nn.Embedding(30, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
        self.scale = nn.Parameter(torch.ones([]) * 2.6)
        self.image, self.text = nn.Parameter(torch.randn(16, 8)), nn.Parameter(torch.randn(16, 8))

    def forward(self, image, text):
        a = self.block(self.patch(image).flatten(2).transpose(1, 2))[:, 0] @ self.image
        t = self.block(self.words(text))
        t = t[torch.arange(3), text.argmax(dim=-1)] @ self.text
        a, t = a / a.norm(dim=1, keepdim=True), t / t.norm(dim=1, keepdim=True)
        logits = self.scale.exp() * a @ t.t()
        return logits, logits.t().softmax(-1)


@model("gated_attention_unit", "2x8x12")
class GatedUnit(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.uv, self.z = nn.LayerNorm(12), nn.Linear(12, 48), nn.Linear(12, 6)
        self.gamma, self.beta = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.zeros(2, 6))
        self.o = nn.Linear(24, 12)

    def forward(self, x):
        y = self.norm(x)
        u, v = F.silu(self.uv(y)).chunk(2, -1)
        q, k = torch.einsum("...r,hr->...hr", F.silu(self.z(y)), self.gamma).add(self.beta).unbind(-2)
        a = F.relu(q @ k.mT / 8) ** 2
        return x + self.o(u * (a @ v))


@model("sparse_attention", "2x8x12")
class TopAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = torch.bmm(q, k.transpose(1, 2))
        least = scores.kthvalue(5, dim=-1, keepdim=True).values
        return torch.bmm(scores.masked_fill(scores < least, -INF).softmax(-1), v)


@model("latent_attention", "2x6x16")
class LatentAttention(nn.Module):
    """Keys and values from a short vector; a turned part that all heads share."""
    def __init__(self):
        super().__init__()
        self.q, self.down, self.norm = nn.Linear(16, 2 * 12), nn.Linear(16, 6 + 4), RMSNorm(6)
        self.up, self.o = nn.Linear(6, 2 * 16), nn.Linear(16, 16)

    def turn(self, x):
        angle = torch.arange(6.0)[:, None] * torch.tensor([1.0, 0.1])
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def forward(self, x):
        q, rope = self.q(x).view(2, 6, 2, 12).transpose(1, 2).split([8, 4], -1)
        short, k_rope = self.down(x).split([6, 4], -1)
        k, v = self.up(self.norm(short)).view(2, 6, 2, 16).transpose(1, 2).split([8, 8], -1)
        q = torch.cat([q, self.turn(rope)], -1)
        k = torch.cat([k, self.turn(k_rope.unsqueeze(1)).expand(-1, 2, -1, -1)], -1)
        return self.o(join_heads(attend(q, k, v, causal(6))))


@model("informer", "1x10x8")
class Informer(nn.Module):
    """Only the queries whose scores say most get an answer of their own."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.distil = Seq(nn.Conv1d(8, 8, 3, padding=1, padding_mode="circular"), nn.BatchNorm1d(8), nn.ELU(),
                          nn.MaxPool1d(3, 2, 1))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1)
        sharp = scores.max(-1)[0] - torch.div(scores.sum(-1), 10)
        top = sharp.topk(4, sorted=False)[1].sort()[0]
        y = v.mean(1, keepdim=True).expand(1, 10, 8).clone()
        y[torch.arange(1)[:, None], top, :] = (scores[torch.arange(1)[:, None], top] / 8 ** 0.5).softmax(-1) @ v
        return self.distil(y.transpose(1, 2)).transpose(1, 2)


@model("autoformer", "2x12x4")
class Autoformer(nn.Module):
    """Trend and season; delays that correlate, found by Fourier transforms."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        trend = F.avg_pool1d(F.pad(x.transpose(1, 2), (2, 2), mode="replicate"), 5, 1).transpose(1, 2)
        y = x - trend
        q, k, v = self.q(y).transpose(1, 2), self.k(y).transpose(1, 2), self.v(y).transpose(1, 2)
        corr = torch.fft.irfft(torch.fft.rfft(q, dim=-1) * torch.conj(torch.fft.rfft(k, dim=-1)), n=12, dim=-1)
        weights, delays = torch.topk(corr.mean(1).mean(0), 3)
        share = torch.stack([corr.mean(1)[:, d] for d in delays.unbind()],
                            -1).softmax(-1) if False else corr.mean(1).index_select(-1, delays).softmax(-1)
        twice = v.repeat(1, 1, 2)
        y = sum(twice.gather(-1, (torch.arange(12) + delays[i]).expand(2, 4, 12)) *
                share[:, i, None, None] for i in range(3))
        return y.transpose(1, 2) + trend


@model("patch_tst", "2x3x24")
class PatchTST(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.place = nn.Linear(6, 12), nn.Parameter(torch.randn(7, 12))
        self.layer = nn.TransformerEncoderLayer(12, 2, 24, batch_first=True, activation="gelu")
        self.out = nn.Linear(84, 5)

    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
        patches = ((x - mean) / std).unfold(-1, 6, 3)
        y = self.layer((self.words(patches) + self.place).flatten(0, 1)).unflatten(0, (2, 3))
        return self.out(y.flatten(-2)) * std + mean


@model("itransformer", "2x12x5")
class ITransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Linear(12, 16), nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        std, mean = torch.std_mean(x, 1, unbiased=False, keepdim=True)
        return self.out(self.layer(self.words(((x - mean) / (std + 1e-5)).permute(0, 2, 1)))).permute(0, 2,
                1) * std + mean


@model("temporal_fusion", "2x8x6")
class TemporalFusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.gate, self.norm = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 12), nn.LayerNorm(6)
        self.pick, self.lstm, self.out = nn.Linear(6, 6), nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        w = F.softmax(self.pick(x), -1)
        y = self.norm(x + F.glu(self.gate(self.b(F.elu(self.a(x * w)))), dim=-1))
        h, _ = self.lstm(y)
        q = self.out(h[:, -3:])
        return torch.quantile(q, torch.tensor([0.1, 0.5, 0.9]), dim=1), q.median(1)[0]


@model("crf_tagger", "2x5:int64<20")
class Crf(nn.Module):
    """Scores of a bidirectional LSTM, the sum over all paths, the best path."""
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 6, bidirectional=True, batch_first=True)
        self.out, self.step = nn.Linear(12, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, words):
        s = self.out(self.lstm(self.words(words))[0])
        total, best, back = s[:, 0], s[:, 0], []
        for t in range(1, 5):
            total = torch.logsumexp(total.unsqueeze(2) + self.step, 1) + s[:, t]
            best, where = (best.unsqueeze(2) + self.step).max(1)
            best = best + s[:, t]
            back.append(where)
        path = [best.argmax(1)]
        for where in reversed(back):
            path.insert(0, where.gather(1, path[0].unsqueeze(1)).squeeze(1))
        return torch.logsumexp(total, 1), torch.stack(path, 1)


@model("beam_search_step", "2x3x10", "2x3")
class Beam(nn.Module):
    def forward(self, logits, scores):
        total = (F.log_softmax(logits, -1) + scores.unsqueeze(-1)).view(2, -1)
        best, which = total.topk(3)
        beam, word = torch.div(which, 10, rounding_mode="floor"), torch.remainder(which, 10)
        return best, beam, word, which.fmod(10).eq(0)


@model("nucleus_sampling", "2x20", "2x1")
class Nucleus(nn.Module):
    """Top-p with the random number given."""
    def forward(self, logits, chance):
        p, order = torch.sort(F.softmax(logits / 0.8, -1), descending=True)
        drop = torch.cumsum(p, -1) - p > 0.9
        p = p.masked_fill(drop, 0.0)
        p = p / p.sum(-1, keepdim=True)
        where = torch.searchsorted(p.cumsum(-1), torch.sigmoid(chance) * 0.999)
        return order.gather(-1, where.clamp_max(19)), torch.bincount(where.view(-1), minlength=20)


@model("repetition_penalty", "2x9", "2x8:int64<9")
class RepetitionPenalty(nn.Module):
    """What was written before is less likely; the best five, and of these the nucleus, written in place."""
    def forward(self, logits, ids):
        score = logits.gather(1, ids)
        logits = logits.scatter(1, ids, torch.where(score < 0, score * 1.2, score / 1.2))
        logits = logits.masked_fill(logits < logits.topk(5)[0][..., -1, None], -INF)
        ordered, order = torch.sort(logits, descending=True)
        drop = ordered.softmax(-1).cumsum(-1) > 0.9
        drop[..., 1:] = drop[..., :-1].clone()
        drop[..., 0] = False
        return logits.masked_fill(drop.scatter(1, order, drop), -1e4).softmax(-1)
