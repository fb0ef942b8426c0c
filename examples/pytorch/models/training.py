"""Steps of training: losses with their gradients, traced through autograd, and what optimisers do with them."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import conv_norm, model

Seq = nn.Sequential


class Step(nn.Module):
    """A loss and the gradients of all parameters; `update` says what they become."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def loss(self, *args):
        return F.mse_loss(self.net(args[0]), args[1])

    def update(self, parameters, gradients):
        return gradients

    def forward(self, *args):
        with torch.enable_grad():
            parameters = [p for p in self.parameters() if p.requires_grad]
            loss = self.loss(*args)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        kept = [(p.detach(), g.detach()) for p, g in zip(parameters, gradients) if g is not None]
        return [loss.detach()] + list(self.update(*zip(*kept)))


def mlp(*sizes, act=nn.Tanh):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return Seq(*layers[:-1])


@model("sgd_step", "6x4", "6x2")
def sgd_step():
    class Sgd(Step):
        def update(self, ps, gs):
            return [p - 0.1 * g for p, g in zip(ps, gs)]
    return Sgd(mlp(4, 8, 2))


@model("momentum_step", "6x4", "6x2")
def momentum_step():
    class Momentum(Step):
        def __init__(self, net):
            super().__init__(net)
            for i, p in enumerate(net.parameters()):
                self.register_buffer("v%d" % i, torch.randn_like(p) * 0.1)

        def update(self, ps, gs):
            out = []
            for i, (p, g) in enumerate(zip(ps, gs)):
                v = getattr(self, "v%d" % i)
                g = g.add(p, alpha=1e-2)
                v.mul_(0.9).add_(g, alpha=1 - 0.1)
                out.append(p.sub(g.add(v, alpha=0.9), alpha=0.05))
            return out
    return Momentum(mlp(4, 8, 2, act=nn.ReLU))


@model("adam_step", "6x4", "6x2")
def adam_step():
    class Adam(Step):
        def __init__(self, net):
            super().__init__(net)
            for i, p in enumerate(net.parameters()):
                self.register_buffer("m%d" % i, torch.randn_like(p) * 0.1)
                self.register_buffer("v%d" % i, torch.rand_like(p) * 0.1)

        def update(self, ps, gs):
            out = []
            for i, (p, g) in enumerate(zip(ps, gs)):
                m, v = getattr(self, "m%d" % i), getattr(self, "v%d" % i)
                m.lerp_(g, 0.1)
                v.mul_(0.999).addcmul_(g, g.conj(), value=0.001)
                root = (v.sqrt() / math.sqrt(1 - 0.999 ** 3)).add_(1e-8)
                out.append(torch.addcdiv(p * (1 - 1e-3 * 0.01), m, root, value=-1e-3 / (1 - 0.9 ** 3)))
            return out
    return Adam(mlp(4, 8, 2, act=nn.GELU))


@model("lion_step", "6x4", "6x2")
def lion_step():
    class Lion(Step):
        def update(self, ps, gs):
            total = torch.norm(torch.stack([torch.norm(g, 2.0) for g in gs]), 2.0)
            clip = torch.clamp(1.0 / (total + 1e-6), max=1.0)
            return [p * 0.99 - 0.01 * torch.sign(g * clip) for p, g in zip(ps, gs)]
    return Lion(mlp(4, 8, 2, act=nn.SiLU))


@model("rmsprop_step", "6x4", "6x2")
def rmsprop_step():
    class Rms(Step):
        def loss(self, x, y):
            return F.smooth_l1_loss(self.net(x), y, beta=0.7)

        def update(self, ps, gs):
            return [p - 0.01 * g * torch.rsqrt(0.01 * g.square() + 1e-8) for p, g in zip(ps, gs)]
    return Rms(mlp(4, 8, 2, act=nn.ELU))


