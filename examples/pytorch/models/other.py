"""Recommenders, tables, time series, reinforcement, operators on functions, numerics, quantised models."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, Residual, model

Seq = nn.Sequential


@model("dlrm", "3x4", "8:int64<10", "8:int64<12", half=True)
class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = Seq(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU())
        self.a, self.b = nn.EmbeddingBag(10, 6, mode="sum"), nn.EmbeddingBag(12, 6, mode="sum")
        self.top = Seq(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
        self.register_buffer("offsets", torch.tensor([0, 3, 4]))

    def forward(self, dense, a, b):
        x = self.bottom(dense)
        t = torch.cat([x, self.a(a, self.offsets), self.b(b, self.offsets)], 1).view(3, -1, 6)
        z = torch.bmm(t, t.transpose(1, 2))
        i, j = torch.tensor([1, 2, 2]), torch.tensor([0, 0, 1])
        return self.top(torch.cat([x, z[:, i, j]], 1))


@model("embedding_bags", "3x4:int64<10", "3x4")
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.most = nn.EmbeddingBag(10, 5, mode="mean", padding_idx=0), nn.EmbeddingBag(10, 5, mode="max")
        self.sum = nn.EmbeddingBag(10, 5, mode="sum", include_last_offset=True)

    def forward(self, x, w):
        return self.mean(x), self.most(x), self.sum(x.flatten(), torch.tensor([0, 2, 7, 12]),
                                                    per_sample_weights=w.flatten())


@model("deep_fm", "3x4:int64<8")
class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.words = nn.Embedding(32, 1), nn.Embedding(32, 5)
        self.deep = Seq(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
        self.register_buffer("offset", torch.arange(4) * 8)

    def forward(self, x):
        x = x + self.offset
        e = self.words(x)
        fm = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.first(x).sum(1) + fm + self.deep(e.flatten(1))).squeeze(1)


@model("x_deep_fm", "3x4x5")
class XDeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Conv1d(16, 6, 1), nn.Conv1d(24, 6, 1), nn.Linear(12, 1)

    def forward(self, x):
        h, out = x, []
        for conv in (self.a, self.b):
            h = F.relu(conv((x.unsqueeze(2) * h.unsqueeze(1)).view(3, -1, 5)))
            out.append(h.sum(2))
        return self.out(torch.cat(out, 1))


@model("wide_and_deep", "3x6", "3x2:int64<10")
class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.wide = nn.ModuleList([nn.Embedding(10, 4), nn.Embedding(10, 3)]), nn.Linear(26, 1)
        self.deep = Seq(nn.Linear(13, 8), nn.Sigmoid(), nn.Linear(8, 1))

    def forward(self, x, c):
        one = F.one_hot(c, 10).flatten(1).float()
        e = torch.cat([w(c[:, i]) for i, w in enumerate(self.words)] + [x], 1)
        return (self.wide(torch.cat([x, one], 1)) + self.deep(e)).sigmoid()


@model("deep_cross", "3x8")
class DeepCross(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u, self.v = nn.Linear(8, 8), nn.Parameter(torch.randn(2, 8, 3)), nn.Parameter(torch.randn(2, 8, 3))
        self.gate = nn.Linear(8, 2)

    def forward(self, x):
        y = x * self.w(x) + x
        experts = torch.stack([x * torch.tanh(y @ self.v[i]).matmul(self.u[i].t()) for i in range(2)], 2)
        return torch.matmul(experts, self.gate(y).softmax(1).unsqueeze(2)).squeeze(2) + y


@model("two_towers", "4:int64<20", "6:int64<30", "6x3")
class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item, self.mix = nn.Embedding(20, 8), nn.Embedding(30, 5), nn.Linear(8, 8)

    def forward(self, user, item, features):
        u, i = F.normalize(self.user(user)), F.normalize(self.mix(torch.cat([self.item(item), features], 1)))
        s = torch.einsum("ud,id->ui", u, i) * 20
        top = torch.topk(s, 3, 1)
        return s, top.values, top.indices, torch.argsort(s, 1, descending=True)


@model("interest_network", "2x5:int64<20", "2:int64<20")
class Din(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.score = nn.Embedding(20, 4, padding_idx=0), Seq(nn.Linear(16, 8), nn.PReLU(), nn.Linear(8, 1))
        self.alpha, self.norm = nn.Parameter(torch.zeros(4)), nn.BatchNorm1d(4, affine=False, eps=1e-3)

    def forward(self, past, item):
        k, q = self.words(past), self.words(item).unsqueeze(1).expand(-1, 5, -1)
        s = self.score(torch.cat([q, k, q - k, q * k], -1)).transpose(1, 2)
        s = torch.where((past > 0).unsqueeze(1), s, torch.zeros_like(s))
        y = torch.matmul(s, k).squeeze(1)
        p = torch.sigmoid(self.norm(y))
        return p * y + self.alpha * (1 - p) * y


@model("multi_gate_experts", "4x6")
class Mmoe(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(6, 5) for _ in range(3)])
        self.gates = nn.ParameterList([nn.Parameter(torch.randn(6, 3)) for _ in range(2)])
        self.towers = nn.ModuleList([nn.Linear(5, 1) for _ in range(2)])

    def forward(self, x):
        e = torch.stack([F.relu(m(x)) for m in self.experts])
        return [t((F.softmax(x @ g, 1).t().unsqueeze(2).expand(-1, -1, 5) * e).sum(0)) for t,
                g in zip(self.towers, self.gates)]


@model("sequence_recommender", "2x6:int64<20")
class SasRec(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8, padding_idx=0), nn.Embedding(6, 8)
        self.attention, self.norm, self.a = nn.MultiheadAttention(8, 1), nn.LayerNorm(8, eps=1e-8), nn.Conv1d(8, 8, 1)
        self.b = nn.Conv1d(8, 8, 1)

    def forward(self, x):
        y = self.words(x) * 8 ** 0.5 + self.places(torch.arange(6).repeat(2, 1))
        y = y * ~(x == 0).unsqueeze(-1)
        q = self.norm(y).transpose(0, 1)
        y = q + self.attention(q, y.transpose(0, 1), y.transpose(0, 1),
                               attn_mask=~torch.tril(torch.ones((6, 6), dtype=torch.bool)))[0]
        y = y.transpose(0, 1)
        y = y + self.b(F.relu(self.a(y.transpose(-1, -2)))).transpose(-1, -2)
        return y[:, -1, :].matmul(self.words.weight.transpose(0, 1))


@model("auto_rec", "3x12")
def auto_rec():
    return Seq(nn.Linear(12, 5), nn.Sigmoid(), nn.Linear(5, 12), nn.Hardsigmoid(), Lambda(lambda x: x * 4 + 1))


# ---- tables and series

@model("tab_net", "4x6")
class TabNet(nn.Module):
    """Masks by sparsemax: a sort, sums and a support."""
    def __init__(self):
        super().__init__()
        self.norm, self.step, self.mask = nn.BatchNorm1d(6), nn.Linear(6, 16), nn.Linear(4, 6)
        self.out = nn.Linear(4, 2)

    def sparsemax(self, z):
        s, _ = torch.sort(z, dim=-1, descending=True)
        k = torch.arange(1, 7, dtype=z.dtype)
        c = s.cumsum(-1) - 1
        support = (k * s > c).sum(-1, keepdim=True)
        tau = c.gather(-1, support - 1) / support
        return torch.clamp(z - tau, min=0)

    def forward(self, x):
        x, prior, total, a = self.norm(x), torch.ones(4, 6), 0, torch.zeros(4, 4)
        for _ in range(2):
            m = self.sparsemax(self.mask(a) * prior)
            prior = prior * (1.3 - m)
            y, a = F.glu(self.step(m * x)).chunk(2, 1)
            total = total + F.relu(y)
        return self.out(total), prior


@model("tab_transformer", "3x4:int64<6", "3x5")
class TabTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.w = nn.Embedding(24, 8), nn.Parameter(torch.randn(5, 8))
        self.b = nn.Parameter(torch.randn(5, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, batch_first=True, layer_norm_eps=1e-6)
        self.out = nn.Linear(8, 2)

    def forward(self, c, x):
        t = torch.cat([self.words(c + torch.arange(0, 24, 6)), torch.einsum("nf,fd->nfd", x, self.w) + self.b], 1)
        return self.out(F.relu(self.layer(t)[:, 0]))


@model("neural_trees", "4x6")
class Trees(nn.Module):
    """Soft decisions, multiplied along the ways to the leaves."""
    def __init__(self):
        super().__init__()
        self.cut, self.leaf = nn.Linear(6, 7), nn.Parameter(torch.randn(8, 3))

    def forward(self, x):
        p = torch.sigmoid(self.cut(x))
        both, mu, at = torch.stack([p, 1 - p], 2), torch.ones(4, 1, 1), 0
        for depth in range(3):
            mu = mu.view(4, -1, 1).repeat(1, 1, 2) * both[:, at:at + 2 ** depth]
            at += 2 ** depth
        return torch.mm(mu.view(4, 8), self.leaf.softmax(-1))


@model("n_beats", "3x12")
class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.ta = Seq(nn.Linear(12, 8), nn.ReLU()), Seq(nn.Linear(12, 8), nn.ReLU()), nn.Linear(8, 6)
        self.tb = nn.Linear(8, 8)

    def forward(self, x):
        t, u = torch.linspace(-1, 0, 12), torch.linspace(0, 1, 4)
        trend = torch.stack([t ** i for i in range(3)]), torch.stack([u ** i for i in range(3)])
        season = [torch.cat([torch.cos(2 * math.pi * torch.outer(torch.arange(1.0, 3), s)),
                             torch.sin(2 * math.pi * torch.outer(torch.arange(1.0, 3), s))]) for s in (t, u)]
        c = self.ta(self.a(x))
        x, y = x - c[:, :3] @ trend[0], c[:, 3:] @ trend[1]
        c = self.tb(self.b(x))
        return y + c[:, 4:] @ season[1], x - c[:, :4] @ season[0]


@model("tide", "2x10", "2x10x3")
class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.enc = nn.Linear(3, 2), Seq(nn.Linear(30, 12), nn.ReLU(), nn.Linear(12, 12), nn.Dropout(0.1))
        self.skip, self.dec, self.line = nn.Linear(30, 12), nn.Linear(12, 5), nn.Linear(10, 5)

    def forward(self, x, f):
        mean, std = x.mean(1, True), x.std(1, keepdim=True, unbiased=False).clamp_min(1e-4)
        x = (x - mean) / std
        y = torch.hstack([x, self.f(f).flatten(1)])
        return torch.addcmul(mean, self.dec(F.layer_norm(self.enc(y) + self.skip(y), (12,))) + self.line(x), std)


@model("deep_ar", "2x5x3")
class DeepAr(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.mu, self.sigma = nn.GRU(3, 6, batch_first=True), nn.Linear(6, 1), nn.Linear(6, 1)
        self.nu = nn.Linear(6, 1)

    def forward(self, x):
        y = self.gru(x)[0]
        mu, sigma, nu = self.mu(y), F.softplus(self.sigma(y)) + 1e-3, 2 + F.softplus(self.nu(y))
        student = torch.distributions.StudentT(nu, mu, sigma).log_prob(x[..., :1])
        normal = torch.distributions.Normal(mu, sigma)
        return student, normal.cdf(x[..., 1:2]), normal.entropy()


@model("mixture_density", "4x3", "4x2")
class Mdn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Seq(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 15))

    def forward(self, x, y):
        pi, mu, log = self.net(x).split([3, 6, 6], 1)
        normal = torch.distributions.Normal(mu.view(-1, 3, 2), log.view(-1, 3, 2).exp())
        each = normal.log_prob(y.unsqueeze(1)).sum(-1) + F.log_softmax(pi, 1)
        return torch.logsumexp(each, 1), each.softmax(1)


# ---- reinforcement

@model("dueling_dqn", "2x2x20x20")
class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(nn.Conv2d(2, 8, 8, 4), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten())
        self.value, self.gain = nn.Linear(32, 1), nn.Linear(32, 4)

    def forward(self, x):
        h = self.body(x / 255.0)
        a = self.gain(h)
        q = self.value(h) + a - a.mean(dim=1, keepdim=True)
        return q, q.argmax(dim=1, keepdim=True)


@model("categorical_dqn", "3x4", "3", "3x6")
class C51(nn.Module):
    """A distribution moved, clipped and shared between its neighbours."""
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 6)

    def forward(self, x, reward, target):
        support = torch.linspace(-2, 2, 6)
        p = F.softmax(target, -1)
        b = ((reward[:, None] + 0.9 * support).clamp(-2, 2) + 2) / 0.8
        low, high = b.floor().long().clamp(0, 5), b.ceil().long().clamp(0, 5)
        base = (torch.arange(3) * 6).unsqueeze(1)
        m = torch.zeros(18)
        m.index_add_(0, (low + base).view(-1), (p * (high + (low == high) - b)).view(-1))
        m.index_add_(0, (high + base).view(-1), (p * (b - low)).view(-1))
        return -(m.view(3, 6) * F.log_softmax(self.net(x), 1)).sum(1), (F.softmax(self.net(x), 1) * support).sum(1)


@model("gaussian_policy", "3x5", "3x2")
class Sac(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.q = nn.ModuleList([nn.Linear(7, 1), nn.Linear(7, 1)])

    def forward(self, x, noise):
        mu, log = self.body(x).chunk(2, -1)
        log = -20 + 0.5 * 22 * (torch.tanh(log) + 1)
        u = mu + noise * log.exp()
        logp = (-0.5 * noise.pow(2) - log - 0.5 * math.log(2 * math.pi)).sum(-1) - (2 *
                (math.log(2) - u - F.softplus(-2 * u))).sum(-1)
        a = torch.tanh(u)
        return torch.min(*(q(torch.cat([x, a], -1)) for q in self.q)).squeeze(-1) - 0.2 * logp, a


@model("generalised_advantage", "6x2", "7x2", "6x2:bool")
class Gae(nn.Module):
    def forward(self, reward, value, done):
        last, out, keep = torch.zeros(2), [], 1.0 - done.float()
        for t in reversed(range(6)):
            last = reward[t] + 0.99 * value[t + 1] * keep[t] - value[t] + 0.99 * 0.95 * keep[t] * last
            out.insert(0, last)
        return torch.stack(out), torch.stack(out) + value[:-1]


@model("qmix", "3x4", "3x6")
class QMix(nn.Module):
    """A hypernetwork makes the weights of the mixer, of one sign."""
    def __init__(self):
        super().__init__()
        self.w1, self.b1, self.w2 = nn.Linear(6, 20), nn.Linear(6, 5), nn.Linear(6, 5)
        self.b2 = Seq(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1))

    def forward(self, q, s):
        h = F.elu(torch.bmm(q.view(-1, 1, 4), torch.abs(self.w1(s)).view(-1, 4, 5)) + self.b1(s).view(-1, 1, 5))
        return (torch.bmm(h, self.w2(s).abs().view(-1, 5, 1)) + self.b2(s).view(-1, 1, 1)).view(-1, 1)


# ---- operators, numerics

@model("fourier_operator", "2x16x2")
class Fno(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.w, self.conv = nn.Linear(2, 6), nn.Parameter(torch.randn(6, 6, 4, 2) * 0.2), nn.Conv1d(6, 6, 1)
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        x = self.lift(x).permute(0, 2, 1)
        f = torch.fft.rfft(x)
        y = torch.zeros(2, 6, 9, dtype=torch.cfloat)
        y[:, :, :4] = torch.einsum("bix,iox->box", f[:, :, :4], torch.view_as_complex(self.w))
        return self.out(F.gelu(torch.fft.irfft(y, n=16) + self.conv(x)).permute(0, 2, 1))


@model("fourier_operator_2d", "1x8x8x3")
class Fno2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.w = nn.Linear(5, 4), nn.Parameter(torch.randn(2, 4, 4, 3, 3, dtype=torch.cfloat) * 0.2)
        self.conv, self.out = nn.Conv2d(4, 4, 1), nn.Linear(4, 1)

    def forward(self, x):
        g = torch.linspace(0, 1, 8)
        x = torch.cat((x, g.reshape(1, 8, 1, 1).repeat([1, 1, 8, 1]), g.reshape(1, 1, 8, 1).repeat([1, 8, 1, 1])), -1)
        x = self.lift(x).permute(0, 3, 1, 2)
        f = torch.fft.rfft2(x)
        y = torch.zeros(1, 4, 8, 5, dtype=torch.cfloat)
        y[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, :3, :3], self.w[0])
        y[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", f[:, :, -3:, :3], self.w[1])
        return self.out(F.gelu(torch.fft.irfft2(y, s=(8, 8)) + self.conv(x)).permute(0, 2, 3, 1))


@model("deep_o_net", "3x10", "7x2")
class DeepONet(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = Seq(nn.Linear(10, 8), nn.SiLU(), nn.Linear(8, 6))
        self.trunk = Seq(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh())
        self.bias = nn.Parameter(torch.zeros([]))

    def forward(self, u, y):
        return torch.inner(self.branch(u), self.trunk(y)) + self.bias


@model("koopman", "2x5x4")
class Koopman(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.k = Seq(nn.Linear(4, 6), nn.Tanh()), nn.Parameter(torch.randn(6, 6) * 0.2)
        self.dec = nn.Linear(6, 4)

    def forward(self, x):
        z, k = self.enc(x), torch.matrix_exp(self.k - self.k.T)
        return self.dec(torch.matmul(z, torch.linalg.matrix_power(k, 3))), (z[:, 1:] - z[:, :-1] @ k).square().mean()


@model("gaussian_process", "6x2", "6", "4x2")
class Gp(nn.Module):
    def __init__(self):
        super().__init__()
        self.length, self.noise = nn.Parameter(torch.tensor(0.3)), nn.Parameter(torch.tensor(-1.0))

    def kernel(self, a, b):
        return torch.exp(-0.5 * torch.cdist(a / self.length.exp(), b / self.length.exp()).pow(2))

    def forward(self, x, y, t):
        l = torch.linalg.cholesky(self.kernel(x, x) + self.noise.exp() * torch.eye(6))
        a = torch.cholesky_solve(y[:, None], l)
        k = self.kernel(t, x)
        v = torch.linalg.solve_triangular(l, k.T, upper=False)
        fit = -0.5 * y @ a.squeeze(1) - torch.log(torch.diagonal(l)).sum() - 3 * math.log(2 * math.pi)
        return (k @ a).squeeze(1), self.kernel(t, t) - v.T @ v, fit


@model("sinkhorn", "5x3", "6x3")
class Sinkhorn(nn.Module):
    def forward(self, x, y):
        c = torch.cdist(x, y, p=1)
        u, v, a, b = torch.zeros(5), torch.zeros(6), torch.full((5,), -math.log(5)), torch.full((6,), -math.log(6))
        for _ in range(5):
            u = 0.5 * (a - torch.logsumexp((v[None] - c) / 0.5, 1))
            v = 0.5 * (b - torch.logsumexp((u[:, None] - c) / 0.5, dim=0))
        p = torch.exp((u[:, None] + v[None] - c) / 0.5)
        return (p * c).sum(), p


@model("equilibrium", "3x5")
class Equilibrium(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(5, 5) * 0.1), nn.Linear(5, 5)

    def forward(self, x):
        z, b = torch.zeros_like(x), self.u(x)
        for _ in range(6):
            z = torch.tanh(torch.addmm(b, z, self.w))
        j = torch.einsum("ni,ij->nij", 1 - z ** 2, self.w.t())
        return z, torch.linalg.solve(torch.eye(5) - j, z)


@model("k_means", "12x2")
class KMeans(nn.Module):
    def forward(self, x):
        mid = x[:3]
        for _ in range(4):
            near = torch.cdist(x, mid).argmin(1)
            one = (near[None] == torch.arange(3)[:, None]).float()
            mid = one @ x / one.sum(1, keepdim=True).clamp(min=1.0)
        return mid, near, torch.bincount(near, minlength=3)


@model("power_iteration", "6x4")
class Power(nn.Module):
    def forward(self, x):
        x = x - x.mean(0)
        cov, v, out = x.t().mm(x) / 5, torch.ones(4), []
        for _ in range(2):
            for _ in range(6):
                v = F.normalize(cov.mv(v), dim=0)
            e = v.dot(cov @ v)
            cov = cov - e * torch.outer(v, v)
            out.append(e)
        return torch.stack(out), v.abs(), torch.corrcoef(x.t()), torch.cov(x.t())


@model("spline_network", "5x3")
class Kan(nn.Module):
    """Splines on edges, by the recursion of Cox and de Boor."""
    def __init__(self):
        super().__init__()
        self.base, self.coef = nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(4, 3, 7) * 0.3)
        self.register_buffer("grid", torch.arange(-3, 8).float().mul(0.5).sub(1).expand(3, -1).contiguous())

    def forward(self, x):
        g, y = self.grid, x.unsqueeze(-1)
        b = ((y >= g[:, :-1]) & (y < g[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            b = (y - g[:, :-(k + 1)]) / (g[:, k:-1] - g[:, :-(k + 1)]) * b[:, :,
                    :-1] + (g[:, k + 1:] - y) / (g[:, k + 1:] - g[:, 1:-k]) * b[:, :, 1:]
        return F.linear(F.silu(x), self.base) + F.linear(b.reshape(5, -1), self.coef.reshape(4, -1))


@model("radial_basis", "5x3")
class Rbf(nn.Module):
    def __init__(self):
        super().__init__()
        self.mid, self.log, self.out = nn.Parameter(torch.randn(6, 3)), nn.Parameter(torch.zeros(6)), nn.Linear(6, 2)

    def forward(self, x):
        d = (x.unsqueeze(1) - self.mid.unsqueeze(0)).pow(2).sum(-1).pow(0.5) / torch.exp(self.log)
        return self.out(torch.exp(-d.pow(2))), torch.reciprocal(1 + d), torch.special.erf(d), torch.lgamma(d +
                1), torch.special.i0(d)


@model("hypernetwork", "3x4", "2x5")
class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Linear(5, 24), nn.Linear(5, 6)

    def forward(self, x, task):
        return torch.baddbmm(self.b(task).unsqueeze(1), x.expand(2, 3, 4), self.w(task).view(2, 4, 6)).relu()


@model("hopfield", "2x8", "5x8")
class Hopfield(nn.Module):
    def forward(self, x, patterns):
        for _ in range(3):
            x = torch.softmax(2.0 * x @ patterns.T, -1) @ patterns
        p = patterns.sign()
        w = (p.T @ p / 8).fill_diagonal_(0)
        return x, torch.sign(x @ w), -0.5 * torch.einsum("ni,ij,nj->n", x, w, x)


@model("tensor_network", "3x4", "3x4")
class TensorNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear, self.g1 = nn.Bilinear(4, 4, 3), nn.Parameter(torch.randn(2, 2, 3))
        self.g2, self.g3 = nn.Parameter(torch.randn(3, 2, 2, 2)), nn.Parameter(torch.randn(2, 3))

    def forward(self, a, b):
        w = torch.tensordot(torch.tensordot(self.g1, self.g2, dims=([2], [0])), self.g3, dims=1).reshape(4, -1)
        return torch.tanh(self.bilinear(a, b)), a @ w[:, :4], torch.kron(a[:1],
                b[:1]), torch.linalg.multi_dot([a.t(), b, w])


@model("prototypes", "6x5", "4x5")
class Prototypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.relation = nn.Linear(5, 4), Seq(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, support, query):
        proto = self.net(support).view(3, 2, 4).mean(1)
        q = self.net(query)
        pairs = torch.cat([q.unsqueeze(1).expand(4, 3, 4), proto.unsqueeze(0).expand(4, 3, 4)], -1)
        return -(q[:, None] - proto).square().sum(-1), self.relation(pairs).squeeze(-1), F.cosine_similarity(q[:,
                None], proto[None], dim=2)


@model("quantised_net", "2x3x12x12")
class Quantised(nn.Module):
    """Weights and activations rounded to 8 bits on their way, as in training aware of it."""
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 6, 3), nn.Linear(150, 4)

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
        w = torch.fake_quantize_per_channel_affine(self.conv.weight, torch.full((6,), 0.004),
                                                   torch.zeros(6, dtype=torch.int32), 0, -127, 127)
        x = F.max_pool2d(F.relu(F.conv2d(x, w, self.conv.bias)), 2)
        s = self.fc.weight.abs().amax(1, keepdim=True) / 7
        w = torch.clamp(torch.round(self.fc.weight / s), -8, 7).to(torch.int8)
        return F.linear(torch.fake_quantize_per_tensor_affine(x, 0.03, 0, 0, 255).flatten(1), w.float() * s,
                        self.fc.bias)


@model("ternary_integers", "3x8")
class Ternary(nn.Module):
    """Products of integers; bits packed and shifted."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 8))

    def forward(self, x):
        s = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        q = (x * s).round().clamp(-128, 127).to(torch.int32)
        m = self.w.abs().mean()
        w = (self.w / m).round().clamp(-1, 1).to(torch.int32)
        y = (q.unsqueeze(1) * w).sum(-1).to(torch.float32) / s * m
        packed = torch.sum((w > 0).to(torch.int32) << torch.arange(8, dtype=torch.int32), -1)
        return y, packed, torch.bitwise_and(packed, 15), torch.bitwise_xor(packed, packed >> 2), packed.remainder(7)


