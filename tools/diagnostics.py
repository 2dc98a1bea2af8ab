"""`--verify-diagnostics`: the errors of a file compared with its `expected-error` comments, as upstream writes them.

    // expected-error@+1 {{text}}         the error on the next line contains the text
    // expected-error@below {{text}}      the same;  @above, @-2, and no @ for the comment's own line
    // expected-error-re@+1 {{a.*b}}      a regular expression
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlc.ir.diag import Error
from mlc.tools import report

_COMMENT = re.compile(r"//.*?expected-(error|note|warning|remark)(-re)?(?:@([+-]\d+|above|below|unknown))?"
                      r"\s*\{\{(.*?)\}\}")


@dataclass
class Expectation:
    kind: str
    line: int                                    # where it is expected; 0: anywhere
    written: int                                 # where the comment stands
    text: str
    regex: bool
    met: bool = False

    def fits(self, kind: str, line: int, message: str) -> bool:
        found = re.search(self.text, message) is not None if self.regex else self.text in message
        return kind == self.kind and self.line in (0, line) and found


@dataclass
class Checker:
    """Collects the expected and the actual diagnostics; `finish` reports the differences."""

    file: str
    expected: list[Expectation] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def expect(self, text: str) -> None:
        """Read the comments of one module, whose line numbers are the file's."""
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            for m in _COMMENT.finditer(line):
                self.expected.append(Expectation(m[1], _target(m[3], number, lines), number, m[4], bool(m[2])))

    def report(self, error: Error) -> None:
        """Match an error, which must be expected; its notes may be."""
        if not self._meet("error", error.loc.line, f"{error.message} [{error.code}]"):
            self.faults.append(f"{error.loc}: unexpected error: {error.message} [{error.code}]")
        for note in error.notes:
            self._meet("note", error.loc.line, note)

    def _meet(self, kind: str, line: int, message: str) -> bool:
        for e in self.expected:
            if not e.met and e.fits(kind, line, message):
                e.met = True
                return True
        return False

    def finish(self) -> int:
        faults = self.faults + [f'{self.file}:{e.written}: expected {e.kind} "{e.text}" was not produced'
                                for e in self.expected if not e.met]
        for fault in faults:
            report.message(fault)
        return 1 if faults else 0


def _target(where: str | None, number: int, lines: list[str]) -> int:
    """The line that `@where` of a comment on line `number` refers to."""
    if where is None:
        return number
    if where == "unknown":
        return 0
    if where in ("above", "below"):              # the next line that is not such a comment itself
        step = 1 if where == "below" else -1
        at = number + step
        while 0 < at <= len(lines) and _COMMENT.search(lines[at - 1]):
            at += step
        return at
    return number + int(where)
