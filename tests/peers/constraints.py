"""Random JSON schemas: how many answers are valid by the package jsonschema, and what a token costs.

    python -m tests.peers.constraints [--schemas 200] [--model 20]

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
from tests.schemas import random_schema

ASSISTANT = Path(__file__).parent.parent.parent / "examples" / "assistant"
END = 2


def drawn(automaton: Automaton, rng: np.random.Generator, limit: int = 300) -> tuple[str, int, float]:
    """A text of random tokens, how many they are, and the seconds that masks took."""
    matcher, text, seconds = Matcher(automaton, [END]), b"", 0.0
    for i in range(limit):
        started = time.perf_counter()
        mask = matcher.mask(limit - i)
        seconds += time.perf_counter() - started
        token = int(rng.choice(np.flatnonzero(mask)))
        if token != END:
            text += automaton.vocabulary.of_token(token, i == 0)
            matcher.advance(token)
        if token == END or matcher.complete:
            return text.decode(), i + 1, seconds
    return text.decode(errors="replace"), limit, seconds


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--schemas", type=int, default=200)
    p.add_argument("--model", type=int, default=20)
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
