"""Graphs, sets and point clouds. Edges are two rows of numbers of nodes."""
import torch
import torch.nn.functional as F
from torch import nn
from . import model

Seq = nn.Sequential


@model("gcn", "6x5", "2x10:int64<6", half=True)
class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x, edges):
        adj = torch.zeros(6, 6).index_put((edges[0], edges[1]), torch.ones(10)) + torch.eye(6)
        d = adj.sum(1).pow(-0.5)
        adj = torch.diag(d) @ adj @ torch.diag(d)
        return F.log_softmax(adj.mm(self.b(F.relu(adj.mm(self.a(x))))), 1)


@model("message_passing", "6x5", "2x10:int64<6", "10x3")
class MessagePassing(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = Seq(nn.Linear(13, 8), nn.ReLU()), nn.GRUCell(8, 5)

    def forward(self, x, edges, attr):
        for _ in range(2):
            m = self.message(torch.cat([x[edges[0]], x[edges[1]], attr], -1))
            x = self.update(torch.zeros(6, 8).index_add_(0, edges[1], m), x)
        return x.sum(0)


@model("gat", "6x5", "2x12:int64<6")
class Gat(nn.Module):
    """Softmax over the edges that end in a node."""
    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear(5, 8, bias=False), nn.Parameter(torch.randn(2, 2, 4))

    def forward(self, x, edges):
        h = self.w(x).view(6, 2, 4)
        s = F.leaky_relu((h * self.a[0]).sum(-1)[edges[0]] + (h * self.a[1]).sum(-1)[edges[1]], 0.2)
        to = edges[1].unsqueeze(1).expand(-1, 2)
        top = torch.full((6, 2), -1e9).scatter_reduce(0, to, s, reduce="amax")
        e = torch.exp(s - top[edges[1]])
        e = e / (torch.zeros(6, 2).scatter_add_(0, to, e)[edges[1]] + 1e-16)
        return F.elu(torch.zeros(6, 2, 4).index_add(0, edges[1], e.unsqueeze(-1) * h[edges[0]]).flatten(1))


@model("graph_sage", "6x5", "2x12:int64<6")
class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.near = nn.Linear(5, 4), nn.Linear(5, 4, bias=False)

    def forward(self, x, edges):
        to = edges[1].view(-1, 1).expand(12, 5)
        mean = torch.zeros_like(x).scatter_reduce(0, to, x.index_select(0, edges[0]), "mean", include_self=False)
        most = torch.zeros_like(x).scatter_reduce_(0, to, x[edges[0]], "amax", include_self=False)
        return F.normalize(self.own(x) + self.near(mean + most), p=2.0, dim=-1)


@model("gin", "6x5", "2x10:int64<6", "6:int64<2")
class Gin(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = nn.Parameter(torch.tensor(0.1))
        self.mlp, self.out = Seq(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5)), nn.Linear(5, 2)

    def forward(self, x, edges, graph):
        x = self.mlp((1 + self.eps) * x + torch.zeros_like(x).index_add(0, edges[1], x[edges[0]], alpha=0.5))
        one = F.one_hot(graph, 2).t().to(x.dtype)
        return self.out(one @ x / one.sum(1, keepdim=True).clamp(min=1))


@model("edge_conv", "2x10x3")
class EdgeConv(nn.Module):
    """Neighbours are found anew in the space of features."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Conv2d(6, 8, 1), nn.Conv2d(16, 8, 1), nn.Conv1d(16, 4, 1)

    def edges(self, x):
        n, c, l = x.shape
        inner = -2 * torch.matmul(x.transpose(2, 1), x)
        xx = torch.sum(x ** 2, dim=1, keepdim=True)
        near = (-xx - inner - xx.transpose(2, 1)).topk(k=3, dim=-1)[1]
        near = (near + torch.arange(n).view(-1, 1, 1) * l).view(-1)
        x = x.transpose(2, 1).contiguous()
        y = x.view(n * l, -1)[near, :].view(n, l, 3, c)
        x = x.view(n, l, 1, c).repeat(1, 1, 3, 1)
        return torch.cat((y - x, x), 3).permute(0, 3, 1, 2).contiguous()

    def forward(self, x):
        a = F.leaky_relu(self.a(self.edges(x.transpose(1, 2))), 0.2).max(-1, keepdim=False)[0]
        b = F.leaky_relu(self.b(self.edges(a)), 0.2).max(-1)[0]
        y = self.out(torch.cat([a, b], 1))
        return torch.cat([F.adaptive_max_pool1d(y, 1), F.adaptive_avg_pool1d(y, 1)], 1).view(2, -1)


@model("point_net", "2x3x12")
class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.fc = Seq(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 9)
        self.a, self.b, self.out = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 16, 1), nn.Conv1d(24, 4, 1)

    def forward(self, x):
        t = self.fc(torch.max(self.t(x), 2, keepdim=True)[0].view(-1, 8)).view(-1, 3, 3) + torch.eye(3).view(1,
                9).repeat(2, 1).view(-1, 3, 3)
        a = F.relu(self.a(torch.bmm(x.transpose(2, 1), t).transpose(2, 1)))
        top = torch.max(self.b(a), 2, keepdim=True)[0].repeat(1, 1, 12)
        reg = torch.mean(torch.norm(torch.bmm(t, t.transpose(2, 1)) - torch.eye(3)[None], dim=(1, 2)))
        return F.log_softmax(self.out(torch.cat([top, a], 1)).transpose(2, 1), -1), reg


@model("point_net_plus", "1x16x3")
class PointNetPlus(nn.Module):
    """Farthest points, balls around them, features brought back by distance."""
    def __init__(self):
        super().__init__()
        self.mlp, self.back = nn.Conv2d(3, 8, 1), nn.Conv1d(8, 4, 1)

    def forward(self, x):
        far, dist, chosen = torch.zeros(1, dtype=torch.long), torch.full((1, 16), 1e10), []
        for _ in range(4):
            chosen.append(far)
            d = torch.sum((x - x[torch.arange(1), far].view(1, 1, 3)) ** 2, -1)
            dist = torch.minimum(dist, d)
            far = torch.max(dist, -1)[1]
        mid = torch.gather(x, 1, torch.stack(chosen, 1).unsqueeze(-1).expand(-1, -1, 3))
        d = torch.cdist(mid, x)
        group = torch.arange(16).view(1, 1, 16).repeat(1, 4, 1)
        group[d > 1.2] = 16
        group = group.sort(dim=-1)[0][:, :, :5]
        first = group[:, :, :1].repeat(1, 1, 5)
        group = torch.where(group == 16, first, group).clamp(max=15)
        local = x[torch.arange(1).view(1, 1, 1), group] - mid.unsqueeze(2)
        y = F.relu(self.mlp(local.permute(0, 3, 2, 1))).max(2)[0]
        near, which = torch.topk(torch.cdist(x, mid), 3, dim=-1, largest=False)
        w = 1.0 / (near + 1e-8)
        w = w / w.sum(2, keepdim=True)
        back = torch.sum(y.transpose(1, 2)[torch.arange(1).view(1, 1, 1), which] * w.unsqueeze(-1), 2)
        return self.back(back.transpose(1, 2))


@model("point_transformer", "1x10x3", "1x10x8")
class PointTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.place = Seq(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8))
        self.gamma = Seq(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def forward(self, xyz, x):
        near = torch.cdist(xyz, xyz, p=2.0).argsort()[:, :, :4]
        take = lambda t: torch.gather(t.unsqueeze(1).expand(-1, 10, -1, -1), 2,
                                      near.unsqueeze(-1).expand(-1, -1, -1, t.size(-1)))
        place = self.place(xyz[:, :, None] - take(xyz))
        a = F.softmax(self.gamma(self.q(x)[:, :, None] - take(self.k(x)) + place) / 8 ** 0.5, dim=-2)
        return torch.einsum("bmnf,bmnf->bmf", a, take(self.v(x)) + place) + x


@model("schnet", "5x3", "5:int64<4")
class SchNet(nn.Module):
    """Filters of distances; the energy and the forces on the atoms."""
    def __init__(self):
        super().__init__()
        self.words, self.filter = nn.Embedding(4, 8), Seq(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 8))
        self.inp, self.out = nn.Linear(8, 8, bias=False), Seq(nn.Linear(8, 4), nn.Softplus(), nn.Linear(4, 1))

    def forward(self, places, kinds):
        with torch.enable_grad():
            places = places.detach().requires_grad_()
            d = (places[:, None] - places[None]).pow(2).sum(-1).add(torch.eye(5)).sqrt()
            rbf = torch.exp(-4 * (d.unsqueeze(-1) - torch.linspace(0, 3, 6)) ** 2)
            cut = 0.5 * (torch.cos(d * 3.1415926 / 4) + 1.0) * (d < 4).float() * (1 - torch.eye(5))
            x = self.words(kinds)
            x = x + torch.einsum("ijf,jf->if", self.filter(rbf) * cut.unsqueeze(-1), self.inp(x))
            energy = self.out(x).sum()
            force = -torch.autograd.grad(energy, places)[0]
        return energy.detach(), force


@model("equivariant", "5x3", "5x4")
class Egnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.x, self.h = Seq(nn.Linear(9, 8), nn.SiLU()), nn.Linear(8, 1, bias=False), nn.Linear(12, 4)

    def forward(self, x, h):
        i, j = torch.where(~torch.eye(5, dtype=torch.bool))
        d = x[i] - x[j]
        m = self.e(torch.cat([h[i], h[j], d.square().sum(1, keepdim=True)], 1))
        x = x + torch.zeros_like(x).index_add(0, i, d / (d.norm(dim=1, keepdim=True) + 1) * self.x(m).tanh()) / 4
        return x, h + self.h(torch.cat([h, torch.zeros(5, 8).index_add(0, i, m)], 1))


@model("graph_transformer", "1x6x8", "6x6:int64<4", "6:int64<5")
class Graphormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.far, self.degree, self.qkv = nn.Embedding(4, 2), nn.Embedding(5, 8, padding_idx=0), nn.Linear(8, 24)

    def forward(self, x, far, degree):
        x = x + self.degree(degree)
        q, k, v = self.qkv(x).view(1, 6, 2, 12).transpose(1, 2).chunk(3, -1)
        s = q @ k.transpose(-1, -2) * 0.5 + self.far(far).permute(2, 0, 1)
        return (s.softmax(-1) @ v).transpose(1, 2).flatten(2)


@model("set_transformer", "2x8x6")
class SetTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.points, self.seeds, self.a, self.b, self.c = nn.Parameter(torch.randn(1, 3,
                6)), nn.Parameter(torch.randn(1, 2, 6)), *(nn.MultiheadAttention(6, 2,
                batch_first=True) for _ in range(3))

    def forward(self, x):
        i = self.a(self.points.repeat(2, 1, 1), x, x)[0]
        y = self.b(x, i, i)[0]
        return self.c(self.seeds.repeat(2, 1, 1), y, y)[0].flatten(-2)


@model("deep_sets", "2x8x4", "2x8:bool")
class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi, self.rho = Seq(nn.Linear(4, 8), nn.ELU()), nn.Linear(24, 2)

    def forward(self, x, there):
        y = self.phi(x) * there.unsqueeze(-1)
        most = y.masked_fill(~there.unsqueeze(-1), -1e4).amax(1)
        n = there.sum(1, keepdim=True).clamp(min=1)
        return self.rho(torch.cat([y.sum(1), y.sum(1) / n, most], -1))


@model("slot_attention", "2x9x8", "2x3x8")
class SlotAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm2, self.q = nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 8, bias=False)
        self.k, self.v, self.gru = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.GRUCell(8, 8)

    def forward(self, x, noise):
        x, slots = self.norm(x), noise * 0.3
        k, v = self.k(x), self.v(x)
        for _ in range(2):
            a = torch.einsum("bid,bjd->bij", self.q(self.norm2(slots)), k).mul(8 ** -0.5).softmax(dim=1) + 1e-8
            u = torch.einsum("bjd,bij->bid", v, a / a.sum(-1, keepdim=True))
            slots = self.gru(u.reshape(-1, 8), slots.reshape(-1, 8)).reshape(2, -1, 8)
        return slots


@model("graph_pooling", "6x4", "6x6")
class DiffPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.assign, self.score = nn.Linear(4, 6), nn.Linear(4, 3), nn.Parameter(torch.randn(4))

    def forward(self, x, adj):
        adj = torch.sigmoid(adj + adj.t())
        s = F.softmax(adj @ self.assign(x), -1)
        entropy = torch.special.entr(s).sum(-1).mean()
        link = torch.linalg.matrix_norm(adj - s @ s.t())
        score = (x * self.score).sum(-1) / self.score.norm(p=2, dim=-1)
        top, which = torch.topk(score, 3)
        kept = x[which] * torch.tanh(top).unsqueeze(1)
        return s.t() @ (adj @
                        self.embed(x)), s.t() @ adj @ s, entropy, link, kept, adj[which][:, which]


@model("knowledge_graph", "4:int64<8", "4:int64<3", "4:int64<8")
class Knowledge(nn.Module):
    """TransE, DistMult and RotatE side by side."""
    def __init__(self):
        super().__init__()
        self.e, self.r = nn.Embedding(8, 6, max_norm=None), nn.Embedding(3, 6)

    def forward(self, h, r, t):
        a, b, c = self.e(h), self.r(r), self.e(t)
        turn = torch.polar(torch.ones(4, 3), b[:, :3])
        ca, cc = torch.complex(a[:, :3], a[:, 3:]), torch.complex(c[:, :3].contiguous(), c[:, 3:].contiguous())
        return -torch.norm(a + b - c, p=1, dim=1), (a * b * c).sum(-1), 6 - (ca * turn - cc).abs().sum(-1), (ca *
                turn * cc.conj()).real.sum(-1)


@model("point_pillars", "20x4", "20:int64<12")
class PointPillars(nn.Module):
    """Points of a cell become one pillar; a picture from above has them at their places."""
    def __init__(self):
        super().__init__()
        self.each, self.norm, self.up = nn.Linear(7, 6), nn.BatchNorm1d(6), nn.ConvTranspose2d(6, 4, 2, 2)

    def forward(self, points, cells):
        count = torch.bincount(cells, minlength=12).clamp(min=1)
        middle = torch.zeros(12, 3).index_add(0, cells, points[:, :3]) / count[:, None]
        x = F.relu(self.norm(self.each(torch.cat([points, points[:, :3] - middle[cells]], 1))))
        pillars = torch.zeros(12, 6).scatter_reduce(0, cells[:, None].expand(-1, 6), x, "amax")
        canvas = torch.zeros(6, 16)
        canvas[:, torch.tensor([0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 15])] = pillars.t()
        return self.up(canvas.view(1, 6, 4, 4)), count
