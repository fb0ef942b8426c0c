"""What make check exports with examples/pytorch/export.py and runs: in-place ops, views that are written to, shared weights,
constants of forward(), several outputs, attention, ops of torchvision, sizes that follow from the input's; and some that
fail."""
import copy
import torch
import torch.utils.checkpoint
import torch.utils.dlpack
from torch import nn


def conv():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(8, 8, 3, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def encoder():
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.out = nn.Embedding(10, 8), nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), nn.Linear(12, 10)

    def forward(self, x, mask):
        y, (h, c) = self.layers(self.words(x))
        return self.out(y) * mask.unsqueeze(-1), h


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("places", torch.arange(4.0))

    def forward(self, x):
        y = self.out(self.words(x))
        y[:, 0] += 1
        y[:, 1, ::2].zero_()
        a, b = y.chunk(2, -1)
        return torch.cat([a, b * torch.tensor([1.0, 2, 3, 4, 5])], 1) + self.places.sum()


class Step(nn.Module):
    """A training step: gradients of the parameters, a batch norm whose statistics change; sizes and checks that ask for
    numbers; a diagonal written; sequences of other lengths."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 6)
        self.lstm, self.input = nn.LSTM(6, 5), nn.Parameter(torch.ones(6))
        self.register_buffer("counts", torch.tensor([3, 1, 2]))

    def forward(self, input, which):
        with torch.enable_grad():
            self.norm.training = True
            y = self.b(torch.tanh(self.norm(self.a(input * self.input))))
            loss = torch.nn.functional.smooth_l1_loss(y, torch.nn.functional.one_hot(which, 6).float())
            parameters = [self.a.weight, self.norm.bias, self.b.bias, self.input]
            gradients = torch.autograd.grad(loss, parameters)
        square = (y.detach().t() @ y.detach()).fill_diagonal_(0)
        rows = torch.repeat_interleave(input[:3], self.counts, 0).view(2, 3, 6) * 1j
        packed = nn.utils.rnn.pack_padded_sequence(rows.imag, torch.tensor([2, 2, 1]))
        return [loss.detach(), square, nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0])[0], *gradients]


class Sizes(nn.Module):
    """Half sizes and back to those of another tensor, rows cut from a longer table, a range, products of sizes."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.Conv2d(16, 4, 1)
        self.rows = nn.Parameter(torch.randn(64, 1))

    def forward(self, x):
        a = self.a(x)
        b = self.b(a.relu())
        y = self.c(torch.cat([a, nn.functional.interpolate(b, size=a.shape[-2:])], 1)) + self.rows[:a.shape[2]]
        n, c, h, w = y.shape
        z = y.view(n, c, h * w).transpose(1, 2).reshape(n * h, w * c) + torch.arange(n * h).view(-1, 1)
        return z, nn.functional.interpolate(b, scale_factor=2), y + torch.arange(w), y.flatten(1).softmax(-1)