@model("search_and_sets", "20:int64<9", "12")
class Sets(nn.Module):
    """Sizes that data decides, made fixed again."""
    def forward(self, x, y):
        hist = torch.bincount(x, minlength=9)
        most, which = torch.mode(x)
        order = torch.argsort(y, stable=True)
        ranks = torch.zeros(12, dtype=torch.long).scatter_(0, order, torch.arange(12))
        return hist, most, ranks, torch.cummax(y, 0)[0], torch.cummin(y, 0).indices, torch.isin(x,
                torch.tensor([1, 4])), torch.logcumsumexp(y, 0), torch.trapz(y), y.nansum(), torch.count_nonzero(x)


@model("image_augment", "2x3x10x10")
class Augment(nn.Module):
    def forward(self, x):
        x = x.clamp(0, 1)
        grey = x.mean(1, keepdim=True)
        bright = torch.clamp(x * 1.2 + 0.1, 0.0, 1.0)
        blend = torch.lerp(grey.expand_as(x), bright, 0.7)
        cut = blend.clone()
        cut[:, :, 2:5, 3:7] = 0.5
        y = torch.rot90(cut, 1, (-2, -1)).flip(-1)
        poster = torch.floor(y * 8) / 8
        solar = torch.where(poster < 0.6, poster, 1 - poster)
        crop = F.interpolate(solar[:, :, 1:9, 1:9], size=(10, 10), mode="nearest-exact")
        return F.interpolate(crop, size=(5, 5), mode="area"), F.interpolate(solar, size=(6, 6), mode="bilinear",
                antialias=True), (crop * 255).round().to(torch.uint8)