@model("muon_step", "6x4", "6x2")
def muon_step():
    class Muon(Step):
        def update(self, ps, gs):
            out = []
            for p, g in zip(ps, gs):
                if g.dim() == 2:
                    x = g / (g.norm() + 1e-7)
                    x = x.mT if x.size(0) > x.size(1) else x
                    for _ in range(3):
                        a = x @ x.mT
                        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                    g = x.mT if g.size(0) > g.size(1) else x
                out.append(torch.sub(p, g, alpha=0.02 * max(1, g.size(0) / g.size(-1)) ** 0.5))
            return out
    return Muon(mlp(4, 8, 2, act=nn.Softplus))


@model("lbfgs_direction", "12", "4x12", "4x12")
class Lbfgs(nn.Module):
    def forward(self, g, s, y):
        y = y * 0.1 + s
        q, al = -g, []
        ro = 1.0 / (y * s).sum(1)
        for i in range(3, -1, -1):
            al.append(s[i].dot(q) * ro[i])
            q = q.add(y[i] * -al[-1])
        d = q * (torch.dot(y[3], s[3]) / y[3].dot(y[3]))
        for i in range(4):
            d = d.add(s[i] * (al[3 - i] - y[i].dot(d) * ro[i]))
        return d, g.dot(d)


@model("image_classifier_step", "4x3x12x12", "4:int64<5")
def image_classifier_step():
    class Cls(Step):
        def loss(self, x, y):
            return F.cross_entropy(self.net(x), y, label_smoothing=0.1)
    return Cls(Seq(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, 2, 1, groups=2),
                   nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)))


@model("batch_norm_step", "4x3x8x8", "4:int64<3")
def batch_norm_step():
    class Cls(Step):
        def loss(self, x, y):
            self.net[1].training = True
            return F.nll_loss(F.log_softmax(self.net(x), 1), y)
    return Cls(Seq(nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU6(), nn.AvgPool2d(2), nn.Flatten(),
                   nn.Linear(54, 3)))


@model("transformer_step", "2x6:int64<20", "2x6:int64<20")
def transformer_step():
    class Lm(Step):
        def __init__(self):
            super().__init__(None)
            self.words, self.norm, self.qkv = nn.Embedding(20, 12), nn.LayerNorm(12), nn.Linear(12, 36)
            self.o, self.ff = nn.Linear(12, 12), Seq(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))
            self.last = nn.LayerNorm(12)

        def loss(self, x, y):
            x = self.words(x)
            q, k, v = (t.view(2, 6, 2, 6).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
            s = (q @ k.transpose(-1, -2) / 6 ** 0.5).masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
            x = x + self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(2, 6, 12))
            x = self.last(x + self.ff(x))
            return F.cross_entropy(F.linear(x, self.words.weight).view(-1, 20), y.view(-1), ignore_index=0)
    return Lm()


