"""Whether a value that a schema gives, as a constant or one of a list, is valid by what else the schema says.

Of constants all can be told, so that keywords count here that are refused elsewhere, such as `not`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mlc.models.constraints.json_merging import (
    Keywords,
    Schema,
    is_multiple,
    keywords_of,
    listed,
    multiple_of,
    names,
    parts_of,
    schemas_of,
    types_of,
)
from mlc.models.constraints.json_strings import FORMATS, compared
from mlc.models.constraints.languages import Languages
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import regular

MOST_DEPTH = 100


def kinds_of(value: Any) -> set[str]:
    """The types that a value has."""
    if isinstance(value, bool) or value is None:
        return {"boolean"} if isinstance(value, bool) else {"null"}
    if isinstance(value, int | float):
        return {"number", "integer"} if value % 1 == 0 else {"number"}
    return {"string"} if isinstance(value, str) else {"array"} if isinstance(value, list) else {"object"}


class Values:
    """Judges values.

    resolve    gives the schema that a reference leads to
    languages  of the patterns
    """

    def __init__(self, resolve: Callable[[Any, str], Schema], languages: Languages) -> None:
        self.resolve, self.languages = resolve, languages
        self._enums: dict[int, tuple[list[Any], frozenset[str]]] = {}      # by the id of each list, which it holds

    def holds(self, schema: Schema, value: Any, at: str, depth: int = 0) -> bool:
        """Whether a value is valid by a schema."""
        self.languages.spend(10)
        if depth > MOST_DEPTH:
            raise unsupported(f"{at[:60]}...: a schema of a constant is nested too deeply", "use a flatter one")
        if isinstance(schema, bool):
            return schema
        keywords = keywords_of(schema, at)

        def inner(part: Schema, of: Any = value) -> bool:
            return self.holds(part, of, at, depth + 1)

        return all(self._of(k, keywords, value, at, inner) for k in keywords)

    def all_of(self, schema: Schema, at: str) -> list[Any] | None:
        """All values that a schema allows, each once; None if they are not given as constants."""
        parts = parts_of(schema, at, self.resolve)
        if parts is None:
            return []
        for part in parts:
            simple = part.get("type") in ("boolean", "null")
            if simple or "const" in part or "enum" in part:
                given = ([True, False, None] if simple else [part["const"]] if "const" in part else
                         listed(part, "enum", at))
                valid = [v for v in given if all(self.holds(p, v, at) for p in parts)]
                return list({compared(v): v for v in reversed(valid)}.values())
        return None

    def matches(self, pattern: str, text: str, *, wide: bool = False) -> bool:
        """Whether a text matches a pattern in every language, or (wide) may do so in some."""
        return self.languages.holds(regular(pattern, search=True, wide=wide), text)

    def _of(self, k: str, schema: Keywords, value: Any, at: str, inner: Callable[..., bool]) -> bool:
        """Whether a value is valid by one keyword."""
        match k:
            case "type":
                return not types_of(schema, at) or bool(kinds_of(value) & set(types_of(schema, at)))
            case "const":
                return compared(value) == compared(schema[k])
            case "enum":
                return compared(value) in self._enum(listed(schema, k, at))
            case "$ref":
                return inner(self.resolve(schema[k], at))
            case "allOf":
                return all(map(inner, listed(schema, k, at)))
            case "anyOf":
                return any(map(inner, listed(schema, k, at)))
            case "oneOf":
                return sum(map(inner, listed(schema, k, at))) == 1
            case "not":
                return not inner(schema[k])
            case "if":
                return inner(schema.get("then" if inner(schema[k]) else "else", True))
            case "then" | "else":
                return True                                # of `if`
        if isinstance(value, str):
            return self._text(k, schema[k], value, at)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(k, schema[k], value, at)
        if isinstance(value, list):
            return _array(k, schema, value, at, inner)
        if isinstance(value, dict):
            return self._object(k, schema, value, at, inner)
        return _of_others(k, at)

    def _enum(self, values: list[Any]) -> frozenset[str]:
        """The texts by which the values of a list are compared: made once, as each of them may be asked for."""
        if id(values) not in self._enums:
            self._enums[id(values)] = values, frozenset(map(compared, values))
        return self._enums[id(values)][1]

    def _text(self, k: str, x: Any, value: str, at: str) -> bool:
        match k:
            case "minLength":
                return len(value) >= _limit(x, k, at)
            case "maxLength":
                return len(value) <= _limit(x, k, at)
            case "pattern":
                return self._matches(x, value, at)
            case "format":
                if x not in tuple(FORMATS):
                    raise unsupported(f"{at}: the format {x!r} is not supported", f"one of {', '.join(FORMATS)}")
                return re.fullmatch(FORMATS[x], value, re.ASCII) is not None
        return _of_others(k, at)

    def _matches(self, pattern: Any, value: str, at: str) -> bool:
        if not isinstance(pattern, str):
            raise unsupported(f"{at}: pattern is {pattern!r}", "it is a regular expression")
        certain = self.matches(pattern, value)
        if not certain and self.matches(pattern, value, wide=True):
            raise unsupported(f"{at}: whether {value!r} matches {pattern!r} differs from language to language",
                              "use characters of ASCII")
        return certain

    def _object(self, k: str, schema: Keywords, value: dict[str, Any], at: str, inner: Callable[..., bool]) -> bool:
        own, patterns = schemas_of(schema, "properties", at), schemas_of(schema, "patternProperties", at)
        match k:
            case "properties":
                return all(inner(part, value[name]) for name, part in own.items() if name in value)
            case "patternProperties":
                return all(inner(part, x) for p, part in patterns.items() for name, x in value.items()
                           if self._matches(p, name, at))
            case "additionalProperties":
                return all(inner(schema[k], x) for name, x in value.items()
                           if name not in own and not any(self._matches(p, name, at) for p in patterns))
            case "required":
                return all(name in value for name in names(schema, at))
            case "minProperties":
                return len(value) >= _limit(schema[k], k, at)
            case "maxProperties":
                return len(value) <= _limit(schema[k], k, at)
        return _of_others(k, at)


def _array(k: str, schema: Keywords, value: list[Any], at: str, inner: Callable[..., bool]) -> bool:
    heads = schema.get("prefixItems", [])
    if not isinstance(heads, list):
        raise unsupported(f"{at}: prefixItems is {heads!r}", "it is a list of schemas")
    match k:
        case "prefixItems":
            return all(inner(part, x) for part, x in zip(heads, value))
        case "items":
            return all(inner(schema[k], x) for x in value[len(heads):])
        case "minItems":
            return len(value) >= _limit(schema[k], k, at)
        case "maxItems":
            return len(value) <= _limit(schema[k], k, at)
        case "uniqueItems":
            return schema[k] is False or len(set(map(compared, value))) == len(value)
        case "contains":
            found = sum(inner(schema[k], x) for x in value)
            return found >= _limit(schema.get("minContains", 1), k, at) and (
                "maxContains" not in schema or found <= _limit(schema["maxContains"], k, at))
    return _of_others(k, at)


def _number(k: str, x: Any, value: int | float, at: str) -> bool:
    match k:
        case "minimum":
            return value >= _limit(x, k, at)
        case "maximum":
            return value <= _limit(x, k, at)
        case "exclusiveMinimum":
            return value > _limit(x, k, at)
        case "exclusiveMaximum":
            return value < _limit(x, k, at)
        case "multipleOf":
            return is_multiple(value, multiple_of(x, at))
    return _of_others(k, at)


KNOWN = {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
         "multipleOf", "properties", "patternProperties", "additionalProperties", "required", "minProperties",
         "maxProperties", "prefixItems", "items", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
         "maxContains"}
"""Keywords that are about values of one type: others satisfy them."""


def _of_others(k: str, at: str) -> bool:
    if k not in KNOWN:
        raise unsupported(f"{at}: the keyword {k} is not supported", "leave it out, or say it otherwise")
    return True


def _limit(x: Any, keyword: str, at: str) -> int | float:
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise unsupported(f"{at}: {keyword} is {x!r}", "it is a number")
    return x