@model("lambda_layer", "1x8x6x6")
class LambdaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Conv2d(8, 8, 1, bias=False), nn.Conv2d(8, 4, 1, bias=False)
        self.v, self.norm = nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(8)
        self.place = nn.Conv3d(1, 4, (1, 3, 3), padding=(0, 1, 1))

    def forward(self, x):
        q = self.norm(self.q(x)).view(1, 2, 4, 36)
        k, v = self.k(x).flatten(2).softmax(-1), self.v(x)
        content = torch.einsum("nku,nvu->nkv", k, v.flatten(2))
        place = self.place(v.unsqueeze(1)).flatten(3)
        return (torch.einsum("nhkm,nkv->nhvm", q, content) +
                torch.einsum("nhkm,nkvm->nhvm", q, place)).contiguous().view(1, 8, 6, 6)


@model("siamese", "2x1x14x14", "2x1x14x14")
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Seq(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.Flatten(),
                        nn.Linear(72, 8), nn.Sigmoid())
        self.out = nn.Linear(8, 1)

    def forward(self, a, b):
        a, b = self.body(a), self.body(b)
        return torch.sigmoid(self.out(torch.abs(a - b))), F.pairwise_distance(a, b,
                keepdim=True), 1 - F.cosine_similarity(a, b)


@model("tracker", "1x3x16x16", "1x3x32x32")
class Tracker(nn.Module):
    """A picture's features are the kernel that is searched for in another's."""
    def __init__(self):
        super().__init__()
        self.body = Seq(nn.Conv2d(3, 6, 3, 2), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 6, 3))

    def forward(self, z, x):
        z, x = self.body(z), self.body(x)
        depth = F.conv2d(x.view(1, 6, 13, 13), z.view(6, 1, 5, 5), groups=6)
        score = F.conv2d(x, z) * 0.001
        best = score.flatten().argmax()
        window = torch.outer(torch.hann_window(9, periodic=False), torch.hann_window(9, periodic=False))
        return depth, score * 0.7 + window * 0.3, torch.stack([torch.div(best, 9, rounding_mode="trunc"), best % 9])


