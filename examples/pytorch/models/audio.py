"""Sound: features, recognition, synthesis, separation, codecs."""
import math
import torch
import torch.nn.functional as F
from torch import nn
from . import Lambda, Residual, model

Seq = nn.Sequential


def mel_filters(bins, bands):
    top = 2595 * math.log10(1 + 4000 / 700)
    at = 700 * (10 ** (torch.linspace(0, top, bands + 2) / 2595) - 1)
    f = torch.linspace(0, 4000, bins)
    up, down = (f[None] - at[:-2, None]) / (at[1:-1] - at[:-2])[:,
                                                                None], (at[2:,
                                                                    None] - f[None]) / (at[2:] - at[1:-1])[:, None]
    return torch.max(torch.zeros(1), torch.min(up, down))


@model("mel_spectrogram", "2x256")
class Mel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("filters", mel_filters(33, 12))

    def forward(self, x):
        spec = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        mel = torch.matmul(self.filters, spec.abs().pow(2.0))
        log = 10.0 * torch.log10(torch.clamp(mel, min=1e-10))
        return torch.max(log, log.amax(dim=(-2, -1), keepdim=True) - 80.0), torch.angle(spec)


@model("notch_in_double", "2x64")
class Notch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bins", torch.tensor([5, 0, 32, 6]))

    def forward(self, x):
        spec = torch.fft.rfft(x.double())
        damped = spec.index_copy(1, self.bins, spec[:, self.bins] * 0.1)
        return torch.fft.irfft(damped, n=64).float(), torch.angle(damped[:, [0, 32]])


@model("mfcc", "2x200")
class Mfcc(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hamming_window(40, periodic=False))
        self.register_buffer("filters", mel_filters(21, 10))
        n = torch.arange(10.0)
        self.register_buffer("dct", torch.cos(math.pi / 10 * (n + 0.5) * n[:6].unsqueeze(1)) * math.sqrt(2 / 10))

    def forward(self, x):
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        frames = x.unfold(-1, 40, 20)
        power = torch.fft.rfft(frames * self.window).abs().square() / 40
        y = torch.log(power @ self.filters.t() + 1e-6) @ self.dct.t()
        delta = F.conv1d(F.pad(y.transpose(1, 2).reshape(-1, 1, y.size(1)), (1, 1), mode="replicate"),
                         torch.tensor([[[-0.5, 0, 0.5]]])).view(2, 6, -1)
        return (y - y.mean(1, keepdim=True)) / (y.std(1, keepdim=True) + 1e-5), delta


@model("stft_mask", "1x512")
class StftMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.mask = nn.LSTM(33, 16, batch_first=True), nn.Linear(16, 33)
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        spec = torch.stft(x, 64, 32, window=self.window, center=True, return_complex=True)
        mag = torch.abs(spec)
        mask = torch.sigmoid(self.mask(self.lstm(mag.transpose(1, 2).log1p())[0])).transpose(1, 2)
        return torch.istft(spec * mask, 64, 32, window=self.window, length=512)


@model("phase_vocoder", "1x400")
class PhaseVocoder(nn.Module):
    def forward(self, x):
        w = torch.blackman_window(64)
        spec = torch.view_as_real(torch.stft(x, 64, 16, window=w, center=False, onesided=False, normalized=True,
                                             return_complex=True))
        mag, phase = spec.pow(2).sum(-1).sqrt(), torch.atan2(spec[..., 1], spec[..., 0])
        d = phase[..., 1:] - phase[..., :-1]
        d = d - 2 * math.pi * torch.round(d / (2 * math.pi))
        return mag, torch.polar(mag[..., 1:], torch.cumsum(d, -1)).real


