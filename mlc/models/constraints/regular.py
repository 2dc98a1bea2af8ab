"""Regular expressions as expressions: the syntax that Python and ECMAScript share.

`\\d`, `\\w` and `\\s` are the ASCII characters, and `\\D`, `\\W` and `\\S` the other ASCII characters, so that a text
matches whatever the language of who checks it. For the same reason `[^\\d]`, `[^\\w]` and `[^\\s]` exclude all that any
language counts among digits, words and spaces, and `(?i:[^s])` all that Unicode takes for an s. Anchors may stand at
the ends of a whole alternative; back references and conditions on what is before or after are refused. Whether a
repetition is lazy makes no difference.
"""

from __future__ import annotations

import re
from functools import cache

from mlc.models.constraints.expressions import (
    ALL,
    EMPTY,
    LAST,
    Chars,
    Choice,
    Expression,
    Ranges,
    Repeat,
    Sequence,
    complement,
    intersection,
    union,
)
from mlc.models.constraints.network import unsupported

_ASCII: Ranges = ((0, 0x7F),)
_NEW_LINE: Ranges = ((0x0A, 0x0A),)
_LINE_END: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
DIGIT: Ranges = ((0x30, 0x39),)
_SETS: dict[str, Ranges] = {"d": DIGIT, "w": union([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]),
                            "s": ((0x09, 0x0D), (0x20, 0x20))}
_SPACES = union([(0x09, 0x0D), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E),
                 (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
                 (0xFEFF, 0xFEFF)])
"""All that Python, ECMAScript or an older version of Unicode counts among spaces."""
_CONTROL = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "v": 0x0B, "a": 0x07, "0": 0x00}
ANY_CHARACTER = Chars(ALL)
ANY_TEXT = Repeat(ANY_CHARACTER)
"""Any text at all."""
MOST_REPETITIONS = 10_000
MOST_GROUPS = 50
"""Within each other: what walks an expression, or shows it, recurs some times for each."""


def regular(pattern: str, *, search: bool = False, flags: str = "", wide: bool = False) -> Expression:
    """The texts that a regular expression matches as a whole.

    pattern  the regular expression
    search   whether it may match anywhere in the text, as `pattern` of JSON schemas may
    flags    "i" for letters of either case (of ASCII), "s" for a dot that is any character
    wide     whether those are added that it may match in some language
    """
    if unknown := set(flags) - set("is"):
        raise unsupported(f"a regular expression has the flag {min(unknown)}", "the flags i and s are supported")
    return _Parser(pattern, search, flags, wide).parse()


def has_flag_i(pattern: str) -> bool:
    """Whether a part of a regular expression may take letters of either case."""
    return re.search(r"\(\?[a-z]*i", pattern) is not None


