"""Source locations, errors, and the renderer of error messages."""

from __future__ import annotations

import linecache
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

NUMBERED = "<op>"
"""The file of locations that stand for the operations of a module by number (backends/fingerprint.py)."""
MODULE = "module "
"""In the text of a location, what the name of a module is behind."""


@dataclass(frozen=True, slots=True)
class Loc:
    """Where an operation came from: a source position, and the passes and rules it went through.

    `via` lists `pass` or `pass/rule` names, oldest first: an error deep in lowering still names the model line.
    `fused` has the locations of other operations that this one also stands for, such as equal ones.
    `scope` is the path of the module whose `forward` asked for it, such as `GPT.layers.7.attn`, or "".
    """

    file: str
    line: int
    col: int = 0
    via: tuple[str, ...] = ()
    fused: tuple[Loc, ...] = ()
    scope: str = field(default="", compare=False)

    def through(self, name: str) -> Loc:
        """This location with `name` (a pass, or `pass/rule`) added to `via`, unless it is already the last entry."""
        return self if self.via and self.via[-1] == name else \
            Loc(self.file, self.line, self.col, (*self.via, name), self.fused, self.scope)

    def with_fused(self, other: Loc) -> Loc:
        """This location, for an operation that from now on also stands for one at `other`."""
        if len(self.fused) >= MOST_FUSED:
            return self
        own = replace(other, fused=()) if other.fused else other
        new = [x for x in (own, *other.fused) if x.file and x not in self.fused and (
            x.file, x.line, x.col, x.via) != (self.file, self.line, self.col, self.via)]
        return replace(self, fused=(*self.fused, *new)[:MOST_FUSED]) if new else self

    def called(self, callee: Loc, call: Loc) -> Loc:
        """The location of an operation of a function, located at `callee`, where it is called: equal layers share a
        function, and its calls are of other modules, and of other lines where it is of this package.

        Where locations stand for others by number, the text of the module says how to find it once these are known.
        """
        if NUMBERED in self.scope:
            return replace(self, scope=f"({self.scope}|{callee.scope}|{call.scope})")
        at = call if (self.file, self.line) == (callee.file, callee.line) else self
        scope = called_scope(self.scope, callee.scope, call.scope)
        if at is self and scope == self.scope:
            return self
        return replace(self, file=at.file, line=at.line, col=at.col, scope=scope)

    def __str__(self) -> str:
        if not self.file:
            return "<unknown>"
        return f"{self.file}:{self.line}:{self.col}" if self.col else f"{self.file}:{self.line}"


def called_scope(scope: str, callee: str, call: str) -> str:
    """The module of an operation where the function that it is in is called: below `call` as it is below `callee`.

    >>> called_scope("Net.0.linear", "Net.0", "Net.1")
    'Net.1.linear'
    """
    if callee == call:
        return scope
    if scope == callee or (callee and scope.startswith(callee + ".")):
        return call + scope[len(callee):] if call else scope[len(callee) + 1:]
    return scope


UNKNOWN = Loc("", 0)
MOST_FUSED = 32
"""Most further locations of an operation: a constant may stand for thousands."""
WIDEST = 140
"""Characters of a source line that a message shows."""


