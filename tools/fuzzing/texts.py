"""Mutations of a module's text, at tokens where the parser makes decisions."""
from __future__ import annotations

import random
import re

TOKEN = re.compile(r"\s+|[%@^!#]?[\w.]+|[^\w\s]")
STRANGE = ("-1", "0", "99999999999999999999", "1e999", "0x", "0x1", "nan", "i1", "i7", "f32", "index", "tensor<",
           "tensor<f32>", "tensor<0xf32>", "%x", "%0", "@f", "@g", "^bb0", "-", "*", "dense", "dense<", "array<",
           "module", "func.func", "func.return", "func.call", "loc(", "true", "?", "B", '"', "!mlc.x", "#mlc.enc",
           "floordiv", "arith.constant", "autodiff.vjp", "()", "{}", "[", "9" * 50, "é", "\u2028", "\x00")


def mutated(rng: random.Random, text: str) -> str:
    """`text` after one or a few changes: cut, drop, repeat, swap, replace a token or a character."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        tokens = TOKEN.findall(text) or [""]
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.choice(("cut", "drop", "repeat", "swap", "like", "like", "like", "strange", "character", "move")):
            case "cut":
                tokens = tokens[:i]
            case "drop":
                del tokens[i]
            case "repeat":
                tokens.insert(i, tokens[j])
            case "swap":
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case "like":                         # another token of the same kind: most of these are well-formed
                same = [t for t in tokens if t[0] == tokens[i][0] and not t.isspace()] if tokens[i] else []
                tokens[i] = rng.choice(same) if same else tokens[i]
            case "strange":
                tokens[i] = rng.choice(STRANGE)
            case "character":
                at = rng.randrange(len(tokens[i]) + 1)
                tokens[i] = tokens[i][:at] + chr(rng.randrange(1, 256)) + tokens[i][at + 1:]
            case "move":
                part = tokens[i:i + rng.randrange(1, 12)]
                tokens[j:j] = part
        text = "".join(tokens)
    return text
