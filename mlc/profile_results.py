"""The results of a profile: events, their sums by name, tables, and traces for Chrome and Perfetto."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.ir import html
from mlc.ir.diag import UserError


@dataclass
class Event:
    """A piece of work that was timed.

    Args:
        name: Name of the operation, the compiled function, or the label of a `record_function`.
        kind: "operation", "compiled function", "compilation", "kernel", "data" or "label".
        line: The line of the program that asked for it, as "file.py:12".
        thread: Number of the thread.
        start: Nanoseconds since the profile began.
        duration: Nanoseconds.
        shapes: Shapes of the operands, where `record_shapes` is set.
        memory: Bytes of the results that are no views, where `profile_memory` is set.
        children: Nanoseconds of the events within it.
        module: Path of the module whose `forward` it is in, or "".

    Example:
        >>> with mlc.profiler.profile() as p:
        ...     _ = mlc.ones(2) + 1
        >>> p.events()[-1].name
        'add'
    """

    name: str
    kind: str
    line: str
    thread: int
    start: int
    duration: int
    shapes: tuple[tuple[int, ...], ...] = ()
    memory: int = 0
    children: int = 0
    module: str = ""

    @property
    def end(self) -> int:
        """Nanoseconds since the profile began, at its end."""
        return self.start + self.duration


def nested(events: Iterable[Event]) -> list[Event]:
    """The events by their beginnings, with the time of those within each."""
    ordered = sorted(events, key=lambda e: (e.start, -e.duration))
    stacks: dict[int, list[Event]] = defaultdict(list)
    for event in ordered:
        stack = stacks[event.thread]
        while stack and stack[-1].end <= event.start:
            stack.pop()
        if stack:
            stack[-1].children += event.duration
        stack.append(event)
    return ordered


@dataclass
class Average:
    """The sums of the events of one key; times are in microseconds, as PyTorch's.

    Args:
        key: Name of the events.
        kind: Their kind.
        line: Their line, where they are grouped by it.
        input_shapes: Shapes of their operands, where they are grouped by them.
        count: Their number.
        cpu_time_total: The sum of their times.
        self_cpu_time_total: The same, without the events within them.
        cpu_memory_usage: The sum of the bytes of their results.
    """

    key: str
    kind: str
    line: str
    input_shapes: tuple[tuple[int, ...], ...]
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0

    @property
    def cpu_time(self) -> float:
        """The mean time in microseconds."""
        return self.cpu_time_total / self.count


SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage")


@dataclass
class Averages:
    """The sums of the events of a profile, which are iterated over in the order of their times.

    Args:
        rows: One for each key.
        by_line: Whether events are grouped by their lines.
        by_shape: Whether events are grouped by the shapes of their operands.
        with_memory: Whether the bytes of results were counted.
    """

    rows: list[Average] = field(default_factory=list)
    by_line: bool = False
    by_shape: bool = False
    with_memory: bool = False

    def __iter__(self) -> Iterator[Average]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Average:
        return self.rows[i]

    def total_average(self) -> Average:
        """Sum all rows.

        Returns:
            An `Average` named "Total", whose total is the time of the events that are in no other.
        """
        total = Average("Total", "", "", ())
        for row in self.rows:
            total.count += row.count
            total.self_cpu_time_total += row.self_cpu_time_total
            total.cpu_memory_usage += row.cpu_memory_usage
        total.cpu_time_total = total.self_cpu_time_total
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 55,
              **options: Any) -> str:
        """Format the rows as a table.

        Args:
            sort_by: "cpu_time", "cpu_time_total", "self_cpu_time_total", "count" or "cpu_memory_usage".
            row_limit: Number of rows; -1 for all.
            max_name_column_width: Number of characters of a name.
            options: Whatever else PyTorch takes, which changes nothing.

        Returns:
            The text.

        Raises:
            UserError: There is no such column (MLC0796).
        """
        if sort_by is not None and sort_by not in SORTS:
            raise UserError(f"sort_by = {sort_by!r}, and there are {', '.join(SORTS)}", code="MLC0796", loc=user_loc(),
                            hint="the times are those of the CPU that calls")
        rows = self.rows if sort_by is None else sorted(self.rows, key=lambda r: -getattr(r, sort_by))
        total = self.total_average().self_cpu_time_total
        head = ["Name", "Kind", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        head += ["CPU Mem"] * self.with_memory + ["Input Shapes"] * self.by_shape + ["Source Location"] * self.by_line
        table = [head]
        for r in rows[:row_limit if row_limit >= 0 else None]:
            table.append([
                _short(r.key, max_name_column_width), r.kind, f"{100 * r.self_cpu_time_total / (total or 1):.2f}%",
                _time(r.self_cpu_time_total), f"{100 * r.cpu_time_total / (total or 1):.2f}%", _time(r.cpu_time_total),
                _time(r.cpu_time), str(r.count), *[byte_text(r.cpu_memory_usage)] * self.with_memory,
                *[str([list(s) for s in r.input_shapes])] * self.by_shape, *[r.line] * self.by_line])
        widths = [max(len(line[i]) for line in table) for i in range(len(head))]
        texts = {0, 1, *[len(head) - 1] * self.by_line}
        lines = ["  ".join(f"{x:<{w}}" if i in texts else f"{x:>{w}}" for i, (x, w) in enumerate(zip(line, widths)))
                 for line in table]
        rule = "  ".join("-" * w for w in widths)
        return "\n".join([rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule,
                          f"Self CPU time total: {_time(total)}"])

    __str__ = table

    def _repr_html_(self) -> str:
        return html.plain(self.table())


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 3] + "..."


def _time(us: float) -> str:
    return f"{us:.3f}us" if us < 1e3 else f"{us / 1e3:.3f}ms" if us < 1e6 else f"{us / 1e6:.3f}s"


def byte_text(count: float) -> str:
    """A number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"


