#!/usr/bin/env python3
"""Train the digit classifier of this folder and write all of its data files.

What it does, in order:
  1. finds the font files of the Debian packages listed in PACKAGES and keeps
     those whose ten digits 0-9 exist, are not empty and all differ;
  2. splits the PACKAGES (so whole font families, and near-copies together)
     into training, validation and unseen; unseen fonts are never trained on
     and never used to choose anything;
  3. renders white digits on black, 28x28, with random size, stretch, shift,
     rotation (+-15 degrees), blur, contrast and noise; every training step
     uses newly drawn images, half of them also warped a little;
  4. trains a small CNN with Adam on one thread from fixed seeds;
  5. measures the accuracy on the unseen fonts and writes digits.weights,
     test_set.bin, expected.bin, images/*.pgm and fonts.txt.

Debian 12 packages needed (all in `main`): python3-torch python3-numpy
python3-pil fontconfig and the font packages; `train.py --packages` prints them:

    apt-get install --no-install-recommends python3-torch python3-numpy \\
        python3-pil fontconfig $(./train.py --packages)
    OMP_NUM_THREADS=1 /usr/bin/python3 train.py

Options: --packages   print the font packages and stop
         --steps N    training steps of 128 images (default 9000)
         --list       print the split and stop
"""

import hashlib
import math
import os
import random
import re
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 9000
BATCH = 128
SPLIT_SEED = 2024
TEST_COUNT = 2500
EXPECTED_COUNT = 64

# Debian font packages, without their "fonts-" prefix.
PACKAGES = """
3270 adf-accanthis adf-baskervald adf-berenis adf-gillius adf-ikarius
adf-irianis adf-libris adf-mekanus adf-oldania adf-romande adf-solothurn
adf-switzera adf-tribun adf-universalis adf-verana agave allerta
anonymous-pro apropal arapey averia-sans-gwf averia-serif-gwf b612 bajaderka
bebas-neue beteckna breip bwht cabin cantarell century-catalogue cherrybomb
clear-sans cmu comfortaa comic-neue compagnon courier-prime croscore
crosextra-caladea crosextra-carlito dancingscript dejavu-core dejavu-extra
dkg-handwriting dosis dustin ebgaramond ecolier-court elstob engadget
essays1743 eurofurence f500 fantasque-sans fanwood femkeklaver firacode
freefont-otf georgewilliams gfs-artemisia gfs-baskerville gfs-didot
gfs-neohellenic gnutypewriter go goudybookletter hack havana hermit
humor-sans inconsolata inter isabella jetbrains-mono junction junicode jura
karla karmilla kaushanscript klaudia-berenika kristi lato ldco league-mono
league-spartan leckerli-one lemonada levien-museum levien-typoscript
liberation2 lindenhill linuxlibertine lmodern lobster lobstertwo manrope
millimetre monofur monoid mononoki motoya-l-maruberi nanum national-park
noto-mono ocr-a ocr-b okolaks oldstandard open-sans opendin opendyslexic
osifont oxygen paratype play prociono quattrocento quicksand radisnoir
reggae rit-sundar roadgeek roboto-slab roboto-unhinted rocknroll
routed-gothic rufscript sil-andika sil-charis sil-doulos sil-gentium sjfonts
smc-chilanka smc-gayathri smc-manjari smc-uroob sora spleen staypuft stick
stix summersby texgyre tiresias tlwg-garuda-ttf tlwg-purisa-ttf tomsontalks
tuffy ubuntu-title urw-base35 vollkorn woowa-bm yanone-kaffeesatz yrsa-rasa
yusei-magic
""".split()

# Families whose characters 0-9 are not legible digits (seen on a contact sheet).
EXCLUDED = {
    "D050000L": "dingbats, no digits",
    "Linux Biolinum Keyboard O": "pictures of keyboard keys",
    "Hidekel": "slanted scratches, not legible as digits",
    "BM Euljiro oraeorae": "digits almost wholly erased",
}
# fonts-aenigma (465 decorative fonts, which nobody looked through one by one) is
# left out as a whole, so that it does not outnumber all the others.

