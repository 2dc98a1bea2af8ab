"""What one thread does of a kernel."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlc.dialects import arith, gpu, loop, scf
from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel
from mlc.ir import sizes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import i1
from mlc.passes.bufferize import SizeBuilder
from mlc.passes.loop_to_scf import checks, compute  # noqa: F401  (they register the rules that hold here too)
from mlc.passes.loop_to_scf.nest import RULES, Lowering, Point, Scope

Rule = Callable[["Threads", Any], None]
THREAD_RULES: dict[type[Op], Rule] = {}
"""How an operation on tiles is lowered for threads, where that is another way than for a CPU."""


class Places(Scope):
    """Where code is being emitted, and which points stick out of the domain there."""

    def __init__(self, numbers: SizeBuilder, outer: Places | None = None) -> None:
        super().__init__(numbers, outer)
        self.ends: dict[int, Dim] = dict(outer.ends) if outer else {}        # of dimensions whose block may stick out
        self.within: dict[tuple[int, int], Value] = dict(outer.within) if outer else {}
        self.clamped: dict[tuple[int, int], Dim] = dict(outer.clamped) if outer else {}

    def inner(self) -> Places:
        numbers = SizeBuilder(dict(self.numbers.symbols))
        numbers.known = dict(self.numbers.known)
        return Places(numbers, self)


class Threads(Lowering):
    """One kernel on its way to threads: tiles are scalars, for a thread has no vectors but in memory."""

    rules: ClassVar[Mapping[type[Op], Callable[[Any, Any], None]]] = ChainMap[Any, Any](THREAD_RULES, RULES)
    scope: Places

    def __init__(self, function: gpu.Func, kernel: Kernel) -> None:
        super().__init__(function.enclosing(Module), kernel)
        self.function = function
        self.scope = Places(self.scope.numbers)
        self.scope.vector, self.scope.lanes = -1, 1
        inner = kernel.vector >= kernel.parallel
        self.across = kernel.vector if inner and kernel.lanes == 1 else -1      # its lanes are threads
        self.along = kernel.vector if inner and kernel.lanes != 1 else -1       # its lanes are registers of a thread
        self.wide = kernel.vector if 0 <= kernel.vector < kernel.parallel else -1     # lies side by side in memory
        self.counts = [sizes.divide(n + t - 1, t) for n, t in zip(kernel.domain, kernel.tile)][: kernel.parallel]
        self.total = sizes.product(self.counts)
        if self.along >= 0:
            self.scope.block[self.along] = kernel.tile[self.along]
        self.lane: Dim = 0
        self.taken = 0                                   # bytes of memory that a block shares

    @property
    def lanes_across(self) -> int:
        """How many threads share the work of one block of points."""
        return self.kernel.tile[self.across] if self.across >= 0 else 1

    @property
    def size(self) -> int:
        """How many threads a block has."""
        return self.kernel.block * self.lanes_across

    def run(self) -> None:
        kernel = self.kernel
        self.function.attrs["known_block_size"] = (self.size, 1, 1)
        if self.total == 0:
            return
        self.flatten_buffers()
        thread, block = (self.named(word, place(dimension="x").result) for word, place in (
            ("thread", gpu.ThreadId), ("block", gpu.BlockId)))
        if self.across >= 0:
            if kernel.block != 1:
                kernel.fail("lanes that are threads take one row per block", code="MLC0171")
            self.lane, unit = thread, block
        else:
            unit = block * kernel.block + thread
        if self.across >= 0 or sizes.modulo(self.total, kernel.block) == 0:
            self.unit(unit)
            return
        there = arith.CmpI("slt", self.number(unit), self.number(self.total)).result
        branch = scf.branch(there, otherwise=False)
        with at_end(branch.then_body.block), self.scoped():
            self.unit(unit)
            scf.Yield(())

    def unit(self, number: Dim) -> None:
        """The block of points of this number, counted in row-major order."""
        kernel = self.kernel
        for d in reversed(range(kernel.parallel)):
            at = sizes.modulo(number, self.counts[d]) if d else number
            number = sizes.divide(number, self.counts[d])
            self.enter(d, self.named("block", self.number(at)) * kernel.tile[d], kernel.tile[d])
            if sizes.modulo(kernel.domain[d], kernel.tile[d]) != 0:
                self.scope.ends[d] = kernel.domain[d]
        read = False
        for op in kernel.body.block:
            inside = list(op.walk())
            if read and self.across >= 0 and any(isinstance(o, loop.Store) for o in inside):
                gpu.Barrier()                        # what is written may lie where other lanes have still to read
            self.lower(op)
            read = read or any(isinstance(o, loop.Load) for o in inside)

    def is_first(self) -> Value:
        """Whether this is the thread of the first lane."""
        return arith.CmpI("eq", self.number(self.lane), self.number(0)).result

    # -- places ---------------------------------------------------------------------------------------------------
    def is_in_lanes(self, d: int) -> bool:
        return d in (self.across, self.along)

    def enter(self, d: int, origin: Dim | Value, size: int, lanes: int = 0) -> Dim:
        if d == self.across:
            if isinstance(origin, Value):
                origin = self.named("origin", origin)
            origin, size = origin + self.lane, 1
        self.scope.ends.pop(d, None)
        for known in (self.scope.within, self.scope.clamped):
            for key in [key for key in known if key[0] == d]:
                del known[key]
        return super().enter(d, origin, size, lanes)

    def enter_part(self, d: int, start: Dim, rest: Dim, size: int, whole: bool) -> None:
        self.enter(d, start, size)
        self.scope.ends[d] = start + rest

    def coordinate(self, d: int, offset: int) -> Dim:
        """The coordinate of a point, or of the last one in the domain where it sticks out.

        A lane that is a thread has no such neighbour of its own, so what it reads is guarded instead.
        """
        at = super().coordinate(d, offset)
        end = self.scope.ends.get(d)
        if end is None or d == self.across:
            return at
        if isinstance(at, int) and isinstance(end, int):
            return min(at, end - 1)
        if (d, offset) not in self.scope.clamped:
            self.scope.clamped[d, offset] = self.least(at, end - 1)
        return self.scope.clamped[d, offset]

    def inside(self, d: int, point: Point) -> Value | None:
        """Whether a point is in the domain along `d`; None for certainly."""
        end = self.scope.ends.get(d)
        if end is None:
            return None
        at = self.scope.origin[d] + point[d]
        if isinstance(at, int) and isinstance(end, int):
            return None if at < end else arith.constant(False, i1)
        if (d, point[d]) not in self.scope.within:
            self.scope.within[d, point[d]] = arith.CmpI("slt", self.number(at), self.number(end)).result
        return self.scope.within[d, point[d]]


def rule(target: type[Op]) -> Callable[[Rule], Rule]:
    """Register the rule of a class of operations for threads."""
    def register(apply: Rule) -> Rule:
        THREAD_RULES[target] = apply
        return apply
    return register
