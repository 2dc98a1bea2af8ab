"""FileCheck: expectations about text, written as comments beside the input that produces it.

    // CHECK-LABEL: func.func @f          a section starts at the line that matches; captures are forgotten
    // CHECK: %[[A:.*]] = arith.addf      on some later line of the section
    // CHECK-NEXT: return %[[A]]          on the very next line
    // CHECK-SAME: : f32                  on the same line, further right
    // CHECK-NOT: arith.mulf              on no line before the next match (or the end of the section)
    // CHECK-DAG: ...                     a run of these matches distinct lines in any order

Text matches literally, except that a run of blanks matches any blanks, ``{{regex}}`` is a regular expression, and
``[[name:regex]]`` captures what ``[[name]]`` then stands for (``[[name]]`` alone captures an identifier at its first
use). Unlike LLVM's tool, matching goes line by line: two CHECKs never match one line.

>>> check("// CHECK: %[[X:.*]] = one\\n// CHECK-NEXT: two %[[X]]", "%0 = one\\ntwo %0") is None
True
"""
from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

KINDS = ("", "-NEXT", "-SAME", "-NOT", "-LABEL", "-DAG")
DIRECTIVE = re.compile(r"^\s*(?://|#|;)\s*CHECK(-[A-Z0-9-]+)?:\s*(.*?)\s*$")
COMMENT = re.compile(r"^\s*(?://|#|;)\s*([A-Za-z]{3,12})(?:[-_ ]?[A-Za-z]+)?\s*:")
"""A comment that begins with a word and a colon, as directives do."""
UNFINISHED = re.compile(r"^\s*(?://|#|;)\s*CHECK\b")
HOLE = re.compile(r"\{\{(.*?)\}\}|\[\[([A-Za-z_]\w*)(?::(.*?))?\]\]")


@dataclass(frozen=True)
class Directive:
    """One CHECK line: where it stands, its suffix (``-NEXT``, or empty) and its pattern."""

    line: int
    kind: str
    pattern: str

    def __str__(self) -> str:
        return f"line {self.line}: CHECK{self.kind}: {self.pattern}"


class CheckError(Exception):
    """The expectations are themselves ill-formed, or the output does not meet them."""


def directives(test: str) -> list[Directive]:
    """The CHECK lines of a text; raises CheckError for one that could never check anything."""
    found = []
    for number, line in enumerate(test.splitlines(), 1):
        if not (m := DIRECTIVE.match(line)):
            if misspelt(line, ("CHECK",)) or UNFINISHED.match(line):
                raise CheckError(f"line {number}: {line.strip()}\nno such directive: is CHECK: meant?")
            continue
        directive = Directive(number, m[1] or "", m[2])
        if directive.kind not in KINDS:
            raise CheckError(f"{directive}\nno such directive: CHECK{directive.kind}")
        if not directive.pattern:
            raise CheckError(f"{directive}\nthe pattern is empty")
        found.append(directive)
    return found


def misspelt(line: str, words: Sequence[str]) -> str | None:
    """Which of these words a comment seems to begin with, that would be passed over as it is written.

    >>> [misspelt(line, ["CHECK"]) for line in ("// CHEKC: add", "  // Check-next: add", "// which: this")]
    ['CHECK', 'CHECK', None]
    """
    if not (m := COMMENT.match(line)):
        return None
    same = {word.lower(): word for word in words}
    near = get_close_matches(m[1].lower(), same, 1, 0.66)
    return same[near[0]] if near and m[1] not in words else None


def check(test: str, output: str) -> str | None:
    """None if `output` meets the CHECK lines of `test`, else a message that shows rule, place and output."""
    try:
        rules = directives(test)
        if not rules:
            raise CheckError("there is no CHECK line")
        _Matcher(output.splitlines()).run(rules)
    except CheckError as e:
        return str(e)
    return None


def to_regex(pattern: str, env: dict[str, str]) -> str:
    """The regular expression for a pattern: known names by value, new ones as named groups.

    >>> to_regex("add %[[X:.*]], %[[X]]", {})
    'add\\\\s+%(?P<X>.*),\\\\s+%(?P=X)'
    """
    out, at, new = list[str](), 0, set[str]()
    for m in HOLE.finditer(pattern):
        out.append(_literal(pattern[at:m.start()]))
        at = m.end()
        regex, name, bind = m.groups()
        if regex is not None:
            out.append(f"(?:{regex})")
        elif name in new and bind is None:
            out.append(f"(?P={name})")
        elif name in env and bind is None:
            out.append(re.escape(env[name]))
        elif name in new:
            raise CheckError(f"[[{name}]] is captured twice in one pattern")
        else:
            new.add(name)
            out.append(f"(?P<{name}>{bind or '[A-Za-z0-9_]+'})")
    return "".join(out) + _literal(pattern[at:])