class Error(Exception):
    """Base of everything that mlc raises on purpose; its text is the message with place, notes and hint.

    Args:
        message: One sentence: what is wrong, with the values found.
        code: Stable name of this kind of error; `mlc explain-error CODE` explains it.
        loc: Place that the user can change.
        notes: Further lines, such as where each operand came from.
        hint: One suggested fix, or None.
        symbols: Names of the symbolic sizes that it is about.

    Example:
        >>> try:
        ...     mlc.ones(2) + mlc.ones(3)
        ... except mlc.Error as error:
        ...     print(error.code, error.message)
        MLC0111 add: shapes [2] and [3] do not broadcast
    """

    default_code = "MLC0001"

    def __init__(self, message: str, code: str = "", loc: Loc = UNKNOWN, notes: tuple[str, ...] = (),
                 hint: str | None = None, symbols: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.loc = loc
        self.notes = notes
        self.hint = hint
        self.symbols = frozenset(symbols)

    def __str__(self) -> str:
        return render(self)


class IRError(Error):
    """The IR (built, parsed or rewritten) breaks a rule of an operation, a type or a form."""

    default_code = "MLC0100"


class ParseError(IRError):
    """The text is not IR: a wrong token, an unknown name, or a limit on nesting or size is passed."""

    default_code = "MLC0200"


class UserError(Error, ValueError, RuntimeError):
    """Error in a model or a call: shapes, dtypes, devices, arguments.

    It is a ValueError, and a RuntimeError, since that is what programs for PyTorch expect of an operation.

    Args:
        message: One sentence: what is wrong, with the values found.
        code: Stable name of this kind of error; `mlc explain-error CODE` explains it.
        loc: Place that the user can change.
        notes: Further lines, such as where each operand came from.
        hint: One suggested fix, or None.
        symbols: Names of the symbolic sizes that it is about.

    Example:
        >>> try:
        ...     nn.Linear(2, 3)(mlc.ones(4))
        ... except mlc.UserError as error:
        ...     print(error.code, error.message)
        MLC0367 linear: inner sizes differ: the input has 4 features, the weight takes 2
    """

    default_code = "MLC0300"


class UserTypeError(UserError, TypeError):
    """As UserError, where Python's own convention is TypeError: a wrong dtype, rank or kind of argument."""


class UserIndexError(UserError, IndexError):
    """As UserError, where Python's own convention is IndexError."""


class UserKeyError(UserError, KeyError):
    """As UserError, where Python's own convention is KeyError."""


class UserAssertionError(UserError, AssertionError):
    """As UserError, where Python's own convention is AssertionError: an `assert` of the program does not hold."""


class UserMemoryError(UserError, MemoryError):
    """As UserError, where Python's own convention is MemoryError: a call or a compilation runs out of memory.

    Its name in PyTorch is `OutOfMemoryError`.

    Args:
        message: One sentence: what is wrong, with the values found.
        code: Stable name of this kind of error; `mlc explain-error CODE` explains it.
        loc: Place that the user can change.
        notes: Further lines, such as where each operand came from.
        hint: One suggested fix, or None.
        symbols: Names of the symbolic sizes that it is about.

    Example:
        >>> try:
        ...     mlc.ones(10**9, 10**9)
        ... except mlc.OutOfMemoryError as error:
        ...     print(error.message)
        ones: shape [1000000000, 1000000000] is beyond all memory
    """


class UserFileNotFoundError(UserError, FileNotFoundError):
    """As UserError, where Python's own convention is FileNotFoundError: there is no file of this name."""


class UserAttributeError(UserError, AttributeError):
    """As UserError, where Python's own convention is AttributeError: `hasattr` and `getattr` with a default work."""


class BackendError(Error):
    """Code generation, linking or loading failed."""

    default_code = "MLC0500"


class InternalError(Error):
    """A defect of mlc itself; `reproducer` is the command that replays it, if one was written."""

    default_code = "MLC0900"
    reproducer: str | None = None


def render(error: Error) -> str:
    """`file:line:col: error[CODE]: message`, the source line with a caret, notes, and the suggested fix."""
    loc = error.loc
    head = f"{loc}: error[{error.code}]: {error.message}" if loc.file else f"error[{error.code}]: {error.message}"
    lines = [head]
    if loc.file and loc.line and (source := linecache.getline(loc.file, loc.line).rstrip()):
        shown = _printable(source.expandtabs(4))
        lines += _quoted(shown, len(source[: loc.col - 1].expandtabs(4)) if loc.col else None)
    lines += [f"  note: {note}" for note in error.notes]
    if error.hint:
        lines.append(f"  help: {error.hint}")
    return "\n".join(lines)


def _printable(source: str) -> str:
    """A line with each control character (a carriage return, an escape) replaced, so that it cannot move the cursor."""
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in source)


def _quoted(source: str, at: int | None) -> list[str]:
    """A source line with a caret below column `at`; of a long one, the part around it."""
    if len(source) <= WIDEST:
        return ["    " + source] + (["    " + " " * _width(source[:at]) + "^"] if at is not None else [])
    start = max(0, min((at or 0) - WIDEST // 2, len(source) - WIDEST))
    part = ("..." if start else "") + source[start: start + WIDEST] + ("..." if start + WIDEST < len(source) else "")
    return ["    " + part] + (
        ["    " + " " * (_width(source[start:at]) + (3 if start else 0)) + "^"] if at is not None else [])


def _width(text: str) -> int:
    """Number of terminal columns of a text: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