class Remembers(nn.Module):
    """Buffers that change: a counter that does not begin at zero, the last rows, written in place, what is replaced."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("rows", torch.zeros(3, 4))
        self.register_buffer("hidden", torch.full((4,), 0.5))

    def forward(self, x):
        self.count += 1
        self.rows[:-1] = self.rows[1:].clone()
        self.rows[-1] = x * self.count
        self.hidden = torch.tanh(self.linear(x) + self.hidden)
        return self.rows.sum(0), self.hidden, self.hidden * self.count


class Letters(nn.Module):
    """More letters in one product than a tensor may have dims; some are summed early, one stays to the end."""

    def __init__(self):
        super().__init__()
        sizes = (1, 3, 2, 2), (2, 4, 3, 2), (2, 5, 2, 1)
        self.cores = nn.ParameterList([nn.Parameter(torch.randn(s)) for s in sizes])

    def forward(self, x):
        return torch.einsum("bijk,xipc,cjqd,dkry->rbpq", x, *self.cores)


class Lost(nn.Module):
    """What the tracer of torch 1.13 loses or refuses: lengths of padded sequences, torch.Tensor(...), numbers that are
    bools, a scripted layer, a product of reflections, windows."""

    def __init__(self):
        super().__init__()
        self.layers, self.script = nn.GRU(4, 3, batch_first=True), torch.jit.script(nn.Linear(3, 2))
        self.orthogonal = nn.utils.parametrizations.orthogonal(nn.Linear(4, 3), orthogonal_map="householder")

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 3]), batch_first=True, enforce_sorted=False)
        y, lengths = nn.utils.rnn.pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        last = y[torch.arange(2), lengths - 1] * torch.Tensor([1, 2, 3])
        is_good = (last > 0) & True | ~torch.full((3,), True)
        attend = getattr(nn.functional, "_scaled_dot_product_attention", lambda q, k, v: (q, None))
        windows = torch.stft(x.flatten(1), 4, 2, window=torch.ones(4), return_complex=True) # reads memory that none writes to
        return last.add_(1), lengths, is_good, self.script(self.orthogonal(x)), attend(x, x, x)[0], windows.abs()


def traced():
    return torch.jit.trace(conv().eval(), torch.zeros(2, 3, 16, 16))


class Boxes(nn.Module):
    """Ops of torchvision, in boxes within the picture, across its border and outside, and with two groups of offsets."""

    def __init__(self):
        super().__init__()
        from torchvision import ops
        self.ops, self.offsets = ops, nn.Conv2d(4, 24, 3, (2, 1), 1)
        self.conv = ops.DeformConv2d(4, 6, (3, 2), (2, 1), (1, 1), (1, 2), groups=2)

    def forward(self, x):
        boxes = torch.tensor([[0, 1, 2, 6, 7.5], [1, -3, -2, 12, 4], [1, 0, 20, 9, 30]])
        offsets = self.offsets(x)
        return (self.ops.roi_align(x, boxes, (2, 3), 0.7, 2, True), self.ops.roi_align(x, boxes, 2, 1.0, 3, False),
                self.conv(x, offsets, offsets[:, :12].sigmoid()), self.conv(x, offsets * 4))


class Copies(nn.Module):
    """A copy of a layer that an optimiser changes, and a layer whose weights another one makes."""

    def __init__(self):
        super().__init__()
        self.linear, self.maker, self.made = nn.Linear(4, 3), nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, x):
        self.made.weight = nn.Parameter(self.maker(x[0]).view(3, 4))
        with torch.enable_grad():
            layer = copy.deepcopy(self.linear)
            optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
            for _ in range(2):
                optimiser.zero_grad()
                layer(x).square().mean().backward()
                optimiser.step()
        return layer(x).detach(), self.made(x), copy.deepcopy(x)


class Arrays(nn.Module):
    def forward(self, x):
        return torch.tensor((x.numpy() * 2).tolist())


class Beside(nn.Module):
    """Numbers go beside what tracers see."""

    def forward(self, x):
        return x + torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x * 2))


class Vanishing(nn.Module):
    """Gradients that are zero but for rounding, as batch norm takes away what they are for."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 5, bias=False), nn.BatchNorm1d(5))

    def forward(self, x):
        self.layers.train()
        with torch.enable_grad():
            loss = torch.tanh(self.layers(x)).pow(3).sum()
            return [x.detach() for x in torch.autograd.grad(loss, list(self.layers.parameters()))]


class Hidden(Vanishing):
    """And a result that no tracer sees."""

    def forward(self, x):
        return super().forward(x) + [torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach() * 2)) + 1]


