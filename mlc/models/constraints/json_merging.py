"""Schemas that hold at once, as one schema: what each keyword says of two schemas together.

`additionalProperties` of a schema is about the names of that schema alone, so it joins what the other one says of all
its own names. What cannot be said in one schema is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from mlc.models.constraints.json_strings import text_of
from mlc.models.constraints.network import unsupported

Schema = Any
"""An object, or true or false."""
Keywords = Mapping[str, Any]

ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions",
               "deprecated", "readOnly", "writeOnly", "$anchor"}
"""Keywords that say nothing about which values are valid."""
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
MOST_PARTS = 200
_LEAST = {"minProperties", "minItems", "minLength", "minimum", "exclusiveMinimum"}
_GREATEST = {"maxProperties", "maxItems", "maxLength", "maximum", "exclusiveMaximum"}
_OF_OBJECTS, _OF_ARRAYS = {"properties", "patternProperties", "additionalProperties"}, {"items", "prefixItems"}


def keywords_of(schema: Schema, at: str) -> Keywords:
    """The keywords of a schema that is an object, without annotations."""
    if not isinstance(schema, Mapping):
        raise unsupported(f"{at}: a schema is {schema!r}", "it is an object, true or false")
    if any(not isinstance(keyword, str) for keyword in schema):
        raise unsupported(f"{at}: a keyword is no text", "names in JSON are texts")
    if "$id" in schema and at != "#":
        raise unsupported(f"{at}: $id stands within a schema", "leave it out: $ref would lead elsewhere")
    return {k: v for k, v in schema.items() if k not in ANNOTATIONS}


def types_of(schema: Keywords, at: str) -> list[str]:
    """The types that a schema names."""
    given = schema.get("type", [])
    kinds = given if isinstance(given, list) else [given]
    if any(k not in TYPES for k in kinds):
        raise unsupported(f"{at}: type is {given!r}", f"it is one of {', '.join(TYPES)}, or a list of them")
    return list(dict.fromkeys(kinds))


def schemas_of(schema: Keywords, keyword: str, at: str) -> Mapping[str, Schema]:
    """The schemas that a keyword has by name."""
    found = schema.get(keyword, {})
    if not isinstance(found, Mapping) or any(not isinstance(name, str) for name in found):
        raise unsupported(f"{at}: {keyword} is wrong", "it is an object of schemas")
    return found


def listed(schema: Keywords, keyword: str, at: str) -> list[Any]:
    """The elements of a keyword that is a list with some."""
    found = schema[keyword]
    if not isinstance(found, list) or not found:
        raise unsupported(f"{at}: {keyword} is {found!r}", "it is a list of schemas")
    return found


def parts_of(schema: Schema, at: str, resolve: Callable[[Any, str], Schema]) -> list[Keywords] | None:
    """The schemas that a schema consists of by `allOf` and `$ref`, without these; None if it allows nothing.

    resolve  gives the schema that a reference leads to
    """
    out, seen, followed = list[Keywords](), set[str](), set[str]()
    work: list[tuple[Schema, frozenset[str]]] = [(schema, frozenset())]
    for _ in range(MOST_PARTS):
        if not work:
            return out
        part, path = work.pop(0)
        if part is False:
            return None
        keywords = {} if part is True else keywords_of(part, at)
        inner = [(p, path) for p in (listed(keywords, "allOf", at) if "allOf" in keywords else [])]
        if "$ref" in keywords:
            name = keywords["$ref"]
            found = resolve(name, at)
            if name in path:
                raise unsupported(f"{at}: $ref {name} leads to itself", "let it stand within a property or an item")
            if name not in followed:
                followed.add(name)
                inner.append((found, path | {name}))
        rest = {k: v for k, v in keywords.items() if k not in ("$ref", "allOf")}
        if rest and (text := text_of(rest).text) not in seen:
            seen.add(text)
            out.append(rest)
        work = inner + work
    raise unsupported(f"{at}: allOf consists of more than {MOST_PARTS} schemas", "write what they say together")


def both(*schemas: Schema) -> Schema:
    """The schema of the values that some schemas allow."""
    if any(s is False for s in schemas):
        return False
    flat = [p for s in schemas if s is not True and s != {}
            for p in (s["allOf"] if isinstance(s, Mapping) and s.keys() == {"allOf"} and isinstance(s["allOf"], list)
                      else [s])]
    different = list({text_of(s).text: s for s in flat}.values())
    return True if not different else different[0] if len(different) == 1 else {"allOf": different}


def negated(schema: Schema) -> Schema | None:
    """A schema of values that another one does not allow; None where mlc has no words for that.

    Of types, of one property and of constants, which `not` excludes where they are among other constants.
    """
    if isinstance(schema, bool):
        return not schema
    if not isinstance(schema, Mapping):
        return None
    keywords = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
    if not keywords:
        return False
    own, required = keywords.get("properties", {}), keywords.get("required", [])
    if keywords.keys() == {"not"}:
        return keywords["not"]
    if keywords.keys() == {"type"}:
        kinds = {*types_of(keywords, "not"), *(["number"] if "integer" in types_of(keywords, "not") else [])}
        return {"type": [t for t in TYPES if not _has([*kinds], t)]}
    if len(keywords) == 1 and keywords.keys() <= {"const", "enum"}:
        return {"not": schema}
    about = [*own, *required] if isinstance(own, Mapping) and isinstance(required, list) else []
    if not about or not isinstance(about[0], str) or any(name != about[0] for name in about) or (
            not keywords.keys() <= {"type", "properties", "required"} or keywords.get("type", "object") != "object"):
        return None
    name, other = about[0], negated(own.get(about[0], True))
    if other is None:
        return None
    present = {"type": "object", "required": [name], "properties": {name: other}}
    absent = {"type": "object", "properties": {name: False}}
    return {"anyOf": [present, absent]} if required else present


def merged(parts: Sequence[Keywords], at: str, matches: Callable[[str, str], bool]) -> Keywords | None:
    """Schemas without `$ref` and combinations as one; None if no value satisfies all. Patterns become tuples.

    matches  whether a name matches a pattern in every language
    """
    def join(a: Keywords | None, b: Keywords) -> Keywords | None:
        return None if a is None else _joined(a, b, at, matches)

    first: Keywords | None = parts[0] if parts else {}
    return reduce(join, parts[1:], first)


def _joined(a: Keywords, b: Keywords, at: str, matches: Callable[[str, str], bool]) -> Keywords | None:
    out = {**a, **b}
    if (a.keys() | b.keys()) & _OF_OBJECTS:
        out |= _objects(a, b, at, matches)
    if (a.keys() | b.keys()) & _OF_ARRAYS:
        out |= _arrays(a, b, at)
    for k in (a.keys() & b.keys()) - _OF_OBJECTS - _OF_ARRAYS:
        x, y = a[k], b[k]
        if k in _LEAST | _GREATEST:
            out[k] = (max if k in _LEAST else min)(_number(x, k, at), _number(y, k, at))
        elif k == "type":
            kinds, others = types_of(a, at), types_of(b, at)
            if kinds and others:
                out[k] = [kind for kind in TYPES if _has(kinds, kind) and _has(others, kind)
                          and not (kind == "integer" and _has(kinds, "number") and _has(others, "number"))]
                if not out[k]:
                    return None
            else:
                out[k] = kinds or others
        elif k == "required":
            out[k] = list(dict.fromkeys([*names(a, at), *names(b, at)]))
        elif k == "multipleOf":
            out[k] = common_multiple(multiple_of(x, at), multiple_of(y, at))
        elif k == "uniqueItems":
            out[k] = x is not False or y is not False
        elif k in ("pattern", "format"):
            out[k] = tuple({text_of(p).text: p for p in (*several(x), *several(y))}.values())
        elif text_of(x) != text_of(y):
            raise unsupported(f"{at}: {k} stands in several schemas that hold at once", "write what they say together")
    return out


def _has(kinds: Sequence[str], kind: str) -> bool:
    return kind in kinds or (kind == "integer" and "number" in kinds)


def several(x: Any) -> tuple[Any, ...]:
    """The patterns of a schema, of which merged ones have several."""
    return x if isinstance(x, tuple) else (x,)


def names(schema: Keywords, at: str) -> list[str]:
    """The names of properties that a schema requires."""
    found = schema.get("required", [])
    if not isinstance(found, list):
        raise unsupported(f"{at}: properties or required is wrong", "they are an object and a list of names")
    if any(not isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise unsupported(f"{at}: properties or required has a wrong name", "names are texts, each given once")
    return found


def _number(x: Any, keyword: str, at: str) -> Any:
    if isinstance(x, bool) or not isinstance(x, int | float) or x != x:
        raise unsupported(f"{at}: {keyword} is {x!r}", "it is a number")
    return x


def multiple_of(x: Any, at: str) -> int:
    """The value of `multipleOf`, which has to be an integer."""
    if _number(x, "multipleOf", at) <= 0 or x > 10 ** 15:
        raise unsupported(f"{at}: multipleOf is {x!r}", "it is a number above 0, and up to 10^15")
    if x % 1:
        raise unsupported(f"{at}: multipleOf is {x!r}, and only those of integers are supported",
                          "whether a decimal number is a multiple of another depends on how a reader rounds them")
    return int(x)


def common_multiple(a: int, b: int) -> int:
    """The least number that both divide."""
    return math.lcm(a, b)


def is_multiple(value: Any, divisor: int) -> bool:
    """Whether a number is a multiple of an integer."""
    return Fraction(value) % divisor == 0


# -- properties and items ---------------------------------------------------------------------------------------------
def _objects(a: Keywords, b: Keywords, at: str, matches: Callable[[str, str], bool]) -> dict[str, Any]:
    """The properties of both; patterns stay patterns, which hold beside the schemas of names."""
    def of(s: Keywords, name: str) -> Schema:
        if name in (own := schemas_of(s, "properties", at)):
            return own[name]
        if any(matches(p, name) for p in schemas_of(s, "patternProperties", at)):
            return True
        return s.get("additionalProperties", True)

    (p, pa), (q, qa) = ((schemas_of(s, "properties", at), schemas_of(s, "patternProperties", at)) for s in (a, b))
    extras = [s.get("additionalProperties", True) for s in (a, b)]
    if pa and qa and pa != qa and any(e is not True for e in extras):
        raise unsupported(f"{at}: additionalProperties stands beside patternProperties in schemas that hold at once",
                          "write their patterns into one schema")
    out: dict[str, Any] = {"properties": {n: both(of(a, n), of(b, n)) for n in dict.fromkeys([*p, *q])}}
    if pa or qa:
        out["patternProperties"] = {n: both(pa.get(n, True if pa else extras[0]), qa.get(n, True if qa else extras[1]))
                                    for n in dict.fromkeys([*pa, *qa])}
    if "additionalProperties" in a or "additionalProperties" in b:
        out["additionalProperties"] = both(*extras)
    return out


def _arrays(a: Keywords, b: Keywords, at: str) -> dict[str, Any]:
    heads = [s.get("prefixItems", []) for s in (a, b)]
    if not all(isinstance(h, list) for h in heads):
        raise unsupported(f"{at}: prefixItems is wrong", "it is a list of schemas")
    rests = [s.get("items", True) for s in (a, b)]
    out: dict[str, Any] = {"items": both(*rests)}
    if any(heads):
        out["prefixItems"] = [both(*(h[i] if i < len(h) else rest for h, rest in zip(heads, rests)))
                              for i in range(max(map(len, heads)))]
    return out
