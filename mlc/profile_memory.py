"""The memory of a profile: over time, and with the owner of every byte at the peak."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, zip_longest
from typing import Any

import numpy as np

from mlc.frontend.tensor import Tensor
from mlc.frontend.tree import leaves
from mlc.ir import html, sizes
from mlc.ir.kernel_sites import KernelSite
from mlc.ir.profiling import Memory
from mlc.ir.types import TensorType
from mlc.ir.weak_references import FinalizationQueue
from mlc.profile_kernels import CallSurroundings, TimedCall, numberless, shared_out, shortened, shown
from mlc.profile_results import byte_text

BYTES = 3
"""The column of the sums of a slot that has the bytes of a value."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Owner:
    """The owner of some bytes.

    Args:
        kind: "argument" or "result" of a compiled function, "value" in its arena, "unused" bytes of the arena, or
            "tensor" that an operation, or a function such as `mlc.zeros`, has made.
        name: Name of the argument, or the operation; of a parameter, the state of an optimizer or a gradient that a
            compiled function reaches, its path. The type of what has no name.
        bytes: The bytes.
        line: The line that computes or makes it, as "file.py:12".
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
        widths = [*widths[:3], *shared_out(max(width - sum(widths[:3]) - 2 * 5, 3 * 8), widths[3:])]
        lines = [f"memory at the peak, in {self.where}: {byte_text(self.bytes)}"]
        for row in table:
            lines.append("  ".join(f"{x:>{w}}" if i < 2 else f"{shortened(x, w):<{w}}"
                                   for i, (x, w) in enumerate(zip(row, widths))).rstrip())
        if len(rows) < len(every):
            rest = sum(o.bytes for o, _ in every[len(rows):])
            lines.append(f"... {len(every) - len(rows)} more, {byte_text(rest)}")
        return "\n".join(lines)

    __str__ = table

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
        self._queue: FinalizationQueue[tuple[int, int]] = FinalizationQueue()     # a number, and the id of a holder
        self._known: dict[int, int] = {}                               # numbers by the ids of arrays that are alive
        self._changes: list[tuple[int, Owner | None]] = []             # the number of a result; its owner if it is new
        self._numbers = count()
        self._alive: dict[int, Owner] = {}                             # by number
        self._holders: dict[int, set[int]] = {}                        # ids of the objects that still keep a result
        self._tensors: dict[int, int] = {}                             # numbers by the ids of tensors that are alive
        self._highest = 0                                              # changes until the peak

    def add(self, found: Iterable[tuple[Tensor, Array, int]], owner: Owner, now: int) -> int:
        """Count new results until they are freed; the sum of their bytes.

        found  the tensors, their arrays, until the last of both is freed, and the bytes; those of arrays that are
               known already have been counted
        now    the moment
        """
        total = 0
        for tensor, array, size in found:
            number = self._known.get(id(array))
            if number is None:
                number = self._known[id(array)] = next(self._numbers)
                self._queue.register(array, (number, id(array)))
                self._alive[number], self._holders[number] = replace(owner, bytes=size), {id(array)}
                self._changes.append((number, self._alive[number]))
                self.bytes += size
                total += size
            before = self._tensors.get(id(tensor))
            if before != number:                           # or it has taken over other memory
                self._tensors[id(tensor)] = number
                self._holders[number].add(id(tensor))
                self._queue.register(tensor, (number, id(tensor)))
                if before is not None:
                    self._release(before, id(tensor))
        if total:
            if self.bytes > self.most:
                self.most, self.after, self._highest = self.bytes, owner.name, len(self._changes)
            self.timeline.append((now, self.bytes))
        return total

    def drop_freed(self, now: int) -> None:
        """Take the results that have been freed since the last event out of the count."""
        before = self.bytes
        for number, holder in self._queue.drain():
            for numbers in (self._known, self._tensors):
                if numbers.get(holder) == number:
                    del numbers[holder]
            self._release(number, holder)
        if self.bytes != before:
            self.timeline.append((now, self.bytes))

    def _release(self, number: int, holder: int) -> None:
        """Take note that an object no longer keeps a result."""
        holders = self._holders.get(number)
        if holders is None or holder not in holders:
            return
        holders.remove(holder)
        if not holders:
            del self._holders[number]
            self.bytes -= self._alive.pop(number).bytes
            self._changes.append((number, None))

    def owners(self) -> list[Owner]:
        """The owners of the bytes at the peak."""
        return list(self._after(self._highest).values())

    def _after(self, changes: int) -> dict[int, Owner]:
        """The owners of what was alive after so many changes, by number."""
        alive: dict[int, Owner] = {}
        for number, owner in self._changes[:changes]:
            if owner is None:
                del alive[number]
            else:
                alive[number] = owner
        return alive

    def around(self, operands: Sequence[Any], memory: Memory) -> CallSurroundings:
        """The memory around a call of a compiled function, before its results are counted."""
        numbers = [self._number(x) for x in operands]
        within = (*operands, *memory.reached, *(tensor._array for _, tensor in memory.changed))
        taken = {n for n in map(self._number, within) if n is not None}
        lines = ["" if n is None else self._alive[n].line for n in numbers]
        return CallSurroundings(lines, memory.result_names, self.bytes - sum(self._alive[n].bytes for n in taken),
                                len(self._changes), frozenset(taken))

    def others(self, around: CallSurroundings) -> list[Owner]:
        """The owners of the bytes that had nothing to do with a call."""
        return [owner for number, owner in self._after(around.changes).items() if number not in around.taken]

    def _number(self, array: Any) -> int | None:
        """The number of the memory of an array, if it is known."""
        return self._known.get(id(root(array)))


def root(array: Any) -> Any:
    """The array that has the memory of a view."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def made(result: Any, operands: Sequence[Any]) -> Iterator[tuple[Tensor, Array, int]]:
    """The tensors of a result that are not in memory of operands, with their arrays and bytes: an array may outlive its
    tensor, as those do that a derivative needs, and a tensor its array, which a copy may replace."""
    given = [x for x in operands if isinstance(x, np.ndarray)]
    for x in leaves(result):
        array = x._array if type(x) is Tensor else None
        if isinstance(array, np.ndarray) and array.nbytes and not any(np.may_share_memory(array, y) for y in given):
            yield x, root(array), array.nbytes