# Packages that hold copies or close relatives of the same designs. The first
# group (copies of Helvetica, Times, Courier, Palatino, Computer Modern, Vera
# and so on) is always on the training side, so that no unseen font is a copy
# of a trained one. Each other group is drawn as one.
COPIES = """urw-base35 texgyre freefont-otf liberation2 croscore lmodern cmu
dejavu-core dejavu-extra stix gnutypewriter adf-switzera adf-verana hack
opendyslexic noto-mono open-sans tlwg-garuda-ttf gfs-artemisia gfs-didot
courier-prime adf-tribun adf-oldania""".split()
RELATED = [
    "lato crosextra-carlito", "karla karmilla", "lobster lobstertwo",
    "averia-sans-gwf averia-serif-gwf", "roboto-unhinted roboto-slab",
    "eurofurence monofur", "sil-charis sil-doulos sil-gentium",
]


# ------------------------------------------------------------------- fonts

def run(*cmd):
    return subprocess.run(cmd, check=True, stdout=subprocess.PIPE).stdout.decode()


def find_fonts():
    """[(package, family, file)] of the usable fonts, sorted."""
    from PIL import Image, ImageDraw, ImageFont
    listing = run("fc-list", ":charset=30 31 32 33 34 35 36 37 38 39",
                  "--format", "%{file}\x1f%{index}\x1f%{family[0]}\x1e")
    family = {}
    for record in listing.split("\x1e"):
        if record:
            path, index, fam = record.split("\x1f")
            if index == "0":
                family[path] = fam
    fonts, seen = [], set()
    for package in PACKAGES:
        for path in sorted(run("dpkg", "-L", "fonts-" + package).split("\n")):
            if not path.lower().endswith((".ttf", ".otf")) \
                    or os.path.islink(path) or path not in family \
                    or family[path] in EXCLUDED:
                continue
            font = ImageFont.truetype(path, 40)
            pictures = []
            for d in "0123456789":
                im = Image.new("L", (120, 120))
                ImageDraw.Draw(im).text((30, 30), d, font=font, fill=255)
                pictures.append(im.tobytes())
            if min(len(p) - p.count(b"\0") for p in pictures) < 20 \
                    or len(set(pictures)) < 10:
                continue
            key = hashlib.md5(b"".join(pictures)).digest()
            if key in seen:                      # same ten digits as another
                continue
            seen.add(key)
            fonts.append((package, family[path], path))
    return fonts


def split_fonts(fonts):
    """Packages -> {"train": [...], "validation": [...], "unseen": [...]}."""
    together = {p: g.split() for g in RELATED for p in g.split()}
    groups, done = [], set(COPIES)
    for p in PACKAGES:
        if p not in done:
            groups.append(together.get(p, [p]))
            done.update(groups[-1])
    random.Random(SPLIT_SEED).shuffle(groups)
    n = len(groups)
    part = {p: "train" for p in COPIES}
    for k, g in enumerate(groups):
        for p in g:
            part[p] = "unseen" if k < n * 3 // 10 else \
                "validation" if k < n * 4 // 10 else "train"
    side = {"train": {}, "validation": {}, "unseen": {}}
    for package, fam, path in fonts:
        side[part[package]].setdefault((package, fam), []).append(path)
    names = [{f for _, f in side[s]} for s in ("train", "validation", "unseen")]
    assert not (names[0] & names[2]) and not (names[1] & names[2])
    return side


# --------------------------------------------------------------- rendering

_glyphs = {}


def glyph(path, digit):
    """The digit at 64 px per em, cropped to its ink, as a PIL image."""
    from PIL import Image, ImageDraw, ImageFont
    key = (path, digit)
    if key not in _glyphs:
        font = ImageFont.truetype(path, 64)
        im = Image.new("L", (320, 320))
        ImageDraw.Draw(im).text((110, 110), str(digit), font=font, fill=255)
        _glyphs[key] = im.crop(im.getbbox())
    return _glyphs[key]


