"""Where each tensor of a function lies: in a buffer that the caller gave, or in a slot of the arena.

An operation writes into the buffer that waits for its result, over an operand that dies in it, or into a slot that is
free while the result lives. Two values whose lifetimes do not overlap may share bytes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
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
    """A piece of the arena: the bytes of the largest value in it, and the last step that uses what lies there now."""

    needed: Dim
    free_after: int

    @property
    def bytes(self) -> Dim:
        return (self.needed + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


@dataclass(eq=False)
class Given:
    """A buffer among the function's arguments."""

    buffer: Value


@dataclass(frozen=True)
class Wish:
    """The buffer that waits for a value: that of `holder`, if nobody needs `over` any more, which lies there now."""

    place: Slot | Given
    holder: Value | None = None
    over: Value | None = None


class Plan:
    """The places of one function's values.

    given   the buffers of arguments and of those results that are in no argument's
    arenas  bytes that each call needs for itself
    bounds  the upper bounds of data-dependent sizes
    """

    def __init__(self, life: Lifetimes, given: Mapping[Value, Value], arenas: Mapping[func.Call, Dim],
                 bounds: Bounds) -> None:
        self.life = life
        self.bounds = bounds
        places = {buffer: Given(buffer) for buffer in given.values()}
        self.given = {v: places[buffer] for v, buffer in given.items()}
        self.place_of: dict[Value, Slot | Given] = {}
        self.wishes: dict[Value, Wish] = {}
        self.same: dict[Value, Value] = {}              # values that lie in the buffer of another
        self.slots: list[Slot] = []
        self.busy: list[tuple[int, int]] = []           # heap of (a step at which it is in use, number of a slot)
        self.free: list[tuple[int, int]] = []           # (bytes, number) of the others, in order
        self.free_unknown: list[int] = []               # numbers of those whose bytes are no number
        self.in_slot: dict[Value, Slot] = {}
        self.arena_of: dict[func.Call, Slot] = {}
        self.temporaries: Dim = 0
        for v, place in self.given.items():
            if v.op is None:
                self.place_of[v] = place
            else:
                self.wishes[v] = Wish(place)
        for op in life.order:
            if isinstance(op, GIVES_TENSORS):
                self.results(op)
            if isinstance(op, func.Call) and arenas[op] != 0:
                self.arena_of[op] = self.free_slot(op, arenas[op])
                self.arena_of[op].free_after = life.start[op]
            if isinstance(op, scf.For):
                self.enter_for(op)
            elif isinstance(op, scf.If):
                self.enter_if(op)
            elif isinstance(op, scf.While):
                self.enter_while(op)

    def results(self, op: Op) -> None:
        """A place for every tensor that an operation gives."""
        used: set[Slot | Given] = set()
        for v in op.results:
            if isinstance(v.type, TensorType):
                place = self.wished(op, v, used) or self.over_operand(op, v, used) or self.fresh(op, v)
                start = carried(op, v.index)
                if start is not None and self.place_of.get(start) is place:
                    self.same[v] = start
                self.take(v, place, max(self.life.last.get(v, -1), self.life.end[op]))
                used.add(place)

    def take(self, v: Value, place: Slot | Given, until: int) -> None:
        self.place_of[v] = place
        if isinstance(place, Slot):
            place.free_after = max(place.free_after, until)
            if v not in self.same:
                self.in_slot[v] = place

    def wished(self, op: Op, v: Value, used: set[Slot | Given]) -> Slot | Given | None:
        """The buffer that waits for a value, if it can be written now."""
        wish = self.wishes.get(v)
        if wish is None or wish.place in used or (
                wish.over is not None and not self.life.fits_in_place(op, v, wish.over)):
            return None
        if wish.holder is not None:
            self.same[v] = wish.holder
        return wish.place

    def over_operand(self, op: Op, v: Value, used: set[Slot | Given]) -> Slot | None:
        """The slot of an operand that dies here and that the result may be written over."""
        step = self.life.start[op]
        return next((s for x in self.operands(op) if isinstance(s := self.place_of.get(x), Slot) and s not in used
                     and s.free_after == step and self.life.fits_in_place(op, v, x)), None)

    def operands(self, op: Op) -> Sequence[Value]:
        return op.ins if isinstance(op, Kernel) else op.operands

    def fresh(self, op: Op, v: Value) -> Slot:
        bytes = most(v.type.size * v.type.dtype.itemsize, self.bounds)
        if bytes is None:
            op.fail(f"nobody can tell before it runs how large {v.type} is at most", code="MLC0161")
            raise AssertionError
        self.temporaries = self.temporaries + bytes
        return self.free_slot(op, bytes)

    def free_slot(self, op: Op, size: Dim) -> Slot:
        """A slot that nothing uses when `op` starts: the smallest that is large enough, the largest, or a new one."""
        step = self.life.start[op]
        self.release(step)
        i = self.best(size) if (self.free or self.free_unknown) and allowed("use again", op) else None
        if i is None:
            i = len(self.slots)
            self.slots.append(Slot(size, step))
        heappush(self.busy, (step, i))
        return self.slots[i]

    def release(self, step: int) -> None:
        """Note what nothing uses at `step` any more; steps only grow."""
        while self.busy and self.busy[0][0] < step:
            _, i = heappop(self.busy)
            slot = self.slots[i]
            if slot.free_after >= step:                     # it was in use for longer than was known then
                heappush(self.busy, (slot.free_after, i))
            elif isinstance(slot.needed, int):
                insort(self.free, (slot.needed, i))
            else:
                insort(self.free_unknown, i)

    def best(self, size: Dim) -> int | None:
        """The number of the free slot to take for `size`, which is free no more."""
        if not isinstance(size, int):
            return self.best_symbolic(size)
        if not self.free:
            return None
        at = bisect_left(self.free, (size, 0))
        bytes, i = self.free.pop(min(at, len(self.free) - 1))
        self.slots[i].needed = max(bytes, size)
        return i

    def best_symbolic(self, size: Dim) -> int | None:
        """The smallest free slot that is larger whatever the symbols are, or the largest of those that are smaller."""
        larger = [i for i in self.free_unknown if is_natural(self.slots[i].needed - size)]
        smaller = [i for i in self.free_unknown if is_natural(size - self.slots[i].needed)]
        if not larger and not smaller:
            return None
        found = min(larger, key=self.about) if larger else max(smaller, key=self.about)
        self.free_unknown.remove(found)
        if not larger:
            self.slots[found].needed = size
        return found

    def about(self, slot: int) -> int:
        """The size of a slot where every symbol is 64, to compare by."""
        needed = self.slots[slot].needed
        return evaluate(needed, dict.fromkeys(symbols(needed), 64))

    # -- regions --------------------------------------------------------------------------------------------------
    def enter_for(self, op: scf.For) -> None:
        """Place carried values in the results' buffers; the body writes there if the old value is not read again."""
        for result, arg, yielded in zip(op.results, op.carried, op.block.terminator.operands):
            if isinstance(result.type, TensorType):
                self.hold(arg, result)
                self.wish(yielded, result, arg)

    def enter_if(self, op: scf.If) -> None:
        for region in op.regions:
            for result, yielded in zip(op.results, region.block.terminator.operands if region.blocks else ()):
                if isinstance(result.type, TensorType):
                    self.wish(yielded, result, None)

    def enter_while(self, op: scf.While) -> None:
        """A forwarded value has one buffer; any other argument and result has its own during the loop."""
        before, after = op.before.block, op.after.block
        again = after.terminator.operands
        for j, (result, arg, value) in enumerate(zip(op.results, after.args, before.terminator.operands[1:])):
            if not isinstance(result.type, TensorType):
                continue
            self.hold(arg, result)
            if (i := forwarded(op, j)) is not None:
                self.hold(before.args[i], result)
                self.wish(again[i], result, arg)
            else:
                self.wish(value, result, None)
        for arg, yielded in zip(before.args, again):
            if isinstance(arg.type, TensorType) and arg not in self.place_of:
                self.take(arg, self.fresh(op, arg), self.life.end[op])
                self.wish(yielded, arg, None)

    def hold(self, v: Value, holder: Value) -> None:
        """Let `v` lie in the buffer of `holder`."""
        self.same[v] = holder
        self.place_of[v] = self.place_of[holder]

    def wish(self, v: Value, holder: Value, over: Value | None) -> None:
        self.wishes[v] = Wish(self.place_of[holder], holder, over)