class SplineEdges(nn.Module):
    """A function of its own on each edge: B-splines of degree 3 on a grid, and silu."""
    def __init__(self, inputs, outputs, grid=4):
        super().__init__()
        knots = torch.arange(-3, grid + 4) * (2 / grid) - 1
        self.register_buffer("knots", knots.expand(inputs, -1).contiguous())
        self.base = nn.Parameter(torch.randn(outputs, inputs) * 0.3)
        self.spline = nn.Parameter(torch.randn(outputs, inputs, grid + 3) * 0.3)
        self.scale = nn.Parameter(torch.rand(outputs, inputs))

    def bases(self, x):
        x, t = x.unsqueeze(-1), self.knots
        b = ((x >= t[:, :-1]) & (x < t[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            up = (x - t[:, :-k - 1]) / (t[:, k:-1] - t[:, :-k - 1])
            down = (t[:, k + 1:] - x) / (t[:, k + 1:] - t[:, 1:-k])
            b = up * b[..., :-1] + down * b[..., 1:]
        return b

    def forward(self, x):
        edges = (self.spline * self.scale.unsqueeze(-1)).flatten(1)
        return F.linear(F.silu(x), self.base) + F.linear(self.bases(x).flatten(1), edges)


@model("kolmogorov_arnold", "4x3")
class KolmogorovArnold(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = SplineEdges(3, 5), SplineEdges(5, 2)

    def forward(self, x):
        return self.b(torch.tanh(self.a(torch.tanh(x))))


@model("tensor_train", "2x3x4", "2x4x5")
class TensorTrain(nn.Module):
    """Weights as a train of cores, and as a small core with a matrix on each side: ten letters in one product."""
    def __init__(self):
        super().__init__()
        sizes = (1, 3, 2, 2), (2, 4, 3, 2), (2, 5, 2, 1)
        self.cores = nn.ParameterList([nn.Parameter(torch.randn(s)) for s in sizes])
        self.core = nn.Parameter(torch.randn(2, 2, 2))
        self.sides = nn.ParameterList([nn.Parameter(torch.randn(n, 2)) for n in (3, 4, 5)])

    def forward(self, x, y):
        z = torch.einsum("bij,bjk->bijk", x, y)
        train = torch.einsum("bijk,xipc,cjqd,dkry->bpqr", z, *self.cores)
        whole = torch.einsum("abc,ia,jb,kc->ijk", self.core, *self.sides)
        return train, torch.tensordot(z, whole, dims=([1, 2, 3], [0, 1, 2])), torch.einsum("bii->b", x @ x.mT)


@model("quaternion_net", "2x8x6x6", "5x4")
class QuaternionNet(nn.Module):
    """A convolution by the Hamilton product; rotations, and what lies a third of the way between two of them."""
    def __init__(self):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.randn(2, 2, 3, 3) * 0.3) for _ in range(4)])

    def forward(self, x, q):
        r, i, j, k = self.parts
        rows = (r, -i, -j, -k), (i, r, -k, j), (j, k, r, -i), (k, -j, i, r)
        y = F.conv2d(x, torch.cat([torch.cat(row, 1) for row in rows], 0), padding=1)
        q = F.normalize(q, dim=-1)
        w, v = q[:, :1], q[:, 1:]
        axes = torch.eye(3).unsqueeze(0)
        cross = torch.cross(v.unsqueeze(1).expand(-1, 3, -1), axes.expand(5, -1, -1), dim=-1)
        turned = axes + 2 * (w.unsqueeze(1) * cross + torch.cross(v.unsqueeze(1).expand(-1, 3, -1), cross, dim=-1))
        angle = torch.acos((q[:-1] * q[1:]).sum(-1, keepdim=True).abs().clamp(max=0.9995))
        between = (torch.sin(angle * 2 / 3) * q[:-1] + torch.sin(angle / 3) * q[1:]) / torch.sin(angle)
        return y, turned, between, torch.linalg.det(turned), 2 * torch.atan2(v.norm(dim=-1), w.squeeze(-1))


@model("soft_rasteriser", "6x3", "4x3:int64<6")
class SoftRasteriser(nn.Module):
    """Triangles that cover a pixel by a sigmoid of their distance, lit by spherical harmonics of their normals."""
    def forward(self, vertices, faces):
        t = vertices[faces]
        x, y, z = F.normalize(torch.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0], dim=-1), dim=-1, eps=1e-6).unbind(-1)
        light = torch.stack([torch.ones_like(x), y, z, x, x * y, y * z, 3 * z ** 2 - 1, x * z, x ** 2 - y ** 2], -1)
        rows, columns = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
        a = t[:, None, :, :2]
        edge, to = torch.roll(a, -1, 2) - a, torch.stack([columns, rows], -1).view(1, 64, 1, 2) - a
        side = edge[..., 0] * to[..., 1] - edge[..., 1] * to[..., 0]
        along = ((to * edge).sum(-1) / (edge * edge).sum(-1).clamp(min=1e-4)).clamp(0, 1)
        distance = ((to - along[..., None] * edge) ** 2).sum(-1).amin(-1)
        inside = (side >= 0).all(-1) | (side <= 0).all(-1)
        cover = torch.sigmoid(torch.where(inside, distance, -distance) / 0.05)
        depth = t[..., 2].mean(-1)
        weight = cover * torch.exp((depth[:, None] - depth.max()) / 0.5)
        weight = weight / (weight.sum(0, keepdim=True) + 1e-3)
        return 1 - torch.prod(1 - cover, 0).view(8, 8), torch.einsum("fp,fk->pk", weight, light)