@model("lstm_step", "4x2x3", "2:int64<4")
def lstm_step():
    class Rnn(Step):
        def __init__(self):
            super().__init__(None)
            self.w, self.u, self.out = nn.Linear(3, 20), nn.Linear(5, 20), nn.Linear(5, 4)

        def loss(self, x, y):
            h = c = torch.zeros(2, 5)
            for t in range(4):
                i, f, g, o = (self.w(x[t]) + self.u(h)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            return F.cross_entropy(self.out(h), y, weight=torch.tensor([1.0, 2, 0.5, 1]))
    return Rnn()


@model("vae_step", "3x8", "3x4")
def vae_step():
    class Elbo(Step):
        def __init__(self):
            super().__init__(None)
            self.encode, self.decode = mlp(8, 10, 8), mlp(4, 10, 8, act=nn.Softsign)

        def loss(self, x, noise):
            mu, log = self.encode(x).split(4, 1)
            y = self.decode(mu + noise * (log / 2).exp())
            rest = 0.5 * (mu ** 2 + log.exp() - log - 1).sum(1).mean()
            return F.binary_cross_entropy_with_logits(y, torch.sigmoid(x),
                                                      reduction="sum") / 3 + rest
    return Elbo()


@model("gan_losses", "4x3", "4x5")
def gan_losses():
    class Gan(Step):
        def __init__(self):
            super().__init__(None)
            self.g, self.d = mlp(3, 8, 5, act=nn.ReLU), Seq(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

        def loss(self, z, real):
            fake = self.g(z)
            mid = torch.lerp(real, fake, 0.3)
            slope = torch.autograd.grad(self.d(mid).sum(), mid, create_graph=True)[0]
            return self.d(fake).mean() - self.d(real).mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
    return Gan()


@model("contrastive_step", "4x6", "4x6")
def contrastive_step():
    class Nce(Step):
        def loss(self, a, b):
            a, b = F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)
            s = a @ b.t() / 0.2
            y = torch.arange(4)
            return (F.cross_entropy(s, y) + F.cross_entropy(s.t(), y)) / 2
    return Nce(mlp(6, 8, 4, act=nn.Mish))


@model("distillation_step", "5x6")
def distillation_step():
    class Distil(Step):
        def __init__(self):
            super().__init__(mlp(6, 6, 4, act=nn.Hardswish))
            self.teacher = mlp(6, 12, 4)
            self.teacher.requires_grad_(False)

        def loss(self, x):
            return F.kl_div(F.log_softmax(self.net(x) / 2, 1), F.softmax(self.teacher(x) / 2, 1),
                            reduction="batchmean") * 4
    return Distil()


@model("focal_step", "4x2x6x6", "4x6x6:int64<3")
def focal_step():
    class Focal(Step):
        def loss(self, x, y):
            z = self.net(x)
            ce = F.cross_entropy(z, y, reduction="none")
            p = z.softmax(1).gather(1, y.unsqueeze(1)).squeeze(1)
            one = torch.stack([(y == i).float() for i in range(3)], 1)
            soft = torch.sigmoid(z)
            dice = 1 - (2 * (soft * one).sum((0, 2, 3)) + 1) / (soft.sum((0, 2, 3)) + one.sum((0, 2, 3)) + 1)
            return ((1 - p) ** 2 * ce).mean() + dice.mean()
    return Focal(Seq(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1)))


@model("maml_step", "5x3", "5x1", "5x3", "5x1")
class Maml(nn.Module):
    """A step within, and the gradient through it."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(8, 3) * 0.5), nn.Parameter(torch.zeros(8))
        self.c, self.d = nn.Parameter(torch.randn(1, 8) * 0.5), nn.Parameter(torch.zeros(1))

    def net(self, x, p):
        return F.linear(torch.tanh(F.linear(x, p[0], p[1])), p[2], p[3])

    def forward(self, x, y, x2, y2):
        with torch.enable_grad():
            p = [self.a, self.b, self.c, self.d]
            g = torch.autograd.grad(F.mse_loss(self.net(x, p), y), p, create_graph=True)
            q = [w - 0.1 * d for w, d in zip(p, g)]
            loss = F.mse_loss(self.net(x2, q), y2)
            return [loss.detach()] + [d.detach() for d in torch.autograd.grad(loss, p)]


@model("physics_informed", "8x2")
class Pinn(nn.Module):
    """The residual of Burgers' equation: second derivatives by the input."""
    def __init__(self):
        super().__init__()
        self.net = mlp(2, 10, 10, 1)

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            u = self.net(x)
            du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
            ddu = torch.autograd.grad(du[:, 0].sum(), x)[0]
        return (du[:, 1:] + u * du[:, :1] - 0.01 * ddu[:, :1]).detach(), u.detach()


