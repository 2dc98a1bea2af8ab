"""Random JSON schemas: how many answers are valid by the package jsonschema, and what a token costs.

    python -m tests.peers.constraints [--schemas 500] [--model 20] [--vocabulary 32000 128000]

It ends with what the mask of a token costs where a vocabulary is as large as those of public models: words of letters,
most of them with a space before, digits, punctuation and characters of several bytes.

Random tokens that the masks allow stand for the model, which is harder than any model: they leave nothing untried. With
--model, the model of examples/assistant answers by some of the schemas too, within a limit that would cut most answers.
"""
from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import numpy as np

import mlc
from mlc.models import Constraint
from mlc.models.constraints.automaton import Automaton, Matcher
from mlc.models.constraints.vocabulary import Vocabulary
from tests.schemas import random_schema

ASSISTANT = Path(__file__).parent.parent.parent / "examples" / "assistant"
END = 2


def drawn(automaton: Automaton, rng: np.random.Generator, limit: int = 300, end: int = END) -> tuple[str, int, float]:
    """A text of random tokens, how many they are, and the seconds that masks took."""
    matcher, text, seconds = Matcher(automaton, [end]), b"", 0.0
    for i in range(limit):
        started = time.perf_counter()
        mask = matcher.mask(limit - i)
        seconds += time.perf_counter() - started
        token = int(rng.choice(np.flatnonzero(mask)))
        if token != end:
            text += automaton.vocabulary.of_token(token, i == 0)
            matcher.advance(token)
        if token == end or matcher.complete:
            return text.decode(), i + 1, seconds
    return text.decode(errors="replace"), limit, seconds


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--schemas", type=int, default=500)
    p.add_argument("--model", type=int, default=20)
    p.add_argument("--vocabulary", type=int, nargs="*", default=[32_000, 128_000])
    options = p.parse_args()
    model, rng = mlc.models.load(ASSISTANT), np.random.default_rng(0)
    schemas = [random_schema(rng) for _ in range(options.schemas)]
    automata = automata_of(model, schemas)
    for name in ("new", "known"):
        valid, tokens, seconds = 0, 0, 0.0
        for schema, automaton in zip(schemas, automata):
            text, count, took = drawn(automaton, rng)
            valid, tokens, seconds = valid + is_valid(text, schema), tokens + count, seconds + took
        print(f"random tokens, {name} schemas: {valid} of {len(schemas)} valid, {tokens} tokens, "
              f"{1e6 * seconds / tokens:.0f} us of masks per token")
    valid = 0
    for schema in schemas[: options.model]:
        found = model.generate("It is", constraint=Constraint.json_schema(schema), max_tokens=100)
        valid += is_valid(found.text, schema)
    print(f"the model: {valid} of {options.model} valid")
    for size in options.vocabulary:
        large_vocabulary(size, schemas[:50], rng)


def large_vocabulary(size: int, schemas: list[dict[str, object]], rng: np.random.Generator) -> None:
    """The cost of masks for a vocabulary of random tokens."""
    vocabulary = Vocabulary(random_tokens(size, rng))
    started = time.perf_counter()
    vocabulary.trie(False)
    print(f"{size} tokens become a trie in {1e3 * (time.perf_counter() - started):.0f} ms")
    automata = [Constraint.json_schema(s).automaton(vocabulary) for s in schemas]
    for name in ("new", "known"):
        found = [drawn(a, np.random.default_rng(i), end=size - 1) for i, a in enumerate(automata)]
        count = sum(tokens for _, tokens, _ in found)
        print(f"{size} tokens, {name} schemas: {1e6 * sum(s for _, _, s in found) / count:.0f} us of masks per token")


def random_tokens(size: int, rng: np.random.Generator) -> list[bytes]:
    """All bytes, random words, and an end at last."""
    letters, marks = np.frombuffer(b"etaoinshrdlucmfwypvbgk", np.uint8), np.frombuffer(b'{}[]",: \n-_.()/', np.uint8)
    out = dict.fromkeys(bytes([i]) for i in range(256))
    while len(out) < size - 1:
        kind, length = rng.random(), int(rng.integers(2, 9))
        if kind < 0.1:
            out["".join(map(chr, rng.integers(0x4E00, 0x9FFF, 2))).encode()] = None
        elif kind < 0.2:
            out[rng.choice(marks, length).tobytes() if kind < 0.15 else b"%d" % rng.integers(10_000)] = None
        else:
            out[b" " * (kind < 0.6) + rng.choice(letters, length).tobytes()] = None
    return [*out, b""]


def automata_of(model: mlc.models.LanguageModel, schemas: list[dict[str, object]]) -> list[Automaton]:
    started = time.perf_counter()
    automata = [Constraint.json_schema(s).automaton(model.vocabulary) for s in schemas]
    print(f"a schema becomes a network in {1e3 * (time.perf_counter() - started) / len(schemas):.1f} ms")
    return automata


def is_valid(text: str, schema: dict[str, object]) -> bool:
    """Whether a text is a value that the schema allows; of the formats, date, email, ipv4 and uuid are checked."""
    try:
        validator = jsonschema.Draft202012Validator
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        print(f"not valid: {text[:100]!r} by {json.dumps(schema)[:200]}: {str(error)[:80]}")
        return False
    return True


if __name__ == "__main__":
    main()