class _Parser:
    """Recursive descent over the characters of a pattern."""

    def __init__(self, pattern: str, search: bool, flags: str, wide: bool = False) -> None:
        self.pattern, self.search, self.flags, self.wide, self.at, self.depth = pattern, search, flags, wide, 0, 0

    def parse(self) -> Expression:
        out = self._alternatives(top=True)
        if self.at < len(self.pattern):
            raise self._error(f"{self._peek()} is not closed or opened")
        return out

    def _alternatives(self, top: bool = False) -> Expression:
        parts = [self._alternative(top)]
        while self._take("|"):
            parts.append(self._alternative(top))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _alternative(self, top: bool) -> Expression:
        begins = top and self._take("^")
        parts: list[Expression] = []
        ends = False
        while self._peek() not in ("", "|", ")"):
            if top and self.pattern.startswith("$", self.at) and self.pattern[self.at + 1: self.at + 2] in ("", "|"):
                self.at, ends = self.at + 1, True
                break
            parts.append(self._repeated(self._atom()))
        if ends and self.wide:
            parts.append(Repeat(Chars(_NEW_LINE), 0, 1))       # Python's $ stands before one, too
        if self.search and top:
            parts = [*([] if begins else [ANY_TEXT]), *parts, *([] if ends else [ANY_TEXT])]
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts)) if parts else EMPTY

    def _repeated(self, body: Expression) -> Expression:
        while True:
            if self._take("*"):
                body = Repeat(body)
            elif self._take("+"):
                body = Repeat(body, 1)
            elif self._take("?"):
                body = Repeat(body, 0, 1)
            elif (bounds := self._bounds()) is not None:
                body = Repeat(body, *bounds)
            else:
                return body
            self._take("?")                                # lazy: the same texts
            if self._peek() == "+":
                raise self._error("possessive repetition is not supported")

    def _bounds(self) -> tuple[int, int | None] | None:
        """{m}, {m,} or {m,n}; any other brace is a character."""
        end = self.pattern.find("}", self.at)
        inner = self.pattern[self.at + 1: end] if self._peek() == "{" and end > 0 else ""
        low, comma, high = inner.partition(",")
        if not inner.isascii():
            return None
        if not (low.isdecimal() or (comma and high.isdecimal() and not low)) or (high and not high.isdecimal()):
            return None
        self.at = end + 1
        if len(inner) > 100:
            raise self._error("a number of repetitions is too long")
        least, most = int(low or 0), int(high) if high else None if comma else int(low or 0)
        if max(least, most or 0) > MOST_REPETITIONS:
            raise self._error(f"a repetition is of more than {MOST_REPETITIONS} times")
        if most is not None and most < least:
            raise self._error(f"a repetition is of {least} to {most} times")
        return least, most

    def _atom(self) -> Expression:
        c = self._next()
        if c == "(":
            return self._group()
        if c == "[":
            return Chars(self._cased(self._class()))
        if c == ".":
            return Chars(ALL if "s" in self.flags else complement(_NEW_LINE if self.wide else _LINE_END))
        if c == "\\":
            return Chars(self._cased(self._escape()))
        if c in "^$":
            raise self._error(f"{c} stands within the expression: anchors are supported at its ends")
        if c in "*+?":
            raise self._error(f"{c} repeats nothing")
        return Chars(self._cased(((ord(c), ord(c)),)))

    def _group(self) -> Expression:
        self.depth += 1
        if self.depth > MOST_GROUPS:
            raise self._error("groups are nested too deeply")
        if self._take("?"):
            if self._take("P"):
                if not self._take("<"):
                    raise self._error("back references are not supported")
                self._name()
            elif self._take("<"):
                if self._peek() in ("=", "!"):
                    raise self._error("conditions on what is before are not supported")
                self._name()
            elif not self._take(":"):
                return self._with_flags()
        return self._closed(self._alternatives())

    def _with_flags(self) -> Expression:
        """(?i:...): a group with flags of its own."""
        end = self.pattern.find(":", self.at)
        added = self.pattern[self.at: end]
        if not added or set(added) - set("is"):
            raise self._error(f"(?{self._peek()} is not supported")
        before, self.flags, self.at = self.flags, self.flags + added, end + 1
        out = self._closed(self._alternatives())
        self.flags = before
        return out

    def _closed(self, out: Expression) -> Expression:
        if not self._take(")"):
            raise self._error("a group is not closed")
        self.depth -= 1
        return out

    def _name(self) -> None:
        end = self.pattern.find(">", self.at)
        if not self.pattern[self.at: end].isidentifier():
            raise self._error("the name of a group is none")
        self.at = end + 1

    def _class(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._of_class(negated)
            if self._peek() == "-" and self.pattern[self.at + 1: self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._of_class(negated)
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] < low[0][0]:
                    raise self._error("a range of characters is none")
                found.append((low[0][0], high[0][1]))
            else:
                found += low
        self.at += 1
        ranges = union(found)
        if not negated:
            return ranges
        return complement(_any_case(ranges) if "i" in self.flags and not self.wide else ranges)

    def _of_class(self, negated: bool) -> Ranges:
        c = self._next()
        if c == "\\":
            return ((8, 8),) if self._take("b") else self._escape(negated)
        return ((ord(c), ord(c)),)

    def _escape(self, negated: bool = False) -> Ranges:
        """The characters of an escape: those that it certainly stands for, or may stand for in a negated class."""
        c, all_possible = self._next(), negated != self.wide
        if c in _SETS:
            return _possible(c) if all_possible else _SETS[c]
        if c.lower() in _SETS:
            return (complement(_SETS[c.lower()]) if all_possible else
                    intersection(complement(_possible(c.lower())), _ASCII))
        if c in _CONTROL and not (c == "0" and self._peek().isdecimal()):
            return ((_CONTROL[c], _CONTROL[c]),)
        if c in "xuU":
            size = {"x": 2, "u": 4, "U": 8}[c]
            digits = self.pattern[self.at: self.at + size]
            if c == "u" and self._take("{"):
                digits = self.pattern[self.at: self.pattern.find("}", self.at)]
                size = len(digits) + 1
            try:
                number = int(digits, 16)
                chr(number).encode()
            except (ValueError, OverflowError):
                raise self._error(f"\\{c}{digits} is no character") from None
            self.at += size
            return ((number, number),)
        if c.isalnum():
            raise self._error(f"\\{c} is not supported")
        return ((ord(c), ord(c)),)

    def _cased(self, ranges: Ranges) -> Ranges:
        if "i" not in self.flags:
            return ranges
        if self.wide:
            return _any_case(ranges)
        upper, lower = (intersection(ranges, ((a, a + 25),)) for a in (0x41, 0x61))
        return union([*ranges, *((a + 32, b + 32) for a, b in upper), *((a - 32, b - 32) for a, b in lower)])

    # -- characters ---------------------------------------------------------------------------------------------------
    def _peek(self) -> str:
        return self.pattern[self.at: self.at + 1]

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise self._error("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _take(self, c: str) -> bool:
        taken = self._peek() == c
        self.at += taken
        return taken

    def _error(self, message: str) -> Exception:
        return unsupported(f"regular expression {self.pattern!r}, character {self.at}: {message}",
                           "what is supported is what Python and ECMAScript have in common, without conditions")


@cache
def _possible(c: str) -> Ranges:
    r"""All that some language counts among \d, \w or \s.

    For words those are all characters that are not ASCII, and for digits all beyond U+FFFF: each version of Unicode has
    more of them.
    """
    if c == "s":
        return _SPACES
    if c == "w":
        return union([*_SETS[c], (0x80, LAST)])
    return union([*((n, n) for n in range(0x10000) if chr(n).isdecimal()), (0x10000, LAST)])


def _any_case(ranges: Ranges) -> Ranges:
    """Some characters, and all that Unicode may take for the same letters in another case."""
    return union([*ranges, *((n, n) for letters in _letters() for n in letters
                             if any(low <= m <= high for m in letters for low, high in ranges))])


@cache
def _letters() -> list[set[int]]:
    """Sets of characters that are one letter, by the first character of each of its forms."""
    found: dict[int, set[int]] = {}
    for n in range(0x20000):                               # no letter beyond has two cases
        c = chr(n)
        forms = {n, *(ord(form[0]) for form in (c.lower(), c.upper(), c.title(), c.casefold()))}
        if len(forms) > 1:
            joined = forms.union(*(found[m] for m in forms if m in found))
            found.update(dict.fromkeys(joined, joined))
    return list({id(letters): letters for letters in found.values()}.values())
