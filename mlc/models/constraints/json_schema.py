"""JSON schemas (draft 2020-12) as rules: every text of the rules is valid, and what cannot be kept is refused by name.

Objects have their properties in the order of the schema, and others only where `additionalProperties` says so;
numbers are plain decimals; between the parts of a value there may be a space, or a line end and an indentation. So the
texts are some of those that the schema allows, which is what a generator needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from mlc.models.constraints.expressions import EMPTY, Choice, Expression, Repeat, Rule, choice, optional, sequence
from mlc.models.constraints.json_numbers import INTEGER, NUMBER, Bounds, integers, numbers
from mlc.models.constraints.json_strings import (
    CHARACTER,
    FORMATS,
    any_string,
    bounded,
    compared,
    escaped,
    other_keys,
    quoted,
    text_of,
)
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import MOST_REPETITIONS, regular

SPACE = Rule("space")
ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions",
               "deprecated", "readOnly", "writeOnly", "$anchor"}
"""Keywords that say nothing about which values are valid."""
KEYWORDS = {"object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
            "array": {"items", "prefixItems", "minItems", "maxItems"},
            "string": {"minLength", "maxLength", "pattern", "format"},
            "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}}
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
WORDS = {"true": True, "false": False, "null": None}
MOST_DEPTH = 100


def json_rules() -> dict[str, Expression]:
    """The rules of JSON: `value`, and what it consists of."""
    pair = sequence(Rule("string"), SPACE, ":", SPACE, Rule("value"))
    return {
        "space": optional(choice(" ", sequence("\n", Repeat(choice(" ", "\t"), 0, 20)))),
        "character": CHARACTER,
        "string": quoted(Repeat(Rule("character"))),
        "object": sequence("{", SPACE, optional(sequence(_listed(pair, 1, None), SPACE)), "}"),
        "array": sequence("[", SPACE, optional(sequence(_listed(Rule("value"), 1, None), SPACE)), "]"),
        "value": choice(Rule("object"), Rule("array"), Rule("string"), NUMBER, *WORDS)}


def schema_rules(schema: Any) -> tuple[dict[str, Expression], str]:
    """The rules of a schema, and the one to begin with."""
    rules = json_rules()
    reader = _Reader(schema, rules)
    reader.read()
    return rules, "#"


def _listed(item: Expression, least: int, most: int | None) -> Expression:
    """Items between commas, at least one."""
    more = Repeat(sequence(SPACE, ",", SPACE, item), max(least - 1, 0), None if most is None else most - 1)
    return sequence(item, more)


class _Reader:
    """Reads schemas into rules; each is named after its place, as a pointer of JSON.

    In pointers 0 or 1 follows each ~, so that the names of further rules, which have ~ and a word, differ from them.
    """

    def __init__(self, root: Any, rules: dict[str, Expression]) -> None:
        self.root, self.rules = root, rules
        self.asked: list[tuple[Any, str]] = [(root, "#")]

    def read(self) -> None:
        """Make the rules of the whole schema, and one after the other of what `$ref` leads to."""
        while self.asked:
            self.rule(*self.asked.pop())

    def rule(self, schema: Any, at: str) -> Rule:
        """The rule of the schema at a place, which is made when it is first asked for."""
        if at not in self.rules:
            if at.count("/") > MOST_DEPTH:
                raise unsupported(f"{at[:60]}...: a schema is nested too deeply", "use $ref")
            self.rules[at] = EMPTY                         # until it is known: the schema may refer to itself
            self.rules[at] = self.value(schema, at)
        return Rule(at)

    def value(self, schema: Any, at: str) -> Expression:
        if schema is True:
            return Rule("value")
        if schema is False:
            return Choice(())
        if not isinstance(schema, Mapping):
            raise unsupported(f"{at}: a schema is {schema!r}", "it is an object, true or false")
        if any(not isinstance(keyword, str) for keyword in schema):
            raise unsupported(f"{at}: a keyword is no text", "names in JSON are texts")
        if "$id" in schema and at != "#":
            raise unsupported(f"{at}: $id stands within a schema", "leave it out: $ref would lead elsewhere")
        used = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
        for keyword, read in (("$ref", self._ref), ("anyOf", self._any_of), ("oneOf", self._one_of),
                              ("allOf", self._all_of), ("const", self._const), ("enum", self._enum)):
            if keyword in used:
                others = used.keys() - {keyword, "type"} if keyword in ("const", "enum", "anyOf") else used.keys() - {
                    keyword}
                if others:
                    raise unsupported(f"{at}: {keyword} stands beside {min(others)}", "put both into one schema")
                return read(used, at)
        return self._typed(used, at)

    def _typed(self, schema: Mapping[str, Any], at: str) -> Expression:
        known = {k: kind for kind, keywords in KEYWORDS.items() for k in keywords}
        for keyword in schema:
            if keyword != "type" and keyword not in known:
                raise unsupported(f"{at}: the keyword {keyword} is not supported", "leave it out, or say it otherwise")
        kinds = _types(schema, at)
        if not kinds:
            kinds = list(dict.fromkeys(known[k] for k in schema))
        if not kinds:
            return Rule("value")
        readers: dict[str, Callable[[Mapping[str, Any], str], Expression]] = {
            "object": self._object, "array": self._array, "string": self._string, "number": self._number,
            "integer": self._integer, "boolean": _boolean, "null": _null}
        return Choice(tuple(readers[kind](schema, at) for kind in kinds))

    # -- several schemas ----------------------------------------------------------------------------------------------
    def _ref(self, schema: Mapping[str, Any], at: str) -> Expression:
        name = schema["$ref"]
        if not isinstance(name, str) or not (name == "#" or name.startswith("#/")) or "%" in name:
            raise unsupported(f"{at}: $ref is {name!r}", "it leads to a part of the same schema, as #/$defs/name does")
        found, place = self.root, "#"
        for token in name.split("/")[1:]:
            part = token.replace("~1", "/").replace("~0", "~")
            place += f"/{_token(part)}"
            if isinstance(found, Sequence) and part.isdecimal() and len(part) < 10 and int(part) < len(found):
                found = found[int(part)]
            elif isinstance(found, Mapping) and part in found:
                found = found[part]
            else:
                raise unsupported(f"{at}: $ref {name} leads to nothing", "it names a part of the same schema")
            if isinstance(found, Mapping) and isinstance(found.get("$id"), str):
                raise unsupported(f"{place}: $id stands within a schema", "leave it out: $ref would lead elsewhere")
        self.asked.append((found, place))                  # read later: a chain of references may be long
        return Rule(place)

    def _any_of(self, schema: Mapping[str, Any], at: str, keyword: str = "anyOf") -> Expression:
        parts = schema[keyword]
        if not isinstance(parts, list) or not parts:
            raise unsupported(f"{at}: {keyword} is {parts!r}", "it is a list of schemas")
        if "type" in schema:
            kinds = set(_types(schema, at))
            if any(not isinstance(p, Mapping) or not kinds.issuperset(_types(p, at) or ["none"]) for p in parts):
                raise unsupported(f"{at}: {keyword} stands beside type", "give each of its schemas a type")
        return Choice(tuple(self.rule(p, f"{at}/{keyword}/{i}") for i, p in enumerate(parts)))

    def _one_of(self, schema: Mapping[str, Any], at: str) -> Expression:
        out = self._any_of(schema, at, "oneOf")
        marks = [_mark(p) for p in schema["oneOf"]]
        if any(a is None or b is None or not _apart(a, b) for i, a in enumerate(marks) for b in marks[:i]):
            raise unsupported(f"{at}: schemas of oneOf may hold at once", "give them different types, or a required "
                              "property with different constants, or use anyOf")
        return out

    def _all_of(self, schema: Mapping[str, Any], at: str) -> Expression:
        parts = schema["allOf"]
        if not isinstance(parts, list) or len(parts) != 1:
            raise unsupported(f"{at}: allOf has several schemas", "write what they say together")
        return self.rule(parts[0], f"{at}/allOf/0")

    def _const(self, schema: Mapping[str, Any], at: str) -> Expression:
        return self._enum({**schema, "enum": [schema["const"]]}, at)

    def _enum(self, schema: Mapping[str, Any], at: str) -> Expression:
        values, kinds = schema["enum"], _types(schema, at)
        if not isinstance(values, list) or not values:
            raise unsupported(f"{at}: enum is {values!r}", "it is a list of values")
        return Choice(tuple(text_of(v) for v in values if not kinds or _type_of(v) & set(kinds)))

    # -- kinds of values ----------------------------------------------------------------------------------------------
    def _object(self, schema: Mapping[str, Any], at: str) -> Expression:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise unsupported(f"{at}: properties or required is wrong", "they are an object and a list of names")
        if any(not isinstance(name, str) for name in (*properties, *required)) or len(set(required)) < len(required):
            raise unsupported(f"{at}: properties or required has a wrong name", "names are texts, each given once")
        extra = schema.get("additionalProperties", not properties and not required)
        own = {**properties, **{name: extra if extra is not False or "additionalProperties" in schema else True
                                for name in required if name not in properties}}
        least, most = (_count(schema, k, at) for k in ("minProperties", "maxProperties"))
        greatest = len(own) if schema.get("additionalProperties") is False else MOST_REPETITIONS
        greatest = min(greatest, MOST_REPETITIONS if most is None else most)
        if max(least or 0, len(required)) > greatest:
            return Choice(())                              # no value satisfies it
        if own and ((least or 0) > len(required) or (most is not None and (most < len(own) or extra is not False))):
            raise unsupported(f"{at}: minProperties and maxProperties stand beside properties that may be left out",
                              "say which are required")
        if not own and (least or 0) > 1:
            raise unsupported(f"{at}: minProperties is {least}", "say which properties are required")
        rest: Expression = EMPTY
        begin: Expression = EMPTY
        if extra is not False and (most is None or most > 0):
            pair = sequence(other_keys(own), SPACE, ":", SPACE, self.rule(extra, f"{at}/additionalProperties"))
            begin = sequence(_listed(pair, least or 1, most), SPACE)
            begin = begin if least else optional(begin)
            rest = Repeat(sequence(SPACE, ",", SPACE, pair))
        for i, (name, part) in reversed(list(enumerate(own.items()))):
            pair = sequence(text_of(name), SPACE, ":", SPACE, self.rule(part, f"{at}/properties/{_token(name)}"))
            after, skip = Rule(f"{at}~after {i}"), Rule(f"{at}~from {i + 1}")
            self.rules[after.name], self.rules[skip.name] = rest, begin
            first, more = sequence(pair, after, SPACE), sequence(SPACE, ",", SPACE, pair, after)
            begin, rest = (first, more) if name in required else (choice(first, skip), choice(more, after))
        return sequence("{", SPACE, begin, "}")

    def _array(self, schema: Mapping[str, Any], at: str) -> Expression:
        prefix, items = schema.get("prefixItems", []), schema.get("items", True)
        if not isinstance(prefix, list):
            raise unsupported(f"{at}: prefixItems is {prefix!r}", "it is a list of schemas")
        least, most = _count(schema, "minItems", at) or 0, _count(schema, "maxItems", at)
        if most is not None and most < least:
            return Choice(())                              # no value satisfies it
        heads = [self.rule(p, f"{at}/prefixItems/{i}") for i, p in enumerate(prefix)][:most]
        left = None if most is None else most - len(heads)
        out: Expression = EMPTY
        if items is not False and left != 0:
            item, needed = self.rule(items, f"{at}/items"), max(least - len(heads), 0)
            out = (Repeat(sequence(SPACE, ",", SPACE, item), needed, left) if heads
                   else _listed(item, needed, left) if needed else optional(_listed(item, 1, left)))
        elif least > len(heads):
            return Choice(())
        for i, head in reversed(list(enumerate(heads))):
            out = sequence(head, out) if i == 0 else sequence(SPACE, ",", SPACE, head, out)
            out = optional(out) if i >= least else out
        return sequence("[", SPACE, out, SPACE, "]")

    def _string(self, schema: Mapping[str, Any], at: str) -> Expression:
        least, most = _count(schema, "minLength", at) or 0, _count(schema, "maxLength", at)
        if "pattern" not in schema and "format" not in schema:
            return any_string(least, most) if most is None or most >= least else Choice(())
        if "pattern" in schema and "format" in schema:
            raise unsupported(f"{at}: pattern stands beside format", "use one of them")
        if "format" in schema and schema["format"] not in tuple(FORMATS):
            raise unsupported(f"{at}: the format {schema['format']!r} is not supported", f"one of {', '.join(FORMATS)}")
        if not isinstance(schema.get("pattern", ""), str):
            raise unsupported(f"{at}: pattern is {schema['pattern']!r}", "it is a regular expression")
        body = (regular(schema["pattern"], search=True) if "pattern" in schema else regular(FORMATS[schema["format"]]))
        if (body_bounded := bounded(body, least, most)) is None:
            raise unsupported(f"{at}: pattern stands beside minLength or maxLength", "let the pattern say the length")
        return quoted(escaped(body_bounded))

    def _integer(self, schema: Mapping[str, Any], at: str) -> Expression:
        bounds = _bounds(schema, at)
        if bounds == Bounds():
            return INTEGER
        low = None if bounds.low is None else int(bounds.low.to_integral_value("ROUND_CEILING"))
        high = None if bounds.high is None else int(bounds.high.to_integral_value("ROUND_FLOOR"))
        return integers(low + (bounds.above and low == bounds.low) if low is not None else None,
                        high - (bounds.below and high == bounds.high) if high is not None else None)

    def _number(self, schema: Mapping[str, Any], at: str) -> Expression:
        return numbers(_bounds(schema, at))


def _boolean(schema: Mapping[str, Any], at: str) -> Expression:
    return choice("true", "false")


def _null(schema: Mapping[str, Any], at: str) -> Expression:
    return choice("null")


def _token(name: str) -> str:
    """A name as it stands in a pointer of JSON."""
    return name.replace("~", "~0").replace("/", "~1")


def _types(schema: Mapping[str, Any], at: str) -> list[str]:
    given = schema.get("type", [])
    kinds = given if isinstance(given, list) else [given]
    if any(k not in TYPES for k in kinds):
        raise unsupported(f"{at}: type is {given!r}", f"it is one of {', '.join(TYPES)}, or a list of them")
    return list(dict.fromkeys(kinds))


def _type_of(value: Any) -> set[str]:
    """The types that a value has."""
    if isinstance(value, bool) or value is None:
        return {"boolean"} if isinstance(value, bool) else {"null"}
    if isinstance(value, int | float):
        return {"number", "integer"} if value % 1 == 0 else {"number"}
    return {"string"} if isinstance(value, str) else {"array"} if isinstance(value, list) else {"object"}


def _count(schema: Mapping[str, Any], keyword: str, at: str) -> int | None:
    value = schema.get(keyword)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <=
                              MOST_REPETITIONS):
        raise unsupported(f"{at}: {keyword} is {value!r}", f"it is a number from 0 to {MOST_REPETITIONS}")
    return value


def _bounds(schema: Mapping[str, Any], at: str) -> Bounds:
    found: dict[str, Decimal] = {}
    for keyword in KEYWORDS["number"] & schema.keys():
        value = schema[keyword]
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
            raise unsupported(f"{at}: {keyword} is {value!r}", "it is a number")
        found[keyword] = Decimal(repr(value))
    low, above = max([(found[k], k == "exclusiveMinimum") for k in ("minimum", "exclusiveMinimum") if k in found],
                     default=(None, False))
    high, below = min([(found[k], k != "exclusiveMaximum") for k in ("maximum", "exclusiveMaximum") if k in found],
                      default=(None, True))
    return Bounds(low, high, above, not below)


Mark = tuple[str, ...]
"""A fact about a value: its `type`, its `value`, or the value of a `property` and the name of that."""


def _mark(schema: Any) -> dict[Mark, set[str]] | None:
    """The certain content of a schema: the types of its values, and the constants that they or required properties are.

    Properties are certain only where all texts of the schema are objects.
    """
    if not isinstance(schema, Mapping):
        return None
    if (values := _constants(schema)) is not None:
        return {("value",): set(map(compared, values)), ("type",): _kinds(set().union(*map(_type_of, values)))}
    kinds = _kinds(_types(schema, ""))
    out: dict[Mark, set[str]] = {("type",): kinds}
    required, properties = schema.get("required"), schema.get("properties")
    objects = kinds == {"object"} or (not kinds and schema.keys() <= KEYWORDS["object"] | ANNOTATIONS)
    if objects and isinstance(required, list) and isinstance(properties, Mapping):
        for name in required:
            if (values := _constants(properties.get(name))) is not None:
                out["property", name] = set(map(compared, values))
    return out


def _constants(schema: Any) -> list[Any] | None:
    """The values that a schema gives as a list or as one constant."""
    if not isinstance(schema, Mapping) or not schema.keys() & {"enum", "const"}:
        return None
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    return values if isinstance(values, list) else None


def _kinds(types: Iterable[str]) -> set[str]:
    return {"number" if k == "integer" else k for k in types}


def _apart(a: Mapping[Mark, set[str]], b: Mapping[Mark, set[str]]) -> bool:
    """Whether no value satisfies both."""
    return any(a[k] and b[k] and not a[k] & b[k] for k in a.keys() & b.keys())