@model("hidden_markov", "7x4")
class HiddenMarkov(nn.Module):
    """The likeliest states, traced back through what each step chose."""
    def __init__(self):
        super().__init__()
        self.change = nn.Parameter(torch.randn(4, 4))

    def forward(self, scores):
        best = total = scores[0]
        chosen = []
        for score in scores[1:]:
            value, index = (best[:, None] + self.change).max(0)
            best, total = value + score, torch.logsumexp(total[:, None] + self.change, 0) + score
            chosen.append(index)
        path = [best.argmax()]
        for index in reversed(chosen):
            path.append(index[path[-1]])
        count = torch.zeros(4, 2)
        for i, state in enumerate(path):
            count[state, i % 2] += 1
        return torch.stack(path[::-1]), best.max(), total.logsumexp(0), count


@model("cellular_automata", "8x8:int64<2", "8x8")
def cellular_automata():
    """Life on a torus, and spins of a magnet, black squares before white ones."""
    def run(life, chance):
        around = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
        black = (torch.arange(8)[:, None] + torch.arange(8)) % 2 == 0
        spin = life * 2 - 1
        for is_white in (False, True):
            count = sum(life.roll(shift, (0, 1)) for shift in around)
            life = (count == 3).long() | ((count == 2).long() & life)
            field = sum(spin.roll(*by) for by in ((1, 0), (-1, 0), (1, 1), (-1, 1)))
            flipped = torch.where(chance.sigmoid() < torch.sigmoid(0.8 * field), 1, -1)
            spin = torch.where(black ^ is_white, flipped, spin)
        return life ^ 3, life | 8, spin, 7 % (life + 4)
    return Lambda(run)


@model("analytic_signal", "2x32", "9")
def analytic_signal():
    def run(x, kernel):
        n = x.shape[-1] + kernel.shape[0] - 1
        filtered = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(kernel, n).conj(), n)
        half = torch.fft.fft(x) * torch.cat([torch.ones(1), 2 * torch.ones(15), torch.ones(1), torch.zeros(15)])
        signal = torch.fft.ifft(half)
        return filtered, signal.abs(), signal.conj().imag, torch.fft.ihfft(x).imag, torch.diff(signal.angle())
    return Lambda(run)
