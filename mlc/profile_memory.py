"""The memory of a profile: over time, and with the owner of every byte at the peak."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, zip_longest
from typing import Any

import numpy as np

from mlc.ir import html, sizes
from mlc.ir.kernel_sites import KernelSite
from mlc.ir.weak_references import FinalizationQueue
from mlc.profile_kernels import TimedCall, numberless, shortened, shown
from mlc.profile_results import byte_text

BYTES = 3
"""The column of the sums of a slot that has the bytes of a value."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Owner:
    """The owner of some bytes.

    Args:
        kind: "argument" or "result" of a compiled function, "value" in its arena, "unused" bytes of the arena, or
            "tensor" that an operation has made.
        name: Name of the argument, or the operation; the type of what has no name.
        bytes: The bytes.
        line: The line that computes it, as "file.py:12".
        module: Path of the module whose `forward` that is in.
    """

    kind: str
    name: str
    bytes: int
    line: str = ""
    module: str = ""


@dataclass(frozen=True)
class Peak:
    """The moment at which the most memory was in use.

    Args:
        where: The compiled function whose call it was, or the operation.
        owners: The owners of all bytes, the largest first.
    """

    where: str
    owners: tuple[Owner, ...]

    @property
    def bytes(self) -> int:
        """All bytes."""
        return sum(owner.bytes for owner in self.owners)

    def _repr_html_(self) -> str:
        return html.plain(self.table(width=140))

    def table(self, row_limit: int = 20, width: int | None = None) -> str:
        """Format the owners as a table.

        Args:
            row_limit: Number of rows; -1 for all.
            width: Number of characters of a row; by default those of the terminal.

        Returns:
            The text.
        """
        width = width or shutil.get_terminal_size((120, 24)).columns
        every = self.grouped()
        rows = every[:row_limit] if row_limit >= 0 else every
        cells = [[f"{100 * o.bytes / (self.bytes or 1):.1f}%", byte_text(o.bytes), o.kind,
                  o.name if count == 1 else f"{count} of {o.name}", o.line, o.module] for o, count in rows]
        table = [["share", "bytes", "kind", "owner", "line", "module"], *cells]
        widths = [max(map(len, column)) for column in zip(*table)]
        most = max((width - sum(widths[:3]) - 2 * 5) // 3, 12)
        widths = [*widths[:3], *(min(w, most) for w in widths[3:])]
        lines = [f"memory at the peak, in {self.where}: {byte_text(self.bytes)}"]
        for row in table:
            lines.append("  ".join(f"{x:>{w}}" if i < 2 else f"{shortened(x, w):<{w}}"
                                   for i, (x, w) in enumerate(zip(row, widths))).rstrip())
        if len(rows) < len(every):
            rest = sum(o.bytes for o, _ in every[len(rows):])
            lines.append(f"... {len(every) - len(rows)} more, {byte_text(rest)}")
        return "\n".join(lines)

    def grouped(self) -> list[tuple[Owner, int]]:
        """Sum the owners of one kind and name that are of one line, in equal layers.

        Returns:
            List of an owner with all their bytes, and their number; the largest first.
        """
        found: dict[Any, tuple[Owner, int]] = {}
        for o in self.owners:
            key = o.kind, o.name, o.line, numberless(o.module)
            before, count = found.get(key, (replace(o, bytes=0), 0))
            found[key] = replace(before, bytes=before.bytes + o.bytes,
                                 module=numberless(o.module) if count else o.module), count + 1
        return sorted(found.values(), key=lambda row: -row[0].bytes)

    def to_json(self) -> dict[str, Any]:
        """Describe the peak as JSON data.

        Returns:
            Dict of "where", "bytes" and "owners".
        """
        return {"where": self.where, "bytes": self.bytes, "owners": [asdict(owner) for owner in self.owners]}


class Results:
    """The results of operations and functions over time, in a time proportional to their number.

    bytes     bytes of those that are alive
    most      the most there were
    after     the operation or function after which that was
    timeline  moments, and the bytes from then on
    """

    def __init__(self) -> None:
        self.bytes = self.most = 0
        self.after = ""
        self.timeline: list[tuple[int, int]] = []
        self._queue: FinalizationQueue[int] = FinalizationQueue()
        self._changes: list[tuple[int, Owner | None]] = []             # the number of a result; its owner if it is new
        self._numbers = count()
        self._alive: dict[int, int] = {}                               # bytes by number
        self._holders: dict[int, int] = {}                             # the objects that still keep a result
        self._highest = 0                                              # changes until the peak

    def add(self, found: Iterable[tuple[Sequence[Any], int]], owner: Owner, now: int) -> int:
        """Count new results until they are freed; the sum of their bytes.

        found  the objects that keep each result, until the last of which is freed, and its bytes
        now    the moment
        """
        total = 0
        for holders, size in found:
            number = next(self._numbers)
            for x in holders:
                self._queue.register(x, number)
            self._alive[number], self._holders[number] = size, len(holders)
            self._changes.append((number, replace(owner, bytes=size)))
            total += size
        if total:
            self.bytes += total
            if self.bytes > self.most:
                self.most, self.after, self._highest = self.bytes, owner.name, len(self._changes)
            self.timeline.append((now, self.bytes))
        return total

    def drop_freed(self, now: int) -> None:
        """Take the results that have been freed since the last event out of the count."""
        before = self.bytes
        for number in self._queue.drain():
            self._holders[number] -= 1
            if self._holders[number]:
                continue
            del self._holders[number]
            self.bytes -= self._alive.pop(number)
            self._changes.append((number, None))
        if self.bytes != before:
            self.timeline.append((now, self.bytes))

    def owners(self) -> list[Owner]:
        """The owners of the bytes at the peak."""
        alive: dict[int, Owner] = {}
        for number, owner in self._changes[:self._highest]:
            if owner is None:
                del alive[number]
            else:
                alive[number] = owner
        return list(alive.values())


class CallMemory:
    """The memory of one call of a compiled function.

    outside  the owners of its arguments and results
    arena    bytes of its arena
    alive    bytes of the arena that are in use, by event
    """

    def __init__(self, call: TimedCall) -> None:
        times = call.times
        interface, numbers = times.entry.interface, times.numbers

        def size(dim: Any) -> int:
            return sizes.evaluate(dim, numbers)

        self.call = call
        self.outside = [
            *(Owner("argument", name or str(t).removeprefix("tensor"), size(t.size * t.dtype.itemsize))
              for t, name in zip_longest(interface.inputs, interface.arg_names[:len(interface.inputs)])),
            *(Owner("result", str(t).removeprefix("tensor"), size(t.size * t.dtype.itemsize))
              for t, alias in zip(interface.results, interface.aliases) if alias < 0)]
        self.arena = size(interface.arena)
        slots = times.events[:, 0]
        self._values: list[tuple[KernelSite, int, Array]] = []
        self.alive = np.zeros(len(slots), np.int64)
        for slot, site in enumerate(times.entry.sites):
            held = int(times.sums[slot, BYTES])
            if site.live and held:
                within = (slots >= site.live[0]) & (slots <= site.live[1])
                self._values.append((site, held, within))
                self.alive += held * within

    def peak(self) -> Peak:
        """The moment at which the most of the arena is in use, with the owners of all bytes."""
        at = int(self.alive.argmax()) if len(self.alive) else -1
        owners = list(self.outside)
        for site, held, within in self._values:
            if within[at]:
                line = site.lines[0]
                owners.append(Owner("value", site.label, held, shown(line), line.scope))
        unused = self.arena - (int(self.alive[at]) if len(self.alive) else 0)
        if unused > 0:
            owners.append(Owner("unused", "arena", unused))
        return Peak(self.call.name, tuple(sorted((o for o in owners if o.bytes), key=lambda o: -o.bytes)))

    def counters(self) -> list[tuple[int, dict[str, int]]]:
        """The bytes of each kind, at the events at which they change: the number of the event, and the bytes."""
        steady = {kind + "s": sum(o.bytes for o in self.outside if o.kind == kind) for kind in ("argument", "result")}
        changes = np.flatnonzero(np.diff(self.alive, prepend=-1))
        return [(i, {**steady, "values": int(self.alive[i]), "arena, unused": max(self.arena - int(self.alive[i]), 0)})
                for i in changes.tolist()]


def peak_of(calls: Iterable[TimedCall], tensors: Sequence[Owner], operation: str) -> Peak:
    """The highest of the peaks of the last call of each compiled function, and of the tensors of operations.

    tensors    the owners when most bytes were alive
    operation  the operation after which that was
    """
    last = {(call.name, call.times.entry): call for call in calls if call.line is None and len(call.times.events)}
    found = [CallMemory(call).peak() for call in last.values()]
    found.append(Peak(operation, tuple(sorted(tensors, key=lambda o: -o.bytes))))
    return max(found, key=lambda peak: peak.bytes)
