"""Programs with mistakes: mutations of valid programs, by characters, words and lines."""
from __future__ import annotations

import random
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOUND = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.mlc"))]
WORDS = ["(", ")", "[", "]", ":", "=", ",", "->", "=>", "..", "...", "'", "~", "**", "@", "-", "not", "if", "else",
         "for", "in", "while", "def", "model", "return", "yield", "unroll", "like", "buffer", "assert", "none", "true",
         "0", "1", "-1", "7", "1e40", "9999999999999999999", "B", "x", "f32", "i64[B]", '"', '"""', "#", "\n", "\t",
         "    ", "é", "数", "\x00", "{", "$", "x.shape", "[:, none]", "1/0", "10 ** 10 ** 10", "grad(", "vmap(", "x[0]",
         "zeros((99999, 99999, 99999))", "split(x, 1)", "arange(10 ** 12)", "optim.SGD(0.1)", "nn.Linear(8, 8)"]


def mutated(seed: int) -> str:
    """A program with one to four mistakes."""
    draw = random.Random(seed)
    text = draw.choice(SOUND)
    for _ in range(draw.randint(1, 4)):
        text = draw.choice((_character, _word, _words, _line, _swap))(text, draw)
    return text


def _character(text: str, draw: random.Random) -> str:
    i = draw.randrange(len(text) + 1)
    return text[:i] + draw.choice(["", chr(draw.choice([9, 10, 32, 34, 39, 40, 41, 58, 91, 93, 0x3bb, 0x1f600]))]
                                  ) + text[i + draw.randint(0, 2):]


def _word(text: str, draw: random.Random) -> str:
    """Replace a word by another one of the program or the language."""
    spans = [m.span() for m in re.finditer(r"\w+|[^\w\s]+", text)]
    if not spans:
        return text
    start, end = draw.choice(spans)
    other = text[slice(*draw.choice(spans))] if draw.random() < 0.5 else draw.choice(WORDS)
    return text[:start] + other + text[end:]


def _words(text: str, draw: random.Random) -> str:
    i = draw.randrange(len(text) + 1)
    return text[:i] + " ".join(draw.choices(WORDS, k=draw.randint(1, 6))) + text[i:]


def _line(text: str, draw: random.Random) -> str:
    """Delete, duplicate or re-indent a line."""
    lines = text.split("\n")
    i = draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(draw.randrange(len(lines)), lines[i])
    elif kind == 2:
        lines[i] = draw.choice(["", "  ", "    ", "\t"]) + lines[i].lstrip()
    else:
        lines[i] = lines[i][: draw.randrange(len(lines[i]) + 1)]
    return "\n".join(lines)


def _swap(text: str, draw: random.Random) -> str:
    """Swap two parts of the program."""
    a, b, c, d = sorted(draw.randrange(len(text) + 1) for _ in range(4))
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