@model("wav2vec", "1x400")
class Wav2Vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = Seq(nn.Conv1d(1, 8, 10, 5, bias=False), nn.GroupNorm(8, 8), nn.GELU(),
                         nn.Conv1d(8, 8, 3, 2, bias=False), nn.GELU(), nn.Conv1d(8, 8, 3, 2, bias=False), nn.GELU())
        self.norm, self.project = nn.LayerNorm(8), nn.Linear(8, 16)
        self.place = nn.utils.weight_norm(nn.Conv1d(16, 16, 8, padding=4, groups=4), dim=2)
        self.layer = nn.TransformerEncoderLayer(16, 2, 24, activation="gelu", batch_first=True)
        self.out = nn.Linear(16, 12)

    def forward(self, x):
        x = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-7)
        x = self.project(self.norm(self.convs(x.unsqueeze(1)).transpose(1, 2)))
        x = x + F.gelu(self.place(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        return F.log_softmax(self.out(self.layer(x)), -1, dtype=torch.float32)


@model("conformer", "2x12x16")
class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        half = lambda: Seq(nn.LayerNorm(16), nn.Linear(16, 32), nn.SiLU(), nn.Dropout(), nn.Linear(32, 16))
        self.ff1, self.ff2, self.norm, self.last = half(), half(), nn.LayerNorm(16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        flip = lambda: Lambda(lambda x: x.transpose(1, 2))
        self.conv = Seq(nn.LayerNorm(16), flip(), nn.Conv1d(16, 32, 1), nn.GLU(1),
                        nn.Conv1d(16, 16, 7, padding=3, groups=16), nn.BatchNorm1d(16), nn.SiLU(),
                        nn.Conv1d(16, 16, 1), flip())

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.conv(x)
        return self.last(x + 0.5 * self.ff2(x))


@model("deep_speech", "2x1x20x24")
class DeepSpeech(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = Seq(nn.Conv2d(1, 4, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(4), nn.Hardtanh(0, 20, inplace=True))
        self.gru, self.look = nn.GRU(40, 12, bidirectional=True), nn.Conv1d(12, 12, 3, groups=12)
        self.out = nn.Linear(12, 8)

    def forward(self, x):
        x = self.conv(x)
        x = x.view(x.size(0), -1, x.size(3)).permute(2, 0, 1)
        x = self.gru(x)[0]
        x = x.view(x.size(0), x.size(1), 2, -1).sum(2)
        x = F.hardtanh(self.look(F.pad(x.permute(1, 2, 0), (0, 2))), -1.0, 1.0)
        return self.out(x.transpose(1, 2)).softmax(-1)


@model("rnn_transducer", "1x6x8", "1x3:int64<10")
class Transducer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.words = nn.LSTM(8, 8, batch_first=True), nn.Embedding(10, 6)
        self.predict, self.join = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 10)

    def forward(self, x, words):
        a, b = self.encoder(x)[0], self.predict(F.pad(self.words(words), (0, 0, 1, 0)))[0]
        logp = self.join(torch.tanh(a.unsqueeze(2) + b.unsqueeze(1))).log_softmax(-1)
        blank, emit = logp[0, :, :, 0], logp[0, :, :-1].gather(-1, words[0].view(1, 3, 1).expand(6, -1, -1)).squeeze(-1)
        rows = [F.pad(torch.cumsum(emit[0], 0), (1, 0))]
        for t in range(1, 6):
            row = [rows[-1][0] + blank[t - 1, 0]]
            for u in range(1, 4):
                row.append(torch.logaddexp(rows[-1][u] + blank[t - 1, u], row[-1] + emit[t, u - 1]))
            rows.append(torch.stack(row))
        return -(rows[-1][-1] + blank[-1, -1]), logp


@model("tacotron", "1x6:int64<20", "1x4x8")
class Tacotron(nn.Module):
    """Location-sensitive attention over an encoder of convolutions and a bidirectional LSTM."""
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 12)
        self.convs = Seq(nn.Conv1d(12, 12, 5, padding=2), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.5))
        self.lstm = nn.LSTM(12, 6, batch_first=True, bidirectional=True)
        self.pre, self.cell = Seq(nn.Linear(8, 8), nn.ReLU()), nn.LSTMCell(20, 12)
        self.query, self.memory = nn.Linear(12, 8, bias=False), nn.Linear(12, 8, bias=False)
        self.place, self.conv = nn.Linear(4, 8, bias=False), nn.Conv1d(2, 4, 3, padding=1, bias=False)
        self.v = nn.Linear(8, 1, bias=False)
        self.mel, self.gate = nn.Linear(24, 8), nn.Linear(24, 1)
        self.post = Seq(nn.Conv1d(8, 8, 5, padding=2), nn.Tanh(), nn.Conv1d(8, 8, 5, padding=2))

    def forward(self, words, frames):
        memory = self.lstm(self.convs(self.words(words).transpose(1, 2)).transpose(1, 2))[0]
        keys, h, c, context, w, total = self.memory(memory), torch.zeros(1, 12), torch.zeros(1, 12), torch.zeros(1,
                12), torch.zeros(1, 6), torch.zeros(1, 6)
        mels, gates, maps = [], [], []
        for t in range(4):
            h, c = self.cell(torch.cat((self.pre(frames[:, t]), context), -1), (h, c))
            place = self.place(self.conv(torch.stack((w, total), 1)).transpose(1, 2))
            w = F.softmax(self.v(torch.tanh(self.query(h.unsqueeze(1)) + place + keys)).squeeze(-1), 1)
            total, context = total + w, torch.bmm(w.unsqueeze(1), memory).squeeze(1)
            y = torch.cat((h, context), 1)
            mels += [self.mel(y)]
            gates += [self.gate(y).squeeze(1)]
            maps += [w]
        mel = torch.stack(mels, 2)
        return mel + self.post(mel), torch.stack(gates, 1), torch.stack(maps).transpose(0, 1)


@model("fast_speech", "1x5:int64<12")
class FastSpeech(nn.Module):
    """Lengths of sounds turned into a matrix of which sound each frame is."""
    def __init__(self):
        super().__init__()
        self.words, self.length = nn.Embedding(12, 8), Seq(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        self.pitch, self.out = nn.Embedding(6, 8), nn.Linear(8, 4)

    def forward(self, words):
        x = self.words(words)
        lengths = torch.clamp(torch.round(torch.exp(self.length(x).squeeze(-1)) * 1.5), 1, 4)
        ends = torch.cumsum(lengths, 1)
        t = torch.arange(16)
        path = ((t[None, None] < ends[..., None]) & (t[None, None] >= (ends - lengths)[..., None])).float()
        y = torch.matmul(path.transpose(1, 2), x)
        return self.out(y + self.pitch(torch.bucketize(y.sum(-1), torch.linspace(-2, 2, 5)))), lengths.sum(1)


@model("wavenet", "1x32:int64<16")
class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(16, 8)
        self.gates = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2, 4, 8)])
        self.skips = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(4)])
        self.residuals = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(4)])
        self.out = Seq(nn.ReLU(), nn.Conv1d(8, 8, 1), nn.ReLU(), nn.Conv1d(8, 16, 1))

    def forward(self, x):
        x, skip = self.words(x).transpose(1, 2), 0
        for gate, s, r in zip(self.gates, self.skips, self.residuals):
            a, b = gate(F.pad(x, (gate.dilation[0], 0))).split(8, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            skip, x = skip + s(y), x + r(y)
        return self.out(skip)


@model("wave_rnn", "1x6")
class WaveRnn(nn.Module):
    """Mu-law there and back, two softmaxes of halves of a sample."""
    def __init__(self):
        super().__init__()
        self.gru, self.high, self.low = nn.GRU(2, 10, batch_first=True), nn.Linear(5, 16), nn.Linear(5, 16)

    def forward(self, x):
        x = torch.tanh(x)
        code = ((torch.sign(x) * torch.log1p(255 * torch.abs(x)) / math.log1p(255) + 1) / 2 * 255 + 0.5).to(torch.int64)
        high, low = code // 16, code % 16
        y = self.gru(torch.stack([high, low], -1).float() / 7.5 - 1)[0]
        back = 2 * code.float() / 255 - 1
        return self.high(y[..., :5]).argmax(-1), self.low(y[..., 5:]), torch.sign(back) * torch.expm1(back.abs() *
                math.log(256)) / 255


@model("hifi_gan", "1x8x6")
class HifiGan(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.up = nn.Conv1d(8, 12, 7, padding=3), nn.utils.weight_norm(nn.ConvTranspose1d(12, 6, 8, 4, 2))
        self.blocks = nn.ModuleList([nn.ModuleList([nn.Conv1d(6, 6, k, dilation=d,
                                                              padding=(k - 1) * d // 2) for d in (1, 3)]) for k in (3,
                                                          7)])
        self.post = nn.Conv1d(6, 1, 7, padding=3)

    def forward(self, x):
        x, total = self.up(F.leaky_relu(self.pre(x), 0.1)), None
        for block in self.blocks:
            y = x
            for conv in block:
                y = conv(F.leaky_relu(y, 0.1)) + y
            total = y if total is None else total + y
        return torch.tanh(self.post(F.leaky_relu(total / 2)))


@model("period_discriminator", "2x1x50")
class PeriodDiscriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 6, (5, 1), (3, 1), (2, 0)), nn.Conv2d(6, 8, (5, 1), (3, 1), (2, 0))
        self.out = nn.Conv2d(8, 1, (3, 1), 1, (1, 0))

    def forward(self, x):
        y = F.pad(x, (0, 3 - x.shape[-1] % 3), "reflect").view(2, 1, 17, 3)
        maps = [F.leaky_relu(self.a(y), 0.1)]
        maps.append(F.leaky_relu(self.b(maps[-1]), 0.1))
        maps.append(self.out(maps[-1]))
        return [torch.flatten(m, 1, -1) for m in maps]


@model("conv_tasnet", "1x1x64")
class ConvTasNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.norm = nn.Conv1d(1, 12, 8, 4, bias=False), nn.GroupNorm(1, 12, eps=1e-8)
        self.mask, self.decode = nn.Conv1d(12, 24, 1), nn.ConvTranspose1d(12, 1, 8, 4, bias=False)
        self.block = Residual(nn.Conv1d(12, 16, 1), nn.PReLU(), nn.GroupNorm(1, 16, eps=1e-8),
                              nn.Conv1d(16, 16, 3, padding=2, dilation=2, groups=16), nn.PReLU(), nn.Conv1d(16, 12, 1))

    def forward(self, x):
        w = F.relu(self.encode(x))
        m = torch.sigmoid(self.mask(self.block(self.norm(w)))).view(1, 2, 12, -1)
        y = self.decode((w.unsqueeze(1) * m).view(2, 12, -1)).view(1, 2, -1)
        ref = x.expand_as(y) - x.mean()
        y0 = y - y.mean(-1, keepdim=True)
        proj = torch.sum(y0 * ref, -1, keepdim=True) * ref / (torch.sum(ref ** 2, -1, keepdim=True) + 1e-8)
        return y, 10 * torch.log10((proj ** 2).sum(-1) / ((y0 - proj) ** 2).sum(-1) + 1e-8)


@model("demucs", "1x2x64")
class Demucs(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1 = Seq(nn.Conv1d(2, 8, 8, 4, 2), nn.ReLU(), nn.Conv1d(8, 16, 1), nn.GLU(1))
        self.e2 = Seq(nn.Conv1d(8, 16, 8, 4, 2), nn.GELU(), nn.Conv1d(16, 32, 1), nn.GLU(1))
        self.lstm, self.linear = nn.LSTM(16, 16, bidirectional=True), nn.Linear(32, 16)
        self.d2 = Seq(nn.Conv1d(16, 32, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(16, 8, 8, 4, 2), nn.ReLU())
        self.d1 = Seq(nn.Conv1d(8, 16, 3, padding=1), nn.GLU(dim=1), nn.ConvTranspose1d(8, 4, 8, 4, 2))

    def forward(self, x):
        scale = x.mean(1, keepdim=True).std(-1, keepdim=True)
        a = self.e1(x / (1e-3 + scale))
        b = self.e2(a)
        y = self.linear(self.lstm(b.permute(2, 0, 1))[0]).permute(1, 2, 0)
        return (self.d1(self.d2(y + b) + a) * scale).view(1, 2, 2, -1)


@model("sincnet", "1x1x120")
class SincNet(nn.Module):
    """Filters made of two learnt frequencies each."""
    def __init__(self):
        super().__init__()
        self.low = nn.Parameter(torch.linspace(0.01, 0.3, 6).view(-1, 1))
        self.band = nn.Parameter(torch.full((6, 1), 0.05))
        self.norm, self.out = nn.BatchNorm1d(6), nn.Linear(6, 4)

    def forward(self, x):
        n = torch.arange(-10, 11).float().unsqueeze(0)
        low = torch.abs(self.low)
        high = torch.clamp(low + torch.abs(self.band), 0.02, 0.5)
        filters = (2 * high * torch.sinc(2 * high * n) - 2 * low * torch.sinc(2 * low * n)) * torch.kaiser_window(21,
                periodic=False, beta=8.0)
        filters = filters / (2 * high - 2 * low)
        y = F.max_pool1d(torch.abs(F.conv1d(x, filters.unsqueeze(1), stride=2)), 3)
        return self.out(F.leaky_relu(self.norm(y)).mean(-1))


@model("ctc_loss", "6x2x8", "2x3:int64<7")
class Ctc(nn.Module):
    """The forward variables of CTC, written out, and the best path."""
    def forward(self, logits, target):
        logp = logits.log_softmax(2)
        labels = torch.zeros(2, 7, dtype=torch.long)
        labels[:, 1::2] = target + 1
        same = F.pad(labels[:, 2:] == labels[:, :-2], (2, 0), value=True)
        alpha = torch.full((2, 7), -1e30)
        alpha[:, :2] = logp[0].gather(1, labels[:, :2])
        for t in range(1, 6):
            one = F.pad(alpha[:, :-1], (1, 0), value=-1e30)
            two = F.pad(alpha[:, :-2], (2, 0), value=-1e30).masked_fill(same, -1e30)
            alpha = torch.logsumexp(torch.stack([alpha, one, two]), 0) + logp[t].gather(1, labels)
        return -torch.logaddexp(alpha[:, -1], alpha[:, -2]), logp.argmax(-1)


@model("encodec", "1x1x64")
class Encodec(nn.Module):
    """Residual vector quantisation of a convolutional code."""
    def __init__(self):
        super().__init__()
        self.encode = Seq(nn.Conv1d(1, 8, 7, padding=3), nn.ELU(), nn.Conv1d(8, 8, 8, 4, 2))
        self.decode = Seq(nn.ConvTranspose1d(8, 8, 8, 4, 2), nn.ELU(), nn.Conv1d(8, 1, 7, padding=3))
        self.books = nn.ParameterList([nn.Parameter(torch.randn(16, 8)) for _ in range(3)])

    def forward(self, x):
        rest, total, codes = self.encode(x).transpose(1, 2), 0, []
        for book in self.books:
            dist = -(rest.pow(2).sum(-1, keepdim=True) - 2 * rest @ book.t() + book.pow(2).sum(1))
            code = dist.max(dim=-1).indices
            chosen = F.embedding(code, book)
            rest, total = rest - chosen, total + chosen
            codes.append(code)
        return self.decode(total.transpose(1, 2)), torch.stack(codes, 1)


@model("speaker_vectors", "2x12x20")
class SpeakerVectors(nn.Module):
    """Time-delay layers, statistics weighted by attention, an angular margin."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(12, 16, 5), nn.Conv1d(16, 16, 3, dilation=2)
        self.attention = Seq(nn.Conv1d(48, 8, 1), nn.ReLU(), nn.Tanh(), nn.Conv1d(8, 16, 1), nn.Softmax(2))
        self.out, self.classes = nn.Linear(32, 8), nn.Parameter(torch.randn(5, 8))

    def forward(self, x):
        x = F.relu(self.b(F.relu(self.a(x))))
        t = x.size(-1)
        w = self.attention(torch.cat((x, x.mean(2, True).repeat(1, 1, t),
                                      torch.sqrt(torch.var(x, 2, keepdim=True).clamp(min=1e-4)).repeat(1, 1, t)), 1))
        mu = torch.sum(x * w, 2)
        sg = torch.sqrt((torch.sum((x ** 2) * w, 2) - mu ** 2).clamp(min=1e-4))
        cos = F.linear(F.normalize(self.out(torch.cat((mu, sg), 1))), F.normalize(self.classes))
        sin = torch.sqrt((1.0 - torch.mul(cos, cos)).clamp(0, 1))
        phi = cos * math.cos(0.2) - sin * math.sin(0.2)
        return 30 * torch.where((cos - math.cos(math.pi - 0.2)) > 0, phi, cos - math.sin(math.pi - 0.2) * 0.2)


@model("harmonic_synthesizer", "1x8x1", "1x8x10")
class Harmonic(nn.Module):
    """DDSP: sines of a fundamental, and noise through filters given by their spectra."""
    def __init__(self):
        super().__init__()
        self.register_buffer("noise", torch.rand(1, 64) * 2 - 1)

    def forward(self, f0, params):
        f0 = F.interpolate(torch.sigmoid(f0).transpose(1, 2) * 0.1, scale_factor=8.0, mode="linear",
                           align_corners=False).transpose(1, 2)
        amps = F.interpolate(params[..., :5].sigmoid().transpose(1, 2), size=64, mode="linear",
                             align_corners=True).transpose(1, 2)
        harmonics = f0 * torch.arange(1, 6)
        amps = amps * (harmonics < 0.5).float()
        tone = (torch.sin(2 * math.pi * torch.cumsum(harmonics, 1)) * amps / amps.sum(-1, keepdim=True)).sum(-1)
        h = params[..., 5:].exp().clamp(max=2.0)
        ir = torch.fft.irfft(torch.complex(h, torch.zeros_like(h)))
        ir = torch.roll(ir, 4, -1) * torch.hann_window(8)
        frames = self.noise.view(1, 8, 8)
        y = torch.fft.irfft(torch.fft.rfft(F.pad(frames, (0, 8))) * torch.fft.rfft(F.pad(ir, (0, 8))))
        noise = F.fold(y.transpose(1, 2), (1, 72), (1, 16), stride=(1, 8)).view(1, -1)
        return tone + 0.1 * noise[:, :64]
