"""The kernels of a profile: their times, operations and bytes, by kernel, by source line and by module."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from mlc.frontend.location import user_loc
from mlc.ir import html
from mlc.ir.diag import UserError
from mlc.ir.kernel_sites import KernelSite, SourceLine
from mlc.roofline import Limits

if TYPE_CHECKING:
    from mlc.backends.timed import Times

SORTS = ("total", "calls", "mean", "flops", "bytes")
"""The keys by which rows can be sorted."""
LIKE, UNLIKE = 4, 3
"""How many modules a list has that one of them may be compared with, and how many times their median is too long."""
ROWS_OF_NOTEBOOK = 30
"""Rows of a table that a notebook shows."""
OPERATIONS = "(operations)"
"""The name of the function that operations outside of compiled functions are in."""


@dataclass
class CallSurroundings:
    """The memory around a call of a compiled function.

    lines         the lines that made its arguments, as "file.py:12"; "" of those that the profile does not know
    result_names  the names of results that are the memory of what the function reaches: number of the result
    others        bytes of tensors that have nothing to do with the call
    changes       how many tensors had been made or freed by then
    taken         the numbers of those that the call takes or writes to
    """

    lines: Sequence[str]
    result_names: Mapping[int, str]
    others: int
    changes: int
    taken: frozenset[int]


@dataclass
class TimedCall:
    """A call of timed code, by a compiled function or an operation.

    times  what the code says
    name   name of the function or operation
    line   of an operation, the line that asked for it; of a function, each kernel has its own
    memory who has memory around the call of a function, if the profile counts it
    """

    times: Times
    name: str
    line: SourceLine | None = None
    memory: CallSurroundings | None = None

    def label(self, site: KernelSite) -> str:
        """The name of a kernel: of an operation, with the name of that."""
        label = site.label or "copy"
        return label if self.line is None or label == self.name else f"{self.name}/{label}"

    def without_events(self) -> TimedCall:
        """The same call, of which the sums are kept; other profiles may hold it, too."""
        times = copy(self.times)
        times.shares = self.times.shares.copy()
        times.drop_events()
        return replace(self, times=times)


@dataclass
class KernelRow:
    """The sums of the calls of a kernel, or of all kernels of a line or a module.

    Args:
        kernel: Label of the kernel, made of its operations; "" for a line or a module.
        function: The compiled function that it is a part of; "(operations)" of what runs at once.
        lines: The lines that it computes, as "file.py:12", those with the most operations first.
        module: Path of the module whose `forward` it is in, such as "GPT.layers.7.attn"; with * for numbers where
            equal layers are summed.
        threads: Whether it may run on several threads.
        calls: How often it ran.
        seconds: Its time, on the thread that calls, in all.
        flops: Floating-point operations, in all.
        bytes: Bytes that it has to read and write, in all.
        limit: Seconds that the machine needs at least; 0 where its limits are not known.
        shared: Seconds of it in which several threads could take part.
        busy: Seconds of work in these, of all threads together.
        longest: Seconds of the thread that worked longest, in each.
        workers: The most threads that took part.
        number: The kind of number that it multiplies, as in the limits of the machine.
    """

    kernel: str
    function: str
    lines: tuple[str, ...]
    module: str
    threads: bool = False
    calls: int = 0
    seconds: float = 0.0
    flops: int = 0
    bytes: int = 0
    limit: float = 0.0
    shared: float = 0.0
    busy: float = 0.0
    longest: float = 0.0
    workers: int = 1
    number: str = "f32"

    @property
    def line(self) -> str:
        """The line with the most operations, at which the kernel counts."""
        return self.lines[0] if self.lines else ""

    @property
    def mean(self) -> float:
        """Seconds of a call."""
        return self.seconds / max(self.calls, 1)

    @property
    def gflops(self) -> float:
        """Achieved 10^9 floating-point operations a second."""
        return self.flops / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gbytes(self) -> float:
        """Achieved 10^9 bytes a second."""
        return self.bytes / self.seconds / 1e9 if self.seconds else 0.0

    def least(self, limits: Limits) -> float:
        """The least possible time of the calls of the kernel.

        Args:
            limits: Limits of the machine.

        Returns:
            Seconds.
        """
        calls = max(self.calls, 1)
        return calls * limits.seconds(self.flops / calls, self.bytes / calls, bool(self.threads), self.number)

    @property
    def roofline(self) -> float:
        """The share of what the machine could do: the least possible time by the time; 0 where it is not known."""
        return self.limit / self.seconds if self.seconds else 0.0

    @property
    def balance(self) -> float:
        """How evenly the threads share its work: that of the mean thread by that of the busiest; 0 if one works."""
        return self.busy / (self.longest * self.workers) if self.workers > 1 and self.longest else 0.0

    def add(self, other: KernelRow) -> None:
        """Add the sums of another row.

        Args:
            other: The row.
        """
        self.calls += other.calls
        self.seconds += other.seconds
        self.flops += other.flops
        self.bytes += other.bytes
        self.limit += other.limit
        self.shared += other.shared
        self.busy += other.busy
        self.longest += other.longest
        self.workers = max(self.workers, other.workers)


@dataclass
class Kernels:
    """The kernels of a profile, the one that took longest first.

    Args:
        rows: One for each kernel: of equal layers, one for all.
        wall: Seconds of the calls of compiled code, on the clock of the caller.
        by_module_path: The same kernels with one row for each module.
    """

    rows: list[KernelRow]
    wall: float
    by_module_path: list[KernelRow] = field(default_factory=list)

    def __iter__(self) -> Iterator[KernelRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> KernelRow:
        return self.rows[i]

    @property
    def seconds(self) -> float:
        """The time of all kernels."""
        return sum(row.seconds for row in self.rows)

    @property
    def coverage(self) -> float:
        """The time of all kernels by that of the calls that they ran in."""
        return self.seconds / self.wall if self.wall else 0.0

    def by_line(self) -> list[KernelRow]:
        """Sum the kernels by the line that has most of their operations.

        Returns:
            List of rows, the line that took longest first.
        """
        return _grouped(self.rows, lambda row: [("", "", (row.line,), "")])

    def by_module(self) -> list[KernelRow]:
        """Sum the kernels by module, those of the modules inside included.

        Returns:
            List of rows, each module before those inside it; what is in no module is "(no module)".
        """
        found = _grouped(self.by_module_path, lambda row: [("", "", (), path) for path in _around(row.module)])
        time = {row.module: row.seconds for row in found}
        return sorted(found, key=lambda row: [(-time[path], path) for path in _around(row.module)])

    def sorted_by(self, key: str) -> list[KernelRow]:
        """Sort the kernels.

        Args:
            key: "total", "calls", "mean", "flops" or "bytes".

        Returns:
            List of rows, the largest first.

        Raises:
            UserError: There is no such key (MLC0796).
        """
        if key not in SORTS:
            raise UserError(f"kernels are not sorted by {key!r}", code="MLC0796", loc=user_loc(),
                            hint="one of " + ", ".join(SORTS))
        return sorted(self.rows, key=lambda row: -getattr(row, "seconds" if key == "total" else key))

    def table(self, sort_by: str = "total", row_limit: int = 20, width: int | None = None) -> str:
        """Format the kernels as tables: by kernel, by line and by module.

        Args:
            sort_by: As of `sorted_by`; lines and modules are sorted by their times.
            row_limit: Number of rows of each; -1 for all.
            width: Number of characters of a row; by default those of the terminal. Narrow tables leave out columns
                of numbers: `rows`, `by_line()` and `by_module()` have all.

        Returns:
            The text.

        Raises:
            UserError: There is no such key (MLC0796).
        """
        width = width or shutil.get_terminal_size((120, 24)).columns
        parts = []
        for title, rows, texts in (
                ("kernels", self.sorted_by(sort_by), (("kernel", lambda r: r.kernel), ("line", lambda r: _lines(r)),
                                                      ("module", lambda r: r.module))),
                ("lines", self.by_line(), (("line", lambda r: r.line),)),
                ("modules", self.by_module(), (("module", lambda r: _indented(r.module)),))):
            if title == "modules" and len(rows) < 2:
                continue
            parts.append(_table(title, rows, texts, self.seconds, row_limit, width))
        parts += ["\n".join(notes)] if (notes := unlike_siblings(self.by_module(), self.seconds)) else []
        parts.append(textwrap.fill(f"{time_text(self.seconds)} in kernels of {time_text(self.wall)} in calls of "
                                   f"compiled code ({100 * self.coverage:.1f}%)", width))
        return "\n\n".join(parts)

    __str__ = table

    def _repr_html_(self) -> str:
        tables = []
        for title, rows in {"kernels": self.sorted_by("total"), "lines": self.by_line(),
                            "modules": self.by_module()}.items():
            cells = [(f"{100 * r.seconds / (self.seconds or 1):.1f}%", time_text(r.seconds), str(r.calls),
                      time_text(r.mean), f"{r.gflops:.1f}", f"{r.gbytes:.1f}", r.kernel, _lines(r), r.module)
                     for r in rows[:ROWS_OF_NOTEBOOK]]
            head = ("share", "total", "calls", "mean", "GF/s", "GB/s", "kernel", "line", "module")
            shown_columns = [i for i in range(len(head)) if any(row[i] for row in cells)]
            more = f", the first {ROWS_OF_NOTEBOOK}" if len(rows) > ROWS_OF_NOTEBOOK else ""
            tables.append(html.table([head[i] for i in shown_columns],
                                     [[row[i] for i in shown_columns] for row in cells], f"{len(rows)} {title}{more}"))
        return "".join(tables)

    def to_json(self) -> dict[str, Any]:
        """Describe the kernels, lines and modules as JSON data.

        Returns:
            Dict of "kernels", "lines", "modules", "seconds", "wall_seconds" and "coverage".
        """
        def described(row: KernelRow) -> dict[str, Any]:
            return {**asdict(row), "mean": row.mean, "gflops": row.gflops, "gbytes": row.gbytes,
                    "roofline": row.roofline, "balance": row.balance}

        return {"kernels": [described(r) for r in self.rows], "lines": [described(r) for r in self.by_line()],
                "modules": [described(r) for r in self.by_module()], "seconds": self.seconds,
                "wall_seconds": self.wall, "coverage": self.coverage}


def kernels_of(calls: Iterable[TimedCall], seconds_per_cycle: float, limits: Limits | None = None) -> Kernels:
    """The kernels of the calls of a profile."""
    rows: dict[Any, KernelRow] = {}
    wall = 0.0
    for call in calls:
        times = call.times
        wall += (times.end - times.start) / 1e9
        for site, (count, cycles, flops, moved), (*work, workers) in zip(times.entry.sites, times.sums.tolist(),
                                                                         times.shares.tolist()):
            if not count:
                continue
            lines = site.lines if call.line is None else (call.line,)
            scope = lines[0].scope if lines else ""
            label, function = call.label(site), call.name if call.line is None else OPERATIONS
            key = function, label, lines
            if key not in rows:
                rows[key] = KernelRow(label, function, tuple(dict.fromkeys(map(shown, lines))), scope,
                                      site.threads, number=site.number)
            seconds, shared, busy, longest = (n * seconds_per_cycle for n in (cycles, *work))
            rows[key].add(KernelRow("", "", (), "", False, count, seconds, flops, moved, 0.0, shared, busy, longest,
                                    max(workers, 1)))
    found = list(rows.values())
    if limits is not None:
        for row in found:
            row.limit = row.least(limits)
    return Kernels(_grouped(found, lambda row: [(row.kernel, row.function, row.lines, numberless(row.module))]), wall,
                   found)


def shown(line: SourceLine) -> str:
    """A line as "file.py:12", relative to the current folder where it is inside it."""
    return f"{_relative(line.file, os.getcwd())}:{line.line}" if line.file else "<unknown>"


@lru_cache(maxsize=4096)                                   # events ask for it, call by call
def _relative(file: str, folder: str) -> str:
    path = os.path.relpath(file, folder) if os.path.isabs(file) and os.path.exists(file) else file
    return file if path.startswith("..") else path


def _grouped(rows: Iterable[KernelRow], keys: Callable[[KernelRow], Iterable[tuple[str, str, tuple[str, ...], str]]]
             ) -> list[KernelRow]:
    """Rows summed by each of their keys, the longest first."""
    found: dict[Any, KernelRow] = {}
    for row in rows:
        for key in keys(row):
            found.setdefault(key, KernelRow(*key, threads=row.threads)).add(row)
    return sorted(found.values(), key=lambda row: -row.seconds)


def _around(module: str) -> list[str]:
    """The paths of a module and of those around it, the outermost first."""
    names = module.split(".") if module else ["(no module)"]
    return [".".join(names[:i + 1]) for i in range(len(names))]


def numberless(module: str) -> str:
    """The path with a * for each number, by which equal layers are one row."""
    return ".".join("*" if name.isdecimal() else name for name in module.split("."))


def unlike_siblings(rows: Iterable[KernelRow], total: float) -> list[str]:
    """The remarks on modules of a list that take far longer than those beside them."""
    lists: dict[str, list[KernelRow]] = {}
    for row in rows:
        around, _, name = row.module.rpartition(".")
        if name.isdecimal():
            lists.setdefault(around, []).append(row)
    said = []
    for around, beside in lists.items():
        usual = median(row.seconds for row in beside)
        said += [f"{row.module} takes {100 * row.seconds / total:.1f}% of the time, {row.seconds / usual:.1f} times as "
                 f"long as is usual of the {len(beside)} modules of {around}" for row in beside
                 if len(beside) >= LIKE and row.seconds > max(UNLIKE * usual, total / 5)]
    return said


def _indented(module: str) -> str:
    names = module.split(".")
    return "  " * (len(names) - 1) + names[-1]


def _lines(row: KernelRow) -> str:
    more = len(row.lines) - 1
    return row.line + (f" +{more}" if more > 0 else "")


Text = tuple[str, Callable[[KernelRow], str]]
LEGIBLE = 11
"""Characters of a name with which it is still known."""
LEFT_OUT = ("GB/s", "mean", "even", "GF/s", "threads")
"""Columns that a narrow table does without, the first first: the others say most of where the time goes."""


def roof_text(share: float) -> str:
    """A share of a limit; what is above it lies in a cache nearer than that of the limit."""
    return f"{100 * share:.0f}%" if share < 1.005 else ">100%"


def _table(title: str, rows: Sequence[KernelRow], texts: Sequence[Text], total: float, limit: int, width: int) -> str:
    """A table that fits the width: without the columns of numbers that leave the texts no room, and without the middle
    of the texts that are too long still."""
    roof, threads = any(row.limit for row in rows), any(row.workers > 1 for row in rows)
    head = ["share", "total", "calls", "mean", "GF/s", "GB/s", *["roof"] * roof, *["threads", "even"] * threads]
    shown_rows = rows[:limit] if limit >= 0 else rows
    numbers = [[f"{100 * r.seconds / (total or 1):.1f}%", time_text(r.seconds), str(r.calls), time_text(r.mean),
                f"{r.gflops:.1f}" if r.flops else "-", f"{r.gbytes:.1f}" if r.bytes else "-",
                *[roof_text(r.roofline)] * roof, *[str(r.workers), f"{100 * r.balance:.0f}%" if r.balance else "-"]
                * threads] for r in shown_rows]
    cells = [[of(r) for _, of in texts] for r in shown_rows]
    wanted = [max([len(name), *(len(c[i]) for c in cells)]) for i, (name, _) in enumerate(texts)]
    columns = list(zip(head, *numbers))
    widths = [max(map(len, column)) for column in columns]
    for name in LEFT_OUT:
        if name not in head or sum(min(w, LEGIBLE) + 2 for w in wanted) <= width - sum(w + 2 for w in widths) + 2:
            continue
        at = [column[0] for column in columns].index(name)
        del columns[at], widths[at]
    head, *numbers = map(list, zip(*columns))
    left = max(width - sum(widths) - 2 * len(widths), 8 * len(texts))
    spaces = shared_out(left - 2 * (len(texts) - 1), wanted)
    lines = [f"{title} ({len(rows)}):"]
    for row, text in zip([head, *numbers], [[name for name, _ in texts], *cells]):
        lines.append("  ".join([*(f"{x:>{w}}" for x, w in zip(row, widths)),
                                *(f"{shortened(x, w):<{w}}" for x, w in zip(text, spaces))]).rstrip())
    if len(shown_rows) < len(rows):
        rest = sum(r.seconds for r in rows[len(shown_rows):])
        lines.append(f"... {len(rows) - len(shown_rows)} more" + (
            "" if title == "modules" else f", {100 * rest / (total or 1):.1f}%"))
    return "\n".join(lines)


def shared_out(width: int, wanted: Sequence[int]) -> list[int]:
    """Widths of columns: what they want where there is room, else the long ones share what the short ones leave."""
    out, rest, left = list(wanted), list(range(len(wanted))), width
    while rest:
        fair = left // len(rest)
        small = [i for i in rest if wanted[i] <= fair]
        if not small:
            for i in rest:
                out[i] = fair
            break
        for i in small:
            left -= wanted[i]
            rest.remove(i)
    return out


def shortened(text: str, width: int) -> str:
    """A text that fits a width: of a long one, the middle is left out."""
    if len(text) <= width:
        return text
    end = (width - 1) * 2 // 3
    return text[:width - 1 - end] + "…" + text[len(text) - end:]


def time_text(seconds: float) -> str:
    """A time with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if (number := seconds / scale) >= 0.9995:          # which is rounded to 1
            return f"{number:.3g} {unit}" if number < 999.5 else f"{number:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"

