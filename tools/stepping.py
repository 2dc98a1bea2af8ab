"""Stepping through a module in the interpreter: where execution stops, and what the values are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.ir.core import Op, Value
from mlc.ir.diag import Loc
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.printer import Printer, large_constants_elided

ELIDED = 32


@dataclass(frozen=True)
class Breakpoint:
    """Where execution stops: at operations of a name, at a line of the source or of the text, or where a value is made.

    number  as it is listed
    text    as it was written
    """

    number: int
    text: str

    @property
    def is_source_line(self) -> bool:
        """Whether it is at a line of the program: execution stops once whenever it comes there."""
        return not self.text.startswith("%") and self.text.rpartition(":")[2].isdecimal() and ":" in self.text

    def fits(self, op: Op, listing: Listing) -> bool:
        """Whether it is at an operation."""
        text = self.text
        if text.startswith("%"):
            return any(listing.name_of(r) == text for r in op.results)
        file, _, line = text.rpartition(":")
        if self.is_source_line:
            return any(loc.line == int(line) and (loc.file == file or loc.file.endswith("/" + file))
                       for loc in (op.loc, *op.loc.fused))
        if text.isdecimal():
            return listing.line_of.get(op) == int(text) - 1
        return text in (op.name, op.name.partition(".")[2])


class Listing:
    """The text of a module, and where each operation and value is in it.

    lines     its lines
    line_of   the line of each operation, from 0
    """

    def __init__(self, module: Op) -> None:
        printer = _Numbering()
        with large_constants_elided(ELIDED):
            printer.op(module)
        self.lines, self.line_of, self._names = printer.lines, printer.line_of, printer.given

    def name_of(self, value: Value) -> str:
        """The name of a value, as %x."""
        return self._names.get(value, "")

    def around(self, op: Op, context: int) -> Iterator[str]:
        """The lines around an operation, which is marked."""
        at = self.line_of[op]
        for i in range(max(0, at - context), min(len(self.lines), at + context + 1)):
            yield f"{'->' if i == at else '  '} {i + 1:4} {self.lines[i]}"


class _Numbering(Printer):
    def __init__(self) -> None:
        super().__init__(generic=False, locations=False)
        self.line_of: dict[Op, int] = {}
        self.given: dict[Value, str] = {}

    def op(self, op: Op) -> None:
        self.line_of[op] = len(self.lines)
        super().op(op)

    def name(self, value: Value) -> str:
        found = self.given[value] = super().name(value)
        return found


@dataclass
class Stop:
    """A place where execution has stopped, before an operation.

    reason  why
    depth   the number of operations around that are being executed, with calls
    """

    op: Op
    frame: Frame
    depth: int
    reason: str


class Stepper(Interpreter):
    """An interpreter that stops: `asks` is called at each stop, and sets `until` for the next one.

    breakpoints, watched  where it stops, and the last elements of the values whose changes are shown
    until  "next" stops behind the operation, "into" at the next one of any region or function, "finish" outside of
           the region, "continue" at breakpoints only
    """

    def __init__(self, module: Op, asks: Callable[[Stop], None], says: Callable[[str], None]) -> None:
        super().__init__(module)
        self.asks, self.says = asks, says
        self.listing = Listing(module)
        self.breakpoints: list[Breakpoint] = []
        self.watched: dict[str, Any] = {}
        self.until, self.at_depth, self.depth = "into", 0, 0
        self._lines: list[set[int]] = []                   # by depth, the breakpoints at the last operation there

    def frame(self) -> Frame:
        return _Frame(self)

    def another(self, module: Op) -> Interpreter:
        return Interpreter(module)                         # of an operation that is made of others: it is one step

    def before(self, op: Op, frame: Frame) -> None:
        """Stop before an operation, if there is a reason."""
        found = self._arrived(op) if self.breakpoints else None
        wanted = self.until == "into" or (self.until == "next" and self.depth <= self.at_depth) or (
            self.until == "finish" and self.depth < self.at_depth)
        if found is None and not wanted:
            return
        self.at_depth = self.depth
        self.asks(Stop(op, frame, self.depth, f"breakpoint {found.number}: {found.text}" if found else ""))
        self.at_depth = self.depth

    def _arrived(self, op: Op) -> Breakpoint | None:
        """The breakpoint that execution has come to: that of a line of the program at the first of its operations."""
        fits = {b.number for b in self.breakpoints if b.fits(op, self.listing)}
        del self._lines[self.depth + 1:]
        before = self._lines[-1] if self._lines else set()             # the operation before, or the one around
        self._lines += [before] * (self.depth + 1 - len(self._lines))
        self._lines[self.depth] = fits
        return next((b for b in self.breakpoints if b.number in fits and not (
            b.is_source_line and b.number in before)), None)

    def after(self, op: Op, frame: Frame) -> None:
        """Say what became of watched values."""
        for result in op.results:
            if (name := self.listing.name_of(result)) in self.watched:
                value = frame.env[result]
                if not _equal(value, self.watched[name]):
                    self.watched[name] = np.array(value, copy=True)
                    self.says(f"watched {name} is {shown(value)}")


class _Frame(Frame):
    __slots__ = ()

    def step(self, op: Op) -> None:
        stepper = self.interpreter
        assert isinstance(stepper, Stepper)
        stepper.before(op, self)
        stepper.depth += 1
        try:
            super().step(op)
        finally:
            stepper.depth -= 1
        stepper.after(op, self)


def _equal(a: Any, b: Any) -> bool:
    """Whether a value has the elements that it had, where NaN is NaN."""
    if b is None:
        return False
    a, b = np.asarray(a), np.asarray(b)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def shown(value: Any) -> str:
    """A value as text: its type and shape, its elements, and of floats how many are NaN or infinite."""
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)
    array = np.asarray(value)
    head = f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind == "f" and array.size:
        finite = array[np.isfinite(array)]
        wrong = [f"{count} {what}" for what, count in (("NaN", int(np.isnan(array).sum())),
                                                       ("infinite", int(np.isinf(array).sum()))) if count]
        if array.size > 1:
            wrong.append(f"from {finite.min():.6g} to {finite.max():.6g}" if finite.size else "no finite element")
        head += f" ({', '.join(wrong)})" if wrong else ""
    text = np.array2string(array, threshold=100, edgeitems=3, precision=8)
    return f"{head} {text}" if "\n" not in text else f"{head}\n{text}"


def place_of(loc: Loc) -> str:
    """The line of an operation, if it has one."""
    return f" ({loc})" if loc.file else ""


def values_in(frame: Frame, listing: Listing, names: Sequence[str] = ()) -> Iterator[tuple[str, Value, Any]]:
    """The values of a frame with their names, the last ones last."""
    for value, held in frame.env.items():
        name = listing.name_of(value)
        if name and (not names or name in names):
            yield name, value, held
