"""The tokens of a model as bytes, and the trie of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mlc.models.constraints.network import unsupported
from mlc.models.text import Tokenizer

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Trie:
    """The beginnings of tokens, as nodes in the order of their lengths; children of a node follow each other.

    bytes    the last byte of each node; 0 is the root
    parents  the node without that byte
    first    the first child of each node
    counts   how many it has
    levels   the first node of each length, and the number of nodes at the end
    nodes    the node of each token, 0 for those that are no text
    """

    bytes: Array
    parents: Array
    first: Array
    counts: Array
    levels: tuple[int, ...]
    nodes: Array

    def children(self, nodes: Array) -> tuple[Array, Array]:
        """The children of nodes, one after the other, and how many each has."""
        counts = self.counts[nodes]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        return np.arange(total) + np.repeat(self.first[nodes] - (ends - counts), counts), counts


def trie_of(tokens: Sequence[bytes]) -> Trie:
    """The trie of tokens: made level by level, for all tokens at once."""
    lengths = np.array([len(t) for t in tokens], np.int64)
    data = np.frombuffer(b"".join(tokens), np.uint8)
    starts = np.cumsum(lengths) - lengths
    nodes: Array = np.zeros(len(tokens), np.int64)
    zero: Array = np.zeros(1, np.int64)
    letters, parents, first, counts, levels = [zero], [zero], list[Array](), list[Array](), [0, 1]
    for depth in range(int(lengths.max(initial=0)) + 1):
        start, total = levels[-2:]
        longer = np.flatnonzero(lengths > depth)
        keys = nodes[longer] * 256 + data[starts[longer] + depth]
        found, where = np.unique(keys, return_inverse=True)
        counts.append(np.bincount(found // 256 - start, minlength=total - start))
        first.append(total + np.searchsorted(found, np.arange(start, total) * 256))
        letters.append(found % 256)
        parents.append(found // 256)
        nodes[longer] = total + where
        levels.append(total + len(found))
    small = [np.concatenate(x).astype(np.int32) for x in (letters, parents, first, counts)]
    return Trie(small[0], small[1], small[2], small[3], tuple(levels), nodes)


class Vocabulary:
    """The tokens of a model as bytes.

    tokens  the bytes of each; b"" for special tokens, and for numbers that are no token
    strips  whether a space at the start of a text is left out
    """

    def __init__(self, tokens: Sequence[bytes], strips: bool = False) -> None:
        self.tokens, self.strips = tuple(tokens), strips

    def __len__(self) -> int:
        return len(self.tokens)

    def of_token(self, token: int, first: bool) -> bytes:
        """The bytes that a token adds to a text, which it may begin."""
        text = self.tokens[token]
        return text[1:] if first and self.strips and text.startswith(b" ") else text

    def trie(self, first: bool) -> Trie:
        """The trie of the tokens that go on with a text, or begin one."""
        return self._first if first and self.strips else self._trie

    @cached_property
    def _trie(self) -> Trie:
        return trie_of(self.tokens)

    @cached_property
    def _first(self) -> Trie:
        return trie_of([self.of_token(i, True) for i in range(len(self.tokens))])


def vocabulary_of(tokenizer: Tokenizer, size: int) -> Vocabulary:
    """The tokens of a tokenizer as bytes.

    tokenizer  of the model
    size       number of tokens that the model has scores of
    """
    rules = json.loads(tokenizer.rules.to_str())
    decoders = _decoders(rules.get("decoder"))
    kinds = {d["type"] for d in decoders}
    refused = kinds - {"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Metaspace"}
    if refused:
        raise unsupported(f"tokens become text by {', '.join(sorted(refused))}, and constraints are of bytes",
                          "use a model with a tokenizer of bytes or of sentencepiece")
    added = {t["id"]: t for t in rules.get("added_tokens", ())}
    names = {number: name for name, number in tokenizer.rules.get_vocab(with_added_tokens=True).items()}
    tokens = []
    for number in range(size):
        if number in added:
            tokens.append(b"" if added[number]["special"] else added[number]["content"].encode())
        else:
            tokens.append(_bytes(names[number], decoders) if number in names else b"")
    return Vocabulary(tokens, _strips(decoders))


def _decoders(decoder: Any) -> list[dict[str, Any]]:
    if decoder is None:
        return []
    return [d for part in decoder["decoders"] for d in _decoders(part)] if decoder["type"] == "Sequence" else [decoder]


def _strips(decoders: Sequence[dict[str, Any]]) -> bool:
    return any((d["type"] == "Strip" and d["content"] == " " and d["start"] > 0)
               or (d["type"] == "Metaspace" and d.get("prepend_scheme", "always") != "never") for d in decoders)


def _bytes(name: str, decoders: Sequence[dict[str, Any]]) -> bytes:
    for d in decoders:
        match d["type"]:
            case "ByteLevel":
                return bytes(_BYTES[c] for c in name) if all(c in _BYTES for c in name) else name.encode()
            case "ByteFallback" if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
                return bytes([int(name[3:5], 16)])
            case "Replace":
                name = name.replace(d["pattern"]["String"], d["content"])
            case "Metaspace":
                name = name.replace(d["replacement"], " ")
    return name.encode()


def _byte_letters() -> dict[str, int]:
    """The letters that byte-level tokenizers write bytes as: printable ones themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTES = _byte_letters()
