"""The sweeps of a kernel: how often it goes through its rows, and what it reads, reduces and stores each time.

A reduction runs in the first sweep in which all that it reads is known: softmax takes its maximum in sweep 0 and its
sum in sweep 1. A value with one element per point is stored in the first sweep in which it is known, values with one
element per row after the last sweep. What a later sweep needs again is computed again if that is cheap. What is not is
read back from memory: the result itself, a result of the same type that is stored later, or a scratch of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.traits import is_cheap
from mlc.ir import sizes
from mlc.ir.core import Block, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import i1
from mlc.passes.spaces import Space, Walk, operand_walks, space_of

SCRATCH, SCRATCHES, BLOCK = 16384, 4, 64
"""The elements that a scratch may hold, how many there may be, and how many rows across memory one holds at a time."""


class Sweeps:
    """The sweeps of one kernel's body; sweep `count` stands for what comes after all of them."""

    def __init__(self, body: Block) -> None:
        self.body = body
        self.outputs = body.terminator.operands
        self.reduces = [op for op in body if isinstance(op, Reduce)]
        self.scans = [op for op in body if isinstance(op, tn.Cumulative)]
        inner = next(iter([*self.reduces, *self.scans]), None)
        self.space = space_of(inner) if inner else Space(self.outputs[0].type.shape)
        self.level: dict[Value, int] = dict.fromkeys(body.args, 0)
        for op in body:
            known = max((self.level[v] for v in op.operands), default=0)
            self.level.update(dict.fromkeys(op.results, known + isinstance(op, Reduce)))
        self.kept: dict[Value, tuple[int, int | None]] = {}
        """What later sweeps read back: the sweep that stores it, and the result in whose buffer (None: a scratch)."""
        stored = [self.stored(i) for i in range(len(self.outputs))]
        levels = {self.level[op.x] for op in self.reduces}
        self.count = 1 + max([*levels, *(s for s in stored if s is not None)], default=0)
        self._keep()

    @property
    def length(self) -> Dim:
        """How many points a row has."""
        return sizes.product(self.space.shape[a] for a in self.space.axes)

    def stored(self, i: int) -> int | None:
        """The sweep that stores result `i`; None: the result has one element per row, and is stored at the end."""
        v = self.outputs[i]
        return self.level[v] if self.space.has_all_points(v.type.shape) else None

    def reduced(self, sweep: int) -> list[Reduce]:
        return [op for op in self.reduces if self.level[op.x] == sweep]

    def scanned(self, sweep: int) -> list[tn.Cumulative]:
        """The cumulative operations that a sweep needs, each after those that it reads."""
        return [v.op for v, walk in self.visits(sweep) if isinstance(v.op, tn.Cumulative)]

    def kept_in(self, sweep: int) -> list[Value]:
        """What is stored in a sweep for later ones in other memory than its own result's."""
        return [v for v, (when, i) in self.kept.items() if when == sweep and (i is None or self.outputs[i] is not v)]

    def roots(self, sweep: int) -> Iterator[tuple[Value, Walk]]:
        """What a sweep evaluates, and how it walks."""
        for op in self.reduced(sweep):
            yield op.x, self.space.points
        for i, v in enumerate(self.outputs):
            when = self.stored(i)
            if (self.count if when is None else when) == sweep:
                walk = self.space.walk(v.type.shape)
                assert walk is not None, "fuse takes in what walks along the space"
                yield v, walk

    def visits(self, sweep: int) -> dict[tuple[Value, Walk | None], None]:
        """Every value that a sweep evaluates or reads, with its walk, after those that it is computed from."""
        out: dict[tuple[Value, Walk | None], None] = {}
        kept = ((v, self.space.points) for v in self.kept_in(sweep))
        work: list[tuple[Value, Walk | None, bool]] = [(v, walk, False) for v, walk in (*self.roots(sweep), *kept)]
        while work:
            v, walk, done = work.pop()
            if done:
                out[v, walk] = None
            elif (v, walk) not in out:
                work.append((v, walk, True))
                if v.op is not None and not isinstance(v.op, Reduce) and not self.is_read_back(v, sweep):
                    work += [(operand, w, False) for operand, w in operand_walks(v.op, walk, self.space)]
        return out

    def is_read_back(self, v: Value, sweep: int) -> bool:
        return v in self.kept and self.kept[v][0] < sweep

    # -- what is kept ---------------------------------------------------------------------------------------------
    def _keep(self) -> None:
        """Choose from the last value to the first, for what is kept needs nothing that it is computed from again."""
        claimed: set[int] = set()
        for op in reversed(list(self.body)):
            if op.terminator or is_cheap(op) or isinstance(op, Reduce) or self.count == 1:
                continue
            v = op.results[0]
            needed = {(s, walk) for s in range(self.count + 1) for value, walk in self.visits(s) if value is v}
            if len({s for s, _ in needed}) < 2 or any(
                    walk not in (self.space.points, self.space.in_row()) for _, walk in needed):
                continue
            memory = self._memory(v, max(s for s, _ in needed), claimed, self.space.in_row() in {w for _, w in needed})
            if memory is not None:
                if memory >= 0 and self.outputs[memory] is not v:
                    claimed.add(memory)
                self.kept[v] = min(s for s, _ in needed), memory if memory >= 0 else None

    def _memory(self, v: Value, last: int, claimed: set[int], anywhere: bool) -> int | None:
        """The result whose buffer holds `v` up to the sweep `last`; -1 for a scratch, None if there is no place."""
        for i, out in enumerate(self.outputs):
            until = self.stored(i)
            if out is v or (until is not None and out.type == v.type and until >= last and i not in claimed):
                return i
        longest = SCRATCH if len(self.space.shape) - 1 in self.space.axes else SCRATCH // BLOCK
        scratches = sum(i is None for _, i in self.kept.values())
        fits = isinstance(self.length, int) and self.length <= longest and scratches < SCRATCHES
        return -1 if fits and v.type.dtype != i1 and not anywhere else None

    # -- results over operands ------------------------------------------------------------------------------------
    @cached_property
    def reads(self) -> dict[Value, list[tuple[int, Walk | None]]]:
        """For each argument of the body the sweeps that read it, and how they walk along it."""
        out: dict[Value, list[tuple[int, Walk | None]]] = {v: [] for v in self.body.args}
        for sweep in range(self.count + 1):
            for v, walk in self.visits(sweep):
                if v in out:
                    out[v].append((sweep, walk))
        return out

    def may_overwrite(self, argument: Value, i: int) -> bool:
        """Whether result `i` may be written over an argument of its shape: element by element, and after all reads."""
        v = self.outputs[i]
        walk = self.space.walk(v.type.shape)
        first = self.stored(i)
        first = min([self.count if first is None else first, *(s for s, n in self.kept.values() if n == i)])
        return all(read == walk and sweep <= first for sweep, read in self.reads[argument])
