"""Recurrent networks, memories, sequences to sequences."""
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, model

Seq = nn.Sequential


@model("lstm_language", "2x6:int64<30", half=True)
class LstmLanguage(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(30, 8), nn.LSTM(8, 8, 2, batch_first=True, dropout=0.2)
        self.out = nn.Linear(8, 30)

    def forward(self, words):
        y, (h, c) = self.lstm(self.words(words))
        return self.out(y), h, c


@model("gru_classifier", "6x2x5", half=True)
class GruClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(5, 6, 2, bidirectional=True), nn.Linear(12, 3)

    def forward(self, x):
        _, h = self.gru(x)
        return self.out(torch.cat([h[-2], h[-1]], 1))


@model("rnn_tanh", "5x2x4", "1x2x6")
class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.relu = nn.RNN(4, 6), nn.RNN(6, 5, nonlinearity="relu", bias=False)

    def forward(self, x, h):
        y, h = self.rnn(x, h)
        return self.relu(y)[0], h


@model("lstm_projected", "4x2x5")
class Projected(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 8, proj_size=3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return y, h, c


@model("packed_lstm", "3x6x4")
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(4, 5, bidirectional=True, batch_first=True), nn.Linear(10, 2)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 4, 1]), batch_first=True)
        y, (h, _) = self.lstm(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return self.out(y), h


@model("packed_gru", "3x6x4")
class PackedGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 5)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x.transpose(0, 1), torch.tensor([3, 6, 2]), enforce_sorted=False)
        y, h = self.gru(packed)
        return nn.utils.rnn.pad_packed_sequence(y, total_length=6, padding_value=-1.0)[0], h