@model("hamiltonian", "5x4")
class Hamiltonian(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(4, 12, 1, act=nn.Tanh)
        self.register_buffer("turn", torch.tensor([[0.0, 1], [-1, 0]]).kron(torch.eye(2)))

    def forward(self, x):
        with torch.enable_grad():
            for _ in range(2):
                y = x.detach().requires_grad_()
                x = y + 0.1 * torch.autograd.grad(self.net(y).square().sum(), y)[0] @ self.turn.t()
        return x.detach()


@model("policy_gradient_step", "6x4", "6:int64<3", "6", "6")
def policy_gradient_step():
    class Ppo(Step):
        def __init__(self):
            super().__init__(None)
            self.body, self.policy, self.value = Seq(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 3), nn.Linear(8, 1)

        def loss(self, x, a, old, adv):
            h = self.body(x)
            logp = F.log_softmax(self.policy(h), -1)
            ratio = torch.exp(logp.gather(1, a[:, None]).squeeze(1) - F.logsigmoid(old))
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            gain = torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
            entropy = -(logp.exp() * logp).sum(-1).mean()
            return -gain + 0.5 * F.mse_loss(self.value(h).squeeze(-1), adv) - 0.01 * entropy
    return Ppo()


@model("word_vectors_step", "5:int64<12", "5:int64<12", "5x3:int64<12")
def word_vectors_step():
    class SkipGram(Step):
        def __init__(self):
            super().__init__(None)
            self.inner, self.outer = nn.Embedding(12, 6), nn.Embedding(12, 6)

        def loss(self, word, near, far):
            a, b, c = self.inner(word), self.outer(near), self.outer(far)
            return -(F.logsigmoid((a * b).sum(1)) +
                     F.logsigmoid(-torch.bmm(c, a.unsqueeze(2)).squeeze(2)).sum(1)).mean()
    return SkipGram()


@model("graph_step", "6x4", "6x6", "6:int64<3")
def graph_step():
    class Gcn(Step):
        def __init__(self):
            super().__init__(None)
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)

        def loss(self, x, adj, y):
            adj = (adj + adj.t() > 0.5).float() + torch.eye(6)
            d = adj.sum(1).rsqrt()
            adj = d[:, None] * adj * d[None]
            return F.nll_loss(F.log_softmax(adj @ self.b(F.relu(adj @ self.a(x))), 1), y)
    return Gcn()


@model("segmentation_step", "1x2x8x8", "1x8x8:int64<2")
def segmentation_step():
    class Seg(Step):
        def loss(self, x, y):
            return F.cross_entropy(self.net(x), y)
    return Seg(Seq(nn.Conv2d(2, 6, 3, 2, 1), nn.GroupNorm(2, 6), nn.SiLU(), nn.ConvTranspose2d(6, 4, 2, 2),
                   nn.Hardtanh(), nn.Conv2d(4, 2, 1)))


@model("saliency", "1x3x12x12")
class Saliency(nn.Module):
    """Gradients by the picture, and maps weighted by gradients."""
    def __init__(self):
        super().__init__()
        self.body, self.out = conv_norm(3, 8, 3), nn.Linear(8, 4)

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            maps = self.body(x)
            top = self.out(maps.mean((2, 3))).max(1)[0].sum()
            gx, gm = torch.autograd.grad(top, (x, maps))
        cam = F.relu((gm.mean((2, 3), keepdim=True) * maps).sum(1))
        return gx.abs().amax(1), (cam / cam.amax((1, 2), keepdim=True)).detach()


@model("losses", "5x4", "5x4", "5:int64<4")
class Losses(nn.Module):
    """One of each, with their gradients."""
    def forward(self, x, y, c):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            t = torch.sign(y[:, 0])
            losses = [F.l1_loss(x, y), F.huber_loss(x, y, delta=0.8), F.soft_margin_loss(x, torch.sign(y)),
                      F.margin_ranking_loss(x[:, 0], x[:, 1], t, 0.2),
                      F.hinge_embedding_loss(x[:, 0], t), F.cosine_embedding_loss(x, y, t,
                              0.1), F.triplet_margin_loss(x, y, y.roll(1, 0), swap=True), F.poisson_nll_loss(x,
                              y.abs()),
                      F.multilabel_soft_margin_loss(x, (y > 0).float())]
            loss = torch.stack(losses)
            g = torch.autograd.grad(loss.sum(), x)[0]
        return loss.detach(), g


@model("speech_step", "9x2x5", "2x3:int64<4")
def speech_step():
    """Connectionist temporal classification of frames, its gradient spelt out."""
    class Speech(Step):
        def loss(self, frames, labels):
            scores = self.net(frames).log_softmax(-1)
            lengths = torch.tensor([9, 7]), torch.tensor([3, 2])
            return F.ctc_loss(scores, labels + 1, *lengths) + F.ctc_loss(scores, labels + 1, *lengths,
                                                                         reduction="sum", zero_infinity=True)
    return Speech(mlp(5, 8, 5))


