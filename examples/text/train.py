#!/usr/bin/env python3
"""Trains the character-level transformer of examples/18_text.c and writes weights.safetensors and expected.txt beside it.

    python3 examples/text/train.py            (Debian: python3-torch python3-numpy perl-doc)

The text is the prose of Perl's manual as Debian's package perl-doc ships it in /usr/share/perl: its paragraphs, without
code and markup. It is free under the GNU General Public License, version 1 or later, or the Artistic License (see
/usr/share/doc/perl-doc/copyright); what stands there under other terms is left out. Every twentieth paragraph is held
out for validation. expected.txt has what PyTorch continues each prompt with, the likeliest character each time."""
import argparse, glob, math, os, re, sys, time
import numpy
import torch
from torch import nn
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "pytorch"))
from export import write_safetensors

CONTEXT, WIDTH, HEADS, HIDDEN, LAYERS = 256, 80, 5, 320, 3
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
PROMPTS = ["The regular expression ", "If you want to ", "In Perl, a hash is ", "This function returns ", "Note that the "]
# The manual of all releases, lists made by programs, and what has a licence of its own.
LEFT_OUT = re.compile("delta|perltoc|perlapi|perlintern|perluniprops|perlhist|perlmodlib|perlpodstyle|perlgpl|perlartistic")


# ---- text ------------------------------------------------------------------------------------------------------------

def without_markup(paragraph):
    """C<code> and L<words|place> as what they stand for; the innermost first."""
    before = None
    while before != paragraph:
        before = paragraph
        paragraph = re.sub(r"L<([^<>|]*)\|[^<>]*>", r"\1", paragraph)
        paragraph = re.sub(r"[A-Z]<([^<>]*)>", r"\1", paragraph)
    return " ".join(paragraph.split())


def read_paragraphs():
    """Of verbatim code and of commands nothing, of prose what is long enough and in the alphabet."""
    files = [f for f in sorted(glob.glob("/usr/share/perl/5.*.*/pod/perl*.pod")) if not LEFT_OUT.search(f)]
    if not files:
        sys.exit("train.py: no manual of Perl in /usr/share/perl (Debian: perl-doc)")
    texts = [open(f, encoding="utf-8", errors="replace").read() for f in files]
    paragraphs = [without_markup(p) for t in texts for p in re.split(r"\n\s*\n", t) if p and p[0] not in "= \t\n"]
    return [p + "\n" for p in paragraphs if len(p) >= 80 and all(c in ALPHABET for c in p)]


def encode(text):
    return torch.tensor([ALPHABET.index(c) for c in text])


# ---- model: the names are those of the layers in 18_text.c -----------------------------------------------------------

class Layer(nn.Module):
    """x + attention(norm(x)), then x + feed forward(norm(x))."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.linear1, self.linear2 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        for last in (self.out_proj, self.linear2): # the sum of all layers stays as large as the input
            nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * LAYERS))

    def forward(self, x, mask):
        n, length, _ = x.shape
        h = self.norm1(x)
        q, k, v = (p(h).view(n, length, HEADS, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
        x = x + self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.linear2(functional.gelu(self.linear1(self.norm2(x))))


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.position = nn.Embedding(len(ALPHABET), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(ALPHABET))
        nn.init.normal_(self.embedding.weight, std=0.2)
        angles = torch.arange(CONTEXT)[:, None] / 1000 ** (torch.arange(WIDTH // 2) / (WIDTH // 2))
        with torch.no_grad(): # what comes before what is there to be seen from the beginning; the rest is learned
            self.position.weight.copy_(0.2 * torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, tokens, start=0):
        length = tokens.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        x = self.embedding(tokens) + self.position(torch.arange(start, start + length))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))


# ---- training --------------------------------------------------------------------------------------------------------

def batch(text, count, length):
    at = torch.randint(0, len(text) - length - 1, (count,)).tolist()
    return torch.stack([text[a:a + length] for a in at]), torch.stack([text[a + 1:a + length + 1] for a in at])


def loss_of(net, x, y, start=0):
    return functional.cross_entropy(net(x, start).flatten(0, 1), y.flatten())


def validate(net, text):
    """Nats per character, over pieces as long as the context."""
    with torch.no_grad():
        pieces = text[:(len(text) - 1) // CONTEXT * CONTEXT].view(-1, CONTEXT)
        following = text[1:pieces.numel() + 1].view(-1, CONTEXT)
        losses = [loss_of(net, x, y).item() for x, y in zip(pieces.split(20), following.split(20))]
    return numpy.mean(losses)


def schedule(part):
    """Of the time that has passed: the rate of learning, and how many pieces of which length. Half contexts at random
    places of it most of the time, as attention costs less there; whole ones at last."""
    rate = 3e-3 * min(part / 0.02 + 0.01, 0.02 + 0.98 * (1 + math.cos(math.pi * part)) / 2)
    return (rate, 16, CONTEXT // 2) if part < 0.9 else (rate, 8, CONTEXT)


def train(net, text, held_out, minutes, save):
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0}],
                                  betas=(0.9, 0.98))
    begin, part, step = time.time(), 0, 0
    while part < 1:
        rate, count, length = schedule(part)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(net, *batch(text, count, length), int(torch.randint(0, CONTEXT - length + 1, ())))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        step, part = step + 1, (time.time() - begin) / (60 * minutes)
        if step % 1000 == 0 or part >= 1:
            print("step %d, %d %%: held out %.3f nats per character" % (step, 100 * part, validate(net, held_out)),
                  flush=True)
            save()


# ---- files -----------------------------------------------------------------------------------------------------------

def likeliest(net, prompt, count):
    """Ends before the context does, and where two characters are so close that rounding would decide."""
    tokens = encode(prompt)
    with torch.no_grad():
        while len(tokens) < min(CONTEXT, len(encode(prompt)) + count):
            best, second = net(tokens[None])[0, -1].topk(2)[0].tolist()
            if best - second < 1e-3:
                break
            tokens = torch.cat([tokens, net(tokens[None])[0, -1].argmax()[None]])
    return "".join(ALPHABET[t] for t in tokens[len(prompt):])


def write_files(net, count=200):
    state = net.state_dict()
    write_safetensors(os.path.join(HERE, "weights.safetensors"), state, list(state))
    with open(os.path.join(HERE, "expected.txt"), "w") as out: # a prompt, a tab, what follows, newlines as \n
        for prompt in PROMPTS:
            following = likeliest(net, prompt, count)
            out.write("%s\t%s\n" % (prompt, following.replace("\\", "\\\\").replace("\n", "\\n")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=36, help="on one core")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    paragraphs = read_paragraphs()
    held_out = encode("".join(paragraphs[::20]))
    text = encode("".join(p for i, p in enumerate(paragraphs) if i % 20))
    net = Text()
    print("%d characters, %d held out; %d parameters" % (len(text), len(held_out), sum(p.numel() for p in net.parameters())),
          flush=True)
    train(net, text, held_out, args.minutes, lambda: write_files(net))


if __name__ == "__main__":
    main()
