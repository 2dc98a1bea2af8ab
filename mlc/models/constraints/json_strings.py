"""Strings of JSON as expressions: any characters, those of a length, a pattern or a format, and keys but some."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mlc.models.constraints.expressions import (
    ALL,
    EMPTY,
    Chars,
    Choice,
    Expression,
    Graph,
    Repeat,
    Rule,
    Sequence,
    Text,
    choice,
    complement,
    intersection,
    sequence,
    union,
)
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import regular

_ESCAPED = union([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
PLAIN = Chars(intersection(complement(_ESCAPED), ALL))
"""Characters that stand for themselves."""
PLAIN_ASCII = intersection(PLAIN.ranges, ((0x20, 0x7E),))
CHARACTER = choice(PLAIN, sequence("\\", Chars(union((ord(c), ord(c)) for c in '"\\/bfnrt'))),
                   sequence("\\u", regular("([0-9A-Ca-cE-Fe-f][0-9A-Fa-f]|[Dd][0-7])[0-9A-Fa-f]{2}")))
"""A character in any of its forms; halves of a pair of surrogates are no characters."""

_YEAR = r"(\d{3}[1-9]|\d\d[1-9]\d|\d[1-9]\d\d|[1-9]\d{3})"
_DAY = (rf"({_YEAR}-((01|03|05|07|08|10|12)-(0[1-9]|[12]\d|3[01])|(04|06|09|11)-(0[1-9]|[12]\d|30)|"
        r"02-(0[1-9]|1\d|2[0-8])))")
_TIME = r"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))"
_BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
FORMATS = {
    "date": _DAY, "time": _TIME, "date-time": f"{_DAY}T{_TIME}",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "email": r"[a-z0-9]+([._+-][a-z0-9]+)*@[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*\.[a-z]{2,}",
}
"""Formats, as regular expressions."""


def text_of(value: object) -> Text:
    """A value as JSON."""
    try:
        return Text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    except (TypeError, ValueError):
        raise unsupported(f"a schema has the value {value!r}", "JSON has no such value") from None
    except RecursionError:
        raise unsupported("a schema has a value that is nested too deeply", "use a flatter value") from None


def compared(value: object) -> str:
    """A text that is the same for values of JSON that are equal, as 1 and 1.0 are."""
    def number(text: str) -> int | float:
        found = float(text)
        return int(found) if found.is_integer() else found

    return json.dumps(json.loads(text_of(value).text, parse_float=number), sort_keys=True)


def quoted(body: Expression) -> Expression:
    """A string with these characters."""
    return sequence('"', body, '"')


def any_string(least: int = 0, most: int | None = None) -> Expression:
    """A string of a number of characters."""
    return quoted(Repeat(Rule("character"), least, most))


def escaped(x: Expression) -> Expression:
    """The same texts as they stand in a string of JSON."""
    match x:
        case Chars(ranges):
            odd = [chr(c) for low, high in intersection(ranges, _ESCAPED) for c in range(low, high + 1)]
            return Choice((Chars(intersection(ranges, PLAIN.ranges)), *(Text(json.dumps(c)[1:-1]) for c in odd)))
        case Text(text):
            return Text(json.dumps(text, ensure_ascii=False)[1:-1])
        case Sequence(parts):
            return Sequence(tuple(map(escaped, parts)))
        case Choice(parts):
            return Choice(tuple(map(escaped, parts)))
        case Repeat(body, least, most):
            return Repeat(escaped(body), least, most)
        case Graph(edges, ends):
            return Graph(tuple(tuple((escaped(body), to) for body, to in out) for out in edges), ends)
        case Rule():
            return x


def bounded(x: Expression, least: int, most: int | None) -> Expression | None:
    """The texts of a number of characters; None where that is not decided by the expression's own repetition."""
    shortest, longest = lengths(x)
    if shortest >= least and (most is None or (longest is not None and longest <= most)):
        return x
    if isinstance(x, Repeat) and isinstance(x.body, Chars):
        upper = [m for m in (x.most, most) if m is not None]
        low, high = max(x.least, least), min(upper, default=None)
        return Repeat(x.body, low, high) if high is None or low <= high else Choice(())
    return None


def lengths(x: Expression) -> tuple[int, int | None]:
    """The least and the greatest number of characters of a text; None for no limit."""
    match x:
        case Chars():
            return 1, 1
        case Text(text):
            return len(text), len(text)
        case Sequence(parts) | Choice(parts):
            found = [lengths(p) for p in parts] or [(0, 0)]
            lows, highs = [low for low, _ in found], [high for _, high in found if high is not None]
            join = sum if isinstance(x, Sequence) else None
            low = sum(lows) if join else min(lows)
            return low, None if len(highs) < len(found) else sum(highs) if join else max(highs)
        case Repeat(body, least, most):
            low, high = lengths(body)
            return low * least, 0 if high == 0 else None if high is None or most is None else high * most
        case Rule() | Graph():
            return 0, None


def other_keys(names: Iterable[str]) -> Expression:
    """Keys but some, without characters that have to be escaped: a key has many forms with them."""
    def others(known: list[str]) -> Expression:
        letters = sorted({k[0] for k in known if k})
        parts: list[Expression] = [] if "" in known else [EMPTY]
        rest = intersection(PLAIN.ranges, complement(union((ord(c), ord(c)) for c in letters)))
        parts.append(sequence(Chars(rest), Repeat(PLAIN)))
        parts += [sequence(c, others([k[1:] for k in known if k[:1] == c])) for c in letters
                  if intersection(PLAIN.ranges, ((ord(c), ord(c)),))]
        return Choice(tuple(parts))

    return quoted(others(list(names)))