@model("convlstm", "1x4x2x8x8")
class ConvLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates, self.out = nn.Conv2d(2 + 4, 16, 3, padding=1), nn.Conv2d(4, 1, 1)

    def forward(self, x):
        h = c = torch.zeros(1, 4, 8, 8)
        for t in range(x.size(1)):
            i, f, o, g = torch.split(self.gates(torch.cat([x[:, t], h], 1)), 4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


@model("convgru", "2x3x3x8x8")
class ConvGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.zr, self.n = nn.Conv2d(7, 8, 3, padding=1), nn.Conv2d(7, 4, 3, padding=1)

    def forward(self, x):
        h = x.new_zeros(2, 4, 8, 8)
        for frame in x.unbind(1):
            z, r = self.zr(torch.cat((frame, h), 1)).sigmoid().chunk(2, 1)
            h = torch.lerp(self.n(torch.cat((frame, r * h), 1)).tanh(), h, z)
        return h


@model("seq2seq_additive", "2x5:int64<20", "2x4:int64<20")
class Bahdanau(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.cell = nn.Embedding(20, 6), nn.GRU(6, 8, batch_first=True), nn.GRUCell(14, 8)
        self.w, self.u, self.v = nn.Linear(8, 8, bias=False), nn.Linear(8, 8), nn.Linear(8, 1, bias=False)
        self.out = nn.Linear(22, 20)

    def forward(self, source, target):
        memory, h = self.encoder(self.words(source))
        h, ys, keys = h.squeeze(0), [], self.u(memory)
        for word in self.words(target).unbind(1):
            weights = F.softmax(self.v(torch.tanh(self.w(h).unsqueeze(1) + keys)), 1)
            context = (weights * memory).sum(1)
            h = self.cell(torch.cat([word, context], -1), h)
            ys.append(self.out(torch.cat([h, context, word], 1)))
        return torch.stack(ys, 1)


@model("seq2seq_greedy", "1x5:int64<12")
class Greedy(nn.Module):
    """Each word is the best after the last one; dot-product attention."""
    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.cell = nn.Embedding(12, 6), nn.LSTM(6, 6, batch_first=True), nn.LSTMCell(12, 6)
        self.out = nn.Linear(6, 12)

    def forward(self, source):
        memory, (h, c) = self.encoder(self.words(source))
        h, c, word, words = h[0], c[0], torch.ones(1, dtype=torch.long), []
        for _ in range(4):
            context = torch.bmm(torch.bmm(memory, h.unsqueeze(2)).softmax(1).transpose(1, 2), memory).squeeze(1)
            h, c = self.cell(torch.cat([self.words(word), context], 1), (h, c))
            word = torch.argmax(self.out(h), dim=1)
            words.append(word)
        return torch.cat(words), h


@model("pointer_network", "2x5x3")
class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.cell, self.w1 = nn.LSTM(3, 6, batch_first=True), nn.LSTMCell(6, 6), nn.Linear(6, 6)
        self.w2, self.v = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x):
        memory, (h, c) = self.encoder(x)
        h, c, mask, path, inp = h[-1], c[-1], torch.zeros(2, 5, dtype=torch.bool), [], torch.zeros(2, 6)
        for _ in range(3):
            h, c = self.cell(inp, (h, c))
            scores = self.v(torch.tanh(self.w1(memory) + self.w2(h)[:, None])).squeeze(-1).masked_fill(mask,
                    float("-inf"))
            best = scores.argmax(-1)
            mask = mask.scatter(1, best[:, None], True)
            inp = memory[torch.arange(2), best]
            path.append(best)
        return torch.stack(path, 1), scores.log_softmax(-1)


@model("neural_turing_machine", "2x4x5")
class TuringMachine(nn.Module):
    def __init__(self):
        super().__init__()
        self.control, self.heads, self.out = nn.LSTMCell(9, 8), nn.Linear(8, 4 + 1 + 1 + 3 + 1 + 8), nn.Linear(12, 3)
        self.start = nn.Parameter(torch.randn(6, 4) * 0.3)

    def forward(self, x):
        memory, w, read = self.start.expand(2, 6, 4), torch.full((2, 6), 1 / 6), torch.zeros(2, 4)
        h = c = torch.zeros(2, 8)
        for t in range(4):
            h, c = self.control(torch.cat([x[:, t], read], 1), (h, c))
            key, beta, gate, shift, gamma, erase, add = self.heads(h).split([4, 1, 1, 3, 1, 4, 4], 1)
            near = F.softmax(F.softplus(beta) * F.cosine_similarity(key.unsqueeze(1) + 1e-16, memory + 1e-16, dim=-1),
                             1)
            w = torch.sigmoid(gate) * near + (1 - torch.sigmoid(gate)) * w
            s = shift.softmax(1)
            w = s[:, :1] * w.roll(1, 1) + s[:, 1:2] * w + s[:, 2:] * w.roll(-1, 1)
            w = w.pow(1 + F.softplus(gamma))
            w = w / (w.sum(1, keepdim=True) + 1e-16)
            memory = memory * (1 - torch.einsum("bn,bm->bnm", w,
                                                torch.sigmoid(erase))) + w.unsqueeze(2) * torch.tanh(add).unsqueeze(1)
            read = torch.matmul(w.unsqueeze(1), memory).squeeze(1)
        return self.out(torch.cat([h, read], 1)), w


@model("memory_network", "2x4x6:int64<20", "2x6:int64<20")
class MemoryNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.h = nn.Embedding(20, 8), nn.Embedding(20, 8), nn.Embedding(20, 8), nn.Linear(8, 8)
        self.out = nn.Linear(8, 20)

    def forward(self, story, question):
        u = self.b(question).sum(1)
        for _ in range(2):
            p = torch.softmax(torch.einsum("bsd,bd->bs", self.a(story).sum(2), u), 1)
            u = self.h(u) + torch.einsum("bs,bsd->bd", p, self.c(story).sum(dim=-2))
        return self.out(u)


@model("quasi_recurrent", "2x3x8")
class QuasiRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 12, 2)

    def forward(self, x):
        z, f, o = self.conv(F.pad(x, [1, 0])).chunk(3, 1)
        z, f, c, cs = z.tanh(), f.sigmoid(), 0, []
        for t in range(8):
            c = f[..., t] * c + (1 - f[..., t]) * z[..., t]
            cs.append(c)
        return o.sigmoid() * torch.stack(cs, -1)