class Decides(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


@torch.jit.script
def scripted(x):
    return 0.5 * x * (1.0 + torch.tanh(0.8 * x * (1.0 + 0.045 * x * x)))


class Scripted(nn.Module):
    """Scripted functions that have run, whose ops PyTorch joins, some in a layer that torch.export refuses; a function
    with a gradient of its own, steps that are computed again, and gradients that stay with the weights."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return scripted(x) * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Layer(nn.Module):
        def forward(self, x):
            return torch.sigmoid(x) * x + x.tanh()

    def __init__(self):
        super().__init__()
        self.linear, self.layer = nn.Linear(4, 4), torch.jit.script(self.Layer())
        for _ in range(3):
            self.layer(scripted(torch.zeros(2, 4)))

    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(self.linear, self.layer(scripted(x)), use_reentrant=False)
        with torch.enable_grad():
            self.Double.apply(scripted(self.linear(y))).square().sum().backward()
        return y, self.linear.weight.grad


class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x)


class Keeps(nn.Module):
    """Its attributes hold what forward() computes: weights from others, tables of a size, the last input."""

    def __init__(self):
        super().__init__()
        self.linear, self.table, self.tables, self.last = nn.utils.weight_norm(nn.Linear(4, 4)), None, {}, []

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(x.shape[1]).float().sin()
        if x.shape[1] not in self.tables:
            self.tables[x.shape[1]] = torch.arange(x.shape[1]).float().sqrt()
        self.last.append(x)
        return self.linear(x + self.table) * self.tables[x.shape[1]] + len(self.last)


class Frees(nn.Module):
    """Gives memory back as soon as nobody needs it."""

    def forward(self, x):
        y = x.sin()
        z = y.cos()
        y.data.set_()
        y.set_()
        return z + 1


class Masks(nn.Module):
    """It writes to what einsum gives, which is a view of a product."""

    def forward(self, x):
        scores = torch.einsum("nhid,nhjd->nhij", x, x + 1)
        scores.masked_fill_(x[..., :1] > 0, -1)
        return scores.softmax(-1)


class Chooses(nn.Module):
    """It writes through masks that the data decides, what they choose, which is one element in some runs; of the points
    those farthest from the ones before, from the first on."""

    def forward(self, x):
        distance, chosen, farthest = torch.full(x.shape[:2], 1e10), [], torch.zeros(x.shape[0], dtype=torch.long)
        for _ in range(3):
            chosen.append(farthest)
            apart = (x - x[torch.arange(x.shape[0]), farthest].unsqueeze(1)).square().sum(-1)
            mask = apart < distance
            distance[mask] = apart[mask]
            farthest = distance.max(-1)[1]
        y, most = x.clone(), x == x.amax()
        y[most] = x[most] * 2 - 1
        y[x <= x.amax() - 1e-6] += 0.25
        places = (x.amax((0, 2)) == x.amax()).nonzero()[:, 0]
        y[:, places] = y[:, places].sin()
        return torch.stack(chosen, 1), distance, y


class Asserts(nn.Module):
    """What it asserts of its input decides nothing else."""

    def forward(self, x):
        y = nn.functional.pad(x, (1, 2))
        assert (y[..., 1:-2] == x).all()
        assert not (x > 1e6).any(), "x is too large"
        assert x.shape[0] == 2 and torch.allclose(y.sum(), x.sum(), atol=1e-3)
        assert torch.equal(x, x + 0) and bool((x == x).all()) and x.isfinite().all().item(), x.shape
        return y * 2


class Checked(nn.Module):
    """An assertion of a number that is computed in Python: the assert alone does not say what it has to be."""

    def forward(self, x):
        assert x.sum().item() < 1e6
        return x


class Keeping(nn.Module):
    """Random numbers decide how many rows it writes."""

    def forward(self, x):
        kept = x[torch.rand(x.shape) < 0.5]
        y = torch.zeros_like(x)
        y[:len(kept)] = kept
        return y


class Draws(nn.Module):
    """Draws random numbers, each in one way."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        return x + self.draw(x)


for name, draw in {"uniform": lambda x: torch.empty_like(x).uniform_(), "normal": lambda x: torch.normal(x, 1.0),
                   "exponential": lambda x: torch.empty_like(x).exponential_(), "integers": lambda x: torch.randint(0, 9, (4,)),
                   "below": lambda x: torch.empty_like(x).random_(0, 5), "like": lambda x: torch.randint_like(x, 9),
                   "row": lambda x: x[torch.multinomial(x.abs(), 1)], "slopes": lambda x: nn.functional.rrelu(x, training=True),
                   "dropout": lambda x: nn.functional.dropout(x, 0.5, True)}.items():
    setattr(Draws, name, Draws(draw))