def render(path, digit, rng, warp=False):
    """One 28x28 uint8 image. `rng` is a numpy RandomState. `warp`, used for
    training images only, also bends the glyph's box and thickens strokes."""
    import numpy as np
    from PIL import Image, ImageFilter
    g = glyph(path, digit)
    height = rng.uniform(14, 22)                      # of the digit, pixels
    stretch = rng.uniform(0.88, 1.12)                 # of its width
    scale = height / g.size[1]
    if g.size[0] * scale * stretch > 22:
        scale = 22 / (g.size[0] * stretch)
    w = max(2, int(round(2 * g.size[0] * scale * stretch)))
    h = max(2, int(round(2 * g.size[1] * scale)))
    g = g.resize((w, h), Image.LANCZOS)
    if warp and rng.rand() < 0.5:                     # move the four corners
        j = rng.uniform(-0.16, 0.16, 8) * np.array([w, h] * 4)
        m = 4                                         # margin, so ink stays
        pad = Image.new("L", (w + 2 * m, h + 2 * m))
        pad.paste(g, (m, m))
        w, h = pad.size
        g = pad.transform((w, h), Image.QUAD, tuple(
            np.array([0, 0, 0, h, w, h, w, 0]) + j), Image.BILINEAR)
    if warp and rng.rand() < 0.15:
        g = g.filter(ImageFilter.MaxFilter(3))
    big = Image.new("L", (56, 56))                    # drawn at twice the size
    dx, dy = rng.randint(-5, 6, 2)                    # +-2.5 pixels
    big.paste(g, ((56 - w) // 2, (56 - h) // 2))
    big = big.rotate(rng.uniform(-15, 15), Image.BILINEAR,
                     translate=(int(dx), int(dy)))
    im = big.resize((28, 28), Image.BOX)
    if rng.rand() < 0.4:
        im = im.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.8)))
    a = np.asarray(im, dtype=np.float32) / 255.0
    ink, paper = rng.uniform(150, 255), rng.uniform(0, 40)
    a = paper + (ink - paper) * a
    a += rng.standard_normal((28, 28)) * rng.uniform(0, 25)
    return np.clip(np.rint(a), 0, 255).astype(np.uint8)


def draw_set(families, count, rng):
    """`count` images: digits in turn, families in shuffled turns."""
    import numpy as np
    keys = sorted(families)
    order = []
    images = np.empty((count, 28, 28), np.uint8)
    labels = np.empty(count, np.uint8)
    names = []
    for i in range(count):
        if i % 10 == 0 and len(order) < 10:
            order += [keys[k] for k in rng.permutation(len(keys))]
        key = order.pop(0)
        path = families[key][rng.randint(len(families[key]))]
        labels[i] = i % 10
        images[i] = render(path, i % 10, rng)
        names.append((key[1], path))
    perm = rng.permutation(count)
    return images[perm], labels[perm], [names[k] for k in perm]


# ------------------------------------------------------------------- model

