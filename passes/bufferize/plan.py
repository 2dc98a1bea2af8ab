"""Buffer assignment: the storage of each tensor of a function is an argument buffer or a slot of the arena.

The storage of a result is, in order of preference, the buffer of its hint, that of an operand that dies at the
operation, or a free slot. Values whose lifetimes do not overlap may share a slot.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from mlc.dialects import func, scf
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.bounds import Bounds, most
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim, evaluate, is_natural, symbols
from mlc.ir.types import TensorType
from mlc.passes.analysis.kernel_boundary import GIVES_TENSORS
from mlc.passes.bufferize.lifetimes import Lifetimes, carried, forwarded

ALIGNMENT = 64
"""Bytes between possible offsets in the arena: a cache line, and the widest vector."""


@dataclass(eq=False)
class Slot:
    """Slot of the arena: the bytes of its largest value, and the last step that uses its current value."""

    needed: Dim
    free_after: int

    @property
    def bytes(self) -> Dim:
        return (self.needed + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


@dataclass(eq=False)
class ArgumentBuffer:
    """A buffer that is an argument of the function."""

    buffer: Value


Storage = Slot | ArgumentBuffer


@dataclass(frozen=True)
class BufferHint:
    """Preferred storage of a value: that of `alias_of`, available if `over`, its current value, is there and dead."""

    storage: Storage
    alias_of: Value | None = None
    over: Value | None = None


def updated(op: Op | None) -> Value | None:
    """The operand that a kernel may update in place, a piece of it or the elements that a scatter changes."""
    if not isinstance(op, Kernel) or (update := op.update_of_piece() or op.scatter()) is None:
        return None
    return next((x for x, arg in zip(op.ins, op.body.block.args) if arg is update.x), None)


def updates(v: Value) -> Iterator[Value]:
    """A value, and those that it comes of by updates in place, which may have its buffer before."""
    x: Value | None = v
    while x is not None:
        yield x
        x = None if x.op is None else updated(x.op)


class BufferPlan:
    """Buffer assignment of one function.

    argument_buffers  buffers of arguments, and of results that are not donated
    arenas            bytes of arena that each call needs
    bounds            upper bounds of data-dependent sizes
    """

    def __init__(self, life: Lifetimes, argument_buffers: Mapping[Value, Value], arenas: Mapping[func.Call, Dim],
                 bounds: Bounds) -> None:
        self.life = life
        self.bounds = bounds
        arguments = {buffer: ArgumentBuffer(buffer) for buffer in argument_buffers.values()}
        self.argument_buffers = {v: arguments[buffer] for v, buffer in argument_buffers.items()}
        self.storage_of: dict[Value, Storage] = {}
        self.hints: dict[Value, BufferHint] = {}
        self.alias_of: dict[Value, Value] = {}          # values that alias another one
        self.slots: list[Slot] = []
        self.busy: list[tuple[int, int]] = []           # heap of (a step at which it is in use, slot number)
        self.free: list[tuple[int, int]] = []           # (bytes, slot number), sorted
        self.free_symbolic: list[int] = []               # slot numbers of symbolic size
        self.in_slot: dict[Value, Slot] = {}
        self.arena_of: dict[func.Call, Slot] = {}
        self.temporaries: Dim = 0
        for v, storage in self.argument_buffers.items():
            if v.op is None:
                self.storage_of[v] = storage
            else:
                self.hints[v] = BufferHint(storage)
        for op in reversed(life.order):
            self.hint_updated(op)
        for op in life.order:
            if isinstance(op, GIVES_TENSORS):
                self.results(op)
            if isinstance(op, func.Call) and arenas[op] != 0:
                self.arena_of[op] = self.allocate_slot(op, arenas[op])
                self.arena_of[op].free_after = life.start[op]
            if isinstance(op, scf.For):
                self.enter_for(op)
            elif isinstance(op, scf.If):
                self.enter_if(op)
            elif isinstance(op, scf.While):
                self.enter_while(op)

    def hint_updated(self, op: Op) -> None:
        """Have a tensor that is updated be in the buffer that is meant for the result."""
        x = updated(op)
        hint = self.hints.get(op.results[0]) if x is not None else None
        if x is not None and x.op is not None and x not in self.hints and hint is not None and hint.over is None:
            self.hints[x] = BufferHint(hint.storage)
            self.hints[op.results[0]] = BufferHint(hint.storage, None, x)

    def results(self, op: Op) -> None:
        """Assign storage to the tensor results of an operation."""
        used: set[Storage] = set()
        for v in op.results:
            if isinstance(v.type, TensorType):
                storage = self.hinted(op, v, used) or self.reuse_operand(op, v, used) or self.allocate(op, v)
                start = carried(op, v.index)
                if start is not None and self.storage_of.get(start) is storage:
                    self.alias_of[v] = start
                self.assign(v, storage, max(self.life.last.get(v, -1), self.life.end[op]))
                used.add(storage)

    def assign(self, v: Value, storage: Storage, until: int) -> None:
        self.storage_of[v] = storage
        if isinstance(storage, Slot):
            storage.free_after = max(storage.free_after, until)
            if v not in self.alias_of:
                self.in_slot[v] = storage

    def hinted(self, op: Op, v: Value, used: set[Storage]) -> Storage | None:
        """Storage of the hint of a value, if it can be written now."""
        hint = self.hints.get(v)
        if hint is None or hint.storage in used:
            return None
        if hint.over is not None and (self.storage_of.get(hint.over) is not hint.storage
                                      or not self.life.fits_in_place(op, v, hint.over)):
            return None
        if hint.alias_of is not None:
            self.alias_of[v] = hint.alias_of
        return hint.storage

    def reuse_operand(self, op: Op, v: Value, used: set[Storage]) -> Slot | None:
        """Slot of an operand that dies here and that the result may overwrite."""
        step = self.life.start[op]
        return next((s for x in self.operands(op) if isinstance(s := self.storage_of.get(x), Slot) and s not in used
                     and s.free_after == step and self.life.fits_in_place(op, v, x)), None)

    def operands(self, op: Op) -> Sequence[Value]:
        return op.ins if isinstance(op, Kernel) else op.operands

    def allocate(self, op: Op, v: Value) -> Slot:
        bytes = most(v.type.size * v.type.dtype.itemsize, self.bounds)
        if bytes is None:
            op.fail(f"the data-dependent size of {v.type} has no upper bound", code="MLC0161")
            raise AssertionError
        self.temporaries = self.temporaries + bytes
        return self.allocate_slot(op, bytes)

    def allocate_slot(self, op: Op, size: Dim) -> Slot:
        """Slot that is free when `op` starts: the smallest that is large enough, the largest, or a new one."""
        step = self.life.start[op]
        self.expire(step)
        i = self.best(size) if (self.free or self.free_symbolic) and allowed("reuse", op) else None
        if i is None:
            i = len(self.slots)
            self.slots.append(Slot(size, step))
        heappush(self.busy, (step, i))
        return self.slots[i]

    def expire(self, step: int) -> None:
        """Free the slots that are unused at `step`; steps increase monotonically."""
        while self.busy and self.busy[0][0] < step:
            _, i = heappop(self.busy)
            slot = self.slots[i]
            if slot.free_after >= step:                     # extended since it was pushed
                heappush(self.busy, (slot.free_after, i))
            elif isinstance(slot.needed, int):
                insort(self.free, (slot.needed, i))
            else:
                insort(self.free_symbolic, i)

    def best(self, size: Dim) -> int | None:
        """Take the free slot of best fit for `size`; its number."""
        if not isinstance(size, int):
            return self.best_symbolic(size)
        if not self.free:
            return None
        at = bisect_left(self.free, (size, 0))
        bytes, i = self.free.pop(min(at, len(self.free) - 1))
        self.slots[i].needed = max(bytes, size)
        return i

    def best_symbolic(self, size: Dim) -> int | None:
        """The smallest slot that is provably larger, or the largest that is provably smaller; None if incomparable."""
        larger = [i for i in self.free_symbolic if is_natural(self.slots[i].needed - size)]
        smaller = [i for i in self.free_symbolic if is_natural(size - self.slots[i].needed)]
        if not larger and not smaller:
            return None
        found = min(larger, key=self.about) if larger else max(smaller, key=self.about)
        self.free_symbolic.remove(found)
        if not larger:
            self.slots[found].needed = size
        return found

    def about(self, slot: int) -> int:
        """Estimated size of a slot, with 64 for every symbol."""
        needed = self.slots[slot].needed
        return evaluate(needed, dict.fromkeys(symbols(needed), 64))

    # -- regions --------------------------------------------------------------------------------------------------
    def enter_for(self, op: scf.For) -> None:
        """Carried values are in the results' buffers; the body writes in place if the old value is dead."""
        for result, arg, yielded in zip(op.results, op.carried, op.block.terminator.operands):
            if isinstance(result.type, TensorType):
                self.alias(arg, result)
                self.hint(yielded, result, arg)

    def enter_if(self, op: scf.If) -> None:
        for region in op.regions:
            for result, yielded in zip(op.results, region.block.terminator.operands if region.blocks else ()):
                if isinstance(result.type, TensorType):
                    self.hint(yielded, result, None)

    def enter_while(self, op: scf.While) -> None:
        """Assign buffers in a loop: a forwarded value has one, any other argument or result has its own."""
        before, after = op.before.block, op.after.block
        next_values = after.terminator.operands
        for j, (result, arg, value) in enumerate(zip(op.results, after.args, before.terminator.operands[1:])):
            if not isinstance(result.type, TensorType):
                continue
            self.alias(arg, result)
            if (i := forwarded(op, j)) is not None:
                self.alias(before.args[i], result)
                self.hint(next_values[i], result, arg)
            else:
                self.hint(value, result, None)
        for arg, yielded in zip(before.args, next_values):
            if isinstance(arg.type, TensorType) and arg not in self.storage_of:
                self.assign(arg, self.allocate(op, arg), self.life.end[op])
                self.hint(yielded, arg, None)

    def alias(self, v: Value, target: Value) -> None:
        """Make `v` an alias of `target`."""
        self.alias_of[v] = target
        self.storage_of[v] = self.storage_of[target]

    def hint(self, v: Value, target: Value, over: Value | None) -> None:
        self.hints[v] = BufferHint(self.storage_of[target], target, over)
