"""Random JSON schemas of the keywords that constraints enforce, `oneOf` by types and by constants of a property."""
from __future__ import annotations

from typing import Any

import numpy as np

TREE = {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "maxItems": 3, "items": {
    "$ref": "#/$defs/tree"}}}, "required": ["v"], "additionalProperties": False}
PATTERNS = ["^[a-f]{2,5}$", "x+y", r"^\d{3}(-\d{2})?$", r'["\\]z$', "^(ab|c)*$|^é"]
ENUMS: list[list[Any]] = [["a", 'b"c', "é"], [1, 2.5, None, True], [{"a": [1]}, "x"]]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "email"]


def random_schema(rng: np.random.Generator) -> dict[str, Any]:
    """A schema, which may refer to the definition `tree`."""
    return {**_any(rng, 0), "$defs": {"tree": TREE}}


def _any(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    leaves = [_integer, _number, _string, _pattern, _choice]
    return [*leaves, *([_object, _object, _array, _array, _any_of, _one_of, _tree] if depth < 3 else [])][
        int(rng.integers(len(leaves) + (7 if depth < 3 else 0)))](rng, depth)


def _integer(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    low, high = sorted(int(x) for x in rng.integers(-300, 3000, 2))
    least = {"minimum": low} if rng.integers(2) else {"exclusiveMinimum": low - 1}
    most = {"maximum": high} if rng.integers(2) else {"exclusiveMaximum": high + 1}
    return {"type": "integer", **(least if rng.integers(2) else {}), **(most if rng.integers(2) else {})}


def _number(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    low, high = (float(x) for x in np.sort(rng.normal(0, 20, 2)).round(int(rng.integers(1, 5))) + np.arange(2))
    least = {"minimum" if rng.integers(2) else "exclusiveMinimum": round(low, 4)}
    most = {"maximum" if rng.integers(2) else "exclusiveMaximum": round(high, 4)}
    return {"type": "number", **(least if rng.integers(2) else {}), **(most if rng.integers(2) else {})}


def _string(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    most = int(rng.integers(12))
    return {"type": ["string", "null"] if rng.integers(2) else "string", "maxLength": most,
            **({"minLength": int(rng.integers(most + 1))} if rng.integers(2) else {})}


def _pattern(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    if rng.integers(2):
        return {"type": "string", "format": FORMATS[int(rng.integers(len(FORMATS)))]}
    return {"type": "string", "pattern": PATTERNS[int(rng.integers(len(PATTERNS)))]}


def _choice(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [{"type": "boolean"}, {"const": [1, {"k": "v"}]}, *({"enum": e} for e in ENUMS)]
    return kinds[int(rng.integers(len(kinds)))]


def _object(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    names = {"".join(rng.choice(list('abcdé_"'), int(rng.integers(1, 6)))) for _ in range(int(rng.integers(5)))}
    kinds: list[dict[str, Any]] = [{"additionalProperties": False}, {"additionalProperties": _any(rng, depth + 1)}, {}]
    extra = kinds[int(rng.integers(3))]
    required = [n for n in sorted(names) if rng.integers(2)]
    counts = ({"minProperties": 1, "maxProperties": 2} if not names and extra.get("additionalProperties", True) else
              {"minProperties": len(required)})
    closed = {"maxProperties": len(names)} if extra.get("additionalProperties") is False and rng.integers(2) else {}
    return {"type": "object", "properties": {n: _any(rng, depth + 1) for n in sorted(names)},
            "required": required, **extra, **(counts if rng.integers(2) else {}), **closed}


def _array(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    least = int(rng.integers(4))
    most = {"maxItems": least + int(rng.integers(4))} if rng.integers(2) else {}
    prefix = [_any(rng, depth + 1) for _ in range(int(rng.integers(3)))]
    return {"type": "array", "items": _any(rng, depth + 1), "minItems": least, **most,
            **({"prefixItems": prefix} if prefix else {})}


def _any_of(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    return {"anyOf": [_any(rng, depth + 1) for _ in range(int(rng.integers(1, 4)))]}


def _one_of(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    if rng.integers(2):
        return {"oneOf": [_integer(rng, depth), _string(rng, depth), {"type": "boolean"}]}
    return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "of": {"allOf": [_any(
        rng, depth + 1)]}}, "required": ["kind"]} for kind in ("a", 1, None)]}


def _tree(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    return {"$ref": "#/$defs/tree"}