class CallMemory:
    """The memory of one call of a compiled function.

    outside  the owners of its arguments and results, and of nothing else that lives beside it
    arena    bytes of its arena
    alive    bytes of the arena that are in use, by event
    """

    def __init__(self, call: TimedCall) -> None:
        times = call.times
        interface, numbers = times.entry.interface, times.numbers

        def size(dim: Any) -> int:
            return sizes.evaluate(dim, numbers)

        def owner(kind: str, name: str | None, type: TensorType, line: str | None = "") -> Owner:
            return Owner(kind, name or str(type).removeprefix("tensor"), size(type.size * type.dtype.itemsize),
                         line or "")

        self.call = call
        lines, names = ((), {}) if call.memory is None else (call.memory.lines, call.memory.result_names)
        inputs = zip_longest(interface.inputs, interface.arg_names, lines)
        self.outside = [
            *(owner("argument", name, type, line) for type, name, line in inputs if type is not None),
            *(owner("result", names.get(i), type)
              for i, (type, alias) in enumerate(zip(interface.results, interface.aliases)) if alias < 0)]
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


def peak_of(calls: Iterable[TimedCall], results: Results) -> Peak:
    """The highest of the peaks of the calls of compiled functions, with all tensors that live beside each, and of the
    tensors after an operation. Of calls with equal sizes, the one with the most beside it is looked at."""
    def others(call: TimedCall) -> int:
        return call.memory.others if call.memory is not None else 0

    fullest: dict[Any, TimedCall] = {}
    for call in calls:
        if call.line is None and len(call.times.events):
            key = call.name, call.times.entry, tuple(call.times.numbers.items())
            fullest[key] = max(call, fullest.get(key, call), key=others)
    found = [(peak.bytes + others(call), peak, call.memory)
             for call in fullest.values() for peak in [CallMemory(call).peak()]]
    bytes, peak, around = max(found, key=lambda row: row[0], default=(0, Peak("", ()), None))
    if bytes <= results.most:
        peak = Peak(results.after, tuple(results.owners()))
    elif around is not None:
        peak = replace(peak, owners=(*peak.owners, *results.others(around)))
    return replace(peak, owners=tuple(sorted(peak.owners, key=lambda o: -o.bytes)))
