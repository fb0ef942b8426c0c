#!/usr/bin/env python3
"""Draws lines of text in the fonts of Debian packages: render.py FOLDER [PICTURES [LINES]].

For each picture NAME.ppm there is NAME.txt with what is drawn on it. Needs python3-pil and fonts (fonts-dejavu-core,
fonts-liberation, fonts-freefont-ttf). The same pictures in every run."""
import os
import random
import sys
from PIL import Image, ImageDraw, ImageFont

DIRS = ["dejavu", "liberation", "liberation2", "freefont", "open-sans", "lato"]
SKIP = ("Math", "Symbol", "Thin", "Hairline", "ExtraLight")
WORDS = """the quick brown fox jumps over lazy dog memory kernel graph tensor shape plan model device branch weight
letter number window garden river mountain yellow orange silver table paper music winter summer morning evening invoice
total amount price order street market bridge station Berlin London Paris Madrid Oslo Vienna Hello World Open Source
Report Chapter Section Figure January March August October Monday Friday simple small large between after before""".split()


def fonts(count):
    found = []
    for name in DIRS:
        folder = "/usr/share/fonts/truetype/" + name
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if file.endswith(".ttf") and not any(s in file for s in SKIP):
                found.append(os.path.join(folder, file))
    step = max(1, len(found) // count)
    return found[::step][:count]


def text(rng):
    words = rng.sample(WORDS, rng.randint(2, 4))
    if rng.random() < 0.5:
        words.append(str(rng.randint(10, 99999)))
    rng.shuffle(words)
    return " ".join(words)


def draw(rng, lines, list_of_fonts):
    light = rng.random() < 0.8
    paper = tuple(rng.randint(215, 255) if light else rng.randint(0, 45) for _ in range(3))
    image = Image.new("RGB", (640, 24 + 62 * lines), paper)
    pen = ImageDraw.Draw(image)
    words = []
    for i in range(lines):
        ink = tuple(rng.randint(0, 90) if light else rng.randint(180, 255) for _ in range(3))
        font = ImageFont.truetype(next(list_of_fonts), rng.randint(20, 30))
        line = text(rng)
        while pen.textlength(line, font) > 560:
            line = line.rsplit(" ", 1)[0]
        pen.text((rng.randint(16, 50), 24 + 62 * i), line, font=font, fill=ink)
        words.append(line)
    return image, words


def endless(items):
    while True:
        yield from items


def main():
    folder = sys.argv[1]
    pictures = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    lines = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    rng = random.Random(16)
    chosen = fonts(20)
    if not chosen:
        sys.exit("no fonts in /usr/share/fonts/truetype: install fonts-dejavu-core")
    os.makedirs(folder, exist_ok=True)
    names = endless(chosen)
    for i in range(pictures):
        image, words = draw(rng, lines, names)
        image.save(os.path.join(folder, "page%02d.ppm" % i))
        with open(os.path.join(folder, "page%02d.txt" % i), "w") as f:
            f.write("".join(w + "\n" for w in words))
    print("%d lines in %d fonts" % (pictures * lines, len(chosen)))


main()