def make_model():
    import torch.nn as nn
    import torch.nn.functional as F

    class Digits(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
            self.bn1 = nn.BatchNorm2d(16)             # eps 1e-5
            self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
            self.bn2 = nn.BatchNorm2d(32)
            self.fc1 = nn.Linear(32 * 7 * 7, 64)
            self.fc2 = nn.Linear(64, 10)

        def forward(self, x):                         # [N,1,28,28], 0..1
            x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
            x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
            x = x.flatten(1)                          # channel, row, column
            x = F.dropout(x, 0.25, self.training)     # nothing in eval mode
            x = F.relu(self.fc1(x))
            return self.fc2(x)                        # logits; softmax outside

    return Digits()


def logits_of(model, images):
    import torch
    model.eval()
    with torch.no_grad():
        x = torch.from_numpy(images).float().div(255).unsqueeze(1)
        return torch.cat([model(b) for b in x.split(250)])


def train(families, validation, steps):
    import numpy as np
    import torch
    import torch.nn.functional as F
    torch.manual_seed(7)
    rng = np.random.RandomState(7)
    val_x, val_y, _ = draw_set(validation, 2000, np.random.RandomState(8))
    model = make_model()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    keys = sorted(families)
    start, total = time.time(), 0.0
    for step in range(steps):
        lr = 2e-3 * min(1, (step + 1) / 100) \
            * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-6
        for group in opt.param_groups:
            group["lr"] = lr
        labels = rng.randint(0, 10, BATCH)
        images = np.empty((BATCH, 1, 28, 28), np.uint8)
        for k, d in enumerate(labels):
            files = families[keys[rng.randint(len(keys))]]
            images[k, 0] = render(files[rng.randint(len(files))], int(d), rng,
                                  warp=True)
        model.train()
        x = torch.from_numpy(images).float().div(255)
        loss = F.cross_entropy(model(x), torch.from_numpy(labels))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        if (step + 1) % 250 == 0:
            acc = (logits_of(model, val_x).argmax(1).numpy() == val_y).mean()
            print("step %5d  loss %.4f  validation %.2f %%  %.0f s"
                  % (step + 1, total / 250, 100 * acc, time.time() - start),
                  flush=True)
            total = 0.0
    return model.eval()


# ------------------------------------------------------------------- files

def write_weights(model, path):
    tensors = [(n, t) for n, t in model.state_dict().items()
               if not n.endswith("num_batches_tracked")]
    with open(path, "wb") as f:
        f.write(b"NPUW" + struct.pack("<II", 1, len(tensors)))
        for name, t in tensors:
            f.write(struct.pack("<I", len(name)) + name.encode())
            f.write(struct.pack("<I", t.dim()))
            f.write(struct.pack("<%dq" % t.dim(), *t.shape))
            f.write(t.detach().numpy().astype("<f4").tobytes())


def write_test_set(images, labels, path):
    with open(path, "wb") as f:
        f.write(b"NPUD" + struct.pack("<III", len(images), 28, 28))
        f.write(labels.tobytes() + images.tobytes())


def write_expected(logits, path):
    with open(path, "wb") as f:
        f.write(b"NPUE" + struct.pack("<II", *logits.shape))
        f.write(logits.numpy().astype("<f4").tobytes())


def write_images(model, families, folder):
    """Four images per digit, each of another unseen font."""
    import numpy as np
    rng = np.random.RandomState(11)
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        if old.endswith(".pgm"):
            os.unlink(os.path.join(folder, old))
    images, labels, names = draw_set(families, 40, rng)
    guess = logits_of(model, images).argmax(1).numpy()
    for i in range(40):
        font = re.sub(r"[^A-Za-z0-9]+", "", names[i][0])
        with open(os.path.join(folder, "%02d_%d_%s.pgm"
                               % (i, labels[i], font)), "wb") as f:
            f.write(b"P5\n28 28\n255\n" + images[i].tobytes())
    wrong = [(i, int(labels[i]), int(guess[i]), names[i][0])
             for i in range(40) if guess[i] != labels[i]]
    return len({n[0] for n in names}), wrong


def main():
    if "--packages" in sys.argv:
        print(" ".join("fonts-" + p for p in PACKAGES))
        return
    steps = STEPS
    if "--steps" in sys.argv:
        steps = int(sys.argv[sys.argv.index("--steps") + 1])

    import numpy as np
    fonts = find_fonts()
    side = split_fonts(fonts)
    versions = dict((line.split(" ")[0][6:], line.split(" ")[1]) for line in run(
        "dpkg-query", "-W", "-f", "${Package} ${Version}\n",
        *["fonts-" + p for p in PACKAGES]).strip().split("\n"))
    report = []
    for s in ("train", "validation", "unseen"):
        fams = side[s]
        report.append("%s: %d families, %d font files, %d packages" % (
            s, len({f for _, f in fams}), sum(map(len, fams.values())),
            len({p for p, _ in fams})))
        for p in sorted({p for p, _ in fams}):
            report.append("  fonts-%s %s: %s" % (p, versions[p], ", ".join(
                "%s (%d)" % (f, len(fams[p, f])) for q, f in sorted(fams)
                if q == p)))
        report.append("")
    report = "\n".join(report)
    print(report)
    if "--list" in sys.argv:
        return

    import torch
    torch.set_num_threads(1)
    model = train(side["train"], side["validation"], steps)

    images, labels, names = draw_set(side["unseen"], TEST_COUNT,
                                     np.random.RandomState(10))
    logits = logits_of(model, images)
    guess = logits.argmax(1).numpy()
    right = int((guess == labels).sum())
    result = ["unseen fonts: %d of %d images right, %.2f %%"
              % (right, TEST_COUNT, 100.0 * right / TEST_COUNT)]
    for d in range(10):
        m = labels == d
        result.append("  digit %d: %d of %d" % (d, (guess[m] == d).sum(), m.sum()))
    per = {}
    for i, (fam, _) in enumerate(names):
        r = per.setdefault(fam, [0, 0])
        r[0] += int(guess[i] == labels[i])
        r[1] += 1
    worst = sorted((r[0] / r[1], f, r) for f, r in per.items())[:8]
    result.append("  weakest families: " + ", ".join(
        "%s %d/%d" % (f, r[0], r[1]) for _, f, r in worst))

    write_weights(model, os.path.join(HERE, "digits.weights"))
    write_test_set(images, labels, os.path.join(HERE, "test_set.bin"))
    first = logits_of(model, images[:EXPECTED_COUNT])
    write_expected(first, os.path.join(HERE, "expected.bin"))
    count, wrong = write_images(model, side["unseen"],
                                os.path.join(HERE, "images"))
    result.append("images/: 40 files of %d unseen families, %d right; wrong: %s"
                  % (count, 40 - len(wrong), wrong))
    result = "\n".join(result)
    print(result)
    with open(os.path.join(HERE, "fonts.txt"), "w") as f:
        f.write(report + "\n" + result + "\n")


if __name__ == "__main__":
    main()