@model("spatial_transformer_step", "2x2x7x6", "2x2x5x5")
def spatial_transformer_step():
    class Aligned(Step):
        def loss(self, picture, wanted):
            theta = torch.eye(2, 3) + 0.1 * self.net(picture.mean((2, 3))).view(2, 2, 3)
            grid = F.affine_grid(theta, [2, 2, 5, 5], align_corners=False)
            seen = [F.grid_sample(picture, grid, *how, align_corners=False) for how in (
                ("bilinear", "zeros"), ("bicubic", "border"), ("bilinear", "reflection"))]
            return F.mse_loss(sum(seen), wanted)
    return Aligned(mlp(2, 8, 6))


@model("borders_and_sizes_step", "1x2x6x5")
def borders_and_sizes_step():
    """Padding, resizing and pools that are linear along each dim."""
    class Borders(Step):
        def loss(self, x):
            y = self.net(x)
            y = F.pad(y, (1, 2, 0, 2), "reflect") * 0.5 + F.pad(y, (2, 1, 1, 1), "replicate")
            modes = "bilinear", "bicubic", "nearest", "nearest-exact"
            sizes = [F.interpolate(y, size=(7, 9), mode=mode) for mode in modes]
            sizes.append(F.interpolate(y, scale_factor=1.3, mode="bilinear", align_corners=True)[..., :7, :9])
            y = torch.stack(sizes, 2)
            y = F.avg_pool3d(F.pad(y, (0, 0, 1, 0, 1, 1), "replicate"), 2, (1, 2, 1), ceil_mode=True)
            wide = F.interpolate(y, scale_factor=1.5, mode="trilinear")
            y = F.max_pool3d(wide, 2) + F.adaptive_max_pool3d(y, F.max_pool3d(wide, 2).shape[2:])
            return F.adaptive_avg_pool3d(y, (2, 1, 3)).square().sum() + F.adaptive_max_pool2d(y[:, 0], (2, 3)).sum()
    return Borders(nn.Conv2d(2, 3, 3, padding=1))


@model("metric_learning_step", "6x4", "6:int64<3")
def metric_learning_step():
    class Metric(Step):
        def loss(self, x, labels):
            y = self.net(x)
            apart = torch.cdist(y, y.flip(0)) + torch.cdist(y, y.roll(1, 0), p=1.0)
            windows = y.unfold(1, 3, 2).prod(-1).sum() + y.unfold(0, 2, 1).amax(-1).sum()
            return apart.mean() + F.pdist(y).logsumexp(0) + windows + F.multi_margin_loss(y, labels, p=2, margin=0.7)
    return Metric(mlp(4, 8, 5))


@model("bag_of_words_step", "9:int64<12", "9")
def bag_of_words_step():
    class Words(Step):
        def loss(self, words, weights):
            bags = torch.tensor([0, 2, 2, 6])
            means = self.net[1](F.embedding_bag(words, self.net[0].weight, bags, mode="mean", padding_idx=3))
            most = self.net[1](F.embedding_bag(words, self.net[0].weight, bags, mode="max"))
            scales = torch.tanh(weights * self.net[1].bias[0])
            sums = F.embedding_bag(words, self.net[0].weight, bags, mode="sum", per_sample_weights=scales)
            return F.softplus(means).sum() + most.square().sum() + self.net[1](sums).cos().sum()
    return Words(Seq(nn.Embedding(12, 4), nn.Linear(4, 3)))


@model("complex_matrix_step", "3x4", "3x4")
def complex_matrix_step():
    """Numbers whose gradient is complex, and determinants."""
    class Phases(Step):
        def loss(self, re, im):
            z = torch.complex(re, im) @ torch.complex(self.net.weight, self.net.weight.flip(0))
            volume = torch.linalg.slogdet(self.net.weight + 3 * torch.eye(4))[1] + torch.det(self.net.weight)
            return z.abs().sum() + z.angle().sin().sum() + (z * 2j).real.mean() + volume
    return Phases(nn.Linear(4, 4))