@model("simple_recurrent_unit", "5x2x6")
class Sru(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Linear(6, 18, bias=False), nn.Parameter(torch.randn(2, 6))
        self.b = nn.Parameter(torch.zeros(2, 6))

    def forward(self, x):
        u, c, hs = self.w(x).view(5, 2, 3, 6), x.new_zeros(2, 6), []
        for t in range(5):
            f = (u[t, :, 1] + self.v[0] * c + self.b[0]).sigmoid()
            r = (u[t, :, 2] + self.v[1] * c + self.b[1]).sigmoid()
            c = f * c + (1 - f) * u[t, :, 0]
            hs.append(r * c + (1 - r) * x[t])
        return torch.stack(hs), c


@model("indrnn", "5x2x4")
class IndRnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u = nn.Linear(4, 6), nn.Parameter(torch.rand(6))

    def forward(self, x):
        h = torch.zeros(2, 6)
        for y in self.w(x):
            h = torch.relu(torch.addcmul(y, self.u, h))
        return h


@model("temporal_conv", "2x4x16")
def temporal_conv():
    class Block(nn.Module):
        def __init__(self, i, o, d):
            super().__init__()
            self.conv = nn.utils.weight_norm(nn.Conv1d(i, o, 3, padding=2 * d, dilation=d))
            self.short = nn.Conv1d(i, o, 1)
            self.cut = 2 * d

        def forward(self, x):
            return F.relu(F.relu(self.conv(x)[:, :, :-self.cut].contiguous()) + self.short(x))
    return Seq(Block(4, 6, 1), Block(6, 6, 2), Block(6, 8, 4), Lambda(lambda x: x[:, :, -1]), nn.Linear(8, 3))


@model("liquid_time_constant", "4x2x3")
class Liquid(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.tau, self.a = nn.Linear(3 + 5, 5), nn.Parameter(torch.rand(5) + 0.5), nn.Parameter(torch.randn(5))

    def forward(self, x):
        h = torch.zeros(2, 5)
        for frame in x:
            for _ in range(3):
                f = torch.sigmoid(self.f(torch.hstack((frame, h))))
                h = (h + 0.1 * f * self.a) / (1 + 0.1 * (self.tau.reciprocal() + f))
        return h


@model("neural_ode", "3x4")
class NeuralOde(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = Seq(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4))

    def slope(self, t, y):
        return self.f(torch.cat([y, torch.full_like(y[:, :1], t)], 1))

    def forward(self, y):
        for i in range(3):
            t, h = i / 3, 1 / 3
            a = self.slope(t, y)
            b = self.slope(t + h / 2, torch.add(y, a, alpha=h / 2))
            c = self.slope(t + h / 2, torch.add(y, b, alpha=h / 2))
            d = self.slope(t + h, torch.add(y, c, alpha=h))
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y


@model("echo_state", "6x2x3")
class Echo(nn.Module):
    def __init__(self):
        super().__init__()
        w = torch.randn(10, 10) * (torch.rand(10, 10) < 0.3)
        self.register_buffer("w", w * 0.9 / torch.linalg.eigvals(w).abs().max().clamp_min(1e-3))
        self.register_buffer("v", torch.rand(10, 3) - 0.5)
        self.out = nn.Linear(10, 2)

    def forward(self, x):
        h, hs = torch.zeros(2, 10), []
        for t in range(6):
            h = 0.7 * h + 0.3 * torch.tanh(torch.addmm(x[t] @ self.v.t(), h, self.w.t()))
            hs.append(h)
        return self.out(torch.stack(hs))


@model("tree_lstm", "5x4")
class TreeLstm(nn.Module):
    """A fixed binary tree, its leaves first."""
    def __init__(self):
        super().__init__()
        self.leaf, self.node = nn.Linear(4, 12), nn.Linear(8, 20)

    def join(self, a, b):
        i, f1, f2, o, u = self.node(torch.cat([a[0], b[0]])).chunk(5)
        c = i.sigmoid() * u.tanh() + f1.sigmoid() * a[1] + f2.sigmoid() * b[1]
        return o.sigmoid() * c.tanh(), c

    def forward(self, x):
        leaves = []
        for i, o, u in zip(*self.leaf(x).chunk(3, 1)):
            c = i.sigmoid() * u.tanh()
            leaves.append((o.sigmoid() * c.tanh(), c))
        return self.join(self.join(leaves[0], leaves[1]), self.join(leaves[2], self.join(leaves[3], leaves[4])))[0]


@model("spiking", "4x2x6")
class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        u, v, spikes = torch.zeros(2, 8), torch.zeros(2, 3), torch.zeros(2, 3)
        for t in range(4):
            u = 0.9 * u + self.a(x[t])
            s = torch.heaviside(u - 0.5, torch.tensor(0.0))
            u = u - s * 0.5
            v = 0.9 * v + self.b(s)
            out = (v > 0.3).to(v.dtype)
            v, spikes = v * (1 - out), spikes + out
        return spikes, v


@model("kalman_filter", "5x2")
class Kalman(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.h = nn.Parameter(torch.eye(4) + 0.1 * torch.randn(4, 4)), nn.Parameter(torch.randn(2, 4))
        self.q, self.r = nn.Parameter(torch.rand(4)), nn.Parameter(torch.rand(2) + 0.5)

    def forward(self, z):
        x, p, eye = torch.zeros(4), torch.eye(4), torch.eye(4)
        for t in range(5):
            x, p = self.a @ x, self.a @ p @ self.a.T + torch.diag(self.q)
            s = self.h @ p @ self.h.T + torch.diag_embed(self.r)
            k = p @ self.h.T @ torch.linalg.inv(s)
            x = x + k @ (z[t] - self.h @ x)
            p = (eye - k @ self.h) @ p
        return x, p, torch.trace(p)
