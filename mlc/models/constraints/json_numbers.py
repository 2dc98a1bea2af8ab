"""Numbers of JSON within bounds, as expressions on their digits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from mlc.models.constraints.expressions import (
    EMPTY,
    Chars,
    Choice,
    Expression,
    Graph,
    Repeat,
    Text,
    optional,
    sequence,
    union,
)
from mlc.models.constraints.languages import Languages
from mlc.models.constraints.network import unsupported
from mlc.models.constraints.regular import DIGIT, regular

NOTHING = Choice(())
INTEGER = regular(r"-?(0|[1-9][0-9]{0,17})")
NUMBER = regular(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")
PLACES = 6
"""Decimal places of a number with bounds: fewer than float64 tells apart next to them."""
_LARGEST = 10 ** 15 - 1
_FAR = 10 ** 9
_MOST_REMAINDERS = 1000
"""Remainders of a divisor times digits: the states of a machine."""
_MOST_LISTED = 500


@dataclass(frozen=True)
class Bounds:
    """Bounds of a number; None where there is none.

    low, high          the numbers
    above, below       whether they themselves are excluded
    """

    low: Decimal | None = None
    high: Decimal | None = None
    above: bool = False
    below: bool = False


def integers(low: int | None, high: int | None) -> Expression:
    """The integers from low to high."""
    if low is None and high is None:
        return INTEGER
    least, most = max(-_LARGEST, low) if low is not None else -_LARGEST, min(_LARGEST, high if high is not None
                                                                             else _LARGEST)
    if (low is not None and low > _LARGEST) or (high is not None and high < -_LARGEST):
        raise unsupported(f"an integer has bounds beyond {_LARGEST}", "use smaller bounds")
    return Choice((_natural(max(least, 0), most), sequence("-", _natural(max(-most, 1), -least))))


def multiples(low: int | None, high: int | None, divisor: int, languages: Languages) -> Expression:
    """The multiples of a number from low to high, as many as a machine of some thousand states tells apart.

    Where there would have to be more, these are the first ones from a bound or from 0 on.
    """
    if divisor == 1:
        return integers(low, high)
    given = [len(str(abs(b))) for b in (low, high) if b is not None]
    reach, needed = min(15, _MOST_REMAINDERS // divisor), max([*given, len(str(divisor)) + 1])
    if reach >= needed:
        far = 10 ** min(reach, max(6, needed + 1)) - 1
        return languages.of_all(integers(-far if low is None else low, far if high is None else high),
                                _divisible(divisor))
    if low is None and high is not None:
        found = range(min(high, _LARGEST) // divisor * divisor, -_LARGEST, -divisor)
    else:
        first = 0 if low is None else max(low, -_LARGEST)
        found = range(-(-first // divisor) * divisor, (_LARGEST if high is None else min(high, _LARGEST)) + 1, divisor)
    languages.spend(10 * _MOST_LISTED)
    return Choice(tuple(Text(str(n)) for n in found[:_MOST_LISTED]))


def _divisible(divisor: int) -> Graph:
    """Digits, with a sign or without, of the multiples of a number: a state for each remainder."""
    edges: list[tuple[tuple[Expression, int], ...]] = []
    for before in (0, 0, *range(divisor)):
        found: dict[int, list[int]] = {}
        for digit in range(10):
            found.setdefault((10 * before + digit) % divisor, []).append(0x30 + digit)
        edges.append(tuple((Chars(union((c, c) for c in digits)), 2 + to) for to, digits in found.items()))
    return Graph(((*edges[0], (Text("-"), 1)), *edges[1:]), frozenset([2]))


def _digits(least: int, most: int) -> Expression:
    return Repeat(Chars(DIGIT), least, most)


def _digit(low: int, high: int) -> Expression:
    return Chars(((0x30 + low, 0x30 + high),)) if low <= high else NOTHING


def _natural(low: int, high: int) -> Expression:
    """The numbers from low to high, neither of which is negative, without zeros in front."""
    parts: list[Expression] = []
    for length in range(len(str(low)), len(str(max(high, 0))) + 1):
        first, last = max(low, 10 ** (length - 1) if length > 1 else 0), min(high, 10 ** length - 1)
        if first <= last:
            parts.append(_same_length(str(first), str(last)))
    return Choice(tuple(parts))


def _same_length(low: str, high: str) -> Expression:
    if not low:
        return EMPTY
    a, b, rest = int(low[0]), int(high[0]), len(low) - 1
    least, most = "0" * rest, "9" * rest
    if a == b and (low[1:] != least or high[1:] != most):
        return sequence(low[0], _same_length(low[1:], high[1:]))
    parts: list[Expression] = []
    if low[1:] != least:
        parts.append(sequence(low[0], _same_length(low[1:], most)))
    if high[1:] != most:
        parts.append(sequence(high[0], _same_length(least, high[1:])))
    whole = sequence(_digit(a + (low[1:] != least), b - (high[1:] != most)), _digits(rest, rest))
    return Choice((*parts, whole))


def numbers(bounds: Bounds) -> Expression:
    """The decimal numbers within bounds, with at most PLACES places, or as many as the bounds have."""
    if bounds.low is None and bounds.high is None:
        return NUMBER
    given = [b for b in (bounds.low, bounds.high) if b is not None]
    places = max(PLACES, *(-int(b.normalize().as_tuple().exponent) for b in given))
    if places > 12 or any(abs(b) > _LARGEST for b in given):
        raise unsupported(f"a number has the bounds {', '.join(map(str, given))}", "bounds have at most 12 decimal "
                          f"places and are not beyond {_LARGEST}")
    if (bounds.above or bounds.below) and any(abs(b) * 10 ** places > _FAR * 10 ** PLACES for b in given):
        raise unsupported(f"a number has to differ from {', '.join(map(str, given))}, and numbers next to it cannot be "
                          "told apart", "use minimum and maximum")
    negative = Bounds(None if bounds.high is None else -bounds.high, None if bounds.low is None else -bounds.low,
                      bounds.below, bounds.above)
    return Choice((_not_negative(bounds, places), sequence("-", _not_negative(negative, places))))


def _not_negative(bounds: Bounds, places: int) -> Expression:
    low, above = bounds.low if bounds.low is not None else Decimal(0), bounds.above and bounds.low is not None
    high = bounds.high if bounds.high is not None else Decimal(_LARGEST)
    below = bounds.below and bounds.high is not None
    if low < 0:
        low, above = Decimal(0), False
    if high < low:
        return NOTHING
    (a, f), (b, g) = (_parts(x, places) for x in (low, high))
    if a == b:
        return sequence(str(a), _fraction(f, g, above, below))
    most = "9" * places
    middle = sequence(_natural(a + 1, b - 1), optional(sequence(".", _digits(1, places)))) if a + 1 < b else NOTHING
    return Choice((sequence(str(a), _fraction(f, most, above, False)), middle,
                   sequence(str(b), _fraction("0" * places, g, False, below))))


def _parts(x: Decimal, places: int) -> tuple[int, str]:
    whole, fraction = divmod(int(x.scaleb(places).to_integral_value()), 10 ** places)
    return whole, f"{fraction:0{places}}"


def _fraction(low: str, high: str, above: bool, below: bool) -> Expression:
    """A point and decimals from low to high, or nothing where zeros are within the bounds."""
    rest = sequence(".", _decimals(low, high, above, below, False))
    return Choice((EMPTY, rest)) if _may_end(low, high, above, below) else rest


def _may_end(low: str | None, high: str | None, above: bool, below: bool) -> bool:
    """Whether zeros, or nothing, are within the bounds; None is a bound that is met already."""
    return (low is None or (not low.strip("0") and not above)) and (high is None or bool(high.strip("0")) or not below)


def _decimals(low: str | None, high: str | None, above: bool, below: bool, may_end: bool = True) -> Expression:
    """Decimals, as many as the bounds have or fewer; None is a bound that is met already."""
    known = low if low is not None else high
    assert known is not None
    end: tuple[Expression, ...] = (EMPTY,) if may_end and _may_end(low, high, above, below) else ()
    if not known:
        return Choice(end)
    rest = len(known) - 1
    a, b = int(low[0]) if low is not None else -1, int(high[0]) if high is not None else 10
    parts = [*end, sequence(_digit(a + 1, b - 1), _digits(0, rest))]
    if low is not None and high is not None and a == b:
        parts.append(sequence(str(a), _decimals(low[1:], high[1:], above, below)))
    else:
        if low is not None:
            parts.append(sequence(str(a), _decimals(low[1:], None, above, below)))
        if high is not None:
            parts.append(sequence(str(b), _decimals(None, high[1:], above, below)))
    return Choice(tuple(parts))