def literal(line: str) -> str:
    """A pattern that matches exactly this text."""
    return re.sub(r"\{\{|\[\[", lambda m: r"{{\{\{}}" if m[0] == "{{" else r"{{\[\[}}", line)


def is_literal(pattern: str) -> bool:
    """Whether a pattern could have come from `literal`: it captures nothing and has no regular expression."""
    return not HOLE.search(pattern.replace(r"{{\{\{}}", "").replace(r"{{\[\[}}", ""))


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


@dataclass
class _Matcher:
    """Walks the directives down the output. `row`, `column`: where the last match ended; `end`: of this section."""

    lines: list[str]
    row: int = -1
    column: int = 0
    end: int = 0
    env: dict[str, str] = field(default_factory=dict)

    def run(self, rules: list[Directive]) -> None:
        """Match every directive or raise; the labels first, since they bound what the others may see."""
        labels = [at for at, rule in enumerate(rules) if rule.kind == "-LABEL"]
        starts = self._label_rows([rules[at] for at in labels])
        self._section(rules[:labels[0]] if labels else rules, -1, starts[0] if starts else len(self.lines))
        for k, at in enumerate(labels):
            last = k + 1 == len(labels)
            body = rules[at:] if last else rules[at:labels[k + 1]]
            self._section(body, starts[k] - 1, len(self.lines) if last else starts[k + 1])

    def _label_rows(self, labels: list[Directive]) -> list[int]:
        rows, self.end = list[int](), len(self.lines)
        for label in labels:
            self.env.clear()
            self.row = self._positive(label)
            rows.append(self.row)
        return rows

    def _section(self, body: list[Directive], before: int, end: int) -> None:
        """Match directives on the lines between `before` and `end`, both excluded."""
        self.row, self.end = before, end
        self.env.clear()
        forbidden, at = list[Directive](), 0
        while at < len(body):
            rule = body[at]
            at += 1
            if rule.kind == "-NOT":
                forbidden.append(rule)
                continue
            if rule.kind == "-DAG":
                group = [rule]
                while at < len(body) and body[at].kind == "-DAG":
                    group.append(body[at])
                    at += 1
                first, last = self._unordered(group)
            else:
                first = last = self._positive(rule)
            self._absent(forbidden, self.row + 1, first)
            self.row, forbidden = last, []
        self._absent(forbidden, self.row + 1, self.end)

    def _positive(self, rule: Directive) -> int:
        start, end, column = self.row + 1, self.end, 0
        if rule.kind == "-NEXT":
            end = min(start + 1, end)
        if rule.kind == "-SAME":
            start, end, column = self.row, self.row + 1, self.column
        row = self._find(rule, start, end, column) if start >= 0 else None
        if row is None:
            raise self._error(rule, "not found")
        return row

    def _unordered(self, group: list[Directive]) -> tuple[int, int]:
        taken = set[int]()
        for rule in group:
            row = self._find(rule, self.row + 1, self.end, taken=taken)
            if row is None:
                raise self._error(rule, "not found")
            taken.add(row)
        return min(taken), max(taken)

    def _absent(self, forbidden: list[Directive], start: int, end: int) -> None:
        for rule in forbidden:
            kept = dict(self.env)
            row = self._find(rule, start, end)
            self.env = kept
            if row is not None:
                self.row = row
                raise self._error(rule, "found but forbidden")

    def _find(self, rule: Directive, start: int, end: int, column: int = 0, taken: Container[int] = ()) -> int | None:
        """The first line in a range that matches, not one of `taken`; its captures and end are recorded."""
        try:
            regex = re.compile(to_regex(rule.pattern, self.env))
        except (re.error, CheckError) as e:
            raise CheckError(f"{rule}\nnot a pattern: {e}") from None
        for row in range(start, end):
            if row in taken:
                continue
            if m := regex.search(self.lines[row], column):
                self.env.update(m.groupdict())
                self.column = m.end()
                return row
        return None

    def _error(self, rule: Directive, why: str) -> CheckError:
        rows = range(max(0, self.row - 2), min(len(self.lines), self.row + 7))
        near = "\n".join(f"  {'>' if row == self.row else ' '} {self.lines[row]}" for row in rows)
        known = "".join(f"\n  with [[{name}]] = {value}" for name, value in self.env.items())
        return CheckError(f"{rule}\n{why}{known}\nthe output, with the last match marked:\n{near or '  (empty)'}")