def averages(events: Sequence[Event], by_line: bool, by_shape: bool, with_memory: bool) -> Averages:
    """The sums of events by name and kind, and where asked by line and shapes of operands."""
    rows: dict[Any, Average] = {}
    for e in events:
        line, shapes = e.line if by_line else "", e.shapes if by_shape else ()
        row = rows.setdefault((e.name, e.kind, line, shapes), Average(e.name, e.kind, line, shapes))
        row.count += 1
        row.cpu_time_total += e.duration / 1e3
        row.self_cpu_time_total += (e.duration - e.children) / 1e3
        row.cpu_memory_usage += e.memory
    found = sorted(rows.values(), key=lambda r: -r.self_cpu_time_total)
    return Averages(found, by_line, by_shape, with_memory)


def chrome_trace(events: Sequence[Event], live: Sequence[tuple[int, int]],
                 counters: Iterable[tuple[str, int, dict[str, int]]] = ()) -> dict[str, Any]:
    """The trace that chrome://tracing and ui.perfetto.dev show, with a track for each thread.

    live      moments, and the bytes of results from then on
    counters  a name, a moment, and the bytes of each kind from then on
    """
    pid = os.getpid()
    rows: list[dict[str, Any]] = [
        {"ph": "X", "name": e.name, "cat": e.kind, "pid": pid, "tid": e.thread, "ts": e.start / 1e3,
         "dur": e.duration / 1e3, "args": {"line": e.line, **({"module": e.module} if e.module else {}),
                                           **({"Input Dims": e.shapes} if e.shapes else {}),
                                           **({"Bytes": e.memory} if e.memory else {})}} for e in events]
    rows += [{"ph": "C", "name": "bytes of results", "pid": pid, "tid": 0, "ts": at / 1e3, "args": {"bytes": count}}
             for at, count in live]
    rows += [{"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": at / 1e3, "args": kinds}
             for name, at, kinds in counters]
    rows.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "mlc"}})
    rows += [{"ph": "M", "name": "thread_name", "pid": pid, "tid": thread,
              "args": {"name": "main thread" if thread == pid else f"thread {thread}"}}
             for thread in dict.fromkeys(e.thread for e in events)]
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Write a file of JSON, compressed if its name ends with .gz; UserError if it cannot be written (MLC0393)."""
    data = json.dumps(content).encode()
    write_file(path, [gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data])
