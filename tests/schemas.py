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
    kinds = [_integer, _number, _string, _pattern, _choice, _multiple, _merged_leaf, _different]
    if depth < 3:
        kinds += [_object, _object, _array, _array, _any_of, _one_of, _tree, _keyed, _merged_objects, _merged_arrays,
                  _beside, _containing, _conditional]
    return kinds[int(rng.integers(len(kinds)))](rng, depth)


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


def _multiple(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    divisor = int(rng.choice([1, 2, 3, 7, 10, 12, 60, 365, 1000, 86400]))
    low = int(rng.integers(-5000, 5000))
    bounds: list[dict[str, Any]] = [{}, {"minimum": low}, {"maximum": low},
                                    {"minimum": low, "exclusiveMaximum": low + 3 * divisor}]
    return {"type": "number" if rng.integers(2) else "integer", "multipleOf": divisor, **bounds[int(rng.integers(4))]}


def _merged_leaf(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    """Scalars of several schemas that hold at once."""
    kinds: list[list[dict[str, Any]]] = [
        [{"type": "string", "pattern": "^[a-z]+$"}, {"pattern": "b.*d"}, {"minLength": 3, "maxLength": 9}],
        [{"type": ["integer", "string", "null"], "minimum": 3}, {"type": ["number", "null"], "maximum": 70.5}],
        [{"multipleOf": 4, "type": "integer"}, {"multipleOf": 6}, {"minimum": int(rng.integers(-50, 50))}],
        [{"enum": [1, 2, 3, "a", "bcd", None, [1, 1]]}, {"not": {"type": "null"}}, {"minLength": 2, "minimum": 2},
         {"uniqueItems": True}],
        [{"format": "ipv4", "type": "string"}, {"pattern": "^1"}, {"maxLength": 12}],
        [{"type": "string", "pattern": r"^\w+\s\d*$", "minLength": 4, "maxLength": 8}]]
    return {"allOf": kinds[int(rng.integers(len(kinds)))]}


def _keyed(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    """An object with patterns of names, which may match at once, and which some names match."""
    extra: list[dict[str, Any]] = [{}, {"additionalProperties": False}, {"additionalProperties": {"type": "boolean"}}]
    named = {"properties": {"ab": {"maximum": 50}, "z": _any(rng, depth + 1)}} if rng.integers(2) else {}
    required = {"required": [n for n in ("ab", "q1") if rng.integers(2)]} if rng.integers(2) else {}
    return {"type": "object", "patternProperties": {"^a": {"type": "integer", "minimum": 3}, "b$": {"multipleOf": 5},
                                                    r"^\w\d+$": _any(rng, depth + 1)},
            **extra[int(rng.integers(3))], **named, **required}


def _merged_objects(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    """Objects of several schemas, some by a reference; each says of its own names which others there may be."""
    parts: list[dict[str, Any]] = [{"properties": {n: {"type": ["integer", "string", "null"]} for n in "abc"}},
                                   {"properties": {"c": {"type": ["integer", "null"]}, "d": _any(rng, depth + 1)},
                                    "required": ["c"]}]
    tree = {"$ref": "#/$defs/tree"}
    more: list[dict[str, Any]] = [{"additionalProperties": {"type": ["integer", "null", "object"]}}, tree,
                                  {"patternProperties": {"^[a-b]$": {"minimum": 4, "minLength": 2}}},
                                  {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}]
    chosen = [more[int(i)] for i in rng.permutation(len(more))[: int(rng.integers(3))]]
    if tree in chosen:                                     # which allows no other names, so that none is required
        parts, chosen = [{"properties": {"v": {"minimum": 3}, "kids": {"maxItems": 1}}}], [x for x in chosen
                                                                                          if "anyOf" not in x]
    return {"type": "object", "allOf": [*parts, *chosen]}


def _merged_arrays(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "allOf": [
        {"prefixItems": [{"type": ["integer", "string"]}, _any(rng, depth + 1)]},
        {"items": {"type": ["integer", "null"]}, "prefixItems": [{"minimum": 2, "type": ["integer", "null"]}],
         "maxItems": 4}]}


def _beside(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    """Alternatives beside what all of them have."""
    return {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "multipleOf": 3}},
            "required": ["kind"], "oneOf": [
                {"properties": {"kind": {"const": "a"}, "x": _any(rng, depth + 1)}, "required": ["kind", "x"]},
                {"properties": {"kind": {"const": "b"}, "n": {"minimum": 10}}, "required": ["kind", "n"]}]}


def _different(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    least = int(rng.integers(3))
    return {"type": "array", "items": {"enum": ["a", 1, 1.0, None, [2]]}, "uniqueItems": True, "minItems": least,
            **({"maxItems": least + int(rng.integers(3))} if rng.integers(2) else {})}


def _containing(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    least = int(rng.integers(3))
    counts = {"minContains": int(rng.integers(3))} if rng.integers(2) else {}
    return {"type": "array", "items": {"type": ["integer", "string", "object"]}, "minItems": least, **counts,
            "contains": [{"minimum": 7, "type": "integer"}, {"type": "string", "maxLength": 3}][int(rng.integers(2))],
            **({"maxItems": least + 2} if rng.integers(2) else {})}


def _conditional(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    """A property decides on others."""
    tests: list[dict[str, Any]] = [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"enum": [1, 2]}},
                                   "required": ["k"]}, {"required": ["m"]}, {"properties": {"m": {"type": "null"}}}]
    parts = [{"required": ["x"]}, {"properties": {"m": False}}, {"properties": {"x": {"minLength": 2, "minimum": 4}}}]
    found = {name: parts[int(i)] for name, i in zip(("then", "else"), rng.permutation(3)) if rng.integers(3)}
    return {"type": "object", "properties": {"k": {"enum": [1, 2, 3]}, "m": {"type": ["null", "integer"]},
                                             "x": _any(rng, depth + 1)},
            "if": tests[int(rng.integers(4))], **found}


def _tree(rng: np.random.Generator, depth: int) -> dict[str, Any]:
    return {"$ref": "#/$defs/tree"}
