"""JSON schemas (draft 2020-12) as rules: every text of the rules is valid, and what cannot be kept is refused by name.

Objects have their properties in the order of the schema, and others only where `additionalProperties` or
`patternProperties` says so; numbers are plain decimals; between the parts of a value there may be a space, or a line
end and an indentation. So the texts are some of those that the schema allows, which is what a generator needs.

Schemas that hold at once become one (json_merging.py), constants are checked as values (json_values.py), and patterns
that hold at once are products of machines (languages.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from mlc.models.constraints.expressions import (
    EMPTY,
    Choice,
    Expression,
    Repeat,
    Rule,
    Text,
    choice,
    optional,
    sequence,
)
from mlc.models.constraints.json_arrays import MOST_COUNTED, MOST_DIFFERENT, containing, different
from mlc.models.constraints.json_merging import (
    ANNOTATIONS,
    Keywords,
    Schema,
    both,
    keywords_of,
    listed,
    merged,
    multiple_of,
    names,
    negated,
    parts_of,
    schemas_of,
    several,
    types_of,
)
from mlc.models.constraints.json_numbers import INTEGER, NUMBER, Bounds, integers, multiples, numbers
from mlc.models.constraints.json_strings import (
    CHARACTER,
    FORMATS,
    PLAIN_ASCII,
    any_string,
    bounded,
    compared,
    escaped,
    other_keys,
    quoted,
    text_of,
)
from mlc.models.constraints.json_values import Values, kinds_of
from mlc.models.constraints.languages import Languages
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import ANY_CHARACTER, MOST_REPETITIONS, has_flag_i, regular

SPACE = Rule("space")
NOTHING = Choice(())
KEYWORDS = {"object": {"properties", "patternProperties", "required", "additionalProperties", "minProperties",
                       "maxProperties"},
            "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains"},
            "string": {"minLength", "maxLength", "pattern", "format"},
            "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}
BOUNDS = KEYWORDS["number"] - {"multipleOf"}
REASONS = {
    "not": "what a schema excludes is told of a type, of constants beside enum, and of one property",
    "if": "whether it holds is told of a type, of constants, and of one property: use anyOf",
    "maxContains": "use prefixItems",
    "propertyNames": "use patternProperties with additionalProperties false",
    "unevaluatedProperties": "use additionalProperties", "unevaluatedItems": "use items"}
"""Why a keyword is refused, and what can be said in its place."""
WORDS = {"true": True, "false": False, "null": None}
MOST_DEPTH, MOST_MERGED = 100, 2_000


def json_rules() -> dict[str, Expression]:
    """The rules of JSON: `value`, and what it consists of."""
    pair = sequence(Rule("string"), SPACE, ":", SPACE, Rule("value"))
    return {
        "space": optional(choice(" ", sequence("\n", Repeat(choice(" ", "\t"), 0, 20)))),
        "character": CHARACTER,
        "string": quoted(Repeat(Rule("character"))),
        "object": sequence("{", SPACE, optional(sequence(_between_commas(pair, 1, None), SPACE)), "}"),
        "array": sequence("[", SPACE, optional(sequence(_between_commas(Rule("value"), 1, None), SPACE)), "]"),
        "value": choice(Rule("object"), Rule("array"), Rule("string"), NUMBER, *WORDS)}


def schema_rules(schema: Any) -> tuple[dict[str, Expression], str]:
    """The rules of a schema, and the one to begin with."""
    rules = json_rules()
    _Reader(schema, rules).read()
    return rules, "#"


def _between_commas(item: Expression, least: int, most: int | None) -> Expression:
    """Items between commas, at least one."""
    more = Repeat(sequence(SPACE, ",", SPACE, item), max(least - 1, 0), None if most is None else most - 1)
    return sequence(item, more)


class _Reader:
    """Reads schemas into rules; each is named after its place, as a pointer of JSON.

    In pointers 0 or 1 follows each ~, so that the names of further rules, which have ~ and a word, differ from them.
    """

    def __init__(self, root: Schema, rules: dict[str, Expression]) -> None:
        self.root, self.rules = root, rules
        self.asked: list[tuple[str, Callable[[], Expression]]] = [("#", lambda: self.value(root, "#"))]
        self.merged: dict[str, str] = {}                   # the rules of schemas that are merged, by their text
        self.languages = Languages()
        self.values = Values(lambda name, at: self.referred(name, at)[0], self.languages)

    def read(self) -> None:
        """Make the rules of the whole schema, and one after the other of what `$ref` leads to and `allOf` merges."""
        while self.asked:
            name, make = self.asked.pop()
            self.rule(name, make)

    def rule(self, name: str, make: Callable[[], Expression]) -> Rule:
        """The rule of a name, which is made when it is first asked for."""
        if name not in self.rules:
            if name.count("/") > MOST_DEPTH:
                raise unsupported(f"{name[:60]}...: a schema is nested too deeply", "use $ref")
            self.rules[name] = EMPTY                       # until it is known: the schema may refer to itself
            self.rules[name] = make()
        return Rule(name)

    def at(self, schema: Schema, at: str) -> Rule:
        """The rule of the schema at a place."""
        return self.rule(at, lambda: self.value(schema, at))

    def value(self, schema: Schema, at: str) -> Expression:
        if isinstance(schema, bool):
            return Rule("value") if schema else NOTHING
        keywords = keywords_of(schema, at)
        if keywords.keys() == {"$ref"}:
            return self._ref(keywords["$ref"], at)
        if "$ref" not in keywords and "allOf" not in keywords:
            return self._of_parts([keywords], at)
        if keywords.keys() == {"allOf"} and len(listed(keywords, "allOf", at)) == 1:
            return self.at(keywords["allOf"][0], f"{at}/allOf/0")
        return self._merged(keywords, at)

    def _ref(self, name: Any, at: str) -> Rule:
        found, place = self.referred(name, at)
        self.asked.append((place, lambda: self.value(found, place)))   # read later: a chain of references may be long
        return Rule(place)

    def referred(self, name: Any, at: str) -> tuple[Schema, str]:
        """The schema that a reference leads to, and its place."""
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
        return found, place

    # -- several schemas ----------------------------------------------------------------------------------------------
    def _merged(self, schema: Schema, at: str) -> Rule:
        """The rule of a schema that consists of several: one for all places that have it, so that it may recur."""
        name = self.merged.setdefault(text_of(schema).text, f"{at}~all")
        if len(self.merged) > MOST_MERGED:
            raise unsupported(f"{at[:60]}: more than {MOST_MERGED} schemas are merged", "use fewer allOf and anyOf")

        def make() -> Expression:
            parts = parts_of(schema, name, lambda ref, where: self.referred(ref, where)[0])
            return NOTHING if parts is None else self._of_parts(parts, name)

        self.asked.append((name, make))
        return Rule(name)

    def _of_parts(self, parts: Sequence[Keywords], at: str) -> Expression:
        """The values that satisfy all of some schemas, which have no `$ref` and no `allOf`."""
        for part in parts:
            if "const" in part or "enum" in part:
                given = [part["const"]] if "const" in part else listed(part, "enum", at)
                return self._constants(given, parts, at)
        if any("not" in p for p in parts) and any(types_of(p, at) and {"boolean", "null"}.issuperset(types_of(p, at))
                                                  for p in parts):
            return self._constants([True, False, None], parts, at)
        for i, part in enumerate(parts):
            if (found := _without_conditions(part)) is not None:
                return self.at(both(*parts[:i], found, *parts[i + 1:]), f"{at}~unconditional")
        for keyword in ("anyOf", "oneOf"):
            for i, part in enumerate(parts):
                if keyword in part:
                    rest = {k: v for k, v in part.items() if k != keyword}
                    return self._one(part, keyword, [*parts[:i], *([rest] if rest else []), *parts[i + 1:]], at)
        one = merged(parts, at, self.values.matches)
        return NOTHING if one is None else self._typed(one, at)

    def _constants(self, values: Iterable[Any], parts: Sequence[Keywords], at: str) -> Expression:
        return Choice(tuple(text_of(v) for v in values if all(self.values.holds(p, v, at) for p in parts)))

    def _one(self, part: Keywords, keyword: str, others: Sequence[Keywords], at: str) -> Expression:
        """One of the schemas of `anyOf` or `oneOf`, with all others that hold."""
        options = listed(part, keyword, at)
        if keyword == "oneOf":
            marks = [_mark(p) for p in options]
            if any(a is None or b is None or not _apart(a, b) for i, a in enumerate(marks) for b in marks[:i]):
                raise unsupported(f"{at}: schemas of oneOf may hold at once", "give them different types, or a "
                                  "required property with different constants, or use anyOf")
        return Choice(tuple(self.at(both(*others, p), f"{at}~{keyword} {i}") if others else
                            self.at(p, f"{at}/{keyword}/{i}") for i, p in enumerate(options)))

    def _typed(self, schema: Keywords, at: str) -> Expression:
        known = {k: kind for kind, keywords in KEYWORDS.items() for k in keywords}
        for keyword in schema:
            if keyword != "type" and keyword not in known:
                raise unsupported(f"{at}: the keyword {keyword} is not supported",
                                  REASONS.get(keyword, "leave it out, or say it otherwise"))
        kinds = types_of(schema, at) or list(dict.fromkeys(known[k] for k in schema if k != "type"))
        if not kinds:
            return Rule("value")
        readers: dict[str, Callable[[Keywords, str], Expression]] = {
            "object": self._object, "array": self._array, "string": self._string, "number": self._number,
            "integer": self._integer, "boolean": _boolean, "null": _null}
        return Choice(tuple(readers[kind](schema, at) for kind in kinds))

    # -- kinds of values ----------------------------------------------------------------------------------------------
    def _object(self, schema: Keywords, at: str) -> Expression:
        properties, required = schemas_of(schema, "properties", at), names(schema, at)
        patterns = schemas_of(schema, "patternProperties", at)
        closed = schema.get("additionalProperties") is False
        extra = schema.get("additionalProperties", not properties and not required and not patterns)
        own = {**properties, **{name: extra if extra is not False or closed else True
                                for name in required if name not in properties}}
        own = {name: self._beside_patterns(name, part, patterns, name in properties, at) for name, part in own.items()}
        open_ = extra is not False or bool(patterns)
        least, most = (_count(schema, k, at) for k in ("minProperties", "maxProperties"))
        greatest = len(own) if closed and not patterns else MOST_REPETITIONS
        greatest = min(greatest, MOST_REPETITIONS if most is None else most)
        if max(least or 0, len(required)) > greatest:
            return NOTHING                                 # no value satisfies it
        if own and ((least or 0) > len(required) or (most is not None and (most < len(own) or open_))):
            raise unsupported(f"{at}: minProperties and maxProperties stand beside properties that may be left out",
                              "say which are required")
        if not own and (least or 0) > 1:
            raise unsupported(f"{at}: minProperties is {least}", "say which properties are required")
        rest: Expression = EMPTY
        begin: Expression = EMPTY
        if open_ and (most is None or most > 0):
            pair = self._other_pair(own, patterns, extra, at)
            begin = sequence(_between_commas(pair, least or 1, most), SPACE)
            begin = begin if least else optional(begin)
            rest = Repeat(sequence(SPACE, ",", SPACE, pair))
        for i, (name, part) in reversed(list(enumerate(own.items()))):
            place = f"{at}{'~with' if name in properties and part is not properties[name] else '/'}properties/"
            pair = sequence(text_of(name), SPACE, ":", SPACE, self.at(part, place + _token(name)))
            after, skip = Rule(f"{at}~after {i}"), Rule(f"{at}~from {i + 1}")
            self.rules[after.name], self.rules[skip.name] = rest, begin
            first, more = sequence(pair, after, SPACE), sequence(SPACE, ",", SPACE, pair, after)
            begin, rest = (first, more) if name in required else (choice(first, skip), choice(more, after))
        return sequence("{", SPACE, begin, "}")

    def _beside_patterns(self, name: str, part: Schema, patterns: Mapping[str, Schema], named: bool, at: str) -> Schema:
        """The schema of a property of a known name, with those of the patterns that the name matches.

        named  whether it is in `properties`: a name that is not has `additionalProperties` only if it matches none
        """
        found = [s for p, s in patterns.items() if self.values.matches(_pattern(p, at), name, wide=True)]
        certain = any(self.values.matches(p, name) for p in patterns)
        return both(*([part] if named or not certain else []), *found)

    def _other_pair(self, own: Iterable[str], patterns: Mapping[str, Schema], extra: Schema, at: str) -> Expression:
        """A key that is none of some, and its value: by the patterns that the key matches, or by `extra`."""
        place = f"{at}/additionalProperties"
        if not patterns:
            return sequence(other_keys(own), SPACE, ":", SPACE, self.at(extra, place))
        if any(has_flag_i(p) for p in patterns):
            raise unsupported(f"{at}: a pattern of patternProperties has the flag i", "write both cases of letters")
        found = self.languages.by_match([regular(p, search=True) for p in patterns], Choice(tuple(map(Text, own))),
                                        PLAIN_ASCII)
        schemas, pairs = list(patterns.values()), list[Expression]()
        for matching, keys in sorted(found.items(), key=lambda item: sorted(item[0])):
            if not matching and extra is False:
                continue
            name = f"{at}~of {' '.join(map(str, sorted(matching)))}" if matching else place
            part = both(*(schemas[i] for i in sorted(matching))) if matching else extra
            pairs.append(sequence(quoted(keys), SPACE, ":", SPACE, self.at(part, name)))
        return Choice(tuple(pairs))

    def _array(self, schema: Keywords, at: str) -> Expression:
        prefix, items = schema.get("prefixItems", []), schema.get("items", True)
        if not isinstance(prefix, list):
            raise unsupported(f"{at}: prefixItems is {prefix!r}", "it is a list of schemas")
        least, most = _count(schema, "minItems", at) or 0, _count(schema, "maxItems", at)
        if most is not None and most < least:
            return NOTHING                                 # no value satisfies it
        if schema.get("uniqueItems", False) is not False or "contains" in schema:
            return sequence("[", SPACE, self._special_items(schema, least, most, at), SPACE, "]")
        heads = [self.at(p, f"{at}/prefixItems/{i}") for i, p in enumerate(prefix)][:most]
        left = None if most is None else most - len(heads)
        out: Expression = EMPTY
        if items is not False and left != 0:
            item, needed = self.at(items, f"{at}/items"), max(least - len(heads), 0)
            out = (Repeat(sequence(SPACE, ",", SPACE, item), needed, left) if heads
                   else _between_commas(item, needed, left) if needed else optional(_between_commas(item, 1, left)))
        elif least > len(heads):
            return NOTHING
        for i, head in reversed(list(enumerate(heads))):
            out = sequence(head, out) if i == 0 else sequence(SPACE, ",", SPACE, head, out)
            out = optional(out) if i >= least else out
        return sequence("[", SPACE, out, SPACE, "]")

    def _special_items(self, schema: Keywords, least: int, most: int | None, at: str) -> Expression:
        """The items of an array with `uniqueItems` or `contains`."""
        items, needed = schema.get("items", True), _count(schema, "minContains", at)
        needed, unique = 1 if needed is None else needed, schema.get("uniqueItems", False) is not False
        if schema.get("prefixItems") or (unique and "contains" in schema):
            raise unsupported(f"{at}: uniqueItems or contains stands beside other words on single items",
                              "leave one of them out")
        if not unique:
            if max(least, most or 0) * (needed + 1) > MOST_COUNTED:
                raise unsupported(f"{at}: contains stands beside large numbers of items", "use smaller ones")
            wanted = self.at(both(items, schema["contains"]), f"{at}~contained")
            return containing(self.at(items, f"{at}/items"), wanted, needed, least, most)
        values = self.values.all_of(items, at)
        if values is None or len(values) > MOST_DIFFERENT:
            raise unsupported(f"{at}: the keyword uniqueItems is not supported but for items of at most "
                              f"{MOST_DIFFERENT} constants", "a machine of states does not remember all others")
        return different([text_of(v) for v in values], least, most)

    def _string(self, schema: Keywords, at: str) -> Expression:
        least, most = _count(schema, "minLength", at) or 0, _count(schema, "maxLength", at)
        if most is not None and most < least:
            return NOTHING
        formats, patterns = (several(schema[k]) if k in schema else () for k in ("format", "pattern"))
        for name in formats:
            if name not in tuple(FORMATS):
                raise unsupported(f"{at}: the format {name!r} is not supported", f"one of {', '.join(FORMATS)}")
        bodies = [*(regular(FORMATS[name]) for name in formats), *(regular(_pattern(p, at), search=True)
                                                                   for p in patterns)]
        if not bodies:
            return any_string(least, most)
        if len(bodies) == 1 and (body_bounded := bounded(bodies[0], least, most)) is not None:
            return quoted(escaped(body_bounded))
        length = [Repeat(ANY_CHARACTER, least, most)] if least or most is not None else []
        return quoted(escaped(self.languages.of_all(*bodies, *length)))

    def _integer(self, schema: Keywords, at: str) -> Expression:
        bounds = _bounds(schema, at)
        if bounds == Bounds() and "multipleOf" not in schema:
            return INTEGER
        low = None if bounds.low is None else int(bounds.low.to_integral_value("ROUND_CEILING"))
        high = None if bounds.high is None else int(bounds.high.to_integral_value("ROUND_FLOOR"))
        low = low + (bounds.above and low == bounds.low) if low is not None else None
        high = high - (bounds.below and high == bounds.high) if high is not None else None
        if "multipleOf" in schema:
            return multiples(low, high, multiple_of(schema["multipleOf"], at), self.languages)
        return integers(low, high)

    def _number(self, schema: Keywords, at: str) -> Expression:
        if "multipleOf" in schema:                         # multiples of an integer are integers
            return self._integer(schema, at)
        return numbers(_bounds(schema, at))


def _without_conditions(part: Keywords) -> Schema | None:
    """A schema of the same values, or of some of them, without `if` or `not`; None where it has none or needs it."""
    keyword = next((k for k in ("if", "not") if k in part), None)
    opposite = negated(part[keyword]) if keyword else None
    rest = {k: v for k, v in part.items() if k not in ("then", "else", keyword)} if keyword == "if" else {
        k: v for k, v in part.items() if k != keyword}
    if opposite is None or text_of(opposite).text == text_of({"not": part.get("not")}).text:
        return None
    if keyword == "not":
        return both(rest, opposite)
    return both(rest, {"anyOf": [both(part["if"], part.get("then", True)), both(opposite, part.get("else", True))]})


def _boolean(schema: Keywords, at: str) -> Expression:
    return choice("true", "false")


def _null(schema: Keywords, at: str) -> Expression:
    return choice("null")


def _token(name: str) -> str:
    """A name as it stands in a pointer of JSON."""
    return name.replace("~", "~0").replace("/", "~1")


def _pattern(pattern: Any, at: str) -> str:
    if not isinstance(pattern, str):
        raise unsupported(f"{at}: pattern is {pattern!r}", "it is a regular expression")
    return pattern


def _count(schema: Keywords, keyword: str, at: str) -> int | None:
    value = schema.get(keyword)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <=
                              MOST_REPETITIONS):
        raise unsupported(f"{at}: {keyword} is {value!r}", f"it is a number from 0 to {MOST_REPETITIONS}")
    return value


def _bounds(schema: Keywords, at: str) -> Bounds:
    found: dict[str, Decimal] = {}
    for keyword in BOUNDS & schema.keys():
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
        return {("value",): set(map(compared, values)), ("type",): _kinds(set().union(*map(kinds_of, values)))}
    kinds = _kinds(types_of(schema, ""))
    out: dict[Mark, set[str]] = {("type",): kinds}
    required, properties = schema.get("required"), schema.get("properties")
    objects = kinds == {"object"} or (not kinds and schema.keys() <= KEYWORDS["object"] | ANNOTATIONS)
    if objects and isinstance(required, list) and isinstance(properties, Mapping):
        for name in (n for n in required if isinstance(n, str)):
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
